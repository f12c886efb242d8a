//! Labels by hand.
//!
//! Owns what annotators decided, and nothing of how it is drawn, ranked or measured.

mod decision;

pub use decision::Decision;
