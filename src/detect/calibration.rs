//! Refits a detector's decision on labels by hand: Platt's curve for R, a slope for S, and the thresholds that follow from them.
//!
//! The logit of S gets no constant, so swapping the statements still swaps the decision to the last bit.

use serde::{Deserialize, Serialize};

use super::decision::{Decision, EngagedHead, Heads, SideHead};
use crate::measure::calibrate::{Platt, platt, slope};

/// The fewest passages that support only one side for which the slope is refitted.
const SIDES: usize = 10;
/// The fewest passages that support only one side for which τ is refitted.
const MANY_SIDES: usize = 20;
/// The share of the shown sides that must be right.
const RIGHT: f64 = 0.8;
/// The share of the sides that must be shown; a threshold that shows fewer is useless.
const COVERED: f64 = 0.05;
/// The limit of logits: beyond it, probabilities are 0 or 1 in floating point.
const SURE: f64 = 36.0;

/// A detector's decision on a passage with two opposite statements, and the labels of the passage.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Case {
    /// The logit of R.
    engaged: f64,
    /// The logit of S.
    side: f64,
    /// Whether the passage supports the first and the second statement.
    labels: [bool; 2],
}

impl Case {
    /// A decision and the labels of its two statements.
    pub fn of(decision: &Decision, labels: [bool; 2]) -> Self {
        let ratio = |yes: f64, no: f64| (yes / no).ln().clamp(-SURE, SURE);
        let side = ratio(decision.p[0], decision.p[1]);
        // Both are 0 if R is 0.
        let side = if side.is_nan() { 0.0 } else { side };
        Case { engaged: ratio(decision.engaged, 1.0 - decision.engaged), side, labels }
    }

    fn is_engaged(&self) -> bool {
        self.labels[0] || self.labels[1]
    }

    /// The side that it supports; `None` if it supports both or neither.
    fn one_side(&self) -> Option<usize> {
        match self.labels {
            [true, false] => Some(0),
            [false, true] => Some(1),
            _ => None,
        }
    }
}

/// A refitted decision, relative to the detector's own.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Calibration {
    /// The slope of R's logit.
    pub a: f64,
    /// The constant of R's logit.
    pub b: f64,
    /// The factor of t.
    pub slope: f64,
    /// The refitted ρ.
    pub rho: f64,
    /// The refitted τ; `None` if no side may be shown.
    pub tau: Option<f64>,
    /// The number of passages it was fitted on, each labelled for both statements.
    pub passages: usize,
    /// The number of them that support only one side.
    pub sides: usize,
}

/// Why a decision cannot be refitted.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum CalibrationError {
    /// No passage has both labels.
    #[error(
        "no passage has a label by hand for both statements of its question, so the decision on the side is not refitted"
    )]
    Nothing,
    /// All labels are alike.
    #[error(
        "all {0} passages with both statements labelled take a side, or none does, so the decision on the side is not refitted"
    )]
    Alike(usize),
    /// The detector ranks passages that take a side below the others.
    #[error(
        "on these {0} passages the detector is surer of a side when there is none, so the decision on the side is not refitted"
    )]
    Backwards(usize),
}

impl Calibration {
    /// Fits a calibration to labelled passages.
    ///
    /// # Errors
    /// See [`CalibrationError`].
    pub fn fit(cases: &[Case], heads: &Heads) -> Result<Self, CalibrationError> {
        let n = cases.len();
        if n == 0 {
            return Err(CalibrationError::Nothing);
        }
        let engaged: Vec<(f64, bool)> = cases.iter().map(|case| (case.engaged, case.is_engaged())).collect();
        let curve = platt(&engaged).ok_or(CalibrationError::Alike(n))?;
        if curve.a <= 0.0 {
            return Err(CalibrationError::Backwards(n));
        }
        let sides: Vec<(f64, bool)> =
            cases.iter().filter_map(|case| Some((case.side, case.one_side()? == 0))).collect();
        let slope = if sides.len() < SIDES { None } else { slope(&sides).filter(|slope| *slope > 0.0) };
        let slope = slope.unwrap_or(1.0);
        let rho = best_threshold(&engaged, curve);
        let shown: Vec<&Case> = cases.iter().filter(|case| curve.p(case.engaged) >= rho).collect();
        let likelier = |case: &Case| {
            curve.p(case.engaged) * (1.0 - heads.both) / (1.0 + (-slope * case.side.abs()).exp())
        };
        let tau = if sides.len() < MANY_SIDES { heads.tau } else { tau(&shown, likelier, sides.len()) };
        Ok(Calibration { a: curve.a, b: curve.b, slope, rho, tau, passages: n, sides: sides.len() })
    }

