//! Checksums of derived files, so that a damaged cache is noticed and never believed.
//!
//! Beside a derived file, or a folder of them, lies `NAME.sums`: a line of JSON, then 16 bytes of BLAKE3 for every 16 KiB of each file, then
//! the BLAKE3 hash of all that. The line names the content's owner, so files of another corpus are noticed too. Files up to [`WHOLE`]
//! bytes are checked when they are opened, larger ones block by block when a process first touches a block. A damaged file is renamed
//! to `NAME.damaged`. Small files of JSON carry a field `sum` instead ([`super::seal`]).

use std::ffi::OsString;
use std::fs::{self, File};
use std::io::{self, ErrorKind, Read};
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};

use serde::{Deserialize, Serialize};

pub use super::Damaged;
use super::{move_file, replace_with, sync_folder};

/// Files up to this size are checked as a whole when they are opened.
pub const WHOLE: u64 = 64 << 20;
/// The number of bytes under one checksum.
const BLOCK: u64 = 16 << 10;
/// The length of a checksum.
pub const SUM: usize = 16;
/// The longest first line of a file of sums.
const LINE: usize = 1 << 20;

#[derive(Serialize, Deserialize)]
struct Head {
    /// The owner of the content.
    of: String,
    /// Bytes under one checksum.
    block: u64,
    /// Name and length of each file.
    files: Vec<(String, u64)>,
}

/// A file with its checksums and the blocks that were checked.
pub struct Summed {
    path: PathBuf,
    /// What is set aside if the file is damaged: the file or its folder.
    unit: PathBuf,
    bytes: u64,
    sums: Vec<u8>,
    seen: Vec<AtomicU64>,
}

impl std::fmt::Debug for Summed {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Summed").field("path", &self.path).finish_non_exhaustive()
    }
}

impl Summed {
    /// The file.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Its length.
    pub fn bytes(&self) -> u64 {
        self.bytes
    }

    /// What stands for the file's content in a file that is derived from it, in a certain format.
    pub fn digest(&self, format: &str) -> [u8; SUM] {
        sum(&[format.as_bytes(), &self.sums].concat())
    }

    /// Checks the blocks of a range that no call has checked yet. `read` fills a buffer from an offset.
    ///
    /// # Errors
    /// The file cannot be read. [`Damaged`] if a block is not as it was written; the file is then set aside.
    pub fn check(
        &self,
        range: Range<u64>,
        mut read: impl FnMut(&mut [u8], u64) -> io::Result<()>,
    ) -> io::Result<()> {
        let mut buffer = Vec::new();
        for block in self.blocks(range) {
            if !self.was_seen(block) {
                let place = self.place(block);
                buffer.resize((place.end - place.start) as usize, 0);
                read(&mut buffer, place.start)?;
                self.verify(block, &buffer).map_err(|damaged| self.aside(damaged))?;
            }
        }
        Ok(())
    }

    /// Like [`Summed::check`], for a file that is in memory or mapped.
    ///
    /// # Errors
    /// As for [`Summed::check`].
    pub fn check_bytes(&self, range: Range<u64>, all: &[u8]) -> io::Result<()> {
        for block in self.blocks(range) {
            if !self.was_seen(block) {
                let place = self.place(block);
                let bytes = all.get(place.start as usize..place.end as usize).unwrap_or_default();
                self.verify(block, bytes).map_err(|damaged| self.aside(damaged))?;
            }
        }
        Ok(())
    }

    /// Checks the whole file, and leaves it where it is.
    ///
    /// # Errors
    /// The file cannot be read. [`Damaged`] if a block is not as it was written.
    pub fn inspect(&self) -> io::Result<()> {
        let mut file = File::open(&self.path)?;
        let mut buffer = vec![0; BLOCK as usize];
        for block in self.blocks(0..self.bytes) {
            let place = self.place(block);
            let part = &mut buffer[..(place.end - place.start) as usize];
            file.read_exact(part)?;
            self.verify(block, part)?;
        }
        Ok(())
    }

    /// Sets the unit aside and adds its new place to the error.
    fn aside(&self, damaged: Damaged) -> io::Error {
        let what = match set_aside(&self.unit) {
            Ok(place) => format!(
                "{}; it was set aside as {}, and the next run makes it again",
                damaged.what,
                name_of(&place)
            ),
            Err(error) => format!("{}; it cannot be set aside ({error}), so remove it", damaged.what),
        };
        Damaged { what, ..damaged }.into()
    }

    fn blocks(&self, range: Range<u64>) -> Range<u64> {
        let end = range.end.min(self.bytes);
        if range.start >= end { 0..0 } else { range.start / BLOCK..end.div_ceil(BLOCK) }
    }

