//! From a question to rankings, judgments and figures: the explorer and the commands are its clients.
//!
//! [`Setup`] holds the open corpus, indices and models. [`Query`] is a question with its lanes. [`rank()`] makes a lane's list and its
//! [`Trace`], [`Run`] the judgments, [`Figures`] the measures, and [`explain()`] says why a passage has its rank.
//! [`Engine`] runs queries for the explorer on threads of its own.
//!
//! May use: everything below it in the layers of ARCHITECTURE.md; nothing of `report`, `cli` and `tui`.

mod compare;
pub mod detectors;
pub mod edit;
mod explain;
mod figures;
pub mod framing;
mod judge;
mod judgments;
mod list;
mod opening;
mod parts;
pub(crate) mod pir;
pub(crate) mod pir_hub;
mod query;
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
pub use figures::{Change, Doubt, Figures, FirstRank, Gap, Named, pooled, shares_of};
pub use framing::{FramedList, Framing};
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
    AnnotationState, Batch, Drawn, Engine, Labelling, LabelsChanged, Opened, Reach, ReadEvent, ReadList,
    Reply, SendReply, SetLabel, SetTo, Shelved, Study, Turn, Want, Written,
};
