//! Prec: how many of the passages support anything at all? (BERDS §3)

use super::support::{Measured, PerspectiveCount, SupportSet, top};

/// Prec@k (BERDS §3): the share of `k` passages that support any perspective of the question.
///
/// Passages that were not returned, and passages not judged, count as supporting none. `k = 0` gives 0.
pub fn prec(ranked: &[Option<SupportSet>], m: PerspectiveCount, k: usize) -> Measured<f64> {
    let supporting = top(ranked, k).iter().flatten().filter(|&&set| !m.within(set).is_empty()).count();
    let share = if k == 0 { 0.0 } else { supporting as f64 / k as f64 };
    Measured::over(ranked, k, share)
}

#[cfg(test)]
mod tests {
    use super::super::support::labels;
    use super::*;

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
}
