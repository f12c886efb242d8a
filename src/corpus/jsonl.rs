//! A JSON object a line: BEIR's `corpus.jsonl`, Pyserini, Sphere, or fields of other names.

use std::path::Path;

use serde_json::{Map, Value};

use super::columns::{Columns, Taken};
use super::import::{At, Refused, Sink};
use crate::input::{InputError, Lines};

fn object(line: &str) -> Result<Map<String, Value>, String> {
    serde_json::from_str(line)
        .map_err(|error| format!("a JSON object with an id, a text and perhaps a title ({error})"))
}

/// What the first line looks like.
///
/// # Errors
/// The file cannot be read, or the first line is no such object.
pub fn recognised(path: &Path, columns: &Columns) -> Result<String, InputError> {
    let mut lines = Lines::open(path)?;
    let Some(line) = lines.next_line()? else {
        lines.end()?;
        return Ok("empty JSONL".into());
    };
    match object(line.text).and_then(|first| columns.among(first.keys().map(String::as_str))) {
        Ok(taken) => {
            let whose = match (taken.id.as_str(), taken.text.as_str()) {
                ("_id", "text") => "BEIR JSONL",
                (_, "contents") => "Pyserini JSONL",
                (_, "raw") => "Sphere JSONL",
                _ => "JSONL",
            };
            Ok(format!("{whose} ({})", taken.told()))
        }
        Err(expected) => {
            lines.bad(expected);
            lines.end().map(|()| String::new())
        }
    }
}

/// Reads every passage after line `done` into `sink`.
///
/// # Errors
/// A line is not such an object, has no id or no text, or the sink refuses it.
pub fn read(path: &Path, columns: &Columns, done: usize, sink: Sink<'_>) -> Result<(), InputError> {
    let mut lines = Lines::open(path)?;
    lines.skip_to(done)?;
    // The first line that has the fields says which they are.
    let mut known: Option<Taken> = None;
    while let Some(line) = lines.next_line()? {
        let at = At { item: line.number, clean: line.clean, share: line.share };
        let passage = object(line.text).and_then(|fields| {
            let taken = match known.take() {
                Some(taken) if fields.contains_key(&taken.text) && fields.contains_key(&taken.id) => taken,
                _ => columns.among(fields.keys().map(String::as_str))?,
            };
            known.insert(taken).passage(fields)
        });
        let refused = match passage {
            Ok(passage) => sink(at, passage),
            Err(expected) => Err(Refused::Bad(expected)),
        };
        match refused {
            Ok(()) => {}
            Err(Refused::Bad(expected)) => lines.bad(expected),
            Err(Refused::Enough) => return Ok(()),
        }
    }
    lines.end()
}
