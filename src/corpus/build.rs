//! Writing a store: beside its place, then swapped in, so that no half-built store is ever opened.

use std::fs;
use std::path::Path;

use super::about::About;
use super::import::{Refused, Source};
use super::library;
use super::part::Part;
use crate::input::InputError;
use crate::work::{Job, Progress, Stop, Stopped, Tell};

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
        "the cache folder {folder} cannot be written ({reason}); make room there or name another with --data-dir, what was imported so far is kept"
    )]
    Cache {
        /// Where it was to be.
        folder: String,
        /// What the system said.
        reason: String,
    },
    /// A name that says nothing, or too much.
    #[error("{0}")]
    Name(String),
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

/// Imports `source` into `place`, a folder that is not there yet, going on from where an earlier call was broken off.
///
/// # Errors
/// The source is bad or empty, the folder cannot be written, or `stop` was set; `place` is then not there.
pub fn store(source: &Source, place: &Path, tell: Tell<'_>, stop: &Stop) -> Result<(), BuildError> {
    let beside = place.with_extension("building");
    let cache = |error: std::io::Error| BuildError::cache(place, &error);
    let built = write(source, &beside, tell, stop);
    if matches!(built, Err(BuildError::Input(_))) {
        // Of a source that is not right nothing is kept. The reason why matters more than a leftover.
        let _ = fs::remove_dir_all(&beside);
    }
    built?;
    fs::rename(&beside, place).map_err(cache)
}

fn write(source: &Source, folder: &Path, tell: Tell<'_>, stop: &Stop) -> Result<(), BuildError> {
    let cache = |error: std::io::Error| BuildError::cache(folder, &error);
    let mut about = About::of(source, source.recognised()?);
    let mut part = Part::open(folder).map_err(cache)?;
    let (mut item, mut ended) = (part.items(), None);
    if !part.census.is_empty() {
        tell(Progress { job: Job::Importing, done: part.census.len(), total: 0 });
    }
    let done = item;
    source.read(done, &mut |at, passage| {
        if at.item != item {
            // Everything before this item is in; a bad line before it must be met again.
            let stopped = stop.is_set();
            if at.clean && (part.is_due() || stopped) {
                ended = part.save(at.item - 1).err().map(cache);
            }
            if stopped {
                ended = ended.take().or(Some(Stopped.into()));
            }
            if ended.is_some() {
                return Err(Refused::Enough);
            }
            item = at.item;
        }
        part.census.add(&passage).map_err(Refused::Bad)?;
        part.push(&passage).map_err(|error| {
            ended = Some(cache(error));
            Refused::Enough
        })?;
        if part.census.len().is_multiple_of(BATCH) {
            tell(at.progress(part.census.len()));
        }
        Ok(())
    })?;
    if let Some(error) = ended {
        return Err(error);
    }
    if part.census.is_empty() {
        return Err(InputError::Empty {
            path: source.path().into(),
            what: "the corpus",
            advice: "give it at least one passage: a line of JSON, a row of a table, or a .txt, .md or .html file with words in it",
        }
        .into());
    }
    about.repeats = std::mem::take(&mut part.census.repeats);
    part.finish().map_err(cache)?;
    let about = serde_json::to_vec_pretty(&about).map_err(|error| BuildError::cache(folder, &error))?;
    library::replace(&folder.join(About::FILE), &about).map_err(cache)
}
