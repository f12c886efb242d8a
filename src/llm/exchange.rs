//! One try at one request: sending it, reading what comes, and telling why nothing did.

use std::error::Error;
use std::io;
use std::time::{Duration, SystemTime};

use reqwest::header::{CONTENT_TYPE, LOCATION, RETRY_AFTER};
use reqwest::{Client, Response, Url};
use tokio::time::timeout;

use super::ChatError;
use super::completion::{Answer, Odd, words};
use super::endpoint::{Endpoint, KEY_VARIABLE};
use super::sse::Reading;
use crate::input::tame;
use crate::net::retry;

/// An error page is not read further than this.
const PAGE: usize = 16 << 10;

/// Why a try failed.
pub(super) enum Failure {
    /// It may go better later; with the pause the server asked for.
    Passing(ChatError, Option<Duration>),
    /// It will not go better.
    Lasting(ChatError),
}

/// A server and the way to it.
pub(super) struct Line {
    pub client: Client,
    pub endpoint: Endpoint,
    pub target: Url,
    /// The base URL, free of secrets.
    pub shown: String,
}

impl Line {
    /// Sends a request once and reads the reply.
    pub async fn once(&self, body: Vec<u8>) -> Result<Answer, Failure> {
        let mut request = self.client.post(self.target.clone()).header(CONTENT_TYPE, "application/json");
        if let Some(key) = self.endpoint.key.as_ref().filter(|key| !key.is_empty()) {
            request = request.bearer_auth(key);
        }
        let sent = timeout(self.endpoint.patience, request.body(body).send()).await;
        let response = sent.map_err(|_| self.silent())?.map_err(|error| self.unreached(&error))?;
        if response.status().is_success() {
            self.read(response).await
        } else {
            Err(self.refused(response).await)
        }
    }

    async fn read(&self, mut response: Response) -> Result<Answer, Failure> {
        let mut reading = Reading::default();
        while !reading.is_done() {
            match timeout(self.endpoint.patience, response.chunk()).await {
                Ok(Ok(Some(bytes))) => reading.feed(&bytes).map_err(|odd| self.odd(odd))?,
                Ok(Ok(None)) => break,
                // Only the count of tokens is lost.
                Ok(Err(_)) | Err(_) if reading.is_whole() => break,
                Ok(Err(error)) => return Err(self.cut(&format!(" ({})", innermost(&error)))),
                Err(_) => return Err(self.silent()),
            }
        }
        reading.end().map_err(|odd| self.odd(odd))
    }

    fn silent(&self) -> Failure {
        let (shown, patience) = (&self.shown, self.endpoint.patience);
        let told = format!(
            "{shown} sent nothing for {patience:?}; it may be loading the model or be overloaded: try again"
        );
        Failure::Passing(ChatError::Unreachable(told), None)
    }

    fn cut(&self, why: &str) -> Failure {
        let told = format!(
            "{} cut the connection in the middle of a reply{why}; see what the server says",
            self.shown
        );
        Failure::Passing(ChatError::Unreachable(told), None)
    }

    fn unreached(&self, error: &reqwest::Error) -> Failure {
        let (shown, why) = (&self.shown, self.tame(&innermost(error)));
        if !error.is_connect() {
            return self.cut(&format!(" ({why})"));
        }
        if has(error, |e| e.is::<rustls::Error>()) {
            let told =
                format!("{shown} could not be reached safely ({why}); check the URL and the certificate");
            return Failure::Lasting(ChatError::Unreachable(told));
        }
        let told = format!("{shown} could not be reached ({why}); start the server or set --llm URL");
        // A pause does not start a server, and whoever forgot to start it should not wait to be told.
        let closed = has(error, |e| {
            e.downcast_ref::<io::Error>().is_some_and(|e| e.kind() == io::ErrorKind::ConnectionRefused)
        });
        let error = ChatError::Unreachable(told);
        if closed { Failure::Lasting(error) } else { Failure::Passing(error, None) }
    }

    async fn refused(&self, mut response: Response) -> Failure {
        let status = response.status();
        let header =
            |name| response.headers().get(name).and_then(|value| value.to_str().ok()).map(str::to_owned);
        let pause = header(RETRY_AFTER).and_then(|asked| retry::asked(&asked, SystemTime::now()));
        let location = header(LOCATION).filter(|_| status.is_redirection());
        let mut page = Vec::new();
        while page.len() < PAGE
            && let Ok(Ok(Some(bytes))) = timeout(self.endpoint.patience, response.chunk()).await
        {
            page.extend_from_slice(&bytes);
        }
        let said = serde_json::from_slice(&page).ok().and_then(|page| words(&page));
        let said = location.or(said).unwrap_or_else(|| String::from_utf8_lossy(&page).into_owned());
        self.failed(status.as_u16(), &status.to_string(), &said, pause)
    }

    fn failed(&self, status: u16, named: &str, said: &str, pause: Option<Duration>) -> Failure {
        let advice = match status {
            300..=399 => "; set --llm to the URL it has moved to",
            401 | 403 if self.endpoint.key.is_some() => &format!("; check the key in {KEY_VARIABLE}"),
            401 | 403 => &format!("; put a key into {KEY_VARIABLE}"),
            404 => "; check the model's name, and the URL, which mostly ends in /v1",
            429 => "; ask less at once, or try again later",
            500..=599 => "; see what the server says, or try again later",
            _ => "",
        };
        let said = self.tame(said);
        let said = if said.is_empty() { String::new() } else { format!(": {said}") };
        let told = format!("{} refused with {named}{said}{advice}", self.shown);
        let error = match status {
            300..=399 | 401..=404 | 429 | 500..=599 => ChatError::Barred(told),
            _ => ChatError::Refused(told),
        };
        if retry::passes(status) { Failure::Passing(error, pause) } else { Failure::Lasting(error) }
    }

    fn odd(&self, odd: Odd) -> Failure {
        match odd {
            Odd::Cut => self.cut(""),
            Odd::Failed { status, words } => {
                let named = status.map_or_else(|| "an error".to_owned(), |status| format!("error {status}"));
                self.failed(status.unwrap_or_default(), &named, &words, None)
            }
            Odd::Nonsense(what, excerpt) => {
                let (shown, what, excerpt) = (&self.shown, self.tame(&what), self.tame(&excerpt));
                let told = format!("{shown} sent {what}: `{excerpt}`; check the URL and the model");
                Failure::Lasting(ChatError::Nonsense(told))
            }
        }
    }

    /// What a server says, short and safe to print: some repeat the key they refuse.
    pub fn tame(&self, said: &str) -> String {
        let key = self.endpoint.key.as_deref().unwrap_or_default();
        let said = if key.is_empty() { said.to_owned() } else { said.replace(key, "(key)") };
        tame(&said)
    }
}

fn chain(error: &reqwest::Error) -> impl Iterator<Item = &(dyn Error + 'static)> {
    std::iter::successors(Some(error as &(dyn Error + 'static)), |&error| {
        // An io error passes over what it wraps when it is asked for its source.
        let wrapped = error.downcast_ref::<io::Error>().and_then(io::Error::get_ref);
        wrapped.map(|inner| inner as &(dyn Error + 'static)).or_else(|| error.source())
    })
}

fn has(error: &reqwest::Error, is: impl Fn(&(dyn Error + 'static)) -> bool) -> bool {
    chain(error).any(is)
}

/// The outer errors only say that there is an inner one.
fn innermost(error: &reqwest::Error) -> String {
    chain(error).last().map(ToString::to_string).unwrap_or_default()
}
