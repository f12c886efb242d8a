//! Which perspective does a passage support?
//!
//! Owns [`Detector`], the carried cross-encoder, brought ones and prompted models, labels read from files, the verdict cache, and the rule which of several
//! labels counts. A verdict is a function of (model, passage, statement) alone. It must not know about lanes.

mod brought;
pub mod cache;
mod choice;
mod classes;
mod cross_encoder;
pub mod evidence;
mod fitted;
pub mod labels;
mod language;
mod pair;
mod perspectrum;
mod prompted;

pub use brought::BroughtCrossEncoder;
pub use choice::Choice;
pub use cross_encoder::CrossEncoder;
pub use fitted::{Fitted, Refitted};
pub use labels::Labels;
pub use language::foreign;
pub use pair::cut;
pub use prompted::PromptedDetector;

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::corpus::Passage;
use crate::work::{Stop, Stopped};

/// From here on a yes is likelier than a no: the threshold of detectors that nobody fitted one for.
pub const EVEN: f32 = 0.5;

/// Why a pair has no verdict. None is invented in its place.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum DetectError {
    /// There is nothing to judge.
    #[error("the {0} is empty")]
    Empty(&'static str),
    /// The model failed.
    #[error("the detector could not be run: {0}")]
    Model(String),
    /// The model that was asked did not say yes or no, or nothing at all.
    #[error("{0}")]
    Unanswered(String),
    /// The threshold is of another detector.
    #[error(
        "the threshold was fitted for the detector {of}, and this one is {here}; fit it again with `annotate agree --refit`"
    )]
    OtherThreshold {
        /// Whose it is.
        of: String,
        /// The one in use.
        here: String,
    },
    /// Stopped on request.
    #[error(transparent)]
    Stopped(#[from] Stopped),
}

/// A model that judges one pair of passage and statement.
pub trait Detector: Send + Sync {
    /// Name and hash of the weights; verdicts of another key are not comparable.
    fn key(&self) -> &str;
    /// A passage supports a statement from this probability on.
    fn threshold(&self) -> f32;
    /// How many labels by hand the threshold was fitted on, where it is not the detector's own.
    fn fitted_on(&self) -> Option<usize> {
        None
    }
    /// On a test split by topic not yet better than plain cosine, or too often on the wrong side.
    fn experimental(&self) -> bool {
        false
    }
    /// How many verdicts a server gives at the same time, where one is asked for them. Each costs, so that none is asked for that is
    /// not needed.
    fn at_once(&self) -> Option<usize> {
        None
    }
    /// For people: what a server was asked since the program began, what it cost, and how often in vain; none where nothing was.
    fn told(&self) -> Option<String> {
        None
    }
    /// The probability that the passage supports the statement.
    ///
    /// # Errors
    /// The pair is empty, the model failed, or `stop` was set before it had read everything.
    fn judge(&self, passage: &Passage, statement: &str, stop: &Stop) -> Result<f32, DetectError>;
}

/// Where a label comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum By {
    /// A detector.
    Model,
    /// Labels that came with the data.
    Gold,
    /// A person here.
    Human,
}

/// Which labels are let count.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, clap::ValueEnum)]
pub enum LabelSource {
    /// The most trusted there is: labels by hand, else gold, else the model.
    #[default]
    Auto,
    /// The detector alone.
    Model,
    /// Gold labels alone.
    Gold,
    /// Labels by hand alone.
    Human,
}

impl LabelSource {
    /// The next one, round and round, passing over those of which there are no labels.
    pub fn next(self, gold: bool, human: bool) -> Self {
        let next = match self {
            LabelSource::Auto => LabelSource::Model,
            LabelSource::Model => LabelSource::Gold,
            LabelSource::Gold => LabelSource::Human,
            LabelSource::Human => LabelSource::Auto,
        };
        match next {
            LabelSource::Gold if !gold => next.next(gold, human),
            LabelSource::Human if !human => next.next(gold, human),
            _ => next,
        }
    }

    /// Whether labels alone count, so that no model need be asked.
    pub fn is_labels(self) -> bool {
        matches!(self, LabelSource::Gold | LabelSource::Human)
    }
}

impl fmt::Display for LabelSource {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            LabelSource::Auto => "auto",
            LabelSource::Model => "model",
            LabelSource::Gold => "gold",
            LabelSource::Human => "human",
        })
    }
}

/// All that is known of one pair.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Known {
    /// What the detector said, once it did.
    pub model: Option<Result<f32, DetectError>>,
    /// What the label file says.
    pub gold: Option<bool>,
    /// What was decided by hand.
    pub human: Option<bool>,
}

/// The label that counts.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Verdict {
    /// Does the passage support the statement?
    pub supports: bool,
    /// With what probability, where a model said it.
    pub p: Option<f32>,
    /// Who said it.
    pub by: By,
}

impl Known {
    /// The verdict under a source, or none while nothing that counts is known.
    pub fn verdict(&self, source: LabelSource, threshold: f32) -> Option<Verdict> {
        let label = |by| move |supports| Verdict { supports, p: None, by };
        let (gold, human) = (self.gold.map(label(By::Gold)), self.human.map(label(By::Human)));
        let model = match &self.model {
            Some(Ok(p)) => Some(Verdict { supports: *p >= threshold, p: Some(*p), by: By::Model }),
            _ => None,
        };
        match source {
            LabelSource::Auto => human.or(gold).or(model),
            LabelSource::Model => model,
            LabelSource::Gold => gold,
            LabelSource::Human => human,
        }
    }

    /// Whether the most trusted label says otherwise than the detector.
    pub fn disagrees(&self, threshold: f32) -> bool {
        matches!((&self.model, self.human.or(self.gold)), (Some(Ok(p)), Some(label)) if (*p >= threshold) != label)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_hand_goes_before_gold_and_gold_before_the_model_and_a_failed_model_gives_no_verdict() {
        let known = Known { model: Some(Ok(0.9)), gold: Some(false), human: None };
        let says = |source| known.verdict(source, 0.5).map(|verdict| (verdict.supports, verdict.by));
        assert_eq!(says(LabelSource::Auto), Some((false, By::Gold)));
        assert_eq!(says(LabelSource::Model), Some((true, By::Model)));
        assert!(known.disagrees(0.5) && !known.disagrees(0.95));
        assert_eq!(says(LabelSource::Human), None);
        let decided = Known { human: Some(true), ..known };
        let says = |source| decided.verdict(source, 0.5).map(|verdict| (verdict.supports, verdict.by));
        assert_eq!(says(LabelSource::Auto), Some((true, By::Human)));
        assert_eq!(says(LabelSource::Human), Some((true, By::Human)));
        assert_eq!(says(LabelSource::Gold), Some((false, By::Gold)));
        assert!(!decided.disagrees(0.5) && decided.disagrees(0.95));
        let failed = Known { model: Some(Err(DetectError::Empty("passage"))), ..Known::default() };
        assert_eq!(failed.verdict(LabelSource::Auto, 0.5), None);
    }

    #[test]
    fn the_sources_go_round_and_pass_over_those_without_labels() {
        let round = |gold, human| {
            let mut source = LabelSource::Auto;
            std::iter::from_fn(|| {
                source = source.next(gold, human);
                (source != LabelSource::Auto).then(|| source.to_string())
            })
            .collect::<Vec<_>>()
            .join(" ")
        };
        assert_eq!(round(true, true), "model gold human");
        assert_eq!(round(false, true), "model human");
        assert_eq!(round(true, false), "model gold");
        assert_eq!(round(false, false), "model");
    }
}
