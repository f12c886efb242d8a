//! The labels of a pair, and the cache of what detectors read, by (detector, passage, statements).
//!
//! The cache is one SQLite file in WAL mode, shared by all screens, commands and processes, and safe against kills. It holds logits
//! and cosines; probabilities and decisions are computed from them and never cached. It holds at most two million pairs; the oldest
//! are deleted first. If it cannot be written, readings stay in memory and the reason is shown.
//!
//! Each row has a checksum over its pair and its reading. A damaged row is deleted and read again, and a damaged file is set aside as
//! `verdicts.sqlite.damaged`; both are shown.

use std::fs;
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use parking_lot::{Mutex, MutexGuard};
use rusqlite::{Connection, ErrorCode, OptionalExtension, params};

use super::decision::DetectError;
use super::detector::{Both, Detector};
use super::rule::Reading;
use crate::corpus::Passage;
use crate::storage::checked::{set_aside, with_ending};
use crate::work::Stop;

/// The model's reading of a pair, and the pair's labels.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct PairLabels {
    /// The detector's reading, or its error; `None` before it ran.
    pub model: Option<Result<Reading, DetectError>>,
    /// The gold label.
    pub gold: Option<bool>,
    /// The human label: that of most annotators.
    pub human: Option<bool>,
    /// Whether as many annotators say yes as no, which leaves the pair unjudged.
    pub tied: bool,
}

impl PairLabels {
    /// Whether any annotator labelled the pair; a tie counts.
    pub fn by_hand(&self) -> bool {
        self.human.is_some() || self.tied
    }

    /// The label by hand; `Some(None)` is a tie of annotators.
    pub fn by_hand_or_tied(&self) -> Option<Option<bool>> {
        if self.tied { Some(None) } else { self.human.map(Some) }
    }

    /// Whether there is a label of any kind.
    pub fn is_labelled(&self) -> bool {
        self.by_hand() || self.gold.is_some()
    }
}

/// The most pairs stored; each takes about 60 bytes.
const BOUND: i64 = 2_000_000;

