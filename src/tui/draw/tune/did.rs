//! What the marked form did: a curve over λ, the texts that were added, a question's geometry, or what verdicts cost.

use ratatui::Frame;
use ratatui::layout::Rect;
use ratatui::text::{Line, Span};
use ratatui::widgets::{Block, Paragraph};

use super::super::{paragraph, plot, span};
use super::inspector::lines;
use crate::pipeline::recipe::{Mmr, Rerank, Switch};
use crate::pipeline::{List, Projected, Step};
use crate::report::marks::{Mark, share, signed};
use crate::tui::app::{App, Lane, LaneState};
use crate::tui::theme::{Meaning, Theme};

/// Rows of a curve at least.
const CURVE: u16 = 7;

/// Whether there would be anything in a box of that size: a curve needs room, words can be scrolled.
pub fn has_something(app: &App, area: Rect) -> bool {
    let Some(lane) = app.lanes.get(app.lane) else { return false };
    let told = !lane.ranking.trace.notes.is_empty() || matches!(lane.state, LaneState::Failed(..));
    app.tuning.switch != Switch::Mmr || told || area.height >= CURVE + 2
}

/// Draws the right side.
pub fn draw(app: &App, theme: Theme, area: Rect, frame: &mut Frame<'_>) {
    let Some(lane) = app.lanes.get(app.lane) else { return };
    let title = match app.tuning.switch {
        Switch::Mmr => " against λ (off = 1) ",
        Switch::Expand => " what was added ",
        Switch::Project => " passages between the poles ",
        Switch::Diversify => " what it was chosen for ",
    };
    let mut title = vec![span(title, Meaning::Title, theme)];
    if app.tuning.switch == Switch::Mmr {
        let names = ["MRecall", "Prec"].map(|name| format!("{name}@{}", app.k));
        title.splice(0..0, plot::legend(names.into_iter(), theme));
    }
    let block = Block::bordered().border_style(theme.style(Meaning::Muted)).title(Line::from(title));
    let inner = block.inner(area);
    frame.render_widget(block, area);
    if app.tuning.switch == Switch::Mmr && inner.height >= CURVE {
        return curve(app, theme, inner, frame);
    }
    let width = usize::from(inner.width);
    let mut text = match (&lane.state, app.tuning.switch) {
        (LaneState::Failed(reason, _), _) => paragraph(reason, " ", width, Meaning::Warn, theme),
        (LaneState::Ready, Switch::Expand) => match lane.ranking.trace.expansion() {
            Some(expansion) => lines(expansion, &lane.ranking, width, theme),
            None => off("The question is searched as it stands.", width, theme),
        },
        (LaneState::Ready, Switch::Project) => match lane.ranking.trace.projected() {
            Some(projected) => geometry(app, theme, lane, projected, width),
            None => {
                off(lane.recipe.base.unprojected().unwrap_or("The query is not projected."), width, theme)
            }
        },
        (LaneState::Ready, Switch::Diversify) => chosen(app, theme, &lane.ranking, width),
        (LaneState::Ready, Switch::Mmr) => notes(&lane.ranking, width, theme),
        _ => off("…", width, theme),
    };
    let last = text.len().saturating_sub(usize::from(inner.height));
    text.drain(..app.tuning.scroll.min(last));
    frame.render_widget(Paragraph::new(text), inner);
}

fn off(text: &str, width: usize, theme: Theme) -> Vec<Line<'static>> {
    paragraph(text, " ", width, Meaning::Muted, theme)
}

fn notes(list: &List, width: usize, theme: Theme) -> Vec<Line<'static>> {
    list.trace.notes.iter().flat_map(|note| paragraph(note, " ", width, Meaning::Warn, theme)).collect()
}

/// Both measures over λ, as far as they are known.
fn curve(app: &App, theme: Theme, area: Rect, frame: &mut Frame<'_>) {
    let tallies = app.tuning.tallies.as_deref().unwrap_or_default();
    let mut points: [Vec<(f64, f64)>; 2] = Default::default();
    for (form, tally) in app.tuning.forms.iter().zip(tallies) {
        let lambda = match form.switches.rerank {
            Some(Rerank::Mmr(Mmr { lambda, .. })) => f64::from(lambda),
            Some(_) => continue,
            None => 1.0,
        };
        points[0].extend(tally.mrecall().map(|value| (lambda, value)));
        points[1].extend(tally.prec().map(|value| (lambda, value)));
    }
    for points in &mut points {
        points.sort_by(|a, b| a.0.total_cmp(&b.0));
    }
    let notes = app
        .lanes
        .get(app.lane)
        .map_or_else(Vec::new, |lane| notes(&lane.ranking, usize::from(area.width), theme));
    let below = (notes.len() as u16).min(area.height / 3);
    let above = Rect { height: area.height - below, ..area };
    frame.render_widget(Paragraph::new(notes), Rect { y: above.bottom(), height: below, ..area });
    let labels = ["0", ".25", ".5", ".75", "λ 1"].map(str::to_owned).to_vec();
    plot::draw(app, theme, &points, ((0.0, 1.0), labels), above, frame);
}

