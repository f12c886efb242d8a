//! An annotator's journal: appended to, synced, never rewritten.
//!
//! Owns the order of things on disk: an act counts once its line is on the disk, and a failure leaves everything as it was.

use std::io;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use super::disk::{Open, keep_torn, open, state, sync_folder};
use super::lock::{Asked, Lock, Owner, now};
use super::steps::Steps;
use super::{Act, Entry, History, Key, Read};
use crate::input::InputError;

/// Why a journal was not opened, or an act not written down.
#[derive(Debug, thiserror::Error)]
pub enum JournalError {
    /// It cannot be read.
    #[error(transparent)]
    Input(#[from] InputError),
    /// A name that cannot be a file's.
    #[error("an annotator's name is of letters, digits, `-`, `_` and `.`, 1 to 60 of them, and begins with none of the signs; found {}", crate::input::excerpt(.0))]
    Name(String),
    /// It may only be read; why.
    #[error("{0}")]
    ReadOnly(String),
    /// The disk took nothing; what was on it before is still there.
    #[error("not written down: {}: {error}; make room or mend the disk and do it again", path.display())]
    Unwritable {
        /// The journal.
        path: PathBuf,
        /// What the system said.
        error: io::Error,
    },
}

/// The open journal of one annotator.
pub struct Journal {
    path: PathBuf,
    by: String,
    history: History,
    steps: Steps,
    lock: Result<Lock, String>,
    /// Size and time of the file when it was last read or written.
    seen: Option<(u64, Option<SystemTime>)>,
    /// Where its whole lines end, and whether the last one lacks its line feed.
    end: u64,
    unfed: bool,
    /// Entries that were in the file once and are no longer.
    lacking: Vec<String>,
    pub(super) disk: Open,
    pub(super) clock: fn() -> u64,
}

/// A journal, and what was found in its file.
pub struct Opened {
    /// The journal.
    pub journal: Journal,
    /// What the file holds. `read.told(path)` says what was passed over.
    pub read: Read,
}

impl Journal {
    /// Opens the journal `path` for the annotator `by`; the file is made with the first act. While another process holds it, or the
    /// disk or a later version forbids writing, it can be read only: see [`Journal::read_only`].
    ///
    /// # Errors
    /// The name cannot be a file's, or the file cannot be read.
    pub fn open(path: &Path, by: &str) -> Result<Opened, JournalError> {
        if !is_name(by) {
            return Err(JournalError::Name(by.into()));
        }
        let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty());
        let made = folder.map_or(Ok(()), std::fs::create_dir_all);
        // Before the file is read, so that nobody writes in between.
        let lock = match made.and_then(|()| Lock::ask(path, &Owner::here(by))) {
            Ok(Asked::Ours(lock)) => Ok(lock),
            Ok(Asked::Theirs(owner)) => {
                let owner = owner.map_or_else(|| "another process".into(), |owner| owner.to_string());
                Err(format!("{} is held by {owner}; it can only be read here", path.display()))
            }
            Err(error) => Err(format!("{} can only be read here: {error}", path.display())),
        };
        Journal::with(path, by, lock)
    }

    /// Opens it only to be looked at: nothing is locked, made or written.
    ///
    /// # Errors
    /// As [`Journal::open`].
    pub fn show(path: &Path, by: &str) -> Result<Opened, JournalError> {
        if !is_name(by) {
            return Err(JournalError::Name(by.into()));
        }
        let why = "it was opened only to be looked at; leave it and open it again to label";
        Journal::with(path, by, Err(why.into()))
    }

    fn with(path: &Path, by: &str, lock: Result<Lock, String>) -> Result<Opened, JournalError> {
        let mut journal = Journal {
            path: path.into(),
            by: by.into(),
            history: History::default(),
            steps: Steps::default(),
            lock,
            seen: None,
            end: 0,
            unfed: false,
            lacking: Vec::new(),
            disk: |path| Ok(Box::new(open(path)?)),
            clock: now,
        };
        let read = journal.look()?.unwrap_or_default();
        journal.steps = Steps::of(&journal.history, by);
        Ok(Opened { journal, read })
    }

    /// Everything that was written down.
    pub fn history(&self) -> &History {
        &self.history
    }

    /// Whose it is.
    pub fn by(&self) -> &str {
        &self.by
    }

    /// Where it lies.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Why nothing can be written, if that is so.
    pub fn read_only(&self) -> Option<&str> {
        self.lock.as_ref().err().map(String::as_str)
    }

    /// Writes an act down and waits until it is on the disk. It replaces whatever this annotator held of the passage, two views that
    /// are in conflict too.
    ///
    /// # Errors
    /// Nothing can be written; then nothing has changed.
    pub fn append(&mut self, act: Act) -> Result<Entry, JournalError> {
        let key = self.key(&act);
        let (entry, before) = self.write(act, &key)?;
        self.steps.did(before, &entry);
        Ok(entry)
    }

    /// Restores what stood before the last act that was not undone yet, of earlier runs too. None where there is nothing to undo.
    ///
    /// # Errors
    /// As [`Journal::append`].
    pub fn undo(&mut self) -> Result<Option<Entry>, JournalError> {
        let Some(act) = self.steps.to_undo() else { return Ok(None) };
        let key = self.key(&act);
        let (entry, _) = self.write(act, &key)?;
        self.steps.undone();
        Ok(Some(entry))
    }

    /// Does again what was undone last. None where there is nothing to do again.
    ///
    /// # Errors
    /// As [`Journal::append`].
    pub fn redo(&mut self) -> Result<Option<Entry>, JournalError> {
        let Some(act) = self.steps.to_redo() else { return Ok(None) };
        let key = self.key(&act);
        let (entry, _) = self.write(act, &key)?;
        self.steps.redone();
        Ok(Some(entry))
    }

