//! The question line: typing, completing and asking.

use std::mem;
use std::path::PathBuf;
use std::time::Duration;

use crossterm::event::{Event, KeyCode, KeyEvent, KeyModifiers};
use tui_input::Input;
use tui_input::backend::crossterm::EventHandler;

use crate::detect::{LabelSource, foreign_question};
use crate::engine::{Judgments, Reach, Turn};
use crate::question::{By, Question, resolve};
use crate::tui::app::{App, Corpus, Filter, LaneState};
use crate::tui::config::Config;
use crate::tui::keymap::{Action, Screen};
use crate::tui::layout::keep_in_view;
use crate::tui::message::{Effect, Gather, Gathered};
use crate::tui::screens::passage::Reading;
use crate::tui::undo::{Acts, Lane, State};
use crate::work::Job;

/// The pause in typing after which the term lanes run.
const SHORT: Duration = Duration::from_millis(60);
/// The pause in typing after which all lanes run.
const LONG: Duration = Duration::from_millis(300);
/// The most completions shown.
const OFFERED: usize = 8;

/// The longest line in characters; more is not accepted.
pub const LONGEST: usize = 2_000;

/// Performs an action in the question line.
pub fn act_on_line(app: &mut App, action: Action) -> Vec<Effect> {
    app.recalled = false;
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
        Action::Back => {
            leave(app);
            let before = app.acts.preview.as_ref().map(|before| before.question.clone());
            let effects = give_up_preview(app);
            // The question may be the same while its line was edited.
            if let Some(question) = before.filter(|question| !question.text.is_empty()) {
                app.line = Input::new(question.text);
            }
            return effects;
        }
        _ => {}
    }
    Vec::new()
}

/// Puts an earlier question into the line.
fn recall(app: &mut App, question: Option<String>) -> Vec<Effect> {
    let Some(question) = question else { return Vec::new() };
    app.line = Input::new(question);
    let effects = changed(app);
    // No completions while the user goes through the history.
    app.completions.clear();
    effects
}

/// Edits the line.
pub fn edit(app: &mut App, key: KeyEvent) -> Vec<Effect> {
    let adds = matches!(key.code, KeyCode::Char(_)) && (key.modifiers - KeyModifiers::SHIFT).is_empty();
    if adds && app.line.value().chars().count() >= LONGEST {
        app.notice = Some(format!("a question has at most {LONGEST} characters"));
        return Vec::new();
    }
    if mem::take(&mut app.recalled) && (adds || matches!(key.code, KeyCode::Backspace | KeyCode::Delete)) {
        replace_recalled(app);
    }
    match app.line.handle_event(&Event::Key(key)) {
        Some(change) if change.value => {
            app.history.forget();
            changed(app)
        }
        _ => Vec::new(),
    }
}

/// Empties the line for what is typed in the place of the question of an earlier start. Esc puts that question back.
pub fn replace_recalled(app: &mut App) {
    if !app.question.text.is_empty() {
        begin_preview(app);
    }
    app.line = Input::default();
}

/// Asks the question in the line after a pause, because the line has changed.
pub fn changed(app: &mut App) -> Vec<Effect> {
    complete(app);
    app.turn = Turn(app.turn.0 + 1);
    let turn = app.turn;
    app.settled = false;
    [(SHORT, Reach::Terms), (LONG, Reach::All)]
        .map(|(pause, reach)| Effect::WaitQuiet { turn, reach, pause })
        .to_vec()
}

/// Offers the questions of the set that contain every word of the line.
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

/// A pause ended: asks the question if nothing was typed since.
pub fn quiet(app: &mut App, turn: Turn, reach: Reach) -> Vec<Effect> {
    if turn != app.turn || !matches!(app.corpus, Corpus::Open(_)) {
        return Vec::new();
    }
    read_line(app);
    start(app, reach)
}

/// Asks the question in the line now.
pub fn ask(app: &mut App) -> Vec<Effect> {
    if app.line.value().trim().is_empty() {
        app.notice = Some("type a question first, such as: Should zoos be banned?".into());
        return Vec::new();
    }
    app.history.add(app.line.value().trim());
    leave(app);
    if !matches!(app.corpus, Corpus::Open(_)) {
        // The question is asked when the corpus is open.
        return Vec::new();
    }
    read_line(app);
    take_preview(app);
    restart(app)
}

