//! Adding, dropping and ordering lanes.

use super::super::app::{App, Lane};
use super::super::keymap::{Action, Context};
use super::super::message::Effect;
use super::{asking, moving};

/// More do not fit on any screen.
const MOST: usize = 6;

/// Opens another lane like the one with the cursor, to its right.
pub fn copy(app: &mut App) -> Vec<Effect> {
    if app.lanes.len() >= MOST {
        let key = app.key(Context::Lanes, Action::DropLane);
        app.notice = Some(format!("there are at most {MOST} lanes; {key} drops one"));
        return Vec::new();
    }
    let Some(lane) = app.lanes.get(app.lane) else { return Vec::new() };
    let copy = Lane { before: None, ..lane.clone() };
    app.lanes.insert(app.lane + 1, copy);
    app.lane += 1;
    asking::go_on(app)
}

/// Drops the lane with the cursor; one always stays.
pub fn drop(app: &mut App) -> Vec<Effect> {
    if app.lanes.len() == 1 {
        app.notice = Some("this is the last lane".into());
        return Vec::new();
    }
    let dropped = app.lanes.remove(app.lane);
    app.notice = Some(format!("dropped {}", dropped.recipe));
    app.lane = app.lane.min(app.lanes.len() - 1);
    asking::go_on(app)
}

/// Moves the lane with the cursor past its neighbour.
pub fn shift(app: &mut App, by: isize) -> Vec<Effect> {
    let Some(other) = app.lane.checked_add_signed(by).filter(|other| *other < app.lanes.len()) else {
        return Vec::new();
    };
    app.lanes.swap(app.lane, other);
    app.lane = other;
    moving::keep_in_view(app);
    asking::go_on(app)
}
