//! From a query to a ranked list of passages.
//!
//! | file | holds |
//! | --- | --- |
//! | `mod` | the [`Retriever`] trait, [`Hit`], the exact top k, fusion of several lists |
//! | `index` | the analyzer and the term index |
//! | `bm25` | BM25 over the term index |
//! | `dense` | exact search by vectors |
//! | `impact` | the index of weighted terms, for learned sparse models |
//! | `late` | the index of token vectors, for late interaction |
//!
//! Must not know about perspectives, verdicts or screens. May use: corpus, encode, measure (in tests), rerank, storage,
//! vector, work.

use std::cmp::Ordering;
use std::collections::{BinaryHeap, HashMap, HashSet};

use parking_lot::Mutex;

use crate::corpus::{Corpus, PassageIx};
use crate::rerank::{by_rank, xquad};
use crate::storage::checked::Damaged;
use crate::work::{Stop, Stopped, on_cores};

pub mod bm25;
pub mod dense;
pub mod impact;
mod index;
pub mod late;

pub use index::{Term, TermIndex, terms};

/// A retrieved passage.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Hit {
    /// The passage.
    pub passage: PassageIx,
    /// The retriever's score; comparable within one list only.
    pub score: f32,
}

/// Why retrieval failed.
#[derive(Debug, thiserror::Error)]
pub enum RetrieveError {
    /// The index could not be read.
    #[error("the term index cannot be read ({0}); `parallax doctor --repair` makes it again")]
    Index(String),
    /// The impact index could not be made or read.
    #[error("the impact index cannot be used ({0}); `parallax doctor` looks for damage")]
    Impacts(String),
    /// The token index could not be made or read.
    #[error("the token index cannot be used ({0}); `parallax doctor` looks for damage")]
    Tokens(String),
    /// The corpus is not one that this retriever can search.
    #[error("{0}")]
    Unfit(String),
    /// The vectors could not be read.
    #[error("the vectors cannot be read ({0}); search again; `parallax doctor` looks for more damage")]
    Vectors(std::io::Error),
    /// A file of the corpus is damaged.
    #[error(transparent)]
    Damaged(#[from] Damaged),
    /// The query could not be encoded.
    #[error(transparent)]
    Encode(#[from] crate::encode::EncodeError),
    /// Stopped on request.
    #[error(transparent)]
    Stopped(#[from] Stopped),
    /// A retriever outside this crate failed.
    #[error(transparent)]
    Other(#[from] Box<dyn std::error::Error + Send + Sync>),
}

/// Ranks the passages of one corpus for a query.
pub trait Retriever: Send + Sync {
    /// The best `depth` passages, best first; equal scores in order of passage id.
    ///
    /// # Errors
    /// Retrieval failed, or `stop` was set.
    fn search(&self, query: &str, depth: usize, stop: &Stop) -> Result<Vec<Hit>, RetrieveError>;
}

/// A hit ordered so that the greatest is the worst: lowest score, then last id.
struct Worst<'a>(Hit, &'a Corpus);

impl Ord for Worst<'_> {
    fn cmp(&self, other: &Self) -> Ordering {
        other.0.score.total_cmp(&self.0.score).then_with(|| {
            if self.0.passage == other.0.passage {
                return Ordering::Equal;
            }
            self.1.id(self.0.passage).cmp(&other.1.id(other.0.passage))
        })
    }
}

impl PartialOrd for Worst<'_> {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl PartialEq for Worst<'_> {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other) == Ordering::Equal
    }
}

impl Eq for Worst<'_> {}

/// The `depth` best of `scores`, best first, ties by passage id. NaN scores are skipped.
pub fn top(corpus: &Corpus, depth: usize, scores: impl Iterator<Item = (PassageIx, f32)>) -> Vec<Hit> {
    let mut heap: BinaryHeap<Worst<'_>> = BinaryHeap::with_capacity(depth + 1);
    for (passage, score) in scores {
        let full = heap.len() == depth;
        // Most passages are rejected here, before their id is read.
        if score.is_nan() || (full && heap.peek().is_none_or(|worst| score < worst.0.score)) {
            continue;
        }
        heap.push(Worst(Hit { passage, score }, corpus));
        if full {
            heap.pop();
        }
    }
    heap.into_sorted_vec().into_iter().map(|Worst(hit, _)| hit).collect()
}

