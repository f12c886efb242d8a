//! What a measure of model labels is worth: how it would fall if every verdict were drawn anew with its own probability.
//!
//! A verdict's probability is calibrated, so among verdicts of .7 some 70 % are right. Every draw takes each verdict as true with
//! its probability, independently, and measures again; the middle 95 % of the draws is the interval. It holds the detector's
//! doubt alone, neither that of which questions were asked nor errors that its verdicts share.

use super::SupportSet;
use super::seeded::SplitMix64;

/// Draws behind an interval on screen.
pub const DRAWS: usize = 400;

/// Replicates behind an interval of a table.
pub const REPLICATES: usize = 1_000;

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

/// A passage whose verdicts are drawn: its id, and a probability a perspective; none where it is not known.
pub type Doubted<'a> = (&'a str, Option<Vec<f64>>);

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
    Spread::of(&mut values)
}

impl Spread {
    /// Of the values themselves, which are put in order; `None` without any.
    pub fn of(values: &mut [f64]) -> Option<Self> {
        if values.is_empty() {
            return None;
        }
        values.sort_unstable_by(f64::total_cmp);
        let at = |share: f64| values[((values.len() - 1) as f64 * share).round() as usize];
        let mean = values.iter().sum::<f64>() / values.len() as f64;
        Some(Spread { mean, low: at(0.025), high: at(0.975) })
    }
}

/// Means over a question set, measured again and again: in every replicate each verdict is drawn with its own probability, and the
/// questions are drawn with replacement (multiple imputation with a bootstrap of each). The middle 95 % holds both the choice of
/// questions and the detector's doubt. Questions are added one by one, so that memory does not grow with them. All columns see the
/// same questions and the same verdicts, as comparing them needs; a column's replicates do not depend on which others there are.
#[derive(Clone, Debug)]
pub struct Replicates {
    questions: usize,
    columns: usize,
    seed: u64,
    /// How often each question is drawn, a replicate after the other.
    times: Vec<u16>,
    /// Sum and number of the values of each column, a replicate after the other.
    sums: Vec<(f64, u32)>,
}

impl Replicates {
    /// None added yet.
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

    /// Adds a question by its number. `measure` writes the value of every column into its second argument, none where the question
    /// has none; its first argument are the verdicts drawn, row for row of `passages`.
    pub fn add(
        &mut self,
        question: usize,
        passages: &[Doubted<'_>],
        measure: impl Fn(&[Option<SupportSet>], &mut [Option<f64>]),
    ) {
        // A stream a passage, so that its draws depend neither on the questions before nor on what other lanes brought.
        let seed = self.seed ^ (question as u64 + 1).wrapping_mul(0xd134_2543_de82_ef95);
        let mut streams: Vec<_> = passages.iter().map(|(id, _)| SplitMix64::named(seed, id)).collect();
        let mut values = vec![None; self.columns];
        let drawn = self.times.chunks(self.questions.max(1)).map(|replicate| replicate.get(question));
        for (times, sums) in drawn.zip(self.sums.chunks_mut(self.columns.max(1))) {
            let Some(times @ 1..) = times.copied() else { continue };
            let rows = passages.iter().zip(&mut streams);
            let sets: Vec<Option<SupportSet>> =
                rows.map(|((_, row), rng)| row.as_ref().map(|row| draw(row, rng))).collect();
            values.fill(None);
            measure(&sets, &mut values);
            for ((sum, count), value) in sums.iter_mut().zip(&values) {
                let Some(value) = value else { continue };
                *sum += f64::from(times) * value;
                *count += u32::from(times);
            }
        }
    }

    /// How many columns there are.
    pub fn columns(&self) -> usize {
        self.columns
    }

    /// A column's mean in every replicate; `None` where one of them has no question with a value.
    pub fn means(&self, column: usize) -> Option<Vec<f64>> {
        let sums = self.sums.chunks(self.columns.max(1)).map(|sums| sums.get(column));
        sums.map(|sum| sum.filter(|(_, count)| *count > 0).map(|(sum, count)| sum / f64::from(*count)))
            .collect()
    }
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

    /// Prec@1 over questions of one passage each, by their probabilities.
    fn replicated(probabilities: &[f64], replicates: usize) -> Option<Spread> {
        let mut all = Replicates::new(probabilities.len(), 1, replicates, 5);
        for (question, p) in probabilities.iter().enumerate() {
            all.add(question, &[("a", Some(vec![*p, 0.0]))], |set, values| {
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
        let (own, other) = (("a", Some(vec![0.4, 0.3])), ("b", Some(vec![0.9, 0.2])));
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
        let rows = [Some(vec![0.3, 0.6])];
        let once = |draws| spread(&rows, draws, 3, |set| prec(set, two(), 1).value);
        assert_eq!(once(50), once(50));
        assert_eq!(once(0), None);
    }
}
