//! One label a line, as JSON with named fields: what Hugging Face `datasets` loads, with a dataset card beside it. It holds everything,
//! so it is also the side file of formats that do not.

use std::path::Path;

use serde::{Deserialize, Serialize};

use super::{ExportError, Exported, Imported, Reading, date};
use crate::annotate::entry::{Decision, Seen};
use crate::annotate::material::{Material, Row};
use crate::input::{InputError, lines};

/// The ending of the side file.
pub const REST: &str = ".rest.jsonl";

/// A line. Every field is there in every line, because `datasets` infers the columns from the first lines.
#[derive(Debug, Default, Deserialize, Serialize)]
#[serde(default)]
struct Line {
    question_id: Option<String>,
    question: Option<String>,
    passage_id: Option<String>,
    title: Option<String>,
    text: Option<String>,
    statement: String,
    supports: Option<bool>,
    annotator: Option<String>,
    evidence: Option<String>,
    note: Option<String>,
    flagged: bool,
    date: Option<String>,
    at_ms: Option<u64>,
    took_ms: Option<u64>,
    text_hash: Option<String>,
    blind: Option<bool>,
    guidelines_hash: Option<String>,
    settles: Option<String>,
    again: bool,
}

/// Reads such lines. `statement`, `supports`, and either `passage_id` or `text` are required.
///
/// # Errors
/// A line is not such an object.
pub fn read(path: &Path, reading: &Reading<'_>) -> Result<Imported, InputError> {
    let mut imported = Imported::default();
    lines(path, |number, text| {
        let line: Line = serde_json::from_str(text)
            .map_err(|error| format!("a label with `statement`, `supports` and `passage_id` ({error})"))?;
        let supports = line.supports.ok_or("a label whose `supports` is true or false")?;
        if line.statement.is_empty() && line.question.is_none() {
            return Err("a label with a `statement`".into());
        }
        let row = Row {
            question: line.question.as_deref().or(line.question_id.as_deref()),
            passage: line.passage_id.as_deref(),
            hash: line.text_hash.as_deref(),
            title: line.title.as_deref(),
            document: line.text.as_deref(),
            perspective: &line.statement,
        };
        let decision = reading.decided(&row, line.annotator.as_deref(), supports).map(|plain| Decision {
            evidence: line.evidence.clone(),
            note: line.note.clone(),
            flagged: line.flagged,
            at: line.at_ms.unwrap_or(plain.at),
            took: line.took_ms,
            seen: line.blind.map(|blind| Seen {
                blind,
                guidelines: line.guidelines_hash.clone().unwrap_or_default(),
                settles: line.settles.clone(),
                again: line.again,
            }),
            ..plain
        });
        imported.take(|| format!("line {number}"), decision);
        Ok(())
    })?;
    Ok(imported)
}

/// The lines of these labels.
///
/// # Errors
/// A date is beyond the year 9999.
pub fn bytes(decisions: &[Decision], material: &Material<'_>) -> Result<Vec<u8>, ExportError> {
    let mut out = Vec::new();
    for one in decisions {
        let passage = material.passage(one);
        let seen = one.seen.as_ref();
        let line = Line {
            question_id: material.question(&one.question).map(|question| question.id.clone()),
            question: Some(one.question.clone()),
            passage_id: Some(one.passage.clone()),
            title: passage.as_ref().map(|passage| passage.title.clone()),
            text: passage.map(|passage| passage.text),
            statement: one.perspective.clone(),
            supports: Some(one.supports),
            annotator: Some(one.by.clone()),
            evidence: one.evidence.clone(),
            note: one.note.clone(),
            flagged: one.flagged,
            date: Some(date(one)?),
            at_ms: Some(one.at),
            took_ms: one.took,
            text_hash: Some(one.text.clone()),
            blind: seen.map(|seen| seen.blind),
            guidelines_hash: seen.map(|seen| seen.guidelines.clone()),
            settles: seen.and_then(|seen| seen.settles.clone()),
            again: seen.is_some_and(|seen| seen.again),
        };
        serde_json::to_writer(&mut out, &line).map_err(std::io::Error::from)?;
        out.push(b'\n');
    }
    Ok(out)
}

/// Writes the lines and a dataset card.
///
/// # Errors
/// As [`bytes`].
pub fn write(decisions: &[Decision], material: &Material<'_>) -> Result<Exported, ExportError> {
    let card = card(decisions);
    let files = vec![("", bytes(decisions, material)?), (".README.md", card.into_bytes())];
    Ok(Exported { files, left_out: Vec::new() })
}

/// The dataset card. Its header loads the lines by the name that the user chose, once the card is renamed to README.md.
fn card(decisions: &[Decision]) -> String {
    let distinct = |of: fn(&Decision) -> &str| {
        decisions.iter().map(of).collect::<std::collections::BTreeSet<&str>>().len()
    };
    let size = match decisions.len() {
        0..1_000 => "n<1K",
        1_000..10_000 => "1K<n<10K",
        10_000..100_000 => "10K<n<100K",
        _ => "100K<n<1M",
    };
    format!(
        "---\npretty_name: Labels by hand\ntask_categories:\n- text-classification\nsize_categories:\n- {size}\nconfigs:\n\
         - config_name: default\n  data_files: \"*.jsonl\"\n---\n\n# Labels by hand\n\n\
         {} labels of {} passages and {} questions by {} annotators. A line is one annotator's label: whether the passage (`title`, \
         `text`) supports the `statement` about the `question`.\n\n\
         | field | meaning |\n| --- | --- |\n\
         | `supports` | whether the passage supports the statement |\n\
         | `evidence` | the words of the passage that show it |\n\
         | `note`, `flagged` | the annotator's remark, and a mark for another look |\n\
         | `date`, `at_ms`, `took_ms` | when it was decided, and how long the passage was read |\n\
         | `text_hash` | a hash of title and text, by which a passage is found under another id |\n\
         | `blind` | whether lane, rank and the model's verdict were hidden |\n\
         | `guidelines_hash` | the guidelines it was decided under |\n\
         | `settles` | why it settles a disagreement; null for an annotator's own label |\n\
         | `again` | whether the passage came to the annotator a second time |\n\n\
         Name the licence of the passages and of the labels before you publish them.\n",
        decisions.len(),
        distinct(|one| &one.text),
        distinct(|one| &one.question),
        distinct(|one| &one.by),
    )
}