    fn place(&self, block: u64) -> Range<u64> {
        block * BLOCK..((block + 1) * BLOCK).min(self.bytes)
    }

    fn was_seen(&self, block: u64) -> bool {
        let word = self.seen.get((block / 64) as usize);
        word.is_some_and(|word| word.load(Ordering::Relaxed) >> (block % 64) & 1 == 1)
    }

    fn verify(&self, block: u64, bytes: &[u8]) -> Result<(), Damaged> {
        let at = block as usize * SUM;
        if self.sums.get(at..at + SUM) != Some(sum(bytes).as_slice()) {
            let place = self.place(block);
            let what = format!("bytes {} to {} are not those that were written", place.start, place.end);
            return Err(Damaged::new(&self.path, what));
        }
        if let Some(word) = self.seen.get((block / 64) as usize) {
            word.fetch_or(1 << (block % 64), Ordering::Relaxed);
        }
        Ok(())
    }
}

/// The name of a file for a message.
fn name_of(path: &Path) -> String {
    path.file_name().unwrap_or_default().to_string_lossy().into_owned()
}

fn sum(bytes: &[u8]) -> [u8; SUM] {
    let mut sum = [0; SUM];
    sum.copy_from_slice(&blake3::hash(bytes).as_bytes()[..SUM]);
    sum
}

/// The path with an ending after its own: `a.f32` and `.sums` give `a.f32.sums`.
pub fn with_ending(path: &Path, ending: &str) -> PathBuf {
    let mut name = OsString::from(path.as_os_str());
    name.push(ending);
    name.into()
}

/// The path of the checksums of a file or folder.
pub fn sums_path(path: &Path) -> PathBuf {
    with_ending(path, ".sums")
}

/// The owner that a file's place names: its folder, which for a corpus is the fingerprint, and its own name.
pub fn owner(path: &Path) -> String {
    let folder = path.parent().map(name_of).unwrap_or_default();
    format!("{}/{}", folder.trim_end_matches(".building"), name_of(path))
}

/// Writes the checksums of the finished files `files`, which are or will be in the unit `unit` of `owner`.
///
/// # Errors
/// A file cannot be read, or the folder of `unit` cannot be written.
fn write_sums(unit: &Path, owner: &str, files: &[PathBuf]) -> io::Result<()> {
    let (mut sums, mut named) = (Vec::new(), Vec::new());
    let mut buffer = vec![0; BLOCK as usize];
    for path in files {
        let (mut file, mut bytes) = (File::open(path)?, 0);
        loop {
            let mut filled = 0;
            while filled < buffer.len() {
                match file.read(&mut buffer[filled..])? {
                    0 => break,
                    read => filled += read,
                }
            }
            bytes += filled as u64;
            if filled > 0 {
                sums.extend(sum(&buffer[..filled]));
            }
            if filled < buffer.len() {
                break;
            }
        }
        named.push((name_of(path), bytes));
    }
    let mut all = serde_json::to_vec(&Head { of: owner.into(), block: BLOCK, files: named })?;
    all.push(b'\n');
    all.extend(sums);
    let end = blake3::hash(&all);
    replace_with(&sums_path(unit), |out| {
        io::Write::write_all(out, &all)?;
        io::Write::write_all(out, end.as_bytes())
    })
}

/// Writes the checksums of one finished file, which is or will be at `place`.
///
/// # Errors
/// As for `write_sums`.
pub fn sum_file(file: &Path, place: &Path) -> io::Result<()> {
    write_sums(place, &owner(place), &[file.to_path_buf()])
}

/// Moves a finished file, already synced, to `place` with its checksums; an earlier file there and its checksums stay as they are until
/// those of the new one are written.
///
/// # Errors
/// As for `write_sums`, or the file cannot be moved; an earlier file is then unchanged.
pub fn replace_file(file: &Path, place: &Path) -> io::Result<()> {
    write_sums(file, &owner(place), &[file.to_path_buf()])?;
    let sums = sums_path(file);
    if let Err(error) = move_file(file, place) {
        let _ = fs::remove_file(sums);
        return Err(error);
    }
    move_file(&sums, &sums_path(place))
}

/// Writes the checksums of a finished folder, which is or will be at `place`.
///
/// # Errors
/// As for `write_sums`.
pub fn sum_folder(folder: &Path, place: &Path) -> io::Result<()> {
    write_sums(place, &owner(place), &listing(folder)?)
}

