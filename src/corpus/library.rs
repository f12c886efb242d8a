//! The folder where imported corpora are kept, each under the fingerprint of its content.
//!
//! ```text
//! DATA/sources/PATH-HASH.json          what a source looked like when it was last read
//! DATA/corpora/FINGERPRINT/            passages.jsonl, offsets.u64, about.json, and what others derive from them
//! DATA/corpora/FINGERPRINT.building/   the same, unfinished
//! DATA/corpora/FINGERPRINT.lock        held while something below that folder is built; holds the number of that process
//! ```

use std::ffi::OsStr;
use std::fs::{self, File, TryLockError};
use std::io::Write;
use std::path::{Path, PathBuf};
use std::time::Duration;

use memmap2::Mmap;
use serde::{Deserialize, Serialize};

use super::about::About;
use super::build;
pub use super::build::BuildError;
use super::import::{Listed, Source};
use super::kept::{self, Kept};
use super::{Corpus, Fingerprint};
use crate::input::{self, InputError};
use crate::work::{Job, Progress, Stop, Stopped, Tell};

/// Between two looks whether another process has ended its build.
const WAIT: Duration = Duration::from_millis(50);

/// Where corpora and what is derived from them lie.
#[derive(Clone, Debug)]
pub struct Library {
    root: PathBuf,
}

/// What a user calls a corpus by.
#[derive(Clone, Debug)]
pub enum Called {
    /// A file or folder, which is imported if its content is not known yet.
    Source(Source),
    /// A corpus that is kept here; its source may be gone.
    Kept(Kept),
}

/// The lock, or the number of the process that holds it.
struct Lock(Result<File, u32>);

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

    /// What the user named: a file or folder, or a corpus that is kept here under that name.
    ///
    /// # Errors
    /// It is neither, or several corpora have that name.
    pub fn named(&self, path: &Path) -> Result<Called, BuildError> {
        if !path.exists()
            && !input::is_standard_input(path)
            && let Some(name) = path.to_str()
        {
            let reason =
                "no such file or folder, and no corpus is called so (`parallax corpus list` shows all)";
            return match kept::find(&self.root.join("corpora"), name)? {
                Some(kept) => Ok(Called::Kept(kept)),
                None => Err(InputError::Unreadable { path: path.into(), reason: reason.into() }.into()),
            };
        }
        Ok(Called::Source(Source::recognise(path)?))
    }

    /// Opens what was named.
    ///
    /// # Errors
    /// As [`Library::open`].
    pub fn open_named(&self, called: &Called, tell: Tell<'_>, stop: &Stop) -> Result<Corpus, BuildError> {
        match called {
            Called::Source(source) => self.open(source, tell, stop),
            Called::Kept(kept) => self.open_kept(kept),
        }
    }

    /// Opens a source, importing it first if its content is not known yet.
    ///
    /// # Errors
    /// The source is bad, the library cannot be written, or `stop` was set.
    pub fn open(&self, source: &Source, tell: Tell<'_>, stop: &Stop) -> Result<Corpus, BuildError> {
        let fingerprint = self.fingerprint(source)?;
        let folder = self.folder(&fingerprint);
        if !folder.exists() {
            let _lock = self.lock(&fingerprint, tell, stop)?;
            // Another process may have built it while this one waited.
            if !folder.exists() {
                build::store(source, &folder, tell, stop)?;
            }
        }
        Self::map(&folder, source.name(), fingerprint)
    }

    /// Opens a source and keeps it under a name, by which [`Library::named`] finds it without its source.
    ///
    /// # Errors
    /// As [`Library::open`], or another corpus has that name.
    pub fn add(
        &self,
        source: &Source,
        name: &str,
        tell: Tell<'_>,
        stop: &Stop,
    ) -> Result<Corpus, BuildError> {
        kept::check(name)?;
        let fingerprint = self.fingerprint(source)?;
        let taken = self.kept()?.into_iter().find(|kept| {
            kept.fingerprint != fingerprint
                && kept.about.as_ref().is_some_and(|about| about.given && about.name == name)
        });
        if taken.is_some() {
            return Err(BuildError::Name(format!(
                "another corpus is called {name}; give this one another name with --name, or remove that one with `parallax corpus rm {name}`"
            )));
        }
        let mut corpus = self.open(source, tell, stop)?;
        let place = self.folder(&fingerprint).join(About::FILE);
        let known = fs::read(&place).ok().and_then(|bytes| serde_json::from_slice::<About>(&bytes).ok());
        let about = known.map_or_else(|| Ok(About::of(source, source.recognised()?)), Ok::<_, InputError>)?;
        let about = About { name: name.into(), given: true, source: source.path().into(), ..about };
        serde_json::to_vec_pretty(&about)
            .map_err(std::io::Error::from)
            .and_then(|bytes| replace(&place, &bytes))
            .map_err(|error| BuildError::cache(&place, &error))?;
        corpus.name = name.into();
        Ok(corpus)
    }

    /// All corpora that are kept here, by name; also those that were not finished.
    ///
    /// # Errors
    /// The library cannot be read.
    pub fn kept(&self) -> Result<Vec<Kept>, BuildError> {
        kept::all(&self.root.join("corpora"))
    }

    /// Opens a corpus that is kept here.
    ///
    /// # Errors
    /// It is not whole.
    pub fn open_kept(&self, kept: &Kept) -> Result<Corpus, BuildError> {
        Self::map(&kept.folder, kept.name().to_owned(), kept.fingerprint.clone())
    }

    fn map(folder: &Path, name: String, fingerprint: Fingerprint) -> Result<Corpus, BuildError> {
        let at = |name: &str| folder.join(name);
        let open = |name: &str| File::open(at(name)).map_err(|error| BuildError::cache(&at(name), &error));
        let (lines, offsets) = (open("passages.jsonl")?, open("offsets.u64")?);
        let length =
            lines.metadata().map_err(|error| BuildError::cache(&at("passages.jsonl"), &error))?.len();
        // SAFETY: the file is never written again once its folder has been swapped in.
        let offsets =
            unsafe { Mmap::map(&offsets) }.map_err(|error| BuildError::cache(&at("offsets.u64"), &error))?;
        Ok(Corpus::filed(name, fingerprint, (lines, length), offsets))
    }

    /// Removes a corpus, with its index and vectors.
    ///
    /// # Errors
    /// Another process is building it, or the library cannot be written.
    pub fn remove(&self, kept: &Kept) -> Result<(), BuildError> {
        let cache = |error: std::io::Error| BuildError::cache(&kept.folder, &error);
        let Lock(Ok(_lock)) = self.try_lock(&kept.fingerprint)? else {
            return Err(BuildError::Name(format!(
                "{} is being built by another process; nothing was removed, end that one first",
                kept.name()
            )));
        };
        // Renamed first, so that a half-removed one is never opened.
        let beside = kept.folder.with_extension("removed");
        if beside.exists() {
            fs::remove_dir_all(&beside).map_err(cache)?;
        }
        fs::rename(&kept.folder, &beside).and_then(|()| fs::remove_dir_all(&beside)).map_err(cache)
    }

    /// Holds the right to build below a corpus's folder until the file is dropped. Waits while another process holds it, and
    /// tells which.
    ///
    /// # Errors
    /// The library cannot be written, or `stop` was set.
    pub fn lock(&self, fingerprint: &Fingerprint, tell: Tell<'_>, stop: &Stop) -> Result<File, BuildError> {
        let mut told = None;
        loop {
            match self.try_lock(fingerprint)? {
                Lock(Ok(file)) => return Ok(file),
                Lock(Err(_)) if stop.is_set() => return Err(Stopped.into()),
                Lock(Err(holder)) => {
                    if told.replace(holder) != Some(holder) {
                        tell(Progress { job: Job::Waiting { process: holder }, done: 0, total: 1 });
                    }
                    std::thread::sleep(WAIT);
                }
            }
        }
    }

    fn try_lock(&self, fingerprint: &Fingerprint) -> Result<Lock, BuildError> {
        let folder = self.root.join("corpora");
        let cache = |error: std::io::Error| BuildError::cache(&folder, &error);
        fs::create_dir_all(&folder).map_err(cache)?;
        let place = folder.join(format!("{}.lock", fingerprint.0));
        let open = File::options().create(true).truncate(false).read(true).write(true).open(&place);
        let mut file = open.map_err(cache)?;
        match file.try_lock() {
            Ok(()) => {
                file.set_len(0).and_then(|()| write!(file, "{}", std::process::id())).map_err(cache)?;
                Ok(Lock(Ok(file)))
            }
            // Where the holder has not written its number yet, or nobody may read it, it is 0.
            Err(TryLockError::WouldBlock) => {
                Ok(Lock(Err(fs::read_to_string(&place).ok().and_then(|text| text.parse().ok()).unwrap_or(0))))
            }
            Err(TryLockError::Error(error)) => Err(cache(error)),
        }
    }

    /// The content's identity, read again only if a file's size or time has changed.
    fn fingerprint(&self, source: &Source) -> Result<Fingerprint, BuildError> {
        let listing = source.listing()?;
        let card = self.root.join("sources").join(format!("{}.json", source.key()));
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
    let beside = path.with_extension(format!("{}.new", std::process::id()));
    let mut file = File::create(&beside)?;
    file.write_all(bytes).and_then(|()| file.sync_all())?;
    fs::rename(beside, path)?;
    sweep(path);
    Ok(())
}

