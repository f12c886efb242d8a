//! Expanding the question, with the question's own BM25 list for feedback.

use std::sync::Arc;

use super::{Asked, LaneError, Lists};
use crate::encode::Role;
use crate::expand::{self, Ask, Expansion, Kind, Listed};
use crate::pipeline::Setup;
use crate::retrieve::Retriever;
use crate::retrieve::bm25::{Bm25, TermRetriever};
use crate::retrieve::dense::dot;
use crate::work::Stop;

/// The expansion, made once for all lanes of a wording.
pub fn expansion(
    setup: &Setup,
    kind: Option<Kind>,
    asked: Asked<'_>,
    lists: &mut Lists,
    stop: &Stop,
) -> Result<Option<Arc<Expansion>>, LaneError> {
    let Some(kind) = kind else { return Ok(None) };
    if let Some((_, known)) = lists.expanded.iter().find(|(known, _)| *known == kind) {
        return Ok(Some(Arc::clone(known)));
    }
    let terms = TermRetriever::new(Arc::clone(&setup.corpus), setup.terms()?, Bm25::default());
    let first = |depth| -> Result<Vec<Listed>, LaneError> {
        let hits = terms.search(asked.text, depth, stop)?;
        let listed = hits.into_iter().map(|hit| Listed {
            at: hit.passage,
            passage: Arc::new(setup.corpus.passage(hit.passage)),
            score: hit.score,
        });
        Ok(listed.collect())
    };
    let likeness = |texts: &[&str]| -> Result<Vec<f32>, LaneError> {
        let encoder = setup.encoder(None)?;
        let question = encoder.encode(asked.text, Role::Query)?;
        texts
            .iter()
            .map(|text| {
                if stop.is_set() {
                    return Err(crate::work::Stopped.into());
                }
                Ok(dot(&question, &encoder.encode(text, Role::Query)?))
            })
            .collect()
    };
    let ask = Ask {
        question: asked.text,
        statements: &asked.question.perspectives,
        given: &asked.question.expansions,
        chat: setup.chat.as_deref(),
        first: &first,
        likeness: &likeness,
        document_frequency: &|term| Ok(terms.frequency(term)?),
        passages: setup.corpus.len(),
        stop,
    };
    let expansion = Arc::new(expand::expand(kind, &ask)?);
    lists.expanded.push((kind, Arc::clone(&expansion)));
    Ok(Some(expansion))
}
