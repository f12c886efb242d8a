//! An annotator's journal: appended to, synced, never rewritten.
//!
//! An action counts once its line is on the disk. A failed write changes nothing.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::SystemTime;

use super::entry::{Act, Entry, Key};
use super::file::{Read, ReadOnly, is_name};
use super::history::{Decided, History, Steps};
use crate::input::InputError;
use crate::storage::{self, Attempt, FileLock, Holder, now_ms};

/// Why a journal was not opened, or an action was not written.
#[derive(Debug, thiserror::Error)]
pub enum JournalError {
    /// It cannot be read.
    #[error(transparent)]
    Input(#[from] InputError),
    /// The name is not a valid file name.
    #[error("expected an annotator's name of 1 to 60 letters, digits, `-`, `_` and `.` that begins with a letter or digit; found {}", crate::input::excerpt(.0))]
    Name(String),
    /// The journal can only be read.
    #[error(transparent)]
    ReadOnly(#[from] ReadOnly),
    /// Writing failed. The file is unchanged.
    #[error("not written down: {}: {error}; make room or repair the disk, then try again", path.display())]
    Unwritable {
        /// The journal.
        path: PathBuf,
        /// The system's error.
        error: io::Error,
    },
}

/// The open journal of one annotator.
pub struct Journal {
    pub(super) file: storage::Journal,
    by: String,
    history: History,
    steps: Steps,
    lock: Result<FileLock, ReadOnly>,
    /// Size and time of the file when this process last read or wrote it.
    seen: Option<(u64, Option<SystemTime>)>,
    /// Entries that were in the file but no longer are.
    lacking: Vec<String>,
    pub(super) clock: fn() -> u64,
}

/// An opened journal, and the content of its file.
pub struct Opened {
    /// The journal.
    pub journal: Journal,
    /// The file's content. `read.damage(path)` describes the lines that were ignored.
    pub read: Read,
}

impl Journal {
    /// Opens the journal `path` for the annotator `by`. The first action creates the file. The journal is read-only while another process
    /// holds it, if the disk cannot be written, and if a later version of this program wrote to it: see [`Journal::read_only`].
    ///
    /// # Errors
    /// `by` is not a valid file name, or the file cannot be read.
    pub fn open(path: &Path, by: &str) -> Result<Opened, JournalError> {
        if !is_name(by) {
            return Err(JournalError::Name(by.into()));
        }
        Journal::with(path, by, locked(path, by))
    }

    /// Opens the journal for reading. It locks, creates and writes nothing.
    ///
    /// # Errors
    /// As [`Journal::open`].
    pub fn show(path: &Path, by: &str) -> Result<Opened, JournalError> {
        if !is_name(by) {
            return Err(JournalError::Name(by.into()));
        }
        Journal::with(path, by, Err(ReadOnly::Shown))
    }

    fn with(path: &Path, by: &str, lock: Result<FileLock, ReadOnly>) -> Result<Opened, JournalError> {
        let mut journal = Journal {
            file: storage::Journal::at(path).private(),
            by: by.into(),
            history: History::default(),
            steps: Steps::default(),
            lock,
            seen: None,
            lacking: Vec::new(),
            clock: now_ms,
        };
        let read = journal.look()?.unwrap_or_default();
        journal.steps = Steps::of(&journal.history, by);
        Ok(Opened { journal, read })
    }

    /// All entries.
    pub fn history(&self) -> &History {
        &self.history
    }

    /// The annotator's name.
    pub fn by(&self) -> &str {
        &self.by
    }

    /// The file.
    pub fn path(&self) -> &Path {
        self.file.path()
    }

    /// Why the journal is read-only; `None` if it is writable.
    pub fn read_only(&self) -> Option<&ReadOnly> {
        self.lock.as_ref().err()
    }

    /// Appends an action and waits until it is on the disk. It replaces this annotator's view of the passage, or two conflicting views.
    ///
    /// # Errors
    /// The journal cannot be written; then nothing has changed.
    pub fn append(&mut self, act: Act) -> Result<Entry, JournalError> {
        let key = self.key(&act);
        let (entry, before) = self.write(act, &key)?;
        self.steps.did(before, &entry);
        Ok(entry)
    }

    /// Undoes the last action that is not undone yet, also of earlier runs; `None` if there is none.
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

    /// Redoes the last undone action; `None` if there is none.
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

    /// Appends an action that also replaces the view under another key, for a passage whose id has changed.
    ///
    /// # Errors
    /// As [`Journal::append`].
    pub fn retie(&mut self, from: &Key, act: Act) -> Result<Entry, JournalError> {
        let (entry, before) = self.write(act, from)?;
        self.steps.did(before, &entry);
        Ok(entry)
    }

    /// Appends the entries of another journal that are not in this one; returns their number.
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

    /// Reads what other processes have appended; returns the new entries.
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

    fn write(&mut self, act: Act, also: &Key) -> Result<(Entry, Option<Decided>), JournalError> {
        self.ready()?;
        let key = self.key(&act);
        let conflict = self.history.heads(&key).len() > 1 && self.history.view(&key).is_none();
        let last = || self.history.heads(&key).last().map(|head| (head.view.clone(), head.seen.clone()));
        let before = (!conflict).then(|| last().unwrap_or_default());
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

    /// Checks that the journal is writable, also after its folder was replaced by a copy, and reads the file if it has changed.
    fn ready(&mut self) -> Result<(), JournalError> {
        if let Ok(lock) = &self.lock {
            if !lock.is_in_place() {
                self.lock = locked(self.file.path(), &self.by);
            }
            self.look()?;
        }
        self.lock.as_ref().map(drop).map_err(|reason| reason.clone().into())
    }

    /// Reads the file if it has changed: a folder synced between machines may have replaced it.
    fn look(&mut self) -> Result<Option<Read>, JournalError> {
        let state = state(self.path());
        if self.seen.is_some() && self.seen == state {
            return Ok(None);
        }
        let read = Read::file(self.path())?;
        if read.newer > 0 {
            self.lock = Err(ReadOnly::Newer(self.path().into()));
        }
        let (open, mut own) = (!self.history.is_empty(), false);
        for entry in &read.entries {
            own |= self.history.take(entry.clone()) && entry.by == self.by;
        }
        if own && open {
            // This annotator labelled on another machine meanwhile: that is the last act now, so that undo never takes back an earlier
            // one over it.
            self.steps = Steps::of(&self.history, &self.by);
        }
        let present: std::collections::HashSet<&str> =
            read.entries.iter().map(|entry| entry.id.as_str()).collect();
        let lacking = self.history.entries().filter(|entry| !present.contains(entry.id.as_str()));
        self.lacking = lacking.map(|entry| entry.id.clone()).collect();
        self.seen = state;
        Ok(Some(read))
    }

    /// Appends entries. Entries that were removed from the file are written again before them.
    fn put(&mut self, entries: &[Entry]) -> Result<(), JournalError> {
        let lacking = self.lacking.iter().filter_map(|id| self.history.entry(id));
        let lines: serde_json::Result<Vec<String>> = lacking.chain(entries).map(Entry::line).collect();
        let lines = lines.map_err(|error| self.failed(error.into()))?;
        // If appending fails, the file is read again before the next action.
        self.seen = None;
        let end = self.file.append(lines).map_err(|error| self.failed(error))?;
        self.lacking.clear();
        self.seen = state(self.path()).filter(|(len, _)| *len == end);
        Ok(())
    }

    fn failed(&self, error: io::Error) -> JournalError {
        JournalError::Unwritable { path: self.path().into(), error }
    }
}

/// Locks a journal before it is read, so that no other process writes in between.
fn locked(path: &Path, by: &str) -> Result<FileLock, ReadOnly> {
    let created = path.parent().map_or(Ok(()), std::fs::create_dir_all);
    match created.and_then(|()| FileLock::try_acquire(&path.with_extension("lock"), &Holder::here(by))) {
        Ok(Attempt::Acquired(lock)) => Ok(lock),
        Ok(Attempt::Held(holder)) => {
            let holder = holder.map_or_else(|| "another process".into(), |holder| holder.to_string());
            Err(ReadOnly::Held { path: path.into(), holder })
        }
        Err(error) => Err(ReadOnly::NoLock { path: path.into(), error: Arc::new(error) }),
    }
}

/// The length and time of a file, which show whether another process changed it.
fn state(path: &Path) -> Option<(u64, Option<SystemTime>)> {
    std::fs::metadata(path).ok().map(|about| (about.len(), about.modified().ok()))
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::io::{BufRead, BufReader, Read as _};
    use std::process::{Command, Stdio};

    use super::*;
    use crate::annotate::entry::Seen;
    use crate::annotate::testing::{act, open, said};

    #[test]
    fn undo_and_redo_go_on_without_end_and_even_after_a_restart_and_lose_nothing() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("deep").join("anna.jsonl");
        let mut journal = open(&path);
        for n in 0..50 {
            journal.append(act(n % 5, n % 3 == 0)).unwrap();
        }
        for _ in 0..50 {
            assert!(journal.undo().unwrap().is_some());
        }
        assert!(journal.undo().unwrap().is_none());
        assert!((0..5).all(|n| said(&journal, n).is_none()));
        for _ in 0..50 {
            assert!(journal.redo().unwrap().is_some());
        }
        assert!(journal.redo().unwrap().is_none());
        assert_eq!((said(&journal, 4), said(&journal, 0)), (Some(false), Some(true)));
        journal.undo().unwrap();
        journal.append(act(0, true)).unwrap();
        assert!(journal.redo().unwrap().is_none());
        drop(journal);
        let mut journal = open(&path);
        let entries = journal.history().len();
        assert_eq!(entries, 152);
        journal.append(act(8, true)).unwrap();
        journal.undo().unwrap();
        assert_eq!(said(&journal, 8), None);
        // The restarted journal has the earlier actions.
        assert!(journal.undo().unwrap().is_some());
        assert_eq!(journal.history().len(), entries + 3);
    }

    #[test]
    fn a_restart_goes_on_undoing_where_the_last_run_stopped() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("anna.jsonl");
        let mut journal = open(&path);
        for (n, yes) in [(1, true), (2, true), (3, false)] {
            journal.append(Act { took: Some(900), ..act(n, yes) }).unwrap();
        }
        journal.undo().unwrap();
        drop(journal);
        let mut journal = open(&path);
        journal.undo().unwrap();
        assert_eq!((said(&journal, 1), said(&journal, 2), said(&journal, 3)), (Some(true), None, None));
        journal.redo().unwrap();
        journal.redo().unwrap();
        assert_eq!((said(&journal, 2), said(&journal, 3)), (Some(true), Some(false)));
        assert!(journal.redo().unwrap().is_none());
    }

    #[test]
    fn what_undo_and_redo_put_back_keeps_its_circumstances() {
        let folder = tempfile::tempdir().unwrap();
        let mut journal = open(&folder.path().join("anna.jsonl"));
        let blind = Some(Seen { blind: true, ..Seen::default() });
        let settling = Some(Seen { settles: Some("it quotes".into()), ..Seen::default() });
        journal.append(Act { seen: blind.clone(), ..act(1, true) }).unwrap();
        journal.append(Act { seen: settling.clone(), ..act(1, false) }).unwrap();
        assert_eq!(journal.undo().unwrap().unwrap().seen, blind);
        assert_eq!(journal.redo().unwrap().unwrap().seen, settling);
    }

    #[test]
    fn a_clock_that_goes_backwards_changes_no_label_and_is_noted() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("anna.jsonl");
        let mut journal = open(&path);
        journal.clock = || 2_000;
        journal.append(act(1, true)).unwrap();
        journal.clock = || 1_000;
        journal.append(act(1, false)).unwrap();
        drop(journal);
        let Opened { journal, read } = Journal::open(&path, "anna").unwrap();
        assert_eq!(said(&journal, 1), Some(false));
        assert_eq!(read.backwards, [2]);
        assert!(read.is_whole());
    }

