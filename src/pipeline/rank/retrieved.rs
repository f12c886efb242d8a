//! Asking the retrievers, with the query expanded and projected as the recipe says.

use std::collections::HashMap;
use std::sync::Arc;

use super::super::recipe::{Base, Switches};
use super::super::trace::{Step, Trace, Wording};
use super::projected::{self, Lens};
use super::{Asked, Found, LaneError, Lists, expanded, given, remote};
use crate::corpus::PassageIx;
use crate::encode::{Directions, Encoder, Role, Similarity};
use crate::expand::{Expansion, Kind, Queries, round_robin};
use crate::pipeline::{Recipe, Setup};
use crate::rerank::by_rank;
use crate::retrieve::bm25::{Bm25, TermRetriever};
use crate::retrieve::dense::{DenseRetriever, dot};
use crate::retrieve::fuse::fuse;
use crate::retrieve::{Hit, RetrieveError};
use crate::work::Stop;

/// The list of a recipe without re-ranking.
pub fn found(
    setup: &Setup,
    recipe: &Recipe,
    asked: Asked<'_>,
    lists: &mut Lists,
    stop: &Stop,
) -> Result<Arc<Found>, LaneError> {
    if let Some((_, found)) = lists.found.iter().find(|(known, _)| known == recipe) {
        return Ok(Arc::clone(found));
    }
    let made = match &recipe.base {
        Base::Bm25(constants) => {
            let expansion = expanded::expansion(setup, recipe.switches.expand, asked, lists, stop)?;
            by_terms(setup, *constants, asked, expansion, lists.depth, stop)?
        }
        Base::MiniLm | Base::Brought(_) => {
            let expansion = expanded::expansion(setup, recipe.switches.expand, asked, lists, stop)?;
            by_vectors(setup, recipe, asked, expansion, lists.depth, stop)?
        }
        Base::Remote(engine) => {
            let expansion = expanded::expansion(setup, recipe.switches.expand, asked, lists, stop)?;
            remote::by_engine(setup, (recipe, engine), asked, expansion, lists.depth, stop)?
        }
        Base::Hybrid => fused(setup, recipe, asked, lists, stop)?,
        Base::Run(file) => given::given(setup, file, asked, lists.depth, stop)?,
    };
    let made = Arc::new(made);
    lists.found.push((recipe.clone(), Arc::clone(&made)));
    Ok(made)
}

fn by_terms(
    setup: &Setup,
    constants: Bm25,
    asked: Asked<'_>,
    expansion: Option<Arc<Expansion>>,
    depth: usize,
    stop: &Stop,
) -> Result<Found, LaneError> {
    let retriever = TermRetriever::new(Arc::clone(&setup.corpus), setup.terms()?, constants);
    let queries = for_terms(asked, expansion.as_deref());
    let search = |query: &Wording| retriever.search_weighted(&query.terms(), depth, stop);
    let lists = queries.iter().map(search).collect::<Result<Vec<_>, _>>()?;
    Ok(merged(Base::Bm25(constants), queries, lists, expansion, Trace::default(), depth))
}

/// What is asked of an engine that compares terms.
pub fn for_terms(asked: Asked<'_>, expansion: Option<&Expansion>) -> Vec<Wording> {
    match expansion.map(|expansion| &expansion.queries) {
        None => vec![Wording::Text(asked.text.into())],
        Some(Queries::Each(texts)) => texts.iter().cloned().map(Wording::Text).collect(),
        Some(Queries::Joined { terms, .. }) => vec![Wording::Text(terms.clone())],
        Some(Queries::Terms(weights)) => vec![Wording::Terms(weights.clone())],
    }
}

/// What is asked of an engine that compares vectors.
pub fn for_vectors(asked: Asked<'_>, expansion: Option<&Expansion>, lens: Option<&Lens<'_>>) -> Vec<Wording> {
    let own = lens.map_or_else(|| asked.text.to_owned(), Lens::full);
    match expansion.map(|expansion| &expansion.queries) {
        None | Some(Queries::Terms(_)) => vec![Wording::Text(own)],
        Some(Queries::Each(texts)) => {
            let seen = |text: &String| lens.map_or_else(|| text.clone(), |lens| lens.of(text));
            texts.iter().map(|text| Wording::Text(seen(text))).collect()
        }
        Some(Queries::Joined { vectors, .. }) => {
            // The first of the texts is the question itself.
            vec![Wording::Mean(std::iter::once(own).chain(vectors.iter().skip(1).cloned()).collect())]
        }
    }
}

