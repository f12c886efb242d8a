//! How uncertain a measure of model verdicts is, and how far the verdicts' probabilities can be trusted.
//!
//! Probabilities are calibrated: of verdicts with probability .7, about 70 % are right. One draw makes each verdict true with its
//! probability, independently, and computes the measure. The interval is the middle 95 % of the draws. It covers only the detector's
//! uncertainty: not the choice of questions, and not errors that its verdicts have in common.
//!
//! A judge may abstain. Risk is the share of its verdicts that are wrong, coverage the share of cases with a verdict (El-Yaniv & Wiener
//! 2010; Geifman & El-Yaniv 2017).

use super::SupportSet;
use super::expected::Chances;
use super::seeded::SplitMix64;

/// The number of draws for an interval on screen.
pub const DRAWS: usize = 400;

/// The number of replicates for an interval in a table.
pub const REPLICATES: usize = 1_000;

/// The mean of a measure over the draws, and the interval that holds the middle 95 % of them and the mean. The middle of a measure that is 0 or 1
/// may be one of these alone.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Spread {
    /// The mean.
    pub mean: f64,
    /// Lower end.
    pub low: f64,
    /// Upper end.
    pub high: f64,
}

/// A passage whose verdicts are drawn: its id, and its chances if it was judged.
pub type Doubted<'a> = (&'a str, Option<Chances>);

/// Computes a measure over draws of `probabilities`, which has one row per passage; `None` is a passage that was not judged. Returns
/// `None` for 0 draws.
pub fn spread(
    probabilities: &[Option<Chances>],
    draws: usize,
    seed: u64,
    measure: impl Fn(&[Option<SupportSet>]) -> f64,
) -> Option<Spread> {
    let mut rng = SplitMix64::new(seed);
    let mut values: Vec<f64> = (0..draws)
        .map(|_| {
            let drawn: Vec<Option<SupportSet>> =
                probabilities.iter().map(|row| row.as_ref().map(|row| row.draw(&mut rng))).collect();
            measure(&drawn)
        })
        .collect();
    Spread::of(&mut values)
}

/// Draws what passages support, `draws` times. A passage's draws depend on its id and the seed alone, so that lists can be compared.
pub fn draw(passages: &[Doubted<'_>], draws: usize, seed: u64) -> Vec<Vec<Option<SupportSet>>> {
    let mut streams: Vec<_> = passages.iter().map(|(id, _)| SplitMix64::named(seed, id)).collect();
    (0..draws)
        .map(|_| {
            let rows = passages.iter().zip(&mut streams);
            rows.map(|((_, row), rng)| row.as_ref().map(|row| row.draw(rng))).collect()
        })
        .collect()
}

impl Spread {
    /// The mean and interval of these values, which it sorts; `None` if there are none.
    pub fn of(values: &mut [f64]) -> Option<Self> {
        if values.is_empty() {
            return None;
        }
        values.sort_unstable_by(f64::total_cmp);
        let at = |share: f64| values[((values.len() - 1) as f64 * share).round() as usize];
        let mean = values.iter().sum::<f64>() / values.len() as f64;
        Some(Spread { mean, low: at(0.025).min(mean), high: at(0.975).max(mean) })
    }

    /// Widens the interval of a share at both ends, within 0 to 1.
    pub fn widened(self, by: f64) -> Self {
        // With 0 it must not change, not even by rounding.
        if by == 0.0 {
            self
        } else {
            Spread { low: (self.low - by).max(0.0), high: (self.high + by).min(1.0), ..self }
        }
    }

    /// Whether the interval holds 0. If it is that of a difference, neither side is called better.
    pub fn holds_zero(&self) -> bool {
        self.low <= 0.0 && self.high >= 0.0
    }
}

/// Replicates of means over a question set. In each replicate the verdicts are drawn with their probabilities, and the questions are
/// drawn with replacement (multiple imputation, with a bootstrap of each imputed set). So an interval covers both the choice of
/// questions and the detector's uncertainty.
///
/// Questions are added one by one, so that their passages need not be held in memory. All columns see the same questions and the same
/// verdicts, so that they can be compared. A column's replicates do not depend on the other columns.
#[derive(Clone, Debug)]
pub struct Replicates {
    questions: usize,
    columns: usize,
    seed: u64,
    /// How often each question is drawn: all questions for the first replicate, then for the next.
    times: Vec<u16>,
    /// The sum and number of values: all columns for the first replicate, then for the next.
    sums: Vec<(f64, u32)>,
}

impl Replicates {
    /// Replicates of so many columns over so many questions, none of which is added yet.
    pub fn new(questions: usize, columns: usize, replicates: usize, seed: u64) -> Self {
        let mut rng = SplitMix64::new(seed);
        let mut times = vec![0u16; questions * replicates];
        for replicate in times.chunks_mut(questions.max(1)) {
            for _ in 0..replicate.len() {
                let drawn = rng.below(replicate.len());
                replicate[drawn] = replicate[drawn].saturating_add(1);
            }
        }
        Replicates { questions, columns, seed, times, sums: vec![(0.0, 0); columns * replicates] }
    }

    /// Adds a question by its number. `measure` gets what each of the `passages` supports in one draw, and writes the value of every
    /// column into its second argument, which holds `None` for each at first.
    pub fn add(
        &mut self,
        question: usize,
        passages: &[Doubted<'_>],
        measure: impl Fn(&[Option<SupportSet>], &mut [Option<f64>]),
    ) {
        // Each passage has its own stream, so that its draws depend neither on earlier questions nor on other lanes.
        let seed = self.seed ^ (question as u64 + 1).wrapping_mul(0xd134_2543_de82_ef95);
        let mut streams: Vec<_> = passages.iter().map(|(id, _)| SplitMix64::named(seed, id)).collect();
        let mut values = vec![None; self.columns];
        let times = self.times.chunks(self.questions.max(1)).map(|replicate| replicate.get(question));
        for (times, sums) in times.zip(self.sums.chunks_mut(self.columns.max(1))) {
            let Some(times @ 1..) = times.copied() else { continue };
            let rows = passages.iter().zip(&mut streams);
            let sets: Vec<Option<SupportSet>> =
                rows.map(|((_, row), rng)| row.as_ref().map(|row| row.draw(rng))).collect();
            values.fill(None);
            measure(&sets, &mut values);
            for ((sum, count), value) in sums.iter_mut().zip(&values) {
                let Some(value) = value else { continue };
                *sum += f64::from(times) * value;
                *count += u32::from(times);
            }
        }
    }

    /// The number of columns.
    pub fn columns(&self) -> usize {
        self.columns
    }

    /// A column's mean in every replicate; `None` if one replicate has no question with a value.
    pub fn means(&self, column: usize) -> Option<Vec<f64>> {
        let sums = self.sums.chunks(self.columns.max(1)).map(|sums| sums.get(column));
        sums.map(|sum| sum.filter(|(_, count)| *count > 0).map(|(sum, count)| sum / f64::from(*count)))
            .collect()
    }
}

/// A passage for which the judge chose a side.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Guess {
    /// How sure the judge is; surer guesses are shown first.
    pub sureness: f64,
    /// Whether the side is the labelled one.
    pub right: bool,
}

/// The risk and coverage of showing only the surest guesses.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct RiskPoint {
    /// The share of the guesses that are shown.
    pub coverage: f64,
    /// The share of the shown guesses that are wrong.
    pub risk: f64,
    /// The least sureness shown.
    pub threshold: f64,
}

