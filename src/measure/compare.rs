//! Compares two rankings of one question: Jaccard and rank-biased overlap.
//!
//! Rankings are lists of distinct passage ids, best first. Two empty rankings cannot be compared: the result is `None`, never 0 or 1.

use std::collections::HashSet;

use super::support::top;

/// The persistence `p` of [`rbo`] on screen and in tables.
pub const RBO_P: f64 = 0.9;

/// The Jaccard index of the top `k`: shared passages divided by all passages of both.
pub fn jaccard(left: &[&str], right: &[&str], k: usize) -> Option<f64> {
    let left: HashSet<&str> = top(left, k).iter().copied().collect();
    let right: HashSet<&str> = top(right, k).iter().copied().collect();
    let all = left.union(&right).count();
    (all > 0).then(|| left.intersection(&right).count() as f64 / all as f64)
}

/// Extrapolated rank-biased overlap (Webber, Moffat & Zobel 2010, eq. 32), for lists of any two lengths.
///
/// `p` is the probability of reading on, strictly between 0 and 1. Returns `None` for any other `p` and for two empty lists.
/// To compare the top k, cut the lists to k first.
pub fn rbo(left: &[&str], right: &[&str], p: f64) -> Option<f64> {
    if !(p > 0.0 && p < 1.0) || (left.is_empty() && right.is_empty()) {
        return None;
    }
    let (short, long) = if left.len() <= right.len() { (left, right) } else { (right, left) };
    if short.is_empty() {
        return Some(0.0);
    }
    let (s, l) = (short.len() as f64, long.len() as f64);
    let overlaps = overlaps(short, long);
    let at_short = overlaps[short.len() - 1] as f64;
    let at_long = overlaps[long.len() - 1] as f64;
    let mut sum = 0.0;
    let mut weight = 1.0;
    for (index, &overlap) in overlaps.iter().enumerate() {
        let depth = index as f64 + 1.0;
        weight *= p;
        let assumed = (depth - s).max(0.0) * at_short / s;
        sum += (overlap as f64 + assumed) / depth * weight;
    }
    let tail = (at_long - at_short) / l + at_short / s;
    Some((1.0 - p) / p * sum + tail * weight)
}

/// X_d for d = 1 … length of `long`: the number of passages that both lists hold in their first d.
fn overlaps(short: &[&str], long: &[&str]) -> Vec<usize> {
    let mut seen = HashSet::new();
    let mut shared = 0;
    let mut overlaps = Vec::with_capacity(long.len());
    for (index, id) in long.iter().enumerate() {
        shared += usize::from(!seen.insert(*id));
        if let Some(id) = short.get(index) {
            shared += usize::from(!seen.insert(*id));
        }
        overlaps.push(shared);
    }
    overlaps
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn jaccard_counts_shared_over_all_within_the_cut() {
        assert_eq!(jaccard(&["a", "b", "c"], &["b", "a", "d"], 3), Some(2.0 / 4.0));
        assert_eq!(jaccard(&["a", "b"], &["b", "a"], 1), Some(0.0));
        assert_eq!(jaccard(&[], &["a"], 5), Some(0.0));
        assert_eq!(jaccard(&[], &[], 5), None);
    }

    #[test]
    fn the_overlaps_of_webbers_table_one_come_out() {
        let overlap = overlaps(&["a", "b", "c", "d", "e", "f", "g"], &["z", "c", "a", "v", "w", "x", "y"]);
        assert_eq!(overlap, [0, 0, 2, 2, 2, 2, 2]);
    }

    #[test]
    fn rbo_of_the_same_list_is_one_and_of_disjoint_lists_zero() {
        let same = rbo(&["a", "b", "c"], &["a", "b", "c"], RBO_P).unwrap();
        assert!((same - 1.0).abs() < 1e-12);
        assert_eq!(rbo(&["a", "b"], &["c", "d"], RBO_P), Some(0.0));
    }

    #[test]
    fn rbo_of_a_swapped_pair_is_the_hand_worked_value() {
        // X = 0, 2: (1 − p)/p · (2/2 · p²) + 2/2 · p² = p.
        let value = rbo(&["a", "b"], &["b", "a"], RBO_P).unwrap();
        assert!((value - 0.9).abs() < 1e-12);
    }

    #[test]
    fn rbo_of_uneven_lists_assumes_the_shorter_would_go_on_agreeing() {
        let (short, long): (&[&str], &[&str]) = (&["a", "b"], &["a", "b", "c", "d"]);
        let value = rbo(short, long, RBO_P).unwrap();
        assert!((value - 1.0).abs() < 1e-12);
        assert_eq!(rbo(long, short, RBO_P), Some(value));
    }

    #[test]
    fn rbo_equals_the_rbo_package_of_pypi() {
        let letters =
            |text: &'static str| -> Vec<&str> { text.split("").filter(|l| !l.is_empty()).collect() };
        for (left, right, expected) in [
            ("abcdefg", "zcavwxy", 0.288_217_285_714_285_7),
            ("abcde", "bacfghij", 0.619_335),
            ("abc", "cab", 0.855),
        ] {
            let value = rbo(&letters(left), &letters(right), 0.9).unwrap();
            assert!((value - expected).abs() < 1e-9, "{left} {right}: {value}");
        }
    }

    #[test]
    fn rbo_refuses_a_persistence_outside_its_range_and_empty_pairs() {
        assert_eq!(rbo(&["a"], &["a"], 1.0), None);
        assert_eq!(rbo(&["a"], &["a"], f64::NAN), None);
        assert_eq!(rbo(&[], &[], RBO_P), None);
        assert_eq!(rbo(&[], &["a"], RBO_P), Some(0.0));
    }
}
