//! Reads journal files, repairs damaged ones, and merges the journals of a folder.
//!
//! In a damaged file, every undamaged line still counts; damaged lines are reported and stay in the file. Must not interpret entries.

use std::collections::{HashMap, HashSet};
use std::fs;
use std::io::{self, ErrorKind};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::entry::{Entry, Line};
use super::history::History;
use crate::input::{BadLine, InputError, WHOLE, check_regular, read_regular};
use crate::storage::{self, Attempt, FileLock, Holder, Lines, replace};

/// The `.jsonl` file of a project that is not a journal.
pub(super) const POOL: &str = "pool.jsonl";

/// Why a journal is read-only.
#[derive(Clone, Debug, thiserror::Error)]
pub enum ReadOnly {
    /// Another process has it open for writing.
    #[error("{} is held by {holder}; it can only be read here", path.display())]
    Held {
        /// The journal.
        path: PathBuf,
        /// The process that holds it.
        holder: String,
    },
    /// Its lock cannot be taken.
    #[error("{} can only be read here: {error}", path.display())]
    NoLock {
        /// The journal.
        path: PathBuf,
        /// The system's error.
        error: Arc<io::Error>,
    },
    /// It was opened by [`super::Journal::show`].
    #[error("it was opened for reading; leave it and open it again to label")]
    Shown,
    /// A later version of this program wrote to it.
    #[error("{} was written by a later version of parallax; it can only be read here, until this one is updated", .0.display())]
    Newer(PathBuf),
}

/// Whether a name is valid for an annotator. It becomes the name of a file.
pub fn is_name(name: &str) -> bool {
    let punctuation = |c: char| matches!(c, '-' | '_' | '.');
    (1..=60).contains(&name.chars().count())
        && !name.starts_with(punctuation)
        && name.chars().all(|c| c.is_alphanumeric() || punctuation(c))
        && !["pool", "project", "guidelines"].contains(&name.to_lowercase().as_str())
}

/// Two of these names that are one name, or would share a journal on a file system that ignores case.
pub fn one_name<'a>(names: &'a [&'a str]) -> Option<(&'a str, &'a str)> {
    let mut known: Vec<(String, &str)> = Vec::new();
    for name in names {
        let lower = name.to_lowercase();
        if let Some((_, first)) = known.iter().find(|(other, _)| *other == lower) {
            return Some((first, name));
        }
        known.push((lower, name));
    }
    None
}

/// The content of a journal file.
#[derive(Debug, Default)]
pub struct Read {
    /// The entries, in the order of the file.
    pub entries: Vec<Entry>,
    /// Lines that are not entries. They are ignored and stay in the file.
    pub bad: Vec<BadLine>,
    /// Lines that a later version of this program wrote.
    pub newer: usize,
    /// Lines that repeat an earlier one.
    pub repeated: usize,
    /// Lines whose time is earlier than that of an entry they replace. This is harmless, because the ids decide the order.
    pub backwards: Vec<usize>,
    /// Replaced entries that are not in the file.
    pub missing: usize,
    /// Bytes after the last complete line, such as half a line after a power cut.
    pub torn: usize,
    /// Lines of a later version.
    newer_lines: Vec<Vec<u8>>,
}

impl Read {
    /// Reads a journal; a missing file is an empty journal.
    ///
    /// # Errors
    /// The file cannot be read.
    pub fn file(path: &Path) -> Result<Self, InputError> {
        let lines = check_regular(path, WHOLE).and_then(|()| storage::Journal::at(path).read());
        lines.map(|lines| Read::lines(path, &lines)).map_err(|error| InputError::unreadable(path, &error))
    }

    /// Reads the bytes of a journal.
    pub fn bytes(path: &Path, bytes: &[u8]) -> Self {
        Read::lines(path, &Lines::of(bytes.to_vec()))
    }

    fn lines(path: &Path, lines: &Lines) -> Self {
        let mut read = Read { torn: lines.torn().len(), ..Read::default() };
        // When each entry was written, by id.
        let mut known: HashMap<String, u64> = HashMap::new();
        for (i, text) in lines.iter().enumerate() {
            match Entry::read(text) {
                Line::Entry(entry) => {
                    let earlier = entry.was.iter().filter_map(|was| known.get(was));
                    if earlier.max().is_some_and(|at| *at > entry.at) {
                        read.backwards.push(i + 1);
                    }
                    if known.insert(entry.id.clone(), entry.at).is_none() {
                        read.entries.push(*entry);
                    } else {
                        read.repeated += 1;
                    }
                }
                Line::Newer => {
                    read.newer += 1;
                    read.newer_lines.push(text.to_vec());
                }
                Line::Bad(_) if text.trim_ascii().is_empty() => {}
                Line::Bad(expected) => read.bad.push(BadLine {
                    file: path.into(),
                    line: i + 1,
                    expected,
                    found: String::from_utf8_lossy(text).into_owned(),
                }),
            }
        }
        let was = read.entries.iter().flat_map(|entry| &entry.was);
        let missing: HashSet<&String> = was.filter(|id| !known.contains_key(*id)).collect();
        read.missing = missing.len();
        read
    }

