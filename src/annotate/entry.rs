//! One line of a journal: all labels of an annotator on one passage, with a checksum.
//!
//! A line is a JSON object whose last field, `id`, is a hash of all bytes before it. The id is both name and checksum: a damaged line has no
//! valid id, and equal entries on two machines have the same id.
//!
//! Must not read or write files.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::corpus::Passage;

/// The latest version of the lines that this program writes: those that say under which circumstances a decision was made. All other
/// lines have version 1, so that earlier programs read them.
pub const VERSION: u32 = 2;
/// The bytes between an entry and its id.
const BEFORE_ID: &str = ",\"id\":\"";
/// The number of hexadecimal digits of an id.
const DIGITS: usize = 32;

/// Everything that an annotator recorded about one passage under one question.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct View {
    /// Statements, word for word, and whether the passage supports them. A missing statement is undecided.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub answers: BTreeMap<String, bool>,
    /// The words of the passage that support or oppose a statement, by statement.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub evidence: BTreeMap<String, String>,
    /// A remark.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub note: Option<String>,
    /// Marked for another look.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub flagged: bool,
    /// Skipped for now.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub skipped: bool,
}

/// The circumstances of a decision.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Seen {
    /// Whether lane, rank and the model's verdict were hidden from the passage's appearance to the decision.
    pub blind: bool,
    /// [`guidelines_hash`] of the guidelines.
    pub guidelines: String,
    /// Why this decision settles a disagreement between annotators; `None` for a label of its own.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub settles: Option<String>,
    /// Whether the passage came a second time, to see whether its label would be the same.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub again: bool,
}

/// An annotator's action: it sets the view of a passage.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Act {
    /// The question, word for word.
    pub question: String,
    /// The passage's id in its corpus.
    pub passage: String,
    /// [`text_hash`] of the passage.
    pub text: String,
    /// The whole view.
    pub view: View,
    /// How long the passage was read, in milliseconds, if that was measured.
    pub took: Option<u64>,
    /// The circumstances; `None` if they are not known, as for imported labels.
    pub seen: Option<Seen>,
}

/// An action as written to a journal. It is never changed; a later entry replaces it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Entry {
    /// The version of the line.
    v: u32,
    /// The hash of the rest of the line.
    #[serde(skip)]
    pub id: String,
    /// The ids of the entries it replaces, sorted.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub was: Vec<String>,
    /// The time of writing, in milliseconds since 1970. Only `was` decides the order of entries.
    pub at: u64,
    /// The annotator's name.
    pub by: String,
    /// The question, word for word.
    pub question: String,
    /// The passage's id in its corpus.
    pub passage: String,
    /// [`text_hash`] of the passage.
    pub text: String,
    /// The view of the passage.
    #[serde(flatten)]
    pub view: View,
    /// How long the passage was read, in milliseconds, if that was measured.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub took: Option<u64>,
    /// The circumstances, if they are known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub seen: Option<Seen>,
}

/// The identity of a view.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Key {
    /// The annotator.
    pub by: String,
    /// The question, word for word.
    pub question: String,
    /// The passage's id.
    pub passage: String,
}

/// The kind of a line.
#[derive(Debug)]
pub enum Line {
    /// An entry.
    Entry(Box<Entry>),
    /// A line of a later version of this program.
    Newer,
    /// Anything else, with what was expected.
    Bad(String),
}

impl Entry {
    /// Makes the entry of an action, with its id.
    ///
    /// # Errors
    /// Those of writing JSON, which do not occur with texts.
    pub fn new(act: Act, by: &str, mut was: Vec<String>, at: u64) -> serde_json::Result<Self> {
        was.sort_unstable();
        let Act { question, passage, text, view, took, seen } = act;
        let (id, by) = (String::new(), by.to_owned());
        let v = if seen.is_some() { VERSION } else { 1 };
        let mut entry = Entry { v, id, was, at, by, question, passage, text, view, took, seen };
        entry.id = name(entry.body()?.as_bytes());
        Ok(entry)
    }

    /// The identity of its view.
    pub fn key(&self) -> Key {
        Key { by: self.by.clone(), question: self.question.clone(), passage: self.passage.clone() }
    }

