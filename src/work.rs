//! Long work: how it tells its progress, and how it is stopped.
//!
//! Nothing here starts a thread or reads a clock; rates belong to whoever shows the progress.

use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use rayon::ThreadPool;

/// What kind of long work is going on.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Job {
    /// Reading a corpus into the store.
    Importing,
    /// Building the term index.
    Indexing,
    /// Turning passages into vectors.
    Embedding,
    /// Putting a question set to lanes.
    Measuring,
    /// Asking the detector about pairs.
    Judging,
    /// Counting what is known of the passages beside their text.
    Counting,
    /// Waiting until another process has built what is needed.
    Waiting {
        /// That process's number; 0 if it is not known.
        process: u32,
    },
    /// Fetching a model, in kB.
    Fetching,
    /// Asking the web for pages.
    Gathering,
    /// Loading a corpus into an engine elsewhere.
    Pushing,
}

impl Job {
    /// The word for it.
    pub fn name(self) -> &'static str {
        match self {
            Job::Importing => "importing",
            Job::Indexing => "indexing",
            Job::Embedding => "embedding",
            Job::Measuring => "measuring",
            Job::Judging => "judging",
            Job::Counting => "counting",
            Job::Waiting { .. } => "waiting",
            Job::Fetching => "fetching, in kB,",
            Job::Gathering => "asking for pages",
            Job::Pushing => "pushing",
        }
    }
}

/// How far a job is. `total` is 0 while it is not known.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Progress {
    /// Which job.
    pub job: Job,
    /// Passages done, or kB, or pages.
    pub done: u64,
    /// Passages in all, or kB, or pages.
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

/// Does `each` for 0 to `count` on all threads of a pool, in order of the numbers, and gives what came out in that order: fewer
/// than `count` once `stop` is set.
///
/// Every thread takes one number after another. rayon's own iterators would let a thread that waits for a model begin the next
/// item on top of the one it waits in, until its stack ends.
pub fn on_all<R: Send>(
    pool: &ThreadPool,
    count: usize,
    stop: &Stop,
    each: impl Fn(usize) -> R + Sync,
) -> Vec<R> {
    let (next, made) = (AtomicUsize::new(0), Mutex::new(Vec::with_capacity(count)));
    pool.broadcast(|_| {
        while !stop.is_set() {
            let number = next.fetch_add(1, Ordering::Relaxed);
            if number >= count {
                break;
            }
            let one = each(number);
            made.lock().unwrap_or_else(PoisonError::into_inner).push((number, one));
        }
    });
    let mut made = made.into_inner().unwrap_or_else(PoisonError::into_inner);
    made.sort_unstable_by_key(|(number, _)| *number);
    made.into_iter().map(|(_, one)| one).collect()
}

/// Does `each` for 0 to `count` on a thread a core, and gives what came out in order of the numbers: fewer than `count` once
/// `stop` is set.
///
/// The threads live for this call alone. It may be called from any thread, one of a pool too: nobody waits for a model here, and no
/// other work is begun meanwhile.
pub fn on_cores<R: Send>(count: usize, stop: &Stop, each: impl Fn(usize) -> R + Sync) -> Vec<R> {
    let cores = std::thread::available_parallelism().map_or(1, usize::from).min(count);
    let (next, made) = (AtomicUsize::new(0), Mutex::new(Vec::with_capacity(count)));
    let work = || {
        while !stop.is_set() {
            let number = next.fetch_add(1, Ordering::Relaxed);
            if number >= count {
                break;
            }
            let one = each(number);
            made.lock().unwrap_or_else(PoisonError::into_inner).push((number, one));
        }
    };
    std::thread::scope(|scope| {
        for _ in 1..cores {
            // Where the system gives no thread, this one does all.
            let _ = std::thread::Builder::new().name("scan".into()).spawn_scoped(scope, work);
        }
        work();
    });
    let mut made = made.into_inner().unwrap_or_else(PoisonError::into_inner);
    made.sort_unstable_by_key(|(number, _)| *number);
    made.into_iter().map(|(_, one)| one).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn everything_is_done_once_and_comes_out_in_order_and_a_stop_ends_it() {
        let pool = rayon::ThreadPoolBuilder::new().num_threads(3).build().unwrap();
        assert_eq!(on_all(&pool, 100, &Stop::never(), |i| i), (0..100).collect::<Vec<_>>());
        let now = Arc::new(AtomicU64::new(0));
        let done = on_all(&pool, 100, &Stop::when_past(&now, 0), |_| now.store(1, Ordering::Relaxed));
        assert!(done.len() <= 3);
    }

    #[test]
    fn what_all_cores_make_comes_out_in_order_and_a_stop_ends_it() {
        assert_eq!(on_cores(100, &Stop::never(), |i| i), (0..100).collect::<Vec<_>>());
        assert!(on_cores(0, &Stop::never(), |i| i).is_empty());
        let now = Arc::new(AtomicU64::new(1));
        assert!(on_cores(100, &Stop::when_past(&now, 0), |i| i).is_empty());
    }
}