/// A score that `depth` of the passages counted so far have at least, so that none below it is among the best. It only rises; threads
/// share it.
struct Bar {
    depth: usize,
    /// The bar, and the greatest lower bounds above it.
    held: Mutex<(f32, Vec<f32>)>,
}

impl Bar {
    /// `start`: a score that none needs to reach.
    fn new(depth: usize, start: f32) -> Self {
        Bar { depth, held: Mutex::new((start, Vec::new())) }
    }

    fn get(&self) -> f32 {
        self.held.lock().0
    }

    /// Counts the lower bounds of passages that were not counted before, and returns the bar. NaN says nothing.
    fn count(&self, lows: impl Iterator<Item = f32>) -> f32 {
        let (least, greatest) = &mut *self.held.lock();
        greatest.extend(lows.filter(|low| *low > *least));
        if self.depth > 0 && greatest.len() >= self.depth {
            *least = *greatest.select_nth_unstable_by(self.depth - 1, |a, b| b.total_cmp(a)).1;
            greatest.truncate(self.depth);
        }
        *least
    }
}

/// The constant of reciprocal rank fusion (Cormack et al., 2009).
const RRF_CONSTANT: f32 = 60.0;
/// The number of ranks of each list that are fused.
pub const FUSED_RANKS: usize = 100;

/// Fuses lists of the same corpus: `Σ 1/(60 + rank)` over the lists that contain a passage, rank from 1.
pub fn fuse<L: AsRef<[Hit]>>(corpus: &Corpus, lists: &[L], depth: usize) -> Vec<Hit> {
    let mut scores = HashMap::new();
    for list in lists {
        for (rank, hit) in list.as_ref().iter().take(FUSED_RANKS).enumerate() {
            *scores.entry(hit.passage).or_insert(0.0) += 1.0 / (RRF_CONSTANT + rank as f32 + 1.0);
        }
    }
    top(corpus, depth, scores.into_iter())
}

/// Merges lists: the first passage of each, then the second of each, until `depth`. A passage already in the result is skipped, and its
/// list loses that turn. Each passage is returned with the number of the list that had it first.
pub fn round_robin(lists: &[Vec<PassageIx>], depth: usize) -> Vec<(PassageIx, usize)> {
    let longest = lists.iter().map(Vec::len).max().unwrap_or(0);
    let mut seen = HashSet::new();
    (0..longest)
        .flat_map(|rank| lists.iter().enumerate().filter_map(move |(i, list)| Some((*list.get(rank)?, i))))
        .filter(|(passage, _)| seen.insert(*passage))
        .take(depth)
        .collect()
}

/// How the lists of several queries become one.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Fusion {
    /// By reciprocal ranks ([`fuse`]).
    #[default]
    Rrf,
    /// In turn ([`round_robin`]).
    Turns,
    /// By coverage: xQuAD (Santos et al. 2010) with a query as an aspect. A passage at rank r of a query's list serves it with 1/(r + 1), and
    /// the next passage is the one that serves most of what is not served yet; of equal ones, the first by reciprocal ranks.
    Cover,
}

impl Fusion {
    /// All of them.
    pub const ALL: [Fusion; 3] = [Fusion::Rrf, Fusion::Turns, Fusion::Cover];

