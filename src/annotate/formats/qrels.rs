//! TREC qrels: `NAME.div.qrels` says which statement a passage supports (the second column is its number, from 1), `NAME.qrels`
//! whether it supports any.
//!
//! A file has one label per pair: that of most annotators. Ties are left out and reported.

use std::path::Path;

use super::{ExportError, Exported, Imported, Reading, Unmatched, beyond_labels, jsonl};
use crate::annotate::agree::items;
use crate::annotate::entry::Decision;
use crate::annotate::material::{Material, Row, RowError};
use crate::input::{self, InputError};
use crate::measure::trec::{
    DiversityQrels, TrecError, read_diversity_qrels, write_diversity_qrels, write_qrels,
};

/// Reads judgments per statement; every grade above 0 is a yes.
///
/// # Errors
/// A line is not valid, or the file does not name statements.
pub fn read(path: &Path, reading: &Reading<'_>) -> Result<Imported, InputError> {
    let refused = |reason: String| InputError::Unreadable { path: path.into(), reason };
    let qrels = read_diversity_qrels(&path.display().to_string(), input::open(path)?).map_err(|error| match error {
        TrecError::Io { source, .. } => InputError::unreadable(path, &source),
        lines @ TrecError::Lines(_) => refused(format!(
            "not read as judgments per statement (give NAME.div.qrels; NAME.qrels does not say which statement a passage supports):\n{lines}"
        )),
    })?;
    let mut imported = Imported::default();
    for name in qrels.questions() {
        let Some(question) = reading.material.question(name) else {
            let reason = format!(
                "no question of the set is `{name}`; its {} labels are left out",
                qrels.judgments(name).count()
            );
            imported.unmatched.push(Unmatched { at: format!("question {name}"), reason });
            continue;
        };
        for (passage, perspective, grade) in qrels.judgments(name) {
            let decision = question
                .perspectives
                .get(perspective)
                .ok_or(RowError::NoPerspective(question.perspectives.len()))
                .and_then(|statement| {
                    let row = Row {
                        question: Some(name),
                        passage: Some(passage),
                        perspective: statement,
                        ..Row::default()
                    };
                    reading.decided(&row, None, grade > 0)
                });
            imported.take(
                || format!("question {name}, passage {passage}, perspective {}", perspective + 1),
                decision,
            );
        }
    }
    Ok(imported)
}

/// Writes both files.
///
/// # Errors
/// An id has white space.
pub fn write(decisions: &[Decision], material: &Material<'_>) -> Result<Exported, ExportError> {
    let mut qrels = DiversityQrels::default();
    let (mut tied, mut unknown, mut outvoted, mut stale) = (0, 0, 0, 0);
    for item in items(decisions, None) {
        let about = item.about;
        // Qrels name a passage only by its id, so labels of another text cannot be distinguished.
        if material.passage(about).is_none_or(|passage| passage.id != about.passage) {
            stale += 1;
            continue;
        }
        let Some(supports) = item.majority() else {
            tied += 1;
            continue;
        };
        let (yes, no) = item.votes();
        outvoted += usize::from(yes.min(no) > 0);
        let question = material.question(&about.question);
        let number = question
            .and_then(|question| question.perspectives.iter().position(|one| *one == about.perspective));
        let (Some(question), Some(number)) = (question, number) else {
            unknown += 1;
            continue;
        };
        qrels.insert(&question.id, &about.passage, number, i32::from(supports))?;
    }
    let (mut any, mut each) = (Vec::new(), Vec::new());
    write_qrels(&mut any, &qrels.any_perspective())?;
    write_diversity_qrels(&mut each, &qrels)?;
    let mut left_out: Vec<String> = beyond_labels(decisions).into_iter().collect();
    for (n, what) in [
        (tied, "passages are left out, because as many annotators say yes as no"),
        (outvoted, "labels are those of a majority; the other labels are not in the file"),
        (
            stale,
            "labels are left out, because this corpus has another text, or none, under their passage's id",
        ),
        (unknown, "labels are left out, because the question set has no such statement to number"),
    ] {
        if n > 0 {
            left_out.push(format!("{n} {what}"));
        }
    }
    let rest = jsonl::bytes(decisions, material)?;
    Ok(Exported { files: vec![(".qrels", any), (".div.qrels", each), (jsonl::REST, rest)], left_out })
}

pub mod berds {
    //! BERDS results whose passages have `NAME-preds`: booleans in the order of the question's `perspectives`, one key per annotator.
    //!
    //! Passages without an id are matched by their text. A label that an annotator did not give is `null`.

    use std::collections::{BTreeMap, BTreeSet};
    use std::path::Path;

    use serde::Deserialize;
    use serde_json::{Map, Value, json};

    use crate::annotate::entry::Decision;
    use crate::annotate::formats::{ExportError, Exported, Imported, Reading, beyond_labels, jsonl};
    use crate::annotate::material::{Material, Row};
    use crate::corpus::Passage;
    use crate::input::{BadLine, Expected, InputError, bytes, lines, read_json};

    /// The end of the key of an annotator's labels.
    const PREDS: &str = "-preds";

    #[derive(Deserialize)]
    struct Results {
        question: String,
        perspectives: Vec<String>,
        ctxs: Vec<Map<String, Value>>,
    }

