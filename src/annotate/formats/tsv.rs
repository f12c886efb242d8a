//! A table of labels with a header: `question`, `id`, `document`, `perspective`, `label`, and named columns for the rest. Fields are
//! separated by tabs, or by commas (RFC 4180) for spreadsheets.
//!
//! `perspective`, `label`, and either `id` or `document` are required. `--labels` and `detect --pairs` can read the written file too,
//! because every white space in `document` is written as one space.
//!
//! A field counts as quoted only if it begins and ends with `"` and its inner quotes are doubled. It may hold tabs and line ends. `""`
//! is an empty text; an empty field is a missing text. An unbalanced quote is an error in its own line and does not affect later lines: if
//! a line inside a quoted field has the tabs of a whole row, the field should have ended before. The `csv` crate does neither: it reads to
//! the end of the file, and does not distinguish a missing field from an empty text.

use std::borrow::Cow;
use std::path::Path;

use super::{ExportError, Exported, Imported, Reading};
use crate::annotate::entry::{Decision, Seen};
use crate::annotate::material::{Material, Row};
use crate::detect::decision::truth;
use crate::input::{self, BadLine, Expected, InputError, excerpt};

/// The columns as they are written.
const COLUMNS: [&str; 16] = [
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
    "blind",
    "guidelines",
    "settles",
    "again",
];

/// What separates the fields of a table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Separator {
    /// A tab. A line with the tabs of a whole row is never inside a quoted field.
    Tab,
    /// A comma. A quoted field may hold any line.
    Comma,
}

impl Separator {
    fn sign(self) -> char {
        match self {
            Separator::Tab => '\t',
            Separator::Comma => ',',
        }
    }

    fn word(self) -> &'static str {
        match self {
            Separator::Tab => "tabs",
            Separator::Comma => "commas",
        }
    }
}

/// Reads the table.
///
/// # Errors
/// There is no such header, or a line is not valid.
pub fn read(path: &Path, reading: &Reading<'_>, by: Separator) -> Result<Imported, InputError> {
    let (separator, mut rows) = (by, rows(path, by)?.into_iter());
    let bad = |line, expected: String, found: String| BadLine { file: path.into(), line, expected, found };
    let Some((line, header)) = rows.next() else {
        let advice = "expected a header that names id (or document), perspective and label";
        return Err(InputError::Empty { path: path.into(), what: "the label file", advice });
    };
    let place = |name: &str| header.iter().position(|column| column.as_deref() == Some(name));
    let [
        question,
        id,
        document,
        perspective,
        label,
        by,
        evidence,
        note,
        flagged,
        when,
        took,
        hash,
        blind,
        guide,
        why,
        again,
    ] = COLUMNS.map(place);
    if perspective.is_none() || label.is_none() || (id.is_none() && document.is_none()) {
        let by = separator.word();
        let expected =
            format!("a header that names `perspective`, `label`, and `id` or `document`, separated by {by}");
        let found = header.into_iter().flatten().collect::<Vec<_>>().join(" ");
        return Err(InputError::BadLines(vec![bad(line, expected, found)]));
    }
    let (mut imported, mut bad_lines) = (Imported::default(), Vec::new());
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
        match cells([at(label), at(flagged), at(when), at(took), at(blind), at(again)]) {
            Err(Expected(expected)) => bad_lines.push(bad(line, expected, shown(&fields))),
            Ok(cells) => {
                let decision = reading.decided(&row, at(by), cells.label).map(|decision| Decision {
                    evidence: at(evidence).map(str::to_owned),
                    note: at(note).map(str::to_owned),
                    flagged: cells.flagged,
                    at: cells.at.unwrap_or(decision.at),
                    took: cells.took,
                    seen: cells.blind.map(|blind| Seen {
                        blind,
                        guidelines: at(guide).unwrap_or_default().to_owned(),
                        settles: at(why).map(str::to_owned),
                        again: cells.again,
                    }),
                    ..decision
                });
                imported.take(|| format!("line {line}"), decision);
            }
        }
    }
    if bad_lines.is_empty() { Ok(imported) } else { Err(InputError::BadLines(bad_lines)) }
}

