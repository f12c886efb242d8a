//! Which side a ranking favours: lean, Δ and shift (BERDS §7 and Figure 3), the order-aware rKL and AWRF; and how much the wording of a
//! question decides: framing sensitivity and negation accuracy (NevIR).
//!
//! Lean, Δ and shift exist only for two-sided questions. rKL (Yang and Stoyanovich 2017) and AWRF (Sapiezynski et al. 2019) compare with an even
//! share for every perspective.

use std::collections::HashMap;

use thiserror::Error;

use super::support::compare::{RBO_P, rbo};
use super::support::{Measured, PerspectiveCount, SupportSet, top};

/// Why a ranking has no lean.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum LeanError {
    /// m is not 2.
    #[error("lean needs a question with two perspectives, found {0}")]
    NotTwoSided(usize),
    /// `supports` is neither 0 nor 1.
    #[error("expected 0 or 1 as the supporting perspective, found {0}")]
    NoSuchSide(usize),
}

/// `p` and `n`: the shares of the top k that support the question and that oppose it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct SideShares {
    /// The share for the supporting perspective.
    pub p: f64,
    /// The share for the opposing perspective. A passage that supports both counts in both.
    pub n: f64,
}

impl SideShares {
    /// `lean = p − n`, from −1 to 1.
    pub fn lean(self) -> f64 {
        self.p - self.n
    }

    /// The paper's `Δ = (p − n) / p`; `None` at p = 0, where it is undefined.
    pub fn delta(self) -> Option<f64> {
        (self.p > 0.0).then(|| self.lean() / self.p)
    }
}

/// The shares of `k` that support each side; `supports` is the index of the supporting perspective.
///
/// As in Prec@k, passages not returned or not judged support neither. `k = 0` gives 0 for both.
///
/// # Errors
/// If `m` is not 2 or `supports` is neither 0 nor 1.
pub fn side_shares(
    ranked: &[Option<SupportSet>],
    m: PerspectiveCount,
    supports: usize,
    k: usize,
) -> Result<Measured<SideShares>, LeanError> {
    if m.get() != 2 {
        return Err(LeanError::NotTwoSided(m.get()));
    }
    if supports > 1 {
        return Err(LeanError::NoSuchSide(supports));
    }
    let share = |side: usize| {
        let count = top(ranked, k).iter().flatten().filter(|set| set.contains(side)).count();
        count as f64 / k.max(1) as f64
    };
    let shares = SideShares { p: share(supports), n: share(1 - supports) };
    Ok(Measured::over(ranked, k, shares))
}

/// `shift = lean(asked p_1) − lean(asked p_2)`: 0 if the wording changes nothing, 2 if the lane always supports the wording.
///
/// Both leans are toward the same supporting perspective.
pub fn shift(asked_supporting: SideShares, asked_opposing: SideShares) -> f64 {
    asked_supporting.lean() - asked_opposing.lean()
}

/// The means of p and n over a question set, from which Δ is computed; `None` if there are no questions.
///
/// Lean and shift over a set are the means over its questions instead.
pub fn pool(questions: &[SideShares]) -> Option<SideShares> {
    let count = questions.len() as f64;
    (!questions.is_empty()).then(|| SideShares {
        p: questions.iter().map(|shares| shares.p).sum::<f64>() / count,
        n: questions.iter().map(|shares| shares.n).sum::<f64>() / count,
    })
}

/// How far the lists of one question's wordings lie apart: the mean rank-biased distance `1 − RBO` over all pairs of lists, from 0 (every
/// wording gives the same list) to 1 (no two share a passage). `None` for fewer than two lists, or if a pair of them is empty.
pub fn framing_sensitivity(lists: &[Vec<&str>]) -> Option<f64> {
    let mut distances = Vec::new();
    for (i, one) in lists.iter().enumerate() {
        for other in &lists[i + 1..] {
            distances.push(1.0 - rbo(one, other, RBO_P)?);
        }
    }
    (!distances.is_empty()).then(|| distances.iter().sum::<f64>() / distances.len() as f64)
}