    /// Writes down an act that takes the place of a view under another key as well: the passage has another id now.
    ///
    /// # Errors
    /// As [`Journal::append`].
    pub fn retie(&mut self, from: &Key, act: Act) -> Result<Entry, JournalError> {
        let (entry, before) = self.write(act, from)?;
        self.steps.did(before, &entry);
        Ok(entry)
    }

    /// Takes in entries of another journal that are not in this one.
    ///
    /// # Errors
    /// As [`Journal::append`].
    pub fn take(&mut self, entries: impl IntoIterator<Item = Entry>) -> Result<usize, JournalError> {
        self.ready()?;
        let new = entries.into_iter().filter(|entry| self.history.entry(&entry.id).is_none());
        let mut seen = std::collections::HashSet::new();
        let new: Vec<Entry> = new.filter(|entry| seen.insert(entry.id.clone())).collect();
        if !new.is_empty() || !self.lacking.is_empty() {
            self.put(&new)?;
        }
        let count = new.len();
        for entry in new {
            self.history.take(entry);
        }
        Ok(count)
    }

    /// Takes in what others have put into the file since; the new entries.
    ///
    /// # Errors
    /// The file cannot be read.
    pub fn refresh(&mut self) -> Result<Vec<Entry>, JournalError> {
        let known = self.history.len();
        self.look()?;
        Ok(self.history.entries().skip(known).cloned().collect())
    }

    fn key(&self, act: &Act) -> Key {
        Key { by: self.by.clone(), question: act.question.clone(), passage: act.passage.clone() }
    }

    fn write(&mut self, act: Act, also: &Key) -> Result<(Entry, Option<super::View>), JournalError> {
        self.ready()?;
        let key = self.key(&act);
        let conflict = self.history.heads(&key).len() > 1 && self.history.view(&key).is_none();
        let before = (!conflict).then(|| self.history.view(&key).cloned().unwrap_or_default());
        let mut was = self.history.heads_of(&act, &self.by);
        was.extend(self.history.heads(also).into_iter().map(|head| head.id.clone()));
        was.sort_unstable();
        was.dedup();
        let entry =
            Entry::new(act, &self.by, was, (self.clock)()).map_err(|error| self.failed(error.into()))?;
        self.put(std::slice::from_ref(&entry))?;
        self.history.take(entry.clone());
        Ok((entry, before))
    }

    /// Nothing forbids writing, and all that is in the file is known.
    fn ready(&mut self) -> Result<(), JournalError> {
        if self.lock.is_ok() {
            self.look()?;
        }
        self.lock.as_ref().map(drop).map_err(|reason| JournalError::ReadOnly(reason.clone()))
    }

    /// Reads the file if it is not as it was left: a machine that keeps folders alike may have put another in its place.
    fn look(&mut self) -> Result<Option<Read>, JournalError> {
        let state = state(&self.path);
        if self.seen.is_some() && self.seen == state {
            return Ok(None);
        }
        let read = Read::file(&self.path)?;
        if read.newer > 0 {
            self.lock = Err(format!(
                "{} was written by a later version of parallax; it can only be read here, until this one is updated",
                self.path.display()
            ));
        }
        for entry in &read.entries {
            self.history.take(entry.clone());
        }
        let there: std::collections::HashSet<&str> =
            read.entries.iter().map(|entry| entry.id.as_str()).collect();
        let lacking = self.history.entries().filter(|entry| !there.contains(entry.id.as_str()));
        self.lacking = lacking.map(|entry| entry.id.clone()).collect();
        (self.seen, self.end, self.unfed) = (state, read.end, read.unfed);
        Ok(Some(read))
    }

    /// Appends lines, with those that somebody took out of the file, and waits for the disk.
    fn put(&mut self, entries: &[Entry]) -> Result<(), JournalError> {
        let lacking = self.lacking.iter().filter_map(|id| self.history.entry(id));
        let mut bytes = if self.unfed { b"\n".to_vec() } else { Vec::new() };
        for entry in lacking.chain(entries) {
            let line = entry.line().map_err(|error| self.failed(error.into()))?;
            bytes.extend_from_slice(line.as_bytes());
            bytes.push(b'\n');
        }
        let new = !self.path.exists();
        // Whatever happens now, the file is looked at again before the next act.
        self.seen = None;
        keep_torn(&self.path, self.end).map_err(|error| self.failed(error))?;
        let mut disk = (self.disk)(&self.path).map_err(|error| self.failed(error))?;
        if let Err(error) = disk.put(self.end, &bytes) {
            // A full disk takes half a line. Should this fail as well, the half line is found as torn.
            let _ = disk.cut(self.end);
            return Err(self.failed(error));
        }
        if new {
            sync_folder(&self.path);
        }
        self.end += bytes.len() as u64;
        self.unfed = false;
        self.lacking.clear();
        self.seen = state(&self.path).filter(|(len, _)| *len == self.end);
        Ok(())
    }

    fn failed(&self, error: io::Error) -> JournalError {
        JournalError::Unwritable { path: self.path.clone(), error }
    }
}

/// Whether a name can be an annotator's: it becomes the name of a file.
pub fn is_name(name: &str) -> bool {
    let signs = |c: char| matches!(c, '-' | '_' | '.');
    (1..=60).contains(&name.chars().count())
        && !name.starts_with(signs)
        && name.chars().all(|c| c.is_alphanumeric() || signs(c))
        && !["pool", "project", "guidelines"].contains(&name)
}

#[cfg(test)]
mod damage_tests;
#[cfg(test)]
mod tests;
