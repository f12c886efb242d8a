//! Writes the table of agreement, the queue of disagreements and the fitted threshold as text, Markdown, TSV and JSON.

use std::collections::BTreeSet;
use std::fmt::Write;

use serde_json::{Value, json};
use unicode_width::UnicodeWidthStr;

use super::decisions::{Judge, against_labels};
use super::marks::share;
use super::safe;
use crate::annotate::Model;
use crate::annotate::agree::{Annotator, Confusion, Item, Pair, Table};
use crate::annotate::refit::Refit;
use crate::measure::agreement::Agreement;

/// The most disagreements in text and Markdown.
const SHOWN: usize = 20;

/// Everything that is printed.
pub struct Sheet<'a> {
    /// The figures.
    pub table: &'a Table,
    /// The disagreements to discuss.
    pub queue: &'a [&'a Item<'a>],
    /// The detector, if it took part.
    pub model: Option<&'a Model>,
    /// The fitted threshold, and the file that it is in.
    pub refit: Option<(&'a Refit, &'a str)>,
}

/// A block of rows under heads. The first `left` columns hold words, the others figures.
struct Block {
    heads: Vec<&'static str>,
    left: usize,
    rows: Vec<Vec<String>>,
    /// The notes below the rows.
    remarks: Vec<String>,
}

fn figure(value: Option<f64>) -> String {
    value.map_or_else(|| "–".into(), |value| format!("{:.4}", value + 0.0))
}

fn seconds(ms: Option<f64>) -> String {
    ms.map_or_else(|| "–".into(), |ms| format!("{:.1}", ms / 1e3))
}

fn yes_or_no(yes: bool) -> &'static str {
    if yes { "yes" } else { "no" }
}

impl Sheet<'_> {
    fn blocks(&self) -> Vec<Block> {
        let mut blocks = vec![self.annotators(), self.pairs()];
        blocks.extend(self.table.pairs.iter().map(confusion_block));
        if !self.queue.is_empty() {
            blocks.push(self.disagreements());
        }
        if let Some((refit, place)) = self.refit {
            let remarks = fit_lines(refit, place);
            blocks.push(Block { heads: Vec::new(), left: 0, rows: Vec::new(), remarks });
        }
        blocks
    }

    fn annotators(&self) -> Block {
        let row = |one: &Annotator| {
            let yes = if one.labels == 0 { "–".into() } else { share(one.yes as f64 / one.labels as f64) };
            let mut row = vec![safe::line(&one.name)];
            row.extend([one.labels, one.yes].map(|n| n.to_string()));
            row.extend([yes, one.flagged.to_string(), one.timed.to_string()]);
            row.extend([seconds(one.median_ms), seconds(one.mean_ms)]);
            row
        };
        Block {
            heads: vec!["annotator", "labels", "yes", "share yes", "flagged", "timed", "median s", "mean s"],
            left: 1,
            rows: self.table.annotators.iter().map(row).collect(),
            remarks: vec![format!(
                "{} passages and statements · {} disputed, {} of them as often yes as no · seconds: by passage, all its statements together",
                self.table.items, self.table.disputed, self.table.ties
            )],
        }
    }

    fn pairs(&self) -> Block {
        let row = |pair: &Pair| {
            let agreed = pair.total.agreed().map_or_else(|| "–".into(), share);
            let (left, right) = (safe::line(&pair.left), safe::line(&pair.right));
            vec![left, right, pair.total.n().to_string(), agreed, figure(pair.kappa.value)]
        };
        let alpha = |who: &str, alpha: &Agreement| {
            let n = alpha.doubly_labelled;
            format!("Krippendorff's α of {who}: {} over {n} labelled at least twice", figure(alpha.value))
        };
        let mut remarks = vec![alpha("the people", &self.table.alpha)];
        remarks.extend(
            self.table.alpha_after.iter().map(|after| {
                format!("after adjudication of {}: {}", self.table.settled, figure(after.value))
            }),
        );
        remarks.extend(self.table.alpha_with_model.iter().map(|with| alpha("people and detector", with)));
        remarks.extend(self.table.unclear.iter().map(|(of, kappa)| {
            format!(
                "the detector is unclear on {} of {} items; people are unsure (a tie, or flagged) on {}, both on {}: κ {}",
                of.yes_yes + of.yes_no,
                of.n(),
                of.yes_yes + of.no_yes,
                of.yes_yes,
                figure(kappa.value)
            )
        }));
        let heads = vec!["annotator", "and", "n", "agree", "Cohen's κ"];
        Block { heads, left: 2, rows: self.table.pairs.iter().map(row).collect(), remarks }
    }

    fn disagreements(&self) -> Block {
        let row = |item: &&Item| {
            let about = item.about;
            vec![
                safe::line(&about.passage),
                self.labels_by_annotator(item).join(" · "),
                safe::line(&about.perspective),
            ]
        };
        let more = self.queue.len().saturating_sub(SHOWN);
        let remark = format!("… and {more} more, which --format tsv and json have");
        Block {
            heads: vec!["to talk over", "said", "statement"],
            left: 3,
            rows: self.queue.iter().take(SHOWN).map(row).collect(),
            remarks: if more > 0 { vec![remark] } else { Vec::new() },
        }
    }

    /// Returns the labels of an item, each with its annotator.
    fn labels_by_annotator(&self, item: &Item<'_>) -> Vec<String> {
        let people =
            item.said.iter().map(|(by, one)| format!("{} {}", safe::line(by), yes_or_no(one.supports)));
        let model = self.model.filter(|_| self.table.alpha_with_model.is_some()).and_then(|model| {
            let (answer, p) = item.model?;
            let answer = answer.map_or("unclear", yes_or_no);
            Some(format!("{} {answer} ({})", model.detector, share(f64::from(p))))
        });
        people.chain(model).collect()
    }

    /// Writes aligned text.
    pub fn text(&self) -> String {
        self.blocks().iter().map(Block::text).collect::<Vec<_>>().join("\n")
    }

    /// Writes Markdown, with GitHub's tables.
    pub fn markdown(&self) -> String {
        self.blocks().iter().map(Block::markdown).collect::<Vec<_>>().join("\n")
    }
}

