//! Reciprocal rank fusion: `Σ 1/(60 + rank)` over the lists that hold a passage, rank from 1.

use std::collections::HashMap;

use super::{Hit, top::top};
use crate::corpus::Corpus;

/// The constant of the method's paper (Cormack et al., 2009).
const K: f32 = 60.0;
/// How deep each list is read.
pub const DEPTH: usize = 100;

/// Fuses lists of the same corpus.
pub fn fuse<L: AsRef<[Hit]>>(corpus: &Corpus, lists: &[L], depth: usize) -> Vec<Hit> {
    let mut scores = HashMap::new();
    for list in lists {
        for (rank, hit) in list.as_ref().iter().take(DEPTH).enumerate() {
            *scores.entry(hit.passage).or_insert(0.0) += 1.0 / (K + rank as f32 + 1.0);
        }
    }
    top(corpus, depth, scores.into_iter())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::corpus::PassageIx;

    #[test]
    fn a_passage_that_two_lists_hold_stands_above_the_head_of_either() {
        let corpus = Corpus::carried(
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
