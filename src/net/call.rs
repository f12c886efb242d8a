//! Requests. A [`Caller`] sends JSON and receives JSON, and repeats a request after a temporary failure. A [`Fetcher`] downloads one address
//! piece by piece on a network thread, while the caller checks its stop.

use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::mpsc::{RecvTimeoutError, SyncSender, sync_channel};
use std::time::{Duration, SystemTime};
use std::{fmt, io};

use backon::Retryable;
use reqwest::dns::{Addrs, Name, Resolve, Resolving};
use reqwest::header::{AUTHORIZATION, CONTENT_TYPE, HeaderMap, HeaderValue, LOCATION, RANGE, RETRY_AFTER};
use reqwest::redirect::Policy;
use reqwest::{Client, Method, Url};

use super::client::{
    CONNECT, LOOK, NetError, Pace, SetupError, Silent, UrlError, Waiting, at, ended, for_log, in_clear,
    is_here, keeps_secrets, tls, within,
};
use super::{Backoff, in_total, is_temporary, retry_after, wait, wait_in_task};
use crate::net;
use crate::work::{Stop, Stopped};

/// The limit of a response in bytes.
const LONGEST: usize = 64 << 20;
/// The slowest expected connection, in bytes per second: a long request gets more time.
const SLOWEST: usize = 16 << 10;
/// The number of times that a request is tried.
const TRIES: u32 = 4;
/// A request may take so many times the patience, whatever the server sends meanwhile.
const TOTAL: u32 = 10;

/// Credentials. Never shown.
#[derive(Clone, PartialEq, Eq)]
pub enum Secret {
    /// A user and a password.
    Basic(String, String),
    /// An API key in the form of Elasticsearch and OpenSearch.
    ApiKey(String),
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("(hidden)")
    }
}

/// The HTTP method.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verb {
    /// Reads.
    Get,
    /// Searches or adds. Only for requests that may be sent twice.
    Post,
    /// Creates.
    Put,
}

/// One request.
#[derive(Clone, Debug)]
pub struct Call {
    /// The method.
    pub verb: Verb,
    /// The path below the server's address, without a leading slash.
    pub path: String,
    /// JSON, or lines of it; empty for no body.
    pub body: Vec<u8>,
    /// Whether the body is lines of JSON.
    pub lines: bool,
}

/// A whole response.
#[derive(Clone, Debug)]
pub struct Response {
    /// The status.
    pub status: u16,
    /// The whole body.
    pub body: Vec<u8>,
    /// The number of times that the request was sent.
    pub tried: u32,
}

/// A client of one server.
pub struct Caller {
    client: Client,
    waiting: Waiting,
    base: String,
    secret: Option<Secret>,
    /// How long the server may stay silent.
    pub patience: Duration,
    /// The pauses between tries.
    pub backoff: Backoff,
}

/// A try without a usable response.
enum Failure {
    /// No response.
    Broken { reason: String, passing: bool },
    /// A response with a temporary failure, and the pause that the server requests.
    Busy(Response, Option<Duration>),
}

impl Failure {
    fn is_passing(&self, backoff: &Backoff) -> bool {
        match self {
            Failure::Busy(_, asked) => !backoff.is_too_long(*asked),
            Failure::Broken { passing, .. } => *passing,
        }
    }
}

impl Caller {
    /// A client for the server at `base`. Nothing is sent yet.
    ///
    /// # Errors
    /// The address is not valid, or the system has no certificates or could not start a thread.
    pub fn new(base: &str, secret: Option<Secret>) -> Result<Self, SetupError> {
        let url = Url::parse(&at(base, "")?).map_err(UrlError::from)?;
        if secret.is_some() && !keeps_secrets(base) {
            return Err(SetupError::InClear(in_clear(base, "its secret")));
        }
        let here = is_here(&url);
        // A redirect could lead the secret elsewhere.
        let client = Client::builder()
            .redirect(Policy::none())
            .user_agent(concat!("parallax/", env!("CARGO_PKG_VERSION")))
            .connect_timeout(CONNECT)
            .tls_backend_preconfigured(tls(url.scheme() == "https", here)?);
        let client = if here { client.no_proxy() } else { client };
        let client = client.build().map_err(SetupError::Client)?;
        let waiting = Waiting::start("remote")?;
        let base = base.trim_end_matches('/').to_owned();
        let patience = Duration::from_secs(30);
        Ok(Caller { client, waiting, base, secret, patience, backoff: Backoff::default() })
    }

