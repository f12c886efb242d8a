//! A lane's figures: coverage, counts, lean, and what they rest on.

use ratatui::Frame;
use ratatui::layout::Rect;
use ratatui::text::{Line, Span};
use ratatui::widgets::Paragraph;

use super::span;
use crate::pipeline::{Doubt, Figures, FirstRank};
use crate::report::marks::{Mark, share, signed};
use crate::tui::app::{App, Lane, LaneState};
use crate::tui::layout::LanePanes;
use crate::tui::theme::{Meaning, Theme};
use crate::tui::wrap::columns_of;

/// Draws the figures of one lane.
pub fn draw(app: &App, theme: Theme, pane: &LanePanes, lane: &Lane, frame: &mut Frame<'_>) {
    let area = pane.figures;
    if area.height == 0 || lane.state != LaneState::Ready {
        return;
    }
    let Some(figures) = app.figures(lane) else { return };
    if area.height > 1 {
        rule(pane, theme, frame);
    }
    let many = app.book.perspectives > 2;
    let before = app.figures_before(lane);
    let doubt = (figures.complete() && figures.judged > 0)
        .then(|| Figures::doubt(&lane.ranking, &app.book, &app.question, app.k))
        .flatten();
    let mut lines = vec![coverage(app, theme, &figures, (before.as_ref(), doubt))];
    if many {
        lines.extend(per_perspective(app, theme, &figures, usize::from(area.width)));
    } else {
        lines.push(first_ranks(app, theme, &figures));
        lines.extend(
            figures
                .sides
                .is_some()
                .then(|| balance(app, theme, (&figures, before.as_ref()), usize::from(area.width))),
        );
    }
    lines.truncate(usize::from(area.height).saturating_sub(1).max(1));
    if area.height > 1 {
        lines.push(standing(app, theme, &figures, (before.as_ref(), doubt), usize::from(area.width)));
    }
    frame.render_widget(Paragraph::new(lines), area);
}

fn rule(pane: &LanePanes, theme: Theme, frame: &mut Frame<'_>) {
    let area = Rect { y: pane.figures.y.saturating_sub(1), height: 1, ..pane.figures };
    frame.render_widget(span("─".repeat(usize::from(area.width)), Meaning::Muted, theme), area);
}

/// `MRecall@5 1  ▲3 ▼1 ○1  2/2  P .93`
fn coverage(
    app: &App,
    theme: Theme,
    figures: &Figures,
    (before, doubt): (Option<&Figures>, Option<Doubt>),
) -> Line<'static> {
    let recall = |figures: &Figures| figures.mrecall;
    let mut spans = vec![
        span(
            format!("MRecall@{} {}", figures.k, figures.shown(|| format!("{:.0}", figures.mrecall))),
            Meaning::Title,
            theme,
        ),
        changed(figures, before, recall, |by| format!("{by:+.0}"), theme),
    ];
    if app.book.perspectives <= 2 {
        for (i, count) in figures.supporting.iter().enumerate() {
            let mark = Mark::of(i, &app.question);
            spans.push(span(format!("{}{count} ", mark.text(app.glyphs)), Meaning::Side(mark), theme));
        }
        spans.push(span(
            format!("{}{}  ", Mark::None.glyph(app.glyphs), figures.none),
            Meaning::Side(Mark::None),
            theme,
        ));
    }
    spans.push(Span::raw(format!("{}/{}", figures.covered.len(), app.book.perspectives)));
    // The chance that all sides are covered, by the model's own probabilities.
    spans
        .extend(doubt.map(|doubt| span(format!("  P {}", share(doubt.mrecall.mean)), Meaning::Muted, theme)));
    Line::from(spans)
}

/// ` (+1)  `: how a measure differs from what it was before the last change to the lane.
fn changed(
    figures: &Figures,
    before: Option<&Figures>,
    measure: impl Fn(&Figures) -> f64,
    text: impl Fn(f64) -> String,
    theme: Theme,
) -> Span<'static> {
    let by = before
        .filter(|before| before.known() && before.complete() && figures.known() && figures.complete())
        .map_or(0.0, |before| measure(figures) - measure(before));
    if by.abs() < 0.005 { Span::raw("  ") } else { span(format!(" ({})  ", text(by)), Meaning::Warn, theme) }
}

