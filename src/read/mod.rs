//! Retrieve, then read: the answers of a reader from the first k passages, and which passage changes the answer
//! (Oh & Thorne, "Detrimental Contexts in Open-Domain Question Answering").
//!
//! | file | holds |
//! | --- | --- |
//! | [`reader`] | the trait, its input and output; when an answer is right |
//! | [`pattern`] | right or wrong at every k, the effect of each passage, probes, and the stance of the first k |
//! | [`incremental`] | readings of a list at every depth, in part, without each passage, in other orders, with passages added |
//! | [`mix`] | lists mixed by hand from passages of either side, and what is concluded as the share of a side grows |
//! | [`prompted`] | a language model as a reader, and as a judge of equivalent answers |
//! | [`extractive`] | a model that copies its answer from the passages, which vote |
//! | [`fid`] | Fusion-in-Decoder: a T5 that reads all passages at once |
//! | `mod` | a reader in a folder, whose kind is recognised by its files |
//! | [`files`] | question sets with passages (FiD, RAMDocs, RetrievalQA), recorded answers |
//!
//! Must not retrieve or draw.
//!
//! May use: assets (in tests), corpus, encode, input, llm, measure (seeded random numbers), work.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use parking_lot::Mutex;

use crate::input::{InputError, excerpt};
use crate::work::Stop;
use extractive::Extractive;
use fid::Fid;

pub mod extractive;
pub mod fid;
pub mod files;
pub mod incremental;
pub mod mix;
pub mod pattern;
pub mod prompted;
pub mod reader;

pub use files::Answers;
pub use pattern::{Effect, Pattern};
pub use prompted::Prompted;
pub use reader::{Answer, Context, ReadError, Reader};

/// Opens the reader in a folder.
///
/// # Errors
/// The folder does not hold a reader, or its files are damaged or of two models.
pub fn open(folder: &Path) -> Result<Arc<dyn Reader>, InputError> {
    Ok(match kind(folder)? {
        Kind::Extractive => Arc::new(Extractive::load(folder)?),
        Kind::Fid => Arc::new(Fid::open(folder)?),
    })
}

/// A reader whose weights are loaded at the first question, because loading may take long and need gigabytes.
pub struct LazyReader {
    name: String,
    folder: PathBuf,
    loaded: Mutex<Option<Arc<dyn Reader>>>,
}

impl LazyReader {
    /// Checks the folder without reading its weights.
    ///
    /// # Errors
    /// The folder does not hold a reader, or its configuration is invalid.
    pub fn at(folder: &Path) -> Result<Self, InputError> {
        let name = match kind(folder)? {
            Kind::Extractive => extractive::name(folder)?,
            Kind::Fid => fid::name(folder)?,
        };
        Ok(LazyReader { name, folder: folder.into(), loaded: Mutex::default() })
    }

    fn load(&self) -> Result<Arc<dyn Reader>, ReadError> {
        let mut loaded = self.loaded.lock();
        match &*loaded {
            Some(reader) => Ok(Arc::clone(reader)),
            None => {
                let reader = open(&self.folder).map_err(|error| ReadError::Model(error.to_string()))?;
                Ok(Arc::clone(loaded.insert(reader)))
            }
        }
    }
}

impl Reader for LazyReader {
    fn name(&self) -> &str {
        &self.name
    }

    /// Known once the weights are loaded.
    fn order_sensitive(&self) -> bool {
        self.loaded.lock().as_ref().is_some_and(|reader| reader.order_sensitive())
    }

    fn attention(
        &self,
        question: &str,
        passages: &[Context],
        stop: &Stop,
    ) -> Result<Option<Vec<f64>>, ReadError> {
        self.load()?.attention(question, passages, stop)
    }

    fn answer(&self, question: &str, passages: &[Context], stop: &Stop) -> Result<Answer, ReadError> {
        self.load()?.answer(question, passages, stop)
    }
}

enum Kind {
    Extractive,
    Fid,
}

/// The kind of the reader, recognised by a file that only this kind has.
fn kind(folder: &Path) -> Result<Kind, InputError> {
    let here = names(folder)?;
    if here.iter().any(|name| name == extractive::CARD) {
        return Ok(Kind::Extractive);
    }
    if here.iter().any(|name| name == fid::CONFIG) {
        return Ok(Kind::Fid);
    }
    let reason = format!(
        "it does not hold a reader: expected {}, or {}; found {}",
        extractive::EXPECTED,
        fid::EXPECTED,
        excerpt(&if here.is_empty() { "nothing".into() } else { here.join(", ") })
    );
    Err(InputError::Unreadable { path: folder.into(), reason })
}

/// The sorted file names in the folder.
fn names(folder: &Path) -> Result<Vec<String>, InputError> {
    let unreadable = |error| InputError::unreadable(folder, &error);
    if std::fs::metadata(folder).map_err(unreadable)?.is_file() {
        let reason = "a reader is a folder, and this is a file; name its folder".into();
        return Err(InputError::Unreadable { path: folder.into(), reason });
    }
    let entries = std::fs::read_dir(folder).map_err(unreadable)?;
    let names = entries.map(|entry| Ok(entry?.file_name().to_string_lossy().into_owned()));
    let mut names = names.collect::<Result<Vec<_>, std::io::Error>>().map_err(unreadable)?;
    names.sort_unstable();
    Ok(names)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_waiting_reader_is_looked_at_first_and_loaded_when_it_is_asked() {
        let from = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures/readers/words");
        let folder = tempfile::tempdir().unwrap();
        let copy = |name: &str| std::fs::copy(from.join(name), folder.path().join(name)).unwrap();
        copy(extractive::CARD);
        assert!(LazyReader::at(folder.path()).is_err(), "the graph is not there");
        std::fs::write(folder.path().join("reader.onnx"), "no graph").unwrap();
        let lazy = LazyReader::at(folder.path()).unwrap();
        assert_eq!(lazy.name(), "words");
        let passages = crate::read::reader::testing::contexts(&["In Paris."]);
        let ask = || lazy.answer("Where?", &passages, &Stop::never());
        let error = ask().unwrap_err().to_string();
        assert!(error.contains("reader.onnx: its SHA-256 is"), "{error}");
        copy("reader.onnx");
        assert_eq!(ask().unwrap().text, "Paris");
        std::fs::write(folder.path().join(extractive::CARD), "{").unwrap();
        assert!(LazyReader::at(folder.path()).is_err());
        assert_eq!(ask().unwrap().text, "Paris", "it is loaded once");
    }

    #[test]
    fn what_is_no_reader_is_reported_with_what_was_found_and_what_was_expected() {
        let folder = tempfile::tempdir().unwrap();
        let error = |path: &Path| open(path).err().expect("it is refused").to_string();
        assert!(error(folder.path()).contains("expected reader.json"), "{}", error(folder.path()));
        assert!(error(folder.path()).ends_with("found `nothing`"));
        std::fs::write(folder.path().join("weights.bin"), "x").unwrap();
        std::fs::write(folder.path().join("notes.txt"), "x").unwrap();
        assert!(error(folder.path()).ends_with("found `notes.txt, weights.bin`"));
        assert!(error(&folder.path().join("notes.txt")).contains("this is a file"));
        assert!(error(&folder.path().join("none")).ends_with("none: no such file or folder"));
    }
}
