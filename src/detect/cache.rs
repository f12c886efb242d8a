//! Verdicts that were made before, by (detector, passage, statement).
//!
//! One SQLite file in WAL mode serves all screens, commands and processes, and survives kills. It holds at most
//! two million verdicts; the oldest go first. Where it cannot be written, verdicts are kept in memory and the reason is told.

use std::path::Path;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use rusqlite::{Connection, OptionalExtension, params};

use super::{DetectError, Detector};
use crate::corpus::Passage;
use crate::work::Stop;

/// Most verdicts kept; a verdict takes some 50 bytes.
const BOUND: i64 = 2_000_000;

/// A store of verdicts.
pub struct Cache {
    connection: Mutex<Connection>,
    /// Why verdicts will not outlive this process, if so.
    pub not_kept: Option<String>,
}

impl Cache {
    /// Opens `verdicts.sqlite` in `folder`, or a store in memory that says why.
    ///
    /// # Errors
    /// Not even memory can hold a store.
    pub fn open(folder: &Path) -> rusqlite::Result<Self> {
        match Self::on_disk(folder) {
            Ok(connection) => Ok(Cache { connection: Mutex::new(connection), not_kept: None }),
            Err(reason) => {
                let said = format!("verdicts are not kept: {} ({reason})", folder.display());
                Ok(Cache { not_kept: Some(said), ..Self::in_memory()? })
            }
        }
    }

    /// A store that ends with the process.
    ///
    /// # Errors
    /// SQLite has no memory.
    pub fn in_memory() -> rusqlite::Result<Self> {
        let connection = Connection::open_in_memory()?;
        prepare(&connection)?;
        Ok(Cache { connection: Mutex::new(connection), not_kept: None })
    }

    fn on_disk(folder: &Path) -> Result<Connection, String> {
        std::fs::create_dir_all(folder).map_err(|error| error.to_string())?;
        let said = |error: rusqlite::Error| error.to_string();
        let connection = Connection::open(folder.join("verdicts.sqlite")).map_err(said)?;
        connection.busy_timeout(Duration::from_secs(2)).map_err(said)?;
        connection.pragma_update(None, "journal_mode", "wal").map_err(said)?;
        // A power cut may lose the last verdicts, never the file.
        connection.pragma_update(None, "synchronous", "normal").map_err(said)?;
        prepare(&connection).map_err(said)?;
        Ok(connection)
    }

    /// The verdict on a pair: the one kept, or `detector`'s, which is then kept.
    ///
    /// # Errors
    /// The detector failed or was stopped; nothing is kept then.
    pub fn judge(
        &self,
        detector: &dyn Detector,
        passage: &Passage,
        statement: &str,
        stop: &Stop,
    ) -> Result<f32, DetectError> {
        let key = key(detector.key(), passage, statement);
        if let Some(p) = self.get(&key) {
            return Ok(p);
        }
        let p = detector.judge(passage, statement, stop)?;
        // A verdict that cannot be kept is still a verdict.
        let _ =
            self.lock().execute("INSERT OR IGNORE INTO verdicts (pair, p) VALUES (?1, ?2)", params![key, p]);
        Ok(p)
    }

    /// The verdict on a pair that was kept, if one was; nobody is asked.
    pub fn kept(&self, detector: &dyn Detector, passage: &Passage, statement: &str) -> Option<f32> {
        self.get(&key(detector.key(), passage, statement))
    }

    fn get(&self, key: &[u8]) -> Option<f32> {
        let connection = self.lock();
        let mut query = connection.prepare_cached("SELECT p FROM verdicts WHERE pair = ?1").ok()?;
        query.query_row([key], |row| row.get(0)).optional().ok()?
    }

    fn lock(&self) -> MutexGuard<'_, Connection> {
        self.connection.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn prepare(connection: &Connection) -> rusqlite::Result<()> {
    connection.execute_batch(
        "CREATE TABLE IF NOT EXISTS verdicts (n INTEGER PRIMARY KEY, pair BLOB NOT NULL UNIQUE, p REAL NOT NULL)",
    )?;
    connection.execute("DELETE FROM verdicts WHERE n <= (SELECT max(n) FROM verdicts) - ?1", [BOUND])?;
    Ok(())
}

fn key(detector: &str, passage: &Passage, statement: &str) -> Vec<u8> {
    let mut hash = blake3::Hasher::new();
    for part in [detector, &passage.title, &passage.text, statement] {
        hash.update(&(part.len() as u64).to_le_bytes()).update(part.as_bytes());
    }
    hash.finalize().as_bytes()[..20].to_vec()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::{AtomicUsize, Ordering};

    struct Counting(AtomicUsize);
    impl Detector for Counting {
        fn key(&self) -> &str {
            "counting"
        }
        fn threshold(&self) -> f32 {
            0.5
        }
        fn judge(&self, passage: &Passage, _: &str, _: &Stop) -> Result<f32, DetectError> {
            self.0.fetch_add(1, Ordering::Relaxed);
            if passage.text.is_empty() { Err(DetectError::Empty("passage")) } else { Ok(0.25) }
        }
    }

    fn passage(text: &str) -> Passage {
        Passage { text: text.into(), ..Passage::default() }
    }

    #[test]
    fn a_pair_is_judged_once_even_across_two_openings_and_failures_are_not_kept() {
        let folder = tempfile::tempdir().unwrap();
        let detector = Counting(AtomicUsize::new(0));
        for _ in 0..2 {
            let cache = Cache::open(folder.path()).unwrap();
            assert_eq!(cache.not_kept, None);
            assert_eq!(cache.judge(&detector, &passage("a"), "s", &Stop::never()), Ok(0.25));
            assert_eq!(cache.judge(&detector, &passage("a"), "s", &Stop::never()), Ok(0.25));
        }
        assert_eq!(detector.0.load(Ordering::Relaxed), 1);
        let cache = Cache::open(folder.path()).unwrap();
        assert_eq!(cache.kept(&detector, &passage("a"), "s"), Some(0.25));
        assert_eq!(cache.kept(&detector, &passage("b"), "s"), None);
        let cache = Cache::open(folder.path()).unwrap();
        for _ in 0..2 {
            assert!(cache.judge(&detector, &passage(""), "s", &Stop::never()).is_err());
        }
        assert_eq!(detector.0.load(Ordering::Relaxed), 3);
    }

    #[test]
    fn a_folder_that_cannot_be_made_leaves_a_store_in_memory_that_says_so() {
        let file = tempfile::NamedTempFile::new().unwrap();
        let cache = Cache::open(&file.path().join("below-a-file")).unwrap();
        assert!(cache.not_kept.as_deref().is_some_and(|said| said.contains("not kept")));
        assert_eq!(cache.judge(&Counting(AtomicUsize::new(0)), &passage("a"), "s", &Stop::never()), Ok(0.25));
    }

    #[test]
    fn title_text_and_statement_cannot_be_shifted_into_one_another() {
        let a = Passage { title: "x".into(), ..passage("y") };
        assert_ne!(key("d", &a, "z"), key("d", &Passage { title: "xy".into(), ..passage("") }, "z"));
    }
}
