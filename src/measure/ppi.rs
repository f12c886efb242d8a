//! Corrects a judge by labels: prediction-powered inference (Angelopoulos et al., Science 2023) with the tuned weight of PPI++
//! (Angelopoulos, Duchi & Zrnic 2023), for a labelled random sample of the judged population.
//!
//! A unit is a question (or a pair). Each of the N units has the judge's prediction f, and n of them, drawn at random, have a value Y
//! from labels. The judge's weight depends on how well it agrees with the labels, so a bad judge does no harm.

use super::intervals::{Bounds, exact_share, t_quantile};

/// The mean that the interval is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Target {
    /// The mean over exactly these N units.
    These,
    /// The mean over the population from which these N units come.
    Population,
}

/// A labelled unit.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Labelled {
    /// The value from labels.
    pub value: f64,
    /// The judge's prediction of it.
    pub prediction: f64,
}

/// How the estimate was made.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Method {
    /// Labels corrected the judge, whose weight is λ, from 0 to 1.
    Corrected(f64),
    /// An exact interval from the labels alone: for a 0/1 value with fewer than five ones or zeros among the labelled, or a difference of
    /// such values with fewer than five that differ from the most common.
    LabelsAlone,
}

/// An estimated mean with its interval.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Estimate {
    /// The mean.
    pub mean: f64,
    /// The interval around it.
    pub interval: Bounds,
    /// The method.
    pub method: Method,
    /// n, the labelled units.
    pub labelled: usize,
    /// N, all units.
    pub units: usize,
    /// s²(e), the variance of a labelled value that the judge does not explain.
    pub residual: f64,
    /// s²(Y), the variance of the labelled values.
    pub spread: f64,
}

impl Estimate {
    /// Half of the interval's width.
    pub fn half_width(&self) -> f64 {
        (self.interval.high - self.interval.low) / 2.0
    }

    /// The expected half-width after labelling `more` units (at most all), if they vary as much as those labelled now.
    pub fn half_width_with(&self, more: usize, target: Target, level: f64) -> f64 {
        let n = (self.labelled + more).min(self.units);
        match self.method {
            _ if n == self.units && target == Target::These => 0.0,
            Method::LabelsAlone => {
                let ones = (self.mean.abs() * n as f64).round() as usize;
                let Bounds { low, high } = exact_share(ones.min(n), n, level);
                (high - low) / 2.0
            }
            Method::Corrected(_) => half(self, n, target, level),
        }
    }
}

/// The half-width with n labelled units, from the variances of an estimate.
fn half(made: &Estimate, n: usize, target: Target, level: f64) -> f64 {
    let (n, units) = (n as f64, made.units as f64);
    let mut variance = (1.0 - n / units) * made.residual / n;
    if target == Target::Population {
        variance += made.spread / units;
    }
    t_quantile(0.5 + level / 2.0, n - 2.0) * variance.sqrt()
}

/// Why there is no estimate.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum PpiError {
    /// The variance of the correction needs two more units than it has parameters.
    #[error("expected at least 4 labelled units, found {0}; label more")]
    TooFewLabelled(usize),
    /// A value or a prediction is not a number.
    #[error("a value or a prediction is not a finite number")]
    NotFinite,
}

/// The mean of Y over `labelled` and `unlabelled` together, with an interval at `level` (such as .95).
///
/// With θ = mean_n(Y) + λ·(mean_N(f) − mean_n(f)), λ = Cov_n(Y, f)/Var_n(f) held to \[0, 1\] and e = Y − λ·f, the variance is
/// (1 − n/N)·s²(e)/n for [`Target::These`], and s²(Y)/N more for [`Target::Population`]; s²(e) is over n − 2 and the quantile that of t
/// with n − 2 degrees of freedom. Without unlabelled units this is the mean of the labels alone.
///
/// # Errors
/// See [`PpiError`].
pub fn corrected_mean(
    labelled: &[Labelled],
    unlabelled: &[f64],
    target: Target,
    level: f64,
) -> Result<Estimate, PpiError> {
    estimate(labelled, unlabelled, target, level, rare_share)
}

/// [`corrected_mean`] of differences between two rankings; values and predictions are differences. If the values are −1, 0 and 1 and fewer
/// than five differ from the most common, the interval comes from the exact intervals of both shares, each at half the error.
///
/// # Errors
/// See [`PpiError`].
pub fn corrected_difference(
    labelled: &[Labelled],
    unlabelled: &[f64],
    target: Target,
    level: f64,
) -> Result<Estimate, PpiError> {
    estimate(labelled, unlabelled, target, level, rare_difference)
}

