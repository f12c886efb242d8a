//! When a request is tried again, and after what pause.

use std::time::{Duration, Instant, SystemTime};

use crate::work::{Stop, Stopped};

/// The pauses between tries.
#[derive(Clone, Copy, Debug)]
pub struct Backoff {
    /// After the first try; doubled after each later one.
    pub base: Duration,
    /// No pause of our own is longer.
    pub longest: Duration,
    /// No pause a server asks for is longer.
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
    /// The pause after so many tries, when the server asked for `asked`.
    ///
    /// There is no jitter: `Endpoint::at_once` bounds how many requests can come back together, and equal runs
    /// should take equal ways.
    pub fn pause(&self, tried: u32, asked: Option<Duration>) -> Duration {
        let doublings = 1u32.checked_shl(tried.saturating_sub(1)).unwrap_or(u32::MAX);
        let own = self.base.saturating_mul(doublings).min(self.longest);
        own.max(asked.unwrap_or_default().min(self.longest_asked))
    }
}

/// A pause that ends with the stop.
///
/// # Errors
/// The stop was set.
pub fn wait(pause: Duration, stop: &Stop) -> Result<(), Stopped> {
    const LOOK: Duration = Duration::from_millis(20);
    let end = Instant::now() + pause;
    loop {
        if stop.is_set() {
            return Err(Stopped);
        }
        let left = end.saturating_duration_since(Instant::now());
        if left.is_zero() {
            return Ok(());
        }
        std::thread::sleep(left.min(LOOK));
    }
}

/// Whether a server that answers so may answer otherwise a little later.
pub fn passes(status: u16) -> bool {
    matches!(status, 429 | 500 | 502 | 503 | 504)
}

/// What a `Retry-After` header asks for: seconds, or a date.
pub fn asked(header: &str, now: SystemTime) -> Option<Duration> {
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
    fn retry_after_is_read_as_seconds_or_as_a_date() {
        let now = SystemTime::UNIX_EPOCH + Duration::from_secs(784_111_777);
        assert_eq!(asked(" 12 ", now), Some(Duration::from_secs(12)));
        assert_eq!(asked("Sun, 06 Nov 1994 08:49:57 GMT", now), Some(Duration::from_secs(20)));
        assert_eq!(asked("Sun, 06 Nov 1994 08:00:00 GMT", now), Some(Duration::ZERO));
        assert_eq!(asked("soon", now), None);
    }

    #[test]
    fn only_what_may_pass_is_tried_again() {
        assert!([429, 500, 502, 503, 504].into_iter().all(passes));
        assert!(![200, 301, 400, 401, 403, 404, 422, 501].into_iter().any(passes));
    }
}
