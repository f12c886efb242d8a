//! The lanes over the question set: its keys, and each lane's means, intervals, tests, curves and overlap.

use crossterm::event::{MouseButton, MouseEvent, MouseEventKind};
use ratatui::Frame;
use ratatui::layout::{Position, Rect};

use super::{Comparing, LaneSummary, MarkedQuestion, Order, Shown, Summary, draw};
use crate::engine::{Batch, Compared, Reply, covered_sides, sources_over_k};
use crate::measure::seeded::SplitMix64;
use crate::measure::significance::{self, bootstrap_interval, holm, paired_randomisation};
use crate::measure::uncertainty::Spread;
use crate::report::marks::share;
use crate::report::plot::{self, Series};
use crate::tui::app::{App, Corpus};
use crate::tui::keymap::{Action, Context, Screen};
use crate::tui::layout::panes;
use crate::tui::message::Effect;
use crate::tui::page::Page;
use crate::tui::screens::lanes::{question, update as lanes};
use crate::tui::theme::Theme;
use crate::tui::widgets::scrolled;

/// The comparison of the lanes over the question set.
pub struct Compare;

impl Page for Compare {
    fn screen(&self) -> Screen {
        Screen::COMPARE
    }

    fn context(&self, _: &App) -> Context {
        Context::Compare
    }

    fn opened_by(&self) -> Option<Action> {
        Some(Action::Compare)
    }

    fn open(&self, app: &mut App) -> Vec<Effect> {
        open(app)
    }

    fn act(&self, app: &mut App, action: Action) -> Vec<Effect> {
        act(app, action)
    }

    fn reply(&self, app: &mut App, reply: Reply) -> Result<Vec<Effect>, Box<Reply>> {
        match reply {
            Reply::Compared { number, question, compared } => {
                if number == app.comparing.number
                    && let Some(place) = app.comparing.questions.get_mut(question)
                {
                    *place = Some(compared);
                }
                Ok(Vec::new())
            }
            other => Err(Box::new(other)),
        }
    }

    fn embedded(&self, app: &mut App) -> Vec<Effect> {
        ask(app)
    }

    fn settled(&self, app: &App) -> bool {
        app.comparing.ended()
    }

    fn refresh(&self, app: &mut App) {
        refresh(app);
    }

    fn point(&self, app: &mut App, mouse: MouseEvent) -> Option<Action> {
        point(app, mouse)
    }

    fn plot(&self, app: &App) -> Option<String> {
        let titles = app.titles();
        let named = app
            .comparing
            .summary
            .curves
            .iter()
            .zip(titles)
            .map(|(curve, name)| Series { name, ..curve.clone() });
        let series: Vec<Series> = named.collect();
        (!series.is_empty()).then(|| plot::curves(&series, "k", "MRecall"))
    }

    fn draw(&self, app: &App, theme: Theme, area: Rect, frame: &mut Frame<'_>) {
        draw::draw(app, theme, area, frame);
    }
}

/// Opens the screen and runs the whole set through all lanes.
pub fn open(app: &mut App) -> Vec<Effect> {
    let Corpus::Open(opened) = &app.corpus else { return Vec::new() };
    if opened.questions.is_empty() {
        app.notice = Some("there is no question set; give one with --questions FILE".into());
        return Vec::new();
    }
    app.screen = Screen::COMPARE;
    ask(app)
}

/// Performs an action.
pub fn act(app: &mut App, action: Action) -> Vec<Effect> {
    let last = app.comparing.questions.len().saturating_sub(1);
    let page = usize::from(app.size.height / 2).max(1);
    let comparing = &mut app.comparing;
    match action {
        Action::Down => comparing.at = (comparing.at + 1).min(last),
        Action::Up => comparing.at = comparing.at.saturating_sub(1),
        Action::PageDown => comparing.at = (comparing.at + page).min(last),
        Action::PageUp => comparing.at = comparing.at.saturating_sub(page),
        Action::First => comparing.at = 0,
        Action::Last => comparing.at = last,
        Action::NextOrder => {
            comparing.order = match comparing.order {
                Order::Set => Order::Disagreement,
                Order::Disagreement => Order::Least,
                Order::Least => Order::Greatest,
                Order::Greatest => Order::Text,
                Order::Text => Order::Set,
            };
            comparing.at = 0;
        }
        Action::NextMeasure => {
            let at = Shown::ALL.iter().position(|one| *one == comparing.shown).unwrap_or(0);
            comparing.shown = Shown::ALL[(at + 1) % Shown::ALL.len()];
        }
        Action::OverSet => comparing.means = !comparing.means,
        Action::OpenQuestion => return open_question(app),
        action => return lanes::act_with_batch(app, action, ask),
    }
    Vec::new()
}

