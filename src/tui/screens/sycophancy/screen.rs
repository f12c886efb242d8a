//! Asks the lanes in three wordings, and draws their strips in large, their lists with what came and went, and a table of all lanes.

use std::ops::Range;

use crossterm::event::{MouseButton, MouseEvent, MouseEventKind};
use ratatui::Frame;
use ratatui::layout::{Alignment, Position, Rect};
use ratatui::text::{Line, Span};
use ratatui::widgets::{Block, Paragraph};

use super::SycophancyScreen;
use crate::engine::sycophancy::UNLIKE;
use crate::engine::{Batch, Judgments, Ranked, Ranking, Reply, Sycophancy};
use crate::measure::bias::SideShares;
use crate::report::marks::{Mark, share, signed};
use crate::report::safe;
use crate::tui::app::App;
use crate::tui::keymap::{Action, Context, Screen};
use crate::tui::layout::panes;
use crate::tui::message::Effect;
use crate::tui::page::Page;
use crate::tui::screens::lanes::{question, update as lanes};
use crate::tui::theme::{Meaning, Theme};
use crate::tui::widgets::text::{columns_of, fit, paragraph, passage_span, span, wrap};
use crate::tui::widgets::{cells_width, lean_bar, rank_cells, sources_line};

/// The sycophancy screen.
pub struct AsEitherSide;

impl Page for AsEitherSide {
    fn screen(&self) -> Screen {
        Screen::SYCOPHANCY
    }

    fn context(&self, _: &App) -> Context {
        Context::Sycophancy
    }

    fn opened_by(&self) -> Option<Action> {
        Some(Action::Sycophancy)
    }

    fn open(&self, app: &mut App) -> Vec<Effect> {
        open(app)
    }

    fn act(&self, app: &mut App, action: Action) -> Vec<Effect> {
        act(app, action)
    }

