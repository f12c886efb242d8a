//! The threads that run the explorer's queries.
//!
//! | thread | does |
//! | --- | --- |
//! | `terms` | opens the corpus, then ranks the BM25 lanes without switches of the newest query |
//! | `models` | ranks the other lanes, then judges the first k rank by rank, asks every lane as either side, and judges deeper |
//! | `server_lanes` | runs beside `models`: ranks the lanes that wait for a server |
//! | `embedder` | embeds a corpus that has no vectors yet |
//! | `reader` | explains the rank of the open passage, and finds the sentence that its verdict rests on |
//! | `annotator` | writes labels by hand to their journal |
//! | `batch_worker` | makes many lists: a lane in all forms of one switch, lanes asked in many wordings or over the question set; scores and judges edited passages; reads lists passage by passage; counts metadata |
//! | `model-N` | one per core: embeds passages and judges pairs, for `embedder` and `models` |
//!
//! Every order has a [`Turn`]. A later turn stops an earlier one between two passages, and the screen drops replies to an earlier
//! turn. A new order replaces one that has not begun. Only the orders to the `annotator` queue, because none may be lost.
//!
//! May use: `engine` and what it may use.

mod annotator;
mod orders;
mod reply;
mod work;

pub use engine::Engine;
pub use orders::{Batch, Labelling, Reach, ReadList, SetLabel, SetTo, Study, Turn, Want};
pub use reply::{
    AnnotationState, AnswerEvent, Drawn, LabelsChanged, Opened, PointsEvent, ReadEvent, Reply, SendReply,
    Shelved, Written,
};

mod engine {
    //! Starts and stops the threads of one corpus, and passes orders to them.

    use std::io;
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

    /// The work of a thread while the engine lives.
    type Task = Box<dyn FnOnce(&Shared, &SendReply) + Send>;

    /// The engine of one corpus.
    pub struct Engine {
        shared: Arc<Shared>,
        labels: Option<Sender<Labelling>>,
        annotator: Option<JoinHandle<()>>,
        threads: Vec<JoinHandle<()>>,
    }

    impl Engine {
        /// Starts the threads and opens what the user named. All replies go through `send`.
        ///
        /// # Errors
        /// The system gives no thread.
        pub fn start(opening: Opening, send: &SendReply) -> io::Result<Self> {
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
            let (labels, orders) = mpsc::channel();
            let threads = Vec::new();
            let mut engine = Engine { shared, labels: Some(labels), annotator: None, threads };
            let start = |engine: &Engine, name: &str, task: Task| {
                let (shared, send) = (Arc::clone(&engine.shared), Arc::clone(send));
                thread::Builder::new().name(name.into()).spawn(move || task(&shared, &send))
            };
            let annotate: Task = Box::new(move |shared, send| annotator::annotator(shared, &orders, send));
            // If a thread is refused, dropping the engine ends those before it.
            engine.annotator = Some(start(&engine, "annotator", annotate)?);
            let open: Task = Box::new(move |shared, send| work::terms(shared, &opening, send));
            let tasks: [(&str, Task); 5] = [
                ("terms", open),
                ("models", Box::new(work::models)),
                ("embedder", Box::new(work::embedder)),
                ("reader", Box::new(work::reader)),
                ("batch_worker", Box::new(work::batch_worker)),
            ];
            for (name, task) in tasks {
                let thread = start(&engine, name, task)?;
                engine.threads.push(thread);
            }
            Ok(engine)
        }

        /// Runs a query in place of any earlier one.
        pub fn start_run(&self, turn: Turn, query: Query, reach: Reach) {
            self.shared.now.store(turn.0, Ordering::Relaxed);
            let run = Run::new(query, Depth::Covered, Lists::default());
            self.shared.terms.put(Order { turn, run, reach });
        }

        /// Stops every run before this turn.
        pub fn stop_run(&self, turn: Turn) {
            self.shared.now.store(turn.0, Ordering::Relaxed);
        }

        /// Studies a passage in place of any earlier one.
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

        /// Queues an order for the annotator's journal.
        pub fn label(&self, order: Labelling) {
            if let Some(labels) = &self.labels {
                // The thread lives as long as the engine.
                let _ = labels.send(order);
            }
        }

        /// Stops every batch but this one.
        pub fn stop_batch(&self, number: u64) {
            self.shared.batching.store(number, Ordering::Relaxed);
        }

        /// Waits until all queued labels are written. Takes no more orders after that.
        pub fn write_down(&mut self) {
            self.labels = None;
            if let Some(annotator) = self.annotator.take() {
                // The panic hook has reported a thread that panicked.
                let _ = annotator.join();
            }
        }
    }

    impl Drop for Engine {
        /// Ends the threads. Each stops within one passage; vectors embedded so far are kept.
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
}
