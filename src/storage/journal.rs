//! An append-only file of lines, one JSON object each.
//!
//! A line counts once it is on the disk. A kill or a power cut can leave half a line or zeros at the end. Readers skip this torn tail, and
//! the next append moves it to `NAME.torn`, so nothing is ever destroyed.

use std::fs::{File, OpenOptions};
use std::io::{self, ErrorKind, Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};

use serde::de::IgnoredAny;

use super::sync_folder;

/// The file of a journal. Tests replace it by a full disk.
pub trait Disk: Read + Seek {
    /// Writes `bytes` at the end of the file and waits until they are on the disk.
    fn append(&mut self, bytes: &[u8]) -> io::Result<()>;
    /// Shortens the file to `len` bytes.
    fn truncate(&mut self, len: u64) -> io::Result<()>;
}

impl Disk for File {
    fn append(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.write_all(bytes)?;
        self.sync_data()
    }

    fn truncate(&mut self, len: u64) -> io::Result<()> {
        self.set_len(len)
    }
}

/// Opens the file of a journal.
pub type OpenDisk = fn(&Path) -> io::Result<Box<dyn Disk>>;

/// A journal at a path. Holds no open file, so several processes can append to it.
#[derive(Clone, Debug)]
pub struct Journal {
    path: PathBuf,
    open: OpenDisk,
    any_tail: bool,
}

/// The content of a journal.
#[derive(Debug, Default)]
pub struct Lines {
    bytes: Vec<u8>,
    whole: usize,
}

impl Lines {
    /// Splits `bytes` into lines. A last line without a line feed is torn if it begins like this program's lines and is not complete
    /// JSON. Any other text counts as a line, so that a reader reports it.
    pub fn of(bytes: Vec<u8>) -> Self {
        let end = bytes.iter().rposition(|byte| *byte == b'\n').map_or(0, |at| at + 1);
        let torn = is_ours(&bytes[end..]) && !is_whole(&bytes[end..]);
        Lines { whole: if torn { end } else { bytes.len() }, bytes }
    }

    /// The whole lines in order, each without its line ending.
    pub fn iter(&self) -> impl Iterator<Item = &[u8]> {
        self.bytes[..self.whole].split_inclusive(|byte| *byte == b'\n').map(|line| {
            let line = line.strip_suffix(b"\n").unwrap_or(line);
            line.strip_suffix(b"\r").unwrap_or(line)
        })
    }

    /// The whole lines as they are in the file, with their line endings.
    pub fn bytes(&self) -> &[u8] {
        &self.bytes[..self.whole]
    }

    /// The bytes after the last whole line; empty in an undamaged journal.
    pub fn torn(&self) -> &[u8] {
        &self.bytes[self.whole..]
    }
}

impl Journal {
    /// The journal at `path`; the file is created by the first append.
    pub fn at(path: impl Into<PathBuf>) -> Self {
        Journal { path: path.into(), open, any_tail: false }
    }

    /// An empty journal at `path`.
    ///
    /// # Errors
    /// [`ErrorKind::AlreadyExists`], or the file cannot be created.
    pub fn create_new(path: impl Into<PathBuf>) -> io::Result<Self> {
        let journal = Journal::at(path);
        OpenOptions::new().append(true).create_new(true).open(&journal.path)?;
        Ok(journal)
    }

    /// The same journal, if no other program writes to it: all bytes after its last whole line are torn, even text.
    pub fn private(self) -> Self {
        Journal { any_tail: true, ..self }
    }

    /// The same journal without waiting for the disk after each append. A kill loses nothing; a power cut loses the last lines.
    pub fn unsynced(self) -> Self {
        Journal { open: open_unsynced, ..self }
    }

    /// The same journal on another disk.
    #[cfg(test)]
    pub fn on(self, open: OpenDisk) -> Self {
        Journal { open, ..self }
    }

    /// The file.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Reads all lines; a journal without a file is empty.
    ///
    /// # Errors
    /// The file cannot be read.
    pub fn read(&self) -> io::Result<Lines> {
        match std::fs::read(&self.path) {
            Ok(bytes) => Ok(Lines::of(bytes)),
            Err(error) if matches!(error.kind(), ErrorKind::NotFound | ErrorKind::NotADirectory) => {
                Ok(Lines::default())
            }
            Err(error) => Err(error),
        }
    }

    /// Appends lines, which hold no line feeds, and waits until they are on the disk. Other processes wait meanwhile. Returns the new
    /// length of the file.
    ///
    /// # Errors
    /// The file cannot be written; its content is then unchanged. Unless the journal is [`Journal::private`], a file whose last line has no
    /// line feed and is not JSON is refused, because it may be the user's text.
    pub fn append<L: AsRef<[u8]>>(&self, lines: impl IntoIterator<Item = L>) -> io::Result<u64> {
        if let Some(folder) = self.path.parent() {
            std::fs::create_dir_all(folder)?;
        }
        let new = !self.path.exists();
        // Held until this function returns, so that a line that another process is writing is not mistaken for a torn one.
        let _held = lock(&self.path)?;
        let mut disk = (self.open)(&self.path)?;
        let mut bytes = Vec::new();
        let (from, tail) = last_line(&mut *disk)?;
        if is_whole(&tail) {
            bytes.push(b'\n');
        } else if !tail.is_empty() {
            self.set_aside(&tail)?;
            disk.truncate(from)?;
        }
        for line in lines {
            bytes.extend_from_slice(line.as_ref());
            bytes.push(b'\n');
        }
        let before = disk.seek(SeekFrom::End(0))?;
        if let Err(error) = disk.append(&bytes) {
            // A full disk can take half a line. If the truncation fails too, the next append moves the torn line away.
            let _ = disk.truncate(before);
            return Err(error);
        }
        if new {
            sync_folder(&self.path);
        }
        Ok(before + bytes.len() as u64)
    }

