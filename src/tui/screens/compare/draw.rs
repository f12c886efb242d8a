//! Draws the comparison: a heat table of questions and lanes with the means below, the marked question, and the curves.

use ratatui::Frame;
use ratatui::layout::{Position, Rect};
use ratatui::text::{Line, Span};
use ratatui::widgets::{Block, Paragraph};

use super::{LaneSummary, Order, Shown};
use crate::engine::{Compared, FirstRank};
use crate::question::Question;
use crate::report::marks::{Mark, share, signed};
use crate::report::safe;
use crate::tui::app::{App, Corpus};
use crate::tui::theme::{Meaning, Theme};
use crate::tui::widgets::text::{columns_of, fit, passage_span, span, wrap};
use crate::tui::widgets::{draw_with_bands, legend, rank_cells, sources_by_k, sources_line};

/// Columns of a cell's figure.
const FIGURE: usize = 5;
/// The fewest columns of a cell with a strip: an interval fits below it.
const CELL: usize = FIGURE + 9;
/// The most ranks of a strip.
const RANKS: usize = 10;
/// The fewest columns of a question's text.
const TEXT: usize = 18;

/// The areas of the screen; one without room is empty.
#[derive(Clone, Copy, Debug, Default)]
struct Areas {
    table: Rect,
    means: Rect,
    question: Rect,
    curves: Rect,
}

/// Divides the screen. Where there is room for the means or the marked question only, a key changes between them.
fn areas(app: &App, body: Rect) -> Areas {
    let rows = u16::try_from(app.comparing.questions.len()).unwrap_or(u16::MAX).saturating_add(4);
    let means = app.lanes.len() as u16 + 3;
    let below = |area: Rect, height: u16| {
        let height = height.min(area.height);
        let upper = Rect { height: area.height - height, ..area };
        (upper, Rect { y: upper.bottom(), height, ..area })
    };
    if body.height < 14 {
        return Areas { table: body, ..Areas::default() };
    }
    if body.width < 110 {
        let least = body.height - (body.height / 2).min(11);
        let (table, rest) = below(body, body.height - rows.clamp(7, least.max(7)));
        return match (app.comparing.means, rest.height >= 22) {
            (_, true) => {
                let (question, means) = below(rest, means);
                Areas { table, means, question, ..Areas::default() }
            }
            (true, _) => Areas { table, means: rest, ..Areas::default() },
            (false, _) => Areas { table, question: rest, ..Areas::default() },
        };
    }
    let left = Rect { width: body.width * 3 / 5, ..body };
    let right = Rect { x: left.right(), width: body.width - left.width, ..body };
    let (upper, means) = below(left, means.min(body.height / 3));
    let spare = upper.height.saturating_sub(rows.max(7));
    if spare >= 9 {
        let (table, curves) = below(upper, spare);
        return Areas { table, means, question: right, curves };
    }
    let (question, curves) = below(right, if body.height >= 24 { (body.height / 3).min(13) } else { 0 });
    Areas { table: upper, means, question, curves }
}

/// The columns of the table: columns of the question's text, of a cell, and the lanes that are shown.
struct Columns {
    text: usize,
    cell: usize,
    first: usize,
    shown: usize,
}

impl Columns {
    fn of(app: &App, width: usize) -> Self {
        let lanes = app.lanes.len().max(1);
        let with_strip = (FIGURE + 2 + app.k.min(RANKS)).max(CELL);
        let fits = |cell: usize| TEXT + 2 + lanes * cell <= width;
        let cell = if fits(with_strip) { with_strip } else { FIGURE + 1 };
        let shown = (width.saturating_sub(TEXT.min(width / 3) + 2) / cell).clamp(1, lanes);
        let first = app.lane.saturating_sub(shown - 1).min(lanes - shown);
        Columns { text: width.saturating_sub(shown * cell + 2), cell, first, shown }
    }

    fn has_strips(&self) -> bool {
        self.cell >= CELL
    }
}

/// The first visible row of the table of this height.
fn top(app: &App, inner: Rect) -> usize {
    (app.comparing.at + 1).saturating_sub(fits(inner))
}

fn fits(inner: Rect) -> usize {
    usize::from(inner.height).saturating_sub(2).max(1)
}

