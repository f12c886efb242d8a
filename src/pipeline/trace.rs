//! What was done to make a lane's list, step by step: what the reader, the inspector and `search --format json` show.

use std::collections::HashMap;
use std::sync::Arc;

use super::recipe::{Base, Diversify, Mmr, RunFile, Toward};
use crate::corpus::PassageIx;
use crate::expand::Expansion;
use crate::project::Variant;
use crate::rerank::{Choice, Pick};

/// The steps in the order they were carried out, and what the user should know of them.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Trace {
    /// One after another.
    pub steps: Vec<Step>,
    /// Fallbacks and warnings, in plain words.
    pub notes: Vec<String>,
}

/// One step.
#[derive(Clone, Debug, PartialEq)]
pub enum Step {
    /// The query was expanded.
    Expand(Arc<Expansion>),
    /// The query was projected.
    Project(Box<Projected>),
    /// A retriever was asked, once a query.
    Retrieve {
        /// Which.
        by: Base,
        /// What it was asked.
        queries: Vec<Wording>,
        /// How many passages it gave in all.
        pool: usize,
    },
    /// A finished run was read.
    Given {
        /// Which.
        run: RunFile,
        /// What it calls itself; may be empty.
        tag: String,
        /// The question as the run names it.
        question: String,
        /// What the file says of each passage.
        stood: HashMap<PassageIx, Stood>,
    },
    /// The lists of several queries were merged in turn.
    Merge {
        /// The query, from 0, that brought each passage up.
        from: HashMap<PassageIx, usize>,
    },
    /// The lists of two retrievers were fused by reciprocal rank.
    Fuse {
        /// A passage's rank in each, from 1.
        ranks: HashMap<PassageIx, [Option<usize>; 2]>,
    },
    /// Re-ranked by likeness.
    Mmr {
        /// The options.
        options: Mmr,
        /// Rank by rank; passages are numbered by the incoming order.
        picks: Vec<Pick>,
        /// The passages in the incoming order.
        pool: Vec<PassageIx>,
    },
    /// Re-ranked by verdicts.
    Diversify {
        /// By which method.
        method: Diversify,
        /// Its λ.
        weight: f32,
        /// Rank by rank; passages are numbered by the incoming order.
        choices: Vec<Choice>,
        /// The passages in the incoming order.
        pool: Vec<PassageIx>,
        /// Pairs that had to be judged first.
        judged: usize,
    },
}

/// How a passage stood in a run's file.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Stood {
    /// The rank as written, where there is one.
    pub rank: Option<i64>,
    /// The score as written.
    pub score: f64,
    /// The line, from 1.
    pub line: usize,
}

/// What one retriever was asked.
#[derive(Clone, Debug, PartialEq)]
pub enum Wording {
    /// A text.
    Text(String),
    /// The mean of these texts' vectors.
    Mean(Vec<String>),
    /// Terms with weights.
    Terms(Vec<(String, f32)>),
}

/// A projection as it was carried out.
#[derive(Clone, Debug, PartialEq)]
pub struct Projected {
    /// What was asked for.
    pub asked: Variant,
    /// What ran: `none` where it could not be made.
    pub ran: Variant,
    /// From which perspective.
    pub toward: Toward,
    /// The full query.
    pub q: String,
    /// Its root.
    pub r: String,
    /// The perspective as a text; none where `q − r` stands for it.
    pub p: Option<String>,
    /// Every passage of the list before and after.
    pub points: HashMap<PassageIx, Point>,
}

/// A passage in the geometry of a projected query.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Point {
    /// `cos(q, c)`, what the lane would rank by without the projection.
    pub plain: f32,
    /// What it ranks by.
    pub score: f32,
    /// How much nearer it lies to the first pole than to the second, as a difference of cosines.
    pub before: f32,
    /// The same with the perspective removed from passage and poles.
    pub after: f32,
}

impl Trace {
    /// Adds what another trace tells; an expansion that both share is told once.
    pub fn extend(&mut self, other: &Trace) {
        for step in &other.steps {
            let told = |known: &Step| matches!((known, step), (Step::Expand(a), Step::Expand(b)) if Arc::ptr_eq(a, b));
            if !self.steps.iter().any(told) {
                self.steps.push(step.clone());
            }
        }
        for note in &other.notes {
            self.note(note.clone());
        }
    }

    /// Adds a note, once.
    pub fn note(&mut self, note: String) {
        if !self.notes.contains(&note) {
            self.notes.push(note);
        }
    }

    /// The expansion, if there was one.
    pub fn expansion(&self) -> Option<&Expansion> {
        self.steps.iter().find_map(|step| match step {
            Step::Expand(expansion) => Some(expansion.as_ref()),
            _ => None,
        })
    }

    /// The projection, if there was one.
    pub fn projected(&self) -> Option<&Projected> {
        self.steps.iter().find_map(|step| match step {
            Step::Project(projected) => Some(projected.as_ref()),
            _ => None,
        })
    }
}
