//! How good a detector's verdicts are: accuracy, F1 of *supports*, area under the ROC curve.

use serde_json::{Value, json};

/// Figures over labelled pairs.
#[derive(Clone, Debug, PartialEq)]
pub struct Report {
    /// Labelled pairs that have a verdict.
    pub n: usize,
    /// Those of them whose label is *supports*.
    pub positives: usize,
    /// Share that is right.
    pub accuracy: f64,
    /// Harmonic mean of precision and recall of *supports*; 0 where neither is defined.
    pub f1: f64,
    /// Probability that a positive pair stands above a negative one; none where one kind is missing.
    pub auc: Option<f64>,
}

/// Measures `(probability, label)` pairs at a threshold; none over no pairs.
pub fn report(judged: &[(f32, bool)], threshold: f32) -> Option<Report> {
    let n = judged.len();
    let count = |yes: bool, label: bool| {
        judged.iter().filter(|(p, l)| (*p >= threshold) == yes && *l == label).count()
    };
    let (hits, alarms, misses) = (count(true, true), count(true, false), count(false, true));
    let right = hits + count(false, false);
    let wrong_or_found = 2 * hits + alarms + misses;
    (n > 0).then(|| Report {
        n,
        positives: hits + misses,
        accuracy: right as f64 / n as f64,
        f1: if wrong_or_found == 0 { 0.0 } else { 2.0 * hits as f64 / wrong_or_found as f64 },
        auc: auc(judged),
    })
}

/// The rank-sum form, equal probabilities counting half.
fn auc(judged: &[(f32, bool)]) -> Option<f64> {
    let mut sorted = judged.to_vec();
    sorted.sort_by(|a, b| a.0.total_cmp(&b.0));
    let positives = sorted.iter().filter(|(_, label)| *label).count() as f64;
    let negatives = sorted.len() as f64 - positives;
    let (mut below, mut sum) = (0.0, 0.0);
    for tied in sorted.chunk_by(|a, b| a.0 == b.0) {
        let here = tied.iter().filter(|(_, label)| *label).count() as f64;
        let others = tied.len() as f64 - here;
        sum += here * (below + others / 2.0);
        below += others;
    }
    (positives > 0.0 && negatives > 0.0).then(|| sum / (positives * negatives))
}

impl Report {
    /// As `detect --format json` prints it.
    pub fn json(&self) -> Value {
        json!({
            "n": self.n, "positives": self.positives, "accuracy": self.accuracy, "f1": self.f1, "auc": self.auc,
        })
    }

    /// One line for people. `fitted_on`: how many labels by hand the threshold was fitted on, if it was.
    pub fn text(&self, threshold: f32, fitted_on: Option<usize>) -> String {
        let origin = match fitted_on {
            Some(labels) => format!("fitted on {labels} labels by hand"),
            None => "fixed before, not tuned on this file".to_owned(),
        };
        let auc = self.auc.map_or_else(|| "–".to_owned(), |auc| format!("{auc:.4}"));
        format!(
            "{} labelled pairs, {} positive: accuracy {:.4}, F1 {:.4}, AUC {auc}, threshold {threshold:.3} ({origin})",
            self.n, self.positives, self.accuracy, self.f1
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn worked_by_hand() {
        let judged = [(0.9, true), (0.8, false), (0.7, true), (0.2, false), (0.1, true)];
        let report = report(&judged, 0.5).unwrap();
        assert_eq!((report.n, report.positives), (5, 3));
        assert!((report.accuracy - 0.6).abs() < 1e-9);
        assert!((report.f1 - 2.0 / 3.0).abs() < 1e-9);
        // Of six (positive, negative) pairs, .9 beats both, .7 beats one, .1 none.
        assert!((report.auc.unwrap() - 0.5).abs() < 1e-9);
    }

    #[test]
    fn ties_count_half_and_one_kind_alone_has_no_curve() {
        assert_eq!(report(&[(0.5, true), (0.5, false)], 0.5).unwrap().auc, Some(0.5));
        assert_eq!(report(&[(0.5, true)], 0.5).unwrap().auc, None);
        assert_eq!(report(&[], 0.5), None);
        assert_eq!(report(&[(0.1, false)], 0.5).unwrap().f1, 0.0);
    }
}
