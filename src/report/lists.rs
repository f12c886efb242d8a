//! Writes the lists and labels behind a table in the formats of other tools, for `--write FOLDER`.
//!
//! Every lane has one TREC run and one BERDS JSONL. Two qrels files have all labels of the questions, also of passages that no lane
//! found: `labels.qrels` says whether a passage supports any statement, `labels.div.qrels` which ones (the iteration is the statement's
//! number). `probabilities.jsonl` has the model's probabilities where its verdict counts. From these files alone the printed means can be
//! worked out again: `tools/measures/from_written.py`.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use serde_json::{Value, json};

use super::PictureError;
use crate::detect::{By, LabelSource, PairLabels};
use crate::engine::{Outcome, Query, Recipe, Setup};
use crate::measure::expected::Chances;
use crate::measure::trec::{RankedPassage, write_run};
use crate::question::Question;
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
    /// From question and passage to the label of every statement; `None` for a statement without one.
    labels: BTreeMap<(String, String), Vec<Option<bool>>>,
    /// From question and passage to the model's probabilities, where its verdict counts.
    probabilities: BTreeMap<(String, String), Value>,
}

impl Found {
    /// Adds the lists of one question, all its labels, and the model's probabilities that count.
    pub fn take(&mut self, outcome: &Outcome, setup: &Setup) {
        self.runs.resize_with(outcome.lanes.len(), Vec::new);
        self.results.resize_with(outcome.lanes.len(), Vec::new);
        let Query { question, source, .. } = &outcome.query;
        let labels = |id: &str| -> Vec<Option<bool>> {
            let known = question.perspectives.iter().map(|statement| setup.labelled(statement, id));
            let known: Vec<PairLabels> = known.collect();
            let by_hand = match source {
                LabelSource::Model => return vec![None; known.len()],
                LabelSource::Human => true,
                LabelSource::Gold => false,
                LabelSource::Auto => known.iter().any(PairLabels::by_hand),
            };
            known.iter().map(|pair| if by_hand { pair.human } else { pair.gold }).collect()
        };
        // Measures with an ideal order need every labelled passage, also those that no lane found.
        let pool = setup.label_pool(question, *source).into_iter().map(|(id, _)| id);
        let listed = outcome.lists().into_iter().flatten().flatten().map(|ranked| ranked.passage.id.clone());
        for id in pool.chain(listed).collect::<BTreeSet<String>>() {
            let labels = labels(&id);
            if labels.iter().any(Option::is_some) {
                self.labels.insert((question.id.clone(), id), labels);
            }
        }
        for (lane, found) in outcome.lanes.iter().enumerate() {
            let Ok(list) = &found.ranking else { continue };
            let mut passages = Vec::new();
            let mut results = Vec::new();
            for ranked in list.iter() {
                let (id, score) = (ranked.passage.id.clone(), f64::from(ranked.score));
                let pair = (question.id.clone(), id.clone());
                let verdicts = if outcome.judgments.owner(ranked.at) == By::Model {
                    if let Some(chances) = outcome.judgments.chances(ranked.at) {
                        let p = match &chances {
                            Chances::Two(p) => json!({"first, second, both, neither": p}),
                            Chances::Each(p) => json!({"each statement": p}),
                        };
                        self.probabilities.insert(pair, p);
                    }
                    let set = outcome.judgments.support(ranked.at);
                    set.map(|set| (0..question.perspectives.len()).map(|i| Some(set.contains(i))).collect())
                } else {
                    self.labels.get(&pair).cloned()
                };
                results.push(json!({
                    "id": id,
                    "title": ranked.passage.title,
                    "text": ranked.passage.text,
                    "score": score,
                    "parallax-preds": verdicts,
                }));
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

    /// Writes all files. Each is replaced as a whole. Returns the name of every lane's files, without ending.
    ///
    /// # Errors
    /// A file cannot be written, or an id contains white space, which TREC runs do not allow.
    pub fn write(
        &self,
        lanes: &[Recipe],
        questions: &[&Question],
        folder: &Path,
    ) -> Result<Vec<String>, SaveError> {
        make_folder(folder)?;
        let names = file_names(lanes);
        for ((recipe, name), (runs, results)) in
            lanes.iter().zip(&names).zip(self.runs.iter().zip(&self.results))
        {
            let mut run = Vec::new();
            write_run(&mut run, name, runs.iter().map(|(id, list)| (id.as_str(), list.as_slice())))
                .map_err(|source| SaveError::Run { recipe: recipe.to_string(), source })?;
            put(folder, &format!("{name}.run"), &run)?;
            let lines: String = results.iter().map(|line| format!("{line}\n")).collect();
            put(folder, &format!("{name}.jsonl"), lines.as_bytes())?;
        }
        let question = |question: &&Question| {
            let Question { id, text, perspectives, supports, .. } = question;
            let line =
                json!({"id": id, "question": text, "perspectives": perspectives, "supports": supports});
            format!("{line}\n")
        };
        put(folder, "questions.jsonl", questions.iter().map(question).collect::<String>().as_bytes())?;
        let (mut any, mut each) = (String::new(), String::new());
        for ((question, passage), labels) in &self.labels {
            // A passage without a yes is a no only if every statement has a label.
            if labels.contains(&Some(true)) || labels.iter().all(Option::is_some) {
                any += &format!("{question} 0 {passage} {}\n", u8::from(labels.contains(&Some(true))));
            }
            for (i, label) in labels.iter().enumerate().filter_map(|(i, label)| Some((i, (*label)?))) {
                each += &format!("{question} {} {passage} {}\n", i + 1, u8::from(label));
            }
        }
        put(folder, "labels.qrels", any.as_bytes())?;
        put(folder, "labels.div.qrels", each.as_bytes())?;
        let lines = self.probabilities.iter().map(|((question, passage), p)| {
            let line = json!({"question": question, "passage": passage, "p": p});
            format!("{line}\n")
        });
        put(folder, "probabilities.jsonl", lines.collect::<String>().as_bytes())?;
        Ok(names)
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

/// The names of the lanes' files, which are also the tags of their runs. They hold no sign with a meaning in a recipe, so that
/// `--lane run:FILE` takes the name as it is, and no two are the same.
fn file_names(lanes: &[Recipe]) -> Vec<String> {
    let mut names: Vec<String> = Vec::new();
    for recipe in lanes {
        let plain = |c: char| if c.is_ascii_alphanumeric() || "_.=".contains(c) { c } else { '-' };
        let name: String = recipe.to_string().chars().map(plain).take(150).collect();
        let mut own = name.clone();
        let mut number = 2;
        while names.contains(&own) {
            own = format!("{name}-{number}");
            number += 1;
        }
        names.push(own);
    }
    names
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_written_run_is_a_lane_by_its_own_name_and_no_two_lanes_share_a_file() {
        let recipes: Vec<Recipe> = ["bm25@k1=1.2,b=.75", "minilm+mmr@.75", "bm25@k1=1.2,b=.75", "bm25+rm3"]
            .map(|text| text.parse().unwrap())
            .to_vec();
        let names = file_names(&recipes);
        assert_eq!(names.iter().collect::<BTreeSet<_>>().len(), 4, "{names:?}");
        for name in names {
            let lane: Recipe = format!("run:out/{name}.run").parse().unwrap();
            assert_eq!(lane.run().unwrap().path, Path::new(&format!("out/{name}.run")));
            assert_eq!(lane, lane.plain(), "{name}");
        }
    }
}