/// The fields of a line that are not texts.
struct Cells {
    label: bool,
    flagged: bool,
    at: Option<u64>,
    took: Option<u64>,
    blind: Option<bool>,
    again: bool,
}

/// The row that a message shows may be cut before its label.
fn read_label(text: &str) -> Result<bool, Expected> {
    truth(text).map_err(|Expected(wanted)| Expected(format!("{wanted} in place of {}", excerpt(text))))
}

fn cells([label, flagged, at, took, blind, again]: [Option<&str>; 6]) -> Result<Cells, Expected> {
    let number = |text: Option<&str>, what: &str| {
        let wrong = || Expected(format!("{what} as a whole number of milliseconds"));
        text.map(|text| text.trim().parse().map_err(|_| wrong())).transpose()
    };
    Ok(Cells {
        label: read_label(label.ok_or("a label of 1 or 0")?)?,
        flagged: flagged.map_or(Ok(false), truth)?,
        at: number(at, "a date since 1970")?,
        took: number(took, "a time")?,
        blind: blind.map(truth).transpose()?,
        again: again.map_or(Ok(false), truth)?,
    })
}

fn shown(fields: &Fields) -> String {
    fields.iter().map(|field| field.as_deref().unwrap_or_default()).collect::<Vec<_>>().join(" ")
}

/// Writes the table.
///
/// # Errors
/// A text has as many tabs in one of its lines as a whole row, so a reader could not separate them.
pub fn write(
    decisions: &[Decision],
    material: &Material<'_>,
    by: Separator,
) -> Result<Exported, ExportError> {
    let field = |text: &str| field(text, by).into_owned();
    // Spreadsheets expect both line ends (RFC 4180).
    let (sign, end) = (by.sign().to_string(), if by == Separator::Comma { "\r\n" } else { "\n" });
    let mut out = COLUMNS.join(&sign) + end;
    for decision in decisions {
        let document = material.passage(decision).map(|passage| passage.text).unwrap_or_default();
        let document = document.split_whitespace().collect::<Vec<_>>().join(" ");
        let optional = |text: &Option<String>| text.as_deref().map(field);
        let number = |number: Option<u64>| number.map(|number| number.to_string());
        let row = [
            Some(field(&decision.question)),
            Some(field(&decision.passage)),
            (!document.is_empty()).then(|| field(&document)),
            Some(field(&decision.perspective)),
            Some(u8::from(decision.supports).to_string()),
            Some(field(&decision.by)),
            optional(&decision.evidence),
            optional(&decision.note),
            Some(u8::from(decision.flagged).to_string()),
            number(Some(decision.at)),
            number(decision.took),
            Some(field(&decision.text)),
            decision.seen.as_ref().map(|seen| u8::from(seen.blind).to_string()),
            decision.seen.as_ref().map(|seen| field(&seen.guidelines)),
            decision.seen.as_ref().and_then(|seen| seen.settles.as_deref().map(field)),
            decision.seen.as_ref().map(|seen| u8::from(seen.again).to_string()),
        ];
        let row = row.map(Option::unwrap_or_default).join(&sign);
        let texts =
            [&decision.question, &decision.passage, &decision.perspective, &decision.by, &decision.text];
        let seen = decision.seen.iter().flat_map(|seen| seen.settles.iter().chain([&seen.guidelines]));
        let mut all = texts.into_iter().chain(&decision.evidence).chain(&decision.note).chain(seen);
        if by == Separator::Tab && !all.all(|text| carries(text, COLUMNS.len())) {
            return Err(ExportError::Tabs { by: decision.by.clone(), passage: decision.passage.clone() });
        }
        out += &row;
        out += end;
    }
    Ok(Exported { files: vec![("", out.into_bytes())], left_out: Vec::new() })
}

