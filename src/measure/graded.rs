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
