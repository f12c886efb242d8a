//! The parts that all importers share (the position in the source, the sink, and the columns of id, title and text), and the importer of
//! records: JSON lines (BEIR, Pyserini, Sphere), CSV, TSV, and DPR's `psgs_w100.tsv`.
//!
//! Known column names are those of published collections: BEIR (`_id`, `title`, `text`), Pyserini (`id`, `contents`), DPR (`id`,
//! `text`, `title`), Sphere (`id`, `title`, `raw`, `url`). All other columns become metadata. A quoted field of a CSV may contain line
//! breaks; a field of a TSV may not.

use std::fmt;
use std::path::Path;

use serde::de::{Deserialize, Deserializer, MapAccess, Visitor};
use serde_json::value::RawValue;
use serde_json::{Map, Number, Value};

use super::store::Passage;
use crate::input::{Expected, InputError, Lines, excerpt, fields};
use crate::work::{Job, Progress};

/// A passage's position in its source.
#[derive(Clone, Copy, Debug)]
pub struct At {
    /// The number of its item (line, row or file), from 1. Passages of one item are consecutive.
    pub item: usize,
    /// Whether everything before this item was valid.
    pub clean: bool,
    /// The share of the source read so far, from 0 to 1; 0 if unknown.
    pub share: f32,
}

impl At {
    /// The progress after `taken` passages. The total is extrapolated from the share read.
    pub fn progress(self, taken: u64) -> Progress {
        // The first hundredth says too little about the length of the passages.
        let total = if self.share < 0.01 { 0 } else { (taken as f64 / f64::from(self.share)).round() as u64 };
        Progress { job: Job::Importing, done: taken, total }
    }
}

/// Why the sink refused a passage.
#[derive(Debug)]
pub enum Refused {
    /// The passage is invalid. The importer reports it and goes on.
    Bad(Expected),
    /// No more passages are wanted. The importer stops.
    Enough,
}

/// Receives the passages of an importer.
pub type Sink<'a> = &'a mut dyn FnMut(At, Passage) -> Result<(), Refused>;

/// Columns for the id; the first one in the file is used.
const IDS: [&str; 3] = ["_id", "id", "docid"];
/// Columns for the title.
const TITLES: [&str; 1] = ["title"];
/// Columns for the text.
const TEXTS: [&str; 3] = ["text", "contents", "raw"];

/// Column names given by the user.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Columns {
    /// The column of the id.
    pub id: Option<String>,
    /// The column of the title.
    pub title: Option<String>,
    /// The column of the text.
    pub text: Option<String>,
}

/// The columns used.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Chosen {
    /// The column of the id.
    pub id: String,
    /// The column of the title, if there is one.
    pub title: Option<String>,
    /// The column of the text.
    pub text: String,
}

impl Columns {
    /// Chooses among the columns of a file.
    ///
    /// # Errors
    /// No column fits the id or the text, or one that the user named is missing.
    pub fn choose<'a>(&self, present: impl Iterator<Item = &'a str> + Clone) -> Result<Chosen, Expected> {
        let find = |wanted: &Option<String>, usual: &[&str]| match wanted {
            Some(name) => present.clone().find(|column| column == name),
            None => usual.iter().find_map(|name| present.clone().find(|column| column == name)),
        };
        let need = |wanted: &Option<String>, usual: &[&str], what: &str| {
            find(wanted, usual).map(str::to_owned).ok_or_else(|| {
                let name = wanted.clone().unwrap_or_else(|| usual.join("`, `"));
                format!(
                    "`{name}` for the {what} (there is {}; another can be named with `parallax corpus add FILE --{what} NAME`)",
                    list(present.clone())
                )
            })
        };
        let title = match &self.title {
            Some(_) => Some(need(&self.title, &TITLES, "title")?),
            None => find(&None, &TITLES).map(str::to_owned),
        };
        Ok(Chosen { id: need(&self.id, &IDS, "id")?, title, text: need(&self.text, &TEXTS, "text")? })
    }
}

fn list<'a>(columns: impl Iterator<Item = &'a str>) -> String {
    let names: Vec<String> = columns.take(12).map(excerpt).collect();
    if names.is_empty() { "none".into() } else { names.join(", ") }
}

impl Chosen {
    /// Describes the columns to the user: `id: _id, title: title, text: text`.
    pub fn describe(&self) -> String {
        let title = self.title.as_deref().unwrap_or("none");
        format!("id: {}, title: {title}, text: {}", self.id, self.text)
    }