fn leave(app: &mut App) {
    app.typing = false;
    app.completion = None;
    app.completions.clear();
}

/// Makes the line the question, unless it is the question already.
pub fn read_line(app: &mut App) {
    let Some((question, by)) = question_in_line(app) else { return };
    if question.text == app.question.text && !question.text.is_empty() {
        return;
    }
    app.given.clear();
    ask_instead(app, question, by);
}

/// The question in the line; `None` until the corpus is open.
fn question_in_line(app: &App) -> Option<(Question, By)> {
    let Corpus::Open(opened) = &app.corpus else { return None };
    let text = app.line.value().trim();
    if !text.is_empty() && text == app.question.text {
        // Another question of the set may have the same text.
        return Some((app.question.clone(), app.by));
    }
    let given = if text.is_empty() { &[][..] } else { &app.given };
    Some(resolve(text, given, &opened.questions))
}

/// Replaces the question or its statements, and forgets the judgments of the old one.
pub fn ask_instead(app: &mut App, question: Question, by: By) {
    app.foreign = foreign_question(&question.text);
    if question.text != app.question.text {
        // The cursor follows its passage through the lists of one question only.
        app.lanes.iter_mut().for_each(|lane| (lane.selected, lane.top) = (0, 0));
        app.label_page = 0;
    }
    (app.question, app.by, app.far_off) = (question, by, None);
    forget_judgments(app);
    for lane in &mut app.lanes {
        lane.reworded = None;
    }
}

/// Forgets the judgments of the question and the evidence for them, also evidence that has not arrived yet.
fn forget_judgments(app: &mut App) {
    let mut judgments = Judgments::new(&app.question, app.judgments.source, app.judgments.shared_rule());
    judgments.replaces(&app.judgments);
    app.judgments = judgments;
    app.reading = Reading { since: app.studies, ..Reading::default() };
}

/// Opens the corpus again with another engine, which judges anew. Late replies of the old engine are dropped.
pub fn reopen(app: &mut App) {
    app.corpus = Corpus::Opening;
    app.turn = Turn(app.turn.0 + 1);
    app.settled = true;
    // The old engine's jobs end without waking the lanes that wait for them.
    for lane in &mut app.lanes {
        if let LaneState::Failed(_, Some(_)) = lane.state {
            lane.state = LaneState::Waiting;
        }
    }
    forget_judgments(app);
}

/// Makes a corpus for the question from the web.
pub fn make_corpus(app: &mut App) -> Vec<Effect> {
    let refused = if app.replay.is_some() {
        Some("a replay fetches nothing from the web")
    } else if app.question.text.is_empty() {
        Some("ask a question first; a corpus is made for it")
    } else if app.gathering.is_some() {
        Some("a corpus is being made already; Esc stops that")
    } else if app.settings.provider.wants_contact() && app.settings.contact.is_none() {
        Some(
            "wikis refuse programs that do not say whom to write to: put contact = \"you@example.org\" into the configuration \
             (`parallax config path` names the file)",
        )
    } else {
        None
    };
    if let Some(reason) = refused {
        app.notice = Some(reason.into());
        return Vec::new();
    }
    let Config { provider, contact, .. } = app.settings.clone();
    app.notice = Some(format!("{provider} is searched for this question; Esc stops"));
    app.gathering = Some(app.question.text.clone());
    vec![Effect::Gather(Box::new(Gather { question: app.question.clone(), provider, contact }))]
}

