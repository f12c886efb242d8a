//! Names of measures, as ir_measures writes them: `NAME[(parameter=value,…)][@cut-off]`.
//!
//! Owns the list of names, nothing of what they compute. [`Display`] leaves default parameters out, so that
//! `alpha_nDCG(alpha=0.5)@5` and `alpha_nDCG@5` are one measure and one column.

use std::fmt::{self, Display};
use std::hash::{Hash, Hasher};
use std::num::NonZeroUsize;

use serde::{Deserialize, Serialize};
use thiserror::Error;

/// A measure with its parameters. `rel` is the lowest grade that counts as relevant.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
#[allow(missing_docs, reason = "the parameters are `rel`, `k` and `alpha`, as the names write them")]
pub enum Measure {
    /// `nDCG`, `nDCG@10`: linear gains, as trec_eval.
    NDcg { k: Option<NonZeroUsize> },
    /// `P@5`, `P(rel=2)@5`.
    Precision { rel: i32, k: NonZeroUsize },
    /// `R@100`, `R(rel=2)@1000`.
    Recall { rel: i32, k: NonZeroUsize },
    /// `AP`, `AP(rel=2)`, `AP@100`.
    AveragePrecision { rel: i32, k: Option<NonZeroUsize> },
    /// `RR`, `RR@10`, `RR(rel=2)@10`.
    ReciprocalRank { rel: i32, k: Option<NonZeroUsize> },
    /// `Judged@10`.
    Judged { k: NonZeroUsize },
    /// `alpha_nDCG@5`, `alpha_nDCG(alpha=0.3)@5`.
    AlphaNDcg { alpha: Alpha, k: NonZeroUsize },
    /// `ERR_IA@5`.
    ErrIa { k: NonZeroUsize },
    /// `StRecall@5`.
    SubtopicRecall { k: NonZeroUsize },
    /// `P_IA@5`.
    PrecisionIa { k: NonZeroUsize },
    /// `MRecall@5`; `mrecall@5` is read too (BERDS).
    MRecall { k: NonZeroUsize },
    /// `Prec@5`: passages that support any perspective (BERDS).
    Prec { k: NonZeroUsize },
    /// `Lean@5`: two-sided questions only.
    Lean { k: NonZeroUsize },
    /// `Shift@5`: two-sided questions only.
    Shift { k: NonZeroUsize },
    /// `Cover` (BERDS Table 5).
    Cover,
    /// `pRecall@5` (PIR).
    PRecall { k: NonZeroUsize },
    /// `rKL@5`, `rKL@10`, `rKL@20`: the cut-offs 5, 10 and 20 as far as `k`; `rKL` is `rKL@20`.
    RKl { k: NonZeroUsize },
    /// `AWRF@10`, or `AWRF` over the first 100.
    Awrf { k: Option<NonZeroUsize> },
}

impl Measure {
    /// The name without parameters and cut-off.
    pub fn name(self) -> &'static str {
        match self {
            Self::NDcg { .. } => "nDCG",
            Self::Precision { .. } => "P",
            Self::Recall { .. } => "R",
            Self::AveragePrecision { .. } => "AP",
            Self::ReciprocalRank { .. } => "RR",
            Self::Judged { .. } => "Judged",
            Self::AlphaNDcg { .. } => "alpha_nDCG",
            Self::ErrIa { .. } => "ERR_IA",
            Self::SubtopicRecall { .. } => "StRecall",
            Self::PrecisionIa { .. } => "P_IA",
            Self::MRecall { .. } => "MRecall",
            Self::Prec { .. } => "Prec",
            Self::Lean { .. } => "Lean",
            Self::Shift { .. } => "Shift",
            Self::Cover => "Cover",
            Self::PRecall { .. } => "pRecall",
            Self::RKl { .. } => "rKL",
            Self::Awrf { .. } => "AWRF",
        }
    }

    /// The cut-off, where the measure has one.
    pub fn cutoff(self) -> Option<usize> {
        match self {
            Self::NDcg { k }
            | Self::AveragePrecision { k, .. }
            | Self::ReciprocalRank { k, .. }
            | Self::Awrf { k } => k,
            Self::Precision { k, .. }
            | Self::Recall { k, .. }
            | Self::Judged { k }
            | Self::AlphaNDcg { k, .. }
            | Self::ErrIa { k }
            | Self::SubtopicRecall { k }
            | Self::PrecisionIa { k }
            | Self::MRecall { k }
            | Self::Prec { k }
            | Self::Lean { k }
            | Self::Shift { k }
            | Self::PRecall { k }
            | Self::RKl { k } => Some(k),
            Self::Cover => None,
        }
        .map(NonZeroUsize::get)
    }

    /// The parameter that differs from its default, as written between the parentheses.
    fn parameter(self) -> Option<String> {
        match self {
            Self::Precision { rel, .. }
            | Self::Recall { rel, .. }
            | Self::AveragePrecision { rel, .. }
            | Self::ReciprocalRank { rel, .. }
                if rel != DEFAULT_REL =>
            {
                Some(format!("rel={rel}"))
            }
            Self::AlphaNDcg { alpha, .. } if alpha != Alpha::default() => {
                // `{:?}` writes 1 as `1.0`; ir_measures refuses a whole number here.
                Some(format!("alpha={:?}", alpha.get()))
            }
            _ => None,
        }
    }
}

