//! Retrieve, then read: what a reader answers from the first k passages, and which passage turns the answer
//! (Oh & Thorne, "Detrimental Contexts in Open-Domain Question Answering").
//!
//! | file | owns |
//! | --- | --- |
//! | [`answer`] | when an answer is right: SQuAD's normalisation and exact match |
//! | [`pattern`] | right or wrong at every k, and what each passage did |
//! | [`probe`] | which kinds of passages are kept, to be read again |
//! | [`stance`] | the side that the first k passages take together |
//! | [`reader`] | what reads: the trait, and what goes in and comes out |
//! | [`prompted`] | a language model as a reader |
//! | [`brought`] | a reader from a folder |
//! | [`extractive`] | a model that copies words out of the passages, which vote |
//! | [`fid`] | Fusion-in-Decoder: a T5 that reads all passages at once |
//! | [`recorded`] | answers that were given before, from a file |
//! | [`incremental`] | a list read at every depth, in part, without each, in other orders |
//! | [`equivalence`] | answers that a model takes for a gold one |
//! | [`stability`] | whether a right answer stands when passages are added to the gold one |
//! | [`files`] | question sets that bring their passages: FiD, RAMDocs, RetrievalQA |
//!
//! Nothing here retrieves or draws.

pub mod answer;
pub mod brought;
pub mod equivalence;
pub mod extractive;
pub mod fid;
pub mod files;
pub mod incremental;
pub mod pattern;
pub mod probe;
pub mod prompted;
pub mod reader;
pub mod recorded;
pub mod stability;
pub mod stance;
#[cfg(test)]
mod testing;

pub use pattern::{Effect, Pattern};
pub use prompted::Prompted;
pub use reader::{Answer, Context, ReadError, Reader};
pub use recorded::Answers;
