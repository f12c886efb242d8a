//! The parts that every client needs: TLS, a thread for the network, errors, and a check for addresses of this machine.

use std::future::Future;
use std::io;
use std::net::IpAddr;
use std::sync::Arc;
use std::sync::mpsc::{RecvTimeoutError, sync_channel};
use std::time::{Duration, Instant};

use parking_lot::RwLock;
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
    /// The name resolves to an address that must not be connected to, or a secret would go there in clear text.
    #[error("{0}")]
    Denied(String),
    /// The server sends too slowly to ever end.
    #[error(transparent)]
    Slow(#[from] Slow),
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
    /// A secret would be sent in clear text.
    #[error("{0}")]
    InClear(String),
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

/// The hosts that the user lets secrets go to in clear text.
static IN_CLEAR: RwLock<Vec<String>> = RwLock::new(Vec::new());

/// Lets secrets go to these hosts in clear text.
pub fn allow_in_clear(hosts: &[String]) {
    *IN_CLEAR.write() = hosts.iter().map(|host| host.trim().to_ascii_lowercase()).collect();
}

/// Whether a secret may be sent to an address: over TLS, to this machine, or to a host that the user named.
pub fn keeps_secrets(address: &str) -> bool {
    Url::parse(address).is_ok_and(|url| {
        let host = url.host_str().unwrap_or_default();
        url.scheme() == "https" || is_here(&url) || IN_CLEAR.read().iter().any(|named| named == host)
    })
}

/// Says that a secret, such as `the key in NAME`, is not sent to an address, and what to do.
pub fn in_clear(address: &str, secret: &str) -> String {
    let host = Url::parse(address).ok().and_then(|url| url.host_str().map(str::to_owned)).unwrap_or_default();
    format!(
        "without TLS, anybody between here and {host} could read {secret}; use an https:// address, unset it, or accept that with \
         --allow-insecure {host}"
    )
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

/// The server sends fewer bytes in a second than any connection does.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the server sent {got} bytes in {took:?}, less than {SLOWEST} a second")]
pub struct Slow {
    got: u64,
    took: Duration,
}

/// The slowest server that is waited for, in bytes per second.
const SLOWEST: u64 = 100;

/// The pace of a response.
pub(super) struct Pace {
    began: Instant,
    got: u64,
    /// The time before it is judged.
    patience: Duration,
}

impl Pace {
    pub(super) fn begin(patience: Duration) -> Self {
        Pace { began: Instant::now(), got: 0, patience }
    }

    /// Counts bytes that arrived.
    ///
    /// # Errors
    /// There were too few for the time since the beginning.
    pub(super) fn take(&mut self, bytes: usize) -> Result<(), Slow> {
        self.got += bytes as u64;
        let took = self.began.elapsed();
        let expected = took.as_secs_f64() * SLOWEST as f64;
        if took > self.patience && (self.got as f64) < expected {
            return Err(Slow { got: self.got, took });
        }
        Ok(())
    }
}

/// Runs a future for at most `limit`.
///
/// # Errors
/// It took longer.
pub(super) async fn within<T>(limit: Duration, work: impl Future<Output = T>) -> Result<T, Silent> {
    timeout(limit, work).await.map_err(|_| Silent(limit))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn secrets_go_over_tls_to_this_machine_or_to_a_host_that_the_user_named() {
        for safe in ["https://a.example/v1", "http://localhost:1", "http://127.0.0.9/v1", "http://[::1]:3"] {
            assert!(keeps_secrets(safe), "{safe}");
        }
        for open in ["http://a.example/v1", "http://10.0.0.1", "http://localhost.example.org", "nonsense"] {
            assert!(!keeps_secrets(open), "{open}");
        }
        assert!(in_clear("http://a.example:80/v1", "the key in KEY").ends_with("--allow-insecure a.example"));
        allow_in_clear(&["Named.example".into()]);
        assert!(keeps_secrets("http://named.example:8080/v1") && !keeps_secrets("http://a.example/v1"));
    }

    #[test]
    fn a_server_that_drips_is_too_slow_once_patience_is_over() {
        let mut pace = Pace {
            began: Instant::now() - Duration::from_secs(60),
            got: 0,
            patience: Duration::from_secs(30),
        };
        assert!(pace.take(60).is_err());
        assert!(pace.take(7_000).is_ok());
        assert!(Pace::begin(Duration::from_secs(30)).take(1).is_ok());
    }
}
