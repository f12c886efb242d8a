//! What is read from the lanes' lists, and what was answered from them.
//!
//! May use: as `screens` says.

use std::sync::Arc;

use crate::corpus::PassageIx;
use crate::detect::LabelSource;
use crate::engine::{Ranking, StanceTimeline};
use crate::question::Question;
use crate::read::Answer;
use crate::read::incremental::Reordered;
use crate::tui::keymap::action::{Action, Binding, Context, Screen, bind};

pub mod draw;
pub mod update;

impl Screen {
    /// What is read from the lanes' lists.
    pub const READER: Screen = Screen("reader");
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
    bind(Context::Answer, &["<Tab>", "<Right>", "l"], Action::NextLane, "lane", "show the next lane"),
    bind(Context::Answer, &["<S-Tab>", "<Left>", "h"], Action::PreviousLane, "", "show the lane before"),
    bind(Context::Answer, &["<Esc>", "q", "r"], Action::Back, "back", "go back to the lanes"),
    bind(Context::Answer, &["+"], Action::Deeper, "depth", "let one more passage count (k)"),
    bind(Context::Answer, &["-"], Action::Shallower, "", "let one passage less count (k)"),
    bind(Context::Answer, &["j", "<Down>"], Action::Down, "", "go to the next passage"),
    bind(Context::Answer, &["k", "<Up>"], Action::Up, "", "go to the passage before"),
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
    bind(
        Context::Answer,
        &["s"],
        Action::NextLabelSource,
        "labels",
        "let other labels count: auto, model, gold, human",
    ),
    bind(Context::Answer, &["S"], Action::SaveFrame, "", "save the frame as an SVG picture"),
    bind(Context::Answer, &["R"], Action::Record, "", "record the session, or stop"),
    bind(Context::Answer, &["?"], Action::Help, "keys", "show all keys"),
    bind(Context::Answer, &[":"], Action::Palette, "", "find an action by its words"),
];

/// The reader screen.
#[derive(Clone, Debug, Default)]
pub struct Answering {
    /// The batch whose answers are taken.
    pub number: u64,
    /// What was changed in each lane's list, by the lane's place.
    pub edits: Vec<Edits>,
    /// What the lists were before each change, with their lane.
    pub past: Vec<(usize, Edits)>,
    /// The marked passage, from 0.
    pub at: usize,
    /// The passages whose answers are known, in the order they were read.
    pub read: Vec<PassageIx>,
    /// The answers from the first 1 … of them.
    pub answers: Vec<Answer>,
    /// More are on the way.
    pub going: bool,
    /// Why there are no more.
    pub failed: Option<String>,
    /// The answers without each passage, and from other orders, of the list `aside`.
    pub without: Vec<Answer>,
    /// How the reader shared its attention out among the passages of the list `aside`, where it can say.
    pub attention: Vec<f64>,
    /// See `without`.
    pub reordered: Option<Reordered>,
    /// The list that was read otherwise.
    pub aside: Vec<PassageIx>,
    /// What is shown of every lane's list, by the lane's place.
    pub lists: Vec<ReadLane>,
}

/// A lane's list as it is read, worked out whenever the list, a judgment, k or an edit changes.
#[derive(Clone, Debug, Default)]
pub struct ReadLane {
    /// Its first k, dropped ones in their places.
    pub rows: Vec<Row>,
    /// What they do to its stance; none where the question has no two sides.
    pub timeline: Option<StanceTimeline>,
    inputs: Option<Inputs>,
}

/// What it depends on. Lists are compared by identity: they are replaced, never changed.
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

/// A lane's list as the user wants it read.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Edits {
    /// The passages in this order; those that are not named follow as they rank.
    pub order: Vec<PassageIx>,
    /// Passages that are not read.
    pub dropped: Vec<PassageIx>,
}

/// A passage of the list.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Row {
    /// Which.
    pub at: PassageIx,
    /// Its rank in the lane, from 1.
    pub rank: usize,
    /// It is not read.
    pub dropped: bool,
}
