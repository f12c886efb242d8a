//! An annotation project: the passages to label, their statements and annotators, and the progress.
//!
//! A project is one folder, so that it can be copied to another machine:
//!
//! ```text
//! project.json    corpus, questions, lanes, depth, seed, order, annotators, the draw of the questions
//! pool.jsonl      one passage per line, with its question, its ranks and its annotators
//! guidelines.md   what counts as support
//! NAME.jsonl      an annotator's journal
//! ```

use std::collections::{BTreeMap, HashSet};
use std::fs;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use super::agree;
use super::entry::{Decision, Key, guidelines_hash, text_hash};
use super::file::{POOL, in_folder};
use super::history::History;
use super::sample::Sample;
use crate::corpus::{Fingerprint, Passage};
use crate::input::{BadLine, InputError, SMALL, lines, read_regular_text};
use crate::question::Question;
use crate::storage::{Attempt, FileLock, Holder, replace};

const CARD: &str = "project.json";
/// The version of `project.json`.
const VERSION: u32 = 1;
const GUIDELINES: &str = "guidelines.md";
/// The folder with every version of the guidelines that a decision was made under.
const VERSIONS: &str = "guidelines";

/// The settings of a project, as `project.json` holds them.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Project {
    v: u32,
    /// The corpus's name.
    pub corpus: String,
    /// The fingerprint of its content.
    pub fingerprint: Fingerprint,
    /// The questions with their perspectives.
    pub questions: Vec<Question>,
    /// The lanes whose lists were pooled, as recipes.
    pub lanes: Vec<String>,
    /// How many passages were taken from each list.
    pub depth: usize,
    /// The order in which passages are labelled.
    pub order: Order,
    /// The seed of the random order and of the assignment.
    pub seed: u64,
    /// Whether lane, rank and the model's verdict are hidden.
    pub blind: bool,
    /// The annotators; empty if everybody labels everything.
    pub annotators: Vec<String>,
    /// The share of passages that two annotators label.
    pub overlap: f64,
    /// The share of passages that are checks: their labels are known, and everybody labels them.
    #[serde(default, skip_serializing_if = "is_none")]
    pub checks: f64,
    /// The share of an annotator's passages that come a second time.
    #[serde(default, skip_serializing_if = "is_none")]
    pub repeats: f64,
    /// Those who settle disagreements between annotators.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub adjudicators: Vec<String>,
    /// How the questions were drawn; `None` if the project has all questions of a set. `questions` has the order of the draw.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sample: Option<Sample>,
    /// The share of words from which a passage counts as a repetition of another and is left out; `None` if all are in.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub near_duplicates: Option<f64>,
}

/// The order in which passages are labelled.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, clap::ValueEnum)]
#[serde(rename_all = "lowercase")]
pub enum Order {
    /// The first lane's list from the top, then the second's.
    Ranked,
    /// By the best rank in any lane.
    #[default]
    Pooled,
    /// The passages of which the model is least certain first.
    Uncertain,
    /// Shuffled with the seed.
    Random,
}

impl Order {
    /// The next order; after the last comes the first.
    pub fn next(self) -> Self {
        match self {
            Order::Ranked => Order::Pooled,
            Order::Pooled => Order::Uncertain,
            Order::Uncertain => Order::Random,
            Order::Random => Order::Ranked,
        }
    }

    /// Its name for the user.
    pub fn name(self) -> &'static str {
        match self {
            Order::Ranked => "ranked",
            Order::Pooled => "pooled",
            Order::Uncertain => "most uncertain first",
            Order::Random => "random",
        }
    }
}

/// A passage to label.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Item {
    /// The question, word for word.
    pub question: String,
    /// The whole passage, so that a project can be labelled without its corpus.
    pub passage: Passage,
    /// Its rank in every lane that found it when it was pooled.
    pub ranks: BTreeMap<String, usize>,
    /// Its rank in lanes that were added later, or read deeper. They do not move it in anybody's order.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub later: BTreeMap<String, usize>,
    /// How often the project had grown when the passage was pooled; earlier passages come first.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub round: usize,
    /// Its annotators; empty if everybody labels it.
    #[serde(rename = "to", default, skip_serializing_if = "Vec::is_empty")]
    pub annotators: Vec<String>,
    /// The labels of a check, by statement; empty for all other passages.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub labels: BTreeMap<String, bool>,
}

/// The progress of one annotator.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Progress {
    /// Passages to label.
    pub assigned: usize,
    /// Passages labelled for every statement.
    pub done: usize,
    /// Skipped for now.
    pub skipped: usize,
    /// Flagged for another look.
    pub flagged: usize,
}