    /// Whether nothing is damaged.
    pub fn is_whole(&self) -> bool {
        self.bad.is_empty() && self.torn == 0 && self.missing == 0
    }

    /// Describes the lines that were ignored; `None` if the file is undamaged.
    pub fn damage(&self, path: &Path) -> Option<String> {
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

/// Replaces a damaged journal by its undamaged lines. The damaged file stays in the folder, under the name returned; `None` if nothing
/// is damaged.
///
/// # Errors
/// Another process has the journal open, the file cannot be read, or the folder cannot be written.
pub fn repair(path: &Path) -> io::Result<Option<PathBuf>> {
    let _lock = match FileLock::try_acquire(&path.with_extension("lock"), &Holder::here("fsck"))? {
        Attempt::Acquired(lock) => lock,
        Attempt::Held(holder) => {
            let holder = holder.map_or_else(|| "another process".into(), |holder| holder.to_string());
            return Err(io::Error::new(
                ErrorKind::WouldBlock,
                format!("it is held by {holder}; end that first"),
            ));
        }
    };
    let bytes = read_regular(path, WHOLE)?;
    let read = Read::bytes(path, &bytes);
    if read.bad.is_empty() && read.torn == 0 && read.repeated == 0 {
        return Ok(None);
    }
    let mut clean = Vec::with_capacity(bytes.len());
    for entry in &read.entries {
        clean.extend_from_slice(entry.line()?.as_bytes());
        clean.push(b'\n');
    }
    for line in &read.newer_lines {
        clean.extend_from_slice(line);
        clean.push(b'\n');
    }
    let old = |i: usize| PathBuf::from(format!("{}.damaged-{i}", path.display()));
    let copy = (1..).map(old).find(|place| !place.exists()).unwrap_or_else(|| old(0));
    // The copy is written first, so that nothing is lost if this is interrupted.
    replace(&copy, &bytes)?;
    replace(path, &clean)?;
    Ok(Some(copy))
}

/// The union of the journals at `paths` (files or folders), and notes on damaged lines. An empty folder is an empty history.
///
/// # Errors
/// A path does not exist, cannot be read, or is not a journal.
pub fn journals(paths: &[PathBuf]) -> Result<(History, Vec<String>), InputError> {
    let (mut history, mut notes) = (History::default(), Vec::new());
    for path in paths {
        let files = if path.is_dir() { in_folder(path)? } else { vec![path.clone()] };
        for file in files {
            if !file.exists() {
                let error = std::io::ErrorKind::NotFound.into();
                return Err(InputError::unreadable(&file, &error));
            }
            let read = Read::file(&file)?;
            notes.extend(read.damage(&file));
            if read.entries.is_empty() && read.newer == 0 && !read.bad.is_empty() && !path.is_dir() {
                return Err(InputError::BadLines(read.bad));
            }
            for entry in read.entries {
                history.take(entry);
            }
        }
    }
    Ok((history, notes))
}

/// The journals of a folder, by name.
pub(super) fn in_folder(folder: &Path) -> Result<Vec<PathBuf>, InputError> {
    let unreadable = |error: std::io::Error| InputError::unreadable(folder, &error);
    let mut files = Vec::new();
    for entry in fs::read_dir(folder).map_err(unreadable)? {
        let path = entry.map_err(unreadable)?.path();
        let pool = path.file_name().is_some_and(|name| name == POOL);
        if path.extension().is_some_and(|end| end == "jsonl") && !pool {
            files.push(path);
        }
    }
    files.sort();
    Ok(files)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::annotate::testing::{act, open};

    #[test]
    fn journals_of_a_folder_are_one_and_a_file_that_is_none_is_refused() {
        let folder = tempfile::tempdir().unwrap();
        let path = |name: &str| folder.path().join(name);
        open(&path("anna.jsonl")).append(act(1, true)).unwrap();
        fs::copy(path("anna.jsonl"), path("copy.jsonl")).unwrap();
        fs::write(path("pool.jsonl"), "{}\n").unwrap();
        let (history, notes) = journals(&[folder.path().into()]).unwrap();
        assert_eq!((history.len(), notes.len()), (1, 0));
        fs::write(path("notes.jsonl"), "my notes\n").unwrap();
        let (_, notes) = journals(&[folder.path().into()]).unwrap();
        assert!(notes[0].contains("1 line damaged"), "{notes:?}");
        let message = journals(&[path("notes.jsonl")]).unwrap_err().to_string();
        assert!(message.contains("notes.jsonl:1: expected a journal's line"), "{message}");
        assert!(journals(&[path("absent.jsonl")]).unwrap_err().to_string().contains("no such file"));
    }
}
