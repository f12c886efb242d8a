//! Passages and where they are kept.
//!
//! Owns [`Passage`], [`Corpus`], the importers (one file a format) and the [`library::Library`] that keeps what
//! was imported. It must not know about queries, rankings or models.

pub mod about;
mod build;
pub mod census;
mod chunk;
pub mod columns;
pub mod fields;
mod folder;
pub mod html;
pub mod import;
mod jsonl;
pub mod kept;
pub mod library;
mod part;
pub mod results;
pub mod sample;
mod store;
mod table;

pub use chunk::chunks;
pub use store::Corpus;

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

/// One retrievable piece of text, as BEIR's `corpus.jsonl` writes it.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Passage {
    /// The passage's own name, unique in its corpus.
    #[serde(rename = "_id")]
    pub id: String,
    /// Title of the page it comes from; may be empty.
    #[serde(default)]
    pub title: String,
    /// The text itself.
    pub text: String,
    /// Anything else that is known of it (outlet, voice, address…).
    #[serde(default, skip_serializing_if = "Map::is_empty")]
    pub metadata: Map<String, Value>,
}

impl Passage {
    /// What retrievers and encoders read: `title + ' ' + text`, or the text alone.
    pub fn contents(&self) -> String {
        if self.title.is_empty() { self.text.clone() } else { format!("{} {}", self.title, self.text) }
    }
}

/// A passage's place in its corpus, from 0.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct PassageIx(pub u32);

impl PassageIx {
    /// No corpus is so large: from here on stand passages that a run names and the corpus does not hold.
    const OUTSIDE: u32 = 1 << 31;

    /// A place outside of the corpus.
    pub fn outside(number: u32) -> Self {
        PassageIx(number | Self::OUTSIDE)
    }

    /// Which of the places outside it is, if it is one.
    pub fn as_outside(self) -> Option<u32> {
        (self.0 >= Self::OUTSIDE).then_some(self.0 & !Self::OUTSIDE)
    }
}

/// Identity of a corpus's content: two corpora with equal fingerprints hold the same passages.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Fingerprint(pub String);
