//! A journal's file while it is written.

use std::fs::{File, OpenOptions};
use std::io::{self, Seek, SeekFrom, Write};
use std::path::Path;
use std::time::SystemTime;

/// A file that a journal writes to. Tests put one in its place that is full.
pub(super) trait Disk {
    /// Writes from a place on, and waits until it is on the disk.
    fn put(&mut self, from: u64, bytes: &[u8]) -> io::Result<()>;
    /// Cuts the file off.
    fn cut(&mut self, len: u64) -> io::Result<()>;
}

/// How it is opened.
pub(super) type Open = fn(&Path) -> io::Result<Box<dyn Disk>>;

impl Disk for File {
    fn put(&mut self, from: u64, bytes: &[u8]) -> io::Result<()> {
        self.seek(SeekFrom::Start(from))?;
        self.write_all(bytes)?;
        self.sync_data()
    }

    fn cut(&mut self, len: u64) -> io::Result<()> {
        self.set_len(len)
    }
}

/// What stands behind the whole lines is moved to `NAME.jsonl.torn`: it is somebody's, even if nobody can read it.
pub(super) fn keep_torn(path: &Path, end: u64) -> io::Result<()> {
    use io::Read as _;
    let mut file = match File::options().read(true).write(true).open(path) {
        Ok(file) => file,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
        Err(error) => return Err(error),
    };
    if file.metadata()?.len() <= end {
        return Ok(());
    }
    let mut torn = Vec::new();
    file.seek(SeekFrom::Start(end))?;
    file.read_to_end(&mut torn)?;
    torn.push(b'\n');
    let mut place = path.as_os_str().to_owned();
    place.push(".torn");
    let mut kept = OpenOptions::new().append(true).create(true).open(place)?;
    kept.write_all(&torn)?;
    kept.sync_all()?;
    file.set_len(end)
}

/// Opens a journal for writing, or makes it.
pub(super) fn open(path: &Path) -> io::Result<File> {
    OpenOptions::new().write(true).create(true).truncate(false).open(path)
}

/// By what it is seen that somebody else has changed a file.
pub(super) fn state(path: &Path) -> Option<(u64, Option<SystemTime>)> {
    let about = std::fs::metadata(path).ok()?;
    Some((about.len(), about.modified().ok()))
}

/// A new file is only there after a power cut if its folder was synced too. Not every system lets a folder be opened.
pub(super) fn sync_folder(path: &Path) {
    if let Some(Ok(folder)) = path.parent().map(File::open) {
        let _ = folder.sync_all();
    }
}
