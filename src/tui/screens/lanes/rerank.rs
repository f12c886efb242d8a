//! What puts the lane under the cursor in order: λ of MMR or the diversifier, and the model that re-ranks it.

use super::switches;
use crate::engine::recipe::{ByModel, Mmr, Rerank};
use crate::rerank::POOL;
use crate::tui::app::{App, Corpus};
use crate::tui::message::Effect;

/// The steps of λ, small near 1 as in the paper's grid.
const GRID: [f32; 9] = [0.0, 0.25, 0.5, 0.6, 0.75, 0.9, 0.95, 0.99, 1.0];

/// Moves λ of the lane's re-ranking one step up or down the grid.
pub fn change_weight(app: &mut App, by: isize) -> Vec<Effect> {
    let Some(lane) = app.lanes.get(app.lane) else { return Vec::new() };
    let step = |lambda: f32, by: isize| {
        let next = if by > 0 {
            GRID.iter().find(|step| **step > lambda + 1e-4)
        } else {
            GRID.iter().rev().find(|step| **step < lambda - 1e-4)
        };
        next.copied().unwrap_or(lambda)
    };
    let mut recipe = lane.recipe.clone();
    match &mut recipe.switches.rerank {
        Some(Rerank::Mmr(Mmr { lambda, .. })) => *lambda = step(*lambda, by),
        // λ of MMR weights relevance; λ of a diversifier weights coverage.
        Some(Rerank::Diversify(_, lambda)) => *lambda = step(*lambda, -by),
        rerank => {
            app.notice = Some(match rerank {
                Some(_) => "an order by a model has no λ".into(),
                None => "nothing re-ranks this lane: switch on MMR (m) or the diversifier (v)".into(),
            });
            return Vec::new();
        }
    }
    switches::change(app, app.lane, recipe)
}

/// Has the next model re-rank the lane, of those that lanes had and those that were fetched, by name. After the last one none does.
pub fn next_model(app: &mut App) -> Vec<Effect> {
    let Some(lane) = app.lanes.get(app.lane) else { return Vec::new() };
    let in_use = |rerank: &Option<Rerank>| match rerank {
        Some(Rerank::Model(own)) => Some(own.clone()),
        _ => None,
    };
    let fetched = match &app.corpus {
        Corpus::Open(opened) => opened.rerankers.as_slice(),
        _ => &[],
    };
    let fetched = fetched.iter().map(|model| ByModel { model: model.clone(), depth: POOL });
    let mut known: Vec<ByModel> = Vec::new();
    let used = app.lanes.iter().filter_map(|lane| in_use(&lane.recipe.switches.rerank));
    for one in used.chain(app.options.rerank.clone()).chain(fetched) {
        if known.iter().all(|other| other.model != one.model) {
            known.push(one);
        }
    }
    // One order for all lanes, whichever model is on.
    known.sort_by_key(ByModel::name);
    let own = in_use(&lane.recipe.switches.rerank);
    let after = own.and_then(|own| known.iter().position(|one| one.model == own.model)).map(|at| at + 1);
    let next = known.get(after.unwrap_or(0)).cloned();
    app.notice = Some(match &next {
        Some(next) => format!("{} re-ranks the first {} passages", next.name(), next.depth),
        None if known.is_empty() => {
            "no re-ranker is fetched: `parallax models get ms-marco-minilm`, or name one: --lane bm25+rerank@path:FOLDER"
                .into()
        }
        None => "no model re-ranks the lane".into(),
    });
    if known.is_empty() {
        return Vec::new();
    }
    let mut recipe = lane.recipe.clone();
    recipe.switches.rerank = next.map(Rerank::Model);
    switches::change(app, app.lane, recipe)
}
