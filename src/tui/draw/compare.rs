//! The lanes over the question set: a row a question, and below it each lane's means, curves and overlap.

use ratatui::Frame;
use ratatui::layout::Rect;
use ratatui::text::{Line, Span};
use ratatui::widgets::{Block, Paragraph};

use super::{plot, span};
use crate::measure::significance::{bootstrap_interval, holm, paired_randomisation};
use crate::pipeline::{Compared, covered_sides};
use crate::report::marks::{Mark, share};
use crate::report::safe;
use crate::tui::app::{App, Corpus, Order};
use crate::tui::theme::{Meaning, Theme};
use crate::tui::wrap::{columns_of, fit};

/// Columns of one lane in the table.
const LANE: usize = 13;
/// Columns that stay empty at the right of a column, and so may lie beyond the frame.
const GAP: usize = 5;
/// Draws behind intervals and tests on screen; `eval` takes more.
const DRAWS: usize = 400;

/// Draws the screen.
pub fn draw(app: &App, theme: Theme, body: Rect, frame: &mut Frame<'_>) {
    let below = (app.lanes.len() as u16 + 3).max(10).min(body.height / 2);
    let table = Rect { height: body.height - below, ..body };
    let rest = Rect { y: table.bottom(), height: below, ..body };
    questions(app, theme, table, frame);
    let wide = rest.width >= 110;
    let left = if wide { rest.width * 3 / 5 } else { rest.width };
    lanes(app, theme, Rect { width: left, ..rest }, frame);
    if wide {
        curves(app, theme, Rect { x: rest.x + left, width: rest.width - left, ..rest }, frame);
    }
}

fn known(app: &App) -> Vec<&Compared> {
    app.comparing.questions.iter().flatten().flatten().filter(|compared| compared.perspectives > 0).collect()
}

/// A row a question: MRecall and Prec of every lane.
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
    let rows = comparing.rows(app.lane);
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
                let text = figures.shown(|| format!("{:.0} {} ", figures.mrecall, share(figures.prec)));
                let mut spans = vec![Span::raw(text.clone())];
                let mut columns = columns_of(&text);
                for (i, count) in figures.supporting.iter().enumerate().filter(|_| compared.perspectives == 2)
                {
                    let mark = if compared.supports_first == i { Mark::Support } else { Mark::Oppose };
                    let text = format!("{}{count}", mark.glyph(app.glyphs));
                    columns += columns_of(&text);
                    spans.push(span(text, Meaning::Side(mark), theme));
                }
                spans.push(Span::raw(" ".repeat(LANE.saturating_sub(columns))));
                spans
            }
        },
    }
}

