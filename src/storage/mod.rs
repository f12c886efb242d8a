//! Files that survive a kill, a power cut and a full disk, and locks between processes.
//!
//! [`Journal`] appends whole lines and syncs them. [`replace()`] writes a temporary file and renames it, so that no reader sees half of a
//! file. `checked` holds the checksums of derived files. [`FileLock`] is the system's own file lock: one process holds it at a time, and it ends with its process. Only bytes and paths are
//! handled here; no line is interpreted. May use: nothing of this crate.

use std::fs::{File, OpenOptions, TryLockError};
use std::io::{BufWriter, ErrorKind, Read, Seek, Write};
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime, UNIX_EPOCH};
use std::{fmt, fs, io};

use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use serde_json::Value;

pub mod checked;
mod journal;

pub use journal::{Journal, Lines};

/// The holder of a lock, as written into the lock file. The text is only information for other processes; the system's lock decides.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Holder {
    /// The annotator or command.
    pub by: String,
    /// The process id.
    pub pid: u32,
    /// The machine.
    pub host: String,
    /// The time when it got the lock, in milliseconds since 1970.
    pub since: u64,
}

impl Holder {
    /// This process, from now on, under the name `by`.
    pub fn here(by: &str) -> Self {
        Holder { by: by.into(), pid: std::process::id(), host: host(), since: now_ms() }
    }
}

impl fmt::Display for Holder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // httpdate panics after the year 9999, and the lock file may have been edited.
        const YEAR_10000: u64 = 253_402_300_800_000;
        let since = UNIX_EPOCH.checked_add(Duration::from_millis(self.since));
        let since = since.filter(|_| self.since < YEAR_10000).map(httpdate::fmt_http_date);
        write!(f, "{} (process {} on {}", self.by, self.pid, self.host)?;
        since.map_or(Ok(()), |since| write!(f, ", since {since}"))?;
        f.write_str(")")
    }
}

/// An exclusive lock, held until it is dropped.
#[derive(Debug)]
pub struct FileLock {
    file: File,
    path: PathBuf,
}

/// The result of asking for a lock without waiting.
#[derive(Debug)]
pub enum Attempt {
    /// This process holds the lock now.
    Acquired(FileLock),
    /// Another process holds it; `None` if the lock file does not name a readable holder.
    Held(Option<Holder>),
}

impl FileLock {
    /// Asks for the lock file `path`, creating it if needed, without waiting.
    ///
    /// # Errors
    /// The folder cannot be written. File systems without locks count as unlocked.
    pub fn try_acquire(path: &Path, holder: &Holder) -> io::Result<Attempt> {
        let mut file = open(path)?;
        match file.try_lock() {
            Ok(()) => {}
            Err(TryLockError::WouldBlock) => {
                let mut text = String::new();
                let _ = file.read_to_string(&mut text);
                return Ok(Attempt::Held(serde_json::from_str(&text).ok()));
            }
            Err(TryLockError::Error(error)) if error.kind() == ErrorKind::Unsupported => {}
            Err(TryLockError::Error(error)) => return Err(error),
        }
        // The file is never removed: a waiting process would then hold the lock of a removed file.
        file.set_len(0)?;
        file.rewind()?;
        file.write_all(serde_json::to_string(holder)?.as_bytes())?;
        Ok(Attempt::Acquired(FileLock { file, path: path.into() }))
    }

    /// Waits for the lock file `path`, creating it if needed. Meant for locks held for milliseconds.
    ///
    /// # Errors
    /// The folder cannot be written.
    pub fn acquire(path: &Path) -> io::Result<FileLock> {
        let file = open(path)?;
        match file.lock() {
            Err(error) if error.kind() != ErrorKind::Unsupported => Err(error),
            _ => Ok(FileLock { file, path: path.into() }),
        }
    }

    /// Whether the locked file still lies where it was. If its folder was replaced by a copy, another process may hold the copy's lock.
    pub fn is_in_place(&self) -> bool {
        let number = |about: io::Result<fs::Metadata>| about.map(|about| entry_identity(&about).1).ok();
        let own = number(self.file.metadata());
        own.is_some() && own == number(fs::metadata(&self.path))
    }
}

impl Drop for FileLock {
    /// Closing the file is not enough: a child that another thread has just forked keeps a copy of it, and so the lock, until it becomes
    /// another program.
    fn drop(&mut self) {
        let _ = self.file.unlock();
    }
}

fn open(path: &Path) -> io::Result<File> {
    OpenOptions::new().read(true).write(true).create(true).truncate(false).open(path)
}

