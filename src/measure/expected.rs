//! The expectation of a measure under a judge's probabilities. Labels correct this prediction ([`super::ppi`]).

use super::intervals::{Bounds, Trial};
use super::seeded::SplitMix64;
use super::{PerspectiveCount, SupportSet};

/// The judge's probabilities that a passage supports the statements.
#[derive(Clone, Debug, PartialEq)]
pub enum Chances {
    /// A probability for each statement, independent of each other.
    Each(Vec<f64>),
    /// For two opposite statements: that it supports the first only, the second only, both, neither.
    Two([f64; 4]),
}

/// The most outcomes of a list that are enumerated.
const ENUMERATED: usize = 4_096;
/// The number of draws for lists with more outcomes.
const DRAWS: usize = 2_000;

impl Chances {
    /// The sets of statements that the passage may support, with their probabilities; `None` if they are too many to list.
    fn outcomes(&self) -> Option<Vec<(SupportSet, f64)>> {
        let set = |sides: &[usize]| SupportSet::of(sides.iter().copied()).unwrap_or(SupportSet::EMPTY);
        let all = match self {
            Chances::Two([first, second, both, neither]) => {
                vec![(set(&[0]), *first), (set(&[1]), *second), (set(&[0, 1]), *both), (set(&[]), *neither)]
            }
            Chances::Each(p) if p.len() > 6 => return None,
            Chances::Each(p) => (0..1usize << p.len())
                .map(|chosen| {
                    let is = |i: usize| chosen >> i & 1 == 1;
                    let sides: Vec<usize> = (0..p.len()).filter(|i| is(*i)).collect();
                    let chance = |(i, p): (usize, &f64)| if is(i) { *p } else { 1.0 - p };
                    (set(&sides), p.iter().enumerate().map(chance).product())
                })
                .collect(),
        };
        Some(all.into_iter().filter(|(_, chance)| *chance > 0.0).collect())
    }

    /// The probability that the passage supports the statement of that number, from 0.
    pub fn mean(&self, statement: usize) -> f64 {
        match self {
            Chances::Each(p) => p.get(statement).copied().unwrap_or(0.0),
            Chances::Two([first, second, both, _]) => {
                [first, second].get(statement).map_or(0.0, |only| *only + both)
            }
        }
    }

    /// Draws what the passage supports. Takes one random number for two opposite statements, else one for each statement, so that one
    /// more statement does not change the draws of the others.
    pub(super) fn draw(&self, rng: &mut SplitMix64) -> SupportSet {
        let mut uniform = || rng.below(1 << 30) as f64 / f64::from(1 << 30);
        match self {
            Chances::Each(p) => p.iter().enumerate().fold(SupportSet::EMPTY, |set, (i, p)| {
                if uniform() < *p { set.with(i).unwrap_or(set) } else { set }
            }),
            Chances::Two([first, second, both, _]) => {
                let at = uniform();
                let sides: &[usize] = if at < *first {
                    &[0]
                } else if at < first + second {
                    &[1]
                } else if at < first + second + both {
                    &[0, 1]
                } else {
                    &[]
                };
                SupportSet::of(sides.iter().copied()).unwrap_or(SupportSet::EMPTY)
            }
        }
    }
}

/// The expectation of a measure of a list under the judge's probabilities; passages are independent. Enumerates all outcomes if there
/// are few, else averages over seeded draws. `None` in the list is a passage that was not judged. Returns `None` if an outcome has no
/// value.
pub fn expected(
    list: &[Option<Chances>],
    measure: impl Fn(&[Option<SupportSet>]) -> Option<f64>,
) -> Option<f64> {
    let mut sets: Vec<Option<SupportSet>> =
        list.iter().map(|row| row.as_ref().map(|_| SupportSet::EMPTY)).collect();
    let outcomes: Option<Vec<_>> =
        list.iter().map(|row| row.as_ref().map_or(Some(Vec::new()), Chances::outcomes)).collect();
    let number =
        |all: &Vec<Vec<_>>| all.iter().try_fold(1usize, |product, own| product.checked_mul(own.len().max(1)));
    match outcomes.filter(|all| number(all).is_some_and(|number| number <= ENUMERATED)) {
        Some(all) => {
            let (mut sum, mut at) = (0.0, vec![0usize; all.len()]);
            loop {
                let mut chance = 1.0;
                for ((own, at), set) in all.iter().zip(&at).zip(&mut sets) {
                    if let Some((one, p)) = own.get(*at) {
                        (*set, chance) = (Some(*one), chance * p);
                    }
                }
                sum += chance * measure(&sets)?;
                // Go to the next outcome, as an odometer counts.
                let turned = at.iter_mut().zip(&all).any(|(at, own)| {
                    *at += 1;
                    let more = *at < own.len();
                    *at *= usize::from(more);
                    more
                });
                if !turned {
                    return Some(sum);
                }
            }
        }
        None => {
            let (mut rng, mut sum) = (SplitMix64::new(0), 0.0);
            for _ in 0..DRAWS {
                for (row, set) in list.iter().zip(&mut sets) {
                    *set = row.as_ref().map(|row| row.draw(&mut rng));
                }
                sum += measure(&sets)?;
            }
            Some(sum / DRAWS as f64)
        }
    }
}

