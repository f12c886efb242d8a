//! The questions of earlier runs of the explorer, with their lanes. They are saved only by the explorer in a real terminal, so frames made
//! from key scripts do not depend on earlier runs.

use std::io::{self, ErrorKind, Read, Seek, SeekFrom};
use std::path::{Path, PathBuf};
use std::sync::mpsc::{self, Sender};
use std::thread::{self, JoinHandle};

use clap::ValueEnum;
use serde::{Deserialize, Serialize};

use super::theme::Look;
use crate::detect::LabelSource;
use crate::engine::Recipe;
use crate::input::{excerpt, tame};
use crate::storage::{FileLock, Journal, Lines, replace};

/// How many bytes at the end of the file are read. A file more than four times as long is shortened to them.
const RECALLED: u64 = 256 << 10;

/// A query as it was run.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct PastQuery {
    /// The corpus it ran on.
    pub corpus: String,
    /// The text of the question.
    pub question: String,
    /// The recipes of the lanes, left to right.
    pub lanes: Vec<String>,
    /// The label source, if it was not the default.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub source: Option<String>,
    /// The theme, if it was chosen in the program.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub theme: Option<String>,
}

/// A problem with the history's file.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum HistoryError {
    /// The file cannot be read or shortened.
    #[error("{}: {reason}", path.display())]
    Read {
        /// The file.
        path: PathBuf,
        /// The system's message.
        reason: String,
    },
    /// A line is not a query. The other lines are used.
    #[error(
        "{}: expected a question as {{\"corpus\", \"question\", \"lanes\"}}, found {found} ({reason}); delete the line",
        path.display()
    )]
    Line {
        /// The file.
        path: PathBuf,
        /// The beginning of the line.
        found: String,
        /// The parser's message.
        reason: String,
    },
    /// The file cannot be written.
    #[error("questions are not saved: {}: {reason}", path.display())]
    Write {
        /// The file.
        path: PathBuf,
        /// The system's message.
        reason: String,
    },
}

/// The earlier queries and the file they are saved in.
#[derive(Clone, Debug)]
pub struct QueryHistory {
    /// A file with one JSON object per line, the newest last.
    pub path: PathBuf,
    /// The corpus that is open now.
    pub corpus: String,
    /// The earlier queries on any corpus, the oldest first.
    pub queries: Vec<PastQuery>,
    /// The last problem with the file, if there was one.
    pub problem: Option<HistoryError>,
    /// Whether the explorer starts with the last question, unasked by the user.
    pub recalled: bool,
}

impl QueryHistory {
    /// Reads the file; without a file the history is empty. A line that cannot be read is left out and reported in
    /// [`problem`](Self::problem).
    pub fn read(path: PathBuf, corpus: String) -> Self {
        // A long file that cannot be shortened, for example in a read-only folder, can still be read.
        let shortened = shorten(&path);
        let mut history = QueryHistory { path, corpus, queries: Vec::new(), problem: None, recalled: false };
        let path = &history.path;
        let failed = |error: io::Error| HistoryError::Read { path: path.clone(), reason: error.to_string() };
        let bytes = match end_of(path) {
            Ok(bytes) => bytes,
            Err(error) if error.kind() == ErrorKind::NotFound => return history,
            Err(error) => {
                history.problem = Some(failed(error));
                return history;
            }
        };
        history.problem = shortened.err().map(failed);
        for line in Lines::of(bytes).iter() {
            match serde_json::from_slice(line) {
                Ok(query) => history.queries.push(query),
                Err(error) => {
                    history.problem = Some(HistoryError::Line {
                        path: history.path.clone(),
                        found: excerpt(&String::from_utf8_lossy(line)),
                        reason: tame(&error.to_string()),
                    });
                }
            }
        }
        history
    }

    /// Returns the last question on the open corpus, with its lanes. Lanes of run files are left out: their paths may be relative to another
    /// folder.
    pub fn last(&self) -> Option<(String, Vec<Recipe>)> {
        let query = self.queries.iter().rev().find(|query| query.corpus == self.corpus)?;
        let lanes = query.lanes.iter().filter_map(|lane| lane.parse::<Recipe>().ok());
        let lanes: Vec<Recipe> = lanes.filter(|lane| lane.run().is_none()).collect();
        (!lanes.is_empty()).then(|| (query.question.clone(), lanes))
    }