/// Files beside a place that killed processes have left. Writing one takes milliseconds; a minute later nobody does.
fn sweep(path: &Path) {
    let (Some(folder), Some(stem)) = (path.parent(), path.file_stem().and_then(OsStr::to_str)) else {
        return;
    };
    let old = |file: &Path| {
        let age = file.metadata().and_then(|about| about.modified()).ok().and_then(|at| at.elapsed().ok());
        age.is_some_and(|age| age > Duration::from_secs(60))
    };
    for file in fs::read_dir(folder).into_iter().flatten().flatten().map(|entry| entry.path()) {
        let name = file.file_name().and_then(OsStr::to_str).unwrap_or_default();
        let number = name.strip_prefix(stem).and_then(|rest| rest.strip_prefix('.')?.strip_suffix(".new"));
        if number.is_some_and(|number| number.parse::<u32>().is_ok()) && old(&file) {
            // It takes no place that anybody looks at.
            let _ = fs::remove_file(file);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::time::SystemTime;

    use super::*;

    #[test]
    fn what_killed_processes_left_beside_a_file_goes_when_it_is_written_again() {
        let folder = tempfile::tempdir().unwrap();
        let old = SystemTime::now() - Duration::from_secs(120);
        for (name, at) in [("about.7.new", old), ("about.8.new", SystemTime::now()), ("about.x.new", old)] {
            File::create(folder.path().join(name)).unwrap().set_modified(at).unwrap();
        }
        replace(&folder.path().join("about.json"), b"{}").unwrap();
        let mut names: Vec<_> =
            fs::read_dir(folder.path()).unwrap().map(|entry| entry.unwrap().file_name()).collect();
        names.sort();
        assert_eq!(names, ["about.8.new", "about.json", "about.x.new"]);
    }
}
