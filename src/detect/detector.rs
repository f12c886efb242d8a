//! The detector trait, the user's choice of a detector, and thresholds fitted on human labels.

use std::fmt;
use std::iter;
use std::path::{Path, PathBuf};
use std::str::FromStr;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use super::calibration::Calibration;
use super::decision::DetectError;
use super::registry::{DETECTORS, NamedDetector};
use super::rule::{Reading, Rule};
use crate::corpus::Passage;
use crate::encode::registry::Source;
use crate::input::{self, BadLine, Expected, InputError, SMALL, read_regular_text};
use crate::work::Stop;

/// What was read of a passage with two opposite statements.
pub type Both = [Result<Reading, DetectError>; 2];

/// A model that judges whether a passage supports a statement.
pub trait Detector: Send + Sync {
    /// A name, and a hash of the weights and of how passages are read. Readings of different keys cannot be compared.
    fn key(&self) -> &str;
    /// How its readings become probabilities and decisions.
    fn rule(&self) -> &Rule;
    /// Reads a passage with one statement.
    ///
    /// # Errors
    /// The passage or the statement is empty, the model failed, or `stop` was set.
    fn read(&self, passage: &Passage, statement: &str, stop: &Stop) -> Result<Reading, DetectError>;
    /// Whether it reads a passage with these two opposite statements together, so that what it reads of one depends on the other.
    fn reads_both(&self, _statements: [&str; 2]) -> bool {
        false
    }
    /// Reads a passage with two opposite statements: together, or, where it cannot do that, one by one. Their order makes no difference.
    ///
    /// # Errors
    /// As [`Detector::read`], of each statement.
    fn read_both(&self, passage: &Passage, statements: [&str; 2], stop: &Stop) -> Both {
        statements.map(|statement| self.read(passage, statement, stop))
    }
    /// The lowest probability of a single statement that counts as support.
    fn threshold(&self) -> f32 {
        self.rule().threshold
    }
    /// The number of human labels the threshold was fitted on; `None` for the detector's own threshold.
    fn fitted_on(&self) -> Option<usize> {
        None
    }
    /// Whether it is no better than plain cosine on a test set of unseen topics, or too often on the wrong side.
    fn experimental(&self) -> bool {
        false
    }
    /// The number of concurrent requests, for a detector on a server. Each verdict has a cost, so only needed ones are requested.
    fn at_once(&self) -> Option<usize> {
        None
    }
    /// Estimates the requests and tokens that a verdict on a pair costs; `None` if it costs nothing.
    fn estimate(&self, _passage: &Passage, _statement: &str) -> Option<(u64, u64)> {
        None
    }
    /// Whether it may judge a passage again without one of its sentences, to find the one that decides.
    fn rereads(&self) -> bool {
        self.at_once().is_none()
    }
    /// Requests, cost and failures so far, for the user; `None` before the first request.
    fn usage(&self) -> Option<String> {
        None
    }
    /// The probability that the passage supports the statement, without regard to the opposite statement.
    ///
    /// # Errors
    /// As [`Detector::read`].
    fn judge(&self, passage: &Passage, statement: &str, stop: &Stop) -> Result<f32, DetectError> {
        Ok(self.rule().single(&self.read(passage, statement, stop)?))
    }
}

/// Where the probabilities of a language model come from: how many from its tokens, and how many from its words.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Sources {
    /// Readings of tokens.
    pub from_tokens: usize,
    /// Readings of words.
    pub from_words: usize,
}

impl Sources {
    /// Counts readings under their detector's rule; none count unless it is a language model's.
    pub fn of<'r>(rule: &Rule, readings: impl Iterator<Item = &'r Reading>) -> Self {
        let mut sources = Sources::default();
        readings.filter(|_| rule.of_replies).for_each(|reading| sources.add(reading));
        sources
    }

    /// Counts one more reading of a language model.
    pub fn add(&mut self, reading: &Reading) {
        let count = if reading.is_in_words() { &mut self.from_words } else { &mut self.from_tokens };
        *count += 1;
    }

    /// Says where they come from; `None` if there are none.
    pub fn words(&self) -> Option<String> {
        match (self.from_tokens, self.from_words) {
            (0, 0) => None,
            (_, 0) => Some("probabilities from tokens".into()),
            (0, _) => Some("probabilities from words".into()),
            (tokens, words) => Some(format!("probabilities from tokens ({tokens}) and from words ({words})")),
        }
    }
}

