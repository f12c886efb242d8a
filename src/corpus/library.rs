//! The library: all imported corpora, each under the fingerprint of its content.
//!
//! ```text
//! DATA/sources/PATH-HASH.json          size, times and number of a source's files when they were last read
//! DATA/corpora/FINGERPRINT/            passages.jsonl, offsets.u64, about.json, the index and vectors made from them, and checksums
//! DATA/corpora/FINGERPRINT.building/   the same, unfinished
//! DATA/corpora/FINGERPRINT.lock        held while something in that folder is built; names the process that holds it
//! ```

use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use memmap2::Mmap;
use parking_lot::Mutex;
use serde::{Deserialize, Serialize};

use super::build::{self, About, BuildError, OFFSETS, PASSAGES};
use super::source::{FileStamp, Source, Wanted};
use super::store::{Corpus, Fingerprint};
use crate::input::{self, InputError};
use crate::storage::checked::{Damaged, adopt, open_sum, owner, set_aside};
use crate::storage::{Attempt, FileLock, Holder, begins_with, replace, seal, unseal};
use crate::work::{Job, OnProgress, Progress, Stop, Stopped};

/// The pause between two checks whether another process has finished.
const WAIT: Duration = Duration::from_millis(50);

/// The folder of all corpora.
#[derive(Clone, Debug)]
pub struct Library {
    root: PathBuf,
    /// What the user should know: what was damaged and set aside, or has grown.
    notes: Arc<Mutex<Vec<String>>>,
}

/// A corpus as the user named it.
#[derive(Clone, Debug)]
pub enum Called {
    /// A file or folder, imported if its content is new.
    Source(Source),
    /// A stored corpus; its source may be gone.
    StoredCorpus(StoredCorpus),
}

#[derive(Serialize, Deserialize)]
struct Seen {
    listing: Vec<FileStamp>,
    fingerprint: Fingerprint,
}

impl Library {
    /// A library in `root`, which is created on the first import.
    pub fn at(root: &Path) -> Self {
        Library { root: root.into(), notes: Arc::default() }
    }

    /// Sets a damaged file or folder of a corpus aside, and notes it.
    ///
    /// # Errors
    /// It cannot be renamed.
    pub fn set_aside(&self, unit: &Path, damaged: &Damaged) -> Result<(), BuildError> {
        let place = set_aside(unit).map_err(|error| BuildError::cache(unit, &error))?;
        let place = place.file_name().unwrap_or_default().to_string_lossy();
        let note = format!("{damaged}; it was set aside as {place} and made again");
        tracing::warn!("{note}");
        self.note(note);
        Ok(())
    }

    /// Keeps a note for the user.
    pub fn note(&self, text: String) {
        self.notes.lock().push(text);
    }

    /// The notes since the last call.
    pub fn take_notes(&self) -> Vec<String> {
        std::mem::take(&mut *self.notes.lock())
    }

    /// The folder of one corpus.
    pub fn folder(&self, fingerprint: &Fingerprint) -> PathBuf {
        self.root.join("corpora").join(&fingerprint.0)
    }

    /// Resolves a file or folder, or the name or fingerprint of a stored corpus.
    ///
    /// # Errors
    /// There is no such file, folder or corpus, or several corpora have this name.
    pub fn named(&self, path: &Path) -> Result<Called, BuildError> {
        if !path.exists()
            && !input::is_stream(path)
            && let Some(name) = path.to_str()
        {
            let reason =
                "no such file or folder, and no corpus has this name (`parallax corpus list` shows all)";
            return match find(&self.root.join("corpora"), name)? {
                Some(stored) => Ok(Called::StoredCorpus(stored)),
                None => Err(InputError::Unreadable { path: path.into(), reason: reason.into() }.into()),
            };
        }
        Ok(Called::Source(Source::recognise(path)?))
    }

    /// Opens the corpus that [`Library::named`] found.
    ///
    /// # Errors
    /// The same as for [`Library::open`].
    pub fn open_named(
        &self,
        called: &Called,
        on_progress: OnProgress<'_>,
        stop: &Stop,
    ) -> Result<Corpus, BuildError> {
        match called {
            Called::Source(source) => self.open(source, on_progress, stop),
            Called::StoredCorpus(stored) => match self.open_stored(stored) {
                Err(BuildError::Damaged(damaged)) => {
                    let source =
                        self.source_of(stored).ok_or_else(|| BuildError::Damaged(damaged.clone()))?;
                    self.restore(
                        &source,
                        (&stored.folder, &stored.fingerprint),
                        &damaged,
                        on_progress,
                        stop,
                    )?;
                    self.open_stored(stored)
                }
                opened => opened,
            },
        }
    }