fn host() -> String {
    let named = ["HOSTNAME", "COMPUTERNAME"].into_iter().find_map(|name| std::env::var(name).ok());
    let kernel = || std::fs::read_to_string("/proc/sys/kernel/hostname").ok();
    named.or_else(kernel).map_or_else(|| "this machine".into(), |name| name.trim().to_owned())
}

/// When a file's entry was changed, in nanoseconds, and its number, as far as the system says. Unlike the time of its content, no program
/// sets that time.
pub fn entry_identity(about: &fs::Metadata) -> (u64, u64) {
    #[cfg(unix)]
    {
        use std::os::unix::fs::MetadataExt;
        let seconds = (about.ctime() as u64).wrapping_mul(1_000_000_000);
        (seconds.wrapping_add(about.ctime_nsec() as u64), about.ino())
    }
    #[cfg(not(unix))]
    {
        let created = about.created().ok().and_then(|time| time.duration_since(UNIX_EPOCH).ok());
        (created.map_or(0, |since| since.as_nanos() as u64), 0)
    }
}

/// Milliseconds since 1970.
pub fn now_ms() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_millis() as u64)
}

/// Replaces the file `path` by `bytes`, atomically and synced to disk.
///
/// # Errors
/// The folder cannot be written. The old file is then unchanged, and no temporary file stays.
pub fn replace(path: &Path, bytes: &[u8]) -> io::Result<()> {
    replace_with(path, |file| file.write_all(bytes))
}

/// Replaces the file `path` by whatever `write` writes, atomically and synced to disk.
///
/// # Errors
/// `write` failed or the folder cannot be written. The old file is then unchanged, and no temporary file stays.
pub fn replace_with<E: From<io::Error>>(
    path: &Path,
    write: impl FnOnce(&mut BufWriter<File>) -> Result<(), E>,
) -> Result<(), E> {
    let part = write_part(path, write)?;
    part.persist(path).map_err(|error| error.error)?;
    sync_folder(path);
    sweep(path);
    Ok(())
}

/// Writes the new file `path`, atomically and synced to disk.
///
/// # Errors
/// There is such a file (`AlreadyExists`), or the folder cannot be written. No temporary file stays.
pub fn create(path: &Path, bytes: &[u8]) -> io::Result<()> {
    let part = write_part::<io::Error>(path, |file| file.write_all(bytes))?;
    part.persist_noclobber(path).map_err(|error| error.error)?;
    sync_folder(path);
    Ok(())
}

/// Writes a synced temporary file in the folder of `path`.
fn write_part<E: From<io::Error>>(
    path: &Path,
    write: impl FnOnce(&mut BufWriter<File>) -> Result<(), E>,
) -> Result<tempfile::TempPath, E> {
    let prefix = prefix(path);
    let mut builder = tempfile::Builder::new();
    builder.prefix(&prefix).suffix(ENDING);
    #[cfg(unix)]
    builder.permissions(std::os::unix::fs::PermissionsExt::from_mode(0o666));
    let (file, part) = builder.tempfile_in(folder_of(path))?.into_parts();
    let mut writer = BufWriter::new(file);
    write(&mut writer)?;
    writer.into_inner().map_err(io::IntoInnerError::into_error)?.sync_all()?;
    Ok(part)
}

/// Moves the finished file `from`, already synced, to `to` in the same folder or file system.
///
/// # Errors
/// The folder cannot be written.
pub fn move_file(from: &Path, to: &Path) -> io::Result<()> {
    fs::rename(from, to)?;
    sync_folder(to);
    Ok(())
}

/// Moves the finished folder `from` to `to`. An existing folder at `to` is removed first.
///
/// # Errors
/// Either folder cannot be moved or removed.
pub fn replace_folder(from: &Path, to: &Path) -> io::Result<()> {
    match fs::remove_dir_all(to) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
        _ => {}
    }
    move_file(from, to)
}

/// The end of the name of an unfinished file.
const ENDING: &str = ".part";

/// An unfinished file of this age belongs to a process that was killed: a small file is written in milliseconds.
const ABANDONED: Duration = Duration::from_secs(60);

fn prefix(path: &Path) -> String {
    format!(".{}.", path.file_name().unwrap_or_default().to_string_lossy())
}

fn folder_of(path: &Path) -> &Path {
    path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."))
}

/// Removes the unfinished files that killed processes have left in the folder of `path`.
fn sweep(path: &Path) {
    let prefix = prefix(path);
    for entry in fs::read_dir(folder_of(path)).into_iter().flatten().flatten() {
        let name = entry.file_name();
        let unfinished =
            name.to_str().is_some_and(|name| name.starts_with(&prefix) && name.ends_with(ENDING));
        let age = || entry.metadata().ok()?.modified().ok()?.elapsed().ok();
        if unfinished && age().is_some_and(|age| age > ABANDONED) {
            let _ = fs::remove_file(entry.path());
        }
    }
}

