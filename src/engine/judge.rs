//! Decides which pairs of a passage and a statement are judged next, judges them, and counts who judged.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use super::judgments::Judgments;
use super::list::{Ranked, Ranking};
use super::opening::SetupError;
use super::query::Depth;
use super::setup::Setup;
use crate::corpus::{Passage, PassageIx};
use crate::detect::{By, DetectError, Detector, NO_SIDE, PairLabels, Reading, Rule, Sources};
use crate::measure::SupportSet;
use crate::question::Question;
use crate::work::{Stop, on_all};

/// The number of ranks of every lane that are judged at once below k.
const STEP: usize = 5;
/// Questions with more statements than this are judged to k only.
pub const MANY: usize = 5;
/// The number of passages that are judged for one statement before the next statement.
const FEW: usize = 4;

impl Judgments {
    /// Where the probabilities come from, if a language model judges.
    pub fn sources(&self) -> Sources {
        let readings = self.known.values().filter_map(|known| known.model.as_ref()?.as_ref().ok());
        Sources::of(self.rule(), readings)
    }
}

/// A passage and a statement of the question.
#[derive(Clone, Debug)]
pub struct Pair {
    /// The passage's number in the corpus.
    pub at: PassageIx,
    /// The passage.
    pub passage: Arc<Passage>,
    /// The statement, from 0.
    pub perspective: usize,
}

/// A judged pair.
#[derive(Clone, Debug)]
pub struct Judged {
    /// The passage's number in the corpus.
    pub at: PassageIx,
    /// The statement, from 0.
    pub perspective: usize,
    /// All labels and verdicts on the pair.
    pub known: PairLabels,
}

/// How many passages each source judged.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Shares {
    /// Passages judged by labels by hand.
    pub human: usize,
    /// Passages judged by gold labels.
    pub gold: usize,
    /// Passages for which the model says what they support.
    pub model: usize,
    /// Passages whose side is unclear by the model's verdict.
    pub unclear: usize,
    /// Passages on which the model gave no verdict.
    pub failed: usize,
}

impl Shares {
    /// Counts these passages, each once.
    pub fn of(judgments: &Judgments, passages: impl IntoIterator<Item = PassageIx>) -> Self {
        let mut shares = Shares::default();
        if judgments.perspectives == 0 {
            return shares;
        }
        let mut seen = HashSet::new();
        for passage in passages.into_iter().filter(|passage| seen.insert(*passage)) {
            let count = match judgments.owner(passage) {
                By::Model if judgments.is_unclear(passage) => &mut shares.unclear,
                By::Model if judgments.has_failed(passage) => &mut shares.failed,
                _ if judgments.support(passage).is_none() => continue,
                By::Human => &mut shares.human,
                By::Gold => &mut shares.gold,
                By::Model => &mut shares.model,
            };
            *count += 1;
        }
        shares
    }

    /// Adds the counts of other passages.
    pub fn plus(self, other: Shares) -> Shares {
        Shares {
            human: self.human + other.human,
            gold: self.gold + other.gold,
            model: self.model + other.model,
            unclear: self.unclear + other.unclear,
            failed: self.failed + other.failed,
        }
    }

    /// The number of passages that the model was asked about.
    pub fn by_model(&self) -> usize {
        self.model + self.unclear + self.failed
    }

    /// The number of all passages.
    pub fn all(&self) -> usize {
        self.human + self.gold + self.by_model()
    }

    /// Says who judged, `labels` being those of the label file in words: `judged by gold labels`, or each source with its share.
    pub fn words(&self, rule: &Rule, labels: &str) -> String {
        let all = self.all();
        let share = |count: usize| format!("{:.0} %", 100.0 * count as f64 / all as f64);
        let model = self.by_model();
        let mut parts = Vec::new();
        for (count, name) in [(self.human, "labels by hand"), (self.gold, labels)] {
            if count == all && all > 0 {
                return format!("judged by {name}");
            }
            if count > 0 {
                parts.push(format!("{name} ({})", share(count)));
            }
        }
        if model > 0 {
            let of = if model == all { String::new() } else { format!(" ({})", share(model)) };
            parts.push(format!("{}{of}", rule.about.words()));
        }
        if parts.is_empty() {
            return "nothing judged yet".into();
        }
        let mut text = format!("judged by {}", parts.join(" and "));
        if model > 0 && !rule.shows_sides() {
            text += &format!("; {NO_SIDE}");
        } else if self.unclear > 0 {
            text += &format!("; {} of {model} verdicts unclear", self.unclear);
        }
        if self.failed > 0 {
            text += &format!("; {} without a verdict", self.failed);
        }
        text
    }
}

