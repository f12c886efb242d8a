//! A journal's bytes.
//!
//! Owns what is read from a file that a kill, a power cut or a disk may have damaged: whole lines count one by one, everything else
//! is told and left where it is. It must not know what the entries mean.

use std::fs;
use std::io::{self, ErrorKind};
use std::path::{Path, PathBuf};

use super::lock::{Asked, Lock, Owner};
use super::{Entry, History, entry::Line};
use crate::corpus::library::replace;
use crate::input::{BadLine, InputError};

/// What a journal holds.
#[derive(Debug, Default)]
pub struct Read {
    /// The entries, in the order of the file.
    pub entries: Vec<Entry>,
    /// Lines that are no entries. They are passed over and stay in the file.
    pub bad: Vec<BadLine>,
    /// Lines that a later version of this program wrote.
    pub newer: usize,
    /// Lines that repeat an earlier one.
    pub repeated: usize,
    /// Lines whose clock stands before that of an entry they replace. It harms nothing.
    pub backwards: Vec<usize>,
    /// Entries that were replaced and are not in the file themselves.
    pub missing: usize,
    /// Bytes behind the last whole line: half a line, or what a power cut left.
    pub torn: usize,
    /// Where the whole lines end.
    pub(super) end: u64,
    /// The last line is whole but for its line feed.
    pub(super) unfed: bool,
    /// The file's lines of a later version.
    kept: Vec<Vec<u8>>,
}

impl Read {
    /// Reads a journal; one that is not there yet is empty.
    ///
    /// # Errors
    /// The system does not let it be read.
    pub fn file(path: &Path) -> Result<Self, InputError> {
        match fs::read(path) {
            Ok(bytes) => Ok(Read::bytes(path, &bytes)),
            Err(error) if error.kind() == ErrorKind::NotFound => Ok(Read::default()),
            Err(error) => Err(InputError::unreadable(path, &error)),
        }
    }

    /// Reads the bytes of a journal.
    pub fn bytes(path: &Path, bytes: &[u8]) -> Self {
        let mut read = Read::default();
        let mut history = History::default();
        for (i, line) in bytes.split_inclusive(|byte| *byte == b'\n').enumerate() {
            let fed = line.ends_with(b"\n");
            let text = line.strip_suffix(b"\n").unwrap_or(line);
            // A line is the same after a trip through a system that ends lines otherwise.
            let text = text.strip_suffix(b"\r").unwrap_or(text);
            match Entry::read(text) {
                Line::Entry(entry) => {
                    let earlier = entry.was.iter().filter_map(|was| history.entry(was));
                    if earlier.map(|was| was.at).max().is_some_and(|at| at > entry.at) {
                        read.backwards.push(i + 1);
                    }
                    if history.take((*entry).clone()) {
                        read.entries.push(*entry);
                    } else {
                        read.repeated += 1;
                    }
                }
                Line::Newer => {
                    read.newer += 1;
                    read.kept.push(text.to_vec());
                }
                Line::Bad(_) if !fed => {
                    read.torn = line.len();
                    break;
                }
                Line::Bad(_) if text.trim_ascii().is_empty() => {}
                Line::Bad(expected) => read.bad.push(BadLine {
                    file: path.into(),
                    line: i + 1,
                    expected,
                    found: String::from_utf8_lossy(text).into_owned(),
                }),
            }
            read.unfed = !fed;
            read.end += line.len() as u64;
        }
        let was = read.entries.iter().flat_map(|entry| &entry.was);
        let missing: std::collections::HashSet<_> = was.filter(|id| history.entry(id).is_none()).collect();
        read.missing = missing.len();
        read
    }

    /// Nothing in it is damaged.
    pub fn is_whole(&self) -> bool {
        self.bad.is_empty() && self.torn == 0 && self.missing == 0
    }

    /// What was passed over, in a sentence for somebody who wants to work; none if nothing was.
    pub fn told(&self, path: &Path) -> Option<String> {
        let mut parts = Vec::new();
        let lines = |count: usize| if count == 1 { "1 line".to_owned() } else { format!("{count} lines") };
        if !self.bad.is_empty() {
            parts.push(format!("{} damaged", lines(self.bad.len())));
        }
        if self.torn > 0 {
            parts.push("the last line unfinished".to_owned());
        }
        if self.newer > 0 {
            parts.push(format!("{} of a later version of parallax", lines(self.newer)));
        }
        let path = path.display();
        (!parts.is_empty())
            .then(|| format!("{path}: {}; the rest counts (parallax annotate fsck {path})", parts.join(", ")))
    }
}

/// Puts a journal of the whole lines alone in the place of a damaged one, which is kept beside it; says under which name. None where
/// nothing is damaged.
///
/// # Errors
/// Somebody writes it, the file cannot be read, or the folder cannot be written.
pub fn repair(path: &Path) -> io::Result<Option<PathBuf>> {
    let _lock = match Lock::ask(path, &Owner::here("fsck"))? {
        Asked::Ours(lock) => lock,
        Asked::Theirs(owner) => {
            let owner = owner.map_or_else(|| "another process".into(), |owner| owner.to_string());
            return Err(io::Error::new(
                ErrorKind::WouldBlock,
                format!("it is held by {owner}; end that first"),
            ));
        }
    };
    let bytes = fs::read(path)?;
    let read = Read::bytes(path, &bytes);
    if read.bad.is_empty() && read.torn == 0 && read.repeated == 0 {
        return Ok(None);
    }
    let mut clean = Vec::with_capacity(bytes.len());
    for entry in &read.entries {
        clean.extend_from_slice(entry.line()?.as_bytes());
        clean.push(b'\n');
    }
    for line in &read.kept {
        clean.extend_from_slice(line);
        clean.push(b'\n');
    }
    let old = |i: usize| PathBuf::from(format!("{}.damaged-{i}", path.display()));
    let kept = (1..).map(old).find(|place| !place.exists()).unwrap_or_else(|| old(0));
    // Beside first: at no moment is there less on the disk than before.
    replace(&kept, &bytes)?;
    replace(path, &clean)?;
    Ok(Some(kept))
}