    /// Saves later queries as those of another corpus; `None` is the sample.
    pub fn moves_to(&mut self, corpus: Option<&Path>) {
        self.corpus = corpus.map_or_else(|| "sample".into(), |path| path.display().to_string());
    }

    /// Returns the label source that counted last, on the open corpus.
    pub fn last_source(&self) -> Option<LabelSource> {
        let query = self.queries.iter().rev().find(|query| query.corpus == self.corpus)?;
        LabelSource::from_str(query.source.as_deref()?, false).ok()
    }

    /// Returns the theme that was chosen last in the program, on any corpus.
    pub fn last_theme(&self) -> Option<Look> {
        Look::from_str(self.queries.last()?.theme.as_deref()?, false).ok()
    }

    /// Starts a thread that appends queries to the file. `failed` is called once, with the first error; then the thread ends.
    ///
    /// # Errors
    /// The system gives no thread.
    pub fn writer(&self, failed: impl Fn(HistoryError) + Send + 'static) -> io::Result<HistoryWriter> {
        let (send, receive) = mpsc::channel::<PastQuery>();
        let (path, mut last) = (self.path.clone(), self.queries.last().cloned());
        let writing = move || {
            for query in receive {
                if last.as_ref() == Some(&query) {
                    continue;
                }
                if let Err(error) = append(&path, &query) {
                    return failed(HistoryError::Write { path, reason: error.to_string() });
                }
                last = Some(query);
            }
        };
        let thread = thread::Builder::new().name("history".into()).spawn(writing)?;
        Ok(HistoryWriter { send: Some(send), thread: Some(thread) })
    }
}

/// The thread that saves queries. Dropping it waits until all of them are on the disk.
pub struct HistoryWriter {
    send: Option<Sender<PastQuery>>,
    thread: Option<JoinHandle<()>>,
}

impl HistoryWriter {
    /// Saves a query, unless it equals the last one. Does nothing after an error.
    pub fn save(&self, query: PastQuery) {
        if let Some(send) = &self.send {
            let _ = send.send(query);
        }
    }
}

impl Drop for HistoryWriter {
    fn drop(&mut self) {
        self.send = None;
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

/// Shortens a file that has become long to the part that is read.
fn shorten(path: &Path) -> io::Result<()> {
    let long = || path.metadata().is_ok_and(|about| about.len() > 4 * RECALLED);
    if !long() {
        return Ok(());
    }
    let _lock = lock(path)?;
    // Another explorer may have shortened it meanwhile.
    if long() { replace(path, &end_of(path)?) } else { Ok(()) }
}

/// Waits until no other explorer writes. The lock is a separate file: an explorer that waited for a lock on the history itself would
/// append to a file that has been replaced.
fn lock(path: &Path) -> io::Result<FileLock> {
    FileLock::acquire(&path.with_extension("lock"))
}

/// Reads the last lines of a file.
fn end_of(path: &Path) -> io::Result<Vec<u8>> {
    let mut file = crate::input::open_regular(path)?;
    let from = file.metadata()?.len().saturating_sub(RECALLED);
    file.seek(SeekFrom::Start(from))?;
    let mut bytes = Vec::new();
    file.take(RECALLED).read_to_end(&mut bytes)?;
    if from > 0 {
        let begins = bytes.iter().position(|byte| *byte == b'\n').map_or(0, |at| at + 1);
        bytes.drain(..begins);
    }
    Ok(bytes)
}

fn append(path: &Path, query: &PastQuery) -> io::Result<()> {
    if let Some(folder) = path.parent() {
        std::fs::create_dir_all(folder)?;
    }
    let _lock = lock(path)?;
    Journal::at(path).append([serde_json::to_vec(query)?]).map(drop)
}

/// The earlier questions that the question line recalls.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct History {
    /// Every question once, the newest last.
    questions: Vec<String>,
    /// The index of the question in the line, and the text that was in the line before.
    recalled: Option<(usize, String)>,
}

impl History {
    /// A history of questions, the oldest first.
    pub fn of(questions: impl IntoIterator<Item = String>) -> Self {
        let mut history = History::default();
        for question in questions {
            history.add(&question);
        }
        history
    }

