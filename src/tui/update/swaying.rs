//! The lanes asked neutrally, as the supporting statement and as the opposing one.

use super::super::app::{App, Screen, Swaying};
use super::super::keymap::Action;
use super::super::message::Effect;
use super::{asking, leave, moving};
use crate::engine::Survey;

/// Opens the screen and asks all lanes.
pub fn open(app: &mut App) -> Vec<Effect> {
    asking::read_line(app);
    if app.question.supports.is_none() || app.question.perspectives.len() != 2 {
        app.notice =
            Some("only a question of two sides can be asked as either; i edits its statements".into());
        return Vec::new();
    }
    app.screen = Screen::Sway;
    ask(app)
}

/// An action on the screen.
pub fn act(app: &mut App, action: Action) -> Vec<Effect> {
    match action {
        Action::NextLane | Action::PreviousLane => return moving::act(app, action),
        Action::NextLabelSource => {
            moving::next_source(app);
            return ask(app);
        }
        Action::Back => return leave(app),
        _ => {}
    }
    Vec::new()
}

/// Orders the answers of all lanes.
pub fn ask(app: &mut App) -> Vec<Effect> {
    let number = app.next_survey();
    app.swaying = Swaying { number, lanes: vec![None; app.lanes.len()] };
    vec![Effect::Survey(number, Survey::Sway(app.plan()))]
}