/// How every other annotator, and the detector if it took part, agrees with the labels of one; `None` if nobody has this name.
pub fn against(items: &[Item<'_>], name: &str, model: Option<&Model>) -> Option<super::table::Table> {
    let own: Vec<(&Item<'_>, bool)> =
        items.iter().filter_map(|item| Some((item, item.said.get(name)?.supports))).collect();
    let names: BTreeSet<&str> = own.iter().flat_map(|(item, _)| item.said.keys().copied()).collect();
    let mut judges: Vec<Judge<'_>> = Vec::new();
    for other in names.into_iter().filter(|other| *other != name) {
        let both = own.iter().filter_map(|(item, label)| {
            Some((item.about.question.as_str(), item.said.get(other)?.supports, *label))
        });
        judges.push(Judge { name: other.to_owned(), said: both.collect(), missing: 0 });
    }
    if let Some(model) = model {
        let verdict = |item: &Item<'_>| item.model.and_then(|(supports, _)| supports);
        let said: Vec<(&str, bool, bool)> = own
            .iter()
            .filter_map(|(item, label)| Some((item.about.question.as_str(), verdict(item)?, *label)))
            .collect();
        judges.push(Judge { name: model.detector.clone(), said, missing: 0 });
    }
    for judge in &mut judges {
        judge.missing = own.len() - judge.said.len();
    }
    let labels: Vec<(&str, bool)> =
        own.iter().map(|(item, label)| (item.about.question.as_str(), *label)).collect();
    (!own.is_empty()).then(|| against_labels("agree", &judges, &labels, name, 0))
}

fn confusion_block(pair: &Pair) -> Block {
    let row = |name: &str, of: &Confusion| {
        let mut row = vec![safe::line(name)];
        row.extend([of.yes_yes, of.yes_no, of.no_yes, of.no_no].map(|n| n.to_string()));
        row
    };
    let mut rows: Vec<_> = pair.by_perspective.iter().map(|(_, statement, of)| row(statement, of)).collect();
    rows.push(row("all statements", &pair.total));
    Block {
        heads: vec!["statement", "yes/yes", "yes/no", "no/yes", "no/no"],
        left: 1,
        rows,
        remarks: vec![format!("first {}, then {}", safe::line(&pair.left), safe::line(&pair.right))],
    }
}

fn fit_lines(refit: &Refit, place: &str) -> Vec<String> {
    let held_out = match refit.f1_held_out {
        Some(f1) => format!("{f1:.4} on each question by a threshold fitted on the others"),
        None => "no estimate for other questions, as one of them has all that is yes".into(),
    };
    vec![
        format!(
            "threshold fitted on {} labels by hand ({} yes, {} questions): {:.4}, in {}",
            refit.n,
            refit.positives,
            refit.questions,
            refit.threshold,
            safe::line(place)
        ),
        format!(
            "F1 {:.4} on the labels it was fitted on, {held_out}; {:.4} with the threshold in use",
            refit.f1, refit.f1_before
        ),
        match &refit.calibration {
            Ok(calibration) => format!("decision on two opposite statements: {}", calibration.words()),
            Err(reason) => reason.to_string(),
        },
    ]
}

impl Block {
    fn text(&self) -> String {
        let all = || {
            let heads = self.heads.iter().map(|head| (*head).to_owned()).collect::<Vec<_>>();
            std::iter::once(heads).chain(self.rows.iter().cloned())
        };
        let width = |column: usize| all().map(|row| row[column].width()).max().unwrap_or(0);
        let widths: Vec<usize> = (0..self.heads.len()).map(width).collect();
        let mut out = String::new();
        for row in all().filter(|row| !row.is_empty()) {
            let cells = row.iter().zip(&widths).enumerate().map(|(i, (text, width))| {
                let pad = " ".repeat(width - text.width());
                if i < self.left { format!("{text}{pad}") } else { format!("{pad}{text}") }
            });
            let _ = writeln!(out, "{}", cells.collect::<Vec<_>>().join("  ").trim_end());
        }
        for remark in &self.remarks {
            let _ = writeln!(out, "{remark}");
        }
        out
    }

    fn markdown(&self) -> String {
        let mut out = String::new();
        if !self.heads.is_empty() {
            let rules: Vec<&str> =
                (0..self.heads.len()).map(|i| if i < self.left { "---" } else { "---:" }).collect();
            let _ = writeln!(out, "| {} |\n| {} |", self.heads.join(" | "), rules.join(" | "));
            for row in &self.rows {
                let cells: Vec<String> = row.iter().map(|cell| cell.replace('|', "\\|")).collect();
                let _ = writeln!(out, "| {} |", cells.join(" | "));
            }
            out.push('\n');
        }
        let _ = writeln!(out, "{}", self.remarks.join("  \n"));
        out
    }
}

impl Sheet<'_> {
    /// Writes TSV with one line per figure.
    pub fn tsv(&self) -> String {
        let mut out = String::from("annotator\tother\tquestion\tid\tperspective\tmeasure\tvalue\n");
        let mut put = |cells: [&str; 5], measure: &str, value: String| {
            let cells = cells.map(safe::field);
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
        if let Some(after) = &table.alpha_after {
            put([""; 5], "settled", table.settled.to_string());
            put([""; 5], "alpha_after", optional(after.value));
        }
        put([""; 5], "ties", table.ties.to_string());
        if let Some((of, kappa)) = &table.unclear {
            put([""; 5], "unclear", (of.yes_yes + of.yes_no).to_string());
            put([""; 5], "unclear_and_unsure", of.yes_yes.to_string());
            put([""; 5], "unclear_kappa", optional(kappa.value));
        }
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

    /// Writes JSON. The format is stable.
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
                "said": said.collect::<Vec<_>>(), "p": item.model.map(|(_, p)| p),
                "unclear": item.model.map(|(says, _)| says.is_none()),
            })
        });
        json!({
            "items": table.items,
            "disputed": table.disputed,
            "ties": table.ties,
            "unclear": table.unclear.as_ref().map(|(of, kappa)| json!({"confusion": counts(of), "kappa": kappa.value, "n": of.n()})),
            "annotators": annotators.collect::<Vec<_>>(),
            "pairs": pairs.collect::<Vec<_>>(),
            "alpha": agreement(&table.alpha),
            "settled": table.settled,
            "alpha_after": table.alpha_after.as_ref().map(agreement),
            "alpha_with_model": table.alpha_with_model.as_ref().map(agreement),
            "queue": queue.collect::<Vec<_>>(),
            "detector": self.model.map(|model| json!({"key": model.detector, "threshold": model.threshold})),
            "refit": self.refit.map(|(refit, place)| {
                let mut value = refit.json();
                value["fitted_on"] = json!("human labels");
                value["file"] = json!(place);
                value
            }),
            "provenance": {"version": env!("CARGO_PKG_VERSION")},
        })
    }
}
