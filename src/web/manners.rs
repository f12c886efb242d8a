//! The pace and limits of fetching, the allowed addresses, and the errors.
//!
//! Only public addresses may be fetched: a page that points into a private network must not make this program connect there.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::path::PathBuf;
use std::time::Duration;

use url::{Host, Url};

use crate::input::InputError;
use crate::net::{Allow, Backoff, Forbidden, NetError, SetupError};
use crate::work::Stopped;

/// Pace and limits of fetching.
#[derive(Clone, Copy)]
pub struct Manners {
    /// The pause between two requests to one host; a longer `Crawl-delay` counts instead.
    pub delay: Duration,
    /// The most bytes of a page, both as sent and unpacked.
    pub largest: usize,
    /// The longest time that a server may send nothing.
    pub patience: Duration,
    /// The longest total time for one page.
    pub longest: Duration,
    /// The pauses if a server asks for one.
    pub backoff: Backoff,
    /// The addresses that may be fetched.
    pub allow: Allow,
}

impl Default for Manners {
    fn default() -> Self {
        Manners {
            delay: Duration::from_secs(1),
            largest: 5_000_000,
            patience: Duration::from_secs(20),
            longest: Duration::from_secs(60),
            backoff: Backoff::default(),
            allow: public,
        }
    }
}

/// Why there is no corpus. Fetched pages stay in the journal.
#[derive(Debug, thiserror::Error)]
pub enum WebError {
    /// The search engine gave no pages.
    #[error(transparent)]
    Search(#[from] SearchError),
    /// No client could be set up.
    #[error(transparent)]
    Setup(#[from] SetupError),
    /// The name cannot be that of a folder.
    #[error("a corpus cannot be called `{}`; expected a name without slashes, such as --name zoos", .0.escape_debug())]
    Name(String),
    /// Another process fills the folder.
    #[error("another process fills {}; wait until it ends", .0.display())]
    Busy(PathBuf),
    /// A line of the journal is neither a search nor a page.
    #[error("{}:{line}: expected a search or a page ({error}); remove that line, or the folder", path.display())]
    Line {
        /// The journal.
        path: PathBuf,
        /// The line, from 1.
        line: usize,
        /// What the parser said.
        error: serde_json::Error,
    },
    /// The folder holds the pages of another search.
    #[error("{} holds what {provider} found for `{question}`; name another corpus with --name", path.display())]
    OtherSearch {
        /// The corpus.
        path: PathBuf,
        /// The engine of that search.
        provider: String,
        /// The question of that search.
        question: String,
    },
    /// Pages were fetched, but none of them has a text.
    #[error("none of the {0} pages gave a text, so there is no corpus; the reasons are above")]
    NoText(usize),
    /// The list of addresses is not valid.
    #[error(transparent)]
    Input(#[from] InputError),
    /// A file could not be written.
    #[error("{} cannot be written ({reason}); make room there or name another folder with --data-dir", path.display())]
    Keep {
        /// The file or folder.
        path: PathBuf,
        /// The system's message.
        reason: std::io::Error,
    },
    /// Stopped on request.
    #[error(transparent)]
    Stopped(#[from] Stopped),
}

/// Why a search engine gave no pages.
#[derive(Debug, thiserror::Error)]
pub enum SearchError {
    /// The environment variable has no key.
    #[error("this engine needs a key; put it into {0}")]
    NoKey(&'static str),
    /// Wikis refuse programs that name no contact.
    #[error(
        "wikis refuse programs that do not say whom to write to; put contact = \"you@example.org\" into the configuration (`parallax \
         config path` names the file)"
    )]
    NoContact,
    /// Its address is not valid.
    #[error("the engine's address {base} cannot be used: {reason}")]
    Address {
        /// The address.
        base: String,
        /// What is wrong with it.
        reason: String,
    },
    /// It answered, but not with a success.
    #[error("{who} answered {status}: {advice}")]
    Refused {
        /// Its name or address.
        who: String,
        /// The HTTP status.
        status: u16,
        /// What to do.
        advice: String,
    },
    /// It did not answer.
    #[error("{base} could not be reached ({error}); check its address and the connection")]
    Unreached {
        /// Its address.
        base: String,
        /// What the network said.
        error: NetError,
    },
    /// Its answer is not a list of results.
    #[error("{base} sent JSON without a list of `results`; is it a SearXNG?")]
    NoResults {
        /// Its address.
        base: String,
    },
    /// The engines behind it did not answer.
    #[error(
        "{base} found nothing, because its engines did not answer: {engines}; try again later, or switch on others in its settings.yml"
    )]
    Silent {
        /// Its address.
        base: String,
        /// Their names and reasons.
        engines: String,
    },
    /// It found nothing.
    #[error("{provider} found no page for `{question}`; use other words")]
    NoPage {
        /// The engine.
        provider: String,
        /// The question.
        question: String,
    },
}

/// Allows any address, for intranets.
///
/// # Errors
/// Never fails.
pub fn anywhere(_: IpAddr) -> Result<(), Forbidden> {
    Ok(())
}

/// Allows only public addresses.
///
/// # Errors
/// The address is of another kind; the error names it.
pub fn public(address: IpAddr) -> Result<(), Forbidden> {
    let kind = match address {
        IpAddr::V4(address) => kind_of_4(address),
        IpAddr::V6(address) => kind_of_6(address),
    };
    match kind {
        Some(kind) => Err(Forbidden { address, kind }),
        None => Ok(()),
    }
}

fn kind_of_4(address: Ipv4Addr) -> Option<&'static str> {
    let [a, b, c, _] = address.octets();
    Some(match (a, b, c) {
        (127, ..) => "this machine",
        (0, ..) => "no address of a server",
        (10, ..) | (172, 16..=31, _) | (192, 168, _) => "an address of a private network",
        (169, 254, _) => "a link-local address",
        (100, 64..=127, _) => "an address behind a carrier's NAT",
        (224..=239, ..) => "a multicast address",
        (192, 0, 0 | 2) | (192, 88, 99) | (198, 18..=19, _) | (198, 51, 100) | (203, 0, 113) => {
            "a reserved address"
        }
        (240..=255, ..) => "a reserved address",
        _ => return None,
    })
}

