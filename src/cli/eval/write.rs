//! `--write FOLDER`: the lists and labels that a table was made of, in the formats that other tools read.
//!
//! One TREC run and one BERDS JSONL a lane, and two qrels files: `labels.qrels` says whether a passage supports any perspective,
//! `labels.div.qrels` which (the iteration is the perspective's number). They hold the passages of the lists that have a label.

use std::collections::BTreeMap;
use std::fs;
use std::io::Write;
use std::path::Path;

use anyhow::Context;
use serde_json::{Value, json};

use crate::measure::trec::{RankedPassage, write_run};
use crate::pipeline::{Answer, Plan, Recipe};

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
    pub fn take(&mut self, plan: &Plan, answered: &Answer) {
        self.runs.resize_with(plan.lanes.len(), Vec::new);
        self.results.resize_with(plan.lanes.len(), Vec::new);
        let question = &plan.question;
        for (lane, (ranking, _)) in answered.lanes.iter().enumerate() {
            let Ok(list) = ranking else { continue };
            let mut passages = Vec::new();
            let mut results = Vec::new();
            for ranked in list.iter() {
                let (id, score) = (ranked.passage.id.clone(), f64::from(ranked.score));
                let labels = answered.book.support(ranked.at).map(|set| {
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

    /// Writes every file beside its place, then into it.
    ///
    /// # Errors
    /// A file cannot be written, or an id holds white space, which no run may.
    pub fn write(&self, lanes: &[Recipe], folder: &Path) -> anyhow::Result<()> {
        fs::create_dir_all(folder).with_context(|| format!("{} cannot be made", folder.display()))?;
        for (recipe, (runs, results)) in lanes.iter().zip(self.runs.iter().zip(&self.results)) {
            let name = file_name(&recipe.to_string());
            let mut run = Vec::new();
            write_run(&mut run, &name, runs.iter().map(|(id, list)| (id.as_str(), list.as_slice())))
                .with_context(|| format!("the run of {recipe}"))?;
            put(folder, &format!("{name}.run"), &run)?;
            let lines: String = results.iter().map(|line| format!("{line}\n")).collect();
            put(folder, &format!("{name}.jsonl"), lines.as_bytes())?;
        }
        let (mut any, mut each) = (Vec::new(), Vec::new());
        for ((question, passage), labels) in &self.labels {
            writeln!(any, "{question} 0 {passage} {}", u8::from(labels.contains(&true)))?;
            for (i, label) in labels.iter().enumerate() {
                writeln!(each, "{question} {} {passage} {}", i + 1, u8::from(*label))?;
            }
        }
        put(folder, "labels.qrels", &any)?;
        put(folder, "labels.div.qrels", &each)
    }
}

/// Writes a file beside its place, then into it.
pub fn put(folder: &Path, name: &str, bytes: &[u8]) -> anyhow::Result<()> {
    let place = folder.join(name);
    let part = folder.join(format!("{name}.part"));
    let written = fs::write(&part, bytes).and_then(|()| fs::rename(&part, &place));
    written.with_context(|| format!("{} cannot be written", place.display()))
}

/// A recipe as a file's name and a run's tag.
fn file_name(recipe: &str) -> String {
    recipe
        .chars()
        .map(|c| if c.is_ascii_alphanumeric() || "-_.=@+,%~".contains(c) { c } else { '_' })
        .collect()
}
