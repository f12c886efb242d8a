//! Argilla's records (version 2): one record per question, passage and statement, with one response per annotator.
//!
//! Argilla identifies users only by UUID and stores no time with a response, so names, dates and the time a label took are in the
//! record's metadata. The `.settings.json` file next to the records creates their dataset.

use std::collections::BTreeMap;
use std::path::Path;

use serde::Deserialize;
use serde_json::{Map, Value, json};

use super::{
    ExportError, Exported, Imported, Reading, cut_span, date, date_millis, groups, span_of, without_text,
};
use crate::annotate::entry::{Decision, Seen};
use crate::annotate::material::{Material, Model, Row, RowError};
use crate::detect::decision::truth;
use crate::input::{InputError, read_json};

const YES: &str = "supports";
const NO: &str = "does not support";

/// The dataset's settings.
pub fn settings() -> Value {
    let field = |name: &str, title: &str, required: bool| {
        json!({
            "name": name, "title": title, "required": required,
            "settings": {"type": "text", "use_markdown": false},
        })
    };
    let option = |value: &str| json!({"value": value, "text": value, "description": null});
    let question = |name: &str, title: &str, required: bool, settings: Value| json!({"name": name, "title": title, "description": null, "required": required, "settings": settings});
    let label = |options: &[&str]| {
        let options: Vec<Value> = options.iter().map(|one| option(one)).collect();
        json!({"type": "label_selection", "options": options})
    };
    let spans = json!({
        "type": "span", "field": "text", "allow_overlapping": false, "options": [option("evidence")],
    });
    json!({
        "guidelines": "Does the passage support the statement?",
        "allow_extra_metadata": true,
        "fields": [
            field("question", "Question", true),
            field("statement", "Statement", true),
            field("title", "Title", false),
            field("text", "Passage", true),
        ],
        "questions": [
            question("supports", "Does the passage support the statement?", true, label(&[YES, NO])),
            question("evidence", "The words that show it", false, spans),
            question("note", "A remark", false, json!({"type": "text", "use_markdown": false})),
            question("look", "Another look", false, label(&["another look", "settled"])),
        ],
        "vectors": [],
        "metadata": [],
        "distribution": {"strategy": "overlap", "min_submitted": 1},
        "mapping": null,
    })
}

#[derive(Deserialize)]
struct Record {
    fields: Map<String, Value>,
    #[serde(default)]
    metadata: Metadata,
    #[serde(default)]
    responses: BTreeMap<String, Vec<Response>>,
}

#[derive(Default, Deserialize)]
struct Metadata {
    passage: Option<String>,
    hash: Option<String>,
    #[serde(default)]
    labels: Vec<Label>,
}

/// The parts of a label that a response has no field for.
#[derive(Deserialize)]
struct Label {
    user_id: String,
    annotator: String,
    at: String,
    took: Option<u64>,
    evidence: Option<String>,
    seen: Option<Seen>,
}

#[derive(Deserialize)]
struct Response {
    user_id: String,
    #[serde(default)]
    value: Value,
    #[serde(default)]
    status: Option<String>,
}

/// Reads records as `dataset.records.to_json` writes them. Discarded responses are skipped.
///
/// # Errors
/// The file does not hold such records.
pub fn read(path: &Path, reading: &Reading<'_>) -> Result<Imported, InputError> {
    let records: Vec<Record> =
        read_json(path, "Argilla's records, an array of objects with `fields` and `responses`")?;
    let mut imported = Imported::default();
    for (i, record) in records.iter().enumerate() {
        for response in record.responses.get("supports").into_iter().flatten() {
            if response.status.as_deref() == Some("discarded") {
                continue;
            }
            imported.take(|| format!("record {}", i + 1), decision(record, response, reading));
        }
    }
    Ok(imported)
}

fn decision(record: &Record, response: &Response, reading: &Reading<'_>) -> Result<Decision, RowError> {
    let field = |keys: [&str; 2]| keys.iter().find_map(|key| record.fields.get(*key)?.as_str());
    let row = Row {
        question: field(["question", "question"]),
        passage: record.metadata.passage.as_deref(),
        hash: record.metadata.hash.as_deref(),
        title: field(["title", "title"]),
        document: field(["text", "document"]),
        perspective: field(["statement", "perspective"]).ok_or("no `statement` in its fields")?,
    };
    let chosen = response.value.as_str().ok_or("a response to `supports` that is not a text")?;
    let supports = match chosen {
        YES => true,
        NO => false,
        other => truth(other).map_err(|_| RowError::Label { found: other.into(), yes: YES, no: NO })?,
    };
    let user = response.user_id.as_str();
    let label = record.metadata.labels.iter().find(|label| label.user_id == user);
    let answer = |question: &str| {
        record.responses.get(question)?.iter().find(|one| one.user_id == user).map(|one| &one.value)
    };
    let by = label.map_or(user, |label| label.annotator.as_str());
    let plain = reading.decided(&row, Some(by), supports)?;
    let evidence = answer("evidence").and_then(|spans| spans_text(spans, row.document?));
    Ok(Decision {
        evidence: evidence.or_else(|| label?.evidence.clone()),
        note: answer("note").and_then(Value::as_str).map(str::to_owned),
        flagged: answer("look").and_then(Value::as_str) == Some("another look"),
        at: label.and_then(|label| date_millis(&label.at)).unwrap_or(plain.at),
        took: label.and_then(|label| label.took),
        seen: label.and_then(|label| label.seen.clone()),
        ..plain
    })
}

