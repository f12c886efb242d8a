//! A retriever's scores as relevances that a re-ranker can weigh against a cosine.

use super::POOL;

/// The scores divided by `maximum`, by default the greatest of this question. Where that is not positive, the scores are spread
/// from 0 to 1 instead. Nothing is clamped.
pub fn of_maximum(scores: &[f32], maximum: Option<f32>) -> Vec<f32> {
    let greatest = scores.iter().copied().fold(f32::NEG_INFINITY, f32::max);
    let maximum = maximum.unwrap_or(greatest);
    if maximum > 0.0 {
        return scores.iter().map(|score| score / maximum).collect();
    }
    let least = scores.iter().copied().fold(f32::INFINITY, f32::min);
    let range = greatest - least;
    scores.iter().map(|score| if range > 0.0 { (score - least) / range } else { 1.0 }).collect()
}

/// For a list whose scores cannot be compared, such as one merged from several: `1 − (rank − 1)/100`.
pub fn by_rank(count: usize) -> Vec<f32> {
    (0..count).map(|i| 1.0 - i as f32 / POOL as f32).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn scores_are_shares_of_the_greatest_or_of_the_one_given() {
        assert_eq!(of_maximum(&[4.0, 2.0, -1.0], None), [1.0, 0.5, -0.25]);
        assert_eq!(of_maximum(&[4.0, 2.0], Some(8.0)), [0.5, 0.25]);
    }

    #[test]
    fn scores_that_are_never_positive_are_spread_from_nought_to_one() {
        assert_eq!(of_maximum(&[-1.0, -2.0, -3.0], None), [1.0, 0.5, 0.0]);
        assert_eq!(of_maximum(&[0.0, 0.0], None), [1.0, 1.0]);
        assert_eq!(of_maximum(&[], None), [0.0f32; 0]);
    }

    #[test]
    fn a_merged_list_falls_by_a_hundredth_a_rank() {
        assert_eq!(by_rank(3), [1.0, 0.99, 0.98]);
    }
}
