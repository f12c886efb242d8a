//! The question and its lanes side by side.
//!
//! May use: as `screens` says.

pub mod draw;
pub mod figures;
pub mod question;
pub mod rerank;
pub mod switches;
pub mod update;

use std::sync::Arc;

use crate::detect::LabelSource;
use crate::engine::recipe::Switch;
use crate::engine::{Change, Doubt, Figures, Ranking};
use crate::question::Question;
use crate::report::marks::Mark;
use crate::tui::keymap::action::{Action, Binding, Context, Screen, bind, shared};
use crate::tui::screens::labelling::label_keys;

impl Screen {
    /// The question and its lanes.
    pub const LANES: Screen = Screen("lanes");
}

/// The figures of a lane's lists, recomputed when a list, a judgment, k, the baseline or the filter changes.
#[derive(Clone, Debug, Default)]
pub struct LaneFigures {
    /// The figures of the list; `None` until it has arrived, or if the question has no statements.
    pub now: Option<Figures>,
    /// The difference from the baseline.
    pub change: Option<Change>,
    /// Means and intervals if a model judged; `None` until every passage that counts was judged.
    pub doubt: Option<Doubt>,
    /// The marks of the first k, in their order.
    pub marks: Vec<Mark>,
    /// The list asked as the supporting and as the opposing statement, once it is there.
    pub asked: Option<[Reworded; 2]>,
    /// The shift between both, and its difference from the baseline's.
    pub shift: Option<(f64, Option<f64>)>,
    /// Whether the wordings were expanded in different ways, so that the shift depends on the expansions too.
    pub unlike: bool,
    /// The baseline's list. Moves in rank are counted from it.
    pub before: Option<Ranking>,
    /// The indices of the passages that pass the filter, best first.
    pub shown: Vec<usize>,
    inputs: Option<Inputs>,
}

/// A lane's list for one wording, as its strip and its gauge show it.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Reworded {
    /// The marks of the first k, in their order.
    pub marks: Vec<Mark>,
    /// The lean; `None` until the first k are judged.
    pub lean: Option<f64>,
}

/// The inputs of the figures.
#[derive(Clone, Debug)]
struct Inputs {
    ready: bool,
    list: Ranking,
    reworded: Option<[Ranking; 2]>,
    before: Option<BeforeInputs>,
    judgments: (u64, usize, LabelSource),
    question: Question,
    k: usize,
    filter: String,
}

/// The part of the inputs that comes from the baseline.
#[derive(Clone, Debug)]
struct BeforeInputs {
    list: Ranking,
    reworded: Option<[Ranking; 2]>,
    k: usize,
    judgments: (u64, LabelSource),
    /// Whether labels were written since.
    labelled: bool,
}

impl Inputs {
    /// Whether nothing has changed. Lists are compared by identity: they are replaced, never changed.
    fn same(&self, now: &Inputs) -> bool {
        let pairs = |one: &Option<[Ranking; 2]>, other: &Option<[Ranking; 2]>| match (one, other) {
            (Some(one), Some(other)) => one.iter().zip(other).all(|(one, other)| Arc::ptr_eq(one, other)),
            (None, None) => true,
            _ => false,
        };
        let before = match (&self.before, &now.before) {
            (Some(one), Some(other)) => {
                Arc::ptr_eq(&one.list, &other.list)
                    && pairs(&one.reworded, &other.reworded)
                    && (one.k, one.judgments, one.labelled) == (other.k, other.judgments, other.labelled)
            }
            (None, None) => true,
            _ => false,
        };
        before
            && Arc::ptr_eq(&self.list, &now.list)
            && pairs(&self.reworded, &now.reworded)
            && (self.ready, self.judgments, self.k) == (now.ready, now.judgments, now.k)
            && self.filter == now.filter
            && self.question == now.question
    }
}

/// The keys that label the passage under the cursor.
pub const LABELS: [Binding; 8] = label_keys(Context::Lanes);

