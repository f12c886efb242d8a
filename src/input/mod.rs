//! Reading a user's files: plain or compressed, line by line; what a bad line is, and how bad lines are told.
//!
//! Owns [`BadLine`] and [`InputError`], which every reader of a user's file returns. It must not know any
//! format.

mod field;
mod lines;
mod open;

pub use field::unquoted;
pub use lines::{LONGEST, Line, Lines, lines};
pub use open::{bounded, ending, is_standard_input, open, open_whole, read_at, stem, text};

use std::fmt;
use std::io;
use std::path::{Path, PathBuf};

/// How many bad lines are told at once; the rest are counted.
pub const TOLD: usize = 20;

/// After so many bad lines a file is read no further: it is of another format.
pub const ENOUGH: usize = 1_000;

/// One line that could not be read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BadLine {
    /// The file.
    pub file: PathBuf,
    /// The line, from 1.
    pub line: usize,
    /// What was expected there.
    pub expected: String,
    /// What stood there.
    pub found: String,
}

impl fmt::Display for BadLine {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "{}:{}: expected {}, found {}",
            self.file.display(),
            self.line,
            self.expected,
            excerpt(&self.found)
        )
    }
}

/// Why a user's file or folder was not read. Nothing of it was taken.
#[derive(Debug, thiserror::Error)]
pub enum InputError {
    /// The file or folder could not be opened or read.
    #[error("{}: {reason}", path.display())]
    Unreadable {
        /// The file or folder.
        path: PathBuf,
        /// What the system said, in its words, or what to do.
        reason: String,
    },
    /// Some lines are not what the format asks for.
    #[error("{}", told(.0))]
    BadLines(Vec<BadLine>),
    /// There is nothing in it.
    #[error("{}: {what} is empty; {advice}", path.display())]
    Empty {
        /// The file or folder.
        path: PathBuf,
        /// What it was read as.
        what: &'static str,
        /// What to do.
        advice: &'static str,
    },
}

impl InputError {
    /// An unreadable file, with the system's reason.
    pub fn unreadable(path: &Path, error: &io::Error) -> Self {
        let reason = match error.kind() {
            io::ErrorKind::NotFound => "no such file or folder".into(),
            io::ErrorKind::InvalidData => "not UTF-8 text; convert it with `iconv -t utf-8`".into(),
            io::ErrorKind::UnexpectedEof => {
                "the compressed file is cut short; nothing was taken from it, fetch it again".into()
            }
            _ => error.to_string(),
        };
        InputError::Unreadable { path: path.into(), reason }
    }
}

fn told(lines: &[BadLine]) -> String {
    let mut text: Vec<String> = lines.iter().take(TOLD).map(ToString::to_string).collect();
    if lines.len() > TOLD {
        let least = if lines.len() >= ENOUGH { "at least " } else { "" };
        text.push(format!("… and {least}{} more bad lines", lines.len() - TOLD));
    }
    text.push("nothing was taken from it; mend the lines above and try again".into());
    text.join("\n")
}

/// Characters of what somebody else says that are repeated.
const REPEATED: usize = 300;

/// What a server or a parser of others says, short and safe to print.
pub fn tame(said: &str) -> String {
    let mut chars = said.trim().chars();
    let mut tame: String =
        chars.by_ref().take(REPEATED).map(|c| if is_harmful(c) { '·' } else { c }).collect();
    if chars.next().is_some() {
        tame.push('…');
    }
    tame
}

/// Moves the cursor, colours the terminal, or turns the order of letters.
fn is_harmful(c: char) -> bool {
    c.is_control() || matches!(c, '\u{200e}' | '\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
}

/// The beginning of a text, safe to print in a message.
pub fn excerpt(text: &str) -> String {
    let mut out = String::from("`");
    for (i, c) in text.chars().enumerate() {
        if i == 60 {
            out.push('…');
            break;
        }
        out.push(if is_harmful(c) { '·' } else { c });
    }
    out.push('`');
    out
}