/// The first passages on the axis between the two poles, before the projection and after it.
fn geometry(app: &App, theme: Theme, lane: &Lane, projected: &Projected, width: usize) -> Vec<Line<'static>> {
    let mut out = Vec::new();
    let parts = [
        ("q ", projected.q.clone()),
        ("r ", projected.r.clone()),
        ("p ", projected.p.clone().unwrap_or_else(|| "q − r".into())),
    ];
    for (name, text) in parts {
        out.push(Line::from(vec![
            span(format!(" {name}"), Meaning::Key, theme),
            span(
                crate::tui::wrap::fit(&crate::report::safe::line(&text), width.saturating_sub(4)),
                Meaning::Text,
                theme,
            ),
        ]));
    }
    if projected.ran != projected.asked {
        out.extend(notes(&lane.ranking, width, theme));
    }
    let points: Vec<_> = lane
        .ranking
        .iter()
        .take(app.k.max(20))
        .filter_map(|ranked| Some((app.mark(ranked.at), *projected.points.get(&ranked.at)?)))
        .collect();
    let furthest =
        points.iter().map(|(_, point)| point.before.abs().max(point.after.abs())).fold(0.01, f32::max);
    for (name, side) in [("before", 0), ("after", 1)] {
        let at =
            points.iter().map(|(mark, point)| (*mark, if side == 0 { point.before } else { point.after }));
        out.push(Line::default());
        out.push(Line::from(span(format!(" {name}"), Meaning::Muted, theme)));
        out.extend(axis(app, theme, &at.collect::<Vec<_>>(), furthest, width));
    }
    let ends = format!(" ← {}   {} →", "nearer to the second", "nearer to the first");
    out.push(Line::from(span(ends, Meaning::Muted, theme)));
    out.push(Line::default());
    out.push(Line::from(span(" rank  mark  cos(q, c)  score", Meaning::Muted, theme)));
    for (i, (mark, point)) in points.iter().enumerate().take(app.k.max(5)) {
        out.push(Line::from(vec![
            Span::raw(format!(" {:>4}  ", i + 1)),
            span(format!("{:<6}", mark.text(app.glyphs)), Meaning::Side(*mark), theme),
            Span::raw(format!("{:>9.3}  {:>5.3}", point.plain, point.score)),
        ]));
    }
    out
}

/// Marks in rows above a line; marks that fall on each other are stacked.
fn axis(app: &App, theme: Theme, points: &[(Mark, f32)], furthest: f32, width: usize) -> Vec<Line<'static>> {
    const STACKED: usize = 4;
    let room = width.saturating_sub(4).max(3);
    let mut rows: Vec<Vec<Option<Mark>>> = vec![vec![None; room]; STACKED];
    for (mark, x) in points {
        let column = ((x / furthest + 1.0) / 2.0 * (room - 1) as f32).round() as usize;
        let column = column.min(room - 1);
        if let Some(row) = rows.iter_mut().find(|row| row[column].is_none()) {
            row[column] = Some(*mark);
        }
    }
    let used = rows.iter().rposition(|row| row.iter().any(Option::is_some)).map_or(1, |last| last + 1);
    let mut out = Vec::new();
    for row in rows[..used].iter().rev() {
        let cells = row.iter().map(|mark| match mark {
            Some(mark) => span(mark.glyph(app.glyphs).to_string(), Meaning::Side(*mark), theme),
            None => Span::raw(" "),
        });
        out.push(Line::from(std::iter::once(Span::raw("  ")).chain(cells).collect::<Vec<_>>()));
    }
    let half = room / 2;
    let rule = format!("  {}┼{}", "─".repeat(half), "─".repeat(room - half - 1));
    out.push(Line::from(span(rule, Meaning::Muted, theme)));
    out
}

/// What a diversifier's choices rest on.
fn chosen(app: &App, theme: Theme, list: &List, width: usize) -> Vec<Line<'static>> {
    let found = list.trace.steps.iter().find_map(|step| match step {
        Step::Diversify { choices, judged, pool, .. } => Some((choices, judged, pool)),
        _ => None,
    });
    let Some((choices, judged, pool)) = found else {
        let mmr = list.trace.steps.iter().any(|step| matches!(step, Step::Mmr { .. }));
        let text = if mmr {
            "MMR re-ranks this lane; a diversifier takes its place."
        } else {
            "The list stands as the retriever made it."
        };
        return off(text, width, theme);
    };
    let cost = format!(
        "The model's verdicts choose, labels never do. {judged} verdicts of {} passages were needed first.",
        pool.len()
    );
    let mut out = paragraph(&cost, " ", width, Meaning::Muted, theme);
    out.extend(notes(list, width, theme));
    out.push(Line::default());
    out.push(Line::from(span(" rank  was  relevance  gains            value", Meaning::Muted, theme)));
    for (i, choice) in choices.iter().enumerate().take(app.k.max(10)) {
        let mut spans = vec![Span::raw(format!(
            " {:>4}  {:>3}  {:>9}  ",
            i + 1,
            choice.passage + 1,
            share(f64::from(choice.relevance))
        ))];
        for (perspective, gain) in choice.gains.iter().enumerate().take(4) {
            let mark = Mark::of(perspective, &app.question);
            let text = format!("{}{} ", mark.text(app.glyphs), signed(f64::from(*gain)).trim());
            spans.push(span(text, Meaning::Side(mark), theme));
        }
        spans.push(Span::raw(format!("  {}", share(f64::from(choice.value)))));
        out.push(Line::from(spans));
    }
    out
}