/// Whether a passage of rank `own` (from 1; `None` if it is not returned) stands above one of rank `other`. Two passages that are not
/// returned stand level, so neither is above.
pub fn is_above(own: Option<usize>, other: Option<usize>) -> bool {
    own.is_some_and(|own| other.is_none_or(|other| own < other))
}

/// NevIR's pairwise accuracy (Weller et al. 2023) over every pair of a passage from `fits_first` and one from `fits_second`: the share of
/// pairs of which each query ranks its own passage above the other. Chance gives 1/4, a lane that ignores the negation at most 0.
/// `None` without a pair.
pub fn negation_accuracy(
    asked_first: &[&str],
    asked_second: &[&str],
    fits_first: &[&str],
    fits_second: &[&str],
) -> Option<f64> {
    let ranks = |list: &[&str], ids: &[&str]| -> Vec<Option<usize>> {
        let places: HashMap<&str, usize> = list.iter().zip(1..).map(|(id, rank)| (*id, rank)).collect();
        ids.iter().map(|id| places.get(id).copied()).collect()
    };
    let first = [ranks(asked_first, fits_first), ranks(asked_first, fits_second)];
    let second = [ranks(asked_second, fits_first), ranks(asked_second, fits_second)];
    let pairs = (0..fits_first.len()).flat_map(|own| (0..fits_second.len()).map(move |other| (own, other)));
    let right = |(own, other): &(usize, usize)| {
        is_above(first[0][*own], first[1][*other]) && is_above(second[1][*other], second[0][*own])
    };
    let (count, of) = (pairs.clone().filter(right).count(), pairs.count());
    (of > 0).then(|| count as f64 / of as f64)
}

/// The cut-offs of rKL.
pub const CUTS: [usize; 3] = [5, 10, 20];

/// The value of rKL or AWRF, and the number of passages that it could not use.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Exposure {
    /// 0 for an even share; greater values are further from it.
    pub value: f64,
    /// The passages looked at that support no perspective or are not judged.
    pub left_out: usize,
}

/// rKL: the Kullback–Leibler divergence of the shares in the first 5, 10 and 20 from an even share, discounted by
/// `1/log2(cut)` and divided by the greatest possible value. `None` if no passage supports a perspective.
pub fn rkl(ranked: &[Option<SupportSet>], m: PerspectiveCount) -> Option<Exposure> {
    let even = 1.0 / m.get() as f64;
    // All for one perspective: ln m at every cut.
    let worst = (m.get() as f64).ln();
    let (mut sum, mut most, mut any) = (0.0, 0.0, false);
    let looked = CUTS.into_iter().filter(|cut| *cut <= ranked.len().max(CUTS[0]));
    for cut in looked {
        let Some(shares) = shares(top(ranked, cut), m, |_| 1.0) else { continue };
        any = true;
        let discount = 1.0 / (cut as f64).log2();
        let divergence: f64 =
            shares.iter().filter(|share| **share > 0.0).map(|share| share * (share / even).ln()).sum();
        sum += discount * divergence;
        most += discount * worst;
    }
    let left_out = left_out(top(ranked, CUTS[2]));
    any.then(|| Exposure { value: if most > 0.0 { sum / most } else { 0.0 }, left_out })
}

/// AWRF: half the sum of the absolute differences between each perspective's share of attention in the first `k`, with weight
/// `1/log2(rank + 1)`, and an even share. `None` if no passage supports a perspective.
pub fn awrf(ranked: &[Option<SupportSet>], m: PerspectiveCount, k: usize) -> Option<Exposure> {
    let even = 1.0 / m.get() as f64;
    let shares = shares(top(ranked, k), m, |rank| 1.0 / ((rank + 1) as f64).log2())?;
    let value = shares.iter().map(|share| (share - even).abs()).sum::<f64>() / 2.0;
    Some(Exposure { value, left_out: left_out(top(ranked, k)) })
}

