//! A brought model as a recipe names it: `contriever`, `hf:ORG/MODEL`, `path:FOLDER`, with options after an `@`.

use std::fmt;
use std::path::{Path, PathBuf};

use super::registry::{self, Entry, Family};
use crate::input::InputError;

/// A model and how it is to be read.
#[derive(Clone, Debug, PartialEq)]
pub struct Named {
    /// Where it comes from.
    pub source: Source,
    /// A family, where the user names one.
    pub given: Option<&'static Family>,
    /// What stands before a question, instead of what the model says.
    pub query: Option<String>,
    /// What stands before a passage, instead of what the model says.
    pub passage: Option<String>,
}

/// Where a model comes from.
#[derive(Clone, Debug, PartialEq)]
pub enum Source {
    /// It has a short name.
    Known(&'static Entry),
    /// A repository on the hub.
    Hub(String),
    /// A folder.
    Folder(String),
}

/// The folders of a model's networks; the same one twice where one reads all.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Towers {
    /// Of the network that reads questions.
    pub queries: PathBuf,
    /// Of the network that reads passages.
    pub passages: PathBuf,
}

impl Source {
    /// Reads `contriever`, `hf:ORG/MODEL` or `path:FOLDER`.
    ///
    /// # Errors
    /// What was expected.
    pub fn parse(text: &str) -> Result<Self, String> {
        if let Some(path) = text.strip_prefix("path:") {
            return match path.trim() {
                "" => Err("a folder after `path:`".into()),
                path => Ok(Source::Folder(path.to_owned())),
            };
        }
        if let Some(name) = text.strip_prefix("hf:") {
            let plain = |c: char| c.is_ascii_alphanumeric() || "-_.".contains(c);
            let part = |part: &str| !part.is_empty() && !part.starts_with('.') && part.chars().all(plain);
            let parts: Vec<&str> = name.split('/').collect();
            return match parts.as_slice() {
                [owner, model] if part(owner) && part(model) => Ok(Source::Hub(name.to_owned())),
                _ => Err(format!("ORG/MODEL after `hf:`, found `{name}`")),
            };
        }
        let entry = registry::model(&text.to_ascii_lowercase());
        entry.map(Source::Known).ok_or_else(|| {
            let names: Vec<&str> = registry::MODELS.iter().map(|entry| entry.name).collect();
            format!("hf:ORG/MODEL, path:FOLDER, or one of {}", names.join(", "))
        })
    }

    /// Its repositories on the hub.
    pub fn repositories(&self) -> Vec<&str> {
        match self {
            Source::Known(entry) => entry.repositories.to_vec(),
            Source::Hub(name) => vec![name],
            Source::Folder(_) => Vec::new(),
        }
    }
}

impl fmt::Display for Source {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Source::Known(entry) => f.write_str(entry.name),
            Source::Hub(name) => write!(f, "hf:{name}"),
            Source::Folder(path) => write!(f, "path:{path}"),
        }
    }
}

impl From<Source> for Named {
    /// As it says itself.
    fn from(source: Source) -> Self {
        Named { source, given: None, query: None, passage: None }
    }
}

impl Named {
    /// The family that was named, by the user or by the list of known models.
    pub fn family(&self) -> Option<&'static Family> {
        self.given.or(match &self.source {
            Source::Known(entry) => Some(entry.family),
            _ => None,
        })
    }

    /// A short name for people: the last part of where it comes from.
    pub fn title(&self) -> &str {
        match &self.source {
            Source::Known(entry) => entry.name,
            Source::Hub(name) | Source::Folder(name) => {
                name.trim_end_matches(['/', '\\']).rsplit(['/', '\\']).next().unwrap_or(name)
            }
        }
    }

    /// The title as a part of a file's name.
    pub fn slug(&self) -> String {
        let plain = |c: char| if c.is_ascii_alphanumeric() { c.to_ascii_lowercase() } else { '-' };
        self.title().chars().take(40).map(plain).collect()
    }

    /// Where its networks lie; what comes from the hub lies below `models`.
    ///
    /// # Errors
    /// It has not been fetched, or there is no such folder.
    pub fn towers(&self, models: &Path) -> Result<Towers, InputError> {
        let one = |folder: PathBuf| Towers { queries: folder.clone(), passages: folder };
        if let Source::Folder(path) = &self.source {
            let folder = PathBuf::from(path);
            let (queries, passages) = (folder.join("question_encoder"), folder.join("ctx_encoder"));
            return match (folder.join("config.json").exists(), queries.exists() && passages.exists()) {
                (false, true) => Ok(Towers { queries, passages }),
                (true, _) => Ok(one(folder)),
                _ => Err(InputError::Unreadable {
                    path: folder,
                    reason: "no model is there; expected a folder with config.json, weights and a tokenizer, or with \
                             the two such folders question_encoder and ctx_encoder"
                        .into(),
                }),
            };
        }
        let mut folders = Vec::new();
        for repository in self.source.repositories() {
            let folder = folder(models, repository);
            if !folder.join(MANIFEST).exists() {
                let reason =
                    format!("{repository} is not there; fetch it with: parallax models get {}", self.source);
                return Err(InputError::Unreadable { path: folder, reason });
            }
            folders.push(folder);
        }
        let passages = folders.pop().unwrap_or_default();
        Ok(Towers { queries: folders.pop().unwrap_or_else(|| passages.clone()), passages })
    }
}

/// Where a repository is kept.
pub fn folder(models: &Path, repository: &str) -> PathBuf {
    models.join(repository.replace('/', "--"))
}

/// What a fetched model's folder holds once it is whole.
pub const MANIFEST: &str = "manifest.json";
