//! The values of one field: their shares in the corpus and in each lane's first k, and what is brought up where one is asked for.

use ratatui::Frame;
use ratatui::layout::Rect;
use ratatui::text::{Line, Span};
use ratatui::widgets::Paragraph;

use super::super::span;
use super::{Measured, bordered, name};
use crate::corpus::fields::{Field, NONE};
use crate::measure::attributes::{Crossed, Standing, crossed, distance, pooled, standings};
use crate::pipeline::desired;
use crate::report::marks::share;
use crate::report::safe;
use crate::tui::app::App;
use crate::tui::theme::{Meaning, Theme};
use crate::tui::wrap::{columns_of, fit};

/// Columns of a value's name.
const NAME: usize = 17;
/// Columns of the corpus's share.
const CORPUS: usize = 8;
/// Columns of a lane.
const LANE: usize = 14;
/// Columns of a value that is brought up.
const BROUGHT: usize = 8;
/// From this much over or under on (log2), the share is marked.
const MARKED: f64 = 0.5;

/// Draws the table, and the matrix if any question asks for a value.
pub fn draw(app: &App, theme: Theme, measured: &Measured, area: Rect, frame: &mut Frame<'_>) {
    let Some(field) = app.biasing.category(app.biasing.at) else { return };
    let asked: Vec<Vec<usize>> = measured.questions.iter().map(|question| desired(field, question)).collect();
    let counts: Vec<Vec<usize>> =
        measured.compared.iter().map(|compared| compared.counts(app.lane, field)).collect();
    let rows = crossed(&asked, &counts, field.values.len());
    let tall = rows.len() as u16 + 3;
    let (table, matrix) = match (rows.is_empty(), area.width >= 110) {
        (true, _) => (area, Rect::ZERO),
        (false, true) => {
            let left = area.width * 3 / 5;
            (Rect { width: left, ..area }, Rect { x: area.x + left, width: area.width - left, ..area })
        }
        (false, false) if area.height >= 12 => {
            let below = tall.min(area.height / 2);
            let above = area.height - below;
            (Rect { height: above, ..area }, Rect { y: area.y + above, height: below, ..area })
        }
        (false, false) => (area, Rect::ZERO),
    };
    shares(app, theme, field, measured, table, frame);
    if !matrix.is_empty() {
        brought(app, theme, field, &rows, matrix, frame);
    }
}

/// A value's own colour; who goes without is muted.
fn meaning(field: &Field, place: usize) -> Meaning {
    match field.values.get(place) {
        Some((value, _)) if value != NONE => Meaning::Value(place),
        _ => Meaning::Muted,
    }
}

fn padded(text: &str, width: usize) -> String {
    let text = fit(&safe::line(text), width.saturating_sub(1));
    let pad = " ".repeat(width.saturating_sub(columns_of(&text)));
    text + &pad
}

/// A row a value: its share of the corpus, and of each lane's first k.
fn shares(app: &App, theme: Theme, field: &Field, measured: &Measured, area: Rect, frame: &mut Frame<'_>) {
    let passages = app.biasing.fields.as_ref().map_or(0, |fields| fields.passages);
    let title = format!(" whose passages: the first {} against all {passages}, log2 of the ratio ", app.k);
    let inner = bordered(theme, title, area, frame);
    let width = usize::from(inner.width);
    // Where there is little room, the lanes go before long names, and the values before what is said of them.
    let (named, own) = if width < 60 { (NAME - 5, CORPUS - 1) } else { (NAME, CORPUS) };
    let low = inner.height < 6;
    let shown = (width.saturating_sub(named + own + 1) / LANE).min(app.lanes.len());
    let first = (app.lane + 1).saturating_sub(shown).min(app.lanes.len().saturating_sub(shown));
    let lanes = first..first + shown;
    let mut head = vec![Span::raw(" "), span(padded("", named), Meaning::Muted, theme)];
    head.push(span(padded("corpus", own), Meaning::Muted, theme));
    head.extend(lanes.clone().flat_map(|lane| name(app, theme, lane, LANE)));
    let mut lines = if low { Vec::new() } else { vec![tabs(app, theme)] };
    lines.push(Line::from(head));
    let corpus = field.counts();
    let of = |lane: usize| {
        let counts: Vec<Vec<usize>> = measured.compared.iter().map(|one| one.counts(lane, field)).collect();
        standings(&pooled(counts.iter().map(Vec::as_slice), corpus.len()), &corpus)
    };
    let all: Vec<Vec<Standing>> = lanes.map(of).collect();
    let room = usize::from(inner.height).saturating_sub(lines.len() + usize::from(!low)).max(1);
    // What fits is shown from the top, however far was scrolled.
    let top = app.biasing.scroll.min(field.values.len().saturating_sub(room));
    for (place, (value, count)) in field.values.iter().enumerate().skip(top).take(room) {
        let part = share(*count as f64 / passages.max(1) as f64);
        let mut spans = vec![Span::raw(" "), span(padded(value, named), meaning(field, place), theme)];
        spans.push(Span::raw(format!("{part:<own$}")));
        spans.extend(all.iter().flat_map(|lane| cell(theme, lane[place])));
        lines.push(Line::from(spans));
    }
    let far = all.iter().map(|lane| format!("{:<LANE$}", distance(lane).map_or_else(|| "–".into(), share)));
    let hidden = field.values.len().saturating_sub(top + room);
    let label = if hidden > 0 { format!("distance (+{hidden})") } else { "distance".into() };
    let far = far.collect::<String>();
    lines.push(Line::from(span(
        format!(" {}{}{far}", padded(&label, named), " ".repeat(own)),
        Meaning::Muted,
        theme,
    )));
    frame.render_widget(Paragraph::new(lines), inner);
}

