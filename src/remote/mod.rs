//! Search engines on other machines: searched by lanes, filled by `corpus push`.
//!
//! Holds the protocols and schemas. Servers receive passages with their ids, but no positions in a corpus. Every response is checked.
//!
//! May use: corpus, encode (vectors), input, net, work.

mod address;
#[cfg(feature = "milvus")]
mod milvus;
mod open_search;

use std::collections::HashMap;
use std::sync::Arc;

use parking_lot::Mutex;

pub use address::{By, Kind, Place, PlaceError, Remote};
pub use address::{Engine, RemoteError, Row, Scored};
pub use push::{PushError, Pushed, push};

/// A client for a place; secrets come from the environment. Nothing is sent yet.
///
/// # Errors
/// The address cannot be used.
pub fn open(place: &Place) -> Result<Arc<dyn Engine>, RemoteError> {
    match place.kind {
        #[cfg(feature = "milvus")]
        Kind::Milvus => Ok(Arc::new(milvus::Milvus::from_env(place)?)),
        #[cfg(not(feature = "milvus"))]
        Kind::Milvus => Err(RemoteError::Refused("this program was built without Milvus".into())),
        Kind::OpenSearch => Ok(Arc::new(open_search::OpenSearch::from_env(place)?)),
    }
}

/// The clients that lanes share: one per place.
#[derive(Default)]
pub struct Remotes {
    open: Mutex<HashMap<Place, Arc<dyn Engine>>>,
    offline: bool,
}

impl Remotes {
    /// Without clients; if `offline`, every request for one fails.
    pub fn new(offline: bool) -> Self {
        Remotes { open: Mutex::default(), offline }
    }

    /// The client for a place.
    ///
    /// # Errors
    /// The same as for [`open`].
    pub fn engine(&self, place: &Place) -> Result<Arc<dyn Engine>, RemoteError> {
        if self.offline {
            return Err(RemoteError::Refused("--offline: no engine elsewhere is asked".into()));
        }
        let mut open = self.open.lock();
        if let Some(engine) = open.get(place) {
            return Ok(Arc::clone(engine));
        }
        let engine = self::open(place)?;
        open.insert(place.clone(), Arc::clone(&engine));
        Ok(engine)
    }
}

mod push {
    //! Loads a corpus in batches. A later call continues where an earlier one ended and sends nothing twice.

    use super::address::{Engine, RemoteError, Row};
    use crate::corpus::{Corpus, Passage, PassageIx};
    use crate::encode::Vectors;
    use crate::work::{Job, OnProgress, Progress, Stop, Stopped};

    /// The number of passages in a batch.
    const BATCH: usize = 256;
    /// The limit of a batch in bytes: servers refuse larger requests.
    const BYTES: usize = 2 << 20;

    /// Why a corpus was not loaded completely. The passages sent so far stay, and the same call continues after them.
    #[derive(Debug, thiserror::Error)]
    pub enum PushError {
        /// A request to the server failed.
        #[error(transparent)]
        Remote(#[from] RemoteError),
        /// The vectors could not be read.
        #[error("the vectors cannot be read ({0})")]
        Vectors(std::io::Error),
    }

    impl From<Stopped> for PushError {
        fn from(stopped: Stopped) -> Self {
            PushError::Remote(stopped.into())
        }
    }

    /// The result of a push.
    #[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
    pub struct Pushed {
        /// The number of passages that the server did not have.
        pub new: usize,
        /// The number of passages that differed on the server.
        pub changed: usize,
        /// The number of passages that the server already had.
        pub left: usize,
        /// The number of passages on the server now, including those of other corpora.
        pub there: u64,
    }

