//! The same work by both sides, in turns, so that whatever else the machine does falls on both alike.

use std::time::Instant;

use crate::Outcome;

/// Rounds that count; one more goes before them, for both sides to warm up.
pub const ROUNDS: usize = 7;

/// What the rounds took, in seconds, ours and theirs; theirs is empty where no peer is there.
#[derive(Default)]
pub struct Rounds {
    ours: Vec<f64>,
    theirs: Vec<f64>,
}

impl Rounds {
    /// Times both sides, `theirs` by its own clock: what passes between two processes is no work of either.
    pub fn of(
        count: usize,
        mut ours: impl FnMut() -> Outcome<()>,
        mut theirs: impl FnMut() -> Outcome<Option<f64>>,
    ) -> Outcome<Self> {
        let mut rounds = Rounds::default();
        for round in 0..=count {
            let mut timed = || -> Outcome<f64> {
                let began = Instant::now();
                ours()?;
                Ok(began.elapsed().as_secs_f64())
            };
            // Each side goes first every other time.
            let (our, their) = if round % 2 == 0 {
                let our = timed()?;
                (our, theirs()?)
            } else {
                let their = theirs()?;
                (timed()?, their)
            };
            if round > 0 {
                rounds.push(our, their);
            }
        }
        Ok(rounds)
    }

    /// Adds a round that was timed elsewhere.
    pub fn push(&mut self, ours: f64, theirs: Option<f64>) {
        self.ours.push(ours);
        self.theirs.extend(theirs);
    }

    /// Our median, in seconds.
    pub fn ours(&self) -> f64 {
        median(self.ours.clone())
    }

    /// Their median, in seconds.
    pub fn theirs(&self) -> Option<f64> {
        (!self.theirs.is_empty()).then(|| median(self.theirs.clone()))
    }

    /// How many times as fast as the peer this program is: the median over the rounds, the least and the most.
    pub fn ratio(&self) -> Option<[f64; 3]> {
        let mut ratios: Vec<f64> =
            self.ours.iter().zip(&self.theirs).map(|(ours, theirs)| theirs / ours).collect();
        ratios.sort_unstable_by(f64::total_cmp);
        Some([median(ratios.clone()), *ratios.first()?, *ratios.last()?])
    }
}

fn median(mut times: Vec<f64>) -> f64 {
    times.sort_unstable_by(f64::total_cmp);
    match times.len() {
        0 => f64::NAN,
        n if n % 2 == 1 => times[n / 2],
        n => f64::midpoint(times[n / 2 - 1], times[n / 2]),
    }
}
