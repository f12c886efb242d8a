//! What servers send as a chat completion, whole or in pieces.

use serde::Deserialize;
use serde_json::Value;

use super::Tokens;

/// A whole reply, as the server sent it.
#[derive(Debug, Default, PartialEq)]
pub(super) struct Answer {
    pub text: String,
    pub model: Option<String>,
    pub tokens: Option<Tokens>,
}

/// Why a body is no reply.
#[derive(Debug, PartialEq)]
pub(super) enum Odd {
    /// It is something else; with what is wrong and an excerpt.
    Nonsense(String, String),
    /// It ends in the middle.
    Cut,
    /// The server tells of an error after it had promised a reply.
    Failed { status: Option<u16>, words: String },
}

/// A chat completion, or one event of a streamed one.
#[derive(Deserialize)]
pub(super) struct Piece {
    pub model: Option<String>,
    pub choices: Option<Vec<Choice>>,
    pub usage: Option<Usage>,
    pub error: Option<Value>,
}

#[derive(Deserialize)]
pub(super) struct Choice {
    #[serde(default)]
    pub index: u32,
    pub delta: Option<Said>,
    pub message: Option<Said>,
    pub finish_reason: Option<String>,
}

#[derive(Deserialize)]
pub(super) struct Said {
    pub content: Option<String>,
}

#[derive(Deserialize)]
pub(super) struct Usage {
    pub prompt_tokens: Option<u64>,
    pub completion_tokens: Option<u64>,
}

/// The words in an error a server sends, which every server wraps in its own way.
pub(super) fn words(error: &Value) -> Option<String> {
    match error {
        Value::String(words) => Some(words.clone()),
        Value::Object(fields) => {
            ["error", "message", "detail"].into_iter().find_map(|name| fields.get(name).and_then(words))
        }
        _ => None,
    }
}
