//! Which perspective does a passage support?
//!
//! Owns [`Detector`], the carried cross-encoder, labels read from files, the verdict cache, and the rule which of several
//! labels counts. A verdict is a function of (model, passage, statement) alone. It must not know about lanes.

pub mod cache;
mod cross_encoder;
pub mod evidence;
pub mod labels;
mod perspectrum;

pub use cross_encoder::CrossEncoder;
pub use labels::Labels;

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::corpus::Passage;

/// Why a pair has no verdict. None is invented in its place.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum DetectError {
    /// There is nothing to judge.
    #[error("the {0} is empty")]
    Empty(&'static str),
    /// The model failed.
    #[error("the detector could not be run: {0}")]
    Model(String),
}

/// A model that judges one pair of passage and statement.
pub trait Detector: Send + Sync {
    /// Name and hash of the weights; verdicts of another key are not comparable.
    fn key(&self) -> &str;
    /// A passage supports a statement from this probability on.
    fn threshold(&self) -> f32;
    /// Not yet better than plain cosine on a test split by topic.
    fn experimental(&self) -> bool;
    /// The probability that the passage supports the statement.
    ///
    /// # Errors
    /// The pair is empty or the model failed.
    fn judge(&self, passage: &Passage, statement: &str) -> Result<f32, DetectError>;
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
    /// The most trusted there is: gold, else the model.
    #[default]
    Auto,
    /// The detector alone.
    Model,
    /// Gold labels alone.
    Gold,
}

impl LabelSource {
    /// The next one, round and round.
    pub fn next(self) -> Self {
        match self {
            LabelSource::Auto => LabelSource::Model,
            LabelSource::Model => LabelSource::Gold,
            LabelSource::Gold => LabelSource::Auto,
        }
    }
}

impl fmt::Display for LabelSource {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            LabelSource::Auto => "auto",
            LabelSource::Model => "model",
            LabelSource::Gold => "gold",
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
        let gold = self.gold.map(|supports| Verdict { supports, p: None, by: By::Gold });
        let model = match &self.model {
            Some(Ok(p)) => Some(Verdict { supports: *p >= threshold, p: Some(*p), by: By::Model }),
            _ => None,
        };
        match source {
            LabelSource::Auto => gold.or(model),
            LabelSource::Model => model,
            LabelSource::Gold => gold,
        }
    }

    /// Whether gold says otherwise than the detector.
    pub fn disagrees(&self, threshold: f32) -> bool {
        matches!((&self.model, self.gold), (Some(Ok(p)), Some(gold)) if (*p >= threshold) != gold)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn gold_goes_before_the_model_and_a_failed_model_gives_no_verdict() {
        let known = Known { model: Some(Ok(0.9)), gold: Some(false) };
        let says = |source| known.verdict(source, 0.5).map(|verdict| (verdict.supports, verdict.by));
        assert_eq!(says(LabelSource::Auto), Some((false, By::Gold)));
        assert_eq!(says(LabelSource::Model), Some((true, By::Model)));
        assert!(known.disagrees(0.5) && !known.disagrees(0.95));
        let failed = Known { model: Some(Err(DetectError::Empty("passage"))), gold: None };
        assert_eq!(failed.verdict(LabelSource::Auto, 0.5), None);
    }
}
