//! Reading a list again and again: its first 1 … N passages, a choice of them, each left out, in other orders.

use super::answer::{matches, same};
use super::pattern::Pattern;
use super::reader::{Answer, Context, ReadError, Reader};
use crate::measure::seeded::SplitMix64;
use crate::work::Stop;

/// The answers from the first `from` + 1 … N passages, each told as soon as it is there.
///
/// # Errors
/// The reader gave none, or `stop` was set; what was told before stands.
pub fn each_k(
    reader: &dyn Reader,
    question: &str,
    passages: &[Context],
    from: usize,
    stop: &Stop,
    tell: &mut dyn FnMut(usize, &Answer),
) -> Result<Vec<Answer>, ReadError> {
    (from + 1..=passages.len())
        .map(|k| {
            let answer = reader.answer(question, &passages[..k], stop)?;
            tell(k, &answer);
            Ok(answer)
        })
        .collect()
}

/// Right or wrong at every k.
pub fn pattern(answers: &[Answer], gold: &[String]) -> Pattern {
    answers.iter().map(|answer| matches(&answer.text, gold)).collect()
}

/// Without gold: whether each answer differs from the one before it; the first has none before it.
pub fn changes(answers: &[Answer]) -> Vec<bool> {
    (0..answers.len()).map(|i| i > 0 && !same(&answers[i].text, &answers[i - 1].text)).collect()
}

/// The answer from some of the passages, by their places from 0.
///
/// # Errors
/// As [`each_k`].
pub fn from_kept(
    reader: &dyn Reader,
    question: &str,
    passages: &[Context],
    kept: &[usize],
    stop: &Stop,
) -> Result<Answer, ReadError> {
    let kept: Vec<Context> = kept.iter().filter_map(|at| passages.get(*at).cloned()).collect();
    reader.answer(question, &kept, stop)
}

/// The answer without the passage at a place.
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
    let kept: Vec<usize> = (0..passages.len()).filter(|place| *place != at).collect();
    from_kept(reader, question, passages, &kept, stop)
}

/// How many answers from shuffled passages were the one from their own order.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Reordered {
    /// So many agreed.
    pub same: usize,
    /// Of so many shuffles.
    pub of: usize,
}

/// Reads the passages in `count` shuffled orders, the same ones for a seed.
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::read::testing::{Last, contexts};
    use crate::work::Stopped;

    #[test]
    fn every_depth_is_read_and_told_and_a_later_reading_goes_on() {
        let passages = contexts(&["a", "b", "c"]);
        let mut told = Vec::new();
        let all = each_k(&Last, "q", &passages, 0, &Stop::never(), &mut |k, answer| {
            told.push((k, answer.text.clone()));
        })
        .unwrap();
        assert_eq!(told, [(1, "a".into()), (2, "b".into()), (3, "c".into())]);
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
        assert_eq!(from_kept(&Last, "q", &passages, &[], &Stop::never()).unwrap().text, "");
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
