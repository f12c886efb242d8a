//! The corpora of a library as they are listed: their names, and what lies in their folders.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use super::Fingerprint;
use super::about::About;
use super::build::BuildError;

/// One corpus in the library.
#[derive(Clone, Debug)]
pub struct Kept {
    /// Identity of its content.
    pub fingerprint: Fingerprint,
    /// Where it lies.
    pub folder: PathBuf,
    /// What is known of it; nothing if it was not finished.
    pub about: Option<About>,
    /// Whether all its passages are there.
    pub whole: bool,
}

impl Kept {
    /// What it is called; where nobody knows, its fingerprint.
    pub fn name(&self) -> &str {
        self.about.as_ref().map_or(&self.fingerprint.0, |about| &about.name)
    }

    /// How many passages it has, or has so far.
    pub fn passages(&self) -> u64 {
        let offsets = fs::metadata(self.folder.join("offsets.u64")).map_or(0, |about| about.len() / 8);
        offsets.saturating_sub(u64::from(self.whole))
    }

    /// Bytes on disk, with indices and vectors.
    pub fn bytes(&self) -> u64 {
        size(&self.folder)
    }

    /// The vectors that were made of it, by the key of their model, and whether they are whole.
    pub fn vectors(&self) -> Vec<(String, bool)> {
        let names = fs::read_dir(&self.folder).into_iter().flatten().flatten();
        let names = names.map(|entry| entry.file_name().to_string_lossy().into_owned());
        let mut found: Vec<_> = names
            .filter_map(|name| match name.strip_suffix(".f32") {
                Some(key) => Some((key.to_owned(), true)),
                None => Some((name.strip_suffix(".f32.part")?.to_owned(), false)),
            })
            .collect();
        found.sort();
        found
    }
}

fn size(folder: &Path) -> u64 {
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    let sizes = entries.map(|entry| match entry.metadata() {
        Ok(about) if about.is_dir() => size(&entry.path()),
        Ok(about) => about.len(),
        Err(_) => 0,
    });
    sizes.sum()
}

/// All corpora below a folder, by name.
pub(super) fn all(corpora: &Path) -> Result<Vec<Kept>, BuildError> {
    let listing = match fs::read_dir(corpora) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
        listing => listing.map_err(|error| BuildError::cache(corpora, &error))?,
    };
    let mut found = Vec::new();
    for entry in listing {
        let folder = entry.map_err(|error| BuildError::cache(corpora, &error))?.path();
        let whole = folder.extension().is_none();
        let unfinished = folder.extension().is_some_and(|end| end == "building");
        if !folder.is_dir() || !(whole || unfinished) {
            continue;
        }
        let fingerprint = Fingerprint(folder.file_stem().unwrap_or_default().to_string_lossy().into_owned());
        let about = fs::read(folder.join(About::FILE)).ok();
        let about = about.and_then(|bytes| serde_json::from_slice(&bytes).ok()).filter(|_| whole);
        found.push(Kept { fingerprint, folder, about, whole });
    }
    found.sort_by(|a, b| (a.name(), &a.fingerprint.0).cmp(&(b.name(), &b.fingerprint.0)));
    Ok(found)
}

/// The whole corpus of that name or fingerprint. A name that was given goes before one that came with a file.
///
/// # Errors
/// Several have the name.
pub(super) fn find(corpora: &Path, name: &str) -> Result<Option<Kept>, BuildError> {
    let mut found = all(corpora)?;
    found.retain(|kept| kept.whole && (kept.name() == name || kept.fingerprint.0 == name));
    let given = |kept: &Kept| kept.about.as_ref().is_some_and(|about| about.given);
    if found.iter().any(given) {
        found.retain(given);
    }
    match found.as_slice() {
        [_, _, ..] => {
            let all: Vec<&str> = found.iter().map(|kept| kept.fingerprint.0.as_str()).collect();
            Err(BuildError::Name(format!(
                "{} corpora are called {name}; name one by its fingerprint: {}",
                all.len(),
                all.join(", ")
            )))
        }
        _ => Ok(found.pop()),
    }
}

/// Whether a corpus may be called so.
pub(super) fn check(name: &str) -> Result<(), BuildError> {
    let bad = |c: char| c.is_control() || c == '/' || c == '\\';
    if name.trim().is_empty() || name.chars().any(bad) {
        return Err(BuildError::Name(format!(
            "a corpus cannot be called `{}`; expected a name without slashes, such as --name zoos",
            name.escape_debug()
        )));
    }
    Ok(())
}