    /// The source of a stored corpus, if it is still there and has the same content.
    pub fn source_of(&self, stored: &StoredCorpus) -> Option<Source> {
        let path = &stored.about.as_ref()?.source;
        [false, true].into_iter().find_map(|segment| {
            let source = Source::wanted(path, Wanted { segment, ..Wanted::default() }).ok()?;
            (source.fingerprint(&source.listing().ok()?).ok()? == stored.fingerprint).then_some(source)
        })
    }

    /// Makes the damaged passages of a corpus again.
    ///
    /// # Errors
    /// As for [`Library::open`].
    pub fn restore(
        &self,
        source: &Source,
        (folder, fingerprint): (&Path, &Fingerprint),
        damaged: &Damaged,
        on_progress: OnProgress<'_>,
        stop: &Stop,
    ) -> Result<(), BuildError> {
        let _lock = self.lock(fingerprint, on_progress, stop)?;
        // Another process may have done so meanwhile.
        if Self::map(folder, String::new(), fingerprint.clone()).is_ok() {
            return Ok(());
        }
        let unit =
            if damaged.path.starts_with(folder) { damaged.path.clone() } else { folder.join(PASSAGES) };
        self.set_aside(&unit, damaged)?;
        build::restore(source, folder, on_progress, stop)
    }

    /// Opens a source, importing it first if its content is new.
    ///
    /// # Errors
    /// The source is invalid, the library cannot be written, or `stop` was set.
    pub fn open(
        &self,
        source: &Source,
        on_progress: OnProgress<'_>,
        stop: &Stop,
    ) -> Result<Corpus, BuildError> {
        let fingerprint = self.fingerprint(source)?;
        let folder = self.folder(&fingerprint);
        if !folder.exists() {
            let _lock = self.lock(&fingerprint, on_progress, stop)?;
            // Another process may have finished it meanwhile.
            if !folder.exists() {
                build::store(source, &folder, on_progress, stop)?;
            }
        }
        match Self::map(&folder, source.name(), fingerprint.clone()) {
            Err(BuildError::Damaged(damaged)) => {
                self.restore(source, (&folder, &fingerprint), &damaged, on_progress, stop)?;
                Self::map(&folder, source.name(), fingerprint)
            }
            opened => opened,
        }
    }

    /// Imports a source under a name. [`Library::named`] then finds it by this name, even without its source.
    ///
    /// # Errors
    /// The same as for [`Library::open`], or another corpus has this name.
    pub fn add(
        &self,
        source: &Source,
        name: &str,
        on_progress: OnProgress<'_>,
        stop: &Stop,
    ) -> Result<Corpus, BuildError> {
        check(name)?;
        let fingerprint = self.fingerprint(source)?;
        let taken = self.stored()?.into_iter().find_map(|stored| {
            let about = stored.about.clone()?;
            (stored.fingerprint != fingerprint && about.named_by_user && about.name == name)
                .then_some((stored, about))
        });
        let is_taken = || BuildError::NameTaken(name.into());
        if taken.as_ref().is_some_and(|(_, about)| about.source != source.path()) {
            return Err(is_taken());
        }
        let folder = self.folder(&fingerprint);
        let was_there = folder.exists();
        let mut corpus = self.open(source, on_progress, stop)?;
        if let Some((earlier, about)) = taken {
            // Only a source that grew may take the name of its earlier corpus.
            if !self.grown_from(&fingerprint)?.iter().any(|stored| stored.fingerprint == earlier.fingerprint)
            {
                drop(corpus);
                let own = self.stored()?.into_iter().find(|stored| stored.fingerprint == fingerprint);
                own.filter(|_| !was_there).map_or(Ok(()), |own| self.remove(&own))?;
                return Err(is_taken());
            }
            self.rename_earlier(&earlier, about)?;
        }
        let about = About::read(&folder)
            .map_or_else(|| Ok(About::of(source, source.recognised()?)), Ok::<_, InputError>)?;
        let about = About { name: name.into(), named_by_user: true, source: source.path().into(), ..about };
        about.write(&folder).map_err(|error| BuildError::cache(&folder.join(About::FILE), &error))?;
        corpus.name = name.into();
        Ok(corpus)
    }

    /// The stored corpora whose passages are the first ones of this corpus, longest first: it has grown from them.
    ///
    /// # Errors
    /// The library cannot be read.
    pub fn grown_from(&self, fingerprint: &Fingerprint) -> Result<Vec<StoredCorpus>, BuildError> {
        let whole = self.folder(fingerprint).join(PASSAGES);
        let mut found = self.stored()?;
        found.retain(|stored| {
            // One that cannot be read is not one to go on from.
            stored.whole
                && stored.fingerprint != *fingerprint
                && begins_with(&whole, &stored.folder.join(PASSAGES)).unwrap_or(false)
        });
        found.sort_by_key(|stored| std::cmp::Reverse(stored.passages()));
        Ok(found)
    }