    /// Whether its numbers are valid; those of a file may not be.
    pub fn is_sound(&self) -> bool {
        let share = |p: f64| (0.0..=1.0).contains(&p);
        let slopes = [self.a, self.slope].iter().all(|slope| slope.is_finite() && *slope > 0.0);
        slopes && self.b.is_finite() && share(self.rho) && self.tau.is_none_or(share)
    }

    /// Returns the detector's parameters, refitted.
    pub fn apply(&self, heads: &Heads) -> Heads {
        let (own, a) = (&heads.engaged, self.a);
        let engaged = EngagedHead { a: a * own.a, b: a * own.b, d: a * own.d + self.b, ..own.clone() };
        let side = SideHead { t: heads.side.t * self.slope, ..heads.side.clone() };
        Heads { engaged, side, rho: self.rho, tau: self.tau, ..heads.clone() }
    }

    /// Combines this calibration with the earlier one that it was fitted on top of: the result is relative to the detector's own
    /// decision.
    pub fn after(self, earlier: &Calibration) -> Self {
        Calibration {
            a: self.a * earlier.a,
            b: self.a * earlier.b + self.b,
            slope: self.slope * earlier.slope,
            ..self
        }
    }

    /// Describes it in one line.
    pub fn words(&self) -> String {
        let tau = self
            .tau
            .map_or_else(|| "no side is shown".to_owned(), |tau| format!("a side is shown from {tau:.2} on"));
        format!(
            "takes a side from {:.2} on, {tau}; fitted on {} passages, {} of them with one side",
            self.rho, self.passages, self.sides
        )
    }
}

/// The calibrated probability that has the highest F1 as a threshold; ties go to the highest probability.
fn best_threshold(cases: &[(f64, bool)], curve: Platt) -> f64 {
    let mut all: Vec<(f64, bool)> = cases.iter().map(|(x, label)| (curve.p(*x), *label)).collect();
    all.sort_by(|a, b| b.0.total_cmp(&a.0));
    let positives = all.iter().filter(|(_, label)| *label).count();
    let (mut hits, mut best) = (0, (0.0, 0.5));
    for (i, (p, label)) in all.iter().enumerate() {
        hits += usize::from(*label);
        let next = all.get(i + 1).map(|(next, _)| *next);
        if next == Some(*p) {
            continue;
        }
        let f1 = 2.0 * hits as f64 / (i + 1 + positives) as f64;
        if f1 > best.0 {
            // Half-way to the next lower probability, so that rounding changes no verdict.
            best = (f1, next.map_or(*p, |next| (next + p) / 2.0));
        }
    }
    best.1
}