    /// Moves the whole lines that are bad to `NAME.damaged`. Returns their number. A kill in between loses no other line.
    ///
    /// # Errors
    /// A file cannot be read or written.
    pub fn remove_lines(&self, is_bad: impl Fn(&[u8]) -> bool) -> io::Result<usize> {
        let held = lock(&self.path)?;
        let lines = Lines::of(std::fs::read(&self.path)?);
        let (mut bad, mut kept, mut count) = (Vec::new(), Vec::new(), 0);
        for line in lines.bytes().split_inclusive(|byte| *byte == b'\n') {
            let bare = line.trim_ascii_end();
            let to = if is_bad(bare) { &mut bad } else { &mut kept };
            to.extend_from_slice(line);
            count += usize::from(is_bad(bare));
        }
        if count == 0 {
            return Ok(0);
        }
        kept.extend_from_slice(lines.torn());
        let place = super::checked::with_ending(&self.path, ".damaged");
        let mut aside = OpenOptions::new().append(true).create(true).open(place)?;
        aside.write_all(&bad)?;
        aside.sync_all()?;
        drop(aside);
        // Written in place, because another process may wait for the lock of this file. Lines only move forward, over bad ones or ones that
        // were moved before.
        let mut file = OpenOptions::new().write(true).open(&self.path)?;
        file.write_all(&kept)?;
        file.set_len(kept.len() as u64)?;
        file.sync_all()?;
        drop(held);
        Ok(count)
    }

    fn set_aside(&self, tail: &[u8]) -> io::Result<()> {
        if !self.any_tail && !is_ours(tail) {
            let reason =
                "its last line is not JSON and has no line ending; name another file or end that line";
            return Err(io::Error::new(ErrorKind::InvalidData, reason));
        }
        let mut place = self.path.as_os_str().to_owned();
        place.push(".torn");
        let mut aside = OpenOptions::new().append(true).create(true).open(place)?;
        aside.write_all(tail)?;
        aside.write_all(b"\n")?;
        aside.sync_all()
    }
}

fn open(path: &Path) -> io::Result<Box<dyn Disk>> {
    Ok(Box::new(OpenOptions::new().read(true).append(true).create(true).open(path)?))
}

/// A file whose appends do not wait for the disk.
struct Unsynced(File);

impl Read for Unsynced {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        self.0.read(buffer)
    }
}

impl Seek for Unsynced {
    fn seek(&mut self, to: SeekFrom) -> io::Result<u64> {
        self.0.seek(to)
    }
}

impl Disk for Unsynced {
    fn append(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.0.write_all(bytes)
    }

    fn truncate(&mut self, len: u64) -> io::Result<()> {
        self.0.set_len(len)
    }
}

fn open_unsynced(path: &Path) -> io::Result<Box<dyn Disk>> {
    Ok(Box::new(Unsynced(OpenOptions::new().read(true).append(true).create(true).open(path)?)))
}

fn lock(path: &Path) -> io::Result<File> {
    let file = OpenOptions::new().read(true).append(true).create(true).open(path)?;
    match file.lock() {
        Err(error) if error.kind() != ErrorKind::Unsupported => Err(error),
        _ => Ok(file),
    }
}

/// Whether a last line can be a part of this program's line after a kill, or a block of zeros after a power cut.
fn is_ours(tail: &[u8]) -> bool {
    matches!(tail.first(), Some(b'{' | 0))
}

fn is_whole(tail: &[u8]) -> bool {
    tail.first() == Some(&b'{') && serde_json::from_slice::<IgnoredAny>(tail).is_ok()
}

