//! What reads: anything that answers a question from some passages.

use std::sync::Arc;

use super::answer::normalised;
use crate::corpus::Passage;
use crate::encode::EncodeError;
use crate::llm::ChatError;
use crate::work::{Stop, Stopped};

/// A passage that is read.
#[derive(Clone, Debug, PartialEq)]
pub struct Context {
    /// Its rank in the list that it was retrieved with, from 1; what is read may leave ranks out or take them in another order.
    pub rank: usize,
    /// What it says.
    pub passage: Arc<Passage>,
}

impl Context {
    /// A whole list, ranked as it comes.
    pub fn list(passages: impl IntoIterator<Item = Arc<Passage>>) -> Vec<Context> {
        passages.into_iter().enumerate().map(|(i, passage)| Context { rank: i + 1, passage }).collect()
    }
}

/// What a reader said.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Answer {
    /// Its words; may be empty.
    pub text: String,
    /// It was said before and only looked up.
    pub recorded: bool,
    /// How many of the passages were not read whole, as they did not fit.
    pub cut: usize,
}

impl Answer {
    /// Whether nothing is left of it when it is compared.
    pub fn is_empty(&self) -> bool {
        normalised(&self.text).is_empty()
    }

    /// Whether the reader says that it will not or cannot answer. It counts as an answer all the same.
    pub fn is_refusal(&self) -> bool {
        // As they are when they are normalised, so without articles.
        const BEGINNINGS: [&str; 12] = [
            "im sorry",
            "i am sorry",
            "sorry",
            "i cannot",
            "i cant",
            "i am unable",
            "im unable",
            "i do not know",
            "i dont know",
            "as ai",
            "unanswerable",
            "it is not possible to answer",
        ];
        let plain = self.text.replace(['\'', '’'], "");
        let said = normalised(&plain);
        BEGINNINGS.iter().any(|beginning| {
            said.strip_prefix(beginning).is_some_and(|rest| rest.is_empty() || rest.starts_with(' '))
        })
    }
}

/// Why there is no answer.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum ReadError {
    /// The language model did not answer.
    #[error("{0}")]
    Chat(ChatError),
    /// No answer from just these passages was recorded.
    #[error("no answer from these {0} passages was recorded")]
    NotRecorded(usize),
    /// There is no question.
    #[error("the question is empty")]
    NoQuestion,
    /// The model that reads failed.
    #[error("the reader could not be run: {0}")]
    Model(String),
    /// Stopped on request.
    #[error(transparent)]
    Stopped(#[from] Stopped),
}

impl From<ChatError> for ReadError {
    fn from(error: ChatError) -> Self {
        match error {
            ChatError::Stopped(stopped) => ReadError::Stopped(stopped),
            error => ReadError::Chat(error),
        }
    }
}

impl From<EncodeError> for ReadError {
    fn from(EncodeError(reason): EncodeError) -> Self {
        ReadError::Model(reason)
    }
}

impl ReadError {
    /// Whether it was stopped, which is no failure.
    pub fn is_stop(&self) -> bool {
        matches!(self, ReadError::Stopped(_))
    }

    /// Whether every further question would fail the same way.
    pub fn is_lasting(&self) -> bool {
        matches!(self, ReadError::Chat(ChatError::Unreachable(_)))
    }
}

/// Anything that answers a question from passages. A call blocks until the answer is there or `stop` is set.
pub trait Reader: Send + Sync {
    /// Its name, to be shown.
    fn name(&self) -> &str;
    /// Whether the order of the passages can change the answer.
    fn order_sensitive(&self) -> bool;
    /// Whether its answers were recorded before, and none is made now.
    fn recorded(&self) -> bool;
    /// Where it cuts what it reads, to be told of passages that were cut; a reader that cuts none need not say.
    fn window(&self) -> String {
        "its window".into()
    }
    /// What tells its weights from others of its name: the first 12 digits of a hash of them; none where the name says it, or nobody
    /// can know.
    fn key(&self) -> Option<String> {
        None
    }
    /// How its attention is shared out among the passages as it begins to answer: numbers that add up to 1, in their order; none
    /// where it cannot say.
    ///
    /// # Errors
    /// See [`ReadError`].
    fn attention(&self, _: &str, _: &[Context], _: &Stop) -> Result<Option<Vec<f64>>, ReadError> {
        Ok(None)
    }
    /// The same reader, asked which of two statements the passages support together, where it can be asked anything. Its answers are then
    /// `supports` (the first), `opposes`, `balanced` or `silent`, or its own words where they are none of these.
    fn on_sides(&self, _: [String; 2]) -> Option<Box<dyn Reader>> {
        None
    }
    /// The answer from these passages in this order; from none, the question is asked alone.
    ///
    /// # Errors
    /// See [`ReadError`].
    fn answer(&self, question: &str, passages: &[Context], stop: &Stop) -> Result<Answer, ReadError>;
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn refusals_are_told_from_answers_that_begin_alike() {
        let refused = |text: &str| Answer { text: text.into(), ..Answer::default() }.is_refusal();
        for text in ["I’m sorry, but no.", "I can't say.", "Unanswerable.", "As an AI, I have no view."] {
            assert!(refused(text), "{text}");
        }
        for text in ["Sorrento", "Yes", "", "I Can See Clearly Now", "Unanswerable_1"] {
            assert!(!refused(text), "{text}");
        }
    }

    #[test]
    fn an_answer_of_signs_alone_is_empty() {
        assert!(Answer { text: " the … .".replace('…', ""), ..Answer::default() }.is_empty());
        assert!(!Answer { text: "0".into(), ..Answer::default() }.is_empty());
    }
}
