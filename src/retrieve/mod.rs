//! From a query to a ranked list of passages.
//!
//! | file | holds |
//! | --- | --- |
//! | `mod` | the [`Retriever`] trait, [`Hit`], the exact top k, reciprocal rank fusion |
//! | `index` | the analyzer and the term index |
//! | `bm25` | BM25 over the term index |
//! | `dense` | exact search by vectors |
//!
//! Must not know about perspectives, verdicts or screens. May use: corpus, encode, storage, vector, work.

use std::cmp::Ordering;
use std::collections::{BinaryHeap, HashMap};

use crate::corpus::{Corpus, PassageIx};
use crate::storage::checked::Damaged;
use crate::work::{Stop, Stopped};

pub mod bm25;
pub mod dense;
mod index;

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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::corpus::PassageIx;

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
