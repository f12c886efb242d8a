//! nDCG with linear gains and log2 discount, as trec_eval's `ndcg` and `ndcg_cut`.

use super::graded::GradedRanking;
use super::support::top;

/// What a gain at this index (from 0) is worth: `1 / log2(rank + 1)`.
pub(super) fn discount(index: usize) -> f64 {
    1.0 / (index as f64 + 2.0).log2()
}

fn dcg(grades: impl Iterator<Item = i32>) -> f64 {
    grades.enumerate().map(|(index, grade)| f64::from(grade.max(0)) * discount(index)).sum()
}

/// nDCG@k (Järvelin & Kekäläinen 2002, with trec_eval's linear gains); over all ranks if `k` is `None`.
///
/// The ideal ranking is made of everything judged, retrieved or not. Negative grades gain nothing.
/// Without a positive grade the value is 0.
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
    use std::collections::BTreeMap;

    use super::*;

    fn judgements(grades: &[(&str, i32)]) -> BTreeMap<String, i32> {
        grades.iter().map(|&(id, grade)| (id.to_owned(), grade)).collect()
    }

    #[test]
    fn the_gain_is_the_grade_itself_and_not_two_to_its_power() {
        let ranking = GradedRanking::new(["b", "a"], &judgements(&[("a", 3), ("b", 1)]));
        let discount_2 = 1.0 / 3f64.log2();
        let expected = (1.0 + 3.0 * discount_2) / (3.0 + discount_2);
        assert!((ndcg(&ranking, Some(2)) - expected).abs() < 1e-12);
    }

    #[test]
    fn the_documented_case_of_ir_measures_holds() {
        // README of ir_measures: D0 (grade 0) before D1 (grade 1).
        let ranking = GradedRanking::new(["D0", "D1"], &judgements(&[("D0", 0), ("D1", 1)]));
        assert!((ndcg(&ranking, Some(10)) - 0.630_929_753_571_457_5).abs() < 1e-12);
    }

    #[test]
    fn a_relevant_passage_never_retrieved_still_counts_in_the_ideal() {
        let ranking = GradedRanking::new(["a"], &judgements(&[("a", 1), ("b", 1)]));
        assert!(ndcg(&ranking, Some(2)) < 1.0);
        assert_eq!(ndcg(&ranking, Some(1)), 1.0);
        assert!(ndcg(&ranking, None) < 1.0);
    }

    #[test]
    fn a_negative_grade_neither_gains_nor_costs() {
        let ranking = GradedRanking::new(["s", "a"], &judgements(&[("a", 1), ("s", -2)]));
        assert!((ndcg(&ranking, None) - discount(1)).abs() < 1e-12);
    }

    #[test]
    fn without_anything_relevant_the_value_is_zero() {
        let ranking = GradedRanking::new(["a"], &judgements(&[("a", 0)]));
        assert_eq!(ndcg(&ranking, Some(10)), 0.0);
        assert_eq!(ndcg(&ranking, Some(0)), 0.0);
    }
}
