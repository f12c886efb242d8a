//! Why a passage stands where it does in a lane: read from the list's trace, and from the index for the shares of terms.

use std::sync::Arc;

use super::list::{LaneError, List, Projected, Step, Stood, Wording};
use super::recipe::{Base, Diversify, RunFile};
use super::setup::Setup;
use crate::corpus::PassageIx;
use crate::encode::{Role, Similarity};
use crate::project::Variant;
use crate::remote::By;
use crate::retrieve::RetrieveError;
use crate::retrieve::bm25::TermRetriever;
use crate::vector::dot;

/// One reason, in the order of the steps.
#[derive(Clone, Debug, PartialEq)]
pub enum Explanation {
    /// BM25's terms; the shares add up to the score.
    Terms {
        /// Greatest share first, terms that the passage does not hold left out.
        shares: Vec<Share>,
        /// Their sum.
        score: f32,
    },
    /// Likeness of vectors.
    Vectors {
        /// How the encoder compares vectors.
        similarity: Similarity,
        /// The query's and the passage's, compared so.
        plain: f32,
        /// What the projection made of it.
        projected: Option<(Variant, f32)>,
        /// The same for each text whose mean is the query, where there is more than one.
        texts: Vec<(String, f32)>,
    },
    /// One of several queries found it.
    Merged {
        /// Which, from 0.
        query: usize,
        /// Its text.
        text: String,
    },
    /// A finished run gave it.
    Given {
        /// Which.
        run: RunFile,
        /// What the run calls itself; may be empty.
        tag: String,
        /// What its file says.
        stood: Stood,
    },
    /// An engine on another machine ranked it and does not say why.
    Elsewhere {
        /// The engine, the server and the collection.
        by: String,
    },
    /// Two lists hold it at these ranks, from 1.
    Fused([Option<usize>; 2]),
    /// MMR chose it.
    Mmr {
        /// Its λ.
        lambda: f32,
        /// `Sim1`.
        relevance: f32,
        /// The passage chosen before that it is closest to, and `Sim2`.
        closest: Option<(PassageIx, f32)>,
        /// `λ·Sim1 − (1 − λ)·Sim2`.
        value: f32,
        /// Its rank before, from 1.
        was: usize,
    },
    /// A diversifier chose it.
    Diversified {
        /// By which method.
        method: Diversify,
        /// Its λ.
        weight: f32,
        /// Its relevance.
        relevance: f32,
        /// What it adds for each perspective.
        gains: Vec<f32>,
        /// What it was chosen for.
        value: f32,
        /// Its rank before, from 1.
        was: usize,
    },
}

/// A term's part of a BM25 score.
#[derive(Clone, Debug, PartialEq)]
pub struct Share {
    /// The stem.
    pub term: String,
    /// Its part.
    pub share: f32,
    /// It is not one of the question's own: the expansion added it.
    pub added: bool,
}

