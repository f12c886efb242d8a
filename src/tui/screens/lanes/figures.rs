//! A lane's figures: coverage, counts, lean, and how much is judged.

use std::sync::Arc;

use ratatui::Frame;
use ratatui::layout::Rect;
use ratatui::text::{Line, Span};
use ratatui::widgets::Paragraph;

use super::{Inputs, LaneFigures};
use crate::engine::{Change, Doubt, Figures, FirstRank, Ranking, Shares};
use crate::measure::uncertainty::Spread;
use crate::report::marks::{Mark, share, signed};
use crate::tui::app::{App, Lane, LaneState};
use crate::tui::layout::LanePanes;
use crate::tui::theme::{Meaning, Theme};
use crate::tui::widgets::text::{columns_of, span};

/// Recomputes the figures of every lane whose inputs have changed.
pub fn refresh(app: &mut App) {
    let judgments = &app.judgments;
    let state = (judgments.revision(), judgments.perspectives, judgments.source);
    let mut changed = false;
    for i in 0..app.lanes.len() {
        let lane = &app.lanes[i];
        let inputs = Inputs {
            ready: lane.state == LaneState::Ready,
            list: Arc::clone(&lane.ranking),
            before: lane.before.as_ref().map(|before| Arc::clone(&before.ranking)),
            judgments: state,
            question: app.question.clone(),
            k: app.k,
            filter: app.filter.line.value().to_owned(),
        };
        if !lane.figures.inputs.as_ref().is_some_and(|before| before.same(&inputs)) {
            app.lanes[i].figures = compute(app, lane, inputs);
            changed = true;
        }
    }
    if changed {
        let tops = app.lanes.iter().flat_map(|lane| lane.ranking.iter().take(app.k));
        app.judged_by = Shares::of(&app.judgments, tops.map(|ranked| ranked.at));
    }
}

fn compute(app: &App, lane: &Lane, inputs: Inputs) -> LaneFigures {
    let of = |list: &Ranking| Figures::of(list, &app.judgments, &app.question, app.k);
    let now = inputs.ready.then(|| of(&inputs.list)).flatten();
    let before = inputs.before.as_ref().filter(|_| now.is_some());
    let change = before
        .and_then(|before| Figures::change((&inputs.list, before), &app.judgments, &app.question, app.k));
    let judged = now.as_ref().is_some_and(|now| now.complete() && now.returned > 0);
    let doubt = judged.then(|| Figures::doubt(&inputs.list, &app.judgments, &app.question, app.k)).flatten();
    LaneFigures { now, change, doubt, shown: app.shown(lane), inputs: Some(inputs) }
}

/// Draws the figures of one lane.
pub fn draw(app: &App, theme: Theme, pane: &LanePanes, lane: &Lane, frame: &mut Frame<'_>) {
    let area = pane.figures;
    if area.height == 0 || lane.state != LaneState::Ready {
        return;
    }
    let LaneFigures { now: Some(figures), change, doubt, .. } = &lane.figures else { return };
    if area.height > 1 {
        rule(pane, theme, frame);
    }
    let many = app.judgments.perspectives > 2;
    let mut lines = vec![coverage(app, theme, figures, (change.as_ref(), *doubt))];
    if many {
        lines.extend(per_perspective(app, theme, figures, usize::from(area.width)));
    } else {
        lines.push(first_ranks(app, theme, figures));
        lines.extend(
            figures
                .sides
                .is_some()
                .then(|| balance(app, theme, (figures, change.as_ref(), *doubt), usize::from(area.width))),
        );
    }
    lines.truncate(usize::from(area.height).saturating_sub(1).max(1));
    if area.height > 1 {
        lines.push(judged_line(app, theme, figures, (change.as_ref(), *doubt), usize::from(area.width)));
    }
    frame.render_widget(Paragraph::new(lines), area);
}

fn rule(pane: &LanePanes, theme: Theme, frame: &mut Frame<'_>) {
    let area = Rect { y: pane.figures.y.saturating_sub(1), height: 1, ..pane.figures };
    frame.render_widget(span("─".repeat(usize::from(area.width)), Meaning::Muted, theme), area);
}

/// `MRecall@5 1  ▲3 ▼1 ○1  2/2`, or if a model judged, mean and interval: `MRecall@5 .93 (.00–1.0)  ▲3 ▼1 ○1 ◇2`
fn coverage(
    app: &App,
    theme: Theme,
    figures: &Figures,
    (change, doubt): (Option<&Change>, Option<Doubt>),
) -> Line<'static> {
    let recall = match doubt {
        Some(doubt) => spread_text(doubt.mrecall, share),
        None => figures.shown(|| format!("{:.0}", figures.mrecall)),
    };
    let difference = change.map(|change| (change.mrecall, change.gap.map(|gap| gap.mrecall)));
    let text: fn(f64) -> String = match doubt {
        Some(_) => |by| signed(by).trim().to_owned(),
        None => |by| format!("{by:+.0}"),
    };
    let mut spans = vec![
        span(format!("MRecall@{} {recall}", figures.k), Meaning::Title, theme),
        change_span(difference, text, theme),
    ];
    if app.judgments.perspectives <= 2 {
        for (i, count) in figures.supporting.iter().enumerate() {
            let mark = Mark::of(i, &app.question);
            spans.push(span(format!("{}{count} ", mark.text(app.glyphs)), Meaning::Side(mark), theme));
        }
        spans.push(span(
            format!("{}{} ", Mark::None.glyph(app.glyphs), figures.none),
            Meaning::Side(Mark::None),
            theme,
        ));
        if figures.unclear > 0 {
            let mark = Mark::Unclear;
            spans.push(span(
                format!("{}{} ", mark.glyph(app.glyphs), figures.unclear),
                Meaning::Side(mark),
                theme,
            ));
        }
        spans.push(Span::raw(" "));
    }
    spans.push(Span::raw(format!("{}/{}", figures.covered.len(), app.judgments.perspectives)));
    Line::from(spans)
}