/// A click marks a question or a lane, a second click on a question opens it; the wheel scrolls.
fn point(app: &mut App, mouse: MouseEvent) -> Option<Action> {
    if mouse.kind != MouseEventKind::Down(MouseButton::Left) {
        return scrolled(mouse);
    }
    let (row, lane) = draw::target(app, panes(app).body, Position { x: mouse.column, y: mouse.row });
    if let Some(lane) = lane {
        app.lane = lane;
    }
    let row = row.filter(|row| *row < app.comparing.summary.rows.len())?;
    let again = app.comparing.at == row;
    app.comparing.at = row;
    again.then_some(Action::OpenQuestion)
}

/// Requests the outcome of every question.
pub fn ask(app: &mut App) -> Vec<Effect> {
    let number = app.next_batch();
    begin(app, number);
    vec![Effect::Batch(number, Batch::Compare(app.query()))]
}

/// Forgets the outcomes of the set; the batch will report them again.
pub fn begin(app: &mut App, number: u64) {
    let Corpus::Open(opened) = &app.corpus else { return };
    app.comparing = Comparing {
        number,
        questions: vec![None; opened.questions.len()],
        at: app.comparing.at,
        order: app.comparing.order,
        shown: app.comparing.shown,
        means: app.comparing.means,
        ..Comparing::default()
    };
}

/// Opens the marked question with the same lanes.
fn open_question(app: &mut App) -> Vec<Effect> {
    let Some(row) = app.comparing.summary.rows.get(app.comparing.at).copied() else { return Vec::new() };
    let Corpus::Open(opened) = &app.corpus else { return Vec::new() };
    let Some(question) = opened.questions.get(row).cloned() else { return Vec::new() };
    let mut effects = app.leave();
    effects.extend(question::ask_question(app, question));
    effects
}

/// Draws of a model's verdicts on screen.
const DRAWS: usize = 400;

/// Draws behind an interval or a test over so many questions: as many as `eval` takes, as long as the screen stays quick.
fn draws(questions: usize) -> usize {
    (240_000 / questions.max(1)).clamp(DRAWS, significance::DRAWS)
}

/// Recomputes the summary if an outcome has arrived or what is compared has changed, and what is shown of the marked question.
pub fn refresh(app: &mut App) {
    let comparing = &app.comparing;
    let done = comparing.questions.iter().flatten().count();
    let (order, shown) = (comparing.order, comparing.shown);
    let inputs = (comparing.number, done, app.lane, app.lanes.len(), app.k, order, shown);
    let changed = comparing.summary.inputs != Some(inputs);
    if changed {
        let all = comparing.questions.iter().flatten().flatten();
        let compared: Vec<&Compared> = all.filter(|one| one.perspectives > 0).collect();
        app.comparing.summary = Summary {
            rows: rows(app),
            lanes: lanes(app, &compared),
            curves: curves(app, &compared),
            sources: (0..app.lanes.len()).map(|lane| sources_over_k(&compared, lane, app.k)).collect(),
            values: values(app),
            inputs: Some(inputs),
        };
    }
    let comparing = &app.comparing;
    let row = comparing.summary.rows.get(comparing.at).copied();
    if changed || comparing.marked.row != row {
        app.comparing.marked = marked(app, row);
    }
}

/// The value of the measure shown, per question of the set and lane.
fn values(app: &App) -> Vec<Vec<Option<f64>>> {
    let of = |compared: &Compared, lane| app.comparing.shown.of(compared, lane, app.lane);
    let row = |outcome: &Option<Result<Compared, String>>| match outcome {
        Some(Ok(compared)) => (0..app.lanes.len()).map(|lane| of(compared, lane)).collect(),
        _ => Vec::new(),
    };
    app.comparing.questions.iter().map(row).collect()
}

