//! A table with a header: CSV, TSV, and DPR's `psgs_w100.tsv`.
//!
//! A quoted field of a CSV may hold line breaks, one of a TSV may not. A quote that is never closed is a bad line and does not
//! swallow what follows, which is why the rows are split here and not by a general reader.

use std::path::Path;

use serde_json::{Map, Value};

use super::columns::{Columns, Taken};
use super::import::{At, Refused, Sink};
use crate::input::{InputError, Lines, unquoted};

fn open(path: &Path, separator: char) -> Result<Lines, InputError> {
    if separator == ',' { Lines::rows(path) } else { Lines::open(path) }
}

/// The fields of a row.
fn fields(row: &str, separator: char) -> Result<Vec<String>, String> {
    let (mut fields, mut start, mut open) = (Vec::new(), 0, false);
    for (at, c) in row.char_indices() {
        // In a TSV a tab always separates.
        open ^= c == '"' && separator == ',';
        if c == separator && !open {
            fields.push(unquoted(&row[start..at])?);
            start = at + c.len_utf8();
        }
    }
    fields.push(unquoted(&row[start..])?);
    Ok(fields)
}

/// The names of the columns, and which of them are taken.
fn header(row: &str, separator: char, columns: &Columns) -> Result<(Vec<String>, Taken), String> {
    let names: Vec<String> = fields(row, separator)?.iter().map(|name| name.trim().to_owned()).collect();
    let expected = |wanted| format!("a header that names {wanted}");
    let taken = columns.among(names.iter().map(String::as_str)).map_err(expected)?;
    Ok((names, taken))
}

/// What the header says.
///
/// # Errors
/// The file cannot be read, or has no such header.
pub fn recognised(path: &Path, separator: char, columns: &Columns) -> Result<String, InputError> {
    let mut lines = open(path, separator)?;
    let kind = if separator == ',' { "CSV" } else { "TSV" };
    let Some(line) = lines.next_line()? else {
        lines.end()?;
        return Ok(format!("empty {kind}"));
    };
    match header(line.text, separator, columns) {
        Ok((names, taken)) if separator == '\t' && names == ["id", "text", "title"] => {
            Ok(format!("DPR TSV ({})", taken.told()))
        }
        Ok((_, taken)) => Ok(format!("{kind} ({})", taken.told())),
        Err(expected) => {
            lines.bad(expected);
            lines.end().map(|()| String::new())
        }
    }
}

/// Reads every row after line `done` into `sink`.
///
/// # Errors
/// There is no header, a row has not as many fields, or the sink refuses a passage.
pub fn read(
    path: &Path,
    separator: char,
    columns: &Columns,
    done: usize,
    sink: Sink<'_>,
) -> Result<(), InputError> {
    let mut lines = open(path, separator)?;
    let first = lines.next_line()?.map(|line| header(line.text, separator, columns));
    let (names, taken) = match first {
        None => return lines.end(),
        Some(Ok(header)) => header,
        Some(Err(expected)) => {
            lines.bad(expected);
            return lines.end();
        }
    };
    lines.skip_to(done)?;
    while let Some(line) = lines.next_line()? {
        let at = At { item: line.number, clean: line.clean, share: line.share };
        let taken = match passage(line.text, separator, &names, &taken) {
            Ok(passage) => sink(at, passage),
            Err(expected) => Err(Refused::Bad(expected)),
        };
        match taken {
            Ok(()) => {}
            Err(Refused::Bad(expected)) => lines.bad(expected),
            Err(Refused::Enough) => return Ok(()),
        }
    }
    lines.end()
}

fn passage(row: &str, separator: char, names: &[String], taken: &Taken) -> Result<super::Passage, String> {
    let fields = fields(row, separator)?;
    if fields.len() != names.len() {
        return Err(format!("{} fields, as the header has, and not {}", names.len(), fields.len()));
    }
    let known =
        |name: &String| *name == taken.id || *name == taken.text || Some(name) == taken.title.as_ref();
    let of = names.iter().zip(fields).filter(|(name, field)| known(name) || !field.is_empty());
    taken.passage(of.map(|(name, field)| (name.clone(), Value::String(field))).collect::<Map<_, _>>())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn separators_and_line_breaks_between_quotes_belong_to_the_field() {
        assert_eq!(fields("1,\"a, \"\"b\"\"\nc\",", ',').unwrap(), ["1", "a, \"b\"\nc", ""]);
        assert_eq!(
            fields("1\t\"a, \"\"b\"\"\"\tHe said \"hi\" twice", '\t').unwrap()[1..],
            ["a, \"b\"", "He said \"hi\" twice"]
        );
        assert!(fields("1\t\"a\tb", '\t').unwrap_err().contains("quotes that are closed"));
    }
}
