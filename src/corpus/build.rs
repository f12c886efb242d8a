//! Imports a source into a store. The store is written to a temporary folder, then renamed, so no half-built store is ever opened.
//!
//! The unfinished folder is named `FINGERPRINT.building`. The fingerprint covers the whole source, so the folder can only hold the
//! beginning of the same store, and a later run resumes there. `checkpoint.json` records how much is safely on disk and after
//! which item of the source.

use std::collections::{HashMap, HashSet};
use std::fs::{self, File, OpenOptions};
use std::hash::{DefaultHasher, Hash, Hasher};
use std::io::{self, BufRead, BufReader, BufWriter, Write};
use std::path::{Path, PathBuf};
use std::time::{SystemTime, UNIX_EPOCH};

use serde::{Deserialize, Serialize};

use super::importer::Refused;
use super::source::Source;
use super::store::Passage;
use crate::input::{Expected, InputError};
use crate::storage::checked::{Damaged, owner, sum_file, sums_path};
use crate::storage::{move_file, replace, replace_folder, seal, unseal};
use crate::work::{Job, OnProgress, Progress, Stop, Stopped};

/// The number of passages between two progress reports.
const BATCH: u64 = 2_000;

/// Why a store was not built.
#[derive(Debug, thiserror::Error)]
pub enum BuildError {
    /// The source is invalid.
    #[error(transparent)]
    Input(#[from] InputError),
    /// The store could not be written.
    #[error(
        "the cache folder {folder} cannot be written ({reason}); make room there or name another with --data-dir; the passages imported so far are kept"
    )]
    Cache {
        /// The folder of the store.
        folder: String,
        /// The system's message.
        reason: String,
    },
    /// The name is empty, or has slashes or control characters.
    #[error("a corpus cannot be called `{}`; expected a name without slashes, such as --name zoos", .0.escape_debug())]
    BadName(String),
    /// Another corpus was given the name.
    #[error(
        "another corpus is called {0}; give this one another name with --name, or remove that one with `parallax corpus rm {0}`"
    )]
    NameTaken(String),
    /// Several corpora have the name.
    #[error("{} corpora are called {name}; name one by its fingerprint: {}", fingerprints.len(), fingerprints.join(", "))]
    Ambiguous {
        /// The name.
        name: String,
        /// The fingerprints of the corpora.
        fingerprints: Vec<String>,
    },
    /// Another process is building the corpus of this name.
    #[error("{0} is being built by another process; nothing was removed, end that one first")]
    Busy(String),
    /// A stored file is damaged, and the source that would make it again is gone or has changed.
    #[error("{0}; give its source again with `parallax corpus add SOURCE`, and the corpus is made again")]
    Damaged(#[from] Damaged),
    /// Stopped on request.
    #[error(transparent)]
    Stopped(#[from] crate::work::Stopped),
}

impl BuildError {
    /// The error of writing in `folder`.
    pub fn cache(folder: &Path, error: &dyn std::fmt::Display) -> Self {
        BuildError::Cache { folder: folder.display().to_string(), reason: error.to_string() }
    }
}

/// Imports `source` into the new folder `place`, resuming an interrupted import.
///
/// # Errors
/// The source is invalid or empty, the folder cannot be written, or `stop` was set. `place` does not exist then.
pub fn store(
    source: &Source,
    place: &Path,
    on_progress: OnProgress<'_>,
    stop: &Stop,
) -> Result<(), BuildError> {
    let building = place.with_extension("building");
    let cache = |error: std::io::Error| BuildError::cache(place, &error);
    let built = write(source, &building, on_progress, stop);
    if matches!(built, Err(BuildError::Input(_))) {
        // Nothing of an invalid source stays. If the removal fails too, the first error matters more.
        let _ = fs::remove_dir_all(&building);
    }
    built?;
    replace_folder(&building, place).map_err(cache)
}

/// Imports `source` again and replaces the passages of the corpus in `place`. Its index, its vectors and its name stay, because they
/// belong to the same content.
///
/// # Errors
/// As for [`store`].
pub fn restore(
    source: &Source,
    place: &Path,
    on_progress: OnProgress<'_>,
    stop: &Stop,
) -> Result<(), BuildError> {
    let building = place.with_extension("building");
    write(source, &building, on_progress, stop)?;
    let restored = || {
        for name in [PASSAGES, OFFSETS] {
            move_file(&building.join(name), &place.join(name))?;
            move_file(&sums_path(&building.join(name)), &sums_path(&place.join(name)))?;
        }
        if About::read(place).is_none() {
            move_file(&building.join(About::FILE), &place.join(About::FILE))?;
        }
        fs::remove_dir_all(&building)
    };
    restored().map_err(|error| BuildError::cache(place, &error))
}

/// The passages of a store, one a line.
pub const PASSAGES: &str = "passages.jsonl";
/// Where each line begins.
pub const OFFSETS: &str = "offsets.u64";

fn write(source: &Source, folder: &Path, on_progress: OnProgress<'_>, stop: &Stop) -> Result<(), BuildError> {
    let cache = |error: std::io::Error| BuildError::cache(folder, &error);
    let mut about = About::of(source, source.recognised()?);
    let mut part = Part::open(folder).map_err(cache)?;
    let (mut item, mut ended) = (part.items(), None);
    if !part.census.is_empty() {
        on_progress(Progress { job: Job::Importing, done: part.census.len(), total: 0 });
    }
    let done = item;
    source.read(done, &mut |at, passage| {
        if at.item != item {
            // All earlier items are complete. After a bad line nothing is saved, so that the next run reports it again.
            let stopped = stop.is_set();
            if at.clean && (part.is_due() || stopped) {
                ended = part.save(at.item - 1).err().map(cache);
            }
            if stopped {
                ended = ended.take().or(Some(Stopped.into()));
            }
            if ended.is_some() {
                return Err(Refused::Enough);
            }
            item = at.item;
        }
        part.census.add(&passage).map_err(Refused::Bad)?;
        part.push(&passage).map_err(|error| {
            ended = Some(cache(error));
            Refused::Enough
        })?;
        if part.census.len().is_multiple_of(BATCH) {
            on_progress(at.progress(part.census.len()));
        }
        Ok(())
    })?;
    if let Some(error) = ended {
        return Err(error);
    }
    if part.census.is_empty() {
        return Err(source.empty().into());
    }
    about.repeats = std::mem::take(&mut part.census.repeats);
    part.finish().map_err(cache)?;
    about.write(folder).map_err(cache)
}

/// Bytes of passages between two checkpoints: at most a second of work.
const EVERY: u64 = 16 << 20;

/// How far an unfinished import is.
const CHECKPOINT: &str = "checkpoint.json";

/// The part of the import that is on disk.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
struct Checkpoint {
    /// Items of the source that are complete.
    items: usize,
    /// Passages of these items.
    passages: u64,
    /// Bytes of these passages.
    bytes: u64,
    /// The hash of these bytes.
    sum: [u8; 16],
}

/// A store that is being written.
pub struct Part {
    folder: PathBuf,
    passages: BufWriter<File>,
    offsets: BufWriter<File>,
    line: Vec<u8>,
    bytes: u64,
    hash: blake3::Hasher,
    saved: Checkpoint,
    /// Ids and texts written so far.
    pub census: Census,
}

impl Part {
    /// Resumes what an earlier run left in `folder`, or starts from the beginning.
    ///
    /// # Errors
    /// The folder cannot be written.
    pub fn open(folder: &Path) -> io::Result<Self> {
        match Self::resume(folder) {
            Some(part) => Ok(part),
            None => Self::begin(folder),
        }
    }

    fn begin(folder: &Path) -> io::Result<Self> {
        if folder.exists() {
            fs::remove_dir_all(folder)?;
        }
        fs::create_dir_all(folder)?;
        let create = |name| File::create(folder.join(name)).map(BufWriter::new);
        let (passages, offsets) = (create(PASSAGES)?, create(OFFSETS)?);
        let (line, saved, census) = (Vec::new(), Checkpoint::default(), Census::default());
        let hash = blake3::Hasher::new();
        Ok(Part { folder: folder.into(), passages, offsets, line, bytes: 0, hash, saved, census })
    }

    /// `None` if there is nothing to resume, or the files do not match the checkpoint.
    fn resume(folder: &Path) -> Option<Self> {
        let place = folder.join(CHECKPOINT);
        let saved: Checkpoint = unseal(&place, &fs::read(&place).ok()?, &owner(&place)).ok()?;
        let open = |name, length| {
            let file = OpenOptions::new().read(true).append(true).open(folder.join(name)).ok()?;
            // Everything after the checkpoint is written again.
            (file.metadata().ok()?.len() >= length && file.set_len(length).is_ok()).then_some(file)
        };
        let passages = open(PASSAGES, saved.bytes)?;
        let mut offsets = BufWriter::new(open(OFFSETS, 0)?);
        let (mut census, mut hash, mut bytes) = (Census::default(), blake3::Hasher::new(), 0);
        let (mut lines, mut line) = (BufReader::new(File::open(folder.join(PASSAGES)).ok()?), Vec::new());
        while lines.read_until(b'\n', &mut line).ok()? > 0 {
            census.add(&serde_json::from_slice::<Passage>(&line).ok()?).ok()?;
            hash.update(&line);
            // Written anew, which is quicker than to prove the old ones.
            offsets.write_all(&u64::to_le_bytes(bytes)).ok()?;
            bytes += line.len() as u64;
            line.clear();
        }
        let (folder, passages) = (folder.into(), BufWriter::new(passages));
        let part = Part { folder, passages, offsets, line, bytes, hash, saved, census };
        (part.census.len() == saved.passages && part.sum() == saved.sum).then_some(part)
    }

    /// The hash of all passages so far.
    fn sum(&self) -> [u8; 16] {
        <[u8; 16]>::try_from(&self.hash.finalize().as_bytes()[..16]).unwrap_or_default()
    }

    /// Items of the source that are already stored.
    pub fn items(&self) -> usize {
        self.saved.items
    }

    /// Appends a passage that the census accepted.
    ///
    /// # Errors
    /// The disk is full or fails.
    pub fn push(&mut self, passage: &Passage) -> io::Result<()> {
        self.line.clear();
        serde_json::to_writer(&mut self.line, passage)?;
        self.line.push(b'\n');
        self.passages.write_all(&self.line)?;
        self.hash.update(&self.line);
        self.offsets.write_all(&self.bytes.to_le_bytes())?;
        self.bytes += self.line.len() as u64;
        Ok(())
    }

    /// Whether it is time for another checkpoint.
    pub fn is_due(&self) -> bool {
        self.bytes - self.saved.bytes >= EVERY
    }

    /// Syncs everything written, and records it as the complete first `items` items.
    ///
    /// # Errors
    /// The disk is full or fails.
    pub fn save(&mut self, items: usize) -> io::Result<()> {
        for file in [&mut self.passages, &mut self.offsets] {
            file.flush()?;
            file.get_ref().sync_data()?;
        }
        let saved = Checkpoint { items, passages: self.census.len(), bytes: self.bytes, sum: self.sum() };
        let place = self.folder.join(CHECKPOINT);
        replace(&place, &seal(&saved, &owner(&place))?)?;
        self.saved = saved;
        Ok(())
    }

    /// Completes the store, writes its checksums and removes its checkpoint.
    ///
    /// # Errors
    /// The disk is full or fails.
    pub fn finish(mut self) -> io::Result<()> {
        self.offsets.write_all(&self.bytes.to_le_bytes())?;
        for file in [self.passages, self.offsets] {
            file.into_inner().map_err(io::IntoInnerError::into_error)?.sync_all()?;
        }
        for name in [PASSAGES, OFFSETS] {
            sum_file(&self.folder.join(name), &self.folder.join(name))?;
        }
        // Checkpoints, and temporary files of killed runs.
        for entry in fs::read_dir(&self.folder)? {
            let path = entry?.path();
            if path.extension().is_some_and(|end| end == "json" || end == "new" || end == "part") {
                fs::remove_file(path)?;
            }
        }
        Ok(())
    }
}

/// The number of repeated passages that are listed; the others are only counted.
const LISTED: usize = 5;

/// A passage with the title and text of an earlier one. Both stay in the corpus: judgments may name either.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Repeat {
    /// The later passage's id.
    pub id: String,
    /// The position of the earlier passage in the corpus, from 0.
    pub of: u32,
}

