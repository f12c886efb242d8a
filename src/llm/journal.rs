//! The file replies are appended to, which a killed process may leave with half a line at its end.

use std::fs::{File, OpenOptions};
use std::io::{self, ErrorKind, Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};

use super::record::is_line;
use super::recorded::Recorded;
use crate::input::InputError;

/// How every line begins that this program writes.
const BEGINNING: &[u8] = b"{\"key\":\"";

/// A file of recorded replies that grows.
pub(super) struct Journal {
    pub path: PathBuf,
}

/// What stands behind the last line feed of a file.
enum Tail {
    Nothing,
    /// A line that only lacks its line feed.
    Whole,
    /// Half a line, from here on.
    Torn(u64),
}

impl Journal {
    /// The replies in the file. None where there is no file yet.
    pub fn read(path: &Path) -> Result<Recorded, InputError> {
        let bytes = match std::fs::read(path) {
            Ok(bytes) => bytes,
            // A folder that cannot hold a journal is told of when something is to be kept.
            Err(error) if matches!(error.kind(), ErrorKind::NotFound | ErrorKind::NotADirectory) => {
                return Ok(Recorded::default());
            }
            Err(error) => return Err(InputError::unreadable(path, &error)),
        };
        let end = bytes.iter().rposition(|byte| *byte == b'\n').map_or(0, |at| at + 1);
        let torn = is_torn(&bytes[end..]) && !is_line(&bytes[end..]);
        Recorded::parse_file(path, if torn { &bytes[..end] } else { &bytes })
    }

    /// Appends a line, which must not hold a line feed, and waits until it is kept.
    pub fn append(&self, line: &str) -> io::Result<()> {
        if let Some(folder) = self.path.parent() {
            std::fs::create_dir_all(folder)?;
        }
        let mut file = OpenOptions::new().read(true).append(true).create(true).open(&self.path)?;
        // Otherwise half a line that another process is just writing could be taken for a torn one.
        match file.lock() {
            Err(error) if error.kind() != ErrorKind::Unsupported => return Err(error),
            _ => {}
        }
        let mut bytes = Vec::with_capacity(line.len() + 2);
        match tail(&mut file)? {
            Tail::Nothing => {}
            Tail::Whole => bytes.push(b'\n'),
            Tail::Torn(from) => file.set_len(from)?,
        }
        bytes.extend_from_slice(line.as_bytes());
        bytes.push(b'\n');
        let before = file.seek(SeekFrom::End(0))?;
        let written = file.write_all(&bytes).and_then(|()| file.sync_data());
        if written.is_err() {
            // A full disk takes half a line. Should this fail as well, the next append finds it.
            let _ = file.set_len(before);
        }
        written
    }
}

fn is_torn(tail: &[u8]) -> bool {
    let common = tail.len().min(BEGINNING.len());
    tail[..common] == BEGINNING[..common]
}

fn tail(file: &mut File) -> io::Result<Tail> {
    const BLOCK: u64 = 64 << 10;
    let mut from = file.seek(SeekFrom::End(0))?;
    let mut tail = Vec::new();
    while from > 0 {
        let size = from.min(BLOCK);
        from -= size;
        file.seek(SeekFrom::Start(from))?;
        let mut block = Vec::new();
        Read::by_ref(file).take(size).read_to_end(&mut block)?;
        let feed = block.iter().rposition(|byte| *byte == b'\n');
        let behind = feed.map_or(0, |at| at + 1);
        block.extend_from_slice(&tail);
        tail = block.split_off(behind);
        if feed.is_some() {
            from += behind as u64;
            break;
        }
    }
    if tail.is_empty() {
        Ok(Tail::Nothing)
    } else if is_line(&tail) {
        Ok(Tail::Whole)
    } else if is_torn(&tail) {
        Ok(Tail::Torn(from))
    } else {
        // Somebody's own text; cutting it would destroy it.
        Err(io::Error::new(ErrorKind::InvalidData, "its last line is no recorded reply; name another file"))
    }
}