/// The row and the lane of the table at a position.
pub fn target(app: &App, body: Rect, at: Position) -> (Option<usize>, Option<usize>) {
    let inner = Block::bordered().inner(areas(app, body).table);
    if !inner.contains(at) {
        return (None, None);
    }
    let columns = Columns::of(app, usize::from(inner.width));
    let right = usize::from(at.x - inner.x).checked_sub(columns.text + 2);
    let lane = right.map(|x| columns.first + x / columns.cell).filter(|lane| *lane < app.lanes.len());
    let row = usize::from(at.y - inner.y).checked_sub(1).filter(|row| *row < fits(inner));
    (row.map(|row| row + top(app, inner)), lane)
}

/// Draws the screen.
pub fn draw(app: &App, theme: Theme, body: Rect, frame: &mut Frame<'_>) {
    let areas = areas(app, body);
    draw_table(app, theme, areas.table, frame);
    draw_lanes(app, theme, areas.means, frame);
    draw_question(app, theme, areas.question, frame);
    draw_curves(app, theme, areas.curves, frame);
}

/// Draws a border with a title; returns the area inside.
fn bordered(
    theme: Theme,
    title: Vec<Span<'static>>,
    meaning: Meaning,
    area: Rect,
    frame: &mut Frame<'_>,
) -> Rect {
    bordered_with(theme, (title, Span::raw("")), meaning, area, frame)
}

/// The same with a text in the lower line.
fn bordered_with(
    theme: Theme,
    (title, below): (Vec<Span<'static>>, Span<'static>),
    meaning: Meaning,
    area: Rect,
    frame: &mut Frame<'_>,
) -> Rect {
    let block = Block::bordered().border_style(theme.style(meaning)).title(Line::from(title));
    let block = block.title_bottom(below);
    let inner = block.inner(area);
    frame.render_widget(block, area);
    inner
}

/// Draws one row per question with a cell per lane, and the means.
fn draw_table(app: &App, theme: Theme, area: Rect, frame: &mut Frame<'_>) {
    let comparing = &app.comparing;
    let (done, all) = (comparing.questions.iter().flatten().count(), comparing.questions.len());
    let name = comparing.shown.name();
    let order = match comparing.order {
        Order::Set => "as in the set".to_owned(),
        Order::Disagreement => "widest disagreement first".into(),
        Order::Least => format!("least {name} of the lane first"),
        Order::Greatest => format!("greatest {name} of the lane first"),
        Order::Text => "by text".into(),
    };
    let measure =
        if comparing.shown == Shown::Overlap { name.to_owned() } else { format!("{name}@{}", app.k) };
    let title = format!(" {measure} · {done}/{all} questions · {order} ");
    let title = span(fit(&title, usize::from(area.width).saturating_sub(2)), Meaning::Title, theme);
    let all = comparing.summary.sources.get(app.lane).and_then(|all| all.last()).copied().unwrap_or_default();
    let below = sources_line(&app.short_title(app.lane, 14), all, area.width, theme);
    let inner = bordered_with(theme, (vec![title], below), Meaning::Focus, area, frame);
    let columns = Columns::of(app, usize::from(inner.width));
    let lanes = columns.first..columns.first + columns.shown;
    let mut head = vec![Span::raw(" ".repeat(columns.text + 2))];
    for i in lanes.clone() {
        let meaning = if i == app.lane { Meaning::Selected } else { Meaning::Title };
        let name = app.short_title(i, columns.cell - 1);
        let pad = " ".repeat(columns.cell.saturating_sub(columns_of(&name)));
        head.extend([span(name, meaning, theme), Span::raw(pad)]);
    }
    let mut lines = vec![Line::from(head)];
    let Corpus::Open(opened) = &app.corpus else { return };
    let rows = comparing.summary.rows.iter().enumerate().skip(top(app, inner)).take(fits(inner));
    for (place, row) in rows {
        let Some(question) = opened.questions.get(*row) else { continue };
        let meaning = if place == comparing.at { Meaning::Selected } else { Meaning::Text };
        let text = fit(&safe::line(&question.text), columns.text);
        let pad = " ".repeat(columns.text + 1 - columns_of(&text));
        let mut spans = vec![Span::raw(" "), span(text, meaning, theme), Span::raw(pad)];
        spans.extend(lanes.clone().flat_map(|lane| cell(app, theme, (question, *row), lane, &columns)));
        lines.push(Line::from(spans));
    }
    let label = fit(if comparing.ended() { "mean" } else { "mean so far" }, columns.text);
    let pad = " ".repeat(columns.text + 1 - columns_of(&label));
    let mut means = vec![Span::raw(" "), span(label, Meaning::Title, theme), Span::raw(pad)];
    means.extend(lanes.flat_map(|lane| mean_cell(app, theme, lane, &columns)));
    lines.push(Line::from(means));
    frame.render_widget(Paragraph::new(lines), inner);
}