    #[test]
    fn a_file_that_was_put_back_to_an_earlier_state_gets_its_lines_again() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("anna.jsonl");
        let mut journal = open(&path);
        journal.append(act(1, true)).unwrap();
        let earlier = fs::read(&path).unwrap();
        journal.append(act(2, true)).unwrap();
        fs::remove_file(&path).unwrap();
        fs::write(&path, &earlier).unwrap();
        journal.append(act(3, true)).unwrap();
        drop(journal);
        let journal = open(&path);
        assert_eq!((1..=3).map(|n| said(&journal, n)).collect::<Vec<_>>(), [Some(true); 3]);
    }

    #[test]
    fn a_name_that_would_leave_the_folder_or_hide_a_file_is_refused() {
        for name in ["", "../anna", "a/b", "a\\b", ".hidden", "pool", "project", "a b", &"a".repeat(61)] {
            assert!(
                matches!(Journal::open(Path::new("x.jsonl"), name), Err(JournalError::Name(_))),
                "{name}"
            );
        }
        assert!(["anna", "Ünal", "a.b-c_1", "安娜"].into_iter().all(is_name));
    }

    /// The child process of the tests below: it labels until it is killed. Run without them, it does nothing.
    #[test]
    fn the_other_process() {
        let Some(path) = std::env::var_os("PARALLAX_TEST_JOURNAL") else { return };
        let mut journal = open(Path::new(&path));
        for n in 0.. {
            journal.append(act(n, true)).unwrap();
            println!("written {n}");
            if std::env::var_os("PARALLAX_TEST_HOLD").is_some() {
                // Until the other end is closed.
                let _ = io::stdin().read(&mut [0]);
            }
        }
    }

    fn other(path: &Path) -> Command {
        let mut command = Command::new(std::env::current_exe().unwrap());
        command.args(["--exact", "annotate::journal::tests::the_other_process", "--nocapture"]);
        command.env("PARALLAX_TEST_JOURNAL", path).stdin(Stdio::piped()).stdout(Stdio::piped());
        command.stderr(Stdio::null());
        command
    }

    #[test]
    fn a_second_process_is_read_only_and_names_the_writer_and_a_dead_holder_holds_nothing() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("anna.jsonl");
        let mut child = other(&path).env("PARALLAX_TEST_HOLD", "1").spawn().unwrap();
        let output = BufReader::new(child.stdout.take().unwrap()).lines();
        assert!(output.map_while(Result::ok).any(|line| line.ends_with("written 0")));
        let mut second = Journal::open(&path, "anna").unwrap().journal;
        let reason = second.read_only().unwrap().to_string();
        let owner = format!("anna (process {} on ", child.id());
        assert!(reason.contains(&owner) && reason.contains("since") && reason.contains("GMT"), "{reason}");
        assert_eq!(said(&second, 0), Some(true));
        assert!(matches!(second.append(act(1, true)), Err(JournalError::ReadOnly(_))));
        child.kill().unwrap();
        child.wait().unwrap();
        open(&path).append(act(1, false)).unwrap();
        assert_eq!(second.refresh().unwrap().len(), 1);
    }

    #[test]
    fn acknowledged_acts_survive_a_kill() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("anna.jsonl");
        let mut child = other(&path).spawn().unwrap();
        let lines = BufReader::new(child.stdout.take().unwrap()).lines().map_while(Result::ok);
        let written = lines.filter(|line| line.contains("written ")).take(20).count();
        child.kill().unwrap();
        child.wait().unwrap();
        let journal = open(&path);
        assert_eq!(written, 20);
        assert!((0..20).all(|n| said(&journal, n) == Some(true)));
    }

    #[test]
    fn two_handles_on_one_journal_never_write_both() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("anna.jsonl");
        std::thread::scope(|scope| {
            for _ in 0..4 {
                scope.spawn(|| {
                    for n in 0..20 {
                        let mut journal = Journal::open(&path, "anna").unwrap().journal;
                        let may = journal.read_only().is_none();
                        assert_eq!(journal.append(act(n, true)).is_ok(), may);
                    }
                });
            }
        });
        let Opened { journal, read } = Journal::open(&path, "anna").unwrap();
        assert!(read.is_whole() && read.backwards.is_empty() && read.repeated == 0);
        assert!(journal.history().conflicts().is_empty());
    }

    #[test]
    fn a_journal_that_is_only_looked_at_leaves_nothing_behind() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("journals").join("anna.jsonl");
        let mut journal = Journal::show(&path, "anna").unwrap().journal;
        assert!(matches!(journal.read_only(), Some(ReadOnly::Shown)));
        assert!(journal.undo().is_ok_and(|undone| undone.is_none()));
        assert!(!folder.path().join("journals").exists());
    }
}
