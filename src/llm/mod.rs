//! Language models that answer prompts: an OpenAI-compatible endpoint, a GGUF file, and replies recorded before.
//!
//! Owns [`Chat`] and what implements it. It must not know what a prompt is for.

mod completion;
mod endpoint;
mod exchange;
#[cfg(test)]
mod fake;
mod journal;
#[cfg(feature = "local-llm")]
mod local;
mod named;
mod openai;
#[cfg(test)]
mod openai_tests;
mod record;
mod recorded;
mod recording;
mod sse;
#[cfg(test)]
mod waiting_tests;

pub use endpoint::{AT_ONCE, BadEndpoint, Endpoint, KEY_VARIABLE};
#[cfg(feature = "local-llm")]
pub use local::Local;
pub use named::named;
pub use openai::OpenAi;
pub use record::line;
pub use recorded::Recorded;
pub use recording::Recording;

use crate::work::{Stop, Stopped};

/// One prompt. Equal requests with equal sample numbers get equal recorded replies.
#[derive(Clone, Debug, PartialEq)]
pub struct Request {
    /// What the model is to be; may be empty.
    pub system: String,
    /// What is asked.
    pub prompt: String,
    /// 0 takes the likeliest words, 1 draws freely.
    pub temperature: f32,
    /// At most this many tokens in the reply.
    pub max_tokens: u32,
    /// Which of several replies to the same prompt, from 0.
    pub sample: u32,
}

/// What a reply cost, as the model counts it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Tokens {
    /// Read.
    pub prompt: u64,
    /// Written.
    pub reply: u64,
}

/// One answer.
#[derive(Clone, Debug, PartialEq)]
pub struct Reply {
    /// What the model wrote.
    pub text: String,
    /// Its name.
    pub model: String,
    /// It was read from a file of recorded replies.
    pub recorded: bool,
    /// What it cost, where the server says so.
    pub tokens: Option<Tokens>,
}

impl Reply {
    /// What it says, without the thoughts that some models write before it.
    pub fn said(&self) -> &str {
        let after = self.text.rsplit_once("</think>").map_or(self.text.as_str(), |(_, after)| after).trim();
        if after.starts_with("<think>") { "" } else { after }
    }
}

/// Why there is no reply.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum ChatError {
    /// The server is not there, cut the connection, or took too long; or the model's file cannot be used.
    #[error("{0}")]
    Unreachable(String),
    /// The server refused this request, in its words; or the prompt is too long for the model.
    #[error("{0}")]
    Refused(String),
    /// The server refuses whatever it is asked, in its words: it wants another key or address, has no room, or is broken.
    #[error("{0}")]
    Barred(String),
    /// The server answered something that is no chat completion, or the model nothing.
    #[error("{0}")]
    Nonsense(String),
    /// No reply to this request was recorded, and there is no model to ask.
    #[error("no reply to this prompt was recorded")]
    NotRecorded,
    /// Stopped on request.
    #[error(transparent)]
    Stopped(#[from] Stopped),
}

/// Anything that answers prompts. A call blocks until the reply is whole or `stop` is set.
pub trait Chat: Send + Sync {
    /// The model's name, to be shown.
    fn model(&self) -> &str;
    /// How many tokens it reads and writes in all; none where it does not say, as servers do not.
    fn window(&self) -> Option<usize> {
        None
    }
    /// The reply to one request.
    ///
    /// # Errors
    /// See [`ChatError`].
    fn reply(&self, request: &Request, stop: &Stop) -> Result<Reply, ChatError>;
}
