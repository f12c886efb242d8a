//! Requests and answers that fit into memory: JSON sent, JSON that comes back, tried again where that may help.

use std::fmt;
use std::time::{Duration, SystemTime};

use reqwest::header::{AUTHORIZATION, CONTENT_TYPE, HeaderValue, RETRY_AFTER};
use reqwest::redirect::Policy;
use reqwest::{Client, Method, Url};

use super::fetch::{CONNECT, told};
use super::retry::{Backoff, asked, passes, wait};
use super::waiting::{Waiting, within};
use super::{NetError, at, is_here, tls};
use crate::work::{Stop, Stopped};

/// An answer is not read further than this.
const LONGEST: usize = 64 << 20;
/// A line is thought to carry at least so many bytes a second: a long request is waited for longer.
const SLOWEST: usize = 16 << 10;
/// How often one request is tried before it is given up.
const TRIES: u32 = 4;

/// What is sent to say who asks. Never shown.
#[derive(Clone, PartialEq, Eq)]
pub enum Secret {
    /// A user and a password.
    Basic(String, String),
    /// A key, as Elasticsearch and OpenSearch take it.
    ApiKey(String),
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("(hidden)")
    }
}

/// What is done to what is named.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verb {
    /// Reads it.
    Get,
    /// Asks it, or adds to it. Only for requests that may be sent twice.
    Post,
    /// Makes it.
    Put,
}

/// One request.
#[derive(Clone, Debug)]
pub struct Call {
    /// What is done.
    pub verb: Verb,
    /// The path below the server's address, without a slash before it.
    pub path: String,
    /// JSON, or lines of it; nothing is sent where it is empty.
    pub body: Vec<u8>,
    /// Whether the body is lines of JSON.
    pub lines: bool,
}

/// What a server said.
#[derive(Clone, Debug)]
pub struct Said {
    /// The status.
    pub status: u16,
    /// All of the body.
    pub body: Vec<u8>,
    /// How often it was asked.
    pub tried: u32,
}

/// A client of one server.
pub struct Caller {
    client: Client,
    waiting: Waiting,
    base: String,
    secret: Option<Secret>,
    /// How long the server may send nothing at all.
    pub patience: Duration,
    /// The pauses between tries.
    pub backoff: Backoff,
}

/// Why one try failed, and whether another may go better.
struct Failed {
    why: String,
    again: bool,
}

impl Caller {
    /// A client for the server at `base`. Nothing is sent yet.
    ///
    /// # Errors
    /// The address is none, or the system gives no thread or no certificates.
    pub fn new(base: &str, secret: Option<Secret>) -> Result<Self, String> {
        let url = Url::parse(&at(base, "")?).map_err(|error| error.to_string())?;
        let here = is_here(&url);
        // A redirect could lead the secret elsewhere.
        let client = Client::builder()
            .redirect(Policy::none())
            .user_agent(concat!("parallax/", env!("CARGO_PKG_VERSION")))
            .connect_timeout(CONNECT)
            .tls_backend_preconfigured(tls(url.scheme() == "https", here)?);
        let client = if here { client.no_proxy() } else { client };
        let client = client.build().map_err(|error| format!("the client could not be set up ({error})"))?;
        let waiting = Waiting::start("remote")?;
        let base = base.trim_end_matches('/').to_owned();
        let patience = Duration::from_secs(30);
        Ok(Caller { client, waiting, base, secret, patience, backoff: Backoff::default() })
    }

    /// Whether a secret is sent along.
    pub fn has_secret(&self) -> bool {
        self.secret.is_some()
    }

    /// Asks, again after a pause where the answer says that it may pass, and gives the last answer whatever its status.
    ///
    /// # Errors
    /// The server could not be reached or fell silent, its answer does not end, or `stop` was set.
    pub fn call(&self, call: &Call, stop: &Stop) -> Result<Said, NetError> {
        let mut tried = 0;
        loop {
            tried += 1;
            let (client, url) = (self.client.clone(), format!("{}/{}", self.base, call.path));
            let (call, secret, patience) = (call.clone(), self.secret.clone(), self.patience);
            let once = async move { once(&client, &url, call, secret, patience).await };
            let rest = match self.waiting.wait(once, stop)? {
                Ok((said, asked)) if passes(said.status) && tried < TRIES => asked,
                Ok((said, _)) => return Ok(Said { tried, ..said }),
                Err(failed) if failed.again && tried < TRIES => None,
                Err(failed) if tried > 1 => {
                    return Err(NetError::Unreached(format!("{} (tried {tried} times)", failed.why)));
                }
                Err(failed) => return Err(NetError::Unreached(failed.why)),
            };
            wait(self.backoff.pause(tried, rest), stop)?;
        }
    }

    /// The pause after so many tries, for who tries parts again.
    ///
    /// # Errors
    /// `stop` was set.
    pub fn rest(&self, tried: u32, stop: &Stop) -> Result<(), Stopped> {
        wait(self.backoff.pause(tried, None), stop)
    }
}

async fn once(
    client: &Client,
    url: &str,
    call: Call,
    secret: Option<Secret>,
    patience: Duration,
) -> Result<(Said, Option<Duration>), Failed> {
    let lasting = |why: String| Failed { why, again: false };
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
    // One that fell silent was given its time; one that cut the connection may have been restarted.
    let broken = |error: reqwest::Error| Failed { again: !error.is_connect(), why: told(error).to_string() };
    let mut response = within(sending, request.send()).await.map_err(lasting)?.map_err(broken)?;
    let status = response.status().as_u16();
    let rest = response.headers().get(RETRY_AFTER).and_then(|value| value.to_str().ok());
    let rest = rest.and_then(|value| asked(value, SystemTime::now()));
    let mut body = Vec::new();
    while let Some(piece) = within(patience, response.chunk()).await.map_err(lasting)?.map_err(broken)? {
        if body.len() + piece.len() > LONGEST {
            return Err(lasting("its answer does not end".into()));
        }
        body.extend_from_slice(&piece);
    }
    Ok((Said { status, body, tried: 0 }, rest))
}
