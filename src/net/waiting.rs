//! A thread for the network, and callers that wait for it with an eye on their stop.

use std::future::Future;
use std::sync::mpsc::{RecvTimeoutError, sync_channel};
use std::time::Duration;

use tokio::runtime::{Builder, Runtime};
use tokio::time::timeout;

use super::NetError;
use super::fetch::LOOK;
use crate::work::{Stop, Stopped};

/// One thread that futures run on.
pub struct Waiting(Option<Runtime>);

impl Waiting {
    /// Starts the thread.
    ///
    /// # Errors
    /// The system gives none.
    pub fn start(name: &str) -> Result<Self, String> {
        let runtime = Builder::new_multi_thread().worker_threads(1).thread_name(name).enable_all().build();
        let runtime =
            runtime.map_err(|error| format!("the thread for the network could not be set up ({error})"))?;
        Ok(Waiting(Some(runtime)))
    }

    /// What the work gives; it is dropped where it stands once `stop` is set.
    ///
    /// # Errors
    /// `stop` was set, or the work ended without a result.
    pub fn wait<T: Send + 'static>(
        &self,
        work: impl Future<Output = T> + Send + 'static,
        stop: &Stop,
    ) -> Result<T, NetError> {
        let ended = || NetError::Unreached("the client has ended".into());
        let runtime = self.0.as_ref().ok_or_else(ended)?;
        let (tell, told) = sync_channel(1);
        let task = runtime.spawn(async move {
            // Nobody listens any longer when the caller was stopped.
            let _ = tell.send(work.await);
        });
        loop {
            match told.recv_timeout(LOOK) {
                _ if stop.is_set() => {
                    task.abort();
                    return Err(Stopped.into());
                }
                Ok(made) => return Ok(made),
                Err(RecvTimeoutError::Timeout) => {}
                Err(RecvTimeoutError::Disconnected) => return Err(ended()),
            }
        }
    }

    /// Whether anybody listens at `host:port`.
    ///
    /// # Errors
    /// Nobody does, in the system's words, or `stop` was set.
    #[cfg(feature = "milvus")]
    pub fn knock(&self, at: &str, stop: &Stop) -> Result<(), NetError> {
        use super::fetch::CONNECT;
        let at = at.to_owned();
        let knocked =
            self.wait(async move { timeout(CONNECT, tokio::net::TcpStream::connect(at)).await }, stop)?;
        match knocked {
            Ok(Ok(_)) => Ok(()),
            Ok(Err(error)) => Err(NetError::Unreached(error.to_string())),
            Err(_) => Err(NetError::Unreached(format!("no connection within {CONNECT:?}"))),
        }
    }
}

/// A future with a limit.
///
/// # Errors
/// It took longer.
pub async fn within<T>(limit: Duration, work: impl Future<Output = T>) -> Result<T, String> {
    timeout(limit, work).await.map_err(|_| format!("it sent nothing for {limit:?}"))
}

impl Drop for Waiting {
    fn drop(&mut self) {
        // A runtime that is dropped waits for name lookups, and panics inside another runtime.
        if let Some(runtime) = self.0.take() {
            runtime.shutdown_background();
        }
    }
}
