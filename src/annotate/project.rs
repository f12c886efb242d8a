//! A project: which passages are to be judged for which statements, by whom, and how far that is.
//!
//! A project is a folder that is all there is to it, so that it can be carried to another machine:
//!
//! ```text
//! project.json    corpus, questions, lanes, depth, seed, order, annotators
//! pool.jsonl      a passage a line, with its question, its ranks and who is to judge it
//! guidelines.md   what counts as support, in the words of whoever began it
//! NAME.jsonl      an annotator's journal
//! ```

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use super::{History, Key, Order, VERSION};
use crate::corpus::library::replace;
use crate::corpus::{Fingerprint, Passage};
use crate::input::{BadLine, InputError, lines};
use crate::question::Question;

/// The pool's file.
pub(super) const POOL: &str = "pool.jsonl";
const CARD: &str = "project.json";
const GUIDELINES: &str = "guidelines.md";

/// What a project is about.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Project {
    v: u32,
    /// The corpus's name.
    pub corpus: String,
    /// Its content.
    pub fingerprint: Fingerprint,
    /// The questions with their perspectives.
    pub questions: Vec<Question>,
    /// The lanes whose lists were pooled, as recipes.
    pub lanes: Vec<String>,
    /// How many passages of each list.
    pub depth: usize,
    /// In which order they are judged.
    pub order: Order,
    /// Of the random order and of the assignment.
    pub seed: u64,
    /// Lane, rank and the model's verdict are hidden.
    pub blind: bool,
    /// Who judges; empty if anybody judges everything.
    pub annotators: Vec<String>,
    /// The share of passages that two annotators judge.
    pub overlap: f64,
}

/// A passage to be judged.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Item {
    /// The question, word for word.
    pub question: String,
    /// The passage, whole: a project is judged without its corpus too.
    pub passage: Passage,
    /// Its rank in every lane that brought it up.
    pub ranks: BTreeMap<String, usize>,
    /// Who is to judge it; empty for everybody.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub to: Vec<String>,
}

/// How far one annotator is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Progress {
    /// Passages to judge.
    pub assigned: usize,
    /// Of these, judged for every perspective.
    pub done: usize,
    /// Passed over for now.
    pub skipped: usize,
    /// Marked for another look.
    pub flagged: usize,
}

impl Item {
    /// Whether this annotator is to judge it.
    pub fn is_for(&self, by: &str) -> bool {
        self.to.is_empty() || self.to.iter().any(|to| to == by)
    }

    /// What an annotator's view of it is kept under.
    pub fn key(&self, by: &str) -> Key {
        Key { by: by.into(), question: self.question.clone(), passage: self.passage.id.clone() }
    }
}

impl Project {
    /// What counts as support, where nobody said otherwise.
    pub const GUIDELINES: &str = include_str!("guidelines.md");

    /// A project on these questions over these lists, with no annotators yet.
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
        }
    }

    /// Whether a folder holds a project.
    pub fn is_in(folder: &Path) -> bool {
        folder.join(CARD).exists()
    }

    /// Where an annotator's journal lies.
    pub fn journal(folder: &Path, by: &str) -> PathBuf {
        folder.join(format!("{by}.jsonl"))
    }

    /// The journals that a folder holds.
    ///
    /// # Errors
    /// The folder cannot be read.
    pub fn journals(folder: &Path) -> Result<Vec<PathBuf>, InputError> {
        super::human::in_folder(folder)
    }

    /// What is written in the guidelines; none if there are none.
    pub fn guidelines(folder: &Path) -> Option<String> {
        fs::read_to_string(folder.join(GUIDELINES)).ok()
    }

    /// Writes a project into a folder that holds none.
    ///
    /// # Errors
    /// It holds one, or cannot be written.
    pub fn write(&self, items: &[Item], folder: &Path) -> std::io::Result<()> {
        if Project::is_in(folder) {
            let there = "there is a project already; name another folder";
            return Err(std::io::Error::new(std::io::ErrorKind::AlreadyExists, there));
        }
        fs::create_dir_all(folder)?;
        let mut pool = Vec::new();
        for item in items {
            serde_json::to_writer(&mut pool, item)?;
            pool.push(b'\n');
        }
        replace(&folder.join(POOL), &pool)?;
        if !folder.join(GUIDELINES).exists() {
            replace(&folder.join(GUIDELINES), Project::GUIDELINES.as_bytes())?;
        }
        // Last, as it is what makes the folder a project.
        let mut card = serde_json::to_vec_pretty(self)?;
        card.push(b'\n');
        replace(&folder.join(CARD), &card)
    }

    /// Reads a project and its pool.
    ///
    /// # Errors
    /// A file is not right, or of a later version.
    pub fn open(folder: &Path) -> Result<(Self, Vec<Item>), InputError> {
        let card = folder.join(CARD);
        let text = fs::read_to_string(&card).map_err(|error| InputError::unreadable(&card, &error))?;
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
            .map_err(|error| bad(error.line(), format!("a project's card ({error})")))?;
        let mut items = Vec::new();
        lines(&folder.join(POOL), |_, line| {
            let item: Item = serde_json::from_str(line)
                .map_err(|error| format!("a passage with its question and ranks ({error})"))?;
            if !project.questions.iter().any(|question| question.text == item.question) {
                return Err("a question that stands in project.json, word for word".into());
            }
            items.push(item);
            Ok(())
        })?;
        Ok((project, items))
    }

    /// The question of that text.
    pub fn question(&self, text: &str) -> Option<&Question> {
        self.questions.iter().find(|question| question.text == text)
    }

    /// Whether an annotator has judged an item for every perspective of its question, as it stands now.
    pub fn is_done(&self, item: &Item, history: &History, by: &str) -> bool {
        let Some(question) = self.question(&item.question) else { return false };
        let view = history.view(&item.key(by));
        view.is_some_and(|view| question.perspectives.iter().all(|text| view.answers.contains_key(text)))
    }

    /// How far an annotator is.
    pub fn progress(&self, items: &[Item], history: &History, by: &str) -> Progress {
        let mut progress = Progress::default();
        for item in items.iter().filter(|item| item.is_for(by)) {
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
mod tests;