    fn reply(&self, app: &mut App, reply: Reply) -> Result<Vec<Effect>, Box<Reply>> {
        match reply {
            Reply::Sycophancy { number, lane, sycophancy } => {
                if number == app.sycophancy_screen.number
                    && let Some(place) = app.sycophancy_screen.lanes.get_mut(lane)
                {
                    *place = Some(sycophancy);
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
        app.sycophancy_screen.lanes.iter().all(Option::is_some)
    }

    fn point(&self, app: &mut App, mouse: MouseEvent) -> Option<Action> {
        match mouse.kind {
            MouseEventKind::ScrollDown => return Some(Action::NextLane),
            MouseEventKind::ScrollUp => return Some(Action::PreviousLane),
            MouseEventKind::Down(MouseButton::Left) => {}
            _ => return None,
        }
        let inner = Block::bordered().inner(areas(app, panes(app).body).table);
        if inner.contains(Position { x: mouse.column, y: mouse.row }) {
            let lane = shown_lanes(app, inner).start + usize::from(mouse.row - inner.y);
            app.lane = lane.min(app.lanes.len().saturating_sub(1));
        }
        None
    }

    fn draw(&self, app: &App, theme: Theme, area: Rect, frame: &mut Frame<'_>) {
        draw(app, theme, area, frame);
    }
}

/// Opens the screen and asks all lanes.
pub fn open(app: &mut App) -> Vec<Effect> {
    question::read_line(app);
    if app.question.supports.is_none() || app.question.perspectives.len() != 2 {
        app.notice =
            Some("only a question of two sides can be asked as either; i edits its statements".into());
        return Vec::new();
    }
    app.screen = Screen::SYCOPHANCY;
    ask(app)
}

/// Performs an action.
pub fn act(app: &mut App, action: Action) -> Vec<Effect> {
    lanes::act_with_batch(app, action, ask)
}

/// Asks all lanes in the three wordings.
pub fn ask(app: &mut App) -> Vec<Effect> {
    let number = app.next_batch();
    let (lanes, lab) = (vec![None; app.lanes.len()], std::mem::take(&mut app.sycophancy_screen.lab));
    app.sycophancy_screen = SycophancyScreen { number, lanes, lab };
    vec![Effect::Batch(number, Batch::Sycophancy(app.query()))]
}

/// Columns of a lane's name in the table.
const NAME: usize = 20;
/// Columns of a strip's label.
const LABEL: usize = 11;
/// Columns of a lean with its gauge.
const LEAN: usize = 29;

/// The areas of the screen; one without room is empty.
#[derive(Clone, Copy, Debug, Default)]
struct Areas {
    strips: Rect,
    lists: Rect,
    table: Rect,
    /// Rows of a strip.
    tall: u16,
}

fn areas(app: &App, body: Rect) -> Areas {
    let lanes = app.lanes.len() as u16 + 2;
    let tall = if body.height >= 30 { 2 } else { 1 };
    // Below strips of two rows stand their shares.
    let strips = (3 * tall + 3 * (tall - 1) + 2).min(body.height);
    let table = lanes.min(body.height - strips);
    let mut lists = body.height - strips - table;
    // Lists of less would show no passage.
    let table = if lists < 4 { table + std::mem::take(&mut lists) } else { table };
    let strips = Rect { height: strips, ..body };
    let lists = Rect { y: strips.bottom(), height: lists, ..body };
    Areas { strips, lists, table: Rect { y: lists.bottom(), height: table, ..body }, tall }
}

/// The lanes whose rows fit into the table; the lane under the cursor is one of them.
fn shown_lanes(app: &App, inner: Rect) -> Range<usize> {
    let fits = usize::from(inner.height).max(1);
    let first = (app.lane + 1).saturating_sub(fits);
    first..app.lanes.len().min(first + fits)
}

/// Draws the screen.
fn draw(app: &App, theme: Theme, body: Rect, frame: &mut Frame<'_>) {
    let areas = areas(app, body);
    draw_strips(app, theme, areas, frame);
    draw_lists(app, theme, areas.lists, frame);
    draw_table(app, theme, areas.table, frame);
}

/// The mark and the text of a wording: 0 is neutral, 1 supports, 2 opposes.
fn wording(app: &App, i: usize) -> (Mark, String) {
    let first = app.question.supports.unwrap_or(0);
    let statement = |i: usize| app.question.perspectives.get(i).cloned().unwrap_or_default();
    match i {
        0 => (Mark::None, app.question.text.clone()),
        1 => (Mark::of(first, &app.question), statement(first)),
        _ => (Mark::of(1 - first.min(1), &app.question), statement(1 - first.min(1))),
    }
}

/// The name of a wording, and its meaning.
fn wording_name(app: &App, i: usize) -> (String, Meaning) {
    match wording(app, i) {
        (_, _) if i == 0 => ("question".into(), Meaning::Title),
        (mark, _) => (format!("asked as {}", mark.text(app.glyphs)), Meaning::Side(mark)),
    }
}

/// The answer of a lane, if it has arrived and did not fail.
fn answer(app: &App, lane: usize) -> Option<&Sycophancy> {
    app.sycophancy_screen.lanes.get(lane)?.as_ref()?.as_deref().ok()
}

/// What each of the first k of a wording supports.
fn marks<'a>(app: &'a App, sycophancy: &'a Sycophancy, wording: usize) -> impl Iterator<Item = Mark> + 'a {
    let top = sycophancy.lists[wording].iter().take(app.k);
    top.map(|ranked| Mark::of_passage(&sycophancy.judgments, ranked.at, &app.question))
}

/// Draws the three strips of the lane under the cursor in large, with their leans and the shift.
fn draw_strips(app: &App, theme: Theme, areas: Areas, frame: &mut Frame<'_>) {
    let area = areas.strips;
    let mut block = Block::bordered().border_style(theme.style(Meaning::Focus)).title(span(
        format!(" {} ", app.short_title(app.lane, usize::from(area.width).saturating_sub(4))),
        Meaning::Title,
        theme,
    ));
    if let Some(sycophancy) = answer(app, app.lane) {
        let shift = format!(" shift {} ", figure(sycophancy.shift()));
        block = block.title(Line::from(span(shift, Meaning::Title, theme)).alignment(Alignment::Right));
        let name = app.short_title(app.lane, 14);
        block = block.title_bottom(sources_line(&name, sycophancy.sources(app.k), area.width, theme));
    }
    let inner = block.inner(area);
    frame.render_widget(block, area);
    let width = usize::from(inner.width);
    let answer = match app.sycophancy_screen.lanes.get(app.lane).and_then(Option::as_ref) {
        None => return frame.render_widget(span(" Asking …", Meaning::Muted, theme), inner),
        Some(Err(reason)) => {
            let lines = paragraph(reason, " ", width, Meaning::Warn, theme);
            return frame.render_widget(Paragraph::new(lines), inner);
        }
        Some(Ok(answer)) => answer,
    };
    let with_bar = width >= LABEL + app.k + LEAN + 2;
    let lean_room = if with_bar { LEAN } else { 6 };
    let room = width.saturating_sub(LABEL + lean_room + 2);
    let wide = (1..=15).rev().find(|wide| cells_width(app.k, *wide) <= room).unwrap_or(1);
    let mut lines = Vec::new();
    for (i, shares) in answer.shares.iter().enumerate() {
        let (name, meaning) = wording_name(app, i);
        for row in 0..areas.tall {
            // The marks stand in the first row of a strip of two.
            let glyphs = rank_cells(marks(app, answer, i), wide, theme, app.glyphs);
            let blank = |span: Span<'static>| Span::styled(" ".repeat(columns_of(&span.content)), span.style);
            let cells: Vec<_> = if row == 0 { glyphs } else { glyphs.into_iter().map(blank).collect() };
            let cells = cut(cells, room);
            let used: usize = cells.iter().map(|span| columns_of(&span.content)).sum();
            let label = if row == 0 { name.clone() } else { String::new() };
            let mut spans = vec![span(format!(" {label:<w$}", w = LABEL - 1), meaning, theme)];
            spans.extend(cells);
            spans.push(Span::raw(" ".repeat(room.saturating_sub(used) + 1)));
            if row == 0 {
                if with_bar {
                    let blank = || vec![Span::raw(" ".repeat(LEAN - 7))];
                    let bar = |it: SideShares| lean_bar(it.lean(), None, LEAN - 7, theme, app.glyphs);
                    spans.extend(shares.map_or_else(blank, bar));
                    spans.push(Span::raw(" "));
                }
                let lean = figure(shares.map(SideShares::lean));
                spans.push(span(format!("{lean:>5}"), Meaning::Title, theme));
            }
            lines.push(Line::from(spans));
        }
        if areas.tall > 1 {
            let delta = delta_of(answer, i, true);
            let [p, n] =
                [shares.map(|it| it.p), shares.map(|it| it.n)].map(|it| it.map_or("–".to_owned(), share));
            let text = format!("{:LABEL$}supporting {p}, opposing {n}, Δ {delta}", "");
            lines.push(Line::from(span(fit(&text, width), Meaning::Muted, theme)));
        }
    }
    frame.render_widget(Paragraph::new(lines), inner);
}

/// A lean, or a shift; a dash if nothing was judged.
fn figure(value: Option<f64>) -> String {
    value.map_or_else(|| "–".into(), |value| signed(value).trim().to_owned())
}

/// Δ of a wording, with its interval where the model judged and `with_interval` is set.
fn delta_of(answer: &Sycophancy, wording: usize, with_interval: bool) -> String {
    let text = |value: f64| signed(value).trim().to_owned();
    let Some(delta) = answer.delta(wording) else { return "–".into() };
    answer.delta_spreads[wording].filter(|_| with_interval).map_or_else(
        || text(delta),
        |ends| format!("{} ({} to {})", text(delta), text(ends.low), text(ends.high)),
    )
}

/// The spans that fit the width.
fn cut(spans: Vec<Span<'static>>, width: usize) -> Vec<Span<'static>> {
    let mut used = 0;
    let fits = |span: &Span<'_>| {
        used += columns_of(&span.content);
        used <= width
    };
    spans.into_iter().take_while(fits).collect()
}

/// Draws the three lists of the lane under the cursor.
fn draw_lists(app: &App, theme: Theme, area: Rect, frame: &mut Frame<'_>) {
    let answer = app.sycophancy_screen.lanes.get(app.lane).and_then(Option::as_ref);
    if area.height < 3 {
        return;
    }
    for i in 0..3u16 {
        let (left, right) = (area.width * i / 3, area.width * (i + 1) / 3);
        let pane = Rect { x: area.x + left, width: right - left, ..area };
        let (mark, text) = wording(app, usize::from(i));
        let glyph = if i == 0 { "asked".to_owned() } else { format!("as {}", mark.text(app.glyphs)) };
        let room = usize::from(pane.width).saturating_sub(columns_of(&glyph) + 6);
        let title = format!(" {glyph} {} ", fit(&safe::line(&text), room));
        let mut block = Block::bordered().border_style(theme.style(Meaning::Muted)).title(span(
            title,
            if i == 0 { Meaning::Title } else { Meaning::Side(mark) },
            theme,
        ));
        if let Some(Ok(sycophancy)) = answer.filter(|_| i > 0) {
            let new = format!(" {} of {} new ", sycophancy.count_new(usize::from(i), app.k), app.k);
            block =
                block.title_bottom(Line::from(span(new, Meaning::Muted, theme)).alignment(Alignment::Right));
        }
        let inner = block.inner(pane);
        frame.render_widget(block, pane);
        let width = usize::from(inner.width);
        let Some(Ok(sycophancy)) = answer else { continue };
        let mut notes = Vec::new();
        if let Some(text) = &sycophancy.expanded()[usize::from(i)] {
            notes.extend(paragraph(&format!("expanded: {text}"), " ", width, Meaning::Muted, theme));
        }
        if i == 0 && sycophancy.expanded_differently() {
            notes.extend(paragraph(UNLIKE, " ", width, Meaning::Warn, theme));
        }
        notes.extend(
            sycophancy.note.iter().flat_map(|note| paragraph(note, " ", width, Meaning::Warn, theme)),
        );
        let room = usize::from(inner.height).saturating_sub(notes.len());
        let [neutral, own] = [&sycophancy.lists[0], &sycophancy.lists[usize::from(i)]];
        let mut lines =
            passage_lines(app, theme, (neutral, own, &sycophancy.judgments), i > 0, (width, room));
        lines.extend(notes);
        frame.render_widget(Paragraph::new(lines), inner);
    }
}

/// The first k of a list, each with its move against the neutral list if the list is of another wording and, where there is room, the
/// beginning of its text; then the passages of the neutral list that this wording does not retrieve.
pub(super) fn passage_lines(
    app: &App,
    theme: Theme,
    (neutral, own, judgments): (&Ranking, &Ranking, &Judgments),
    moves: bool,
    (width, room): (usize, usize),
) -> Vec<Line<'static>> {
    let own = &own[..own.len().min(app.k)];
    let gone = neutral.iter().take(app.k).filter(|was| own.iter().all(|own| own.at != was.at));
    let gone: Vec<&Ranked> = gone.collect();
    let header = usize::from(!gone.is_empty());
    let each = (room.saturating_sub(header) / (own.len() + gone.len()).max(1)).clamp(1, 4);
    let head = |rank: String, ranked: &Ranked, moved: &str, meaning: Meaning| {
        let mark = Mark::of_passage(judgments, ranked.at, &app.question);
        let title = fit(&safe::line(ranked.passage.heading()), width.saturating_sub(8 + columns_of(moved)));
        let pad = " ".repeat(width.saturating_sub(7 + columns_of(&title) + columns_of(moved)));
        Line::from(vec![
            span(format!("{rank:>3} "), Meaning::Muted, theme),
            span(format!("{:<3}", mark.text(app.glyphs)), Meaning::Side(mark), theme),
            passage_span(title, meaning, theme),
            Span::raw(pad),
            span(moved.to_owned(), if moved == "new" { Meaning::Title } else { Meaning::Muted }, theme),
        ])
    };
    let preview = |ranked: &Ranked| {
        let beginning: String = ranked.passage.text.chars().take(width * each).collect();
        let text = safe::line(&beginning);
        let rows = wrap(&text, width.saturating_sub(8), each - 1);
        let line = |row: Range<usize>| {
            Line::from(vec![Span::raw("       "), passage_span(&text[row], Meaning::Muted, theme)])
        };
        rows.into_iter().map(line).collect::<Vec<_>>()
    };
    let mut lines = Vec::new();
    for (i, ranked) in own.iter().enumerate().take(room) {
        let moved = match neutral.rank_of(ranked.at) {
            _ if !moves => String::new(),
            Some(was) if was > i + 1 => format!("↑{}", was - i - 1),
            Some(was) if was < i + 1 => format!("↓{}", i + 1 - was),
            Some(_) => "=".into(),
            None => "new".into(),
        };
        lines.push(head((i + 1).to_string(), ranked, &moved, Meaning::Text));
        lines.extend(preview(ranked));
    }
    if header > 0 {
        lines.push(Line::from(span(" gone", Meaning::Title, theme)));
    }
    for ranked in gone.into_iter().take(room.saturating_sub(lines.len())) {
        lines.push(head("–".into(), ranked, "", Meaning::Muted));
        lines.extend(preview(ranked));
    }
    lines.truncate(room);
    lines
}

/// Draws one row per lane: its three strips, its leans and the shift.
fn draw_table(app: &App, theme: Theme, area: Rect, frame: &mut Frame<'_>) {
    if area.height < 3 {
        return;
    }
    let title = match area.width {
        ..74 => " all lanes: lean asked, as either side; shift ",
        74..98 => " all lanes: lean when asked neutrally, as either side, the shift between them, Δ ",
        _ => {
            " all lanes: lean when asked neutrally, as either side, the shift between them, and Δ = (p − n)/p of each "
        }
    };
    let block =
        Block::bordered().border_style(theme.style(Meaning::Muted)).title(span(title, Meaning::Title, theme));
    let unlike =
        (0..app.lanes.len()).filter(|i| answer(app, *i).is_some_and(Sycophancy::expanded_differently));
    let unlike: Vec<String> = unlike.map(|i| app.short_title(i, NAME - 2)).collect();
    let block = if unlike.is_empty() {
        block
    } else {
        let names = format!(" not expanded alike: {} ", unlike.join(", "));
        block.title_bottom(span(names, Meaning::Warn, theme))
    };
    let inner = block.inner(area);
    frame.render_widget(block, area);
    let width = usize::from(inner.width);
    // A lane's name is cut before a figure is; strips and the bar of the shift come where there is room.
    let figures = 3 * 6 + 11;
    let name_width = width.saturating_sub(figures).clamp(4, NAME);
    let ranks = app.k.min(10);
    let mut spare = width.saturating_sub(name_width + figures);
    let mut room_for = |columns: usize| {
        let fits = columns > 0 && spare >= columns;
        spare -= if fits { columns } else { 0 };
        fits
    };
    // Δ of each wording comes before the strips, which stand above in large, and its intervals before the bar of the shift.
    let deltas = |with_interval: bool| {
        let lanes = (0..app.lanes.len()).filter_map(|lane| answer(app, lane));
        let texts = lanes.flat_map(|own| (0..3).map(move |i| delta_of(own, i, with_interval)));
        texts.map(|text| columns_of(&text) + 2).max().unwrap_or(0)
    };
    let (short, long) = (deltas(false), deltas(true));
    let has_deltas = room_for(3 * short + 1);
    let strips = room_for(3 * (ranks + 1));
    let has_intervals = has_deltas && room_for(3 * (long - short));
    let delta_width = if has_intervals { long } else { short };
    let bar = if spare >= 14 { (spare - 1).min(44) } else { 0 };
    let lines = shown_lanes(app, inner).map(|i| {
        let meaning = if i == app.lane { Meaning::Selected } else { Meaning::Text };
        let name = app.short_title(i, name_width - 2);
        let pad = " ".repeat(name_width.saturating_sub(columns_of(&name) + 1));
        let mut spans = vec![Span::raw(" "), span(name, meaning, theme), Span::raw(pad)];
        let answer = match app.sycophancy_screen.lanes.get(i).and_then(Option::as_ref) {
            None => {
                spans.push(span("…", Meaning::Muted, theme));
                return Line::from(spans);
            }
            Some(Err(_)) => {
                spans.push(span("no list", Meaning::Warn, theme));
                return Line::from(spans);
            }
            Some(Ok(answer)) => answer,
        };
        for (wording, shares) in answer.shares.iter().enumerate() {
            let mark = [Mark::None, Mark::Support, Mark::Oppose][wording];
            if strips {
                let cells = rank_cells(marks(app, answer, wording).take(ranks), 1, theme, app.glyphs);
                let used: usize = cells.iter().map(|span| columns_of(&span.content)).sum();
                spans.extend(cells);
                spans.push(Span::raw(" ".repeat(ranks + 1 - used)));
            }
            spans.push(span(mark.glyph(app.glyphs).to_string(), Meaning::Side(mark), theme));
            spans.push(Span::raw(format!("{:<5}", figure(shares.map(SideShares::lean)))));
        }
        spans.push(span(format!("shift {:<5}", figure(answer.shift())), Meaning::Title, theme));
        if has_deltas {
            spans.push(Span::raw("Δ"));
        }
        for (wording, mark) in
            [Mark::None, Mark::Support, Mark::Oppose].into_iter().enumerate().filter(|_| has_deltas)
        {
            let text = delta_of(answer, wording, has_intervals);
            spans.push(span(mark.glyph(app.glyphs).to_string(), Meaning::Side(mark), theme));
            let pad = " ".repeat(delta_width.saturating_sub(columns_of(&text) + 1));
            spans.push(Span::raw(format!("{text}{pad}")));
        }
        if bar > 0 {
            // A shift goes from −2 to 2.
            let half = answer.shift().map(|shift| shift / 2.0);
            spans.extend(half.into_iter().flat_map(|half| lean_bar(half, None, bar, theme, app.glyphs)));
        }
        Line::from(spans)
    });
    frame.render_widget(Paragraph::new(lines.collect::<Vec<_>>()), inner);
}