    /// Builds a passage from the fields of an object.
    ///
    /// # Errors
    /// A field is missing or has the wrong type, or the id is empty.
    pub fn passage(&self, mut fields: Map<String, Value>) -> Result<Passage, Expected> {
        let missing = |name: &str| format!("a field `{name}`, as on the first line");
        let id = match fields.remove(&self.id).ok_or_else(|| missing(&self.id))? {
            Value::String(id) => id,
            Value::Number(id) => id.to_string(),
            _ => return Err(format!("a text or number in `{}`", self.id).into()),
        };
        if id.trim().is_empty() {
            return Err(format!("an `{}` that is not empty", self.id).into());
        }
        // A text may be empty: published corpora contain such passages.
        let Value::String(text) = fields.remove(&self.text).ok_or_else(|| missing(&self.text))? else {
            return Err(format!("a text in `{}`", self.text).into());
        };
        let title = match self.title.as_ref().and_then(|title| fields.remove(title)) {
            None | Some(Value::Null) => String::new(),
            Some(Value::String(title)) => title,
            Some(_) => return Err("a text as title".into()),
        };
        let mut metadata = match fields.remove("metadata") {
            Some(Value::Object(object)) => object,
            None | Some(Value::Null) => Map::new(),
            Some(other) => Map::from_iter([("metadata".to_owned(), other)]),
        };
        metadata.extend(fields);
        Ok(Passage { id, title, text, metadata })
    }
}

/// Describes a JSONL file by its first line: `BEIR JSONL (id: _id, title: title, text: text)`.
///
/// # Errors
/// The file cannot be read, or the first line is not an object with an id and a text.
pub fn describe_jsonl(path: &Path, columns: &Columns) -> Result<String, InputError> {
    first_line(Lines::open(path)?, "JSONL", |line| {
        let taken = object(line).and_then(|first| columns.choose(first.keys().map(String::as_str)))?;
        let kind = match (taken.id.as_str(), taken.text.as_str()) {
            ("_id", "text") => "BEIR JSONL",
            (_, "contents") => "Pyserini JSONL",
            (_, "raw") => "Sphere JSONL",
            _ => "JSONL",
        };
        Ok(format!("{kind} ({})", taken.describe()))
    })
}

/// Describes a table by its header: `CSV (id: id, title: none, text: text)`.
///
/// # Errors
/// The file cannot be read, or the header names no id or no text.
pub fn describe_table(path: &Path, separator: char, columns: &Columns) -> Result<String, InputError> {
    let kind = if separator == ',' { "CSV" } else { "TSV" };
    first_line(open(path, separator)?, kind, |line| {
        let (names, taken) = header(line, separator, columns)?;
        let kind = if separator == '\t' && names == ["id", "text", "title"] { "DPR TSV" } else { kind };
        Ok(format!("{kind} ({})", taken.describe()))
    })
}

fn first_line(
    mut lines: Lines,
    kind: &str,
    describe: impl Fn(&str) -> Result<String, Expected>,
) -> Result<String, InputError> {
    let described = match lines.next_line()? {
        Some(line) => describe(line.text),
        None => Ok(format!("empty {kind}")),
    };
    match described {
        Ok(text) => lines.end().map(|()| text),
        Err(expected) => {
            lines.bad(expected);
            lines.end().map(|()| String::new())
        }
    }
}

/// Reads every passage after line `done` into `sink`.
///
/// # Errors
/// A line is not a JSON object, has no id or no text, or the sink refuses the passage.
pub fn read_jsonl(path: &Path, columns: &Columns, done: usize, sink: Sink<'_>) -> Result<(), InputError> {
    // Lines may have different fields; the columns are chosen again only if the last choice does not fit.
    let mut last: Option<Chosen> = None;
    each_passage(Lines::open(path)?, done, sink, |line| {
        let fields = object(line)?;
        let taken = match last.take() {
            Some(taken) if fields.contains_key(&taken.text) && fields.contains_key(&taken.id) => taken,
            _ => columns.choose(fields.keys().map(String::as_str))?,
        };
        last.insert(taken).passage(fields)
    })
}

/// Reads every row after line `done` into `sink`.
///
/// # Errors
/// There is no header, a row has another number of fields, or the sink refuses a passage.
pub fn read_table(
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
    each_passage(lines, done, sink, |row| {
        let fields = fields(row, separator)?;
        if fields.len() != names.len() {
            return Err(format!("{} fields, as the header has, and not {}", names.len(), fields.len()).into());
        }
        let is_taken =
            |name: &String| *name == taken.id || *name == taken.text || Some(name) == taken.title.as_ref();
        let present = names.iter().zip(fields).filter(|(name, field)| is_taken(name) || !field.is_empty());
        taken.passage(present.map(|(name, field)| (name.clone(), Value::String(field))).collect())
    })
}

/// Hands the passage of every line after `done` to `sink` and collects the bad lines.
fn each_passage(
    mut lines: Lines,
    done: usize,
    sink: Sink<'_>,
    mut passage: impl FnMut(&str) -> Result<Passage, Expected>,
) -> Result<(), InputError> {
    lines.skip_to(done)?;
    while let Some(line) = lines.next_line()? {
        let at = At { item: line.number, clean: line.clean, share: line.share };
        let result = match passage(line.text) {
            Ok(passage) => sink(at, passage),
            Err(expected) => Err(Refused::Bad(expected)),
        };
        match result {
            Ok(()) => {}
            Err(Refused::Bad(expected)) => lines.bad(expected),
            Err(Refused::Enough) => return Ok(()),
        }
    }
    lines.end()
}

fn object(line: &str) -> Result<Map<String, Value>, Expected> {
    exact_object(line)
        .map_err(|error| format!("a JSON object with an id, a text and perhaps a title ({error})").into())
}

