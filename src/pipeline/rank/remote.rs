//! Asking an engine on another machine, with the query expanded and projected here.

use std::collections::HashMap;
use std::sync::Arc;

use super::super::trace::{Projected, Step, Trace, Wording};
use super::projected::{self, Lens};
use super::retrieved::{for_terms, for_vectors, mean, merged};
use super::{Asked, Found, LaneError};
use crate::encode::Encoder;
use crate::expand::Expansion;
use crate::pipeline::{Recipe, Setup};
use crate::project::Projection;
use crate::remote::{By, Engine, Remote, Scored};
use crate::retrieve::dense::dot;
use crate::retrieve::{Hit, RetrieveError};
use crate::work::Stop;

/// The engine's list. Passages are those of the open corpus with the same ids.
pub fn by_engine(
    setup: &Setup,
    (recipe, remote): (&Recipe, &Remote),
    asked: Asked<'_>,
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
            let lens = recipe.switches.project.as_ref().map(|project| Lens::new(project, asked));
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
                        let told = told(setup, (lens, encoder.as_ref()), query, (&projection, full), &hits)?;
                        trace.steps.push(Step::Project(Box::new(told)));
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

/// The projection as the trace tells it: with the geometry of the passages where their vectors are here too.
fn told(
    setup: &Setup,
    (lens, encoder): (&Lens<'_>, &dyn Encoder),
    query: &Wording,
    (projection, full): (&Projection, Vec<f32>),
    hits: &[Hit],
) -> Result<Projected, LaneError> {
    let mut points = HashMap::new();
    if let Some(vectors) = setup.vectors(None)? {
        let point = projected::geometry(lens, encoder, projection, full)?;
        for hit in hits.iter().filter(|hit| hit.passage.as_outside().is_none()) {
            let row = vectors.row(hit.passage).map_err(RetrieveError::Vectors)?;
            points.insert(hit.passage, point(&row));
        }
    }
    Ok(lens.told(query, projection, points))
}

fn placed(setup: &Setup, list: Vec<Scored>, trace: &mut Trace) -> Vec<Hit> {
    let (places, note) = setup.runs.places(list.iter().map(|hit| hit.id.as_str()), &setup.corpus);
    note.into_iter().for_each(|note| trace.note(note));
    places.into_iter().zip(&list).map(|(passage, hit)| Hit { passage, score: hit.score }).collect()
}
