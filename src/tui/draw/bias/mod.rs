//! Which way the lanes lean: the sides of each above, and below whose passages they bring up.

mod values;

use ratatui::Frame;
use ratatui::layout::Rect;
use ratatui::text::{Line, Span};
use ratatui::widgets::{Block, Paragraph};

use super::{say, span};
use crate::pipeline::{Compared, EXAMPLE, Uneven, covered_sides};
use crate::question::Question;
use crate::report::marks::{share, signed};
use crate::report::safe;
use crate::tui::app::{App, Corpus};
use crate::tui::theme::{Meaning, Theme};
use crate::tui::wrap::{columns_of, fit};

/// What is measured: this question's outcome, or every one of the set that is there.
struct Measured {
    compared: Vec<Compared>,
    questions: Vec<Question>,
}

impl Measured {
    fn of(app: &App) -> Self {
        if !app.biasing.over_set {
            return Measured { compared: vec![app.compared()], questions: vec![app.question.clone()] };
        }
        let Corpus::Open(opened) = &app.corpus else {
            return Measured { compared: Vec::new(), questions: Vec::new() };
        };
        let told = app.comparing.questions.iter().zip(&opened.questions);
        let known = told.filter_map(|(told, question)| Some((told.as_ref()?.as_ref().ok()?, question)));
        let (compared, questions) = known.map(|(one, question)| (one.clone(), question.clone())).unzip();
        Measured { compared, questions }
    }
}

/// Draws the screen.
pub fn draw(app: &App, theme: Theme, body: Rect, frame: &mut Frame<'_>) {
    let measured = Measured::of(app);
    let above = (app.lanes.len() as u16 + 3).min(body.height / 2);
    sides(app, theme, &measured, Rect { height: above, ..body }, frame);
    let below = Rect { y: body.y + above, height: body.height - above, ..body };
    match &app.biasing.fields {
        Some(fields) if !fields.categories.is_empty() => values::draw(app, theme, &measured, below, frame),
        fields => {
            let inner = bordered(theme, " whose passages ".into(), below, frame);
            let told = match fields {
                None => "Counting what the passages say of themselves …".to_owned(),
                Some(fields) if fields.others.is_empty() => format!(
                    "The passages say nothing of themselves, so that nobody's share can be told.\nGive the lines of the corpus {EXAMPLE}, and name it with --corpus."
                ),
                Some(fields) => format!(
                    "No field of the passages sorts them into groups: {} have too many different values, or lists.",
                    fields.others.join(", ")
                ),
            };
            say(&told, Meaning::Muted, theme, inner, frame);
        }
    }
}

/// A frame with a title; what is inside.
fn bordered(theme: Theme, title: String, area: Rect, frame: &mut Frame<'_>) -> Rect {
    let title = span(title, Meaning::Title, theme);
    let block = Block::bordered().border_style(theme.style(Meaning::Muted)).title(title);
    let inner = block.inner(area);
    frame.render_widget(block, area);
    inner
}

/// A lane's name in a column.
fn name(app: &App, theme: Theme, lane: usize, width: usize) -> [Span<'static>; 2] {
    let meaning = if lane == app.lane { Meaning::Selected } else { Meaning::Text };
    let title = app.lanes.get(lane).map_or_else(String::new, |lane| lane.recipe.title());
    let title = fit(&safe::line(&title), width.saturating_sub(1));
    let pad = " ".repeat(width.saturating_sub(columns_of(&title)));
    [span(title, meaning, theme), Span::raw(pad)]
}

/// How often each side is covered, how the lane leans, how uneven the order is, and what that leaves out.
fn sides(app: &App, theme: Theme, measured: &Measured, area: Rect, frame: &mut Frame<'_>) {
    let k = app.k;
    let what = match (app.biasing.over_set, app.comparing.questions.len()) {
        (false, _) => "this question".to_owned(),
        (true, all) => {
            format!("{}/{all} questions", app.comparing.questions.iter().flatten().count())
        }
    };
    let inner = bordered(theme, format!(" sides in the first {k} · {what} "), area, frame);
    let wide = inner.width >= 70;
    let width = if wide { 20 } else { 12 };
    let covers = if app.biasing.over_set { "▲only  ▼only  both none " } else { "covers" };
    let covers = if wide { format!("{covers:<26}") } else { String::new() };
    let head = format!("  {:<width$}{covers}{:<7}{:<7}{:<7}{}", "", "lean", "rKL", "AWRF", "no side");
    let mut lines = vec![Line::from(span(head, Meaning::Muted, theme))];
    for lane in 0..app.lanes.len() {
        let mut spans = vec![Span::raw("  ")];
        spans.extend(name(app, theme, lane, width));
        if wide {
            spans.push(Span::raw(format!("{:<26}", covered(app, measured, lane))));
        }
        let compared = &measured.compared;
        let lean = |one: &Compared| match app.biasing.over_set {
            true => one.lean(lane),
            false => Some(one.sides(lane)?.lean()),
        };
        let lean = mean(compared.iter().filter_map(lean));
        let uneven: Vec<Uneven> = compared.iter().filter_map(|one| one.uneven(lane, k)).collect();
        let shown = |value: Option<f64>| value.map_or_else(|| "–".into(), share);
        let supports = compared.iter().filter_map(|one| one.supports.get(lane)).flatten();
        let (none, of) = supports.fold((0, 0), |(none, of), set| {
            (none + usize::from(set.is_none_or(|set| set.is_empty())), of + 1)
        });
        spans.push(Span::raw(format!(
            "{:<7}{:<7}{:<7}{none}/{of}",
            lean.map_or_else(|| "–".into(), |lean| signed(lean).trim().to_owned()),
            shown(mean(uneven.iter().map(|one| one.rkl.value))),
            shown(mean(uneven.iter().map(|one| one.awrf.value))),
        )));
        lines.push(Line::from(spans));
    }
    frame.render_widget(Paragraph::new(lines), inner);
}

/// Which sides the first k cover: in words on one question, as shares over the set.
fn covered(app: &App, measured: &Measured, lane: usize) -> String {
    let counts = covered_sides(&measured.compared, lane);
    let all: usize = counts.iter().sum();
    if app.biasing.over_set {
        let [a, b, c, d] = counts.map(|count| share(count as f64 / all.max(1) as f64));
        return if all == 0 { "–".into() } else { format!("{a:<7}{b:<7}{c:<5}{d}") };
    }
    let figures = measured.compared.first().and_then(|one| one.figures.get(lane)?.as_ref());
    match (figures.filter(|figures| figures.known()), counts.iter().position(|count| *count > 0)) {
        (None, _) => "–".into(),
        (Some(_), Some(place)) => ["▲ only", "▼ only", "both ▲ and ▼", "neither side"][place].to_owned(),
        (Some(figures), None) => format!("{} of {} perspectives", figures.covered.len(), figures.first.len()),
    }
}

fn mean(values: impl Iterator<Item = f64>) -> Option<f64> {
    let all: Vec<f64> = values.collect();
    (!all.is_empty()).then(|| all.iter().sum::<f64>() / all.len() as f64)
}
