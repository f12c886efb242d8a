//! Fetches one page: its robots.txt first, at the pace of its host, with each redirect checked, and only text up to a size.

use std::cell::RefCell;
use std::collections::HashMap;
use std::io;
use std::io::Read;
use std::sync::Arc;
use std::time::{Instant, SystemTime, UNIX_EPOCH};

use encoding_rs::{Encoding, UTF_8, WINDOWS_1252};
use time::OffsetDateTime;
use time::format_description::well_known::Rfc3339;
use url::Url;

use parking_lot::Mutex;

use super::manners;
use super::manners::{Manners, WebError};
use super::store::host::{Host, ROBOTS, Rules};
use super::store::{End, Page};
use crate::corpus::{HtmlError, main_text};
use crate::net::is_temporary;
use crate::net::{Ask, Fetcher, Head, NetError};
use crate::work::{Stop, Stopped};

/// The most redirects followed for one page.
const HOPS: usize = 5;
/// The most requests for a page whose server asks for a pause.
const TRIES: u32 = 3;

/// Fetches pages, and remembers their hosts.
pub(super) struct Web {
    fetcher: Fetcher,
    manners: Manners,
    hosts: Mutex<HashMap<String, Arc<Host>>>,
}

/// Why a page was not fetched.
enum Miss {
    End(End, String),
    Stopped(Stopped),
}

impl From<(End, String)> for Miss {
    fn from((end, why): (End, String)) -> Self {
        Miss::End(end, why)
    }
}

impl From<Stopped> for Miss {
    fn from(stopped: Stopped) -> Self {
        Miss::Stopped(stopped)
    }
}

/// The kind of file to fetch.
#[derive(Clone, Copy, PartialEq)]
enum What {
    Page,
    Robots,
}

/// A response.
struct Got {
    at: Url,
    status: u16,
    header: String,
    bytes: Vec<u8>,
}

impl Web {
    /// Sets up the client. It sends nothing yet.
    pub fn new(manners: Manners) -> Result<Self, WebError> {
        let mut fetcher = Fetcher::guarded(manners.allow)?;
        fetcher.patience = manners.patience;
        Ok(Web { fetcher, manners, hosts: Mutex::default() })
    }

    /// Fetches a page. Failures are results too; `Page::end` says how the fetch ended.
    pub fn page(&self, address: &str, stop: &Stop) -> Result<Page, Stopped> {
        let got = match manners::parse(address) {
            Ok(url) => self.follow(url, What::Page, stop),
            Err(expected) => Err((End::Address, format!("expected {expected}")).into()),
        };
        let read = got.and_then(|got| Ok((got.at.to_string(), text_of(&got)?)));
        let page = Page { url: address.to_owned(), fetched: now(), ..Page::default() };
        Ok(match read {
            Ok((at, (title, text))) => Page { at: Some(at), title, text, ..page },
            Err(Miss::End(end, why)) => Page { end, reason: Some(why), ..page },
            Err(Miss::Stopped(stopped)) => return Err(stopped),
        })
    }

    fn host(&self, url: &Url) -> Arc<Host> {
        // A robots.txt applies to one scheme, host and port.
        let origin = url.origin().ascii_serialization();
        let mut hosts = self.hosts.lock();
        Arc::clone(hosts.entry(origin).or_insert_with(|| Arc::new(Host::new())))
    }

    /// Requests an address and follows redirects.
    fn follow(&self, mut url: Url, what: What, stop: &Stop) -> Result<Got, Miss> {
        let began = Instant::now();
        for _ in 0..=HOPS {
            manners::check(&url, self.manners.allow)
                .map_err(|why| (End::Address, format!("it leads to {why}")))?;
            let host = self.host(&url);
            if what == What::Page {
                host.allows(&url, || self.robots(&url, stop))??;
            }
            let (got, next) = self.ask(&host, &url, what, began, stop)?;
            match next {
                None => return Ok(got),
                Some(next) => {
                    url = manners::parse(&next).map_err(|expected| {
                        (
                            End::Redirect,
                            format!("it redirects to something that is not a page; expected {expected}"),
                        )
                    })?;
                }
            }
        }
        Err((End::Redirect, format!("it redirects more than {HOPS} times")).into())
    }

    fn robots(&self, url: &Url, stop: &Stop) -> Result<Rules, Stopped> {
        let mut place = url.clone();
        place.set_path("/robots.txt");
        place.set_query(None);
        match self.follow(place, What::Robots, stop) {
            Ok(got) => Ok(Rules::read(got.status, &got.bytes)),
            Err(Miss::Stopped(stopped)) => Err(stopped),
            // By RFC 9309, a robots.txt with too many redirects counts as missing.
            Err(Miss::End(End::Redirect, _)) => Ok(Rules::None),
            Err(Miss::End(end, why)) => {
                Ok(Rules::Unknown(end, format!("its robots.txt could not be fetched: {why}")))
            }
        }
    }