fn first(first: FirstRank) -> String {
    match first {
        FirstRank::At(rank) => rank.to_string(),
        // The first passage is not judged yet.
        FirstRank::Below(0) => "…".into(),
        FirstRank::Below(judged) => format!(">{judged}"),
    }
}

/// `first rank ▲1 ▼9`
fn first_ranks(app: &App, theme: Theme, figures: &Figures) -> Line<'static> {
    let mut spans = vec![span("first rank ", Meaning::Muted, theme)];
    for (i, at) in figures.first.iter().enumerate() {
        let mark = Mark::of(i, &app.question);
        spans.push(span(format!("{}{} ", mark.text(app.glyphs), first(*at)), Meaning::Side(mark), theme));
    }
    if !app.settled && figures.first.iter().any(|at| matches!(at, FirstRank::Below(_))) {
        spans.push(span("so far", Meaning::Muted, theme));
    }
    Line::from(spans)
}

/// One count and first rank a perspective, as many in a line as fit.
fn per_perspective(app: &App, theme: Theme, figures: &Figures, width: usize) -> Vec<Line<'static>> {
    const CELL: usize = 10;
    let cells = figures.supporting.iter().zip(&figures.first).enumerate().map(|(i, (count, at))| {
        let mark = Mark::of(i, &app.question);
        let text = format!("{} {count}@{}", mark.text(app.glyphs), first(*at));
        span(format!("{text:<CELL$}"), Meaning::Side(mark), theme)
    });
    let cells: Vec<Span<'static>> = cells.collect();
    cells.chunks((width / CELL).max(1)).map(|row| Line::from(row.to_vec())).collect()
}

/// `▲██████░░░░▼ lean +.40`: the two sides' shares of what supports either.
fn balance(
    app: &App,
    theme: Theme,
    (figures, before): (&Figures, Option<&Figures>),
    width: usize,
) -> Line<'static> {
    let Some(sides) = figures.sides else { return Line::default() };
    let lean = format!(" lean {}", figures.shown(|| signed(sides.lean()).trim().to_owned()));
    let measure = |figures: &Figures| figures.sides.map_or(0.0, |sides| sides.lean());
    let change = changed(figures, before, measure, |by| signed(by).trim().to_owned(), theme);
    let bar = width.saturating_sub(lean.chars().count() + change.content.chars().count() + 3).min(24);
    let both = sides.p + sides.n;
    let left = if both > 0.0 { (bar as f64 * sides.p / both).round() as usize } else { 0 };
    let right = if both > 0.0 { bar - left } else { 0 };
    // The two halves differ in more than colour.
    let [support, empty, oppose] = ["█", "·", "▒"];
    let glyph = |mark: Mark| span(mark.glyph(app.glyphs).to_string(), Meaning::Side(mark), theme);
    Line::from(vec![
        glyph(Mark::Support),
        span(support.repeat(left), Meaning::Side(Mark::Support), theme),
        span(empty.repeat(bar - left - right), Meaning::Muted, theme),
        span(oppose.repeat(right), Meaning::Side(Mark::Oppose), theme),
        glyph(Mark::Oppose),
        Span::raw(lean),
        change,
    ])
}

/// `Prec@5 .80   5/5 judged by model`
fn standing(
    app: &App,
    theme: Theme,
    figures: &Figures,
    (before, doubt): (Option<&Figures>, Option<Doubt>),
    width: usize,
) -> Line<'static> {
    let meaning = if figures.complete() { Meaning::Muted } else { Meaning::Warn };
    let mut spans = vec![Span::raw(format!("Prec@{} {}", figures.k, figures.shown(|| share(figures.prec))))];
    spans.push(changed(figures, before, |figures| figures.prec, |by| signed(by).trim().to_owned(), theme));
    let judged = format!("{}/{} judged ({})", figures.judged, figures.returned, app.book.source);
    let used: usize = spans.iter().map(|span| columns_of(&span.content)).sum();
    if let Some(doubt) = doubt {
        let text = format!("{}–{}  ", share(doubt.prec.low), share(doubt.prec.high));
        if used + columns_of(&text) + columns_of(&judged) <= width {
            spans.push(span(text, Meaning::Muted, theme));
        }
    }
    spans.push(span(judged, meaning, theme));
    Line::from(spans)
}