/// Computes the risk at every coverage that a threshold can give, from the surest guesses on. Equally sure guesses are shown together.
pub fn risk_coverage(guesses: &[Guess]) -> Vec<RiskPoint> {
    let mut sorted = guesses.to_vec();
    sorted.sort_by(|a, b| b.sureness.total_cmp(&a.sureness));
    let (mut shown, mut wrong) = (0, 0);
    sorted
        .chunk_by(|a, b| a.sureness == b.sureness)
        .map(|tied| {
            shown += tied.len();
            wrong += tied.iter().filter(|guess| !guess.right).count();
            RiskPoint {
                coverage: shown as f64 / sorted.len() as f64,
                risk: wrong as f64 / shown as f64,
                threshold: tied[0].sureness,
            }
        })
        .collect()
}

/// The area under the risk-coverage curve: the mean risk over all coverages k/n. 0 is perfect. `None` if there are no guesses.
pub fn aurc(guesses: &[Guess]) -> Option<f64> {
    let curve = risk_coverage(guesses);
    let mut before = 0.0;
    let area = curve.iter().map(|point| {
        let width = point.coverage - before;
        before = point.coverage;
        width * point.risk
    });
    (!curve.is_empty()).then(|| area.sum())
}

/// A bin of a reliability table.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Bin {
    /// The lower end of the bin; the upper end is one width higher.
    pub from: f64,
    /// The number of predictions in it.
    pub count: usize,
    /// Their mean probability.
    pub mean: f64,
    /// The share of them that are true.
    pub share: f64,
}

/// Sorts predictions of (probability, outcome) into `bins` bins of equal width; leaves out empty bins.
pub fn reliability(predictions: &[(f64, bool)], bins: usize) -> Vec<Bin> {
    let bin = |p: f64| ((p * bins as f64) as usize).min(bins.saturating_sub(1));
    (0..bins)
        .filter_map(|i| {
            let inside = || predictions.iter().filter(move |(p, _)| bin(*p) == i);
            let count = inside().count();
            (count > 0).then(|| Bin {
                from: i as f64 / bins as f64,
                count,
                mean: inside().map(|(p, _)| p).sum::<f64>() / count as f64,
                share: inside().filter(|(_, outcome)| *outcome).count() as f64 / count as f64,
            })
        })
        .collect()
}

