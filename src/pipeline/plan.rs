//! What is asked of the pipeline.

use super::Recipe;
use crate::detect::LabelSource;
use crate::question::Question;

/// One question, the lanes it is put to, and how deep.
#[derive(Clone, Debug, PartialEq)]
pub struct Plan {
    /// What is asked, with its perspectives.
    pub question: Question,
    /// The lanes, left to right.
    pub lanes: Vec<Recipe>,
    /// How many passages count.
    pub k: usize,
    /// Which labels count: what they cover decides how deep the lists are judged.
    pub source: LabelSource,
}

impl Plan {
    /// How far a list is read, whatever `k` is.
    pub const DEPTH: usize = 100;
}
