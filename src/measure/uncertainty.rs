//! What a measure of model labels is worth: how it would fall if every verdict were drawn anew with its own probability.
//!
//! A verdict's probability is calibrated, so among verdicts of .7 some 70 % are right. Every draw takes each verdict as true with
//! its probability, independently, and measures again; the middle 95 % of the draws is the interval. It holds the detector's
//! doubt alone, neither that of which questions were asked nor errors that its verdicts share.

use super::SupportSet;
use super::seeded::SplitMix64;

/// Draws behind an interval on screen.
pub const DRAWS: usize = 400;

/// The mean of a measure over the draws and the middle 95 % of it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Spread {
    /// The mean.
    pub mean: f64,
    /// Lower end.
    pub low: f64,
    /// Upper end.
    pub high: f64,
}

/// Measures draws of `probabilities`: a row a passage, a probability a perspective; a row that is not known stays so.
/// `None` without draws.
pub fn spread(
    probabilities: &[Option<Vec<f64>>],
    draws: usize,
    seed: u64,
    measure: impl Fn(&[Option<SupportSet>]) -> f64,
) -> Option<Spread> {
    let mut rng = SplitMix64::new(seed);
    let mut values: Vec<f64> = (0..draws)
        .map(|_| {
            let drawn: Vec<Option<SupportSet>> =
                probabilities.iter().map(|row| row.as_ref().map(|row| draw(row, &mut rng))).collect();
            measure(&drawn)
        })
        .collect();
    if values.is_empty() {
        return None;
    }
    values.sort_unstable_by(f64::total_cmp);
    let at = |share: f64| values[((values.len() - 1) as f64 * share).round() as usize];
    let mean = values.iter().sum::<f64>() / values.len() as f64;
    Some(Spread { mean, low: at(0.025), high: at(0.975) })
}

fn draw(row: &[f64], rng: &mut SplitMix64) -> SupportSet {
    row.iter().enumerate().fold(SupportSet::EMPTY, |set, (i, p)| {
        // A draw for every probability, so that one verdict more does not change the others' draws.
        let taken = rng.below(1 << 30) as f64 / (1u64 << 30) as f64;
        if taken < *p { set.with(i).unwrap_or(set) } else { set }
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::measure::PerspectiveCount;
    use crate::measure::mrecall::mrecall;
    use crate::measure::prec::prec;

    fn two() -> PerspectiveCount {
        PerspectiveCount::new(2).unwrap()
    }

    #[test]
    fn verdicts_without_doubt_have_no_spread() {
        let certain = [Some(vec![1.0, 0.0]), Some(vec![0.0, 1.0]), None];
        let spread = spread(&certain, 100, 0, |set| mrecall(set, two(), 5).value).unwrap();
        assert_eq!((spread.low, spread.mean, spread.high), (1.0, 1.0, 1.0));
    }

    #[test]
    fn the_mean_of_the_draws_is_the_expected_value() {
        // Both sides are met with .8 · .5; a passage counts for Prec with .8 and with .5, of five.
        let doubtful = [Some(vec![0.8, 0.0]), Some(vec![0.0, 0.5])];
        let met = spread(&doubtful, 20_000, 7, |set| mrecall(set, two(), 5).value).unwrap();
        assert!((met.mean - 0.4).abs() < 0.01, "{}", met.mean);
        assert_eq!((met.low, met.high), (0.0, 1.0));
        let share = spread(&doubtful, 20_000, 7, |set| prec(set, two(), 5).value).unwrap();
        assert!((share.mean - 0.26).abs() < 0.01, "{}", share.mean);
    }

    #[test]
    fn a_seed_gives_the_same_interval_and_no_draws_none() {
        let rows = [Some(vec![0.3, 0.6])];
        let once = |draws| spread(&rows, draws, 3, |set| prec(set, two(), 1).value);
        assert_eq!(once(50), once(50));
        assert_eq!(once(0), None);
    }
}
