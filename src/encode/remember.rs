//! An encoder that remembers the vectors it made last: a question is asked again at every toggle.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use super::{EncodeError, Encoder, Role, Similarity};
use crate::corpus::Passage;

/// Vectors kept; at 384 dimensions some 6 MB.
const KEPT: usize = 4_096;

/// Remembers what `inner` made of queries. Passages are embedded once and kept on disk.
pub struct Remembering<E> {
    inner: E,
    made: Mutex<HashMap<String, Arc<[f32]>>>,
}

impl<E: Encoder> Remembering<E> {
    /// Remembers nothing yet.
    pub fn new(inner: E) -> Self {
        Remembering { inner, made: Mutex::default() }
    }

    fn made(&self) -> std::sync::MutexGuard<'_, HashMap<String, Arc<[f32]>>> {
        self.made.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl<E: Encoder> Encoder for Remembering<E> {
    fn key(&self) -> &str {
        self.inner.key()
    }

    fn dimensions(&self) -> usize {
        self.inner.dimensions()
    }

    fn similarity(&self) -> Similarity {
        self.inner.similarity()
    }

    fn passage(&self, passage: &Passage) -> Result<Vec<f32>, EncodeError> {
        self.inner.passage(passage)
    }

    fn encode(&self, text: &str, role: Role) -> Result<Vec<f32>, EncodeError> {
        if role == Role::Passage {
            return self.inner.encode(text, role);
        }
        if let Some(known) = self.made().get(text) {
            return Ok(known.to_vec());
        }
        // The lock is not held meanwhile: a second thread may make the same vector, which is the same.
        let vector = self.inner.encode(text, role)?;
        let mut made = self.made();
        if made.len() >= KEPT {
            made.clear();
        }
        made.insert(text.to_owned(), vector.as_slice().into());
        Ok(vector)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::{AtomicUsize, Ordering};

    #[derive(Default)]
    struct Counting(AtomicUsize);

    impl Encoder for Counting {
        fn key(&self) -> &str {
            "counting"
        }
        fn dimensions(&self) -> usize {
            1
        }
        fn encode(&self, text: &str, _: Role) -> Result<Vec<f32>, EncodeError> {
            self.0.fetch_add(1, Ordering::Relaxed);
            Ok(vec![text.len() as f32])
        }
    }

    #[test]
    fn a_query_is_encoded_once_and_a_passage_every_time() {
        let encoder = Remembering::new(Counting::default());
        for role in [Role::Query, Role::Query, Role::Passage, Role::Passage] {
            assert_eq!(encoder.encode("abc", role).unwrap(), [3.0]);
        }
        assert_eq!(encoder.inner.0.load(Ordering::Relaxed), 3);
    }

    #[test]
    fn what_is_remembered_is_bounded() {
        let encoder = Remembering::new(Counting::default());
        for i in 0..=KEPT {
            encoder.encode(&i.to_string(), Role::Query).unwrap();
        }
        assert_eq!(encoder.made().len(), 1);
    }
}