/// Why the passage at `at` stands in `list`, which was made for `text`.
///
/// # Errors
/// The index or the model cannot be read.
pub fn explain(setup: &Setup, list: &List, text: &str, at: PassageIx) -> Result<Vec<Explanation>, LaneError> {
    let mut explanations = Vec::new();
    for (i, step) in list.trace.steps.iter().enumerate() {
        match step {
            Step::Expand(_) | Step::Project(_) => {}
            Step::Retrieve { by, queries, .. } => {
                let merged = match list.trace.steps.get(i + 1) {
                    Some(Step::Merge { from }) => match from.get(&at) {
                        Some(query) => Some(*query),
                        // This retriever did not bring it up.
                        None => continue,
                    },
                    _ => None,
                };
                let Some(query) = queries.get(merged.unwrap_or(0)) else { continue };
                if let Some(number) = merged {
                    explanations.push(Explanation::Merged { query: number, text: query.shown() });
                }
                explanations.extend(match by {
                    Base::Bm25(constants) => {
                        let index = setup.terms()?;
                        let retriever = TermRetriever::new(Arc::clone(&setup.corpus), index, *constants);
                        terms(&retriever, query, text, at)?
                    }
                    // Vectors that are here too say it; terms are weighed there, and nothing is known of a passage outside.
                    Base::Remote(remote) if remote.by == By::Terms || at.as_outside().is_some() => {
                        Some(Explanation::Elsewhere { by: remote.to_string() })
                    }
                    by => vectors(setup, list, by, merged, query, at)?,
                });
            }
            Step::Given { run, tag, stood, .. } => {
                let stood = stood.get(&at).copied();
                explanations.extend(stood.map(|stood| Explanation::Given {
                    run: run.clone(),
                    tag: tag.clone(),
                    stood,
                }));
            }
            Step::Merge { .. } => {}
            Step::Fuse { ranks } => explanations.extend(ranks.get(&at).copied().map(Explanation::Fused)),
            Step::Mmr { options, picks, pool } => {
                let pick = picks.iter().find(|pick| pool[pick.passage] == at);
                explanations.extend(pick.map(|pick| Explanation::Mmr {
                    lambda: options.lambda,
                    relevance: pick.relevance,
                    closest: pick.closest.map(|(passage, similarity)| (pool[passage], similarity)),
                    value: pick.value,
                    was: pick.passage + 1,
                }));
            }
            Step::Diversify { method, weight, choices, pool, .. } => {
                let choice = choices.iter().find(|choice| pool[choice.passage] == at);
                explanations.extend(choice.map(|choice| Explanation::Diversified {
                    method: *method,
                    weight: *weight,
                    relevance: choice.relevance,
                    gains: choice.gains.clone(),
                    value: choice.value,
                    was: choice.passage + 1,
                }));
            }
        }
    }
    Ok(explanations)
}

fn terms(
    retriever: &TermRetriever,
    query: &Wording,
    text: &str,
    at: PassageIx,
) -> Result<Option<Explanation>, LaneError> {
    let own: Vec<String> = TermRetriever::query_terms(text).into_iter().map(|(term, _)| term).collect();
    let shares = retriever.explain(&query.terms(), at)?.into_iter().filter(|share| share.share > 0.0);
    let mut shares: Vec<Share> = shares
        .map(|share| Share { added: !own.contains(&share.term), term: share.term, share: share.share })
        .collect();
    shares.sort_by(|a, b| b.share.total_cmp(&a.share).then_with(|| a.term.cmp(&b.term)));
    let score = shares.iter().map(|share| share.share).sum();
    Ok((!shares.is_empty()).then_some(Explanation::Terms { shares, score }))
}

fn vectors(
    setup: &Setup,
    list: &List,
    by: &Base,
    merged: Option<usize>,
    query: &Wording,
    at: PassageIx,
) -> Result<Option<Explanation>, LaneError> {
    let model = by.model().map(AsRef::as_ref);
    let Some(rows) = setup.vectors(model)? else { return Ok(None) };
    let (row, encoder) = (&*rows.row(at).map_err(RetrieveError::Vectors)?, setup.encoder(model)?);
    let similarity = encoder.similarity();
    let mut projections = list.trace.steps.iter().filter_map(|step| match step {
        Step::Project(projected) => Some(projected.as_ref()),
        _ => None,
    });
    let projected: Option<&Projected> = projections.nth(merged.unwrap_or(0));
    let texts = match query {
        Wording::Text(text) => vec![text.clone()],
        Wording::Mean(texts) => texts.clone(),
        Wording::Terms(_) => return Ok(None),
    };
    let mut sum = vec![0f32; encoder.dimensions()];
    let mut cosines = Vec::new();
    for text in texts {
        let vector = encoder.encode(&text, Role::Query)?;
        cosines.push((text, dot(&vector, row)));
        sum.iter_mut().zip(&vector).for_each(|(sum, x)| *sum += x);
    }
    let length = match similarity {
        Similarity::Cosine => dot(&sum, &sum).sqrt(),
        Similarity::Dot => cosines.len() as f32,
    };
    let plain = dot(&sum, row) / length.max(f32::MIN_POSITIVE);
    let point = projected.and_then(|projected| Some((projected.ran, projected.points.get(&at)?.score)));
    let texts = if cosines.len() > 1 { cosines } else { Vec::new() };
    Ok(Some(Explanation::Vectors { similarity, plain, projected: point, texts }))
}