/// What the lanes share on one question of the set.
fn marked(app: &App, row: Option<usize>) -> MarkedQuestion {
    let outcome = row.and_then(|row| app.comparing.questions.get(row)?.as_ref()?.as_ref().ok());
    let Some(compared) = outcome else { return MarkedQuestion { row, ..MarkedQuestion::default() } };
    MarkedQuestion {
        overlaps: (0..app.lanes.len()).map(|lane| compared.overlap(lane, app.lane)).collect(),
        only: (0..app.lanes.len()).map(|lane| compared.only_in(lane)).collect(),
        row,
    }
}

/// The indices of the questions in the order they are shown.
fn rows(app: &App) -> Vec<usize> {
    let (comparing, lane) = (&app.comparing, app.lane);
    let of_lane = |compared: &Compared| comparing.shown.of(compared, lane, lane);
    let value = |outcome: &Option<Result<Compared, String>>| {
        let known = outcome.as_ref().and_then(|outcome| outcome.as_ref().ok());
        let value = match comparing.order {
            Order::Set | Order::Text => Some(0.0),
            Order::Disagreement => known.map(|compared| -compared.disagreement()),
            Order::Least => known.and_then(of_lane),
            Order::Greatest => known.and_then(of_lane).map(|value| -value),
        };
        value.unwrap_or(f64::INFINITY)
    };
    let values: Vec<f64> = comparing.questions.iter().map(value).collect();
    let mut rows: Vec<usize> = (0..values.len()).collect();
    if let (Order::Text, Corpus::Open(opened)) = (comparing.order, &app.corpus) {
        rows.sort_by_cached_key(|row| {
            opened.questions.get(*row).map(|question| question.text.to_lowercase())
        });
    } else {
        // The sort is stable: questions of equal value keep the order of the set.
        rows.sort_by(|a, b| values[*a].total_cmp(&values[*b]));
    }
    rows
}

/// One lane's values over the questions.
struct LaneValues {
    recalls: Vec<f64>,
    precs: Vec<f64>,
    /// Questions for which the lane has no list.
    failed: usize,
    /// See [`drawn_means`].
    drawn: Option<Vec<f64>>,
}

impl LaneValues {
    fn of(app: &App, compared: &[&Compared], lane: usize) -> Self {
        let values = compared.iter().map(|one| one.at(lane, app.k).unwrap_or_default());
        let (recalls, precs) = values.unzip();
        let failed = compared.iter().filter(|one| one.figures.get(lane).is_none_or(Option::is_none)).count();
        LaneValues { recalls, precs, failed, drawn: drawn_means(compared, lane) }
    }

    /// Mean MRecall with its interval, as text.
    fn mrecall_text(&self) -> String {
        if self.failed > 0 && self.failed == self.recalls.len() {
            return "no list".into();
        }
        let recall = match &self.drawn {
            Some(means) => {
                Spread::of(&mut means.clone()).map(|spread| (spread.mean, spread.low, spread.high))
            }
            None => bootstrap_interval(&self.recalls, 0.95, draws(self.recalls.len()), 0)
                .ok()
                .map(|interval| (interval.mean, interval.low, interval.high)),
        };
        recall.map_or_else(
            || "…".into(),
            |(mean, low, high)| format!("{} ({}–{})", share(mean), share(low), share(high)),
        )
    }

    /// Mean Prec, as text.
    fn prec_text(&self) -> String {
        if self.precs.is_empty() {
            return "…".into();
        }
        share(self.precs.iter().sum::<f64>() / self.precs.len() as f64)
    }

    /// Whether the model's doubt leaves open which of two lanes covers more.
    fn is_undecided_against(&self, other: &LaneValues) -> bool {
        let both = self.drawn.as_ref().zip(other.drawn.as_ref());
        let difference = both.and_then(|(one, other)| {
            Spread::of(&mut one.iter().zip(other).map(|(one, other)| one - other).collect::<Vec<_>>())
        });
        difference.is_some_and(|difference| difference.holds_zero())
    }
}

