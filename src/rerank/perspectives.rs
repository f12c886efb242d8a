//! Diversifiers that take the question's perspectives for intents and a detector's probabilities for how well a passage serves
//! each: xQuAD (Santos et al., 2010) and PM-2 (Dang and Croft, 2012), with every perspective as likely as any other.

/// One choice, in the new order.
#[derive(Clone, Debug, PartialEq)]
pub struct Choice {
    /// Which passage of the incoming list, from 0.
    pub passage: usize,
    /// Its relevance, from 0 to 1.
    pub relevance: f32,
    /// What it adds for each perspective.
    pub gains: Vec<f32>,
    /// What it was chosen for.
    pub value: f32,
}

/// xQuAD: `argmax (1 − λ)·rel(d) + λ·Σ_i 1/m · P(d supports i)·Π_{s ∈ S}(1 − P(s supports i))`.
///
/// `supports` has a row of m probabilities a passage. With λ = 1, the next passage is the one that most raises the expected
/// number of perspectives covered. λ = 0 keeps the incoming order exactly.
pub fn xquad(relevance: &[f32], supports: &[Vec<f32>], lambda: f32) -> Vec<Choice> {
    let perspectives = supports.first().map_or(0, Vec::len);
    let mut missing = vec![1.0f32; perspectives];
    choose(relevance, lambda, |passage, chosen| {
        if let Some(chosen) = chosen {
            for (missing, p) in missing.iter_mut().zip(&supports[chosen]) {
                *missing *= 1.0 - p;
            }
        }
        let share = 1.0 / perspectives.max(1) as f32;
        missing.iter().zip(&supports[passage]).map(|(missing, p)| share * p * missing).collect()
    })
}

/// PM-2: seats are given to perspectives in proportion. The perspective with the greatest quotient `1/(2·seats + 1)` is served
/// next, weighted λ against 1 − λ for all others; a passage counts `rel(d)·P(d supports i)` for perspective i.
pub fn pm2(relevance: &[f32], supports: &[Vec<f32>], lambda: f32) -> Vec<Choice> {
    let perspectives = supports.first().map_or(0, Vec::len);
    let mut seats = vec![0f32; perspectives];
    let mut left: Vec<usize> = (0..relevance.len()).collect();
    let mut choices = Vec::with_capacity(left.len());
    while !left.is_empty() {
        let quotients: Vec<f32> = seats.iter().map(|seats| 1.0 / (2.0 * seats + 1.0)).collect();
        let served =
            (0..perspectives).fold(0, |best, i| if quotients[i] > quotients[best] { i } else { best });
        let gains = |passage: usize| -> Vec<f32> {
            let weight = |i: usize| if i == served { lambda } else { 1.0 - lambda };
            let counts = |i: usize| relevance[passage].max(0.0) * supports[passage][i];
            (0..perspectives).map(|i| weight(i) * quotients[i] * counts(i)).collect()
        };
        let value = |passage: usize| gains(passage).iter().sum::<f32>();
        let best = first_greatest(&left, value);
        let passage = left.remove(best);
        let total: f32 = supports[passage].iter().sum();
        for (seats, p) in seats.iter_mut().zip(&supports[passage]).filter(|_| total > 0.0) {
            *seats += p / total;
        }
        let (gains, value) = (gains(passage), value(passage));
        choices.push(Choice { passage, relevance: relevance[passage], gains, value });
    }
    choices
}

/// Greedy choice by relevance and gains; `gains` hears of the choice before it, once.
fn choose(
    relevance: &[f32],
    lambda: f32,
    mut gains: impl FnMut(usize, Option<usize>) -> Vec<f32>,
) -> Vec<Choice> {
    let mut left: Vec<usize> = (0..relevance.len()).collect();
    let mut choices: Vec<Choice> = Vec::with_capacity(left.len());
    let mut last = None;
    while !left.is_empty() {
        let all: Vec<Vec<f32>> = left.iter().map(|passage| gains(*passage, last.take())).collect();
        let value = |i: usize| (1.0 - lambda) * relevance[left[i]] + lambda * all[i].iter().sum::<f32>();
        let places: Vec<usize> = (0..left.len()).collect();
        let best = if lambda > 0.0 { first_greatest(&places, value) } else { 0 };
        let (value, gains) = (value(best), all[best].clone());
        let passage = left.remove(best);
        last = Some(passage);
        choices.push(Choice { passage, relevance: relevance[passage], gains, value });
    }
    choices
}

/// The place of the greatest value, the first of equals.
fn first_greatest(of: &[usize], value: impl Fn(usize) -> f32) -> usize {
    let mut best = (0, f32::NEG_INFINITY);
    for (place, item) in of.iter().enumerate() {
        let value = value(*item);
        if value > best.1 {
            best = (place, value);
        }
    }
    best.0
}

#[cfg(test)]
mod tests {
    use super::*;

    fn order(choices: &[Choice]) -> Vec<usize> {
        choices.iter().map(|choice| choice.passage).collect()
    }

    /// Two for the first side, then one for the second, then one for neither.
    fn verdicts() -> Vec<Vec<f32>> {
        vec![vec![0.9, 0.0], vec![0.7, 0.1], vec![0.0, 0.7], vec![0.1, 0.1]]
    }

    #[test]
    fn xquad_worked_by_hand_brings_the_missing_side_up() {
        let choices = xquad(&[1.0, 0.9, 0.8, 0.7], &verdicts(), 1.0);
        assert_eq!(order(&choices)[..2], [0, 2]);
        // Half of .9 for the first; half of .7·1 for the second side, plus nothing for the first.
        assert!((choices[0].value - 0.45).abs() < 1e-6 && (choices[1].value - 0.35).abs() < 1e-6);
        // Then passage 1: half of (.7·.1 + .1·.3) = .05.
        assert_eq!(choices[2].passage, 1);
        assert!((choices[2].value - 0.05).abs() < 1e-6, "{}", choices[2].value);
    }

    #[test]
    fn xquad_without_a_weight_keeps_the_order() {
        assert_eq!(order(&xquad(&[0.1, 0.9, 0.8, 0.7], &verdicts(), 0.0)), [0, 1, 2, 3]);
    }

    #[test]
    fn pm2_worked_by_hand_serves_the_sides_in_turn() {
        let choices = pm2(&[1.0, 1.0, 1.0, 1.0], &verdicts(), 0.5);
        // Both quotients are 1 at first: .5·(.9 + 0) = .45 against .5·(.7 + .1) = .4.
        assert_eq!(order(&choices)[..2], [0, 2]);
        // Then the first side has one seat, its quotient is 1/3: .5·.7 = .35 against .5·(.7/3 + .1).
        assert!((choices[1].value - 0.35).abs() < 1e-6);
    }

    #[test]
    fn no_perspectives_and_no_passages_are_no_trouble() {
        let none = vec![Vec::new(); 3];
        assert_eq!(order(&xquad(&[0.3, 0.2, 0.1], &none, 0.5)), [0, 1, 2]);
        assert_eq!(order(&pm2(&[0.3, 0.2, 0.1], &none, 0.5)), [0, 1, 2]);
        assert_eq!(xquad(&[], &[], 0.5), []);
        assert_eq!(pm2(&[], &[], 0.5), []);
    }
}
