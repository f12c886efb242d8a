//! The best few of many scores, exactly.

use std::cmp::Ordering;
use std::collections::BinaryHeap;

use super::Hit;
use crate::corpus::{Corpus, PassageIx};

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

/// The `depth` best of `scores`, best first, ties by passage id. Scores that are no number are passed over.
pub fn top(corpus: &Corpus, depth: usize, scores: impl Iterator<Item = (PassageIx, f32)>) -> Vec<Hit> {
    let mut heap: BinaryHeap<Worst<'_>> = BinaryHeap::with_capacity(depth + 1);
    for (passage, score) in scores {
        let full = heap.len() == depth;
        // Most passages are turned away here, before their id is read.
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

#[cfg(test)]
mod tests {
    use super::*;

    fn corpus() -> Corpus {
        Corpus::carried(
            "t",
            b"{\"_id\":\"b\",\"text\":\"x\"}\n{\"_id\":\"a\",\"text\":\"x\"}\n{\"_id\":\"c\",\"text\":\"x\"}\n",
        )
    }

    #[test]
    fn ties_are_broken_by_id_and_not_by_place() {
        let corpus = corpus();
        let scores = [1.0, 1.0, 1.0].into_iter().enumerate().map(|(i, s)| (PassageIx(i as u32), s));
        let ids: Vec<String> = top(&corpus, 2, scores).iter().map(|hit| corpus.id(hit.passage)).collect();
        assert_eq!(ids, ["a", "b"]);
    }

    #[test]
    fn a_depth_of_nothing_gives_nothing_and_no_number_is_passed_over() {
        let corpus = corpus();
        assert_eq!(top(&corpus, 0, [(PassageIx(0), 1.0)].into_iter()), []);
        assert_eq!(top(&corpus, 3, [(PassageIx(0), f32::NAN)].into_iter()), []);
    }
}
