//! Writes the lists and labels behind a table in the formats of other tools, for `--write FOLDER`.
//!
//! Every lane has one TREC run and one BERDS JSONL. Two qrels files have the labelled passages of the lists: `labels.qrels` says whether a
//! passage supports any statement, `labels.div.qrels` which ones (the iteration is the statement's number).

use std::collections::BTreeMap;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use serde_json::{Value, json};

use super::PictureError;
use crate::engine::{Outcome, Recipe};
use crate::measure::trec::{RankedPassage, write_run};
use crate::storage::replace;

/// The reason why a file could not be saved.
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
    /// The lists of a lane cannot be written as a TREC run.
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

/// The lists and labels collected so far.
#[derive(Default)]
pub struct Found {
    /// The lists of every lane, question by question.
    runs: Vec<Vec<(String, Vec<RankedPassage>)>>,
    /// The lists of every lane as BERDS writes them.
    results: Vec<Vec<Value>>,
    /// From question and passage to the label of every statement.
    labels: BTreeMap<(String, String), Vec<bool>>,
}

impl Found {
    /// Adds the lists of one question.
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

    /// Writes all files. Each is replaced as a whole.
    ///
    /// # Errors
    /// A file cannot be written, or an id contains white space, which TREC runs do not allow.
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

/// Writes a file as a whole.
///
/// # Errors
/// The file cannot be written.
pub fn put(folder: &Path, name: &str, bytes: &[u8]) -> Result<(), SaveError> {
    let path = folder.join(name);
    replace(&path, bytes).map_err(|source| SaveError::File { path, source })
}

/// Turns a recipe into the name of a file and the tag of a run.
fn file_name(recipe: &str) -> String {
    recipe
        .chars()
        .map(|c| if c.is_ascii_alphanumeric() || "-_.=@+,%~".contains(c) { c } else { '_' })
        .collect()
}
