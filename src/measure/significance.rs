//! Tests whether one lane is better than another: paired randomisation, bootstrap intervals, Holm's correction.
//!
//! Every draw comes from a seed, so that a table can be reproduced to the last digit.

use thiserror::Error;

use super::intervals::t_quantile;
use super::seeded::SplitMix64;

/// The number of permutations and resamples behind a table.
pub const DRAWS: usize = 10_000;

/// Why two lists of per-question values cannot be tested.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum SignificanceError {
    /// The lists are over different questions.
    #[error("a paired test needs the same questions on both sides, found {left} and {right}")]
    Unpaired {
        /// The number of questions on the left.
        left: usize,
        /// The number of questions on the right.
        right: usize,
    },
    /// There are no questions.
    #[error("expected at least one question, found none")]
    Empty,
    /// A value is not a finite number.
    #[error("expected finite values, found one that is not at question {0} (counted from 0)")]
    NotFinite(usize),
    /// No draws were asked for.
    #[error("expected at least one draw, found 0")]
    NoDraws,
    /// The level of an interval is not a share.
    #[error("expected a level between 0 and 1")]
    BadLevel,
}

/// Two-sided paired randomisation test on the difference of means (Smucker, Allan & Carterette 2007).
///
/// Each draw flips the sign of each question's difference at random. The p-value counts the observed differences as a draw,
/// `(b + 1) / (draws + 1)`, so that it is never 0 (Phipson & Smyth 2010).
///
/// # Errors
/// For lists of different lengths, empty lists, values that are not finite, and no draws.
pub fn paired_randomisation(
    left: &[f64],
    right: &[f64],
    draws: usize,
    seed: u64,
) -> Result<f64, SignificanceError> {
    if left.len() != right.len() {
        return Err(SignificanceError::Unpaired { left: left.len(), right: right.len() });
    }
    let differences: Vec<f64> = left.iter().zip(right).map(|(l, r)| l - r).collect();
    check(&differences, draws)?;
    let observed = differences.iter().sum::<f64>().abs();
    // Rounding may make an equal sum a little smaller; it still counts as extreme.
    let slack = 1e-12 * differences.iter().map(|d| d.abs()).sum::<f64>();
    let mut rng = SplitMix64::new(seed);
    let as_extreme = (0..draws)
        .filter(|_| {
            let sum: f64 = differences.iter().map(|&d| if rng.coin() { d } else { -d }).sum();
            sum.abs() >= observed - slack
        })
        .count();
    Ok((as_extreme + 1) as f64 / (draws + 1) as f64)
}

/// A mean with its interval over the choice of questions.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Interval {
    /// Lower end.
    pub low: f64,
    /// The mean of the values themselves.
    pub mean: f64,
    /// Upper end.
    pub high: f64,
}

/// Percentile bootstrap interval of the mean (Efron 1979); `level` is 0.95 in every table.
///
/// # Errors
/// For no values, values that are not finite, no draws, or a level outside 0 to 1.
pub fn bootstrap_interval(
    values: &[f64],
    level: f64,
    draws: usize,
    seed: u64,
) -> Result<Interval, SignificanceError> {
    check(values, draws)?;
    if !(level > 0.0 && level < 1.0) {
        return Err(SignificanceError::BadLevel);
    }
    let count = values.len();
    let mut rng = SplitMix64::new(seed);
    let mut means: Vec<f64> = (0..draws)
        .map(|_| {
            let sum: f64 = (0..count).map(|_| values[rng.below(count)]).sum();
            sum / count as f64
        })
        .collect();
    means.sort_unstable_by(f64::total_cmp);
    let tail = (1.0 - level) / 2.0;
    Ok(Interval {
        low: quantile(&means, tail),
        mean: values.iter().sum::<f64>() / count as f64,
        high: quantile(&means, 1.0 - tail),
    })
}

/// Two lanes compared on the same questions.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Comparison {
    /// The number of questions that both have a value for.
    pub n: usize,
    /// The mean difference, left less right, with its bootstrap interval.
    pub difference: Interval,
    /// The mean difference in standard deviations of the differences (Cohen's d_z), with its bootstrap interval; `None` if all
    /// differences are equal.
    pub effect: Option<Interval>,
    /// The questions on which the left lane is better.
    pub wins: usize,
    /// The questions on which both are equal.
    pub ties: usize,
    /// The questions on which the right lane is better.
    pub losses: usize,
    /// The p-value of the paired randomisation test, not corrected.
    pub p: f64,
    /// The difference that a two-sided paired t-test at .05 would find 80 % of the time with so many questions, if the differences spread
    /// as they do here; `None` with one question or without any spread.
    pub detectable: Option<f64>,
}

/// The share of samples in which a difference should be found.
const POWER: f64 = 0.8;