/// The deepest nesting of a line.
const DEEPEST: usize = 64;

/// Reads an object of JSON without changing it: a number that 64 bits do not hold as it stands becomes a text, and a key may occur only
/// once in its object.
///
/// # Errors
/// It is no such object.
pub fn exact_object(line: &str) -> Result<Map<String, Value>, String> {
    let fields: Fields<'_> = serde_json::from_str(line).map_err(|error| error.to_string())?;
    exact_fields(fields, 0)
}

fn exact_fields(Fields(fields): Fields<'_>, depth: usize) -> Result<Map<String, Value>, String> {
    let mut object = Map::new();
    for (key, raw) in fields {
        let value = exact(raw.get(), depth + 1)?;
        if let serde_json::map::Entry::Vacant(entry) = object.entry(&key) {
            entry.insert(value);
        } else {
            return Err(format!("the key {} occurs twice", excerpt(&key)));
        }
    }
    Ok(object)
}

fn exact(raw: &str, depth: usize) -> Result<Value, String> {
    let unread = |error: serde_json::Error| error.to_string();
    match raw.as_bytes().first() {
        _ if depth > DEEPEST => Err(format!("nested deeper than {DEEPEST} levels")),
        Some(b'{') => exact_fields(serde_json::from_str(raw).map_err(unread)?, depth).map(Value::Object),
        Some(b'[') => {
            let items: Vec<&RawValue> = serde_json::from_str(raw).map_err(unread)?;
            items
                .into_iter()
                .map(|item| exact(item.get(), depth + 1))
                .collect::<Result<_, _>>()
                .map(Value::Array)
        }
        Some(b'-' | b'0'..=b'9') => {
            let number = serde_json::from_str::<Number>(raw).ok().filter(|number| number.to_string() == raw);
            Ok(number.map_or_else(|| Value::String(raw.to_owned()), Value::Number))
        }
        _ => serde_json::from_str(raw).map_err(unread),
    }
}

/// The fields of an object as they stand, in order.
struct Fields<'a>(Vec<(String, &'a RawValue)>);

impl<'de: 'a, 'a> Deserialize<'de> for Fields<'a> {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        struct Object;
        impl<'de> Visitor<'de> for Object {
            type Value = Fields<'de>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("an object")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Fields<'de>, A::Error> {
                let mut fields = Vec::new();
                while let Some(field) = map.next_entry::<String, &RawValue>()? {
                    fields.push(field);
                }
                Ok(Fields(fields))
            }
        }
        from.deserialize_map(Object)
    }
}

fn open(path: &Path, separator: char) -> Result<Lines, InputError> {
    if separator == ',' { Lines::rows(path) } else { Lines::open(path) }
}

/// The names of the columns, and the chosen ones.
fn header(row: &str, separator: char, columns: &Columns) -> Result<(Vec<String>, Chosen), Expected> {
    let names: Vec<String> = fields(row, separator)?.iter().map(|name| name.trim().to_owned()).collect();
    let expected = |Expected(wanted)| Expected(format!("a header that names {wanted}"));
    let taken = columns.choose(names.iter().map(String::as_str)).map_err(expected)?;
    Ok((names, taken))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn passage(line: &str) -> Result<Passage, String> {
        let fields = object(line).map_err(|expected| expected.0)?;
        let chosen = Columns::default().choose(fields.keys().map(String::as_str)).map_err(|error| error.0)?;
        chosen.passage(fields).map_err(|error| error.0)
    }

    #[test]
    fn ids_and_numbers_of_any_size_stay_as_they_stand() {
        for id in
            ["123456789012345678901", "9007199254740993", "18446744073709551616", "1.50", "-0", "1e3", "7"]
        {
            let line = format!(r#"{{"_id": {id}, "text": "a", "doi": {id}, "more": {{"of": [{id}]}}}}"#);
            let read = passage(&line).unwrap();
            assert_eq!(read.id, id);
            let plain = |value: &Value| value.as_str().map_or_else(|| value.to_string(), str::to_owned);
            assert_eq!(
                (plain(&read.metadata["doi"]), plain(&read.metadata["more"]["of"][0])),
                (id.into(), id.into())
            );
        }
    }

    #[test]
    fn a_key_that_occurs_twice_is_refused_at_any_depth() {
        for line in [
            r#"{"_id": "1", "_id": "2", "text": "a"}"#,
            r#"{"_id": "1", "text": "a", "te\u0078t": "b"}"#,
            r#"{"_id": "1", "text": "a", "metadata": {"outlet": "A", "outlet": "B"}}"#,
            r#"{"_id": "1", "text": "a", "of": [{"x": 1, "x": 1}]}"#,
        ] {
            let error = passage(line).unwrap_err();
            assert!(error.contains("occurs twice"), "{line}: {error}");
        }
        let deep = format!(r#"{{"_id": "1", "text": "a", "of": {}1{}}}"#, "[".repeat(500), "]".repeat(500));
        assert!(passage(&deep).unwrap_err().contains("nested deeper"));
        assert!(passage(r#"["_id"]"#).is_err() && passage(r#"{"_id": "1", "text": "a"} x"#).is_err());
    }
}
