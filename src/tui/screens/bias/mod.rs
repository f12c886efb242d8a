//! The bias screen: which side each lane favours, and whose passages it returns.
//!
//! May use: as `screens` says.

pub mod measure;
pub mod screen;

use std::sync::Arc;

use crate::corpus::store::{Field, Fields};
use crate::detect::LabelSource;
use crate::engine::{Ranking, Sources};
use crate::measure::pir::{Crossed, Standing};
use crate::question::Question;
use crate::tui::keymap::action::{Action, Binding, Context, Screen, bind, shared};

impl Screen {
    /// The bias screen.
    pub const BIAS: Screen = Screen("bias");
}

/// The state of the bias screen. Outcomes over the question set are part of the comparison's state.
#[derive(Clone, Debug, Default)]
pub struct BiasState {
    /// The metadata fields of the corpus, once they are counted.
    pub fields: Option<Arc<Fields>>,
    /// The index of the category shown.
    pub at: usize,
    /// Whether to measure over the whole question set instead of this question.
    pub over_set: bool,
    /// The index of the first value shown.
    pub scroll: usize,
    /// The index of the category whose values the lanes show.
    pub on_lanes: Option<usize>,
    /// The tables that are drawn.
    pub measured: Measured,
}

/// The rows of the tables; recomputed when a list, a judgment, k, the field or the lane under the cursor changes.
#[derive(Clone, Debug, Default)]
pub struct Measured {
    /// The sides that each lane favours.
    sides: Vec<SideRow>,
    /// Whether the sides covered are shares rather than words.
    as_shares: bool,
    /// For each lane, every value's share of the first k and of the corpus.
    standings: Vec<Vec<Standing>>,
    /// Values asked for × values retrieved by the lane under the cursor, one row per value that a question asks for.
    matrix: Vec<Crossed>,
    inputs: Option<Inputs>,
}

/// A lane's row in the table of sides.
#[derive(Clone, Debug, Default)]
struct SideRow {
    /// The sides that the first k cover: in words for one question, as shares over the set.
    covered: String,
    /// The shares of questions, or of draws, that cover one side, the other, both and neither.
    shares: Option<[f64; 4]>,
    /// How many of the first k support each statement, for one question that has not two sides.
    supporters: Vec<usize>,
    /// The mean lean.
    lean: Option<f64>,
    /// Its interval, if there is one.
    interval: Option<(f64, f64)>,
    rkl: String,
    awrf: String,
    /// How many passages take no side, and of how many: `2/5`.
    no_side: String,
    /// On how many judgments the figures rest.
    sources: Sources,
}

/// The inputs of the tables. Lists and fields are compared by identity: they are replaced, never changed.
#[derive(Clone, Debug)]
struct Inputs {
    /// Over the set: the batch, and how many of its questions are done.
    set: Option<(u64, usize)>,
    judgments: (u64, LabelSource),
    question: Question,
    k: usize,
    /// The category shown and the lane under the cursor.
    shown: (usize, usize),
    fields: Option<Arc<Fields>>,
    lists: Vec<(bool, Ranking)>,
}

impl Inputs {
    fn same(&self, now: &Inputs) -> bool {
        let lists = |before: &(bool, Ranking), now: &(bool, Ranking)| {
            before.0 == now.0 && Arc::ptr_eq(&before.1, &now.1)
        };
        let fields = match (&self.fields, &now.fields) {
            (Some(before), Some(now)) => Arc::ptr_eq(before, now),
            (None, None) => true,
            _ => false,
        };
        (self.set, self.judgments, self.k, self.shown) == (now.set, now.judgments, now.k, now.shown)
            && fields
            && self.question == now.question
            && self.lists.len() == now.lists.len()
            && self.lists.iter().zip(&now.lists).all(|(before, now)| lists(before, now))
    }
}

impl BiasState {
    /// The category at an index.
    pub fn category(&self, at: usize) -> Option<&Field> {
        self.fields.as_ref()?.categories.get(at)
    }
}

/// The keys.
pub const KEYS: &[Binding] = &[
    bind(
        Context::Bias,
        &["<Tab>"],
        Action::NextField,
        "field",
        "go to the next field that the passages carry",
    ),
    bind(Context::Bias, &["<S-Tab>"], Action::PreviousField, "", "go to the field before"),
    bind(
        Context::Bias,
        &["<Enter>"],
        Action::OnLanes,
        "show on the lanes",
        "show the field's values on the lanes, or no longer",
    ),
    bind(
        Context::Bias,
        &["o"],
        Action::OverSet,
        "over the set",
        "measure over the question set, or on this question alone",
    ),
    bind(Context::Bias, &["<Right>", "l"], Action::NextLane, "lane", "go to the next lane"),
    bind(Context::Bias, &["<Left>", "h"], Action::PreviousLane, "", "go to the lane before"),
    shared::down(Context::Bias, "", "scroll the values down"),
    shared::up(Context::Bias, "scroll the values up"),
    shared::label_source(Context::Bias),
    bind(Context::Bias, &["<Esc>", "q", "F"], Action::Back, "back", "go back to the lanes"),
    shared::save_frame(Context::Bias),
    shared::record(Context::Bias),
    shared::help(Context::Bias),
    shared::palette(Context::Bias),
];
