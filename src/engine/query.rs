//! What is asked of the engine.

use super::recipe::Recipe;
use crate::detect::LabelSource;
use crate::question::Question;

/// One question, the lanes it is put to, and how deep.
#[derive(Clone, Debug, PartialEq)]
pub struct Query {
    /// What is asked, with its perspectives.
    pub question: Question,
    /// The lanes, left to right.
    pub lanes: Vec<Recipe>,
    /// How many passages count.
    pub k: usize,
    /// Which labels count: what they cover decides how deep the lists are judged.
    pub source: LabelSource,
}

impl Query {
    /// How far a list is read, whatever `k` is.
    pub const DEPTH: usize = 100;
}

/// How far down the lists passages are judged.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Depth {
    /// The first k.
    Top,
    /// On until every perspective is covered, or the list ends; questions of many perspectives to k only.
    Covered,
    /// The same, however many perspectives a question has.
    CoveredWhatever,
    /// The first so many, at least k.
    To(usize),
}

/// What the lanes are asked: a question in one of its wordings.
#[derive(Clone, Copy, Debug)]
pub struct LaneQuery<'a> {
    /// With its perspectives, which projections and diversifiers read.
    pub question: &'a Question,
    /// The words that are searched for: the question's own, or one of its statements.
    pub text: &'a str,
}

impl<'a> LaneQuery<'a> {
    /// The question in its own words.
    pub fn plainly(question: &'a Question) -> Self {
        LaneQuery { question, text: &question.text }
    }
}