/// The files of a folder that have checksums, by name. Locks change, so they have none.
fn listing(folder: &Path) -> io::Result<Vec<PathBuf>> {
    let mut files = Vec::new();
    for entry in fs::read_dir(folder)? {
        let entry = entry?;
        if entry.file_type()?.is_file() && entry.path().extension().is_none_or(|end| end != "lock") {
            files.push(entry.path());
        }
    }
    files.sort();
    Ok(files)
}

/// Writes the checksums of files of an earlier version, which wrote none: a folder in which no file or folder has any.
///
/// # Errors
/// The folder cannot be read or written.
pub fn adopt(folder: &Path, is_derived: impl Fn(&str) -> bool) -> io::Result<()> {
    let mut units = Vec::new();
    for entry in fs::read_dir(folder)? {
        let path = entry?.path();
        let name = name_of(&path);
        if name.ends_with(".sums") {
            return Ok(());
        }
        if is_derived(&name) {
            units.push(path);
        }
    }
    for unit in units {
        if unit.is_dir() { sum_folder(&unit, &unit)? } else { sum_file(&unit, &unit)? }
    }
    Ok(())
}

/// Opens the checksums of `unit`, a file or a folder. Files up to [`WHOLE`] bytes together are checked as a whole.
///
/// # Errors
/// Something cannot be read. [`Damaged`] if the sums are missing or invalid, belong to another owner, or do not fit the files.
pub fn open_sums(unit: &Path) -> io::Result<Vec<Summed>> {
    let files = open_unchecked(unit)?;
    if files.iter().map(|file| file.bytes).sum::<u64>() <= WHOLE {
        files.iter().try_for_each(Summed::inspect)?;
    }
    Ok(files)
}

/// Opens the checksums of one file.
///
/// # Errors
/// As for [`open_sums`].
pub fn open_sum(file: &Path) -> io::Result<Summed> {
    open_sums(file)?.pop().ok_or_else(|| Damaged::new(file, "its checksums name no file").into())
}

/// Opens a file and its checksums.
///
/// # Errors
/// As for [`open_sums`].
pub fn open_file(file: &Path) -> io::Result<(Summed, File)> {
    Ok((open_sum(file)?, File::open(file)?))
}

/// Opens the checksums of `unit` and compares only names and lengths.
///
/// # Errors
/// As for [`open_sums`].
pub fn open_unchecked(unit: &Path) -> io::Result<Vec<Summed>> {
    let damaged = |what: &str| io::Error::from(Damaged::new(unit, what));
    let all = match fs::read(sums_path(unit)) {
        Err(error) if error.kind() == ErrorKind::NotFound => {
            return Err(damaged("its checksums are missing"));
        }
        all => all?,
    };
    let unfit = || damaged("its checksums are damaged too");
    let (all, end) = all.split_last_chunk::<32>().ok_or_else(unfit)?;
    if blake3::hash(all).as_bytes() != end {
        return Err(unfit());
    }
    let line = all.iter().take(LINE).position(|byte| *byte == b'\n').ok_or_else(unfit)?;
    let head: Head = serde_json::from_slice(&all[..line]).map_err(|_| unfit())?;
    if head.of != owner(unit) || head.block != BLOCK {
        return Err(damaged(&format!("its checksums are those of {}", head.of.escape_debug())));
    }
    let is_folder = unit.is_dir();
    if is_folder && listing(unit)?.len() != head.files.len() {
        return Err(damaged("files are missing, or there are others"));
    }
    let (mut files, mut sums) = (Vec::new(), &all[line + 1..]);
    for (name, bytes) in head.files {
        let path = if is_folder { unit.join(&name) } else { unit.to_path_buf() };
        let found = match fs::metadata(&path) {
            Ok(about) => about.len(),
            Err(error) if error.kind() == ErrorKind::NotFound => return Err(damaged("a file is missing")),
            Err(error) => return Err(error),
        };
        if found != bytes {
            return Err(Damaged::new(&path, format!("it has {found} bytes of {bytes}")).into());
        }
        let blocks = bytes.div_ceil(BLOCK);
        let (own, others) = sums.split_at_checked(blocks as usize * SUM).ok_or_else(unfit)?;
        sums = others;
        let seen = (0..blocks.div_ceil(64)).map(|_| AtomicU64::new(0)).collect();
        files.push(Summed { path, unit: unit.into(), bytes, sums: own.to_vec(), seen });
    }
    Ok(files)
}