    /// Adds a question as the newest one.
    pub fn add(&mut self, question: &str) {
        self.questions.retain(|other| other != question);
        self.questions.push(question.into());
        self.recalled = None;
    }

    /// Recalls the question before the recalled one, or the newest one. `line` is the text to return to.
    pub fn older(&mut self, line: &str) -> Option<String> {
        let at = self.recalled.as_ref().map_or(self.questions.len(), |(at, _)| *at).checked_sub(1)?;
        // Skips the question that is in the line already.
        let at = if self.questions[at] == line { at.checked_sub(1)? } else { at };
        let draft = self.recalled.take().map_or_else(|| line.to_owned(), |(_, draft)| draft);
        self.recalled = Some((at, draft));
        Some(self.questions[at].clone())
    }

    /// Recalls the question after the recalled one, or the text that was in the line before; `None` if no question is recalled.
    pub fn newer(&mut self) -> Option<String> {
        let (at, draft) = self.recalled.take()?;
        match self.questions.get(at + 1) {
            Some(question) => {
                self.recalled = Some((at + 1, draft));
                Some(question.clone())
            }
            None => Some(draft),
        }
    }

    /// Whether the line holds a recalled question.
    pub fn recalls(&self) -> bool {
        self.recalled.is_some()
    }

    /// Forgets what is recalled, because the line was edited.
    pub fn forget(&mut self) {
        self.recalled = None;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn query(question: &str) -> PastQuery {
        PastQuery {
            corpus: "zoos".into(),
            question: question.into(),
            lanes: vec!["bm25".into(), "minilm".into()],
            source: None,
            theme: None,
        }
    }

    fn read(path: &Path) -> QueryHistory {
        QueryHistory::read(path.to_owned(), "zoos".into())
    }

    fn place() -> (tempfile::TempDir, PathBuf) {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("asked.jsonl");
        (folder, path)
    }

    fn long_file() -> (tempfile::TempDir, PathBuf) {
        let (folder, path) = place();
        let line = serde_json::to_string(&query(&"long ".repeat(100))).unwrap() + "\n";
        std::fs::write(&path, line.repeat(3_000)).unwrap();
        (folder, path)
    }

    #[test]
    fn the_last_query_on_the_same_corpus_is_recalled() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("data/asked.jsonl");
        append(&path, &query("Are zoos good?")).unwrap();
        append(&path, &query("Should zoos be banned?")).unwrap();
        append(&path, &PastQuery { corpus: "wiki".into(), ..query("Is tea better?") }).unwrap();
        let (question, lanes) = read(&path).last().unwrap();
        assert_eq!(question, "Should zoos be banned?");
        assert_eq!(
            lanes.iter().map(ToString::to_string).collect::<Vec<_>>(),
            ["bm25@k1=0.9,b=0.4", "minilm"]
        );
        assert_eq!(QueryHistory::read(path, "other".into()).last(), None);
    }

    #[test]
    fn lanes_of_run_files_are_not_recalled() {
        let (_folder, path) = place();
        append(&path, &PastQuery { lanes: vec!["run:dl19.json".into(), "minilm".into()], ..query("one?") })
            .unwrap();
        let (_, lanes) = read(&path).last().unwrap();
        assert_eq!(lanes.iter().map(ToString::to_string).collect::<Vec<_>>(), ["minilm"]);
        append(&path, &PastQuery { lanes: vec!["run:dl19.json".into()], ..query("two?") }).unwrap();
        assert_eq!(read(&path).last(), None);
    }

    #[test]
    fn dropping_the_writer_waits_until_every_query_is_saved() {
        let (_folder, path) = place();
        let writer = read(&path).writer(|error| panic!("{error}")).unwrap();
        writer.save(query("one?"));
        drop(writer);
        assert_eq!(read(&path).queries, [query("one?")]);
    }

