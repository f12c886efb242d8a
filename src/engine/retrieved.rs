//! A lane's list before anything is put in another order: the retrievers here, engines on other machines and finished runs, asked
//! with the query expanded and projected as the recipe says.

use std::collections::HashMap;
use std::sync::Arc;

use super::list::{Found, LaneError, Lists, Projected, Step, Stood, Trace, Wording};
use super::query::LaneQuery;
use super::recipe::{Base, Recipe, RunFile, Switches};
use super::setup::Setup;
use super::wording::{PerspectiveQuery, expansion, for_terms, for_vectors, geometry, mean};
use crate::corpus::PassageIx;
use crate::encode::{Directions, Encoder, Similarity};
use crate::expand::{Expansion, Kind, round_robin};
use crate::project::Projection;
use crate::remote::{By, Engine, Remote, Scored};
use crate::rerank::by_rank;
use crate::retrieve::bm25::{Bm25, TermRetriever};
use crate::retrieve::dense::DenseRetriever;
use crate::retrieve::fuse;
use crate::retrieve::{Hit, RetrieveError};
use crate::vector::dot;
use crate::work::Stop;

/// The list of a recipe without re-ranking.
pub(super) fn found(
    setup: &Setup,
    recipe: &Recipe,
    asked: LaneQuery<'_>,
    lists: &mut Lists,
    stop: &Stop,
) -> Result<Arc<Found>, LaneError> {
    if let Some((_, found)) = lists.found.iter().find(|(known, _)| known == recipe) {
        return Ok(Arc::clone(found));
    }
    let made = match &recipe.base {
        Base::Bm25(constants) => {
            let expansion = expansion(setup, recipe.switches.expand, asked, lists, stop)?;
            by_terms(setup, *constants, asked, expansion, lists.depth, stop)?
        }
        Base::MiniLm | Base::Custom(_) => {
            let expansion = expansion(setup, recipe.switches.expand, asked, lists, stop)?;
            by_vectors(setup, recipe, asked, expansion, lists.depth, stop)?
        }
        Base::Remote(engine) => {
            let expansion = expansion(setup, recipe.switches.expand, asked, lists, stop)?;
            by_engine(setup, (recipe, engine), asked, expansion, lists.depth, stop)?
        }
        Base::Hybrid => fused(setup, recipe, asked, lists, stop)?,
        Base::Run(file) => from_run(setup, file, asked, lists.depth, stop)?,
    };
    let made = Arc::new(made);
    lists.found.push((recipe.clone(), Arc::clone(&made)));
    Ok(made)
}

fn by_terms(
    setup: &Setup,
    constants: Bm25,
    asked: LaneQuery<'_>,
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

fn by_vectors(
    setup: &Setup,
    recipe: &Recipe,
    asked: LaneQuery<'_>,
    expansion: Option<Arc<Expansion>>,
    depth: usize,
    stop: &Stop,
) -> Result<Found, LaneError> {
    let vectors = setup.vectors(recipe.model())?.ok_or(LaneError::NotEmbedded)?;
    let encoder = setup.encoder(recipe.model())?;
    let similarity = encoder.similarity();
    let retriever =
        DenseRetriever::new(Arc::clone(&setup.corpus), Arc::clone(&encoder), Arc::clone(&vectors));
    let lens =
        recipe.switches.project.as_ref().map(|project| PerspectiveQuery::new(project, asked)).transpose()?;
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
                let point = geometry(lens, &encoder, &projection, full)?;
                let place =
                    |hit: &Hit| Ok((hit.passage, point(&similarity.unit(&vectors.row(hit.passage)?))));
                let points = hits.iter().map(place).collect::<std::io::Result<_>>();
                let points = points.map_err(RetrieveError::Vectors)?;
                trace.steps.push(Step::Project(Box::new(lens.projected(query, &projection, points))));
                hits
            }
        });
    }
    Ok(merged(recipe.base.clone(), queries, lists, expansion, trace, depth))
}

