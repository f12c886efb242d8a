//! What one run of the explorer leaves to the next: the questions that were asked, and with which lanes. Only a real terminal
//! keeps them; frames made from key scripts depend on nothing that happened before.

use std::fs::{File, OpenOptions};
use std::io::{self, ErrorKind, Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};
use std::sync::mpsc::{self, Sender};
use std::thread::{self, JoinHandle};

use serde::{Deserialize, Serialize};

use super::app::App;
use crate::corpus::library::replace;
use crate::input::{excerpt, tame};
use crate::pipeline::Recipe;

/// Of a longer file, only the end is read.
const RECALLED: u64 = 256 << 10;

/// A question as it was asked.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Asked {
    /// Of which corpus.
    pub corpus: String,
    /// Its words.
    pub question: String,
    /// The recipes of the lanes, left to right.
    pub lanes: Vec<String>,
}

/// What was asked before, and where it is kept.
#[derive(Clone, Debug)]
pub struct Kept {
    /// A line of JSON a question, the newest last.
    pub path: PathBuf,
    /// The corpus that is open now.
    pub corpus: String,
    /// The oldest first.
    pub asked: Vec<Asked>,
    /// A line that could not be read, if there is one.
    pub told: Option<String>,
}

impl Kept {
    /// Reads what is kept. Where there is no file yet, that is nothing.
    pub fn read(path: PathBuf, corpus: String) -> Self {
        let mut kept = Kept { path, corpus, asked: Vec::new(), told: None };
        let tell = |error: io::Error| Some(format!("{}: {error}", kept.path.display()));
        // A long file that cannot be shortened, in a folder that is only to be read, can be read all the same.
        let long = shortened(&kept.path).err();
        let text = match end_of(&kept.path) {
            Ok(text) => text,
            Err(error) if error.kind() == ErrorKind::NotFound => return kept,
            Err(error) => {
                kept.told = tell(error);
                return kept;
            }
        };
        kept.told = long.and_then(tell);
        // What stands behind the last line feed is half a line; the next one takes its place.
        let whole = text.rfind('\n').map_or("", |end| &text[..end]);
        for line in whole.lines() {
            match serde_json::from_str(line) {
                Ok(asked) => kept.asked.push(asked),
                Err(error) => {
                    let path = kept.path.display();
                    kept.told = Some(format!(
                        "{path}: expected a question as {{\"corpus\", \"question\", \"lanes\"}}, found {} ({}); delete the line",
                        excerpt(line),
                        tame(&error.to_string())
                    ));
                }
            }
        }
        kept
    }

    /// What was asked last of the corpus that is open, with its lanes; without those of finished runs, whose files belong to the
    /// folder where they were named.
    pub fn last(&self) -> Option<(String, Vec<Recipe>)> {
        let asked = self.asked.iter().rev().find(|asked| asked.corpus == self.corpus)?;
        let lanes = asked.lanes.iter().filter_map(|lane| lane.parse::<Recipe>().ok());
        let lanes: Vec<Recipe> = lanes.filter(|lane| lane.run().is_none()).collect();
        (!lanes.is_empty()).then(|| (asked.question.clone(), lanes))
    }

    /// Keeps what it is sent, on a thread of its own. `failed` is told why something could not be kept, once.
    pub fn keeper(&self, failed: impl Fn(String) + Send + 'static) -> Keeper {
        let (send, receive) = mpsc::channel::<Asked>();
        let (path, mut last) = (self.path.clone(), self.asked.last().cloned());
        let thread = thread::spawn(move || {
            for asked in receive {
                if last.as_ref() == Some(&asked) {
                    continue;
                }
                if let Err(error) = append(&path, &asked) {
                    return failed(format!("questions are not kept: {}: {error}", path.display()));
                }
                last = Some(asked);
            }
        });
        Keeper { send: Some(send), thread: Some(thread) }
    }

    /// What is asked now, once it is no longer being typed.
    pub fn now(&self, app: &App) -> Option<Asked> {
        let lanes = app.lanes.iter().map(|lane| lane.recipe.to_string()).collect();
        let question = app.question.text.clone();
        (!app.typing && !question.is_empty()).then(|| Asked { corpus: self.corpus.clone(), question, lanes })
    }
}

/// The thread that keeps questions. Dropped, it keeps what it was sent and ends.
pub struct Keeper {
    send: Option<Sender<Asked>>,
    thread: Option<JoinHandle<()>>,
}

impl Keeper {
    /// Has a question kept. One that gave up has told so, and keeps nothing more.
    pub fn keep(&self, asked: Asked) {
        if let Some(send) = &self.send {
            let _ = send.send(asked);
        }
    }
}