/// The text of a response's spans.
fn spans_text(spans: &Value, document: &str) -> Option<String> {
    let number = |span: &Value, key: &str| usize::try_from(span.get(key)?.as_u64()?).ok();
    let pieces = spans.as_array()?.iter();
    let pieces: Option<Vec<String>> =
        pieces.map(|span| cut_span(document, number(span, "start")?, number(span, "end")?)).collect();
    pieces.filter(|pieces| !pieces.is_empty()).map(|pieces| pieces.join("\n"))
}

/// Writes records with the detector's verdicts as suggestions, and the settings of their dataset.
///
/// # Errors
/// The format cannot express a date.
pub fn write(
    decisions: &[Decision],
    material: &Material<'_>,
    model: Option<&Model>,
) -> Result<Exported, ExportError> {
    let mut records = Vec::new();
    let mut unseen = 0;
    for group in groups(decisions) {
        let Some(about) = group.first() else { continue };
        let passage = material.passage(about);
        unseen += usize::from(passage.is_none());
        let passage = passage.unwrap_or_default();
        let mut responses: BTreeMap<&str, Vec<Value>> = BTreeMap::new();
        let mut labels = Vec::new();
        for decision in &group {
            let user = user_id(&decision.by);
            let mut say = |question, value: Value| {
                responses.entry(question).or_default().push(json!({"value": value, "user_id": user}));
            };
            say("supports", json!(if decision.supports { YES } else { NO }));
            let span = decision.evidence.as_deref().and_then(|evidence| span_of(evidence, &passage.text));
            if let Some((start, end)) = span {
                say("evidence", json!([{"start": start, "end": end, "label": "evidence"}]));
            }
            if let Some(note) = &decision.note {
                say("note", json!(note));
            }
            if decision.flagged {
                say("look", json!("another look"));
            }
            let mut label = json!({"user_id": user, "annotator": decision.by, "at": date(decision)?});
            if let Some(took) = decision.took {
                label["took"] = json!(took);
            }
            if let Some(seen) = &decision.seen {
                label["seen"] = json!(seen);
            }
            if let (Some(evidence), None) = (&decision.evidence, span) {
                label["evidence"] = json!(evidence);
            }
            labels.push(label);
        }
        // If the side is unclear, there is no suggestion.
        let says = |model: &Model| model.says(about).and_then(|(says, p)| Some((says?, p)));
        let suggestions = model.and_then(|model| Some((model, says(model)?))).map_or_else(
            || json!({}),
            |(model, (supports, p))| {
                let (value, score) = if supports { (YES, p) } else { (NO, 1.0 - p) };
                json!({"supports": {"value": value, "score": score, "agent": model.detector}})
            },
        );
        records.push(json!({
            "id": record_id(about),
            "fields": {
                "question": about.question,
                "statement": about.perspective,
                "title": passage.title,
                "text": passage.text,
            },
            "metadata": {"passage": about.passage, "hash": about.text, "labels": labels},
            "suggestions": suggestions,
            "responses": responses,
            "vectors": {},
        }));
    }
    let left_out = without_text(unseen);
    let records = format!("{:#}\n", Value::Array(records)).into_bytes();
    let settings = format!("{:#}\n", settings()).into_bytes();
    Ok(Exported { files: vec![("", records), (".settings.json", settings)], left_out })
}

/// The id of a record, which is the same in every export.
fn record_id(about: &Decision) -> String {
    hashed(&[&about.question, &about.passage, &about.text, &about.perspective]).to_hex()[..32].to_owned()
}

fn hashed(parts: &[&str]) -> blake3::Hash {
    let mut hash = blake3::Hasher::new();
    for part in parts {
        hash.update(&(part.len() as u64).to_le_bytes()).update(part.as_bytes());
    }
    hash.finalize()
}

/// A user's UUID: the name itself if it is one, or a UUID derived from it (version 8, RFC 9562).
fn user_id(name: &str) -> String {
    let groups: Vec<usize> = name.split('-').map(str::len).collect();
    let hex = name.bytes().all(|byte| byte == b'-' || byte.is_ascii_digit() || (b'a'..=b'f').contains(&byte));
    if groups == [8, 4, 4, 4, 12] && hex {
        return name.to_owned();
    }
    let mut bytes = [0; 16];
    bytes.copy_from_slice(&hashed(&[name]).as_bytes()[..16]);
    bytes[6] = (bytes[6] & 0x0f) | 0x80;
    bytes[8] = (bytes[8] & 0x3f) | 0x80;
    let hex: String = bytes.iter().map(|byte| format!("{byte:02x}")).collect();
    format!("{}-{}-{}-{}-{}", &hex[..8], &hex[8..12], &hex[12..16], &hex[16..20], &hex[20..])
}

pub mod jsonl {
    //! One label a line, as JSON with named fields: what Hugging Face `datasets` loads, with a dataset card beside it. It holds everything,
    //! so it is also the side file of formats that do not.

    use std::path::Path;

    use serde::{Deserialize, Serialize};

    use crate::annotate::entry::{Decision, Seen};
    use crate::annotate::formats::{ExportError, Exported, Imported, Reading, date};
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
            let line: Line = serde_json::from_str(text).map_err(|error| {
                format!("a label with `statement`, `supports` and `passage_id` ({error})")
            })?;
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
}
