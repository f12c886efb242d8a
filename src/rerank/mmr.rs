//! Maximal marginal relevance: `argmax λ·Sim1(d, q) − (1 − λ)·max_{s ∈ S} Sim2(d, s)`, one pick after another.
//!
//! Carbonell and Goldstein (1998), as equation 1 of Chen and Choi, "Open-World Evaluation for Retrieving Diverse Perspectives".

/// One pick, in the new order.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Pick {
    /// Which passage of the incoming list, from 0.
    pub passage: usize,
    /// Its relevance, `Sim1`.
    pub relevance: f32,
    /// The picked passage it is closest to, and how close, `Sim2`; none for the first pick.
    pub closest: Option<(usize, f32)>,
    /// What it was picked for.
    pub value: f32,
}

/// Picks until the pool is empty; equal values are picked in the incoming order. λ = 1 keeps the incoming order exactly,
/// whatever the relevances are.
///
/// ```
/// use parallax::rerank::mmr;
///
/// // The second passage is a copy of the first: the third, less relevant and different, comes before it.
/// let likeness = |a: usize, b: usize| if a.max(b) == 2 { 0.1 } else { 1.0 };
/// let picks = mmr(&[0.9, 0.8, 0.6], likeness, 0.5);
/// assert_eq!(picks.iter().map(|pick| pick.passage).collect::<Vec<_>>(), [0, 2, 1]);
/// ```
pub fn mmr(relevance: &[f32], similarity: impl Fn(usize, usize) -> f32, lambda: f32) -> Vec<Pick> {
    let mut closest: Vec<Option<(usize, f32)>> = vec![None; relevance.len()];
    let mut left: Vec<usize> = (0..relevance.len()).collect();
    let mut picks = Vec::with_capacity(relevance.len());
    let value = |passage: usize, closest: Option<(usize, f32)>| {
        lambda * relevance[passage] - (1.0 - lambda) * closest.map_or(0.0, |(_, similarity)| similarity)
    };
    while !left.is_empty() {
        let mut best = 0;
        if lambda < 1.0 {
            for i in 1..left.len() {
                if value(left[i], closest[left[i]]) > value(left[best], closest[left[best]]) {
                    best = i;
                }
            }
        }
        let passage = left.remove(best);
        let value = value(passage, closest[passage]);
        picks.push(Pick { passage, relevance: relevance[passage], closest: closest[passage], value });
        for other in &left {
            let similar = similarity(*other, passage);
            if closest[*other].is_none_or(|(_, nearest)| similar > nearest) {
                closest[*other] = Some((passage, similar));
            }
        }
    }
    picks
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Passages 0 and 1 say the same, 2 says something else.
    fn similarity(a: usize, b: usize) -> f32 {
        [[1.0, 0.9, 0.1], [0.9, 1.0, 0.2], [0.1, 0.2, 1.0]][a][b]
    }

    fn order(picks: &[Pick]) -> Vec<usize> {
        picks.iter().map(|pick| pick.passage).collect()
    }

    #[test]
    fn the_case_worked_by_hand() {
        let picks = mmr(&[1.0, 0.95, 0.6], similarity, 0.5);
        // .5·.95 − .5·.9 = .025 for passage 1; .5·.6 − .5·.1 = .25 for passage 2.
        assert_eq!(order(&picks), [0, 2, 1]);
        assert!((picks[0].value - 0.5).abs() < 1e-6 && (picks[1].value - 0.25).abs() < 1e-6);
        assert_eq!(picks[1].closest, Some((0, 0.1)));
        // Passage 1 is closer to 0 than to 2.
        assert_eq!(picks[2].closest, Some((0, 0.9)));
        assert!((picks[2].value - 0.025).abs() < 1e-6);
    }

    #[test]
    fn a_lambda_of_one_keeps_any_order_exactly() {
        for relevance in [vec![1.0, 0.95, 0.6], vec![0.2, 0.9, 0.5], vec![f32::NAN, 1.0, 2.0], vec![]] {
            let expected: Vec<usize> = (0..relevance.len()).collect();
            assert_eq!(order(&mmr(&relevance, similarity, 1.0)), expected);
        }
    }

    #[test]
    fn a_lambda_of_nought_looks_at_nothing_but_likeness() {
        assert_eq!(order(&mmr(&[1.0, 0.95, 0.6], similarity, 0.0)), [0, 2, 1]);
        assert_eq!(order(&mmr(&[0.1, 0.95, 0.6], similarity, 0.0)), [0, 2, 1]);
    }

    #[test]
    fn equal_values_are_picked_in_the_incoming_order() {
        assert_eq!(order(&mmr(&[0.5, 0.5, 0.5, 0.5], |_, _| 0.3, 0.7)), [0, 1, 2, 3]);
    }

    #[test]
    fn one_passage_is_its_own_order() {
        assert_eq!(order(&mmr(&[0.3], |_, _| 1.0, 0.2)), [0]);
    }
}
