//! Label files, in and out: one file a format.
//!
//! A reader returns decisions and reports every row that it could not place. A writer returns the contents of files and reports what the format
//! has no place for. They read the given file and touch nothing else on the disk.
//!
//! | format | carries |
//! | --- | --- |
//! | [`tsv`] | everything, in named columns |
//! | [`qrels`] | one label a pair: what most annotators said |
//! | [`berds`] | every annotator's labels |
//! | [`label_studio`] | everything |
//! | [`argilla`] | everything |
//!
//! This file holds what they share: their input, their result, dates, and pieces of a passage. May use: annotate, input, measure, detect.

use std::collections::BTreeMap;
use std::{fmt, io};

use time::OffsetDateTime;
use time::format_description::well_known::Rfc3339;

use super::entry::Decision;
use super::material::{Material, Row, RowError};
use crate::measure::PerspectiveError;

pub mod argilla;
pub mod berds;
mod format;
pub mod label_studio;
pub mod qrels;
pub mod tsv;

pub use format::Format;

/// What a reader needs besides the file.
#[derive(Clone, Copy)]
pub struct Reading<'a> {
    /// Questions and passages.
    pub material: &'a Material<'a>,
    /// Whose labels they are, where the file does not say.
    pub by: Option<&'a str>,
    /// When they were made, where the file does not say, in milliseconds since 1970.
    pub at: u64,
}

impl Reading<'_> {
    /// The plain decision of a row, made by `by` or else by the annotator given to the reader.
    fn decided(&self, row: &Row<'_>, by: Option<&str>, supports: bool) -> Result<Decision, RowError> {
        let by = by.or(self.by).ok_or(RowError::Annotator)?;
        Ok(self.material.place(row)?.decided(by, supports, self.at))
    }
}

/// A row without a place here.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Unmatched {
    /// Where it stands in the file: `line 4`, `task 2`.
    pub at: String,
    /// What is not known.
    pub reason: String,
}

impl fmt::Display for Unmatched {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.at, self.reason)
    }
}

/// What a file said.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Imported {
    /// Labels that belong here.
    pub decisions: Vec<Decision>,
    /// Rows that do not.
    pub unmatched: Vec<Unmatched>,
}

impl Imported {
    fn take(&mut self, at: impl FnOnce() -> String, made: Result<Decision, RowError>) {
        match made {
            Ok(decision) => self.decisions.push(decision),
            Err(reason) => self.unmatched.push(Unmatched { at: at(), reason: reason.to_string() }),
        }
    }
}

/// What a writer made.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Exported {
    /// Files, by what is added to the name the user gave.
    pub files: Vec<(&'static str, Vec<u8>)>,
    /// What the format could not carry, in sentences.
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
    /// A label's date is beyond the year 9999; its annotator.
    #[error("a label of {0} has a date beyond the year 9999; correct the clock and label it again")]
    Date(String),
    /// A question has more perspectives than qrels are written with.
    #[error(transparent)]
    Perspective(#[from] PerspectiveError),
    /// An id cannot be a column of a TREC file.
    #[error(transparent)]
    Column(#[from] io::Error),
}

/// What of the decisions a format of bare labels leaves out, in a sentence; none if nothing.
fn beyond_labels(decisions: &[Decision]) -> Option<String> {
    let count = |has: fn(&Decision) -> bool| decisions.iter().filter(|decision| has(decision)).count();
    let parts = [
        (count(|one| one.evidence.is_some()), "evidence"),
        (count(|one| one.note.is_some()), "notes"),
        (count(|one| one.flagged), "marks for another look"),
        (count(|one| one.took.is_some()), "times taken"),
        (decisions.len(), "dates"),
    ];
    let parts: Vec<String> =
        parts.iter().filter(|(n, _)| *n > 0).map(|(n, what)| format!("{n} {what}")).collect();
    (!parts.is_empty()).then(|| format!("left out, as the format has no place for it: {}", parts.join(", ")))
}

/// Decisions by passage and statement, one an annotator: the latest.
fn groups(decisions: &[Decision]) -> Vec<Vec<&Decision>> {
    let mut groups: BTreeMap<[&str; 4], BTreeMap<&str, &Decision>> = BTreeMap::new();
    for one in decisions {
        let group = groups.entry([&one.question, &one.passage, &one.text, &one.perspective]).or_default();
        let standing = group.entry(&one.by).or_insert(one);
        if standing.at <= one.at {
            *standing = one;
        }
    }
    groups.into_values().map(|group| group.into_values().collect()).collect()
}

/// When it was decided, as other tools write dates.
fn date(decision: &Decision) -> Result<String, ExportError> {
    date_text(decision.at).ok_or_else(|| ExportError::Date(decision.by.clone()))
}

/// A note on passages whose text is not available.
fn without_text(n: usize) -> Vec<String> {
    let note =
        format!("{n} tasks have no text, as the corpus does not hold their passage as it was labelled");
    if n == 0 { Vec::new() } else { vec![note] }
}

/// Milliseconds since 1970 as `2026-05-06T07:08:09.123Z`; none beyond the year 9999.
pub fn date_text(at: u64) -> Option<String> {
    let moment = OffsetDateTime::from_unix_timestamp_nanos(i128::from(at) * 1_000_000).ok()?;
    moment.format(&Rfc3339).ok()
}

/// The moment such a date names, on any offset.
fn date_millis(date: &str) -> Option<u64> {
    let moment = OffsetDateTime::parse(date.trim(), &Rfc3339).ok()?;
    u64::try_from(moment.unix_timestamp_nanos().div_euclid(1_000_000)).ok()
}

/// Where `piece` first stands in `text`, in characters; none where it does not or where counts could differ.
fn span_of(piece: &str, text: &str) -> Option<(usize, usize)> {
    if piece.is_empty() || text.chars().any(|c| c.len_utf16() > 1) {
        return None;
    }
    let start = text[..text.find(piece)?].chars().count();
    Some((start, start + piece.chars().count()))
}

/// The characters from `start` to `end`; none where there are not so many.
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
