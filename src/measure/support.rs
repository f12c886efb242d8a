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
