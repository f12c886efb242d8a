//! The reader trait, its input and output, and when an answer is right (SQuAD's exact match).

use std::sync::Arc;

use crate::corpus::Passage;
use crate::encode::EncodeError;
use crate::llm::ChatError;
use crate::work::{Stop, Stopped};

/// A passage to read.
#[derive(Clone, Debug, PartialEq)]
pub struct Context {
    /// Its rank in the retrieved list, from 1; a reading may leave ranks out or reorder them.
    pub rank: usize,
    /// The passage.
    pub passage: Arc<Passage>,
}

impl Context {
    /// Ranks passages in the order of a list.
    pub fn list(passages: impl IntoIterator<Item = Arc<Passage>>) -> Vec<Context> {
        passages.into_iter().enumerate().map(|(i, passage)| Context { rank: i + 1, passage }).collect()
    }
}

/// A reader's answer.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Answer {
    /// The text; may be empty.
    pub text: String,
    /// Whether it was recorded earlier.
    pub recorded: bool,
    /// How many passages were cut because they did not fit.
    pub cut: usize,
}

impl Answer {
    /// Whether its normalised text is empty.
    pub fn is_empty(&self) -> bool {
        normalised(&self.text).is_empty()
    }

    /// Whether the reader declines to answer. It still counts as an answer.
    pub fn is_refusal(&self) -> bool {
        // In normalised form, which has no articles.
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
        let plain = normalised(&plain);
        BEGINNINGS.iter().any(|beginning| {
            plain.strip_prefix(beginning).is_some_and(|rest| rest.is_empty() || rest.starts_with(' '))
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
    fn from(EncodeError(error): EncodeError) -> Self {
        ReadError::Model(error.to_string())
    }
}

impl ReadError {
    /// Whether it was stopped on request, which is not a failure.
    pub fn is_stop(&self) -> bool {
        matches!(self, ReadError::Stopped(_))
    }

    /// Whether all further questions would fail the same way.
    pub fn is_lasting(&self) -> bool {
        matches!(self, ReadError::Chat(ChatError::Unreachable(_)))
    }
}

/// Answers a question from passages. A call blocks until the answer is complete or `stop` is set.
pub trait Reader: Send + Sync {
    /// Its name for display.
    fn name(&self) -> &str;
    /// Whether the order of the passages can change the answer.
    fn order_sensitive(&self) -> bool;
    /// Whether it only looks up recorded answers.
    fn recorded(&self) -> bool {
        false
    }
    /// Its input limit, for the message about passages that were cut.
    fn window(&self) -> String {
        "its window".into()
    }
    /// The first 12 digits of a hash of its weights; `None` if the name is enough or the weights are unknown.
    fn key(&self) -> Option<String> {
        None
    }
    /// The share of its attention on each passage at the first token of the answer; sums to 1. `None` if unavailable.
    ///
    /// # Errors
    /// See [`ReadError`].
    fn attention(&self, _: &str, _: &[Context], _: &Stop) -> Result<Option<Vec<f64>>, ReadError> {
        Ok(None)
    }
    /// A copy of the reader that answers which of two statements the passages support together; `None` if it takes no instructions.
    /// Its answers are `supports` (the first), `opposes`, `balanced` or `silent`; any other reply is unchanged.
    fn on_sides(&self, _: [String; 2]) -> Option<Box<dyn Reader>> {
        None
    }
    /// A copy of the reader that answers in some sentences and cites the passages; `None` if its answers are what they are.
    fn at_length(&self) -> Option<Box<dyn Reader>> {
        None
    }
    /// The answer from these passages in this order, or without passages if there are none.
    ///
    /// # Errors
    /// See [`ReadError`].
    fn answer(&self, question: &str, passages: &[Context], stop: &Stop) -> Result<Answer, ReadError>;
}

/// Normalises an answer as SQuAD's evaluation does: lower case, single spaces, no punctuation and no articles (*a*, *an*, *the*).
///
/// Only ASCII punctuation is removed, as in the published script: `“` stays.
pub fn normalised(answer: &str) -> String {
    let plain: String = answer.to_lowercase().chars().filter(|c| !c.is_ascii_punctuation()).collect();
    // An article is a whole word, between two characters that are not letters, digits or `_`.
    let mut text = String::with_capacity(plain.len());
    let mut word = String::new();
    let end = |word: &mut String, text: &mut String| {
        text.push_str(if matches!(word.as_str(), "a" | "an" | "the") { " " } else { word });
        word.clear();
    };
    for c in plain.chars() {
        if c.is_alphanumeric() {
            word.push(c);
        } else {
            end(&mut word, &mut text);
            text.push(c);
        }
    }
    end(&mut word, &mut text);
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// Whether an answer equals one of the gold answers, both normalised. An answer whose normalised text is empty is never right.
pub fn matches(answer: &str, gold: &[impl AsRef<str>]) -> bool {
    let answer = normalised(answer);
    !answer.is_empty() && gold.iter().any(|gold| normalised(gold.as_ref()) == answer)
}

/// Whether two answers are equal, both normalised.
pub fn same(left: &str, right: &str) -> bool {
    normalised(left) == normalised(right)
}

#[cfg(test)]
mod reader_tests {
    use super::*;

    #[test]
    fn refusals_are_distinguished_from_answers_that_begin_alike() {
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

#[cfg(test)]
mod answer_tests {
    use super::*;

    #[test]
    fn case_articles_punctuation_and_white_space_do_not_count() {
        assert_eq!(normalised("  The  Eiffel-Tower!"), "eiffeltower");
        assert_eq!(normalised("a cat, an owl and the dog"), "cat owl and dog");
        assert_eq!(normalised("U.S.A."), "usa");
        assert_eq!(normalised("theatre another a"), "theatre another");
    }

    #[test]
    fn letters_outside_ascii_keep_their_accents_and_quotes() {
        assert_eq!(normalised("Wilhelm Röntgen"), "wilhelm röntgen");
        assert_eq!(normalised("“the” end"), "“ ” end");
    }

    #[test]
    fn any_gold_answer_will_do_and_nothing_is_never_right() {
        assert!(matches("the Beatles", &["Wings", "Beatles"]));
        assert!(!matches("Beatle", &["Beatles"]));
        assert!(!matches("", &["Beatles"]) && !matches("the", &["The"]));
        assert!(!matches("x", &[] as &[&str]));
    }
}

#[cfg(test)]
pub mod testing {
    //! A reader for tests, and its passages.

    use std::sync::Arc;

    use super::{Answer, Context, ReadError, Reader};
    use crate::corpus::Passage;
    use crate::work::{Stop, Stopped};

    /// Answers with the text of the last passage.
    pub struct Last;

    impl Reader for Last {
        fn name(&self) -> &str {
            "last"
        }

        fn order_sensitive(&self) -> bool {
            true
        }

        fn answer(&self, _: &str, passages: &[Context], stop: &Stop) -> Result<Answer, ReadError> {
            if stop.is_set() {
                return Err(Stopped.into());
            }
            let text = passages.last().map_or_else(String::new, |context| context.passage.text.clone());
            Ok(Answer { text, ..Answer::default() })
        }
    }

    /// Passages whose text is their id.
    pub fn contexts(texts: &[&str]) -> Vec<Context> {
        let passage = |text: &&str| {
            Arc::new(Passage { id: (*text).into(), text: (*text).into(), ..Passage::default() })
        };
        Context::list(texts.iter().map(passage))
    }
}
