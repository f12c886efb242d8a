//! A chat that says what it is told, and a small world to ask about.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex};

use super::{Ask, Listed};
use crate::corpus::{Passage, PassageIx};
use crate::llm::{Chat, ChatError, Reply, Request, Tokens};
use crate::work::{Stop, Stopped};

/// Says its lines in order; behind the last it is not there.
pub(super) struct Scripted {
    lines: Mutex<VecDeque<Result<String, ChatError>>>,
    asked: Mutex<Vec<Request>>,
}

impl Scripted {
    pub(super) fn new(lines: Vec<Result<String, ChatError>>) -> Self {
        Scripted { lines: Mutex::new(lines.into()), asked: Mutex::default() }
    }

    pub(super) fn saying(lines: &[&str]) -> Self {
        Self::new(lines.iter().map(|line| Ok((*line).to_owned())).collect())
    }

    pub(super) fn down() -> Self {
        Self::new(Vec::new())
    }

    pub(super) fn asked(&self) -> Vec<Request> {
        self.asked.lock().unwrap().clone()
    }
}

impl Chat for Scripted {
    fn model(&self) -> &str {
        "fake"
    }

    fn reply(&self, request: &Request, stop: &Stop) -> Result<Reply, ChatError> {
        if stop.is_set() {
            return Err(Stopped.into());
        }
        self.asked.lock().unwrap().push(request.clone());
        let line = self.lines.lock().unwrap().pop_front();
        let text = line.unwrap_or_else(|| Err(ChatError::Unreachable("nobody is there".into())))?;
        let tokens = Some(Tokens { prompt: 10, reply: 3 });
        Ok(Reply { text, model: "fake".into(), recorded: false, tokens })
    }
}

/// What an asker's own functions may fail with.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Failed {
    Stopped,
    Index,
}

impl From<Stopped> for Failed {
    fn from(_: Stopped) -> Self {
        Failed::Stopped
    }
}

/// Passages with scores from 10 downwards, at places from 100.
pub(super) fn listed(texts: &[&str]) -> Vec<Listed> {
    texts
        .iter()
        .zip(0..)
        .map(|(text, i)| {
            let passage = Passage { text: (*text).to_owned(), ..Passage::default() };
            Listed { at: PassageIx(100 + i), passage: Arc::new(passage), score: 10.0 - i as f32 }
        })
        .collect()
}

/// Asks about `question` over `texts`: a text is the liker the longer it is, and every stem is in one passage of a thousand.
pub(super) fn with_ask<R>(
    question: &str,
    statements: &[&str],
    texts: &[&str],
    chat: Option<&dyn Chat>,
    then: impl FnOnce(Ask<'_, Failed>) -> R,
) -> R {
    let statements: Vec<String> = statements.iter().map(|text| (*text).to_owned()).collect();
    let all = listed(texts);
    then(Ask {
        question,
        statements: &statements,
        given: &[],
        chat,
        first: &|depth| Ok(all.iter().take(depth).cloned().collect()),
        likeness: &|texts| Ok(texts.iter().map(|text| text.len() as f32 / 1000.0).collect()),
        document_frequency: &|_| Ok(1),
        passages: 1000,
        stop: &Stop::never(),
    })
}