/// The number of statements up to which the sets of covered statements are enumerated.
const MANY: usize = 6;

/// The probability of every set of statements that a list covers, exactly. `None` if there are more than six statements and a passage's
/// probabilities are not independent of each other.
pub fn coverage(list: &[Option<Chances>], m: PerspectiveCount) -> Option<Vec<(SupportSet, f64)>> {
    if m.get() > MANY {
        return None;
    }
    let bits = |set: SupportSet| m.within(set).iter().fold(0usize, |bits, i| bits | 1 << i);
    let mut all = vec![0.0; 1 << m.get()];
    all[0] = 1.0;
    for row in list.iter().flatten() {
        let mut next = vec![0.0; all.len()];
        for (set, chance) in row.outcomes()? {
            for (covered, p) in all.iter().enumerate().filter(|(_, p)| **p > 0.0) {
                next[covered | bits(set)] += p * chance;
            }
        }
        all = next;
    }
    let set = |covered: usize| SupportSet::of((0..m.get()).filter(|i| covered >> i & 1 == 1)).ok();
    all.into_iter().enumerate().map(|(covered, p)| Some((set(covered)?, p))).collect()
}

impl Chances {
    /// The probability that the passage supports a statement.
    pub fn supports(&self, statement: usize) -> f64 {
        match self {
            Chances::Each(p) => p.get(statement).copied().unwrap_or(0.0),
            Chances::Two([first, second, both, _]) => both + [*first, *second].get(statement).unwrap_or(&0.0),
        }
    }

    /// The probability that it supports any statement.
    pub fn supports_any(&self) -> f64 {
        match self {
            Chances::Each(p) => 1.0 - p.iter().map(|p| 1.0 - p).product::<f64>(),
            Chances::Two([first, second, both, _]) => first + second + both,
        }
    }
}

/// A question's list, judged by the judge and by gold labels.
#[derive(Clone, Debug)]
pub struct Compared {
    /// The number of perspectives.
    pub m: PerspectiveCount,
    /// The judge's probabilities for each passage.
    pub judged: Vec<Option<Chances>>,
    /// What each passage supports by gold labels.
    pub gold: Vec<Option<SupportSet>>,
}

/// The number of replicates behind a trial's interval.
const REPLICATES: usize = 400;

