//! Fetching one address, piece by piece, on a thread of its own: the caller keeps the look-out for a stop.

use std::io;
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use std::sync::mpsc::{RecvTimeoutError, SyncSender, sync_channel};
use std::time::{Duration, SystemTime};

use reqwest::dns::{Addrs, Name, Resolve, Resolving};
use reqwest::header::{CONTENT_TYPE, HeaderMap, LOCATION, RANGE, RETRY_AFTER};
use reqwest::redirect::Policy;
use reqwest::{Client, Url};
use tokio::runtime::{Builder, Runtime};
use tokio::time::timeout;

use super::{is_here, retry, tls};
use crate::work::{Stop, Stopped};

/// How often a waiting caller looks whether it should stop.
pub(super) const LOOK: Duration = Duration::from_millis(20);
/// No server that is there takes longer to accept a connection.
pub(super) const CONNECT: Duration = Duration::from_secs(10);
/// Pieces that wait to be written before the server is slowed down.
const WAITING: usize = 64;

/// What is asked for.
pub struct Ask<'a> {
    /// The address.
    pub url: &'a str,
    /// A token for this server, and for no other.
    pub token: Option<&'a str>,
    /// Bytes that are there already.
    pub from: u64,
    /// More headers, such as a key of the server's own kind.
    pub headers: &'a [(&'a str, &'a str)],
    /// A JSON text that is posted.
    pub post: Option<String>,
}

impl<'a> Ask<'a> {
    /// The whole of what lies at an address, for nobody in particular.
    pub fn of(url: &'a str) -> Self {
        Ask { url, token: None, from: 0, headers: &[], post: None }
    }
}

/// Which addresses may be connected to; an error says why one may not.
pub type Allow = fn(IpAddr) -> Result<(), String>;

/// How a server's answer begins.
#[derive(Clone, Debug)]
pub struct Head {
    /// The status.
    pub status: u16,
    /// Where it points to, in full.
    pub location: Option<String>,
    /// The pause it asks for.
    pub pause: Option<Duration>,
    headers: HeaderMap,
}

impl Head {
    /// As if a server had sent all there is.
    pub fn whole() -> Self {
        Head { status: 200, location: None, pause: None, headers: HeaderMap::new() }
    }

    /// A header as text.
    pub fn header(&self, name: &str) -> Option<&str> {
        self.headers.get(name)?.to_str().ok()
    }
}