/// A row's fields. `None` is a missing text (nothing between two tabs); `""` is an empty text.
pub type Fields = Vec<Option<String>>;

/// All rows, each with the number of its first line. Blank lines are skipped.
pub fn rows(path: &Path, by: Separator) -> Result<Vec<(usize, Fields)>, InputError> {
    let bytes = input::bytes(path)?;
    let bad = |line: usize, expected: String, found: &str| BadLine {
        file: path.into(),
        line,
        expected,
        found: found.into(),
    };
    let text = match std::str::from_utf8(&bytes) {
        Ok(text) => text.trim_start_matches('\u{feff}'),
        Err(error) => {
            let line = bytes[..error.valid_up_to()].iter().filter(|byte| **byte == b'\n').count() + 1;
            return Err(InputError::BadLines(vec![bad(line, "UTF-8 text".into(), "other bytes")]));
        }
    };
    let (mut rows, mut bad_lines, mut columns) = (Vec::new(), Vec::new(), None);
    let mut lines = text.split_inclusive('\n').enumerate();
    while let Some((i, first)) = lines.next() {
        if first.trim().is_empty() {
            continue;
        }
        let mut row = Cow::Borrowed(first);
        // If the quoted field turns out to be unbalanced, the lines after the first are read again as rows.
        let ahead = lines.clone();
        let read = loop {
            match split(&row, by) {
                Split::Whole(fields) => break Ok(fields),
                Split::Bad(expected) => break Err(expected),
                Split::Open => match lines.next() {
                    Some((_, next))
                        if by == Separator::Comma || columns.is_none_or(|columns| goes_on(next, columns)) =>
                    {
                        row.to_mut().push_str(next);
                    }
                    _ => break Err("a quote that is closed, or none"),
                },
            }
        };
        match read {
            Ok(fields) if columns.is_some_and(|columns| columns != fields.len()) => {
                let expected = format!("{} fields, as the header has", columns.unwrap_or_default());
                bad_lines.push(bad(i + 1, expected, &format!("{} in {}", fields.len(), row.trim_end())));
            }
            Ok(fields) => {
                columns.get_or_insert(fields.len());
                rows.push((i + 1, fields));
            }
            Err(expected) => {
                bad_lines.push(bad(i + 1, expected.into(), first.trim_end()));
                if by == Separator::Comma {
                    // Nothing shows where the next row begins.
                    break;
                }
                lines = ahead;
            }
        }
    }
    if bad_lines.is_empty() { Ok(rows) } else { Err(InputError::BadLines(bad_lines)) }
}

/// Whether a line may continue the open quoted field before it: the part inside the field must have fewer tabs than a whole row.
fn goes_on(next: &str, columns: usize) -> bool {
    let inside = match next.replace("\"\"", "  ").find('"') {
        Some(end) => &next[..end],
        None => next,
    };
    inside.matches('\t').count() + 1 < columns
}

/// Whether a text can be written to a table with this many columns and read back.
pub fn carries(text: &str, columns: usize) -> bool {
    text.split('\n').skip(1).all(|line| line.matches('\t').count() + 1 < columns)
}

