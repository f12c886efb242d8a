//! Reads question sets, and NevIR's pairs of queries, from files.

use std::collections::HashSet;
use std::path::Path;

use serde::Deserialize;

use super::statements::statements;
use super::{Question, Written};
use crate::input::{self, BadLine, Expected, InputError, lines};

#[derive(Deserialize)]
struct Line {
    #[serde(alias = "_id", alias = "qid")]
    id: Option<serde_json::Value>,
    #[serde(alias = "text", alias = "query")]
    question: String,
    #[serde(default)]
    perspectives: Vec<String>,
    supports: Option<usize>,
    #[serde(default)]
    expansions: Vec<Written>,
    /// Some published sets use this name for other things: only a list of texts counts as gold answers.
    #[serde(default)]
    answers: serde_json::Value,
    /// Published sets store various data here: only an object is read.
    #[serde(default)]
    metadata: serde_json::Value,
    /// PIR: a string that contains JSON.
    meta: Option<String>,
    /// PIR: the query without its perspective, as this program writes it.
    root: Option<String>,
}

/// The JSON in PIR's `meta` string.
#[derive(Deserialize)]
struct Meta {
    perspective: Option<String>,
    src_query: Option<String>,
}

/// Reads a question set. Questions without perspectives get them by rule if one applies; neutral queries of PIR get none.
///
/// # Errors
/// A line is not a question, repeats an id, or names a supporting perspective that does not exist.
pub fn read(path: &Path) -> Result<Vec<Question>, InputError> {
    let (mut questions, mut seen) = (Vec::new(), HashSet::new());
    let tsv = matches!(input::ending(path), Some("tsv" | "txt"));
    let mut add = |question: Question| {
        if !seen.insert(question.id.clone()) {
            return Err(Expected(format!("a unique id (an earlier line has `{}`)", question.id)));
        }
        questions.push(question);
        Ok(())
    };
    let mut topics: Option<Topics> = None;
    let mut is_first = true;
    lines(path, |number, line| {
        if std::mem::take(&mut is_first) && begins_topics(line) {
            topics = Some(Topics::default());
        }
        match &mut topics {
            Some(topics) => {
                topics.line(number, line, &mut |id, text| add(question(id, &text, Vec::new(), None)?))?;
            }
            None => add(if tsv { tab_line(line)? } else { json_line(line, number)? })?,
        }
        Ok(())
    })?;
    if let Some(began) = topics.and_then(|topics| topics.open) {
        let (expected, found) = ("`</top>` at the end of a topic".into(), "the end of the file".into());
        return Err(InputError::BadLines(vec![BadLine { file: path.into(), line: began, expected, found }]));
    }
    if questions.is_empty() {
        let advice = "expected questions as JSON lines, ID<Tab>QUESTION or TREC topics";
        return Err(InputError::Empty { path: path.into(), what: "the question set", advice });
    }
    Ok(questions)
}

/// Two queries that differ in a negation, and the passage that fits each: a line of NevIR.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Pair {
    /// Its id, or the number of its line.
    pub id: String,
    /// The two queries.
    pub queries: [String; 2],
    /// The passage that fits the query at the same place.
    pub passages: [String; 2],
}

/// Reads pairs in NevIR's format: JSON lines with `q1`, `q2`, `doc1` and `doc2`, and perhaps `id`. Other fields are skipped.
///
/// # Errors
/// A line is no such pair, or its queries or passages are empty or equal; the error names the line.
pub fn read_pairs(path: &Path) -> Result<Vec<Pair>, InputError> {
    #[derive(Deserialize)]
    struct Line {
        id: Option<serde_json::Value>,
        q1: String,
        q2: String,
        doc1: String,
        doc2: String,
    }
    let mut pairs = Vec::new();
    lines(path, |number, line| {
        if line.trim().is_empty() {
            return Ok(());
        }
        let read: Line = serde_json::from_str(line).map_err(|error| {
            Expected(format!("a pair of NevIR: JSON with q1, q2, doc1 and doc2 ({error})"))
        })?;
        let id = match read.id {
            Some(serde_json::Value::String(id)) => id,
            Some(serde_json::Value::Number(id)) => id.to_string(),
            _ => number.to_string(),
        };
        for (name, one, other) in [("queries", &read.q1, &read.q2), ("passages", &read.doc1, &read.doc2)] {
            if one.trim().is_empty() || other.trim().is_empty() || one.trim() == other.trim() {
                return Err(Expected(format!("two different {name}, neither of them empty")));
            }
        }
        pairs.push(Pair { id, queries: [read.q1, read.q2], passages: [read.doc1, read.doc2] });
        Ok(())
    })?;
    if pairs.is_empty() {
        let advice = "expected JSON lines with q1, q2, doc1 and doc2, as NevIR's test.jsonl";
        return Err(InputError::Empty { path: path.into(), what: "the file of pairs", advice });
    }
    Ok(pairs)
}