/// The categories by name, the shown one marked, and the one that stands on the lanes.
fn tabs(app: &App, theme: Theme) -> Line<'static> {
    let categories = app.biasing.fields.iter().flat_map(|fields| &fields.categories);
    let one = |(i, field): (usize, &Field)| {
        let meaning = if i == app.biasing.at { Meaning::Selected } else { Meaning::Muted };
        let on = if app.biasing.on_lanes == Some(i) { " (on the lanes)" } else { "" };
        [Span::raw(" "), span(format!("{}{on}", fit(&safe::line(&field.name), 24)), meaning, theme)]
    };
    // The shown one comes first where they do not all fit.
    Line::from(
        categories.enumerate().skip(app.biasing.at.saturating_sub(2)).flat_map(one).collect::<Vec<_>>(),
    )
}

/// `.40 +1.2↑ 10`: the share, how much over or under the corpus, and how many passages.
fn cell(theme: Theme, standing: Standing) -> Vec<Span<'static>> {
    let part = standing.top_share().map_or_else(|| "–".into(), share);
    let (over, meaning) = match standing.over() {
        None => ("–".to_owned(), Meaning::Muted),
        // No sign before a zero.
        Some(over) if over >= MARKED => (format!("{over:+.1}↑"), Meaning::Over),
        Some(over) if over <= -MARKED => (format!("{over:+.1}↓"), Meaning::Under),
        Some(over) => (format!("{:+.1}=", (over * 10.0).round() / 10.0 + 0.0), Meaning::Muted),
    };
    let count = format!(" {}", standing.top);
    let pad = " ".repeat(LANE.saturating_sub(4 + columns_of(&over) + count.len()));
    vec![Span::raw(format!("{part:<4}")), span(over, meaning, theme), Span::raw(count), Span::raw(pad)]
}

/// Desired × retrieved in the lane with the cursor: a row a value that is asked for.
fn brought(app: &App, theme: Theme, field: &Field, rows: &[Crossed], area: Rect, frame: &mut Frame<'_>) {
    let lane = app.lanes.get(app.lane).map_or_else(String::new, |lane| lane.recipe.title());
    let title = fit(&safe::line(&lane), usize::from(area.width).saturating_sub(32));
    let inner = bordered(theme, format!(" asked for × brought up · {title} "), area, frame);
    let fits = usize::from(inner.width).saturating_sub(NAME + 6 + BROUGHT) / BROUGHT;
    let columns: Vec<usize> = rows.iter().map(|row| row.desired).take(fits).collect();
    let value = |place: usize| field.values.get(place).map_or("", |(value, _)| value.as_str());
    let mut head = vec![span(format!(" {:<NAME$}{:<5}", "asked for", "n"), Meaning::Muted, theme)];
    head.extend(columns.iter().map(|at| span(padded(value(*at), BROUGHT), meaning(field, *at), theme)));
    head.push(span("others", Meaning::Muted, theme));
    let mut lines = vec![Line::from(head)];
    for row in rows {
        let all: usize = row.retrieved.iter().sum();
        let part = |count: usize| {
            if all == 0 { "–".to_owned() } else { share(count as f64 / all as f64) }
        };
        let mut spans = vec![
            Span::raw(" "),
            span(padded(value(row.desired), NAME), meaning(field, row.desired), theme),
            span(format!("{:<5}", row.questions.len()), Meaning::Muted, theme),
        ];
        let mut others = all;
        for at in &columns {
            let count = row.retrieved.get(*at).copied().unwrap_or(0);
            others -= count;
            let own = if *at == row.desired { Meaning::Title } else { Meaning::Text };
            spans.push(span(format!("{:<BROUGHT$}", part(count)), own, theme));
        }
        spans.push(span(part(others), Meaning::Muted, theme));
        lines.push(Line::from(spans));
    }
    frame.render_widget(Paragraph::new(lines), inner);
}