/// Each lane's figures, compared with the lane under the cursor.
fn lanes(app: &App, compared: &[&Compared]) -> Vec<LaneSummary> {
    let all: Vec<LaneValues> = (0..app.lanes.len()).map(|lane| LaneValues::of(app, compared, lane)).collect();
    let Some(against) = all.get(app.lane) else { return Vec::new() };
    let others = all.iter().enumerate().filter(|(lane, _)| *lane != app.lane);
    let tested: Vec<(usize, f64)> = others
        .filter_map(|(lane, values)| {
            Some((
                lane,
                paired_randomisation(&values.recalls, &against.recalls, draws(values.recalls.len()), 0)
                    .ok()?,
            ))
        })
        .collect();
    let corrected = holm(&tested.iter().map(|(_, p)| *p).collect::<Vec<_>>());
    let p = |lane: usize| {
        let place = tested.iter().position(|(tested, _)| *tested == lane)?;
        corrected.get(place).copied()
    };
    let shown = app.comparing.shown;
    let mean = |lane: usize, values: &LaneValues| {
        // Only MRecall's means are drawn.
        let drawn = match shown {
            Shown::MRecall => values.drawn.as_ref(),
            Shown::Prec | Shown::Lean | Shown::Overlap => None,
        };
        if let Some(drawn) = drawn {
            let spread = Spread::of(&mut drawn.clone())?;
            return Some((spread.mean, spread.low, spread.high));
        }
        let all: Vec<f64> = compared.iter().filter_map(|one| shown.of(one, lane, app.lane)).collect();
        let interval = bootstrap_interval(&all, 0.95, draws(all.len()), 0).ok()?;
        Some((interval.mean, interval.low, interval.high))
    };
    let one = |(lane, values): (usize, &LaneValues)| LaneSummary {
        mean: mean(lane, values),
        mrecall: values.mrecall_text(),
        prec: values.prec_text(),
        sides: sides(compared, lane),
        overlap: overlap(app, compared, lane),
        p: match values.failed {
            0 if lane != app.lane && values.is_undecided_against(against) => "open".into(),
            0 => p(lane).map_or_else(String::new, share),
            failed => format!("{failed} failed"),
        },
    };
    all.iter().enumerate().map(one).collect()
}

/// A lane's mean MRecall in every draw of the questions and of the model's verdicts; `None` if only labels count. All lanes see the same
/// draws.
fn drawn_means(compared: &[&Compared], lane: usize) -> Option<Vec<f64>> {
    if compared.is_empty() || compared.iter().all(|one| one.expected.is_none()) {
        return None;
    }
    let mut rng = SplitMix64::new(0);
    let value = |one: &Compared, draw: usize| match &one.expected {
        Some(expected) => {
            expected.mrecall.get(lane).and_then(|draws| draws.get(draw)).copied().map_or(0.0, f64::from)
        }
        None => one.figures.get(lane).and_then(Option::as_ref).map_or(0.0, |figures| figures.mrecall),
    };
    let mean = |draw: usize| {
        let drawn = (0..compared.len()).map(|_| value(compared[rng.below(compared.len())], draw));
        drawn.sum::<f64>() / compared.len() as f64
    };
    Some((0..DRAWS).map(mean).collect())
}

fn overlap(app: &App, compared: &[&Compared], lane: usize) -> String {
    if lane == app.lane {
        return String::new();
    }
    let overlaps: Vec<(f64, f64)> = compared.iter().filter_map(|one| one.overlap(lane, app.lane)).collect();
    if overlaps.is_empty() {
        return String::new();
    }
    let mean =
        |value: fn(&(f64, f64)) -> f64| overlaps.iter().map(value).sum::<f64>() / overlaps.len() as f64;
    format!("{}/{}", share(mean(|both| both.0)), share(mean(|both| both.1)))
}

fn sides(compared: &[&Compared], lane: usize) -> String {
    let counts = covered_sides(compared.iter().copied(), lane);
    let all: f64 = counts.iter().sum();
    if all == 0.0 {
        return String::new();
    }
    let [a, b, c, d] = counts.map(|count| share(count / all));
    format!("{a:<7}{b:<7}{c:<5}{d}")
}

/// Mean MRecall of every lane at 1 … k, with 1.96 standard errors to both sides.
fn curves(app: &App, compared: &[&Compared]) -> Vec<Series> {
    if compared.is_empty() {
        return Vec::new();
    }
    let n = compared.len() as f64;
    let curve = |lane| {
        let mut curve = Series::default();
        for k in 1..=app.k {
            let all = || compared.iter().map(|one| one.at(lane, k).unwrap_or_default().0);
            let mean = all().sum::<f64>() / n;
            let variance = all().map(|x| (x - mean).powi(2)).sum::<f64>() / (n - 1.0).max(1.0);
            let half = 1.96 * (variance / n).sqrt();
            curve.points.push((k as f64, mean));
            curve.band.push((k as f64, (mean - half).max(0.0), (mean + half).min(1.0)));
        }
        curve
    };
    (0..app.lanes.len()).map(curve).collect()
}
