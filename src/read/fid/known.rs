//! What was encoded before. A list is read again and again, with one passage more or less or in another order: each is encoded once.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use crate::encode::EncodeError;
use crate::encode::family::Part;

/// So many numbers are kept, 256 MB: some 400 passages of T5's base size.
const KEPT: usize = 64 << 20;

/// An encoded passage.
pub struct Read {
    /// As the network knows it.
    pub part: Part,
    /// It is longer than what was read of it.
    pub cut: bool,
}

/// Encoded passages by what was read.
#[derive(Default)]
pub struct Known(Mutex<HashMap<blake3::Hash, Arc<Read>>>);

impl Known {
    /// What was encoded before, or what `encode` makes now.
    pub fn get(
        &self,
        input: &str,
        encode: impl FnOnce() -> Result<Read, EncodeError>,
    ) -> Result<Arc<Read>, EncodeError> {
        // A passage may be long, and only its beginning is read.
        let key = blake3::hash(input.as_bytes());
        if let Some(read) = self.kept().get(&key) {
            return Ok(Arc::clone(read));
        }
        // The lock is not held meanwhile: a second thread may encode the same, which gives the same.
        let read = Arc::new(encode()?);
        let mut kept = self.kept();
        let held: usize = kept.values().map(|read| read.part.numbers()).sum();
        if held + read.part.numbers() > KEPT {
            kept.clear();
        }
        kept.insert(key, Arc::clone(&read));
        Ok(read)
    }

    /// How many are kept.
    #[cfg(test)]
    pub fn len(&self) -> usize {
        self.kept().len()
    }

    fn kept(&self) -> MutexGuard<'_, HashMap<blake3::Hash, Arc<Read>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