fn estimate(
    labelled: &[Labelled],
    unlabelled: &[f64],
    target: Target,
    level: f64,
    rare: impl Fn(&[Labelled], f64) -> Option<Bounds>,
) -> Result<Estimate, PpiError> {
    let n = labelled.len();
    if n < 4 {
        return Err(PpiError::TooFewLabelled(n));
    }
    let finite = |unit: &Labelled| unit.value.is_finite() && unit.prediction.is_finite();
    if !labelled.iter().all(finite) || !unlabelled.iter().all(|f| f.is_finite()) {
        return Err(PpiError::NotFinite);
    }
    let units = n + unlabelled.len();
    let (n_, units_) = (n as f64, units as f64);
    let values = || labelled.iter().map(|unit| unit.value);
    let predictions = || labelled.iter().map(|unit| unit.prediction);
    let mean_y = values().sum::<f64>() / n_;
    let spread = values().map(|y| (y - mean_y).powi(2)).sum::<f64>() / (n_ - 1.0);
    let point = Bounds { low: mean_y, high: mean_y };
    let whole = n == units && target == Target::These;
    let alone = Estimate {
        mean: mean_y,
        interval: point,
        method: Method::LabelsAlone,
        labelled: n,
        units,
        residual: spread,
        spread,
    };
    if let Some(interval) = rare(labelled, level) {
        // If every unit is labelled, their mean is known.
        return Ok(Estimate { interval: if whole { point } else { interval }, ..alone });
    }
    let mean_f = predictions().sum::<f64>() / n_;
    let variance_f = predictions().map(|f| (f - mean_f).powi(2)).sum::<f64>();
    let covariance =
        labelled.iter().map(|unit| (unit.value - mean_y) * (unit.prediction - mean_f)).sum::<f64>();
    let weight = if variance_f > 0.0 { (covariance / variance_f).clamp(0.0, 1.0) } else { 0.0 };
    let mean_all = (mean_f * n_ + unlabelled.iter().sum::<f64>()) / units_;
    let mean = mean_y + weight * (mean_all - mean_f);
    let error = |unit: &Labelled| unit.value - mean_y - weight * (unit.prediction - mean_f);
    let residual = labelled.iter().map(|unit| error(unit).powi(2)).sum::<f64>() / (n_ - 2.0);
    let made = Estimate { mean, method: Method::Corrected(weight), residual, ..alone };
    let half = half(&made, n, target, level);
    Ok(Estimate { interval: Bounds { low: mean - half, high: mean + half }, ..made })
}

/// The mean of the labels alone over `units` units, with the t interval of n − 1 degrees, for comparison with the corrected mean.
///
/// # Errors
/// See [`PpiError`].
pub fn labels_alone(values: &[f64], units: usize, target: Target, level: f64) -> Result<Estimate, PpiError> {
    let labelled: Vec<Labelled> =
        values.iter().map(|value| Labelled { value: *value, prediction: 0.0 }).collect();
    let rest = vec![0.0; units.saturating_sub(values.len())];
    let made = corrected_mean(&labelled, &rest, target, level)?;
    if made.method == Method::LabelsAlone {
        return Ok(made);
    }
    let (n, units) = (made.labelled as f64, made.units as f64);
    let mut variance = (1.0 - n / units) * made.spread / n;
    if target == Target::Population {
        variance += made.spread / units;
    }
    let half = t_quantile(0.5 + level / 2.0, n - 1.0) * variance.sqrt();
    let interval = Bounds { low: made.mean - half, high: made.mean + half };
    Ok(Estimate { interval, residual: made.spread, ..made })
}

/// If fewer values than this differ from the most common one, a t interval is not valid.
const FEW: usize = 5;

fn count(labelled: &[Labelled], value: f64) -> usize {
    labelled.iter().filter(|unit| unit.value == value).count()
}

fn rare_share(labelled: &[Labelled], level: f64) -> Option<Bounds> {
    let (ones, zeros) = (count(labelled, 1.0), count(labelled, 0.0));
    let rare = ones + zeros == labelled.len() && ones.min(zeros) < FEW;
    rare.then(|| exact_share(ones, labelled.len(), level))
}

