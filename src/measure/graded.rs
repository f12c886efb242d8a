//! P, R, AP, RR and Judged over graded qrels, as trec_eval counts them.
//!
//! "Relevant" is a grade of at least `rel` (1 unless the name says otherwise; TREC DL counts from 2). An
//! unjudged passage is not relevant. A question without a relevant passage scores 0, as in trec_eval.

use std::collections::BTreeMap;

use super::support::top;

/// A ranking with the grade of each passage, and the grades of everything judged for the question.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GradedRanking {
    grades: Vec<Option<i32>>,
    judged: Vec<i32>,
}

impl GradedRanking {
    /// Looks the passages up in the question's judgements. The ranking must not repeat an id.
    pub fn new<'a>(ranking: impl IntoIterator<Item = &'a str>, judgements: &BTreeMap<String, i32>) -> Self {
        let mut judged: Vec<i32> = judgements.values().copied().collect();
        judged.sort_unstable_by(|left, right| right.cmp(left));
        Self { grades: ranking.into_iter().map(|id| judgements.get(id).copied()).collect(), judged }
    }

    /// Grades in rank order; `None` is unjudged.
    pub fn grades(&self) -> &[Option<i32>] {
        &self.grades
    }

    /// The grades of every judged passage of the question, retrieved or not, highest first.
    pub fn ideal(&self) -> &[i32] {
        &self.judged
    }

    /// How many judged passages have a grade of at least `rel`.
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

/// P@k: relevant passages of the top `k`, over `k`, however many were returned.
pub fn precision(ranking: &GradedRanking, rel: i32, k: usize) -> f64 {
    share(ranking.relevant_in_top(rel, k), k)
}

/// R@k: relevant passages of the top `k`, over all relevant ones.
pub fn recall(ranking: &GradedRanking, rel: i32, k: usize) -> f64 {
    share(ranking.relevant_in_top(rel, k), ranking.relevant(rel))
}

/// AP: precision at each relevant passage of the top `k` (all, if `None`), summed over all relevant ones.
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

/// RR: one over the rank of the first relevant passage of the top `k` (of all, if `None`); else 0.
pub fn reciprocal_rank(ranking: &GradedRanking, rel: i32, k: Option<usize>) -> f64 {
    top(&ranking.grades, k.unwrap_or(usize::MAX))
        .iter()
        .position(|grade| grade.is_some_and(|grade| grade >= rel))
        .map_or(0.0, |index| share(1, index + 1))
}

/// Judged@k: the share of the returned top `k` that has a judgement of any grade.
///
/// Over what was returned, not over k, as ir_measures has it; nothing returned gives 0.
pub fn judged(ranking: &GradedRanking, k: usize) -> f64 {
    let returned = top(&ranking.grades, k);
    share(returned.iter().flatten().count(), returned.len())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ranking(ids: &[&str]) -> GradedRanking {
        let judgements =
            [("a", 3), ("b", 1), ("c", 0), ("d", 2)].map(|(id, grade)| (id.to_owned(), grade)).into();
        GradedRanking::new(ids.iter().copied(), &judgements)
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
}