/// Repeated passages.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Repeats {
    /// The number of passages that repeat an earlier one.
    pub count: u64,
    /// The first of them.
    pub first: Vec<Repeat>,
}

/// Checks ids and counts repeated texts. Holds hashes instead of strings: 16 bytes of BLAKE3 per id and 12 bytes per text, which makes 40
/// to 80 bytes per passage with the free space of the tables. Two ids practically never share a hash. With twenty million passages, the
/// probability that any text is wrongly counted as repeated is about one in a hundred thousand.
#[derive(Default)]
pub struct Census {
    ids: HashSet<[u8; 16]>,
    texts: HashMap<u64, u32>,
    /// Passages with the title and text of an earlier one.
    pub repeats: Repeats,
}

impl Census {
    /// Adds a passage.
    ///
    /// # Errors
    /// An earlier passage has the same id, or there are too many passages.
    pub fn add(&mut self, passage: &Passage) -> Result<(), Expected> {
        let hash = blake3::hash(passage.id.as_bytes());
        let key = <[u8; 16]>::try_from(&hash.as_bytes()[..16]).unwrap_or_default();
        let place = u32::try_from(self.ids.len()).map_err(|_| "at most 4,294,967,296 passages")?;
        if !self.ids.insert(key) {
            return Err(format!("a unique id (an earlier line has `{}`)", passage.id).into());
        }
        let mut text = DefaultHasher::new();
        (&passage.title, &passage.text).hash(&mut text);
        let earlier = *self.texts.entry(text.finish()).or_insert(place);
        if earlier != place {
            self.repeats.count += 1;
            if self.repeats.first.len() < LISTED {
                self.repeats.first.push(Repeat { id: passage.id.clone(), of: earlier });
            }
        }
        Ok(())
    }

