//! What of a passage and a statement is read.

use crate::corpus::Passage;

/// Tokens of the statement that are read.
pub const STATEMENT: usize = 96;

/// Passage text, then title, as BERDS gives it to its detectors.
pub fn text(passage: &Passage) -> String {
    format!("{} {}", passage.text, passage.title).trim_end().to_owned()
}
