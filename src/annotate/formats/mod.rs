//! Files of labels, in and out, one file a format.
//!
//! A reader gives decisions and tells every row that it could not place; a writer gives files' contents and tells what the format
//! cannot carry. They must not touch the disk beyond the file that is read.
//!
//! | format | carries |
//! | --- | --- |
//! | [`tsv`] | everything, in named columns |
//! | [`qrels`] | one label a pair: what most annotators said |
//! | [`berds`] | every annotator's labels |
//! | [`label_studio`] | everything |
//! | [`argilla`] | everything |

pub mod argilla;
pub mod berds;
mod json;
pub mod label_studio;
pub mod qrels;
mod span;
mod tab;
#[cfg(test)]
mod tests;
mod times;
pub mod tsv;

pub use times::told as date_of;

use std::collections::BTreeMap;
use std::fmt;
use std::path::Path;

use super::{Decision, Material, Model, Row};
use crate::input::InputError;

/// The formats by name.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub enum Format {
    /// A table with a header: question, id, document, perspective, label, and columns for the rest.
    Tsv,
    /// TREC qrels: NAME.div.qrels per perspective, and NAME.qrels for any.
    Qrels,
    /// BERDS results with `*-preds`: booleans aligned with `perspectives`.
    Berds,
    /// Label Studio's tasks, as JSON.
    LabelStudio,
    /// Argilla's records, as JSON.
    Argilla,
}

/// What a reader is told beside the file.
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
    /// The plain decision of a row by `by`, or by whom the reader was told.
    fn decided(&self, row: &Row<'_>, by: Option<&str>, supports: bool) -> Result<Decision, String> {
        let by = by.or(self.by).ok_or(NOBODY)?;
        Ok(self.material.place(row)?.decided(by, supports, self.at))
    }
}

const NOBODY: &str = "the file does not say who labelled this; name the annotator with --by";

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
    fn take(&mut self, at: impl FnOnce() -> String, made: Result<Decision, String>) {
        match made {
            Ok(decision) => self.decisions.push(decision),
            Err(reason) => self.unmatched.push(Unmatched { at: at(), reason }),
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
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct ExportError(pub(super) String);

impl Format {
    /// Reads a file of labels.
    ///
    /// # Errors
    /// The file is not of this format. Rows about unknown questions or passages are no error.
    pub fn read(self, path: &Path, reading: &Reading<'_>) -> Result<Imported, InputError> {
        match self {
            Format::Tsv => tsv::read(path, reading),
            Format::Qrels => qrels::read(path, reading),
            Format::Berds => berds::read(path, reading),
            Format::LabelStudio => label_studio::read(path, reading),
            Format::Argilla => argilla::read(path, reading),
        }
    }

    /// Writes labels, and the detector's verdicts where the format has a place for them.
    ///
    /// # Errors
    /// The format cannot carry an id or a time.
    pub fn write(
        self,
        decisions: &[Decision],
        material: &Material<'_>,
        model: Option<&Model>,
    ) -> Result<Exported, ExportError> {
        match self {
            Format::Tsv => tsv::write(decisions, material),
            Format::Qrels => qrels::write(decisions, material),
            Format::Berds => berds::write(decisions, material),
            Format::LabelStudio => label_studio::write(decisions, material, model),
            Format::Argilla => argilla::write(decisions, material, model),
        }
    }
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
    let told: Vec<String> =
        parts.iter().filter(|(n, _)| *n > 0).map(|(n, what)| format!("{n} {what}")).collect();
    (!told.is_empty()).then(|| format!("left out, as the format has no place for it: {}", told.join(", ")))
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
    let told = times::told(decision.at);
    told.ok_or_else(|| ExportError(format!("a label of {} has a date beyond the year 9999", decision.by)))
}

/// What is told of passages whose text is not at hand.
fn unseen(n: usize) -> Vec<String> {
    let told =
        format!("{n} tasks have no text, as the corpus does not hold their passage as it was labelled");
    if n == 0 { Vec::new() } else { vec![told] }
}
