//! Reads a list many times: its first 1 … N passages, a selection, without each passage in turn, in other orders, and with passages
//! added. Also where a changed answer stands, and the types that a file gives the passages.

use std::collections::HashMap;
use std::path::Path;
use std::sync::Arc;

use serde::Deserialize;
use serde_json::Value;

use super::files::{Case, holds, named};
use super::pattern::{Effect, Pattern};
use super::reader::{Answer, Context, ReadError, Reader, matches, same};
use crate::corpus::Passage;
use crate::input::{InputError, lines};
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

/// The first passages, at most [`MOST`], that hold no gold answer and are not the gold passage.
pub fn without_answer(
    case: &Case,
    gold: &Passage,
    candidates: impl IntoIterator<Item = Context>,
) -> Vec<Context> {
    let wrong = |one: &Context| one.passage.text != gold.text && !holds(&one.passage, &case.gold);
    candidates.into_iter().filter(wrong).take(MOST).collect()
}

/// Passages from elsewhere, ranked after a question's own list: an answer recorded from the first k does not hold for them.
pub fn ranked_after(case: &Case, passages: impl IntoIterator<Item = Arc<Passage>>) -> Vec<Context> {
    let context = |(i, passage)| Context { rank: case.passages.len() + i + 1, passage };
    passages.into_iter().enumerate().map(context).collect()
}

/// The answers from the gold passage alone and after 1 … n passages are added; `None` if an answer was not recorded, from there on.
///
/// # Errors
/// The reader gave no answer, or `stop` was set.
pub fn with_added(
    reader: &dyn Reader,
    case: &Case,
    gold: &Context,
    added: &[Context],
    stop: &Stop,
) -> Result<Vec<Answer>, ReadError> {
    let passages: Vec<Context> = std::iter::once(gold).chain(added).cloned().collect();
    let mut answers = Vec::new();
    for n in 1..=passages.len() {
        match reader.answer(&case.question, &passages[..n], stop) {
            Ok(answer) => answers.push(answer),
            Err(ReadError::NotRecorded(_)) => break,
            Err(error) => return Err(error),
        }
    }
    Ok(answers)
}

/// Whether the answer differs from that of the gold passage alone after 1 … n passages were added; `None` if that was wrong to begin
/// with, or there is none.
pub fn unstable(answers: &[Answer], gold: &[String]) -> Option<Vec<bool>> {
    let (alone, added) = answers.split_first()?;
    let differs = |answer: &Answer| !same(&answer.text, &alone.text);
    matches(&alone.text, gold).then(|| added.iter().map(differs).collect())
}

/// Where an answer stands that replaced a right one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Stands {
    /// In the passage that changed it.
    Here,
    /// In an earlier passage only.
    Before,
    /// In none of them.
    Nowhere,
}

impl Stands {
    /// All places.
    pub const ALL: [Stands; 3] = [Stands::Here, Stands::Before, Stands::Nowhere];

    /// The name in tables and files.
    pub fn name(self) -> &'static str {
        match self {
            Stands::Here => "in the DN",
            Stands::Before => "before",
            Stands::Nowhere => "nowhere",
        }
    }
}

/// Finds an answer in the passage at an index, else in those before it. Words are compared as answers are.
pub fn stands(answer: &str, passages: &[Context], at: usize) -> Stands {
    let wanted = [answer.to_owned()];
    let held = |context: &Context| holds(&context.passage, &wanted);
    match passages.split_at_checked(at) {
        Some((_, [here, ..])) if held(here) => Stands::Here,
        Some((before, _)) if before.iter().any(held) => Stands::Before,
        _ => Stands::Nowhere,
    }
}

/// The shares of attention below which passages are left out (Oh & Thorne, Table 3).
pub const THRESHOLDS: [f64; 5] = [0.025, 0.05, 0.075, 0.1, 0.2];

/// The indices of passages with at least this share of the attention; all if there is none.
pub fn attended(shares: &[f64], threshold: f64) -> Vec<usize> {
    let kept: Vec<usize> = (0..shares.len()).filter(|at| shares[*at] >= threshold).collect();
    if kept.is_empty() { (0..shares.len()).collect() } else { kept }
}

const EXPECTED_TYPE: &str = "a JSON object with `question` or its `id`, `passage` (an id), `type` (IZ, DP, DN, SP or SN) and optionally `lane`";

#[derive(Deserialize)]
struct TypeLine {
    id: Option<Value>,
    question: Option<String>,
    lane: Option<String>,
    passage: Value,
    #[serde(rename = "type")]
    kind: String,
}

/// The types of passages from a file, for probes that do not know the reader's own.
#[derive(Clone, Debug, Default)]
pub struct Types(HashMap<(String, String, String), Effect>);

impl Types {
    /// Reads JSON lines as `eval reader --write` makes them.
    ///
    /// # Errors
    /// A line is not valid, or two lines give one passage of a list different types.
    pub fn read(path: &Path) -> Result<Self, InputError> {
        let mut types = HashMap::new();
        lines(path, |_, line| {
            let line: TypeLine =
                serde_json::from_str(line).map_err(|error| format!("{EXPECTED_TYPE} ({error})"))?;
            let effect = Effect::ALL.into_iter().find(|effect| effect.code() == line.kind);
            let effect = effect.ok_or(EXPECTED_TYPE)?;
            let question = named(line.id).or(line.question).ok_or(EXPECTED_TYPE)?;
            let passage = named(Some(line.passage)).ok_or(EXPECTED_TYPE)?;
            match types.insert((question, line.lane.unwrap_or_default(), passage), effect) {
                Some(other) if other != effect => {
                    Err(format!("one type for a passage of a list (`{}` stood before)", other.code()).into())
                }
                _ => Ok(()),
            }
        })?;
        if types.is_empty() {
            let (what, advice) = ("the file of types", EXPECTED_TYPE);
            return Err(InputError::Empty { path: path.into(), what, advice });
        }
        Ok(Types(types))
    }