/// The offset of the bytes after the last line feed, and these bytes.
fn last_line(disk: &mut dyn Disk) -> io::Result<(u64, Vec<u8>)> {
    const BLOCK: u64 = 64 << 10;
    let mut from = disk.seek(SeekFrom::End(0))?;
    let mut tail = Vec::new();
    while from > 0 {
        let size = from.min(BLOCK);
        from -= size;
        disk.seek(SeekFrom::Start(from))?;
        let mut block = Vec::new();
        disk.take(size).read_to_end(&mut block)?;
        let feed = block.iter().rposition(|byte| *byte == b'\n');
        let behind = feed.map_or(0, |at| at + 1);
        block.extend_from_slice(&tail);
        tail = block.split_off(behind);
        if feed.is_some() {
            from += behind as u64;
            break;
        }
    }
    Ok((from, tail))
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::super::testing::FullDisk;
    use super::*;

    fn place() -> (tempfile::TempDir, Journal) {
        let folder = tempfile::tempdir().unwrap();
        let journal = Journal::at(folder.path().join("a/labels.jsonl"));
        (folder, journal)
    }

    fn texts(journal: &Journal) -> Vec<String> {
        journal.read().unwrap().iter().map(|line| String::from_utf8_lossy(line).into_owned()).collect()
    }

    #[test]
    fn cut_at_any_byte_a_journal_keeps_its_whole_lines_and_the_torn_one_is_set_aside() {
        let lines = [r#"{"n":1}"#, r#"{"n":22}"#];
        let all = lines.join("\n") + "\n";
        for end in 0..=all.len() {
            let (_folder, journal) = place();
            fs::create_dir_all(journal.path().parent().unwrap()).unwrap();
            fs::write(journal.path(), &all[..end]).unwrap();
            let before = texts(&journal);
            journal.append([r#"{"n":3}"#]).unwrap();
            let mut expected = before.clone();
            expected.push(r#"{"n":3}"#.into());
            assert_eq!(texts(&journal), expected, "{end}");
            assert!(before.len() == all[..end].matches('}').count(), "{end}");
            let torn = fs::read_to_string(journal.path().with_extension("jsonl.torn")).unwrap_or_default();
            let rest = all[..end].rsplit('\n').next().unwrap();
            let expected = if rest.ends_with('}') { "" } else { rest };
            assert_eq!(torn.trim_end_matches('\n'), expected, "{end}");
        }
    }

    #[test]
    fn a_tail_of_zeros_is_moved_aside() {
        let (_folder, journal) = place();
        journal.append(["{}"]).unwrap();
        for zeros in [1, 511, 70_000] {
            let mut bytes = fs::read(journal.path()).unwrap();
            bytes.resize(bytes.len() + zeros, 0);
            fs::write(journal.path(), bytes).unwrap();
            assert_eq!(journal.read().unwrap().torn().len(), zeros);
            journal.append(["{}"]).unwrap();
        }
        assert_eq!(texts(&journal), ["{}"; 4]);
    }

    #[test]
    fn a_torn_line_longer_than_a_block_is_moved_aside_whole() {
        let (_folder, journal) = place();
        journal.append(["{}"]).unwrap();
        let torn = format!("{{\"text\":\"{}", "long ü ".repeat(30_000));
        let mut bytes = fs::read(journal.path()).unwrap();
        bytes.extend_from_slice(torn.as_bytes());
        fs::write(journal.path(), bytes).unwrap();
        assert_eq!(journal.append(["{}"]).unwrap(), 6);
        assert_eq!(fs::read(journal.path()).unwrap(), b"{}\n{}\n");
        let aside = fs::read_to_string(journal.path().with_extension("jsonl.torn")).unwrap();
        assert_eq!(aside.trim_end(), torn.trim_end());
    }

    #[test]
    fn many_threads_append_whole_lines() {
        let (_folder, journal) = place();
        std::thread::scope(|scope| {
            for journal in [journal.clone(), journal.clone().unsynced()] {
                scope.spawn(move || {
                    (0..20).for_each(|n| assert!(journal.append([format!("{{\"n\":{n}}}")]).unwrap() > 0))
                });
            }
        });
        assert_eq!(texts(&journal).len(), 40);
    }

    #[test]
    fn text_behind_the_last_line_of_a_private_journal_is_moved_aside() {
        let (_folder, journal) = place();
        journal.append(["{}"]).unwrap();
        fs::write(journal.path(), "{}\nnotes").unwrap();
        journal.clone().private().append(["{}"]).unwrap();
        assert_eq!(texts(&journal), ["{}", "{}"]);
    }

    #[test]
    fn a_text_that_is_no_journal_is_refused_and_left_as_it_is() {
        let (_folder, journal) = place();
        fs::create_dir_all(journal.path().parent().unwrap()).unwrap();
        fs::write(journal.path(), "my notes").unwrap();
        assert_eq!(texts(&journal), ["my notes"]);
        assert_eq!(journal.append(["{}"]).unwrap_err().kind(), ErrorKind::InvalidData);
        assert_eq!(fs::read(journal.path()).unwrap(), b"my notes");
    }

    #[test]
    fn a_full_disk_leaves_the_journal_as_it_was() {
        let (_folder, journal) = place();
        journal.append(["{}"]).unwrap();
        let full = journal.clone().on(|path| FullDisk::open(path, 4, true));
        assert_eq!(full.append([r#"{"n":1}"#]).unwrap_err().kind(), ErrorKind::StorageFull);
        assert_eq!(fs::read(journal.path()).unwrap(), b"{}\n");
        // If the half line cannot be cut off either, the next append moves it aside.
        let stuck = journal.clone().on(|path| FullDisk::open(path, 4, false));
        stuck.append([r#"{"n":1}"#]).unwrap_err();
        journal.append([r#"{"n":2}"#]).unwrap();
        assert_eq!(texts(&journal), ["{}", r#"{"n":2}"#]);
    }
}
