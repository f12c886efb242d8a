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
//! A reading depends only on (detector, passage, statements); a verdict depends only on readings and the question's statements. Must not
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
pub mod rule;
mod text;
mod verdict;

pub use cross_encoder::CrossEncoder;
pub use custom::CustomCrossEncoder;
pub use decision::{By, Decision, DetectError, EVEN, LabelSource, Outcome, Verdict};
pub use detector::{Both, Choice, Detector, Fitted, PredictionFile, Refitted, Sources, UnknownDetector};
pub use labels::Labels;
pub use language::evidence::{EvidenceSentence, evidence};
pub use language::{EnglishOnly, foreign_corpus, foreign_question};
pub use predictions::{Predictions, Unmatched};
pub use prompted::PromptedDetector;
pub use registry::NO_SIDE;
pub use rule::{Reading, Rule};
pub use text::{cut, foreign, sentences};
pub use verdict::{Cache, FILE as VERDICTS, PairLabels};

pub mod registry {
    //! What is known of detectors: the repositories and model cards of those with short names, and how good a detector's verdicts are.

    use serde::Deserialize;

    use crate::encode::registry::Source;
    use crate::measure::intervals::Bias;

    /// A detector on the hub.
    #[derive(Debug, PartialEq, Eq)]
    pub struct NamedDetector {
        /// The short name, for `--detector` and `models get`.
        pub name: &'static str,
        /// The repository on the hub.
        pub repository: &'static str,
        /// The class that means support, and the one that means opposition, if it has one; as its card names them.
        pub classes: (&'static str, Option<&'static str>),
        /// The licence its card states.
        pub licence: &'static str,
        /// Approximate size of the download, in MB.
        pub megabytes: u32,
        /// The languages that it was trained on.
        pub languages: &'static str,
    }

    const fn nli(name: &'static str, repository: &'static str, megabytes: u32) -> NamedDetector {
        NamedDetector {
            name,
            repository,
            classes: ("entailment", Some("contradiction")),
            licence: "Apache-2.0",
            megabytes,
            languages: "English",
        }
    }

    /// All detectors with short names. Their outputs have the classes contradiction, entailment, neutral; those of `zeroshot-xsmall`
    /// entailment, not_entailment. The order is read from the model's own configuration, by these names.
    pub static DETECTORS: [NamedDetector; 5] = [
        nli("nli-xsmall", "cross-encoder/nli-deberta-v3-xsmall", 284),
        nli("nli-small", "cross-encoder/nli-deberta-v3-small", 568),
        nli("nli-base", "cross-encoder/nli-deberta-v3-base", 739),
        NamedDetector {
            classes: ("entailment", None),
            licence: "MIT",
            ..nli("zeroshot-xsmall", "MoritzLaurer/DeBERTa-v3-xsmall-mnli-fever-anli-ling-binary", 284)
        },
        // It reads 8,192 tokens, so a long passage is one window.
        nli("modernbert-nli", "tasksource/ModernBERT-base-nli", 598),
    ];

    impl NamedDetector {
        /// A detector by its short name.
        pub fn find(name: &str) -> Option<&'static NamedDetector> {
            DETECTORS.iter().find(|one| one.name.eq_ignore_ascii_case(name))
        }