/// Opens a corpus that grew or is complete, if its question still stands in the lanes.
pub fn take_gathered(app: &mut App, gathered: Gathered) -> Vec<Effect> {
    // The corpus stays while labels of its passages are written.
    let shown = app.screen == Screen::LANES && !app.typing && app.palette.is_none() && !app.acts.is_writing();
    let mine = app.gathering.as_ref() == Some(&app.question.text);
    let opened = |app: &mut App, corpus: PathBuf| {
        change_corpus(app);
        vec![Effect::UseCorpus(Some(corpus))]
    };
    match gathered {
        // A corpus that is still being opened is not opened again: the next growth is never far.
        Gathered::Grew(corpus) if shown && mine && !matches!(app.corpus, Corpus::Opening) => {
            opened(app, corpus)
        }
        Gathered::Grew(_) => Vec::new(),
        Gathered::Ended(ended) => {
            // Another corpus was chosen meanwhile.
            let Some(question) = app.gathering.take() else { return Vec::new() };
            app.jobs.retain(|(progress, _)| progress.job != Job::Gathering);
            let (effects, text) = match ended {
                Ok((Some(corpus), text)) if shown && mine => (opened(app, corpus), text),
                Ok((Some(corpus), text)) => {
                    (Vec::new(), format!("{text}: the corpus of `{question}` is {}", corpus.display()))
                }
                Ok((None, text)) => (Vec::new(), format!("{text}: there is no corpus")),
                Err(reason) => (Vec::new(), reason),
            };
            app.notice = Some(text);
            effects
        }
    }
}

/// Forgets everything that belongs to the open corpus, because another one is opened.
pub fn change_corpus(app: &mut App) {
    app.returns_to = matches!(app.corpus, Corpus::Open(_)).then_some(app.judgments.source);
    reopen(app);
    app.acts = Acts { dropped: mem::take(&mut app.acts.dropped), ..Acts::default() };
    (app.notice, app.filter) = (None, Filter::default());
    (app.screen, app.far_off) = (Screen::LANES, None);
    // Its statements stay if the user typed them.
    if app.by != By::User {
        app.question = Question::default();
    }
    let mut judgments = Judgments::new(&app.question, LabelSource::Auto, Default::default());
    judgments.replaces(&app.judgments);
    app.judgments = judgments;
    let asked = !app.line.value().trim().is_empty();
    for lane in &mut app.lanes {
        lane.state = if asked { LaneState::Waiting } else { LaneState::Idle };
        (lane.ranking, lane.reworded) = Default::default();
        (lane.selected, lane.top) = (0, 0);
    }
}

/// Opens the corpus again that was left for another one, with its lanes, its question and everything that can be undone there.
pub fn undo_corpus(app: &mut App) -> Vec<Effect> {
    if app.acts.left.is_some() && app.acts.is_writing() {
        app.notice = Some("labels are being written; try again in a moment".into());
        return Vec::new();
    }
    let Some((state, acts)) = app.acts.left.take().map(|left| *left) else {
        app.notice = Some("nothing is left to undo".into());
        return Vec::new();
    };
    change_corpus(app);
    app.returns_to = None;
    app.acts = acts;
    app.lanes = state.lanes;
    for lane in &mut app.lanes {
        lane.state = if state.question.text.is_empty() { LaneState::Idle } else { LaneState::Waiting };
        lane.reworded = None;
    }
    (app.question, app.by, app.foreign, app.line) = (state.question, state.by, state.foreign, state.line);
    (app.k, app.lane, app.given, app.options) = (state.k, state.lane, state.given, state.options);
    app.judgments.source = state.judgments.source;
    forget_judgments(app);
    app.notice = Some("the corpus from before is opened again".into());
    vec![Effect::ReturnToCorpus]
}

/// Asks a question of the set. It need not be the first one with its text.
pub fn ask_question(app: &mut App, question: Question) -> Vec<Effect> {
    app.line = Input::new(question.text.clone());
    app.history.add(&question.text);
    leave(app);
    if question != app.question {
        app.given.clear();
        ask_instead(app, question, By::Given);
    }
    restart(app)
}

/// Asks the question in the line again.
pub fn again(app: &mut App) -> Vec<Effect> {
    read_line(app);
    restart(app)
}

/// Begins a new turn with the present question.
pub fn restart(app: &mut App) -> Vec<Effect> {
    app.turn = Turn(app.turn.0 + 1);
    start(app, Reach::All)
}

/// Begins a new turn with the present question. Lanes keep showing their lists meanwhile.
pub fn go_on(app: &mut App) -> Vec<Effect> {
    if app.question.text.is_empty() || !matches!(app.corpus, Corpus::Open(_)) {
        return Vec::new();
    }
    if question_in_line(app).is_some_and(|(question, _)| question.text != app.question.text) {
        // The line was edited but not asked.
        return again(app);
    }
    app.turn = Turn(app.turn.0 + 1);
    app.settled = false;
    vec![Effect::Start { turn: app.turn, plan: app.query(), reach: Reach::All }]
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
    vec![Effect::Start { turn: app.turn, plan: app.query(), reach }]
}

