//! Which perspectives a passage supports, and which the top `k` covers.
//!
//! Perspectives are numbered from 0 here and from 1 in files. A passage that is not judged is `None`, never an empty set, so that every
//! measure can say how many of its passages were judged.

use thiserror::Error;

/// The most perspectives that a question may have; BERDS's largest has 42.
pub const MAX_PERSPECTIVES: usize = 128;

/// Why a number of perspectives, or the number of one, cannot be used.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum PerspectiveError {
    /// The question has no perspectives.
    #[error("expected at least one perspective, found none")]
    NoPerspectives,
    /// The question has more than [`MAX_PERSPECTIVES`].
    #[error("expected at most {MAX_PERSPECTIVES} perspectives, found {0}")]
    TooMany(usize),
    /// An index, from 0, is too great for a set.
    #[error("expected a perspective below {MAX_PERSPECTIVES} (counted from 0), found {0}")]
    OutOfRange(usize),
}

/// The set of perspectives one passage supports; empty means judged and supporting none.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct SupportSet(u128);

impl SupportSet {
    /// The set of a passage that supports nothing.
    pub const EMPTY: Self = Self(0);

    /// The set of the given perspectives, from 0.
    ///
    /// # Errors
    /// [`PerspectiveError::OutOfRange`] for an index of [`MAX_PERSPECTIVES`] or more.
    pub fn of(perspectives: impl IntoIterator<Item = usize>) -> Result<Self, PerspectiveError> {
        perspectives.into_iter().try_fold(Self::EMPTY, Self::with)
    }

    /// This set and one more perspective, from 0.
    ///
    /// # Errors
    /// [`PerspectiveError::OutOfRange`] for an index of [`MAX_PERSPECTIVES`] or more.
    pub fn with(self, perspective: usize) -> Result<Self, PerspectiveError> {
        if perspective < MAX_PERSPECTIVES {
            Ok(Self(self.0 | 1 << perspective))
        } else {
            Err(PerspectiveError::OutOfRange(perspective))
        }
    }

    /// Whether the perspective, from 0, is supported.
    pub fn contains(self, perspective: usize) -> bool {
        perspective < MAX_PERSPECTIVES && self.0 >> perspective & 1 == 1
    }

    /// How many perspectives are supported.
    pub fn len(self) -> usize {
        self.0.count_ones() as usize
    }

    /// Whether no perspective is supported.
    pub fn is_empty(self) -> bool {
        self.0 == 0
    }

    /// The perspectives that either set holds.
    pub fn union(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }

    /// The supported perspectives, ascending, from 0.
    pub fn iter(self) -> impl Iterator<Item = usize> {
        let mut left = self.0;
        std::iter::from_fn(move || {
            let lowest = (left != 0).then(|| left.trailing_zeros() as usize);
            // Clears the lowest bit; 0 stays 0.
            left &= left.wrapping_sub(1);
            lowest
        })
    }
}

/// m: the length of a question's *full* list of perspectives, 1 to [`MAX_PERSPECTIVES`].
///
/// It is never the number of perspectives with a judged passage. Tools that take the list from the qrels report full coverage even if no
/// passage of a side was judged.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct PerspectiveCount(usize);

impl PerspectiveCount {
    /// # Errors
    /// For 0 and for more than [`MAX_PERSPECTIVES`].
    pub fn new(m: usize) -> Result<Self, PerspectiveError> {
        match m {
            0 => Err(PerspectiveError::NoPerspectives),
            1..=MAX_PERSPECTIVES => Ok(Self(m)),
            _ => Err(PerspectiveError::TooMany(m)),
        }
    }

    /// m as a number.
    pub fn get(self) -> usize {
        self.0
    }

    /// The part of `set` that belongs to the question. A label for a perspective that was removed must not count towards coverage.
    pub fn within(self, set: SupportSet) -> SupportSet {
        SupportSet(set.0 & (u128::MAX >> (MAX_PERSPECTIVES - self.0)))
    }
}

