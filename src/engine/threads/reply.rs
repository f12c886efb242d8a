//! The replies of the engine.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use super::orders::Turn;
use crate::annotate::{Decision, Entry, History, Item, Order, View};
use crate::corpus::store::Fields;
use crate::corpus::{Passage, PassageIx};
use crate::detect::{EvidenceSentence, Rule};
use crate::encode::Source;
use crate::engine::answer::Assessed;
use crate::engine::compare::Compared;
use crate::engine::detectors::DetectorEvent;
use crate::engine::edit::Drafted;
use crate::engine::explain::Explanation;
use crate::engine::framing::Framing;
use crate::engine::judge::Judged;
use crate::engine::judgments::Judgments;
use crate::engine::list::Ranking;
use crate::engine::nuggets::KeyPoint;
use crate::engine::recipe::Recipe;
use crate::engine::sycophancy::{Sycophancy, Tally};
use crate::question::Question;
use crate::read::Answer;
use crate::read::incremental::Reordered;
use crate::work::{Job, Progress};

/// An open corpus, described for the screen.
#[derive(Clone, Debug)]
pub struct Opened {
    /// Its name.
    pub corpus: String,
    /// How many passages it has.
    pub passages: usize,
    /// The question set.
    pub questions: Vec<Question>,
    /// Whether it has gold labels.
    pub labelled: bool,
    /// The name of the source of those labels, `gold` or a judge's, and the labels in words.
    pub labels: (String, String),
    /// Whether it has labels by hand.
    pub by_hand: bool,
    /// The name of the reader, if there is one, and whether its answers were recorded.
    pub reader: Option<(String, bool)>,
    /// The re-rankers that were fetched.
    pub rerankers: Vec<Source>,
    /// The rule that turns the detector's readings into decisions.
    pub rule: Arc<Rule>,
    /// The note shown with verdicts: `experimental`, or the detector's name if it is not the built-in one.
    pub detector: Option<String>,
    /// A notice, such as a cache that cannot be written.
    pub notice: Option<String>,
}

