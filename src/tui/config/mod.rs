//! The user's settings from one TOML file: theme, glyphs, mouse, layout and keys. A flag overrides the environment, which overrides the
//! file, which overrides the defaults.
//!
//! All problems of a file are reported together, each with its line and column, what was expected and the nearest name. That is why the
//! reader walks the parsed table itself: serde's `deny_unknown_fields` stops at the first error.
//!
//! May use: keymap, theme, script; does not use screens.

use std::collections::HashSet;
use std::fmt;
use std::ops::Range;
use std::path::PathBuf;

use toml::Spanned;
use toml::de::{DeTable, DeValue};

use crate::input::nearest;
use crate::report::safe;

mod keys;
mod settings;

pub use settings::{Config, Layout, Mouse, Pictures, Source, Tint, read, watch};

#[cfg(test)]
mod tests;

/// The most problems that are reported of one file; a file with more is hardly a configuration.
const MOST: usize = 100;
/// The most characters of one message.
const LONGEST: usize = 1_000;

/// One problem.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Problem {
    /// Line and column, from 1; `None` for the whole file.
    pub at: Option<(usize, usize)>,
    /// What was expected, what was found, what to do.
    pub what: String,
}

impl Problem {
    /// A problem of the whole file.
    pub fn of_file(what: String) -> Self {
        Problem { at: None, what }
    }

    /// A problem at a byte of a text.
    pub fn at(text: &str, byte: usize, what: String) -> Self {
        Problem { at: Some(place(text, byte)), what }
    }
}

/// Returns line and column of a byte, from 1; columns count characters.
pub fn place(text: &str, byte: usize) -> (usize, usize) {
    let before = text.get(..byte).unwrap_or(text);
    let start = before.rfind('\n').map_or(0, |at| at + 1);
    (before.matches('\n').count() + 1, before[start..].chars().count() + 1)
}

/// All problems of a file, in the order of the file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Problems {
    /// The file.
    pub file: PathBuf,
    /// The problems; at least one.
    pub all: Vec<Problem>,
}

impl Problems {
    /// Returns one line per problem: `FILE:LINE:COLUMN: …`.
    pub fn lines(&self) -> impl Iterator<Item = String> {
        self.all.iter().map(|problem| match problem.at {
            Some((line, column)) => format!("{}:{line}:{column}: {}", self.file.display(), problem.what),
            None => format!("{}: {}", self.file.display(), problem.what),
        })
    }

    /// Returns the first problem in one line, with the file's name instead of its path, and the number of further ones.
    pub fn short(&self) -> String {
        let name = self.file.file_name().unwrap_or(self.file.as_os_str()).to_string_lossy().into_owned();
        let short = Problems { file: name.into(), all: self.all.iter().take(1).cloned().collect() };
        let more = self.all.len() - short.all.len();
        let more = if more == 0 { String::new() } else { format!(" (and {more} more)") };
        format!("{}{more}", short.lines().collect::<String>())
    }
}

impl fmt::Display for Problems {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for line in self.lines() {
            writeln!(f, "{line}")?;
        }
        f.write_str("nothing was taken from it; correct these lines and try again")
    }
}

impl std::error::Error for Problems {}

/// Returns a table's entries in the order of the file.
fn in_order<'a, 'i>(
    table: &'a DeTable<'i>,
) -> Vec<(&'a Spanned<std::borrow::Cow<'i, str>>, &'a Spanned<DeValue<'i>>)> {
    let mut all: Vec<_> = table.iter().collect();
    all.sort_by_key(|(name, _)| name.span().start);
    all
}

/// Returns `did you mean …?` with the nearest of the names, or lists them all if none is near.
fn suggest(text: &str, names: &[impl AsRef<str>]) -> String {
    let names: Vec<&str> = names.iter().map(AsRef::as_ref).collect();
    match nearest(text, names.iter().copied()) {
        Some(name) => format!("did you mean `{name}`?"),
        None => format!("expected one of {}", names.join(", ")),
    }
}

/// Collects the problems of one text.
struct Collector<'t> {
    text: &'t str,
    found: Vec<(usize, String)>,
}

impl<'t> Collector<'t> {
    pub fn of(text: &'t str) -> Self {
        Collector { text, found: Vec::new() }
    }

    /// Adds a problem. Messages quote the file, so they are made safe for a terminal and shortened.
    pub fn add(&mut self, at: Range<usize>, what: String) {
        let mut what = safe::line(&what);
        if let Some((cut, _)) = what.char_indices().nth(LONGEST) {
            what.replace_range(cut.., "…");
        }
        self.found.push((at.start, what));
    }

    /// Adds the problem that another value was expected.
    pub fn expected(&mut self, what: &str, value: &Spanned<DeValue<'_>>) {
        self.add(value.span(), format!("expected {what}, found {}", shown(value.get_ref())));
    }

    /// Returns the line of a byte.
    pub fn line(&self, at: usize) -> usize {
        place(self.text, at).0
    }

    /// Returns the table in a value; `example` is one of its settings.
    pub fn table<'a, 'i>(
        &mut self,
        value: &'a Spanned<DeValue<'i>>,
        example: &str,
    ) -> Option<&'a DeTable<'i>> {
        let table = value.get_ref().as_table();
        if table.is_none() {
            self.expected(&format!("a table with settings such as `{example}`"), value);
        }
        table
    }

    /// Returns the meaning of a text that must be one of these names.
    pub fn one_of<T: Copy>(&mut self, value: &Spanned<DeValue<'_>>, all: Vec<(&str, T)>) -> Option<T> {
        let text = value.get_ref().as_str();
        let found = text.and_then(|text| all.iter().find(|(name, _)| *name == text));
        if found.is_none() {
            let names: Vec<String> = all.iter().map(|(name, _)| format!("{name:?}")).collect();
            self.expected(&format!("one of {}", names.join(", ")), value);
        }
        found.map(|(_, meaning)| *meaning)
    }

    /// Returns a number in this range.
    pub fn number(&mut self, value: &Spanned<DeValue<'_>>, within: Range<u16>) -> Option<u16> {
        let number = value.get_ref().as_integer();
        let number = number.and_then(|number| u16::from_str_radix(number.as_str(), number.radix()).ok());
        let number = number.filter(|number| within.contains(number));
        if number.is_none() {
            self.expected(&format!("a number from {} to {}", within.start, within.end - 1), value);
        }
        number
    }

    /// Returns all problems in the order of the file. The first `syntax` ones are about TOML itself; one is dropped if a later problem
    /// at the same place says more.
    pub fn in_order(mut self, syntax: usize) -> Vec<Problem> {
        let settings = self.found.split_off(syntax);
        let places: HashSet<usize> = settings.iter().map(|(at, _)| *at).collect();
        self.found.retain(|(at, _)| !places.contains(at));
        self.found.extend(settings);
        self.found.sort_by_key(|(at, _)| *at);
        self.found.truncate(MOST);
        self.found.into_iter().map(|(at, what)| Problem::at(self.text, at, what)).collect()
    }
}

/// Formats a value as messages quote it.
fn shown(value: &DeValue<'_>) -> String {
    match value {
        DeValue::String(text) => format!("{:?}", text.chars().take(60).collect::<String>()),
        DeValue::Integer(number) => number.as_str().into(),
        DeValue::Float(number) => number.as_str().into(),
        DeValue::Boolean(is) => is.to_string(),
        DeValue::Datetime(date) => date.to_string(),
        DeValue::Array(_) => "a list".into(),
        DeValue::Table(_) => "a table".into(),
    }
}
