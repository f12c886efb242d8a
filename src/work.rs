//! Long work: progress, stopping, running on all threads, and catching panics of third-party parsers. May use: nothing of this crate.
//!
//! Nothing here reads a clock; rates are computed where progress is shown.

use std::cell::Cell;
use std::panic;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Once};

use parking_lot::Mutex;
use rayon::ThreadPool;

/// A kind of long work.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Job {
    /// Reading a corpus into the store.
    Importing,
    /// Building the term index.
    Indexing,
    /// Turning passages into vectors.
    Embedding,
    /// Running a question set on lanes.
    Measuring,
    /// Judging pairs.
    Judging,
    /// Counting values of metadata fields.
    Counting,
    /// Waiting for another process that does the same work.
    Waiting {
        /// The process id; 0 if unknown.
        process: u32,
    },
    /// Fetching a model, in kB.
    Fetching,
    /// Gathering web pages.
    Gathering,
    /// Pushing a corpus to a remote engine.
    Pushing,
    /// Clustering sentences.
    Clustering,
}

impl Job {
    /// Its name for the user.
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
            Job::Clustering => "clustering",
        }
    }
}

/// The progress of a job. `total` is 0 while unknown.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Progress {
    /// Which job.
    pub job: Job,
    /// Passages done, or kB, pages, sentences.
    pub done: u64,
    /// Passages in all, or kB, pages, sentences.
    pub total: u64,
}

/// A function that is called after every batch of long work.
pub type OnProgress<'a> = &'a (dyn Fn(Progress) + Sync);

/// A flag that cancels long work, which checks it between batches.
///
/// Clones share the flag: [`Stop::set`] sets all of them. In the explorer, a stop belongs to one turn and is set as soon as a later turn
/// begins.
#[derive(Clone, Debug)]
pub struct Stop {
    now: Arc<AtomicU64>,
    mine: u64,
}

impl Default for Stop {
    fn default() -> Self {
        Stop::new()
    }
}

impl Stop {
    /// A stop that is not set.
    pub fn new() -> Self {
        Stop { now: Arc::default(), mine: 0 }
    }

    /// A stop for work that is never cancelled.
    pub fn never() -> Self {
        Stop::new()
    }

    /// Asks the work to end early.
    pub fn set(&self) {
        self.now.store(self.mine.wrapping_add(1), Ordering::Relaxed);
    }

    /// A stop that is set once `now` is no longer `mine`.
    pub fn when_past(now: &Arc<AtomicU64>, mine: u64) -> Self {
        Stop { now: Arc::clone(now), mine }
    }

    /// Whether the work must stop.
    pub fn is_set(&self) -> bool {
        self.now.load(Ordering::Relaxed) != self.mine
    }
}

/// The error of work that was stopped early. Finished parts are kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("stopped")]
pub struct Stopped;

/// Calls `each` for 0 to `count` on all threads of a pool. Returns the results in order of the numbers: fewer than `count` once
/// `stop` is set.
///
/// Every thread takes one number after another. With rayon's own iterators, a thread that waits inside one item may start the next item
/// on the same stack, until the stack overflows.
pub fn on_all<R: Send>(
    pool: &ThreadPool,
    count: usize,
    stop: &Stop,
    each: impl Fn(usize) -> R + Sync,
) -> Vec<R> {
    let queue = Queue::new(count, stop, each);
    pool.broadcast(|_| queue.work());
    queue.in_order()
}

/// Calls `each` for 0 to `count` on one thread per core. Returns the results in order of the numbers: fewer than `count` once `stop`
/// is set.
///
/// The threads are started for this call, so that a thread of a pool may call it without waiting for its own pool.
pub fn on_cores<R: Send>(count: usize, stop: &Stop, each: impl Fn(usize) -> R + Sync) -> Vec<R> {
    let cores = std::thread::available_parallelism().map_or(1, usize::from).min(count);
    let queue = Queue::new(count, stop, each);
    std::thread::scope(|scope| {
        for _ in 1..cores {
            // If the system gives no thread, the current one does all the work.
            let _ = std::thread::Builder::new().name("scan".into()).spawn_scoped(scope, || queue.work());
        }
        queue.work();
    });
    queue.in_order()
}

/// A queue of numbers that threads take one by one, with the results so far.
struct Queue<'a, R, F> {
    next: AtomicUsize,
    count: usize,
    stop: &'a Stop,
    each: F,
    results: Mutex<Vec<(usize, R)>>,
}

impl<'a, R, F: Fn(usize) -> R> Queue<'a, R, F> {
    fn new(count: usize, stop: &'a Stop, each: F) -> Self {
        Queue { next: AtomicUsize::new(0), count, stop, each, results: Mutex::new(Vec::with_capacity(count)) }
    }

    fn work(&self) {
        while !self.stop.is_set() {
            let number = self.next.fetch_add(1, Ordering::Relaxed);
            if number >= self.count {
                break;
            }
            let result = (self.each)(number);
            self.results.lock().push((number, result));
        }
    }

    fn in_order(self) -> Vec<R> {
        let mut results = self.results.into_inner();
        results.sort_unstable_by_key(|(number, _)| *number);
        results.into_iter().map(|(_, result)| result).collect()
    }
}

thread_local! {
    static CATCHING: Cell<bool> = const { Cell::new(false) };
}

/// Runs a closure; `None` if it panicked.
pub fn catch_panic<T>(run: impl FnOnce() -> T) -> Option<T> {
    static QUIET: Once = Once::new();
    QUIET.call_once(|| {
        let hook = panic::take_hook();
        panic::set_hook(Box::new(move |panic| {
            if !is_catching() {
                hook(panic);
            }
        }));
    });
    let before = CATCHING.replace(true);
    let result = catch_unwind(AssertUnwindSafe(run));
    CATCHING.set(before);
    result.ok()
}

/// Whether a panic on this thread would be caught.
pub fn is_catching() -> bool {
    CATCHING.get()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_numbers_run_once_in_order_and_a_stop_ends_the_work() {
        let pool = rayon::ThreadPoolBuilder::new().num_threads(3).build().unwrap();
        assert_eq!(on_all(&pool, 100, &Stop::never(), |i| i), (0..100).collect::<Vec<_>>());
        let now = Arc::new(AtomicU64::new(0));
        let done = on_all(&pool, 100, &Stop::when_past(&now, 0), |_| now.store(1, Ordering::Relaxed));
        assert!(done.len() <= 3);
    }

    #[test]
    fn results_of_all_cores_are_in_order_and_a_stop_ends_the_work() {
        assert_eq!(on_cores(100, &Stop::never(), |i| i), (0..100).collect::<Vec<_>>());
        assert!(on_cores(0, &Stop::never(), |i| i).is_empty());
        let now = Arc::new(AtomicU64::new(1));
        assert!(on_cores(100, &Stop::when_past(&now, 0), |i| i).is_empty());
    }

    #[test]
    fn a_stop_is_set_with_its_clones() {
        let stop = Stop::new();
        let clone = stop.clone();
        assert!(!clone.is_set());
        stop.set();
        assert!(stop.is_set() && clone.is_set());
    }

    #[test]
    fn a_panic_returns_none_and_the_thread_continues() {
        assert_eq!(catch_panic(|| catch_panic(|| panic!("caught")).map(|()| 1).unwrap_or(2)), Some(2));
        assert!(!is_catching());
        assert_eq!(catch_panic(|| 3), Some(3));
        assert_eq!(catch_panic(is_catching), Some(true));
    }
}
