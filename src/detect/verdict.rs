//! Which of several labels of a pair counts, and the cache of what detectors read, by (detector, passage, statement).
//!
//! The cache is one SQLite file in WAL mode, shared by all screens, commands and processes, and safe against kills. It holds logits
//! and cosines; probabilities and decisions are computed from them and never cached. It holds at most two million pairs; the oldest
//! are deleted first. If it cannot be written, readings stay in memory and the reason is shown.

use std::fmt;
use std::path::Path;
use std::time::Duration;

use parking_lot::{Mutex, MutexGuard};
use rusqlite::{Connection, OptionalExtension, params};
use serde::{Deserialize, Serialize};

use super::decision::DetectError;
use super::detector::Detector;
use super::rule::Reading;
use crate::corpus::Passage;
use crate::work::Stop;

/// The source of a label.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum By {
    /// A detector.
    Model,
    /// Gold labels, from a file or the built-in data.
    Gold,
    /// A person, in Parallax.
    Human,
}

/// Which labels count.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, clap::ValueEnum)]
pub enum LabelSource {
    /// The most trusted label of each passage: human, else gold, else the model's. Sources are never mixed within a passage.
    #[default]
    Auto,
    /// The detector alone.
    Model,
    /// Gold labels alone.
    Gold,
    /// Human labels alone.
    Human,
}

impl LabelSource {
    /// The next source in the cycle, skipping those without labels.
    pub fn next(self, gold: bool, human: bool) -> Self {
        let next = match self {
            LabelSource::Auto => LabelSource::Model,
            LabelSource::Model => LabelSource::Gold,
            LabelSource::Gold => LabelSource::Human,
            LabelSource::Human => LabelSource::Auto,
        };
        match next {
            LabelSource::Gold if !gold => next.next(gold, human),
            LabelSource::Human if !human => next.next(gold, human),
            _ => next,
        }
    }

    /// Whether only labels count, so no detector needs to run.
    pub fn is_labels(self) -> bool {
        matches!(self, LabelSource::Gold | LabelSource::Human)
    }
}

impl fmt::Display for LabelSource {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            LabelSource::Auto => "auto",
            LabelSource::Model => "model",
            LabelSource::Gold => "gold",
            LabelSource::Human => "human",
        })
    }
}

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

    /// Whether there is a label of any kind.
    pub fn is_labelled(&self) -> bool {
        self.by_hand() || self.gold.is_some()
    }
}

/// The judgment that counts for a passage and a statement.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Verdict {
    /// Whether the passage supports the statement. `None` if it takes a side, but it is unclear which.
    pub supports: Option<bool>,
    /// The probability, if a model gave it.
    pub p: Option<f32>,
    /// The source of the judgment.
    pub by: By,
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

/// The cache of verdicts.
pub struct Cache {
    connection: Mutex<Connection>,
    /// Why verdicts are not saved to disk; `None` if they are.
    pub unsaved: Option<String>,
}

impl Cache {
    /// Opens `verdicts.sqlite` in `folder`, or falls back to memory and notes the reason in `unsaved`.
    ///
    /// # Errors
    /// Not even a cache in memory can be opened.
    pub fn open(folder: &Path) -> rusqlite::Result<Self> {
        match Self::on_disk(folder) {
            Ok(connection) => Ok(Cache { connection: Mutex::new(connection), unsaved: None }),
            Err(reason) => {
                let reason = format!("verdicts are not saved: {} ({reason})", folder.display());
                Ok(Cache { unsaved: Some(reason), ..Self::in_memory()? })
            }
        }
    }

    /// A cache in memory.
    ///
    /// # Errors
    /// SQLite has no memory.
    pub fn in_memory() -> rusqlite::Result<Self> {
        let connection = Connection::open_in_memory()?;
        prepare(&connection)?;
        Ok(Cache { connection: Mutex::new(connection), unsaved: None })
    }

    fn on_disk(folder: &Path) -> Result<Connection, OnDiskError> {
        std::fs::create_dir_all(folder)?;
        let connection = Connection::open(folder.join("verdicts.sqlite"))?;
        connection.busy_timeout(Duration::from_secs(2))?;
        connection.pragma_update(None, "journal_mode", "wal")?;
        // A power cut may lose the last verdicts, but never damages the file.
        connection.pragma_update(None, "synchronous", "normal")?;
        prepare(&connection)?;
        Ok(connection)
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
        let key = key(detector.key(), passage, statement);
        if let Some(cached) = self.get(&key) {
            return Ok(cached);
        }
        let reading = detector.read(passage, statement, stop)?;
        // A reading that cannot be cached is still valid.
        let _ = self.lock().execute(
            "INSERT OR IGNORE INTO readings (pair, read) VALUES (?1, ?2)",
            params![key, reading.to_bytes()],
        );
        Ok(reading)
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
        self.get(&key(detector.key(), passage, statement))
    }

    fn get(&self, key: &[u8]) -> Option<Reading> {
        let connection = self.lock();
        let mut query = connection.prepare_cached("SELECT read FROM readings WHERE pair = ?1").ok()?;
        let bytes: Option<Vec<u8>> = query.query_row([key], |row| row.get(0)).optional().ok()?;
        Reading::from_bytes(&bytes?)
    }

    fn lock(&self) -> MutexGuard<'_, Connection> {
        self.connection.lock()
    }
}

fn prepare(connection: &Connection) -> rusqlite::Result<()> {
    // Earlier versions cached probabilities, from which no decision can be computed.
    connection.execute_batch(
        "DROP TABLE IF EXISTS verdicts;
         CREATE TABLE IF NOT EXISTS readings (n INTEGER PRIMARY KEY, pair BLOB NOT NULL UNIQUE, read BLOB NOT NULL)",
    )?;
    connection.execute("DELETE FROM readings WHERE n <= (SELECT max(n) FROM readings) - ?1", [BOUND])?;
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
    use crate::detect::rule::Rule;
    use std::sync::atomic::{AtomicUsize, Ordering};

    #[test]
    fn the_sources_cycle_and_skip_those_without_labels() {
        let round = |gold, human| {
            let mut source = LabelSource::Auto;
            std::iter::from_fn(|| {
                source = source.next(gold, human);
                (source != LabelSource::Auto).then(|| source.to_string())
            })
            .collect::<Vec<_>>()
            .join(" ")
        };
        assert_eq!(round(true, true), "model gold human");
        assert_eq!(round(false, true), "model human");
        assert_eq!(round(true, false), "model gold");
        assert_eq!(round(false, false), "model");
    }

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
        assert_ne!(key("d", &a, "z"), key("d", &Passage { title: "xy".into(), ..passage("") }, "z"));
    }
}
