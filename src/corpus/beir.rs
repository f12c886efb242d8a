//! BEIR `corpus.jsonl`, and its near relatives that name the fields otherwise (Pyserini, Sphere).

use std::collections::HashSet;
use std::path::Path;

use super::Passage;
use super::import::Sink;
use crate::input::{InputError, lines};

/// Reads every passage of a JSONL file into `sink`.
///
/// # Errors
/// A line is not such an object, has no id or no text, or repeats an id.
pub fn read(path: &Path, sink: Sink<'_>) -> Result<(), InputError> {
    let mut seen = HashSet::new();
    lines(path, |_, line| {
        let passage: Passage = serde_json::from_str(line).map_err(|error| {
            format!("a JSON object with `_id`, `text` and perhaps `title` and `metadata` ({error})")
        })?;
        if passage.id.is_empty() {
            return Err("an `_id` that is not empty".into());
        }
        // A text may be empty: published corpora hold such passages.
        // 16 bytes a passage instead of the whole id.
        let hash = blake3::hash(passage.id.as_bytes());
        if !seen.insert(<[u8; 16]>::try_from(&hash.as_bytes()[..16]).unwrap_or_default()) {
            return Err(format!("an `_id` of its own (`{}` stood on an earlier line)", passage.id));
        }
        sink(passage)
    })
}