    /// Names a corpus that has grown after its number of passages, so that its name is free for the longer one.
    fn rename_earlier(&self, earlier: &StoredCorpus, about: About) -> Result<(), BuildError> {
        let (name, passages) = (about.name.clone(), earlier.passages());
        let mut renamed = About { name: format!("{name}@{passages}"), ..about };
        if self.stored()?.iter().any(|stored| stored.name() == renamed.name) {
            renamed.name = format!("{}-{}", renamed.name, &earlier.fingerprint.0[..6]);
        }
        let place = earlier.folder.join(About::FILE);
        renamed.write(&earlier.folder).map_err(|error| BuildError::cache(&place, &error))?;
        self.note(format!(
            "{name} has grown from {passages} passages; the earlier corpus is now called {0}. Labels by hand stay with it, and its vectors are used when \
             {name} is embedded; after that, `parallax corpus rm {0}` removes it",
            renamed.name
        ));
        Ok(())
    }

    /// All stored corpora by name, unfinished ones too.
    ///
    /// # Errors
    /// The library cannot be read.
    pub fn stored(&self) -> Result<Vec<StoredCorpus>, BuildError> {
        all(&self.root.join("corpora"))
    }

    /// Opens a stored corpus.
    ///
    /// # Errors
    /// It is unfinished or damaged.
    pub fn open_stored(&self, stored: &StoredCorpus) -> Result<Corpus, BuildError> {
        Self::map(&stored.folder, stored.name().to_owned(), stored.fingerprint.clone())
    }

    fn map(folder: &Path, name: String, fingerprint: Fingerprint) -> Result<Corpus, BuildError> {
        let failed = |place: &Path, error: io::Error| match Damaged::of(&error) {
            Some(damaged) => BuildError::Damaged(damaged.clone()),
            None => BuildError::cache(place, &error),
        };
        adopt(folder, is_derived).map_err(|error| failed(folder, error))?;
        let (lines, offsets) = (folder.join(PASSAGES), folder.join(OFFSETS));
        let sums = open_sum(&lines).map_err(|error| failed(&lines, error))?;
        // Every passage depends on them, and they are small, so they are checked as a whole.
        let whole = open_sum(&offsets).and_then(|sums| sums.inspect());
        whole.map_err(|error| failed(&offsets, error))?;
        let file = File::open(&lines).map_err(|error| failed(&lines, error))?;
        let map = File::open(&offsets).and_then(|offsets| {
            // SAFETY: the file is never written again once its folder has its final name.
            unsafe { Mmap::map(&offsets) }
        });
        let map = map.map_err(|error| failed(&offsets, error))?;
        Ok(Corpus::from_files(name, fingerprint, (file, sums), map))
    }

    /// Removes a corpus, with its index and vectors.
    ///
    /// # Errors
    /// Another process is building it, or the library cannot be written.
    pub fn remove(&self, stored: &StoredCorpus) -> Result<(), BuildError> {
        let cache = |error: std::io::Error| BuildError::cache(&stored.folder, &error);
        let Attempt::Acquired(_lock) = self.try_lock(&stored.fingerprint)? else {
            return Err(BuildError::Busy(stored.name().into()));
        };
        // Renamed first, so that no half-removed corpus is ever opened.
        let removed = stored.folder.with_extension("removed");
        if removed.exists() {
            fs::remove_dir_all(&removed).map_err(cache)?;
        }
        fs::rename(&stored.folder, &removed).and_then(|()| fs::remove_dir_all(&removed)).map_err(cache)
    }

    /// Locks a corpus's folder for building, until the lock is dropped. Waits while another process holds it, and reports which.
    ///
    /// # Errors
    /// The library cannot be written, or `stop` was set.
    pub fn lock(
        &self,
        fingerprint: &Fingerprint,
        on_progress: OnProgress<'_>,
        stop: &Stop,
    ) -> Result<FileLock, BuildError> {
        let mut reported = None;
        loop {
            match self.try_lock(fingerprint)? {
                Attempt::Acquired(lock) => return Ok(lock),
                Attempt::Held(_) if stop.is_set() => return Err(Stopped.into()),
                Attempt::Held(holder) => {
                    // 0 if the holder has not written its number yet, or if the lock file cannot be read.
                    let process = holder.map_or(0, |holder| holder.pid);
                    if reported.replace(process) != Some(process) {
                        on_progress(Progress { job: Job::Waiting { process }, done: 0, total: 1 });
                    }
                    std::thread::sleep(WAIT);
                }
            }
        }
    }

    fn try_lock(&self, fingerprint: &Fingerprint) -> Result<Attempt, BuildError> {
        let folder = self.root.join("corpora");
        let cache = |error: std::io::Error| BuildError::cache(&folder, &error);
        fs::create_dir_all(&folder).map_err(cache)?;
        let place = folder.join(format!("{}.lock", fingerprint.0));
        FileLock::try_acquire(&place, &Holder::here("parallax")).map_err(cache)
    }

