//! Order-aware bias: does one side stand above the other? rKL (Yang and Stoyanovich 2017) and AWRF (Sapiezynski et al. 2019),
//! both against an even share for every perspective.
//!
//! A passage that supports several perspectives counts for each with an equal part; one that supports none, or is not judged, is
//! left out and counted beside.

use super::support::{PerspectiveCount, SupportSet, top};

/// Where rKL looks: after so many passages.
pub const CUTS: [usize; 3] = [5, 10, 20];

/// A value, and the passages it could not use.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Exposure {
    /// 0 is an even share; greater is further from it.
    pub value: f64,
    /// Passages looked at that support no perspective or are not judged.
    pub left_out: usize,
}

/// rKL: the Kullback–Leibler divergence of the shares in the first 5, 10 and 20 from an even share, discounted by
/// `1/log2(cut)` and divided by the greatest it could be. None where no passage supports anything.
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

/// AWRF: half the absolute difference between the attention every perspective gets in the first `k`, with weight
/// `1/log2(rank + 1)`, and an even share. None where no passage supports anything.
pub fn awrf(ranked: &[Option<SupportSet>], m: PerspectiveCount, k: usize) -> Option<Exposure> {
    let even = 1.0 / m.get() as f64;
    let shares = shares(top(ranked, k), m, |rank| 1.0 / ((rank + 1) as f64).log2())?;
    let value = shares.iter().map(|share| (share - even).abs()).sum::<f64>() / 2.0;
    Some(Exposure { value, left_out: left_out(top(ranked, k)) })
}

fn left_out(ranked: &[Option<SupportSet>]) -> usize {
    ranked.iter().filter(|set| set.is_none_or(SupportSet::is_empty)).count()
}

/// Every perspective's share of the weight; the weight of a rank counts from 1.
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
    use super::super::support::labels;
    use super::*;

    fn two() -> PerspectiveCount {
        PerspectiveCount::new(2).unwrap()
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