/// Syncs the folder of `path`: otherwise a new name may be lost in a power cut. This is skipped on systems that cannot open a folder.
fn sync_folder(path: &Path) {
    if let Ok(folder) = File::open(folder_of(path)) {
        let _ = folder.sync_all();
    }
}

/// A derived file whose bytes are not those that were written.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{} is damaged: {what}", path.display())]
pub struct Damaged {
    /// The file or folder.
    pub path: PathBuf,
    /// What is wrong with it.
    pub what: String,
}

impl Damaged {
    /// The damage of `path`.
    pub fn new(path: &Path, what: impl Into<String>) -> Self {
        Damaged { path: path.into(), what: what.into() }
    }

    /// The damage behind an error of a check, if it is one.
    pub fn of(error: &io::Error) -> Option<&Damaged> {
        error.get_ref()?.downcast_ref()
    }
}

impl From<Damaged> for io::Error {
    fn from(damaged: Damaged) -> Self {
        io::Error::new(ErrorKind::InvalidData, damaged)
    }
}

/// The text of a small file of JSON, an object, with a field `sum` over its content and its owner.
///
/// # Errors
/// The value is no object of JSON.
pub fn seal(value: &impl Serialize, owner: &str) -> serde_json::Result<Vec<u8>> {
    let mut value = serde_json::to_value(value)?;
    let sum = seal_of(&value, owner);
    let object = value.as_object_mut().ok_or_else(|| serde::ser::Error::custom("expected an object"))?;
    object.insert(SEAL.into(), Value::String(sum));
    serde_json::to_vec_pretty(&value)
}

const SEAL: &str = "sum";

/// The checksum of a value and its owner, in hexadecimal digits.
fn seal_of(value: &Value, owner: &str) -> String {
    let mut hash = blake3::Hasher::new();
    hash.update(&(owner.len() as u64).to_le_bytes()).update(owner.as_bytes());
    hash.update(value.to_string().as_bytes());
    hash.finalize().to_hex()[..32].to_owned()
}

/// The content of a file that [`seal`] wrote, or of one of an earlier version, which has no sum.
///
/// # Errors
/// [`Damaged`]: it is no JSON, lacks a field, or its sum is another.
pub fn unseal<T: DeserializeOwned>(path: &Path, bytes: &[u8], owner: &str) -> Result<T, Damaged> {
    let damaged = |error: serde_json::Error| Damaged::new(path, error.to_string());
    let mut value: Value = serde_json::from_slice(bytes).map_err(damaged)?;
    let sum = value.as_object_mut().and_then(|object| object.remove(SEAL));
    if sum.is_some_and(|sum| sum != seal_of(&value, owner)) {
        return Err(Damaged::new(path, "its content does not have the sum that it states"));
    }
    serde_json::from_value(value).map_err(damaged)
}

/// Whether a file begins with all bytes of a shorter one.
///
/// # Errors
/// A file cannot be read.
pub fn begins_with(whole: &Path, part: &Path) -> io::Result<bool> {
    let (mut whole, mut part) = (File::open(whole)?, File::open(part)?);
    let mut left = part.metadata()?.len();
    if left >= whole.metadata()?.len() {
        return Ok(false);
    }
    let (mut long, mut short) = (vec![0; 1 << 20], vec![0; 1 << 20]);
    while left > 0 {
        let bytes = left.min(1 << 20) as usize;
        whole.read_exact(&mut long[..bytes])?;
        part.read_exact(&mut short[..bytes])?;
        if long[..bytes] != short[..bytes] {
            return Ok(false);
        }
        left -= bytes as u64;
    }
    Ok(true)
}

#[cfg(test)]
mod tests {
    use std::time::SystemTime;

    use super::*;

