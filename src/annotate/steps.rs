//! Undo and redo without end.
//!
//! Undoing writes a further entry that restores the earlier view, so nothing is lost by it. Owns which view is restored next.

use super::{Act, Entry, History, View};

/// One act, and what stood before it.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Step {
    /// None where two views were in conflict: what was settled is not unsettled.
    before: Option<View>,
    after: Act,
}

/// The acts of one annotator that can be undone, and those that can be done again.
#[derive(Clone, Debug, Default)]
pub struct Steps {
    past: Vec<Step>,
    future: Vec<Step>,
}

impl Steps {
    /// What an annotator did so far, in earlier runs too.
    pub fn of(history: &History, by: &str) -> Self {
        let mut steps = Steps::default();
        for entry in history.entries().filter(|entry| entry.by == by) {
            let before = entry.was.iter().filter_map(|id| history.entry(id));
            let mut before = before.filter(|was| was.key() == entry.key()).map(|was| &was.view);
            let first = before.next().cloned().unwrap_or_default();
            let settled = before.any(|other| *other != first);
            // What goes back or forth was never looked at for a time of its own.
            let restores = |act: &Act| {
                act.view == entry.view && act.passage == entry.passage && act.question == entry.question
            };
            if entry.took.is_none() && steps.to_undo().is_some_and(|act| restores(&act)) {
                steps.undone();
            } else if entry.took.is_none() && steps.to_redo().is_some_and(|act| restores(&act)) {
                steps.redone();
            } else {
                steps.did((!settled).then_some(first), entry);
            }
        }
        steps
    }

    /// Something new was done: what was undone cannot be done again.
    pub(super) fn did(&mut self, before: Option<View>, entry: &Entry) {
        self.future.clear();
        self.push(before, entry);
    }

    fn push(&mut self, before: Option<View>, entry: &Entry) {
        let after = Act {
            question: entry.question.clone(),
            passage: entry.passage.clone(),
            text: entry.text.clone(),
            view: entry.view.clone(),
            took: None,
        };
        self.past.push(Step { before, after });
    }

    /// The act that undoes the last one.
    pub(super) fn to_undo(&self) -> Option<Act> {
        let step = self.past.last()?;
        Some(Act { view: step.before.clone()?, ..step.after.clone() })
    }

    /// The act that does again what was undone last.
    pub(super) fn to_redo(&self) -> Option<Act> {
        self.future.last().map(|step| step.after.clone())
    }

    /// The last act was undone.
    pub(super) fn undone(&mut self) {
        self.future.extend(self.past.pop());
    }

    /// The act undone last was done again.
    pub(super) fn redone(&mut self) {
        self.past.extend(self.future.pop());
    }
}
