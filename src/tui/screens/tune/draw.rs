//! Draws a lane in all forms of one switch: on the left the figures of each form; on the right what the marked form did (a curve over λ,
//! the texts that were added, the geometry of a question, or the cost of verdicts).

use ratatui::Frame;
use ratatui::layout::Rect;
use ratatui::text::{Line, Span};
use ratatui::widgets::{Block, Paragraph};

use super::SWITCHES;
use crate::engine::recipe::{Mmr, Project, Rerank, Switch, Toward};
use crate::engine::{List, Projected, Recipe, Step, Tally};
use crate::project::Variant;
use crate::report::marks::{Mark, share, signed};
use crate::report::safe;
use crate::tui::app::{App, Lane, LaneState};
use crate::tui::screens::lanes::draw as lane;
use crate::tui::theme::{Meaning, Theme};
use crate::tui::widgets;
use crate::tui::widgets::text::{columns_of, fit, line, paragraph, span};

/// Columns of a form's name.
const NAME: usize = 17;
/// The same if there is no room for the shares of the sides.
const NAME_NARROW: usize = 12;
/// Columns of the table of forms.
const TABLE: u16 = 60;
/// Columns below which the switches have short names.
const NARROW: u16 = 60;

/// Draws the screen.
pub fn draw(app: &App, theme: Theme, body: Rect, frame: &mut Frame<'_>) {
    let tabs = Rect { height: body.height.min(1), ..body };
    frame.render_widget(tabs_line(app, theme, tabs.width), tabs);
    let rest = Rect { y: body.y + tabs.height, height: body.height - tabs.height, ..body };
    let (table, details) = areas(app, rest);
    let (table, list) = with_list(app, table, rest);
    draw_forms(app, theme, table, frame);
    lane::beside(app, theme, list, frame);
    if !details.is_empty() {
        draw_form(app, theme, details, frame);
    }
}

/// The areas below the tabs: of the forms, and of what the marked form did, which is empty without room.
pub fn areas(app: &App, rest: Rect) -> (Rect, Rect) {
    // If both do not fit side by side, what the form did is drawn below.
    let side_by_side = rest.width >= TABLE + 30;
    let rows = (app.tuning.forms.len() as u16 + 3).min(rest.height);
    if !side_by_side && !has_details(app, Rect { height: rest.height / 2, ..rest }) {
        (rest, Rect::ZERO)
    } else if side_by_side {
        let right = Rect { x: rest.x + TABLE, width: rest.width - TABLE, ..rest };
        (Rect { width: TABLE, ..rest }, right)
    } else {
        let rows = rows.min(rest.height.div_ceil(2));
        (Rect { height: rows, ..rest }, Rect { y: rest.y + rows, height: rest.height - rows, ..rest })
    }
}

/// The fewest rows of the lane's list below its forms.
const LIST_ROWS: u16 = 14;

/// Divides the forms' area: below them stands the lane with the marked form, where there is room.
fn with_list(app: &App, table: Rect, rest: Rect) -> (Rect, Rect) {
    let rows = app.tuning.forms.len() as u16 + 3;
    if table.width == rest.width || table.height < rows + LIST_ROWS {
        return (table, Rect::ZERO);
    }
    let list = Rect { y: table.y + rows, height: table.height - rows, ..table };
    (Rect { height: rows, ..table }, list)
}

fn tabs_line(app: &App, theme: Theme, width: u16) -> Line<'static> {
    if let Some(typed) = &app.tuning.typed {
        return Line::from(vec![
            span(" project toward: ", Meaning::Title, theme),
            span(safe::line(typed.value()), Meaning::Text, theme),
            span("▏", Meaning::Focus, theme),
        ]);
    }
    let lane = app.lanes.get(app.lane).map_or_else(String::new, |lane| lane.recipe.to_string());
    let mut spans = vec![Span::raw(" ")];
    for switch in SWITCHES {
        let meaning = if switch == app.tuning.switch { Meaning::Selected } else { Meaning::Muted };
        spans.extend([
            span(format!(" {} ", switch_name(switch, width < NARROW)), meaning, theme),
            Span::raw(" "),
        ]);
    }
    spans.push(span(format!("  {}", safe::line(&lane)), Meaning::Title, theme));
    Line::from(spans)
}

fn switch_name(switch: Switch, narrow: bool) -> &'static str {
    match switch {
        Switch::Mmr => "MMR",
        Switch::Expand if narrow => "expand",
        Switch::Project if narrow => "project",
        Switch::Diversify if narrow => "diversify",
        Switch::Expand => "expansion",
        Switch::Project => "projection",
        Switch::Diversify => "diversifier",
    }
}

