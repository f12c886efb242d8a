//! Writes the output of `parallax detect`: the verdicts of one detector on pairs of passage and statement, or those of two side by side.
//!
//! With two detectors, disagreements come first, the largest before the others; then agreements; last the pairs that one of them has no
//! verdict on.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use serde_json::{Value, json};

use super::decisions::{Decisions, Judge};
use super::plot::{Series, curves};
use super::safe;
use super::search::decision;
use crate::annotate::agree::Confusion;
use crate::corpus::Passage;
use crate::detect::{Decision, DetectError, Detector, Outcome, Reading, Sources};
use crate::input::unquote;
use crate::measure::agreement::{Report, cohen_kappa, report};

/// One line of the file: a passage and a statement.
pub struct Pair {
    /// The id of the line.
    pub id: String,
    /// The question that the statement belongs to, if the file names it.
    pub question: Option<String>,
    /// The passage.
    pub passage: Passage,
    /// The statement.
    pub statement: String,
    /// Whether the passage supports the statement, if that is labelled.
    pub label: Option<bool>,
}

/// Finds the pairs of lines that have the same passage and the two statements of one question. Returns their numbers in the order of the
/// file.
pub fn opposite_pairs(pairs: &[Pair]) -> Vec<[usize; 2]> {
    let mut rows: HashMap<(Option<&str>, &str, &str), Vec<usize>> = HashMap::new();
    for (i, pair) in pairs.iter().enumerate() {
        let question = pair.question.as_deref().map(str::trim);
        rows.entry((question, &pair.passage.title, &pair.passage.text)).or_default().push(i);
    }
    let two = |rows: Vec<usize>| match *rows.as_slice() {
        [one, other] if pairs[one].statement != pairs[other].statement => Some([one, other]),
        _ => None,
    };
    let mut all: Vec<[usize; 2]> = rows.into_values().filter_map(two).collect();
    all.sort_unstable();
    all
}

/// Groups of the numbers of lines that a detector reads at once, ordered by their first: the two lines of one passage and question if `both` says that
/// their statements are read together, else a line.
pub fn read_together(pairs: &[Pair], both: impl Fn([&str; 2]) -> bool) -> Vec<Vec<usize>> {
    let mut two = opposite_pairs(pairs);
    two.retain(|rows| both(rows.map(|row| pairs[row].statement.as_str())));
    let taken: HashSet<usize> = two.iter().flatten().copied().collect();
    let alone = (0..pairs.len()).filter(|i| !taken.contains(i)).map(|i| vec![i]);
    let mut rows: Vec<Vec<usize>> = two.iter().map(|rows| rows.to_vec()).chain(alone).collect();
    rows.sort_unstable();
    rows
}

/// A detector's verdict on a line. If the file has both statements of the question, it comes from the decision on both.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Verdict {
    /// The probability that the passage supports the statement.
    pub p: f32,
    /// Whether it does; `None` if the side is unclear.
    pub supports: Option<bool>,
    /// The decision, and which of its two statements (0 or 1) the line has.
    pub decision: Option<(Decision, usize)>,
}

impl Verdict {
    /// Returns the decision in a word that describes this statement.
    fn word(&self) -> &'static str {
        match self.decision.map(|(decision, place)| (decision.outcome, place)) {
            None => "",
            Some((Outcome::Side(side), place)) if side == place => "supports",
            Some((Outcome::Side(_), _)) => "opposes",
            Some((other, _)) => other.name(),
        }
    }
}

/// The verdicts of a detector on all pairs.
pub struct Judged {
    /// The detector.
    pub detector: Arc<dyn Detector>,
    /// One verdict per pair.
    pub verdicts: Vec<Result<Verdict, DetectError>>,
    /// Where a language model's probabilities come from.
    pub sources: Sources,
    /// The pairs of lines that were decided on together.
    groups: Vec<[usize; 2]>,
}

