//! The bias screen: which side each lane favours, and whose passages it returns.
//!
//! May use: as `screens` says.

pub mod screen;

use std::sync::Arc;

use crate::corpus::store::{Field, Fields};
use crate::detect::LabelSource;
use crate::engine::{Compared, Ranking};
use crate::question::Question;
use crate::tui::keymap::action::{Action, Context, Screen};
use crate::tui::keymap::action::{Binding, bind};

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
    /// The outcomes to measure.
    pub measured: Measured,
}

/// The outcome of this question, or all outcomes of the set so far; recomputed when a list, a judgment or k changes.
#[derive(Clone, Debug, Default)]
pub struct Measured {
    /// The outcomes.
    pub compared: Vec<Compared>,
    /// Their questions.
    pub questions: Vec<Question>,
    inputs: Option<Inputs>,
}

/// What the outcomes depend on. Lists are compared by identity: they are replaced, never changed.
#[derive(Clone, Debug)]
struct Inputs {
    /// Over the set: the batch, and how many of its questions are done.
    set: Option<(u64, usize)>,
    judgments: (u64, LabelSource),
    question: Question,
    k: usize,
    lists: Vec<(bool, Ranking)>,
}

impl Inputs {
    fn same(&self, now: &Inputs) -> bool {
        let lists = |before: &(bool, Ranking), now: &(bool, Ranking)| {
            before.0 == now.0 && Arc::ptr_eq(&before.1, &now.1)
        };
        (self.set, self.judgments, self.k) == (now.set, now.judgments, now.k)
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
    bind(Context::Bias, &["j", "<Down>"], Action::Down, "", "scroll the values down"),
    bind(Context::Bias, &["k", "<Up>"], Action::Up, "", "scroll the values up"),
    bind(
        Context::Bias,
        &["s"],
        Action::NextLabelSource,
        "labels",
        "let other labels count: auto, model, gold, human",
    ),
    bind(Context::Bias, &["<Esc>", "q", "b"], Action::Back, "back", "go back to the lanes"),
    bind(Context::Bias, &["S"], Action::SaveFrame, "", "save the frame as an SVG picture"),
    bind(Context::Bias, &["R"], Action::Record, "", "record the session, or stop"),
    bind(Context::Bias, &["?"], Action::Help, "keys", "show all keys"),
    bind(Context::Bias, &[":"], Action::Palette, "", "find an action by its words"),
];
