//! Fetching one page: robots.txt first, in its host's pace, redirects one by one, nothing but text, and not too much of it.

use std::cell::RefCell;
use std::collections::HashMap;
use std::io::{self, Read};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Instant, SystemTime, UNIX_EPOCH};

use time::OffsetDateTime;
use time::format_description::well_known::Rfc3339;
use url::Url;

use super::host::{Host, ROBOTS, Rules};
use super::store::{End, Page};
use super::{Manners, WebError, address, charset};
use crate::corpus::html::{HtmlError, main_text};
use crate::net::retry::passes;
use crate::net::{Ask, Fetcher, Head, NetError};
use crate::work::{Stop, Stopped};

/// Redirects followed for one page.
const HOPS: usize = 5;
/// How often a page is asked for whose server asks for a pause.
const TRIES: u32 = 3;

/// The web, as far as it was asked.
pub(super) struct Web {
    fetcher: Fetcher,
    manners: Manners,
    hosts: Mutex<HashMap<String, Arc<Host>>>,
}

/// Why a page did not come.
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

/// What is fetched.
#[derive(Clone, Copy, PartialEq)]
enum What {
    Page,
    Robots,
}

/// What came.
struct Got {
    at: Url,
    status: u16,
    header: String,
    bytes: Vec<u8>,
}

impl Web {
    /// Nothing is sent yet.
    pub fn new(manners: Manners) -> Result<Self, WebError> {
        let mut fetcher = Fetcher::guarded(manners.allow).map_err(WebError::Search)?;
        fetcher.patience = manners.patience;
        Ok(Web { fetcher, manners, hosts: Mutex::default() })
    }

    /// Asks for a page. All that can befall one is written into what is given back.
    pub fn page(&self, address: &str, stop: &Stop) -> Result<Page, Stopped> {
        let got = match address::parse(address) {
            Ok(url) => self.follow(url, What::Page, stop),
            Err(expected) => Err((End::Address, format!("expected {expected}")).into()),
        };
        let read = got.and_then(|got| Ok((got.at.to_string(), text_of(&got)?)));
        let page = Page { url: address.to_owned(), fetched: now(), ..Page::default() };
        Ok(match read {
            Ok((at, (title, text))) => Page { at: Some(at), title, text, ..page },
            Err(Miss::End(end, why)) => Page { end, why: Some(why), ..page },
            Err(Miss::Stopped(stopped)) => return Err(stopped),
        })
    }

    fn host(&self, url: &Url) -> Arc<Host> {
        // Scheme, host and port: that is whom a robots.txt speaks for.
        let origin = url.origin().ascii_serialization();
        let mut hosts = self.hosts.lock().unwrap_or_else(PoisonError::into_inner);
        Arc::clone(hosts.entry(origin).or_insert_with(|| Arc::new(Host::new())))
    }

    /// Asks, and goes where the answers point.
    fn follow(&self, mut url: Url, what: What, stop: &Stop) -> Result<Got, Miss> {
        let began = Instant::now();
        for _ in 0..=HOPS {
            address::check(&url, self.manners.allow)
                .map_err(|why| (End::Address, format!("it leads to {why}")))?;
            let host = self.host(&url);
            if what == What::Page {
                host.allows(&url, || self.robots(&url, stop))??;
            }
            let (got, next) = self.ask(&host, &url, what, began, stop)?;
            match next {
                None => return Ok(got),
                Some(next) => {
                    url = address::parse(&next).map_err(|expected| {
                        (End::Redirect, format!("it leads on to no page; expected {expected}"))
                    })?;
                }
            }
        }
        Err((End::Redirect, format!("it leads on more than {HOPS} times")).into())
    }

    fn robots(&self, url: &Url, stop: &Stop) -> Result<Rules, Stopped> {
        let mut place = url.clone();
        place.set_path("/robots.txt");
        place.set_query(None);
        match self.follow(place, What::Robots, stop) {
            Ok(got) => Ok(Rules::read(got.status, &got.bytes)),
            Err(Miss::Stopped(stopped)) => Err(stopped),
            // RFC 9309 takes one that leads on too often for one that is not there.
            Err(Miss::End(End::Redirect, _)) => Ok(Rules::None),
            Err(Miss::End(end, why)) => Ok(Rules::Unknown(end, format!("its robots.txt was not had: {why}"))),
        }
    }