/// Compares two lanes, question by question.
///
/// # Errors
/// As [`paired_randomisation`].
pub fn compare(
    left: &[f64],
    right: &[f64],
    draws: usize,
    seed: u64,
) -> Result<Comparison, SignificanceError> {
    let p = paired_randomisation(left, right, draws, seed)?;
    let differences: Vec<f64> = left.iter().zip(right).map(|(l, r)| l - r).collect();
    let n = differences.len();
    let difference = bootstrap_interval(&differences, 0.95, draws, seed)?;
    let effect = standardised(&differences).map(|effect| {
        let mut rng = SplitMix64::new(seed);
        let mut resample = vec![0.0; n];
        let mut drawn: Vec<f64> = (0..draws)
            .filter_map(|_| {
                resample.iter_mut().for_each(|value| *value = differences[rng.below(n)]);
                // A resample of equal differences has no spread to measure in.
                standardised(&resample)
            })
            .collect();
        drawn.sort_unstable_by(f64::total_cmp);
        let at = |share| if drawn.is_empty() { effect } else { quantile(&drawn, share) };
        Interval { low: at(0.025), mean: effect, high: at(0.975) }
    });
    let count = |is: fn(f64) -> bool| differences.iter().filter(|d| is(**d)).count();
    let detectable = deviation(&differences).filter(|s| *s > 0.0).map(|s| {
        let degrees = (n - 1) as f64;
        (t_quantile(0.975, degrees) + t_quantile(POWER, degrees)) * s / (n as f64).sqrt()
    });
    Ok(Comparison {
        n,
        difference,
        effect,
        wins: count(|d| d > SAME),
        ties: count(|d| d.abs() <= SAME),
        losses: count(|d| d < -SAME),
        p,
        detectable,
    })
}

/// Differences up to this count as none: sums in another order differ by rounding.
const SAME: f64 = 1e-12;

/// The sample standard deviation; `None` with fewer than two values.
fn deviation(values: &[f64]) -> Option<f64> {
    let n = values.len() as f64;
    let mean = values.iter().sum::<f64>() / n;
    let squares: f64 = values.iter().map(|value| (value - mean).powi(2)).sum();
    (values.len() > 1).then(|| (squares / (n - 1.0)).sqrt())
}

/// The mean over the standard deviation; `None` without any spread.
fn standardised(differences: &[f64]) -> Option<f64> {
    let mean = differences.iter().sum::<f64>() / differences.len() as f64;
    deviation(differences).filter(|s| *s > SAME).map(|s| mean / s)
}

/// Linear interpolation between order statistics, as R's type 7 and numpy's default.
pub(super) fn quantile(sorted: &[f64], share: f64) -> f64 {
    let place = share * (sorted.len() - 1) as f64;
    let (below, above) = (place.floor() as usize, place.ceil() as usize);
    sorted[below] + (sorted[above] - sorted[below]) * place.fract()
}

fn check(values: &[f64], draws: usize) -> Result<(), SignificanceError> {
    if values.is_empty() {
        return Err(SignificanceError::Empty);
    }
    if draws == 0 {
        return Err(SignificanceError::NoDraws);
    }
    match values.iter().position(|value| !value.is_finite()) {
        Some(question) => Err(SignificanceError::NotFinite(question)),
        None => Ok(()),
    }
}