    /// Reads results: one JSON object per line, or one array.
    ///
    /// # Errors
    /// A result has another format, or a passage does not have one label per perspective.
    pub fn read(path: &Path, reading: &Reading<'_>) -> Result<Imported, InputError> {
        const EXPECTED: &str = "BERDS results with `question`, `perspectives` and `ctxs`";
        let mut results: Vec<(usize, Results)> = Vec::new();
        let whole = bytes(path)?;
        if whole.iter().find(|byte| !byte.is_ascii_whitespace()) == Some(&b'[') {
            results.extend(
                read_json::<Vec<Results>>(path, EXPECTED)?
                    .into_iter()
                    .enumerate()
                    .map(|(i, one)| (i + 1, one)),
            );
        } else {
            lines(path, |number, line| {
                results.push((
                    number,
                    serde_json::from_str(line).map_err(|error| format!("{EXPECTED} ({error})"))?,
                ));
                Ok(())
            })?;
        }
        let (mut imported, mut bad_lines, mut found) = (Imported::default(), Vec::new(), false);
        for (number, one) in &results {
            for (rank, passage) in one.ctxs.iter().enumerate() {
                for (key, labels) in passage {
                    let Some(by) = key.strip_suffix(PREDS) else { continue };
                    found = true;
                    match parse_labels(labels, one.perspectives.len()) {
                        Ok(labels) => {
                            take(&mut imported, reading, (*number, one), (rank, passage), (by, &labels))
                        }
                        Err(Expected(expected)) => bad_lines.push(BadLine {
                            file: path.into(),
                            line: *number,
                            expected: format!("in `{key}` of passage {} {expected}", rank + 1),
                            found: labels.to_string(),
                        }),
                    }
                }
            }
        }
        if !bad_lines.is_empty() {
            return Err(InputError::BadLines(bad_lines));
        }
        if !found {
            let advice = "expected passages with a key that ends in `-preds`";
            return Err(InputError::Empty { path: path.into(), what: "the labels in it", advice });
        }
        Ok(imported)
    }

    fn parse_labels(labels: &Value, perspectives: usize) -> Result<Vec<Option<bool>>, Expected> {
        let expected = || Expected(format!("{perspectives} booleans, one per perspective"));
        // `null` is a passage without labels.
        if labels.is_null() {
            return Ok(Vec::new());
        }
        let labels = labels.as_array().filter(|labels| labels.len() == perspectives).ok_or_else(expected)?;
        let one = |label: &Value| {
            if label.is_null() { Ok(None) } else { label.as_bool().map(Some).ok_or_else(expected) }
        };
        labels.iter().map(one).collect()
    }

    fn take(
        imported: &mut Imported,
        reading: &Reading<'_>,
        (number, results): (usize, &Results),
        (rank, passage): (usize, &Map<String, Value>),
        (by, labels): (&str, &[Option<bool>]),
    ) {
        let text = |key: &str| passage.get(key).and_then(Value::as_str);
        let id = match passage.get("id") {
            Some(Value::String(id)) => Some(id.clone()),
            Some(Value::Null) | None => None,
            Some(other) => Some(other.to_string()),
        };
        for (statement, label) in results.perspectives.iter().zip(labels) {
            let Some(label) = label else { continue };
            let row = Row {
                question: Some(&results.question),
                passage: id.as_deref(),
                hash: None,
                title: text("title"),
                document: text("text"),
                perspective: statement,
            };
            let decision = reading.decided(&row, (!by.is_empty()).then_some(by), *label);
            imported.take(|| format!("result {number}, passage {}", rank + 1), decision);
        }
    }

    /// Writes one line per question, each a JSON object.
    ///
    /// # Errors
    /// A date of the side file is beyond the year 9999. Labels that have no place in the format are reported as left out.
    pub fn write(decisions: &[Decision], material: &Material<'_>) -> Result<Exported, ExportError> {
        let mut out = String::new();
        let (mut partial, mut written) = (0, 0);
        for question in material.questions {
            let here: Vec<&Decision> = decisions.iter().filter(|one| one.question == question.text).collect();
            let mut passages: BTreeMap<&str, BTreeMap<&str, Vec<Option<bool>>>> = BTreeMap::new();
            let mut shown: BTreeMap<&str, Option<Passage>> = BTreeMap::new();
            for decision in here {
                let Some(i) = question.perspectives.iter().position(|one| *one == decision.perspective)
                else {
                    continue;
                };
                let labels = passages.entry(&decision.passage).or_default().entry(&decision.by);
                labels.or_insert_with(|| vec![None; question.perspectives.len()])[i] =
                    Some(decision.supports);
                shown.entry(&decision.passage).or_insert_with(|| material.passage(decision));
                written += 1;
            }
            if passages.is_empty() {
                continue;
            }
            let ctxs = passages.iter().map(|(id, labels)| {
                let passage = shown.get(id).cloned().flatten().unwrap_or_default();
                let mut ctx = json!({"id": id, "title": passage.title, "text": passage.text});
                for (by, labels) in labels {
                    partial += usize::from(labels.contains(&None));
                    ctx[format!("{by}{PREDS}")] = json!(labels);
                }
                ctx
            });
            let line = json!({
                "id": question.id,
                "question": question.text,
                "perspectives": question.perspectives,
                "ctxs": ctxs.collect::<Vec<_>>(),
            });
            out += &format!("{line}\n");
        }
        let mut left_out: Vec<String> = beyond_labels(decisions).into_iter().collect();
        if written < decisions.len() {
            left_out.push(format!(
                "{} labels are left out, because the question set has no such question or statement",
                decisions.len() - written
            ));
        }
        if partial > 0 {
            left_out.push(format!(
                "{partial} passages were not labelled for every statement; missing labels are null"
            ));
        }
        let nobody: BTreeSet<&str> =
            decisions.iter().map(|one| one.by.as_str()).filter(|by| by.is_empty()).collect();
        if !nobody.is_empty() {
            left_out.push("an annotator without a name has the key `-preds`".into());
        }
        let rest = jsonl::bytes(decisions, material)?;
        Ok(Exported { files: vec![("", out.into_bytes()), (jsonl::REST, rest)], left_out })
    }
}
