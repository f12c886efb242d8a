//! A reader for tests, and its passages.

use std::sync::Arc;

use super::reader::{Answer, Context, ReadError, Reader};
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

    fn recorded(&self) -> bool {
        false
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
    let passage =
        |text: &&str| Arc::new(Passage { id: (*text).into(), text: (*text).into(), ..Passage::default() });
    Context::list(texts.iter().map(passage))
}
