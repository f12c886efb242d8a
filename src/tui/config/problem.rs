//! What is wrong in a configuration, and where.

use std::fmt;
use std::path::PathBuf;

/// One thing that is wrong.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Problem {
    /// Line and column, from 1; none where it is about the whole file.
    pub at: Option<(usize, usize)>,
    /// What was expected, what stood there, what to do.
    pub what: String,
}

impl Problem {
    /// About the whole file.
    pub fn of_file(what: String) -> Self {
        Problem { at: None, what }
    }

    /// At a byte of a text.
    pub fn at(text: &str, byte: usize, what: String) -> Self {
        Problem { at: Some(place(text, byte)), what }
    }
}

/// Line and column of a byte, from 1; columns are characters.
pub fn place(text: &str, byte: usize) -> (usize, usize) {
    let before = text.get(..byte).unwrap_or(text);
    let start = before.rfind('\n').map_or(0, |at| at + 1);
    (before.matches('\n').count() + 1, before[start..].chars().count() + 1)
}

/// All that is wrong in a file, in its order.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Problems {
    /// The file.
    pub file: PathBuf,
    /// At least one.
    pub all: Vec<Problem>,
}

impl Problems {
    /// A line each: `FILE:LINE:COLUMN: …`.
    pub fn lines(&self) -> impl Iterator<Item = String> {
        self.all.iter().map(|problem| match problem.at {
            Some((line, column)) => format!("{}:{line}:{column}: {}", self.file.display(), problem.what),
            None => format!("{}: {}", self.file.display(), problem.what),
        })
    }

    /// The first, in one line with the file's name alone.
    pub fn short(&self) -> String {
        let name = self.file.file_name().unwrap_or(self.file.as_os_str()).to_string_lossy().into_owned();
        let mut short = Problems { file: name.into(), all: self.all.iter().take(1).cloned().collect() };
        short.all.truncate(1);
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
        f.write_str("nothing was taken from it; mend what is above and try again")
    }
}

impl std::error::Error for Problems {}
