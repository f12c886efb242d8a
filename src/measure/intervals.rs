//! Quantiles, exact intervals, trials of how often intervals hold the true mean, and the bias that widens intervals.

use super::Measure;

/// The two ends of an interval.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Bounds {
    /// Lower end.
    pub low: f64,
    /// Upper end.
    pub high: f64,
}

/// How far means from a model's verdicts are from the gold means, as estimated on the development split. Intervals from the verdicts
/// are widened by this much at both ends.
#[derive(Clone, Copy, Debug, Default, PartialEq, serde::Deserialize, serde::Serialize)]
pub struct Bias {
    /// The bias of MRecall@k.
    pub mrecall: f64,
    /// The bias of Prec@k.
    pub prec: f64,
}

impl Bias {
    /// The bias of a measure; 0 for those that were not estimated.
    pub fn of(self, measure: Measure) -> f64 {
        match measure {
            Measure::MRecall { .. } => self.mrecall,
            Measure::Prec { .. } => self.prec,
            Measure::NDcg { .. }
            | Measure::Precision { .. }
            | Measure::Recall { .. }
            | Measure::AveragePrecision { .. }
            | Measure::ReciprocalRank { .. }
            | Measure::Judged { .. }
            | Measure::AlphaNDcg { .. }
            | Measure::ErrIa { .. }
            | Measure::SubtopicRecall { .. }
            | Measure::PrecisionIa { .. }
            | Measure::Lean { .. }
            | Measure::Shift { .. }
            | Measure::Cover
            | Measure::PRecall { .. }
            | Measure::RKl { .. }
            | Measure::Awrf { .. } => 0.0,
        }
    }
}

/// An interval of a mean from a model's verdicts, and the mean from gold labels of the same questions.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Trial {
    /// The interval.
    pub interval: Bounds,
    /// The gold mean.
    pub truth: f64,
}

impl Trial {
    /// How far the gold mean is outside the interval; 0 if it is inside.
    pub fn missed_by(&self) -> f64 {
        (self.interval.low - self.truth).max(self.truth - self.interval.high).max(0.0)
    }
}

/// The quantile `p` of Student's t with `degrees` (≥ 1) degrees of freedom, accurate to 1e-6.
///
/// Bisection of the distribution function, which is the regularised incomplete beta function.
pub fn t_quantile(p: f64, degrees: f64) -> f64 {
    if p < 0.5 {
        return -t_quantile(1.0 - p, degrees);
    }
    let below = |t: f64| 1.0 - 0.5 * incomplete_beta(degrees / 2.0, 0.5, degrees / (degrees + t * t));
    let (mut low, mut high) = (0.0, 1.0);
    while below(high) < p && high < 1e9 {
        high *= 2.0;
    }
    for _ in 0..100 {
        let middle = 0.5 * (low + high);
        if below(middle) < p { low = middle } else { high = middle }
    }
    0.5 * (low + high)
}

/// The exact interval of a share (Clopper & Pearson 1934): `ones` of `n` at `level`, such as .95.
pub fn exact_share(ones: usize, n: usize, level: f64) -> Bounds {
    let tail = (1.0 - level) / 2.0;
    let (k, trials) = (ones as f64, n as f64);
    let bisect = |below: &dyn Fn(f64) -> bool| {
        let (mut low, mut high) = (0.0, 1.0);
        for _ in 0..60 {
            let middle = 0.5 * (low + high);
            if below(middle) { low = middle } else { high = middle }
        }
        0.5 * (low + high)
    };
    // P(X ≥ k | p) is the incomplete beta function I_p(k, n − k + 1).
    let low = if ones == 0 { 0.0 } else { bisect(&|p| incomplete_beta(k, trials - k + 1.0, p) < tail) };
    let high =
        if ones == n { 1.0 } else { bisect(&|p| 1.0 - incomplete_beta(k + 1.0, trials - k, p) > tail) };
    Bounds { low, high }
}

