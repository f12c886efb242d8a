//! Answers that some reader gave before, from a file: JSONL `{question, k, answer}`, perhaps with `passages`.

use std::collections::HashMap;
use std::path::Path;

use serde::Deserialize;

use super::reader::{Answer, Context, ReadError, Reader};
use crate::input::{InputError, lines};
use crate::work::Stop;

const EXPECTED: &str = "a JSON object with `question`, `k` (how many passages were read) and `answer`, and perhaps `passages` (their \
                        ids in the order they were read)";

#[derive(Deserialize)]
struct Line {
    question: String,
    k: usize,
    answer: String,
    passages: Option<Vec<String>>,
}

/// Recorded answers, by the question's text.
///
/// An answer without `passages` is the one from the first k of the list as it was retrieved; any other choice of passages has one
/// only where a line names them.
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
    /// A line is not such an answer, or answers the same again.
    pub fn read(path: &Path) -> Result<Self, InputError> {
        let name = path.file_stem().unwrap_or_default().to_string_lossy().into_owned();
        let mut answers = Answers { name, ..Answers::default() };
        lines(path, |_, line| {
            let line: Line = serde_json::from_str(line).map_err(|error| format!("{EXPECTED} ({error})"))?;
            let question = line.question.trim().to_owned();
            let again = match line.passages {
                Some(ids) if ids.len() != line.k => {
                    return Err(format!("as many `passages` as `k`, {}", line.k));
                }
                Some(ids) => answers.from.insert((question, ids), line.answer),
                None => answers.first.insert((question, line.k), line.answer),
            };
            match again {
                Some(_) => Err("one answer only for a question and its passages".into()),
                None => Ok(()),
            }
        })?;
        if answers.first.is_empty() && answers.from.is_empty() {
            return Err(InputError::Empty {
                path: path.into(),
                what: "the file of answers",
                advice: EXPECTED,
            });
        }
        Ok(answers)
    }
}

impl Reader for Answers {
    fn name(&self) -> &str {
        &self.name
    }

    /// Nobody knows of a reader that is not there; nothing is lost by asking in another order.
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
mod tests {
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
    fn bad_lines_are_told() {
        for (text, expected) in [
            ("{\"question\":\"q\"}", ":1: expected a JSON object with `question`, `k`"),
            (
                "{\"question\":\"q\",\"k\":2,\"answer\":\"\",\"passages\":[\"a\"]}",
                "as many `passages` as `k`, 2",
            ),
            (
                "{\"question\":\"q\",\"k\":0,\"answer\":\"x\"}\n{\"question\":\"q\",\"k\":0,\"answer\":\"y\"}",
                ":2: expected one answer only",
            ),
            ("", "the file of answers is empty"),
        ] {
            let error = read(text).unwrap_err();
            assert!(error.contains(expected), "{error}");
        }
    }
}
