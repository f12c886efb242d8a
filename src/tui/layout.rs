//! The positions of the panes, for drawing and for the mouse.

use ratatui::layout::{Position, Rect};

use super::app::{App, Lane};
use super::keymap::Screen;
use super::widgets::text::{columns_of, wrap};
use crate::report::safe;

/// The most lanes shown side by side.
const MAX_LANES: u16 = 6;

/// The lanes shown in large.
const PRESENTED: u16 = 2;

/// Dragging cannot make a lane narrower than this.
const MIN_WIDTH: u32 = 16;

/// The most rows of a notice.
const NOTICE_ROWS: usize = 3;

/// Empty columns on either side of the caption.
pub const CAPTION_MARGIN: u16 = 1;

/// The panes of the terminal. A pane without room is empty.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Panes {
    /// The question line.
    pub question: Rect,
    /// The statements.
    pub statements: Rect,
    /// The names of all lanes, if the lanes do not fit side by side.
    pub tabs: Rect,
    /// The lanes that are shown.
    pub lanes: Vec<LanePanes>,
    /// The caption of a replay.
    pub caption: Rect,
    /// Progress of jobs, and notices.
    pub status: Rect,
    /// What the figures mean, if there is room for it.
    pub legend: Rect,
    /// The keys.
    pub footer: Rect,
    /// The area between header and footer, which a screen fills.
    pub body: Rect,
}

/// One lane's panes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LanePanes {
    /// The index of the lane.
    pub lane: usize,
    /// The lane with its frame.
    pub outer: Rect,
    /// Its passages.
    pub list: Rect,
    /// Its figures.
    pub figures: Rect,
    /// Rows per passage.
    pub rows: u16,
}

impl LanePanes {
    /// How many passages are shown at once.
    pub fn shown(&self) -> usize {
        usize::from(self.list.height / self.rows.max(1))
    }
}

/// Arranges the panes for the terminal's present size.
pub fn panes(app: &App) -> Panes {
    arrange(Rect::new(0, 0, app.size.width, app.size.height), app)
}

/// Arranges the panes in `area`.
pub fn arrange(area: Rect, app: &App) -> Panes {
    let mut rest = area;
    let question = take_top(&mut rest, 1);
    let footer = if area.height >= 4 { take_bottom(&mut rest, 1) } else { Rect::ZERO };
    let statements = take_top(&mut rest, statement_rows(area, app));
    // As many rows as the longest caption needs, so that nothing moves between captions.
    let caption_width = usize::from(area.width.saturating_sub(2 * CAPTION_MARGIN));
    let words = app.replay.as_ref().map_or(0, |replay| replay.caption_rows(caption_width) as u16);
    let caption = if area.height >= 8 { take_bottom(&mut rest, words) } else { Rect::ZERO };
    let shows_status = app.notice.is_some() || !app.jobs.is_empty() || app.filtered();
    // The body keeps four rows.
    let rows =
        if shows_status { status_rows(app, area.width).max(1).min(rest.height.saturating_sub(4)) } else { 0 };
    let status = if rows > 0 { take_bottom(&mut rest, rows) } else { Rect::ZERO };
    let legend = if has_legend(area, app) { take_bottom(&mut rest, 1) } else { Rect::ZERO };
    let body = rest;
    let (tabs, lanes) = side_by_side(body, app);
    Panes { question, statements, tabs, lanes, caption, status, legend, footer, body }
}

/// Divides `rest` among the lanes around the cursor: the area of all names, if not all lanes fit, and the lanes.
pub fn side_by_side(mut rest: Rect, app: &App) -> (Rect, Vec<LanePanes>) {
    let count = app.lanes.len().max(1) as u16;
    let most = if app.in_large() { PRESENTED } else { MAX_LANES };
    let fits = (rest.width / app.layout.lane_width.max(1)).clamp(1, most.min(count));
    let tabs = if fits < count && rest.height > 4 { take_top(&mut rest, 1) } else { Rect::ZERO };
    let first = app.lane.saturating_sub(usize::from(fits) - 1).min(usize::from(count - fits));
    let width = |lane: usize| app.lanes.get(lane).map_or(Lane::WIDTH, |lane| lane.width);
    let places = first..first + usize::from(fits);
    let all: u32 = places.clone().map(width).sum();
    let edge = |lane: usize| {
        let before: u32 = (first..lane).map(width).sum();
        rest.x + (u32::from(rest.width) * before / all.max(1)) as u16
    };
    let lanes = places.map(|lane| {
        let (left, right) = (edge(lane), edge(lane + 1));
        lane_panes(lane, Rect { x: left, width: right - left, ..rest }, app)
    });
    (tabs, if rest.height >= 3 && rest.width >= 8 { lanes.collect() } else { Vec::new() })
}

/// Whether a line says what the figures of the lanes mean.
fn has_legend(area: Rect, app: &App) -> bool {
    let figures = app.screen == Screen::LANES && !app.presenting && !app.question.perspectives.is_empty();
    figures && area.height >= 36 && area.width >= 100
}

/// The columns of a lane beside the text of another screen.
const BESIDE: u16 = 50;

/// The area of a lane beside the text of another screen; empty without room.
pub fn beside(app: &App, area: Rect) -> Rect {
    if app.size.width < 120 || app.size.height < 16 || area.width <= BESIDE {
        return Rect::ZERO;
    }
    Rect { x: area.right() - BESIDE, width: BESIDE, ..area }
}

/// The jobs in progress, in words.
pub fn progress(app: &App) -> String {
    app.jobs.iter().map(|(_, words)| words.as_str()).collect::<Vec<_>>().join(" · ")
}