impl Drop for Keeper {
    fn drop(&mut self) {
        self.send = None;
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

/// Of a file that has become long, only what is read stays.
fn shortened(path: &Path) -> io::Result<()> {
    let long = || path.metadata().map(|about| about.len() > 4 * RECALLED);
    if !long()? {
        return Ok(());
    }
    let _alone = alone(path)?;
    // Another explorer may have done it meanwhile.
    if long()? { replace(path, end_of(path)?.as_bytes()) } else { Ok(()) }
}

/// Waits until no other explorer writes. The file itself cannot be locked: who waited for that might then append to one that was
/// replaced.
fn alone(path: &Path) -> io::Result<File> {
    let lock = File::create(path.with_extension("lock"))?;
    match lock.lock() {
        Err(error) if error.kind() != ErrorKind::Unsupported => Err(error),
        _ => Ok(lock),
    }
}

/// The last lines of a file.
fn end_of(path: &Path) -> io::Result<String> {
    let mut file = File::open(path)?;
    let len = file.metadata()?.len();
    let from = len.saturating_sub(RECALLED);
    file.seek(SeekFrom::Start(from))?;
    let mut bytes = Vec::new();
    file.take(RECALLED).read_to_end(&mut bytes)?;
    let cut = if from == 0 { 0 } else { bytes.iter().position(|byte| *byte == b'\n').map_or(0, |at| at + 1) };
    Ok(String::from_utf8_lossy(&bytes[cut..]).into_owned())
}

/// Appends a line and waits until it is on the disk. Half a line that a killed process left is cut off first.
fn append(path: &Path, asked: &Asked) -> io::Result<()> {
    if let Some(folder) = path.parent() {
        std::fs::create_dir_all(folder)?;
    }
    let _alone = alone(path)?;
    let mut file = OpenOptions::new().read(true).append(true).create(true).open(path)?;
    let len = file.seek(SeekFrom::End(0))?;
    let from = len.saturating_sub(RECALLED);
    file.seek(SeekFrom::Start(from))?;
    let mut end = Vec::new();
    Read::by_ref(&mut file).take(RECALLED).read_to_end(&mut end)?;
    let whole = end.iter().rposition(|byte| *byte == b'\n').map_or(0, |at| at + 1);
    if whole < end.len() {
        file.set_len(from + whole as u64)?;
    }
    let mut line = serde_json::to_vec(asked)?;
    line.push(b'\n');
    file.write_all(&line)?;
    file.sync_data()
}

/// The questions asked before, as the question line recalls them.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct History {
    /// Each once, the newest last.
    questions: Vec<String>,
    /// The one that stands in the line, and what stood there before.
    recalled: Option<(usize, String)>,
}

impl History {
    /// A history of questions, the oldest first.
    pub fn of(asked: impl IntoIterator<Item = String>) -> Self {
        let mut history = History::default();
        for question in asked {
            history.add(&question);
        }
        history
    }

    /// A question was asked.
    pub fn add(&mut self, question: &str) {
        self.questions.retain(|known| known != question);
        self.questions.push(question.into());
        self.recalled = None;
    }

    /// The question asked before the one that is recalled, or the last one; `line` comes back in the end.
    pub fn older(&mut self, line: &str) -> Option<String> {
        let at = self.recalled.as_ref().map_or(self.questions.len(), |(at, _)| *at).checked_sub(1)?;
        // Nobody wants the question again that stands there already.
        let at = if self.questions[at] == line { at.checked_sub(1)? } else { at };
        let draft = self.recalled.take().map_or_else(|| line.to_owned(), |(_, draft)| draft);
        self.recalled = Some((at, draft));
        Some(self.questions[at].clone())
    }

    /// The question asked after the one that is recalled, or what stood in the line before; none if nothing is recalled.
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

    /// Whether the line holds one of them.
    pub fn recalls(&self) -> bool {
        self.recalled.is_some()
    }

    /// The line was edited.
    pub fn forget(&mut self) {
        self.recalled = None;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn asked(question: &str) -> Asked {
        Asked {
            corpus: "zoos".into(),
            question: question.into(),
            lanes: vec!["bm25".into(), "minilm".into()],
        }
    }

    fn read(path: &Path) -> Kept {
        Kept::read(path.to_owned(), "zoos".into())
    }

    fn place() -> (tempfile::TempDir, PathBuf) {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("asked.jsonl");
        (folder, path)
    }

    fn long_file() -> (tempfile::TempDir, PathBuf) {
        let (folder, path) = place();
        let line = serde_json::to_string(&asked(&"long ".repeat(100))).unwrap() + "\n";
        std::fs::write(&path, line.repeat(3_000)).unwrap();
        (folder, path)
    }

    #[test]
    fn what_was_asked_is_there_the_next_time_and_of_another_corpus_it_is_not() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("data/asked.jsonl");
        append(&path, &asked("Are zoos good?")).unwrap();
        append(&path, &asked("Should zoos be banned?")).unwrap();
        append(&path, &Asked { corpus: "wiki".into(), ..asked("Is tea better?") }).unwrap();
        let (question, lanes) = read(&path).last().unwrap();
        assert_eq!(question, "Should zoos be banned?");
        assert_eq!(
            lanes.iter().map(ToString::to_string).collect::<Vec<_>>(),
            ["bm25@k1=0.9,b=0.4", "minilm"]
        );
        assert_eq!(Kept::read(path, "other".into()).last(), None);
    }

