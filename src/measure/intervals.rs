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

pub mod calibrate {
    //! Calibration from few labels: Platt's σ(a·x + b) for a yes or no, and a slope alone, σ(t·s), for a side.
    //!
    //! A side has no constant, because swapping the statements changes the sign of s and must only swap the answer. Both fits maximise the
    //! likelihood of smoothed targets (Platt 1999), so the slope stays finite even if a score separates the labels perfectly.

    /// The most rounds of Newton's method; ten are usual.
    const ROUNDS: usize = 100;
    /// A step below this ends the search.
    const CLOSE: f64 = 1e-10;

    /// σ(a·x + b).
    #[derive(Clone, Copy, Debug, PartialEq)]
    pub struct Platt {
        /// The slope.
        pub a: f64,
        /// The constant.
        pub b: f64,
    }

    impl Platt {
        /// The calibrated probability.
        pub fn p(self, x: f64) -> f64 {
            sigmoid(self.a * x + self.b)
        }
    }

    fn sigmoid(x: f64) -> f64 {
        1.0 / (1.0 + (-x).exp())
    }

    /// −log of the likelihood of a target under the logit z; never overflows.
    fn loss(z: f64, target: f64) -> f64 {
        // log(1 + e^z) − target·z
        z.max(0.0) + (-z.abs()).exp().ln_1p() - target * z
    }

    /// Fits a yes-or-no score. `None` if all labels are alike, or a score is not finite.
    pub fn platt(cases: &[(f64, bool)]) -> Option<Platt> {
        let yes = cases.iter().filter(|(_, label)| *label).count();
        let no = cases.len() - yes;
        if yes == 0 || no == 0 || cases.iter().any(|(x, _)| !x.is_finite()) {
            return None;
        }
        // Scale the scores to unit spread, so that the small ridge below has the same effect for all scores.
        let mean = cases.iter().map(|(x, _)| x).sum::<f64>() / cases.len() as f64;
        let spread = (cases.iter().map(|(x, _)| (x - mean).powi(2)).sum::<f64>() / cases.len() as f64).sqrt();
        let spread = if spread > 0.0 { spread } else { 1.0 };
        let (high, low) = ((yes as f64 + 1.0) / (yes as f64 + 2.0), 1.0 / (no as f64 + 2.0));
        let cases: Vec<(f64, f64)> =
            cases.iter().map(|(x, label)| ((x - mean) / spread, if *label { high } else { low })).collect();
        let total = |a: f64, b: f64| cases.iter().map(|(x, target)| loss(a * x + b, *target)).sum::<f64>();
        let (mut a, mut b) = (0.0, ((yes as f64 + 1.0) / (no as f64 + 1.0)).ln());
        let mut now = total(a, b);
        for _ in 0..ROUNDS {
            let (mut ga, mut gb, mut haa, mut hab, mut hbb) = (0.0, 0.0, 1e-9, 0.0, 1e-9);
            for (x, target) in &cases {
                let p = sigmoid(a * x + b);
                let (gap, weight) = (p - target, p * (1.0 - p));
                (ga, gb) = (ga + gap * x, gb + gap);
                (haa, hab, hbb) = (haa + weight * x * x, hab + weight * x, hbb + weight);
            }
            let determinant = haa * hbb - hab * hab;
            let (da, db) = ((hbb * ga - hab * gb) / determinant, (haa * gb - hab * ga) / determinant);
            // Try the full step, then halve it until the loss falls.
            let mut step = 1.0;
            loop {
                let next = total(a - step * da, b - step * db);
                if next <= now || step < 1e-10 {
                    (a, b, now) = (a - step * da, b - step * db, next.min(now));
                    break;
                }
                step /= 2.0;
            }
            if da.abs() + db.abs() < CLOSE {
                break;
            }
        }
        let fitted = Platt { a: a / spread, b: b - a * mean / spread };
        (fitted.a.is_finite() && fitted.b.is_finite()).then_some(fitted)
    }

