//! Measures decisions on two opposite statements against labels of both: how many sides are right, how many are shown, risk against coverage,
//! and the calibration of the probabilities.

use serde_json::{Value, json};

use super::marks::share;
use crate::detect::{Decision, NO_SIDE, Outcome};
use crate::measure::uncertainty::{Bin, Guess, aurc, calibration_error, reliability, risk_coverage};

/// The number of bins of a reliability table.
const BINS: usize = 10;

/// The figures of decisions on two opposite statements, against labels of both.
#[derive(Clone, Debug, PartialEq)]
pub struct Decisions {
    /// The number of documents, and of those that support exactly one statement.
    n: (usize, usize),
    /// The share of the documents for one statement whose likelier side is right.
    right_side: Option<f64>,
    /// The number of sides shown, and of those that are right. A side shown on a document for both or neither is wrong.
    shown: (usize, usize),
    /// The number of sides shown on documents that support exactly one statement.
    covered: usize,
    /// Share shown and share wrong as more sides are shown, the surest first.
    curve: Vec<(f64, f64)>,
    aurc: Option<f64>,
    /// Calibration error and reliability of the probability that a document takes a side.
    engaged: (Option<f64>, Vec<Bin>),
    /// Calibration error and reliability of the probability of the likelier side.
    side: (Option<f64>, Vec<Bin>),
}

impl Decisions {
    /// Measures decisions, each with the labels of both statements; `None` if there are none.
    pub fn of(known: &[(Decision, [bool; 2])]) -> Option<Self> {
        let likelier = |decision: &Decision| usize::from(decision.p[1] > decision.p[0]);
        let sureness = |decision: &Decision| {
            let [first, second, ..] = decision.p;
            if first + second > 0.0 { first.max(second) / (first + second) } else { 0.5 }
        };
        let one_sided = || known.iter().filter(|(_, [first, second])| first != second);
        let is_right = |side: usize, labels: [bool; 2]| labels[side] && !labels[1 - side];
        let guesses: Vec<Guess> = one_sided()
            .map(|(decision, labels)| Guess {
                sureness: sureness(decision),
                right: is_right(likelier(decision), *labels),
            })
            .collect();
        let shown = || {
            known.iter().filter_map(|(decision, labels)| match decision.outcome {
                Outcome::Side(side) => Some((side, *labels)),
                _ => None,
            })
        };
        let engaged: Vec<(f64, bool)> =
            known.iter().map(|(decision, labels)| (decision.engaged, labels[0] || labels[1])).collect();
        let side: Vec<(f64, bool)> = guesses.iter().map(|guess| (guess.sureness, guess.right)).collect();
        let right = guesses.iter().filter(|guess| guess.right).count();
        let curve = risk_coverage(&guesses);
        (!known.is_empty()).then(|| Decisions {
            n: (known.len(), guesses.len()),
            right_side: (!guesses.is_empty()).then(|| right as f64 / guesses.len() as f64),
            shown: (shown().count(), shown().filter(|(side, labels)| is_right(*side, *labels)).count()),
            covered: shown().filter(|(_, labels)| labels[0] != labels[1]).count(),
            curve: curve.iter().map(|point| (point.coverage, point.risk)).collect(),
            aurc: aurc(&guesses),
            engaged: (calibration_error(&engaged, BINS), reliability(&engaged, BINS)),
            side: (calibration_error(&side, BINS), reliability(&side, BINS)),
        })
    }

    /// Returns the share of the shown sides that are right; `None` if no side is shown.
    fn precision(&self) -> Option<f64> {
        (self.shown.0 > 0).then(|| self.shown.1 as f64 / self.shown.0 as f64)
    }

    /// Returns the share of the documents for one statement on which a side is shown; `None` if there is no such document.
    fn coverage(&self) -> Option<f64> {
        (self.n.1 > 0).then(|| self.covered as f64 / self.n.1 as f64)
    }

    /// Returns the risk if a tenth, two tenths, … of the sides are shown.
    fn tenths(&self) -> impl Iterator<Item = (f64, f64)> {
        let at = |tenth: f64| self.curve.iter().find(|(coverage, _)| *coverage >= tenth - 1e-9).copied();
        (1..=10).filter_map(move |i| at(f64::from(i) / 10.0))
    }

