//! A model behind an OpenAI-compatible `/v1/chat/completions`: vLLM, llama.cpp, Ollama, or a hosted one.

use std::error::Error;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{RecvTimeoutError, sync_channel};
use std::time::{Duration, SystemTime};
use std::{fmt, io};

use reqwest::header::{CONTENT_TYPE, LOCATION, RETRY_AFTER};
use reqwest::redirect::Policy;
use reqwest::{Client, Response, Url};
use serde::Serialize;
use tokio::runtime::{Builder, Handle, Runtime};
use tokio::sync::Semaphore;
use tokio::time::timeout;

use super::chat::{ALTERNATIVES, Chat, ChatError, Reply, Request, outcome_place};
use super::completion::{Answer, Odd, Reading, words};
use super::endpoint::{BadEndpoint, Endpoint, KEY_VARIABLE};
use crate::input::{excerpt, tame};
use crate::net;
use crate::net::Backoff;
use crate::net::{is_here, tls};
use crate::work::{Stop, Stopped};

/// How often a waiting caller checks its stop.
const LOOK: Duration = Duration::from_millis(20);

/// A server that is up accepts a connection within this time.
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
    #[serde(skip_serializing_if = "Option::is_none")]
    logprobs: Option<bool>,
    #[serde(skip_serializing_if = "Option::is_none")]
    top_logprobs: Option<usize>,
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
    /// The endpoint is unusable: its URL is empty or not http, no model is named, or the key cannot be sent.
    pub fn new(endpoint: Endpoint) -> Result<Self, BadEndpoint> {
        let (target, shown) = endpoint.target()?;
        if endpoint.model.trim().is_empty() {
            return Err(BadEndpoint(format!(
                "no model is named; name one of those {shown}/models lists with --llm-model"
            )));
        }
        if endpoint.key.as_ref().is_some_and(|key| key.contains(|c: char| !c.is_ascii_graphic())) {
            return Err(BadEndpoint(
                "the key for the model server contains spaces or other invalid characters; set it again"
                    .into(),
            ));
        }
        let here = is_here(&target);
        let tls = tls(target.scheme() == "https", here).map_err(|error| BadEndpoint(error.to_string()))?;
        // A redirect would send the prompt to another server.
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
            line: Arc::new(Line {
                client,
                endpoint,
                target,
                shown,
                refuses_logprobs: AtomicBool::new(false),
            }),
            backoff: Backoff::default(),
            handle: runtime.handle().clone(),
            runtime: Some(runtime),
        })
    }

    fn body(&self, request: &Request, logprobs: bool) -> Result<Vec<u8>, ChatError> {
        let refused =
            |why: &dyn fmt::Display| ChatError::Refused(format!("the request cannot be sent ({why})"));
        if !request.temperature.is_finite() {
            return Err(refused(&"its temperature is not a finite number"));
        }
        let system = Message { role: "system", content: &request.system };
        let sent = request.sent();
        let user = Message { role: "user", content: &sent };
        let body = Body {
            model: &self.line.endpoint.model,
            messages: if request.system.is_empty() { vec![user] } else { vec![system, user] },
            temperature: request.temperature,
            max_tokens: request.max_tokens,
            stream: true,
            stream_options: StreamOptions { include_usage: true },
            logprobs: logprobs.then_some(true),
            top_logprobs: logprobs.then_some(ALTERNATIVES),
        };
        serde_json::to_vec(&body).map_err(|error| refused(&error))
    }
}

impl Chat for OpenAi {
    fn model(&self) -> &str {
        &self.line.endpoint.model
    }

    fn server(&self) -> Option<&str> {
        Some(&self.line.shown)
    }

