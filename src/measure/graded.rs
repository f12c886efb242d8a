//! trec_eval's measures over graded judgments: nDCG, P, R, AP, RR and Judged.
//!
//! A passage is relevant if its grade is at least `rel` (1 unless the name says otherwise; TREC DL uses 2). An unjudged passage is not
//! relevant. A question without a relevant passage scores 0, as in trec_eval.

use std::collections::BTreeMap;

use super::support::top;

/// The grades of a ranking's passages, and of all judged passages of the question.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GradedRanking {
    grades: Vec<Option<i32>>,
    judged: Vec<i32>,
}

impl GradedRanking {
    /// Looks the passages up in the question's judgments. The ranking must not repeat an id.
    pub fn new<'a>(ranking: impl IntoIterator<Item = &'a str>, judgments: &BTreeMap<String, i32>) -> Self {
        let mut judged: Vec<i32> = judgments.values().copied().collect();
        judged.sort_unstable_by(|left, right| right.cmp(left));
        Self { grades: ranking.into_iter().map(|id| judgments.get(id).copied()).collect(), judged }
    }

    /// Grades in rank order; `None` is unjudged.
    pub fn grades(&self) -> &[Option<i32>] {
        &self.grades
    }

    /// The grades of every judged passage of the question, retrieved or not, highest first.
    pub fn ideal(&self) -> &[i32] {
        &self.judged
    }

    /// The number of judged passages with a grade of at least `rel`.
    pub fn relevant(&self, rel: i32) -> usize {
        self.judged.iter().filter(|&&grade| grade >= rel).count()
    }

    fn relevant_in_top(&self, rel: i32, k: usize) -> usize {
        top(&self.grades, k).iter().flatten().filter(|&&grade| grade >= rel).count()
    }
}

fn share(part: usize, whole: usize) -> f64 {
    if whole == 0 { 0.0 } else { part as f64 / whole as f64 }
}

/// P@k: the relevant passages of the top `k` divided by `k`, however many were returned.
pub fn precision(ranking: &GradedRanking, rel: i32, k: usize) -> f64 {
    share(ranking.relevant_in_top(rel, k), k)
}

/// R@k: the relevant passages of the top `k` divided by all relevant ones.
pub fn recall(ranking: &GradedRanking, rel: i32, k: usize) -> f64 {
    share(ranking.relevant_in_top(rel, k), ranking.relevant(rel))
}

/// AP: the sum of the precision at each relevant passage of the top `k` (of all, if `None`), divided by the number of relevant passages.
pub fn average_precision(ranking: &GradedRanking, rel: i32, k: Option<usize>) -> f64 {
    let relevant = ranking.relevant(rel);
    if relevant == 0 {
        return 0.0;
    }
    let mut found = 0;
    let mut sum = 0.0;
    let ranks = top(&ranking.grades, k.unwrap_or(usize::MAX));
    for (index, grade) in ranks.iter().enumerate() {
        if grade.is_some_and(|grade| grade >= rel) {
            found += 1;
            sum += share(found, index + 1);
        }
    }
    sum / relevant as f64
}

/// RR: one divided by the rank of the first relevant passage of the top `k` (of all, if `None`); 0 if there is none.
pub fn reciprocal_rank(ranking: &GradedRanking, rel: i32, k: Option<usize>) -> f64 {
    top(&ranking.grades, k.unwrap_or(usize::MAX))
        .iter()
        .position(|grade| grade.is_some_and(|grade| grade >= rel))
        .map_or(0.0, |index| share(1, index + 1))
}

/// Judged@k: the share of the returned top `k` that has a judgment of any grade.
///
/// The denominator is the number of returned passages and not k, as in ir_measures. An empty list gives 0.
pub fn judged(ranking: &GradedRanking, k: usize) -> f64 {
    let returned = top(&ranking.grades, k);
    share(returned.iter().flatten().count(), returned.len())
}

/// The weight of a gain at this index (from 0): `1 / log2(rank + 1)`.
pub(super) fn discount(index: usize) -> f64 {
    1.0 / (index as f64 + 2.0).log2()
}

fn dcg(grades: impl Iterator<Item = i32>) -> f64 {
    grades.enumerate().map(|(index, grade)| f64::from(grade.max(0)) * discount(index)).sum()
}