/// The number of rows that a notice or the progress of jobs needs.
fn status_rows(app: &App, width: u16) -> u16 {
    let text = match &app.notice {
        Some(notice) => safe::line(notice),
        None if app.filtered() => return 1,
        None => progress(app),
    };
    wrap(&text, usize::from(width).saturating_sub(1), NOTICE_ROWS).len() as u16
}

fn statement_rows(area: Rect, app: &App) -> u16 {
    match (app.question.perspectives.len(), area.height) {
        (_, 0..8) => 0,
        (0..=2, _) | (_, 8..20) => 1,
        _ => 2,
    }
}

/// Divides a lane's area.
pub fn lane_panes(lane: usize, outer: Rect, app: &App) -> LanePanes {
    let mut inner = Rect {
        x: outer.x + 1,
        y: outer.y + 1,
        width: outer.width.saturating_sub(2),
        height: outer.height.saturating_sub(2),
    };
    // Texts give way first, then the lines of the figures: the two other wordings, then the sentence.
    let figures = match inner.height {
        _ if app.in_large() => 0,
        _ if app.question.perspectives.is_empty() && !app.question.text.is_empty() => 0,
        0..4 => 0,
        4..8 => 1,
        8..11 => 3,
        _ => 5,
    };
    // A line separates passages and figures.
    let ruled = u16::from(figures > 1);
    let figures = take_bottom(&mut inner, figures);
    take_bottom(&mut inner, ruled);
    let rows = (inner.height / app.k.clamp(3, 8) as u16).clamp(1, app.layout.passage_rows.max(1));
    LanePanes { lane, outer, list: inner, figures, rows }
}

fn take_top(rest: &mut Rect, rows: u16) -> Rect {
    let rows = rows.min(rest.height);
    let taken = Rect { height: rows, ..*rest };
    rest.y += rows;
    rest.height -= rows;
    taken
}

fn take_bottom(rest: &mut Rect, rows: u16) -> Rect {
    let rows = rows.min(rest.height);
    rest.height -= rows;
    Rect { y: rest.y + rest.height, height: rows, ..*rest }
}

/// The lanes' names above them, each between two blanks and after a third, in a row of this width.
pub fn tab_names(app: &App, width: u16) -> Vec<String> {
    let (titles, width) = (app.titles(), usize::from(width));
    if titles.iter().map(|title| columns_of(title) + 3).sum::<usize>() <= width {
        return titles;
    }
    let each = (width / titles.len().max(1)).saturating_sub(3);
    (0..titles.len()).map(|i| app.short_title(i, each)).collect()
}

/// The lane and the passage at a position, by their indices.
pub fn passage_at(panes: &Panes, app: &App, at: Position) -> Option<(usize, Option<usize>)> {
    let pane = panes.lanes.iter().find(|pane| pane.outer.contains(at))?;
    let row = pane.list.contains(at).then(|| usize::from((at.y - pane.list.y) / pane.rows.max(1)));
    let lane = &app.lanes[pane.lane];
    let passage = row.and_then(|row| app.shown(lane).get(row + lane.top).copied());
    Some((pane.lane, passage))
}

/// The lane whose right border is at a position; the next lane shares the border.
pub fn border_at(panes: &Panes, at: Position) -> Option<usize> {
    let pairs = panes.lanes.iter().zip(panes.lanes.iter().skip(1));
    let border =
        |x: u16, left: &LanePanes, right: &LanePanes| x + 1 == left.outer.right() || x == right.outer.x;
    let hit = |(left, right): &(&LanePanes, &LanePanes)| {
        (left.outer.top()..left.outer.bottom()).contains(&at.y) && border(at.x, left, right)
    };
    pairs.filter(hit).map(|(left, _)| left.lane).next()
}

/// The widths of two neighbouring lanes after their border was dragged to a column.
pub fn drag_border(panes: &Panes, app: &App, lane: usize, column: u16) -> Option<(u32, u32)> {
    let place = panes.lanes.iter().position(|pane| pane.lane == lane)?;
    let (left, right) = (panes.lanes.get(place)?.outer, panes.lanes.get(place + 1)?.outer);
    let room = u32::from(left.width + right.width);
    let most = room.checked_sub(MIN_WIDTH).filter(|most| *most >= MIN_WIDTH)?;
    let wanted = (u32::from(column.saturating_sub(left.x)) + 1).clamp(MIN_WIDTH, most);
    let both = app.lanes.get(lane)?.width + app.lanes.get(lane + 1)?.width;
    let width = (both * wanted).div_ceil(room);
    Some((width, both - width))
}

/// The area of the open passage's text: the rows below its heading.
pub fn reading_text(app: &App, body: Rect, heading: u16) -> Rect {
    let room = body.width - beside(app, body).width;
    let mut rest =
        Rect { x: body.x + u16::from(body.width > 4) * 2, width: room.saturating_sub(4).min(100), ..body };
    take_top(&mut rest, heading);
    rest
}

/// How many passages of a lane are visible at once.
pub fn visible(app: &App) -> usize {
    panes(app).lanes.first().map_or(1, |pane| pane.shown()).max(1)
}

/// Scrolls every lane so that its marked passage is on screen.
pub fn keep_in_view(app: &mut App) {
    let rows = visible(app);
    for i in 0..app.lanes.len() {
        let places = app.shown(&app.lanes[i]);
        let lane = &mut app.lanes[i];
        // The nearest passage above that passes the filter, else the first.
        let at = places.partition_point(|place| *place <= lane.selected).saturating_sub(1);
        lane.selected = places.get(at).copied().unwrap_or(0);
        lane.top = lane.top.clamp((at + 1).saturating_sub(rows), at);
    }
}
