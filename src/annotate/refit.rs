//! Fits the detector's threshold, and its decision on two opposite statements, to labels by hand.
//!
//! A threshold looks better on the labels it was fitted on than on others. So every question is also judged by a threshold fitted on the
//! other questions, and both figures are reported.

use std::collections::{BTreeSet, HashMap};

use super::agree::Item;
use super::material::Model;
use crate::detect::calibration::{Calibration, CalibrationError, Case as SideCase};
use crate::measure::agreement::report;

/// A threshold and its quality.
#[derive(Clone, Debug, PartialEq)]
pub struct Refit {
    /// The lowest probability that counts as a yes.
    pub threshold: f32,
    /// Pairs with a probability and a majority of annotators.
    pub n: usize,
    /// Pairs labelled yes.
    pub positives: usize,
    /// Questions of the pairs.
    pub questions: usize,
    /// Pairs left out because as many annotators said yes as no.
    pub ties: usize,
    /// F1 on the labels that the threshold was fitted on.
    pub f1: f64,
    /// Accuracy on the same labels.
    pub accuracy: f64,
    /// F1 over all pairs, each judged by a threshold fitted without its question. `None` if one question has all the positive labels.
    pub f1_held_out: Option<f64>,
    /// F1 of the threshold that was in use before.
    pub f1_before: f64,
    /// The refitted decision on two opposite statements, or why it cannot be refitted.
    pub calibration: Result<Calibration, CalibrationError>,
}

impl Refit {
    /// The JSON object that is written to a file and printed.
    pub fn json(&self) -> serde_json::Value {
        serde_json::json!({
            "threshold": self.threshold,
            "labels": self.n,
            "positives": self.positives,
            "questions": self.questions,
            "ties_left_out": self.ties,
            "f1": self.f1,
            "f1_held_out": self.f1_held_out,
            "f1_before": self.f1_before,
            "accuracy": self.accuracy,
            "calibration": self.calibration.as_ref().ok(),
            "calibration_error": self.calibration.as_ref().err().map(ToString::to_string),
        })
    }
}

/// Why no threshold can be fitted.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum RefitError {
    /// No pair has both a probability and a majority of annotators.
    #[error(
        "no passage has both a probability and a majority of labels by hand; label some of this corpus first"
    )]
    Nothing,
    /// All labels are alike.
    #[error("all {0} labels are alike; a threshold needs some of both")]
    Alike(usize),
}

struct Case<'a> {
    question: &'a str,
    p: f32,
    yes: bool,
}

