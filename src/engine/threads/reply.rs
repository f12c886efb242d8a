//! What the engine reports.

use std::ops::Range;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use super::orders::Turn;
use crate::annotate::{Decision, Entry, History, Item, Order};
use crate::corpus::PassageIx;
use crate::corpus::store::Fields;
use crate::detect::Rule;
use crate::engine::compare::{Compared, Tally};
use crate::engine::detectors::DetectorEvent;
use crate::engine::explain::Explanation;
use crate::engine::judge::Judged;
use crate::engine::list::Ranking;
use crate::engine::recipe::Recipe;
use crate::engine::sycophancy::Sycophancy;
use crate::question::Question;
use crate::read::Answer;
use crate::read::incremental::Reordered;
use crate::work::{Job, Progress};

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
    /// How what the detector reads becomes decisions.
    pub rule: Arc<Rule>,
    /// What is to be said beside verdicts of the detector, if anything: that it is experimental, or which one it is.
    pub detector: Option<String>,
    /// A notice, such as a cache that cannot be written.
    pub notice: Option<String>,
}

/// What the engine reports.
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
        /// Of which run.
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
        /// Of which run.
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
        /// Of which run.
        turn: Turn,
        /// What is known of it now.
        judged: Judged,
    },
    /// A note about the verdicts: why there are none, or not all, or what a server was asked for them.
    AboutVerdicts {
        /// Of which run.
        turn: Turn,
        /// In words.
        text: String,
    },
    /// The run has ended.
    Settled {
        /// Of which run.
        turn: Turn,
    },
    /// Why the open passage stands where it does in its lane.
    Explained {
        /// Of which study.
        study: u64,
        /// In a lane made like this.
        recipe: Recipe,
        /// The passage.
        at: PassageIx,
        /// The explanations, or why there are none.
        explanations: Result<Vec<Explanation>, String>,
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
    Sycophancy {
        /// Of which batch.
        number: u64,
        /// Which lane, from 0.
        lane: usize,
        /// Its answers, or why there are none.
        sycophancy: Result<Arc<Sycophancy>, String>,
    },
    /// A question of the set was put to every lane.
    Compared {
        /// Of which batch.
        number: u64,
        /// Which question, from 0.
        question: usize,
        /// What came of it.
        compared: Result<Compared, String>,
    },
    /// Something was read from a list.
    ReadEvent {
        /// Of which batch.
        number: u64,
        /// What.
        event: ReadEvent,
    },
    /// What lies before the annotator, or why nothing can be labelled.
    AnnotationState(Result<Box<AnnotationState>, String>),
    /// An act is on the disk, or why it is not; none where there was nothing to undo or to do again.
    Labelled(Result<Option<Box<Written>>, String>),
    /// What the model says of a passage that is to be labelled.
    Scored {
        /// Of which batch.
        number: u64,
        /// Which passage, from 0.
        item: usize,
        /// The probability of each statement of its question, where the model gave one.
        probabilities: Vec<Option<f32>>,
        /// The passage takes a side, unclear which.
        unclear: bool,
    },
    /// A detector was found or fetched.
    Detectors {
        /// Of which batch.
        number: u64,
        /// What.
        event: DetectorEvent,
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
        /// The bytes of its text, if the verdict rests on one sentence.
        sentence: Option<Range<usize>>,
    },
}

/// Where replies go. It must not block.
pub type SendReply = Arc<dyn Fn(Reply) + Send + Sync>;

/// What came of reading.
#[derive(Clone, Debug, PartialEq)]
pub enum ReadEvent {
    /// The answer from the first so many.
    Answer(usize, Answer),
    /// How the reader shared its attention out among the passages.
    Attention(Vec<f64>),
    /// The answer without the passage at this place, from 0.
    Without(usize, Answer),
    /// How the answer stood the shuffles.
    Reordered(Reordered),
    /// There is no more, with the reason if it was ended early.
    Ended(Option<String>),
}

/// Everything that lies before an annotator.
#[derive(Clone, Debug, Default)]
pub struct AnnotationState {
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
    /// The lanes that found them.
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
    /// Of a project whose questions were drawn: what their labels stand for.
    pub drawn: Option<Drawn>,
}

/// What the labels of drawn questions stand for.
#[derive(Clone, Debug, PartialEq)]
pub struct Drawn {
    /// How many questions they were drawn from.
    pub of: usize,
    /// How many passages of every lane the project holds.
    pub depth: usize,
    /// The passages that others label.
    pub others: Vec<Item>,
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