fn is_none(share: &f64) -> bool {
    *share == 0.0
}

fn is_zero(number: &usize) -> bool {
    *number == 0
}

/// The lines of `pool.jsonl`.
fn pool_lines(items: &[Item]) -> std::io::Result<Vec<u8>> {
    let mut pool = Vec::new();
    for item in items {
        serde_json::to_writer(&mut pool, item)?;
        pool.push(b'\n');
    }
    Ok(pool)
}

impl Item {
    /// Its rank in a lane.
    pub fn rank(&self, lane: &str) -> Option<usize> {
        self.ranks.get(lane).or_else(|| self.later.get(lane)).copied()
    }

    /// Whether it is assigned to this annotator.
    pub fn is_for(&self, by: &str) -> bool {
        self.annotators.is_empty() || self.annotators.iter().any(|name| name == by)
    }

    /// The key under which an annotator's view of it is stored.
    pub fn key(&self, by: &str) -> Key {
        Key { by: by.into(), question: self.question.clone(), passage: self.passage.id.clone() }
    }
}

impl Project {
    /// The default guidelines: what counts as support.
    pub const GUIDELINES: &str = include_str!("guidelines.md");

    /// Makes a project on these questions and lanes, without annotators.
    pub fn new(
        corpus: String,
        fingerprint: Fingerprint,
        questions: Vec<Question>,
        lanes: Vec<String>,
        depth: usize,
    ) -> Self {
        Project {
            v: VERSION,
            corpus,
            fingerprint,
            questions,
            lanes,
            depth,
            order: Order::default(),
            seed: 0,
            blind: false,
            annotators: Vec::new(),
            overlap: 0.0,
            checks: 0.0,
            repeats: 0.0,
            adjudicators: Vec::new(),
            sample: None,
            near_duplicates: None,
        }
    }

    /// Whether a folder holds a project.
    pub fn is_in(folder: &Path) -> bool {
        folder.join(CARD).exists()
    }

    /// The path of an annotator's journal.
    pub fn journal(folder: &Path, by: &str) -> PathBuf {
        folder.join(format!("{by}.jsonl"))
    }

    /// The journals in a folder.
    ///
    /// # Errors
    /// The folder cannot be read.
    pub fn journals(folder: &Path) -> Result<Vec<PathBuf>, InputError> {
        in_folder(folder)
    }

    /// The text of the guidelines; `None` without the file.
    ///
    /// # Errors
    /// There is a file, and it cannot be read.
    pub fn guidelines(folder: &Path) -> Result<Option<String>, InputError> {
        let path = folder.join(GUIDELINES);
        match read_regular_text(&path, SMALL) {
            Ok(text) => Ok(Some(text)),
            // A journal may be a file of its own, with no folder around it.
            Err(error) if matches!(error.kind(), ErrorKind::NotFound | ErrorKind::NotADirectory) => Ok(None),
            Err(error) => Err(InputError::unreadable(&path, &error)),
        }
    }

    /// Writes a project to a folder that has none.
    ///
    /// # Errors
    /// The folder has a project already, or cannot be written.
    pub fn write(&self, items: &[Item], folder: &Path) -> std::io::Result<()> {
        if Project::is_in(folder) {
            let reason = "the folder already holds a project; name another one";
            return Err(std::io::Error::new(std::io::ErrorKind::AlreadyExists, reason));
        }
        fs::create_dir_all(folder)?;
        replace(&folder.join(POOL), &pool_lines(items)?)?;
        if !folder.join(GUIDELINES).exists() {
            replace(&folder.join(GUIDELINES), Project::GUIDELINES.as_bytes())?;
        }
        // Written last, because this file makes the folder a project.
        let mut card = serde_json::to_vec_pretty(self)?;
        card.push(b'\n');
        replace(&folder.join(CARD), &card)
    }

    /// Writes a project that grew: new settings and more passages. The labels are not touched.
    ///
    /// # Errors
    /// The folder cannot be written, or another process is doing the same.
    pub fn rewrite(&self, items: &[Item], folder: &Path) -> std::io::Result<()> {
        let _lock = match FileLock::try_acquire(&folder.join("project.lock"), &Holder::here("project"))? {
            Attempt::Acquired(lock) => lock,
            Attempt::Held(_) => {
                let reason = "another process is changing the project; try again when it has ended";
                return Err(std::io::Error::new(std::io::ErrorKind::WouldBlock, reason));
            }
        };
        let mut card = serde_json::to_vec_pretty(self)?;
        card.push(b'\n');
        // First the questions, because every passage of the pool needs its own.
        replace(&folder.join(CARD), &card)?;
        replace(&folder.join(POOL), &pool_lines(items)?)
    }

