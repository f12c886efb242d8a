//! The reader screen: the lanes' lists as a reader reads them, and its answers. Also the screens of the answer's sides, of the key points that the lists
//! bring, and of lists mixed by hand.
//!
//! May use: as `screens` says.

use std::sync::Arc;

use tui_input::Input;

use crate::corpus::PassageIx;
use crate::detect::LabelSource;
use crate::engine::answer::{Assessed, Coverage};
use crate::engine::nuggets::KeyPoint;
use crate::engine::{Ranking, StanceTimeline};
use crate::question::Question;
use crate::read::incremental::Reordered;
use crate::read::mix::{Mix, Said, TooFew};
use crate::read::pattern::Sides;
use crate::read::{Answer, Effect, Pattern};
use crate::tui::keymap::action::{Action, Binding, Context, Screen, bind, shared};
use crate::work::Progress;

pub mod draw;
pub mod mix;
pub mod nuggets;
pub mod sides;
pub mod update;

impl Screen {
    /// The reader screen.
    pub const READER: Screen = Screen("reader");
    /// The key points.
    pub const POINTS: Screen = Screen("key points");
    /// The mixer.
    pub const MIXER: Screen = Screen("mixer");
    /// The sides of the answer.
    pub const SIDES: Screen = Screen("answer sides");
}

/// The keys.
pub const KEYS: &[Binding] = &[
    bind(
        Context::Answer,
        &["x", "d"],
        Action::DropPassage,
        "drop/restore",
        "leave the passage out of what is read, or take it in again",
    ),
    bind(Context::Answer, &["J"], Action::PassageDown, "move", "let the passage be read one later"),
    bind(Context::Answer, &["K"], Action::PassageUp, "", "let the passage be read one earlier"),
    bind(Context::Answer, &["u"], Action::Undo, "undo", "take the last change back"),
    bind(
        Context::Answer,
        &["<Enter>"],
        Action::HaveRead,
        "read/stop",
        "have the reader answer from the first 1 … k, or give that up",
    ),
    bind(
        Context::Answer,
        &["a"],
        Action::AnswerSides,
        "answer's sides",
        "see which sides of the list reach the answer, and where each of its sentences is supported",
    ),
    bind(
        Context::Answer,
        &["m"],
        Action::Mix,
        "mix",
        "mix a list by hand: so many for either side, in an order",
    ),
    shared::next_lane(Context::Answer, "show the next lane"),
    shared::previous_lane(Context::Answer, "show the lane before"),
    bind(Context::Answer, &["<Esc>", "q", "r"], Action::Back, "back", "go back to the lanes"),
    bind(Context::Answer, &["+"], Action::Deeper, "depth", "let one more passage count (k)"),
    bind(Context::Answer, &["-"], Action::Shallower, "", "let one passage less count (k)"),
    shared::down(Context::Answer, "", "go to the next passage"),
    shared::up(Context::Answer, "go to the passage before"),
    bind(
        Context::Answer,
        &["1", "2", "3", "4", "5", "6"],
        Action::Probe(0),
        "probe",
        "keep what the probe of this number keeps",
    ),
    bind(
        Context::Answer,
        &["w"],
        Action::WithoutEach,
        "without each",
        "have the list read without each of its passages",
    ),
    bind(Context::Answer, &["o"], Action::OtherOrders, "orders", "have the list read in ten shuffled orders"),
    shared::label_source(Context::Answer),
    shared::save_frame(Context::Answer),
    shared::record(Context::Answer),
    shared::help(Context::Answer),
    shared::palette(Context::Answer),
];

/// The keys of the key points.
pub const POINT_KEYS: &[Binding] = &[
    shared::down(Context::KeyPoints, "next", "go to the next key point"),
    shared::up(Context::KeyPoints, "go to the key point before"),
    bind(
        Context::KeyPoints,
        &["r", "<Enter>"],
        Action::NamePoint,
        "name",
        "type another name for the key point",
    ),
    bind(Context::PointName, &["<Enter>"], Action::ApplyName, "keep", "keep the name"),
    bind(Context::PointName, &["<Esc>"], Action::Back, "cancel", "leave the name as it was"),
    bind(
        Context::KeyPoints,
        &["m"],
        Action::MergePoint,
        "merge",
        "mark the key point to be merged; on another one of its side, merge the marked one into it",
    ),
    bind(Context::KeyPoints, &["s"], Action::SplitPoint, "split", "split the key point into its sentences"),
    bind(Context::KeyPoints, &["x", "d"], Action::DropPoint, "drop", "drop the key point: it is no argument"),
    bind(Context::KeyPoints, &["v"], Action::ToggleVital, "vital", "call the key point vital, or only okay"),
    bind(Context::KeyPoints, &["u"], Action::Undo, "undo", "take the last change back"),
    bind(
        Context::KeyPoints,
        &["Y"],
        Action::CopyPoints,
        "",
        "copy all key points, for eval nuggets --key-points",
    ),
    shared::next_lane(Context::KeyPoints, "go to the next lane"),
    shared::previous_lane(Context::KeyPoints, "go to the lane before"),
    shared::label_source(Context::KeyPoints),
    bind(Context::KeyPoints, &["<Esc>", "q", "K"], Action::Back, "back", "go back to the lanes"),
    shared::save_frame(Context::KeyPoints),
    shared::record(Context::KeyPoints),
    shared::help(Context::KeyPoints),
    shared::palette(Context::KeyPoints),
];