enum Split {
    Whole(Fields),
    Open,
    Bad(&'static str),
}

fn split(row: &str, by: Separator) -> Split {
    let ended = row.strip_suffix('\n').map_or(row, |row| row.strip_suffix('\r').unwrap_or(row));
    let (mut fields, mut rest) = (Vec::new(), ended);
    loop {
        let after = match rest.strip_prefix('"') {
            None => {
                let end = rest.find(by.sign()).unwrap_or(rest.len());
                let field = &rest[..end];
                if field.ends_with('"') && field.matches('"').count() % 2 == 1 {
                    return Split::Bad("a quote that is opened, or none");
                }
                fields.push((!field.is_empty()).then(|| field.to_owned()));
                &rest[end..]
            }
            Some(mut inside) => {
                let mut field = String::new();
                loop {
                    let Some(end) = inside.find('"') else { return Split::Open };
                    field.push_str(&inside[..end]);
                    inside = &inside[end + 1..];
                    match inside.strip_prefix('"') {
                        Some(more) => {
                            field.push('"');
                            inside = more;
                        }
                        None => break,
                    }
                }
                fields.push(Some(field));
                inside
            }
        };
        match after.strip_prefix(by.sign()) {
            Some(next) => rest = next,
            None if after.is_empty() => return Split::Whole(fields),
            None if by == Separator::Comma => {
                return Split::Bad("a comma after a closed quote, or inner quotes doubled");
            }
            None => return Split::Bad("a tab after a closed quote, or inner quotes doubled"),
        }
    }
}

/// A text as a field: quoted if it is empty or has quotes, tabs, line ends or outer white space.
pub fn field(text: &str, by: Separator) -> Cow<'_, str> {
    let plain =
        !text.is_empty() && text.trim() == text && !text.contains(['"', by.sign(), '\n', '\r', '\u{feff}']);
    if plain { Cow::Borrowed(text) } else { Cow::Owned(format!("\"{}\"", text.replace('"', "\"\""))) }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> Result<Vec<(usize, Fields)>, String> {
        let file = tempfile::NamedTempFile::new().unwrap();
        std::fs::write(file.path(), text).unwrap();
        rows(file.path(), Separator::Tab).map_err(|error| error.to_string())
    }

    #[test]
    fn a_quoted_field_may_hold_tabs_and_line_ends_and_an_empty_one_is_not_none() {
        let rows = read("a\tb\tc\n1\t\"x\ty\r\n\n\"\"z\"\"\"\t\"\"\r\n\n2\t5\" pipe\t\n").unwrap();
        let fields = |texts: [Option<&str>; 3]| texts.map(|text| text.map(str::to_owned)).to_vec();
        assert_eq!(rows[1], (2, fields([Some("1"), Some("x\ty\r\n\n\"z\""), Some("")])));
        assert_eq!(rows[2], (6, fields([Some("2"), Some("5\" pipe"), None])));
    }

    #[test]
    fn an_unbalanced_quote_is_reported_with_its_line_and_swallows_nothing() {
        let rest = "1\tx\ty\n2\tx\ty\"\n3\tx\n";
        let message = read(&format!("a\tb\tc\n0\t\"x\ty\n{rest}")).unwrap_err();
        for line in [
            ":2: expected a quote that is closed",
            ":4: expected a quote that is opened",
            ":5: expected 3 fields",
        ] {
            assert!(message.contains(line), "{message}");
        }
        assert!(
            read("a\tb\n\"x\" he said\ty\n").unwrap_err().contains(":2: expected a tab after a closed quote")
        );
        assert!(read("a\tb\n\"x").unwrap_err().contains(":2: expected a quote that is closed"));
    }

    #[test]
    fn commas_separate_the_fields_of_a_spreadsheet_and_a_quoted_one_may_hold_any_line() {
        let file = tempfile::NamedTempFile::new().unwrap();
        let read = |text: &str| {
            std::fs::write(file.path(), text).unwrap();
            rows(file.path(), Separator::Comma).map_err(|error| error.to_string())
        };
        let made = read("a,b,c\r\n1,\"x, y\r\n1,2,3\n\"\"z\"\"\",\r\n").unwrap();
        let expected = [Some("1"), Some("x, y\r\n1,2,3\n\"z\""), None].map(|text| text.map(str::to_owned));
        assert_eq!(made[1], (2, expected.to_vec()));
        assert!(read("a,b\n1,\"x\n2,y\n").unwrap_err().contains(":2: expected a quote that is closed"));
        assert!(read("a,b\n1,2,3\n").unwrap_err().contains(":2: expected 2 fields"));
    }
}
