//! One decision on a passage and two opposite statements: does it take a side, and which?
//!
//! With z₁, z₂ the logits (supports, opposes, neither) of the passage with either statement and c the greater of two cosines:
//!
//! ```text
//! R = σ(a·e + b·c + d)                engaged: the passage supports at least one side
//! S = σ(t·s)                          the side is the first one
//! P(first only) = R·S·(1 − B)         P(second only) = R·σ(−t·s)·(1 − B)
//! P(both)       = R·B                 P(neither)     = 1 − R
//! ```
//!
//! Swapping the statements does not change e and changes the sign of s. σ(−t·s) is computed directly, not as 1 − σ(t·s), so the
//! decision is swapped to the last bit. The parameters are fitted by `tools/detector/fit.py` on development questions.
//!
//! `rule` holds the parameters, and everything else that turns readings into probabilities and decisions. Whose decisions count
//! stands here too: [`By`] and [`LabelSource`].

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::input::Expected;
use crate::measure::trec::grade;
use crate::work::Stopped;

/// The threshold of detectors without a fitted one: yes is at least as likely as no.
pub const EVEN: f32 = 0.5;

/// Why a pair has no verdict.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum DetectError {
    /// The passage or the statement is empty.
    #[error("the {0} is empty")]
    Empty(&'static str),
    /// The text is in a language that the detector does not read.
    #[error("the {what} seems to be {language}, and this detector reads English only")]
    Foreign {
        /// The passage or the statement.
        what: &'static str,
        /// The language's English name.
        language: &'static str,
    },
    /// The model failed.
    #[error("the detector could not be run: {0}")]
    Model(String),
    /// The language model answered neither yes nor no, or not at all.
    #[error("{0}")]
    Unanswered(String),
    /// The threshold was fitted for another detector.
    #[error(
        "the threshold was fitted for the detector {of}, and this one is {here}; fit it again with `annotate agree --refit`"
    )]
    OtherThreshold {
        /// The detector that the threshold was fitted for.
        of: String,
        /// The detector in use.
        here: String,
    },
    /// Stopped on request.
    #[error(transparent)]
    Stopped(#[from] Stopped),
}

/// Logits of a passage with one statement: supports, opposes, neither.
pub type Logits = [f32; 3];

/// The fitted parameters of the decision.
#[derive(Clone, Debug, PartialEq, Deserialize, Serialize)]
pub struct Heads {
    /// The parameters of R.
    pub engaged: EngagedHead,
    /// The parameters of S.
    pub side: SideHead,
    /// B: the share of engaged passages that support both sides.
    pub both: f64,
    /// ρ: with R below it the passage supports neither side.
    pub rho: f64,
    /// β: with P(both | engaged) at or above it the passage supports both.
    pub beta: f64,
    /// τ: with P(that side only) at or above it a side is shown. `None` if this detector never shows one.
    pub tau: Option<f64>,
    /// θ: P(supports statement i) at or above it counts as support, for a statement without an opposite.
    pub theta: f64,
    /// The share of the development split that takes a side: the probability for a passage without a verdict.
    #[serde(default = "default_prior")]
    pub prior: f64,
}

/// The prior of detectors whose file gives none: that of the labels of the built-in detector.
pub(super) fn default_prior() -> f64 {
    0.385
}

/// The weights of R.
#[derive(Clone, Debug, PartialEq, Deserialize, Serialize)]
pub struct EngagedHead {
    /// Which function e is.
    pub form: EngagedForm,
    /// The weight of e.
    pub a: f64,
    /// The weight of the cosine.
    pub b: f64,
    /// The constant.
    pub d: f64,
}

/// The slope of S. A constant would favour one statement.
#[derive(Clone, Debug, PartialEq, Deserialize, Serialize)]
pub struct SideHead {
    /// Which function s is.
    pub form: SideForm,
    /// Its slope.
    pub t: f64,
}

/// Functions of both logits that do not change when the statements are swapped; sᵢ = supports − neither, oᵢ = opposes − neither.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum EngagedForm {
    /// The greater of s₁ and s₂.
    MaxSupports,
    /// The greatest of all four.
    MaxAny,
    /// The mean over both statements of log(exp sᵢ + exp oᵢ).
    SumAny,
    /// log Σ exp of all four.
    Logsum,
    /// log(exp s₁ + exp s₂).
    LogsumSupports,
}