/// The expected calibration error: the mean distance between probability and share over the bins, weighted by their counts (Naeini et
/// al. 2015). `None` if there are no predictions.
pub fn calibration_error(predictions: &[(f64, bool)], bins: usize) -> Option<f64> {
    let distance = |bin: &Bin| bin.count as f64 * (bin.mean - bin.share).abs();
    let total: f64 = reliability(predictions, bins).iter().map(distance).sum();
    (!predictions.is_empty()).then(|| total / predictions.len() as f64)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::measure::PerspectiveCount;
    use crate::measure::coverage::{mrecall, prec};

    fn two() -> PerspectiveCount {
        PerspectiveCount::new(2).unwrap()
    }

    #[test]
    fn the_four_outcomes_of_a_passage_are_drawn_as_often_as_they_are_likely() {
        let rows = [("a", Some(Chances::Two([0.5, 0.2, 0.1, 0.2])))];
        let all = draw(&rows, 20_000, 3);
        let share = |set: &[usize]| {
            let wanted = SupportSet::of(set.iter().copied()).unwrap();
            all.iter().filter(|row| row[0] == Some(wanted)).count() as f64 / all.len() as f64
        };
        for (set, p) in [(&[0][..], 0.5), (&[1], 0.2), (&[0, 1], 0.1), (&[], 0.2)] {
            assert!((share(set) - p).abs() < 0.01, "{set:?}: {}", share(set));
        }
        assert_eq!(draw(&[("a", None)], 2, 3), vec![vec![None]; 2]);
        let both = [("b", Some(Chances::Each(vec![0.3]))), rows[0].clone()];
        assert!(draw(&both, 100, 3).iter().zip(&all).all(|(two, one)| two[1] == one[0]));
        let difference = |low, high| Spread { mean: 0.1, low, high }.holds_zero();
        assert!(difference(-0.1, 0.3) && difference(0.0, 0.3) && !difference(0.01, 0.3));
    }

    #[test]
    fn an_interval_holds_its_mean() {
        let mut values = vec![1.0; 99];
        values.push(0.0);
        let spread = Spread::of(&mut values).unwrap();
        assert_eq!((spread.low, spread.high), (0.99, 1.0));
    }

    #[test]
    fn verdicts_without_doubt_have_no_spread() {
        let certain = [Some(Chances::Each(vec![1.0, 0.0])), Some(Chances::Each(vec![0.0, 1.0])), None];
        let spread = spread(&certain, 100, 0, |set| mrecall(set, two(), 5).value).unwrap();
        assert_eq!((spread.low, spread.mean, spread.high), (1.0, 1.0, 1.0));
    }

    #[test]
    fn the_mean_of_the_draws_is_the_expected_value() {
        // Both sides are met with .8 · .5; a passage counts for Prec with .8 and with .5, of five.
        let doubtful = [Some(Chances::Each(vec![0.8, 0.0])), Some(Chances::Each(vec![0.0, 0.5]))];
        let met = spread(&doubtful, 20_000, 7, |set| mrecall(set, two(), 5).value).unwrap();
        assert!((met.mean - 0.4).abs() < 0.01, "{}", met.mean);
        assert_eq!((met.low, met.high), (0.0, 1.0));
        let share = spread(&doubtful, 20_000, 7, |set| prec(set, two(), 5).value).unwrap();
        assert!((share.mean - 0.26).abs() < 0.01, "{}", share.mean);
    }

    /// Prec@1 over questions of one passage each, by their probabilities.
    fn replicated(probabilities: &[f64], replicates: usize) -> Option<Spread> {
        let mut all = Replicates::new(probabilities.len(), 1, replicates, 5);
        for (question, p) in probabilities.iter().enumerate() {
            all.add(question, &[("a", Some(Chances::Each(vec![*p, 0.0])))], |set, values| {
                values[0] = Some(prec(set, two(), 1).value);
            });
        }
        Spread::of(&mut all.means(0)?)
    }

    #[test]
    fn without_doubt_the_replicates_are_the_bootstrap_over_questions() {
        let certain: Vec<f64> = (0..100).map(|i| f64::from(i % 2)).collect();
        let spread = replicated(&certain, 4_000).unwrap();
        let plain = crate::measure::significance::bootstrap_interval(&certain, 0.95, 4_000, 1).unwrap();
        assert!(
            (spread.low - plain.low).abs() < 0.011 && (spread.high - plain.high).abs() < 0.011,
            "{spread:?}"
        );
        assert!((spread.mean - 0.5).abs() < 0.005);
    }

    #[test]
    fn doubt_widens_the_interval_by_its_own_variance() {
        // A hundred verdicts of .5 vary with .25/100 as drawn, and as much again as the questions are drawn from them.
        let spread = replicated(&[0.5; 100], 4_000).unwrap();
        let half = 1.96 * (2.0f64 * 0.25 / 100.0).sqrt();
        assert!((spread.mean - 0.5).abs() < 0.005, "{spread:?}");
        assert!((spread.high - spread.low - 2.0 * half).abs() < 0.025, "{spread:?}");
    }

    #[test]
    fn a_question_without_a_value_counts_nowhere_and_none_at_all_gives_no_interval() {
        let mut all = Replicates::new(2, 2, 200, 1);
        for question in 0..2 {
            all.add(question, &[], |_, values| values[0] = (question == 0).then_some(0.25));
        }
        assert_eq!(all.means(0), None, "some replicates hold the second question alone");
        assert_eq!(all.means(1), None);
        let mut one = Replicates::new(1, 1, 10, 1);
        one.add(0, &[], |_, values| values[0] = Some(0.25));
        assert_eq!(one.means(0), Some(vec![0.25; 10]));
        assert_eq!(replicated(&[], 10), None);
    }

    #[test]
    fn a_passage_is_drawn_alike_whatever_stands_beside_it() {
        let (own, other) =
            (("a", Some(Chances::Each(vec![0.4, 0.3]))), ("b", Some(Chances::Each(vec![0.9, 0.2]))));
        let means = |passages: &[Doubted<'_>], at: usize| {
            let mut all = Replicates::new(3, 1, 200, 7);
            for question in 0..3 {
                all.add(question, passages, |sets, values| {
                    values[0] = Some(prec(&sets[at..=at], two(), 1).value)
                });
            }
            all.means(0)
        };
        let alone = means(std::slice::from_ref(&own), 0);
        assert_eq!(means(&[own.clone(), other.clone()], 0), alone);
        assert_eq!(means(&[other.clone(), own.clone()], 1), alone);
        assert_ne!(means(&[("b", own.1)], 0), alone, "another passage is drawn for itself");
    }

    #[test]
    fn a_seed_gives_the_same_interval_and_no_draws_none() {
        let rows = [Some(Chances::Each(vec![0.3, 0.6]))];
        let once = |draws| spread(&rows, draws, 3, |set| prec(set, two(), 1).value);
        assert_eq!(once(50), once(50));
        assert_eq!(once(0), None);
    }

    fn guesses(all: &[(f64, bool)]) -> Vec<Guess> {
        all.iter().map(|(sureness, right)| Guess { sureness: *sureness, right: *right }).collect()
    }

    #[test]
    fn risk_rises_as_less_sure_guesses_are_shown() {
        let curve = risk_coverage(&guesses(&[(0.6, false), (0.9, true), (0.8, true), (0.7, false)]));
        let shown: Vec<(f64, f64)> = curve.iter().map(|point| (point.coverage, point.risk)).collect();
        assert_eq!(shown, [(0.25, 0.0), (0.5, 0.0), (0.75, 1.0 / 3.0), (1.0, 0.5)]);
        assert_eq!(curve[2].threshold, 0.7);
        // (0 + 0 + 1/3 + 1/2) / 4
        assert!(
            (aurc(&guesses(&[(0.6, false), (0.9, true), (0.8, true), (0.7, false)])).unwrap() - 5.0 / 24.0)
                .abs()
                < 1e-12
        );
    }

    #[test]
    fn guesses_of_equal_sureness_are_shown_together() {
        let curve = risk_coverage(&guesses(&[(0.8, true), (0.8, false)]));
        assert_eq!(curve.len(), 1);
        assert_eq!((curve[0].coverage, curve[0].risk), (1.0, 0.5));
        assert_eq!(aurc(&[]), None);
    }

    #[test]
    fn probabilities_that_are_what_they_say_have_no_calibration_error() {
        let honest: Vec<(f64, bool)> = (0..10).map(|i| (0.3, i < 3)).collect();
        assert!(calibration_error(&honest, 10).unwrap().abs() < 1e-12);
        let boastful: Vec<(f64, bool)> = (0..10).map(|i| (1.0, i < 3)).collect();
        assert!((calibration_error(&boastful, 10).unwrap() - 0.7).abs() < 1e-12);
        let table = reliability(&boastful, 10);
        assert_eq!((table.len(), table[0].from, table[0].count, table[0].share), (1, 0.9, 10, 0.3));
        assert_eq!(calibration_error(&[], 10), None);
    }

    #[test]
    fn a_widened_interval_stays_a_share_and_without_a_widening_as_it_is() {
        let spread = Spread { mean: 0.5, low: 0.05, high: 0.93 };
        assert_eq!(spread.widened(0.0), spread);
        assert_eq!(spread.widened(0.1), Spread { mean: 0.5, low: 0.0, high: 1.0 });
    }
}