    #[test]
    fn a_second_attempt_names_the_holder_until_the_first_lock_is_dropped() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("labels.lock");
        let anna = Holder::here("anna");
        let first = FileLock::try_acquire(&path, &anna).unwrap();
        let Attempt::Acquired(lock) = &first else { panic!("{first:?}") };
        let _copy = lock.file.try_clone().unwrap(); // as a forked child has one
        match FileLock::try_acquire(&path, &Holder::here("ben")).unwrap() {
            Attempt::Held(Some(holder)) => assert_eq!(holder, anna),
            other => panic!("{other:?}"),
        }
        drop(first);
        assert!(matches!(FileLock::try_acquire(&path, &anna).unwrap(), Attempt::Acquired(_)));
    }

    #[test]
    fn a_lock_file_of_other_text_is_held_by_nobody_known_and_absurd_dates_do_not_panic() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a.lock");
        let held = FileLock::acquire(&path).unwrap();
        std::fs::write(&path, "7").unwrap();
        assert!(matches!(FileLock::try_acquire(&path, &Holder::here("x")).unwrap(), Attempt::Held(None)));
        drop(held);
        let far = Holder { since: u64::MAX, ..Holder::here("anna") };
        assert!(far.to_string().starts_with("anna (process "));
    }

    #[test]
    fn what_killed_processes_left_beside_a_file_is_removed_when_it_is_written_again() {
        let folder = tempfile::tempdir().unwrap();
        let old = SystemTime::now() - Duration::from_secs(120);
        let names = [
            (".about.json.7.part", old),
            (".about.json.8.part", SystemTime::now()),
            (".other.json.9.part", old),
        ];
        for (name, at) in names {
            File::create(folder.path().join(name)).unwrap().set_modified(at).unwrap();
        }
        replace(&folder.path().join("about.json"), b"{}").unwrap();
        let mut names: Vec<_> =
            fs::read_dir(folder.path()).unwrap().map(|entry| entry.unwrap().file_name()).collect();
        names.sort();
        assert_eq!(names, [".about.json.8.part", ".other.json.9.part", "about.json"]);
    }

    #[test]
    fn a_failed_write_leaves_the_old_file_and_nothing_beside_it() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("about.json");
        replace(&path, b"old").unwrap();
        let failed = replace_with(&path, |file| {
            file.write_all(b"half")?;
            Err(io::Error::other("disk full"))
        });
        assert_eq!(failed.unwrap_err().to_string(), "disk full");
        assert_eq!(fs::read(&path).unwrap(), b"old");
        replace(&path, b"new").unwrap();
        assert_eq!(fs::read(&path).unwrap(), b"new");
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1);
    }

    #[test]
    fn a_sealed_file_reads_back_and_no_changed_character_is_taken() {
        #[derive(Debug, PartialEq, Serialize, Deserialize)]
        struct Card {
            name: String,
            built: u64,
        }
        let card = Card { name: "zoos".into(), built: 7 };
        let path = Path::new("about.json");
        let sealed = seal(&card, "owner").unwrap();
        assert_eq!(unseal::<Card>(path, &sealed, "owner").unwrap(), card);
        assert!(unseal::<Card>(path, &sealed, "other").is_err());
        assert_eq!(unseal::<Card>(path, br#"{"name": "zoos", "built": 7}"#, "owner").unwrap(), card);
        for at in 0..sealed.len() {
            let mut damaged = sealed.clone();
            damaged[at] ^= 2;
            if let Ok(read) = unseal::<Card>(path, &damaged, "owner") {
                assert_eq!(read, card, "only white space or the name of the sum may change: {at}");
            }
        }
    }

    #[test]
    fn a_folder_takes_the_place_of_an_older_one() {
        let folder = tempfile::tempdir().unwrap();
        let (from, to) = (folder.path().join("index.building"), folder.path().join("index"));
        for (place, text) in [(&to, "old"), (&from, "new")] {
            fs::create_dir(place).unwrap();
            fs::write(place.join("a"), text).unwrap();
        }
        replace_folder(&from, &to).unwrap();
        assert_eq!(fs::read(to.join("a")).unwrap(), b"new");
        assert!(!from.exists());
    }
}

#[cfg(test)]
pub mod testing {
    use std::fs::{File, OpenOptions};
    use std::io::{self, ErrorKind, Read, Seek, SeekFrom, Write};
    use std::path::Path;

    use super::journal::Disk;
    pub use super::journal::OpenDisk;

    /// A disk with room for a few bytes more, which may refuse even to be cut.
    pub struct FullDisk {
        file: File,
        room: usize,
        cuts: bool,
    }

    impl FullDisk {
        /// The file `path` on a disk with room for `room` bytes.
        pub fn open(path: &Path, room: usize, cuts: bool) -> io::Result<Box<dyn Disk>> {
            let file = OpenOptions::new().read(true).append(true).open(path)?;
            Ok(Box::new(FullDisk { file, room, cuts }))
        }
    }

    impl Read for FullDisk {
        fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
            self.file.read(buffer)
        }
    }

    impl Seek for FullDisk {
        fn seek(&mut self, to: SeekFrom) -> io::Result<u64> {
            self.file.seek(to)
        }
    }

    impl Disk for FullDisk {
        fn append(&mut self, bytes: &[u8]) -> io::Result<()> {
            self.file.write_all(&bytes[..bytes.len().min(self.room)])?;
            Err(ErrorKind::StorageFull.into())
        }

        fn truncate(&mut self, len: u64) -> io::Result<()> {
            // Moving a torn line aside cuts as well, so `cuts` alone decides.
            if self.cuts { self.file.set_len(len) } else { Err(ErrorKind::Other.into()) }
        }
    }
}
