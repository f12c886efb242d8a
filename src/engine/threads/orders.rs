//! What is asked of the threads, and what they share.

use std::sync::atomic::{AtomicBool, AtomicU64};
use std::sync::{Arc, OnceLock};

use parking_lot::{Condvar, Mutex, MutexGuard};

use crate::annotate::{Act, Item};
use crate::corpus::{Passage, PassageIx};
use crate::detect::registry::NamedDetector;
use crate::encode::Named;
use crate::engine::compare::Sweep;
use crate::engine::list::Ranking;
use crate::engine::query::Query;
use crate::engine::recipe::Recipe;
use crate::engine::run::Run;
use crate::engine::setup::Setup;
use crate::question::Question;
use crate::read::Context;
use crate::work::Stop;

/// Counts the runs that were started.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Turn(pub u64);

/// How far a query is run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reach {
    /// Term lanes only: what every pause in typing gets.
    Terms,
    /// All lanes, and their verdicts.
    All,
}

/// What is wanted to be known of the passage that is open.
#[derive(Clone, Debug, PartialEq)]
pub struct Study {
    /// Replies carry it.
    pub number: u64,
    /// Where the passage lies.
    pub at: PassageIx,
    /// The passage.
    pub passage: Arc<Passage>,
    /// Its evidence is wanted for these perspectives, with their statements.
    pub statements: Vec<(usize, String)>,
    /// And why it stands where it does in this list, which was made like this for this text.
    pub list: Option<(Ranking, Recipe, String)>,
}

/// Something that needs many lists, asked for now and then.
#[derive(Clone, Debug, PartialEq)]
pub enum Batch {
    /// One lane in several forms.
    Sweep(Sweep),
    /// Every lane asked neutrally and as either side.
    Sycophancy(Query),
    /// Every question of the set put to every lane.
    Compare(Query),
    /// What the model says of passages that are to be labelled, and of which questions they are.
    Score(Vec<Item>, Vec<Question>),
    /// A list read by whatever reads.
    Read(ReadList),
    /// The detectors that can be chosen.
    Detectors,
    /// Fetch a detector.
    Fetch(&'static NamedDetector),
    /// The metadata fields of the corpus, and, if said so, every question of the set put to every lane.
    Bias(Query, bool),
}

/// A list to be read.
#[derive(Clone, Debug, PartialEq)]
pub struct ReadList {
    /// The question.
    pub question: String,
    /// Its two statements, where a stance is asked for: there are no gold answers to measure by.
    pub sides: Option<[String; 2]>,
    /// The passages in their order.
    pub passages: Vec<Context>,
    /// How they are to be read.
    pub want: Want,
}

/// How a list is read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Want {
    /// At every depth beyond this one.
    EachK(usize),
    /// Without each passage.
    Without,
    /// In shuffled orders.
    Reordered,
}

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

/// A run on its way through the threads.
pub(super) struct Order {
    pub(super) turn: Turn,
    pub(super) run: Run,
    pub(super) reach: Reach,
}

/// What the threads share.
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

/// Holds at most one order.
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
    /// Replaces whatever lies there. A closed slot takes nothing.
    pub fn put(&self, order: T) {
        let mut state = self.lock();
        if !matches!(*state, State::Closed) {
            *state = State::Holds(order);
            self.changed.notify_one();
        }
    }

    /// Waits for an order; none once the slot is closed.
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