/// A reply of the engine.
#[derive(Clone, Debug)]
pub enum Reply {
    /// The corpus is open.
    Opened(Box<Opened>),
    /// The corpus could not be opened.
    OpenFailed(String),
    /// The progress of a long job.
    Progress(Progress),
    /// The corpus was embedded, or could not be.
    Embedded(Result<(), String>),
    /// A lane has its list.
    LaneReady {
        /// The run.
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
        /// The run.
        turn: Turn,
        /// Which lane, from 0.
        lane: usize,
        /// Why, to be shown in its column.
        reason: String,
        /// The job after which the lane can be ranked, if there is one.
        waits: Option<Job>,
    },
    /// A lane was asked as the supporting and as the opposing statement.
    Reworded {
        /// The run.
        turn: Turn,
        /// Which lane, from 0.
        lane: usize,
        /// Its two lists, or why there are none.
        lists: Result<[Ranking; 2], String>,
    },
    /// The question is far from every passage: the best similarity, and the usual best of the question set.
    FarOff {
        /// The run.
        turn: Turn,
        /// The greatest similarity of a passage to the question.
        best: f32,
        /// The median of the same over the question set.
        usual: f32,
    },
    /// A pair was judged.
    Verdict {
        /// The run.
        turn: Turn,
        /// The labels and verdicts on the pair.
        judged: Judged,
    },
    /// A note about the verdicts: why some are missing, or what a server was asked for them.
    AboutVerdicts {
        /// The run.
        turn: Turn,
        /// The note.
        text: String,
    },
    /// The run has ended.
    Settled {
        /// The run.
        turn: Turn,
    },
    /// The rank of the open passage was explained.
    Explained {
        /// The study.
        study: u64,
        /// The recipe of the lane.
        recipe: Recipe,
        /// The passage.
        at: PassageIx,
        /// The explanations, or why there are none.
        explanations: Result<Vec<Explanation>, String>,
    },
    /// One more question of a sweep was measured.
    Swept {
        /// The batch.
        number: u64,
        /// The figures of every form so far.
        tallies: Result<Vec<Tally>, String>,
        /// Whether this is the last reply.
        ended: bool,
    },
    /// A lane was asked in the three wordings.
    Sycophancy {
        /// The batch.
        number: u64,
        /// Which lane, from 0.
        lane: usize,
        /// Its answers, or why there are none.
        sycophancy: Result<Arc<Sycophancy>, String>,
    },
    /// A lane was asked in all wordings of the framing lab.
    Framing {
        /// The batch.
        number: u64,
        /// Which lane, from 0.
        lane: usize,
        /// Its answers, or why there are none.
        framing: Result<Arc<Framing>, String>,
    },
    /// A passage was scored or judged with other words.
    Edited {
        /// The batch.
        number: u64,
        /// Whether it is the passage as it is.
        original: bool,
        /// Its score and rank, or why there are none; `None` if this reply has only verdicts.
        scored: Option<Result<Drafted, String>>,
        /// The model's verdicts, under passage 0, or why there are none; `None` if they come later.
        judged: Option<Result<Arc<Judgments>, String>>,
    },
    /// The language model wrote a passage anew.
    Rewritten {
        /// The batch.
        number: u64,
        /// The passage and the model's name, or why there is none.
        written: Result<(Passage, String), String>,
    },
    /// A question of the set was run on every lane.
    Compared {
        /// The batch.
        number: u64,
        /// Which question, from 0.
        question: usize,
        /// The outcome.
        compared: Result<Compared, String>,
    },
    /// The reader has read a part of a list.
    ReadEvent {
        /// The batch.
        number: u64,
        /// The step.
        event: ReadEvent,
    },
    /// The journal is open, or why nothing can be labelled.
    AnnotationState(Result<Box<AnnotationState>, String>),
    /// Another process changed the journals that count.
    LabelsChanged(Box<LabelsChanged>),
    /// An act was written to disk, or why not; `None` if there was nothing to undo or redo.
    Labelled(Result<Option<Box<Written>>, String>),
    /// The label of one passage was set from the lanes, or why not.
    LabelSet {
        /// The number of the order.
        number: u64,
        /// The written label, and this annotator's view before it.
        set: Result<Box<(Written, View)>, String>,
    },
    /// The library was listed.
    Corpora {
        /// The batch.
        number: u64,
        /// Name, description and path of every corpus in it.
        corpora: Result<Vec<Shelved>, String>,
    },
    /// The model judged a passage that is to be labelled.
    Scored {
        /// The batch.
        number: u64,
        /// Which passage, from 0.
        item: usize,
        /// The probability of each statement of its question; `None` if the model gave none.
        probabilities: Vec<Option<f32>>,
        /// Whether the passage's side is unclear.
        unclear: bool,
    },
    /// Detectors were listed or fetched.
    Detectors {
        /// The batch.
        number: u64,
        /// The step.
        event: DetectorEvent,
    },
    /// The reader has read a list.
    ListRead {
        /// The batch.
        number: u64,
        /// Which list, from 0.
        place: usize,
        /// Its answer, or why there is none; then no more lists are read.
        answer: Result<Answer, String>,
    },
    /// The reader has answered from a list, or its answer is judged.
    Answered {
        /// The batch.
        number: u64,
        /// The step.
        event: AnswerEvent,
    },
    /// The key points of a question are being found, or are found.
    KeyPoints {
        /// The batch.
        number: u64,
        /// The step.
        event: PointsEvent,
    },
    /// The metadata fields of the corpus have been counted.
    Fields(Arc<Fields>),
    /// The evidence in the passage that is open.
    Evidence {
        /// The study.
        study: u64,
        /// The passage.
        at: PassageIx,
        /// The statement, from 0.
        perspective: usize,
        /// The sentence that the verdict rests on, if it rests on one.
        sentence: Option<EvidenceSentence>,
    },
    /// What the indexes hold about the passage that is open.
    IndexEntry {
        /// The study.
        study: u64,
        /// The passage.
        at: PassageIx,
        /// The recipe of the lane.
        recipe: Recipe,
        /// The entry as JSON, or why there is none.
        entry: Result<String, String>,
    },
}