fn left_out(ranked: &[Option<SupportSet>]) -> usize {
    ranked.iter().filter(|set| set.is_none_or(SupportSet::is_empty)).count()
}

/// Every perspective's share of the weight. `weight` takes a rank, from 1.
fn shares(
    ranked: &[Option<SupportSet>],
    m: PerspectiveCount,
    weight: impl Fn(usize) -> f64,
) -> Option<Vec<f64>> {
    let mut shares = vec![0.0; m.get()];
    for (i, set) in ranked.iter().enumerate() {
        let set = m.within(set.unwrap_or_default());
        for perspective in set.iter() {
            shares[perspective] += weight(i + 1) / set.len() as f64;
        }
    }
    let total: f64 = shares.iter().sum();
    (total > 0.0).then(|| shares.iter().map(|share| share / total).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn framing_sensitivity_is_the_mean_distance_of_all_pairs_as_worked_by_hand() {
        // RBO(ab, ba) = .9, RBO(ab, cd) = 0, RBO(ba, cd) = 0: (.1 + 1 + 1)/3 = .7.
        let lists = [vec!["a", "b"], vec!["b", "a"], vec!["c", "d"]];
        assert!((framing_sensitivity(&lists).unwrap() - 0.7).abs() < 1e-12);
        assert!(framing_sensitivity(&[vec!["a"], vec!["a"]]).unwrap().abs() < 1e-12);
        assert_eq!(framing_sensitivity(&lists[..1]), None, "one wording has nothing to differ from");
        assert_eq!(framing_sensitivity(&[vec![], vec![]]), None);
    }

    #[test]
    fn negation_accuracy_counts_the_pairs_that_both_queries_rank_right() {
        // First query: s1 above o1 and above o2; s2 below o1, above o2. Second query: o1 above both, o2 above s2 alone.
        let (first, second) = (["s1", "o1", "s2", "o2"], ["o1", "s1", "o2", "s2"]);
        // (s1, o1) right; (s1, o2) wrong in the second; (s2, o1) wrong in the first; (s2, o2) right.
        let value = negation_accuracy(&first, &second, &["s1", "s2"], &["o1", "o2"]);
        assert_eq!(value, Some(0.5));
        assert_eq!(
            negation_accuracy(&first, &first, &["s1", "s2"], &["o1", "o2"]),
            Some(0.0),
            "a lane that ignores the negation ranks no pair right"
        );
        assert_eq!(negation_accuracy(&first, &second, &[], &["o1"]), None);
    }

    #[test]
    fn a_passage_that_is_not_returned_is_below_and_two_of_them_are_level() {
        assert!(is_above(Some(9), None) && !is_above(None, Some(9)) && !is_above(None, None));
        assert_eq!(negation_accuracy(&["s"], &["o"], &["s"], &["o"]), Some(1.0));
        assert_eq!(negation_accuracy(&[], &[], &["s"], &["o"]), Some(0.0));
    }
    use crate::measure::support::labels;

    fn two() -> PerspectiveCount {
        PerspectiveCount::new(2).unwrap()
    }

    fn close(left: f64, right: f64) -> bool {
        (left - right).abs() < 1e-12
    }

    #[test]
    fn two_for_and_one_against_of_five_lean_a_fifth() {
        let ranked = labels(&[&[1], &[], &[2], &[1], &[]]);
        let shares = side_shares(&ranked, two(), 0, 5).unwrap().value;
        assert_eq!((shares.p, shares.n), (0.4, 0.2));
        assert!(close(shares.lean(), 0.2));
        assert!(close(shares.delta().unwrap(), 0.5));
    }

    #[test]
    fn without_a_supporting_passage_delta_is_undefined() {
        let ranked = labels(&[&[2], &[], &[2], &[], &[]]);
        let shares = side_shares(&ranked, two(), 0, 5).unwrap().value;
        assert!(close(shares.lean(), -0.4));
        assert_eq!(shares.delta(), None);
    }

    #[test]
    fn the_supporting_perspective_may_stand_second() {
        let ranked = labels(&[&[2], &[2], &[1], &[]]);
        let shares = side_shares(&ranked, two(), 1, 4).unwrap().value;
        assert_eq!((shares.p, shares.n), (0.5, 0.25));
    }

    #[test]
    fn a_both_sided_passage_leans_nowhere_and_missing_ones_dilute() {
        let ranked = labels(&[&[1, 2], &[1]]);
        let shares = side_shares(&ranked, two(), 0, 4).unwrap();
        assert_eq!((shares.value.p, shares.value.n), (0.5, 0.25));
        assert_eq!((shares.judged, shares.of), (2, 2));
        assert_eq!(side_shares(&ranked, two(), 0, 0).unwrap().value.p, 0.0);
    }

    #[test]
    fn three_perspectives_have_no_lean() {
        let three = PerspectiveCount::new(3).unwrap();
        assert_eq!(side_shares(&[], three, 0, 5), Err(LeanError::NotTwoSided(3)));
        assert_eq!(side_shares(&[], two(), 2, 5), Err(LeanError::NoSuchSide(2)));
    }

    #[test]
    fn a_lane_that_says_what_it_is_asked_shifts_by_two() {
        let (yes, no) = (SideShares { p: 1.0, n: 0.0 }, SideShares { p: 0.0, n: 1.0 });
        assert_eq!(shift(yes, no), 2.0);
        assert_eq!(shift(yes, yes), 0.0);
    }

    #[test]
    fn delta_over_a_set_comes_from_the_pooled_shares() {
        let set = [SideShares { p: 0.4, n: 0.2 }, SideShares { p: 0.0, n: 0.4 }];
        let pooled = pool(&set).unwrap();
        assert!(close(pooled.p, 0.2) && close(pooled.n, 0.3));
        assert!(close(pooled.delta().unwrap(), -0.5));
        assert_eq!(pool(&[]), None);
    }

    #[test]
    fn sides_in_turn_are_near_an_even_share_and_one_side_alone_is_as_far_as_can_be() {
        let alone = labels(&[&[1][..]; 20]);
        assert!((rkl(&alone, two()).unwrap().value - 1.0).abs() < 1e-12);
        assert!((awrf(&alone, two(), 20).unwrap().value - 0.5).abs() < 1e-12);
        let both = labels(&[&[1, 2][..]; 20]);
        assert_eq!(rkl(&both, two()).unwrap().value, 0.0);
        assert_eq!(awrf(&both, two(), 20).unwrap().value, 0.0);
    }

    #[test]
    fn awrf_worked_by_hand_weighs_the_first_rank_most() {
        // Weights 1 and 1/log2(3) = .6309: shares .6131 and .3869.
        let list = labels(&[&[1], &[2]]);
        assert!((awrf(&list, two(), 2).unwrap().value - 0.113_15).abs() < 1e-4);
    }

    #[test]
    fn rkl_worked_by_hand_on_five_passages() {
        // Three to two of five: .6·ln 1.2 + .4·ln .8 = .0201, of ln 2.
        let list = labels(&[&[1], &[1], &[1], &[2], &[2]]);
        let expected = (0.6f64 * 1.2f64.ln() + 0.4 * 0.8f64.ln()) / 2f64.ln();
        assert!((rkl(&list, two()).unwrap().value - expected).abs() < 1e-9);
    }

    #[test]
    fn passages_that_take_no_side_are_left_out_and_counted() {
        let list = labels(&[&[], &[1], &[2], &[]]);
        let exposure = awrf(&list, two(), 4).unwrap();
        assert_eq!(exposure.left_out, 2);
        assert_eq!(awrf(&labels(&[&[], &[]]), two(), 2), None);
        assert_eq!(rkl(&[], two()), None);
    }
}