/// The keys of the mixer.
pub const MIX_KEYS: &[Binding] = &[
    shared::down(Context::Mixer, "next", "go to the next line"),
    shared::up(Context::Mixer, "go to the line before"),
    bind(
        Context::Mixer,
        &["+", "l", "<Right>"],
        Action::Deeper,
        "more",
        "one more of the marked line, or the next order",
    ),
    bind(Context::Mixer, &["-", "h", "<Left>"], Action::Shallower, "fewer", "one less of it"),
    bind(
        Context::Mixer,
        &["<Enter>"],
        Action::HaveRead,
        "read/stop",
        "have the reader read the list, or give that up",
    ),
    bind(
        Context::Mixer,
        &["w"],
        Action::SweepMix,
        "sweep",
        "have the lists read at every share of the first side",
    ),
    bind(Context::Mixer, &["<Esc>", "q", "m"], Action::Back, "back", "go back to the reader"),
    shared::save_frame(Context::Mixer),
    shared::record(Context::Mixer),
    shared::help(Context::Mixer),
    shared::palette(Context::Mixer),
];

/// The keys of the answer's sides.
pub const SIDE_KEYS: &[Binding] = &[
    shared::down(Context::AnswerSides, "next", "go to the next sentence"),
    shared::up(Context::AnswerSides, "go to the sentence before"),
    bind(
        Context::AnswerSides,
        &["<Enter>"],
        Action::HaveRead,
        "answer/stop",
        "have the reader answer from the list, or give that up",
    ),
    shared::next_lane(Context::AnswerSides, "go to the next lane"),
    shared::previous_lane(Context::AnswerSides, "go to the lane before"),
    bind(Context::AnswerSides, &["+"], Action::Deeper, "depth", "let one more passage count (k)"),
    bind(Context::AnswerSides, &["-"], Action::Shallower, "", "let one passage less count (k)"),
    shared::label_source(Context::AnswerSides),
    bind(Context::AnswerSides, &["<Esc>", "q", "a"], Action::Back, "back", "go back to the reader"),
    shared::save_frame(Context::AnswerSides),
    shared::record(Context::AnswerSides),
    shared::help(Context::AnswerSides),
    shared::palette(Context::AnswerSides),
];

/// The state of the screen of the answer's sides.
#[derive(Clone, Debug, Default)]
pub struct AnswerSides {
    /// The batch whose answer is taken.
    pub number: u64,
    /// Whether more will come.
    pub going: bool,
    /// The lane whose list was read, from 0.
    pub lane: usize,
    /// How many of its passages counted.
    pub k: usize,
    /// The passages that were read.
    pub read: Vec<PassageIx>,
    /// The answer, judged or not.
    pub answer: Option<Answer>,
    /// The answer, judged, with what is known of the judge's errors.
    pub assessed: Option<(Assessed, String)>,
    /// Why there is no answer.
    pub failed: Option<String>,
    /// The marked sentence, from 0.
    pub at: usize,
    /// What is drawn.
    pub shown: SidesShown,
}

/// What is drawn of an answer's sides, recomputed after every message.
#[derive(Clone, Debug, Default)]
pub struct SidesShown {
    /// Whether the answer is from the present list of the lane under the cursor.
    pub is_present: bool,
    /// The sides of list and answer, by the labels that count now; `None` until the answer is judged.
    pub coverage: Option<Coverage>,
    /// How many of the passages support each statement.
    pub counts: Vec<usize>,
}

/// The state of the mixer.
#[derive(Clone, Debug, Default)]
pub struct Mixing {
    /// The batch whose answers are taken.
    pub number: u64,
    /// The mixture.
    pub mix: Mix,
    /// The marked line, from 0.
    pub at: usize,
    /// How many lists are still to be read.
    pub waiting: usize,
    /// Whether the lists at every share are read, else the one list.
    pub sweep: bool,
    /// The reader's answers, one for each share, or one in all.
    pub answers: Vec<Option<Answer>>,
    /// The places in `answers` of the lists that are read.
    pub places: Vec<usize>,
    /// Why reading failed.
    pub failed: Option<String>,
    /// What is drawn of the mixture.
    pub shown: MixShown,
}

/// What is drawn of a mixture, recomputed after every message.
#[derive(Clone, Debug)]
pub struct MixShown {
    /// The list, or what it lacks.
    pub list: Result<Vec<crate::read::Context>, TooFew>,
    /// The sides of its passages.
    pub sides: Vec<Sides>,
    /// What the verdicts on its passages conclude.
    pub said: Option<Said>,
    /// How many shuffled orders conclude the same.
    pub stability: Option<f64>,
    /// What they conclude at every share of the first side.
    pub curve: Vec<Option<Said>>,
    /// How many passages of each kind there are.
    pub there: [usize; 3],
}