    /// The entry's line in a journal, without the line feed.
    ///
    /// # Errors
    /// Those of writing JSON, which do not occur with texts.
    pub fn line(&self) -> serde_json::Result<String> {
        Ok(format!("{}{BEFORE_ID}{}\"}}", self.body()?, self.id))
    }

    /// The JSON object without its id and its last bracket.
    fn body(&self) -> serde_json::Result<String> {
        let mut body = serde_json::to_string(self)?;
        body.pop();
        Ok(body)
    }

    /// Reads a line without its line feed.
    pub fn read(line: &[u8]) -> Line {
        #[derive(Deserialize)]
        struct Version {
            v: u32,
        }
        let version = || serde_json::from_slice::<Version>(line).map(|line| line.v);
        let Some((body, id)) = split(line) else {
            return match version() {
                Ok(v) if v > VERSION => Line::Newer,
                _ => Line::Bad("a journal's line: a JSON object that ends with its `id`".into()),
            };
        };
        let expected = name(body);
        // Checked before the version, because a flipped bit may turn a 1 into a 5.
        if expected.as_bytes() != id {
            return Line::Bad(format!("the id {expected}, which belongs to the rest of the line"));
        }
        match serde_json::from_slice::<Entry>(line) {
            Ok(entry) if entry.v > VERSION => Line::Newer,
            Ok(entry) => {
                let entry = Entry { id: expected, ..entry };
                // Otherwise this program would write it with another id.
                match entry.line() {
                    Ok(same) if same.as_bytes() == line => Line::Entry(Box::new(entry)),
                    _ => {
                        Line::Bad("an entry as this program writes it, without other fields or blanks".into())
                    }
                }
            }
            Err(_) if version().is_ok_and(|v| v > VERSION) => Line::Newer,
            Err(error) => {
                Line::Bad(format!("a label with by, question, passage, text and answers ({error})"))
            }
        }
    }
}

/// Splits a line into the bytes that are hashed and the id.
fn split(line: &[u8]) -> Option<(&[u8], &[u8])> {
    let rest = line.strip_suffix(b"\"}")?;
    let (rest, id) = rest.split_at_checked(rest.len().checked_sub(DIGITS)?)?;
    Some((rest.strip_suffix(BEFORE_ID.as_bytes())?, id))
}

fn name(body: &[u8]) -> String {
    blake3::hash(body).to_hex()[..DIGITS].to_owned()
}

/// The hash of a passage's title and text. It identifies a passage whose id has changed.
pub fn text_hash(passage: &Passage) -> String {
    let mut hasher = blake3::Hasher::new();
    hasher.update(&(passage.title.len() as u64).to_le_bytes());
    hasher.update(passage.title.as_bytes()).update(passage.text.as_bytes());
    hasher.finalize().to_hex()[..DIGITS].to_owned()
}

/// The hash by which a decision names the guidelines it was made under. Line ends and blanks at either end do not matter.
pub fn guidelines_hash(text: &str) -> String {
    let mut hasher = blake3::Hasher::new();
    for line in text.trim().lines() {
        hasher.update(line.trim_end().as_bytes()).update(b"\n");
    }
    hasher.finalize().to_hex()[..DIGITS].to_owned()
}

/// An annotator's current label of one passage for one statement.
///
/// Question and statement are identified by their exact text, so an edited statement is a new one without labels.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Decision {
    /// The annotator's name.
    pub by: String,
    /// The question, word for word.
    pub question: String,
    /// The passage's id in its corpus.
    pub passage: String,
    /// [`text_hash`] of the passage.
    pub text: String,
    /// The statement, word for word.
    pub perspective: String,
    /// Whether the passage supports the statement.
    pub supports: bool,
    /// The words of the passage that show it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub evidence: Option<String>,
    /// A remark.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub note: Option<String>,
    /// Marked for another look.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub flagged: bool,
    /// When it was decided, in milliseconds since 1970.
    pub at: u64,
    /// How long the passage was read, in milliseconds, if that was measured.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub took: Option<u64>,
    /// The circumstances, if they are known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub seen: Option<Seen>,
}

impl Decision {
    /// Whether it settles a disagreement between annotators.
    pub fn settles(&self) -> bool {
        self.seen.as_ref().is_some_and(|seen| seen.settles.is_some())
    }