/// One list as it is; several in turn, skipping passages that stand there already.
fn merged(
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
    asked: LaneQuery<'_>,
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

/// The engine's list. Passages are those of the open corpus with the same ids.
fn by_engine(
    setup: &Setup,
    (recipe, remote): (&Recipe, &Remote),
    asked: LaneQuery<'_>,
    expansion: Option<Arc<Expansion>>,
    depth: usize,
    stop: &Stop,
) -> Result<Found, LaneError> {
    let engine = setup.remotes.engine(&remote.place)?;
    let mut trace = Trace::default();
    let (queries, lists) = match remote.by {
        By::Terms => {
            let queries = for_terms(asked, expansion.as_deref());
            let search = |query: &Wording| engine.by_text(&query.shown(), depth, stop);
            let lists = queries.iter().map(search).collect::<Result<Vec<_>, _>>()?;
            let lists = lists.into_iter().map(|list| placed(setup, list, &mut trace)).collect();
            (queries, lists)
        }
        By::Vectors => {
            let lens = recipe.switches.project.as_ref().map(|project| PerspectiveQuery::new(project, asked));
            let lens = lens.transpose()?;
            let queries = for_vectors(asked, expansion.as_deref(), lens.as_ref());
            let encoder = setup.encoder(None)?;
            let mut lists = Vec::new();
            for query in &queries {
                let full = mean(encoder.as_ref(), query.texts())?;
                lists.push(match &lens {
                    None => placed(setup, engine.by_vector(&full, depth, stop)?, &mut trace),
                    Some(lens) => {
                        let (projection, degenerate) = lens.projection(encoder.as_ref(), full.clone())?;
                        degenerate.into_iter().for_each(|reason| trace.note(reason.to_string()));
                        let list = along(engine.as_ref(), &projection, full.len(), depth, stop)?;
                        let hits = placed(setup, list, &mut trace);
                        let step =
                            projected(setup, (lens, encoder.as_ref()), query, (&projection, full), &hits)?;
                        trace.steps.push(Step::Project(Box::new(step)));
                        hits
                    }
                });
            }
            (queries, lists)
        }
    };
    Ok(merged(recipe.base.clone(), queries, lists, expansion, trace, depth))
}

/// The list by a projection. It runs along a direction, so the server's cosine with that direction gives the same order, and the
/// score follows from it.
fn along(
    engine: &dyn Engine,
    projection: &Projection,
    dimensions: usize,
    depth: usize,
    stop: &Stop,
) -> Result<Vec<Scored>, LaneError> {
    let Some((direction, _)) = projection.direction() else {
        return Err(LaneError::NoPerspective(format!(
            "{} projects the passages too, and a server compares one vector with those it holds; try pap",
            projection.variant()
        )));
    };
    let length = dot(&direction, &direction).sqrt();
    let beside = projection.score(&vec![0.0; dimensions]);
    let list = engine.by_vector(&direction, depth, stop)?;
    Ok(list.into_iter().map(|hit| Scored { score: hit.score * length + beside, ..hit }).collect())
}

/// The projection as the trace shows it: with the geometry of the passages where their vectors are here too.
fn projected(
    setup: &Setup,
    (lens, encoder): (&PerspectiveQuery<'_>, &dyn Encoder),
    query: &Wording,
    (projection, full): (&Projection, Vec<f32>),
    hits: &[Hit],
) -> Result<Projected, LaneError> {
    let mut points = HashMap::new();
    if let Some(vectors) = setup.vectors(None)? {
        let point = geometry(lens, encoder, projection, full)?;
        for hit in hits.iter().filter(|hit| hit.passage.as_outside().is_none()) {
            let row = vectors.row(hit.passage).map_err(RetrieveError::Vectors)?;
            points.insert(hit.passage, point(&row));
        }
    }
    Ok(lens.projected(query, projection, points))
}

fn placed(setup: &Setup, list: Vec<Scored>, trace: &mut Trace) -> Vec<Hit> {
    let (places, note) = setup.runs.places(list.iter().map(|hit| hit.id.as_str()), &setup.corpus);
    note.into_iter().for_each(|note| trace.note(note));
    places.into_iter().zip(&list).map(|(passage, hit)| Hit { passage, score: hit.score }).collect()
}

/// The run's list: for the question by its id, else by its words; for another wording by its words alone.
fn from_run(
    setup: &Setup,
    file: &RunFile,
    asked: LaneQuery<'_>,
    depth: usize,
    stop: &Stop,
) -> Result<Found, LaneError> {
    let placed = setup.runs.placed(file, depth, &setup.corpus, stop)?;
    let own = asked.text == asked.question.text;
    let id = Some(asked.question.id.as_str()).filter(|id| own && !id.is_empty());
    let place = placed.run.place(id, asked.text).ok_or_else(|| {
        LaneError::NotInRun(match (own, id) {
            (true, Some(id)) => format!("the run has no list for this question, neither by its id `{id}` nor by its words"),
            (true, None) => "the run has no list for these words; a finished run knows its own questions only".into(),
            (false, _) => "the run has no list for this wording; a finished run is asked as either side only if it holds the statements as questions".into(),
        })
    })?;
    let question = &placed.run.questions()[place];
    let mut trace = Trace::default();
    let (mut hits, mut stood) = (Vec::new(), HashMap::new());
    for (passage, at) in question.passages.iter().zip(&placed.places[place]).take(depth) {
        // A score beyond what 32 bits hold is as great as any.
        let score = (passage.score as f32).clamp(f32::MIN, f32::MAX);
        hits.push(Hit { passage: *at, score });
        stood.insert(*at, Stood { rank: passage.rank, score: passage.score, line: passage.line });
    }
    if hits.iter().any(|hit| hit.passage.as_outside().is_some()) {
        placed.note.iter().for_each(|note| trace.note(note.clone()));
    }
    trace.steps.push(Step::Given {
        run: file.clone(),
        tag: placed.run.tag.clone(),
        question: question.id.clone(),
        stood,
    });
    Ok(Found { hits, trace, comparable: true })
}