/// Functions of both logits that change their sign when the statements are swapped.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum SideForm {
    /// (z₁supports − z₁opposes) − (z₂supports − z₂opposes).
    SupportsOpposes,
    /// s₁ − s₂.
    Supports,
    /// z₁supports − z₂supports.
    Class,
}

/// The decision on a passage and two opposite statements.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// It supports the first statement (0) or the second (1) only.
    Side(usize),
    /// It supports both.
    Both,
    /// It supports neither.
    Neither,
    /// It is unclear which side it takes, or whether it takes one.
    Unclear,
}

impl Outcome {
    /// Whether the passage supports a statement, 0 or 1; `None` if that is unclear.
    pub fn supports(self, statement: usize) -> Option<bool> {
        match self {
            Outcome::Side(side) => Some(side == statement),
            Outcome::Both => Some(true),
            Outcome::Neither => Some(false),
            Outcome::Unclear => None,
        }
    }

    /// Its name: `first`, `second`, `both`, `neither` or `unclear`.
    pub fn name(self) -> &'static str {
        match self {
            Outcome::Side(0) => "first",
            Outcome::Side(_) => "second",
            Outcome::Both => "both",
            Outcome::Neither => "neither",
            Outcome::Unclear => "unclear",
        }
    }
}

/// A decision with its probabilities.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Decision {
    /// The outcome to show.
    pub outcome: Outcome,
    /// R, the probability that the passage supports at least one side.
    pub engaged: f64,
    /// P(first only), P(second only), P(both), P(neither).
    pub p: [f64; 4],
}

impl Decision {
    /// P(supports statement i), alone or with the other.
    pub fn supports(&self, statement: usize) -> f64 {
        self.p.get(statement).filter(|_| statement < 2).map_or(0.0, |own| own + self.p[2])
    }

    /// The same decision with the statements exchanged.
    pub fn swapped(&self) -> Decision {
        let outcome = match self.outcome {
            Outcome::Side(side) => Outcome::Side(1 - side),
            other => other,
        };
        let [first, second, both, neither] = self.p;
        Decision { outcome, p: [second, first, both, neither], ..*self }
    }
}

/// Logits of a window of a passage with both statements, and the greater of the two cosines.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Evidence {
    /// With the first and the second statement.
    pub logits: [Logits; 2],
    /// The cosine of the passage to the nearer statement.
    pub cosine: f32,
}

impl Heads {
    /// Decides on a passage that was read in windows, by the window with the greatest R. `None` if there are no windows.
    ///
    /// Also returns the index of that window, which is the evidence.
    pub fn decide(&self, windows: &[Evidence]) -> Option<(Decision, usize)> {
        let engaged = windows.iter().map(|window| self.engaged(window)).enumerate();
        let (window, engaged) = engaged.max_by(|a, b| a.1.total_cmp(&b.1).then(b.0.cmp(&a.0)))?;
        Some((self.decision(engaged, self.side_logit(&windows[window].logits)), window))
    }

    fn engaged(&self, Evidence { logits: [first, second], cosine }: &Evidence) -> f64 {
        let over = |z: &Logits| (f64::from(z[0]) - f64::from(z[2]), f64::from(z[1]) - f64::from(z[2]));
        let ((s1, o1), (s2, o2)) = (over(first), over(second));
        let e = match self.engaged.form {
            EngagedForm::MaxSupports => s1.max(s2),
            EngagedForm::MaxAny => s1.max(o1).max(s2.max(o2)),
            EngagedForm::SumAny => (log_add(s1, o1) + log_add(s2, o2)) / 2.0,
            EngagedForm::Logsum => log_add(log_add(s1, o1), log_add(s2, o2)),
            EngagedForm::LogsumSupports => log_add(s1, s2),
        };
        sigmoid(self.engaged.a * e + self.engaged.b * f64::from(*cosine) + self.engaged.d)
    }