fn rare_difference(labelled: &[Labelled], level: f64) -> Option<Bounds> {
    let counts = [1.0, -1.0, 0.0].map(|value| count(labelled, value));
    let n = counts.iter().sum::<usize>();
    let most_common = counts.iter().max().copied().unwrap_or(0);
    let half_error = 1.0 - (1.0 - level) / 2.0;
    let [plus, minus, _] = counts.map(|count| exact_share(count, n.max(1), half_error));
    let rare = n == labelled.len() && n - most_common < FEW;
    rare.then_some(Bounds { low: plus.low - minus.high, high: plus.high - minus.low })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::measure::seeded::SplitMix64;

    fn units(pairs: &[(f64, f64)]) -> Vec<Labelled> {
        pairs.iter().map(|(value, prediction)| Labelled { value: *value, prediction: *prediction }).collect()
    }

    /// Standard normal, as the sum of twelve uniforms.
    fn normal(rng: &mut SplitMix64) -> f64 {
        (0..12).map(|_| rng.below(1 << 30) as f64 / f64::from(1 << 30)).sum::<f64>() - 6.0
    }

    #[test]
    fn a_case_worked_by_hand() {
        // Mean of Y is 2.5 and of f 2.5; Cov/Var = 5/5 = 1 before clamping, so e is constant up to the last two units.
        let labelled = units(&[(1.0, 1.0), (2.0, 2.0), (3.0, 3.0), (4.0, 4.0)]);
        let made = corrected_mean(&labelled, &[5.0, 6.0], Target::These, 0.95).unwrap();
        assert_eq!((made.mean, made.method), (3.5, Method::Corrected(1.0)));
        assert_eq!((made.interval.low, made.interval.high), (3.5, 3.5));
        // A population's mean keeps the variance of the six units: 5/3/6, times t(.975, 2) = 4.3027.
        let made = corrected_mean(&labelled, &[5.0, 6.0], Target::Population, 0.95).unwrap();
        assert!((made.interval.high - 3.5 - 4.302_652_7 * (5.0f64 / 18.0).sqrt()).abs() < 1e-6);
    }

    #[test]
    fn with_every_unit_labelled_the_labels_alone_count_and_a_judge_against_them_has_no_weight() {
        let labelled = units(&[(0.2, 0.9), (0.4, 0.6), (0.9, 0.1), (0.5, 0.7), (0.6, 0.3)]);
        let made = corrected_mean(&labelled, &[], Target::These, 0.95).unwrap();
        assert!((made.mean - 0.52).abs() < 1e-12);
        assert_eq!(made.method, Method::Corrected(0.0));
        assert_eq!(made.interval.low, made.interval.high);
    }

    #[test]
    fn few_ones_give_the_exact_interval_of_the_labels() {
        let mut labelled = units(&[(0.0, 0.1); 18]);
        labelled.extend(units(&[(1.0, 0.8); 2]));
        let made = corrected_mean(&labelled, &[0.3; 59], Target::These, 0.95).unwrap();
        assert_eq!(made.method, Method::LabelsAlone);
        // Clopper and Pearson for 2 of 20.
        assert!(
            (made.interval.low - 0.012_349).abs() < 1e-5 && (made.interval.high - 0.316_983).abs() < 1e-5
        );
    }

    #[test]
    fn with_every_unit_labelled_even_few_ones_are_known_and_the_population_is_not() {
        let mut labelled = units(&[(0.0, 0.1); 18]);
        labelled.extend(units(&[(1.0, 0.8); 2]));
        let these = corrected_mean(&labelled, &[], Target::These, 0.95).unwrap();
        assert_eq!((these.interval.low, these.interval.high), (0.1, 0.1));
        let all = corrected_mean(&labelled, &[], Target::Population, 0.95).unwrap();
        assert!(all.interval.low < 0.02 && all.interval.high > 0.3, "{all:?}");
    }

    #[test]
    fn differences_that_hardly_ever_differ_get_exact_intervals_on_both_sides_of_nought() {
        let same = units(&[(0.0, 0.0); 20]);
        let made = corrected_difference(&same, &[0.0; 59], Target::These, 0.95).unwrap();
        assert_eq!((made.mean, made.method), (0.0, Method::LabelsAlone));
        // 1 − (.0125)^(1/20): no one of 20 on either side, each at 97.5 %.
        let bound = 1.0 - 0.0125f64.powf(1.0 / 20.0);
        assert!(
            (made.interval.high - bound).abs() < 1e-9 && (made.interval.low + bound).abs() < 1e-9,
            "{made:?}"
        );
        let mut differ = units(&[(1.0, 0.5); 6]);
        differ.extend(units(&[(-1.0, -0.2); 2]));
        differ.extend(units(&[(0.0, 0.1); 12]));
        let made = corrected_difference(&differ, &[0.0; 59], Target::These, 0.95).unwrap();
        assert!(matches!(made.method, Method::Corrected(weight) if weight > 0.9), "{made:?}");
    }

    #[test]
    fn more_labels_buy_what_the_present_residual_says() {
        let labelled: Vec<Labelled> = (0..20)
            .map(|i| Labelled { value: f64::from(i % 5) / 5.0, prediction: f64::from(i % 3) / 3.0 })
            .collect();
        let made = corrected_mean(&labelled, &[0.4; 60], Target::These, 0.95).unwrap();
        assert!((made.half_width_with(0, Target::These, 0.95) - made.half_width()).abs() < 1e-12);
        let expected = t_quantile(0.975, 38.0) * (0.5 * made.residual / 40.0).sqrt();
        assert!((made.half_width_with(20, Target::These, 0.95) - expected).abs() < 1e-12);
        assert_eq!(made.half_width_with(200, Target::These, 0.95), 0.0);
        assert!(made.half_width_with(200, Target::Population, 0.95) > 0.0);
    }

    #[test]
    fn labels_alone_are_the_textbook_interval() {
        let values: Vec<f64> = (0..20).map(|i| f64::from(i % 5)).collect();
        let made = labels_alone(&values, 80, Target::These, 0.95).unwrap();
        let half = t_quantile(0.975, 19.0) * (0.75 * (40.0 / 19.0) / 20.0f64).sqrt();
        assert!((made.half_width() - half).abs() < 1e-12 && made.mean == 2.0, "{made:?}");
    }

    #[test]
    fn too_few_labels_and_values_that_are_no_numbers_are_refused() {
        let three = units(&[(0.1, 0.2); 3]);
        assert_eq!(corrected_mean(&three, &[], Target::These, 0.95), Err(PpiError::TooFewLabelled(3)));
        let nan = units(&[(0.1, f64::NAN), (0.2, 0.1), (0.2, 0.1), (0.3, 0.1)]);
        assert_eq!(corrected_mean(&nan, &[], Target::These, 0.95), Err(PpiError::NotFinite));
    }

    /// The share of runs whose interval holds the true mean.
    fn covered(units: usize, labelled: usize, correlation: f64, target: Target, runs: u64) -> f64 {
        let mut covered = 0;
        for seed in 0..runs {
            let mut rng = SplitMix64::new(seed.wrapping_mul(0x9e37_79b9) ^ units as u64);
            let noise = (1.0 - correlation * correlation).sqrt();
            let drawn: Vec<Labelled> = (0..units)
                .map(|_| {
                    let value = normal(&mut rng);
                    Labelled { value, prediction: 0.3 + correlation * value + noise * normal(&mut rng) }
                })
                .collect();
            let truth = match target {
                Target::These => drawn.iter().map(|unit| unit.value).sum::<f64>() / units as f64,
                Target::Population => 0.0,
            };
            let rest: Vec<f64> = drawn[labelled..].iter().map(|unit| unit.prediction).collect();
            let made = corrected_mean(&drawn[..labelled], &rest, target, 0.95).unwrap();
            covered += u32::from((made.interval.low..=made.interval.high).contains(&truth));
        }
        f64::from(covered) / runs as f64
    }

    #[test]
    fn ninety_five_of_a_hundred_intervals_cover_the_mean() {
        for (units, labelled) in [(80, 20), (80, 60), (1_000, 100)] {
            for target in [Target::These, Target::Population] {
                let share = covered(units, labelled, 0.8, target, 2_000);
                assert!((0.935..=0.965).contains(&share), "{units} {labelled} {target:?}: {share}");
            }
        }
    }

    #[test]
    #[ignore = "needs a minute: ten thousand runs per case"]
    fn of_ten_thousand_intervals_ninety_four_to_ninety_six_percent_cover_the_mean() {
        for (units, labelled) in [(80, 20), (80, 40), (80, 60), (1_000, 50), (1_000, 200)] {
            for correlation in [0.6, 0.9] {
                for target in [Target::These, Target::Population] {
                    let share = covered(units, labelled, correlation, target, 10_000);
                    println!("N {units} n {labelled} r {correlation} {target:?}: {share:.4}");
                    assert!(
                        (0.94..=0.96).contains(&share),
                        "{units} {labelled} {correlation} {target:?}: {share}"
                    );
                }
            }
        }
    }
}