    /// Whether credentials are sent.
    pub fn has_secret(&self) -> bool {
        self.secret.is_some()
    }

    /// Sends a request, and sends it again after a pause while the failure is temporary. Returns the last response, whatever its status.
    ///
    /// # Errors
    /// The server could not be reached or fell silent, its response is too long, or `stop` was set.
    pub fn call(&self, call: &Call, stop: &Stop) -> Result<Response, NetError> {
        let (client, url) = (self.client.clone(), format!("{}/{}", self.base, call.path));
        let logged = for_log(&url);
        let (call, secret, patience, backoff) =
            (call.clone(), self.secret.clone(), self.patience, self.backoff);
        let server = self.base.clone();
        let tries = async move {
            let tried = AtomicU32::new(0);
            let once = || {
                tried.fetch_add(1, Ordering::Relaxed);
                once(&client, &url, call.clone(), secret.clone(), patience)
            };
            let result = once
                .retry(backoff.schedule(TRIES))
                .sleep(move |pause| {
                    let server = server.clone();
                    async move { wait_in_task(&server, pause).await }
                })
                .when(|failure: &Failure| failure.is_passing(&backoff))
                .adjust(|failure: &Failure, own| match failure {
                    Failure::Busy(_, asked) => own.map(|own| backoff.at_least(own, *asked)),
                    Failure::Broken { .. } => own,
                })
                .await;
            (result, tried.into_inner())
        };
        let answered = self.waiting.wait(tries, stop)?;
        match &answered {
            (Ok(response) | Err(Failure::Busy(response, _)), tried) => {
                tracing::info!(url = logged, status = response.status, tried, "request");
            }
            (Err(Failure::Broken { reason, .. }), tried) => {
                tracing::warn!(url = logged, tried, "request failed: {reason}")
            }
        }
        match answered {
            (Ok(response) | Err(Failure::Busy(response, _)), tried) => Ok(Response { tried, ..response }),
            (Err(Failure::Broken { reason, .. }), 1) => Err(NetError::Unreached(reason)),
            (Err(Failure::Broken { reason, .. }), tried) => {
                Err(NetError::Unreached(format!("{reason} (tried {tried} times)")))
            }
        }
    }

    /// The pause after `tried` tries, for callers that repeat a part of a request.
    ///
    /// # Errors
    /// `stop` was set.
    pub fn rest(&self, tried: u32, stop: &Stop) -> Result<(), Stopped> {
        wait(&self.base, self.backoff.pause(tried, None), stop)
    }
}

async fn once(
    client: &Client,
    url: &str,
    call: Call,
    secret: Option<Secret>,
    patience: Duration,
) -> Result<Response, Failure> {
    let total = patience * TOTAL + Duration::from_secs((call.body.len() / SLOWEST) as u64);
    let answered = in_total(&for_log(url), total, send(client, url, call, secret, patience)).await;
    let reason = || format!("its response was not whole after {total:?}");
    answered.unwrap_or_else(|| Err(Failure::Broken { reason: reason(), passing: false }))
}

async fn send(
    client: &Client,
    url: &str,
    call: Call,
    secret: Option<Secret>,
    patience: Duration,
) -> Result<Response, Failure> {
    let lasting = |reason: String| Failure::Broken { reason, passing: false };
    let method = match call.verb {
        Verb::Get => Method::GET,
        Verb::Post => Method::POST,
        Verb::Put => Method::PUT,
    };
    let mut request = client.request(method, url);
    match secret {
        None => {}
        Some(Secret::Basic(user, password)) => request = request.basic_auth(user, Some(password)),
        Some(Secret::ApiKey(key)) => {
            let key = HeaderValue::try_from(format!("ApiKey {key}"));
            let mut key = key.map_err(|_| lasting("the key holds characters that cannot be sent".into()))?;
            key.set_sensitive(true);
            request = request.header(AUTHORIZATION, key);
        }
    }
    let sending = patience + Duration::from_secs((call.body.len() / SLOWEST) as u64);
    if !call.body.is_empty() {
        let kind = if call.lines { "application/x-ndjson" } else { "application/json" };
        request = request.header(CONTENT_TYPE, kind).body(call.body);
    }
    let silent = |silent: Silent| lasting(silent.to_string());
    // A silent server is not asked again; one that cuts the connection may have been restarted.
    let broken = |error: reqwest::Error| Failure::Broken {
        passing: !error.is_connect(),
        reason: root_cause(error).to_string(),
    };
    let mut response = within(sending, request.send()).await.map_err(silent)?.map_err(broken)?;
    let status = response.status().as_u16();
    let asked = response.headers().get(RETRY_AFTER).and_then(|value| value.to_str().ok());
    let asked = asked.and_then(|value| retry_after(value, SystemTime::now()));
    let mut body = Vec::new();
    while let Some(piece) = within(patience, response.chunk()).await.map_err(silent)?.map_err(broken)? {
        if body.len() + piece.len() > LONGEST {
            return Err(lasting(format!("its response is longer than {} MiB", LONGEST >> 20)));
        }
        body.extend_from_slice(&piece);
    }
    let response = Response { status, body, tried: 0 };
    if is_temporary(status) { Err(Failure::Busy(response, asked)) } else { Ok(response) }
}