/// The regularised incomplete beta function I_x(a, b), by its continued fraction (Lentz).
fn incomplete_beta(a: f64, b: f64, x: f64) -> f64 {
    if x <= 0.0 {
        return 0.0;
    }
    if x >= 1.0 {
        return 1.0;
    }
    let front = (ln_gamma(a + b) - ln_gamma(a) - ln_gamma(b) + a * x.ln() + b * (1.0 - x).ln()).exp();
    if x < (a + 1.0) / (a + b + 2.0) {
        front * fraction(a, b, x) / a
    } else {
        1.0 - front * fraction(b, a, 1.0 - x) / b
    }
}

fn fraction(a: f64, b: f64, x: f64) -> f64 {
    const TINY: f64 = 1e-300;
    let away = |value: f64| if value.abs() < TINY { TINY } else { value };
    let mut c = 1.0;
    let mut d = 1.0 / away(1.0 - (a + b) * x / (a + 1.0));
    let mut h = d;
    for m in 1..500 {
        let m = f64::from(m);
        for step in [
            m * (b - m) * x / ((a + 2.0 * m - 1.0) * (a + 2.0 * m)),
            -(a + m) * (a + b + m) * x / ((a + 2.0 * m) * (a + 2.0 * m + 1.0)),
        ] {
            d = 1.0 / away(1.0 + step * d);
            c = away(1.0 + step / c);
            h *= d * c;
        }
        if (d * c - 1.0).abs() < 1e-15 {
            break;
        }
    }
    h
}

/// ln Γ(x) for x > 0 (Lanczos, g = 7, nine terms).
fn ln_gamma(x: f64) -> f64 {
    const TERMS: [f64; 9] = [
        0.999_999_999_999_809_9,
        676.520_368_121_885_1,
        -1_259.139_216_722_402_8,
        771.323_428_777_653_1,
        -176.615_029_162_140_6,
        12.507_343_278_686_905,
        -0.138_571_095_265_720_12,
        9.984_369_578_019_572e-6,
        1.505_632_735_149_311_6e-7,
    ];
    let x = x - 1.0;
    let t = x + 7.5;
    let sum = TERMS.iter().enumerate().skip(1).fold(TERMS[0], |sum, (i, term)| sum + term / (x + i as f64));
    0.5 * (2.0 * std::f64::consts::PI).ln() + (x + 0.5) * t.ln() - t + sum.ln()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_quantiles_are_those_of_the_tables() {
        for (p, degrees, expected) in [
            (0.975, 1.0, 12.706_204_7),
            (0.975, 2.0, 4.302_652_7),
            (0.975, 18.0, 2.100_922_0),
            (0.95, 58.0, 1.671_552_8),
            (0.995, 998.0, 2.580_764_7),
        ] {
            assert!(
                (t_quantile(p, degrees) - expected).abs() < 1e-6,
                "{p} {degrees}: {}",
                t_quantile(p, degrees)
            );
        }
        assert!((t_quantile(0.025, 18.0) + 2.100_922_0).abs() < 1e-6);
    }

    #[test]
    fn an_interval_that_holds_the_truth_misses_it_by_nothing() {
        let missed = |low: f64, high: f64| Trial { interval: Bounds { low, high }, truth: 0.5 }.missed_by();
        assert_eq!(
            (missed(0.4, 0.6), missed(0.5, 0.6), missed(0.0, 0.25), missed(0.75, 1.0)),
            (0.0, 0.0, 0.25, 0.25)
        );
    }

    #[test]
    fn a_bias_is_that_of_its_measure() {
        let bias: Bias = serde_json::from_str(r#"{"mrecall": 0.12, "prec": 0.05}"#).unwrap();
        let of = |name: &str| bias.of(name.parse().unwrap());
        assert_eq!(["MRecall@5", "Prec@1", "Lean@5", "Cover"].map(of), [0.12, 0.05, 0.0, 0.0]);
    }

    #[test]
    fn exact_intervals_are_those_of_clopper_and_pearson() {
        for (ones, n, low, high) in [
            (2, 20, 0.012_349, 0.316_983),
            (0, 10, 0.0, 0.308_497),
            (10, 10, 0.691_503, 1.0),
            (35, 79, 0.331_0, 0.559_1),
        ] {
            let made = exact_share(ones, n, 0.95);
            let near = if n == 79 { 1e-3 } else { 1e-5 };
            assert!((made.low - low).abs() < near && (made.high - high).abs() < near, "{ones}/{n}: {made:?}");
        }
    }
}
