//! A lane's list with the time that its query took. Index, models, vectors and finished runs are opened before the clock starts:
//! that happens once, and would be told as the time of whichever lane comes first.

use std::time::{Duration, Instant};

use super::{Asked, LaneError, Lists, Ranking, rank};
use crate::pipeline::recipe::{Base, Rerank};
use crate::pipeline::{Recipe, Setup};
use crate::work::Stop;

/// As [`rank`], with the time it took once everything was open. What lanes share counts where it was made first.
pub fn timed(
    setup: &Setup,
    recipe: &Recipe,
    asked: Asked<'_>,
    lists: &mut Lists,
    stop: &Stop,
) -> (Result<Ranking, LaneError>, Duration) {
    let open = opened(setup, recipe, lists.depth, stop);
    let began = Instant::now();
    let list = open.and_then(|()| rank(setup, recipe, asked, lists, stop));
    (list, began.elapsed())
}

/// Opens what the recipe's lists are made with.
fn opened(setup: &Setup, recipe: &Recipe, depth: usize, stop: &Stop) -> Result<(), LaneError> {
    // An expansion may read the question's own list.
    if matches!(recipe.base, Base::Bm25(_) | Base::Hybrid) || recipe.switches.expand.is_some() {
        setup.terms()?;
    }
    if recipe.base.is_dense() || recipe.base == Base::Hybrid {
        setup.encoder(recipe.model())?;
    }
    if recipe.needs_vectors() {
        setup.vectors(recipe.model())?;
    }
    if matches!(recipe.switches.rerank, Some(Rerank::Diversify(..))) {
        setup.detector()?;
    }
    if let Some(run) = recipe.run() {
        setup.runs.placed(run, depth, &setup.corpus, stop)?;
    }
    Ok(())
}
