//! Long work: how it tells its progress, and how it is stopped.
//!
//! Nothing here starts a thread or reads a clock; rates belong to whoever shows the progress.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// What kind of long work is going on.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Job {
    /// Reading a corpus into the store.
    Importing,
    /// Building the term index.
    Indexing,
    /// Turning passages into vectors.
    Embedding,
}

impl Job {
    /// The word for it.
    pub fn name(self) -> &'static str {
        match self {
            Job::Importing => "importing",
            Job::Indexing => "indexing",
            Job::Embedding => "embedding",
        }
    }
}

/// How far a job is. `total` is 0 while it is not known.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Progress {
    /// Which job.
    pub job: Job,
    /// Passages done.
    pub done: u64,
    /// Passages in all.
    pub total: u64,
}

/// Told after every batch of long work.
pub type Tell<'a> = &'a (dyn Fn(Progress) + Sync);

/// Asked between batches of work: has somebody thought better of it?
///
/// A stop belongs to one turn; it is set as soon as a later turn begins.
#[derive(Clone, Debug)]
pub struct Stop {
    now: Arc<AtomicU64>,
    mine: u64,
}

impl Stop {
    /// Never set.
    pub fn never() -> Self {
        Stop { now: Arc::default(), mine: 0 }
    }

    /// Set when `now` is no longer `mine`.
    pub fn when_past(now: &Arc<AtomicU64>, mine: u64) -> Self {
        Stop { now: Arc::clone(now), mine }
    }

    /// Whether to stop.
    pub fn is_set(&self) -> bool {
        self.now.load(Ordering::Relaxed) != self.mine
    }
}

/// The work was stopped before its end; what it had finished is kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("stopped")]
pub struct Stopped;
