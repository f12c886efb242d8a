//! The comparison screen: the lanes over the question set.
//!
//! May use: as `screens` says.

pub mod screen;

use crate::engine::Compared;
use crate::tui::keymap::action::{Action, Binding, Context, Screen, bind, shared};

impl Screen {
    /// The comparison screen.
    pub const COMPARE: Screen = Screen("compare");
}

/// The state of the comparison screen.
#[derive(Clone, Debug, Default)]
pub struct Comparing {
    /// The batch whose outcome is shown.
    pub number: u64,
    /// The outcome of each question of the set, once it has arrived.
    pub questions: Vec<Option<Result<Compared, String>>>,
    /// The index of the marked row.
    pub at: usize,
    /// How the rows are ordered.
    pub order: Order,
    /// The figures shown.
    pub summary: Summary,
}

/// The figures over all outcomes; recomputed when one arrives, or the lane under the cursor, k or the order changes.
#[derive(Clone, Debug, Default)]
pub struct Summary {
    /// The indices of the questions in the order they are shown.
    pub rows: Vec<usize>,
    /// Each lane's figures over the questions.
    pub lanes: Vec<LaneSummary>,
    /// Mean MRecall at 1 … k, one curve per lane; empty until a question is done.
    pub curves: Vec<Vec<(f64, f64)>>,
    /// The batch, questions done, lane under the cursor, lanes, k and order that this was computed from.
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
    /// Jaccard and RBO against the lane under the cursor.
    pub overlap: String,
    /// The corrected p of the difference from that lane, or the number of questions that failed.
    pub p: String,
}

/// How the questions of a comparison are ordered.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Order {
    /// As in the set.
    #[default]
    Set,
    /// Largest difference between the lanes first.
    Disagreement,
    /// Worst of the lane under the cursor first.
    Worst,
}

impl Comparing {
    /// Whether the outcome of every question has arrived.
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
    shared::down(Context::Compare, "", "go to the next question"),
    shared::up(Context::Compare, "go to the question before"),
    shared::page_down(Context::Compare, "", "go a screen down"),
    shared::page_up(Context::Compare, "go a screen up"),
    shared::first(Context::Compare, "go to the first question"),
    shared::last(Context::Compare, "go to the last question"),
    bind(
        Context::Compare,
        &["o"],
        Action::NextOrder,
        "order",
        "order the questions as in the set, by disagreement, or worst first",
    ),
    shared::next_lane(Context::Compare, "compare the others with the next lane"),
    shared::previous_lane(Context::Compare, "compare the others with the lane before"),
    shared::label_source(Context::Compare),
    bind(
        Context::Compare,
        &["<Esc>", "q", "c"],
        Action::Back,
        "back",
        "go back to the lanes; the comparison stops",
    ),
    shared::save_frame(Context::Compare),
    shared::record(Context::Compare),
    shared::help(Context::Compare),
    shared::palette(Context::Compare),
];