    /// Asks one address, again after a pause where its server asks for one.
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
            if good || (what == What::Robots && !passes(head.status)) {
                let header = head.header("content-type").unwrap_or_default().to_owned();
                return Ok((Got { at: url.clone(), status: head.status, header, bytes }, None));
            }
            if !passes(head.status) {
                return Err((End::Status, format!("its server answered {}", head.status)).into());
            }
            let backoff = self.manners.backoff;
            let patient = head.pause.is_none_or(|pause| pause <= backoff.longest_asked);
            if tried == TRIES || !patient {
                let asked = head.pause.map(|pause| format!(", and asked for a pause of {pause:?}"));
                let why = format!("its server answered {}{}", head.status, asked.unwrap_or_default());
                return Err((End::Failed, why).into());
            }
            host.put_off(backoff.pause(tried, head.pause));
        }
        Err((End::Failed, "it was asked too often".into()).into())
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
                    // What came is enough.
                    (_, What::Robots) => None,
                };
                refused.replace(end);
                return Err(io::Error::other("no more is wanted"));
            }
            Ok(())
        };
        let headers =
            [("accept", "text/html,application/xhtml+xml,text/plain;q=0.9"), ("accept-encoding", "gzip")];
        // Packed robots.txt files are not worth a limit of their own.
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
            Err(NetError::Unreached(why)) => return Err((End::Failed, why).into()),
        };
        let packed =
            head.header("content-encoding").is_some_and(|name| name.trim().eq_ignore_ascii_case("gzip"));
        if packed && what == What::Page {
            bytes = unpacked(&bytes, largest)?;
        }
        Ok((head, bytes))
    }
}

/// Why the head of an answer says that it is not wanted.
fn unwanted(head: &Head, largest: usize) -> Option<(End, String)> {
    let kind = kind(head.header("content-type").unwrap_or_default());
    if !matches!(kind.as_str(), "text/html" | "application/xhtml+xml" | "text/plain") {
        let told = match kind.as_str() {
            "" => "it does not say of what type it is".into(),
            "application/pdf" => "it is a PDF, which is not read".into(),
            kind => format!("it is {kind}, and only HTML and plain text are read"),
        };
        return Some((End::Type, told));
    }
    let packing = head.header("content-encoding").unwrap_or_default().trim().to_ascii_lowercase();
    if !matches!(packing.as_str(), "" | "identity" | "gzip") {
        return Some((End::Type, format!("it is packed as {packing}, which was not asked for")));
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

/// What was packed with gzip, if it is not larger than a page may be.
fn unpacked(bytes: &[u8], largest: usize) -> Result<Vec<u8>, Miss> {
    let mut whole = Vec::new();
    let limit = largest as u64 + 1;
    match flate2::bufread::MultiGzDecoder::new(bytes).take(limit).read_to_end(&mut whole) {
        Err(error) => Err((End::Failed, format!("what came could not be unpacked ({error})")).into()),
        Ok(_) if whole.len() > largest => Err((End::Size, too_large(largest)).into()),
        Ok(_) => Ok(whole),
    }
}

/// Title and main text.
fn text_of(got: &Got) -> Result<(String, String), Miss> {
    let text = charset::decoded(&got.bytes, &got.header);
    let (title, text) = if kind(&got.header) == "text/plain" {
        (String::new(), text)
    } else {
        match main_text(&text) {
            Ok(page) => (page.title.unwrap_or_default(), page.text),
            Err(HtmlError::Tags(tags)) => {
                return Err((End::Size, format!("it has {tags} tags, more than a page of text has")).into());
            }
            Err(HtmlError::Rules(error)) => return Err((End::Empty, error.to_string()).into()),
            Err(HtmlError::Stumbled) => return Err((End::Empty, "its HTML cannot be read".into()).into()),
        }
    };
    match text.split_whitespace().next() {
        Some(_) => Ok((title, text)),
        None => Err((End::Empty, "there is no text in it".into()).into()),
    }
}

/// The time of day, to the second, as RFC 3339 writes it.
pub(super) fn now() -> String {
    let seconds = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |time| time.as_secs());
    let moment = OffsetDateTime::from_unix_timestamp(i64::try_from(seconds).unwrap_or(0));
    moment.ok().and_then(|moment| moment.format(&Rfc3339).ok()).unwrap_or_default()
}