/// A file of predictions and, if its passages have several verdicts, the name of one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PredictionFile {
    /// The file.
    pub path: PathBuf,
    /// `NAME` of `NAME-preds`.
    pub preds: Option<String>,
}

/// A detector as the user names it: `builtin`, `nli-base`, `llm`, `path:FOLDER`, `hf:ORG/MODEL`, `file:PATH`.
#[derive(Clone, Debug, Default, PartialEq)]
pub enum Choice {
    /// The built-in cross-encoder.
    #[default]
    Builtin,
    /// A cross-encoder, or a T5 that answers `1` or `0`, from a folder or the hub.
    Custom {
        /// The folder or repository.
        source: Source,
        /// The class that means support, if the user names it.
        supports: Option<String>,
    },
    /// The language model of `--llm`, or its recorded replies.
    Llm,
    /// Verdicts of another program.
    File(PredictionFile),
}

/// Separates a model from the name of its class.
const SUPPORTS: &str = "@supports=";

/// Separates a file of predictions from the name of one of its annotators.
const PREDS: &str = "@preds=";

/// Why a text is not a detector's name.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum UnknownDetector {
    /// Nothing follows `@supports=`.
    #[error("expected the name of a class after `{SUPPORTS}`")]
    NoClass,
    /// The text after `path:` or `hf:` is not a valid name.
    #[error(transparent)]
    Source(#[from] Expected),
    /// Anything else.
    #[error(
        "expected builtin, {}, llm, path:FOLDER or hf:ORG/MODEL (both optionally with {SUPPORTS}CLASS), or file:PATH (optionally \
         with {PREDS}NAME){}",
        DETECTORS.each_ref().map(|one| one.name).join(", "),
        .0.map_or_else(String::new, |near| format!("; did you mean `{near}`?"))
    )]
    Name(Option<&'static str>),
}

impl FromStr for Choice {
    type Err = UnknownDetector;

    fn from_str(text: &str) -> Result<Self, UnknownDetector> {
        match text.trim() {
            // `carried` is the former name of the built-in detector.
            "builtin" | "carried" => Ok(Choice::Builtin),
            "llm" => Ok(Choice::Llm),
            custom if custom.starts_with("path:") || custom.starts_with("hf:") => {
                let (source, supports) = match custom.rsplit_once(SUPPORTS) {
                    Some((_, "")) => return Err(UnknownDetector::NoClass),
                    Some((source, label)) => (source, Some(label.to_owned())),
                    None => (custom, None),
                };
                Ok(Choice::Custom { source: Source::parse(source)?, supports })
            }
            file if file.starts_with("file:") => {
                let file = &file["file:".len()..];
                let (path, preds) = match file.rsplit_once(PREDS) {
                    Some((path, name)) if !name.is_empty() => (path, Some(name.to_owned())),
                    _ => (file, None),
                };
                if path.is_empty() {
                    return Err(Expected("a file of predictions after `file:`".into()).into());
                }
                Ok(Choice::File(PredictionFile { path: path.into(), preds }))
            }
            name => match NamedDetector::find(name) {
                Some(one) => Ok(Choice::Custom { source: one.source(), supports: None }),
                None => {
                    let names = ["builtin", "llm"].into_iter().chain(DETECTORS.iter().map(|one| one.name));
                    Err(UnknownDetector::Name(input::nearest(name, names)))
                }
            },
        }
    }
}