/// The lowest τ from one half on at which enough of the shown sides are right; `likelier` is the probability of the likelier side. A side shown
/// for a passage that supports both or neither is wrong.
fn tau(engaged: &[&Case], likelier: impl Fn(&Case) -> f64, sides: usize) -> Option<f64> {
    let mut all: Vec<(f64, Option<usize>, usize)> = engaged
        .iter()
        .filter(|case| case.side != 0.0)
        .map(|case| (likelier(case), case.one_side(), usize::from(case.side < 0.0)))
        .collect();
    all.retain(|(p, ..)| *p >= 0.5);
    all.sort_by(|a, b| b.0.total_cmp(&a.0));
    let (mut right, mut covered, mut found) = (0usize, 0usize, None);
    for (i, (p, side, shown)) in all.iter().enumerate() {
        right += usize::from(*side == Some(*shown));
        covered += usize::from(side.is_some());
        let next = all.get(i + 1).map(|(next, ..)| *next);
        if next == Some(*p) {
            continue;
        }
        let enough = right as f64 >= RIGHT * (i + 1) as f64 && covered as f64 >= COVERED * sides as f64;
        if enough {
            // Below the last one too, so that rounding does not hide it.
            found = Some((next.unwrap_or(0.5) + p) / 2.0);
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::detect::decision::{EngagedForm, Evidence, Outcome, SideForm};

    fn heads() -> Heads {
        serde_json::from_str(
            r#"{"engaged": {"form": "logsum", "a": 0.5, "b": 2.0, "d": -1.0}, "side": {"form": "supports_opposes", "t": 0.1},
                "both": 0.04, "rho": 0.5, "tau": 0.9, "beta": 1.0, "theta": 0.3, "prior": 0.4}"#,
        )
        .unwrap()
    }

    /// A passage with these logits: `side` for the first side against the second, `engaged` for any side.
    fn evidence(side: f32, engaged: f32) -> Evidence {
        Evidence {
            logits: [[engaged + side, engaged - side, 0.0], [engaged - side, engaged + side, 0.0]],
            cosine: 0.5,
        }
    }

    fn case(side: f32, engaged: f32, labels: [bool; 2]) -> Case {
        Case::of(&heads().decide(&[evidence(side, engaged)]).unwrap().0, labels)
    }

    /// 40 passages for a side, every fifth of them misread, and 40 for none.
    fn passages() -> Vec<(Evidence, [bool; 2])> {
        let one = |i: usize| {
            let (first, misread) = (i.is_multiple_of(2), i % 5 == 4);
            let strength = 1.0 + (i % 4) as f32;
            let side = if first != misread { strength } else { -strength };
            (evidence(if misread { side / 4.0 } else { side }, 1.0 + (i % 3) as f32), [first, !first])
        };
        let none = |i: usize| (evidence(0.3, -1.0 - (i % 4) as f32), [false, false]);
        (0..40).map(one).chain((0..40).map(none)).collect()
    }

    fn cases() -> Vec<Case> {
        let case = |(seen, labels)| Case::of(&heads().decide(&[seen]).unwrap().0, labels);
        passages().into_iter().map(case).collect()
    }

    #[test]
    fn a_refitted_decision_is_sharper_and_still_symmetric_to_the_last_bit() {
        let fitted = Calibration::fit(&cases(), &heads()).unwrap();
        assert_eq!((fitted.passages, fitted.sides), (80, 40));
        assert!(fitted.a > 1.0 && fitted.slope > 1.0, "{fitted:?}");
        let heads = fitted.apply(&heads());
        let mut right = 0;
        for (i, strength) in [1.0f32, 2.0, 3.0, 4.0].into_iter().enumerate() {
            for side in [strength, -strength] {
                let there = heads.decide(&[evidence(side, 1.0 + i as f32)]).unwrap().0;
                let back = Evidence {
                    logits: {
                        let [a, b] = evidence(side, 1.0 + i as f32).logits;
                        [b, a]
                    },
                    cosine: 0.5,
                };
                assert_eq!(heads.decide(&[back]).unwrap().0, there.swapped());
                right += usize::from(there.outcome == Outcome::Side(usize::from(side < 0.0)));
            }
        }
        assert!(right >= 6, "{right} of 8 sides are shown and right");
        let shown: Vec<(f64, bool)> = passages()
            .into_iter()
            .filter_map(|(seen, labels)| {
                let decision = heads.decide(&[seen]).unwrap().0;
                let Outcome::Side(side) = decision.outcome else { return None };
                Some((decision.p[side], labels[side] && !labels[1 - side]))
            })
            .collect();
        let right = shown.iter().filter(|(_, right)| *right).count();
        assert!(shown.len() > 20 && right as f64 >= RIGHT * shown.len() as f64, "{right} of {}", shown.len());
        assert!(shown.iter().all(|(p, _)| *p >= fitted.tau.unwrap()));
        assert_eq!(heads.decide(&[evidence(0.3, -3.0)]).unwrap().0.outcome, Outcome::Neither);
    }

    #[test]
    fn applying_it_is_the_curve_on_the_detectors_own_probabilities() {
        let fitted = Calibration { a: 2.0, b: 0.5, slope: 3.0, rho: 0.4, tau: None, passages: 9, sides: 9 };
        let (own, own_heads) = (heads(), fitted.apply(&heads()));
        let seen = evidence(0.7, 0.2);
        let (before, after) = (own.decide(&[seen]).unwrap().0, own_heads.decide(&[seen]).unwrap().0);
        let logit = |p: f64| (p / (1.0 - p)).ln();
        assert!((logit(after.engaged) - (2.0 * logit(before.engaged) + 0.5)).abs() < 1e-9);
        let side = |decision: &Decision| (decision.p[0] / decision.p[1]).ln();
        assert!((side(&after) - 3.0 * side(&before)).abs() < 1e-9);
        assert_eq!((own_heads.rho, own_heads.tau, own_heads.engaged.form), (0.4, None, EngagedForm::Logsum));
        assert_eq!(own_heads.side.form, SideForm::SupportsOpposes);
    }

    #[test]
    fn a_second_refit_on_top_of_a_first_is_one_relative_to_the_detectors_own() {
        let first = Calibration { a: 2.0, b: 0.5, slope: 3.0, rho: 0.4, tau: None, passages: 9, sides: 9 };
        let second = Calibration { a: 0.5, b: -1.0, slope: 0.25, tau: Some(0.7), ..first };
        let (both, own) = (second.after(&first), heads());
        let (step, once) = (second.apply(&first.apply(&own)), both.apply(&own));
        assert!((step.engaged.d - once.engaged.d).abs() < 1e-12 && (step.side.t - once.side.t).abs() < 1e-12);
        assert_eq!((step.engaged.a, step.engaged.b, step.tau), (once.engaged.a, once.engaged.b, once.tau));
        assert!(both.is_sound() && !Calibration { rho: f64::NAN, ..both }.is_sound());
        assert!(
            !Calibration { a: 0.0, ..both }.is_sound() && !Calibration { tau: Some(2.0), ..both }.is_sound()
        );
    }

    #[test]
    fn few_sides_leave_slope_and_tau_and_a_detector_that_is_wrong_shows_none() {
        let few: Vec<Case> = (0..8)
            .map(|i| case(1.0, 2.0, [true, false]).flipped(i % 2 == 1))
            .chain((0..20).map(|_| case(0.1, -2.0, [false; 2])))
            .collect();
        let fitted = Calibration::fit(&few, &heads()).unwrap();
        assert_eq!((fitted.slope, fitted.tau, fitted.sides), (1.0, Some(0.9), 8));
        // At chance: every second side is read the other way.
        let chance: Vec<Case> = (0..40)
            .map(|i| case(1.0 + (i % 7) as f32, 2.0, [i % 4 < 2, i % 4 >= 2]))
            .chain((0..20).map(|_| case(0.1, -2.0, [false; 2])))
            .collect();
        let fitted = Calibration::fit(&chance, &heads()).unwrap();
        assert_eq!(fitted.tau, None, "{fitted:?}");
        assert!(fitted.words().contains("no side is shown"));
    }

    impl Case {
        fn flipped(self, flip: bool) -> Case {
            let [first, second] = self.labels;
            if flip { Case { side: -self.side, labels: [second, first], ..self } } else { self }
        }
    }

    #[test]
    fn what_cannot_be_refitted_says_why() {
        let fit = |cases: &[Case]| Calibration::fit(cases, &heads()).map_err(|error| error.to_string());
        assert!(fit(&[]).unwrap_err().contains("both statements"));
        assert!(fit(&[case(1.0, 1.0, [true, false])]).unwrap_err().contains("all 1 passages"));
        let backwards: Vec<Case> = (0..20)
            .map(|i| {
                case(1.0, if i < 10 { 2.0 } else { -2.0 }, if i < 10 { [false; 2] } else { [true, false] })
            })
            .collect();
        assert!(fit(&backwards).unwrap_err().contains("when there is none"));
    }
}
