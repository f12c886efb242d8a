//! The comparison screen: the lanes over the question set.
//!
//! May use: as `screens` says.

pub mod draw;
pub mod screen;

use crate::engine::{Compared, Sources};
use crate::report::plot::Series;
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
    /// The measure that the cells show.
    pub shown: Shown,
    /// Whether the means are shown rather than the marked question, where there is room for one of them only.
    pub means: bool,
    /// The figures shown.
    pub summary: Summary,
    /// What is shown of the marked question.
    pub marked: MarkedQuestion,
}

/// The figures over all outcomes; recomputed when one arrives, or the lane under the cursor, k or the order changes.
#[derive(Clone, Debug, Default)]
pub struct Summary {
    /// The indices of the questions in the order they are shown.
    pub rows: Vec<usize>,
    /// Each lane's figures over the questions.
    pub lanes: Vec<LaneSummary>,
    /// Mean MRecall at 1 … k with its interval, one curve per lane; empty until a question is done.
    pub curves: Vec<Series>,
    /// On how many judgments each point of each curve rests.
    pub sources: Vec<Vec<Sources>>,
    /// The value of each cell: per question of the set, per lane; `None` without a value.
    pub values: Vec<Vec<Option<f64>>>,
    /// The batch, questions done, lane under the cursor, lanes, k, order and measure that this was computed from.
    inputs: Option<(u64, usize, usize, usize, usize, Order, Shown)>,
}

/// What the lanes share on the marked question; worked out again when another one is marked or the summary changes.
#[derive(Clone, Debug, Default)]
pub struct MarkedQuestion {
    /// Jaccard and RBO of each lane against the lane under the cursor; `None` if both lists are empty.
    pub overlaps: Vec<Option<(f64, f64)>>,
    /// The ranks, from 0, of the passages that only this lane has, by lane.
    pub only: Vec<Vec<usize>>,
    /// The index of the question.
    row: Option<usize>,
}

/// A lane's figures over the question set, as they are shown.
#[derive(Clone, Debug, Default)]
pub struct LaneSummary {
    /// The mean of the measure that the cells show, and its interval.
    pub mean: Option<(f64, f64, f64)>,
    /// Mean MRecall with its interval.
    pub mrecall: String,
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
    /// Least of the lane under the cursor first, by the measure shown.
    Least,
    /// Greatest of the lane under the cursor first, by the measure shown.
    Greatest,
    /// By the question's text.
    Text,
}

/// The measure that the cells of the table show.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Shown {
    /// MRecall@k.
    #[default]
    MRecall,
    /// Prec@k.
    Prec,
    /// The lean.
    Lean,
    /// RBO with the lane under the cursor.
    Overlap,
}

impl Shown {
    /// All measures, in the order in which a key shows them.
    pub const ALL: [Shown; 4] = [Shown::MRecall, Shown::Prec, Shown::Lean, Shown::Overlap];

    /// Its name on screen.
    pub fn name(self) -> &'static str {
        match self {
            Shown::MRecall => "MRecall",
            Shown::Prec => "Prec",
            Shown::Lean => "lean",
            Shown::Overlap => "RBO",
        }
    }

    /// Its value for a lane on a question; `None` if it has none.
    pub fn of(self, compared: &Compared, lane: usize, against: usize) -> Option<f64> {
        let figures = compared.figures.get(lane)?.as_ref();
        match self {
            Shown::MRecall => compared.at(lane, figures?.k).map(|(recall, _)| recall),
            Shown::Prec => compared.at(lane, figures?.k).map(|(_, prec)| prec),
            Shown::Lean => figures.and_then(|_| compared.lean(lane)),
            Shown::Overlap => compared.overlap(lane, against).map(|(_, rbo)| rbo),
        }
    }

    /// Whether any of it can be negative.
    pub fn is_signed(self) -> bool {
        self == Shown::Lean
    }
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
        "order the questions as in the set, by disagreement, by the lane's figure, or by their text",
    ),
    bind(
        Context::Compare,
        &["m"],
        Action::NextMeasure,
        "measure",
        "show MRecall, Prec, lean or overlap in the cells",
    ),
    bind(
        Context::Compare,
        &["<Esc>", "q", "c"],
        Action::Back,
        "back",
        "go back to the lanes; the comparison stops",
    ),
    bind(
        Context::Compare,
        &["<Space>"],
        Action::OverSet,
        "means",
        "show the means over the set or the marked question, where there is room for one",
    ),
    shared::next_lane(Context::Compare, "compare the others with the next lane"),
    shared::previous_lane(Context::Compare, "compare the others with the lane before"),
    shared::label_source(Context::Compare),
    shared::save_frame(Context::Compare),
    shared::record(Context::Compare),
    shared::help(Context::Compare),
    shared::palette(Context::Compare),
];
