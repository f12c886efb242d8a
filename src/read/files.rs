//! Question sets with passages, and files of recorded answers.

use std::collections::HashMap;
use std::io::{BufRead, Read};
use std::path::Path;
use std::sync::Arc;

use serde::Deserialize;
use serde_json::Value;

use super::reader::{Answer, Context, ReadError, Reader, normalised};
use crate::corpus::Passage;
use crate::input::{BadLine, Expected, InputError, lines, open, read_json};
use crate::work::Stop;

/// A question with passages to answer it from.
#[derive(Clone, Debug, PartialEq)]
pub struct Case {
    /// Unique within its file.
    pub id: String,
    /// The question.
    pub question: String,
    /// Its right answers; may be empty.
    pub gold: Vec<String>,
    /// Its passages, ranked in the order of the file.
    pub passages: Vec<Context>,
    /// The indices of passages that the file marks as right.
    pub marked: Vec<usize>,
}

impl Case {
    /// Whether the passage at an index holds a gold answer as whole words, both normalised.
    pub fn holds_gold(&self, at: usize) -> bool {
        self.passages.get(at).is_some_and(|context| holds(&context.passage, &self.gold))
    }

    /// The index of the gold passage: the first one that is marked, or else the first that holds a gold answer.
    pub fn gold_passage(&self) -> Option<usize> {
        let holding = || (0..self.passages.len()).find(|at| self.holds_gold(*at));
        self.marked.first().copied().or_else(holding)
    }
}

/// Whether a passage holds one of these answers as whole words, both normalised.
pub fn holds(passage: &Passage, gold: &[String]) -> bool {
    let text = format!(" {} ", normalised(&passage.contents()));
    gold.iter()
        .map(|gold| normalised(gold))
        .any(|gold| !gold.is_empty() && text.contains(&format!(" {gold} ")))
}

const EXPECTED: &str = "a JSON object with `question` and either `answers` and `ctxs` (FiD), `gold_answers` and `documents` (RAMDocs), \
                        or `ground_truth` and `context` (RetrievalQA)";

#[derive(Deserialize)]
struct Line {
    #[serde(alias = "question_id", alias = "_id", alias = "qid")]
    id: Option<Value>,
    question: String,
    #[serde(alias = "gold_answers", alias = "ground_truth")]
    answers: Vec<String>,
    #[serde(alias = "documents", alias = "context")]
    ctxs: Vec<Piece>,
}

#[derive(Deserialize)]
#[serde(untagged)]
enum Piece {
    Bare(String),
    Whole {
        id: Option<Value>,
        #[serde(default)]
        title: String,
        #[serde(default)]
        text: String,
        #[serde(rename = "type")]
        kind: Option<String>,
        #[serde(default)]
        isgold: bool,
    },
}

/// Whether a file is a question set with passages, judging by its first object.
///
/// # Errors
/// The file cannot be read.
pub fn is_reading(path: &Path) -> Result<bool, InputError> {
    let unreadable = |error| InputError::unreadable(path, &error);
    // Reads only the beginning: the keys of the first object are there, unless long passages come before them.
    let mut start = Vec::new();
    open(path)?.take(1 << 22).read_until(b'\n', &mut start).map_err(unreadable)?;
    let start = String::from_utf8_lossy(&start);
    let start = start.trim_start_matches('\u{feff}').trim_start();
    if start.starts_with('[') {
        // One array, which may span lines: it is read whole.
        return Ok(read_json::<Vec<Value>>(path, "a JSON array")
            .is_ok_and(|values| values.first().is_some_and(holds_passages)));
    }
    let first = serde_json::Deserializer::from_str(start).into_iter::<Value>().next();
    Ok(matches!(first, Some(Ok(value)) if holds_passages(&value)))
}

fn holds_passages(value: &Value) -> bool {
    let pairs = [("ctxs", "answers"), ("documents", "gold_answers"), ("context", "ground_truth")];
    pairs.iter().any(|(passages, gold)| value.get(passages).is_some() && value.get(gold).is_some())
}