impl Default for MixShown {
    fn default() -> Self {
        MixShown {
            list: Ok(Vec::new()),
            sides: Vec::new(),
            said: None,
            stability: None,
            curve: Vec::new(),
            there: [0; 3],
        }
    }
}

/// The state of the key points.
#[derive(Clone, Debug, Default)]
pub struct Points {
    /// The batch that finds them.
    pub number: u64,
    /// The key points, or why there are none; `None` until they are found.
    pub found: Option<Result<Vec<KeyPoint>, String>>,
    /// How far the batch is.
    pub progress: Option<Progress>,
    /// The marked key point, from 0.
    pub at: usize,
    /// The key point that is to be merged.
    pub merging: Option<usize>,
    /// The key points before each change.
    pub past: Vec<Vec<KeyPoint>>,
    /// The name being typed.
    pub name: Option<Input>,
}

/// The state of the reader screen.
#[derive(Clone, Debug, Default)]
pub struct Answering {
    /// The batch whose answers are taken.
    pub number: u64,
    /// The changes to each lane's list, by the lane's index.
    pub edits: Vec<Edits>,
    /// The edits before each change, with their lane.
    pub past: Vec<(usize, Edits)>,
    /// The marked passage, from 0.
    pub at: usize,
    /// The passages that were read, in reading order.
    pub read: Vec<PassageIx>,
    /// The answers from the first 1 … of them.
    pub answers: Vec<Answer>,
    /// Whether more results will come.
    pub going: bool,
    /// Why the last reading failed.
    pub failed: Option<String>,
    /// The answers without each passage of the list `aside`.
    pub without: Vec<Answer>,
    /// The share of the reader's attention on each passage of the list `aside`; empty if the reader cannot say.
    pub attention: Vec<f64>,
    /// The result of the reorder test on the list `aside`.
    pub reordered: Option<Reordered>,
    /// The list that was read without each passage or in other orders.
    pub aside: Vec<PassageIx>,
    /// Every lane's list as it is drawn, by the lane's index.
    pub lists: Vec<ReadLane>,
    /// The answers as they are drawn.
    pub shown: AnswersShown,
}

/// A lane's list as it is read, recomputed when the list, a judgment, k or an edit changes.
#[derive(Clone, Debug, Default)]
pub struct ReadLane {
    /// Its first k; dropped passages keep their places.
    pub rows: Vec<Row>,
    /// The lane's stance after each passage; `None` if the question does not have two sides.
    pub timeline: Option<StanceTimeline>,
    inputs: Option<Inputs>,
}

/// The answers for the list of the lane under the cursor, recomputed when the list changes or a result arrives.
#[derive(Clone, Debug, Default)]
pub struct AnswersShown {
    /// How many of the answers hold for the list.
    pub count: usize,
    /// Whether every depth of the list has its answer.
    pub is_read: bool,
    /// Right or wrong at every k; `None` without gold answers.
    pub pattern: Option<Pattern>,
    /// The effect of each passage on the answer; `None` without gold answers.
    pub effects: Option<Vec<Effect>>,
    /// Whether each answer differs from the one before.
    pub changes: Vec<bool>,
    /// Whether the answer changes without the passage at each place; `None` if that was not read.
    pub hangs: Vec<Option<bool>>,
    /// The share of the reader's attention on each passage; empty if it is not known.
    pub attention: Vec<f64>,
    /// The result of the reorder test, if the list had one.
    pub reordered: Option<Reordered>,
    inputs: Option<AnswerInputs>,
}

/// The inputs of [`AnswersShown`]. Within a batch, answers are only added.
#[derive(Clone, Debug, PartialEq)]
struct AnswerInputs {
    /// The batch, and how many answers, answers without a passage and shares of attention have arrived.
    arrived: (u64, usize, usize, usize),
    reordered: Option<Reordered>,
    gold: Vec<String>,
    /// The passages that are read.
    kept: Vec<PassageIx>,
}

/// The inputs of [`ReadLane`]. Lists are compared by identity: they are replaced, never changed.
#[derive(Clone, Debug)]
struct Inputs {
    pub list: Ranking,
    pub edits: Edits,
    pub judgments: (u64, LabelSource),
    pub question: Question,
    pub k: usize,
}

impl Inputs {
    pub fn same(&self, now: &Inputs) -> bool {
        Arc::ptr_eq(&self.list, &now.list)
            && self.edits == now.edits
            && (self.judgments, self.k) == (now.judgments, now.k)
            && self.question == now.question
    }
}

/// The user's changes to a lane's list.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Edits {
    /// The passages in their new order; passages not named here follow by rank.
    pub order: Vec<PassageIx>,
    /// Passages that are not read.
    pub dropped: Vec<PassageIx>,
}

/// A passage of the list.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Row {
    /// The passage.
    pub at: PassageIx,
    /// Its rank in the lane, from 1.
    pub rank: usize,
    /// Whether it is not read.
    pub dropped: bool,
}
