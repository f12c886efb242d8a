//! The measures and their names, as ir_measures writes them: `NAME[(parameter=value,…)][@cut-off]`.
//!
//! [`Display`] leaves default parameters out, so that `alpha_nDCG(alpha=0.5)@5` and `alpha_nDCG@5` are one measure and one column.

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

/// Makes [`EXAMPLES`] and the method that gives the example of a measure. A variant without an example does not compile.
macro_rules! examples {
    ($($variant:ident => $example:literal),+ $(,)?) => {
        /// One example of every measure, in the order of the manual.
        pub(super) const EXAMPLES: &[&str] = &[$($example),+];

        impl Measure {
            fn example(self) -> &'static str {
                match self {
                    $(Self::$variant { .. } => $example),+
                }
            }
        }
    };
}

examples! {
    NDcg => "nDCG@10",
    Precision => "P@5",
    Recall => "R@100",
    AveragePrecision => "AP",
    ReciprocalRank => "RR@10",
    Judged => "Judged@10",
    AlphaNDcg => "alpha_nDCG@5",
    ErrIa => "ERR_IA@5",
    SubtopicRecall => "StRecall@5",
    PrecisionIa => "P_IA@5",
    MRecall => "MRecall@5",
    Prec => "Prec@5",
    PRecall => "pRecall@5",
    Lean => "Lean@5",
    Shift => "Shift@5",
    Cover => "Cover",
    RKl => "rKL@20",
    Awrf => "AWRF",
}

/// The name in an example, without its cut-off.
pub(super) fn bare(example: &str) -> &str {
    example.split('@').next().unwrap_or(example)
}

impl Measure {
    /// The name without parameters and cut-off.
    pub fn name(self) -> &'static str {
        bare(self.example())
    }

    /// The cut-off, if there is one.
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

    /// The name of the measure's parameter, if it has one, and the value if that differs from the default.
    pub(super) fn parameter(self) -> Option<(&'static str, Option<String>)> {
        match self {
            Self::Precision { rel, .. }
            | Self::Recall { rel, .. }
            | Self::AveragePrecision { rel, .. }
            | Self::ReciprocalRank { rel, .. } => {
                Some(("rel", (rel != DEFAULT_REL).then(|| rel.to_string())))
            }
            Self::AlphaNDcg { alpha, .. } => {
                // `{:?}` writes 1 as `1.0`; ir_measures refuses a whole number here.
                Some(("alpha", (alpha != Alpha::default()).then(|| format!("{:?}", alpha.get()))))
            }
            Self::NDcg { .. }
            | Self::Judged { .. }
            | Self::ErrIa { .. }
            | Self::SubtopicRecall { .. }
            | Self::PrecisionIa { .. }
            | Self::MRecall { .. }
            | Self::Prec { .. }
            | Self::Lean { .. }
            | Self::Shift { .. }
            | Self::Cover
            | Self::PRecall { .. }
            | Self::RKl { .. }
            | Self::Awrf { .. } => None,
        }
    }

    /// Whether verdicts can be drawn again to see how uncertain the measure is. Not for alpha_nDCG, whose ideal is made of the verdicts
    /// themselves, nor for Shift, which compares several lists.
    pub(super) fn can_be_drawn(self) -> bool {
        match self {
            Self::AlphaNDcg { .. } | Self::Shift { .. } => false,
            Self::NDcg { .. }
            | Self::Precision { .. }
            | Self::Recall { .. }
            | Self::AveragePrecision { .. }
            | Self::ReciprocalRank { .. }
            | Self::Judged { .. }
            | Self::ErrIa { .. }
            | Self::SubtopicRecall { .. }
            | Self::PrecisionIa { .. }
            | Self::MRecall { .. }
            | Self::Prec { .. }
            | Self::Lean { .. }
            | Self::Cover
            | Self::PRecall { .. }
            | Self::RKl { .. }
            | Self::Awrf { .. } => true,
        }
    }

    /// Whether labels on drawn questions can correct the mean by the model's verdicts: every question has a value, which depends on one
    /// list only, and which labels change.
    pub(super) fn can_be_corrected(self) -> bool {
        match self {
            // Shift compares several lists, and the ideal of alpha_nDCG is made of those of all lanes.
            Self::AlphaNDcg { .. } | Self::Shift { .. } => false,
            // The labels decide which questions have a value.
            Self::Cover | Self::RKl { .. } | Self::Awrf { .. } => false,
            // Counts labels, not what they say.
            Self::Judged { .. } => false,
            Self::NDcg { .. }
            | Self::Precision { .. }
            | Self::Recall { .. }
            | Self::AveragePrecision { .. }
            | Self::ReciprocalRank { .. }
            | Self::ErrIa { .. }
            | Self::SubtopicRecall { .. }
            | Self::PrecisionIa { .. }
            | Self::MRecall { .. }
            | Self::Prec { .. }
            | Self::Lean { .. }
            | Self::PRecall { .. } => true,
        }
    }
}

/// trec_eval's default relevance level.
pub const DEFAULT_REL: i32 = 1;

impl Display for Measure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())?;
        if let Some((parameter, Some(value))) = self.parameter() {
            write!(f, "({parameter}={value})")?;
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

/// The share of its gain that a perspective loses in alpha_nDCG each time it appears: with 0 none, with 1 all of it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Alpha(f64);

impl Alpha {
    /// Returns `None` for a number outside 0 to 1 and for NaN.
    pub fn new(alpha: f64) -> Option<Self> {
        // Adding 0 turns −0 into 0, so that equal values have equal hashes.
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

/// Why a name is not that of a measure, and what to write instead.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[allow(missing_docs, reason = "the fields are what the messages show")]
pub enum MeasureNameError {
    /// No measure has this name, but one has a similar name.
    #[error("unknown measure `{given}`: did you mean `{nearest}`?")]
    Unknown { given: String, nearest: String },
    /// No measure has a similar name.
    #[error("unknown measure `{given}`: expected one of {known}")]
    Unheard { given: String, known: String },
    /// Parentheses or `@` are in the wrong place.
    #[error("cannot read `{given}` as a measure: expected NAME, NAME@10 or NAME(rel=2)@10")]
    Malformed { given: String },
    /// The measure needs a cut-off.
    #[error("`{given}` needs a cut-off, as in `{given}@5`")]
    NoCutoff { given: String },
    /// The measure has no cut-off.
    #[error("`{name}` takes no cut-off, found `@{found}`")]
    TakesNoCutoff { name: String, found: String },
    /// The cut-off is not one of the measure's.
    #[error("`{name}` has the cut-offs {known}, found `@{found}`")]
    OtherCutoff { name: String, known: String, found: String },
    /// The cut-off is not a whole number from 1.
    #[error("expected a cut-off from 1 in `{given}`, found `{found}`")]
    BadCutoff { given: String, found: String },
    /// The measure has no such parameter.
    #[error("`{name}` takes no parameter `{parameter}`")]
    UnknownParameter { name: String, parameter: String },
    /// The parameter is outside its range.
    #[error("expected {expected} for `{parameter}`, found `{found}`")]
    BadParameter { parameter: &'static str, expected: &'static str, found: String },
}