/// A value with the number of judged passages it rests on, for `2/5 judged`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Measured<T> {
    /// The value; unjudged passages count as supporting nothing.
    pub value: T,
    /// The judged passages of the top k.
    pub judged: usize,
    /// All passages of the top k; less than k if fewer were returned.
    pub of: usize,
}

impl<T> Measured<T> {
    /// Counts the judged passages of the top `k` and adds them to `value`.
    pub fn over(ranked: &[Option<SupportSet>], k: usize, value: T) -> Self {
        let top = top(ranked, k);
        Self { value, judged: top.iter().flatten().count(), of: top.len() }
    }
}

/// The first `k`, or all if there are fewer.
pub(super) fn top<T>(ranked: &[T], k: usize) -> &[T] {
    &ranked[..k.min(ranked.len())]
}

/// V: the perspectives that at least one of the top `k` supports (BERDS §3); \|V\| is its `len()`.
pub fn covered(ranked: &[Option<SupportSet>], m: PerspectiveCount, k: usize) -> Measured<SupportSet> {
    let union = top(ranked, k).iter().flatten().fold(SupportSet::EMPTY, |seen, &set| seen.union(set));
    Measured::over(ranked, k, m.within(union))
}

/// For tests: the sets of `[&[1], &[], &[2]]`, with perspectives counted from 1.
#[cfg(test)]
pub(super) fn labels(passages: &[&[usize]]) -> Vec<Option<SupportSet>> {
    passages.iter().map(|set| Some(SupportSet::of(set.iter().map(|p| p - 1)).unwrap())).collect()
}

pub mod compare {
    //! Compares two rankings of one question: Jaccard and rank-biased overlap.
    //!
    //! Rankings are lists of distinct passage ids, best first. Two empty rankings cannot be compared: the result is `None`, never 0 or 1.

    use std::collections::HashSet;

    use super::top;

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
            let overlap =
                overlaps(&["a", "b", "c", "d", "e", "f", "g"], &["z", "c", "a", "v", "w", "x", "y"]);
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
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_set_holds_the_first_and_the_last_perspective() {
        let set = SupportSet::of([0, 127]).unwrap();
        assert!(set.contains(0) && set.contains(127) && !set.contains(1));
        assert_eq!(set.iter().collect::<Vec<_>>(), [0, 127]);
        assert_eq!(set.len(), 2);
    }

    #[test]
    fn a_perspective_beyond_the_last_is_refused_and_never_contained() {
        assert_eq!(SupportSet::of([128]), Err(PerspectiveError::OutOfRange(128)));
        assert!(!SupportSet::of([0]).unwrap().contains(128));
    }

    #[test]
    fn a_question_has_between_one_and_128_perspectives() {
        assert_eq!(PerspectiveCount::new(0), Err(PerspectiveError::NoPerspectives));
        assert_eq!(PerspectiveCount::new(128).unwrap().get(), 128);
        assert_eq!(PerspectiveCount::new(129), Err(PerspectiveError::TooMany(129)));
    }

    #[test]
    fn a_label_for_a_perspective_the_question_no_longer_has_covers_nothing() {
        let m = PerspectiveCount::new(2).unwrap();
        let ranked = labels(&[&[3], &[1]]);
        assert_eq!(covered(&ranked, m, 2).value.len(), 1);
    }

    #[test]
    fn an_unjudged_passage_supports_nothing_and_shows_in_the_count() {
        let m = PerspectiveCount::new(2).unwrap();
        let mut ranked = labels(&[&[1], &[2], &[2]]);
        ranked[1] = None;
        let seen = covered(&ranked, m, 2);
        assert_eq!((seen.value.len(), seen.judged, seen.of), (1, 1, 2));
    }

    #[test]
    fn fewer_passages_than_asked_are_all_there_is() {
        let m = PerspectiveCount::new(2).unwrap();
        let seen = covered(&labels(&[&[1]]), m, 5);
        assert_eq!((seen.judged, seen.of), (1, 1));
    }
}