    /// t·s.
    fn side_logit(&self, [first, second]: &[Logits; 2]) -> f64 {
        let difference = |of: &dyn Fn(&Logits) -> f64| of(first) - of(second);
        self.side.t
            * match self.side.form {
                SideForm::SupportsOpposes => difference(&|z| f64::from(z[0]) - f64::from(z[1])),
                SideForm::Supports => difference(&|z| f64::from(z[0]) - f64::from(z[2])),
                SideForm::Class => difference(&|z| f64::from(z[0])),
            }
    }

    fn decision(&self, engaged: f64, side: f64) -> Decision {
        let (first, second) = (sigmoid(side), sigmoid(-side));
        let one = engaged * (1.0 - self.both);
        let p = [one * first, one * second, engaged * self.both, 1.0 - engaged];
        let shown = |side: usize| self.tau.is_some_and(|tau| p[side] >= tau && p[side] > p[1 - side]);
        let outcome = if engaged < self.rho {
            Outcome::Neither
        } else if self.both >= self.beta {
            Outcome::Both
        } else if let Some(side) = (0..2).find(|side| shown(*side)) {
            Outcome::Side(side)
        } else {
            Outcome::Unclear
        };
        Decision { outcome, engaged, p }
    }
}

/// log(exp x + exp y), the same for (y, x) to the last bit.
pub(super) fn log_add(x: f64, y: f64) -> f64 {
    let (high, low) = if x >= y { (x, y) } else { (y, x) };
    high + (low - high).exp().ln_1p()
}

fn sigmoid(x: f64) -> f64 {
    1.0 / (1.0 + (-x).exp())
}

/// Whether a label means support: true, yes and every number above 0 do.
pub(crate) fn truth(label: &str) -> Result<bool, Expected> {
    grade(label.trim()).map(|grade| grade > 0).ok_or_else(|| "a label of 1 or 0".into())
}

/// The source of a label.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum By {
    /// A detector.
    Model,
    /// Gold labels, from a file or the built-in data, or the verdicts of a named judge in that file.
    Gold,
    /// A person, in Parallax.
    Human,
}

/// The judgment that counts for a passage and a statement.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Verdict {
    /// Whether the passage supports the statement. `None` if the side is unclear.
    pub supports: Option<bool>,
    /// The probability, if a model gave it.
    pub p: Option<f32>,
    /// The source of the judgment.
    pub by: By,
}

/// Which labels count.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, clap::ValueEnum)]
pub enum LabelSource {
    /// The most trusted label of each passage: human, else gold, else the model's. Sources are never mixed within a passage.
    #[default]
    Auto,
    /// The detector alone.
    Model,
    /// The labels of --labels alone.
    Gold,
    /// Human labels alone.
    Human,
}

impl LabelSource {
    /// The next source in the cycle, skipping those without labels.
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

    /// Whether only labels count, so no detector needs to run.
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

#[cfg(test)]
mod tests {
    use super::*;

    fn heads() -> Heads {
        Heads {
            engaged: EngagedHead { form: EngagedForm::SumAny, a: 0.4, b: 10.0, d: -5.5 },
            side: SideHead { form: SideForm::SupportsOpposes, t: 0.5 },
            both: 0.03,
            rho: 0.6,
            beta: 1.0,
            tau: Some(0.7),
            theta: 0.34,
            prior: 0.4,
        }
    }

    fn seen(first: Logits, second: Logits, cosine: f32) -> Evidence {
        Evidence { logits: [first, second], cosine }
    }

    fn one(heads: &Heads, evidence: Evidence) -> Decision {
        heads.decide(&[evidence]).unwrap().0
    }

