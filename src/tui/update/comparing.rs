//! The lanes over the question set.

use tui_input::Input;

use super::super::app::{App, Comparing, Corpus, Order, Screen};
use super::super::keymap::Action;
use super::super::message::Effect;
use super::{asking, leave, moving};
use crate::engine::Survey;

/// Opens the screen and puts the whole set to all lanes.
pub fn open(app: &mut App) -> Vec<Effect> {
    let Corpus::Open(opened) = &app.corpus else { return Vec::new() };
    if opened.questions.is_empty() {
        app.notice = Some("there is no question set; give one with --questions FILE".into());
        return Vec::new();
    }
    app.screen = Screen::Compare;
    ask(app)
}

/// An action on the screen.
pub fn act(app: &mut App, action: Action) -> Vec<Effect> {
    let last = app.comparing.questions.len().saturating_sub(1);
    let page = usize::from(app.size.height / 2).max(1);
    let comparing = &mut app.comparing;
    match action {
        Action::Down => comparing.at = (comparing.at + 1).min(last),
        Action::Up => comparing.at = comparing.at.saturating_sub(1),
        Action::PageDown => comparing.at = (comparing.at + page).min(last),
        Action::PageUp => comparing.at = comparing.at.saturating_sub(page),
        Action::First => comparing.at = 0,
        Action::Last => comparing.at = last,
        Action::NextOrder => {
            comparing.order = match comparing.order {
                Order::Set => Order::Disagreement,
                Order::Disagreement => Order::Worst,
                Order::Worst => Order::Set,
            };
            comparing.at = 0;
        }
        Action::NextLane | Action::PreviousLane => return moving::act(app, action),
        Action::NextLabelSource => {
            moving::next_source(app);
            return ask(app);
        }
        Action::OpenQuestion => return question(app),
        Action::Back => return leave(app),
        _ => {}
    }
    Vec::new()
}

/// Orders the outcome of every question.
pub fn ask(app: &mut App) -> Vec<Effect> {
    let number = app.next_survey();
    begin(app, number);
    vec![Effect::Survey(number, Survey::Compare(app.plan()))]
}

/// Forgets what is known of the set, which that survey will tell anew.
pub fn begin(app: &mut App, number: u64) {
    let Corpus::Open(opened) = &app.corpus else { return };
    app.comparing = Comparing {
        number,
        questions: vec![None; opened.questions.len()],
        at: app.comparing.at,
        order: app.comparing.order,
    };
}

/// Opens the marked question with the same lanes.
fn question(app: &mut App) -> Vec<Effect> {
    let Some(row) = app.comparing.rows(app.lane).get(app.comparing.at).copied() else { return Vec::new() };
    let Corpus::Open(opened) = &app.corpus else { return Vec::new() };
    let Some(question) = opened.questions.get(row) else { return Vec::new() };
    app.line = Input::new(question.text.clone());
    let mut effects = leave(app);
    effects.extend(asking::ask(app));
    effects
}
