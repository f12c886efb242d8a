//! From a question to rankings, judgments and figures: the explorer and the commands are its clients.
//!
//! [`Setup`] holds the open corpus, indices and models. [`Query`] is a question with its lanes. [`rank()`] makes a lane's list and its
//! [`Trace`], [`Run`] the judgments, [`Figures`] the measures, and [`explain()`] says why a passage has its rank.
//! [`Engine`] runs queries for the explorer on threads of its own.
//!
//! May use: everything below it in the layers of ARCHITECTURE.md; nothing of `report`, `cli` and `tui`.

pub mod answer;
mod compare;
pub mod detectors;
mod explain;
mod figures;
mod judge;
mod judgments;
mod list;
pub mod nuggets;
mod opening;
mod parts;
pub(crate) mod pir;
pub(crate) mod pir_hub;
mod rank;
pub mod recipe;
mod retrieved;
mod run;
mod run_files;
mod setup;
pub mod sycophancy;
mod threads;
mod wording;

pub use compare::{
    Compared, EXAMPLE, Expected, FieldError, Sources, Uneven, category, compare, covered_sides, desired,
    sources_over_k,
};
pub use explain::{Explanation, Share, StanceTimeline, explain};
pub use figures::{Change, Doubt, Figures, FirstRank, Gap, Named, pooled};
pub use judge::{Judged, MANY, Shares};
pub use judgments::Judgments;
pub use list::{LaneError, List, Lists, Point, Projected, Ranked, Ranking, Step, Stood, Trace, Wording};
pub use opening::{MODELS, Opening, SetupError, detector, model_threads, readers};
pub use parts::sample_key;
pub use query::{Depth, LaneQuery, Query};
pub use rank::rank;
pub use recipe::Recipe;
pub use run::{Event, Lane, Outcome, Plain, Run, lane, rank_lanes, run};
pub use run_files::{Located, RunError, RunFiles};
pub use setup::{Setup, index_terms};
pub use sycophancy::{Sweep, Sycophancy, Tally, sweep, sycophancy};
pub use threads::{
    AnnotationState, Batch, Drawn, Engine, Labelling, LabelsChanged, Opened, PointsEvent, Reach, ReadEvent,
    ReadList, Reply, SendReply, SetLabel, SetTo, Shelved, Study, Turn, Want, Written,
};

mod query {
    //! The queries that the engine runs.

    use super::recipe::Recipe;
    use crate::detect::LabelSource;
    use crate::question::Question;

    /// One question, the lanes that search for it, and how many passages count.
    #[derive(Clone, Debug, PartialEq)]
    pub struct Query {
        /// The question with its statements.
        pub question: Question,
        /// The lanes, left to right.
        pub lanes: Vec<Recipe>,
        /// How many passages count.
        pub k: usize,
        /// Which labels count. How deep the lists are judged depends on it.
        pub source: LabelSource,
    }

    impl Query {
        /// The number of passages in a list, whatever `k` is.
        pub const DEPTH: usize = 100;
    }

    /// How deep the lists are judged.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub enum Depth {
        /// The first k.
        Top,
        /// Until every statement is covered or the list ends. Questions with many statements are judged to k only.
        Covered,
        /// Until every statement is covered or the list ends, however many statements a question has.
        CoveredWhatever,
        /// The first so many, at least k.
        To(usize),
    }

    /// A question in one of its wordings, as a lane is asked.
    #[derive(Clone, Copy, Debug)]
    pub struct LaneQuery<'a> {
        /// The question; projections and diversifiers read its statements.
        pub question: &'a Question,
        /// The text to search for: the question's own, or one of its statements.
        pub text: &'a str,
    }

    impl<'a> LaneQuery<'a> {
        /// The question in its own words.
        pub fn neutral(question: &'a Question) -> Self {
            LaneQuery { question, text: &question.text }
        }
    }
}
