//! The threads of one corpus, and what is ordered of them.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{self, Sender};
use std::sync::{Arc, OnceLock};
use std::thread::{self, JoinHandle};

use super::orders::{Batch, Labelling, Order, Reach, Shared, Slot, Study, Turn};
use super::reply::SendReply;
use super::{annotator, work};
use crate::engine::list::Lists;
use crate::engine::opening::Opening;
use crate::engine::query::{Depth, Query};
use crate::engine::run::Run;
use crate::work::Stop;

/// What a thread does for as long as the engine lives.
type Task = Box<dyn FnOnce(&Shared, &SendReply) + Send>;

/// The engine of one corpus.
pub struct Engine {
    shared: Arc<Shared>,
    labels: Option<Sender<Labelling>>,
    annotator: Option<JoinHandle<()>>,
    threads: Vec<JoinHandle<()>>,
}

impl Engine {
    /// Opens what the user named and starts the threads; all replies go through `send`.
    pub fn start(opening: Opening, send: &SendReply) -> Self {
        let shared = Arc::new(Shared {
            setup: OnceLock::new(),
            terms: Slot::default(),
            models: Slot::default(),
            embed: Slot::default(),
            studies: Slot::default(),
            batches: Slot::default(),
            now: Arc::default(),
            reading: Arc::default(),
            batching: Arc::default(),
            ended: Arc::default(),
            embedding: AtomicBool::new(false),
        });
        let mut threads = Vec::new();
        let mut start = |name: &str, task: Task| {
            let (shared, send) = (Arc::clone(&shared), Arc::clone(send));
            // Without threads there is no program: the system's refusal is shown by the panic hook.
            let thread = thread::Builder::new().name(name.into()).spawn(move || task(&shared, &send));
            threads.push(
                thread.unwrap_or_else(|error| panic!("the system gives no thread for {name}: {error}")),
            );
        };
        start("terms", Box::new(move |shared, send| work::terms(shared, &opening, send)));
        start("models", Box::new(work::models));
        start("embedder", Box::new(work::embedder));
        start("reader", Box::new(work::reader));
        start("batch_worker", Box::new(work::batch_worker));
        let (labels, orders) = mpsc::channel();
        start("annotator", Box::new(move |shared, send| annotator::annotator(shared, &orders, send)));
        let annotator = threads.pop();
        Engine { shared, labels: Some(labels), annotator, threads }
    }

    /// Runs a query in place of any earlier one.
    pub fn start_run(&self, turn: Turn, query: Query, reach: Reach) {
        self.shared.now.store(turn.0, Ordering::Relaxed);
        let run = Run::new(query, Depth::Covered, Lists::default());
        self.shared.terms.put(Order { turn, run, reach });
    }

    /// Finds out what is wanted of a passage, in place of any earlier study.
    pub fn study(&self, study: Study) {
        self.shared.reading.store(study.number, Ordering::Relaxed);
        let stop = Stop::when_past(&self.shared.reading, study.number);
        self.shared.studies.put((study, stop));
    }

    /// Runs a batch in place of any earlier one.
    pub fn batch(&self, number: u64, batch: Batch) {
        self.stop_batch(number);
        let stop = Stop::when_past(&self.shared.batching, number);
        self.shared.batches.put((number, batch, stop));
    }

    /// Has something done with the annotator's journal, after all that was asked of it before.
    pub fn label(&self, order: Labelling) {
        if let Some(labels) = &self.labels {
            // The thread lives as long as the engine.
            let _ = labels.send(order);
        }
    }

    /// Gives up every batch but this one.
    pub fn stop_batch(&self, number: u64) {
        self.shared.batching.store(number, Ordering::Relaxed);
    }

    /// Waits until what was ordered of labels is written down; no more is taken after it.
    pub fn write_down(&mut self) {
        self.labels = None;
        if let Some(annotator) = self.annotator.take() {
            // The panic hook has reported a thread that panicked.
            let _ = annotator.join();
        }
    }
}

impl Drop for Engine {
    /// Ends the threads; each stops within one passage, and what was embedded is kept.
    fn drop(&mut self) {
        let shared = &self.shared;
        shared.now.store(u64::MAX, Ordering::Relaxed);
        shared.reading.store(u64::MAX, Ordering::Relaxed);
        shared.batching.store(u64::MAX, Ordering::Relaxed);
        shared.ended.store(1, Ordering::Relaxed);
        shared.terms.close();
        shared.models.close();
        shared.embed.close();
        shared.studies.close();
        shared.batches.close();
        self.write_down();
        for thread in self.threads.drain(..) {
            let _ = thread.join();
        }
    }
}