/// Means with intervals, sides covered, and how each lane differs from the one with the cursor.
fn lanes(app: &App, theme: Theme, area: Rect, frame: &mut Frame<'_>) {
    let k = app.k;
    let so_far = if app.comparing.questions.iter().all(Option::is_some) { "" } else { " so far" };
    let title = format!(" means{so_far} at k {k} · overlap and p with the lane with the cursor ");
    let title = fit(&title, usize::from(area.width).saturating_sub(2));
    let block =
        Block::bordered().border_style(theme.style(Meaning::Muted)).title(span(title, Meaning::Title, theme));
    let inner = block.inner(area);
    frame.render_widget(block, area);
    let compared = known(app);
    let values = |lane: usize| -> Vec<(f64, f64)> {
        compared.iter().map(|one| one.at(lane, k).unwrap_or_default()).collect()
    };
    let against: Vec<f64> = values(app.lane).iter().map(|value| value.0).collect();
    let others = (0..app.lanes.len()).filter(|lane| *lane != app.lane);
    let tested: Vec<(usize, f64)> = others
        .filter_map(|lane| {
            let own: Vec<f64> = values(lane).iter().map(|value| value.0).collect();
            Some((lane, paired_randomisation(&own, &against, DRAWS, 0).ok()?))
        })
        .collect();
    let corrected = holm(&tested.iter().map(|(_, p)| *p).collect::<Vec<_>>());
    let p = |lane: usize| {
        let place = tested.iter().position(|(tested, _)| *tested == lane)?;
        corrected.get(place).copied()
    };
    // Columns that have no room are left out, the last ones first; none is cut.
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
    // The lane with the cursor is always among those that are shown.
    let shown = usize::from(inner.height).saturating_sub(1).max(1);
    let first = (app.lane + 1).saturating_sub(shown);
    for i in (0..app.lanes.len()).skip(first).take(shown) {
        let meaning = if i == app.lane { Meaning::Selected } else { Meaning::Text };
        let name = app.short_title(i, named - 1);
        let pad = " ".repeat(named - columns_of(&name));
        let both = values(i);
        let recalls: Vec<f64> = both.iter().map(|value| value.0).collect();
        let recall = bootstrap_interval(&recalls, 0.95, DRAWS, 0).map_or_else(
            |_| "…".into(),
            |interval| format!("{} ({}–{})", share(interval.mean), share(interval.low), share(interval.high)),
        );
        let prec = if both.is_empty() {
            "…".into()
        } else {
            share(both.iter().map(|value| value.1).sum::<f64>() / both.len() as f64)
        };
        let overlaps: Vec<(f64, f64)> =
            compared.iter().filter_map(|one| one.overlap(i, app.lane)).filter(|_| i != app.lane).collect();
        let overlap = if overlaps.is_empty() {
            String::new()
        } else {
            let mean = |value: fn(&(f64, f64)) -> f64| {
                overlaps.iter().map(value).sum::<f64>() / overlaps.len() as f64
            };
            format!("{}/{}", share(mean(|both| both.0)), share(mean(|both| both.1)))
        };
        let failed = compared.iter().filter(|one| one.figures[i].is_none()).count();
        let recall = if failed == compared.len() && failed > 0 { "no list".to_owned() } else { recall };
        let p = match failed {
            0 => p(i).map_or_else(String::new, share),
            failed => format!("{failed} failed"),
        };
        lines.push(Line::from(vec![
            Span::raw("  "),
            span(name, meaning, theme),
            Span::raw(pad + &joined([&recall, &prec, &sides(&compared, i), &overlap, &p])),
        ]));
    }
    frame.render_widget(Paragraph::new(lines), inner);
}

/// Shares of the two-sided questions whose top k covers only one side, only the other, both, neither.
fn sides(compared: &[&Compared], lane: usize) -> String {
    let counts = covered_sides(compared.iter().copied(), lane);
    let all: usize = counts.iter().sum();
    if all == 0 {
        return String::new();
    }
    let [a, b, c, d] = counts.map(|count| share(count as f64 / all as f64));
    format!("{a:<7}{b:<7}{c:<5}{d}")
}

/// MRecall of every lane over k.
fn curves(app: &App, theme: Theme, area: Rect, frame: &mut Frame<'_>) {
    let mut title = vec![span(" MRecall over k ", Meaning::Title, theme)];
    title.extend(plot::legend((0..app.lanes.len()).map(|i| app.short_title(i, 14)), theme));
    let block = Block::bordered().border_style(theme.style(Meaning::Muted)).title(Line::from(title));
    let inner = block.inner(area);
    frame.render_widget(block, area);
    let compared = known(app);
    if compared.is_empty() || inner.height < 4 {
        return;
    }
    let lines: Vec<Vec<(f64, f64)>> = (0..app.lanes.len())
        .map(|lane| {
            let mean = |k: usize| {
                let sum: f64 = compared.iter().map(|one| one.at(lane, k).unwrap_or_default().0).sum();
                (k as f64, sum / compared.len() as f64)
            };
            (1..=app.k).map(mean).collect()
        })
        .collect();
    let ends = (1.0, app.k.max(2) as f64);
    plot::draw(app, theme, &lines, (ends, vec!["1".into(), format!("k {}", app.k)]), inner, frame);
}
