//! The orders to the threads, and the state that threads share.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, AtomicU64};
use std::sync::{Arc, OnceLock};

use parking_lot::{Condvar, Mutex, MutexGuard};

use crate::annotate::{Act, Item, View};
use crate::corpus::{Passage, PassageIx};
use crate::detect::LabelSource;
use crate::detect::registry::NamedDetector;
use crate::encode::Named;
use crate::engine::edit::Draft;
use crate::engine::list::Ranking;
use crate::engine::query::Query;
use crate::engine::recipe::Recipe;
use crate::engine::run::Run;
use crate::engine::setup::Setup;
use crate::engine::sycophancy::Sweep;
use crate::measure::SupportSet;
use crate::question::Question;
use crate::question::wordings::Framed;
use crate::read::Context;
use crate::work::Stop;

/// The number of a run; later runs have greater numbers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Turn(pub u64);

/// How far a query is run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reach {
    /// The lanes that need no vectors, at a short pause in typing.
    Terms,
    /// All lanes, and their verdicts.
    All,
}

/// An order to explain the passage that is open.
#[derive(Clone, Debug, PartialEq)]
pub struct Study {
    /// The number of the study, which its replies repeat.
    pub number: u64,
    /// The passage's number in the corpus.
    pub at: PassageIx,
    /// The passage.
    pub passage: Arc<Passage>,
    /// The statements to find evidence for, with their indices and, of two sides, the other one.
    pub statements: Vec<(usize, String, Option<String>)>,
    /// The list in which to explain its rank, with its recipe and the text that was searched for.
    pub list: Option<(Ranking, Recipe, String)>,
    /// Whether to read the passage's index entry, for a lane with this recipe.
    pub index: Option<Recipe>,
}

/// An order that takes long, because it needs many lists, models or a network.
#[derive(Clone, Debug, PartialEq)]
pub enum Batch {
    /// Measure one lane in several forms.
    Sweep(Sweep),
    /// Ask every lane with the question's own words and with either statement.
    Sycophancy(Query),
    /// Ask every lane in these wordings; without any, in those by rule, or by the language model if one is named.
    Framing(Query, Option<Vec<Framed>>),
    /// Score and judge a passage of this lane as it is, and as it was edited; either may be known already.
    Edit(Recipe, Box<[Option<Draft>; 2]>),
    /// Let the language model write this passage anew.
    Rewrite(Passage),
    /// Run every question of the set on every lane.
    Compare(Query),
    /// Judge passages that are to be labelled; their questions come with them.
    Score(Vec<Item>, Vec<Question>),
    /// Let the reader read a list.
    Read(ReadList),
    /// List the detectors that can be chosen.
    Detectors,
    /// Fetch a detector.
    Fetch(&'static NamedDetector),
    /// List the corpora of the library.
    Corpora,
    /// Count the metadata fields of the corpus and, if true, run every question of the set on every lane.
    Bias(Query, bool),
    /// Find the key points of a question: these labels count, and these passages are judged.
    KeyPoints(Question, LabelSource, Vec<(PassageIx, SupportSet)>),
    /// Let the reader answer the question from a list that supports these statements, and judge the answer.
    Answer(Question, SupportSet, Vec<Context>),
    /// Let the reader say of each list which of two statements it supports; the question comes first.
    Lists(String, [String; 2], Vec<Vec<Context>>),
}

/// A list for the reader.
#[derive(Clone, Debug, PartialEq)]
pub struct ReadList {
    /// The question.
    pub question: String,
    /// The two statements, if the reader is to choose a side because there are no gold answers.
    pub sides: Option<[String; 2]>,
    /// The passages in their order.
    pub passages: Vec<Context>,
    /// How they are read.
    pub want: Want,
}

/// How a list is read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Want {
    /// The first k passages, for every k above this one.
    EachK(usize),
    /// The whole list without one passage, for each passage.
    Without,
    /// The whole list in shuffled orders.
    Reordered,
}

/// An order to the annotator's journal. These orders queue, so that none is lost.
#[derive(Clone, Debug, PartialEq)]
pub enum Labelling {
    /// Open the journal for these passages of these questions, unless a project names others.
    Open(Vec<Item>, Vec<Question>),
    /// Open it read-only: nothing is locked, created or written.
    Show(Vec<Item>, Vec<Question>),
    /// Write an act.
    Write(Act),
    /// Undo the last act.
    Undo,
    /// Redo the last act that was undone.
    Redo,
    /// Label one passage from the lanes, in the journal that is open or would be opened.
    Set(Box<SetLabel>),
}

/// An order to label one passage.
#[derive(Clone, Debug, PartialEq)]
pub struct SetLabel {
    /// The number of the order, which its reply repeats.
    pub number: u64,
    /// The question with its statements.
    pub question: Question,
    /// The passage.
    pub passage: Arc<Passage>,
    /// The label.
    pub to: SetTo,
}

/// A label to write.
#[derive(Clone, Debug, PartialEq)]
pub enum SetTo {
    /// These answers, by statement; note and flag stay.
    Answers(BTreeMap<String, bool>),
    /// A view as it was before.
    View(View),
}

/// A run that goes from thread to thread.
pub(super) struct Order {
    pub(super) turn: Turn,
    pub(super) run: Run,
    pub(super) reach: Reach,
}

/// The state that threads share.
pub(super) struct Shared {
    pub(super) setup: OnceLock<Arc<Setup>>,
    pub(super) terms: Slot<Order>,
    pub(super) models: Slot<Order>,
    pub(super) embed: Slot<Option<Named>>,
    pub(super) studies: Slot<(Study, Stop)>,
    pub(super) batches: Slot<(u64, Batch, Stop)>,
    pub(super) now: Arc<AtomicU64>,
    pub(super) reading: Arc<AtomicU64>,
    pub(super) batching: Arc<AtomicU64>,
    /// 0 while the engine lives.
    pub(super) ended: Arc<AtomicU64>,
    pub(super) embedding: AtomicBool,
}

enum State<T> {
    Empty,
    Holds(T),
    Closed,
}

/// A slot for at most one order.
pub(super) struct Slot<T> {
    state: Mutex<State<T>>,
    changed: Condvar,
}

impl<T> Default for Slot<T> {
    fn default() -> Self {
        Slot { state: Mutex::new(State::Empty), changed: Condvar::new() }
    }
}

impl<T> Slot<T> {
    /// Replaces the order in the slot. A closed slot takes none.
    pub fn put(&self, order: T) {
        let mut state = self.lock();
        if !matches!(*state, State::Closed) {
            *state = State::Holds(order);
            self.changed.notify_one();
        }
    }

    /// Waits for an order; `None` once the slot is closed.
    pub fn take(&self) -> Option<T> {
        let mut state = self.lock();
        loop {
            match std::mem::replace(&mut *state, State::Empty) {
                State::Holds(order) => return Some(order),
                State::Closed => {
                    *state = State::Closed;
                    return None;
                }
                State::Empty => self.changed.wait(&mut state),
            }
        }
    }

    /// Ends all waiting.
    pub fn close(&self) {
        *self.lock() = State::Closed;
        self.changed.notify_all();
    }

    fn lock(&self) -> MutexGuard<'_, State<T>> {
        self.state.lock()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_newest_order_wins_and_a_closed_slot_gives_none() {
        let slot = Slot::default();
        slot.put(1);
        slot.put(2);
        assert_eq!(slot.take(), Some(2));
        slot.close();
        slot.put(3);
        assert_eq!(slot.take(), None);
    }
}