/// The number of pieces that can wait to be written before the download is slowed down.
const WAITING: usize = 64;

/// A request.
pub struct Ask<'a> {
    /// The address.
    pub url: &'a str,
    /// A token for this server only.
    pub token: Option<&'a str>,
    /// The number of bytes fetched earlier; the download resumes after them.
    pub from: u64,
    /// More headers, such as an API key in the server's own header.
    pub headers: &'a [(&'a str, &'a str)],
    /// JSON to post.
    pub post: Option<String>,
}

impl<'a> Ask<'a> {
    /// A plain GET of the whole address.
    pub fn of(url: &'a str) -> Self {
        Ask { url, token: None, from: 0, headers: &[], post: None }
    }
}

/// An address that must not be connected to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{address}, {kind}")]
pub struct Forbidden {
    /// The address.
    pub address: IpAddr,
    /// What kind of address it is, such as `a link-local address`.
    pub kind: &'static str,
}

/// Decides which addresses may be connected to.
pub type Allow = fn(IpAddr) -> Result<(), Forbidden>;

/// The head of a response.
#[derive(Clone, Debug)]
pub struct Head {
    /// The status.
    pub status: u16,
    /// The redirect's target as an absolute URL.
    pub location: Option<String>,
    /// The pause that the server requests.
    pub pause: Option<Duration>,
    headers: HeaderMap,
}

impl Head {
    /// A plain 200 without headers.
    pub fn whole() -> Self {
        Head { status: 200, location: None, pause: None, headers: HeaderMap::new() }
    }

    /// A header as text.
    pub fn header(&self, name: &str) -> Option<&str> {
        self.headers.get(name)?.to_str().ok()
    }
}

enum Piece {
    Head(Box<Head>),
    Bytes(Vec<u8>),
    End(Result<(), NetError>),
}

/// A client with its own network thread.
pub struct Fetcher {
    client: Client,
    waiting: Waiting,
    /// How long the server may stay silent.
    pub patience: Duration,
}

impl Fetcher {
    /// A client for one server. Nothing is sent yet.
    ///
    /// # Errors
    /// The address is not valid, or the system has no certificates or could not start a thread.
    pub fn new(base: &str) -> Result<Self, SetupError> {
        let url = Url::parse(base).map_err(UrlError::from)?;
        let here = is_here(&url);
        let builder = Client::builder().tls_backend_preconfigured(tls(url.scheme() == "https", here)?);
        Self::build(if here { builder.no_proxy() } else { builder })
    }

    /// A client for untrusted servers: it resolves each name first and connects only to addresses that `allow` accepts. It uses no
    /// proxy, which would resolve names by itself.
    ///
    /// # Errors
    /// The system has no certificates or could not start a thread.
    pub fn guarded(allow: Allow) -> Result<Self, SetupError> {
        let builder = Client::builder().tls_backend_preconfigured(tls(true, false)?);
        Self::build(builder.no_proxy().dns_resolver(Arc::new(Guard(allow))))
    }

    fn build(builder: reqwest::ClientBuilder) -> Result<Self, SetupError> {
        // The caller follows redirects, because only it can decide which addresses are allowed and get the token.
        let client = builder
            .redirect(Policy::none())
            .user_agent(concat!("parallax/", env!("CARGO_PKG_VERSION")))
            .connect_timeout(CONNECT)
            .build()
            .map_err(SetupError::Client)?;
        Ok(Fetcher { client, waiting: Waiting::start("fetch")?, patience: Duration::from_secs(30) })
    }