impl Judged {
    /// Turns the detector's readings into verdicts.
    pub fn of(
        detector: Arc<dyn Detector>,
        pairs: &[Pair],
        readings: &[Result<Reading, DetectError>],
    ) -> Self {
        let rule = detector.rule();
        let sources = Sources::of(rule, readings.iter().flatten());
        let alone = |reading: &Result<Reading, DetectError>| {
            let p = rule.single(reading.as_ref().map_err(Clone::clone)?);
            Ok(Verdict { p, supports: Some(p >= rule.threshold), decision: None })
        };
        let mut verdicts: Vec<Result<Verdict, DetectError>> = readings.iter().map(alone).collect();
        let mut groups = Vec::new();
        for rows in opposite_pairs(pairs) {
            let [Ok(first), Ok(second)] = rows.map(|row| readings[row].as_ref()) else { continue };
            let Some(decision) = rule.decide([first, second]) else { continue };
            for (place, row) in rows.into_iter().enumerate() {
                let supports = decision.outcome.supports(place);
                let p = decision.supports(place) as f32;
                verdicts[row] = Ok(Verdict { p, supports, decision: Some((decision, place)) });
            }
            groups.push(rows);
        }
        Judged { detector, verdicts, sources, groups }
    }

    /// Returns how many pairs of lines were decided on together.
    pub fn joint_count(&self) -> usize {
        self.groups.len()
    }

    /// Returns the figures over the pairs that have both a label and a verdict, and the threshold that they hold for; `None` if no pair has
    /// both. The threshold is that of decisions on two statements if all pairs were decided on so, else that of single statements.
    pub fn report(&self, pairs: &[Pair]) -> Option<(Report, f32)> {
        let rule = self.detector.rule();
        let known =
            || pairs.iter().zip(&self.verdicts).filter_map(|(pair, v)| Some((v.as_ref().ok()?, pair.label?)));
        let joint = known().all(|(verdict, _)| verdict.decision.is_some());
        let threshold = if joint { rule.heads.theta as f32 } else { rule.threshold };
        let judged: Vec<(f32, bool)> = known().map(|(verdict, label)| (verdict.p, label)).collect();
        Some((report(&judged, threshold)?, threshold))
    }

    /// Measures the decisions on the documents with labels for both statements; `None` if there are none.
    pub fn decisions(&self, pairs: &[Pair]) -> Option<Decisions> {
        let known = self.groups.iter().filter_map(|rows| {
            let (decision, _) = self.verdicts[rows[0]].as_ref().ok()?.decision?;
            Some((decision, [pairs[rows[0]].label?, pairs[rows[1]].label?]))
        });
        Decisions::of(&known.collect::<Vec<_>>())
    }
}

impl<'a> Judge<'a> {
    /// The verdicts of a detector. Lines without a question are grouped by their document.
    pub fn of(name: String, pairs: &'a [Pair], judged: &Judged) -> Self {
        let threshold = judged.report(pairs).map_or(0.0, |(_, threshold)| threshold);
        let (mut said, mut missing) = (Vec::new(), 0);
        for (pair, verdict) in pairs.iter().zip(&judged.verdicts) {
            match (pair.label, verdict) {
                (Some(label), Ok(verdict)) => said.push((pair.group(), verdict.p >= threshold, label)),
                (Some(_), Err(_)) => missing += 1,
                (None, _) => {}
            }
        }
        Judge { name, said, missing }
    }
}

impl Pair {
    /// The question, or the document if the file does not name one.
    pub fn group(&self) -> &str {
        self.question.as_deref().map(str::trim).filter(|text| !text.is_empty()).unwrap_or(&self.passage.text)
    }
}

/// The verdicts of two detectors on the same pairs.
pub struct Compared<'a> {
    pairs: &'a [Pair],
    sides: [&'a Judged; 2],
    /// The numbers of the pairs, disagreements first.
    order: Vec<usize>,
    confusion: Confusion,
    kappa: Option<f64>,
}

