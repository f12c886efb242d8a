//! Which way the lanes lean, and whose passages they bring up.

use super::super::app::{App, Corpus, Screen};
use super::super::keymap::{Action, Context};
use super::super::message::Effect;
use super::{asking, comparing, leave, moving};
use crate::engine::Survey;

/// Opens the screen on the present question, or on the set where none was asked.
pub fn open(app: &mut App) -> Vec<Effect> {
    if !matches!(app.corpus, Corpus::Open(_)) {
        return Vec::new();
    }
    let asked = !app.question.text.is_empty();
    if !asked && !has_set(app) {
        app.notice = Some("ask a question first, or give a question set with --questions FILE".into());
        return Vec::new();
    }
    app.biasing.over_set = !asked;
    app.screen = Screen::Bias;
    ask(app)
}

/// An action on the screen.
pub fn act(app: &mut App, action: Action) -> Vec<Effect> {
    let categories = app.biasing.fields.as_ref().map_or(0, |fields| fields.categories.len()).max(1);
    let biasing = &mut app.biasing;
    match action {
        Action::NextField => (biasing.at, biasing.scroll) = ((biasing.at + 1) % categories, 0),
        Action::PreviousField => {
            (biasing.at, biasing.scroll) = ((biasing.at + categories - 1) % categories, 0);
        }
        Action::Down => {
            let last = biasing.category(biasing.at).map_or(0, |field| field.values.len().saturating_sub(1));
            biasing.scroll = (biasing.scroll + 1).min(last);
        }
        Action::Up => biasing.scroll = biasing.scroll.saturating_sub(1),
        Action::OnLanes => {
            if biasing.category(biasing.at).is_none() {
                app.notice = Some("the passages carry no field that could be shown".into());
                return Vec::new();
            }
            biasing.on_lanes = (biasing.on_lanes != Some(biasing.at)).then_some(biasing.at);
            return leave(app);
        }
        Action::OverSet if app.question.text.is_empty() => {
            let (back, ask) =
                (app.key(Context::Bias, Action::Back), app.key(Context::Lanes, Action::EditQuestion));
            app.notice = Some(format!("no question was asked; {back} goes back, {ask} asks one"));
        }
        Action::OverSet if !has_set(app) => {
            app.notice = Some("there is no question set; give one with --questions FILE".into());
        }
        Action::OverSet => {
            app.biasing.over_set = !app.biasing.over_set;
            return ask(app);
        }
        Action::NextLane | Action::PreviousLane => return moving::act(app, action),
        Action::NextLabelSource => {
            let before = app.book.source;
            moving::next_source(app);
            if app.book.source == before {
                return Vec::new();
            }
            let mut effects = ask(app);
            if !app.question.text.is_empty() {
                // Other labels may have to be judged deeper on the lanes too.
                effects.extend(asking::go_on(app));
            }
            return effects;
        }
        Action::Back => return leave(app),
        _ => {}
    }
    Vec::new()
}

fn has_set(app: &App) -> bool {
    matches!(&app.corpus, Corpus::Open(opened) if !opened.questions.is_empty())
}

/// Orders what is not known yet: the fields, and over the set every question's outcome.
pub fn ask(app: &mut App) -> Vec<Effect> {
    let over_set = app.biasing.over_set;
    let number = app.next_survey();
    if over_set {
        comparing::begin(app, number);
    } else if app.biasing.fields.is_some() {
        return vec![Effect::StopSurvey(number)];
    }
    vec![Effect::Survey(number, Survey::Bias(app.plan(), over_set))]
}
