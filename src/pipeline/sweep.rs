//! The same lane in several forms, measured on one question or over a set: MMR against λ, one expansion against another.

use super::{Depth, Figures, Lists, Plan, Recipe, Setup, SetupError, answer};
use crate::detect::LabelSource;
use crate::question::Question;
use crate::work::Stop;

/// What is swept.
#[derive(Clone, Debug, PartialEq)]
pub struct Sweep {
    /// The lane in all its forms.
    pub forms: Vec<Recipe>,
    /// On these questions.
    pub questions: Vec<Question>,
    /// How many passages count.
    pub k: usize,
    /// Which labels count.
    pub source: LabelSource,
}

/// A form's means over the questions measured so far.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Tally {
    /// Questions measured.
    pub questions: usize,
    /// Questions that have no list or no perspectives; they are in no mean.
    pub failed: usize,
    /// Sum of MRecall@k.
    mrecall: f64,
    /// Sum of Prec@k.
    prec: f64,
    /// Sums of the shares of the top k that support either side, over two-sided questions.
    sides: Option<(f64, f64, usize)>,
}

impl Tally {
    /// Adds one question.
    pub fn add(&mut self, figures: Option<&Figures>) {
        let Some(figures) = figures else {
            self.failed += 1;
            return;
        };
        self.questions += 1;
        self.mrecall += figures.mrecall;
        self.prec += figures.prec;
        if let Some(sides) = figures.sides {
            let (p, n, count) = self.sides.unwrap_or_default();
            self.sides = Some((p + sides.p, n + sides.n, count + 1));
        }
    }

    fn mean(&self, sum: f64) -> Option<f64> {
        (self.questions > 0).then(|| sum / self.questions as f64)
    }

    /// Mean MRecall@k.
    pub fn mrecall(&self) -> Option<f64> {
        self.mean(self.mrecall)
    }

    /// Mean Prec@k.
    pub fn prec(&self) -> Option<f64> {
        self.mean(self.prec)
    }

    /// Mean share of the top k that supports the first and the second side.
    pub fn sides(&self) -> Option<(f64, f64)> {
        self.sides.map(|(p, n, count)| (p / count as f64, n / count as f64))
    }
}

/// Carries a sweep out, question by question; `told` hears the tallies of all forms after each.
///
/// # Errors
/// The detector could not be loaded.
pub fn sweep(
    setup: &Setup,
    sweep: &Sweep,
    stop: &Stop,
    told: &dyn Fn(&[Tally]),
) -> Result<Vec<Tally>, SetupError> {
    let mut tallies = vec![Tally::default(); sweep.forms.len()];
    for question in &sweep.questions {
        let plan =
            Plan { question: question.clone(), lanes: sweep.forms.clone(), k: sweep.k, source: sweep.source };
        let answered = answer(setup, &plan, Depth::Top, &mut Lists::default(), stop)?;
        if stop.is_set() {
            break;
        }
        for (i, tally) in tallies.iter_mut().enumerate() {
            tally.add(answered.figures(&plan, i).as_ref());
        }
        told(&tallies);
    }
    Ok(tallies)
}