    /// Fits the slope of a side. Scores above 0 are for the first side, and `true` is the first side. `None` if all scores are 0 or one is not
    /// finite. The slope is never below 0: a score that points to the wrong side gets no weight.
    pub fn slope(cases: &[(f64, bool)]) -> Option<f64> {
        let size = cases.iter().map(|(s, _)| s.abs()).sum::<f64>() / cases.len().max(1) as f64;
        if !size.is_finite() || size == 0.0 {
            return None;
        }
        let target = (cases.len() as f64 + 1.0) / (cases.len() as f64 + 2.0);
        // Towards the right side, in units of the mean size.
        let right: Vec<f64> =
            cases.iter().map(|(s, first)| if *first { s / size } else { -s / size }).collect();
        let total = |t: f64| right.iter().map(|s| loss(t * s, target)).sum::<f64>();
        let mut t = 0.0;
        let mut now = total(t);
        for _ in 0..ROUNDS {
            let (mut gradient, mut curve) = (0.0, 1e-9);
            for s in &right {
                let p = sigmoid(t * s);
                gradient += (p - target) * s;
                curve += p * (1.0 - p) * s * s;
            }
            let change = gradient / curve;
            let mut step = 1.0;
            loop {
                let next = total(t - step * change);
                if next <= now || step < 1e-10 {
                    (t, now) = (t - step * change, next.min(now));
                    break;
                }
                step /= 2.0;
            }
            if change.abs() < CLOSE {
                break;
            }
        }
        Some((t / size).max(0.0)).filter(|t| t.is_finite())
    }

    #[cfg(test)]
    mod tests {
        use super::*;

        /// Makes cases with exact shares of yes at each score.
        fn cases(rows: &[(f64, usize, usize)]) -> Vec<(f64, bool)> {
            let one = |(x, yes, no): &(f64, usize, usize)| {
                let label = |label: bool, count: usize| std::iter::repeat_n((*x, label), count);
                label(true, *yes).chain(label(false, *no)).collect::<Vec<_>>()
            };
            rows.iter().flat_map(one).collect()
        }

        #[test]
        fn the_curve_goes_through_the_shares_of_two_scores() {
            // Two scores, two parameters: with many cases, the smoothing of targets hardly counts.
            let fitted = platt(&cases(&[(-1.0, 2_000, 8_000), (3.0, 9_000, 1_000)])).unwrap();
            assert!((fitted.p(-1.0) - 0.2).abs() < 1e-3 && (fitted.p(3.0) - 0.9).abs() < 1e-3, "{fitted:?}");
            // logit(.9) − logit(.2) over a distance of 4.
            assert!((fitted.a - (9f64.ln() + 4f64.ln()) / 4.0).abs() < 2e-3, "{fitted:?}");
        }

        #[test]
        fn another_scale_of_the_scores_gives_the_same_probabilities() {
            let rows = [(-2.0, 1, 9), (0.0, 4, 6), (1.5, 8, 2)];
            let plain = platt(&cases(&rows)).unwrap();
            let scaled = platt(&cases(&rows.map(|(x, yes, no)| (1_000.0 * x + 70.0, yes, no)))).unwrap();
            for (x, ..) in rows {
                assert!((plain.p(x) - scaled.p(1_000.0 * x + 70.0)).abs() < 1e-6);
            }
        }

        #[test]
        fn separated_labels_give_a_steep_curve_and_never_an_endless_one() {
            let fitted = platt(&cases(&[(-1.0, 0, 20), (1.0, 20, 0)])).unwrap();
            // The smoothed targets: 1/22 and 21/22.
            assert!((fitted.p(1.0) - 21.0 / 22.0).abs() < 1e-6 && (fitted.p(-1.0) - 1.0 / 22.0).abs() < 1e-6);
            let side = slope(&cases(&[(-4.0, 0, 10), (4.0, 10, 0)])).unwrap();
            assert!((sigmoid(4.0 * side) - 21.0 / 22.0).abs() < 1e-6, "{side}");
        }

        #[test]
        fn a_side_is_as_sure_as_it_is_right_and_the_same_for_swapped_statements() {
            let rows = cases(&[(2.0, 800, 200), (-2.0, 200, 800)]);
            let fitted = slope(&rows).unwrap();
            assert!((sigmoid(2.0 * fitted) - 0.8).abs() < 2e-3, "{fitted}");
            let swapped: Vec<(f64, bool)> = rows.iter().map(|(s, first)| (-s, !first)).collect();
            assert_eq!(slope(&swapped), Some(fitted));
            assert_eq!(
                slope(&cases(&[(2.0, 2, 8), (-2.0, 8, 2)])),
                Some(0.0),
                "a score that points the wrong way"
            );
        }

        #[test]
        fn what_cannot_be_fitted_is_none() {
            assert_eq!(platt(&[]), None);
            assert_eq!(platt(&cases(&[(1.0, 3, 0)])), None);
            assert_eq!(platt(&[(f64::NAN, true), (0.0, false)]), None);
            // A score that is the same for all says nothing: the share remains.
            let flat = platt(&cases(&[(1.0, 30, 10)])).unwrap();
            assert!((flat.p(1.0) - 0.75).abs() < 0.02, "{flat:?}");
            assert_eq!(
                (slope(&[]), slope(&[(0.0, true)]), slope(&[(f64::INFINITY, true)])),
                (None, None, None)
            );
        }
    }
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