fn by_vectors(
    setup: &Setup,
    recipe: &Recipe,
    asked: Asked<'_>,
    expansion: Option<Arc<Expansion>>,
    depth: usize,
    stop: &Stop,
) -> Result<Found, LaneError> {
    let vectors = setup.vectors(recipe.model())?.ok_or(LaneError::NotEmbedded)?;
    let encoder = setup.encoder(recipe.model())?;
    let similarity = encoder.similarity();
    let retriever =
        DenseRetriever::new(Arc::clone(&setup.corpus), Arc::clone(&encoder), Arc::clone(&vectors));
    let lens = recipe.switches.project.as_ref().map(|project| Lens::new(project, asked)).transpose()?;
    let queries = for_vectors(asked, expansion.as_deref(), lens.as_ref());
    let mut trace = Trace::default();
    let mut lists = Vec::new();
    for query in &queries {
        let full = mean(encoder.as_ref(), query.texts())?;
        lists.push(match &lens {
            None => retriever.nearest(&full, depth, stop)?,
            Some(lens) => {
                // A projection is an affair of directions, whatever the encoder's own likeness.
                let encoder = Directions(encoder.as_ref());
                let full = similarity.unit(&full).into_owned();
                let (projection, degenerate) = lens.projection(&encoder, full.clone())?;
                degenerate.into_iter().for_each(|reason| trace.note(reason.to_string()));
                let score = |passage: &[f32]| projection.score(&similarity.unit(passage));
                let hits = match projection.direction().filter(|_| similarity == Similarity::Cosine) {
                    Some((direction, slack)) => {
                        retriever.best_along((&direction, slack), depth, stop, score)?
                    }
                    None => retriever.best(depth, stop, score)?,
                };
                let point = projected::geometry(lens, &encoder, &projection, full)?;
                let place =
                    |hit: &Hit| Ok((hit.passage, point(&similarity.unit(&vectors.row(hit.passage)?))));
                let points = hits.iter().map(place).collect::<std::io::Result<_>>();
                let points = points.map_err(RetrieveError::Vectors)?;
                trace.steps.push(Step::Project(Box::new(lens.told(query, &projection, points))));
                hits
            }
        });
    }
    Ok(merged(recipe.base.clone(), queries, lists, expansion, trace, depth))
}

/// The mean of the texts' vectors; of unit length where vectors are.
pub fn mean(encoder: &dyn Encoder, texts: &[String]) -> Result<Vec<f32>, LaneError> {
    let mut sum = vec![0f32; encoder.dimensions()];
    for text in texts {
        for (sum, x) in sum.iter_mut().zip(encoder.encode(text, Role::Query)?) {
            *sum += x;
        }
    }
    let length = match encoder.similarity() {
        Similarity::Cosine => dot(&sum, &sum).sqrt(),
        Similarity::Dot => texts.len() as f32,
    };
    Ok(if length > 0.0 { sum.into_iter().map(|x| x / length).collect() } else { sum })
}

/// One list as it is; several in turn, skipping passages that stand there already.
pub fn merged(
    by: Base,
    queries: Vec<Wording>,
    mut lists: Vec<Vec<Hit>>,
    expansion: Option<Arc<Expansion>>,
    steps: Trace,
    depth: usize,
) -> Found {
    let mut trace = Trace::default();
    if let Some(expansion) = expansion {
        expansion.notes.iter().for_each(|note| trace.note(note.clone()));
        trace.steps.push(Step::Expand(expansion));
    }
    trace.extend(&steps);
    let pool = lists.iter().map(Vec::len).sum();
    trace.steps.push(Step::Retrieve { by, queries, pool });
    if lists.len() == 1 {
        return Found { hits: lists.remove(0), trace, comparable: true };
    }
    let passages: Vec<Vec<PassageIx>> =
        lists.iter().map(|hits| hits.iter().map(|hit| hit.passage).collect()).collect();
    let merged = round_robin(&passages, depth);
    let hits = merged.iter().zip(by_rank(merged.len()));
    let hits = hits.map(|((passage, _), score)| Hit { passage: *passage, score }).collect();
    trace.steps.push(Step::Merge { from: merged.into_iter().collect() });
    Found { hits, trace, comparable: false }
}

/// Both retrievers, each with the switches that it has a use for.
fn fused(
    setup: &Setup,
    recipe: &Recipe,
    asked: Asked<'_>,
    lists: &mut Lists,
    stop: &Stop,
) -> Result<Found, LaneError> {
    let on = &recipe.switches;
    let terms = Switches { project: None, ..on.clone() };
    let vectors = Switches { expand: on.expand.filter(|kind| *kind != Kind::Rm3), ..on.clone() };
    let parts = [
        found(setup, &Recipe { base: Base::Bm25(Bm25::default()), switches: terms }, asked, lists, stop)?,
        found(setup, &Recipe { base: Base::MiniLm, switches: vectors }, asked, lists, stop)?,
    ];
    let mut trace = Trace::default();
    let mut ranks: HashMap<PassageIx, [Option<usize>; 2]> = HashMap::new();
    for (i, part) in parts.iter().enumerate() {
        trace.extend(&part.trace);
        for (rank, hit) in part.hits.iter().enumerate() {
            ranks.entry(hit.passage).or_default()[i] = Some(rank + 1);
        }
    }
    let both: Vec<&[Hit]> = parts.iter().map(|part| part.hits.as_slice()).collect();
    let hits = fuse(&setup.corpus, &both, lists.depth);
    trace.steps.push(Step::Fuse { ranks });
    Ok(Found { hits, trace, comparable: true })
}

impl Wording {
    /// The terms that BM25 looks for, with their weights.
    pub fn terms(&self) -> Vec<(String, f32)> {
        match self {
            Wording::Text(text) => TermRetriever::weighted(text),
            Wording::Mean(texts) => TermRetriever::weighted(&texts.join(" ")),
            Wording::Terms(weights) => weights.clone(),
        }
    }

    /// The texts that an encoder reads.
    pub(super) fn texts(&self) -> &[String] {
        match self {
            Wording::Text(text) => std::slice::from_ref(text),
            Wording::Mean(texts) => texts,
            Wording::Terms(_) => &[],
        }
    }
}