/// Why the cache on disk cannot be opened.
#[derive(Debug, thiserror::Error)]
enum OnDiskError {
    #[error(transparent)]
    Folder(#[from] std::io::Error),
    #[error(transparent)]
    Database(#[from] rusqlite::Error),
}

/// The file of the cache.
pub const FILE: &str = "verdicts.sqlite";

/// A larger file is not checked as a whole when it is opened; its rows are checked when they are read.
const CHECKED_WHOLE: u64 = 16 << 20;

/// The cache of verdicts.
pub struct Cache {
    connection: Mutex<Connection>,
    /// Why verdicts are not saved to disk, or that the file was damaged; `None` in an ordinary case.
    pub unsaved: Option<String>,
    /// The number of damaged rows that were found and read again.
    damaged: AtomicU64,
}

impl Cache {
    /// Opens `verdicts.sqlite` in `folder`, or falls back to memory and notes the reason in `unsaved`.
    ///
    /// # Errors
    /// Not even a cache in memory can be opened.
    pub fn open(folder: &Path) -> rusqlite::Result<Self> {
        let mut note = None;
        let mut opened = Self::on_disk(folder);
        if let Err(OnDiskError::Database(error)) = &opened
            && is_damage(error)
        {
            let place = folder.join(FILE);
            note = Some(match Self::set_aside(&place) {
                Ok(()) => format!(
                    "{} is damaged ({error}); it was set aside as {FILE}.damaged, and its verdicts are made again",
                    place.display()
                ),
                Err(error) => {
                    format!("{} is damaged and cannot be set aside ({error}); remove it", place.display())
                }
            });
            opened = Self::on_disk(folder);
        }
        match opened {
            Ok(connection) => {
                let connection = Mutex::new(connection);
                Ok(Cache { connection, unsaved: note, damaged: AtomicU64::new(0) })
            }
            Err(reason) => {
                let reason = format!("verdicts are not saved: {} ({reason})", folder.display());
                Ok(Cache { unsaved: Some(reason), ..Self::in_memory()? })
            }
        }
    }

    /// Sets the file of the cache aside, with its log of changes, which another file must not get.
    ///
    /// # Errors
    /// It cannot be renamed.
    pub fn set_aside(place: &Path) -> std::io::Result<()> {
        set_aside(place)?;
        for ending in ["-wal", "-shm"] {
            match fs::remove_file(with_ending(place, ending)) {
                Err(error) if error.kind() != std::io::ErrorKind::NotFound => return Err(error),
                _ => {}
            }
        }
        Ok(())
    }

    /// A cache in memory.
    ///
    /// # Errors
    /// SQLite has no memory.
    pub fn in_memory() -> rusqlite::Result<Self> {
        let connection = Connection::open_in_memory()?;
        prepare(&connection)?;
        Ok(Cache { connection: Mutex::new(connection), unsaved: None, damaged: AtomicU64::new(0) })
    }

    fn on_disk(folder: &Path) -> Result<Connection, OnDiskError> {
        std::fs::create_dir_all(folder)?;
        let place = folder.join(FILE);
        let connection = Connection::open(&place)?;
        // Several processes may open it for the first time at once.
        connection.busy_timeout(Duration::from_secs(10))?;
        connection.pragma_update(None, "journal_mode", "wal")?;
        // A power cut may lose the last verdicts, but never damages the file.
        connection.pragma_update(None, "synchronous", "normal")?;
        prepare(&connection)?;
        if fs::metadata(&place)?.len() <= CHECKED_WHOLE {
            whole(&connection)?;
        }
        Ok(connection)
    }

    /// Checks the whole file and every row, and deletes damaged rows if `repair`. Returns the number of rows and of damaged ones.
    ///
    /// # Errors
    /// The file itself is damaged, or cannot be read or written.
    pub fn check(folder: &Path, repair: bool) -> rusqlite::Result<(u64, u64)> {
        let place = folder.join(FILE);
        if !place.exists() {
            return Ok((0, 0));
        }
        let connection = Connection::open(place)?;
        connection.busy_timeout(Duration::from_secs(10))?;
        prepare(&connection)?;
        whole(&connection)?;
        let (mut rows, mut damaged) = (0, Vec::new());
        let mut query = connection.prepare("SELECT n, pair, read, sum FROM verified")?;
        let mut found = query.query([])?;
        while let Some(row) = found.next()? {
            rows += 1;
            let bytes = |at: usize| row.get::<_, Vec<u8>>(at).unwrap_or_default();
            if reading(&bytes(1), &bytes(2), &bytes(3)).is_none() {
                damaged.push(row.get::<_, i64>(0)?);
            }
        }
        drop(found);
        if repair {
            for row in &damaged {
                connection.execute("DELETE FROM verified WHERE n = ?1", [row])?;
            }
        }
        Ok((rows, damaged.len() as u64))
    }

    /// A note about damaged rows; `None` if there were none.
    pub fn damage(&self) -> Option<String> {
        let rows = self.damaged.load(Ordering::Relaxed);
        let verdicts = if rows == 1 { "verdict was" } else { "verdicts were" };
        (rows > 0).then(|| format!("{rows} damaged {verdicts} found in {FILE} and made again"))
    }

    /// Returns the cached reading of a pair; if there is none, runs `detector` and caches its reading.
    ///
    /// # Errors
    /// The detector failed or was stopped. Failures are not cached.
    pub fn read(
        &self,
        detector: &dyn Detector,
        passage: &Passage,
        statement: &str,
        stop: &Stop,
    ) -> Result<Reading, DetectError> {
        self.cache(&key(detector.key(), passage, &[statement]), || detector.read(passage, statement, stop))
    }

    /// Returns the cached readings of a passage with two opposite statements; if there are none, has `detector` read it. A detector that reads both
    /// together reads each otherwise than alone, so these readings have keys of their own.
    ///
    /// # Errors
    /// As [`Cache::read`], of each statement.
    pub fn read_both(
        &self,
        detector: &dyn Detector,
        passage: &Passage,
        statements: [&str; 2],
        stop: &Stop,
    ) -> Both {
        if !detector.reads_both(statements) {
            return statements.map(|statement| self.read(detector, passage, statement, stop));
        }
        let [first, second] = statements;
        let keys = [[first, second], [second, first]].map(|pair| key(detector.key(), passage, &pair));
        if let [Some(one), Some(other)] = keys.each_ref().map(|key| self.get(key)) {
            return [Ok(one), Ok(other)];
        }
        let both = detector.read_both(passage, statements, stop);
        for (key, reading) in keys.iter().zip(&both) {
            if let Ok(reading) = reading {
                self.put(key, reading);
            }
        }
        both
    }

    /// Returns the cached score that the re-ranker `model` gives a passage for a query; if there is none, runs `score` and caches it.
    pub(crate) fn score<E>(
        &self,
        model: &str,
        passage: &Passage,
        query: &str,
        score: impl FnOnce() -> Result<f32, E>,
    ) -> Result<f32, E> {
        self.cache(&key(model, passage, &[query]), || score().map(Reading::of_score))
            .map(|read| read.as_score())
    }

    fn cache<E>(&self, key: &[u8], make: impl FnOnce() -> Result<Reading, E>) -> Result<Reading, E> {
        if let Some(cached) = self.get(key) {
            return Ok(cached);
        }
        let reading = make()?;
        self.put(key, &reading);
        Ok(reading)
    }

    fn put(&self, key: &[u8], reading: &Reading) {
        // A reading that cannot be cached is still valid.
        let bytes = reading.to_bytes();
        let _ = self.lock().execute(
            "INSERT OR REPLACE INTO verified (pair, read, sum) VALUES (?1, ?2, ?3)",
            params![key, bytes, row_sum(key, &bytes)],
        );
    }

    /// The probability that the passage supports the statement, without regard to the opposite statement.
    ///
    /// # Errors
    /// As [`Cache::read`].
    pub fn judge(
        &self,
        detector: &dyn Detector,
        passage: &Passage,
        statement: &str,
        stop: &Stop,
    ) -> Result<f32, DetectError> {
        Ok(detector.rule().single(&self.read(detector, passage, statement, stop)?))
    }

    /// The cached reading of a pair, without running the detector.
    pub fn cached(&self, detector: &dyn Detector, passage: &Passage, statement: &str) -> Option<Reading> {
        self.get(&key(detector.key(), passage, &[statement]))
    }

    fn get(&self, key: &[u8]) -> Option<Reading> {
        let connection = self.lock();
        let found = connection.prepare_cached("SELECT pair, read, sum FROM verified WHERE pair = ?1");
        let found = found.and_then(|mut query| {
            let bytes = |row: &rusqlite::Row<'_>, at: usize| row.get::<_, Vec<u8>>(at).unwrap_or_default();
            query.query_row([key], |row| Ok((bytes(row, 0), bytes(row, 1), bytes(row, 2)))).optional()
        });
        let damaged = match found {
            Ok(None) => false,
            Ok(Some((pair, read, sum))) => match reading(&pair, &read, &sum).filter(|_| pair == key) {
                Some(reading) => return Some(reading),
                None => true,
            },
            Err(error) => is_damage(&error),
        };
        self.damaged.fetch_add(u64::from(damaged), Ordering::Relaxed);
        None
    }

    fn lock(&self) -> MutexGuard<'_, Connection> {
        self.connection.lock()
    }
}

fn prepare(connection: &Connection) -> rusqlite::Result<()> {
    // Earlier versions cached probabilities, from which no decision can be computed, then readings without checksums.
    connection.execute_batch(
        "DROP TABLE IF EXISTS verdicts;
         DROP TABLE IF EXISTS readings;
         CREATE TABLE IF NOT EXISTS verified
            (n INTEGER PRIMARY KEY, pair BLOB NOT NULL UNIQUE, read BLOB NOT NULL, sum BLOB NOT NULL)",
    )?;
    connection.execute("DELETE FROM verified WHERE n <= (SELECT max(n) FROM verified) - ?1", [BOUND])?;
    Ok(())
}

/// Checks the pages of the file and what its indexes hold.
fn whole(connection: &Connection) -> rusqlite::Result<()> {
    let found: String = connection.query_row("PRAGMA quick_check(1)", [], |row| row.get(0))?;
    if found == "ok" {
        return Ok(());
    }
    let code = rusqlite::ffi::Error::new(rusqlite::ffi::SQLITE_CORRUPT);
    Err(rusqlite::Error::SqliteFailure(code, Some(found)))
}

/// Whether an error means that the file is damaged, or has another form than this program's.
fn is_damage(error: &rusqlite::Error) -> bool {
    let code = error.sqlite_error_code();
    matches!(
        code,
        Some(
            ErrorCode::DatabaseCorrupt
                | ErrorCode::NotADatabase
                | ErrorCode::Unknown
                | ErrorCode::SchemaChanged
        )
    )
}

/// The checksum of a row.
fn row_sum(pair: &[u8], read: &[u8]) -> Vec<u8> {
    let mut hash = blake3::Hasher::new();
    hash.update(&(pair.len() as u64).to_le_bytes()).update(pair).update(read);
    hash.finalize().as_bytes()[..12].to_vec()
}

/// The reading of a row; `None` if the row is damaged.
fn reading(pair: &[u8], read: &[u8], sum: &[u8]) -> Option<Reading> {
    if row_sum(pair, read) == sum { Reading::from_bytes(read) } else { None }
}

/// The key of a reading of the first statement, made beside the others.
fn key(detector: &str, passage: &Passage, statements: &[&str]) -> Vec<u8> {
    let mut hash = blake3::Hasher::new();
    for part in [detector, &passage.title, &passage.text].iter().chain(statements) {
        hash.update(&(part.len() as u64).to_le_bytes()).update(part.as_bytes());
    }
    hash.finalize().as_bytes()[..20].to_vec()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::detect::rule::Rule;
    use std::sync::atomic::{AtomicUsize, Ordering};

    #[derive(Default)]
    struct Counting(AtomicUsize, Rule);
    impl Detector for Counting {
        fn key(&self) -> &str {
            "counting"
        }
        fn rule(&self) -> &Rule {
            &self.1
        }
        fn read(&self, passage: &Passage, _: &str, _: &Stop) -> Result<Reading, DetectError> {
            self.0.fetch_add(1, Ordering::Relaxed);
            if passage.text.is_empty() { Err(DetectError::Empty("passage")) } else { Ok(Reading::of(0.5)) }
        }
    }

    fn passage(text: &str) -> Passage {
        Passage { text: text.into(), ..Passage::default() }
    }

    #[test]
    fn a_pair_is_judged_once_even_after_reopening_and_failures_are_not_cached() {
        let folder = tempfile::tempdir().unwrap();
        let detector = Counting::default();
        for _ in 0..2 {
            let cache = Cache::open(folder.path()).unwrap();
            assert_eq!(cache.unsaved, None);
            assert_eq!(cache.judge(&detector, &passage("a"), "s", &Stop::never()), Ok(0.5));
            assert_eq!(cache.judge(&detector, &passage("a"), "s", &Stop::never()), Ok(0.5));
        }
        assert_eq!(detector.0.load(Ordering::Relaxed), 1);
        let cache = Cache::open(folder.path()).unwrap();
        assert_eq!(cache.cached(&detector, &passage("a"), "s"), Some(Reading::of(0.5)));
        assert_eq!(cache.cached(&detector, &passage("b"), "s"), None);
        let cache = Cache::open(folder.path()).unwrap();
        for _ in 0..2 {
            assert!(cache.judge(&detector, &passage(""), "s", &Stop::never()).is_err());
        }
        assert_eq!(detector.0.load(Ordering::Relaxed), 3);
    }

    #[test]
    fn if_the_folder_cannot_be_created_verdicts_stay_in_memory_and_the_reason_is_noted() {
        let file = tempfile::NamedTempFile::new().unwrap();
        let cache = Cache::open(&file.path().join("below-a-file")).unwrap();
        assert!(cache.unsaved.as_deref().is_some_and(|reason| reason.contains("not saved")));
        assert_eq!(cache.judge(&Counting::default(), &passage("a"), "s", &Stop::never()), Ok(0.5));
    }

    #[test]
    fn title_text_and_statement_have_separate_parts_of_the_key() {
        let a = Passage { title: "x".into(), ..passage("y") };
        assert_ne!(key("d", &a, &["z"]), key("d", &Passage { title: "xy".into(), ..passage("") }, &["z"]));
    }

    /// A cache of one verdict, and the path of its file.
    fn cached() -> (tempfile::TempDir, std::path::PathBuf) {
        let folder = tempfile::tempdir().unwrap();
        let cache = Cache::open(folder.path()).unwrap();
        cache.judge(&Counting::default(), &passage("a"), "s", &Stop::never()).unwrap();
        let place = folder.path().join(FILE);
        (folder, place)
    }

    #[test]
    fn a_changed_row_is_never_taken_whatever_it_holds() {
        let huge: Vec<u8> = [f32::MAX, 0.0, 0.0, 0.0].iter().flat_map(|x| x.to_le_bytes()).collect();
        let changes: [(&str, rusqlite::types::Value); 7] = [
            ("read", Reading::of(1.0).to_bytes().into()),
            ("read", huge.into()),
            ("read", 7.0.into()),
            ("read", (-3.0).into()),
            ("read", "0.9".to_owned().into()),
            ("sum", vec![0u8; 12].into()),
            ("pair", vec![1u8; 20].into()),
        ];
        for (column, value) in changes {
            let (folder, place) = cached();
            let other = Connection::open(&place).unwrap();
            other.execute(&format!("UPDATE verified SET {column} = ?1"), [&value]).unwrap();
            drop(other);
            assert_eq!(Cache::check(folder.path(), false).unwrap(), (1, 1), "{column} {value:?}");
            let (cache, detector) = (Cache::open(folder.path()).unwrap(), Counting::default());
            assert_eq!(cache.judge(&detector, &passage("a"), "s", &Stop::never()), Ok(0.5), "{value:?}");
            assert_eq!(detector.0.load(Ordering::Relaxed), 1);
            assert_eq!(cache.damage().is_some(), column != "pair");
            assert_eq!(cache.cached(&detector, &passage("a"), "s"), Some(Reading::of(0.5)));
            drop(cache);
            let left = u64::from(column == "pair");
            assert_eq!(Cache::check(folder.path(), true).unwrap(), (1 + left, left));
            assert_eq!(Cache::check(folder.path(), false).unwrap(), (1, 0));
        }
    }

    #[test]
    fn every_damaged_byte_of_the_file_is_noticed_or_harmless() {
        let (folder, place) = cached();
        let (whole, mut set_aside) = (fs::read(&place).unwrap(), 0);
        let columns = |row: &rusqlite::Row<'_>| Ok([row.get::<_, Vec<u8>>(0)?, row.get(1)?].concat());
        let query = "SELECT read, sum FROM verified";
        let row: Vec<u8> = Connection::open(&place).unwrap().query_row(query, [], columns).unwrap();
        let from = whole.windows(row.len()).position(|bytes| bytes == row).unwrap();
        for at in (0..whole.len()).step_by(29).chain(0..100).chain(from..from + row.len()) {
            let mut damaged = whole.clone();
            damaged[at] ^= 0x41; // makes 8 of 0, where it hits the top of a logit
            fs::write(&place, damaged).unwrap();
            let (cache, detector) = (Cache::open(folder.path()).unwrap(), Counting::default());
            assert_eq!(cache.judge(&detector, &passage("a"), "s", &Stop::never()), Ok(0.5), "{at}");
            set_aside += u64::from(cache.unsaved.is_some());
            drop(cache);
            let _ = Cache::set_aside(&place);
        }
        assert!(set_aside > 10, "{set_aside}");
    }
}
