//! Where everything stands. Drawing and the mouse both ask here.

use ratatui::layout::{Position, Rect};

use super::app::{App, Lane};
use super::draw::{footer, replay};

/// Lanes that are shown side by side at most.
const MOST: u16 = 6;

/// Columns that a lane keeps whatever is dragged.
const NARROWEST: u32 = 16;

/// The panes of the explore screen. A pane that has no room is empty.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Panes {
    /// The question line.
    pub question: Rect,
    /// The statements.
    pub statements: Rect,
    /// The names of all lanes, where they do not fit side by side.
    pub tabs: Rect,
    /// The lanes that are shown.
    pub lanes: Vec<LanePanes>,
    /// What is said beside a session that is played.
    pub caption: Rect,
    /// Progress and notices.
    pub status: Rect,
    /// Keys.
    pub footer: Rect,
    /// Everything between header and footer: what Read and Help fill.
    pub body: Rect,
}

/// One lane's panes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LanePanes {
    /// Which lane, from 0.
    pub lane: usize,
    /// With its frame.
    pub outer: Rect,
    /// Its passages.
    pub list: Rect,
    /// Its figures.
    pub figures: Rect,
    /// Rows a passage takes.
    pub rows: u16,
}

impl LanePanes {
    /// How many passages are shown at once.
    pub fn shown(&self) -> usize {
        usize::from(self.list.height / self.rows.max(1))
    }
}

/// Arranges the panes of the explore screen in `area`.
pub fn arrange(area: Rect, app: &App) -> Panes {
    let mut rest = area;
    let question = take_top(&mut rest, 1);
    let footer = if area.height >= 4 { take_bottom(&mut rest, 1) } else { Rect::ZERO };
    let statements = take_top(&mut rest, statement_rows(area, app));
    let words = app.replay.as_ref().map_or(0, |replay| replay::rows(replay, area.width));
    let caption = if area.height >= 8 { take_bottom(&mut rest, words) } else { Rect::ZERO };
    let telling = app.notice.is_some() || !app.jobs.is_empty() || app.filtered();
    // Four rows are left to the body.
    let rows =
        if telling { footer::rows(app, area.width).max(1).min(rest.height.saturating_sub(4)) } else { 0 };
    let status = if rows > 0 { take_bottom(&mut rest, rows) } else { Rect::ZERO };
    let body = rest;
    let count = app.lanes.len().max(1) as u16;
    let fits = (rest.width / app.layout.lane_width.max(1)).clamp(1, MOST.min(count));
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
    let lanes = if rest.height >= 3 && rest.width >= 8 { lanes.collect() } else { Vec::new() };
    Panes { question, statements, tabs, lanes, caption, status, footer, body }
}

fn statement_rows(area: Rect, app: &App) -> u16 {
    match (app.question.perspectives.len(), area.height) {
        (_, 0..8) => 0,
        (0..=2, _) | (_, 8..20) => 1,
        _ => 2,
    }
}

fn lane_panes(lane: usize, outer: Rect, app: &App) -> LanePanes {
    let mut inner = Rect {
        x: outer.x + 1,
        y: outer.y + 1,
        width: outer.width.saturating_sub(2),
        height: outer.height.saturating_sub(2),
    };
    let many = app.question.perspectives.len() > 2;
    let figures = match inner.height {
        0..4 => 0,
        4..12 => 1,
        _ if many => 5,
        _ => 4,
    };
    // A rule stands between passages and figures where there is room for it.
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

/// The lane and the passage, from 0, that stand at a place.
pub fn passage_at(panes: &Panes, app: &App, at: Position) -> Option<(usize, Option<usize>)> {
    let pane = panes.lanes.iter().find(|pane| pane.outer.contains(at))?;
    let row = pane.list.contains(at).then(|| usize::from((at.y - pane.list.y) / pane.rows.max(1)));
    let lane = &app.lanes[pane.lane];
    let passage = row.and_then(|row| app.shown(lane).get(row + lane.top).copied());
    Some((pane.lane, passage))
}

/// The lane whose right border, shared with the lane beside it, stands at a place.
pub fn border_at(panes: &Panes, at: Position) -> Option<usize> {
    let pairs = panes.lanes.iter().zip(panes.lanes.iter().skip(1));
    let border =
        |x: u16, left: &LanePanes, right: &LanePanes| x + 1 == left.outer.right() || x == right.outer.x;
    let found = |(left, right): &(&LanePanes, &LanePanes)| {
        (left.outer.top()..left.outer.bottom()).contains(&at.y) && border(at.x, left, right)
    };
    pairs.filter(found).map(|(left, _)| left.lane).next()
}

/// The widths of two lanes beside each other once the border between them was dragged to a column.
pub fn dragged(panes: &Panes, app: &App, lane: usize, column: u16) -> Option<(u32, u32)> {
    let place = panes.lanes.iter().position(|pane| pane.lane == lane)?;
    let (left, right) = (panes.lanes.get(place)?.outer, panes.lanes.get(place + 1)?.outer);
    let room = u32::from(left.width + right.width);
    let most = room.checked_sub(NARROWEST).filter(|most| *most >= NARROWEST)?;
    let wanted = (u32::from(column.saturating_sub(left.x)) + 1).clamp(NARROWEST, most);
    let both = app.lanes.get(lane)?.width + app.lanes.get(lane + 1)?.width;
    let width = (both * wanted).div_ceil(room);
    Some((width, both - width))
}

/// The text of an open passage, within the body: rows left after its heading.
pub fn reading_text(body: Rect, heading: u16) -> Rect {
    let mut rest = Rect {
        x: body.x + u16::from(body.width > 4) * 2,
        width: body.width.saturating_sub(4).min(100),
        ..body
    };
    take_top(&mut rest, heading);
    rest
}