    /// Loads a corpus and its vectors into a prepared collection; `key` is that of the encoder. If the collection was just `created`, it is empty,
    /// and no hashes are requested.
    ///
    /// # Errors
    /// See [`PushError`].
    pub fn push(
        engine: &dyn Engine,
        created: bool,
        corpus: &Corpus,
        (key, vectors): (&str, &Vectors),
        on_progress: OnProgress<'_>,
        stop: &Stop,
    ) -> Result<Pushed, PushError> {
        let mut pushed = Pushed::default();
        let (mut done, total) = (0, corpus.len() as u64);
        let places: Vec<PassageIx> = corpus.places().collect();
        for batch in places.chunks(BATCH) {
            if stop.is_set() {
                return Err(Stopped.into());
            }
            let passages: Vec<Passage> = batch.iter().map(|at| corpus.passage(*at)).collect();
            corpus.sound().map_err(|damaged| PushError::Vectors(damaged.into()))?;
            let ids: Vec<String> = passages.iter().map(|passage| passage.id.clone()).collect();
            let stored = if created { Default::default() } else { engine.stored_hashes(&ids, stop)? };
            let (mut rows, mut bytes) = (Vec::new(), 0);
            for (at, passage) in batch.iter().zip(passages) {
                let hash = hash(&passage, key);
                match stored.get(&passage.id) {
                    Some(stored) if *stored == hash => {
                        pushed.left += 1;
                        continue;
                    }
                    Some(_) => pushed.changed += 1,
                    None => pushed.new += 1,
                }
                let vector = vectors.row(*at).map_err(PushError::Vectors)?.to_vec();
                let Passage { id, title, text, .. } = passage;
                let row = Row { id, title, text, hash, vector };
                let size = engine.size(&row);
                if bytes + size > BYTES {
                    put(engine, &std::mem::take(&mut rows), stop)?;
                    bytes = 0;
                }
                bytes += size;
                rows.push(row);
            }
            put(engine, &rows, stop)?;
            done += batch.len() as u64;
            on_progress(Progress { job: Job::Pushing, done, total });
        }
        pushed.there = engine.finish(stop)?;
        Ok(pushed)
    }

    /// Sends rows; if the request is too large for the server, in halves.
    fn put(engine: &dyn Engine, rows: &[Row], stop: &Stop) -> Result<(), RemoteError> {
        if rows.is_empty() {
            return Ok(());
        }
        match engine.put(rows, stop) {
            Err(RemoteError::TooLarge(_)) if rows.len() > 1 => {
                let (first, second) = rows.split_at(rows.len() / 2);
                put(engine, first, stop)?;
                put(engine, second, stop)
            }
            done => done,
        }
    }

    /// The hash that a server stores with a passage, so that a later push can detect changes.
    fn hash(passage: &Passage, key: &str) -> String {
        let mut hasher = blake3::Hasher::new();
        for part in [&passage.title, &passage.text, key] {
            hasher.update(&(part.len() as u64).to_le_bytes()).update(part.as_bytes());
        }
        hasher.finalize().to_hex()[..32].to_owned()
    }

    #[cfg(test)]
    mod tests {
        use std::collections::{BTreeMap, HashMap};
        use std::sync::atomic::{AtomicU64, Ordering};
        use std::sync::{Arc, Mutex};

        use super::*;
        use crate::remote::address::Scored;

        /// A server in memory that counts what it is sent and can set a stop.
        #[derive(Default)]
        struct MemoryEngine {
            rows: Mutex<BTreeMap<String, Row>>,
            puts: Mutex<Vec<usize>>,
            stops: Option<Arc<AtomicU64>>,
            /// The maximum number of rows in a request, if it is limited.
            most: Option<usize>,
        }

        impl Engine for MemoryEngine {
            fn by_text(&self, _: &str, _: usize, _: &Stop) -> Result<Vec<Scored>, RemoteError> {
                Ok(Vec::new())
            }
            fn by_vector(&self, _: &[f32], _: usize, _: &Stop) -> Result<Vec<Scored>, RemoteError> {
                Ok(Vec::new())
            }
            fn prepare(&self, _: usize, _: &Stop) -> Result<bool, RemoteError> {
                Ok(false)
            }
            fn stored_hashes(
                &self,
                ids: &[String],
                _: &Stop,
            ) -> Result<HashMap<String, String>, RemoteError> {
                let rows = self.rows.lock().unwrap();
                Ok(ids.iter().filter_map(|id| Some((id.clone(), rows.get(id)?.hash.clone()))).collect())
            }
            fn size(&self, row: &Row) -> usize {
                100 + row.text.len()
            }
            fn put(&self, rows: &[Row], _: &Stop) -> Result<(), RemoteError> {
                if self.most.is_some_and(|most| rows.len() > most) {
                    return Err(RemoteError::TooLarge("413".into()));
                }
                self.puts.lock().unwrap().push(rows.len());
                self.rows.lock().unwrap().extend(rows.iter().map(|row| (row.id.clone(), row.clone())));
                if let Some(now) = &self.stops {
                    now.store(1, Ordering::Relaxed);
                }
                Ok(())
            }
            fn finish(&self, _: &Stop) -> Result<u64, RemoteError> {
                Ok(self.rows.lock().unwrap().len() as u64)
            }
        }