impl<'a> Compared<'a> {
    /// Compares two detectors.
    pub fn of(pairs: &'a [Pair], sides: [&'a Judged; 2]) -> Self {
        let both = |i: usize| {
            let said = |side: &Judged| {
                let verdict = side.verdicts[i].as_ref().ok()?;
                Some((verdict.p, verdict.supports?))
            };
            Some((said(sides[0])?, said(sides[1])?))
        };
        let mut order: Vec<usize> = (0..pairs.len()).collect();
        let gap = |i: usize| {
            both(i).map_or(-1.0, |((one, one_yes), (other, other_yes))| {
                (one - other).abs() + if one_yes == other_yes { 0.0 } else { 2.0 }
            })
        };
        order.sort_by(|a, b| gap(*b).total_cmp(&gap(*a)));
        let said: Vec<(bool, bool)> =
            (0..pairs.len()).filter_map(|i| both(i).map(|((_, one), (_, other))| (one, other))).collect();
        Compared { pairs, sides, order, confusion: Confusion::of(&said), kappa: cohen_kappa(&said).value }
    }

    /// Writes TSV with one row per pair, disagreements first.
    pub fn tsv(&self) -> String {
        let mut text = "id\tp\tp_against\tsupports\tsupports_against\terror\n".to_owned();
        for &i in &self.order {
            let [one, other] = self.sides.map(|side| match &side.verdicts[i] {
                Ok(verdict) => (format!("{:.4}", verdict.p), yes(verdict.supports), String::new()),
                Err(error) => (String::new(), String::new(), error.to_string()),
            });
            let error = [one.2, other.2].join(" ");
            let (id, error) = (safe::field(&self.pairs[i].id), safe::field(error.trim()));
            text += &format!("{id}\t{}\t{}\t{}\t{}\t{error}\n", one.0, other.0, one.1, other.1);
        }
        text
    }

    /// Returns the summary in lines: both detectors against the labels, then against each other.
    pub fn figures(&self) -> Vec<String> {
        let own = self.sides.iter().filter_map(|side| {
            let (report, threshold) = side.report(self.pairs)?;
            let key = side.detector.key();
            Some(format!("{key}: {}", report.text(threshold, side.detector.fitted_on())))
        });
        let decided = self.sides.iter().flat_map(|side| {
            let shows = side.detector.rule().shows_sides();
            let lines = side.decisions(self.pairs).map(|decisions| decisions.text(shows)).unwrap_or_default();
            lines.into_iter().map(|line| format!("{}: {line}", side.detector.key()))
        });
        own.chain(decided).chain([self.text()]).collect()
    }

    /// Returns the agreement of the two in a line.
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

    /// Writes everything as one JSON object.
    pub fn json(&self) -> Value {
        let Confusion { yes_yes, yes_no, no_yes, no_no } = self.confusion;
        let said = |side: &Judged, i: usize| match &side.verdicts[i] {
            Ok(verdict) => json!({
                "p": verdict.p, "supports": verdict.supports, "decision": word(verdict), "error": Value::Null,
            }),
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
                "usage": side.detector.usage(),
                "probabilities": side.sources.words().map(|_| side.sources),
                "report": side.report(self.pairs).map(|(report, _)| report.json()),
                "decisions": side.decisions(self.pairs).as_ref().map(Decisions::json),
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

/// Returns 1 or 0, or nothing if it is unclear.
fn yes(supports: Option<bool>) -> String {
    supports.map_or_else(String::new, |yes| u8::from(yes).to_string())
}

fn word(verdict: &Verdict) -> Option<&'static str> {
    verdict.decision.map(|_| verdict.word())
}

/// Writes TSV with one row per pair: its id, the probability, and the verdict or the error. If lines were decided on together, two more
/// columns have the decision about this statement, and the probability that the document takes a side.
pub fn tsv(pairs: &[Pair], judged: &Judged) -> String {
    let joint = judged.joint_count() > 0;
    let mut text = "id\tp\tsupports\terror".to_owned();
    text += if joint { "\tdecision\tengaged\n" } else { "\n" };
    for (pair, verdict) in pairs.iter().zip(&judged.verdicts) {
        text += &match verdict {
            Ok(verdict) => {
                format!("{}\t{:.4}\t{}\t", safe::field(&pair.id), verdict.p, yes(verdict.supports))
            }
            Err(error) => format!("{}\t\t\t{}", safe::field(&pair.id), safe::field(&error.to_string())),
        };
        if joint {
            let verdict = verdict.as_ref().ok();
            let engaged = verdict.and_then(|verdict| verdict.decision).map(|(decision, _)| decision.engaged);
            let engaged = engaged.map_or_else(String::new, |engaged| format!("{engaged:.4}"));
            text += &format!("\t{}\t{engaged}", verdict.map_or("", Verdict::word));
        }
        text.push('\n');
    }
    text
}

/// Returns the pairs with their verdicts as labels, in a table that `detect --pairs` reads and other programs can train on, and how many
/// pairs have no clear verdict and are left out. Texts stand unchanged, so the table is for a file and not for a screen.
pub fn training(pairs: &[Pair], judged: &Judged) -> (String, usize) {
    // A field that reads otherwise without quotes gets them.
    let field = |text: &str| match unquote(text) {
        Ok(same) if same == text => text.to_owned(),
        _ => format!("\"{}\"", text.replace('"', "\"\"")),
    };
    let (mut text, mut left_out) =
        ("id\tquestion\ttitle\tdocument\tperspective\tlabel\tp\tby\n".to_owned(), 0);
    for (pair, verdict) in pairs.iter().zip(&judged.verdicts) {
        let Some((verdict, supports)) = verdict.as_ref().ok().and_then(|one| Some((one, one.supports?)))
        else {
            left_out += 1;
            continue;
        };
        let question = pair.question.as_deref().unwrap_or_default();
        let texts =
            [pair.id.as_str(), question, &pair.passage.title, &pair.passage.text, &pair.statement].map(field);
        let (label, by) = (u8::from(supports), judged.detector.key());
        text += &format!("{}\t{label}\t{:.4}\t{by}\n", texts.join("\t"), verdict.p);
    }
    (text, left_out)
}

/// Returns the figures of the verdicts against the labels in lines; none if no pair has both.
pub fn figures(pairs: &[Pair], judged: &Judged) -> Vec<String> {
    let detector = &judged.detector;
    let own = judged.report(pairs).map(|(report, threshold)| report.text(threshold, detector.fitted_on()));
    let decisions = judged.decisions(pairs).map(|decisions| decisions.text(detector.rule().shows_sides()));
    own.into_iter().chain(decisions.into_iter().flatten()).collect()
}

/// Draws risk over coverage, one line per detector; `None` if no document has both statements labelled and decided on.
pub fn risk_plot(pairs: &[Pair], sides: &[&Judged]) -> Option<String> {
    let line = |side: &&Judged| {
        let decisions = side.decisions(pairs)?;
        let points = decisions.curve().to_vec();
        (!points.is_empty()).then(|| Series {
            name: side.detector.key().to_owned(),
            points,
            ..Series::default()
        })
    };
    let series: Vec<Series> = sides.iter().filter_map(line).collect();
    let (x, y) =
        ("coverage: share of the documents whose side is shown", "risk: share of these that are wrong");
    (!series.is_empty()).then(|| curves(&series, x, y))
}

/// Writes everything as one JSON object.
pub fn json(pairs: &[Pair], judged: &Judged) -> Value {
    let Judged { detector, verdicts, sources, groups } = judged;
    let rows = pairs.iter().zip(verdicts).map(|(pair, verdict)| match verdict {
        Ok(verdict) => json!({
            "id": pair.id, "p": verdict.p, "supports": verdict.supports, "decision": word(verdict), "error": Value::Null,
        }),
        Err(error) => {
            json!({"id": pair.id, "p": Value::Null, "supports": Value::Null, "error": error.to_string()})
        }
    });
    let decided = groups.iter().filter_map(|rows| {
        let (decided, _) = verdicts[rows[0]].as_ref().ok()?.decision?;
        Some(json!({
            "question": pairs[rows[0]].question,
            "pairs": rows.map(|row| &pairs[row].id),
            "statements": rows.map(|row| &pairs[row].statement),
            "decision": decision(&decided),
        }))
    });
    let provenance = json!({"version": env!("CARGO_PKG_VERSION"), "experimental": detector.experimental()});
    json!({
        "detector": detector.key(),
        "about": detector.rule().about.words(),
        "threshold": detector.threshold(),
        "threshold_fitted_on": detector.fitted_on(),
        "usage": detector.usage(),
        "probabilities": sources.words().map(|_| sources),
        "pairs": rows.collect::<Vec<_>>(),
        "decisions": decided.collect::<Vec<_>>(),
        "report": judged.report(pairs).map(|(report, _)| report.json()),
        "decisions_report": judged.decisions(pairs).as_ref().map(Decisions::json),
        "provenance": provenance,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::detect::Rule;
    use crate::work::Stop;

    struct Named(&'static str, Rule);

    impl Detector for Named {
        fn key(&self) -> &str {
            self.0
        }
        fn rule(&self) -> &Rule {
            &self.1
        }
        fn read(&self, _: &Passage, _: &str, _: &Stop) -> Result<Reading, DetectError> {
            Ok(Reading::of(0.0))
        }
    }

    fn judged(name: &'static str, pairs: &[Pair], verdicts: &[Option<f32>]) -> Judged {
        let reading = |p: &Option<f32>| p.map(Reading::of).ok_or(DetectError::Empty("passage"));
        let readings: Vec<_> = verdicts.iter().map(reading).collect();
        Judged::of(Arc::new(Named(name, Rule::default())), pairs, &readings)
    }

    fn line(question: &str, text: &str, statement: &str, label: Option<bool>) -> Pair {
        Pair {
            id: format!("{text}{statement}"),
            question: Some(question.into()),
            passage: Passage { text: text.into(), ..Passage::default() },
            statement: statement.into(),
            label,
        }
    }

    #[test]
    fn two_statements_of_one_question_and_document_are_decided_on_together_in_any_order_of_the_file() {
        let pairs = [
            line("q", "d", "yes", Some(true)),
            line("q", "e", "yes", Some(false)),
            line("q", "d", "no", Some(false)),
            line("other", "e", "no", Some(true)),
            line("q", "f", "yes", Some(false)),
            line("q", "f", "no", Some(false)),
        ];
        assert_eq!(opposite_pairs(&pairs), [[0, 2], [4, 5]]);
        assert_eq!(read_together(&pairs, |_| true), [vec![0, 2], vec![1], vec![3], vec![4, 5]]);
        assert_eq!(read_together(&pairs, |_| false).concat(), [0, 1, 2, 3, 4, 5]);
        let judged =
            judged("one", &pairs, &[Some(0.9), Some(0.6), Some(0.1), Some(0.2), Some(0.8), Some(0.85)]);
        let words: Vec<&str> =
            judged.verdicts.iter().map(|verdict| verdict.as_ref().unwrap().word()).collect();
        assert_eq!(words, ["supports", "", "opposes", "", "unclear", "unclear"]);
        assert_eq!(judged.verdicts[4].as_ref().unwrap().supports, None);
        let text = tsv(&pairs, &judged);
        let rows: Vec<Vec<&str>> = text.lines().map(|row| row.split('\t').collect()).collect();
        assert_eq!(rows[0], ["id", "p", "supports", "error", "decision", "engaged"]);
        assert_eq!((rows[2][4], rows[5][2], rows[5][4]), ("", "", "unclear"));
        let json = json(&pairs, &judged);
        assert_eq!(json["decisions"][0]["decision"]["side"], 0);
        assert_eq!(json["decisions"][1]["decision"]["side"], Value::Null);
        assert_eq!(json["decisions_report"]["documents"], 2);
    }

    #[test]
    fn disagreements_come_first_the_widest_apart_before_the_others_and_missing_verdicts_last() {
        let ids = ["alike", "missing", "near", "wide", "nearly alike"];
        let pair = |id: &&str| Pair { id: (*id).into(), ..line(id, id, "", None) };
        let pairs: Vec<Pair> = ids.iter().map(pair).collect();
        let one = judged("one", &pairs, &[Some(0.9), None, Some(0.6), Some(1.0), Some(0.1)]);
        let other = judged("other", &pairs, &[Some(0.8), Some(0.5), Some(0.4), Some(0.0), Some(0.4)]);
        let compared = Compared::of(&pairs, [&one, &other]);
        let order: Vec<&str> = compared.order.iter().map(|i| ids[*i]).collect();
        assert_eq!(order, ["wide", "near", "nearly alike", "alike", "missing"]);
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