impl fmt::Display for Choice {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Choice::Builtin => f.write_str("builtin"),
            Choice::Llm => f.write_str("llm"),
            Choice::File(PredictionFile { path, preds: None }) => write!(f, "file:{}", path.display()),
            Choice::File(PredictionFile { path, preds: Some(name) }) => {
                write!(f, "file:{}{PREDS}{name}", path.display())
            }
            Choice::Custom { source, supports: None } => match NamedDetector::of(source) {
                Some(one) => f.write_str(one.name),
                None => write!(f, "{source}"),
            },
            Choice::Custom { source, supports: Some(label) } => write!(f, "{source}{SUPPORTS}{label}"),
        }
    }
}

/// A fitted threshold, as `annotate agree --refit` writes it.
#[derive(Clone, Debug, PartialEq, Deserialize)]
pub struct Fitted {
    /// The lowest probability that counts as support.
    pub threshold: f32,
    /// The number of labels it was fitted on.
    pub labels: usize,
    /// The key of its detector.
    pub detector: String,
    /// The refitted decision on two statements; `None` in older files and if there were too few labels.
    #[serde(default)]
    pub calibration: Option<Calibration>,
}

impl Fitted {
    /// Reads the file.
    ///
    /// # Errors
    /// The file has another format, or the threshold is not a probability.
    pub fn read(path: &Path) -> Result<Self, InputError> {
        let text = read_regular_text(path, SMALL).map_err(|error| InputError::unreadable(path, &error))?;
        let bad = |line: usize, why: String| {
            InputError::BadLines(vec![BadLine {
                file: path.into(),
                line: line.max(1),
                expected: format!("a threshold as `annotate agree --refit` writes it ({why})"),
                found: text.lines().nth(line.saturating_sub(1)).unwrap_or_default().into(),
            }])
        };
        let fitted: Fitted =
            serde_json::from_str(&text).map_err(|error| bad(error.line(), error.to_string()))?;
        let sound = fitted.calibration.is_none_or(|calibration| calibration.is_sound());
        match (0.0..=1.0).contains(&fitted.threshold) && sound {
            true => Ok(fitted),
            false => Err(bad(1, "from 0 to 1".into())),
        }
    }

    /// Returns a detector's rule with this threshold, and with the refitted decision on two statements. If that was not refitted, ρ and τ
    /// are moved by as much as this one, on the scale of logits. What was measured of the sides shown no longer holds.
    pub fn apply(&self, rule: &Rule) -> Rule {
        if let Some(calibration) = &self.calibration {
            let heads = calibration.apply(&rule.heads);
            return Rule { heads, threshold: self.threshold, about: rule.about.refitted(), ..rule.clone() };
        }
        let logit = |p: f64| (p / (1.0 - p)).ln().clamp(-30.0, 30.0);
        let by = logit(f64::from(self.threshold)) - logit(f64::from(rule.threshold));
        let mut rule = rule.clone();
        let heads = &mut rule.heads;
        for p in iter::once(&mut heads.rho).chain(&mut heads.tau) {
            *p = 1.0 / (1.0 + (-(logit(*p) + by)).exp());
        }
        rule.threshold = self.threshold;
        rule.about = rule.about.refitted();
        rule
    }

    /// Describes the threshold and the labels it was fitted on, for the screen.
    pub fn described(&self) -> String {
        let sides =
            self.calibration.map(|calibration| format!("; {}", calibration.words())).unwrap_or_default();
        format!("threshold {:.3} fitted on {} labels by hand{sides}", self.threshold, self.labels)
    }
}

/// A detector with a fitted threshold.
pub struct Refitted {
    inner: Arc<dyn Detector>,
    fitted: Fitted,
    rule: Rule,
}

impl Refitted {
    /// Combines a detector and its threshold.
    ///
    /// # Errors
    /// The threshold was fitted for another detector.
    pub fn new(inner: Arc<dyn Detector>, fitted: Fitted) -> Result<Self, DetectError> {
        if fitted.detector == inner.key() {
            let rule = fitted.apply(inner.rule());
            Ok(Refitted { inner, fitted, rule })
        } else {
            Err(DetectError::OtherThreshold { of: fitted.detector, here: inner.key().to_owned() })
        }
    }
}

