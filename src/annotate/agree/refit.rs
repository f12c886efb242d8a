//! The detector's threshold fitted on labels by hand.
//!
//! What was fitted on some labels looks better on them than it is. So every question is also judged by the threshold that the
//! other questions give, and both figures are told.

use std::collections::BTreeSet;

use super::super::Model;
use super::Item;
use crate::measure::detection::report;

/// A threshold and how well it does.
#[derive(Clone, Debug, PartialEq)]
pub struct Refit {
    /// From which probability on a verdict is a yes.
    pub threshold: f32,
    /// Pairs with a label and a probability.
    pub n: usize,
    /// Those of them whose label is a yes.
    pub positives: usize,
    /// Questions they belong to.
    pub questions: usize,
    /// Pairs left out because as many people said yes as no.
    pub ties: usize,
    /// F1 on the labels it was fitted on.
    pub f1: f64,
    /// Accuracy on them.
    pub accuracy: f64,
    /// F1 over all pairs, each judged by a threshold fitted without its question; none where some question holds all the yes.
    pub f1_held_out: Option<f64>,
    /// F1 of the threshold that was in use.
    pub f1_before: f64,
}

impl Refit {
    /// As it is written into a file and printed.
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
        })
    }
}

/// Why no threshold can be fitted.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum RefitError {
    /// There is nothing to fit on.
    #[error("no passage has both a label by hand and a probability; label some of this corpus first")]
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

/// The threshold with the highest F1 on what most people said, of equals the one with the highest accuracy, then the one nearest
/// to the detector's own.
///
/// # Errors
/// There are no labels of both kinds.
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
    let threshold = best(&all, model.threshold).ok_or(RefitError::Nothing)?;
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
        f1_held_out: held_out(&cases, &questions, model.threshold),
        f1_before: before.map_or(0.0, |report| report.f1),
    })
}

/// The best threshold over cases in falling order of probability; none where none is a yes.
fn best(cases: &[&Case<'_>], own: f32) -> Option<f32> {
    let positives = cases.iter().filter(|case| case.yes).count();
    if positives == 0 {
        return None;
    }
    let mut best: Option<(usize, usize, usize, f32)> = None;
    let mut hits = 0;
    for (i, case) in cases.iter().enumerate() {
        hits += usize::from(case.yes);
        let next = cases.get(i + 1).map(|next| next.p);
        if next == Some(case.p) {
            continue;
        }
        // Half-way to what is not called yes any more, so that neither side is grazed.
        let threshold = next.map_or(case.p, |next| half_way(next, case.p));
        let (called, right) = (i + 1, hits + (cases.len() - positives) - (i + 1 - hits));
        // F1 = 2 hits / (called + positives), compared without dividing.
        let better = best.is_none_or(|(other, of, right_there, place)| {
            (hits * of)
                .cmp(&(other * (called + positives)))
                .then(right.cmp(&right_there))
                .then_with(|| (place - own).abs().total_cmp(&(threshold - own).abs()))
                == std::cmp::Ordering::Greater
        });
        if better {
            best = Some((hits, called + positives, right, threshold));
        }
    }
    best.map(|(.., threshold)| threshold)
}

/// Between two probabilities, above the lower one.
fn half_way(low: f32, high: f32) -> f32 {
    let middle = low + (high - low) / 2.0;
    if middle > low { middle } else { high }
}

/// F1 over all cases, each judged by the threshold that the other questions give.
fn held_out(cases: &[Case<'_>], questions: &BTreeSet<&str>, own: f32) -> Option<f64> {
    let mut judged = Vec::new();
    for question in questions {
        let others: Vec<&Case> = cases.iter().filter(|case| case.question != *question).collect();
        let threshold = best(&others, own)?;
        let here = cases.iter().filter(|case| case.question == *question);
        // 1 and 0 stand for the verdicts, so that one threshold serves the report.
        judged.extend(here.map(|case| (f32::from(u8::from(case.p >= threshold)), case.yes)));
    }
    report(&judged, 0.5).map(|report| report.f1)
}