    /// The number of passages.
    pub fn len(&self) -> u64 {
        self.ids.len() as u64
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.ids.is_empty()
    }
}

/// The origin of a corpus: `about.json`, in the folder of its passages.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct About {
    /// Its name.
    pub name: String,
    /// Whether the user chose the name. No other corpus may then have it.
    #[serde(alias = "given")]
    pub named_by_user: bool,
    /// The file or folder it was imported from.
    #[serde(serialize_with = "lossy")]
    pub source: PathBuf,
    /// The recognised format and columns.
    pub recognised: String,
    /// Passages with the title and text of an earlier one.
    pub repeats: Repeats,
    /// When it was built, in seconds since 1970.
    pub built: u64,
}

/// Writes a path as text: one that is not UTF-8 loses what is not.
pub(super) fn lossy<S: serde::Serializer>(path: &Path, to: S) -> Result<S::Ok, S::Error> {
    to.serialize_str(&path.to_string_lossy())
}

impl About {
    /// Reads it from the folder of a corpus; `None` if it is missing or damaged.
    pub fn read(folder: &Path) -> Option<Self> {
        let place = folder.join(Self::FILE);
        unseal(&place, &fs::read(&place).ok()?, &owner(&place)).ok()
    }

    /// Writes it into the folder of a corpus.
    ///
    /// # Errors
    /// The folder cannot be written.
    pub fn write(&self, folder: &Path) -> io::Result<()> {
        let place = folder.join(Self::FILE);
        replace(&place, &seal(self, &owner(&place))?)
    }

    /// Its file name.
    pub const FILE: &str = "about.json";

    /// Describes a source that has not been read yet.
    pub fn of(source: &Source, recognised: String) -> Self {
        let now = SystemTime::now().duration_since(UNIX_EPOCH);
        About {
            name: source.name(),
            named_by_user: false,
            source: source.path().into(),
            recognised,
            repeats: Repeats::default(),
            built: now.unwrap_or_default().as_secs(),
        }
    }
}
