//! The folder where imported corpora are kept, each under the fingerprint of its content.
//!
//! ```text
//! DATA/sources/PATH-HASH.json          what a source looked like when it was last read
//! DATA/corpora/FINGERPRINT/            passages.jsonl, offsets.u64, and what others derive from them
//! DATA/corpora/FINGERPRINT.lock        held while something below that folder is built
//! ```

use std::fs::{self, File, TryLockError};
use std::path::{Path, PathBuf};
use std::time::Duration;

use memmap2::Mmap;
use serde::{Deserialize, Serialize};

use super::build;
pub use super::build::BuildError;
use super::import::{Listed, Source};
use super::{Corpus, Fingerprint};
use crate::work::{Stop, Stopped, Tell};

/// Between two looks whether another process has ended its build.
const WAIT: Duration = Duration::from_millis(50);

/// Where corpora and what is derived from them lie.
#[derive(Clone, Debug)]
pub struct Library {
    root: PathBuf,
}

#[derive(Serialize, Deserialize)]
struct Known {
    listing: Vec<Listed>,
    fingerprint: Fingerprint,
}

impl Library {
    /// A library in `root`, which is made when something is first kept there.
    pub fn at(root: &Path) -> Self {
        Library { root: root.into() }
    }

    /// The folder of one corpus.
    pub fn folder(&self, fingerprint: &Fingerprint) -> PathBuf {
        self.root.join("corpora").join(&fingerprint.0)
    }

    /// Opens a source, importing it first if its content is not known yet.
    ///
    /// # Errors
    /// The source is bad, the library cannot be written, or `stop` was set.
    pub fn open(&self, source: &Source, tell: Tell<'_>, stop: &Stop) -> Result<Corpus, BuildError> {
        let fingerprint = self.fingerprint(source)?;
        let folder = self.folder(&fingerprint);
        if !folder.exists() {
            let _lock = self.lock(&fingerprint, stop)?;
            // Another process may have built it while this one waited.
            if !folder.exists() {
                build::store(source, &folder, tell, stop)?;
            }
        }
        let map = |name: &str| {
            let path = folder.join(name);
            let file = File::open(&path).map_err(|error| BuildError::cache(&path, &error))?;
            // SAFETY: the file is never written again once its folder has been swapped in.
            unsafe { Mmap::map(&file) }.map_err(|error| BuildError::cache(&path, &error))
        };
        Ok(Corpus::mapped(source.name(), fingerprint.clone(), map("passages.jsonl")?, map("offsets.u64")?))
    }

    /// Holds the right to build below a corpus's folder until the file is dropped. Waits while another process holds it.
    ///
    /// # Errors
    /// The library cannot be written, or `stop` was set.
    pub fn lock(&self, fingerprint: &Fingerprint, stop: &Stop) -> Result<File, BuildError> {
        let folder = self.root.join("corpora");
        let cache = |error: &dyn std::fmt::Display| BuildError::cache(&folder, error);
        fs::create_dir_all(&folder).map_err(|error| cache(&error))?;
        let file =
            File::create(folder.join(format!("{}.lock", fingerprint.0))).map_err(|error| cache(&error))?;
        loop {
            match file.try_lock() {
                Ok(()) => return Ok(file),
                Err(TryLockError::WouldBlock) if stop.is_set() => return Err(Stopped.into()),
                Err(TryLockError::WouldBlock) => std::thread::sleep(WAIT),
                Err(TryLockError::Error(error)) => return Err(cache(&error)),
            }
        }
    }

    /// The content's identity, read again only if a file's size or time has changed.
    fn fingerprint(&self, source: &Source) -> Result<Fingerprint, BuildError> {
        let listing = source.listing()?;
        let name = blake3::hash(source.address().as_bytes()).to_hex();
        let card = self.root.join("sources").join(format!("{}.json", &name[..24]));
        let known = fs::read(&card).ok().and_then(|bytes| serde_json::from_slice::<Known>(&bytes).ok());
        if let Some(known) = known.filter(|known| known.listing == listing) {
            return Ok(known.fingerprint);
        }
        let fingerprint = source.fingerprint(&listing)?;
        let known = Known { listing, fingerprint };
        let written = fs::create_dir_all(self.root.join("sources"))
            .and_then(|()| Ok(serde_json::to_vec(&known)?))
            .and_then(|bytes| replace(&card, &bytes));
        written.map_err(|error| BuildError::cache(&self.root, &error))?;
        Ok(known.fingerprint)
    }
}

/// Writes a small file beside its place and swaps it in.
///
/// # Errors
/// The folder cannot be written.
pub fn replace(path: &Path, bytes: &[u8]) -> std::io::Result<()> {
    use std::io::Write;
    let beside = path.with_extension(format!("{}.new", std::process::id()));
    let mut file = File::create(&beside)?;
    file.write_all(bytes).and_then(|()| file.sync_all())?;
    fs::rename(beside, path)
}