/// The present state, before an act.
pub fn state(app: &App) -> State {
    State {
        lanes: app.lanes.clone(),
        k: app.k,
        judgments: app.judgments.clone(),
        question: app.question.clone(),
        lane: app.lane,
        by: app.by,
        foreign: app.foreign,
        line: app.line.clone(),
        given: app.given.clone(),
        options: app.options.clone(),
        settled: app.settled,
        by_hand: matches!(&app.corpus, Corpus::Open(opened) if opened.by_hand),
        far_off: app.far_off,
        pinned: app.acts.pinned.clone(),
        labels: app.acts.labels,
    }
}

/// Whether a state differs from the present one, apart from cursors and from what has arrived.
pub fn differs(state: &State, app: &App) -> bool {
    let lanes = |lanes: &[Lane]| lanes.iter().map(|lane| (lane.id, lane.recipe.clone())).collect::<Vec<_>>();
    (state.k, state.judgments.source) != (app.k, app.judgments.source)
        || state.question != app.question
        || lanes(&state.lanes) != lanes(&app.lanes)
}

/// Begins a preview: until it is taken or given up, changes are no acts.
pub fn begin_preview(app: &mut App) {
    if app.acts.preview.is_none() {
        app.acts.preview = Some(Box::new(state(app)));
    }
}

/// Takes the preview: what it changed becomes one act.
pub fn take_preview(app: &mut App) {
    let Some(before) = app.acts.preview.take() else { return };
    if differs(&before, app) && !before.question.text.is_empty() {
        app.acts.push(*before, None);
    }
}

/// Gives the preview up: everything is as it was before.
pub fn give_up_preview(app: &mut App) -> Vec<Effect> {
    match app.acts.preview.take() {
        Some(before) if differs(&before, app) && !before.question.text.is_empty() => restore(app, *before),
        _ => Vec::new(),
    }
}

/// Restores a state. If something had not arrived in it, the lanes are asked again.
pub fn restore(app: &mut App, state: State) -> Vec<Effect> {
    let same = state.question == app.question;
    let mut judgments = state.judgments;
    judgments.replaces(&app.judgments);
    (app.lanes, app.lane, app.k, app.judgments) = (state.lanes, state.lane, state.k, judgments);
    (app.question, app.by, app.foreign, app.line) = (state.question, state.by, state.foreign, state.line);
    (app.given, app.options, app.far_off) = (state.given, state.options, state.far_off);
    (app.acts.pinned, app.acts.labels) = (state.pinned, state.labels);
    if let Corpus::Open(opened) = &mut app.corpus {
        opened.by_hand = state.by_hand;
    }
    if !same {
        app.reading = Reading { since: app.studies, ..Reading::default() };
    }
    app.turn = Turn(app.turn.0 + 1);
    app.settled = state.settled;
    keep_in_view(app);
    if state.settled { vec![Effect::StopRun(app.turn)] } else { go_on(app) }
}

/// Inserts at most `room` characters of a text at the cursor; returns whether some did not fit.
pub fn insert(line: &mut Input, text: &str, room: usize) -> bool {
    let at = line.cursor();
    let taken: String = text.chars().take(room).collect();
    let count = taken.chars().count();
    let value = line.value().chars();
    let value = value.clone().take(at).chain(taken.chars()).chain(value.skip(at)).collect::<String>();
    *line = Input::new(value).with_cursor(at + count);
    text.chars().nth(room).is_some()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_is_inserted_at_the_cursor_and_cut_to_what_fits() {
        let mut line = Input::new("zoos 動物".into()).with_cursor(5);
        assert!(!insert(&mut line, "é動", 9));
        assert_eq!((line.value(), line.cursor()), ("zoos é動動物", 7));
        assert!(insert(&mut line, "abc", 2));
        assert_eq!((line.value(), line.cursor()), ("zoos é動ab動物", 9));
    }
}
