//! Language models that answer prompts: an OpenAI-compatible endpoint, a GGUF file, and recorded replies.
//!
//! All of them implement [`Chat`]. [`Prompts`] holds one prompt for each job, read from TOML files. The replies are interpreted by other
//! rooms.
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

pub use chat::{Chat, ChatError, FENCE, Job, PromptId, Reply, Request, Tokens};
pub use endpoint::{AT_ONCE, BadEndpoint, Endpoint, KEY_VARIABLE};
#[cfg(feature = "local-llm")]
pub use local::Local;
pub use nearby::{Nearby, PORTS, nearby};
pub use openai::{OpenAi, named};
pub use prompts::{Prompt, Prompts};
pub use recorded::{RecordError, Recorded, is_damaged, line};
pub use recording::Recording;