    /// Sends one request without following redirects. `head` says whether the body is wanted; `body` takes its pieces.
    ///
    /// # Errors
    /// See [`NetError`]; `body` has then received the pieces that arrived before.
    pub fn get(
        &self,
        ask: &Ask<'_>,
        stop: &Stop,
        head: &mut dyn FnMut(&Head) -> Result<bool, NetError>,
        body: &mut dyn FnMut(&[u8]) -> io::Result<()>,
    ) -> Result<Head, NetError> {
        if ask.token.is_some() && !keeps_secrets(ask.url) {
            return Err(NetError::Denied(in_clear(ask.url, "its token")));
        }
        tracing::info!(url = for_log(ask.url), "request");
        let mut request = match &ask.post {
            Some(json) => {
                self.client.post(ask.url).header(CONTENT_TYPE, "application/json").body(json.clone())
            }
            None => self.client.get(ask.url),
        };
        for (name, value) in ask.headers {
            request = request.header(*name, *value);
        }
        if let Some(token) = ask.token {
            request = request.bearer_auth(token);
        }
        if ask.from > 0 {
            request = request.header(RANGE, format!("bytes={}-", ask.from));
        }
        let (sender, receiver) = sync_channel(WAITING);
        let patience = self.patience;
        let task = self.waiting.spawn(async move {
            let end = pieces(request, patience, &sender).await;
            // The receiver is gone if the caller was stopped.
            let _ = sender.send(Piece::End(end));
        })?;
        let mut begun = None;
        let done = loop {
            match receiver.recv_timeout(LOOK) {
                _ if stop.is_set() => break Err(Stopped.into()),
                Ok(Piece::Head(first)) => match head(&first) {
                    Ok(true) => begun = Some(*first),
                    Ok(false) => break Ok(*first),
                    Err(error) => break Err(error),
                },
                Ok(Piece::Bytes(bytes)) => {
                    if let Err(error) = body(&bytes) {
                        break Err(error.into());
                    }
                }
                Ok(Piece::End(Ok(()))) => break begun.take().ok_or_else(ended),
                Ok(Piece::End(Err(error))) => break Err(error),
                Err(RecvTimeoutError::Timeout) => {}
                Err(RecvTimeoutError::Disconnected) => break Err(ended()),
            }
        };
        task.abort();
        done
    }
}

async fn pieces(
    request: reqwest::RequestBuilder,
    patience: Duration,
    sender: &SyncSender<Piece>,
) -> Result<(), NetError> {
    let mut response = within(patience, request.send()).await?.map_err(root_cause)?;
    let header = |name| response.headers().get(name).and_then(|value| value.to_str().ok());
    let head = Head {
        status: response.status().as_u16(),
        location: header(LOCATION).and_then(|to| Some(response.url().join(to).ok()?.into())),
        pause: header(RETRY_AFTER).and_then(|header| net::retry_after(header, SystemTime::now())),
        headers: response.headers().clone(),
    };
    if sender.send(Piece::Head(Box::new(head))).is_err() {
        return Ok(());
    }
    let mut pace = Pace::begin(patience);
    while let Some(bytes) = within(patience, response.chunk()).await?.map_err(root_cause)? {
        pace.take(bytes.len())?;
        if sender.send(Piece::Bytes(bytes.to_vec())).is_err() {
            return Ok(());
        }
    }
    Ok(())
}

/// The innermost cause of an error. The outer errors only say that there is an inner one.
pub(super) fn root_cause(error: reqwest::Error) -> NetError {
    let error = error.without_url();
    let mut inner: &dyn std::error::Error = &error;
    while let Some(next) = inner.source() {
        inner = next;
    }
    match inner.downcast_ref::<Denied>() {
        Some(Denied(reason)) => NetError::Denied(reason.clone()),
        None => NetError::Unreached(inner.to_string()),
    }
}

/// Resolves names, and passes on only addresses that may be connected to.
struct Guard(Allow);

#[derive(Debug, thiserror::Error)]
#[error("{0}")]
struct Denied(String);

impl Resolve for Guard {
    fn resolve(&self, name: Name) -> Resolving {
        let allow = self.0;
        Box::pin(async move {
            // The client replaces this port by that of the URL.
            let found: Vec<SocketAddr> = tokio::net::lookup_host((name.as_str(), 0)).await?.collect();
            for address in &found {
                allow(address.ip())
                    .map_err(|forbidden| Denied(format!("{} is {forbidden}", name.as_str())))?;
            }
            Ok(Box::new(found.into_iter()) as Addrs)
        })
    }
}