/// nDCG@k (Järvelin & Kekäläinen 2002, with trec_eval's linear gains); over all ranks if `k` is `None`.
///
/// The ideal ranking has all judged passages, retrieved or not. Negative grades gain nothing.
/// If no grade is positive, the value is 0.
pub fn ndcg(ranking: &GradedRanking, k: Option<usize>) -> f64 {
    let k = k.unwrap_or(usize::MAX);
    let ideal = dcg(top(ranking.ideal(), k).iter().copied());
    if ideal == 0.0 {
        return 0.0;
    }
    let gained = top(ranking.grades(), k).iter().map(|grade| grade.unwrap_or(0));
    dcg(gained) / ideal
}

pub mod subtopic {
    //! ndeval's measures with perspectives as subtopics: StRecall, P_IA, ERR_IA and alpha_nDCG.
    //!
    //! The denominator is always m, the length of the question's full list of perspectives. ndeval counts only the subtopics that have a
    //! relevant passage in the qrels; on complete qrels the two agree.

    use crate::measure::graded::discount;
    use crate::measure::name::Alpha;
    use crate::measure::support::{Measured, PerspectiveCount, SupportSet, covered, top};

    /// ndeval's fixed probability that one passage on a perspective satisfies a reader.
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
    /// At k = 1 ndeval omits the division and can exceed 1; here every k is divided.
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
    pub fn gains(ranked: &[Option<SupportSet>], m: PerspectiveCount, alpha: f64) -> Vec<f64> {
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

    /// A judged passage: its id, which breaks ties in the ideal order, and what it supports.
    pub type Pooled<'a> = (&'a str, SupportSet);

