//! Reorders a list: MMR, diversifiers that use perspectives, and the windows of a listwise order by a language model.
//!
//! Pure functions of the relevances, similarities and verdicts of one list. Passages are numbered from 0 in the incoming order. Gold
//! labels must never come here. May use: nothing of this crate.

use std::ops::Range;

/// The number of passages at the top of a list that are reordered.
pub const POOL: usize = 100;

/// One pick, in the new order.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Pick {
    /// The passage, by its position in the incoming list, from 0.
    pub passage: usize,
    /// Its relevance, `Sim1`.
    pub relevance: f32,
    /// The most similar passage picked before, and their similarity `Sim2`; `None` for the first pick.
    pub closest: Option<(usize, f32)>,
    /// The value it was picked by.
    pub value: f32,
}

/// Maximal marginal relevance: `argmax λ·Sim1(d, q) − (1 − λ)·max_{s ∈ S} Sim2(d, s)`, one pick after another (Carbonell and Goldstein, 1998;
/// equation 1 of Chen and Choi, "Open-World Evaluation for Retrieving Diverse Perspectives").
///
/// Picks until the list is empty. Passages of equal value are picked in the incoming order. λ = 1 keeps the incoming order exactly, even
/// if the relevances do not fall.
///
/// ```
/// use parallax::rerank::mmr;
///
/// // The second passage copies the first, so the third, less relevant but different, comes before it.
/// let similarity = |a: usize, b: usize| if a.max(b) == 2 { 0.1 } else { 1.0 };
/// let picks = mmr(&[0.9, 0.8, 0.6], similarity, 0.5);
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

/// One choice of a diversifier, in the new order. xQuAD and PM-2 treat the perspectives as equally likely intents, and a detector's
/// probabilities as how well a passage serves each.
#[derive(Clone, Debug, PartialEq)]
pub struct Choice {
    /// The passage, by its position in the incoming list, from 0.
    pub passage: usize,
    /// Its relevance, from 0 to 1.
    pub relevance: f32,
    /// Its gain for each perspective.
    pub gains: Vec<f32>,
    /// The value it was chosen by.
    pub value: f32,
}

/// xQuAD (Santos et al., 2010): `argmax (1 − λ)·rel(d) + λ·Σ_i 1/m · P(d supports i)·Π_{s ∈ S}(1 − P(s supports i))`.
///
/// `supports` has a row of m probabilities per passage. With λ = 1, the next passage is the one that most raises the expected
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

/// PM-2 (Dang and Croft, 2012): gives seats to perspectives in proportion. The perspective with the greatest quotient `1/(2·seats + 1)`
/// is served next, with weight λ against 1 − λ for the others; a passage counts `rel(d)·P(d supports i)` for perspective i.
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

/// Chooses greedily by relevance and gains. `gains` receives a passage and, once, the previous choice.
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

/// The position of the greatest value; the first of equal ones.
fn first_greatest(items: &[usize], value: impl Fn(usize) -> f32) -> usize {
    let mut best = (0, f32::NEG_INFINITY);
    for (place, item) in items.iter().enumerate() {
        let value = value(*item);
        if value > best.1 {
            best = (place, value);
        }
    }
    best.0
}

/// The windows in which `count` passages are put in order by a model that reads `window` of them at a time: from the bottom of the list to
/// its top, each `step` above the one before, so that a good passage at the bottom can rise to the top (Sun et al., 2023).
///
/// ```
/// use parallax::rerank::windows;
///
/// assert_eq!(windows(45, 20, 10), [25..45, 15..35, 5..25, 0..15]);
/// assert_eq!(windows(3, 20, 10), [0..3]);
/// ```
pub fn windows(count: usize, window: usize, step: usize) -> Vec<Range<usize>> {
    let (mut end, mut all) = (count, Vec::new());
    while end > 0 {
        let start = end.saturating_sub(window.max(1));
        all.push(start..end);
        if start == 0 {
            break;
        }
        end -= step.clamp(1, window.max(1));
    }
    all
}

/// The order of `count` passages that a model's reply gives, such as `[2] > [1] > [3]`: places from 0. Of repeated numbers the first counts,
/// others than 1 to `count` are passed over, and passages that the reply leaves out follow in their own order. `None` without any number
/// of a passage.
pub fn permutation(reply: &str, count: usize) -> Option<Vec<usize>> {
    let numbers = |text: &str| -> Vec<usize> {
        let runs = text.split(|c: char| !c.is_ascii_digit()).filter_map(|run| run.parse::<usize>().ok());
        runs.filter(|number| (1..=count).contains(number)).map(|number| number - 1).collect()
    };
    // Prose around an order may hold other numbers: "the 10 passages".
    let bracketed = reply.split('[').skip(1).filter_map(|part| part.split_once(']'));
    let mut named: Vec<usize> = bracketed.flat_map(|(inside, _)| numbers(inside)).collect();
    if named.is_empty() {
        named = numbers(reply);
    }
    if named.is_empty() {
        return None;
    }
    let mut placed = vec![false; count];
    let mut order: Vec<usize> =
        named.into_iter().filter(|place| !std::mem::replace(&mut placed[*place], true)).collect();
    order.extend((0..count).filter(|place| !placed[*place]));
    Some(order)
}

/// Turns scores into relevances that can be compared with a cosine: divides them by `maximum`, by default the greatest score. If that is
/// not positive, spreads the scores from 0 to 1 instead. Does not clamp.
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

