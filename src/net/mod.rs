//! HTTP for language models, the model hub, the web and search engines on other machines.
//!
//! `client` sets up TLS and the network thread, and knows where secrets may go; `call` sends JSON and returns the whole response, or
//! downloads one address piece by piece; this file decides when a request is sent again, after what pause, and how long a server is
//! waited for. Nothing here interprets the bytes.
//!
//! May use: work.

use std::fmt;
use std::future::Future;
use std::pin::pin;
use std::time::{Duration, Instant, SystemTime};

use backon::{BackoffBuilder, ExponentialBuilder};
use parking_lot::RwLock;
use tokio::time::{sleep, timeout};

use crate::work::{Stop, Stopped};

mod call;
mod client;

pub use call::{Allow, Ask, Call, Caller, Fetcher, Forbidden, Head, Response, Secret, Verb};
#[cfg(feature = "milvus")]
pub use client::Waiting;
pub use client::{NetError, SetupError, allow_in_clear, at, in_clear, is_here, keeps_secrets, tls};

/// The pauses between tries.
#[derive(Clone, Copy, Debug)]
pub struct Backoff {
    /// The pause after the first try; it is doubled after each later one.
    pub base: Duration,
    /// The longest pause of this program's own.
    pub longest: Duration,
    /// The longest pause that a server can request.
    pub longest_asked: Duration,
}

impl Default for Backoff {
    fn default() -> Self {
        Backoff {
            base: Duration::from_millis(500),
            longest: Duration::from_secs(30),
            longest_asked: Duration::from_secs(60),
        }
    }
}

impl Backoff {
    /// The schedule of this program's own pauses for up to `tries` tries.
    ///
    /// It has no jitter: `Endpoint::at_once` limits how many requests are repeated at the same time, and equal runs should behave equally.
    pub fn schedule(&self, tries: u32) -> ExponentialBuilder {
        ExponentialBuilder::new()
            .with_min_delay(self.base.min(self.longest))
            .with_max_delay(self.longest)
            .with_max_times(tries.saturating_sub(1) as usize)
    }

    /// Whether a server requested a longer pause than anybody would wait for. It is not asked again then: asking earlier would be refused.
    pub fn is_too_long(&self, asked: Option<Duration>) -> bool {
        asked.is_some_and(|asked| asked > self.longest_asked)
    }

    /// This program's own pause, or the one that the server requested if that is longer.
    pub fn at_least(&self, own: Duration, asked: Option<Duration>) -> Duration {
        own.max(asked.unwrap_or_default().min(self.longest_asked))
    }

    /// The pause after `tried` tries, if the server requested the pause `asked`.
    pub fn pause(&self, tried: u32, asked: Option<Duration>) -> Duration {
        // After 64 doublings any pause has reached the longest.
        let tried = tried.clamp(1, 64);
        let own = self.schedule(tried + 1).build().last().unwrap_or(self.longest);
        self.at_least(own, asked)
    }
}

/// Sleeps until the pause before the next request to a server is over, or `stop` is set.
///
/// # Errors
/// `stop` was set.
pub fn wait(server: &str, pause: Duration, stop: &Stop) -> Result<(), Stopped> {
    const LOOK: Duration = Duration::from_millis(20);
    let end = Instant::now() + pause;
    let mut shown = pause + SECOND;
    loop {
        if stop.is_set() {
            return Err(Stopped);
        }
        let left = end.saturating_duration_since(Instant::now());
        if left.is_zero() {
            return Ok(());
        }
        if pause >= WORTH_SHOWING && shown.saturating_sub(left) >= SECOND {
            shown = left;
            show(server, WaitReason::Pause, left);
        }
        std::thread::sleep(left.min(LOOK));
    }
}

/// [`wait`] for a task, which is stopped by dropping it.
pub async fn wait_in_task(server: &str, pause: Duration) {
    let end = Instant::now() + pause;
    loop {
        let left = end.saturating_duration_since(Instant::now());
        if left.is_zero() {
            return;
        }
        if pause >= WORTH_SHOWING {
            show(server, WaitReason::Pause, left);
        }
        sleep(left.min(SECOND)).await;
    }
}

/// Runs a request for at most `total`, however much arrives meanwhile; `None` if it took longer. After half a minute the time left is
/// shown.
pub async fn in_total<T>(server: &str, total: Duration, work: impl Future<Output = T>) -> Option<T> {
    let end = Instant::now() + total;
    let mut work = pin!(work);
    let mut step = Duration::from_secs(30).min(total);
    loop {
        if let Ok(done) = timeout(step, &mut work).await {
            return Some(done);
        }
        let left = end.saturating_duration_since(Instant::now());
        if left.is_zero() {
            return None;
        }
        show(server, WaitReason::Unfinished, left);
        step = left.min(SECOND);
    }
}