    /// alpha_nDCG@k with binary labels, the ideal made from `pool`, as `ndeval` and ir_measures compute it.
    ///
    /// The ideal order is greedy (the exact one is NP-hard), so a ranking better than the greedy one scores slightly above 1. It is not
    /// clamped, because the other tools do not clamp either. A perspective that no passage of the pool supports changes nothing.
    /// An empty pool, or `k = 0`, gives 0.
    pub fn alpha_ndcg(
        ranked: &[Option<SupportSet>],
        pool: &[Pooled<'_>],
        m: PerspectiveCount,
        alpha: Alpha,
        k: usize,
    ) -> Measured<f64> {
        let ideal: Vec<Option<SupportSet>> =
            ideal_order(pool, m, alpha, k).into_iter().map(|index| Some(pool[index].1)).collect();
        let best = discounted(&ideal, m, alpha);
        let value = if best > 0.0 { discounted(top(ranked, k), m, alpha) / best } else { 0.0 };
        Measured::over(ranked, k, value)
    }

    fn discounted(ranked: &[Option<SupportSet>], m: PerspectiveCount, alpha: Alpha) -> f64 {
        gains(ranked, m, alpha.get()).iter().enumerate().map(|(index, gain)| gain * discount(index)).sum()
    }

    /// The indices in `pool` of the first `depth` passages of the greedy ideal order.
    ///
    /// Ties go to the greater id in byte order, as in ndeval. The rule matters, because it changes later gains.
    pub fn ideal_order(pool: &[Pooled<'_>], m: PerspectiveCount, alpha: Alpha, depth: usize) -> Vec<usize> {
        let mut worth = vec![1.0; m.get()];
        let mut left: Vec<usize> = (0..pool.len()).collect();
        let mut order = Vec::with_capacity(depth.min(pool.len()));
        while order.len() < depth {
            let gain = |index: usize| -> f64 {
                let supported = m.within(pool[index].1);
                supported.iter().map(|p| worth[p]).sum()
            };
            let best = (0..left.len()).max_by(|&one, &other| {
                let (one, other) = (left[one], left[other]);
                gain(one).total_cmp(&gain(other)).then_with(|| pool[one].0.cmp(pool[other].0))
            });
            let Some(best) = best else { break };
            let index = left.swap_remove(best);
            for perspective in m.within(pool[index].1).iter() {
                worth[perspective] *= 1.0 - alpha.get();
            }
            order.push(index);
        }
        order
    }

    #[cfg(test)]
    mod tests {
        use super::*;
        use crate::measure::support::labels;

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

        fn set(perspectives: &[usize]) -> SupportSet {
            SupportSet::of(perspectives.iter().map(|p| p - 1)).unwrap()
        }

        fn half() -> Alpha {
            Alpha::default()
        }

        #[test]
        fn the_readme_of_pyndeval_is_reproduced_for_alpha_ndcg() {
            let pool = [("A", set(&[1])), ("B", set(&[2])), ("D", set(&[2])), ("C", set(&[3]))];
            let ranked = labels(&[&[1], &[2], &[], &[2]]);
            let value = alpha_ndcg(&ranked, &pool, count(3), half(), 5).value;
            // The README cuts its digits off instead of rounding them.
            assert!((value - 0.7868).abs() < 1e-4, "{value}");
        }

        #[test]
        fn ten_ranks_of_a_case_of_our_own_equal_ir_measures() {
            // ir_measures 0.4.3 with pyndeval 0.0.8; see tools/measures/compare_ir_measures.py --worked.
            let pool = WORKED.map(|(id, perspectives)| (id, set(perspectives)));
            let ranked: Vec<_> = ["d3", "d9", "d1", "d6", "d2", "d4"]
                .iter()
                .map(|id| pool.iter().find(|(other, _)| other == id).map(|p| p.1))
                .collect();
            let value = alpha_ndcg(&ranked, &pool, count(3), half(), 10).value;
            assert!((value - WORKED_VALUE).abs() < 1e-6, "{value}");
        }

        const WORKED: [(&str, &[usize]); 6] =
            [("d1", &[1, 2]), ("d2", &[1]), ("d3", &[3]), ("d4", &[2, 3]), ("d5", &[1]), ("d6", &[])];
        const WORKED_VALUE: f64 = 0.726_713_054_700_848_1;

        #[test]
        fn hearing_the_same_side_twice_is_worth_less_than_hearing_both() {
            let pool = [("a", set(&[1])), ("b", set(&[1])), ("c", set(&[2]))];
            let same = alpha_ndcg(&labels(&[&[1], &[1]]), &pool, count(2), half(), 2);
            let both = alpha_ndcg(&labels(&[&[1], &[2]]), &pool, count(2), half(), 2);
            assert!(same.value < both.value);
            assert_eq!(both.value, 1.0);
        }

        #[test]
        fn ties_in_the_ideal_go_to_the_greater_id() {
            let pool = [("a", set(&[1])), ("b", set(&[2])), ("c", set(&[1]))];
            assert_eq!(ideal_order(&pool, count(2), half(), 3), [2, 1, 0]);
        }

        #[test]
        fn an_order_cleverer_than_the_greedy_one_exceeds_one() {
            let pool = [("x", set(&[2, 3, 4, 5])), ("y", set(&[1, 2, 3])), ("z", set(&[4, 5, 6]))];
            let all = Alpha::new(1.0).unwrap();
            let ranked = labels(&[&[1, 2, 3], &[4, 5, 6]]);
            assert!(alpha_ndcg(&ranked, &pool, count(6), all, 2).value > 1.0);
        }

        #[test]
        fn an_empty_pool_or_no_ranks_give_zero() {
            let ranked = labels(&[&[1]]);
            assert_eq!(alpha_ndcg(&ranked, &[], count(2), half(), 5).value, 0.0);
            let pool = [("a", set(&[1]))];
            assert_eq!(alpha_ndcg(&ranked, &pool, count(2), half(), 0).value, 0.0);
            assert_eq!(alpha_ndcg(&[], &pool, count(2), half(), 5).value, 0.0);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ranking(ids: &[&str]) -> GradedRanking {
        let judgments =
            [("a", 3), ("b", 1), ("c", 0), ("d", 2)].map(|(id, grade)| (id.to_owned(), grade)).into();
        GradedRanking::new(ids.iter().copied(), &judgments)
    }

    #[test]
    fn precision_divides_by_k_even_if_fewer_were_returned() {
        let ranking = ranking(&["a", "c", "x", "b"]);
        assert_eq!(precision(&ranking, 1, 4), 0.5);
        assert_eq!(precision(&ranking, 1, 10), 0.2);
        assert_eq!(precision(&ranking, 2, 4), 0.25);
        assert_eq!(precision(&ranking, 1, 0), 0.0);
    }

    #[test]
    fn recall_divides_by_all_relevant_passages_at_the_asked_grade() {
        let ranking = ranking(&["a", "c", "x", "b"]);
        assert_eq!(recall(&ranking, 1, 100), 2.0 / 3.0);
        assert_eq!(recall(&ranking, 2, 100), 0.5);
        assert_eq!(recall(&ranking, 4, 100), 0.0);
    }

    #[test]
    fn average_precision_is_the_hand_worked_sum() {
        let ranking = ranking(&["x", "a", "c", "b"]);
        let expected = (1.0 / 2.0 + 2.0 / 4.0) / 3.0;
        assert!((average_precision(&ranking, 1, None) - expected).abs() < 1e-12);
        assert!((average_precision(&ranking, 1, Some(2)) - 0.5 / 3.0).abs() < 1e-12);
        assert!((average_precision(&ranking, 2, None) - 0.25).abs() < 1e-12);
    }

    #[test]
    fn reciprocal_rank_heeds_grade_and_cut_off() {
        let ranking = ranking(&["x", "b", "c", "d"]);
        assert_eq!(reciprocal_rank(&ranking, 1, None), 0.5);
        assert_eq!(reciprocal_rank(&ranking, 2, None), 0.25);
        assert_eq!(reciprocal_rank(&ranking, 2, Some(3)), 0.0);
    }

    #[test]
    fn judged_counts_grade_zero_and_divides_by_what_was_returned() {
        let ranking = ranking(&["c", "x", "a"]);
        assert_eq!(judged(&ranking, 2), 0.5);
        assert_eq!(judged(&ranking, 10), 2.0 / 3.0);
    }

    #[test]
    fn nothing_returned_or_nothing_judged_scores_zero() {
        let empty = ranking(&[]);
        let unjudged = GradedRanking::new(["a"], &BTreeMap::new());
        for ranking in [&empty, &unjudged] {
            assert_eq!(precision(ranking, 1, 5), 0.0);
            assert_eq!(recall(ranking, 1, 5), 0.0);
            assert_eq!(average_precision(ranking, 1, None), 0.0);
            assert_eq!(reciprocal_rank(ranking, 1, None), 0.0);
            assert_eq!(judged(ranking, 5), 0.0);
        }
    }

    fn judgments(grades: &[(&str, i32)]) -> BTreeMap<String, i32> {
        grades.iter().map(|&(id, grade)| (id.to_owned(), grade)).collect()
    }

    #[test]
    fn the_gain_is_the_grade_itself_and_not_two_to_its_power() {
        let ranking = GradedRanking::new(["b", "a"], &judgments(&[("a", 3), ("b", 1)]));
        let discount_2 = 1.0 / 3f64.log2();
        let expected = (1.0 + 3.0 * discount_2) / (3.0 + discount_2);
        assert!((ndcg(&ranking, Some(2)) - expected).abs() < 1e-12);
    }

    #[test]
    fn the_documented_case_of_ir_measures_holds() {
        // README of ir_measures: D0 (grade 0) before D1 (grade 1).
        let ranking = GradedRanking::new(["D0", "D1"], &judgments(&[("D0", 0), ("D1", 1)]));
        assert!((ndcg(&ranking, Some(10)) - 0.630_929_753_571_457_5).abs() < 1e-12);
    }

    #[test]
    fn a_relevant_passage_never_retrieved_still_counts_in_the_ideal() {
        let ranking = GradedRanking::new(["a"], &judgments(&[("a", 1), ("b", 1)]));
        assert!(ndcg(&ranking, Some(2)) < 1.0);
        assert_eq!(ndcg(&ranking, Some(1)), 1.0);
        assert!(ndcg(&ranking, None) < 1.0);
    }

    #[test]
    fn a_negative_grade_neither_gains_nor_costs() {
        let ranking = GradedRanking::new(["s", "a"], &judgments(&[("a", 1), ("s", -2)]));
        assert!((ndcg(&ranking, None) - discount(1)).abs() < 1e-12);
    }

    #[test]
    fn without_anything_relevant_the_value_is_zero() {
        let ranking = GradedRanking::new(["a"], &judgments(&[("a", 0)]));
        assert_eq!(ndcg(&ranking, Some(10)), 0.0);
        assert_eq!(ndcg(&ranking, Some(0)), 0.0);
    }
}