impl Detector for Refitted {
    fn key(&self) -> &str {
        self.inner.key()
    }

    fn rule(&self) -> &Rule {
        &self.rule
    }

    fn fitted_on(&self) -> Option<usize> {
        Some(self.fitted.labels)
    }

    fn experimental(&self) -> bool {
        self.inner.experimental()
    }

    fn at_once(&self) -> Option<usize> {
        self.inner.at_once()
    }

    fn estimate(&self, passage: &Passage, statement: &str) -> Option<(u64, u64)> {
        self.inner.estimate(passage, statement)
    }

    fn rereads(&self) -> bool {
        self.inner.rereads()
    }

    fn usage(&self) -> Option<String> {
        self.inner.usage()
    }

    fn read(&self, passage: &Passage, statement: &str, stop: &Stop) -> Result<Reading, DetectError> {
        self.inner.read(passage, statement, stop)
    }

    fn reads_both(&self, statements: [&str; 2]) -> bool {
        self.inner.reads_both(statements)
    }

    fn read_both(&self, passage: &Passage, statements: [&str; 2], stop: &Stop) -> Both {
        self.inner.read_both(passage, statements, stop)
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};

    use super::*;
    use crate::detect::{Cache, EnglishOnly};

    #[test]
    fn a_choice_is_read_back_and_a_wrong_one_is_refused_with_what_was_expected() {
        for text in [
            "builtin",
            "llm",
            "path:my models/nli",
            "hf:org/nli-base",
            "path:a@b@supports=LABEL_1",
            "file:a b.tsv",
            "file:r@preds=gpt",
        ] {
            assert_eq!(text.parse::<Choice>().map(|choice| choice.to_string()).as_deref(), Ok(text));
        }
        assert_eq!("carried".parse(), Ok(Choice::Builtin));
        for (text, expected) in [
            (
                "minilm",
                "expected builtin, nli-xsmall, nli-small, nli-base, zeroshot-xsmall, modernbert-nli, llm, path:FOLDER",
            ),
            ("", "expected builtin"),
            ("builtinn", "did you mean `builtin`?"),
            ("hf:nli", "expected ORG/MODEL after `hf:`"),
            ("path:", "expected a folder"),
            ("file:", "expected a file of predictions"),
            ("path:nli@supports=", "expected the name of a class"),
        ] {
            let message = text.parse::<Choice>().unwrap_err().to_string();
            assert!(message.contains(expected), "{text}: {message}");
        }
    }

    fn read(text: &str) -> Result<Fitted, String> {
        let file = tempfile::NamedTempFile::new().unwrap();
        std::fs::write(file.path(), text).unwrap();
        Fitted::read(file.path()).map_err(|error| error.to_string())
    }

    #[test]
    fn a_file_without_a_threshold_is_refused() {
        assert!(read("{").unwrap_err().contains(":1: expected a threshold"));
        assert!(read("{\n\"threshold\": \"x\"}").unwrap_err().contains(":2: expected a threshold"));
        let fine = "{\"threshold\": 0.5, \"labels\": 3, \"detector\": \"d\", \"calibration\": null, \"calibration_error\": \"x\"}";
        assert_eq!(read(fine).unwrap().calibration, None);
        let odd = fine.replace(
            "null",
            "{\"a\": -1, \"b\": 0, \"slope\": 1, \"rho\": 0.5, \"tau\": null, \"passages\": 1, \"sides\": 1}",
        );
        assert!(read(&odd).unwrap_err().contains("from 0 to 1"));
        let high = "{\"threshold\": 1.5, \"labels\": 3, \"detector\": \"d\"}";
        assert!(read(high).unwrap_err().contains("from 0 to 1"));
    }

