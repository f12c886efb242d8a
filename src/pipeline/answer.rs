//! One question put to several lanes, judged and measured: what `search`, `eval` and the sweeps have in common.

use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use super::{
    Asked, Book, Figures, LaneError, Lists, Plan, Ranked, Ranking, Setup, SetupError, deeper, judge, timed,
    top_pairs,
};
use crate::detect::LabelSource;
use crate::measure::SupportSet;
use crate::question::Question;
use crate::work::Stop;

/// How far down the lists passages are judged.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Depth {
    /// The first k.
    Top,
    /// On until every perspective is covered, or the list ends; questions of many perspectives to k only.
    Covered,
    /// The same, however many perspectives a question has.
    CoveredWhatever,
    /// The first so many, at least k.
    To(usize),
}

/// A question's lists and verdicts.
pub struct Answer {
    /// One a lane, with the time that its query took.
    pub lanes: Vec<(Result<Ranking, LaneError>, Duration)>,
    /// All verdicts.
    pub book: Book,
}

impl Answer {
    /// The figures of one lane; none where it failed or the question has no perspectives.
    pub fn figures(&self, plan: &Plan, lane: usize) -> Option<Figures> {
        let ranking = self.lanes[lane].0.as_ref().ok()?;
        Figures::of(ranking, &self.book, &plan.question, plan.k)
    }

    /// The first k of a lane's passages in the best order that the labels allow: what no re-ranking can exceed.
    pub fn best_order(&self, plan: &Plan, lane: usize) -> Option<Vec<Ranked>> {
        let mut left: Vec<Ranked> = self.lanes[lane].0.as_ref().ok()?.to_vec();
        let support = |ranked: &Ranked| self.book.support(ranked.at).unwrap_or(SupportSet::EMPTY);
        let (mut best, mut covered) = (Vec::new(), SupportSet::EMPTY);
        while best.len() < plan.k && !left.is_empty() {
            let worth = |ranked: &Ranked| {
                let set = support(ranked);
                (covered.union(set).len(), set.len())
            };
            // The first of equals, so that the incoming order decides.
            let mut place = 0;
            for i in 1..left.len() {
                if worth(&left[i]) > worth(&left[place]) {
                    place = i;
                }
            }
            let taken = left.remove(place);
            covered = covered.union(support(&taken));
            best.push(taken);
        }
        Some(best)
    }
}

/// Ranks, judges and measures. A lane that fails says why; the others go on. Once `stop` is set, what comes back is not whole.
///
/// # Errors
/// The detector could not be loaded.
pub fn answer(
    setup: &Setup,
    plan: &Plan,
    depth: Depth,
    lists: &mut Lists,
    stop: &Stop,
) -> Result<Answer, SetupError> {
    let mut lanes = Vec::new();
    for recipe in &plan.lanes {
        lanes.push(timed(setup, recipe, Asked::plainly(&plan.question), lists, stop));
    }
    let rankings: Vec<Ranking> =
        lanes.iter().filter_map(|(ranking, _)| ranking.as_ref().ok().cloned()).collect();
    let book = judged(setup, &plan.question, &rankings, (plan.k, depth), plan.source, stop)?;
    Ok(Answer { lanes, book })
}

/// The verdicts on the first k of several lists, or deeper.
///
/// # Errors
/// The detector could not be loaded.
pub fn judged(
    setup: &Setup,
    question: &Question,
    rankings: &[Ranking],
    (k, depth): (usize, Depth),
    source: LabelSource,
    stop: &Stop,
) -> Result<Book, SetupError> {
    let threshold = setup.detector()?.threshold();
    let mut book = Book::new(question.perspectives.len(), source, threshold);
    if source.is_labels() {
        // Labels alone count: no model is asked.
        for ranked in rankings.iter().flat_map(|ranking| ranking.iter()) {
            for (perspective, statement) in question.perspectives.iter().enumerate() {
                book.write(ranked.at, perspective, setup.labelled(statement, &ranked.passage.id));
            }
        }
        return Ok(book);
    }
    let first = if let Depth::To(depth) = depth { depth.max(k) } else { k };
    let mut pairs = top_pairs(rankings, first, &book);
    while !pairs.is_empty() && !stop.is_set() {
        let found = Mutex::new(Vec::new());
        judge(setup, question, &pairs, stop, &|judged| {
            found.lock().unwrap_or_else(PoisonError::into_inner).push(judged);
        })?;
        for judged in found.into_inner().unwrap_or_else(PoisonError::into_inner) {
            book.write(judged.at, judged.perspective, judged.known);
        }
        pairs = match depth {
            Depth::Top | Depth::To(_) => Vec::new(),
            Depth::Covered => deeper(rankings, k, &book, setup.deep()),
            Depth::CoveredWhatever => deeper(rankings, k, &book, usize::MAX),
        };
    }
    Ok(book)
}