/// Finds the threshold with the highest F1 on the labels of the majority. Ties go to the higher accuracy, then to the threshold
/// nearest the detector's own.
///
/// # Errors
/// The labels are not of both kinds.
pub fn refit(items: &[Item<'_>], model: &Model) -> Result<Refit, RefitError> {
    let known: Vec<&Item> = items.iter().filter(|item| item.p.is_some_and(|p| !p.is_nan())).collect();
    let mut cases: Vec<Case> = known
        .iter()
        .filter_map(|item| Some(Case { question: &item.about.question, p: item.p?, yes: item.majority()? }))
        .collect();
    cases.sort_by(|a, b| b.p.total_cmp(&a.p));
    let positives = cases.iter().filter(|case| case.yes).count();
    if cases.is_empty() {
        return Err(RefitError::Nothing);
    }
    if positives == 0 || positives == cases.len() {
        return Err(RefitError::Alike(cases.len()));
    }
    let all: Vec<&Case> = cases.iter().collect();
    let threshold = best_threshold(&all, model.threshold).ok_or(RefitError::Nothing)?;
    let questions: BTreeSet<&str> = cases.iter().map(|case| case.question).collect();
    let judged: Vec<(f32, bool)> = cases.iter().map(|case| (case.p, case.yes)).collect();
    let (after, before) = (report(&judged, threshold), report(&judged, model.threshold));
    Ok(Refit {
        threshold,
        n: cases.len(),
        positives,
        questions: questions.len(),
        ties: known.len() - cases.len(),
        f1: after.as_ref().map_or(0.0, |report| report.f1),
        accuracy: after.as_ref().map_or(0.0, |report| report.accuracy),
        f1_held_out: f1_held_out(&cases, &questions, model.threshold),
        f1_before: before.map_or(0.0, |report| report.f1),
        calibration: calibrate(items, model),
    })
}

/// Refits the decision on two statements, on the passages labelled for both.
fn calibrate(items: &[Item<'_>], model: &Model) -> Result<Calibration, CalibrationError> {
    let heads = model.heads.as_ref().ok_or(CalibrationError::Nothing)?;
    let labels: HashMap<(&str, &str), bool> = items
        .iter()
        .filter_map(|item| {
            Some(((item.about.text.as_str(), item.about.perspective.as_str()), item.majority()?))
        })
        .collect();
    let cases = model.decisions.iter().filter_map(|(text, both, decision)| {
        let [first, second] = both.each_ref().map(|one| labels.get(&(text.as_str(), one.as_str())).copied());
        Some(SideCase::of(decision, [first?, second?]))
    });
    Calibration::fit(&cases.collect::<Vec<_>>(), heads)
}

/// The best threshold for cases in falling order of probability; `None` if none of them is labelled yes.
fn best_threshold(cases: &[&Case<'_>], own: f32) -> Option<f32> {
    let positives = cases.iter().filter(|case| case.yes).count();
    if positives == 0 {
        return None;
    }
    // Hits, predicted + positives, correct verdicts, threshold.
    let mut best: Option<(usize, usize, usize, f32)> = None;
    let mut hits = 0;
    for (i, case) in cases.iter().enumerate() {
        hits += usize::from(case.yes);
        let next = cases.get(i + 1).map(|next| next.p);
        if next == Some(case.p) {
            continue;
        }
        // Half-way to the next lower probability, so that rounding changes no verdict.
        let threshold = next.map_or(case.p, |next| midpoint_above(next, case.p));
        let predicted = i + 1;
        let correct = hits + (cases.len() - positives) - (predicted - hits);
        // F1 = 2 hits / (predicted + positives), compared without dividing.
        let better = best.is_none_or(|(best_hits, best_divisor, best_correct, best_threshold)| {
            (hits * best_divisor)
                .cmp(&(best_hits * (predicted + positives)))
                .then(correct.cmp(&best_correct))
                .then_with(|| (best_threshold - own).abs().total_cmp(&(threshold - own).abs()))
                .is_gt()
        });
        if better {
            best = Some((hits, predicted + positives, correct, threshold));
        }
    }
    best.map(|(.., threshold)| threshold)
}

/// The midpoint of two probabilities, or `high` if rounding makes it equal to `low`.
fn midpoint_above(low: f32, high: f32) -> f32 {
    let middle = low + (high - low) / 2.0;
    if middle > low { middle } else { high }
}

/// F1 over all cases, each judged by a threshold fitted on the other questions.
fn f1_held_out(cases: &[Case<'_>], questions: &BTreeSet<&str>, own: f32) -> Option<f64> {
    let mut judged = Vec::new();
    for question in questions {
        let others: Vec<&Case> = cases.iter().filter(|case| case.question != *question).collect();
        let threshold = best_threshold(&others, own)?;
        let held_out = cases.iter().filter(|case| case.question == *question);
        // Each verdict becomes a probability of 1 or 0, because the report takes one threshold for all cases.
        judged.extend(held_out.map(|case| (f32::from(u8::from(case.p >= threshold)), case.yes)));
    }
    report(&judged, 0.5).map(|report| report.f1)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::annotate::agree::items;
    use crate::annotate::entry::Decision;
    use crate::annotate::testing::{decision, model};
    use crate::detect::decision::{Evidence, Heads};

    #[test]
    fn the_threshold_lies_half_way_below_the_last_yes_worth_having() {
        let labels = [true, true, false, true, false, false];
        let decisions: Vec<Decision> = labels
            .iter()
            .enumerate()
            .map(|(i, yes)| decision("anna", &format!("q{}", i % 2), i, *yes))
            .collect();
        let model = model(&[0.9, 0.85, 0.7, 0.6, 0.2, 0.1]);
        let fitted = refit(&items(&decisions, Some(&model)), &model).unwrap();
        // Four predicted yes, three of them correct: 6/7, against 4/5 for the first two.
        assert!((fitted.threshold - 0.4).abs() < 1e-6 && (fitted.f1 - 6.0 / 7.0).abs() < 1e-9, "{fitted:?}");
        assert_eq!((fitted.n, fitted.positives, fitted.questions, fitted.ties), (6, 3, 2, 0));
        assert!((fitted.accuracy - 5.0 / 6.0).abs() < 1e-9);
        // q0 holds .9 yes, .7 no, .2 no; q1 holds .85 yes, .6 yes, .1 no. q0 gives .8, which predicts yes only for .85 of q1; q1 gives
        // .35, which predicts yes for .9 and .7 of q0: hits 2, false alarms 1, misses 1.
        assert!((fitted.f1_held_out.unwrap() - 4.0 / 6.0).abs() < 1e-9, "{fitted:?}");
    }

    #[test]
    fn the_fitted_threshold_is_never_beaten_on_drawn_labels() {
        let mut rng = crate::measure::seeded::SplitMix64::new(5);
        for _ in 0..50 {
            let n = 2 + rng.below(30);
            // Few values, so that many are tied.
            let ps: Vec<f32> = (0..n).map(|_| rng.below(8) as f32 / 8.0).collect();
            let decisions: Vec<Decision> =
                (0..n).map(|i| decision("anna", &format!("q{}", i % 3), i, rng.coin())).collect();
            let model = model(&ps);
            let items = items(&decisions, Some(&model));
            let Ok(fitted) = refit(&items, &model) else { continue };
            let judged: Vec<(f32, bool)> =
                items.iter().map(|item| (item.p.unwrap(), item.majority().unwrap())).collect();
            for step in 0..=16 {
                let other = crate::measure::agreement::report(&judged, step as f32 / 16.0).unwrap();
                assert!(other.f1 <= fitted.f1 + 1e-9, "{fitted:?} is beaten at {step}/16");
                assert!(other.f1 < fitted.f1 - 1e-9 || other.accuracy <= fitted.accuracy + 1e-9);
            }
        }
    }

    #[test]
    fn the_decision_on_two_statements_is_fitted_on_passages_of_which_both_labels_are_known() {
        let heads: Heads = serde_json::from_str(
            r#"{"engaged": {"form": "logsum", "a": 1.0, "b": 0.0, "d": 0.0}, "side": {"form": "supports_opposes", "t": 1.0},
                "both": 0.04, "rho": 0.5, "tau": 0.9, "beta": 1.0, "theta": 0.3}"#,
        )
        .unwrap();
        let mut decisions: Vec<Decision> = Vec::new();
        let mut model = Model { heads: Some(heads.clone()), ..model(&[0.5; 60]) };
        let both = ["Yes.".to_owned(), "No.".to_owned()];
        for i in 0..60usize {
            // Of three passages one supports the first statement, one the second, one none.
            for (place, statement) in both.iter().enumerate() {
                let yes = i % 3 == place;
                decisions.push(Decision { perspective: statement.clone(), ..decision("anna", "Q?", i, yes) });
            }
            let text = decisions.last().unwrap().text.clone();
            let [side, engaged] = [[3.0f32, 2.0], [-3.0, 2.0], [0.5, -2.0]][i % 3];
            let side = if i % 10 == 9 { -side } else { side };
            let logits = [[engaged + side, engaged - side, 0.0], [engaged - side, engaged + side, 0.0]];
            let (decided, _) = heads.decide(&[Evidence { logits, cosine: 0.0 }]).unwrap();
            model.decisions.push((text, both.clone(), decided));
        }
        let items = items(&decisions, Some(&model));
        let fitted = calibrate(&items, &model).unwrap();
        assert_eq!((fitted.passages, fitted.sides), (60, 40));
        assert!(fitted.slope < 1.0, "every tenth side is wrong, so it is less sure: {fitted:?}");
        assert_eq!(
            calibrate(&items, &Model { heads: None, ..model.clone() }),
            Err(CalibrationError::Nothing)
        );
        assert_eq!(calibrate(&items[..1], &model), Err(CalibrationError::Nothing), "one label is not both");
    }

    #[test]
    fn a_threshold_needs_labels_of_both_kinds() {
        let model = model(&[0.9, 0.1]);
        let alike = [decision("anna", "Q?", 0, true), decision("anna", "Q?", 1, true)];
        assert_eq!(refit(&items(&alike, Some(&model)), &model), Err(RefitError::Alike(2)));
        let tied = [decision("anna", "Q?", 0, true), decision("ben", "Q?", 0, false)];
        assert_eq!(refit(&items(&tied, Some(&model)), &model), Err(RefitError::Nothing));
        assert_eq!(refit(&items(&alike, None), &model), Err(RefitError::Nothing));
        let one_question = [decision("anna", "Q?", 0, true), decision("anna", "Q?", 1, false)];
        assert_eq!(refit(&items(&one_question, Some(&model)), &model).unwrap().f1_held_out, None);
    }
}
