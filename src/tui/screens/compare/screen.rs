//! The lanes over the question set: one row per question; below, each lane's means, intervals, tests, curves and overlap.

use ratatui::Frame;
use ratatui::layout::Rect;
use ratatui::text::{Line, Span};
use ratatui::widgets::{Block, Paragraph};

use super::{Comparing, LaneSummary, Order, Summary};
use crate::engine::{Batch, Compared, Reply, covered_sides};
use crate::measure::seeded::SplitMix64;
use crate::measure::significance::{bootstrap_interval, holm, paired_randomisation};
use crate::measure::uncertainty::Spread;
use crate::report::marks::{Mark, share};
use crate::report::safe;
use crate::tui::app::{App, Corpus};
use crate::tui::keymap::{Action, Context, Screen};
use crate::tui::message::Effect;
use crate::tui::page::Page;
use crate::tui::screens::lanes::{question, update as lanes};
use crate::tui::theme::{Meaning, Theme};
use crate::tui::widgets;
use crate::tui::widgets::text::{columns_of, fit, span};

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

    fn draw(&self, app: &App, theme: Theme, area: Rect, frame: &mut Frame<'_>) {
        draw(app, theme, area, frame);
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
                Order::Disagreement => Order::Worst,
                Order::Worst => Order::Set,
            };
            comparing.at = 0;
        }
        Action::OpenQuestion => return open_question(app),
        action => return lanes::act_with_batch(app, action, ask),
    }
    Vec::new()
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

/// Draws behind intervals and tests on screen; `eval` takes more.
const DRAWS: usize = 400;

/// Recomputes the summary if an outcome has arrived or what is compared has changed.
pub fn refresh(app: &mut App) {
    let comparing = &app.comparing;
    let done = comparing.questions.iter().flatten().count();
    let inputs = (comparing.number, done, app.lane, app.lanes.len(), app.k, comparing.order);
    if comparing.summary.inputs == Some(inputs) {
        return;
    }
    let all = comparing.questions.iter().flatten().flatten();
    let compared: Vec<&Compared> = all.filter(|one| one.perspectives > 0).collect();
    app.comparing.summary = Summary {
        rows: rows(comparing, app.lane),
        lanes: lanes(app, &compared),
        curves: curves(app, &compared),
        inputs: Some(inputs),
    };
}

