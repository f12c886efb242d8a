//! One host: the rules of its robots.txt, and the pace of requests.

use std::time::{Duration, Instant};

use texting_robots::Robot;
use url::Url;

use parking_lot::Mutex;

use super::store::End;
use crate::net::wait;
use crate::work::{Stop, Stopped};

/// The name of this program in a robots.txt.
const AGENT: &str = "parallax";
/// The number of bytes of a robots.txt that are read; RFC 9309 allows ignoring the rest.
pub(super) const ROBOTS: usize = 500 << 10;
/// The longest pause between requests. A host that wants longer pauses is skipped, because one corpus would take days.
const LONGEST: Duration = Duration::from_secs(120);

/// The state of a host.
pub(super) struct Host {
    /// The time of the next allowed request.
    next: Mutex<Instant>,
    /// The rules of its robots.txt, once fetched.
    rules: Mutex<Option<Rules>>,
}

/// The rules of a robots.txt.
pub(super) enum Rules {
    /// There is no robots.txt, so everything is allowed.
    None,
    /// The rules.
    Some(Box<Robot>),
    /// The file could not be fetched, so nothing is allowed.
    Unknown(End, String),
}

impl Rules {
    /// The rules of a response with this status.
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
                let wanted = robot.delay.filter(|seconds| *seconds > 0.0);
                wanted.map_or(Duration::ZERO, |seconds| {
                    Duration::try_from_secs_f32(seconds).unwrap_or(Duration::MAX)
                })
            }
            _ => Duration::ZERO,
        }
    }
}

impl Host {
    /// A host without any requests so far.
    pub fn new() -> Self {
        Host { next: Mutex::new(Instant::now()), rules: Mutex::default() }
    }

    /// Checks whether its robots.txt allows an address; `read` fetches that file, once.
    pub fn allows(
        &self,
        url: &Url,
        read: impl FnOnce() -> Result<Rules, Stopped>,
    ) -> Result<Result<(), (End, String)>, Stopped> {
        let mut rules = self.rules.lock();
        let rules = match rules.take() {
            Some(rules_read) => rules.insert(rules_read),
            None => rules.insert(read()?),
        };
        Ok(rules.check(url))
    }

    /// Waits until the host may be requested, and delays the next request by `delay` or by its `Crawl-delay`.
    pub fn turn(&self, delay: Duration, stop: &Stop) -> Result<(), Stopped> {
        // `try_lock`, because the thread that fetches robots.txt calls this while it holds the lock.
        let rules = self.rules.try_lock();
        let wanted = rules.and_then(|rules| rules.as_ref().map(Rules::delay)).unwrap_or_default();
        let now = Instant::now();
        let pause = {
            let mut next = self.next.lock();
            let at = (*next).max(now);
            *next = at + delay.max(wanted.min(LONGEST));
            at - now
        };
        wait("a web server", pause, stop)
    }

    /// Delays the next request, because the host asked for a pause.
    pub fn put_off(&self, pause: Duration) {
        let mut next = self.next.lock();
        *next = (*next).max(Instant::now() + pause);
    }
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
