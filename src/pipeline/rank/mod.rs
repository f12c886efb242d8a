//! A lane's list: expansion, projection, retrieval, merging, re-ranking, in this order.

mod expanded;
mod given;
mod projected;
mod remote;
mod reorder;
mod retrieved;
mod timed;

use std::ops::Deref;
use std::sync::Arc;

pub use timed::timed;

use super::trace::Trace;
use super::{Plan, Recipe, RunError, Setup, SetupError};
use crate::corpus::{Passage, PassageIx};
use crate::encode::EncodeError;
use crate::expand::{Expansion, Kind};
use crate::question::Question;
use crate::remote::RemoteError;
use crate::retrieve::{Hit, RetrieveError};
use crate::work::{Stop, Stopped};

/// A passage with its place in a list.
#[derive(Clone, Debug, PartialEq)]
pub struct Ranked {
    /// Where it lies.
    pub at: PassageIx,
    /// What it says.
    pub passage: Arc<Passage>,
    /// The lane's score for it.
    pub score: f32,
}

/// Passages, best first, and how they came to stand so.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct List {
    ranked: Vec<Ranked>,
    /// How the list was made.
    pub trace: Trace,
}

impl Deref for List {
    type Target = [Ranked];

    fn deref(&self) -> &[Ranked] {
        &self.ranked
    }
}

impl From<Vec<Ranked>> for List {
    fn from(ranked: Vec<Ranked>) -> Self {
        List { ranked, trace: Trace::default() }
    }
}

impl List {
    /// A passage's rank, from 1.
    pub fn rank_of(&self, at: PassageIx) -> Option<usize> {
        self.iter().position(|ranked| ranked.at == at).map(|i| i + 1)
    }
}

/// A lane's list, shared.
pub type Ranking = Arc<List>;

/// What the lanes are asked: a question in one of its wordings.
#[derive(Clone, Copy, Debug)]
pub struct Asked<'a> {
    /// With its perspectives, which projections and diversifiers read.
    pub question: &'a Question,
    /// The words that are searched for: the question's own, or one of its statements.
    pub text: &'a str,
}

impl<'a> Asked<'a> {
    /// The question in its own words.
    pub fn plainly(question: &'a Question) -> Self {
        Asked { question, text: &question.text }
    }
}

/// Why a lane has no list.
#[derive(Debug, thiserror::Error)]
pub enum LaneError {
    /// Its passages have no vectors yet.
    #[error("the passages are still being embedded")]
    NotEmbedded,
    /// The question has no such perspective.
    #[error("{0}")]
    NoPerspective(String),
    /// The run does not hold what was asked.
    #[error("{0}")]
    NotInRun(String),
    /// The run could not be read.
    #[error(transparent)]
    Run(#[from] RunError),
    /// The engine elsewhere did not do its part.
    #[error(transparent)]
    Remote(#[from] RemoteError),
    /// Something it needs could not be opened.
    #[error(transparent)]
    Setup(#[from] SetupError),
    /// The engine failed or was stopped.
    #[error(transparent)]
    Retrieve(#[from] RetrieveError),
}

impl From<Stopped> for LaneError {
    fn from(stopped: Stopped) -> Self {
        LaneError::Retrieve(stopped.into())
    }
}

impl From<EncodeError> for LaneError {
    fn from(error: EncodeError) -> Self {
        LaneError::Retrieve(error.into())
    }
}

impl LaneError {
    /// Whether it was stopped on request, which is no failure.
    pub fn is_stop(&self) -> bool {
        matches!(
            self,
            LaneError::Retrieve(RetrieveError::Stopped(_))
                | LaneError::Run(RunError::Stopped(_))
                | LaneError::Remote(RemoteError::Stopped(_))
        )
    }
}

/// What retrieval gave, before anything is put in another order.
struct Found {
    hits: Vec<Hit>,
    trace: Trace,
    /// The scores can be weighed against each other; those of a merged list cannot.
    comparable: bool,
}

/// The lists and expansions made for one wording of a question so far: lanes share them.
#[derive(Clone)]
pub struct Lists {
    found: Vec<(Recipe, Arc<Found>)>,
    expanded: Vec<(Kind, Arc<Expansion>)>,
    depth: usize,
    /// For MMR's normalisation over a question set: lanes without re-ranking, and their greatest score over all its questions.
    pub maxima: Vec<(Recipe, f32)>,
}

impl Default for Lists {
    fn default() -> Self {
        Lists::to_depth(Plan::DEPTH)
    }
}

impl Lists {
    /// Lists of `depth` passages.
    pub fn to_depth(depth: usize) -> Self {
        Lists { found: Vec::new(), expanded: Vec::new(), depth, maxima: Vec::new() }
    }
}

/// Ranks the corpus as the recipe says.
///
/// # Errors
/// See [`LaneError`].
pub fn rank(
    setup: &Setup,
    recipe: &Recipe,
    asked: Asked<'_>,
    lists: &mut Lists,
    stop: &Stop,
) -> Result<Ranking, LaneError> {
    let found = retrieved::found(setup, &recipe.retrieval(), asked, lists, stop)?;
    let mut trace = found.trace.clone();
    let hits = match recipe.switches.rerank {
        None => found.hits.clone(),
        Some(rerank) => {
            let retrieval = recipe.retrieval();
            let maximum = lists.maxima.iter().find(|(known, _)| *known == retrieval).map(|(_, score)| *score);
            reorder::reorder(setup, recipe, rerank, asked, &found, maximum, &mut trace, stop)?
        }
    };
    // What stands below the pool stays below.
    let below = found.hits.iter().skip(hits.len()).copied();
    let ranked = hits.iter().copied().chain(below).map(|hit| Ranked {
        at: hit.passage,
        passage: Arc::new(setup.passage(hit.passage)),
        score: hit.score,
    });
    Ok(Arc::new(List { ranked: ranked.collect(), trace }))
}
