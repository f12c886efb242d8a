//! What passages were found to say, so that a list that is read again and again runs the model once a passage.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use super::spans::Said;
use crate::corpus::Passage;

/// Passages kept; a list has at most a hundred.
const MOST: usize = 4_096;

/// Texts by question and passage. What a passage says hangs on these alone, so keeping it changes no answer.
#[derive(Default)]
pub struct Kept(Mutex<HashMap<[u8; 32], Arc<Vec<Said>>>>);

impl Kept {
    /// What the passage says to the question: what is kept, or what `read` finds. A failure is not kept.
    ///
    /// # Errors
    /// As `read`.
    pub fn get<E>(
        &self,
        question: &str,
        passage: &Passage,
        read: impl FnOnce() -> Result<Vec<Said>, E>,
    ) -> Result<Arc<Vec<Said>>, E> {
        let key = key(question, passage);
        let kept = || self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(said) = kept().get(&key) {
            return Ok(Arc::clone(said));
        }
        let said = Arc::new(read()?);
        let mut kept = kept();
        if kept.len() >= MOST {
            kept.clear();
        }
        kept.insert(key, Arc::clone(&said));
        Ok(said)
    }
}

fn key(question: &str, passage: &Passage) -> [u8; 32] {
    let mut hash = blake3::Hasher::new();
    for part in [question, &passage.title, &passage.text] {
        hash.update(&(part.len() as u64).to_le_bytes()).update(part.as_bytes());
    }
    *hash.finalize().as_bytes()
}
