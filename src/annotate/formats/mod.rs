//! Imports and exports of label files, one module per format.
//!
//! A reader returns decisions and reports every row that it could not match. A writer returns the contents of files and reports what the
//! format has no place for. Readers read only the given file, and writers write nothing to the disk.
//!
//! | format | holds |
//! | --- | --- |
//! | [`tsv`] | everything, in named columns, separated by tabs or commas |
//! | [`jsonl`] | everything, one label a line, with a dataset card |
//! | [`qrels`] | one label per pair: that of most annotators; the rest goes into a side file |
//! | [`berds`] | every annotator's labels; the rest goes into a side file |
//! | [`label_studio`] | everything |
//! | [`argilla`] | everything |
//!
//! This file holds what they share: input, results, dates, and spans of a passage. May use: annotate, input, measure, detect.

use std::collections::BTreeMap;
use std::{fmt, io};

use time::OffsetDateTime;
use time::format_description::well_known::Rfc3339;

use super::entry::Decision;
use super::material::{Material, Row, RowError};
use crate::measure::PerspectiveError;

pub mod argilla;
mod format;
pub mod label_studio;
pub mod qrels;
pub mod tsv;

pub use argilla::jsonl;

pub use qrels::berds;

pub use format::Format;

/// The input of a reader besides the file.
#[derive(Clone, Copy)]
pub struct Reading<'a> {
    /// Questions and passages.
    pub material: &'a Material<'a>,
    /// The annotator of labels for which the file names none.
    pub by: Option<&'a str>,
    /// The date of labels for which the file has none, in milliseconds since 1970.
    pub at: u64,
}

impl Reading<'_> {
    /// The decision of a row, by the annotator `by`, or if that is `None` by the annotator given to the reader.
    fn decided(&self, row: &Row<'_>, by: Option<&str>, supports: bool) -> Result<Decision, RowError> {
        let by = by.or(self.by).ok_or(RowError::Annotator)?;
        Ok(self.material.place(row)?.decided(by, supports, self.at))
    }
}

/// A row that was not imported.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Unmatched {
    /// Its place in the file: `line 4`, `task 2`.
    pub at: String,
    /// The reason.
    pub reason: String,
}

impl fmt::Display for Unmatched {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.at, self.reason)
    }
}

/// The content of a label file.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Imported {
    /// The labels.
    pub decisions: Vec<Decision>,
    /// Rows that match nothing here.
    pub unmatched: Vec<Unmatched>,
}

impl Imported {
    fn take(&mut self, at: impl FnOnce() -> String, decision: Result<Decision, RowError>) {
        match decision {
            Ok(decision) => self.decisions.push(decision),
            Err(reason) => self.unmatched.push(Unmatched { at: at(), reason: reason.to_string() }),
        }
    }
}

/// The result of a writer.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Exported {
    /// The contents of the files, each with the suffix to add to the user's file name.
    pub files: Vec<(&'static str, Vec<u8>)>,
    /// Sentences about what the format has no place for.
    pub left_out: Vec<String>,
}