    #[test]
    fn lanes_of_finished_runs_are_not_taken_up() {
        let (_folder, path) = place();
        append(&path, &Asked { lanes: vec!["run:dl19.json".into(), "minilm".into()], ..asked("one?") })
            .unwrap();
        let (_, lanes) = read(&path).last().unwrap();
        assert_eq!(lanes.iter().map(ToString::to_string).collect::<Vec<_>>(), ["minilm"]);
        append(&path, &Asked { lanes: vec!["run:dl19.json".into()], ..asked("two?") }).unwrap();
        assert_eq!(read(&path).last(), None);
    }

    #[test]
    fn what_was_sent_is_kept_before_the_keeper_ends() {
        let (_folder, path) = place();
        let keeper = read(&path).keeper(|why| panic!("{why}"));
        keeper.keep(asked("one?"));
        drop(keeper);
        assert_eq!(read(&path).asked, [asked("one?")]);
    }

    #[test]
    fn half_a_line_is_passed_over_and_the_next_one_takes_its_place() {
        let (_folder, path) = place();
        append(&path, &asked("one?")).unwrap();
        let mut torn = std::fs::read(&path).unwrap();
        torn.extend_from_slice(b"{\"corpus\":\"zo");
        std::fs::write(&path, torn).unwrap();
        assert_eq!((read(&path).asked.len(), read(&path).told), (1, None));
        append(&path, &asked("two?")).unwrap();
        let text = std::fs::read_to_string(&path).unwrap();
        assert_eq!((text.lines().count(), read(&path).asked.len()), (2, 2), "{text}");
    }

    #[test]
    fn a_line_that_is_no_question_is_told_and_the_others_are_there() {
        let (_folder, path) = place();
        std::fs::write(&path, "nonsense\n").unwrap();
        append(&path, &asked("one?")).unwrap();
        let kept = read(&path);
        assert_eq!(kept.asked.len(), 1);
        assert!(kept.told.is_some_and(|told| told.contains("found `nonsense`")));
    }

    #[test]
    fn of_a_long_file_the_end_is_read_and_stays() {
        let (_folder, path) = long_file();
        append(&path, &asked("the last?")).unwrap();
        let kept = read(&path);
        assert!((100..1_000).contains(&kept.asked.len()) && kept.told.is_none(), "{:?}", kept.told);
        assert!(path.metadata().unwrap().len() <= RECALLED);
        assert_eq!(kept.last().unwrap().0, "the last?");
    }

    #[test]
    fn a_long_file_that_cannot_be_shortened_is_told_and_read_all_the_same() {
        let (_folder, path) = long_file();
        std::fs::create_dir(path.with_extension("lock")).unwrap();
        let kept = read(&path);
        assert!(kept.asked.len() >= 100 && kept.told.is_some());
    }

    #[test]
    fn what_another_explorer_appends_while_a_long_file_is_shortened_stays() {
        let (folder, path) = long_file();
        thread::scope(|scope| {
            for n in 0..8 {
                let path = &path;
                scope.spawn(move || append(path, &asked(&format!("the question {n}?"))).unwrap());
                scope.spawn(move || read(path));
            }
        });
        let kept = read(&path);
        let ours = kept.asked.iter().filter(|asked| asked.question.starts_with("the question")).count();
        assert_eq!((ours, kept.told), (8, None));
        let names = std::fs::read_dir(folder.path()).unwrap().flatten().map(|entry| entry.file_name());
        assert!(names.into_iter().all(|name| name == "asked.jsonl" || name == "asked.lock"));
    }

    #[test]
    fn a_place_that_cannot_be_written_is_told_once() {
        let folder = tempfile::tempdir().unwrap();
        std::fs::write(folder.path().join("file"), "").unwrap();
        let (tell, told) = mpsc::channel();
        let keep = read(&folder.path().join("file/asked.jsonl")).keeper(move |why| tell.send(why).unwrap());
        keep.keep(asked("one?"));
        assert!(told.recv().unwrap().starts_with("questions are not kept: "));
    }

    #[test]
    fn the_line_recalls_older_and_newer_questions_and_what_stood_there() {
        let mut history = History::of(["one?", "two?", "one?", "three?"].map(str::to_owned));
        assert_eq!(history.older("dra").as_deref(), Some("three?"));
        assert_eq!(history.older("three?").as_deref(), Some("one?"));
        assert_eq!(history.older("one?").as_deref(), Some("two?"));
        assert_eq!(history.older("two?"), None);
        assert_eq!(history.newer().as_deref(), Some("one?"));
        assert_eq!(history.newer().as_deref(), Some("three?"));
        assert_eq!(history.newer().as_deref(), Some("dra"));
        assert_eq!(history.newer(), None);
        // What stands in the line already is not recalled.
        assert_eq!(history.older("three?").as_deref(), Some("one?"));
    }
}
