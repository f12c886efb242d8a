//! Retrieve, then read: what a reader answers from the first k passages, and which passage turns the answer
//! (Oh & Thorne, "Detrimental Contexts in Open-Domain Question Answering").
//!
//! | file | owns |
//! | --- | --- |
//! | [`answer`] | when an answer is right: SQuAD's normalisation and exact match |
//! | [`pattern`] | right or wrong at every k, and what each passage did |
//! | [`probe`] | which kinds of passages are kept, to be read again |
//! | [`stance`] | the side that the first k passages take together |
//!
//! Pure functions over answers and verdicts. Nothing here retrieves, draws or opens a file.

pub mod answer;
pub mod pattern;
pub mod probe;
pub mod stance;

pub use pattern::{Effect, Pattern};
