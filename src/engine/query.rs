//! The queries that the engine runs.

use super::recipe::Recipe;
use crate::detect::LabelSource;
use crate::question::Question;

/// One question, the lanes that search for it, and how many passages count.
#[derive(Clone, Debug, PartialEq)]
pub struct Query {
    /// The question with its statements.
    pub question: Question,
    /// The lanes, left to right.
    pub lanes: Vec<Recipe>,
    /// How many passages count.
    pub k: usize,
    /// Which labels count. How deep the lists are judged depends on it.
    pub source: LabelSource,
}

impl Query {
    /// The number of passages in a list, whatever `k` is.
    pub const DEPTH: usize = 100;
}

/// How deep the lists are judged.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Depth {
    /// The first k.
    Top,
    /// Until every statement is covered or the list ends. Questions with many statements are judged to k only.
    Covered,
    /// Until every statement is covered or the list ends, however many statements a question has.
    CoveredWhatever,
    /// The first so many, at least k.
    To(usize),
}

/// A question in one of its wordings, as a lane is asked.
#[derive(Clone, Copy, Debug)]
pub struct LaneQuery<'a> {
    /// The question; projections and diversifiers read its statements.
    pub question: &'a Question,
    /// The text to search for: the question's own, or one of its statements.
    pub text: &'a str,
}

impl<'a> LaneQuery<'a> {
    /// The question in its own words.
    pub fn neutral(question: &'a Question) -> Self {
        LaneQuery { question, text: &question.text }
    }
}
