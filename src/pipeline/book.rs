//! All that is known of the pairs of one question.

use std::collections::HashMap;

use super::Ranked;
use crate::corpus::PassageIx;
use crate::detect::{Known, LabelSource, Verdict};
use crate::measure::SupportSet;

/// What is known of every (passage, perspective) of one question, and which of it counts.
#[derive(Clone, Debug, Default)]
pub struct Book {
    known: HashMap<(PassageIx, usize), Known>,
    /// Number of perspectives.
    pub perspectives: usize,
    /// Which labels count.
    pub source: LabelSource,
    /// From which probability on a model's verdict is a yes.
    pub threshold: f32,
}

impl Book {
    /// An empty book.
    pub fn new(perspectives: usize, source: LabelSource, threshold: f32) -> Self {
        Book { known: HashMap::new(), perspectives, source, threshold }
    }

    /// Writes down what is known of a pair.
    pub fn write(&mut self, passage: PassageIx, perspective: usize, known: Known) {
        self.known.insert((passage, perspective), known);
    }

    /// Writes down what was just decided by hand on a pair, beside what is known of it.
    pub fn decided(&mut self, passage: PassageIx, perspective: usize, human: Option<bool>) {
        self.known.entry((passage, perspective)).or_default().human = human;
    }

    /// All that is known of a pair.
    pub fn known(&self, passage: PassageIx, perspective: usize) -> Option<&Known> {
        self.known.get(&(passage, perspective))
    }

    /// The verdict that counts for a pair.
    pub fn verdict(&self, passage: PassageIx, perspective: usize) -> Option<Verdict> {
        self.known(passage, perspective)?.verdict(self.source, self.threshold)
    }

    /// Which perspectives a passage supports; none until every pair of it has a verdict that counts. Where labels alone count, one yes
    /// is enough: files that list what was found have no line for the other sides.
    pub fn support(&self, passage: PassageIx) -> Option<SupportSet> {
        let mut missing = false;
        let set = (0..self.perspectives).try_fold(SupportSet::EMPTY, |set, perspective| {
            match self.verdict(passage, perspective) {
                Some(verdict) if verdict.supports => set.with(perspective).ok(),
                Some(_) => Some(set),
                None => {
                    missing = true;
                    Some(set)
                }
            }
        })?;
        // Nor has the model anything to say of what a run brought from elsewhere.
        let labels_alone = self.source.is_labels() || passage.as_outside().is_some();
        let enough = !missing || (labels_alone && !set.is_empty());
        enough.then_some(set)
    }

    /// With what probability a passage supports each perspective: the model's where its verdict counts, 1 or 0 where a label does;
    /// none until every pair of it has a verdict that counts.
    pub fn probabilities(&self, passage: PassageIx) -> Option<Vec<f64>> {
        let one = |perspective| {
            let verdict = self.verdict(passage, perspective)?;
            Some(verdict.p.map_or(f64::from(u8::from(verdict.supports)), f64::from))
        };
        (0..self.perspectives).map(one).collect()
    }

    /// [`Book::support`] down a list.
    pub fn supports(&self, ranking: &[Ranked]) -> Vec<Option<SupportSet>> {
        ranking.iter().map(|ranked| self.support(ranked.at)).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_yes_is_enough_where_labels_alone_count_and_no_model_fills_the_other_side() {
        let at = PassageIx(0);
        let mut book = Book::new(2, LabelSource::Gold, 0.5);
        assert_eq!(book.support(at), None);
        book.write(at, 1, Known { gold: Some(false), ..Known::default() });
        assert_eq!(book.support(at), None, "a single no leaves the other side open");
        book.write(at, 0, Known { gold: Some(true), ..Known::default() });
        book.write(at, 1, Known::default());
        assert_eq!(book.support(at), SupportSet::EMPTY.with(0).ok());
        book.source = LabelSource::Auto;
        assert_eq!(book.support(at), None, "the model is still to be asked");
    }
}