    fn reply(&self, request: &Request, stop: &Stop) -> Result<Reply, ChatError> {
        if stop.is_set() {
            return Err(Stopped.into());
        }
        let (sender, message) = sync_channel(1);
        let plain = self.body(request, false)?;
        let wanted = !request.outcomes.is_empty() && !self.line.refuses_logprobs.load(Ordering::Relaxed);
        let bodies = if wanted { (self.body(request, true)?, Some(plain)) } else { (plain, None) };
        let outcomes = request.outcomes.clone();
        let (line, permits) = (Arc::clone(&self.line), Arc::clone(&self.permits));
        let asking = ask(line, permits, self.backoff, bodies, outcomes);
        let task = self.handle.spawn(async move {
            // The receiver is gone if the caller was stopped.
            let _ = sender.send(asking.await);
        });
        // The caller checks the stop, so nothing that the request does can delay it.
        loop {
            match message.recv_timeout(LOOK) {
                // A stop of several requests lets the next one begin, which then fails.
                Ok(Err(_)) if stop.is_set() => return Err(Stopped.into()),
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
    (mut body, mut plain): (Vec<u8>, Option<Vec<u8>>),
    outcomes: Vec<Vec<String>>,
) -> Result<Reply, ChatError> {
    // Held during the pauses: other requests would not help an overloaded server.
    let _permit = permits.acquire().await;
    let (mut tried, mut without) = (0, false);
    loop {
        let answered = line.once(body.clone()).await;
        if let Err(failure) = &answered
            && failure.may_be_of_logprobs()
            && let Some(plain) = plain.take()
        {
            (body, without) = (plain, true);
            continue;
        }
        tried += 1;
        match answered {
            Ok(mut answer) => {
                if without {
                    line.refuses_logprobs.store(true, Ordering::Relaxed);
                }
                let place = outcome_place(&outcomes, answer.places.iter().map(|(token, _)| token));
                let alternatives = place.map(|place| answer.places.swap_remove(place).1).unwrap_or_default();
                let model =
                    answer.model.map_or_else(|| line.endpoint.model.clone(), |model| line.tame(&model));
                let cut = answer.cut.map(|cut| line.tame(&cut));
                let (text, tokens) = (answer.text, answer.tokens);
                return Ok(Reply { text, model, recorded: false, tokens, cut, alternatives });
            }
            Err(Failure::Permanent(error)) => return Err(error),
            Err(Failure::Temporary(error, _)) if tried >= line.endpoint.tries => {
                return Err(after(error, tried));
            }
            Err(Failure::Temporary(error, asked)) if backoff.is_too_long(asked) => {
                return Err(more(
                    error,
                    &format!("; it asks for a pause of {:?}", asked.unwrap_or_default()),
                ));
            }
            Err(Failure::Temporary(_, asked)) => {
                net::wait_in_task(&line.shown, backoff.pause(tried, asked)).await;
            }
        }
    }
}

fn after(error: ChatError, tried: u32) -> ChatError {
    if tried > 1 { more(error, &format!(" (tried {tried} times)")) } else { error }
}

/// Adds words to the message of an error.
fn more(error: ChatError, words: &str) -> ChatError {
    let more = |message: String| message + words;
    match error {
        ChatError::Unreachable(message) => ChatError::Unreachable(more(message)),
        ChatError::Refused(message) => ChatError::Refused(more(message)),
        ChatError::Barred(message) => ChatError::Barred(more(message)),
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

/// The limit of an error page in bytes.
const PAGE: usize = 16 << 10;

/// The failure of one try.
pub(super) enum Failure {
    /// Another try may succeed; holds the pause that the server requested.
    Temporary(ChatError, Option<Duration>),
    /// Another try would fail the same way.
    Permanent(ChatError),
}

impl Failure {
    /// Whether the request may succeed without log-probabilities. Servers refuse unknown parameters with 400 or 422; models that do not
    /// give them out are named in all kinds of errors.
    fn may_be_of_logprobs(&self) -> bool {
        let (Failure::Temporary(error, _) | Failure::Permanent(error)) = self;
        matches!(error, ChatError::Refused(_)) || error.to_string().contains("logprob")
    }
}

/// A server and the client for it.
pub(super) struct Line {
    pub client: Client,
    pub endpoint: Endpoint,
    pub target: Url,
    /// The base URL, free of secrets.
    pub shown: String,
    /// Whether it refused a request for log-probabilities and took the same without.
    refuses_logprobs: AtomicBool,
}

impl Line {
    /// Sends a request once and reads the reply.
    pub async fn once(&self, body: Vec<u8>) -> Result<Answer, Failure> {
        let total = self.endpoint.total;
        let answered = net::in_total(&self.shown, total, self.send(body)).await;
        answered.unwrap_or_else(|| {
            let shown = &self.shown;
            let message =
                format!("{shown} did not finish its reply within {total:?}; see what the server does");
            Err(Failure::Permanent(ChatError::Unreachable(message)))
        })
    }

    async fn send(&self, body: Vec<u8>) -> Result<Answer, Failure> {
        let mut request = self.client.post(self.target.clone()).header(CONTENT_TYPE, "application/json");
        if let Some(key) = self.endpoint.key.as_ref().filter(|key| !key.is_empty()) {
            request = request.bearer_auth(key);
        }
        let sent = timeout(self.endpoint.patience, request.body(body).send()).await;
        let response =
            sent.map_err(|_| self.silence_failure())?.map_err(|error| self.connection_failure(&error))?;
        if response.status().is_success() {
            self.read(response).await
        } else {
            Err(self.refusal(response).await)
        }
    }

    async fn read(&self, mut response: Response) -> Result<Answer, Failure> {
        let mut reading = Reading::default();
        while !reading.is_done() {
            match timeout(self.endpoint.patience, response.chunk()).await {
                Ok(Ok(Some(bytes))) => reading.feed(&bytes).map_err(|odd| self.body_failure(odd))?,
                Ok(Ok(None)) => break,
                // Only the token count is missing.
                Ok(Err(_)) | Err(_) if reading.is_whole() => break,
                Ok(Err(error)) => return Err(self.cut_failure(&format!(" ({})", innermost(&error)))),
                Err(_) => return Err(self.silence_failure()),
            }
        }
        reading.end().map_err(|odd| self.body_failure(odd))
    }

    fn silence_failure(&self) -> Failure {
        let (shown, patience) = (&self.shown, self.endpoint.patience);
        let message = format!(
            "{shown} sent nothing for {patience:?}; it may be loading the model or be overloaded: try again"
        );
        Failure::Temporary(ChatError::Unreachable(message), None)
    }

    fn cut_failure(&self, why: &str) -> Failure {
        let message = format!(
            "{} cut the connection in the middle of a reply{why}; see what the server says",
            self.shown
        );
        Failure::Temporary(ChatError::Unreachable(message), None)
    }

    fn connection_failure(&self, error: &reqwest::Error) -> Failure {
        let (shown, why) = (&self.shown, self.tame(&innermost(error)));
        if !error.is_connect() {
            return self.cut_failure(&format!(" ({why})"));
        }
        if has(error, |e| e.is::<rustls::Error>()) {
            let message =
                format!("{shown} could not be reached safely ({why}); check the URL and the certificate");
            return Failure::Permanent(ChatError::Unreachable(message));
        }
        let message = format!("{shown} could not be reached ({why}); start the server or set --llm URL");
        // A pause does not start a server, and a user who forgot to start it should not wait for this message.
        let closed = has(error, |e| {
            e.downcast_ref::<io::Error>().is_some_and(|e| e.kind() == io::ErrorKind::ConnectionRefused)
        });
        let error = ChatError::Unreachable(message);
        if closed { Failure::Permanent(error) } else { Failure::Temporary(error, None) }
    }

    async fn refusal(&self, mut response: Response) -> Failure {
        let status = response.status();
        let header =
            |name| response.headers().get(name).and_then(|value| value.to_str().ok()).map(str::to_owned);
        let pause = header(RETRY_AFTER).and_then(|value| net::retry_after(&value, SystemTime::now()));
        let location = header(LOCATION).filter(|_| status.is_redirection());
        let mut page = Vec::new();
        while page.len() < PAGE
            && let Ok(Ok(Some(bytes))) = timeout(self.endpoint.patience, response.chunk()).await
        {
            page.extend_from_slice(&bytes);
        }
        let words = serde_json::from_slice(&page).ok().and_then(|page| words(&page));
        let words = location.or(words).unwrap_or_else(|| String::from_utf8_lossy(&page).into_owned());
        self.status_failure(status.as_u16(), &status.to_string(), &words, pause)
    }

    fn status_failure(&self, status: u16, named: &str, words: &str, pause: Option<Duration>) -> Failure {
        let advice = match status {
            300..=399 => "; set --llm to the URL it has moved to",
            401 | 403 if self.endpoint.key.is_some() => &format!("; check the key in {KEY_VARIABLE}"),
            401 | 403 => &format!("; put a key into {KEY_VARIABLE}"),
            404 => "; check the model's name, and the URL, which mostly ends in /v1",
            429 => "; ask less at once, or try again later",
            500..=599 => "; see what the server says, or try again later",
            _ => "",
        };
        let words = self.tame(words);
        let words = if words.is_empty() { String::new() } else { format!(": {words}") };
        let message = format!("{} refused with {named}{words}{advice}", self.shown);
        let error = match status {
            300..=399 | 401..=404 | 429 | 500..=599 => ChatError::Barred(message),
            _ => ChatError::Refused(message),
        };
        if net::is_temporary(status) { Failure::Temporary(error, pause) } else { Failure::Permanent(error) }
    }

    fn body_failure(&self, odd: Odd) -> Failure {
        match odd {
            Odd::Cut => self.cut_failure(""),
            Odd::Failed { status, words } => {
                let named = status.map_or_else(|| "an error".to_owned(), |status| format!("error {status}"));
                self.status_failure(status.unwrap_or_default(), &named, &words, None)
            }
            Odd::Nonsense(what, excerpt) => {
                let (shown, what, excerpt) = (&self.shown, self.tame(&what), self.tame(&excerpt));
                let message = format!("{shown} sent {what}: `{excerpt}`; check the URL and the model");
                Failure::Permanent(ChatError::Nonsense(message))
            }
        }
    }

    /// A server's message, short and safe to print. Some servers repeat the key that they refuse, so it is removed.
    pub fn tame(&self, words: &str) -> String {
        let key = self.endpoint.key.as_deref().unwrap_or_default();
        let words = if key.is_empty() { words.to_owned() } else { words.replace(key, "(key)") };
        tame(&words)
    }
}

fn chain(error: &reqwest::Error) -> impl Iterator<Item = &(dyn Error + 'static)> {
    std::iter::successors(Some(error as &(dyn Error + 'static)), |&error| {
        // The `source` of an io error skips the error that it wraps.
        let wrapped = error.downcast_ref::<io::Error>().and_then(io::Error::get_ref);
        wrapped.map(|inner| inner as &(dyn Error + 'static)).or_else(|| error.source())
    })
}

fn has(error: &reqwest::Error, is: impl Fn(&(dyn Error + 'static)) -> bool) -> bool {
    chain(error).any(is)
}

/// The innermost cause. The outer errors only say that there is an inner one.
fn innermost(error: &reqwest::Error) -> String {
    chain(error).last().map(ToString::to_string).unwrap_or_default()
}

/// Opens the model in `gguf:FILE`, or the model named `model` on the OpenAI-compatible server at the address `llm`. A server gets at most
/// `at_once` requests at the same time.
///
/// # Errors
/// The address is invalid, the file is not a readable model or `model` is not empty, or this build cannot read GGUF files.
pub fn named(llm: &str, model: &str, at_once: usize) -> Result<Arc<dyn Chat>, BadEndpoint> {
    match llm.trim().strip_prefix("gguf:") {
        Some(_) if !model.trim().is_empty() => Err(BadEndpoint(format!(
            "a model from a GGUF file is named by its file, not {}; leave --llm-model (PARALLAX_LLM_MODEL) out",
            excerpt(model)
        ))),
        Some(file) => local(Path::new(file)),
        None => Ok(Arc::new(OpenAi::new(Endpoint { at_once, ..Endpoint::from_env(llm, model) })?)),
    }
}

#[cfg(feature = "local-llm")]
fn local(file: &Path) -> Result<Arc<dyn Chat>, BadEndpoint> {
    let model = super::Local::open(file).map_err(|error| BadEndpoint(error.to_string()))?;
    Ok(Arc::new(model))
}

#[cfg(not(feature = "local-llm"))]
fn local(_: &Path) -> Result<Arc<dyn Chat>, BadEndpoint> {
    Err(BadEndpoint(
        "this build reads no GGUF files; make one that does with `cargo build --release --features local-llm`"
            .into(),
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_and_an_address_are_distinguished() {
        let message =
            |llm: &str| named(llm, "m", 1).map(|chat| chat.model().to_owned()).map_err(|bad| bad.to_string());
        assert_eq!(message("http://localhost:1/v1"), Ok("m".into()));
        assert!(message("model.gguf").unwrap_err().contains("--llm gguf:FILE"));
        let word =
            if cfg!(feature = "local-llm") { "none.gguf: no such file" } else { "--features local-llm" };
        assert!(named("gguf:none.gguf", "", 1).err().unwrap().to_string().contains(word));
        assert!(message("gguf:none.gguf").unwrap_err().contains("leave --llm-model"));
    }
}
