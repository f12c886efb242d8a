//! Does a passage support a statement?
//!
//! | file | holds |
//! | --- | --- |
//! | `detector` | the [`Detector`] trait, the user's [`Choice`], fitted thresholds |
//! | `verdict` | the labels and verdict of a pair, and the cache of verdicts |
//! | `labels` | gold labels from files |
//! | `text` | which part of a passage is judged, its language, the decisive sentence |
//! | [`rule`] | a detector's readings, and how they become probabilities |
//! | [`decision`] | one decision on a passage and two opposite statements; whose decisions count |
//! | [`calibration`] | that decision refitted on labels by hand |
//! | `cross_encoder` | the built-in detector |
//! | `custom` | a cross-encoder from a folder or the hub |
//! | `prompted` | a language model that answers yes or no, by its tokens or its words |
//! | [`registry`] | detectors with short names; what is known of a detector |
//! | `predictions` | verdicts of other programs, from a file |
//! | `language` | which texts get no verdict because they are not in English; in `evidence`, the sentence that decides a verdict |
//!
//! A reading depends only on (detector, passage, statement); a verdict depends only on readings and the question's statements. Must not
//! depend on lanes.
//! May use: assets, corpus, encode, input, llm, measure, question, storage, vector, work.

pub mod calibration;
mod cross_encoder;
mod custom;
pub mod decision;
mod detector;
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
pub use decision::{By, Decision, DetectError, EVEN, LabelSource, Outcome};
pub use detector::{Choice, Detector, Fitted, PredictionFile, Refitted, UnknownDetector};
pub use labels::Labels;
pub use language::evidence::{EvidenceSentence, evidence};
pub use language::{EnglishOnly, foreign_corpus, foreign_question};
pub use predictions::{Predictions, Unmatched};
pub use prompted::PromptedDetector;
pub use registry::NO_SIDE;
pub use rule::{Reading, Rule};
pub use text::{cut, foreign, sentences};
pub use verdict::{Cache, FILE as VERDICTS, PairLabels, Sources, Verdict};
