//! BERDS's measures: whether the top `k` covers the perspectives (MRecall), the share of it that supports any perspective (Prec), and the
//! depth at which all perspectives are covered (Cover).

use super::support::{Measured, PerspectiveCount, SupportSet, covered, top};

/// The depth to which BERDS looks for a cover and for the union of several lanes.
pub const DEEPEST: usize = 100;

/// MRecall@k (BERDS §3): 1 if the top `k` covers `min(m, k)` perspectives, else 0.
///
/// `m` counts the question's full list of perspectives. While `m > k`, the value may fall as `k` grows, because `min(m, k)` grows too.
/// `k = 0` gives 0.
///
/// ```
/// use parallax::measure::{PerspectiveCount, SupportSet, coverage::mrecall};
///
/// // The first passage supports one side of two, the third the other.
/// let ranked = [Some(SupportSet::of([0])?), Some(SupportSet::EMPTY), Some(SupportSet::of([1])?)];
/// let two = PerspectiveCount::new(2)?;
/// assert_eq!(mrecall(&ranked, two, 2).value, 0.0);
/// assert_eq!(mrecall(&ranked, two, 3).value, 1.0);
/// # Ok::<(), parallax::measure::PerspectiveError>(())
/// ```
pub fn mrecall(ranked: &[Option<SupportSet>], m: PerspectiveCount, k: usize) -> Measured<f64> {
    let needed = m.get().min(k);
    let reached = k > 0 && covered(ranked, m, k).value.len() >= needed;
    Measured::over(ranked, k, f64::from(u8::from(reached)))
}

/// Union MRecall (BERDS Table 6): 1 if the top `depth` of several lanes together cover all m.
///
/// `judged` and `of` are sums over the lanes, so a passage that two lanes share counts twice in them.
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

/// Prec@k (BERDS §3): the share of `k` passages that support any perspective of the question.
///
/// Passages that were not returned, and passages not judged, count as supporting none. `k = 0` gives 0.
pub fn prec(ranked: &[Option<SupportSet>], m: PerspectiveCount, k: usize) -> Measured<f64> {
    let supporting = top(ranked, k).iter().flatten().filter(|&&set| !m.within(set).is_empty()).count();
    let share = if k == 0 { 0.0 } else { supporting as f64 / k as f64 };
    Measured::over(ranked, k, share)
}

/// The result of looking for a cover in the first [`DEEPEST`] passages of one ranking.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Cover {
    /// The smallest k at which |V| = m; `None` if the passages looked at do not cover.
    pub at: Option<usize>,
    /// The number of passages looked at: `at`, or all up to [`DEEPEST`].
    pub looked_at: usize,
    /// The number of those that were judged.
    pub judged: usize,
}

/// Cover: the smallest k ≤ 100 at which all m perspectives are covered.
///
/// It requires |V| = m. MRecall@k = 1 is not enough, because at k < m it requires only k of them.
pub fn cover(ranked: &[Option<SupportSet>], m: PerspectiveCount) -> Cover {
    let ranked = top(ranked, DEEPEST);
    let mut seen = SupportSet::EMPTY;
    let at = ranked.iter().position(|set| {
        seen = seen.union(m.within(set.unwrap_or_default()));
        seen.len() == m.get()
    });
    let at = at.map(|index| index + 1);
    let looked = &ranked[..at.unwrap_or(ranked.len())];
    Cover { at, looked_at: looked.len(), judged: looked.iter().flatten().count() }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::measure::support::labels;

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

    fn prec_of(m: usize, k: usize, passages: &[&[usize]]) -> f64 {
        prec(&labels(passages), PerspectiveCount::new(m).unwrap(), k).value
    }

    #[test]
    fn one_supporting_passage_of_two_is_a_half() {
        assert_eq!(prec_of(2, 2, &[&[1], &[]]), 0.5);
        assert_eq!(prec_of(2, 2, &[&[1], &[2]]), 1.0);
    }

    #[test]
    fn a_passage_for_both_sides_counts_once() {
        assert_eq!(prec_of(2, 2, &[&[1, 2], &[]]), 0.5);
    }

    #[test]
    fn passages_not_returned_count_as_nothing() {
        assert_eq!(prec_of(2, 5, &[&[1], &[2]]), 0.4);
        assert_eq!(prec_of(2, 5, &[]), 0.0);
        assert_eq!(prec_of(2, 0, &[&[1]]), 0.0);
    }

    #[test]
    fn support_for_a_perspective_the_question_does_not_have_is_none() {
        assert_eq!(prec_of(2, 1, &[&[3]]), 0.0);
    }

    #[test]
    fn unjudged_passages_are_counted_beside() {
        let mut ranked = labels(&[&[1], &[2]]);
        ranked[0] = None;
        let share = prec(&ranked, PerspectiveCount::new(2).unwrap(), 2);
        assert_eq!((share.value, share.judged, share.of), (0.5, 1, 2));
    }

    fn two() -> PerspectiveCount {
        PerspectiveCount::new(2).unwrap()
    }

    #[test]
    fn the_cover_is_where_the_second_side_first_appears() {
        let found = cover(&labels(&[&[1], &[], &[2], &[2]]), two());
        assert_eq!(found.at, Some(3));
        assert_eq!((found.looked_at, found.judged), (3, 3));
    }

    #[test]
    fn k_of_m_perspectives_are_no_cover() {
        let m = PerspectiveCount::new(4).unwrap();
        assert_eq!(cover(&labels(&[&[1], &[3]]), m).at, None);
    }

    #[test]
    fn a_cover_at_rank_101_is_none() {
        let mut ranked = labels(&[&[1]]);
        ranked.extend(vec![Some(SupportSet::EMPTY); 98]);
        ranked.extend(labels(&[&[2]]));
        assert_eq!(cover(&ranked, two()).at, Some(100));
        ranked.insert(1, Some(SupportSet::EMPTY));
        let beyond = cover(&ranked, two());
        assert_eq!((beyond.at, beyond.looked_at), (None, 100));
    }

    #[test]
    fn an_unjudged_passage_before_the_cover_is_not_counted_as_judged() {
        let mut ranked = labels(&[&[1], &[], &[2]]);
        ranked[1] = None;
        let found = cover(&ranked, two());
        assert_eq!((found.at, found.judged), (Some(3), 2));
    }
}