    /// Its name in recipes.
    pub fn name(self) -> &'static str {
        match self {
            Fusion::Rrf => "rrf",
            Fusion::Turns => "turns",
            Fusion::Cover => "cover",
        }
    }

    /// Makes one list of several of the same corpus. The scores are comparable for [`Fusion::Rrf`] alone; the others score by rank.
    pub fn combine(self, corpus: &Corpus, lists: &[&[Hit]], depth: usize) -> Vec<Hit> {
        let scored = |passages: Vec<PassageIx>| {
            let scores = by_rank(passages.len());
            passages.into_iter().zip(scores).map(|(passage, score)| Hit { passage, score }).collect()
        };
        match self {
            Fusion::Rrf => fuse(corpus, lists, depth),
            Fusion::Turns => {
                let lists: Vec<Vec<PassageIx>> =
                    lists.iter().map(|list| list.iter().map(|hit| hit.passage).collect()).collect();
                scored(round_robin(&lists, depth).into_iter().map(|(passage, _)| passage).collect())
            }
            Fusion::Cover => {
                let pool = fuse(corpus, lists, depth);
                let mut serves = vec![vec![0.0; lists.len()]; pool.len()];
                let places: HashMap<PassageIx, usize> =
                    pool.iter().enumerate().map(|(place, hit)| (hit.passage, place)).collect();
                for (query, list) in lists.iter().enumerate() {
                    for (rank, hit) in list.iter().enumerate() {
                        if let Some(place) = places.get(&hit.passage) {
                            serves[*place][query] = 1.0 / (rank as f32 + 2.0);
                        }
                    }
                }
                let choices = xquad(&by_rank(pool.len()), &serves, 1.0);
                scored(choices.into_iter().map(|choice| pool[choice.passage].passage).collect())
            }
        }
    }
}

/// Passages that a thread scores at a time.
const BATCH: usize = 512;

