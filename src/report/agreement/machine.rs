//! The same figures as TSV and JSON.

use std::fmt::Write;

use serde_json::{Value, json};

use super::{Sheet, safe};
use crate::annotate::agree::Confusion;
use crate::measure::agreement::Agreement;

impl Sheet<'_> {
    /// A line a figure.
    pub fn tsv(&self) -> String {
        let mut out = String::from("annotator\tother\tquestion\tid\tperspective\tmeasure\tvalue\n");
        let mut put = |cells: [&str; 5], measure: &str, value: String| {
            let cells = cells.map(safe::line);
            let _ = writeln!(out, "{}\t{measure}\t{value}", cells.join("\t"));
        };
        let optional = |value: Option<f64>| value.map_or_else(String::new, |value| format!("{value:.6}"));
        let counts = |of: &Confusion| {
            [("yes_yes", of.yes_yes), ("yes_no", of.yes_no), ("no_yes", of.no_yes), ("no_no", of.no_no)]
        };
        let table = self.table;
        for one in &table.annotators {
            let cells = [one.name.as_str(), "", "", "", ""];
            put(cells, "labels", one.labels.to_string());
            put(cells, "yes", one.yes.to_string());
            put(cells, "flagged", one.flagged.to_string());
            put(cells, "timed", one.timed.to_string());
            put(cells, "median_ms", optional(one.median_ms));
            put(cells, "mean_ms", optional(one.mean_ms));
        }
        for pair in &table.pairs {
            let two = [pair.left.as_str(), pair.right.as_str()];
            put([two[0], two[1], "", "", ""], "kappa", optional(pair.kappa.value));
            put([two[0], two[1], "", "", ""], "n", pair.total.n().to_string());
            for (name, count) in counts(&pair.total) {
                put([two[0], two[1], "", "", ""], name, count.to_string());
            }
            for (question, perspective, confusion) in &pair.by_perspective {
                for (name, count) in counts(confusion) {
                    put([two[0], two[1], question, "", perspective], name, count.to_string());
                }
            }
        }
        put([""; 5], "alpha", optional(table.alpha.value));
        put([""; 5], "alpha_n", table.alpha.doubly_labelled.to_string());
        if let Some(alpha) = &table.alpha_with_model {
            put([""; 5], "alpha_with_model", optional(alpha.value));
        }
        put([""; 5], "ties", table.ties.to_string());
        for item in self.queue {
            let about = item.about;
            for (by, one) in &item.said {
                let cells = [by, "", &about.question, &about.passage, &about.perspective];
                put(cells, "disputed", u8::from(one.supports).to_string());
            }
        }
        if let Some((refit, _)) = self.refit {
            put([""; 5], "fitted_threshold", format!("{:.6}", refit.threshold));
            put([""; 5], "fitted_f1", optional(Some(refit.f1)));
            put([""; 5], "fitted_f1_held_out", optional(refit.f1_held_out));
        }
        out
    }

    /// For programs; the shape is kept stable.
    pub fn json(&self) -> Value {
        let counts = |of: &Confusion| json!({"yes_yes": of.yes_yes, "yes_no": of.yes_no, "no_yes": of.no_yes, "no_no": of.no_no});
        let agreement = |of: &Agreement| json!({"value": of.value, "n": of.doubly_labelled});
        let table = self.table;
        let annotators = table.annotators.iter().map(|one| {
            json!({
                "name": one.name, "labels": one.labels, "yes": one.yes, "flagged": one.flagged,
                "timed": one.timed, "median_ms": one.median_ms, "mean_ms": one.mean_ms,
            })
        });
        let pairs = table.pairs.iter().map(|pair| {
            let by = pair.by_perspective.iter().map(|(question, perspective, confusion)| {
                json!({"question": question, "perspective": perspective, "confusion": counts(confusion)})
            });
            json!({
                "annotators": [pair.left, pair.right], "n": pair.total.n(), "agreed": pair.total.agreed(),
                "kappa": pair.kappa.value, "confusion": counts(&pair.total), "by_perspective": by.collect::<Vec<_>>(),
            })
        });
        let queue = self.queue.iter().map(|item| {
            let said = item.said.iter().map(|(by, one)| {
                json!({"by": by, "supports": one.supports, "evidence": one.evidence, "note": one.note, "flagged": one.flagged})
            });
            json!({
                "question": item.about.question, "id": item.about.passage, "perspective": item.about.perspective,
                "said": said.collect::<Vec<_>>(), "p": item.p,
            })
        });
        json!({
            "items": table.items,
            "disputed": table.disputed,
            "ties": table.ties,
            "annotators": annotators.collect::<Vec<_>>(),
            "pairs": pairs.collect::<Vec<_>>(),
            "alpha": agreement(&table.alpha),
            "alpha_with_model": table.alpha_with_model.as_ref().map(agreement),
            "queue": queue.collect::<Vec<_>>(),
            "detector": self.model.map(|model| json!({"key": model.detector, "threshold": model.threshold})),
            "refit": self.refit.map(|(refit, place)| {
                let mut told = refit.json();
                told["fitted_on"] = json!("human labels");
                told["file"] = json!(place);
                told
            }),
            "provenance": {"version": env!("CARGO_PKG_VERSION")},
        })
    }
}