/// `.46 (.00–1.0)`
fn spread_text(spread: Spread, format: fn(f64) -> String) -> String {
    let [mean, low, high] = [spread.mean, spread.low, spread.high].map(|x| format(x).trim().to_owned());
    format!("{mean} ({low}–{high})")
}

/// ` (+1)  `: the change of a measure since the last change to the lane; ` (±)  ` if the model's doubt leaves its sign open.
fn change_span(
    difference: Option<(f64, Option<Spread>)>,
    text: impl Fn(f64) -> String,
    theme: Theme,
) -> Span<'static> {
    match difference {
        Some((_, Some(spread))) if spread.holds_zero() && spread.high - spread.low > 0.0 => {
            span(" (±)  ".to_owned(), Meaning::Muted, theme)
        }
        Some((by, _)) if by.abs() >= 0.005 => span(format!(" ({})  ", text(by)), Meaning::Warn, theme),
        _ => Span::raw("  "),
    }
}

fn first_rank_text(rank: FirstRank) -> String {
    match rank {
        FirstRank::At(rank) => rank.to_string(),
        // The first passage has no judgment yet.
        FirstRank::Below(0) => "…".into(),
        FirstRank::Below(judged) => format!(">{judged}"),
    }
}

/// `first rank ▲1 ▼9`
fn first_ranks(app: &App, theme: Theme, figures: &Figures) -> Line<'static> {
    let mut spans = vec![span("first rank ", Meaning::Muted, theme)];
    for (i, at) in figures.first.iter().enumerate() {
        let mark = Mark::of(i, &app.question);
        spans.push(span(
            format!("{}{} ", mark.text(app.glyphs), first_rank_text(*at)),
            Meaning::Side(mark),
            theme,
        ));
    }
    if !app.settled && figures.first.iter().any(|at| matches!(at, FirstRank::Below(_))) {
        spans.push(span("so far", Meaning::Muted, theme));
    }
    Line::from(spans)
}

/// One count and first rank per perspective, as many in a line as fit.
fn per_perspective(app: &App, theme: Theme, figures: &Figures, width: usize) -> Vec<Line<'static>> {
    const CELL: usize = 10;
    let cells = figures.supporting.iter().zip(&figures.first).enumerate().map(|(i, (count, at))| {
        let mark = Mark::of(i, &app.question);
        let text = format!("{} {count}@{}", mark.text(app.glyphs), first_rank_text(*at));
        span(format!("{text:<CELL$}"), Meaning::Side(mark), theme)
    });
    let cells: Vec<Span<'static>> = cells.collect();
    cells.chunks((width / CELL).max(1)).map(|row| Line::from(row.to_vec())).collect()
}

/// `▲██████▒▒▒▒▼ lean +.40`: the two sides' shares of the passages that support either.
fn balance(
    app: &App,
    theme: Theme,
    (figures, change, doubt): (&Figures, Option<&Change>, Option<Doubt>),
    width: usize,
) -> Line<'static> {
    let Some(sides) = figures.sides else { return Line::default() };
    let expected = doubt.and_then(|doubt| doubt.lean).map(|lean| spread_text(lean, signed));
    let shown = || figures.shown(|| signed(sides.lean()).trim().to_owned());
    let lean = format!(" lean {}", expected.unwrap_or_else(shown));
    let difference = change.and_then(|change| Some((change.lean?, change.gap.and_then(|gap| gap.lean))));
    let change = change_span(difference, |by| signed(by).trim().to_owned(), theme);
    let bar = width.saturating_sub(lean.chars().count() + change.content.chars().count() + 3).min(24);
    let both = sides.p + sides.n;
    let left = if both > 0.0 { (bar as f64 * sides.p / both).round() as usize } else { 0 };
    let right = if both > 0.0 { bar - left } else { 0 };
    // The halves differ in texture, not only in colour.
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

/// `Prec@5 .80   5/5 judged (model)`
fn judged_line(
    app: &App,
    theme: Theme,
    figures: &Figures,
    (change, doubt): (Option<&Change>, Option<Doubt>),
    width: usize,
) -> Line<'static> {
    let meaning = if figures.complete() { Meaning::Muted } else { Meaning::Warn };
    let shown = || figures.shown(|| share(figures.prec));
    let prec = doubt.map_or_else(shown, |doubt| share(doubt.prec.mean));
    let mut spans = vec![Span::raw(format!("Prec@{} {prec}", figures.k))];
    let difference = change.map(|change| (change.prec, change.gap.map(|gap| gap.prec)));
    spans.push(change_span(difference, |by| signed(by).trim().to_owned(), theme));
    let judged = format!("{}/{} judged ({})", figures.judged, figures.returned, app.judgments.source);
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