/// Why labels could not be written in a format.
#[derive(Debug, thiserror::Error)]
pub enum ExportError {
    /// A text has as many tabs in one line as a row of the table, so a reader could not separate them.
    #[error(
        "a table cannot hold what {by} wrote about {passage}: one of its lines has as many tabs as the table has columns; export it to Label Studio's or Argilla's format"
    )]
    Tabs {
        /// The annotator.
        by: String,
        /// The passage's id.
        passage: String,
    },
    /// A label of this annotator has a date beyond the year 9999.
    #[error("a label of {0} has a date beyond the year 9999; correct the clock and label it again")]
    Date(String),
    /// A question has more perspectives than qrels are written with.
    #[error(transparent)]
    Perspective(#[from] PerspectiveError),
    /// An id cannot be a column of a TREC file.
    #[error(transparent)]
    Column(#[from] io::Error),
}

/// A sentence on what is lost in a format that holds only labels; `None` if nothing is.
fn beyond_labels(decisions: &[Decision]) -> Option<String> {
    let count = |has: fn(&Decision) -> bool| decisions.iter().filter(|decision| has(decision)).count();
    let parts = [
        (count(|one| one.evidence.is_some()), "evidence"),
        (count(|one| one.note.is_some()), "notes"),
        (count(|one| one.flagged), "marks for another look"),
        (count(|one| one.took.is_some()), "times taken"),
        (count(|one| one.seen.is_some()), "circumstances"),
        (decisions.len(), "dates"),
    ];
    let parts: Vec<String> =
        parts.iter().filter(|(n, _)| *n > 0).map(|(n, what)| format!("{n} {what}")).collect();
    (!parts.is_empty())
        .then(|| format!("the format has no place for {}; NAME{} holds them", parts.join(", "), jsonl::REST))
}

/// The labels of one annotator on one pair that contradict each other, each as the places of all its labels, in the order of the first.
pub fn contradictions(decisions: &[Decision]) -> Vec<Vec<usize>> {
    let mut pairs: BTreeMap<[&str; 5], Vec<usize>> = BTreeMap::new();
    for (at, one) in decisions.iter().enumerate() {
        let pair = [&*one.by, &*one.question, &*one.passage, &*one.text, &*one.perspective];
        pairs.entry(pair).or_default().push(at);
    }
    let differ = |group: &Vec<usize>| {
        let mut said = group.iter().map(|at| decisions[*at].supports);
        let first = said.next();
        said.any(|other| Some(other) != first)
    };
    let mut found: Vec<Vec<usize>> = pairs.into_values().filter(differ).collect();
    found.sort();
    found
}

/// Groups decisions by passage and statement, with the latest decision of each annotator.
fn groups(decisions: &[Decision]) -> Vec<Vec<&Decision>> {
    let mut groups: BTreeMap<[&str; 4], BTreeMap<&str, &Decision>> = BTreeMap::new();
    for one in decisions {
        let group = groups.entry([&one.question, &one.passage, &one.text, &one.perspective]).or_default();
        let latest = group.entry(&one.by).or_insert(one);
        if latest.at <= one.at {
            *latest = one;
        }
    }
    groups.into_values().map(|group| group.into_values().collect()).collect()
}

/// The date of a decision, as other tools write dates.
fn date(decision: &Decision) -> Result<String, ExportError> {
    date_text(decision.at).ok_or_else(|| ExportError::Date(decision.by.clone()))
}

/// A note on passages whose text is not available.
fn without_text(n: usize) -> Vec<String> {
    let note = format!(
        "{n} tasks have no text, because the corpus no longer has the labelled text of their passages"
    );
    if n == 0 { Vec::new() } else { vec![note] }
}

/// Milliseconds since 1970 as `2026-05-06T07:08:09.123Z`; `None` beyond the year 9999.
pub fn date_text(at: u64) -> Option<String> {
    let moment = OffsetDateTime::from_unix_timestamp_nanos(i128::from(at) * 1_000_000).ok()?;
    moment.format(&Rfc3339).ok()
}

/// Parses such a date, with any offset, into milliseconds since 1970.
fn date_millis(date: &str) -> Option<u64> {
    let moment = OffsetDateTime::parse(date.trim(), &Rfc3339).ok()?;
    u64::try_from(moment.unix_timestamp_nanos().div_euclid(1_000_000)).ok()
}

/// The first occurrence of `piece` in `text`, in characters. `None` if there is none, or if programs could count the characters
/// differently.
fn span_of(piece: &str, text: &str) -> Option<(usize, usize)> {
    if piece.is_empty() || text.chars().any(|c| c.len_utf16() > 1) {
        return None;
    }
    let start = text[..text.find(piece)?].chars().count();
    Some((start, start + piece.chars().count()))
}

/// The characters from `start` to `end`; `None` if the text is shorter.
fn cut_span(text: &str, start: usize, end: usize) -> Option<String> {
    let piece: String = text.chars().skip(start).take(end.checked_sub(start)?).collect();
    (piece.chars().count() == end - start).then_some(piece)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dates_come_back_to_the_millisecond() {
        for at in [0, 1, 999, 1_715_000_889_123, 253_402_300_799_999] {
            assert_eq!(date_millis(&date_text(at).unwrap()), Some(at));
        }
        assert_eq!(date_text(u64::MAX), None);
        assert_eq!(date_millis("2024-03-05T10:35:38.123456Z"), Some(1_709_634_938_123));
        assert_eq!(date_millis("2024-03-05T11:35:38.123+01:00"), Some(1_709_634_938_123));
        assert_eq!(date_millis("yesterday"), None);
    }

    #[test]
    fn a_piece_comes_back_by_its_numbers_or_has_none() {
        let text = "Žlutý kůň — حصان";
        for piece in ["Žlutý", "ůň", "حصان", text] {
            let (start, end) = span_of(piece, text).unwrap();
            assert_eq!(cut_span(text, start, end).as_deref(), Some(piece));
        }
        assert_eq!(span_of("horse", text), None);
        assert_eq!(span_of("a", "a 🐎"), None);
        assert_eq!(cut_span(text, 3, 2), None);
        assert_eq!(cut_span(text, 3, 99), None);
    }
}
