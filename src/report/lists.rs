//! `--write FOLDER`: the lists and labels behind a table, in the formats of other tools.
//!
//! One TREC run and one BERDS JSONL a lane, and two qrels files: `labels.qrels` says whether a passage supports any perspective,
//! `labels.div.qrels` which (the iteration is the perspective's number). They hold the passages of the lists that have a label.

use std::collections::BTreeMap;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use serde_json::{Value, json};

use super::PictureError;
use crate::engine::{Outcome, Recipe};
use crate::measure::trec::{RankedPassage, write_run};
use crate::storage::replace;

/// A file that could not be saved.
#[derive(Debug, thiserror::Error)]
pub enum SaveError {
    /// The folder cannot be made.
    #[error("{} cannot be made", path.display())]
    Folder {
        /// The folder.
        path: PathBuf,
        /// The reason.
        source: io::Error,
    },
    /// The file cannot be written.
    #[error("{} cannot be written", path.display())]
    File {
        /// The file.
        path: PathBuf,
        /// The reason.
        source: io::Error,
    },
    /// A lane's lists cannot be written as a TREC run.
    #[error("the run of {recipe}")]
    Run {
        /// The lane.
        recipe: String,
        /// The reason.
        source: io::Error,
    },
    /// A plot cannot be drawn.
    #[error("{name}")]
    Plot {
        /// The file's name.
        name: String,
        /// The reason.
        source: PictureError,
    },
}

/// What was found so far.
#[derive(Default)]
pub struct Found {
    /// A lane's lists, question by question.
    runs: Vec<Vec<(String, Vec<RankedPassage>)>>,
    /// A lane's lists as BERDS writes them.
    results: Vec<Vec<Value>>,
    /// (question, passage) to the label of every perspective.
    labels: BTreeMap<(String, String), Vec<bool>>,
}

impl Found {
    /// Takes one question's lists.
    pub fn take(&mut self, outcome: &Outcome) {
        self.runs.resize_with(outcome.lanes.len(), Vec::new);
        self.results.resize_with(outcome.lanes.len(), Vec::new);
        let question = &outcome.query.question;
        for (lane, found) in outcome.lanes.iter().enumerate() {
            let Ok(list) = &found.ranking else { continue };
            let mut passages = Vec::new();
            let mut results = Vec::new();
            for ranked in list.iter() {
                let (id, score) = (ranked.passage.id.clone(), f64::from(ranked.score));
                let labels = outcome.judgments.support(ranked.at).map(|set| {
                    (0..question.perspectives.len()).map(|i| set.contains(i)).collect::<Vec<bool>>()
                });
                results.push(json!({
                    "id": id,
                    "title": ranked.passage.title,
                    "text": ranked.passage.text,
                    "score": score,
                    "parallax-preds": labels,
                }));
                if let Some(labels) = labels {
                    self.labels.insert((question.id.clone(), id.clone()), labels);
                }
                passages.push(RankedPassage { id, score, ..RankedPassage::default() });
            }
            self.runs[lane].push((question.id.clone(), passages));
            self.results[lane].push(json!({
                "id": question.id,
                "question": question.text,
                "perspectives": question.perspectives,
                "supports": question.supports,
                "ctxs": results,
            }));
        }
    }

    /// Writes every file beside its place, then moves it there.
    ///
    /// # Errors
    /// A file cannot be written, or an id holds white space, which TREC runs do not allow.
    pub fn write(&self, lanes: &[Recipe], folder: &Path) -> Result<(), SaveError> {
        make_folder(folder)?;
        for (recipe, (runs, results)) in lanes.iter().zip(self.runs.iter().zip(&self.results)) {
            let name = file_name(&recipe.to_string());
            let mut run = Vec::new();
            write_run(&mut run, &name, runs.iter().map(|(id, list)| (id.as_str(), list.as_slice())))
                .map_err(|source| SaveError::Run { recipe: recipe.to_string(), source })?;
            put(folder, &format!("{name}.run"), &run)?;
            let lines: String = results.iter().map(|line| format!("{line}\n")).collect();
            put(folder, &format!("{name}.jsonl"), lines.as_bytes())?;
        }
        let (mut any, mut each) = (String::new(), String::new());
        for ((question, passage), labels) in &self.labels {
            any += &format!("{question} 0 {passage} {}\n", u8::from(labels.contains(&true)));
            for (i, label) in labels.iter().enumerate() {
                each += &format!("{question} {} {passage} {}\n", i + 1, u8::from(*label));
            }
        }
        put(folder, "labels.qrels", any.as_bytes())?;
        put(folder, "labels.div.qrels", each.as_bytes())
    }
}

/// Makes a folder, if it does not exist.
///
/// # Errors
/// The folder cannot be made.
pub fn make_folder(folder: &Path) -> Result<(), SaveError> {
    fs::create_dir_all(folder).map_err(|source| SaveError::Folder { path: folder.into(), source })
}

/// Writes a file atomically.
pub fn put(folder: &Path, name: &str, bytes: &[u8]) -> Result<(), SaveError> {
    let path = folder.join(name);
    replace(&path, bytes).map_err(|source| SaveError::File { path, source })
}

/// A recipe as a file's name and a run's tag.
fn file_name(recipe: &str) -> String {
    recipe
        .chars()
        .map(|c| if c.is_ascii_alphanumeric() || "-_.=@+,%~".contains(c) { c } else { '_' })
        .collect()
}
