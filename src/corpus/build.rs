//! Writing a store: beside its place, then swapped in, so that no half-built store is ever opened.

use std::fs::{self, File};
use std::io::{BufWriter, Write};
use std::path::Path;

use super::import::Source;
use crate::input::InputError;
use crate::work::{Job, Progress, Stop, Tell};

/// Passages between two reports of progress.
const BATCH: u64 = 2_000;

/// Why a store was not built.
#[derive(Debug, thiserror::Error)]
pub enum BuildError {
    /// The source is not right.
    #[error(transparent)]
    Input(#[from] InputError),
    /// The store could not be written.
    #[error(
        "the cache folder {folder} cannot be written ({reason}); make room there or name another with --data-dir"
    )]
    Cache {
        /// Where it was to be.
        folder: String,
        /// What the system said.
        reason: String,
    },
    /// Stopped on request.
    #[error(transparent)]
    Stopped(#[from] crate::work::Stopped),
}

impl BuildError {
    /// A failure to write below `folder`.
    pub fn cache(folder: &Path, error: &dyn std::fmt::Display) -> Self {
        BuildError::Cache { folder: folder.display().to_string(), reason: error.to_string() }
    }
}

/// Imports `source` into `place`, a folder that is not there yet.
///
/// # Errors
/// The source is bad or empty, the folder cannot be written, or `stop` was set; `place` is then not there.
pub fn store(source: &Source, place: &Path, tell: Tell<'_>, stop: &Stop) -> Result<(), BuildError> {
    let beside = place.with_extension("building");
    let cache = |error: std::io::Error| BuildError::cache(place, &error);
    if beside.exists() {
        fs::remove_dir_all(&beside).map_err(cache)?;
    }
    fs::create_dir_all(&beside).map_err(cache)?;
    let built = write(source, &beside, tell, stop);
    if built.is_err() {
        // The reason why it failed matters more than a leftover, which the next build removes.
        let _ = fs::remove_dir_all(&beside);
    }
    built?;
    fs::rename(&beside, place).map_err(cache)
}

fn write(source: &Source, folder: &Path, tell: Tell<'_>, stop: &Stop) -> Result<(), BuildError> {
    let cache = |error: std::io::Error| BuildError::cache(folder, &error);
    let create = |name: &str| File::create(folder.join(name)).map(BufWriter::new).map_err(cache);
    let (mut passages, mut offsets) = (create("passages.jsonl")?, create("offsets.u64")?);
    let (mut at, mut count, mut failed) = (0u64, 0u64, None);
    let read = source.read(&mut |passage| {
        if failed.is_some() {
            return Ok(());
        }
        if stop.is_set() {
            failed = Some(crate::work::Stopped.into());
            return Ok(());
        }
        let mut line = serde_json::to_vec(&passage).map_err(|error| error.to_string())?;
        line.push(b'\n');
        let written = passages.write_all(&line).and_then(|()| offsets.write_all(&at.to_le_bytes()));
        failed = written.err().map(cache);
        at += line.len() as u64;
        count += 1;
        if count.is_multiple_of(BATCH) {
            tell(Progress { job: Job::Importing, done: count, total: 0 });
        }
        Ok(())
    });
    if let Some(error) = failed {
        return Err(error);
    }
    read?;
    if count == 0 {
        return Err(InputError::Empty {
            path: source.path().into(),
            what: "the corpus",
            advice: "give it at least one passage: a line of JSON, or a .txt or .md file with words in it",
        }
        .into());
    }
    offsets.write_all(&at.to_le_bytes()).map_err(cache)?;
    for file in [passages, offsets] {
        let file = file.into_inner().map_err(|error| cache(error.into_error()))?;
        file.sync_all().map_err(cache)?;
    }
    Ok(())
}