/// Reads a built-in question set, whose lines are valid.
pub fn builtin(text: &str) -> Vec<Question> {
    text.lines().enumerate().filter_map(|(i, line)| json_line(line, i + 1).ok()).collect()
}

fn json_line(line: &str, number: usize) -> Result<Question, Expected> {
    let line: Line = serde_json::from_str(line).map_err(|error| {
        format!("a JSON object with `question` and perhaps `id`, `perspectives` ({error})")
    })?;
    let id = match line.id {
        Some(serde_json::Value::String(id)) => id,
        Some(other) => other.to_string(),
        None => number.to_string(),
    };
    let (mut perspectives, mut root) = (line.perspectives, line.root);
    if let Some(meta) = line.meta {
        let meta: Meta = serde_json::from_str(&meta)
            .map_err(|error| format!("`meta` to be JSON with `perspective`, as PIR writes it ({error})"))?;
        // It is empty for queries of the neutral side.
        perspectives.extend(meta.perspective.filter(|text| !text.trim().is_empty()));
        root = meta.src_query.filter(|text| !text.trim().is_empty());
    }
    let neutral = perspectives.is_empty() && root.is_some();
    let mut question = question(id, &line.question, perspectives, line.supports)?;
    if neutral {
        // "Find a news article …" is no question to answer with yes or no.
        (question.perspectives, question.supports) = (Vec::new(), None);
    }
    let metadata = match line.metadata {
        serde_json::Value::Object(metadata) => metadata,
        _ => Default::default(),
    };
    let answers = match line.answers {
        serde_json::Value::Array(all) => {
            all.iter().filter_map(|one| Some(one.as_str()?.to_owned())).collect()
        }
        _ => Vec::new(),
    };
    Ok(Question { answers, expansions: line.expansions, root, metadata, ..question })
}

fn tab_line(line: &str) -> Result<Question, Expected> {
    let (id, text) = line.split_once('\t').ok_or("ID<Tab>QUESTION")?;
    question(id.to_owned(), text, Vec::new(), None)
}

/// A question with its perspectives. If there are none, they are derived by rule if one applies.
///
/// # Errors
/// The text or a perspective is empty, or the supporting perspective does not exist.
pub fn question(
    id: String,
    text: &str,
    perspectives: Vec<String>,
    supports: Option<usize>,
) -> Result<Question, Expected> {
    let text = text.trim().to_owned();
    if text.is_empty() {
        return Err("a `question` that is not empty".into());
    }
    if perspectives.iter().any(|statement| statement.trim().is_empty()) {
        return Err("perspectives that are not empty".into());
    }
    if perspectives.is_empty() {
        let by_rule = statements(&text);
        let (perspectives, supports) = (by_rule.perspectives, by_rule.supports);
        return Ok(Question { id, text, perspectives, supports, ..Question::default() });
    }
    // Two perspectives are a pair of sides, the supporting one first, as BERDS writes them.
    let supports = supports.or((perspectives.len() == 2).then_some(0));
    if supports.is_some_and(|index| index >= perspectives.len()) {
        return Err(Expected(format!("`supports` below {}", perspectives.len())));
    }
    Ok(Question { id, text, perspectives, supports, ..Question::default() })
}

/// The field that text belongs to.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Field {
    Number,
    Title,
    Other,
}

/// Reads TREC topics line by line.
#[derive(Default)]
pub struct Topics {
    /// The line on which the open topic began.
    pub open: Option<usize>,
    field: Option<Field>,
    number: String,
    title: String,
}

/// Whether a file that starts with this line holds topics.
pub fn begins_topics(line: &str) -> bool {
    let line = line.trim_start();
    ["<top", "<?xml", "<!DOCTYPE"].iter().any(|start| line.starts_with(start))
}

