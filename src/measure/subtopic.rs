//! StRecall, P_IA and ERR_IA: the subtopic measures of TREC's `ndeval`, perspectives for subtopics.
//!
//! The denominator is always m, the question's full list. ndeval counts only the subtopics that have a
//! relevant passage in the qrels; on complete qrels the two agree.

use super::support::{Measured, PerspectiveCount, SupportSet, covered, top};

/// ndeval's fixed chance that a reader is satisfied by one passage on a perspective.
const ERR_SATISFACTION: f64 = 0.5;

/// StRecall@k (Zhai, Cohen & Lafferty 2003): |V| / m.
pub fn subtopic_recall(ranked: &[Option<SupportSet>], m: PerspectiveCount, k: usize) -> Measured<f64> {
    let seen = covered(ranked, m, k).value.len();
    Measured::over(ranked, k, seen as f64 / m.get() as f64)
}

/// P_IA@k (Agrawal et al. 2009, each perspective equally likely): P@k for each perspective, averaged.
///
/// Passages not returned count as nothing. `k = 0` gives 0.
pub fn precision_ia(ranked: &[Option<SupportSet>], m: PerspectiveCount, k: usize) -> Measured<f64> {
    let supports: usize = top(ranked, k).iter().flatten().map(|&set| m.within(set).len()).sum();
    let places = (k.max(1) * m.get()) as f64;
    Measured::over(ranked, k, supports as f64 / places)
}

/// ERR_IA@k (Chapelle et al. 2011) over binary labels, divided by the value of a ranking whose every
/// passage supports everything, as ndeval divides it.
///
/// At k = 1 ndeval forgets the division and can exceed 1; here every k is divided.
pub fn err_ia(ranked: &[Option<SupportSet>], m: PerspectiveCount, k: usize) -> Measured<f64> {
    let reading = |index: usize| 1.0 / (index as f64 + 1.0);
    let gains = gains(top(ranked, k), m, ERR_SATISFACTION);
    let gained: f64 = gains.iter().enumerate().map(|(index, gain)| gain * reading(index)).sum();
    let mut unmet = m.get() as f64;
    let mut best = 0.0;
    for index in 0..k {
        best += unmet * reading(index);
        unmet *= 1.0 - ERR_SATISFACTION;
    }
    let value = if best > 0.0 { gained / best } else { 0.0 };
    Measured::over(ranked, k, value)
}

/// The novelty-discounted gain of each passage: Σ over its perspectives of `(1 − alpha)^times seen before`
/// (Clarke et al. 2008).
pub(super) fn gains(ranked: &[Option<SupportSet>], m: PerspectiveCount, alpha: f64) -> Vec<f64> {
    let mut worth = vec![1.0; m.get()];
    ranked
        .iter()
        .map(|set| {
            let mut gain = 0.0;
            for perspective in m.within(set.unwrap_or_default()).iter() {
                gain += worth[perspective];
                worth[perspective] *= 1.0 - alpha;
            }
            gain
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::super::support::labels;
    use super::*;

    fn count(m: usize) -> PerspectiveCount {
        PerspectiveCount::new(m).unwrap()
    }

    /// The example in pyndeval's README: A supports a, D supports b, E nothing, B supports b; c is missed.
    fn readme() -> Vec<Option<SupportSet>> {
        labels(&[&[1], &[2], &[], &[2]])
    }

    #[test]
    fn the_readme_of_pyndeval_is_reproduced() {
        let (ranked, m) = (readme(), count(3));
        assert!((err_ia(&ranked, m, 5).value - 0.3933).abs() < 5e-5);
        assert!((err_ia(&ranked, m, 20).value - 0.3907).abs() < 5e-5);
        assert!((precision_ia(&ranked, m, 5).value - 0.2).abs() < 1e-12);
        assert!((precision_ia(&ranked, m, 20).value - 0.05).abs() < 1e-12);
        assert!((subtopic_recall(&ranked, m, 5).value - 2.0 / 3.0).abs() < 1e-12);
    }

    #[test]
    fn a_side_nobody_judged_a_passage_for_halves_subtopic_recall() {
        let ranked = labels(&[&[1], &[], &[], &[], &[]]);
        assert_eq!(subtopic_recall(&ranked, count(2), 5).value, 0.5);
    }

    #[test]
    fn err_ia_at_one_is_divided_too() {
        let ranked = labels(&[&[1, 2, 3]]);
        assert_eq!(err_ia(&ranked, count(3), 1).value, 1.0);
    }

    #[test]
    fn supporting_everything_everywhere_is_the_most_there_is() {
        let ranked = labels(&[&[1, 2], &[1, 2], &[1, 2]]);
        assert!((err_ia(&ranked, count(2), 3).value - 1.0).abs() < 1e-12);
        assert_eq!(precision_ia(&ranked, count(2), 3).value, 1.0);
    }

    #[test]
    fn unjudged_passages_gain_nothing_and_are_counted_beside() {
        let ranked = [None, Some(SupportSet::of([0]).unwrap())];
        let found = subtopic_recall(&ranked, count(2), 2);
        assert_eq!((found.value, found.judged, found.of), (0.5, 1, 2));
        assert_eq!(err_ia(&ranked, count(2), 1).value, 0.0);
    }

    #[test]
    fn nothing_asked_is_worth_nothing() {
        let (ranked, m) = (readme(), count(3));
        assert_eq!(subtopic_recall(&ranked, m, 0).value, 0.0);
        assert_eq!(precision_ia(&ranked, m, 0).value, 0.0);
        assert_eq!(err_ia(&ranked, m, 0).value, 0.0);
    }
}
