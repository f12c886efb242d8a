//! Which pairs are judged, in which order, and the judging itself.

use std::collections::HashSet;
use std::sync::Arc;

use super::{Book, Ranked, Ranking, Setup, SetupError};
use crate::corpus::{Passage, PassageIx};
use crate::detect::{DetectError, Known};
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
    pub known: Known,
}

/// The pairs of the first `k` of every lane that are not in the book, rank by rank.
pub fn top_pairs(rankings: &[Ranking], k: usize, book: &Book) -> Vec<Pair> {
    let mut seen = HashSet::new();
    let ranks = (0..k).flat_map(|rank| rankings.iter().filter_map(move |ranking| ranking.get(rank)));
    pairs(ranks, book, &mut seen)
}

/// The next pairs below `k`: a few ranks of every lane that does not cover all perspectives yet. None for a question of more than
/// `most` perspectives.
pub fn deeper(rankings: &[Ranking], k: usize, book: &Book, most: usize) -> Vec<Pair> {
    if book.perspectives > most {
        return Vec::new();
    }
    let mut seen = HashSet::new();
    let mut next = Vec::new();
    for ranking in rankings {
        let open = ranking.iter().skip(k).position(|ranked| !told(ranked, book)).map(|i| i + k);
        let Some(open) = open else { continue };
        let covered = ranking[..open]
            .iter()
            .filter_map(|ranked| book.support(ranked.at))
            .fold(SupportSet::EMPTY, SupportSet::union);
        if covered.len() < book.perspectives {
            next.extend(pairs(ranking[open..].iter().take(STEP), book, &mut seen));
        }
    }
    next
}

/// Whether every pair of the passage is in the book, with a verdict or without.
fn told(ranked: &Ranked, book: &Book) -> bool {
    (0..book.perspectives).all(|perspective| book.known(ranked.at, perspective).is_some())
}

fn pairs<'a>(
    passages: impl Iterator<Item = &'a Ranked>,
    book: &Book,
    seen: &mut HashSet<(PassageIx, usize)>,
) -> Vec<Pair> {
    let passages: Vec<&Ranked> = passages.collect();
    let mut pairs = Vec::new();
    // A few passages for one statement, then the same for the next: by then what both verdicts need of a passage is known.
    for few in passages.chunks(FEW) {
        for perspective in 0..book.perspectives {
            for ranked in few {
                if book.known(ranked.at, perspective).is_none() && seen.insert((ranked.at, perspective)) {
                    pairs.push(Pair { at: ranked.at, passage: Arc::clone(&ranked.passage), perspective });
                }
            }
        }
    }
    pairs
}

/// Judges pairs on all model threads, first come first told. Returns early once `stop` is set.
///
/// # Errors
/// The detector could not be loaded. A pair that fails is told with its reason.
pub fn judge(
    setup: &Setup,
    question: &Question,
    pairs: &[Pair],
    stop: &Stop,
    told: &(dyn Fn(Judged) + Sync),
) -> Result<(), SetupError> {
    if pairs.is_empty() {
        return Ok(());
    }
    let detector = setup.detector()?;
    on_all(setup.judging(), pairs.len(), stop, |i| {
        let pair = &pairs[i];
        let statement = &question.perspectives[pair.perspective];
        let held = pair.at.as_outside().is_none();
        let model = held.then(|| setup.verdicts.judge(detector.as_ref(), &pair.passage, statement, stop));
        if let Some(Err(DetectError::Stopped(_))) = model {
            return;
        }
        let known = Known { model, ..setup.labelled(statement, &pair.passage.id) };
        told(Judged { at: pair.at, perspective: pair.perspective, known });
    });
    Ok(())
}