    /// Requests one address, and tries again after a pause if its server asks for one.
    fn ask(
        &self,
        host: &Host,
        url: &Url,
        what: What,
        began: Instant,
        stop: &Stop,
    ) -> Result<(Got, Option<String>), Miss> {
        for tried in 1.. {
            host.turn(self.manners.delay, stop)?;
            let (head, bytes) = self.once(url, what, began, stop)?;
            if (300..=399).contains(&head.status) && head.location.is_some() {
                return Ok((
                    Got { at: url.clone(), status: head.status, header: String::new(), bytes },
                    head.location,
                ));
            }
            let good = (200..=299).contains(&head.status);
            if good || (what == What::Robots && !is_temporary(head.status)) {
                let header = head.header("content-type").unwrap_or_default().to_owned();
                return Ok((Got { at: url.clone(), status: head.status, header, bytes }, None));
            }
            if !is_temporary(head.status) {
                return Err((End::Status, format!("its server answered {}", head.status)).into());
            }
            let backoff = self.manners.backoff;
            let patient = head.pause.is_none_or(|pause| pause <= backoff.longest_asked);
            if tried == TRIES || !patient {
                let wanted = head.pause.map(|pause| format!(", and asked for a pause of {pause:?}"));
                let why = format!("its server answered {}{}", head.status, wanted.unwrap_or_default());
                return Err((End::Failed, why).into());
            }
            host.put_off(backoff.pause(tried, head.pause));
        }
        Err((End::Failed, "it was requested too often".into()).into())
    }

    fn once(&self, url: &Url, what: What, began: Instant, stop: &Stop) -> Result<(Head, Vec<u8>), Miss> {
        let (largest, longest) = (self.manners.largest, self.manners.longest);
        let refused = RefCell::new(None);
        let mut bytes = Vec::new();
        let mut head = |head: &Head| {
            if !(200..=299).contains(&head.status) {
                return Ok(false);
            }
            if what == What::Page {
                refused.replace(unwanted(head, largest));
            }
            Ok(refused.borrow().is_none())
        };
        let mut body = |piece: &[u8]| {
            let late = began.elapsed() > longest;
            let full = bytes.len() + piece.len() > largest;
            if what == What::Robots && bytes.len() < ROBOTS && !late {
                bytes.extend_from_slice(&piece[..piece.len().min(ROBOTS - bytes.len())]);
            } else if what == What::Page && !late && !full {
                bytes.extend_from_slice(piece);
            } else {
                let end = match (late, what) {
                    (true, _) => Some((End::Failed, format!("it took longer than {longest:?}"))),
                    (_, What::Page) => Some((End::Size, too_large(largest))),
                    // The rest of a robots.txt is ignored.
                    (_, What::Robots) => None,
                };
                refused.replace(end);
                return Err(io::Error::other("no more is wanted"));
            }
            Ok(())
        };
        let headers =
            [("accept", "text/html,application/xhtml+xml,text/plain;q=0.9"), ("accept-encoding", "gzip")];
        // A robots.txt is requested uncompressed, so that its size limit applies.
        let headers = if what == What::Page { &headers[..] } else { &headers[..0] };
        let answer = self.fetcher.get(&Ask { headers, ..Ask::of(url.as_str()) }, stop, &mut head, &mut body);
        if let Some(refused) = refused.into_inner() {
            return Err(refused.into());
        }
        let head = match answer {
            Ok(head) => head,
            Err(NetError::Keep(_)) => Head::whole(),
            Err(NetError::Denied(why)) => return Err((End::Address, why).into()),
            Err(NetError::Stopped(stopped)) => return Err(stopped.into()),
            Err(error @ (NetError::Unreached(_) | NetError::Silent(_) | NetError::Slow(_))) => {
                return Err((End::Failed, error.to_string()).into());
            }
        };
        let packed =
            head.header("content-encoding").is_some_and(|name| name.trim().eq_ignore_ascii_case("gzip"));
        if packed && what == What::Page {
            bytes = unpack(&bytes, largest)?;
        }
        Ok((head, bytes))
    }
}

/// Why a response is refused, by its head; `None` if it is accepted.
fn unwanted(head: &Head, largest: usize) -> Option<(End, String)> {
    let kind = kind(head.header("content-type").unwrap_or_default());
    if !matches!(kind.as_str(), "text/html" | "application/xhtml+xml" | "text/plain") {
        let reason = match kind.as_str() {
            "" => "it does not state its type".into(),
            "application/pdf" => "it is a PDF, which is not read".into(),
            kind => format!("it is {kind}, and only HTML and plain text are read"),
        };
        return Some((End::Type, reason));
    }
    let packing = head.header("content-encoding").unwrap_or_default().trim().to_ascii_lowercase();
    if !matches!(packing.as_str(), "" | "identity" | "gzip") {
        return Some((End::Type, format!("it is compressed as {packing}, which was not requested")));
    }
    let length = head.header("content-length").and_then(|length| length.parse::<u64>().ok());
    length.filter(|length| *length > largest as u64).map(|_| (End::Size, too_large(largest)))
}

fn kind(header: &str) -> String {
    header.split(';').next().unwrap_or_default().trim().to_ascii_lowercase()
}