/// Returns the pairs to judge next: those of the first k of every lane, rank by rank, then a few ranks below, as `depth` says.
/// Empty once everything is judged. Questions with more than `most` statements are judged to k only, unless `depth` is
/// [`Depth::CoveredWhatever`].
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

/// The pairs of the first `k` of every lane that the model has not judged, rank by rank.
fn top_pairs(rankings: &[Ranking], k: usize, judgments: &Judgments) -> Vec<Pair> {
    let longest = rankings.iter().map(|ranking| ranking.len()).max().unwrap_or(0);
    let ranks = 0..k.min(longest);
    let ranks = ranks.flat_map(|rank| rankings.iter().filter_map(move |ranking| ranking.get(rank)));
    pairs(ranks, judgments, &mut HashSet::new())
}

/// The next pairs below `k`: a few ranks of every lane that does not cover all statements yet. Empty for a question with more than
/// `most` statements.
fn deeper(rankings: &[Ranking], k: usize, judgments: &Judgments, most: usize) -> Vec<Pair> {
    // A detector that shows no sides never covers a statement, however deep it judges.
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
    // A few passages for one statement, then the same passages for the next, so that a passage soon has both verdicts.
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

/// Reads a passage with some statements of its question: two sides together, if the detector does that.
pub(super) fn readings(
    setup: &Setup,
    detector: &dyn Detector,
    question: &Question,
    passage: &Passage,
    wanted: &[usize],
    stop: &Stop,
) -> Vec<Result<Reading, DetectError>> {
    let both = question.both().filter(|both| detector.reads_both(*both));
    let both = both.map(|both| setup.verdicts.read_both(detector, passage, both, stop));
    let read = |i: &usize| match &both {
        Some(both) => both[*i].clone(),
        None => setup.verdicts.read(detector, passage, &question.perspectives[*i], stop),
    };
    wanted.iter().map(read).collect()
}

/// The pairs that are judged in one go, in the order of their first: both statements of a passage if the detector reads them together.
fn together(pairs: &[Pair], both: bool) -> Vec<Vec<&Pair>> {
    let (mut rows, mut of) = (Vec::<Vec<&Pair>>::new(), HashMap::<_, usize>::new());
    for pair in pairs {
        match of.get(&pair.at).filter(|_| both) {
            Some(row) => rows[*row].push(pair),
            None => {
                of.insert(pair.at, rows.len());
                rows.push(vec![pair]);
            }
        }
    }
    rows
}

/// Judges pairs on all model threads and reports each when it is judged. Returns early once `stop` is set.
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
    let rows = together(pairs, question.both().is_some_and(|both| detector.reads_both(both)));
    on_all(setup.judging(), rows.len(), stop, |i| {
        let Some(Pair { at, passage, .. }) = rows[i].first().copied() else { return };
        let wanted: Vec<usize> = rows[i].iter().map(|pair| pair.perspective).collect();
        let held = at.as_outside().is_none();
        let read = held.then(|| readings(setup, detector.as_ref(), question, passage, &wanted, stop));
        for (place, perspective) in wanted.into_iter().enumerate() {
            let model = read.as_ref().map(|all| all[place].clone());
            if let Some(Err(DetectError::Stopped(_))) = model {
                return;
            }
            let statement = &question.perspectives[perspective];
            let known = PairLabels { model, ..setup.labelled(statement, &passage.id) };
            on_judged(Judged { at: *at, perspective, known });
        }
    });
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_statements_of_a_passage_are_judged_in_one_go_if_they_are_read_together() {
        let pair = |(at, perspective): &(u32, usize)| Pair {
            at: PassageIx(*at),
            passage: Arc::default(),
            perspective: *perspective,
        };
        let pairs: Vec<Pair> = [(3, 0), (1, 0), (3, 1), (2, 1), (1, 1)].iter().map(pair).collect();
        let rows = |both| -> Vec<Vec<(u32, usize)>> {
            let row = |row: &Vec<&Pair>| row.iter().map(|pair| (pair.at.0, pair.perspective)).collect();
            together(&pairs, both).iter().map(row).collect()
        };
        assert_eq!(rows(true), [vec![(3, 0), (3, 1)], vec![(1, 0), (1, 1)], vec![(2, 1)]]);
        assert_eq!(rows(false).len(), 5);
    }
}
