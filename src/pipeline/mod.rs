//! From a plan to rankings, verdicts and figures. The explorer and the commands both come through here, so they cannot
//! print different numbers.
//!
//! [`Setup`] holds what is open (corpus, indices, models), [`Plan`] says what is asked, [`rank()`] makes a lane's list and its
//! [`Trace`], [`judge()`] its verdicts, [`Figures`] its measures, and [`why()`] says why a passage stands where it does. No threads are started but those of the model pool.

mod answer;
mod bias;
mod book;
mod carried;
mod compare;
mod detector;
mod figures;
mod indexed;
mod judge;
mod labels;
mod plan;
mod rank;
mod reading;
pub mod recipe;
mod runs;
mod setup;
mod shelves;
mod strip;
pub mod sway;
mod sweep;
mod trace;
mod why;

pub use answer::{Answer, Depth, answer, judged};
pub use bias::{EXAMPLE, FieldError, Uneven, category, covered_sides, desired};
pub use book::Book;
pub use compare::{Compared, compare};
pub use detector::detector;
pub use figures::{Doubt, Figures, FirstRank};
pub use indexed::index_terms;
pub use judge::{Judged, MANY, Pair, deeper, judge, top_pairs};
pub use plan::Plan;
pub use rank::{Asked, LaneError, List, Lists, Ranked, Ranking, rank, timed};
pub use reading::readers;
pub use recipe::Recipe;
pub use runs::{Placed, RunError, Runs};
pub use setup::{MODELS, Opening, Setup, SetupError, model_threads};
pub use shelves::sample_key;
pub use strip::Strip;
pub use sway::{Swayed, sway};
pub use sweep::{Sweep, Tally, sweep};
pub use trace::{Point, Projected, Step, Stood, Trace, Wording};
pub use why::{Reason, Share, why};