/// Reads a set.
///
/// # Errors
/// A line or entry is not such a question, or repeats an id; nothing is taken.
pub fn read(path: &Path) -> Result<Vec<Case>, InputError> {
    let mut cases: Vec<Case> = Vec::new();
    let mut seen = std::collections::HashSet::new();
    let mut take = |number: usize, line: Line| {
        let case = case(line, number)?;
        if !seen.insert(case.id.clone()) {
            return Err(Expected(format!("an id of its own (`{}` stood before)", case.id)));
        }
        cases.push(case);
        Ok(())
    };
    let first = open(path)?.bytes().map_while(Result::ok).find(|b| !b" \t\r\n\xef\xbb\xbf".contains(b));
    if first == Some(b'[') {
        let mut bad = Vec::new();
        for (i, value) in read_json::<Vec<Value>>(path, "a JSON array")?.into_iter().enumerate() {
            let found = value.to_string();
            let line =
                serde_json::from_value(value).map_err(|error| Expected(format!("{EXPECTED} ({error})")));
            if let Err(Expected(expected)) = line.and_then(|line| take(i + 1, line)) {
                let expected = format!("entry {} to be {expected}", i + 1);
                bad.push(BadLine { file: path.into(), line: 1, expected, found });
            }
        }
        if !bad.is_empty() {
            return Err(InputError::BadLines(bad));
        }
    } else {
        lines(path, |number, line| {
            let line = serde_json::from_str(line).map_err(|error| format!("{EXPECTED} ({error})"))?;
            take(number, line)
        })?;
    }
    if cases.is_empty() {
        return Err(InputError::Empty { path: path.into(), what: "the set of questions", advice: EXPECTED });
    }
    Ok(cases)
}

pub(super) fn named(id: Option<Value>) -> Option<String> {
    match id {
        Some(Value::String(id)) => Some(id),
        Some(Value::Null) | None => None,
        Some(other) => Some(other.to_string()),
    }
}

fn case(line: Line, number: usize) -> Result<Case, Expected> {
    let question = line.question.trim().to_owned();
    if question.is_empty() {
        return Err("a `question` that is not empty".into());
    }
    let id = named(line.id).unwrap_or_else(|| number.to_string());
    let mut marked = Vec::new();
    let passage = |(at, piece): (usize, Piece)| {
        let own = format!("{id}-{}", at + 1);
        match piece {
            Piece::Bare(text) => Passage { id: own, text, ..Passage::default() },
            Piece::Whole { id, title, text, kind, isgold } => {
                if isgold || kind.as_deref() == Some("correct") {
                    marked.push(at);
                }
                Passage { id: named(id).unwrap_or(own), title, text, ..Passage::default() }
            }
        }
    };
    let passages: Vec<Arc<Passage>> = line.ctxs.into_iter().enumerate().map(passage).map(Arc::new).collect();
    Ok(Case { id, question, gold: line.answers, passages: Context::list(passages), marked })
}

const EXPECTED_ANSWER: &str = "a JSON object with `question`, `k` (how many passages were read), `answer` and optionally `passages` \
                        (their ids in the order they were read)";

#[derive(Deserialize)]
struct AnswerLine {
    question: String,
    k: usize,
    answer: String,
    passages: Option<Vec<String>>,
}

/// Recorded answers, by the question's text.
///
/// A line without `passages` holds the answer from the first k passages as retrieved. For any other choice of passages, a line must name
/// them.
#[derive(Clone, Debug, Default)]
pub struct Answers {
    name: String,
    first: HashMap<(String, usize), String>,
    from: HashMap<(String, Vec<String>), String>,
}

impl Answers {
    /// Reads a file of answers.
    ///
    /// # Errors
    /// A line is not such an answer, or two lines answer the same question from the same passages.
    pub fn read(path: &Path) -> Result<Self, InputError> {
        let name = path.file_stem().unwrap_or_default().to_string_lossy().into_owned();
        let mut answers = Answers { name, ..Answers::default() };
        lines(path, |_, line| {
            let line: AnswerLine =
                serde_json::from_str(line).map_err(|error| format!("{EXPECTED_ANSWER} ({error})"))?;
            let question = line.question.trim().to_owned();
            let again = match line.passages {
                Some(ids) if ids.len() != line.k => {
                    return Err(format!("as many `passages` as `k`, {}", line.k).into());
                }
                Some(ids) => answers.from.insert((question, ids), line.answer),
                None => answers.first.insert((question, line.k), line.answer),
            };
            match again {
                Some(_) => Err("only one answer for a question and its passages".into()),
                None => Ok(()),
            }
        })?;
        if answers.first.is_empty() && answers.from.is_empty() {
            return Err(InputError::Empty {
                path: path.into(),
                what: "the file of answers",
                advice: EXPECTED_ANSWER,
            });
        }
        Ok(answers)
    }