fn draw_forms(app: &App, theme: Theme, area: Rect, frame: &mut Frame<'_>) {
    let tuning = &app.tuning;
    let over = if tuning.over_set { "over the question set" } else { "on this question" };
    let going = if tuning.ended { "" } else { " …" };
    let title = span(format!(" {over}{going} "), Meaning::Title, theme);
    let block = Block::bordered().border_style(theme.style(Meaning::Focus)).title(title);
    let tally = tuning.tallies.as_ref().ok().and_then(|all| all.get(tuning.at)).cloned().unwrap_or_default();
    let name = tuning.forms.get(tuning.at).map_or_else(String::new, |form| form_name(form, tuning.switch));
    let block = block.title_bottom(widgets::sources_line(&name, tally.sources, area.width, theme));
    let inner = block.inner(area);
    frame.render_widget(block, area);
    let (recall, prec) = (format!("MRecall@{}", app.k), format!("Prec@{}", app.k));
    let shares = "share of each";
    let questions = if tuning.over_set { "of" } else { "" };
    let narrow = inner.width < TABLE - 2;
    let head = match narrow {
        true => format!("   {:<NAME_NARROW$}{recall:<11}{prec:<8}{questions}", ""),
        false => format!("   {:<NAME$}{recall:<12}{prec:<9}{shares:<15}{questions}", ""),
    };
    let mut lines = vec![Line::from(span(head, Meaning::Muted, theme))];
    let shown = usize::from(inner.height).saturating_sub(1).max(1);
    let first = (tuning.at + 1).saturating_sub(shown);
    for (i, form) in tuning.forms.iter().enumerate().skip(first) {
        let tally = tuning.tallies.as_ref().ok().and_then(|tallies| tallies.get(i));
        lines.push(form_row(app, theme, form, tally, i == tuning.at, narrow));
    }
    if let Err(reason) = &tuning.tallies {
        lines.push(Line::from(span(safe::line(reason), Meaning::Warn, theme)));
    }
    frame.render_widget(Paragraph::new(lines), inner);
}

/// `▸ λ .75   .42   .60   ▲.30 ▼.20   24`
fn form_row(
    app: &App,
    theme: Theme,
    form: &Recipe,
    tally: Option<&Tally>,
    marked: bool,
    narrow: bool,
) -> Line<'static> {
    let named = if narrow { NAME_NARROW } else { NAME };
    let name = fit(&safe::line(&form_name(form, app.tuning.switch)), named - 1);
    let pad = " ".repeat(named - columns_of(&name));
    let meaning = if marked { Meaning::Selected } else { Meaning::Text };
    let mut spans =
        vec![Span::raw(if marked { " > " } else { "   " }), span(name, meaning, theme), Span::raw(pad)];
    let Some(tally) = tally.filter(|tally| tally.questions + tally.failed > 0) else {
        spans.push(span("…", Meaning::Muted, theme));
        return Line::from(spans);
    };
    let figure = |value: Option<f64>| value.map_or_else(|| "–".into(), share);
    let (recall, prec) = (figure(tally.mrecall()), figure(tally.prec()));
    spans.push(Span::raw(match narrow {
        true => format!("{recall:<11}{prec:<8}"),
        false => format!("{recall:<12}{prec:<9}"),
    }));
    if let Some((p, n)) = tally.sides().filter(|_| !narrow) {
        for (mark, value) in [(Mark::Support, p), (Mark::Oppose, n)] {
            let text = format!("{}{}", mark.text(app.glyphs), share(value));
            spans.push(span(format!("{text:<6}"), Meaning::Side(mark), theme));
        }
        spans.push(Span::raw("   "));
    }
    if app.tuning.over_set {
        spans.push(span(tally.questions.to_string(), Meaning::Muted, theme));
    }
    if tally.failed > 0 {
        spans.push(span(format!(" {} failed", tally.failed), Meaning::Warn, theme));
    }
    Line::from(spans)
}

