//! Putting a list in another order: MMR, and diversifiers that know the perspectives.
//!
//! Pure functions over relevances, similarities and verdicts of one list; passages are numbers from 0 in the incoming order.
//! They must not know where any of these come from, and never see gold.

mod mmr;
mod perspectives;
mod relevance;

pub use mmr::{Pick, mmr};
pub use perspectives::{Choice, pm2, xquad};
pub use relevance::{by_rank, of_maximum};

/// How many passages of a list are put in order; what stands below stays out.
pub const POOL: usize = 100;