/// Tries whether intervals from a judge's probabilities hold the gold mean. Each split is a random half of the questions, drawn with the
/// split's number as seed. Its trial has the mean of the measure by gold labels, and the middle `level` of replicates in which the
/// questions are drawn with replacement and every passage from its probabilities.
pub fn trials(
    questions: &[Compared],
    splits: u64,
    level: f64,
    measure: impl Fn(&[Option<SupportSet>], PerspectiveCount) -> f64,
) -> Vec<Trial> {
    let half = questions.len().div_ceil(2);
    let mut made = Vec::new();
    for seed in 0..splits {
        let mut rng = SplitMix64::new(seed);
        let mut order: Vec<usize> = (0..questions.len()).collect();
        rng.shuffle(&mut order);
        let split: Vec<&Compared> = order.iter().take(half).map(|at| &questions[*at]).collect();
        if split.is_empty() {
            continue;
        }
        let truth = split.iter().map(|one| measure(&one.gold, one.m)).sum::<f64>() / half as f64;
        let mut means: Vec<f64> = (0..REPLICATES)
            .map(|_| {
                let mut draw = || {
                    let one = split[rng.below(split.len())];
                    let sets: Vec<Option<SupportSet>> =
                        one.judged.iter().map(|row| row.as_ref().map(|row| row.draw(&mut rng))).collect();
                    measure(&sets, one.m)
                };
                (0..half).map(|_| draw()).sum::<f64>() / half as f64
            })
            .collect();
        means.sort_unstable_by(f64::total_cmp);
        let at = |share: f64| means[((means.len() - 1) as f64 * share).round() as usize];
        let tail = (1.0 - level) / 2.0;
        made.push(Trial { interval: Bounds { low: at(tail), high: at(1.0 - tail) }, truth });
    }
    made
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::measure::PerspectiveCount;
    use crate::measure::coverage::{mrecall, prec};

    #[test]
    fn the_expectation_of_a_list_is_exact_where_its_outcomes_can_be_counted() {
        let m = PerspectiveCount::new(2).unwrap();
        let sides = |p: [f64; 4]| Some(Chances::Two(p));
        let list = [sides([0.5, 0.2, 0.1, 0.2]), None, sides([0.1, 0.6, 0.0, 0.3])];
        // Both sides: 1 − P(no first) − P(no second) + P(neither at all).
        let both = 1.0 - 0.4 * 0.9 - 0.7 * 0.4 + 0.2 * 0.3;
        let made = expected(&list, |sets| Some(mrecall(sets, m, 5).value)).unwrap();
        assert!((made - both).abs() < 1e-12, "{made}");
        let share = expected(&list, |sets| Some(prec(sets, m, 5).value)).unwrap();
        assert!((share - (0.8 + 0.7) / 5.0).abs() < 1e-12);
        let each = [Some(Chances::Each(vec![0.5, 0.4]))];
        assert!((expected(&each, |sets| Some(mrecall(sets, m, 5).value)).unwrap() - 0.2).abs() < 1e-12);
        assert_eq!(expected(&each, |_| None), None);
        assert_eq!(expected(&[], |sets| Some(sets.len() as f64)), Some(0.0));
    }

    #[test]
    fn a_long_list_is_drawn_with_a_seed() {
        let m = PerspectiveCount::new(2).unwrap();
        let list = vec![Some(Chances::Two([0.1, 0.1, 0.0, 0.8])); 20];
        let made = || expected(&list, |sets| Some(mrecall(sets, m, 20).value)).unwrap();
        let both = 1.0 - 2.0 * 0.9f64.powi(20) + 0.8f64.powi(20);
        assert!((made() - both).abs() < 0.03 && made() == made(), "{}", made());
        let many = vec![Some(Chances::Each(vec![0.25; 8])); 3];
        let share =
            expected(&many, |sets| Some(prec(sets, PerspectiveCount::new(8).unwrap(), 3).value)).unwrap();
        assert!((share - (1.0 - 0.75f64.powi(8))).abs() < 0.03, "{share}");
    }

    /// Questions whose gold labels are drawn from the probabilities themselves, or from others.
    fn compared(questions: usize, seed: u64, truth: [f64; 4], judged: [f64; 4]) -> Vec<Compared> {
        let mut rng = SplitMix64::new(seed);
        let one = |_| Compared {
            m: PerspectiveCount::new(2).unwrap(),
            judged: vec![Some(Chances::Two(judged)); 5],
            gold: (0..5).map(|_| Some(Chances::Two(truth).draw(&mut rng))).collect(),
        };
        (0..questions).map(one).collect()
    }

    #[test]
    fn intervals_of_a_calibrated_judge_hold_the_gold_mean_and_those_of_a_hopeful_one_do_not() {
        let held = |trials: &[Trial]| {
            trials.iter().filter(|trial| trial.missed_by() <= 1e-12).count() as f64 / trials.len() as f64
        };
        let truth = [0.15, 0.15, 0.02, 0.68];
        let both = |sets: &[Option<SupportSet>], m: PerspectiveCount| mrecall(sets, m, 5).value;
        // Splits of one set share its questions, so every split has a set of its own.
        let fair: Vec<Trial> =
            (0..150).flat_map(|seed| trials(&compared(80, seed, truth, truth), 1, 0.9, both)).collect();
        assert!(held(&fair) >= 0.85, "{}", held(&fair));
        assert!(fair.iter().all(|trial| trial.interval.high - trial.interval.low < 0.6));
        let hopeful = trials(&compared(80, 11, truth, [0.4, 0.4, 0.1, 0.1]), 100, 0.9, both);
        assert!(held(&hopeful) < 0.2);
        let once = || trials(&compared(20, 1, truth, truth), 3, 0.9, both);
        assert_eq!(once(), once());
        assert_eq!(trials(&[], 3, 0.9, both), []);
    }
}