/// A form's name.
fn form_name(form: &Recipe, switch: Switch) -> String {
    let switches = &form.switches;
    match (switch, &switches.rerank) {
        (Switch::Mmr, Some(Rerank::Mmr(Mmr { lambda, .. }))) => format!("λ {}", share(f64::from(*lambda))),
        (Switch::Diversify, Some(Rerank::Diversify(method, weight))) => {
            format!("{method} {}", share(f64::from(*weight)))
        }
        (Switch::Diversify, Some(Rerank::Mmr(Mmr { lambda, .. }))) => {
            format!("MMR {}", share(f64::from(*lambda)))
        }
        (Switch::Mmr, Some(Rerank::Diversify(method, weight))) => {
            format!("{method} {}", share(f64::from(*weight)))
        }
        (Switch::Expand, _) if switches.expand.is_some() => {
            switches.expand.as_ref().map_or_else(String::new, ToString::to_string)
        }
        (Switch::Project, _) if switches.project.is_some() => match &switches.project {
            Some(Project { variant, toward: Toward::Perspective(i) }) => format!("{variant} → {}", i + 1),
            Some(Project { variant, toward: Toward::Text(text) }) => format!("{variant} → “{text}”"),
            None => String::new(),
        },
        _ => "off".into(),
    }
}

/// The fewest rows of a curve.
const CURVE_ROWS: u16 = 7;

/// Whether a box of that size would show anything: a curve needs room, while text can be scrolled.
fn has_details(app: &App, area: Rect) -> bool {
    let Some(lane) = app.lanes.get(app.lane) else { return false };
    let noted = !lane.ranking.trace.notes.is_empty() || matches!(lane.state, LaneState::Failed(..));
    app.tuning.switch != Switch::Mmr || noted || area.height >= CURVE_ROWS + 2
}

/// Draws what the marked form did.
fn draw_form(app: &App, theme: Theme, area: Rect, frame: &mut Frame<'_>) {
    let Some(lane) = app.lanes.get(app.lane) else { return };
    let title = match app.tuning.switch {
        Switch::Mmr => " against λ (off = 1) ",
        Switch::Expand => " what was added ",
        Switch::Project => " passages between the poles ",
        Switch::Diversify => " why each was chosen ",
    };
    let mut title = vec![span(title, Meaning::Title, theme)];
    if app.tuning.switch == Switch::Mmr {
        let names = ["MRecall", "Prec"].map(|name| format!("{name}@{}", app.k));
        title.splice(0..0, widgets::legend(names.into_iter(), theme));
    }
    let block = Block::bordered().border_style(theme.style(Meaning::Muted)).title(Line::from(title));
    let inner = block.inner(area);
    if app.tuning.switch == Switch::Mmr && inner.height >= CURVE_ROWS {
        frame.render_widget(block, area);
        return draw_curve(app, theme, inner, frame);
    }
    let width = usize::from(inner.width);
    let mut text = match (&lane.state, app.tuning.switch) {
        (LaneState::Failed(reason, _), _) => paragraph(reason, " ", width, Meaning::Warn, theme),
        (LaneState::Ready, Switch::Expand) => match lane.ranking.trace.expansion() {
            Some(_) => app.tuning.added.rows.iter().map(|row| line(row, theme)).collect(),
            None => muted_lines("The question is searched unchanged.", width, theme),
        },
        (LaneState::Ready, Switch::Project) => match lane.ranking.trace.projected() {
            Some(projected) => geometry_lines(app, theme, lane, projected, width),
            None => muted_lines(
                lane.recipe.base.refuses_projection(Variant::Pap).unwrap_or("The query is not projected."),
                width,
                theme,
            ),
        },
        (LaneState::Ready, Switch::Diversify) => choices_table(app, theme, &lane.ranking, width),
        (LaneState::Ready, Switch::Mmr) => note_lines(&lane.ranking, width, theme),
        _ => muted_lines("…", width, theme),
    };
    // What a few words leave goes to the next lane, to compare with.
    let plain = lane.ranking.trace.projected().is_none() || app.tuning.switch != Switch::Project;
    let short = text.len() as u16 + 2;
    let (area, rest) = match plain && app.lanes.len() > 1 && area.height >= short + LIST_ROWS {
        true => {
            (Rect { height: short, ..area }, Rect { y: area.y + short, height: area.height - short, ..area })
        }
        false => (area, Rect::ZERO),
    };
    lane::of(app, theme, (app.lane + 1) % app.lanes.len(), rest, frame);
    let inner = block.inner(area);
    frame.render_widget(block, area);
    let plane = match (app.tuning.switch, lane.ranking.trace.projected()) {
        (Switch::Project, Some(projected)) if lane.state == LaneState::Ready => {
            draw_plane(app, theme, lane, projected, (inner, text.len()), frame)
        }
        _ => 0,
    };
    let inner = Rect { height: inner.height - plane, ..inner };
    let last = text.len().saturating_sub(usize::from(inner.height));
    text.drain(..app.tuning.scroll.min(last));
    frame.render_widget(Paragraph::new(text), inner);
}

fn muted_lines(text: &str, width: usize, theme: Theme) -> Vec<Line<'static>> {
    paragraph(text, " ", width, Meaning::Muted, theme)
}

