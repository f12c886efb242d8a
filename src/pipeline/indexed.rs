//! The term index of a corpus on disk: built beside its place, then swapped in.

use std::fs;

use super::setup::{SetupError, unwritable};
use crate::corpus::Corpus;
use crate::corpus::library::Library;
use crate::retrieve::{RetrieveError, TermIndex};
use crate::work::{Stop, Tell};

/// Builds the term index of a corpus of the library if it is not there.
///
/// # Errors
/// The library cannot be written, or `stop` was set.
pub fn index_terms(
    library: &Library,
    corpus: &Corpus,
    tell: Tell<'_>,
    stop: &Stop,
) -> Result<(), SetupError> {
    let place = library.folder(&corpus.fingerprint).join(TermIndex::FOLDER);
    if place.exists() {
        return Ok(());
    }
    let _lock = library.lock(&corpus.fingerprint, tell, stop)?;
    // Another process may have built it while this one waited.
    if place.exists() {
        return Ok(());
    }
    let beside = place.with_extension("building");
    let cache = |error: std::io::Error| SetupError::Cache(unwritable(&place, &error));
    if beside.exists() {
        fs::remove_dir_all(&beside).map_err(cache)?;
    }
    fs::create_dir_all(&beside).map_err(cache)?;
    TermIndex::build(&beside, corpus, tell, stop).map_err(|error| match error {
        RetrieveError::Index(reason) => cache(std::io::Error::other(reason)),
        other => other.into(),
    })?;
    fs::rename(&beside, &place).map_err(cache)
}
