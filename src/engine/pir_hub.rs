//! Reads a PIR task as the hub has it: a folder with `corpus.jsonl`, `queries.jsonl` and `qrels.jsonl`.
//!
//! A query is `{_id, text, meta}`. `meta` is a string that holds JSON: `src_query`, the query without its perspective, and
//! `perspective`. The files do not say which side a perspective takes.

use std::collections::HashMap;
use std::path::{Path, PathBuf};

use serde::Deserialize;

use crate::corpus::source::{CorpusFormat, Source, Wanted};
use crate::input::{self, InputError};
use crate::measure::trec::{TrecError, read_jsonl_qrels};
use crate::question::pir::{NO_SIDE, Row, Task};

#[derive(Deserialize)]
struct Query {
    #[serde(rename = "_id", alias = "id")]
    id: String,
    text: String,
    meta: String,
}

#[derive(Deserialize)]
struct Meta {
    src_query: String,
    #[serde(default)]
    perspective: Option<String>,
}

/// Why a task cannot be read.
#[derive(Debug, thiserror::Error)]
pub enum HubTaskError {
    /// A file is missing.
    #[error("{}: expected {name}.jsonl there, as PIR's tasks lie on the hub", folder.display())]
    Missing {
        /// The task's folder.
        folder: PathBuf,
        /// The file, without its extension.
        name: String,
    },
    /// A judgment names a query or passage that does not exist.
    #[error("{file}: expected {expected}, found {found}")]
    Unknown {
        /// The file of judgments.
        file: String,
        /// What was expected.
        expected: &'static str,
        /// The name that was found.
        found: String,
    },
    /// The passages or queries cannot be read.
    #[error(transparent)]
    Input(#[from] InputError),
    /// The judgments cannot be read.
    #[error(transparent)]
    Judgments(#[from] TrecError),
}

/// Reads one task.
///
/// # Errors
/// A file is missing or has a bad line, or a judgment names a query or passage that does not exist.
pub fn read(folder: &Path) -> Result<Task, HubTaskError> {
    let (mut corpus, mut places) = (Vec::new(), HashMap::new());
    let wanted = Wanted { format: Some(CorpusFormat::Jsonl), ..Wanted::default() };
    Source::wanted(&file(folder, "corpus")?, wanted)?.read(0, &mut |_, passage| {
        places.insert(passage.id.clone(), corpus.len());
        corpus.push(passage.contents());
        Ok(())
    })?;
    let (mut rows, mut queries) = (Vec::new(), HashMap::new());
    input::lines(&file(folder, "queries")?, |_, line| {
        let query: Query = serde_json::from_str(line)
            .map_err(|error| format!("a JSON object with `_id`, `text` and `meta` ({error})"))?;
        let meta: Meta = serde_json::from_str(&query.meta)
            .map_err(|error| format!("`meta` to be JSON with `src_query` and `perspective` ({error})"))?;
        if queries.insert(query.id.clone(), rows.len()).is_some() {
            return Err(format!("an `_id` of its own (`{}` stood on an earlier line)", query.id).into());
        }
        let perspective = meta.perspective.filter(|text| !text.trim().is_empty());
        let (query, root, label) = (query.text, meta.src_query, NO_SIDE.to_owned());
        rows.push(Row { query, root, perspective, label, gold: Vec::new() });
        Ok(())
    })?;
    let qrels = file(folder, "qrels")?;
    let name = qrels.display().to_string();
    for (question, judged) in read_jsonl_qrels(&name, input::open(&qrels)?)?.questions() {
        let Some(row) = queries.get(question) else {
            let (file, found) = (name, input::excerpt(question));
            return Err(HubTaskError::Unknown { file, expected: "a query of queries.jsonl", found });
        };
        for (passage, _) in judged.iter().filter(|(_, grade)| **grade > 0) {
            let place = places.get(passage).ok_or_else(|| {
                let (file, found) = (name.clone(), input::excerpt(passage));
                HubTaskError::Unknown { file, expected: "a passage of corpus.jsonl", found }
            })?;
            rows[*row].gold.push(*place);
        }
    }
    let name = folder.canonicalize().unwrap_or_else(|_| folder.into());
    let name = name.file_name().unwrap_or_default().to_string_lossy().into_owned();
    Ok(Task { name, corpus, rows })
}

/// Finds the file of that name, plain or compressed.
fn file(folder: &Path, name: &str) -> Result<PathBuf, HubTaskError> {
    let names = ["", ".gz", ".zst"].map(|ending| folder.join(format!("{name}.jsonl{ending}")));
    let found = names.into_iter().find(|path| path.is_file());
    found.ok_or_else(|| HubTaskError::Missing { folder: folder.into(), name: name.to_owned() })
}