/// The best `depth` of these passages, scored on all cores.
fn scored(
    corpus: &Corpus,
    passages: &[u32],
    depth: usize,
    stop: &Stop,
    score: impl Fn(&u32) -> Result<f32, RetrieveError> + Sync,
) -> Result<Vec<Hit>, RetrieveError> {
    let shares: Vec<&[u32]> = passages.chunks(BATCH).collect();
    let own =
        |i: usize| shares[i].iter().map(|at| Ok((PassageIx(*at), score(at)?))).collect::<Result<Vec<_>, _>>();
    let all = on_cores(shares.len(), stop, own);
    if all.len() < shares.len() {
        return Err(Stopped.into());
    }
    let all = all.into_iter().collect::<Result<Vec<_>, RetrieveError>>()?;
    Ok(top(corpus, depth, all.into_iter().flatten()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::corpus::PassageIx;

    #[test]
    fn the_bar_is_the_depth_th_best_of_all_that_was_counted() {
        let bar = Bar::new(2, f32::NEG_INFINITY);
        assert_eq!(bar.count([0.3].into_iter()), f32::NEG_INFINITY);
        assert_eq!(bar.count([f32::NAN, -0.5].into_iter()), -0.5);
        assert_eq!(bar.count([0.1, 0.2, 0.4].into_iter()), 0.3);
        assert_eq!(bar.count([0.35, 0.0].into_iter()), 0.35);
        assert_eq!((bar.get(), Bar::new(0, 0.0).count([1.0].into_iter())), (0.35, 0.0));
    }

    #[test]
    fn three_ways_to_fuse_give_the_orders_worked_by_hand() {
        let corpus = corpus();
        let list = |places: &[u32]| -> Vec<Hit> {
            places.iter().map(|i| Hit { passage: PassageIx(*i), score: 1.0 }).collect()
        };
        // Ids: 0 is b, 1 is a, 2 is c.
        let lists = [list(&[0, 1, 2]), list(&[0, 2]), list(&[1])];
        let lists: Vec<&[Hit]> = lists.iter().map(Vec::as_slice).collect();
        let order = |by: Fusion| -> Vec<u32> {
            by.combine(&corpus, &lists, 9).iter().map(|hit| hit.passage.0).collect()
        };
        // b: 2/61 = .0328; a: 1/62 + 1/61 = .0325; c: 1/63 + 1/62 = .0320.
        assert_eq!(order(Fusion::Rrf), [0, 1, 2]);
        assert_eq!(order(Fusion::Turns), [0, 1, 2]);
        // b serves the queries (1/2, 1/2, 0), a (1/3, 0, 1/2), c (1/4, 1/3, 0), all over 3: b first with 1/3.
        // Then a with (1/3·1/2 + 1/2)/3 = .222, c with (1/4·1/2 + 1/3·1/2)/3 = .097.
        assert_eq!(order(Fusion::Cover), [0, 1, 2]);
        let lists = [list(&[0, 1]), list(&[0, 1]), list(&[2])];
        let lists: Vec<&[Hit]> = lists.iter().map(Vec::as_slice).collect();
        let order = |by: Fusion, depth: usize| -> Vec<u32> {
            by.combine(&corpus, &lists, depth).iter().map(|hit| hit.passage.0).collect()
        };
        // a in two lists at rank 2 has 2/62 = .0323, c alone at rank 1 has 1/61 = .0164.
        assert_eq!(order(Fusion::Rrf, 9), [0, 1, 2]);
        assert_eq!(order(Fusion::Turns, 9), [0, 2, 1]);
        // After b, a serves (1/3·1/2)·2/3 = .111, c (1/2)/3 = .167: the query that nothing serves yet goes first.
        assert_eq!(order(Fusion::Cover, 9), [0, 2, 1]);
        assert_eq!((order(Fusion::Turns, 2), order(Fusion::Cover, 0)), (vec![0, 2], vec![]));
        assert!(Fusion::Cover.combine(&corpus, &[], 5).is_empty());
    }

    #[test]
    fn lists_are_merged_in_turn_without_repeats_and_each_passage_knows_its_list() {
        let list = |numbers: &[u32]| numbers.iter().copied().map(PassageIx).collect::<Vec<_>>();
        let lists = [list(&[1, 2, 3]), list(&[1, 4]), list(&[]), list(&[5, 2, 6, 7])];
        let merged: Vec<(u32, usize)> = round_robin(&lists, 100).iter().map(|(p, i)| (p.0, *i)).collect();
        assert_eq!(merged, [(1, 0), (5, 3), (2, 0), (4, 1), (3, 0), (6, 3), (7, 3)]);
        assert_eq!(round_robin(&lists, 2).len(), 2);
        assert!(round_robin(&[], 5).is_empty());
        assert!(round_robin(&lists, 0).is_empty());
    }

    fn corpus() -> Corpus {
        Corpus::builtin(
            "t",
            b"{\"_id\":\"b\",\"text\":\"x\"}\n{\"_id\":\"a\",\"text\":\"x\"}\n{\"_id\":\"c\",\"text\":\"x\"}\n",
        )
    }

    #[test]
    fn ties_are_broken_by_id_and_not_by_position() {
        let corpus = corpus();
        let scores = [1.0, 1.0, 1.0].into_iter().enumerate().map(|(i, s)| (PassageIx(i as u32), s));
        let ids: Vec<String> = top(&corpus, 2, scores).iter().map(|hit| corpus.id(hit.passage)).collect();
        assert_eq!(ids, ["a", "b"]);
    }

    #[test]
    fn depth_zero_gives_nothing_and_nan_is_skipped() {
        let corpus = corpus();
        assert_eq!(top(&corpus, 0, [(PassageIx(0), 1.0)].into_iter()), []);
        assert_eq!(top(&corpus, 3, [(PassageIx(0), f32::NAN)].into_iter()), []);
    }

    #[test]
    fn a_passage_in_two_lists_ranks_above_the_first_of_either() {
        let corpus = Corpus::builtin(
            "t",
            b"{\"_id\":\"a\",\"text\":\"\"}\n{\"_id\":\"b\",\"text\":\"\"}\n{\"_id\":\"c\",\"text\":\"\"}\n",
        );
        let list = |places: &[u32]| -> Vec<Hit> {
            places.iter().map(|i| Hit { passage: PassageIx(*i), score: 9.0 }).collect()
        };
        let fused = fuse(&corpus, &[list(&[0, 2]), list(&[1, 2])], 10);
        let order: Vec<u32> = fused.iter().map(|hit| hit.passage.0).collect();
        assert_eq!(order, [2, 0, 1]);
        assert!((fused[0].score - 2.0 / 62.0).abs() < 1e-7 && (fused[1].score - 1.0 / 61.0).abs() < 1e-7);
    }
}