/// The keys.
pub const KEYS: &[Binding] = &[
    bind(Context::Question, &["<Enter>"], Action::Ask, "ask", "put the question to all lanes"),
    bind(Context::Question, &["<Tab>"], Action::Complete, "complete", "take the marked question of the set"),
    bind(Context::Question, &["<Esc>"], Action::Back, "to the lanes", "leave the question line"),
    bind(Context::Question, &["<Down>"], Action::NextCompletion, "", "mark the next question of the set"),
    bind(
        Context::Question,
        &["<Up>"],
        Action::PreviousCompletion,
        "",
        "mark the one before, or recall what was asked",
    ),
    bind(Context::Lanes, &["<Enter>"], Action::Read, "read", "read the passage in full"),
    bind(Context::Lanes, &["/"], Action::EditQuestion, "ask", "edit the question"),
    shared::help(Context::Lanes),
    bind(Context::Lanes, &["q"], Action::Quit, "quit", "leave"),
    shared::palette(Context::Lanes),
    bind(Context::Lanes, &["m"], Action::Toggle(Switch::Mmr), "mmr", "re-rank the lane by MMR, or not"),
    bind(Context::Lanes, &["e"], Action::Toggle(Switch::Expand), "expand", "expand the lane's query, or not"),
    bind(
        Context::Lanes,
        &["p"],
        Action::Toggle(Switch::Project),
        "project",
        "project the lane's query, or not",
    ),
    bind(
        Context::Lanes,
        &["v"],
        Action::Toggle(Switch::Diversify),
        "diversify",
        "re-rank the lane by verdicts, or not",
    ),
    bind(
        Context::Lanes,
        &["O"],
        Action::Rerank,
        "",
        "have the next fetched re-ranker order the lane, or none after the last",
    ),
    bind(Context::Lanes, &["t"], Action::Tune, "tune", "compare all forms of the lane's switches"),
    bind(
        Context::Lanes,
        &["x"],
        Action::Swap,
        "before/after",
        "swap the lanes with what differences are shown from",
    ),
    bind(
        Context::Lanes,
        &["X"],
        Action::Pin,
        "",
        "show all differences from the present state, or from the last act again",
    ),
    bind(Context::Lanes, &["z"], Action::Present, "present", "show two lanes in large, or all lanes again"),
    bind(Context::Lanes, &["."], Action::Explain, "", "explain the lane's figures, one after another"),
    bind(
        Context::Lanes,
        &["<Esc>"],
        Action::Back,
        "",
        "go one step back: stop what is running, or show all passages",
    ),
    bind(
        Context::Lanes,
        &["y"],
        Action::Sycophancy,
        "sycophancy",
        "ask every lane neutrally and as either side, to see how far it follows the wording",
    ),
    bind(Context::Lanes, &["c"], Action::Compare, "compare", "compare the lanes over the question set"),
    bind(Context::Lanes, &["a"], Action::Annotate, "annotate", "label passages by hand"),
    bind(
        Context::Lanes,
        &["F"],
        Action::Bias,
        "bias",
        "show which sides the lanes favour, and whose passages they bring up",
    ),
    bind(
        Context::Lanes,
        &["r"],
        Action::Answers,
        "reader",
        "see what is read from the first k, and which passage turns it",
    ),
    bind(
        Context::Lanes,
        &["K"],
        Action::KeyPoints,
        "key points",
        "see which arguments the passages make, and which of them each lane brings",
    ),
    bind(Context::Lanes, &["D"], Action::ChooseDetector, "", "choose what judges, and fetch detectors"),
    shared::next_lane(Context::Lanes, "go to the next lane"),
    shared::previous_lane(Context::Lanes, "go to the lane before"),
    shared::down(Context::Lanes, "", "go to the next passage"),
    shared::up(Context::Lanes, "go to the passage before"),
    shared::page_down(Context::Lanes, "", "go a screen down"),
    shared::page_up(Context::Lanes, "go a screen up"),
    shared::first(Context::Lanes, "go to the first passage"),
    shared::last(Context::Lanes, "go to the last passage"),
    bind(Context::Lanes, &["f"], Action::Filter, "filter", "show only passages that hold certain words"),
    bind(Context::Lanes, &["="], Action::Together, "", "let all lanes scroll together, or each alone"),
    bind(Context::Filter, &["<Enter>"], Action::KeepFilter, "keep", "keep the filter and go to the lanes"),
    bind(Context::Filter, &["<Esc>"], Action::Back, "show all", "show all passages again"),
    bind(Context::Filter, &["<Down>"], Action::Down, "", "go to the next passage"),
    bind(Context::Filter, &["<Up>"], Action::Up, "", "go to the passage before"),
    bind(Context::Lanes, &["+"], Action::Deeper, "depth", "let one more passage count (k)"),
    bind(Context::Lanes, &["-"], Action::Shallower, "", "let one passage less count (k)"),
    shared::label_source(Context::Lanes),
    bind(
        Context::Lanes,
        &["M"],
        Action::ToggleEverywhere(Switch::Mmr),
        "",
        "re-rank every lane by MMR, or none",
    ),
    bind(
        Context::Lanes,
        &["E"],
        Action::ToggleEverywhere(Switch::Expand),
        "",
        "expand the query of every lane, or of none",
    ),
    bind(
        Context::Lanes,
        &["P"],
        Action::ToggleEverywhere(Switch::Project),
        "",
        "project the query of every lane of vectors, or of none",
    ),
    bind(
        Context::Lanes,
        &["V"],
        Action::ToggleEverywhere(Switch::Diversify),
        "",
        "re-rank every lane by verdicts, or none",
    ),
    bind(
        Context::Lanes,
        &[">"],
        Action::MoreRelevance,
        "",
        "let relevance count more in the lane's re-ranking",
    ),
    bind(
        Context::Lanes,
        &["<lt>"],
        Action::LessRelevance,
        "",
        "let difference count more in the lane's re-ranking",
    ),
    bind(
        Context::Lanes,
        &["n"],
        Action::NewLane,
        "new lane",
        "add a lane: a retriever, a recipe, or one that was dropped",
    ),
    bind(Context::Lanes, &["Q"], Action::PickQuestion, "", "choose a question of the set"),
    bind(Context::Lanes, &["C"], Action::PickCorpus, "", "choose another corpus"),
    bind(
        Context::Lanes,
        &["B"],
        Action::MakeCorpus,
        "",
        "build a corpus for the question from pages of the web, which the configuration's `provider` finds",
    ),
    bind(Context::Lanes, &["d"], Action::DropLane, "", "drop the lane"),
    bind(Context::Lanes, &["["], Action::LaneLeft, "", "move the lane to the left"),
    bind(Context::Lanes, &["]"], Action::LaneRight, "", "move the lane to the right"),
    bind(Context::Lanes, &["Y"], Action::CopyRecipe, "", "copy the lane's recipe, for --lane"),
    bind(
        Context::Lanes,
        &["S"],
        Action::SaveFrame,
        "",
        "save the frame as an SVG picture in the present folder",
    ),
    bind(Context::Lanes, &["R"], Action::Record, "", "record the session in the present folder, or stop"),
    bind(Context::Lanes, &["i"], Action::EditStatements, "statements", "edit the question's statements"),
];
