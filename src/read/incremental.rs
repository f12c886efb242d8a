//! Reads a list many times: its first 1 … N passages, a selection, without each passage in turn, in other orders, and with passages
//! added.

use std::sync::Arc;

use super::files::{Case, holds};
use super::pattern::Pattern;
use super::reader::{Answer, Context, ReadError, Reader, matches, same};
use crate::corpus::Passage;
use crate::measure::seeded::SplitMix64;
use crate::work::Stop;

/// Reads the first `from` + 1 … N passages and returns the answers. `on_answer` is called with k and the answer after each reading.
///
/// # Errors
/// The reader gave no answer, or `stop` was set; `on_answer` was called with the earlier answers.
pub fn each_k(
    reader: &dyn Reader,
    question: &str,
    passages: &[Context],
    from: usize,
    stop: &Stop,
    on_answer: &mut dyn FnMut(usize, &Answer),
) -> Result<Vec<Answer>, ReadError> {
    (from + 1..=passages.len())
        .map(|k| {
            let answer = reader.answer(question, &passages[..k], stop)?;
            on_answer(k, &answer);
            Ok(answer)
        })
        .collect()
}

/// Whether the answer is right, at every k.
pub fn pattern(answers: &[Answer], gold: &[String]) -> Pattern {
    answers.iter().map(|answer| matches(&answer.text, gold)).collect()
}

/// Whether each answer differs from the previous one, for questions without gold answers; `false` for the first.
pub fn changes(answers: &[Answer]) -> Vec<bool> {
    (0..answers.len()).map(|i| i > 0 && !same(&answers[i].text, &answers[i - 1].text)).collect()
}

/// The answer from some of the passages, by their indices.
///
/// # Errors
/// As [`each_k`].
pub fn from_places(
    reader: &dyn Reader,
    question: &str,
    passages: &[Context],
    places: &[usize],
    stop: &Stop,
) -> Result<Answer, ReadError> {
    let places: Vec<Context> = places.iter().filter_map(|at| passages.get(*at).cloned()).collect();
    reader.answer(question, &places, stop)
}

/// The answer without the passage at an index.
///
/// # Errors
/// As [`each_k`].
pub fn without(
    reader: &dyn Reader,
    question: &str,
    passages: &[Context],
    at: usize,
    stop: &Stop,
) -> Result<Answer, ReadError> {
    let places: Vec<usize> = (0..passages.len()).filter(|place| *place != at).collect();
    from_places(reader, question, passages, &places, stop)
}

/// How often the answer from shuffled passages equals the answer from the original order.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Reordered {
    /// The number of equal answers.
    pub same: usize,
    /// The number of shuffles.
    pub of: usize,
}

/// Reads the passages in `count` shuffled orders; the seed determines the orders.
///
/// # Errors
/// As [`each_k`].
pub fn reordered(
    reader: &dyn Reader,
    question: &str,
    passages: &[Context],
    (count, seed): (usize, u64),
    stop: &Stop,
) -> Result<Reordered, ReadError> {
    let own = reader.answer(question, passages, stop)?;
    let mut draw = SplitMix64::new(seed);
    let mut agreed = 0;
    for _ in 0..count {
        let mut order = passages.to_vec();
        draw.shuffle(&mut order);
        agreed += usize::from(same(&reader.answer(question, &order, stop)?.text, &own.text));
    }
    Ok(Reordered { same: agreed, of: count })
}

/// The most passages that are added.
pub const MOST: usize = 4;

/// The source of added passages. None of them holds a gold answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Added {
    /// The question's own list, by rank.
    Retrieved,
    /// Passages of other questions, drawn at random with a fixed seed.
    Random,
}

/// The passages to add to a question's gold passage.
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
            // Small sets may not have enough other passages, so the tries are limited.
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

/// Whether the answer from the gold passage changes after 1 … n passages are added; `None` if it is wrong to begin with.
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
            // If the answers are recorded, only those up to here count.
            Err(ReadError::NotRecorded(_)) => break,
            Err(error) => return Err(error),
        }
    }
    Ok(Some(differs))
}

#[cfg(test)]
mod incremental_tests {
    use super::*;
    use crate::read::reader::testing::{Last, contexts};
    use crate::work::Stopped;

    #[test]
    fn every_depth_is_read_and_reported_and_a_later_reading_goes_on() {
        let passages = contexts(&["a", "b", "c"]);
        let mut read = Vec::new();
        let all = each_k(&Last, "q", &passages, 0, &Stop::never(), &mut |k, answer| {
            read.push((k, answer.text.clone()));
        })
        .unwrap();
        assert_eq!(read, [(1, "a".into()), (2, "b".into()), (3, "c".into())]);
        assert_eq!(pattern(&all, &["B".into()]), [false, true, false].into_iter().collect());
        assert_eq!(changes(&all), [false, true, true]);
        let on = each_k(&Last, "q", &passages, 2, &Stop::never(), &mut |_, _| {}).unwrap();
        assert_eq!(on.len(), 1);
    }

    #[test]
    fn the_passage_that_the_answer_hangs_on_is_found_by_leaving_it_out() {
        let passages = contexts(&["a", "b", "c"]);
        let without = |at| without(&Last, "q", &passages, at, &Stop::never()).unwrap().text;
        assert_eq!([without(0), without(1), without(2)], ["c", "c", "b"]);
        assert_eq!(from_places(&Last, "q", &passages, &[], &Stop::never()).unwrap().text, "");
    }

    #[test]
    fn shuffles_are_the_same_for_a_seed() {
        let passages = contexts(&["a", "b", "c", "d"]);
        let once = reordered(&Last, "q", &passages, (20, 1), &Stop::never()).unwrap();
        assert_eq!(once, reordered(&Last, "q", &passages, (20, 1), &Stop::never()).unwrap());
        assert!(once.of == 20 && once.same < 20);
    }

    #[test]
    fn a_stop_ends_the_reading() {
        let now = std::sync::Arc::new(std::sync::atomic::AtomicU64::new(1));
        let stop = Stop::when_past(&now, 0);
        let ended = each_k(&Last, "q", &contexts(&["a"]), 0, &stop, &mut |_, _| {});
        assert_eq!(ended, Err(ReadError::Stopped(Stopped)));
    }
}

#[cfg(test)]
mod stability_tests {
    use super::*;
    use crate::read::reader::testing::{Last, contexts};

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
