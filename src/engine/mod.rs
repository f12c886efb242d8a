//! The threads that carry plans out, and how a plan is given up.
//!
//! | thread | does |
//! | --- | --- |
//! | `terms` | opens the corpus, then the term lanes of the newest plan |
//! | `models` | the other lanes, then the verdicts, rank by rank |
//! | `writer` | beside `models`: the lanes that wait for a language model |
//! | `embedder` | embeds a corpus that has no vectors yet |
//! | `reader` | finds why the open passage stands where it does, and the sentence that carries its verdict |
//! | `annotator` | writes labels by hand into their journal, one after another |
//! | `surveyor` | what needs many lists: a lane in all forms of one switch, lanes asked in three wordings or over the question set, lists read passage by passage; and counts the metadata |
//! | `model-N` | one a core: embeds passages and judges pairs, for `embedder` and `models` |
//!
//! Every order carries a [`Turn`]. A later turn stops an earlier one between two passages, and the screen drops replies of a
//! turn that is past. Orders do not queue, the newest pending one wins; but those to the `annotator`, of which none may be lost.

mod annotator;
mod slot;
mod survey;
mod work;

use std::ops::Range;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::mpsc::{self, Sender};
use std::sync::{Arc, OnceLock};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use crate::corpus::fields::Fields;
use crate::corpus::{Passage, PassageIx};
use crate::encode::Named;
use crate::pipeline::{
    Compared, Judged, Lists, Opening, Plan, Ranking, Reason, Recipe, Setup, Swayed, Tally,
};
use crate::question::Question;
use crate::work::{Job, Progress, Stop};
pub use annotator::{Desk, Labelling, Written};
use slot::Slot;
pub use survey::{Heard, Hearing, Survey, Want};

/// Counts the plans that were asked for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Turn(pub u64);

/// How far a plan is carried out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reach {
    /// Term lanes only: what every pause in typing gets.
    Terms,
    /// All lanes, and their verdicts.
    All,
}

/// What the screen must know of an open corpus.
#[derive(Clone, Debug)]
pub struct Opened {
    /// Its name.
    pub corpus: String,
    /// How many passages it has.
    pub passages: usize,
    /// The question set.
    pub questions: Vec<Question>,
    /// Whether labels came with it.
    pub labelled: bool,
    /// Whether some were made by hand.
    pub by_hand: bool,
    /// What answers from passages, if anything does: its name, and whether its answers were recorded.
    pub reader: Option<(String, bool)>,
    /// From which probability on a verdict is a yes.
    pub threshold: f32,
    /// What is to be said beside verdicts of the detector, if anything: that it is experimental, or which one it is.
    pub detector: Option<String>,
    /// Something to be told, such as a cache that cannot be written.
    pub notice: Option<String>,
}

/// What the engine tells.
#[derive(Clone, Debug)]
pub enum Reply {
    /// The corpus is open.
    Opened(Box<Opened>),
    /// The corpus could not be opened.
    OpenFailed(String),
    /// A long job went on.
    Progress(Progress),
    /// The corpus has its vectors now, or will not get them.
    Embedded(Result<(), String>),
    /// A lane's list.
    LaneReady {
        /// Of which plan.
        turn: Turn,
        /// Which lane, from 0.
        lane: usize,
        /// The list.
        ranking: Ranking,
        /// How long it took.
        took: Duration,
    },
    /// A lane has no list.
    LaneFailed {
        /// Of which plan.
        turn: Turn,
        /// Which lane, from 0.
        lane: usize,
        /// Why, to be shown in its column.
        reason: String,
        /// It will have one when this job has ended.
        waits: Option<Job>,
    },
    /// A pair was judged.
    Verdict {
        /// Of which plan.
        turn: Turn,
        /// What is known of it now.
        judged: Judged,
    },
    /// What is to be told of the verdicts: why there are none, or not all, or what a server was asked for them.
    AboutVerdicts {
        /// Of which plan.
        turn: Turn,
        /// In words.
        told: String,
    },
    /// All that the plan asked for has been told.
    Settled {
        /// Of which plan.
        turn: Turn,
    },
    /// Why the open passage stands where it does in its lane.
    Why {
        /// Of which study.
        study: u64,
        /// In a lane made like this.
        recipe: Recipe,
        /// The passage.
        at: PassageIx,
        /// The reasons, or why there are none.
        reasons: Result<Vec<Reason>, String>,
    },
    /// A sweep went on.
    Swept {
        /// Which.
        number: u64,
        /// The figures of every form so far.
        tallies: Result<Vec<Tally>, String>,
        /// There is no more to come.
        ended: bool,
    },
    /// A lane was asked in all wordings.
    Swayed {
        /// Of which survey.
        number: u64,
        /// Which lane, from 0.
        lane: usize,
        /// Its answers, or why there are none.
        swayed: Result<Arc<Swayed>, String>,
    },
    /// A question of the set was put to every lane.
    Compared {
        /// Of which survey.
        number: u64,
        /// Which question, from 0.
        question: usize,
        /// What came of it.
        compared: Result<Compared, String>,
    },
    /// Something was read from a list.
    Heard {
        /// Of which survey.
        number: u64,
        /// What.
        heard: Heard,
    },
    /// What lies before the annotator, or why nothing can be labelled.
    Desk(Result<Box<Desk>, String>),
    /// An act is on the disk, or why it is not; none where there was nothing to undo or to do again.
    Labelled(Result<Option<Box<Written>>, String>),
    /// What the model says of a passage that is to be labelled.
    Weighed {
        /// Of which survey.
        number: u64,
        /// Which passage, from 0.
        item: usize,
        /// The probability of each statement of its question, where the model gave one.
        probabilities: Vec<Option<f32>>,
    },
    /// The metadata fields of the corpus have been counted.
    Fields(Arc<Fields>),
    /// The evidence in the passage that is open.
    Evidence {
        /// Of which study.
        study: u64,
        /// The passage.
        at: PassageIx,
        /// The perspective, from 0.
        perspective: usize,
        /// The bytes of its text, if a sentence carries the verdict.
        sentence: Option<Range<usize>>,
    },
}

