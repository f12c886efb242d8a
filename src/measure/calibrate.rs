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
    let right: Vec<f64> = cases.iter().map(|(s, first)| if *first { s / size } else { -s / size }).collect();
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
        assert_eq!((slope(&[]), slope(&[(0.0, true)]), slope(&[(f64::INFINITY, true)])), (None, None, None));
    }
}