/// Relevances for a list without comparable scores, such as a merged one: `1 − (rank − 1)/100`.
pub fn by_rank(count: usize) -> Vec<f32> {
    (0..count).map(|i| 1.0 - i as f32 / POOL as f32).collect()
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
    fn mmr_matches_a_case_computed_by_hand() {
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
    fn a_lambda_of_zero_counts_similarity_only() {
        assert_eq!(order(&mmr(&[1.0, 0.95, 0.6], similarity, 0.0)), [0, 2, 1]);
        assert_eq!(order(&mmr(&[0.1, 0.95, 0.6], similarity, 0.0)), [0, 2, 1]);
    }

    #[test]
    fn equal_values_are_picked_in_the_incoming_order() {
        assert_eq!(order(&mmr(&[0.5, 0.5, 0.5, 0.5], |_, _| 0.3, 0.7)), [0, 1, 2, 3]);
    }

    #[test]
    fn a_single_passage_stays() {
        assert_eq!(order(&mmr(&[0.3], |_, _| 1.0, 0.2)), [0]);
    }

    fn chosen(choices: &[Choice]) -> Vec<usize> {
        choices.iter().map(|choice| choice.passage).collect()
    }

    /// Two for the first side, then one for the second, then one for neither.
    fn verdicts() -> Vec<Vec<f32>> {
        vec![vec![0.9, 0.0], vec![0.7, 0.1], vec![0.0, 0.7], vec![0.1, 0.1]]
    }

    #[test]
    fn xquad_moves_the_missing_side_up_as_computed_by_hand() {
        let choices = xquad(&[1.0, 0.9, 0.8, 0.7], &verdicts(), 1.0);
        assert_eq!(chosen(&choices)[..2], [0, 2]);
        // Half of .9 for the first; half of .7·1 for the second side, plus nothing for the first.
        assert!((choices[0].value - 0.45).abs() < 1e-6 && (choices[1].value - 0.35).abs() < 1e-6);
        // Then passage 1: half of (.7·.1 + .1·.3) = .05.
        assert_eq!(choices[2].passage, 1);
        assert!((choices[2].value - 0.05).abs() < 1e-6, "{}", choices[2].value);
    }

    #[test]
    fn xquad_without_a_weight_keeps_the_order() {
        assert_eq!(chosen(&xquad(&[0.1, 0.9, 0.8, 0.7], &verdicts(), 0.0)), [0, 1, 2, 3]);
    }

    #[test]
    fn pm2_alternates_sides_as_computed_by_hand() {
        let choices = pm2(&[1.0, 1.0, 1.0, 1.0], &verdicts(), 0.5);
        // Both quotients are 1 at first: .5·(.9 + 0) = .45 against .5·(.7 + .1) = .4.
        assert_eq!(chosen(&choices)[..2], [0, 2]);
        // Then the first side has one seat, its quotient is 1/3: .5·.7 = .35 against .5·(.7/3 + .1).
        assert!((choices[1].value - 0.35).abs() < 1e-6);
    }

    #[test]
    fn windows_go_from_the_bottom_to_the_top_and_none_is_left_out() {
        let hundred = windows(100, 20, 10);
        assert_eq!((hundred.len(), hundred[0].clone(), hundred[8].clone()), (9, 80..100, 0..20));
        assert_eq!(windows(25, 20, 10), [5..25, 0..15]);
        assert_eq!(windows(21, 20, 20), [1..21, 0..1]);
        assert_eq!(windows(4, 2, 5), [2..4, 0..2], "a step beyond the window would leave passages out");
        assert_eq!((windows(0, 20, 10).len(), windows(1, 0, 0)), (0, std::iter::once(0..1).collect()));
    }

    #[test]
    fn an_order_is_read_from_a_reply_and_what_it_leaves_out_follows() {
        for (reply, expected) in [
            ("[2] > [1] > [3]", Some(vec![1, 0, 2])),
            ("Of the 3 passages, this is the order: [3] > [1]", Some(vec![2, 0, 1])),
            ("[3, 2, 1]", Some(vec![2, 1, 0])),
            ("3 > 2", Some(vec![2, 1, 0])),
            ("[2] > [2] > [9] > [0] > [1]", Some(vec![1, 0, 2])),
            ("99999999999999999999999", None),
            ("None of them helps.", None),
            ("[", None),
            ("", None),
        ] {
            assert_eq!(permutation(reply, 3), expected, "{reply}");
        }
        assert_eq!(permutation("[1]", 0), None);
    }

    #[test]
    fn empty_perspectives_and_passages_are_handled() {
        let none = vec![Vec::new(); 3];
        assert_eq!(chosen(&xquad(&[0.3, 0.2, 0.1], &none, 0.5)), [0, 1, 2]);
        assert_eq!(chosen(&pm2(&[0.3, 0.2, 0.1], &none, 0.5)), [0, 1, 2]);
        assert_eq!(xquad(&[], &[], 0.5), []);
        assert_eq!(pm2(&[], &[], 0.5), []);
    }

    #[test]
    fn scores_are_shares_of_the_greatest_or_of_the_one_given() {
        assert_eq!(of_maximum(&[4.0, 2.0, -1.0], None), [1.0, 0.5, -0.25]);
        assert_eq!(of_maximum(&[4.0, 2.0], Some(8.0)), [0.5, 0.25]);
    }

    #[test]
    fn scores_that_are_never_positive_are_spread_from_zero_to_one() {
        assert_eq!(of_maximum(&[-1.0, -2.0, -3.0], None), [1.0, 0.5, 0.0]);
        assert_eq!(of_maximum(&[0.0, 0.0], None), [1.0, 1.0]);
        assert_eq!(of_maximum(&[], None), [0.0f32; 0]);
    }

    #[test]
    fn a_merged_list_falls_by_one_hundredth_per_rank() {
        assert_eq!(by_rank(3), [1.0, 0.99, 0.98]);
    }
}