/// The indices of the questions in the order they are shown.
fn rows(comparing: &Comparing, lane: usize) -> Vec<usize> {
    let value = |outcome: &Option<Result<Compared, String>>| {
        let known = outcome.as_ref().and_then(|outcome| outcome.as_ref().ok());
        match comparing.order {
            Order::Set => 0.0,
            Order::Disagreement => known.map_or(f64::INFINITY, |compared| -compared.disagreement()),
            Order::Worst => known
                .and_then(|compared| {
                    let k = compared.figures.get(lane)?.as_ref()?.k;
                    compared.at(lane, k)
                })
                .map_or(f64::INFINITY, |(recall, prec)| recall + prec),
        }
    };
    let values: Vec<f64> = comparing.questions.iter().map(value).collect();
    let mut rows: Vec<usize> = (0..values.len()).collect();
    // The sort is stable: questions of equal value keep the order of the set.
    rows.sort_by(|a, b| values[*a].total_cmp(&values[*b]));
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
    fn recall_text(&self) -> String {
        if self.failed > 0 && self.failed == self.recalls.len() {
            return "no list".into();
        }
        let recall = match &self.drawn {
            Some(means) => {
                Spread::of(&mut means.clone()).map(|spread| (spread.mean, spread.low, spread.high))
            }
            None => bootstrap_interval(&self.recalls, 0.95, DRAWS, 0)
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
            Some((lane, paired_randomisation(&values.recalls, &against.recalls, DRAWS, 0).ok()?))
        })
        .collect();
    let corrected = holm(&tested.iter().map(|(_, p)| *p).collect::<Vec<_>>());
    let p = |lane: usize| {
        let place = tested.iter().position(|(tested, _)| *tested == lane)?;
        corrected.get(place).copied()
    };
    let one = |(lane, values): (usize, &LaneValues)| LaneSummary {
        recall: values.recall_text(),
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

/// Mean MRecall of every lane at 1 … k.
fn curves(app: &App, compared: &[&Compared]) -> Vec<Vec<(f64, f64)>> {
    if compared.is_empty() {
        return Vec::new();
    }
    let curve = |lane| {
        let mean = |k: usize| {
            let sum: f64 = compared.iter().map(|one| one.at(lane, k).unwrap_or_default().0).sum();
            (k as f64, sum / compared.len() as f64)
        };
        (1..=app.k).map(mean).collect()
    };
    (0..app.lanes.len()).map(curve).collect()
}

/// Columns of one lane in the table.
const LANE: usize = 13;
/// The last columns of a cell are empty, so they may lie outside the frame.
const GAP: usize = 5;

/// Draws the screen.
pub fn draw(app: &App, theme: Theme, body: Rect, frame: &mut Frame<'_>) {
    let below = (app.lanes.len() as u16 + 3).max(10).min(body.height / 2);
    let table = Rect { height: body.height - below, ..body };
    let rest = Rect { y: table.bottom(), height: below, ..body };
    questions(app, theme, table, frame);
    let wide = rest.width >= 110;
    let left = if wide { rest.width * 3 / 5 } else { rest.width };
    draw_lanes(app, theme, Rect { width: left, ..rest }, frame);
    if wide {
        draw_curves(app, theme, Rect { x: rest.x + left, width: rest.width - left, ..rest }, frame);
    }
}

/// Draws one row per question: MRecall and Prec of every lane.
fn questions(app: &App, theme: Theme, area: Rect, frame: &mut Frame<'_>) {
    let comparing = &app.comparing;
    let (done, all) = (comparing.questions.iter().flatten().count(), comparing.questions.len());
    let order = match comparing.order {
        Order::Set => "as in the set",
        Order::Disagreement => "widest disagreement first",
        Order::Worst => "worst of the lane with the cursor first",
    };
    let title = format!(" {done}/{all} questions · {order} · MRecall, Prec, passages a side ");
    let title = fit(&title, usize::from(area.width).saturating_sub(2));
    let block =
        Block::bordered().border_style(theme.style(Meaning::Focus)).title(span(title, Meaning::Title, theme));
    let inner = block.inner(area);
    frame.render_widget(block, area);
    let width = usize::from(inner.width);
    let shown = (width / 2 / LANE).clamp(1, app.lanes.len().max(1));
    let room = width.saturating_sub(shown * LANE + 2);
    let first_lane = app.lane.saturating_sub(shown - 1);
    let mut head = vec![Span::raw(" ".repeat(room + 2))];
    for i in (0..app.lanes.len()).skip(first_lane).take(shown) {
        let meaning = if i == app.lane { Meaning::Selected } else { Meaning::Title };
        let name = app.short_title(i, LANE - 1);
        let pad = " ".repeat(LANE - columns_of(&name));
        head.extend([span(name, meaning, theme), Span::raw(pad)]);
    }
    let mut lines = vec![Line::from(head)];
    let rows = &comparing.summary.rows;
    let fits = usize::from(inner.height).saturating_sub(1).max(1);
    let top = (comparing.at + 1).saturating_sub(fits);
    let Corpus::Open(opened) = &app.corpus else { return };
    for (place, row) in rows.iter().enumerate().skip(top).take(fits) {
        let Some(question) = opened.questions.get(*row) else { continue };
        let meaning = if place == comparing.at { Meaning::Selected } else { Meaning::Text };
        let text = fit(&safe::line(&question.text), room);
        let pad = " ".repeat(room + 1 - columns_of(&text));
        let mut spans = vec![Span::raw(" "), span(text, meaning, theme), Span::raw(pad)];
        for lane in first_lane..first_lane + shown {
            spans.extend(cell(app, theme, *row, lane));
        }
        lines.push(Line::from(spans));
    }
    frame.render_widget(Paragraph::new(lines), inner);
}

/// `1 .80 ▲3▼1`
fn cell(app: &App, theme: Theme, row: usize, lane: usize) -> Vec<Span<'static>> {
    let padded = |text: String, meaning| {
        let pad = " ".repeat(LANE.saturating_sub(columns_of(&text)));
        vec![span(text, meaning, theme), Span::raw(pad)]
    };
    match app.comparing.questions.get(row).and_then(Option::as_ref) {
        None => padded("…".into(), Meaning::Muted),
        Some(Err(_)) => padded("failed".into(), Meaning::Warn),
        Some(Ok(compared)) => match compared.figures.get(lane).and_then(Option::as_ref) {
            None => padded("–".into(), Meaning::Muted),
            Some(figures) => {
                let expected = compared.expected.is_some().then(|| compared.at(lane, figures.k)).flatten();
                let text = match expected {
                    Some((recall, prec)) => format!("{} {} ", share(recall), share(prec)),
                    None => figures.shown(|| format!("{:.0} {} ", figures.mrecall, share(figures.prec))),
                };
                let mut spans = vec![Span::raw(text.clone())];
                let mut columns = columns_of(&text);
                for (i, count) in figures.supporting.iter().enumerate().filter(|_| compared.perspectives == 2)
                {
                    let mark = if compared.supports_first == i { Mark::Support } else { Mark::Oppose };
                    let text = format!("{}{count}", mark.glyph(app.glyphs));
                    columns += columns_of(&text);
                    spans.push(span(text, Meaning::Side(mark), theme));
                }
                if figures.unclear > 0 && compared.perspectives == 2 {
                    let text = format!("{}{}", Mark::Unclear.glyph(app.glyphs), figures.unclear);
                    if columns + columns_of(&text) < LANE {
                        columns += columns_of(&text);
                        spans.push(span(text, Meaning::Side(Mark::Unclear), theme));
                    }
                }
                spans.push(Span::raw(" ".repeat(LANE.saturating_sub(columns))));
                spans
            }
        },
    }
}

/// Draws means with intervals, sides covered, and how each lane differs from the one under the cursor.
fn draw_lanes(app: &App, theme: Theme, area: Rect, frame: &mut Frame<'_>) {
    let k = app.k;
    let so_far = if app.comparing.ended() { "" } else { " so far" };
    let drawn = app.comparing.questions.iter().flatten().flatten().any(|one| one.expected.is_some());
    let open = if drawn { " (open: the model's doubt leaves it open)" } else { "" };
    let title = format!(" means{so_far} at k {k} · overlap and p with the lane with the cursor{open} ");
    let title = fit(&title, usize::from(area.width).saturating_sub(2));
    let block =
        Block::bordered().border_style(theme.style(Meaning::Muted)).title(span(title, Meaning::Title, theme));
    let inner = block.inner(area);
    frame.render_widget(block, area);
    // Columns without room are left out, the last ones first; none is cut.
    let width = usize::from(inner.width);
    let named = width.saturating_sub(2 + 15 + 5).clamp(8, 18);
    let rest = [15, 5, 24, 11, 8].into_iter().scan(2 + named, |used, columns| {
        *used += columns;
        Some((columns, *used <= width + GAP))
    });
    let rest: Vec<usize> = rest.filter(|(_, fits)| *fits).map(|(columns, _)| columns).collect();
    let joined = |cells: [&str; 5]| -> String {
        rest.iter().zip(cells).map(|(columns, cell)| format!("{cell:<columns$}")).collect()
    };
    let head = joined(["MRecall", "Prec", "▲only  ▼only  both none", "J / RBO", "p"]);
    let head = format!("  {:named$}{head}", "");
    let mut lines = vec![Line::from(span(head, Meaning::Muted, theme))];
    // The lane under the cursor is always visible.
    let shown = usize::from(inner.height).saturating_sub(1).max(1);
    let first = (app.lane + 1).saturating_sub(shown);
    let lanes = app.comparing.summary.lanes.iter().enumerate();
    for (i, lane) in lanes.take(app.lanes.len()).skip(first).take(shown) {
        let meaning = if i == app.lane { Meaning::Selected } else { Meaning::Text };
        let name = app.short_title(i, named - 1);
        let pad = " ".repeat(named - columns_of(&name));
        let LaneSummary { recall, prec, sides, overlap, p } = lane;
        lines.push(Line::from(vec![
            Span::raw("  "),
            span(name, meaning, theme),
            Span::raw(pad + &joined([recall, prec, sides, overlap, p])),
        ]));
    }
    frame.render_widget(Paragraph::new(lines), inner);
}

/// Draws MRecall of every lane over k.
fn draw_curves(app: &App, theme: Theme, area: Rect, frame: &mut Frame<'_>) {
    let mut title = vec![span(" MRecall over k ", Meaning::Title, theme)];
    title.extend(widgets::legend((0..app.lanes.len()).map(|i| app.short_title(i, 14)), theme));
    let block = Block::bordered().border_style(theme.style(Meaning::Muted)).title(Line::from(title));
    let inner = block.inner(area);
    frame.render_widget(block, area);
    if app.comparing.summary.curves.is_empty() || inner.height < 4 {
        return;
    }
    let ends = (1.0, app.k.max(2) as f64);
    widgets::draw(
        app,
        theme,
        &app.comparing.summary.curves,
        (ends, vec!["1".into(), format!("k {}", app.k)]),
        inner,
        frame,
    );
}