impl Topics {
    /// Takes one line, and passes each topic that it closes to `found` as number and title.
    ///
    /// # Errors
    /// A topic begins inside another, or has no number or title.
    pub fn line(
        &mut self,
        number: usize,
        line: &str,
        found: &mut dyn FnMut(String, String) -> Result<(), Expected>,
    ) -> Result<(), Expected> {
        let mut rest = line;
        while let Some((text, tag, after)) = cut(rest) {
            self.text(text);
            rest = after;
            let (name, attributes) = tag.split_once(char::is_whitespace).unwrap_or((tag, ""));
            match name.to_ascii_lowercase().as_str() {
                "top" | "topic" => {
                    if let Some(began) = self.open.replace(number) {
                        return Err(Expected(format!(
                            "`</top>` before the next topic; the topic of line {began} is still open"
                        )));
                    }
                    let own = attributes.split_once("number=\"").and_then(|(_, rest)| rest.split_once('"'));
                    self.number = own.map(|(own, _)| own.to_owned()).unwrap_or_default();
                    self.title.clear();
                    self.field = None;
                }
                "/top" | "/topic" => {
                    self.open = None;
                    let (number, title) = (self.number.trim(), self.title.trim());
                    let number = number.strip_prefix("Number:").unwrap_or(number).trim();
                    if number.is_empty() || title.is_empty() {
                        return Err("a topic with a number (`<num>`) and a `<title>`".into());
                    }
                    found(decode(number), decode(title))?;
                }
                "num" | "number" => self.field = Some(Field::Number),
                "title" | "query" => self.field = Some(Field::Title),
                "desc" | "description" | "narr" | "narrative" => self.field = Some(Field::Other),
                closing if closing.starts_with('/') => self.field = None,
                _ => {}
            }
        }
        self.text(rest);
        Ok(())
    }

    fn text(&mut self, text: &str) {
        let into = match self.field {
            Some(Field::Number) => &mut self.number,
            Some(Field::Title) => &mut self.title,
            _ => return,
        };
        if !into.is_empty() && !text.trim().is_empty() {
            into.push(' ');
        }
        into.push_str(text.trim());
    }
}

/// The text before the first tag, the tag, and the text after it.
fn cut(line: &str) -> Option<(&str, &str, &str)> {
    let (text, rest) = line.split_once('<')?;
    let (tag, after) = rest.split_once('>')?;
    Some((text, tag, after))
}