    /// Keeps the present guidelines under their hash, by which decisions name them. Returns the hash.
    ///
    /// # Errors
    /// The folder cannot be written.
    pub fn keep_guidelines(folder: &Path) -> std::io::Result<String> {
        let text = Project::guidelines(folder).map_err(std::io::Error::other)?;
        let text = text.unwrap_or_else(|| Project::GUIDELINES.to_owned());
        let hash = guidelines_hash(&text);
        let place = folder.join(VERSIONS).join(format!("{hash}.md"));
        if !place.exists() {
            fs::create_dir_all(folder.join(VERSIONS))?;
            replace(&place, text.as_bytes())?;
        }
        Ok(hash)
    }

    /// The passages on which annotators disagree: their places among `items`.
    pub fn split(items: &[Item], decisions: &[Decision]) -> Vec<usize> {
        let found = agree::items(decisions, None);
        let split: HashSet<(&str, &str)> = found
            .iter()
            .filter(|item| matches!(item.votes(), (1.., 1..)))
            .map(|item| (item.about.question.as_str(), item.about.text.as_str()))
            .collect();
        let is = |item: &Item| split.contains(&(item.question.as_str(), text_hash(&item.passage).as_str()));
        (0..items.len()).filter(|at| is(&items[*at])).collect()
    }

    /// Reads a project and its pool.
    ///
    /// # Errors
    /// A file is damaged, or of a later version.
    pub fn open(folder: &Path) -> Result<(Self, Vec<Item>), InputError> {
        let card = folder.join(CARD);
        let text = read_regular_text(&card, SMALL).map_err(|error| InputError::unreadable(&card, &error))?;
        let bad = |line: usize, expected: String| {
            let found = text.lines().nth(line.saturating_sub(1)).unwrap_or_default().trim().to_owned();
            InputError::BadLines(vec![BadLine { file: card.clone(), line, expected, found }])
        };
        #[derive(Deserialize)]
        struct Version {
            v: u32,
        }
        if serde_json::from_str::<Version>(&text).is_ok_and(|card| card.v > VERSION) {
            let reason = "was written by a later version of parallax; update this one".into();
            return Err(InputError::Unreadable { path: card, reason });
        }
        let project: Project = serde_json::from_str(&text)
            .map_err(|error| bad(error.line(), format!("the settings of a project ({error})")))?;
        if let Some(sample) = &project.sample
            && !sample.draw.iter().eq(project.questions.iter().map(|question| &question.id))
        {
            return Err(bad(1, "the drawn questions in the order of the draw".into()));
        }
        let known: HashSet<&str> = project.questions.iter().map(|question| question.text.as_str()).collect();
        let mut items = Vec::new();
        lines(&folder.join(POOL), |_, line| {
            let item: Item = serde_json::from_str(line)
                .map_err(|error| format!("a passage with its question and ranks ({error})"))?;
            if !known.contains(item.question.as_str()) {
                return Err("a question that is in project.json, word for word".into());
            }
            items.push(item);
            Ok(())
        })?;
        Ok((project, items))
    }

    /// The question with this text.
    pub fn question(&self, text: &str) -> Option<&Question> {
        self.questions.iter().find(|question| question.text == text)
    }

    /// Whether an annotator has labelled an item for every current statement of its question.
    pub fn is_done(&self, item: &Item, history: &History, by: &str) -> bool {
        let Some(question) = self.question(&item.question) else { return false };
        let view = history.view(&item.key(by));
        view.is_some_and(|view| question.perspectives.iter().all(|text| view.answers.contains_key(text)))
    }

