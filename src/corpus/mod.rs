//! Passages, the importers that read them, and the library that stores imported corpora.
//!
//! | file | holds |
//! | --- | --- |
//! | `store` | [`Passage`], [`Corpus`]: the passages of one corpus, read from disk on demand; metadata fields with few values |
//! | `source` | the format of a file or folder |
//! | `importer` | the parts that all importers share (columns, positions, the sink), and the importer of JSONL and tables |
//! | `folder`, `results` | the importers of folders of texts and of the results of other tools |
//! | `build` | imports into the store, resumable |
//! | `library` | all stored corpora: open, add, list, remove |
//! | `sample` | the built-in sample |
//!
//! Must not know about queries, rankings or models. May use: input, measure (run formats), question (PIR's files), storage, work.

mod build;
mod folder;
mod importer;
pub mod library;
pub mod results;
pub mod source;
pub mod store;

pub use build::{About, BuildError, Census, OFFSETS, PASSAGES, Repeats};
pub use folder::{HtmlError, Page, chunks, main_text};
pub use importer::{Columns, Refused, exact_object};
pub use library::StoredCorpus;
pub use store::{Corpus, Fingerprint, Passage, PassageIx};

/// The built-in sample: questions, passages, gold labels, recorded replies, and the passages' vectors.
pub mod sample {
    use super::store::Corpus;

    /// Passages, one per line.
    pub const CORPUS: &[u8] = include_bytes!("../../sample_data/corpus.jsonl");
    /// Questions with their perspectives, one per line.
    pub const QUESTIONS: &str = include_str!("../../sample_data/questions.jsonl");
    /// Gold labels: question, id, perspective, label, evidence.
    pub const LABELS: &str = include_str!("../../sample_data/labels.tsv");
    /// Recorded replies of a language model to the expansions' prompts for these questions.
    pub const REPLIES: &[u8] = include_bytes!("../../sample_data/replies.jsonl");
    /// The passages' vectors by the built-in encoder, `[passages, 384]` little-endian f32, after a 32-byte key.
    pub const VECTORS: &[u8] = include_bytes!("../../sample_data/minilm.f32");

    /// The sample as a corpus.
    pub fn corpus() -> Corpus {
        Corpus::builtin("sample", CORPUS)
    }
}
