//! A session that is played, and one that is recorded. While one is played, its acts are heard and the keys of whoever watches
//! steer it; it leaves no labels, pictures or recordings, and nothing on the clipboard. What the engine keeps in the data folder of any
//! corpus that is opened (passages, indices, vectors, verdicts), it keeps here too.

use std::time::Duration;

use crossterm::event::{KeyCode, KeyEvent, KeyModifiers};

use super::super::app::{App, Screen};
use super::super::message::{Effect, Msg, Recording};
use super::super::script::Step;
use super::super::session::Act;
use super::super::settled::settled;
use super::heard;
use crate::engine::Labelling;

/// Acts done before the next frame, so that whoever watches is heard in a session without pauses.
const BURST: usize = 256;

/// Time has passed: does what was to be done by now; the rest of very much in the next frames.
pub fn pass(app: &mut App, time: Duration) -> Vec<Effect> {
    let mut effects = Vec::new();
    if let Some(replay) = &mut app.replay {
        replay.pass(time);
    }
    for _ in 0..BURST {
        let all_here = settled(app);
        let Some(replay) = &mut app.replay else { break };
        if replay.ended() {
            end(app, "The replay has ended");
            break;
        }
        match replay.due(all_here) {
            Some(act) => effects.extend(perform(app, act)),
            None => break,
        }
    }
    effects
}

fn perform(app: &mut App, act: Act) -> Vec<Effect> {
    let msg = match act {
        Act::Say(words) => {
            if let Some(replay) = &mut app.replay {
                replay.caption = words;
            }
            return Vec::new();
        }
        Act::Paste(text) => Msg::Pasted(text),
        Act::Step(Step::Wait) => return Vec::new(),
        Act::Step(Step::Key(key)) => Msg::Key(key),
        Act::Step(Step::Mouse(mouse)) => {
            let size = app.replay.as_ref().map(|replay| replay.size);
            if size.is_some_and(|size| size != app.size) {
                app.notice = Some("left out: a click in a terminal of another size".into());
                return Vec::new();
            }
            Msg::Mouse(mouse)
        }
        Act::Step(Step::Resize(size)) => {
            let filmed = app.replay.as_mut().is_some_and(|replay| {
                replay.size = size;
                replay.filmed
            });
            // The terminal of whoever watches keeps its own.
            if !filmed {
                return Vec::new();
            }
            Msg::Resized(size)
        }
    };
    // Tried on a copy: what would leave something behind is not done at all.
    let mut tried = app.clone();
    let effects = heard(&mut tried, msg);
    match effects.iter().find_map(left_out) {
        Some(what) => {
            app.notice = Some(format!("left out of the replay: {what}"));
            Vec::new()
        }
        None => {
            *app = tried;
            effects
        }
    }
}

/// What an order would leave behind, or end, and so does not happen in a replay.
fn left_out(effect: &Effect) -> Option<&'static str> {
    match effect {
        Effect::Label(Labelling::Write(_) | Labelling::Undo | Labelling::Redo) => Some("a label by hand"),
        Effect::SaveFrame => Some("saving a picture"),
        Effect::Copy(_) => Some("copying"),
        Effect::Record | Effect::StopRecording => Some("recording"),
        Effect::Suspend | Effect::Quit => Some("leaving the program"),
        _ => None,
    }
}

/// A key of whoever watches.
pub fn press(app: &mut App, key: KeyEvent) -> Vec<Effect> {
    let Some(replay) = &mut app.replay else { return Vec::new() };
    match key.code {
        KeyCode::Char('c') if key.modifiers.contains(KeyModifiers::CONTROL) => return vec![Effect::Quit],
        // While the program sleeps, nothing is played.
        KeyCode::Char('z') if key.modifiers.contains(KeyModifiers::CONTROL) => {
            replay.paused = true;
            return vec![Effect::Suspend];
        }
        KeyCode::Esc | KeyCode::Char('q') => end(app, "You have left the replay"),
        KeyCode::Char(' ') => replay.paused = !replay.paused,
        KeyCode::Right => replay.hurry(true),
        KeyCode::Left => replay.hurry(false),
        KeyCode::Enter => {
            replay.paused = false;
            replay.skip();
        }
        // Whoever presses something else wants to look around, and is not to be run away from.
        _ => replay.paused = true,
    }
    pass(app, Duration::ZERO)
}

/// The keys are the user's own again.
fn end(app: &mut App, how: &str) {
    let Some(mut replay) = app.replay.take() else { return };
    replay.exchange(app);
    if !replay.filmed {
        app.notice = Some(format!("{how}: now the keys are yours."));
    }
}

/// `R`: begins a recording, or ends it.
pub fn record(app: &mut App) -> Vec<Effect> {
    if app.recording.is_some() {
        return vec![Effect::StopRecording];
    }
    if app.screen != Screen::Explore {
        app.notice = Some("A recording begins in the lanes: go back to them first.".into());
        return Vec::new();
    }
    vec![Effect::Record]
}

/// What became of a recording.
pub fn recorded(app: &mut App, what: Recording) {
    let (recording, notice) = match what {
        Recording::Began(name, apart) => {
            // What has to be known comes first: a line of a small terminal has no room for both.
            let notice = match apart.join(", ") {
                all if all.is_empty() => format!("Recording in {name}; the same key ends it."),
                all => format!("Recording in {name}; to play it, name again: {all}"),
            };
            (Some(name), notice)
        }
        Recording::Ended(name) => (None, format!("Recorded in {name}; to play it: parallax demo {name}")),
        Recording::Failed(reason) => (None, format!("Nothing is recorded any more: {reason}")),
    };
    (app.recording, app.notice) = (recording, Some(notice));
}
