//! The stance that each depth of a list takes together, which passages turned it, and what must be removed to turn it.

use super::Book;
use crate::corpus::PassageIx;
use crate::question::Question;
use crate::read::stance::{Sides, Stance, removed_to_turn, stances, turns};

/// What the passages of a list do to its stance, by their places from 0.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Strip {
    /// The stance after each passage.
    pub stances: Vec<Stance>,
    /// The passages that changed it when they were added.
    pub turns: Vec<usize>,
    /// A smallest choice of one side's passages whose removal changes the last stance.
    pub removed: Option<Vec<usize>>,
    /// Passages whose removal alone changes it.
    pub alone: Vec<usize>,
    /// How many of the passages have verdicts that count.
    pub judged: usize,
}

impl Strip {
    /// Of these passages, read in this order; none where the question has no two sides.
    pub fn of(question: &Question, book: &Book, passages: &[PassageIx]) -> Option<Self> {
        let [first, other] = question.sides()?;
        let support: Vec<_> = passages.iter().map(|at| book.support(*at)).collect();
        let sides: Vec<Sides> = support
            .iter()
            .map(|set| set.map_or((false, false), |set| (set.contains(first), set.contains(other))))
            .collect();
        let stances = stances(&sides);
        let last = stances.last().copied().unwrap_or(Stance::Silent);
        let without = |at: &usize| {
            let kept: Vec<Sides> = (0..sides.len()).filter(|i| i != at).map(|i| sides[i]).collect();
            self::stances(&kept).last().copied().unwrap_or(Stance::Silent) != last
        };
        Some(Strip {
            turns: turns(&stances),
            removed: removed_to_turn(&sides),
            alone: (0..sides.len()).filter(without).collect(),
            judged: support.iter().flatten().count(),
            stances,
        })
    }

    /// The stance of all passages together.
    pub fn last(&self) -> Stance {
        self.stances.last().copied().unwrap_or(Stance::Silent)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::detect::{Known, LabelSource};

    #[test]
    fn a_strip_counts_what_is_judged_and_knows_the_side_that_supports() {
        let mut book = Book::new(2, LabelSource::Gold, 0.5);
        let mut write = |at: u32, sides: [bool; 2]| {
            for (i, side) in sides.into_iter().enumerate() {
                book.write(PassageIx(at), i, Known { gold: Some(side), ..Known::default() });
            }
        };
        write(0, [false, true]);
        write(1, [true, false]);
        write(2, [true, false]);
        let question =
            Question { perspectives: vec!["a".into(), "b".into()], supports: Some(1), ..Question::default() };
        let places: Vec<PassageIx> = (0..4).map(PassageIx).collect();
        let strip = Strip::of(&question, &book, &places).unwrap();
        use Stance::*;
        assert_eq!(strip.stances, [Supports, Supports, Balanced, Balanced]);
        assert_eq!((strip.turns.clone(), strip.judged, strip.last()), (vec![2], 3, Balanced));
        assert_eq!(strip.removed, Some(vec![0]));
        assert_eq!(strip.alone, [0, 1, 2]);
        let many = Question { supports: None, ..question };
        assert_eq!(Strip::of(&many, &book, &places), None);
    }
}