/// A figure on its heat, as wide as [`FIGURE`].
fn figure(theme: Theme, shown: Shown, value: f64) -> Span<'static> {
    let text = if shown.is_signed() { signed(value) } else { share(value) };
    Span::styled(format!("{:^FIGURE$}", text.trim()), theme.heat(value.abs()))
}

fn padded(mut spans: Vec<Span<'static>>, width: usize) -> Vec<Span<'static>> {
    let used: usize = spans.iter().map(|span| columns_of(&span.content)).sum();
    spans.push(Span::raw(" ".repeat(width.saturating_sub(used))));
    spans
}

/// The figure, and the strip of sides if there is room.
fn cell(
    app: &App,
    theme: Theme,
    (question, row): (&Question, usize),
    lane: usize,
    columns: &Columns,
) -> Vec<Span<'static>> {
    let outcome = app.comparing.questions.get(row).and_then(Option::as_ref);
    let plain =
        |text: &str, meaning| padded(vec![span(fit(text, columns.cell - 1), meaning, theme)], columns.cell);
    let compared = match outcome {
        None => return plain("…", Meaning::Muted),
        Some(Err(_)) => return plain("failed", Meaning::Warn),
        Some(Ok(compared)) => compared,
    };
    if compared.figures.get(lane).is_none_or(Option::is_none) && compared.perspectives > 0 {
        return plain("–", Meaning::Muted);
    }
    let judged = compared.judged(lane).0 > 0 || app.comparing.shown == Shown::Overlap;
    let value = app.comparing.summary.values.get(row).and_then(|values| *values.get(lane)?);
    let mut spans = match value.filter(|_| judged) {
        Some(value) => vec![figure(theme, app.comparing.shown, value)],
        None => vec![span(format!("{:^FIGURE$}", "–"), Meaning::Muted, theme)],
    };
    if columns.has_strips() {
        spans.push(Span::raw(" "));
        let marks = marks(compared, question, lane).into_iter().take(RANKS);
        spans.extend(rank_cells(marks, 1, theme, app.glyphs));
    }
    padded(spans, columns.cell)
}

/// What each of a lane's first k supports.
fn marks(compared: &Compared, question: &Question, lane: usize) -> Vec<Mark> {
    let supports = compared.supports.get(lane).into_iter().flatten();
    let unclear = compared.unclear.get(lane).into_iter().flatten();
    let mark = |(set, unclear): (&Option<_>, &bool)| match unclear {
        true => Mark::Unclear,
        false => Mark::of_set(*set, question),
    };
    supports.zip(unclear).map(mark).collect()
}

/// A lane's mean, with its interval if there is room.
fn mean_cell(app: &App, theme: Theme, lane: usize, columns: &Columns) -> Vec<Span<'static>> {
    let shown = app.comparing.shown;
    let Some((mean, low, high)) = app.comparing.summary.lanes.get(lane).and_then(|lane| lane.mean) else {
        return padded(vec![span("…", Meaning::Muted, theme)], columns.cell);
    };
    let mut spans = vec![figure(theme, shown, mean)];
    if columns.has_strips() {
        let end = |value: f64| if shown.is_signed() { signed(value).trim().to_owned() } else { share(value) };
        let text = fit(&format!(" {}–{}", end(low), end(high)), columns.cell - FIGURE - 1);
        spans.push(span(text, Meaning::Muted, theme));
    }
    padded(spans, columns.cell)
}

/// Draws means with intervals, sides covered, and how each lane differs from the one under the cursor.
fn draw_lanes(app: &App, theme: Theme, area: Rect, frame: &mut Frame<'_>) {
    /// The last columns of a cell are empty, so they may lie outside the frame.
    const GAP: usize = 5;
    if area.height < 3 {
        return;
    }
    let k = app.k;
    let so_far = if app.comparing.ended() { "" } else { " so far" };
    let drawn = app.comparing.questions.iter().flatten().flatten().any(|one| one.expected.is_some());
    let open = if drawn { " (open: the model's doubt leaves it open)" } else { "" };
    let title = format!(" means{so_far} at k {k} · overlap and p with the lane with the cursor{open} ");
    let title = span(fit(&title, usize::from(area.width).saturating_sub(2)), Meaning::Title, theme);
    let inner = bordered(theme, vec![title], Meaning::Muted, area, frame);
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
        let LaneSummary { mrecall, prec, sides, overlap, p, .. } = lane;
        lines.push(Line::from(vec![
            Span::raw("  "),
            span(name, meaning, theme),
            Span::raw(pad + &joined([mrecall, prec, sides, overlap, p])),
        ]));
    }
    frame.render_widget(Paragraph::new(lines), inner);
}

