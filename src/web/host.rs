//! One host: what its robots.txt lets be asked, and at what pace.

use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use texting_robots::Robot;
use url::Url;

use super::store::End;
use crate::net::retry::wait;
use crate::work::{Stop, Stopped};

/// What a robots.txt addresses this program by.
const AGENT: &str = "parallax";
/// Bytes of a robots.txt that are read; the rest of a longer one does not count, as RFC 9309 has it.
pub(super) const ROBOTS: usize = 500 << 10;
/// A host that wants longer pauses is not asked at all: one corpus would take days.
const LONGEST: Duration = Duration::from_secs(120);

/// What is known of a host.
pub(super) struct Host {
    /// When it may be asked next.
    next: Mutex<Instant>,
    /// What its robots.txt says, once it was asked.
    rules: Mutex<Option<Rules>>,
}

/// What a robots.txt says.
pub(super) enum Rules {
    /// There is none: all may be asked.
    None,
    /// Its rules.
    Some(Box<Robot>),
    /// It could not be had, so nothing may be asked.
    Unknown(End, String),
}

impl Rules {
    /// The rules in a file that came with this status.
    pub fn read(status: u16, bytes: &[u8]) -> Self {
        let unknown = |why: String| Rules::Unknown(End::Failed, format!("its robots.txt {why}"));
        match status {
            200..=299 => match Robot::new(AGENT, bytes) {
                Ok(robot) => Rules::Some(Box::new(robot)),
                Err(_) => unknown("cannot be read".into()),
            },
            429 | 500.. => unknown(format!("was answered with {status}")),
            _ => Rules::None,
        }
    }

    fn check(&self, url: &Url) -> Result<(), (End, String)> {
        match self {
            Rules::None => Ok(()),
            Rules::Unknown(end, why) => Err((*end, why.clone())),
            Rules::Some(robot) if !robot.allowed(url.as_str()) => {
                Err((End::Robots, "its robots.txt forbids it".into()))
            }
            Rules::Some(_) => match self.delay() > LONGEST {
                true => Err((End::Robots, format!("its robots.txt asks for pauses of {:?}", self.delay()))),
                false => Ok(()),
            },
        }
    }

    fn delay(&self) -> Duration {
        match self {
            Rules::Some(robot) => {
                let asked = robot.delay.filter(|seconds| *seconds > 0.0);
                asked.map_or(Duration::ZERO, |seconds| {
                    Duration::try_from_secs_f32(seconds).unwrap_or(Duration::MAX)
                })
            }
            _ => Duration::ZERO,
        }
    }
}

impl Host {
    /// A host that was not asked yet.
    pub fn new() -> Self {
        Host { next: Mutex::new(Instant::now()), rules: Mutex::default() }
    }

    /// Whether its robots.txt lets an address be asked; `read` asks for that file, once.
    pub fn allows(
        &self,
        url: &Url,
        read: impl FnOnce() -> Result<Rules, Stopped>,
    ) -> Result<Result<(), (End, String)>, Stopped> {
        let mut rules = held(&self.rules);
        let rules = match rules.take() {
            Some(known) => rules.insert(known),
            None => rules.insert(read()?),
        };
        Ok(rules.check(url))
    }

    /// Waits until the host may be asked, and puts off the next one by `delay` or by what its robots.txt wants.
    pub fn turn(&self, delay: Duration, stop: &Stop) -> Result<(), Stopped> {
        // While its robots.txt is being asked for, nothing is known of it; the asker holds the lock and takes a turn itself.
        let wanted = match self.rules.try_lock() {
            Ok(rules) => rules.as_ref().map_or(Duration::ZERO, Rules::delay),
            Err(_) => Duration::ZERO,
        };
        let now = Instant::now();
        let pause = {
            let mut next = held(&self.next);
            let at = (*next).max(now);
            *next = at + delay.max(wanted.min(LONGEST));
            at - now
        };
        wait(pause, stop)
    }

    /// Puts off the next request, because the host asked for it.
    pub fn put_off(&self, pause: Duration) {
        let mut next = held(&self.next);
        *next = (*next).max(Instant::now() + pause);
    }
}

fn held<T>(lock: &Mutex<T>) -> MutexGuard<'_, T> {
    lock.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn end(rules: &Rules, path: &str) -> Option<End> {
        rules.check(&Url::parse(&format!("https://example.org{path}")).unwrap()).err().map(|(end, _)| end)
    }

    #[test]
    fn the_rules_for_this_program_go_before_those_for_all_and_the_longest_rule_wins() {
        let rules = Rules::read(
            200,
            b"User-agent: *\nDisallow: /\n\nUser-agent: Parallax\nDisallow: /private\nAllow: /private/open\nDisallow: /*.gif$\n",
        );
        assert_eq!(end(&rules, "/a"), None);
        assert_eq!(end(&rules, "/private/a"), Some(End::Robots));
        assert_eq!(end(&rules, "/private/open/a"), None);
        assert_eq!(end(&rules, "/a.gif"), Some(End::Robots));
        assert_eq!(end(&rules, "/a.gif?b"), None);
    }

    #[test]
    fn a_missing_file_allows_all_and_a_failing_server_nothing() {
        assert_eq!(end(&Rules::read(404, b""), "/a"), None);
        assert_eq!(end(&Rules::read(403, b""), "/a"), None);
        assert_eq!(end(&Rules::read(503, b""), "/a"), Some(End::Failed));
        assert_eq!(end(&Rules::read(429, b""), "/a"), Some(End::Failed));
    }

    #[test]
    fn pauses_that_a_host_wants_are_kept_unless_they_are_endless() {
        let asks = |seconds: &str| {
            Rules::read(200, format!("User-agent: *\nCrawl-delay: {seconds}\nDisallow: /b").as_bytes())
        };
        assert_eq!(asks("2.5").delay(), Duration::from_millis(2500));
        assert_eq!(end(&asks("2.5"), "/a"), None);
        assert_eq!(end(&asks("86400"), "/a"), Some(End::Robots));
        for odd in ["-1", "nan", "soon", ""] {
            assert_eq!(
                (asks(odd).delay(), end(&asks(odd), "/b")),
                (Duration::ZERO, Some(End::Robots)),
                "{odd}"
            );
        }
    }

    #[test]
    fn a_file_that_is_no_robots_txt_forbids_nothing_and_breaks_nothing() {
        for bytes in
            [&b"<html><p>not here</p></html>"[..], b"\xff\xfe\0\x01", b"Disallow", b"User-agent:\r\r\n:::\n"]
        {
            assert_eq!(end(&Rules::read(200, bytes), "/a"), None);
        }
    }
}
