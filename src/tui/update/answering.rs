//! The lanes' lists as a reader reads them: dropping, restoring and moving passages, and having them read.

use super::super::answering::{Answering, Edits};
use super::super::app::{App, Corpus, Screen};
use super::super::keymap::{Action, Context};
use super::super::message::Effect;
use super::{asking, leave, moving};
use crate::engine::{Heard, Hearing, Survey, Want};
use crate::read::probe::Probe;

/// Opens the screen on the present lists.
pub fn open(app: &mut App) -> Vec<Effect> {
    asking::read_line(app);
    let two = app.question.supports.is_some() && app.question.perspectives.len() == 2;
    if app.question.text.is_empty() {
        app.notice = Some("ask a question first".into());
    } else if !two && reader(app).is_none() {
        app.notice = Some(
            "only a question of two sides has a stance; i edits its statements, --reader, --llm or --answers give a reader"
                .into(),
        );
    } else {
        app.screen = Screen::Answer;
        let edits = vec![Edits::default(); app.lanes.len()];
        app.answering = Answering { edits, ..Answering::default() };
    }
    Vec::new()
}

/// The reader's name, and whether its answers were recorded.
fn reader(app: &App) -> Option<(String, bool)> {
    match &app.corpus {
        Corpus::Open(opened) => opened.reader.clone(),
        _ => None,
    }
}

/// An action on the screen.
pub fn act(app: &mut App, action: Action) -> Vec<Effect> {
    let last = app.rows(app.lane).len().saturating_sub(1);
    match action {
        Action::Down => app.answering.at = (app.answering.at + 1).min(last),
        Action::Up => app.answering.at = app.answering.at.min(last).saturating_sub(1),
        Action::NextLane | Action::PreviousLane => {
            moving::act(app, action);
            app.answering.at = 0;
            return give_up(app);
        }
        Action::Deeper | Action::Shallower => return moving::act(app, action),
        Action::NextLabelSource => return moving::act(app, action),
        Action::DropPassage => return drop(app),
        Action::PassageDown => return shift(app, 1),
        Action::PassageUp => return shift(app, -1),
        Action::Undo => match app.answering.past.pop() {
            Some((lane, edits)) => {
                app.answering.edits[lane] = edits;
                if app.lane != lane {
                    (app.lane, app.answering.at) = (lane, 0);
                }
                return give_up(app);
            }
            None => app.notice = Some("nothing was changed".into()),
        },
        Action::HaveRead => return have_read(app),
        Action::Probe(number) => return probe(app, number),
        Action::WithoutEach => return aside(app, Want::Without),
        Action::OtherOrders => return aside(app, Want::Reordered),
        Action::Back => {
            app.answering.going = false;
            return leave(app);
        }
        _ => {}
    }
    Vec::new()
}

/// Changes the list of the lane with the cursor; what was asked of the one before is given up.
fn change(app: &mut App, edits: Edits) -> Vec<Effect> {
    let lane = app.lane;
    if let Some(own) = app.answering.edits.get_mut(lane) {
        let before = std::mem::replace(own, edits);
        app.answering.past.push((lane, before));
    }
    give_up(app)
}

fn give_up(app: &mut App) -> Vec<Effect> {
    if !std::mem::take(&mut app.answering.going) {
        return Vec::new();
    }
    app.answering.number = app.next_survey();
    vec![Effect::StopSurvey(app.answering.number)]
}

fn drop(app: &mut App) -> Vec<Effect> {
    let Some(row) = app.rows(app.lane).get(app.answering.at).copied() else { return Vec::new() };
    let mut edits = app.answering.edits.get(app.lane).cloned().unwrap_or_default();
    if row.dropped {
        edits.dropped.retain(|at| *at != row.at);
    } else {
        edits.dropped.push(row.at);
    }
    change(app, edits)
}