        fn corpus(texts: &[String]) -> (Corpus, Vectors) {
            let corpus = Corpus::of_texts("t", texts).unwrap();
            let bytes: Vec<u8> = (0..texts.len() * 2).flat_map(|i| (i as f32).to_le_bytes()).collect();
            (corpus, Vectors::from_bytes(&bytes, 2))
        }

        fn texts(count: usize) -> Vec<String> {
            (0..count).map(|i| format!("text {i}")).collect()
        }

        #[test]
        fn a_second_push_changes_nothing_and_a_changed_passage_is_sent_alone() {
            let (engine, never, quiet) = (MemoryEngine::default(), Stop::never(), |_| ());
            let mut texts = texts(600);
            let (first, vectors) = corpus(&texts);
            let pushed = push(&engine, true, &first, ("e", &vectors), &quiet, &never).unwrap();
            assert_eq!(pushed, Pushed { new: 600, there: 600, ..Pushed::default() });
            assert_eq!(*engine.puts.lock().unwrap(), [256, 256, 88]);
            let pushed = push(&engine, false, &first, ("e", &vectors), &quiet, &never).unwrap();
            assert_eq!(pushed, Pushed { left: 600, there: 600, ..Pushed::default() });
            assert_eq!(engine.puts.lock().unwrap().len(), 3);
            texts[300] = "another text".into();
            let (second, vectors) = corpus(&texts);
            let pushed = push(&engine, false, &second, ("e", &vectors), &quiet, &never).unwrap();
            assert_eq!((pushed.changed, pushed.new, pushed.left), (1, 0, 599));
            let pushed = push(&engine, false, &second, ("other encoder", &vectors), &quiet, &never).unwrap();
            assert_eq!((pushed.changed, pushed.left), (600, 0));
        }

        #[test]
        fn what_was_sent_before_a_stop_is_not_sent_again() {
            let now = Arc::new(AtomicU64::new(0));
            let engine = MemoryEngine { stops: Some(Arc::clone(&now)), ..MemoryEngine::default() };
            let (corpus, vectors) = corpus(&texts(600));
            let stopped = push(&engine, false, &corpus, ("e", &vectors), &|_| (), &Stop::when_past(&now, 0));
            assert!(matches!(stopped, Err(PushError::Remote(RemoteError::Stopped(_)))));
            let pushed = push(&engine, false, &corpus, ("e", &vectors), &|_| (), &Stop::never()).unwrap();
            assert_eq!((pushed.left, pushed.new, pushed.there), (256, 344, 600));
        }

        #[test]
        fn a_batch_that_grows_too_large_is_sent_in_parts() {
            let (engine, long) = (MemoryEngine::default(), "x".repeat(BYTES / 3));
            let (corpus, vectors) = corpus(&vec![long; 5]);
            push(&engine, false, &corpus, ("e", &vectors), &|_| (), &Stop::never()).unwrap();
            assert_eq!(*engine.puts.lock().unwrap(), [2, 2, 1]);
        }

        #[test]
        fn a_batch_that_the_server_finds_too_large_is_sent_by_halves_down_to_one_passage() {
            let (corpus, vectors) = corpus(&texts(5));
            let push =
                |engine: &MemoryEngine| push(engine, true, &corpus, ("e", &vectors), &|_| (), &Stop::never());
            let two = MemoryEngine { most: Some(2), ..MemoryEngine::default() };
            assert_eq!(push(&two).unwrap().there, 5);
            assert_eq!(*two.puts.lock().unwrap(), [2, 1, 2]);
            let none = MemoryEngine { most: Some(0), ..MemoryEngine::default() };
            assert!(matches!(push(&none), Err(PushError::Remote(RemoteError::TooLarge(_)))));
        }

        #[test]
        fn the_hash_shows_title_and_text_apart() {
            let passage = |title: &str, text: &str| Passage {
                id: "1".into(),
                title: title.into(),
                text: text.into(),
                ..Passage::default()
            };
            assert_ne!(hash(&passage("a", "bc"), "k"), hash(&passage("ab", "c"), "k"));
            assert_eq!(hash(&passage("a", "b"), "k").len(), 32);
        }
    }
}