/// Draws the question under the cursor: which lane covers which statement at which rank, how the lanes overlap, and what only one has.
fn draw_question(app: &App, theme: Theme, area: Rect, frame: &mut Frame<'_>) {
    let Corpus::Open(opened) = &app.corpus else { return };
    let row = app.comparing.summary.rows.get(app.comparing.at).copied();
    let Some((row, question)) = row.and_then(|row| Some((row, opened.questions.get(row)?))) else { return };
    if area.height < 3 {
        return;
    }
    let width = usize::from(area.width).saturating_sub(2);
    let text = safe::line(&question.text);
    let title = span(format!(" {} ", fit(&text, width.saturating_sub(2))), Meaning::Title, theme);
    let inner = bordered(theme, vec![title], Meaning::Muted, area, frame);
    let mut lines = Vec::new();
    let room = usize::from(inner.height);
    // The statements give way to the lanes.
    let statements = question.perspectives.len().min(room.saturating_sub(app.lanes.len() + 3));
    for (i, statement) in question.perspectives.iter().enumerate().take(statements) {
        let mark = Mark::of(i, question);
        let glyph = format!(" {} ", mark.text(app.glyphs));
        let statement = fit(&safe::line(statement), width.saturating_sub(columns_of(&glyph)));
        lines.push(Line::from(vec![
            span(glyph, Meaning::Side(mark), theme),
            span(statement, Meaning::Side(mark), theme),
        ]));
    }
    match app.comparing.questions.get(row).and_then(Option::as_ref) {
        None => lines.push(Line::from(span(" Asking the lanes …", Meaning::Muted, theme))),
        Some(Err(reason)) => {
            let reason = safe::line(reason);
            let rows = wrap(&reason, width.saturating_sub(2), room);
            lines.extend(
                rows.into_iter()
                    .map(|row| Line::from(span(format!(" {}", &reason[row]), Meaning::Warn, theme))),
            );
        }
        Some(Ok(compared)) => {
            lines.extend(grid(app, theme, compared, question, width));
            if lines.len() + 2 < room {
                let rest = room - lines.len();
                lines.extend(only_here(app, theme, compared, question, (width, rest)));
            }
        }
    }
    frame.render_widget(Paragraph::new(lines), inner);
}

/// One line per lane: its strip, the first rank of every statement, and its overlap with the lane under the cursor.
fn grid(
    app: &App,
    theme: Theme,
    compared: &Compared,
    question: &Question,
    width: usize,
) -> Vec<Line<'static>> {
    const NAME: usize = 12;
    const FIRST: usize = 6;
    const OVERLAP: usize = 10;
    let ranks = app.k.min(RANKS);
    let statements = compared.perspectives.min(width.saturating_sub(NAME + ranks + 3) / FIRST);
    let with_overlap = width >= NAME + ranks + 3 + statements * FIRST + OVERLAP && app.lanes.len() > 1;
    let mut head = format!(" {:NAME$}{:<w$}", "", "first k", w = ranks.max(7) + 1);
    head += &format!("{:<w$}", "first rank", w = (statements * FIRST).max(11));
    if with_overlap {
        head += "J / RBO";
    }
    let mut lines = vec![Line::from(span(fit(&head, width), Meaning::Muted, theme))];
    for (lane, figures) in compared.figures.iter().enumerate().take(app.lanes.len()) {
        let meaning = if lane == app.lane { Meaning::Selected } else { Meaning::Text };
        let name = app.short_title(lane, NAME - 1);
        let pad = " ".repeat(NAME - columns_of(&name));
        let mut spans = vec![Span::raw(" "), span(name, meaning, theme), Span::raw(pad)];
        let marks = marks(compared, question, lane);
        let cells = padded(rank_cells(marks.into_iter().take(RANKS), 1, theme, app.glyphs), ranks.max(7) + 1);
        spans.extend(cells);
        let mut firsts = Vec::new();
        for (i, first) in figures.iter().flat_map(|figures| figures.first.iter().enumerate()).take(statements)
        {
            let mark = Mark::of(i, question).text(app.glyphs);
            let (text, heat) = match first {
                FirstRank::At(rank) => (format!("{mark}{rank}"), Some(1.0 / *rank as f64)),
                FirstRank::Below(0) => (format!("{mark}…"), None),
                FirstRank::Below(judged) => (format!("{mark}>{judged}"), None),
            };
            let style = heat.map_or_else(|| theme.style(Meaning::Muted), |heat| theme.heat(heat));
            firsts.push(Span::styled(format!("{:^w$}", fit(&text, FIRST - 1), w = FIRST - 1), style));
            firsts.push(Span::raw(" "));
        }
        spans.extend(padded(firsts, (statements * FIRST).max(11)));
        if with_overlap && lane != app.lane {
            let both = app.comparing.marked.overlaps.get(lane).copied().flatten();
            let text = both.map_or_else(|| "–".into(), |(j, rbo)| format!("{}/{}", share(j), share(rbo)));
            spans.push(Span::raw(text));
        }
        lines.push(Line::from(spans));
    }
    lines
}