    /// The fingerprint of the content, which is read again if a file's size, times or number have changed.
    fn fingerprint(&self, source: &Source) -> Result<Fingerprint, BuildError> {
        let listing = source.listing()?;
        let card = self.root.join("sources").join(format!("{}.json", source.key()));
        let seen = fs::read(&card).ok();
        let seen = seen.and_then(|bytes| unseal::<Seen>(&card, &bytes, &owner(&card)).ok());
        if let Some(seen) = seen.filter(|seen| seen.listing == listing) {
            return Ok(seen.fingerprint);
        }
        let fingerprint = source.fingerprint(&listing)?;
        let seen = Seen { listing, fingerprint };
        let written = fs::create_dir_all(self.root.join("sources"))
            .and_then(|()| Ok(seal(&seen, &owner(&card))?))
            .and_then(|bytes| replace(&card, &bytes));
        written.map_err(|error| BuildError::cache(&self.root, &error))?;
        Ok(seen.fingerprint)
    }
}

/// One corpus in the library.
#[derive(Clone, Debug)]
pub struct StoredCorpus {
    /// The fingerprint of its content.
    pub fingerprint: Fingerprint,
    /// Its folder.
    pub folder: PathBuf,
    /// Its origin; `None` if the import is unfinished.
    pub about: Option<About>,
    /// Whether the import is complete.
    pub whole: bool,
}

impl StoredCorpus {
    /// Its name, or its fingerprint if it is unfinished.
    pub fn name(&self) -> &str {
        self.about.as_ref().map_or(&self.fingerprint.0, |about| &about.name)
    }

    /// The number of passages so far.
    pub fn passages(&self) -> u64 {
        let offsets = fs::metadata(self.folder.join("offsets.u64")).map_or(0, |about| about.len() / 8);
        offsets.saturating_sub(u64::from(self.whole))
    }

    /// Bytes on disk, including index and vectors.
    pub fn bytes(&self) -> u64 {
        size(&self.folder)
    }

    /// Its vectors, impact indexes and token indexes by the key of their model, and whether they are complete.
    pub fn vectors(&self) -> Vec<(String, bool)> {
        let names = fs::read_dir(&self.folder).into_iter().flatten().flatten();
        let names = names.map(|entry| entry.file_name().to_string_lossy().into_owned());
        let mut found: Vec<_> = names
            .filter_map(|name| {
                let key = |ends: [&str; 3]| ends.into_iter().find_map(|end| name.strip_suffix(end));
                let made = key([".f32", ".impact", ".tokens"]).map(|key| (key.to_owned(), true));
                made.or_else(|| Some((key([".f32.part", ".impact.part", ".tokens.part"])?.to_owned(), false)))
            })
            .collect();
        found.sort();
        found
    }
}

/// Whether a file or folder of this name in a corpus's folder is made from its passages, or is them.
pub fn is_derived(name: &str) -> bool {
    let is_index = name.starts_with("terms-") && !name.contains('.');
    is_index
        || name == PASSAGES
        || name == OFFSETS
        || [".f32", ".i8", ".impact", ".tokens"].iter().any(|end| name.ends_with(end))
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
pub(super) fn all(corpora: &Path) -> Result<Vec<StoredCorpus>, BuildError> {
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
        let about = About::read(&folder).filter(|_| whole);
        found.push(StoredCorpus { fingerprint, folder, about, whole });
    }
    found.sort_by(|a, b| (a.name(), &a.fingerprint.0).cmp(&(b.name(), &b.fingerprint.0)));
    Ok(found)
}

/// The complete corpus with this name or fingerprint. A name the user chose wins over one taken from a file.
///
/// # Errors
/// Several corpora have this name.
pub(super) fn find(corpora: &Path, name: &str) -> Result<Option<StoredCorpus>, BuildError> {
    let mut found = all(corpora)?;
    found.retain(|stored| stored.whole && (stored.name() == name || stored.fingerprint.0 == name));
    let named_by_user =
        |stored: &StoredCorpus| stored.about.as_ref().is_some_and(|about| about.named_by_user);
    if found.iter().any(named_by_user) {
        found.retain(named_by_user);
    }
    match found.as_slice() {
        [_, _, ..] => {
            let fingerprints = found.into_iter().map(|stored| stored.fingerprint.0).collect();
            Err(BuildError::Ambiguous { name: name.into(), fingerprints })
        }
        _ => Ok(found.pop()),
    }
}

/// Checks a name for a corpus.
pub(super) fn check(name: &str) -> Result<(), BuildError> {
    let bad = |c: char| c.is_control() || c == '/' || c == '\\';
    if name.trim().is_empty() || name.chars().any(bad) {
        return Err(BuildError::BadName(name.into()));
    }
    Ok(())
}
