//! Asking a model behind an OpenAI-compatible `/v1/chat/completions`: vLLM, llama.cpp, Ollama, or a hosted one.

use std::fmt;
use std::sync::Arc;
use std::sync::mpsc::{RecvTimeoutError, sync_channel};
use std::time::Duration;

use reqwest::redirect::Policy;
use serde::Serialize;
use tokio::runtime::{Builder, Handle, Runtime};
use tokio::sync::Semaphore;

use super::endpoint::{BadEndpoint, Endpoint};
use super::exchange::{Failure, Line};
use super::{Chat, ChatError, Reply, Request};
use crate::net::retry::Backoff;
use crate::net::{is_here, tls};
use crate::work::{Stop, Stopped};

/// How often a waiting caller looks whether it should stop.
const LOOK: Duration = Duration::from_millis(20);

/// No server that is there takes longer to accept a connection.
const CONNECT: Duration = Duration::from_secs(10);

/// A model behind an OpenAI-compatible server.
pub struct OpenAi {
    line: Arc<Line>,
    permits: Arc<Semaphore>,
    pub(super) backoff: Backoff,
    handle: Handle,
    runtime: Option<Runtime>,
}

#[derive(Serialize)]
struct Body<'a> {
    model: &'a str,
    messages: Vec<Message<'a>>,
    temperature: f32,
    max_tokens: u32,
    stream: bool,
    stream_options: StreamOptions,
}

#[derive(Serialize)]
struct StreamOptions {
    include_usage: bool,
}

#[derive(Serialize)]
struct Message<'a> {
    role: &'static str,
    content: &'a str,
}

impl OpenAi {
    /// A client for an endpoint. Nothing is sent yet.
    ///
    /// # Errors
    /// The endpoint cannot be meant so: its URL is empty or not http, no model is named, or the key cannot be sent.
    pub fn new(endpoint: Endpoint) -> Result<Self, BadEndpoint> {
        let (target, shown) = endpoint.target()?;
        if endpoint.model.trim().is_empty() {
            return Err(BadEndpoint(format!(
                "no model is named; name one of those {shown}/models lists with --llm-model"
            )));
        }
        if endpoint.key.as_ref().is_some_and(|key| key.contains(|c: char| !c.is_ascii_graphic())) {
            return Err(BadEndpoint(
                "the key for the model server holds blanks or odd characters; set it anew".into(),
            ));
        }
        let here = is_here(&target);
        let tls = tls(target.scheme() == "https", here).map_err(BadEndpoint)?;
        // A redirect would carry the prompt to a server nobody named.
        let client = reqwest::Client::builder()
            .redirect(Policy::none())
            .connect_timeout(CONNECT.min(endpoint.patience))
            .tls_backend_preconfigured(tls);
        let client = if here { client.no_proxy() } else { client };
        let no =
            |what: &str, why: &dyn fmt::Display| BadEndpoint(format!("{what} could not be set up ({why})"));
        let client = client.build().map_err(|error| no("the client for the model server", &error))?;
        let runtime = Builder::new_multi_thread().worker_threads(1).thread_name("llm").enable_all().build();
        let runtime = runtime.map_err(|error| no("the thread for the model server", &error))?;
        Ok(OpenAi {
            permits: Arc::new(Semaphore::new(endpoint.at_once.clamp(1, Semaphore::MAX_PERMITS))),
            line: Arc::new(Line { client, endpoint, target, shown }),
            backoff: Backoff::default(),
            handle: runtime.handle().clone(),
            runtime: Some(runtime),
        })
    }

    fn body(&self, request: &Request) -> Result<Vec<u8>, ChatError> {
        let refused =
            |why: &dyn fmt::Display| ChatError::Refused(format!("the request cannot be sent ({why})"));
        if !request.temperature.is_finite() {
            return Err(refused(&"its temperature is no number"));
        }
        let system = Message { role: "system", content: &request.system };
        let user = Message { role: "user", content: &request.prompt };
        let body = Body {
            model: &self.line.endpoint.model,
            messages: if request.system.is_empty() { vec![user] } else { vec![system, user] },
            temperature: request.temperature,
            max_tokens: request.max_tokens,
            stream: true,
            stream_options: StreamOptions { include_usage: true },
        };
        serde_json::to_vec(&body).map_err(|error| refused(&error))
    }
}

impl Chat for OpenAi {
    fn model(&self) -> &str {
        &self.line.endpoint.model
    }

    fn reply(&self, request: &Request, stop: &Stop) -> Result<Reply, ChatError> {
        if stop.is_set() {
            return Err(Stopped.into());
        }
        let (tell, told) = sync_channel(1);
        let asking =
            ask(Arc::clone(&self.line), Arc::clone(&self.permits), self.backoff, self.body(request)?);
        let task = self.handle.spawn(async move {
            // Nobody listens any longer when the caller was stopped.
            let _ = tell.send(asking.await);
        });
        // The caller keeps the look-out, so that nothing the request may be busy with can delay a stop.
        loop {
            match told.recv_timeout(LOOK) {
                Ok(reply) => return reply,
                Err(RecvTimeoutError::Timeout) if !stop.is_set() => {}
                Err(RecvTimeoutError::Timeout) => {
                    task.abort();
                    return Err(Stopped.into());
                }
                Err(RecvTimeoutError::Disconnected) => {
                    return Err(ChatError::Unreachable("the client for the model server has ended".into()));
                }
            }
        }
    }
}

async fn ask(
    line: Arc<Line>,
    permits: Arc<Semaphore>,
    backoff: Backoff,
    body: Vec<u8>,
) -> Result<Reply, ChatError> {
    // Kept through the pauses: a server that is overloaded gains nothing when others take the place.
    let _permit = permits.acquire().await;
    let mut tried = 0;
    loop {
        tried += 1;
        match line.once(body.clone()).await {
            Ok(answer) => {
                let model =
                    answer.model.map_or_else(|| line.endpoint.model.clone(), |model| line.tame(&model));
                return Ok(Reply { text: answer.text, model, recorded: false, tokens: answer.tokens });
            }
            Err(Failure::Lasting(error)) => return Err(error),
            Err(Failure::Passing(error, _)) if tried >= line.endpoint.tries => {
                return Err(after(error, tried));
            }
            Err(Failure::Passing(_, asked)) => tokio::time::sleep(backoff.pause(tried, asked)).await,
        }
    }
}

fn after(error: ChatError, tried: u32) -> ChatError {
    let more = |told: String| if tried > 1 { format!("{told} (tried {tried} times)") } else { told };
    match error {
        ChatError::Unreachable(told) => ChatError::Unreachable(more(told)),
        ChatError::Refused(told) => ChatError::Refused(more(told)),
        ChatError::Barred(told) => ChatError::Barred(more(told)),
        other => other,
    }
}

impl fmt::Debug for OpenAi {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("OpenAi").field("endpoint", &self.line.endpoint).finish_non_exhaustive()
    }
}

impl Drop for OpenAi {
    fn drop(&mut self) {
        // A runtime that is dropped waits for name lookups, and panics inside another runtime.
        if let Some(runtime) = self.runtime.take() {
            runtime.shutdown_background();
        }
    }
}