    #[test]
    fn a_torn_last_line_is_ignored_and_the_next_query_follows_the_whole_ones() {
        let (_folder, path) = place();
        append(&path, &query("one?")).unwrap();
        let mut torn = std::fs::read(&path).unwrap();
        torn.extend_from_slice(b"{\"corpus\":\"zo");
        std::fs::write(&path, torn).unwrap();
        assert_eq!((read(&path).queries.len(), read(&path).problem), (1, None));
        append(&path, &query("two?")).unwrap();
        let text = std::fs::read_to_string(&path).unwrap();
        assert_eq!((text.lines().count(), read(&path).queries.len()), (2, 2), "{text}");
    }

    #[test]
    fn a_line_that_is_not_a_query_is_reported_and_the_others_are_read() {
        let (_folder, path) = place();
        std::fs::write(&path, "nonsense\n").unwrap();
        append(&path, &query("one?")).unwrap();
        let history = read(&path);
        assert_eq!(history.queries.len(), 1);
        assert!(history.problem.is_some_and(|problem| problem.to_string().contains("found `nonsense`")));
    }

    #[test]
    fn only_the_end_of_a_long_file_is_read_and_stays_in_it() {
        let (_folder, path) = long_file();
        append(&path, &query("the last?")).unwrap();
        let history = read(&path);
        assert!(
            (100..1_000).contains(&history.queries.len()) && history.problem.is_none(),
            "{:?}",
            history.problem
        );
        assert!(path.metadata().unwrap().len() <= RECALLED);
        assert_eq!(history.last().unwrap().0, "the last?");
    }

    #[test]
    fn a_long_file_that_cannot_be_shortened_is_reported_and_still_read() {
        let (_folder, path) = long_file();
        std::fs::create_dir(path.with_extension("lock")).unwrap();
        let history = read(&path);
        assert!(history.queries.len() >= 100 && history.problem.is_some());
    }

    #[test]
    fn a_query_appended_while_a_long_file_is_shortened_is_not_lost() {
        let (folder, path) = long_file();
        thread::scope(|scope| {
            for n in 0..8 {
                let path = &path;
                scope.spawn(move || append(path, &query(&format!("the question {n}?"))).unwrap());
                scope.spawn(move || read(path));
            }
        });
        let history = read(&path);
        let ours = history.queries.iter().filter(|query| query.question.starts_with("the question")).count();
        assert_eq!((ours, history.problem), (8, None));
        let names = std::fs::read_dir(folder.path()).unwrap().flatten().map(|entry| entry.file_name());
        assert!(names.into_iter().all(|name| name == "asked.jsonl" || name == "asked.lock"));
    }

    #[test]
    fn a_file_that_cannot_be_written_is_reported_once() {
        let folder = tempfile::tempdir().unwrap();
        std::fs::write(folder.path().join("file"), "").unwrap();
        let (send, errors) = mpsc::channel();
        let history = read(&folder.path().join("file/asked.jsonl"));
        let writer = history.writer(move |error| send.send(error).unwrap()).unwrap();
        writer.save(query("one?"));
        assert!(errors.recv().unwrap().to_string().starts_with("questions are not saved: "));
    }

    #[test]
    fn the_line_recalls_older_and_newer_questions_and_its_own_text() {
        let mut history = History::of(["one?", "two?", "one?", "three?"].map(str::to_owned));
        assert_eq!(history.older("dra").as_deref(), Some("three?"));
        assert_eq!(history.older("three?").as_deref(), Some("one?"));
        assert_eq!(history.older("one?").as_deref(), Some("two?"));
        assert_eq!(history.older("two?"), None);
        assert_eq!(history.newer().as_deref(), Some("one?"));
        assert_eq!(history.newer().as_deref(), Some("three?"));
        assert_eq!(history.newer().as_deref(), Some("dra"));
        assert_eq!(history.newer(), None);
        // The question in the line already is not recalled.
        assert_eq!(history.older("three?").as_deref(), Some("one?"));
    }
}