/// A corpus of the library.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Shelved {
    /// Its name.
    pub name: String,
    /// How many passages it has, and where it came from.
    pub about: String,
    /// What opens it.
    pub path: PathBuf,
}

/// Receives replies. It must not block.
pub type SendReply = Arc<dyn Fn(Reply) + Send + Sync>;

/// A step of finding key points.
#[derive(Clone, Debug, PartialEq)]
pub enum PointsEvent {
    /// Sentences were judged or clustered.
    Progress(Progress),
    /// All key points, or why there are none.
    Found(Result<Vec<KeyPoint>, String>),
}

/// A step from a list to the sides of an answer.
#[derive(Clone, Debug)]
pub enum AnswerEvent {
    /// The answer, not judged yet.
    Read(Answer),
    /// The answer, judged, with what is known of the judge's errors; or why there is none.
    Judged(Result<Box<(Assessed, String)>, String>),
}

/// A step of reading a list.
#[derive(Clone, Debug, PartialEq)]
pub enum ReadEvent {
    /// The answer from the first k passages.
    Answer(usize, Answer),
    /// The share of the reader's attention that each passage gets.
    Attention(Vec<f64>),
    /// The answer without the passage at this place, from 0.
    Without(usize, Answer),
    /// The answers in shuffled orders.
    Reordered(Reordered),
    /// Reading has ended, with the reason if it ended early.
    Ended(Option<String>),
}

/// The journal, questions and passages of an annotator.
#[derive(Clone, Debug, Default)]
pub struct AnnotationState {
    /// The name under which labels are written.
    pub by: String,
    /// The journal.
    pub journal: PathBuf,
    /// Why nothing can be written; `None` if labels can be.
    pub read_only: Option<String>,
    /// The questions with their statements.
    pub questions: Vec<Question>,
    /// The passages to be labelled.
    pub items: Vec<Item>,
    /// Those of them that come a second time, as indices.
    pub repeats: Vec<usize>,
    /// The lanes that found them.
    pub lanes: Vec<String>,
    /// The order in which they are shown at first.
    pub order: Order,
    /// The seed of the random order.
    pub seed: u64,
    /// Whether lane, rank and the model's verdict are hidden at first.
    pub blind: bool,
    /// Whether this annotator settles disagreements between others.
    pub adjudicates: bool,
    /// What counts as support, in the project's words.
    pub guidelines: String,
    /// The labels of this annotator so far.
    pub history: History,
    /// The labels of other annotators.
    pub others: Vec<Decision>,
    /// Notes about journal lines that do not count.
    pub notes: Vec<String>,
    /// For a project whose questions are a random sample: the sample.
    pub drawn: Option<Drawn>,
}

/// What another process changed in the journals.
#[derive(Clone, Debug, Default)]
pub struct LabelsChanged {
    /// The annotators whose labels are different now.
    pub by: Vec<String>,
    /// The pairs whose label by hand is different now: the passage's number, the statement, and the label (`Some(None)` for a tie of
    /// annotators).
    pub labels: Vec<(PassageIx, String, Option<Option<bool>>)>,
    /// For the labelling screen: the entries that are new in the open journal, and the present labels of all other annotators.
    pub journal: Option<(Vec<Entry>, Vec<Decision>)>,
    /// Why a journal could not be read again; its labels stay as they were.
    pub error: Option<String>,
}

/// The sample of questions that a project labels.
#[derive(Clone, Debug, PartialEq)]
pub struct Drawn {
    /// The number of questions that the sample was drawn from.
    pub of: usize,
    /// The number of passages of every lane that the project holds.
    pub depth: usize,
    /// The passages that others label.
    pub others: Vec<Item>,
}

/// A written label and its effect.
#[derive(Clone, Debug)]
pub struct Written {
    /// The entry, which is on disk.
    pub entry: Entry,
    /// The passage's number, if this corpus holds it.
    pub at: Option<PassageIx>,
    /// The statements of the question, each with the label by hand that now counts: `Some(None)` for a tie of annotators.
    pub labels: Vec<(String, Option<Option<bool>>)>,
}