fn kind_of_6(address: Ipv6Addr) -> Option<&'static str> {
    let s = address.segments();
    let four = |high: u16, low: u16| Ipv4Addr::from(u32::from(high) << 16 | u32::from(low));
    match s {
        [0, 0, 0, 0, 0, 0, 0, 0] => Some("no address of a server"),
        [0, 0, 0, 0, 0, 0, 0, 1] => Some("this machine"),
        // Mapped, or translated by NAT64: the address inside counts.
        [0, 0, 0, 0, 0, 0xffff, high, low] | [0x64, 0xff9b, 0, 0, 0, 0, high, low] => {
            kind_of_4(four(high, low))
        }
        // 6to4.
        [0x2002, high, low, ..] => kind_of_4(four(high, low)),
        [0xfc00..=0xfdff, ..] => Some("a unique-local address"),
        [0xfe80..=0xfebf, ..] => Some("a link-local address"),
        [0xff00..=0xffff, ..] => Some("a multicast address"),
        [0x2001, 0xdb8, ..] | [0x2001, 0, ..] => Some("a reserved address"),
        // All public addresses are in 2000::/3.
        [first, ..] if first & 0xe000 != 0x2000 => Some("a reserved address"),
        _ => None,
    }
}

/// Why a text is not an address of a page. The messages say what was expected.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum PageUrlError {
    /// It is not a URL.
    #[error("an address such as https://… ({0})")]
    Syntax(#[from] url::ParseError),
    /// It has another scheme, or no host.
    #[error("an address that begins with http:// or https://")]
    Scheme,
    /// It holds credentials.
    #[error("an address without a user's name and password")]
    Credentials,
}

/// Parses a page's address and removes its fragment.
///
/// # Errors
/// See [`PageUrlError`].
pub fn parse(text: &str) -> Result<Url, PageUrlError> {
    let mut url = Url::parse(text.trim())?;
    if !matches!(url.scheme(), "http" | "https") || !url.has_host() {
        return Err(PageUrlError::Scheme);
    }
    if !url.username().is_empty() || url.password().is_some() {
        return Err(PageUrlError::Credentials);
    }
    url.set_fragment(None);
    Ok(url)
}

/// Checks a page's numeric address. Names are checked when they are resolved.
///
/// # Errors
/// The address must not be connected to.
pub fn check(url: &Url, allow: Allow) -> Result<(), Forbidden> {
    match url.host() {
        Some(Host::Ipv4(address)) => allow(address.into()),
        Some(Host::Ipv6(address)) => allow(address.into()),
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_that_are_not_public_are_refused_with_their_kind() {
        for (address, kind) in [
            ("127.0.0.1", "this machine"),
            ("127.8.9.1", "this machine"),
            ("::1", "this machine"),
            ("::ffff:127.0.0.1", "this machine"),
            ("::", "no address"),
            ("0.0.0.0", "no address"),
            ("10.1.2.3", "private"),
            ("172.16.0.1", "private"),
            ("172.31.255.255", "private"),
            ("192.168.0.1", "private"),
            ("::ffff:192.168.0.1", "private"),
            ("64:ff9b::a00:1", "private"),
            ("2002:a00:1::1", "private"),
            ("169.254.169.254", "link-local"),
            ("fe80::1", "link-local"),
            ("100.64.0.1", "carrier"),
            ("fd00::1", "unique-local"),
            ("224.0.0.1", "multicast"),
            ("ff02::1", "multicast"),
            ("255.255.255.255", "reserved"),
            ("198.18.0.1", "reserved"),
            ("2001:db8::1", "reserved"),
            ("::7f00:1", "reserved"),
        ] {
            let error = public(address.parse().unwrap()).unwrap_err().to_string();
            assert!(error.contains(kind), "{address}: {error}");
        }
        for address in ["8.8.8.8", "172.32.0.1", "100.128.0.1", "2606:4700::1111", "::ffff:8.8.8.8"] {
            assert_eq!(public(address.parse().unwrap()), Ok(()), "{address}");
        }
    }

    #[test]
    fn the_many_ways_of_writing_an_address_are_one() {
        for url in ["http://2130706433/", "http://0x7f.1/", "http://127.1/", "http://[::ffff:7f00:1]:80/"] {
            let error = check(&parse(url).unwrap(), public).unwrap_err().to_string();
            assert!(error.contains("this machine"), "{url}: {error}");
        }
    }

    #[test]
    fn what_is_no_address_of_a_page_is_reported() {
        for (text, expected) in [
            ("zoos", "https://"),
            ("ftp://example.org/", "http://"),
            ("file:///etc/passwd", "http://"),
            ("https://me:secret@example.org/", "password"),
        ] {
            assert!(parse(text).unwrap_err().to_string().contains(expected), "{text}");
        }
        assert_eq!(parse(" https://Example.org/a?b=1#c ").unwrap().as_str(), "https://example.org/a?b=1");
    }
}