    /// The progress of an annotator, or of an adjudicator on what the annotators disagree about.
    pub fn progress(&self, items: &[Item], history: &History, by: &str) -> Progress {
        let adjudicates = self.adjudicators.iter().any(|name| name == by);
        let split = if adjudicates { Project::split(items, &history.decisions()) } else { Vec::new() };
        let is_own = |(at, item): &(usize, &Item)| match adjudicates {
            true => split.contains(at),
            false => item.is_for(by),
        };
        let mut progress = Progress::default();
        for (_, item) in items.iter().enumerate().filter(is_own) {
            let done = self.is_done(item, history, by);
            let view = history.view(&item.key(by));
            progress.assigned += 1;
            progress.done += usize::from(done);
            progress.skipped += usize::from(!done && view.is_some_and(|view| view.skipped));
            progress.flagged += usize::from(view.is_some_and(|view| view.flagged));
        }
        progress
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::annotate::testing::{QUESTION, YES, act, history as acted, open, passage};

    fn project() -> Project {
        let question = Question {
            id: "q1".into(),
            text: QUESTION.into(),
            perspectives: vec![YES.into(), "Zoos should not be banned.".into()],
            supports: Some(0),
            ..Question::default()
        };
        let fingerprint = Fingerprint("f".into());
        Project::new("corpus".into(), fingerprint, vec![question], vec!["bm25".into()], 3)
    }

    fn items() -> Vec<Item> {
        let item = |n| Item {
            question: QUESTION.into(),
            passage: passage(n),
            ranks: BTreeMap::from([("bm25".to_owned(), n)]),
            later: BTreeMap::new(),
            round: 0,
            annotators: if n == 3 { vec!["ben".into()] } else { Vec::new() },
            labels: BTreeMap::new(),
        };
        (1..=3).map(item).collect()
    }

    #[test]
    fn a_project_survives_writing_and_reading_and_is_never_overwritten() {
        let folder = tempfile::tempdir().unwrap();
        let place = folder.path().join("new").join("project");
        project().write(&items(), &place).unwrap();
        assert_eq!(Project::open(&place).unwrap(), (project(), items()));
        assert!(Project::guidelines(&place).unwrap().unwrap().contains("What counts as support"));
        assert!(Project::journals(&place).unwrap().is_empty());
        let error = project().write(&[], &place).unwrap_err();
        assert!(error.to_string().contains("already"), "{error}");
        assert_eq!(Project::open(&place).unwrap().1, items());
    }

    #[test]
    fn a_project_that_another_process_changes_is_not_changed_and_the_error_says_so() {
        let folder = tempfile::tempdir().unwrap();
        project().write(&items(), folder.path()).unwrap();
        let place = folder.path().join("project.lock");
        let Attempt::Acquired(held) = FileLock::try_acquire(&place, &Holder::here("project")).unwrap() else {
            panic!("nobody holds it")
        };
        let error = project().rewrite(&items()[..1], folder.path()).unwrap_err();
        assert!(error.to_string().contains("another process is changing the project"), "{error}");
        assert_eq!(Project::open(folder.path()).unwrap().1, items());
        drop(held);
        project().rewrite(&items()[..1], folder.path()).unwrap();
        assert_eq!(Project::open(folder.path()).unwrap().1.len(), 1);
    }

    #[test]
    fn a_bad_project_is_reported_with_file_and_line() {
        let folder = tempfile::tempdir().unwrap();
        let message = || Project::open(folder.path()).unwrap_err().to_string();
        assert!(message().contains("project.json: no such file"), "{}", message());
        project().write(&items(), folder.path()).unwrap();
        let card = fs::read_to_string(folder.path().join(CARD)).unwrap();
        fs::write(folder.path().join(CARD), card.replace("\"v\": 1", "\"v\": 9")).unwrap();
        assert!(message().contains("later version"), "{}", message());
        fs::write(folder.path().join(CARD), card.replace("\"depth\": 3", "\"depth\": true")).unwrap();
        assert!(
            message().contains("project.json:") && message().contains("expected the settings of a project"),
            "{}",
            message()
        );
        fs::write(folder.path().join(CARD), card.replace(QUESTION, "Another?")).unwrap();
        assert!(
            message().contains("pool.jsonl:1: expected a question that is in project.json"),
            "{}",
            message()
        );
    }

    #[test]
    fn an_adjudicator_is_assigned_what_the_annotators_disagree_about() {
        let project = Project { adjudicators: vec!["cleo".into()], ..project() };
        let history = acted(&[("anna", act(1, true)), ("ben", act(1, false)), ("anna", act(2, true))]);
        assert_eq!(project.progress(&items(), &history, "cleo").assigned, 1);
    }

    #[test]
    fn an_item_is_done_once_every_statement_has_a_label_in_its_current_wording() {
        let folder = tempfile::tempdir().unwrap();
        let (mut project, items) = (project(), items());
        let mut journal = open(&Project::journal(folder.path(), "anna"));
        journal.append(act(1, true)).unwrap();
        let mut skipped = act(2, true);
        skipped.view = super::super::View { skipped: true, flagged: true, ..Default::default() };
        journal.append(skipped).unwrap();
        let progress = |project: &Project, journal: &super::super::Journal| {
            project.progress(&items, journal.history(), "anna")
        };
        let expected = Progress { assigned: 2, done: 0, skipped: 1, flagged: 1 };
        assert_eq!(progress(&project, &journal), expected);
        let mut both = act(1, true);
        both.view.answers.insert("Zoos should not be banned.".into(), false);
        journal.append(both).unwrap();
        assert_eq!(progress(&project, &journal), Progress { done: 1, ..expected });
        project.questions[0].perspectives[0] = "Zoos must be banned.".into();
        assert_eq!(progress(&project, &journal), expected);
    }
}