    /// The answers from named passages and from none. A line that names no passages belongs to one list, so it does not hold for several.
    pub fn of_named_passages(mut self) -> Self {
        self.first.retain(|(_, k), _| *k == 0);
        self
    }
}

impl Reader for Answers {
    fn name(&self) -> &str {
        &self.name
    }

    /// The reader that was recorded is unknown, so it may be sensitive to order.
    fn order_sensitive(&self) -> bool {
        true
    }

    fn recorded(&self) -> bool {
        true
    }

    fn answer(&self, question: &str, passages: &[Context], _: &Stop) -> Result<Answer, ReadError> {
        let question = question.trim().to_owned();
        let ids = passages.iter().map(|context| context.passage.id.clone()).collect();
        let first = passages.iter().enumerate().all(|(i, context)| context.rank == i + 1);
        let key = (question, ids);
        let found = self
            .from
            .get(&key)
            .or_else(|| self.first.get(&(key.0.clone(), passages.len())).filter(|_| first));
        match found {
            Some(text) => Ok(Answer { text: text.clone(), recorded: true, cut: 0 }),
            None => Err(ReadError::NotRecorded(passages.len())),
        }
    }
}

#[cfg(test)]
mod files_tests {
    use std::io::Write;

    use super::*;

    fn file(text: &str) -> tempfile::NamedTempFile {
        let mut file = tempfile::NamedTempFile::new().unwrap();
        file.write_all(text.as_bytes()).unwrap();
        file
    }

    fn cases(text: &str) -> Result<Vec<Case>, String> {
        read(file(text).path()).map_err(|error| error.to_string())
    }

    const FID: &str = r#"{"question":"Who?","answers":["Ann"],"ctxs":[{"id":7,"title":"T","text":"Bob."},{"text":"It was Ann."}]}"#;
    const RAMDOCS: &str = r#"{"question":"Who?","gold_answers":["Ann"],"wrong_answers":["Bob"],"documents":[{"text":"Bob","type":"misinfo","answer":"Bob"},{"text":"Ann","type":"correct","answer":"Ann"}]}"#;
    const RETRIEVALQA: &str =
        r#"{"question_id":"r1","question":"Who?","ground_truth":["Ann"],"context":[{"title":"T"},"bare"]}"#;

    #[test]
    fn all_three_formats_are_recognised_by_content_and_read_alike() {
        for (text, places) in [(FID, Some(1)), (RAMDOCS, Some(1)), (RETRIEVALQA, None)] {
            assert!(is_reading(file(text).path()).unwrap(), "{text}");
            let cases = cases(text).unwrap();
            assert_eq!((cases[0].gold.clone(), cases[0].passages.len()), (vec!["Ann".to_owned()], 2));
            assert_eq!(cases[0].gold_passage(), places);
        }
        let fid = cases(FID).unwrap();
        let ids: Vec<&str> = fid[0].passages.iter().map(|context| context.passage.id.as_str()).collect();
        assert_eq!(ids, ["7", "1-2"]);
    }

    #[test]
    fn an_array_over_several_lines_is_read_too() {
        let array = format!("[\n{FID},\n {}\n]\n", FID.replace("\"question\"", "\"id\":\"b\",\"question\""));
        assert!(is_reading(file(&array).path()).unwrap());
        assert_eq!(cases(&array).unwrap().len(), 2);
    }

    #[test]
    fn questions_and_results_of_other_kinds_are_none() {
        for text in [
            "{\"question\":\"Who?\"}",
            "{\"question\":\"Who?\",\"perspectives\":[\"a\"],\"ctxs\":[]}",
            "1\tWho?",
            "",
            "[1,2]",
        ] {
            assert!(!is_reading(file(text).path()).unwrap(), "{text}");
        }
    }

