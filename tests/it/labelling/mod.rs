//! Labelling by hand in the explorer: the label that a key writes, and the next step once it is on the disk.

mod journal;
pub mod keys;

use std::path::{Path, PathBuf};

use parallax::annotate::{Act, Entry, History, Journal, Order, View};
use parallax::engine::{AnnotationState, Drawn, Labelling, Reply, SetTo, Written};
use parallax::tui::app::App;
use parallax::tui::keymap::Screen;
use parallax::tui::message::{Effect, Msg};
use parallax::tui::update::update;

use crate::program;
use crate::stage::{asked, many_sided, press, question};

const SIDES: [&str; 2] = ["Zoos should be banned.", "Zoos should not be banned."];

fn receive(app: &mut App, reply: Reply) -> Vec<Effect> {
    update(app, Msg::Engine(reply))
}

/// Delivers the annotation that the effect requests, without a disk.
fn lay(app: &mut App, effects: &[Effect], change: impl FnOnce(&mut AnnotationState)) {
    let [Effect::Label(Labelling::Open(items, questions))] = effects else { panic!("{effects:?}") };
    let mut annotation = AnnotationState {
        by: "anna".into(),
        items: items.clone(),
        questions: questions.clone(),
        ..AnnotationState::default()
    };
    change(&mut annotation);
    receive(app, Reply::AnnotationState(Ok(Box::new(annotation))));
}

/// The zoos' passages on the annotation of anna.
pub fn open(width: u16, height: u16) -> App {
    let mut app = asked(width, height);
    let effects = press(&mut app, "a");
    lay(&mut app, &effects, |_| {});
    app
}

/// The one act among the effects.
fn act(effects: &[Effect]) -> Act {
    let [Effect::Label(Labelling::Write(act))] = effects else { panic!("{effects:?}") };
    act.clone()
}

/// Reports that the act is on the disk, and returns the next effects.
fn written(app: &mut App, act: Act) -> Vec<Effect> {
    let key = parallax::annotate::Key {
        by: "anna".into(),
        question: act.question.clone(),
        passage: act.passage.clone(),
    };
    let was = app.labelling.open().unwrap().history.heads(&key).iter().map(|head| head.id.clone()).collect();
    let labels = act.view.answers.iter().map(|(text, yes)| (text.clone(), Some(Some(*yes)))).collect();
    let at = crate::stage::PASSAGES.iter().position(|(id, ..)| *id == act.passage);
    let at = at.map(|at| parallax::corpus::PassageIx(at as u32));
    let entry = Entry::new(act, "anna", was, 1).unwrap();
    receive(app, Reply::Labelled(Ok(Some(Box::new(Written { entry, at, labels })))))
}

fn shown(app: &App) -> String {
    app.labelling.item().unwrap().passage.id.clone()
}

fn answers(view: &View) -> Vec<Option<bool>> {
    SIDES.iter().map(|side| view.answers.get(*side).copied()).collect()
}

fn journal(folder: &Path) -> (PathBuf, History) {
    let path = folder.join("anna.jsonl");
    let opened = Journal::open(&path, "anna").unwrap();
    assert!(opened.read.is_whole());
    (path, opened.journal.history().clone())
}
