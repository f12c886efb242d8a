//! The open passage: scrolling, going on to the next, asking for evidence.

use super::super::app::{App, LaneState, Screen};
use super::super::draw;
use super::super::keymap::Action;
use super::super::message::Effect;
use super::moving;
use crate::engine::Study;

/// An action while reading.
pub fn act(app: &mut App, action: Action) -> Vec<Effect> {
    let page = draw::read::shown_lines(app).max(1);
    match action {
        Action::Down => app.reading.scroll += 1,
        Action::Up => app.reading.scroll = app.reading.scroll.saturating_sub(1),
        Action::PageDown => app.reading.scroll += page,
        Action::PageUp => app.reading.scroll = app.reading.scroll.saturating_sub(page),
        Action::First => app.reading.scroll = 0,
        Action::Last => app.reading.scroll = usize::MAX / 2,
        Action::NextPassage => return go(app, Action::Down),
        Action::PreviousPassage => return go(app, Action::Up),
        Action::NextLane => return go(app, Action::NextLane),
        Action::NextLabelSource => {
            moving::next_source(app);
            return evidence(app);
        }
        Action::Back => app.screen = Screen::Explore,
        _ => {}
    }
    keep_in_view(app);
    Vec::new()
}

fn go(app: &mut App, action: Action) -> Vec<Effect> {
    moving::act(app, action);
    if app.selected().is_none() {
        app.screen = Screen::Explore;
        return Vec::new();
    }
    open(app)
}

/// Shows the marked passage from its top.
pub fn open(app: &mut App) -> Vec<Effect> {
    app.reading.scroll = 0;
    evidence(app)
}

/// Keeps the last line of the text on screen.
pub fn keep_in_view(app: &mut App) {
    if app.screen == Screen::Read {
        let last = draw::read::lines(app).saturating_sub(draw::read::shown_lines(app));
        app.reading.scroll = app.reading.scroll.min(last);
    }
}

/// Orders the evidence for the perspectives that the open passage supports, once each.
pub fn evidence(app: &mut App) -> Vec<Effect> {
    let Some((at, passage)) = app.open_passage().filter(|_| app.screen == Screen::Read) else {
        return Vec::new();
    };
    let Some(lane) = app.lanes.get(app.lane) else { return Vec::new() };
    let known = |(of, recipe, _): &(_, _, _)| *of == at && *recipe == lane.recipe;
    let list = (!app.reading.why.as_ref().is_some_and(known) && lane.state == LaneState::Ready)
        .then(|| (lane.ranking.clone(), lane.recipe.clone(), app.question.text.clone()));
    let supported = app.supported(at);
    let asked = app.reading.asked.get(&at).is_some_and(|asked| *asked == supported);
    if (supported.is_empty() || asked) && list.is_none() {
        return Vec::new();
    }
    // An order for the reasons alone would end the search for evidence that goes on.
    let sought = supported.iter().filter(|i| !app.reading.evidence.contains_key(&(at, **i)));
    let statements = sought.map(|i| (*i, app.question.perspectives[*i].clone())).collect();
    // The order takes the place of an earlier one: what that did not find in time is asked for again on return.
    let reading = &mut app.reading;
    reading.asked.retain(|other, all| all.iter().all(|i| reading.evidence.contains_key(&(*other, *i))));
    reading.asked.insert(at, supported);
    app.studies += 1;
    vec![Effect::Study(Study { number: app.studies, at, passage, statements, list })]
}