        /// The detector with this source.
        pub fn of(source: &Source) -> Option<&'static NamedDetector> {
            DETECTORS
                .iter()
                .find(|one| matches!(source, Source::Hub(repository) if repository == one.repository))
        }

        /// The repository as a source.
        pub fn source(&self) -> Source {
            Source::Hub(self.repository.to_owned())
        }

        /// Checks that the configuration of a fetched model names every expected class once.
        ///
        /// # Errors
        /// It does not.
        pub fn check(&self, classes: &[String]) -> Result<(), WrongClasses> {
            let (supports, opposes) = self.classes;
            let count = |name: &str| classes.iter().filter(|class| class.eq_ignore_ascii_case(name)).count();
            let expected: Vec<&'static str> = std::iter::once(supports).chain(opposes).collect();
            if expected.iter().all(|name| count(name) == 1) {
                Ok(())
            } else {
                Err(WrongClasses { expected, found: classes.to_vec() })
            }
        }
    }

    /// A model's configuration does not name every expected class once.
    #[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
    #[error("{} among its classes, found {}", expected.join(" and "), found.join(", "))]
    pub struct WrongClasses {
        /// The classes that the detector needs.
        pub expected: Vec<&'static str>,
        /// The classes that the configuration names.
        pub found: Vec<String>,
    }

    /// The quality of a detector's verdicts, as far as it is known. It is shown next to them.
    #[derive(Clone, Debug, Default, PartialEq)]
    pub struct About {
        /// The detector's name.
        pub name: String,
        /// Its results on the test split.
        pub test: Option<Tested>,
        /// Whether the parameters are defaults that were not fitted on labels.
        pub unfitted: bool,
        /// Whether the verdicts are read from a file of another program.
        pub decided_elsewhere: bool,
        /// How far the means of its verdicts were from the gold means on the development split.
        pub bias: Bias,
    }

    /// A detector's results on the test split of our labels.
    #[derive(Clone, Copy, Debug, PartialEq, Deserialize)]
    pub struct Tested {
        /// The share of the passages with one side whose side is right.
        pub right_side: f64,
        /// F1 of P(supports statement i) ≥ θ.
        pub f1: f64,
        /// The share of the sides shown that are right; `None` if it shows none, or if that was not measured.
        #[serde(default)]
        pub precision: Option<f64>,
    }

    impl About {
        /// The quality with other thresholds: which sides are shown was not measured with them.
        pub fn refitted(&self) -> Self {
            About { test: self.test.map(|test| Tested { precision: None, ..test }), ..self.clone() }
        }

        /// Describes the quality, such as `parallax-mpnet, of the sides shown .85 right, F1 .66 on our test`; without the sides shown, `MiniLM,
        /// right side .65, F1 .55 on our test`. Says so if it was not measured.
        pub fn words(&self) -> String {
            let short = |x: f64| format!("{x:.2}").trim_start_matches('0').to_owned();
            match &self.test {
                Some(Tested { right_side, f1, precision }) => {
                    let side = match precision {
                        Some(precision) => format!("of the sides shown {} right", short(*precision)),
                        None => format!("right side {}", short(*right_side)),
                    };
                    format!("{}, {side}, F1 {} on our test", self.name, short(*f1))
                }
                None if self.decided_elsewhere => format!("{}, verdicts made elsewhere", self.name),
                None if self.unfitted => {
                    format!("{}, not measured on our test, default thresholds", self.name)
                }
                None => format!("{}, not measured on our test", self.name),
            }
        }
    }

    /// The message for detectors that show no side.
    pub const NO_SIDE: &str = "this detector shows no side: it is not right often enough";

    #[cfg(test)]
    mod tests {
        use super::*;
        use crate::detect::Choice;

        #[test]
        fn every_short_name_chooses_its_repository_and_is_shown_again() {
            for one in &DETECTORS {
                let choice: Choice = one.name.parse().unwrap();
                assert_eq!(choice.to_string(), one.name);
                let same: Choice = format!("hf:{}", one.repository).parse().unwrap();
                assert_eq!(choice, same);
                assert_eq!(NamedDetector::of(&one.source()), Some(one));
            }
            assert!("nli-huge".parse::<Choice>().unwrap_err().to_string().contains("nli-base"));
        }

        #[test]
        fn a_repository_whose_classes_changed_is_noticed() {
            let classes = |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect::<Vec<_>>();
            let [.., base, zeroshot, _] = &DETECTORS;
            assert_eq!(base.check(&classes(&["contradiction", "entailment", "neutral"])), Ok(()));
            assert_eq!(zeroshot.check(&classes(&["entailment", "not_entailment"])), Ok(()));
            let error = base.check(&classes(&["LABEL_0", "LABEL_1"])).unwrap_err();
            assert_eq!(
                error.to_string(),
                "entailment and contradiction among its classes, found LABEL_0, LABEL_1"
            );
        }
    }
}