fn decode(text: &str) -> String {
    let named =
        [("&lt;", "<"), ("&gt;", ">"), ("&quot;", "\""), ("&apos;", "'"), ("&#39;", "'"), ("&amp;", "&")];
    named.iter().fold(text.to_owned(), |text, (name, meant)| text.replace(name, meant))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Write;

    fn read_text(text: &str, ending: &str) -> Result<Vec<Question>, String> {
        let mut file = tempfile::Builder::new().suffix(ending).tempfile().unwrap();
        file.write_all(text.as_bytes()).unwrap();
        read(file.path()).map_err(|error| error.to_string())
    }

    #[test]
    fn a_question_without_perspectives_gets_them_by_rule_and_one_with_keeps_its_own() {
        let text = "{\"_id\":\"a\",\"text\":\"Should zoos be banned?\"}\n{\"question\":\"Who pays?\",\"perspectives\":[\"x\",\"y\",\"z\"]}\n";
        let questions = read_text(text, ".jsonl").unwrap();
        assert_eq!(questions[0].perspectives, ["Zoos should be banned.", "Zoos should not be banned."]);
        assert_eq!(
            (questions[1].id.as_str(), questions[1].perspectives.len(), questions[1].supports),
            ("2", 3, None)
        );
    }

    #[test]
    fn metadata_of_a_question_is_kept_and_what_is_no_object_says_nothing() {
        let text = "{\"question\":\"x\",\"metadata\":{\"side\":\"left\"}}\n{\"question\":\"y\",\"metadata\":\"\"}\n{\"question\":\"z\"}\n";
        let questions = read_text(text, ".jsonl").unwrap();
        assert_eq!(questions[0].metadata["side"], "left");
        assert!(questions[1..].iter().all(|question| question.metadata.is_empty()));
    }

    #[test]
    fn trec_topics_are_read_as_sgml_and_as_xml() {
        let open = "<top>\n<num> Number: 301\n<title> Should zoos\nbe banned?\n\n<desc> Description:\nSkip.\n</top>\n<top><num>302<title>Who pays?</top>";
        let xml = "<?xml version='1.0'?>\n<topics>\n<topic><number>301</number>\n<title>Should zoos be banned?</title><description>x</description></topic>\n<topic number=\"302\"><query>Who pays?</query></topic>\n</topics>";
        for text in [open, xml] {
            let questions = read_text(text, ".txt").unwrap();
            let all: Vec<_> = questions.iter().map(|q| (q.id.as_str(), q.text.as_str())).collect();
            assert_eq!(all, [("301", "Should zoos be banned?"), ("302", "Who pays?")], "{text}");
        }
    }

    #[test]
    fn a_query_of_pir_brings_its_perspective_and_its_root() {
        let meta = r#"{\"src_query\": \"zoos\", \"perspective\": \"Zoos are cruel.\"}"#;
        let general = r#"{\"src_query\": \"zoos\", \"perspective\": \"\"}"#;
        let text = format!(
            "{{\"_id\": \"q\", \"text\": \"zoos, cruel\", \"meta\": \"{meta}\"}}\n{{\"_id\": \"g\", \"text\": \"Is this about zoos?\", \"meta\": \"{general}\"}}"
        );
        let questions = read_text(&text, ".jsonl").unwrap();
        assert_eq!(
            (questions[0].id.as_str(), questions[0].perspectives[0].as_str()),
            ("q", "Zoos are cruel.")
        );
        assert!(questions.iter().all(|question| question.root.as_deref() == Some("zoos")));
        assert!(questions[1].perspectives.is_empty(), "no rule writes the perspective of a neutral query");
    }

    #[test]
    fn a_question_that_is_written_is_read_back_the_same() {
        let metadata = serde_json::json!({"topic": "zoos"}).as_object().unwrap().clone();
        let expansions = vec![Written { name: None, text: "Animals suffer.".into() }];
        let question = Question {
            id: "q".into(),
            text: "zoos, cruel".into(),
            perspectives: vec!["Zoos are cruel.".into()],
            answers: vec!["yes".into()],
            root: Some("zoos".into()),
            metadata,
            expansions,
            ..Question::default()
        };
        let line = serde_json::to_string(&question).unwrap();
        assert_eq!(json_line(&line, 1), Ok(question));
    }

    #[test]
    fn gold_answers_are_kept() {
        let text =
            "{\"question\":\"x\",\"answers\":[\"a\",\"b\"]}\n{\"question\":\"y\",\"answers\":{\"a\":1}}\n";
        let questions = read_text(text, ".jsonl").unwrap();
        assert_eq!(questions[0].answers, ["a", "b"]);
        assert!(questions[1].answers.is_empty());
    }

    #[test]
    fn bad_lines_are_reported_and_nothing_is_taken() {
        for (text, ending, expected) in [
            ("<top>\n<num> 1\n</top>", ".txt", ":3: expected a topic with a number"),
            ("<top>\n<num> 1\n<title> x\n<top>", ".txt", ":4: expected `</top>` before the next"),
            ("<top>\n<num> 1\n<title> x\n", ".txt", ":1: expected `</top>` at the end"),
            ("{\"text\": \"x\", \"meta\": \"y\"}", ".jsonl", ":1: expected `meta` to be JSON"),
            ("{\"question\":\"\"}", ".jsonl", ":1: expected a `question` that is not empty"),
            (
                "{\"question\":\"x\",\"perspectives\":[\"a\"],\"supports\":4}",
                ".jsonl",
                ":1: expected `supports` below 1",
            ),
            (
                "{\"id\":1,\"question\":\"x\"}\n{\"id\":1,\"question\":\"y\"}",
                ".jsonl",
                ":2: expected a unique id",
            ),
            ("no tab here", ".tsv", ":1: expected ID<Tab>QUESTION"),
            ("[1,2]", ".jsonl", ":1: expected a JSON object"),
            ("", ".jsonl", "the question set is empty"),
        ] {
            let error = read_text(text, ending).unwrap_err();
            assert!(error.contains(expected), "{error}");
        }
    }
}
