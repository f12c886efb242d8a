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
