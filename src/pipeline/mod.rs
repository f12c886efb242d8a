//! From a plan to rankings, verdicts and figures. The explorer and the commands both come through here, so they cannot
//! print different numbers.
//!
//! [`Setup`] holds what is open (corpus, indices, models), [`Plan`] says what is asked, [`rank`] makes a lane's list,
//! [`judge()`] its verdicts, and [`Figures`] its measures. No threads are started but those of the model pool.

mod book;
mod figures;
mod judge;
mod plan;
mod rank;
mod recipe;
mod setup;

pub use book::Book;
pub use figures::{Figures, FirstRank};
pub use judge::{Judged, Pair, deeper, judge, top_pairs};
pub use plan::Plan;
pub use rank::{LaneError, Lists, Ranked, Ranking, rank};
pub use recipe::{Recipe, RecipeError};
pub use setup::{Opening, Setup, SetupError, model_threads, sample_key};