fn shift(app: &mut App, by: isize) -> Vec<Effect> {
    let mut rows = app.rows(app.lane);
    let from = app.answering.at;
    let Some(to) = from.checked_add_signed(by).filter(|to| from.max(*to) < rows.len()) else {
        return Vec::new();
    };
    rows.swap(from, to);
    app.answering.at = to;
    let dropped = app.answering.edits.get(app.lane).map(|edits| edits.dropped.clone()).unwrap_or_default();
    change(app, Edits { order: rows.iter().map(|row| row.at).collect(), dropped })
}

/// Has the depths read that have no answer yet, or gives up what is being read.
fn have_read(app: &mut App) -> Vec<Effect> {
    if app.answering.going {
        return give_up(app);
    }
    if reader(app).is_none() {
        app.notice = Some(
            "nothing reads here: give a model with --reader or --llm, or recorded answers with --answers"
                .into(),
        );
        return Vec::new();
    }
    let known = app.answers().to_vec();
    let passages = app.contexts(app.lane);
    if known.len() == passages.len() {
        return Vec::new();
    }
    app.answering.read = app.kept(app.lane);
    let from = known.len();
    app.answering.answers = known;
    order(app, passages, Want::EachK(from))
}

fn order(app: &mut App, passages: Vec<crate::read::Context>, want: Want) -> Vec<Effect> {
    let number = app.next_survey();
    (app.answering.number, app.answering.going, app.answering.failed) = (number, true, None);
    let question = app.question.text.clone();
    let sides = app.question.sides().filter(|_| app.question.answers.is_empty());
    let sides = sides.map(|sides| sides.map(|side| app.question.perspectives[side].clone()));
    vec![Effect::Survey(number, Survey::Read(Hearing { question, sides, passages, want }))]
}

/// Has the whole list read without each passage, or in other orders.
fn aside(app: &mut App, want: Want) -> Vec<Effect> {
    if !app.is_read() {
        let key = app.key(Context::Answer, Action::HaveRead);
        app.notice = Some(format!("the list has no answer yet; {key} has it read"));
        return Vec::new();
    }
    let kept = app.kept(app.lane);
    let answering = &mut app.answering;
    if answering.aside != kept {
        (answering.aside, answering.reordered) = (kept, None);
        (answering.without, answering.attention) = (Vec::new(), Vec::new());
    }
    match want {
        Want::Without => answering.without.clear(),
        _ => answering.reordered = None,
    }
    let passages = app.contexts(app.lane);
    order(app, passages, want)
}

/// Keeps what a probe keeps, in one change.
fn probe(app: &mut App, number: usize) -> Vec<Effect> {
    let Some(probe) = Probe::all().nth(number) else { return Vec::new() };
    let pattern = match app.pattern() {
        None => {
            app.notice = Some("a probe needs gold answers: questions carry them as `answers`".into());
            return Vec::new();
        }
        Some(_) if !app.is_read() => {
            let key = app.key(Context::Answer, Action::HaveRead);
            app.notice = Some(format!("the list has no answer at every depth yet; {key} has it read"));
            return Vec::new();
        }
        Some(pattern) => pattern,
    };
    let effects = pattern.effects();
    let (kept, stays) = (app.kept(app.lane), probe.keep(&effects));
    let mut edits = app.answering.edits.get(app.lane).cloned().unwrap_or_default();
    edits.dropped.extend((0..kept.len()).filter(|place| !stays.contains(place)).map(|place| kept[place]));
    let key = app.key(Context::Answer, Action::Undo);
    app.notice = Some(format!("{probe} keeps {} of {}; {key} takes it back", stays.len(), kept.len()));
    change(app, edits)
}

/// The engine told something that was read.
pub fn heard(app: &mut App, number: u64, heard: Heard) {
    let answering = &mut app.answering;
    if number != answering.number || !answering.going {
        return;
    }
    match heard {
        Heard::Answer(k, answer) if k == answering.answers.len() + 1 => answering.answers.push(answer),
        Heard::Without(place, answer) if place == answering.without.len() => answering.without.push(answer),
        Heard::Attention(shares) => answering.attention = shares,
        Heard::Reordered(reordered) => answering.reordered = Some(reordered),
        Heard::Ended(failed) => (answering.going, answering.failed) = (false, failed),
        Heard::Answer(..) | Heard::Without(..) => {}
    }
}
