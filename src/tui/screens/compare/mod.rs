//! The lanes over the question set.
//!
//! May use: as `screens` says.

pub mod screen;

use crate::engine::Compared;
use crate::tui::keymap::action::{Action, Context, Screen};
use crate::tui::keymap::action::{Binding, bind};

impl Screen {
    /// The lanes over the question set.
    pub const COMPARE: Screen = Screen("compare");
}

/// The lanes over the question set.
#[derive(Clone, Debug, Default)]
pub struct Comparing {
    /// The batch whose outcome is shown.
    pub number: u64,
    /// One a question of the set, once it is there.
    pub questions: Vec<Option<Result<Compared, String>>>,
    /// The marked row, from 0.
    pub at: usize,
    /// How the rows are ordered.
    pub order: Order,
    /// What is shown of the outcomes.
    pub summary: Summary,
}

/// What the outcomes come to, worked out whenever one arrives or the lane with the cursor changes.
#[derive(Clone, Debug, Default)]
pub struct Summary {
    /// The questions' numbers in the order they are shown.
    pub rows: Vec<usize>,
    /// Each lane's figures over the questions.
    pub lanes: Vec<LaneSummary>,
    /// Mean MRecall at 1 … k, a curve a lane; none until a question is done.
    pub curves: Vec<Vec<(f64, f64)>>,
    /// The batch, questions done, lane with the cursor, lanes, k and order that this was worked out for.
    inputs: Option<(u64, usize, usize, usize, usize, Order)>,
}

/// A lane's figures over the question set, as they are shown.
#[derive(Clone, Debug, Default)]
pub struct LaneSummary {
    /// Mean MRecall with its interval.
    pub recall: String,
    /// Mean Prec.
    pub prec: String,
    /// Shares of the two-sided questions whose first k cover one side, the other, both, neither.
    pub sides: String,
    /// Jaccard and RBO with the lane with the cursor.
    pub overlap: String,
    /// The corrected p of the difference from that lane, or how many questions failed.
    pub p: String,
}

/// How the questions of a comparison are ordered.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Order {
    /// As in the set.
    #[default]
    Set,
    /// Where the lanes differ most, first.
    Disagreement,
    /// Where the lane with the cursor is worst, first.
    Worst,
}

impl Comparing {
    /// Whether the outcome of every question is there.
    pub fn ended(&self) -> bool {
        self.questions.iter().all(Option::is_some)
    }
}

/// The keys.
pub const KEYS: &[Binding] = &[
    bind(
        Context::Compare,
        &["<Enter>"],
        Action::OpenQuestion,
        "open",
        "open the marked question with the same lanes",
    ),
    bind(Context::Compare, &["j", "<Down>"], Action::Down, "", "go to the next question"),
    bind(Context::Compare, &["k", "<Up>"], Action::Up, "", "go to the question before"),
    bind(Context::Compare, &["<PageDown>", "<C-d>"], Action::PageDown, "", "go a screen down"),
    bind(Context::Compare, &["<PageUp>", "<C-u>"], Action::PageUp, "", "go a screen up"),
    bind(Context::Compare, &["g", "<Home>"], Action::First, "", "go to the first question"),
    bind(Context::Compare, &["G", "<End>"], Action::Last, "", "go to the last question"),
    bind(
        Context::Compare,
        &["o"],
        Action::NextOrder,
        "order",
        "order the questions as in the set, by disagreement, or worst first",
    ),
    bind(
        Context::Compare,
        &["<Tab>", "<Right>", "l"],
        Action::NextLane,
        "lane",
        "compare the lanes with the next one",
    ),
    bind(
        Context::Compare,
        &["<S-Tab>", "<Left>", "h"],
        Action::PreviousLane,
        "",
        "compare the lanes with the one before",
    ),
    bind(
        Context::Compare,
        &["s"],
        Action::NextLabelSource,
        "labels",
        "let other labels count: auto, model, gold, human",
    ),
    bind(
        Context::Compare,
        &["<Esc>", "q", "c"],
        Action::Back,
        "back",
        "go back to the lanes; the comparison stops",
    ),
    bind(Context::Compare, &["S"], Action::SaveFrame, "", "save the frame as an SVG picture"),
    bind(Context::Compare, &["R"], Action::Record, "", "record the session, or stop"),
    bind(Context::Compare, &["?"], Action::Help, "keys", "show all keys"),
    bind(Context::Compare, &[":"], Action::Palette, "", "find an action by its words"),
];
