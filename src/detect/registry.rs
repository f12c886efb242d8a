//! Detectors with short names: their repositories, and what their model cards state.

use crate::encode::registry::Source;

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
pub static DETECTORS: [NamedDetector; 4] = [
    nli("nli-xsmall", "cross-encoder/nli-deberta-v3-xsmall", 284),
    nli("nli-small", "cross-encoder/nli-deberta-v3-small", 568),
    nli("nli-base", "cross-encoder/nli-deberta-v3-base", 739),
    NamedDetector {
        classes: ("entailment", None),
        licence: "MIT",
        ..nli("zeroshot-xsmall", "MoritzLaurer/DeBERTa-v3-xsmall-mnli-fever-anli-ling-binary", 284)
    },
];

impl NamedDetector {
    /// A detector by its short name.
    pub fn find(name: &str) -> Option<&'static NamedDetector> {
        DETECTORS.iter().find(|one| one.name.eq_ignore_ascii_case(name))
    }

    /// The detector with this source.
    pub fn of(source: &Source) -> Option<&'static NamedDetector> {
        DETECTORS.iter().find(|one| matches!(source, Source::Hub(repository) if repository == one.repository))
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
        let [.., base, zeroshot] = &DETECTORS;
        assert_eq!(base.check(&classes(&["contradiction", "entailment", "neutral"])), Ok(()));
        assert_eq!(zeroshot.check(&classes(&["entailment", "not_entailment"])), Ok(()));
        let error = base.check(&classes(&["LABEL_0", "LABEL_1"])).unwrap_err();
        assert_eq!(
            error.to_string(),
            "entailment and contradiction among its classes, found LABEL_0, LABEL_1"
        );
    }
}