/// Renames a damaged file or folder to `NAME.damaged`, over an earlier one, and removes its checksums. Returns the new path.
///
/// # Errors
/// It cannot be renamed.
pub fn set_aside(unit: &Path) -> io::Result<PathBuf> {
    let place = with_ending(unit, ".damaged");
    match fs::remove_file(sums_path(unit)) {
        Err(error) if error.kind() != ErrorKind::NotFound => return Err(error),
        _ => {}
    }
    if place.is_dir() {
        fs::remove_dir_all(&place)?;
    }
    match fs::rename(unit, &place) {
        // Another process was first, or only its checksums were there.
        Err(error) if error.kind() != ErrorKind::NotFound => return Err(error),
        _ => {}
    }
    sync_folder(unit);
    Ok(place)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn file(bytes: usize) -> (tempfile::TempDir, PathBuf) {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a.f32");
        fs::write(&path, (0..bytes).map(|i| (i * 31 / 7) as u8).collect::<Vec<u8>>()).unwrap();
        sum_file(&path, &path).unwrap();
        (folder, path)
    }

    #[test]
    fn a_flipped_bit_anywhere_is_found_at_the_first_touch_and_the_file_is_set_aside() {
        for at in [0, 1, 16_383, 16_384, 40_000, 49_999] {
            let (folder, path) = file(50_000);
            let mut bytes = fs::read(&path).unwrap();
            bytes[at] ^= 4;
            fs::write(&path, &bytes).unwrap();
            let summed = open_unchecked(&path).unwrap().pop().unwrap();
            let block = at as u64 / BLOCK;
            for other in (0..4).filter(|other| *other != block) {
                summed.check_bytes(other * BLOCK..other * BLOCK + 1, &bytes).unwrap();
            }
            let error = summed.check_bytes(at as u64..at as u64 + 1, &bytes).unwrap_err();
            assert!(Damaged::of(&error).is_some_and(|damaged| damaged.path == path), "{error}");
            assert!(!path.exists() && folder.path().join("a.f32.damaged").exists());
            assert!(!folder.path().join("a.f32.sums").exists());
        }
    }

    #[test]
    fn a_small_file_is_checked_when_it_is_opened_and_a_sound_one_at_every_read() {
        let (_folder, path) = file(40_000);
        let all = fs::read(&path).unwrap();
        let summed = open_sum(&path).unwrap();
        // Checked before, so other bytes are no longer compared.
        summed.check_bytes(0..40_000, &[]).unwrap();
        let fresh = open_unchecked(&path).unwrap().pop().unwrap();
        let mut read = 0;
        let mut fill = |buffer: &mut [u8], at: u64| {
            read += buffer.len();
            buffer.copy_from_slice(&all[at as usize..at as usize + buffer.len()]);
            Ok(())
        };
        fresh.check(20_000..20_004, &mut fill).unwrap();
        fresh.check(20_000..20_004, &mut fill).unwrap();
        assert_eq!(read, BLOCK as usize);
    }

    #[test]
    fn cut_files_swapped_files_and_missing_or_damaged_sums_are_damage() {
        let (folder, path) = file(40_000);
        let whole = fs::read(&path).unwrap();
        let error = |path: &Path| open_sum(path).err().unwrap().to_string();
        fs::write(&path, &whole[..39_999]).unwrap();
        assert!(error(&path).contains("39999 bytes of 40000"));
        fs::write(&path, &whole).unwrap();
        let other = folder.path().join("b.f32");
        fs::write(&other, &whole).unwrap();
        assert!(error(&other).contains("checksums are missing"));
        fs::copy(sums_path(&path), sums_path(&other)).unwrap();
        assert!(error(&other).contains("those of"));
        let sums = fs::read(sums_path(&path)).unwrap();
        for at in 0..sums.len() {
            let mut damaged = sums.clone();
            damaged[at] ^= 1;
            fs::write(sums_path(&path), &damaged).unwrap();
            assert!(error(&path).contains("is damaged"), "{at}");
        }
        fs::write(sums_path(&path), &sums[..10]).unwrap();
        assert!(error(&path).contains("damaged too"));
    }

    #[test]
    fn a_folder_with_a_file_too_many_or_too_few_is_damaged_and_locks_do_not_count() {
        let folder = tempfile::tempdir().unwrap();
        let place = folder.path().join("terms");
        fs::create_dir(&place).unwrap();
        for name in ["a.term", "b.fast"] {
            fs::write(place.join(name), name).unwrap();
        }
        sum_folder(&place, &place).unwrap();
        fs::write(place.join("x.lock"), "1").unwrap();
        assert_eq!(open_sums(&place).unwrap().len(), 2);
        fs::write(place.join("c.idx"), "1").unwrap();
        assert!(open_sums(&place).is_err());
        fs::remove_file(place.join("c.idx")).unwrap();
        fs::remove_file(place.join("a.term")).unwrap();
        assert!(open_sums(&place).is_err());
        set_aside(&place).unwrap();
        assert!(!place.exists() && folder.path().join("terms.damaged/b.fast").exists());
    }
}
