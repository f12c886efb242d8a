//! Prompts, replies, and the trait of everything that answers prompts.

use serde::{Deserialize, Serialize};

use crate::work::{Stop, Stopped};

/// The purpose of a prompt.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Job {
    /// Whether a passage supports a statement.
    Detect,
    /// Perspectives on a question.
    Perspectives,
    /// A hypothetical answer.
    Keqe,
    /// Sentences copied from passages.
    Csqe,
    /// A hypothetical answer, with passages to write it from.
    Q2dPrf,
    /// Two opposite statements that answer a question.
    Statements,
    /// An answer from passages.
    Read,
    /// An answer without passages.
    ReadAlone,
    /// Which of two statements passages support together.
    ReadSides,
    /// Whether two answers mean the same.
    SameAnswer,
}

impl Job {
    /// All of them.
    pub const ALL: [Job; 10] = [
        Job::Detect,
        Job::Perspectives,
        Job::Keqe,
        Job::Csqe,
        Job::Q2dPrf,
        Job::Statements,
        Job::Read,
        Job::ReadAlone,
        Job::ReadSides,
        Job::SameAnswer,
    ];

    /// Its name in files, which is also the name of its built-in prompt.
    pub fn name(self) -> &'static str {
        match self {
            Job::Detect => "detect",
            Job::Perspectives => "perspectives",
            Job::Keqe => "keqe",
            Job::Csqe => "csqe",
            Job::Q2dPrf => "q2d-prf",
            Job::Statements => "statements",
            Job::Read => "read",
            Job::ReadAlone => "read-alone",
            Job::ReadSides => "read-sides",
            Job::SameAnswer => "same-answer",
        }
    }

    /// The fields of its prompt; every prompt for this job must contain all of them.
    pub fn fields(self) -> &'static [&'static str] {
        match self {
            Job::Detect => &["passage", "statement"],
            Job::Perspectives | Job::Keqe | Job::Statements | Job::ReadAlone => &["question"],
            Job::Csqe | Job::Q2dPrf | Job::Read => &["question", "passages"],
            Job::ReadSides => &["first", "second", "passages"],
            Job::SameAnswer => &["question", "first", "second"],
        }
    }

    /// The possible outcomes of a reply, if it is one word.
    pub fn outcomes(self) -> &'static [&'static str] {
        match self {
            Job::Detect | Job::SameAnswer => &["yes", "no"],
            Job::ReadSides => &["first", "second", "both", "neither"],
            _ => &[],
        }
    }
}

/// Identifies the prompt of a request. A reply to one version never counts for another.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct PromptId {
    /// The name of a built-in prompt, or the name of its file without the extension.
    pub name: String,
    /// The version that its file states.
    pub version: u32,
    /// The first 32 hexadecimal digits of the BLAKE3 hash of its file's content.
    pub hash: String,
}

/// One prompt. Equal requests with equal sample numbers get equal recorded replies.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Request {
    /// The prompt from which it was made.
    pub made_from: PromptId,
    /// The system text; may be empty.
    pub system: String,
    /// The user text.
    pub prompt: String,
    /// 0 always takes the likeliest token; 1 samples from the model's own distribution.
    pub temperature: f32,
    /// The maximum number of tokens in the reply.
    pub max_tokens: u32,
    /// The number of the reply among several to the same prompt, from 0.
    pub sample: u32,
}

/// The cost of a reply, as the model counts it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Tokens {
    /// Tokens of the prompt.
    pub prompt: u64,
    /// Tokens of the reply.
    pub reply: u64,
}

/// One reply.
#[derive(Clone, Debug, PartialEq)]
pub struct Reply {
    /// The text that the model wrote.
    pub text: String,
    /// Its name.
    pub model: String,
    /// Whether it was read from a file of recorded replies.
    pub recorded: bool,
    /// Its cost, if the server reports it.
    pub tokens: Option<Tokens>,
}

impl Reply {
    /// The text without the thoughts that some models write first.
    pub fn answer(&self) -> &str {
        let after = self.text.rsplit_once("</think>").map_or(self.text.as_str(), |(_, after)| after).trim();
        if after.starts_with("<think>") { "" } else { after }
    }
}

/// Why there is no reply.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum ChatError {
    /// The server is down, cut the connection, or took too long; or the model's file cannot be used.
    #[error("{0}")]
    Unreachable(String),
    /// The server refused this request (holds its message), or the prompt is too long for the model.
    #[error("{0}")]
    Refused(String),
    /// The server refuses every request (holds its message): wrong key or address, overload, or failure.
    #[error("{0}")]
    Barred(String),
    /// The response is not a chat completion, or the reply is empty.
    #[error("{0}")]
    Nonsense(String),
    /// No reply to this request was recorded, and there is no model.
    #[error("no reply to this prompt was recorded")]
    NotRecorded,
    /// Stopped on request.
    #[error(transparent)]
    Stopped(#[from] Stopped),
}

/// Anything that answers prompts. A call blocks until the reply is complete or `stop` is set.
pub trait Chat: Send + Sync {
    /// The model's name for display.
    fn model(&self) -> &str;
    /// The server's address for provenance; `None` if the model runs here.
    fn server(&self) -> Option<&str> {
        None
    }
    /// The maximum number of tokens in prompt and reply together; `None` if unknown, as for servers.
    fn window(&self) -> Option<usize> {
        None
    }
    /// The reply to one request.
    ///
    /// # Errors
    /// See [`ChatError`].
    fn reply(&self, request: &Request, stop: &Stop) -> Result<Reply, ChatError>;
}
