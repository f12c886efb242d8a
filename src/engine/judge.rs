//! Which pairs of a passage and a perspective are judged, in which order, and the judging itself.

use std::collections::HashSet;
use std::sync::Arc;

use super::judgments::Judgments;
use super::list::{Ranked, Ranking};
use super::opening::SetupError;
use super::query::Depth;
use super::setup::Setup;
use crate::corpus::{Passage, PassageIx};
use crate::detect::{DetectError, PairLabels};
use crate::measure::SupportSet;
use crate::question::Question;
use crate::work::{Stop, on_all};

/// Deeper than k, at most this many ranks of every lane are judged at once.
const STEP: usize = 5;
/// Questions of more perspectives are judged to k only.
pub const MANY: usize = 5;
/// Passages judged for one statement before the next statement is asked.
const FEW: usize = 4;

/// A passage and a perspective of the question.
#[derive(Clone, Debug)]
pub struct Pair {
    /// Where the passage lies.
    pub at: PassageIx,
    /// The passage.
    pub passage: Arc<Passage>,
    /// The perspective, from 0.
    pub perspective: usize,
}

/// What was found out about a pair.
#[derive(Clone, Debug)]
pub struct Judged {
    /// Where the passage lies.
    pub at: PassageIx,
    /// The perspective, from 0.
    pub perspective: usize,
    /// All that is known of the pair now.
    pub known: PairLabels,
}

/// The pairs that the model is asked next: those of the first k of every lane, rank by rank, then a few ranks below as `depth` says.
/// None once everything is judged. Questions of more than `most` perspectives are judged to k only, unless `depth` insists.
pub fn next_pairs(
    rankings: &[Ranking],
    k: usize,
    depth: Depth,
    judgments: &Judgments,
    most: usize,
) -> Vec<Pair> {
    let first = if let Depth::To(depth) = depth { depth.max(k) } else { k };
    let top = top_pairs(rankings, first, judgments);
    match depth {
        _ if !top.is_empty() => top,
        Depth::Top | Depth::To(_) => Vec::new(),
        Depth::Covered => deeper(rankings, k, judgments, most),
        Depth::CoveredWhatever => deeper(rankings, k, judgments, usize::MAX),
    }
}

/// The pairs of the first `k` of every lane that the model was not asked yet, rank by rank.
fn top_pairs(rankings: &[Ranking], k: usize, judgments: &Judgments) -> Vec<Pair> {
    let longest = rankings.iter().map(|ranking| ranking.len()).max().unwrap_or(0);
    let ranks = 0..k.min(longest);
    let ranks = ranks.flat_map(|rank| rankings.iter().filter_map(move |ranking| ranking.get(rank)));
    pairs(ranks, judgments, &mut HashSet::new())
}

/// The next pairs below `k`: a few ranks of every lane that does not cover all perspectives yet. None for a question of more than
/// `most` perspectives.
fn deeper(rankings: &[Ranking], k: usize, judgments: &Judgments, most: usize) -> Vec<Pair> {
    // A detector that shows no side covers none, however deep it looks.
    let blind = judgments.shows_no_side() && most < usize::MAX;
    if judgments.perspectives > most || blind {
        return Vec::new();
    }
    let mut seen = HashSet::new();
    let mut next = Vec::new();
    for ranking in rankings {
        let open = ranking.iter().skip(k).position(|ranked| !judgments.is_settled(ranked.at)).map(|i| i + k);
        let Some(open) = open else { continue };
        let covered = ranking[..open]
            .iter()
            .filter_map(|ranked| judgments.support(ranked.at))
            .fold(SupportSet::EMPTY, SupportSet::union);
        if covered.len() < judgments.perspectives {
            next.extend(pairs(ranking[open..].iter().take(STEP), judgments, &mut seen));
        }
    }
    next
}

fn pairs<'a>(
    passages: impl Iterator<Item = &'a Ranked>,
    judgments: &Judgments,
    seen: &mut HashSet<(PassageIx, usize)>,
) -> Vec<Pair> {
    let passages: Vec<&Ranked> = passages.collect();
    let mut pairs = Vec::new();
    // A few passages for one statement, then the same for the next: by then what both verdicts need of a passage is known.
    for few in passages.chunks(FEW) {
        for perspective in 0..judgments.perspectives {
            for ranked in few {
                if judgments.is_open(ranked.at, perspective) && seen.insert((ranked.at, perspective)) {
                    pairs.push(Pair { at: ranked.at, passage: Arc::clone(&ranked.passage), perspective });
                }
            }
        }
    }
    pairs
}

/// Judges pairs on all model threads and reports each as it is done. Returns early once `stop` is set.
///
/// # Errors
/// The detector cannot be loaded. A pair that fails is reported with its reason.
pub fn judge(
    setup: &Setup,
    question: &Question,
    pairs: &[Pair],
    stop: &Stop,
    on_judged: &(dyn Fn(Judged) + Sync),
) -> Result<(), SetupError> {
    if pairs.is_empty() {
        return Ok(());
    }
    let detector = setup.detector()?;
    on_all(setup.judging(), pairs.len(), stop, |i| {
        let pair = &pairs[i];
        let statement = &question.perspectives[pair.perspective];
        let held = pair.at.as_outside().is_none();
        let model = held.then(|| setup.verdicts.read(detector.as_ref(), &pair.passage, statement, stop));
        if let Some(Err(DetectError::Stopped(_))) = model {
            return;
        }
        let known = PairLabels { model, ..setup.labelled(statement, &pair.passage.id) };
        on_judged(Judged { at: pair.at, perspective: pair.perspective, known });
    });
    Ok(())
}