/// trec_eval's default relevance level.
pub const DEFAULT_REL: i32 = 1;

impl Display for Measure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())?;
        if let Some(parameter) = self.parameter() {
            write!(f, "({parameter})")?;
        }
        match self.cutoff() {
            Some(k) => write!(f, "@{k}"),
            None => Ok(()),
        }
    }
}

impl From<Measure> for String {
    fn from(measure: Measure) -> Self {
        measure.to_string()
    }
}

/// How much less a perspective heard before is worth in alpha_nDCG: 0 not at all, 1 nothing.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Alpha(f64);

impl Alpha {
    /// `None` outside 0 to 1 and for NaN.
    pub fn new(alpha: f64) -> Option<Self> {
        // Adding 0 turns −0 into 0, so that equal values hash alike.
        (0.0..=1.0).contains(&alpha).then_some(Self(alpha + 0.0))
    }

    /// The number.
    pub fn get(self) -> f64 {
        self.0
    }
}

impl Default for Alpha {
    /// 0.5, as in TREC's Web track.
    fn default() -> Self {
        Self(0.5)
    }
}

impl Eq for Alpha {}

impl Hash for Alpha {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.0.to_bits().hash(state);
    }
}

/// Why a name is not one of a measure, with what to write instead.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[allow(missing_docs, reason = "the fields are what the messages show")]
pub enum MeasureNameError {
    /// No measure is called so, but one nearly is.
    #[error("unknown measure `{given}`: did you mean `{nearest}`?")]
    Unknown { given: String, nearest: String },
    /// Nothing is near.
    #[error("unknown measure `{given}`: expected one of {known}")]
    Unheard { given: String, known: String },
    /// Parentheses or `@` where they cannot be.
    #[error("cannot read `{given}` as a measure: expected NAME, NAME@10 or NAME(rel=2)@10")]
    Malformed { given: String },
    /// The measure is defined only at a cut-off.
    #[error("`{given}` needs a cut-off, as in `{given}@5`")]
    NoCutoff { given: String },
    /// The measure has none.
    #[error("`{name}` takes no cut-off, found `@{found}`")]
    TakesNoCutoff { name: String, found: String },
    /// Not one of the measure's cut-offs.
    #[error("`{name}` has the cut-offs {known}, found `@{found}`")]
    OtherCutoff { name: String, known: String, found: String },
    /// Not a whole number from 1.
    #[error("expected a cut-off from 1 in `{given}`, found `{found}`")]
    BadCutoff { given: String, found: String },
    /// The measure has no such parameter.
    #[error("`{name}` takes no parameter `{parameter}`")]
    UnknownParameter { name: String, parameter: String },
    /// The parameter is outside its range.
    #[error("expected {expected} for `{parameter}`, found `{found}`")]
    BadParameter { parameter: &'static str, expected: &'static str, found: String },
}
