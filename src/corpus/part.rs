//! A store that is being written: `FINGERPRINT.building`, from which a later run goes on.
//!
//! The folder is named by the fingerprint of the whole content, so that what lies in it can only be the beginning of the same
//! store. `checkpoint.json` says how much of it is known to be on disk, and after which item of the source that was.

use std::fs::{self, File, OpenOptions};
use std::io::{self, BufRead, BufReader, BufWriter, Write};
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use super::Passage;
use super::census::Census;
use super::library::replace;

/// Bytes of passages between two checkpoints: a second's work or less.
const EVERY: u64 = 16 << 20;

/// How much is on disk.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
struct Checkpoint {
    /// Items of the source that are in whole.
    items: usize,
    /// Passages made of them.
    passages: u64,
    /// Bytes of those.
    bytes: u64,
}

/// The two files, and what is in them.
pub struct Part {
    folder: PathBuf,
    passages: BufWriter<File>,
    offsets: BufWriter<File>,
    line: Vec<u8>,
    bytes: u64,
    saved: Checkpoint,
    /// Ids and texts so far.
    pub census: Census,
}

impl Part {
    /// Goes on with what an earlier run left in `folder`, or begins.
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
        let (passages, offsets) = (create("passages.jsonl")?, create("offsets.u64")?);
        let (line, saved, census) = (Vec::new(), Checkpoint::default(), Census::default());
        Ok(Part { folder: folder.into(), passages, offsets, line, bytes: 0, saved, census })
    }

    /// `None` where there is nothing to go on with, or what there is does not hold what the checkpoint says.
    fn resume(folder: &Path) -> Option<Self> {
        let saved: Checkpoint =
            serde_json::from_slice(&fs::read(folder.join("checkpoint.json")).ok()?).ok()?;
        let open = |name, length| {
            let file = OpenOptions::new().read(true).append(true).open(folder.join(name)).ok()?;
            // What came after the checkpoint is made again.
            (file.metadata().ok()?.len() >= length && file.set_len(length).is_ok()).then_some(file)
        };
        let passages = open("passages.jsonl", saved.bytes)?;
        let offsets = open("offsets.u64", saved.passages * 8)?;
        let mut census = Census::default();
        let (mut lines, mut line) =
            (BufReader::new(File::open(folder.join("passages.jsonl")).ok()?), Vec::new());
        while lines.read_until(b'\n', &mut line).ok()? > 0 {
            census.add(&serde_json::from_slice::<Passage>(&line).ok()?).ok()?;
            line.clear();
        }
        let (passages, offsets) = (BufWriter::new(passages), BufWriter::new(offsets));
        let part = Part { folder: folder.into(), passages, offsets, line, bytes: saved.bytes, saved, census };
        (part.census.len() == saved.passages).then_some(part)
    }

    /// Items of the source that need not be read again.
    pub fn items(&self) -> usize {
        self.saved.items
    }

    /// Appends a passage that the census has taken.
    ///
    /// # Errors
    /// The disk is full or fails.
    pub fn push(&mut self, passage: &Passage) -> io::Result<()> {
        self.line.clear();
        serde_json::to_writer(&mut self.line, passage)?;
        self.line.push(b'\n');
        self.passages.write_all(&self.line)?;
        self.offsets.write_all(&self.bytes.to_le_bytes())?;
        self.bytes += self.line.len() as u64;
        Ok(())
    }

    /// Whether so much was written since the last checkpoint that another is due.
    pub fn is_due(&self) -> bool {
        self.bytes - self.saved.bytes >= EVERY
    }

    /// Makes sure that all that was written is on disk, as the whole of the first `items` items.
    ///
    /// # Errors
    /// The disk is full or fails.
    pub fn save(&mut self, items: usize) -> io::Result<()> {
        for file in [&mut self.passages, &mut self.offsets] {
            file.flush()?;
            file.get_ref().sync_data()?;
        }
        let saved = Checkpoint { items, passages: self.census.len(), bytes: self.bytes };
        replace(&self.folder.join("checkpoint.json"), &serde_json::to_vec(&saved)?)?;
        self.saved = saved;
        Ok(())
    }

    /// Writes the end, and leaves a whole store in the folder.
    ///
    /// # Errors
    /// The disk is full or fails.
    pub fn finish(mut self) -> io::Result<()> {
        self.offsets.write_all(&self.bytes.to_le_bytes())?;
        for file in [self.passages, self.offsets] {
            file.into_inner().map_err(io::IntoInnerError::into_error)?.sync_all()?;
        }
        // Checkpoints, and what a kill left of one.
        for entry in fs::read_dir(&self.folder)? {
            let path = entry?.path();
            if path.extension().is_some_and(|end| end == "json" || end == "new") {
                fs::remove_file(path)?;
            }
        }
        Ok(())
    }
}