/// Holm's step-down adjusted p-values (Holm 1979), in the order given; compare each with 0.05 directly.
pub fn holm(p_values: &[f64]) -> Vec<f64> {
    let mut order: Vec<usize> = (0..p_values.len()).collect();
    order.sort_by(|&one, &other| p_values[one].total_cmp(&p_values[other]));
    let mut adjusted = vec![0.0; p_values.len()];
    let mut running: f64 = 0.0;
    for (step, &index) in order.iter().enumerate() {
        let scaled = p_values[index] * (p_values.len() - step) as f64;
        running = running.max(scaled.min(1.0));
        adjusted[index] = running;
    }
    adjusted
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn equal_lanes_are_never_significant() {
        let values = [0.1, 0.5, 0.9];
        assert_eq!(paired_randomisation(&values, &values, 1000, 7), Ok(1.0));
    }

    #[test]
    fn five_wins_of_five_come_near_the_exact_two_in_thirty_two() {
        let (left, right) = ([0.9, 0.8, 0.7, 0.6, 0.5], [0.1; 5]);
        let p = paired_randomisation(&left, &right, DRAWS, 42).unwrap();
        assert!((p - 2.0 / 32.0).abs() < 0.01, "{p}");
    }

    #[test]
    fn the_same_seed_gives_the_same_p_and_the_sides_may_be_swapped() {
        let (left, right) = ([0.3, 0.2, 0.9, 0.4], [0.1, 0.3, 0.5, 0.2]);
        let p = paired_randomisation(&left, &right, 500, 1);
        assert_eq!(p, paired_randomisation(&left, &right, 500, 1));
        assert_eq!(p, paired_randomisation(&right, &left, 500, 1));
    }

    #[test]
    fn a_large_steady_difference_is_significant_but_never_zero() {
        let (left, right) = ([1.0; 60], [0.0; 60]);
        let p = paired_randomisation(&left, &right, DRAWS, 42).unwrap();
        assert!(p > 0.0 && p < 0.001);
    }

    #[test]
    fn unusable_lists_say_why() {
        use SignificanceError::*;
        assert_eq!(paired_randomisation(&[1.0], &[1.0, 2.0], 10, 1), Err(Unpaired { left: 1, right: 2 }));
        assert_eq!(paired_randomisation(&[], &[], 10, 1), Err(Empty));
        assert_eq!(paired_randomisation(&[1.0, f64::NAN], &[0.0; 2], 10, 1), Err(NotFinite(1)));
        assert_eq!(paired_randomisation(&[1.0], &[0.0], 0, 1), Err(NoDraws));
        assert_eq!(bootstrap_interval(&[1.0], 1.0, 10, 1), Err(BadLevel));
        assert_eq!(bootstrap_interval(&[], 0.95, 10, 1), Err(Empty));
    }

    #[test]
    fn the_bootstrap_interval_is_near_the_normal_one_and_holds_the_mean() {
        let values: Vec<f64> = (0..100).map(|i| f64::from(i % 2)).collect();
        let interval = bootstrap_interval(&values, 0.95, DRAWS, 42).unwrap();
        assert_eq!(interval.mean, 0.5);
        assert!((interval.low - 0.402).abs() < 0.015, "{interval:?}");
        assert!((interval.high - 0.598).abs() < 0.015, "{interval:?}");
    }

    #[test]
    fn one_question_has_an_interval_without_width() {
        let interval = bootstrap_interval(&[0.3], 0.95, 10, 1).unwrap();
        assert_eq!((interval.low, interval.high), (0.3, 0.3));
    }

    #[test]
    fn a_comparison_counts_wins_and_says_what_could_have_been_seen() {
        let left: Vec<f64> = (0..40).map(|i| f64::from(i % 4) / 4.0).collect();
        let right: Vec<f64> = (0..40).map(|i| f64::from((i + 1) % 4) / 4.0).collect();
        let made = compare(&left, &right, 2_000, 0).unwrap();
        assert_eq!((made.n, made.wins, made.ties, made.losses), (40, 10, 0, 30));
        assert!(made.difference.mean.abs() < 1e-12 && made.p > 0.9);
        // Differences of −.25 three times in four and +.75 once: standard deviation .4385 with 39 degrees.
        let s = (40.0 * 0.1875f64 / 39.0).sqrt();
        let expected = (2.022_691 + 0.850_93) * s / 40f64.sqrt();
        assert!((made.detectable.unwrap() - expected).abs() < 1e-4, "{made:?}");
        let effect = made.effect.unwrap();
        assert!(effect.mean.abs() < 1e-12 && effect.low < 0.0 && effect.high > 0.0, "{effect:?}");

        let better = compare(&[0.9, 0.8, 0.7, 0.6], &[0.1, 0.1, 0.2, 0.1], 2_000, 0).unwrap();
        let differences: [f64; 4] = [0.8, 0.7, 0.5, 0.5];
        let mean = differences.iter().sum::<f64>() / 4.0;
        let s = (differences.iter().map(|d| (d - mean).powi(2)).sum::<f64>() / 3.0).sqrt();
        assert!((better.effect.unwrap().mean - mean / s).abs() < 1e-9);
        let same = compare(&left, &left, 100, 0).unwrap();
        assert_eq!((same.ties, same.effect, same.detectable, same.p), (40, None, None, 1.0));
        assert!(compare(&[1.0], &[1.0, 2.0], 10, 0).is_err());
    }

    #[test]
    fn what_is_detectable_is_found_in_four_of_five_samples() {
        let mut rng = SplitMix64::new(5);
        let mut normal =
            || (0..12).map(|_| rng.below(1 << 30) as f64 / f64::from(1 << 30)).sum::<f64>() - 6.0;
        let pilot: Vec<f64> = (0..400).map(|_| normal()).collect();
        let n = 60;
        // The spread is 1, so this many questions see about .37.
        let s = deviation(&pilot).unwrap();
        let least = (t_quantile(0.975, 59.0) + t_quantile(0.8, 59.0)) * s / (n as f64).sqrt();
        let found = (0..300)
            .filter(|_| {
                let own: Vec<f64> = (0..n).map(|_| normal() + least).collect();
                paired_randomisation(&own, &vec![0.0; n], 400, 1).unwrap() < 0.05
            })
            .count();
        assert!((210..270).contains(&found), "{found} of 300");
    }

    #[test]
    fn holm_gives_the_textbook_values_in_the_order_given() {
        let adjusted = holm(&[0.01, 0.04, 0.03, 0.005]);
        let expected = [0.03, 0.06, 0.06, 0.02];
        for (got, want) in adjusted.iter().zip(expected) {
            assert!((got - want).abs() < 1e-12, "{adjusted:?}");
        }
        assert_eq!(holm(&[0.9, 0.8]), [1.0, 1.0]);
        assert!(holm(&[]).is_empty());
    }
}
