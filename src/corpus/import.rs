//! Which importer reads what the user named, and what a source looked like when it was read.

use std::path::{Path, PathBuf};
use std::time::UNIX_EPOCH;

use serde::{Deserialize, Serialize};

use super::{Fingerprint, Passage, beir, folder, results};
use crate::input::InputError;

/// Where an importer hands its passages. An error says what was expected instead and stops nothing but that line.
pub type Sink<'a> = &'a mut dyn FnMut(Passage) -> Result<(), String>;

/// Changes whenever an importer would read the same file into other passages.
const IMPORTERS: &str = "parallax-import-1";

/// A corpus as its owner keeps it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Source {
    /// BEIR `corpus.jsonl`.
    Jsonl(PathBuf),
    /// A folder of text files.
    Folder(PathBuf),
    /// The passages that runs carry (rank_llm, BERDS); at least one file.
    Results(Vec<PathBuf>),
}

/// A file as the system lists it: enough to know that it was not touched.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Listed {
    path: PathBuf,
    bytes: u64,
    modified_ns: u128,
}

impl Source {
    /// Recognises a file or folder.
    ///
    /// # Errors
    /// It is not there, or is neither a `.jsonl` file nor a folder.
    pub fn recognise(path: &Path) -> Result<Self, InputError> {
        let path = path.canonicalize().map_err(|error| InputError::unreadable(path, &error))?;
        if path.is_dir() {
            return Ok(Source::Folder(path));
        }
        match path.extension().and_then(|end| end.to_str()) {
            Some("jsonl" | "json" | "ndjson") if results::is_results(&path)? => {
                Ok(Source::Results(vec![path]))
            }
            Some("jsonl" | "json" | "ndjson") => Ok(Source::Jsonl(path)),
            _ => Err(InputError::Unreadable {
                path,
                reason: "expected a corpus in BEIR's format (.jsonl) or a folder of .txt and .md files"
                    .into(),
            }),
        }
    }

    /// The file or folder; the first of several.
    pub fn path(&self) -> &Path {
        match self {
            Source::Jsonl(path) | Source::Folder(path) => path,
            Source::Results(paths) => paths.first().map_or(Path::new(""), PathBuf::as_path),
        }
    }

    /// What tells it from other sources: all its paths.
    pub fn address(&self) -> String {
        match self {
            Source::Results(paths) => {
                paths.iter().map(|path| path.to_string_lossy()).collect::<Vec<_>>().join("\n")
            }
            _ => self.path().to_string_lossy().into_owned(),
        }
    }

    /// What a person would call it: `arguana` for `…/arguana/corpus.jsonl`.
    pub fn name(&self) -> String {
        if let Source::Results(paths) = self
            && paths.len() > 1
        {
            return format!("{} runs", paths.len());
        }
        let path = self.path();
        let stem = path.file_stem().unwrap_or_default().to_string_lossy();
        let parent = path.parent().and_then(Path::file_name).map(|name| name.to_string_lossy().into_owned());
        match (stem.as_ref(), parent) {
            ("corpus" | "articles" | "passages", Some(parent)) => parent,
            _ => stem.into_owned(),
        }
    }

    /// Reads all passages into `sink`.
    ///
    /// # Errors
    /// Anything in the source is not as its format asks.
    pub fn read(&self, sink: Sink<'_>) -> Result<(), InputError> {
        match self {
            Source::Jsonl(path) => beir::read(path, sink),
            Source::Folder(path) => folder::read(path, sink),
            Source::Results(paths) => results::read(paths, sink),
        }
    }

    /// Size and time of every file it is made of.
    ///
    /// # Errors
    /// A file cannot be looked at.
    pub fn listing(&self) -> Result<Vec<Listed>, InputError> {
        let files = match self {
            Source::Jsonl(path) => vec![path.clone()],
            Source::Folder(path) => folder::files(path)?,
            Source::Results(paths) => paths.clone(),
        };
        files
            .into_iter()
            .map(|path| {
                let about = path.metadata().map_err(|error| InputError::unreadable(&path, &error))?;
                let modified = about.modified().ok().and_then(|time| time.duration_since(UNIX_EPOCH).ok());
                Ok(Listed { bytes: about.len(), modified_ns: modified.unwrap_or_default().as_nanos(), path })
            })
            .collect()
    }

    /// Identity of the content, read in full.
    ///
    /// # Errors
    /// A file cannot be read.
    pub fn fingerprint(&self, listing: &[Listed]) -> Result<Fingerprint, InputError> {
        let mut all = blake3::Hasher::new();
        all.update(IMPORTERS.as_bytes());
        if let Source::Results(_) = self {
            all.update(b"results");
        }
        for Listed { path, .. } in listing {
            let mut one = blake3::Hasher::new();
            one.update_mmap(path).map_err(|error| InputError::unreadable(path, &error))?;
            // Only the name below the source counts, so that a moved corpus keeps its index.
            let inside = path.strip_prefix(self.path()).unwrap_or(Path::new(""));
            all.update(inside.to_string_lossy().as_bytes()).update(one.finalize().as_bytes());
        }
        Ok(Fingerprint(all.finalize().to_hex()[..24].to_owned()))
    }
}