fn too_large(largest: usize) -> String {
    format!("it is larger than {} kB", largest.div_ceil(1000))
}

/// Unpacks a gzip body, up to the size that a page may have.
fn unpack(bytes: &[u8], largest: usize) -> Result<Vec<u8>, Miss> {
    let mut whole = Vec::new();
    let limit = largest as u64 + 1;
    match flate2::bufread::MultiGzDecoder::new(bytes).take(limit).read_to_end(&mut whole) {
        Err(error) => Err((End::Failed, format!("it could not be unpacked ({error})")).into()),
        Ok(_) if whole.len() > largest => Err((End::Size, too_large(largest)).into()),
        Ok(_) => Ok(whole),
    }
}

/// The title and main text of a response.
fn text_of(got: &Got) -> Result<(String, String), Miss> {
    if is_binary(&got.bytes) {
        let kind = kind(&got.header);
        return Err((End::Type, format!("it is sent as {kind} and is no text")).into());
    }
    let text = decode(&got.bytes, &got.header);
    let (title, text) = if kind(&got.header) == "text/plain" {
        (String::new(), text)
    } else {
        match main_text(&text) {
            Ok(page) => (page.title.unwrap_or_default(), page.text),
            Err(HtmlError::Tags(tags)) => {
                return Err((End::Size, format!("it has {tags} tags, more than a page of text has")).into());
            }
            Err(HtmlError::Rules(error)) => return Err((End::Empty, error.to_string()).into()),
            Err(HtmlError::Panicked) => return Err((End::Empty, "its HTML cannot be read".into()).into()),
        }
    };
    match text.split_whitespace().next() {
        Some(_) => Ok((title, text)),
        None => Err((End::Empty, "it has no text".into()).into()),
    }
}

/// Whether bytes are no text: a picture, an archive or a program that a server sends as a page. A page in UTF-16 holds zeros too.
fn is_binary(bytes: &[u8]) -> bool {
    let head = &bytes[..bytes.len().min(HEAD)];
    let utf_16 = head.starts_with(b"\xff\xfe") || head.starts_with(b"\xfe\xff");
    !utf_16 && head.contains(&0)
}

/// The current time, to the second, in the format of RFC 3339.
pub(super) fn now() -> String {
    let seconds = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |time| time.as_secs());
    let moment = OffsetDateTime::from_unix_timestamp(i64::try_from(seconds).unwrap_or(0));
    moment.ok().and_then(|moment| moment.format(&Rfc3339).ok()).unwrap_or_default()
}

/// The number of bytes of a page that are searched for its charset, as in browsers.
const HEAD: usize = 1024;

/// Decodes a page. Bytes that are invalid in the charset become U+FFFD.
pub fn decode(bytes: &[u8], header: &str) -> String {
    let head = String::from_utf8_lossy(&bytes[..bytes.len().min(HEAD)]);
    let encoding = charset(header).or_else(|| charset(&head)).unwrap_or_else(|| {
        // Most pages without a charset are UTF-8; browsers read the others as windows-1252.
        if std::str::from_utf8(bytes).is_ok() { UTF_8 } else { WINDOWS_1252 }
    });
    // A byte order mark overrides every declaration.
    encoding.decode(bytes).0.into_owned()
}

/// The encoding that follows `charset=`.
fn charset(text: &str) -> Option<&'static Encoding> {
    let lower = text.to_ascii_lowercase();
    let (_, rest) = lower.split_once("charset")?;
    let rest = rest.trim_start().strip_prefix('=')?.trim_start().trim_start_matches(['"', '\'']);
    let label: &str = rest.split(|c: char| c.is_whitespace() || "\"';>/".contains(c)).next()?;
    let encoding = Encoding::for_label(label.as_bytes())?;
    // A declaration that is readable as ASCII cannot be in UTF-16.
    Some(if encoding == encoding_rs::UTF_16LE || encoding == encoding_rs::UTF_16BE {
        UTF_8
    } else {
        encoding
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_header_goes_before_the_page_and_a_byte_order_mark_before_both() {
        let latin = b"<meta charset=\"utf-8\"><p>caf\xe9";
        assert!(decode(latin, "text/html; charset=ISO-8859-1").ends_with("café"));
        let meta = b"<meta http-equiv=Content-Type content='text/html; charset=iso-8859-1'><p>caf\xe9";
        assert!(decode(meta, "text/html").ends_with("café"));
        assert_eq!(decode("\u{feff}café".as_bytes(), "text/html; charset=iso-8859-1"), "café");
        assert_eq!(decode(b"\xff\xfec\0a\0f\0\xe9\0", "text/plain"), "café");
    }

    #[test]
    fn a_page_that_says_nothing_or_nonsense_is_utf8_where_it_can_be() {
        assert_eq!(decode("café".as_bytes(), "text/html"), "café");
        assert_eq!(decode(b"caf\xe9", "text/html; charset=nonsense"), "café");
        assert_eq!(decode(b"caf\xe9", "text/html; charset=utf-8"), "caf\u{fffd}");
        assert_eq!(decode(b"", ""), "");
    }
}
