//! Reading line-based files: what a bad line is, and how bad lines are told.
//!
//! Owns [`BadLine`] and [`InputError`], which every reader of a user's file returns. It must not know any
//! format.

use std::fmt;
use std::io;
use std::path::{Path, PathBuf};

/// How many bad lines are told at once; the rest are counted.
pub const TOLD: usize = 20;

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
            _ => error.to_string(),
        };
        InputError::Unreadable { path: path.into(), reason }
    }
}

fn told(lines: &[BadLine]) -> String {
    let mut text: Vec<String> = lines.iter().take(TOLD).map(ToString::to_string).collect();
    if lines.len() > TOLD {
        text.push(format!("… and {} more bad lines", lines.len() - TOLD));
    }
    text.push("nothing was taken from it; mend the lines above and try again".into());
    text.join("\n")
}

/// The beginning of a text, safe to print in a message.
pub fn excerpt(text: &str) -> String {
    let mut out = String::from("`");
    for (i, c) in text.chars().enumerate() {
        if i == 60 {
            out.push('…');
            break;
        }
        out.push(if c.is_control() { '·' } else { c });
    }
    out.push('`');
    out
}

/// Calls `each` on every line of a text file with its number from 1, collecting the bad ones.
///
/// `each` returns what was expected when a line is not right. Blank lines are passed over.
///
/// # Errors
/// The file cannot be read, or any line was bad.
pub fn lines(path: &Path, mut each: impl FnMut(usize, &str) -> Result<(), String>) -> Result<(), InputError> {
    use std::io::BufRead;
    let unreadable = |error: io::Error| InputError::unreadable(path, &error);
    let mut reader = io::BufReader::new(std::fs::File::open(path).map_err(unreadable)?);
    let (mut bytes, mut number, mut bad) = (Vec::new(), 0, Vec::new());
    loop {
        bytes.clear();
        if reader.read_until(b'\n', &mut bytes).map_err(unreadable)? == 0 {
            break;
        }
        number += 1;
        let told = match std::str::from_utf8(&bytes) {
            Ok(line) => {
                let line = if number == 1 { line.trim_start_matches('\u{feff}') } else { line };
                let line = line.trim_end_matches(['\n', '\r']);
                if line.trim().is_empty() {
                    continue;
                }
                each(number, line)
            }
            Err(_) => Err("UTF-8 text".into()),
        };
        if let Err(expected) = told {
            bad.push(BadLine {
                file: path.into(),
                line: number,
                expected,
                found: String::from_utf8_lossy(&bytes).trim_end().into(),
            });
        }
    }
    if bad.is_empty() { Ok(()) } else { Err(InputError::BadLines(bad)) }
}
