//! The question line: typing, completing, asking.

use std::time::Duration;

use crossterm::event::{Event, KeyCode, KeyEvent, KeyModifiers};
use tui_input::Input;
use tui_input::backend::crossterm::EventHandler;

use super::super::app::{App, Corpus, LaneState, Reading};
use super::super::keymap::Action;
use super::super::message::Effect;
use super::pasting::LONGEST;
use crate::engine::{Reach, Turn};
use crate::pipeline::Book;
use crate::question::{By, Question, statements};

/// A pause after which the term lanes are asked.
const SHORT: Duration = Duration::from_millis(60);
/// A pause after which all lanes are asked.
const LONG: Duration = Duration::from_millis(300);
/// Completions that are offered at once.
const OFFERED: usize = 8;

/// An action in the question line.
pub fn act(app: &mut App, action: Action) -> Vec<Effect> {
    match action {
        Action::Ask => {
            if let Some(chosen) = app.completion.and_then(|i| app.completions.get(i)).cloned() {
                app.line = Input::new(chosen);
            }
            return ask(app);
        }
        Action::Complete => {
            let chosen = app.completion.or((!app.completions.is_empty()).then_some(0));
            if let Some(chosen) = chosen.and_then(|i| app.completions.get(i)).cloned() {
                app.line = Input::new(chosen);
                return changed(app);
            }
        }
        Action::NextCompletion if app.completion.is_none() && app.history.recalls() => {
            let newer = app.history.newer();
            return recall(app, newer);
        }
        Action::PreviousCompletion if app.completion.is_none() => {
            let older = app.history.older(app.line.value());
            return recall(app, older);
        }
        Action::NextCompletion if !app.completions.is_empty() => {
            app.completion = Some(app.completion.map_or(0, |i| (i + 1).min(app.completions.len() - 1)));
        }
        Action::PreviousCompletion => app.completion = app.completion.and_then(|i| i.checked_sub(1)),
        Action::Back => leave(app),
        _ => {}
    }
    Vec::new()
}

/// Puts a question asked before into the line, if there is one.
fn recall(app: &mut App, question: Option<String>) -> Vec<Effect> {
    let Some(question) = question else { return Vec::new() };
    app.line = Input::new(question);
    let effects = changed(app);
    // Who goes through what was asked does not look for more.
    app.completions.clear();
    effects
}

/// A key that edits the line.
pub fn edit(app: &mut App, key: KeyEvent) -> Vec<Effect> {
    let adds = matches!(key.code, KeyCode::Char(_)) && (key.modifiers - KeyModifiers::SHIFT).is_empty();
    if adds && app.line.value().chars().count() >= LONGEST {
        app.notice = Some(format!("a question has at most {LONGEST} characters"));
        return Vec::new();
    }
    match app.line.handle_event(&Event::Key(key)) {
        Some(change) if change.value => {
            app.history.forget();
            changed(app)
        }
        _ => Vec::new(),
    }
}

/// The line has another text: it is asked after a pause.
pub fn changed(app: &mut App) -> Vec<Effect> {
    complete(app);
    app.turn = Turn(app.turn.0 + 1);
    let turn = app.turn;
    app.settled = false;
    [(SHORT, Reach::Terms), (LONG, Reach::All)]
        .map(|(pause, reach)| Effect::WaitQuiet { turn, reach, pause })
        .to_vec()
}

/// Offers the questions of the set that hold every word typed.
pub fn complete(app: &mut App) {
    app.completion = None;
    app.completions.clear();
    let Corpus::Open(opened) = &app.corpus else { return };
    let typed = app.line.value().to_lowercase();
    let words: Vec<&str> = typed.split_whitespace().collect();
    let texts = opened.questions.iter().map(|question| &question.text);
    let holds = |text: &&String| {
        let text = text.to_lowercase();
        text != typed && words.iter().all(|word| text.contains(word))
    };
    app.completions = texts.filter(holds).take(OFFERED).cloned().collect();
}

/// The pause was long enough, if nothing was typed since.
pub fn quiet(app: &mut App, turn: Turn, reach: Reach) -> Vec<Effect> {
    if turn != app.turn || !matches!(app.corpus, Corpus::Open(_)) {
        return Vec::new();
    }
    read_line(app);
    start(app, reach)
}

/// Asks what stands in the line, now.
pub fn ask(app: &mut App) -> Vec<Effect> {
    if app.line.value().trim().is_empty() {
        app.notice = Some("type a question first, such as: Should zoos be banned?".into());
        return Vec::new();
    }
    app.history.add(app.line.value().trim());
    leave(app);
    if !matches!(app.corpus, Corpus::Open(_)) {
        // It is asked as soon as the corpus is open.
        return Vec::new();
    }
    read_line(app);
    restart(app)
}

fn leave(app: &mut App) {
    app.typing = false;
    app.completion = None;
    app.completions.clear();
}

/// Makes the line the question, with its own statements if it is one of the set, else with those of the rules.
pub fn read_line(app: &mut App) {
    let text = app.line.value().trim().to_owned();
    if app.question.text == text && !app.question.text.is_empty() {
        return;
    }
    let Corpus::Open(opened) = &app.corpus else { return };
    let given = std::mem::take(&mut app.given);
    let known = opened.questions.iter().find(|known| known.text.eq_ignore_ascii_case(&text));
    let (question, by) = if !given.is_empty() && !text.is_empty() {
        let supports = (given.len() == 2).then_some(0);
        (Question { text, perspectives: given, supports, ..Question::default() }, By::User)
    } else if let Some(known) = known {
        (Question { text, ..known.clone() }, By::Given)
    } else {
        let ruled = statements(&text);
        let (perspectives, supports) = (ruled.perspectives, ruled.supports);
        (Question { text, perspectives, supports, ..Question::default() }, ruled.by)
    };
    ask_instead(app, question, by);
}

/// Puts another question, or another set of statements, in the place of the present one.
pub fn ask_instead(app: &mut App, question: Question, by: By) {
    let book = Book::new(question.perspectives.len(), app.book.source, app.book.threshold);
    (app.question, app.by, app.book) = (question, by, book);
    app.reading = Reading { since: app.studies, ..Reading::default() };
    for lane in &mut app.lanes {
        lane.before = None;
    }
}

/// Asks what stands in the line once more.
pub fn again(app: &mut App) -> Vec<Effect> {
    read_line(app);
    restart(app)
}

/// Begins a new turn with the present question.
pub fn restart(app: &mut App) -> Vec<Effect> {
    app.turn = Turn(app.turn.0 + 1);
    start(app, Reach::All)
}

/// Begins a new turn with the present question; lanes that have their list keep it in full view meanwhile.
pub fn go_on(app: &mut App) -> Vec<Effect> {
    if app.question.text.is_empty() || !matches!(app.corpus, Corpus::Open(_)) {
        return Vec::new();
    }
    if app.line.value().trim() != app.question.text {
        // The line was edited and left: what is asked is what stands there.
        return again(app);
    }
    app.turn = Turn(app.turn.0 + 1);
    app.settled = false;
    vec![Effect::Start { turn: app.turn, plan: app.plan(), reach: Reach::All }]
}

fn start(app: &mut App, reach: Reach) -> Vec<Effect> {
    app.settled = false;
    if app.question.text.is_empty() {
        app.settled = true;
        return Vec::new();
    }
    for lane in &mut app.lanes {
        lane.state = LaneState::Waiting;
    }
    vec![Effect::Start { turn: app.turn, plan: app.plan(), reach }]
}
