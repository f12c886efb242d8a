//! The thread that keeps an annotator's journal: every act is on the disk before it is told.

use std::path::{Path, PathBuf};
use std::sync::mpsc::Receiver;

use super::{Reply, Shared, Tell};
use crate::annotate::{
    Act, Decision, Entry, History, Item, Journal, JournalError, Opened, Order, Project, journals,
};
use crate::corpus::PassageIx;
use crate::pipeline::Setup;
use crate::question::Question;

/// What is asked of the annotator's journal. Orders queue: none is lost to a later one.
#[derive(Clone, Debug, PartialEq)]
pub enum Labelling {
    /// Open it, for these passages of these questions, unless a project says which.
    Open(Vec<Item>, Vec<Question>),
    /// The same, only to be looked at: nothing is locked, made or written.
    Show(Vec<Item>, Vec<Question>),
    /// Write an act down.
    Write(Act),
    /// Restore what stood before the last act.
    Undo,
    /// Do again what was undone last.
    Redo,
}

/// Everything that lies before an annotator.
#[derive(Clone, Debug, Default)]
pub struct Desk {
    /// Under which name labels are written.
    pub by: String,
    /// The journal.
    pub journal: PathBuf,
    /// Why nothing can be written, if that is so.
    pub read_only: Option<String>,
    /// The questions with their perspectives.
    pub questions: Vec<Question>,
    /// The passages to be labelled.
    pub items: Vec<Item>,
    /// The lanes that brought them up.
    pub lanes: Vec<String>,
    /// In which order they come at first.
    pub order: Order,
    /// Of the random order.
    pub seed: u64,
    /// Lane, rank and the model's verdict are hidden at first.
    pub blind: bool,
    /// What counts as support, in the words of whoever began the project.
    pub guidelines: String,
    /// What this annotator wrote down so far.
    pub history: History,
    /// What others hold.
    pub others: Vec<Decision>,
    /// What was passed over in the journals.
    pub notes: Vec<String>,
}

/// What was written down, and what it changes.
#[derive(Clone, Debug)]
pub struct Written {
    /// The entry, which is on the disk.
    pub entry: Entry,
    /// Where the passage lies, if this corpus holds it.
    pub at: Option<PassageIx>,
    /// Statements of the question, and what labels by hand now say of the passage for each.
    pub labels: Vec<(String, Option<bool>)>,
}

/// Carries out one order after another.
pub fn annotator(shared: &Shared, orders: &Receiver<Labelling>, tell: &Tell) {
    let mut open: Option<(Journal, Vec<Question>)> = None;
    for order in orders {
        let Some(setup) = shared.setup.get() else { continue };
        let done = match (order, &mut open) {
            (Labelling::Open(items, questions), _) => {
                // The lock of the journal before is given back first.
                drop(open.take());
                open = laid(desk(setup, items, questions, Journal::open), tell);
                continue;
            }
            (Labelling::Show(items, questions), _) => {
                drop(open.take());
                open = laid(desk(setup, items, questions, Journal::show), tell);
                continue;
            }
            (_, None) => continue,
            (Labelling::Write(act), Some((journal, _))) => journal.append(act).map(Some),
            (Labelling::Undo, Some((journal, _))) => journal.undo(),
            (Labelling::Redo, Some((journal, _))) => journal.redo(),
        };
        let Some((journal, questions)) = &open else { continue };
        let written = done.map_err(|error| error.to_string());
        let written =
            written.map(|entry| entry.map(|entry| Box::new(count(setup, journal, questions, entry))));
        tell(Reply::Labelled(written));
    }
}

/// Tells of the desk, and keeps what is written on.
fn laid(desk: Result<(Journal, Desk), String>, tell: &Tell) -> Option<(Journal, Vec<Question>)> {
    let mut open = None;
    tell(Reply::Desk(desk.map(|(journal, desk)| {
        open = Some((journal, desk.questions.clone()));
        Box::new(desk)
    })));
    open
}

/// Opens the journal, and finds out what is to be labelled.
fn desk(
    setup: &Setup,
    items: Vec<Item>,
    questions: Vec<Question>,
    open: impl FnOnce(&Path, &str) -> Result<Opened, JournalError>,
) -> Result<(Journal, Desk), String> {
    let said = |error: &dyn std::fmt::Display| error.to_string();
    let by = setup.annotator.clone();
    let mut desk = Desk { by: by.clone(), items, questions, ..Desk::default() };
    let named = setup.named_journal.clone();
    desk.guidelines = Project::guidelines(named.as_deref().unwrap_or(&setup.journals))
        .unwrap_or_else(|| Project::GUIDELINES.to_owned());
    desk.journal = match &named {
        Some(folder) if Project::is_in(folder) => {
            let (project, items) = Project::open(folder).map_err(|error| said(&error))?;
            if !project.annotators.is_empty() && !project.annotators.contains(&by) {
                let names = project.annotators.join(", ");
                return Err(format!(
                    "this project is labelled by {names}, not by {by}; say who you are with --annotator NAME"
                ));
            }
            desk.items = items.into_iter().filter(|item| item.is_for(&by)).collect();
            (desk.questions, desk.lanes) = (project.questions, project.lanes);
            (desk.order, desk.seed, desk.blind) = (project.order, project.seed, project.blind);
            Project::journal(folder, &by)
        }
        Some(file) if !file.is_dir() => file.clone(),
        named => Project::journal(named.as_deref().unwrap_or(&setup.journals), &by),
    };
    let opened = open(&desk.journal, &by).map_err(|error| said(&error))?;
    desk.notes.extend(opened.read.told(&desk.journal));
    desk.read_only = opened.journal.read_only().map(str::to_owned);
    desk.history = opened.journal.history().clone();
    let others = desk.journal.parent().map(Project::journals).and_then(Result::ok).unwrap_or_default();
    let others: Vec<PathBuf> = others.into_iter().filter(|path| *path != desk.journal).collect();
    let (others, notes) = journals(&others).map_err(|error| said(&error))?;
    desk.others = others.decisions().into_iter().filter(|decision| decision.by != by).collect();
    desk.notes.extend(notes);
    Ok((opened.journal, desk))
}

/// Lets what was written down count everywhere.
fn count(setup: &Setup, journal: &Journal, questions: &[Question], entry: Entry) -> Written {
    let key = entry.key();
    setup.decided(&key, journal.history().decisions_on(&key));
    let question = questions.iter().find(|question| question.text == entry.question);
    let statements = question.map(|question| question.perspectives.clone());
    let statements = statements.unwrap_or_else(|| entry.view.answers.keys().cloned().collect());
    let label = |statement: String| {
        let human = setup.labelled(&statement, &entry.passage).human;
        (statement, human)
    };
    Written {
        at: setup.corpus.find(&entry.passage),
        labels: statements.into_iter().map(label).collect(),
        entry,
    }
}