    /// The types of a list's passages: those given for its lane, else those for any.
    pub fn of(&self, case: &Case, lane: &str, passages: &[Context]) -> Vec<Option<Effect>> {
        let known = |question: &str, lane: &str, passage: &str| {
            self.0.get(&(question.to_owned(), lane.to_owned(), passage.to_owned())).copied()
        };
        let one = |context: &Context| {
            let asked = [case.id.as_str(), &case.question];
            [lane, ""]
                .iter()
                .find_map(|lane| asked.iter().find_map(|own| known(own, lane, &context.passage.id)))
        };
        passages.iter().map(one).collect()
    }
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
        let one = case("a", "ann", &["x", "ann", "ann too", "y"]);
        let gold = &one.passages[1];
        let own = without_answer(&one, &gold.passage, one.passages.iter().cloned());
        let texts: Vec<&str> = own.iter().map(|context| context.passage.text.as_str()).collect();
        assert_eq!(texts, ["x", "y"]);
        let read = with_added(&Last, &one, gold, &own, &Stop::never()).unwrap();
        assert_eq!(unstable(&read, &one.gold), Some(vec![true, true]));
        assert_eq!(pattern(&read, &one.gold), [true, false, false].into_iter().collect());
    }

    #[test]
    fn a_question_that_is_wrong_from_the_start_does_not_count() {
        let wrong = case("a", "ann", &["ann and bob"]);
        let read = with_added(&Last, &wrong, &wrong.passages[0], &[], &Stop::never()).unwrap();
        assert_eq!((read.len(), unstable(&read, &wrong.gold)), (1, None));
        assert_eq!(unstable(&[], &wrong.gold), None);
    }

    #[test]
    fn negatives_hold_no_gold_answer_and_are_not_the_gold_passage() {
        let one = case("a", "ann", &["ann", "x", "it was Ann", "y", "z", "u", "v"]);
        let found = without_answer(&one, &one.passages[0].passage, one.passages.iter().cloned());
        let texts: Vec<&str> = found.iter().map(|context| context.passage.text.as_str()).collect();
        assert_eq!((texts, found[0].rank), (vec!["x", "y", "z", "u"], 2));
        let other = ranked_after(&one, [Arc::clone(&one.passages[1].passage)]);
        assert_eq!(other[0].rank, 8);
    }

    #[test]
    fn a_changed_answer_stands_in_the_passage_or_before_it_or_nowhere() {
        let passages = contexts(&["It is Rome.", "Lyon, they say.", "Rome or Lyon."]);
        let at = |answer: &str, place| stands(answer, &passages, place).name();
        assert_eq!(at("lyon", 1), "in the DN");
        assert_eq!(at("the Rome", 1), "before");
        assert_eq!((at("Paris", 2), at("Rom", 2), at("", 2)), ("nowhere", "nowhere", "nowhere"));
    }

    #[test]
    fn passages_below_a_share_of_the_attention_are_left_out_unless_all_are() {
        let shares = [0.5, 0.2, 0.175, 0.125];
        assert_eq!(attended(&shares, 0.2), [0, 1]);
        assert_eq!(attended(&shares, 0.15), [0, 1, 2]);
        assert_eq!(attended(&[0.04, 0.03], 0.05), [0, 1], "the whole list takes the place of none");
    }
}

#[cfg(test)]
mod type_tests {
    use std::io::Write;

    use super::*;
    use crate::read::reader::testing::contexts;

    #[test]
    fn types_of_a_lane_come_before_those_of_any_and_bad_lines_are_reported() {
        let types = |text: &str| {
            let mut file = tempfile::NamedTempFile::new().unwrap();
            file.write_all(text.as_bytes()).unwrap();
            Types::read(file.path()).map_err(|error| error.to_string())
        };
        let all = types(
            "{\"id\":1,\"passage\":\"a\",\"type\":\"DN\",\"lane\":\"bm25\"}\n{\"question\":\"Who?\",\"passage\":\"a\",\"type\":\"DP\"}\n",
        )
        .unwrap();
        let case = Case {
            id: "1".into(),
            question: "Who?".into(),
            gold: Vec::new(),
            passages: contexts(&["a", "b"]),
            marked: Vec::new(),
        };
        let of = |lane| all.of(&case, lane, &case.passages);
        assert_eq!(of("bm25"), [Some(Effect::DefiniteNegative), None]);
        assert_eq!(of("minilm"), [Some(Effect::DefinitePositive), None]);
        for (text, expected) in [
            ("{\"id\":1,\"passage\":\"a\",\"type\":\"XX\"}", ":1: expected a JSON object with `question`"),
            ("{\"passage\":\"a\",\"type\":\"DP\"}", ":1: expected a JSON object with `question`"),
            (
                "{\"id\":1,\"passage\":\"a\",\"type\":\"DP\"}\n{\"id\":1,\"passage\":\"a\",\"type\":\"DN\"}",
                ":2: expected one type for a passage",
            ),
            ("", "the file of types is empty"),
        ] {
            let error = types(text).unwrap_err();
            assert!(error.contains(expected), "{error}");
        }
    }
}