const SECOND: Duration = Duration::from_secs(1);

/// A shorter pause is over before anybody has read of it.
const WORTH_SHOWING: Duration = Duration::from_secs(3);

/// Why a server is waited for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WaitReason {
    /// It asked for a pause, or failed before.
    Pause,
    /// It has not finished its reply.
    Unfinished,
}

/// A wait for a server, once a second.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Wait {
    /// The server.
    pub server: String,
    /// The reason.
    pub reason: WaitReason,
    /// The time left.
    pub left: Duration,
}

impl fmt::Display for Wait {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (server, left) = (&self.server, self.left.as_secs_f32().ceil());
        match self.reason {
            WaitReason::Pause => write!(f, "{server} is busy: it is asked again in {left} s"),
            WaitReason::Unfinished => {
                write!(f, "{server} has not finished its reply: it is given up in {left} s")
            }
        }
    }
}

type Observer = Box<dyn Fn(Wait) + Send + Sync>;

static OBSERVER: RwLock<Option<Observer>> = RwLock::new(None);

/// Calls `observer` once a second while this process waits for a server, in place of an earlier observer.
pub fn observe(observer: impl Fn(Wait) + Send + Sync + 'static) {
    *OBSERVER.write() = Some(Box::new(observer));
}

fn show(server: &str, reason: WaitReason, left: Duration) {
    if let Some(observer) = &*OBSERVER.read() {
        observer(Wait { server: server.to_owned(), reason, left });
    }
}

/// Whether this status is a temporary failure, so that another try may succeed.
pub fn is_temporary(status: u16) -> bool {
    matches!(status, 429 | 500 | 502 | 503 | 504)
}

/// The pause that a `Retry-After` header asks for: seconds, or a date.
pub fn retry_after(header: &str, now: SystemTime) -> Option<Duration> {
    let header = header.trim();
    if let Ok(seconds) = header.parse() {
        return Some(Duration::from_secs(seconds));
    }
    let date = httpdate::parse_http_date(header).ok()?;
    Some(date.duration_since(now).unwrap_or_default())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pauses_double_up_to_the_longest() {
        let backoff = Backoff::default();
        let pauses: Vec<u128> = (1..=8).map(|tried| backoff.pause(tried, None).as_millis()).collect();
        assert_eq!(pauses, [500, 1000, 2000, 4000, 8000, 16000, 30000, 30000]);
        assert_eq!(backoff.pause(u32::MAX, None), backoff.longest);
    }

    #[test]
    fn a_server_may_ask_for_a_longer_pause_but_not_for_an_endless_or_a_shorter_one() {
        let (backoff, seconds) = (Backoff::default(), Duration::from_secs);
        assert_eq!(backoff.pause(1, Some(seconds(7))), seconds(7));
        assert_eq!(backoff.pause(1, Some(seconds(86_400))), backoff.longest_asked);
        assert_eq!(backoff.pause(2, Some(seconds(0))), seconds(1));
    }

    #[test]
    fn a_pause_longer_than_anybody_would_wait_is_not_waited_for() {
        let backoff = Backoff::default();
        assert!(backoff.is_too_long(Some(Duration::from_secs(999_999))));
        assert!(!backoff.is_too_long(Some(backoff.longest_asked)) && !backoff.is_too_long(None));
    }

    #[test]
    fn a_wait_names_the_server_and_the_time_left() {
        let wait = |reason| Wait { server: "http://a".into(), reason, left: Duration::from_millis(41_300) };
        assert_eq!(wait(WaitReason::Pause).to_string(), "http://a is busy: it is asked again in 42 s");
        let unfinished = wait(WaitReason::Unfinished).to_string();
        assert_eq!(unfinished, "http://a has not finished its reply: it is given up in 42 s");
    }

    #[test]
    fn retry_after_is_read_as_seconds_or_as_a_date() {
        let now = SystemTime::UNIX_EPOCH + Duration::from_secs(784_111_777);
        assert_eq!(retry_after(" 12 ", now), Some(Duration::from_secs(12)));
        assert_eq!(retry_after("Sun, 06 Nov 1994 08:49:57 GMT", now), Some(Duration::from_secs(20)));
        assert_eq!(retry_after("Sun, 06 Nov 1994 08:00:00 GMT", now), Some(Duration::ZERO));
        assert_eq!(retry_after("soon", now), None);
    }

    #[test]
    fn only_passing_failures_are_tried_again() {
        assert!([429, 500, 502, 503, 504].into_iter().all(is_temporary));
        assert!(![200, 301, 400, 401, 403, 404, 422, 501].into_iter().any(is_temporary));
    }
}
