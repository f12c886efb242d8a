//! Does a passage support a statement?
//!
//! | file | holds |
//! | --- | --- |
//! | `detector` | the [`Detector`] trait, the user's [`Choice`], fitted thresholds |
//! | `verdict` | which of several labels counts, and the cache of verdicts |
//! | `labels` | gold labels read from files |
//! | `text` | which part of a passage is judged, its language, the decisive sentence |
//! | [`rule`] | what a detector reads of a passage, and how that becomes probabilities |
//! | [`decision`] | one decision on a passage and two opposite statements |
//! | [`calibration`] | that decision refitted on labels by hand |
//! | `cross_encoder` | the built-in detector |
//! | `custom` | a cross-encoder from a folder or the hub |
//! | `prompted` | a language model that answers yes or no |
//! | [`registry`] | detectors with short names |
//! | `predictions` | verdicts made elsewhere, read from a file |
//! | `language` | English only: what gets no verdict, and why |
//!
//! What is read is a function of (detector, passage, statement) alone, a verdict of that and the question's statements. Must not know about lanes.
//! May use: assets, corpus, encode, input, llm, measure, question, vector, work.

pub mod calibration;
mod cross_encoder;
mod custom;
pub mod decision;
mod detector;
mod evidence;
pub mod labels;
mod language;
mod predictions;
mod prompted;
pub mod registry;
pub mod rule;
mod text;
mod verdict;

pub use cross_encoder::CrossEncoder;
pub use custom::CustomCrossEncoder;
pub use decision::{Decision, DetectError, EVEN, Outcome};
pub use detector::{Choice, Detector, Fitted, PredictionFile, Refitted, UnknownDetector};
pub use evidence::evidence;
pub use labels::Labels;
pub use language::{EnglishOnly, foreign_corpus, foreign_question};
pub use predictions::{Predictions, Unmatched};
pub use prompted::PromptedDetector;
pub use rule::{NO_SIDE, Reading, Rule};
pub use text::{cut, foreign, sentences};
pub use verdict::{By, Cache, LabelSource, PairLabels, Verdict};