    /// Whether it was made with lane, rank and verdict hidden; `None` if that is not known.
    pub fn blind(&self) -> Option<bool> {
        self.seen.as_ref().map(|seen| seen.blind)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn entry() -> Entry {
        let answers = BTreeMap::from([("Yes — “so”.".to_owned(), true), ("No.\n".to_owned(), false)]);
        let view = View { answers, note: Some("\0 ü".into()), flagged: true, ..View::default() };
        let act = Act {
            question: "Q?".into(),
            passage: "p\"1".into(),
            text: "t".into(),
            view,
            took: Some(9),
            seen: None,
        };
        Entry::new(act, "anna", vec!["b".into(), "a".into()], 17).unwrap()
    }

    #[test]
    fn an_entry_that_is_written_is_read_back_the_same() {
        let entry = entry();
        let line = entry.line().unwrap();
        assert!(!line.contains('\n') && entry.was == ["a", "b"], "{line}");
        let Line::Entry(read) = Entry::read(line.as_bytes()) else { panic!("{line}") };
        assert_eq!(*read, entry);
        assert_eq!(read.line().unwrap(), line);
    }

    #[test]
    fn the_form_of_a_line_never_changes() {
        let view = View { answers: BTreeMap::from([("S.".to_owned(), true)]), ..View::default() };
        let act =
            Act { question: "Q?".into(), passage: "p".into(), text: "t".into(), view, ..Act::default() };
        let line = Entry::new(act, "a", Vec::new(), 1).unwrap().line().unwrap();
        let body = r#"{"v":1,"at":1,"by":"a","question":"Q?","passage":"p","text":"t","answers":{"S.":true}"#;
        assert_eq!(line, format!("{body},\"id\":\"{}\"}}", name(body.as_bytes())));
    }

    #[test]
    fn only_a_line_with_the_circumstances_has_the_second_version() {
        let act = |seen| Act {
            question: "Q?".into(),
            passage: "p".into(),
            text: "t".into(),
            seen,
            ..Act::default()
        };
        let line = |seen| Entry::new(act(seen), "a", Vec::new(), 1).unwrap().line().unwrap();
        assert!(line(None).starts_with(r#"{"v":1,"at":1"#));
        let seen = Seen { blind: true, guidelines: guidelines_hash("Read."), settles: None, again: false };
        let with = line(Some(seen.clone()));
        assert!(
            with.starts_with(r#"{"v":2,"at":1"#) && with.contains(r#""seen":{"blind":true,"guidelines":""#),
            "{with}"
        );
        let Line::Entry(read) = Entry::read(with.as_bytes()) else { panic!("{with}") };
        assert_eq!(read.seen, Some(seen));
        assert_eq!(guidelines_hash("Read. \r\nWell.\n\n"), guidelines_hash("Read.\nWell."));
        assert_ne!(guidelines_hash("Read."), guidelines_hash("Read well."));
    }

    #[test]
    fn a_flipped_bit_anywhere_makes_a_bad_line() {
        let line = entry().line().unwrap().into_bytes();
        for bit in 0..line.len() * 8 {
            let mut flipped = line.clone();
            flipped[bit / 8] ^= 1 << (bit % 8);
            assert!(matches!(Entry::read(&flipped), Line::Bad(_)), "bit {bit}");
        }
        for end in 0..line.len() {
            assert!(matches!(Entry::read(&line[..end]), Line::Bad(_)), "{end}");
        }
    }

    #[test]
    fn a_line_of_a_later_version_is_not_a_bad_one() {
        assert!(matches!(Entry::read(br#"{"v":3,"what":[1]}"#), Line::Newer));
        assert!(matches!(Entry::read(br#"{"v":1,"what":[1]}"#), Line::Bad(_)));
        assert!(matches!(Entry::read(b""), Line::Bad(_)));
        assert!(matches!(Entry::read(&[0; 90]), Line::Bad(_)));
    }

    #[test]
    fn title_and_text_both_count_and_so_does_where_they_part() {
        let hash = |title: &str, text: &str| {
            text_hash(&Passage { title: title.into(), text: text.into(), ..Passage::default() })
        };
        assert_eq!(hash("a", "b"), hash("a", "b"));
        assert_ne!(hash("a", "b"), hash("", "ab"));
        assert_ne!(hash("a", "b"), hash("a", "c"));
    }
}