    #[test]
    fn a_threshold_moves_rho_and_tau_by_as_much_and_a_detector_that_shows_no_side_still_shows_none() {
        let file = |threshold| format!("{{\"threshold\": {threshold}, \"labels\": 3, \"detector\": \"d\"}}");
        let (rule, logit) = (Rule::default(), |p: f64| (p / (1.0 - p)).ln());
        let by = |threshold: f64, rule: &Rule| {
            let moved = read(&file(threshold)).unwrap().apply(rule).heads;
            (logit(moved.rho) - logit(rule.heads.rho), moved.tau.map(|tau| logit(tau) - logit(0.75)))
        };
        let (rho, tau) = by(0.8, &rule);
        let expected = logit(0.8) - logit(f64::from(rule.threshold));
        assert!((rho - expected).abs() < 1e-6 && (tau.unwrap() - expected).abs() < 1e-6, "{rho} {tau:?}");
        let mut silent = rule;
        silent.heads.tau = None;
        assert_eq!(by(0.8, &silent).1, None);
    }

    /// Reads both statements together: each reading holds what the other statement is.
    struct Beside(AtomicUsize, Rule);

    impl Detector for Beside {
        fn key(&self) -> &str {
            "beside"
        }
        fn rule(&self) -> &Rule {
            &self.1
        }
        fn read(&self, _: &Passage, _: &str, _: &Stop) -> Result<Reading, DetectError> {
            self.0.fetch_add(1, Ordering::Relaxed);
            Ok(Reading::of(0.5))
        }
        fn reads_both(&self, statements: [&str; 2]) -> bool {
            !statements.contains(&"")
        }
        fn read_both(&self, _: &Passage, statements: [&str; 2], _: &Stop) -> Both {
            self.0.fetch_add(1, Ordering::Relaxed);
            let beside = |other: &str| Ok(Reading::of(other.len() as f32 / 10.0));
            [beside(statements[1]), beside(statements[0])]
        }
    }

    #[test]
    fn what_is_read_beside_another_statement_is_cached_apart_in_either_order() {
        let cache = Cache::in_memory().unwrap();
        let (detector, passage) = (Beside(AtomicUsize::new(0), Rule::default()), Passage::default());
        let both = |statements| cache.read_both(&detector, &passage, statements, &Stop::never());
        let alone = |statement| cache.read(&detector, &passage, statement, &Stop::never());
        assert_eq!(alone("a"), Ok(Reading::of(0.5)));
        for _ in 0..2 {
            assert_eq!(both(["a", "bb"]), [Ok(Reading::of(0.2)), Ok(Reading::of(0.1))]);
            assert_eq!(both(["bb", "a"]), [Ok(Reading::of(0.1)), Ok(Reading::of(0.2))]);
        }
        assert_eq!(detector.0.load(Ordering::Relaxed), 2);
        assert_eq!(both(["a", "ccc"])[0], Ok(Reading::of(0.3)));
        assert_eq!((alone("a"), alone("bb")), (Ok(Reading::of(0.5)), Ok(Reading::of(0.5))));
        assert_eq!(detector.0.load(Ordering::Relaxed), 4);
        // Two that cannot be read together are read, and cached, one by one.
        for _ in 0..2 {
            assert_eq!(both(["", "a"]), [Ok(Reading::of(0.5)), Ok(Reading::of(0.5))]);
        }
        assert_eq!(detector.0.load(Ordering::Relaxed), 5);
    }

    #[test]
    fn detectors_around_one_that_reads_both_statements_together_do_so_too() {
        let beside: Arc<dyn Detector> = Arc::new(Beside(AtomicUsize::new(0), Rule::default()));
        let fitted = Fitted { threshold: 0.5, labels: 1, detector: beside.key().into(), calibration: None };
        let around: [Box<dyn Detector>; 2] = [
            Box::new(EnglishOnly(Arc::clone(&beside))),
            Box::new(Refitted::new(Arc::clone(&beside), fitted).unwrap()),
        ];
        for detector in around {
            assert!(detector.reads_both(["a", "bb"]) && !detector.reads_both(["a", ""]));
            let read = detector.read_both(&Passage::default(), ["a", "bb"], &Stop::never());
            assert_eq!(read, [Ok(Reading::of(0.2)), Ok(Reading::of(0.1))]);
        }
    }
}