    #[test]
    fn the_sources_cycle_and_skip_those_without_labels() {
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

    #[test]
    fn a_case_worked_by_hand() {
        // s = (2 − 0) − (0 − 2) = 4, t·s = 2; e = (ln(e³ + e¹) + ln(e¹ + e³)) / 2 = 3.126928, cos .6.
        let decision = one(&heads(), seen([2.0, 0.0, -1.0], [0.0, 2.0, -1.0], 0.6));
        let engaged = 1.0 / (1.0 + (-(0.4f64 * 3.126_928_011 + 6.0 * 1.000_000_04 - 5.5)).exp());
        assert!((decision.engaged - engaged).abs() < 1e-6, "{decision:?}");
        assert_eq!(decision.outcome, Outcome::Side(0));
        let side = 1.0 / (1.0 + (-2.0f64).exp());
        assert!((decision.p[0] - decision.engaged * side * 0.97).abs() < 1e-12);
        assert!((decision.p.iter().sum::<f64>() - 1.0).abs() < 1e-12);
        assert!((decision.supports(0) - decision.p[0] - decision.p[2]).abs() < 1e-15);
    }

    #[test]
    fn swapping_the_statements_swaps_the_decision_to_the_last_bit() {
        let mut value = 0.37f32;
        let mut next = || {
            value = (value * 997.3 + 0.17).fract();
            value * 12.0 - 6.0
        };
        for _ in 0..2_000 {
            let (first, second) = ([next(), next(), next()], [next(), next(), next()]);
            let cosine = (next() + 6.0) / 12.0;
            for engaged in [
                EngagedForm::MaxSupports,
                EngagedForm::MaxAny,
                EngagedForm::SumAny,
                EngagedForm::LogsumSupports,
            ] {
                for side in [SideForm::SupportsOpposes, SideForm::Supports, SideForm::Class] {
                    let mut heads = heads();
                    (heads.engaged.form, heads.side.form) = (engaged, side);
                    let there = one(&heads, seen(first, second, cosine));
                    let back = one(&heads, seen(second, first, cosine));
                    assert_eq!(there.swapped(), back, "{engaged:?} {side:?} {first:?} {second:?}");
                }
            }
        }
    }

    #[test]
    fn an_unsure_side_is_unclear_and_a_text_off_the_topic_is_neither() {
        let unsure = one(&heads(), seen([2.0, 1.8, -1.0], [1.8, 2.0, -1.0], 0.9));
        assert_eq!(unsure.outcome, Outcome::Unclear);
        assert_eq!(one(&heads(), seen([2.0, 0.0, 3.0], [0.0, 2.0, 3.0], 0.1)).outcome, Outcome::Neither);
        let silent = Heads { tau: None, ..heads() };
        assert_eq!(one(&silent, seen([9.0, 0.0, -1.0], [0.0, 9.0, -1.0], 0.9)).outcome, Outcome::Unclear);
        let even = Heads { tau: Some(0.5), ..heads() };
        assert_eq!(one(&even, seen([2.0, 1.0, -1.0], [2.0, 1.0, -1.0], 0.9)).outcome, Outcome::Unclear);
        // What is shown is what the reader sees: the probability of the side itself.
        let text = || seen([2.0, 0.0, -1.0], [0.0, 2.0, -1.0], 0.6);
        let Decision { engaged, p: [p, ..], .. } = one(&heads(), text());
        assert!(p < engaged);
        assert_eq!(one(&Heads { tau: Some(p), ..heads() }, text()).outcome, Outcome::Side(0));
        assert_eq!(one(&Heads { tau: Some(p + 0.01), ..heads() }, text()).outcome, Outcome::Unclear);
        assert_eq!(one(&Heads { rho: engaged + 0.01, ..heads() }, text()).outcome, Outcome::Neither);
    }

    #[test]
    fn the_window_that_takes_a_side_most_speaks_for_the_passage() {
        let quiet = seen([0.0, 0.0, 3.0], [0.0, 0.0, 3.0], 0.2);
        let loud = seen([0.0, 3.0, -1.0], [3.0, 0.0, -1.0], 0.7);
        let (decision, window) = heads().decide(&[quiet, loud, quiet]).unwrap();
        assert_eq!((decision.outcome, window), (Outcome::Side(1), 1));
        assert_eq!(heads().decide(&[]), None);
    }

    #[test]
    fn parameters_are_read_as_fit_py_writes_them() {
        let text = r#"{"engaged": {"form": "sum_any", "a": 0.4, "b": 10.0, "d": -5.5},
            "side": {"form": "supports_opposes", "t": 0.08}, "both": 0.03, "rho": 0.6, "tau": null, "beta": 1.0, "theta": 0.34,
            "test": {"f1": 0.55}}"#;
        let heads: Heads = serde_json::from_str(text).unwrap();
        assert_eq!((heads.tau, heads.engaged.form), (None, EngagedForm::SumAny));
    }
}