fn note_lines(list: &List, width: usize, theme: Theme) -> Vec<Line<'static>> {
    list.trace.notes.iter().flat_map(|note| paragraph(note, " ", width, Meaning::Warn, theme)).collect()
}

/// Draws both measures over λ, as far as they have arrived.
fn draw_curve(app: &App, theme: Theme, area: Rect, frame: &mut Frame<'_>) {
    let points = app.tuning.curves();
    let notes = app
        .lanes
        .get(app.lane)
        .map_or_else(Vec::new, |lane| note_lines(&lane.ranking, usize::from(area.width), theme));
    let below = (notes.len() as u16).min(area.height / 3);
    let above = Rect { height: area.height - below, ..area };
    frame.render_widget(Paragraph::new(notes), Rect { y: above.bottom(), height: below, ..area });
    let labels = ["0", ".25", ".5", ".75", "λ 1"].map(str::to_owned).to_vec();
    widgets::draw(app, theme, &points, ((0.0, 1.0), labels), above, frame);
}

/// The first passages on the axis between the two poles, before and after the projection.
fn geometry_lines(
    app: &App,
    theme: Theme,
    lane: &Lane,
    projected: &Projected,
    width: usize,
) -> Vec<Line<'static>> {
    let mut out = Vec::new();
    let parts = [
        ("q ", projected.q.clone()),
        ("r ", projected.r.clone()),
        ("p ", projected.p.clone().unwrap_or_else(|| "q − r".into())),
    ];
    for (name, text) in parts {
        out.push(Line::from(vec![
            span(format!(" {name}"), Meaning::Key, theme),
            span(fit(&safe::line(&text), width.saturating_sub(4)), Meaning::Text, theme),
        ]));
    }
    if projected.ran != projected.asked {
        out.extend(note_lines(&lane.ranking, width, theme));
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
        out.extend(axis_lines(app, theme, &at.collect::<Vec<_>>(), furthest, width));
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

/// Draws how the projection moves the passages: from their place between the poles and their cosine to those after it. Takes the rows at
/// the bottom that the text leaves, if they are enough, and returns how many.
fn draw_plane(
    app: &App,
    theme: Theme,
    lane: &Lane,
    projected: &Projected,
    (inner, lines): (Rect, usize),
    frame: &mut Frame<'_>,
) -> u16 {
    const LEAST: u16 = 8;
    let rows = inner.height.saturating_sub((lines as u16).min(inner.height));
    if rows < LEAST {
        return 0;
    }
    let area = Rect { y: inner.bottom() - rows, height: rows, ..inner };
    widgets::draw_moves(app, theme, &moves(app, lane, projected), PLANE, area, frame);
    rows
}

/// The names of the axes of the plane.
pub const PLANE: (&str, &str) = ("nearer to the first pole", "score");

/// The marks of the first passages, and their places in the plane before and after the projection.
pub fn moves(app: &App, lane: &Lane, projected: &Projected) -> Vec<(Mark, [(f64, f64); 2])> {
    let moves = lane.ranking.iter().take(app.k.max(20)).filter_map(|ranked| {
        let point = projected.points.get(&ranked.at)?;
        let place = |x: f32, y: f32| (f64::from(x), f64::from(y));
        let ends = [place(point.before, point.plain), place(point.after, point.score)];
        Some((app.mark(ranked.at), ends))
    });
    moves.collect()
}

/// Marks above an axis; marks at the same place are stacked.
fn axis_lines(
    app: &App,
    theme: Theme,
    points: &[(Mark, f32)],
    furthest: f32,
    width: usize,
) -> Vec<Line<'static>> {
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

/// A diversifier's choices and the values behind them.
fn choices_table(app: &App, theme: Theme, list: &List, width: usize) -> Vec<Line<'static>> {
    let step = list.trace.steps.iter().find_map(|step| match step {
        Step::Diversify { choices, judged, pool, .. } => Some((choices, judged, pool)),
        _ => None,
    });
    let Some((choices, judged, pool)) = step else {
        let mmr = list.trace.steps.iter().any(|step| matches!(step, Step::Mmr { .. }));
        let text = if mmr {
            "MMR re-ranks this lane; a diversifier would replace it."
        } else {
            "The list is as the retriever made it."
        };
        return muted_lines(text, width, theme);
    };
    let cost = format!(
        "Passages are chosen by the model's verdicts, never by labels. {judged} verdicts on {} passages were needed first.",
        pool.len()
    );
    let mut out = paragraph(&cost, " ", width, Meaning::Muted, theme);
    out.extend(note_lines(list, width, theme));
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