    /// Returns the number of documents that support exactly one statement. The curve is about these.
    pub fn one_sided(&self) -> usize {
        self.n.1
    }

    /// Returns coverage and risk at every coverage.
    pub fn curve(&self) -> &[(f64, f64)] {
        &self.curve
    }

    /// Writes the figures as lines of text.
    pub fn text(&self, shows_sides: bool) -> Vec<String> {
        let short = |value: Option<f64>| value.map_or_else(|| "–".to_owned(), share);
        let shown = if shows_sides {
            format!(
                "{} sides shown, right {}, coverage {}",
                self.shown.0,
                short(self.precision()),
                short(self.coverage())
            )
        } else {
            NO_SIDE.to_owned()
        };
        let curve: Vec<String> =
            self.tenths().map(|(coverage, risk)| format!("{} {}", share(coverage), share(risk))).collect();
        let bins = |bins: &[Bin]| -> String {
            let one = |bin: &Bin| format!("{}→{} ({})", share(bin.mean), share(bin.share), bin.count);
            bins.iter().map(one).collect::<Vec<_>>().join(" ")
        };
        vec![
            format!(
                "{} documents with both statements labelled, {} of them for one side: right side {}; {shown}",
                self.n.0,
                self.n.1,
                short(self.right_side)
            ),
            format!(
                "risk-coverage (share of sides shown, share of them wrong): {}; AURC {}",
                curve.join(", "),
                short(self.aurc)
            ),
            format!(
                "takes a side, calibration error {}: said→true (documents) {}",
                short(self.engaged.0),
                bins(&self.engaged.1)
            ),
            format!("which side, calibration error {}: {}", short(self.side.0), bins(&self.side.1)),
        ]
    }

    /// Writes the figures as JSON.
    pub fn json(&self) -> Value {
        let bins = |bins: &[Bin]| -> Vec<Value> {
            let one = |bin: &Bin| json!({"from": bin.from, "count": bin.count, "mean": bin.mean, "share": bin.share});
            bins.iter().map(one).collect()
        };
        json!({
            "documents": self.n.0,
            "one_side": self.n.1,
            "right_side": self.right_side,
            "shown": self.shown.0,
            "precision": self.precision(),
            "coverage": self.coverage(),
            "aurc": self.aurc,
            "risk_coverage": self.curve.iter().map(|(c, r)| json!({"coverage": c, "risk": r})).collect::<Vec<_>>(),
            "engaged": {"ece": self.engaged.0, "reliability": bins(&self.engaged.1)},
            "side": {"ece": self.side.0, "reliability": bins(&self.side.1)},
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_side_shown_on_a_document_for_neither_is_wrong_and_covers_none() {
        let decision =
            |first: f64, outcome| Decision { outcome, engaged: 0.9, p: [first, 0.9 - first, 0.0, 0.1] };
        let known = [
            (decision(0.8, Outcome::Side(0)), [true, false]),
            (decision(0.7, Outcome::Side(0)), [false, false]),
            (decision(0.45, Outcome::Unclear), [true, false]),
            (decision(0.4, Outcome::Unclear), [true, false]),
        ];
        let figures = Decisions::of(&known).unwrap();
        assert_eq!((figures.n, figures.shown, figures.covered), ((4, 3), (2, 1), 1));
        assert_eq!((figures.precision(), figures.coverage()), (Some(0.5), Some(1.0 / 3.0)));
        assert_eq!(figures.right_side, Some(2.0 / 3.0));
        // The surest is right, the next is wrong, the last is right: (0 + 1/2 + 1/3) / 3.
        assert!((figures.aurc.unwrap() - 5.0 / 18.0).abs() < 1e-12, "{figures:?}");
        let lines = figures.text(true);
        assert!(lines[0].contains("2 sides shown, right .50, coverage .33"), "{lines:?}");
        assert!(figures.text(false)[0].ends_with(NO_SIDE));
        assert_eq!(Decisions::of(&[]), None);
    }
}