/// The passages that only one lane has, lane by lane; then, if there is room, those that several have.
fn only_here(
    app: &App,
    theme: Theme,
    compared: &Compared,
    question: &Question,
    (width, room): (usize, usize),
) -> Vec<Line<'static>> {
    let marks: Vec<Vec<Mark>> =
        (0..compared.tops.len()).map(|lane| marks(compared, question, lane)).collect();
    let passage = |lane: usize, at: usize, meaning: Meaning| {
        let mark = marks[lane].get(at).copied().unwrap_or(Mark::Pending);
        let glyph = mark.text(app.glyphs);
        let heading = compared.headings.get(lane).and_then(|all| all.get(at)).map_or("", String::as_str);
        Line::from(vec![
            span(format!(" {:>3} ", at + 1), Meaning::Muted, theme),
            span(format!("{glyph:<3}"), Meaning::Side(mark), theme),
            passage_span(fit(&safe::line(heading), width.saturating_sub(8)), meaning, theme),
        ])
    };
    let only = &app.comparing.marked.only;
    let mut lines = Vec::new();
    for lane in 0..compared.tops.len().min(app.lanes.len()) {
        let Some(only) = only.get(lane).filter(|only| !only.is_empty()) else { continue };
        let text = format!(" only {}", app.short_title(lane, width.saturating_sub(6)));
        lines.push(Line::from(span(text, Meaning::Title, theme)));
        lines.extend(only.iter().map(|at| passage(lane, *at, Meaning::Text)));
    }
    let shared: Vec<usize> = (0..compared.tops.get(app.lane).map_or(0, Vec::len))
        .filter(|at| !only.get(app.lane).is_some_and(|only| only.contains(at)))
        .collect();
    if !shared.is_empty() && app.lanes.len() > 1 && lines.len() + 1 < room {
        let text = format!(" {} and others", app.short_title(app.lane, width.saturating_sub(12)));
        lines.push(Line::from(span(text, Meaning::Title, theme)));
        lines.extend(shared.into_iter().map(|at| passage(app.lane, at, Meaning::Muted)));
    }
    lines.insert(0, Line::default());
    lines.truncate(room);
    lines
}

/// Draws MRecall of every lane over k, with its interval.
fn draw_curves(app: &App, theme: Theme, area: Rect, frame: &mut Frame<'_>) {
    if area.height < 3 {
        return;
    }
    let mut title = vec![span(" MRecall over k ", Meaning::Title, theme)];
    let each = (usize::from(area.width).saturating_sub(18) / app.lanes.len().max(1)).saturating_sub(4);
    title.extend(legend((0..app.lanes.len()).map(|i| app.short_title(i, each.clamp(1, 14))), theme));
    let sources = app.comparing.summary.sources.get(app.lane).map_or(&[][..], Vec::as_slice);
    let below = sources_by_k(sources, area.width, theme);
    let inner = bordered_with(theme, (title, below), Meaning::Muted, area, frame);
    if app.comparing.summary.curves.is_empty() || inner.height < 4 {
        return;
    }
    let axis = ((1.0, app.k.max(2) as f64), vec!["1".into(), format!("k {}", app.k)]);
    draw_with_bands(app, theme, &app.comparing.summary.curves, axis, inner, frame);
}
