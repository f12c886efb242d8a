//! Language models that answer prompts: an OpenAI-compatible endpoint, a GGUF file, and recorded replies.
//!
//! Everything implements [`Chat`]. [`Prompts`] holds what each job of the program asks, read from TOML files; what becomes of the
//! replies is the business of other rooms.
//!
//! May use: assets (prompts), encode (tokenizers), input, net, storage, work.

mod chat;
mod completion;
mod endpoint;
#[cfg(feature = "local-llm")]
mod local;
mod nearby;
mod openai;
mod prompts;
mod recorded;
mod recording;
#[cfg(test)]
mod tests;

pub use chat::{Chat, ChatError, Job, PromptId, Reply, Request, Tokens};
pub use endpoint::{AT_ONCE, BadEndpoint, Endpoint, KEY_VARIABLE};
#[cfg(feature = "local-llm")]
pub use local::Local;
pub use nearby::{Nearby, PORTS, nearby};
pub use openai::{OpenAi, named};
pub use prompts::{Prompt, Prompts};
pub use recorded::{RecordError, Recorded, line};
pub use recording::Recording;
