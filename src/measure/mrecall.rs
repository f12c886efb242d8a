//! MRecall: did the top `k` cover the perspectives? (BERDS §3 and Table 6)

use super::support::{Measured, PerspectiveCount, SupportSet, covered};

/// How deep BERDS looks for a cover and for the union of several lanes.
pub const DEEPEST: usize = 100;

/// MRecall@k (BERDS §3): 1 if the top `k` covers `min(m, k)` perspectives, else 0.
///
/// `m` is the question's full list. Not monotone in `k` while `m > k`: a second passage raises what is
/// asked for. `k = 0` gives 0.
///
/// ```
/// use parallax::measure::{PerspectiveCount, SupportSet, mrecall::mrecall};
///
/// // The first passage supports one side of two, the third the other.
/// let ranked = [Some(SupportSet::of([0])?), Some(SupportSet::EMPTY), Some(SupportSet::of([1])?)];
/// let two = PerspectiveCount::new(2)?;
/// assert_eq!(mrecall(&ranked, two, 2).value, 0.0);
/// assert_eq!(mrecall(&ranked, two, 3).value, 1.0);
/// # Ok::<(), parallax::measure::PerspectiveError>(())
/// ```
pub fn mrecall(ranked: &[Option<SupportSet>], m: PerspectiveCount, k: usize) -> Measured<f64> {
    let asked_for = m.get().min(k);
    let reached = k > 0 && covered(ranked, m, k).value.len() >= asked_for;
    Measured::over(ranked, k, f64::from(u8::from(reached)))
}

/// Union MRecall (BERDS Table 6): 1 if the top `depth` of several lanes together cover all m.
///
/// `judged` and `of` are sums over the lanes, so a passage two lanes share counts twice there.
pub fn union_mrecall(lanes: &[&[Option<SupportSet>]], m: PerspectiveCount, depth: usize) -> Measured<f64> {
    let mut union = SupportSet::EMPTY;
    let (mut judged, mut of) = (0, 0);
    for ranked in lanes {
        let seen = covered(ranked, m, depth);
        union = union.union(seen.value);
        judged += seen.judged;
        of += seen.of;
    }
    Measured { value: f64::from(u8::from(union.len() == m.get())), judged, of }
}

#[cfg(test)]
mod tests {
    use super::super::support::labels;
    use super::*;

    fn mrecall_of(m: usize, k: usize, passages: &[&[usize]]) -> f64 {
        mrecall(&labels(passages), PerspectiveCount::new(m).unwrap(), k).value
    }

    #[test]
    fn one_side_of_two_is_no_success() {
        assert_eq!(mrecall_of(2, 2, &[&[1], &[]]), 0.0);
    }

    #[test]
    fn success_at_one_can_be_lost_at_two_and_regained_at_three() {
        let ranking: &[&[usize]] = &[&[1], &[], &[2]];
        assert_eq!(mrecall_of(2, 1, ranking), 1.0);
        assert_eq!(mrecall_of(2, 2, ranking), 0.0);
        assert_eq!(mrecall_of(2, 3, ranking), 1.0);
    }

    #[test]
    fn both_sides_by_two_passages_or_by_one_succeed() {
        assert_eq!(mrecall_of(2, 2, &[&[1], &[2]]), 1.0);
        assert_eq!(mrecall_of(2, 2, &[&[1, 2], &[]]), 1.0);
    }

    #[test]
    fn with_more_perspectives_than_passages_k_of_them_are_enough() {
        assert_eq!(mrecall_of(4, 2, &[&[1], &[3]]), 1.0);
        assert_eq!(mrecall_of(4, 2, &[&[1, 2, 3], &[]]), 1.0);
        assert_eq!(mrecall_of(4, 2, &[&[1], &[1]]), 0.0);
    }

    #[test]
    fn four_of_forty_two_in_five_passages_fail() {
        assert_eq!(mrecall_of(42, 5, &[&[1], &[2], &[3], &[4], &[4]]), 0.0);
        assert_eq!(mrecall_of(42, 5, &[&[1], &[2], &[3], &[4], &[42]]), 1.0);
    }

    #[test]
    fn a_perspective_without_any_judged_passage_still_counts_in_the_denominator() {
        assert_eq!(mrecall_of(2, 5, &[&[1], &[], &[], &[], &[]]), 0.0);
    }

    #[test]
    fn nothing_asked_or_nothing_returned_is_no_success() {
        assert_eq!(mrecall_of(2, 0, &[&[1, 2]]), 0.0);
        assert_eq!(mrecall_of(2, 5, &[]), 0.0);
    }

    #[test]
    fn two_lanes_cover_together_what_neither_covers_alone() {
        let (left, right) = (labels(&[&[1]]), labels(&[&[], &[2]]));
        let m = PerspectiveCount::new(2).unwrap();
        let union = union_mrecall(&[&left, &right], m, DEEPEST);
        assert_eq!((union.value, union.judged, union.of), (1.0, 3, 3));
        assert_eq!(union_mrecall(&[&left, &right], m, 1).value, 0.0);
        assert_eq!(union_mrecall(&[], m, DEEPEST).value, 0.0);
    }

    #[test]
    fn the_union_asks_for_all_perspectives_even_beyond_the_depth() {
        let lane = labels(&[&[1], &[2]]);
        let m = PerspectiveCount::new(3).unwrap();
        assert_eq!(union_mrecall(&[&lane], m, 2).value, 0.0);
    }
}