    #[test]
    fn a_held_answer_is_a_whole_word() {
        let passage = |text: &str| Passage { text: text.into(), ..Passage::default() };
        assert!(holds(&passage("It was the Ann, surely"), &["ann".into()]));
        assert!(!holds(&passage("Annual"), &["ann".into()]) && !holds(&passage("x"), &["the".into()]));
    }

    #[test]
    fn bad_lines_are_reported_and_nothing_is_taken() {
        for (text, expected) in [
            (
                format!("{FID}\n{{\"question\":\"Who?\"}}"),
                ":2: expected a JSON object with `question` and either",
            ),
            (format!("{FID}\n{}", FID.replace("Who?", " ")), ":2: expected a `question` that is not empty"),
            (format!("{RETRIEVALQA}\n{RETRIEVALQA}"), ":2: expected an id of its own"),
            (format!("[{FID},\n3]"), "entry 2 to be a JSON object"),
            ("[{\"question\"\n".to_owned(), "a JSON array"),
            (String::new(), "the set of questions is empty"),
        ] {
            let error = cases(&text).unwrap_err();
            assert!(error.contains(expected), "{error}");
        }
    }
}

#[cfg(test)]
mod recorded_tests {
    use std::io::Write;
    use std::sync::Arc;

    use super::*;
    use crate::corpus::Passage;

    fn read(text: &str) -> Result<Answers, String> {
        let mut file = tempfile::NamedTempFile::new().unwrap();
        file.write_all(text.as_bytes()).unwrap();
        Answers::read(file.path()).map_err(|error| error.to_string())
    }

    fn contexts(ids: &[&str]) -> Vec<Context> {
        Context::list(ids.iter().map(|id| Arc::new(Passage { id: (*id).into(), ..Passage::default() })))
    }

    #[test]
    fn an_answer_holds_for_the_first_k_as_they_came_and_for_passages_that_it_names() {
        let answers = read(
            "{\"question\":\"q\",\"k\":2,\"answer\":\"two\"}\n{\"question\":\"q\",\"k\":1,\"answer\":\"b alone\",\"passages\":[\"b\"]}\n",
        )
        .unwrap();
        let all = contexts(&["a", "b"]);
        let say =
            |contexts: &[Context]| answers.answer(" q ", contexts, &Stop::never()).map(|answer| answer.text);
        assert_eq!(say(&all), Ok("two".into()));
        assert_eq!(say(&all[1..]), Ok("b alone".into()));
        assert_eq!(say(&all[..1]), Err(ReadError::NotRecorded(1)));
        let turned = [all[1].clone(), all[0].clone()];
        assert_eq!(say(&turned), Err(ReadError::NotRecorded(2)), "another order is another reading");
    }

    #[test]
    fn for_several_lists_only_lines_that_name_their_passages_count() {
        let answers = read(
            "{\"question\":\"q\",\"k\":1,\"answer\":\"first\"}\n{\"question\":\"q\",\"k\":0,\"answer\":\"none\"}\n{\"question\":\"q\",\"k\":1,\"answer\":\"b\",\"passages\":[\"b\"]}\n",
        )
        .unwrap()
        .of_named_passages();
        let say =
            |ids: &[&str]| answers.answer("q", &contexts(ids), &Stop::never()).map(|answer| answer.text);
        assert_eq!((say(&[]), say(&["b"])), (Ok("none".into()), Ok("b".into())));
        assert_eq!(say(&["a"]), Err(ReadError::NotRecorded(1)));
    }

    #[test]
    fn bad_lines_are_reported() {
        for (text, expected) in [
            ("{\"question\":\"q\"}", ":1: expected a JSON object with `question`, `k`"),
            (
                "{\"question\":\"q\",\"k\":2,\"answer\":\"\",\"passages\":[\"a\"]}",
                "as many `passages` as `k`, 2",
            ),
            (
                "{\"question\":\"q\",\"k\":0,\"answer\":\"x\"}\n{\"question\":\"q\",\"k\":0,\"answer\":\"y\"}",
                ":2: expected only one answer",
            ),
            ("", "the file of answers is empty"),
        ] {
            let error = read(text).unwrap_err();
            assert!(error.contains(expected), "{error}");
        }
    }
}
