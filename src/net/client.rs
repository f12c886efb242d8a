//! The parts that every client needs: TLS, a thread for the network, errors, and a check for addresses of this machine.

use std::future::Future;
use std::io;
use std::net::IpAddr;
use std::sync::Arc;
use std::sync::mpsc::{RecvTimeoutError, sync_channel};
use std::time::Duration;

use reqwest::Url;
use rustls::{ClientConfig, RootCertStore};
use rustls_platform_verifier::BuilderVerifierExt;
use tokio::runtime::{Builder, Runtime};
use tokio::task::AbortHandle;
use tokio::time::timeout;

use crate::work::{Stop, Stopped};

/// How often a waiting caller checks its stop.
pub(super) const LOOK: Duration = Duration::from_millis(20);
/// A server that is up accepts a connection within this time.
pub(super) const CONNECT: Duration = Duration::from_secs(10);

/// Why no response, or only a part, arrived.
#[derive(Debug, thiserror::Error)]
pub enum NetError {
    /// The server could not be reached, fell silent, or cut the connection.
    #[error("{0}")]
    Unreached(String),
    /// The server sent nothing for too long.
    #[error(transparent)]
    Silent(#[from] Silent),
    /// The name resolves to an address that must not be connected to.
    #[error("{0}")]
    Denied(String),
    /// The received bytes could not be written.
    #[error(transparent)]
    Keep(#[from] io::Error),
    /// Stopped on request.
    #[error(transparent)]
    Stopped(#[from] Stopped),
}

/// Why a client could not be set up.
#[derive(Debug, thiserror::Error)]
pub enum SetupError {
    /// The text is not a valid address.
    #[error(transparent)]
    Url(#[from] UrlError),
    /// The system has no certificates, and https needs them.
    #[error("https:// needs the system's certificates ({0}); install the package ca-certificates")]
    Certificates(rustls::Error),
    /// TLS refuses its own configuration.
    #[error("TLS could not be set up ({0})")]
    Tls(rustls::Error),
    /// The HTTP client refuses its configuration.
    #[error("the client could not be set up ({0})")]
    Client(reqwest::Error),
    /// The system could not start a thread.
    #[error("the thread for the network could not be set up ({0})")]
    Thread(io::Error),
}

/// Why a text is not the address of a server.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum UrlError {
    /// It is not a URL.
    #[error(transparent)]
    Syntax(#[from] url::ParseError),
    /// It has another scheme, or no host.
    #[error("neither http:// nor https://")]
    Scheme,
}

/// Resolves `path` against `base`.
///
/// # Errors
/// The result is not a URL, or neither http nor https.
pub fn at(base: &str, path: &str) -> Result<String, UrlError> {
    let url = Url::parse(base)?.join(path)?;
    let http = matches!(url.scheme(), "http" | "https") && url.has_host();
    if http { Ok(url.into()) } else { Err(UrlError::Scheme) }
}

/// An address for the log: without user, password, query and fragment, because each may contain a secret.
pub(super) fn for_log(url: &str) -> String {
    let Ok(url) = Url::parse(url) else { return "an address that cannot be read".to_owned() };
    let port = url.port().map(|port| format!(":{port}")).unwrap_or_default();
    format!("{}://{}{port}{}", url.scheme(), url.host_str().unwrap_or_default(), url.path())
}

/// Whether a URL names this machine.
pub fn is_here(url: &Url) -> bool {
    let host = url.host_str().unwrap_or_default().trim_matches(['[', ']']).trim_end_matches('.');
    match host.parse::<IpAddr>() {
        Ok(address) => address.to_canonical().is_loopback() || address.is_unspecified(),
        Err(_) => host == "localhost" || host.ends_with(".localhost"),
    }
}

/// Whether an address names this machine.
pub fn leads_here(address: &str) -> bool {
    Url::parse(address).is_ok_and(|url| is_here(&url))
}

/// TLS with ring and the system's certificates. Plain http to this machine needs no certificates.
///
/// # Errors
/// The system has no certificates and `https` needs them.
pub fn tls(https: bool, here: bool) -> Result<ClientConfig, SetupError> {
    // Not the process's default provider: only the program may choose that, and it may not have chosen one.
    let builder = || {
        ClientConfig::builder_with_provider(Arc::new(rustls::crypto::ring::default_provider()))
            .with_safe_default_protocol_versions()
            .map_err(SetupError::Tls)
    };
    let none = || Ok(builder()?.with_root_certificates(RootCertStore::empty()).with_no_client_auth());
    if here && !https {
        return none();
    }
    match builder()?.with_platform_verifier() {
        Ok(config) => Ok(config.with_no_client_auth()),
        Err(error) if https => Err(SetupError::Certificates(error)),
        // Minimal containers have no certificates, and http:// needs them only with some proxies.
        Err(_) => none(),
    }
}

/// A thread that runs futures. Callers wait for the results and check their stop meanwhile.
pub struct Waiting(Option<Runtime>);

impl Waiting {
    /// Starts the thread.
    ///
    /// # Errors
    /// The system could not start it.
    pub fn start(name: &str) -> Result<Self, SetupError> {
        let runtime = Builder::new_multi_thread().worker_threads(1).thread_name(name).enable_all().build();
        Ok(Waiting(Some(runtime.map_err(SetupError::Thread)?)))
    }

    /// Runs a future on the thread without waiting for it.
    ///
    /// # Errors
    /// The thread has ended.
    pub(super) fn spawn(
        &self,
        work: impl Future<Output = ()> + Send + 'static,
    ) -> Result<AbortHandle, NetError> {
        let runtime = self.0.as_ref().ok_or_else(ended)?;
        Ok(runtime.spawn(work).abort_handle())
    }

    /// Runs a future and waits for its result. The future is dropped once `stop` is set.
    ///
    /// # Errors
    /// `stop` was set, or the future ended without a result.
    pub fn wait<T: Send + 'static>(
        &self,
        work: impl Future<Output = T> + Send + 'static,
        stop: &Stop,
    ) -> Result<T, NetError> {
        let (sender, receiver) = sync_channel(1);
        let task = self.spawn(async move {
            // The receiver is gone if the caller was stopped.
            let _ = sender.send(work.await);
        })?;
        loop {
            match receiver.recv_timeout(LOOK) {
                _ if stop.is_set() => {
                    task.abort();
                    return Err(Stopped.into());
                }
                Ok(result) => return Ok(result),
                Err(RecvTimeoutError::Timeout) => {}
                Err(RecvTimeoutError::Disconnected) => return Err(ended()),
            }
        }
    }

    /// Checks that something listens at `host:port`.
    ///
    /// # Errors
    /// Nothing listens there, or `stop` was set.
    #[cfg(feature = "milvus")]
    pub fn knock(&self, at: &str, stop: &Stop) -> Result<(), NetError> {
        let at = at.to_owned();
        let connected =
            self.wait(async move { timeout(CONNECT, tokio::net::TcpStream::connect(at)).await }, stop)?;
        match connected {
            Ok(Ok(_)) => Ok(()),
            Ok(Err(error)) => Err(NetError::Unreached(error.to_string())),
            Err(_) => Err(NetError::Unreached(format!("no connection within {CONNECT:?}"))),
        }
    }
}

impl Drop for Waiting {
    fn drop(&mut self) {
        // A runtime that is dropped waits for name lookups, and panics inside another runtime.
        if let Some(runtime) = self.0.take() {
            runtime.shutdown_background();
        }
    }
}

pub(super) fn ended() -> NetError {
    NetError::Unreached("the client has ended".into())
}

/// The server sent nothing for this long.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the server sent nothing for {0:?}")]
pub struct Silent(Duration);

/// Runs a future for at most `limit`.
///
/// # Errors
/// It took longer.
pub(super) async fn within<T>(limit: Duration, work: impl Future<Output = T>) -> Result<T, Silent> {
    timeout(limit, work).await.map_err(|_| Silent(limit))
}
