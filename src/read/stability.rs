//! The stability error ratio (SER): whether an answer that is right from the gold passage alone stands when others are added.

use std::sync::Arc;

use super::answer::{matches, same};
use super::files::{Case, holds};
use super::reader::{Context, ReadError, Reader};
use crate::corpus::Passage;
use crate::measure::seeded::SplitMix64;
use crate::work::Stop;

/// At most so many passages are added.
pub const MOST: usize = 4;

/// Where the added passages come from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Added {
    /// The question's own list, by rank: those that hold no gold answer.
    Retrieved,
    /// Passages of other questions, drawn by seed, that hold none either.
    Random,
}

/// The passages to be added to a question's gold one.
pub fn added(cases: &[Case], at: usize, from: Added) -> Vec<Context> {
    let Some(case) = cases.get(at) else { return Vec::new() };
    let gold = case.gold_passage();
    match from {
        Added::Retrieved => {
            let wrong = |place: &usize| {
                Some(*place) != gold && !case.marked.contains(place) && !case.holds_gold(*place)
            };
            (0..case.passages.len())
                .filter(wrong)
                .take(MOST)
                .map(|place| case.passages[place].clone())
                .collect()
        }
        Added::Random => {
            let mut draw = SplitMix64::new(at as u64);
            let mut found: Vec<Arc<Passage>> = Vec::new();
            // Small sets may not have enough others: it is not tried for ever.
            for _ in 0..MOST * 16 {
                let other = draw.below(cases.len());
                let place = draw.below(cases[other].passages.len());
                let Some(context) = cases[other].passages.get(place).filter(|_| other != at) else {
                    continue;
                };
                if found.len() < MOST
                    && !found.contains(&context.passage)
                    && !holds(&context.passage, &case.gold)
                {
                    found.push(Arc::clone(&context.passage));
                }
            }
            let foreign = |(i, passage)| Context { rank: case.passages.len() + i + 1, passage };
            found.into_iter().enumerate().map(foreign).collect()
        }
    }
}

/// Whether the answer differs once the first 1 … n were added; nothing where it is not right from the gold passage alone.
///
/// # Errors
/// The reader gave no answer, or `stop` was set.
pub fn unstable(
    reader: &dyn Reader,
    case: &Case,
    added: &[Context],
    stop: &Stop,
) -> Result<Option<Vec<bool>>, ReadError> {
    let Some(gold) = case.gold_passage() else { return Ok(None) };
    let mut passages = vec![case.passages[gold].clone()];
    let alone = reader.answer(&case.question, &passages, stop)?;
    if !matches(&alone.text, &case.gold) {
        return Ok(None);
    }
    let mut differs = Vec::new();
    for context in added {
        passages.push(context.clone());
        match reader.answer(&case.question, &passages, stop) {
            Ok(answer) => differs.push(!same(&answer.text, &alone.text)),
            // Where answers were recorded, those up to here count.
            Err(ReadError::NotRecorded(_)) => break,
            Err(error) => return Err(error),
        }
    }
    Ok(Some(differs))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::read::testing::{Last, contexts};

    fn case(id: &str, gold: &str, passages: &[&str]) -> Case {
        Case {
            id: id.into(),
            question: "q".into(),
            gold: vec![gold.into()],
            passages: contexts(passages),
            marked: Vec::new(),
        }
    }

    #[test]
    fn the_gold_passage_is_read_first_and_then_those_that_hold_no_gold_answer() {
        let cases = [case("a", "ann", &["x", "ann", "ann too", "y"]), case("b", "bob", &["p", "ann", "q"])];
        let own = added(&cases, 0, Added::Retrieved);
        let texts: Vec<&str> = own.iter().map(|context| context.passage.text.as_str()).collect();
        assert_eq!(texts, ["x", "y"]);
        assert_eq!(unstable(&Last, &cases[0], &own, &Stop::never()), Ok(Some(vec![true, true])));
        let drawn = added(&cases, 0, Added::Random);
        assert!(
            drawn.len() == 2
                && drawn.iter().all(|context| ["p", "q"].contains(&context.passage.text.as_str()))
        );
        assert_eq!(drawn, added(&cases, 0, Added::Random));
    }

    #[test]
    fn a_question_that_is_wrong_from_the_start_does_not_count() {
        let wrong = case("a", "ann", &["ann and bob"]);
        assert_eq!(unstable(&Last, &wrong, &[], &Stop::never()), Ok(None));
        assert_eq!(unstable(&Last, &case("a", "ann", &["x"]), &[], &Stop::never()), Ok(None));
        assert!(added(&[wrong], 0, Added::Random).is_empty());
    }
}
