//! Answers that mean the same as a gold one although they are worded otherwise, as a language model judges (SeEM, SeAcEM).

use super::answer::{matches, normalised};
use super::reader::{Answer, ReadError};
use crate::llm::{Chat, ChatError, Request};
use crate::work::Stop;

/// A gold list that a model has added to.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Widened {
    /// The gold answers, then those that the model took for one of them.
    pub gold: Vec<String>,
    /// How many were added.
    pub added: usize,
    /// Replies that began with neither Yes nor No, which count for nothing.
    pub discarded: usize,
}

fn prompt(question: &str, answer: &str, gold: &str) -> Request {
    Request {
        system: "You judge whether two answers to a question mean the same.".into(),
        prompt: format!(
            "Question: {question}\nFirst answer: {gold}\nSecond answer: {answer}\n\n\
             Do both answers mean the same as an answer to this question? Begin your reply with Yes or No."
        ),
        temperature: 0.0,
        max_tokens: 256,
        sample: 0,
    }
}

fn begins(said: &str, word: &str) -> bool {
    let rest = said.trim_start_matches(|c: char| !c.is_alphanumeric());
    rest.get(..word.len()).is_some_and(|start| start.eq_ignore_ascii_case(word))
        && !rest[word.len()..].starts_with(char::is_alphanumeric)
}

/// Asks of every distinct wrong answer whether it means the same as a gold one.
///
/// # Errors
/// The model did not answer, or `stop` was set.
pub fn widened(
    chat: &dyn Chat,
    question: &str,
    answers: &[Answer],
    gold: &[String],
    stop: &Stop,
) -> Result<Widened, ReadError> {
    let mut widened = Widened { gold: gold.to_vec(), ..Widened::default() };
    let mut asked: Vec<String> = Vec::new();
    for answer in answers {
        let plain = normalised(&answer.text);
        if answer.is_empty() || matches(&answer.text, gold) || asked.contains(&plain) {
            continue;
        }
        asked.push(plain);
        for right in gold {
            let reply = match chat.reply(&prompt(question, &answer.text, right), stop) {
                Ok(reply) => reply,
                Err(ChatError::Nonsense(_)) => {
                    widened.discarded += 1;
                    continue;
                }
                Err(error) => return Err(error.into()),
            };
            if begins(reply.said(), "yes") {
                widened.gold.push(answer.text.clone());
                widened.added += 1;
                break;
            }
            widened.discarded += usize::from(!begins(reply.said(), "no"));
        }
    }
    Ok(widened)
}

#[cfg(test)]
mod tests {
    use std::sync::Mutex;

    use super::*;
    use crate::llm::Reply;

    struct Judge(Mutex<Vec<&'static str>>);

    impl Chat for Judge {
        fn model(&self) -> &str {
            "judge"
        }

        fn reply(&self, _: &Request, _: &Stop) -> Result<Reply, ChatError> {
            let text = self.0.lock().unwrap().remove(0).to_owned();
            Ok(Reply { text, model: "judge".into(), recorded: false, tokens: None })
        }
    }

    #[test]
    fn a_yes_joins_the_gold_list_a_no_does_not_and_anything_else_is_discarded() {
        let judge = Judge(Mutex::new(vec!["No, never", "<think>hm</think>Yes.", "Yesterday", "no"]));
        let said = |text: &str| Answer { text: text.into(), ..Answer::default() };
        let answers = [said("UK"), said("the uk"), said("London"), said("Britain"), said("")];
        let gold = ["Great Britain".to_owned(), "London".to_owned()];
        let found = widened(&judge, "Where?", &answers, &gold, &Stop::never()).unwrap();
        assert_eq!(found.gold, ["Great Britain", "London", "UK"]);
        assert_eq!((found.added, found.discarded), (1, 1));
        assert!(judge.0.lock().unwrap().is_empty(), "the right answer and the repeated one are not asked");
    }
}
