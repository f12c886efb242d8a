//! A lane's list.

use std::sync::Arc;

use super::{Plan, Recipe, Setup, SetupError};
use crate::corpus::{Passage, PassageIx};
use crate::retrieve::bm25::{Bm25, TermRetriever};
use crate::retrieve::dense::DenseRetriever;
use crate::retrieve::fuse::fuse;
use crate::retrieve::{Hit, RetrieveError, Retriever};
use crate::work::Stop;

/// A passage with its place in a list.
#[derive(Clone, Debug)]
pub struct Ranked {
    /// Where it lies.
    pub at: PassageIx,
    /// What it says.
    pub passage: Arc<Passage>,
    /// The lane's score for it.
    pub score: f32,
}

/// A lane's list, best first.
pub type Ranking = Arc<Vec<Ranked>>;

/// Why a lane has no list.
#[derive(Debug, thiserror::Error)]
pub enum LaneError {
    /// Its passages have no vectors yet.
    #[error("the passages are still being embedded")]
    NotEmbedded,
    /// Something it needs could not be opened.
    #[error(transparent)]
    Setup(#[from] SetupError),
    /// The engine failed or was stopped.
    #[error(transparent)]
    Retrieve(#[from] RetrieveError),
}

impl LaneError {
    /// Whether it was stopped on request, which is no failure.
    pub fn is_stop(&self) -> bool {
        matches!(self, LaneError::Retrieve(RetrieveError::Stopped(_)))
    }
}

/// The lists made for one query so far: a fused lane reads what its parts' lanes have made.
#[derive(Clone, Debug)]
pub struct Lists {
    made: Vec<(Recipe, Arc<[Hit]>)>,
    depth: usize,
}

impl Default for Lists {
    fn default() -> Self {
        Lists::to_depth(Plan::DEPTH)
    }
}

impl Lists {
    /// Lists of `depth` passages.
    pub fn to_depth(depth: usize) -> Self {
        Lists { made: Vec::new(), depth }
    }
}

/// Ranks the corpus for a query as the recipe says.
///
/// # Errors
/// See [`LaneError`].
pub fn rank(
    setup: &Setup,
    recipe: Recipe,
    query: &str,
    lists: &mut Lists,
    stop: &Stop,
) -> Result<Ranking, LaneError> {
    let hits = hits(setup, recipe, query, lists, stop)?;
    let ranked = hits.iter().map(|hit| Ranked {
        at: hit.passage,
        passage: Arc::new(setup.corpus.passage(hit.passage)),
        score: hit.score,
    });
    Ok(Arc::new(ranked.collect()))
}

fn hits(
    setup: &Setup,
    recipe: Recipe,
    query: &str,
    lists: &mut Lists,
    stop: &Stop,
) -> Result<Arc<[Hit]>, LaneError> {
    if let Some((_, made)) = lists.made.iter().find(|(known, _)| *known == recipe) {
        return Ok(Arc::clone(made));
    }
    let corpus = Arc::clone(&setup.corpus);
    let made = match recipe {
        Recipe::Bm25(constants) => {
            TermRetriever::new(corpus, setup.terms()?, constants).search(query, lists.depth, stop)?
        }
        Recipe::MiniLm => {
            let vectors = setup.vectors()?.ok_or(LaneError::NotEmbedded)?;
            DenseRetriever::new(corpus, setup.encoder()?, vectors).search(query, lists.depth, stop)?
        }
        Recipe::Hybrid => {
            let parts = [Recipe::Bm25(Bm25::default()), Recipe::MiniLm];
            let parts: Result<Vec<_>, _> =
                parts.into_iter().map(|part| hits(setup, part, query, lists, stop)).collect();
            fuse(&corpus, &parts?, lists.depth)
        }
    };
    let made: Arc<[Hit]> = made.into();
    lists.made.push((recipe, Arc::clone(&made)));
    Ok(made)
}
