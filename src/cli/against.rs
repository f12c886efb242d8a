//! Two detectors beside each other, pair by pair: how far they agree, and where they do not.
//!
//! Disagreements come first, the probabilities farthest apart before the others; then what both say alike, and last the pairs that
//! one of them gave no verdict on.

use std::io::{self, Write};

use serde_json::{Value, json};

use super::args::Format;
use super::detect::{Judged, Pair, labelled};
use crate::annotate::agree::Confusion;
use crate::measure::agreement::cohen_kappa;
use crate::measure::detection::Report;

/// What both say of the pairs.
pub struct Compared<'a> {
    pairs: &'a [Pair],
    sides: [&'a Judged; 2],
    /// The pairs by number, disagreements first.
    order: Vec<usize>,
    confusion: Confusion,
    kappa: Option<f64>,
}

impl<'a> Compared<'a> {
    /// Puts them beside each other.
    pub fn of(pairs: &'a [Pair], sides: [&'a Judged; 2]) -> Self {
        let both = |i: usize| {
            let [one, other] = sides.map(|side| side.verdicts[i].as_ref().ok().map(|p| (*p, side.yes(*p))));
            Some((one?, other?))
        };
        let mut order: Vec<usize> = (0..pairs.len()).collect();
        let gap = |i: usize| {
            both(i).map_or(-1.0, |((one, yes), (other, also))| {
                (one - other).abs() + if yes == also { 0.0 } else { 2.0 }
            })
        };
        order.sort_by(|a, b| gap(*b).total_cmp(&gap(*a)));
        let said: Vec<(bool, bool)> =
            (0..pairs.len()).filter_map(|i| both(i).map(|((_, one), (_, other))| (one, other))).collect();
        Compared { pairs, sides, order, confusion: Confusion::of(&said), kappa: cohen_kappa(&said).value }
    }

    /// Prints rows to standard output and the figures to standard error, or everything as one JSON object.
    pub fn print(&self, format: Format) -> io::Result<()> {
        let mut out = io::BufWriter::new(io::stdout().lock());
        if format == Format::Json {
            return writeln!(out, "{:#}", self.json());
        }
        writeln!(out, "id\tp\tp_against\tsupports\tsupports_against\terror")?;
        for &i in &self.order {
            let [one, other] = self.sides.map(|side| match &side.verdicts[i] {
                Ok(p) => (format!("{p:.4}"), u8::from(side.yes(*p)).to_string(), String::new()),
                Err(error) => (String::new(), String::new(), error.to_string()),
            });
            let error = [one.2, other.2].join(" ");
            writeln!(
                out,
                "{}\t{}\t{}\t{}\t{}\t{}",
                self.pairs[i].id,
                one.0,
                other.0,
                one.1,
                other.1,
                error.trim().replace(['\t', '\n'], " ")
            )?;
        }
        out.flush()?;
        let mut err = io::stderr();
        for side in self.sides {
            if let Some(report) = self.report(side) {
                let (key, detector) = (side.detector.key(), &side.detector);
                writeln!(err, "{key}: {}", report.text(detector.threshold(), detector.fitted_on()))?;
            }
        }
        writeln!(err, "{}", self.text())
    }

    fn report(&self, side: &Judged) -> Option<Report> {
        labelled(self.pairs, &side.verdicts, side.detector.threshold())
    }

    /// The figures in a line.
    fn text(&self) -> String {
        let Confusion { yes_yes, yes_no, no_yes, no_no } = self.confusion;
        let [one, other] = self.sides.map(|side| side.detector.key());
        let share = |value: Option<f64>| value.map_or_else(|| "–".to_owned(), |value| format!("{value:.4}"));
        format!(
            "{one} and {other}: agreement {}, κ {} on {} pairs that both judged ({yes_yes} both yes, {yes_no} only the first, {no_yes} \
             only the second, {no_no} both no), {} without both verdicts",
            share(self.confusion.agreed()),
            share(self.kappa),
            self.confusion.n(),
            self.pairs.len() - self.confusion.n(),
        )
    }

    fn json(&self) -> Value {
        let Confusion { yes_yes, yes_no, no_yes, no_no } = self.confusion;
        let said = |side: &Judged, i: usize| match &side.verdicts[i] {
            Ok(p) => json!({"p": p, "supports": side.yes(*p), "error": Value::Null}),
            Err(error) => json!({"p": Value::Null, "supports": Value::Null, "error": error.to_string()}),
        };
        let rows = self.order.iter().map(|&i| {
            let [one, other] = self.sides.map(|side| said(side, i));
            json!({"id": self.pairs[i].id, "detector": one, "against": other})
        });
        let about = |side: &Judged| {
            json!({
                "key": side.detector.key(),
                "threshold": side.detector.threshold(),
                "threshold_fitted_on": side.detector.fitted_on(),
                "experimental": side.detector.experimental(),
                "told": side.detector.told(),
                "report": self.report(side).as_ref().map(Report::json),
            })
        };
        json!({
            "detector": about(self.sides[0]),
            "against": about(self.sides[1]),
            "agreement": {
                "n": self.confusion.n(), "agreed": self.confusion.agreed(), "kappa": self.kappa,
                "yes_yes": yes_yes, "yes_no": yes_no, "no_yes": no_yes, "no_no": no_no,
            },
            "pairs": rows.collect::<Vec<_>>(),
            "provenance": {"version": env!("CARGO_PKG_VERSION")},
        })
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;
    use crate::corpus::Passage;
    use crate::detect::{DetectError, Detector};
    use crate::work::Stop;

    struct Named(&'static str);

    impl Detector for Named {
        fn key(&self) -> &str {
            self.0
        }
        fn threshold(&self) -> f32 {
            0.5
        }
        fn judge(&self, _: &Passage, _: &str, _: &Stop) -> Result<f32, DetectError> {
            Ok(0.0)
        }
    }

    fn judged(name: &'static str, verdicts: &[Option<f32>]) -> Judged {
        let verdict = |p: &Option<f32>| p.ok_or(DetectError::Empty("passage"));
        Judged { detector: Arc::new(Named(name)), verdicts: verdicts.iter().map(verdict).collect() }
    }

    #[test]
    fn disagreements_come_first_the_widest_apart_before_the_others_and_missing_verdicts_last() {
        let ids = ["alike", "missing", "near", "wide", "also alike"];
        let pair = |id: &&str| Pair {
            id: (*id).into(),
            passage: Passage::default(),
            statement: String::new(),
            label: None,
        };
        let pairs: Vec<Pair> = ids.iter().map(pair).collect();
        let one = judged("one", &[Some(0.9), None, Some(0.6), Some(1.0), Some(0.1)]);
        let other = judged("other", &[Some(0.8), Some(0.5), Some(0.4), Some(0.0), Some(0.4)]);
        let compared = Compared::of(&pairs, [&one, &other]);
        let order: Vec<&str> = compared.order.iter().map(|i| ids[*i]).collect();
        assert_eq!(order, ["wide", "near", "also alike", "alike", "missing"]);
        assert_eq!(compared.confusion, Confusion { yes_yes: 1, yes_no: 2, no_yes: 0, no_no: 1 });
        // Two of four agree; by chance (3·1 + 1·3) of 16 would.
        let kappa = compared.kappa.unwrap();
        assert!((kappa - (0.5 - 0.375) / (1.0 - 0.375)).abs() < 1e-12, "{kappa}");
        let text = compared.text();
        assert!(text.starts_with("one and other: agreement 0.5000, κ 0.2000 on 4 pairs"), "{text}");
        assert!(text.ends_with("1 without both verdicts"), "{text}");
        assert_eq!(compared.json()["pairs"][0]["id"], "wide");
    }
}
