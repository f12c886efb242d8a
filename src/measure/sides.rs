//! Which sides the gold passages at the top of a list are on (PIR Table 3), and intervals of shares and of means over tasks.

use super::seeded::SplitMix64;
use super::significance::{Interval, SignificanceError, quantile};

/// A part and the whole it is of.
pub type Item = (f64, f64);

/// What one list brings up of each side.
#[derive(Clone, Debug, PartialEq)]
pub struct SideCounts {
    /// Gold passages by side, numbered from 0. One that is gold of several sides counts in equal parts.
    pub sides: Vec<f64>,
    /// Gold passages that have a side.
    pub passages: usize,
}

/// Counts the passages of `top` that are gold of a side; `gold` pairs a passage with its side, below `sides`.
pub fn side_counts(top: &[usize], gold: &[(usize, usize)], sides: usize) -> SideCounts {
    let mut counts = SideCounts { sides: vec![0.0; sides], passages: 0 };
    for passage in top {
        let of = |side: &usize| gold.contains(&(*passage, *side));
        let on: Vec<usize> = (0..sides).filter(of).collect();
        counts.passages += usize::from(!on.is_empty());
        for side in &on {
            counts.sides[*side] += 1.0 / on.len() as f64;
        }
    }
    counts
}

/// Percentile bootstrap interval of a mean over groups of a ratio of sums: in each draw, every group's items `(part, whole)` are
/// drawn anew from that group. With wholes of 1 it is the mean over groups of their means, with one group the share of a count.
///
/// # Errors
/// A group is empty, a number is not finite, a whole is not above 0, there are no draws, or the level is outside 0 to 1.
pub fn grouped_interval(
    groups: &[Vec<Item>],
    level: f64,
    draws: usize,
    seed: u64,
) -> Result<Interval, SignificanceError> {
    if groups.is_empty() || groups.iter().any(Vec::is_empty) {
        return Err(SignificanceError::Empty);
    }
    if draws == 0 {
        return Err(SignificanceError::NoDraws);
    }
    if !(level > 0.0 && level < 1.0) {
        return Err(SignificanceError::BadLevel);
    }
    let good = |(part, whole): &Item| part.is_finite() && whole.is_finite() && *whole > 0.0;
    if let Some(item) = groups.iter().flatten().position(|item| !good(item)) {
        return Err(SignificanceError::NotFinite(item));
    }
    let mut rng = SplitMix64::new(seed);
    let mut means: Vec<f64> =
        (0..draws).map(|_| mean(groups, |group, _| group[rng.below(group.len())])).collect();
    means.sort_unstable_by(f64::total_cmp);
    let tail = (1.0 - level) / 2.0;
    Ok(Interval {
        low: quantile(&means, tail),
        mean: mean(groups, |group, i| group[i]),
        high: quantile(&means, 1.0 - tail),
    })
}

/// The mean over the groups of the sum of the parts over the sum of the wholes, each group's items as `pick` names them.
fn mean(groups: &[Vec<Item>], mut pick: impl FnMut(&[Item], usize) -> Item) -> f64 {
    let mut total = 0.0;
    for group in groups {
        let (mut parts, mut wholes) = (0.0, 0.0);
        for i in 0..group.len() {
            let (part, whole) = pick(group, i);
            parts += part;
            wholes += whole;
        }
        total += parts / wholes;
    }
    total / groups.len() as f64
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::measure::significance::{DRAWS, bootstrap_interval};

    #[test]
    fn a_passage_that_is_gold_of_two_sides_counts_half_for_each_and_others_not_at_all() {
        let gold = [(3, 0), (3, 1), (5, 1), (5, 1), (9, 0)];
        let counts = side_counts(&[3, 4, 5], &gold, 2);
        assert_eq!(counts, SideCounts { sides: vec![0.5, 1.5], passages: 2 });
        assert_eq!(side_counts(&[], &gold, 2).passages, 0);
    }

    #[test]
    fn one_group_with_wholes_of_one_is_the_plain_bootstrap() {
        let values = [0.0, 1.0, 0.25, 0.5, 1.0];
        let items = values.map(|value| (value, 1.0)).to_vec();
        let grouped = grouped_interval(&[items], 0.95, DRAWS, 0).unwrap();
        assert_eq!(grouped, bootstrap_interval(&values, 0.95, DRAWS, 0).unwrap());
    }

    #[test]
    fn groups_weigh_the_same_however_large_and_shares_are_of_the_whole() {
        let groups = [vec![(1.0, 1.0)], vec![(0.0, 1.0); 9]];
        let interval = grouped_interval(&groups, 0.95, 100, 0).unwrap();
        assert_eq!((interval.low, interval.mean, interval.high), (0.5, 0.5, 0.5));
        let share = grouped_interval(&[vec![(1.0, 1.0), (1.0, 3.0)]], 0.95, 1000, 0).unwrap();
        assert_eq!((share.low, share.mean, share.high), (1.0 / 3.0, 0.5, 1.0));
    }

    #[test]
    fn what_has_no_share_is_refused() {
        for groups in [vec![], vec![vec![]], vec![vec![(1.0, 0.0)]], vec![vec![(f64::NAN, 1.0)]]] {
            assert!(grouped_interval(&groups, 0.95, 10, 0).is_err());
        }
        assert!(grouped_interval(&[vec![(1.0, 1.0)]], 0.95, 0, 0).is_err());
        assert!(grouped_interval(&[vec![(1.0, 1.0)]], 1.0, 10, 0).is_err());
    }
}