/// Why nothing, or not all, came.
#[derive(Debug, thiserror::Error)]
pub enum NetError {
    /// The server could not be reached, fell silent, or cut the connection.
    #[error("{0}")]
    Unreached(String),
    /// The name leads to an address that may not be connected to.
    #[error("{0}")]
    Denied(String),
    /// What came could not be kept.
    #[error(transparent)]
    Keep(#[from] io::Error),
    /// Stopped on request.
    #[error(transparent)]
    Stopped(#[from] Stopped),
}

enum Piece {
    Head(Box<Head>),
    Bytes(Vec<u8>),
    End(Result<(), NetError>),
}

/// A client and its one thread.
pub struct Fetcher {
    client: Client,
    runtime: Option<Runtime>,
    /// How long a server may send nothing at all.
    pub patience: Duration,
}

/// An address in full, as it stands at `base`.
///
/// # Errors
/// It is none, or neither http nor https.
pub fn at(base: &str, path: &str) -> Result<String, String> {
    let url = Url::parse(base).and_then(|base| base.join(path)).map_err(|error| error.to_string())?;
    match matches!(url.scheme(), "http" | "https") && url.has_host() {
        true => Ok(url.into()),
        false => Err("neither http:// nor https://".into()),
    }
}

impl Fetcher {
    /// A client for a server. Nothing is sent yet.
    ///
    /// # Errors
    /// The system gives no thread or no certificates.
    pub fn new(base: &str) -> Result<Self, String> {
        let url = Url::parse(base).map_err(|error| error.to_string())?;
        let here = is_here(&url);
        let builder = Client::builder().tls_backend_preconfigured(tls(url.scheme() == "https", here)?);
        Self::built(if here { builder.no_proxy() } else { builder })
    }

    /// A client for servers that nobody vouches for: a name is looked up first, and only addresses that `allow` lets pass are
    /// connected to. It uses no proxy, which would look names up by itself.
    ///
    /// # Errors
    /// The system gives no thread or no certificates.
    pub fn guarded(allow: Allow) -> Result<Self, String> {
        let builder = Client::builder().tls_backend_preconfigured(tls(true, false)?);
        Self::built(builder.no_proxy().dns_resolver(Arc::new(Guard(allow))))
    }

    fn built(builder: reqwest::ClientBuilder) -> Result<Self, String> {
        // Redirects are followed by the caller, who knows what a token is for and which addresses may be asked.
        let client = builder
            .redirect(Policy::none())
            .user_agent(concat!("parallax/", env!("CARGO_PKG_VERSION")))
            .connect_timeout(CONNECT)
            .build()
            .map_err(|error| format!("the client could not be set up ({error})"))?;
        let runtime = Builder::new_multi_thread().worker_threads(1).thread_name("fetch").enable_all().build();
        let runtime =
            runtime.map_err(|error| format!("the thread for the network could not be set up ({error})"))?;
        Ok(Fetcher { client, runtime: Some(runtime), patience: Duration::from_secs(30) })
    }

    /// Asks once, without following redirects. `head` says whether what follows is wanted; `body` takes it.
    ///
    /// # Errors
    /// See [`NetError`]; what came before has been handed over.
    pub fn get(
        &self,
        ask: &Ask<'_>,
        stop: &Stop,
        head: &mut dyn FnMut(&Head) -> Result<bool, NetError>,
        body: &mut dyn FnMut(&[u8]) -> io::Result<()>,
    ) -> Result<Head, NetError> {
        let ended = || NetError::Unreached("the client has ended".into());
        let runtime = self.runtime.as_ref().ok_or_else(ended)?;
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
        let (tell, told) = sync_channel(WAITING);
        let patience = self.patience;
        let task = runtime.spawn(async move {
            let end = pieces(request, patience, &tell).await;
            // Nobody listens any longer when the caller was stopped.
            let _ = tell.send(Piece::End(end));
        });
        let mut begun = None;
        let done = loop {
            match told.recv_timeout(LOOK) {
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
                Ok(Piece::End(Err(why))) => break Err(why),
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
    tell: &SyncSender<Piece>,
) -> Result<(), NetError> {
    let silent = |_| NetError::Unreached(format!("the server sent nothing for {patience:?}"));
    let mut response = timeout(patience, request.send()).await.map_err(silent)?.map_err(told)?;
    let header = |name| response.headers().get(name).and_then(|value| value.to_str().ok());
    let head = Head {
        status: response.status().as_u16(),
        location: header(LOCATION).and_then(|to| Some(response.url().join(to).ok()?.into())),
        pause: header(RETRY_AFTER).and_then(|asked| retry::asked(asked, SystemTime::now())),
        headers: response.headers().clone(),
    };
    if tell.send(Piece::Head(Box::new(head))).is_err() {
        return Ok(());
    }
    while let Some(bytes) = timeout(patience, response.chunk()).await.map_err(silent)?.map_err(told)? {
        if tell.send(Piece::Bytes(bytes.to_vec())).is_err() {
            return Ok(());
        }
    }
    Ok(())
}

/// The outer errors only say that there is an inner one.
pub(super) fn told(error: reqwest::Error) -> NetError {
    let error = error.without_url();
    let mut inner: &dyn std::error::Error = &error;
    while let Some(next) = inner.source() {
        inner = next;
    }
    match inner.downcast_ref::<Denied>() {
        Some(Denied(why)) => NetError::Denied(why.clone()),
        None => NetError::Unreached(inner.to_string()),
    }
}

/// Looks names up, and gives only addresses that may be connected to.
struct Guard(Allow);

#[derive(Debug, thiserror::Error)]
#[error("{0}")]
struct Denied(String);

impl Resolve for Guard {
    fn resolve(&self, name: Name) -> Resolving {
        let allow = self.0;
        Box::pin(async move {
            // The client puts the port of the URL in place of this one.
            let found: Vec<SocketAddr> = tokio::net::lookup_host((name.as_str(), 0)).await?.collect();
            for address in &found {
                allow(address.ip()).map_err(|why| Denied(format!("{} is {why}", name.as_str())))?;
            }
            Ok(Box::new(found.into_iter()) as Addrs)
        })
    }
}

impl Drop for Fetcher {
    fn drop(&mut self) {
        // A runtime that is dropped waits for name lookups, and panics inside another runtime.
        if let Some(runtime) = self.runtime.take() {
            runtime.shutdown_background();
        }
    }
}