/// One plan on its way through the threads.
#[derive(Clone)]
struct Order {
    turn: Turn,
    plan: Plan,
    reach: Reach,
    lists: Lists,
    rankings: Vec<Option<Ranking>>,
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

/// What the threads share.
struct Shared {
    setup: OnceLock<Arc<Setup>>,
    terms: Slot<Order>,
    models: Slot<Order>,
    embed: Slot<Option<Named>>,
    studies: Slot<(Study, Stop)>,
    surveys: Slot<(u64, Survey, Stop)>,
    now: Arc<AtomicU64>,
    reading: Arc<AtomicU64>,
    surveying: Arc<AtomicU64>,
    /// 0 while the engine lives.
    ended: Arc<AtomicU64>,
    embedding: AtomicBool,
}

/// Where replies go. It must not block.
pub type Tell = Arc<dyn Fn(Reply) + Send + Sync>;

/// What a thread does for as long as the engine lives.
type Run = Box<dyn FnOnce(&Shared, &Tell) + Send>;

/// The engine of one corpus.
pub struct Engine {
    shared: Arc<Shared>,
    labels: Option<Sender<Labelling>>,
    annotator: Option<JoinHandle<()>>,
    threads: Vec<JoinHandle<()>>,
}

impl Engine {
    /// Opens what the user named and starts the threads; everything is told through `tell`.
    pub fn start(opening: Opening, tell: &Tell) -> Self {
        let shared = Arc::new(Shared {
            setup: OnceLock::new(),
            terms: Slot::default(),
            models: Slot::default(),
            embed: Slot::default(),
            studies: Slot::default(),
            surveys: Slot::default(),
            now: Arc::default(),
            reading: Arc::default(),
            surveying: Arc::default(),
            ended: Arc::default(),
            embedding: AtomicBool::new(false),
        });
        let mut threads = Vec::new();
        let mut start = |name: &str, run: Run| {
            let (shared, tell) = (Arc::clone(&shared), Arc::clone(tell));
            // Without threads there is no program: the system's refusal is shown by the panic hook.
            let thread = thread::Builder::new().name(name.into()).spawn(move || run(&shared, &tell));
            threads.push(
                thread.unwrap_or_else(|error| panic!("the system gives no thread for {name}: {error}")),
            );
        };
        start("terms", Box::new(move |shared, tell| work::terms(shared, &opening, tell)));
        start("models", Box::new(work::models));
        start("embedder", Box::new(work::embedder));
        start("reader", Box::new(work::reader));
        start("surveyor", Box::new(work::surveyor));
        let (labels, orders) = mpsc::channel();
        start("annotator", Box::new(move |shared, tell| annotator::annotator(shared, &orders, tell)));
        let annotator = threads.pop();
        Engine { shared, labels: Some(labels), annotator, threads }
    }

    /// Carries out `plan` in place of any earlier one.
    pub fn carry_out(&self, turn: Turn, plan: Plan, reach: Reach) {
        self.shared.now.store(turn.0, Ordering::Relaxed);
        let rankings = vec![None; plan.lanes.len()];
        self.shared.terms.put(Order { turn, plan, reach, lists: Lists::default(), rankings });
    }

    /// Finds out what is wanted of a passage, in place of any earlier study.
    pub fn study(&self, study: Study) {
        self.shared.reading.store(study.number, Ordering::Relaxed);
        let stop = Stop::when_past(&self.shared.reading, study.number);
        self.shared.studies.put((study, stop));
    }

    /// Carries out a survey in place of any earlier one.
    pub fn survey(&self, number: u64, survey: Survey) {
        self.stop_survey(number);
        let stop = Stop::when_past(&self.shared.surveying, number);
        self.shared.surveys.put((number, survey, stop));
    }

    /// Has something done with the annotator's journal, after all that was asked of it before.
    pub fn label(&self, order: Labelling) {
        if let Some(labels) = &self.labels {
            // The thread lives as long as the engine.
            let _ = labels.send(order);
        }
    }

    /// Gives up every survey but this one.
    pub fn stop_survey(&self, number: u64) {
        self.shared.surveying.store(number, Ordering::Relaxed);
    }

    /// Waits until what was ordered of labels is written down; no more is taken after it.
    pub fn write_down(&mut self) {
        self.labels = None;
        if let Some(annotator) = self.annotator.take() {
            // A thread that panicked has been told of by the panic hook.
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
        shared.surveying.store(u64::MAX, Ordering::Relaxed);
        shared.ended.store(1, Ordering::Relaxed);
        shared.terms.close();
        shared.models.close();
        shared.embed.close();
        shared.studies.close();
        shared.surveys.close();
        self.write_down();
        for thread in self.threads.drain(..) {
            let _ = thread.join();
        }
    }
}
