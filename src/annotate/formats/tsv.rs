//! A table of labels: `question`, `id`, `document`, `perspective`, `label`, and named columns for the rest.
//!
//! Read are `perspective`, `label`, and one of `id` and `document`; everything else may be missing. What is written can be read by
//! `--labels`, and by `detect --pairs`, so `document` has single spaces for all white space.

use std::path::Path;

use super::tab::{Fields, carries, field, rows};
use super::{Decision, ExportError, Exported, Imported, Material, Reading, Row};
use crate::detect::labels::truth;
use crate::input::{BadLine, InputError};

/// The columns as they are written.
const COLUMNS: [&str; 12] = [
    "question",
    "id",
    "document",
    "perspective",
    "label",
    "annotator",
    "evidence",
    "note",
    "flagged",
    "at",
    "took",
    "hash",
];

/// Reads the table.
///
/// # Errors
/// There is no such header, or a line is not right.
pub fn read(path: &Path, reading: &Reading<'_>) -> Result<Imported, InputError> {
    let mut rows = rows(path)?.into_iter();
    let bad = |line, expected: String, found: String| BadLine { file: path.into(), line, expected, found };
    let Some((line, header)) = rows.next() else {
        let advice = "expected a header that names id (or document), perspective and label";
        return Err(InputError::Empty { path: path.into(), what: "the label file", advice });
    };
    let place = |name: &str| header.iter().position(|column| column.as_deref() == Some(name));
    let [question, id, document, perspective, label, by, evidence, note, flagged, when, took, hash] =
        COLUMNS.map(place);
    if perspective.is_none() || label.is_none() || (id.is_none() && document.is_none()) {
        let expected =
            "a header that names `perspective`, `label`, and `id` or `document`, separated by tabs";
        let found = header.into_iter().flatten().collect::<Vec<_>>().join(" ");
        return Err(InputError::BadLines(vec![bad(line, expected.into(), found)]));
    }
    let (mut imported, mut told) = (Imported::default(), Vec::new());
    for (line, fields) in rows {
        let at = |place: Option<usize>| place.and_then(|place| fields.get(place)?.as_deref());
        let row = Row {
            question: at(question),
            passage: at(id),
            hash: at(hash),
            title: None,
            document: at(document),
            perspective: at(perspective).unwrap_or_default(),
        };
        match cells(at(label), at(flagged), at(when), at(took)) {
            Err(expected) => told.push(bad(line, expected, shown(&fields))),
            Ok(cells) => {
                let made = reading.decided(&row, at(by), cells.label).map(|decision| Decision {
                    evidence: at(evidence).map(str::to_owned),
                    note: at(note).map(str::to_owned),
                    flagged: cells.flagged,
                    at: cells.at.unwrap_or(decision.at),
                    took: cells.took,
                    ..decision
                });
                imported.take(|| format!("line {line}"), made);
            }
        }
    }
    if told.is_empty() { Ok(imported) } else { Err(InputError::BadLines(told)) }
}

/// The fields of a line that are no text.
struct Cells {
    label: bool,
    flagged: bool,
    at: Option<u64>,
    took: Option<u64>,
}

fn cells(
    label: Option<&str>,
    flagged: Option<&str>,
    at: Option<&str>,
    took: Option<&str>,
) -> Result<Cells, String> {
    let number = |text: Option<&str>, what: &str| {
        text.map(|text| text.trim().parse().map_err(|_| format!("{what} as a whole number of milliseconds")))
            .transpose()
    };
    Ok(Cells {
        label: truth(label.ok_or("a label of 1 or 0")?)?,
        flagged: flagged.map_or(Ok(false), truth)?,
        at: number(at, "a date since 1970")?,
        took: number(took, "a time")?,
    })
}

fn shown(fields: &Fields) -> String {
    fields.iter().map(|field| field.as_deref().unwrap_or_default()).collect::<Vec<_>>().join(" ")
}

/// Writes the table.
///
/// # Errors
/// A text has as many tabs in one of its lines as a whole row, so that no reader could tell them apart.
pub fn write(decisions: &[Decision], material: &Material<'_>) -> Result<Exported, ExportError> {
    let mut out = COLUMNS.join("\t") + "\n";
    for decision in decisions {
        let document = material.passage(decision).map(|passage| passage.text).unwrap_or_default();
        let document = document.split_whitespace().collect::<Vec<_>>().join(" ");
        let optional = |text: &Option<String>| text.as_deref().map(|text| field(text).into_owned());
        let number = |number: Option<u64>| number.map(|number| number.to_string());
        let row = [
            Some(field(&decision.question).into_owned()),
            Some(field(&decision.passage).into_owned()),
            (!document.is_empty()).then(|| field(&document).into_owned()),
            Some(field(&decision.perspective).into_owned()),
            Some(u8::from(decision.supports).to_string()),
            Some(field(&decision.by).into_owned()),
            optional(&decision.evidence),
            optional(&decision.note),
            Some(u8::from(decision.flagged).to_string()),
            number(Some(decision.at)),
            number(decision.took),
            Some(field(&decision.text).into_owned()),
        ];
        let row = row.map(Option::unwrap_or_default).join("\t");
        let texts =
            [&decision.question, &decision.passage, &decision.perspective, &decision.by, &decision.text];
        let all = texts.into_iter().chain(&decision.evidence).chain(&decision.note);
        if !all.into_iter().all(|text| carries(text, COLUMNS.len())) {
            return Err(ExportError(format!(
                "a table cannot carry what {} wrote about {}: one of its lines has as many tabs as the table has columns; export it to Label Studio's or Argilla's format",
                decision.by, decision.passage
            )));
        }
        out += &row;
        out.push('\n');
    }
    Ok(Exported { files: vec![("", out.into_bytes())], left_out: Vec::new() })
}
