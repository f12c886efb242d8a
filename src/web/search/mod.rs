//! Search engines: a question to addresses of pages, one file an engine.

mod brave;
mod searxng;
mod serper;
mod urls;

use std::collections::HashSet;
use std::path::PathBuf;
use std::str::FromStr;
use std::time::Duration;

pub use brave::Brave;
pub use searxng::Searxng;
use serde_json::Value;
pub use serper::Serper;
pub use urls::Urls;

use super::WebError;
use crate::net::retry::{Backoff, passes, wait};
use crate::net::{Ask, Fetcher, NetError};
use crate::work::Stop;

/// Bytes of an engine's answer.
const LARGEST: usize = 8 << 20;
/// Pages of results that are asked for.
const DEEPEST: usize = 10;
/// How often an engine is asked for something that may come later.
const TRIES: u32 = 3;

/// Anything that finds pages.
pub trait Search {
    /// Who is asked, as it is kept and shown; holds no key.
    fn name(&self) -> String;
    /// Whether asking again costs nothing and asks nobody.
    fn is_free(&self) -> bool {
        false
    }
    /// Addresses of pages, best first; the engine is given `delay` between two requests.
    ///
    /// # Errors
    /// It could not be asked, or refused.
    fn find(
        &self,
        question: &str,
        wanted: usize,
        delay: Duration,
        stop: &Stop,
    ) -> Result<Vec<String>, WebError>;
}

/// An engine as the command line names it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Provider {
    /// An instance of SearXNG.
    Searxng(String),
    /// serper.dev, with the key of `PARALLAX_SERPER_KEY`.
    Serper,
    /// Brave Search, with the key of `PARALLAX_BRAVE_KEY`.
    Brave,
    /// A list of addresses.
    Urls(PathBuf),
}

impl FromStr for Provider {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match text.split_once(':') {
            None if text == "serper" => Ok(Provider::Serper),
            None if text == "brave" => Ok(Provider::Brave),
            Some(("searxng", url)) if !url.is_empty() => Ok(Provider::Searxng(url.into())),
            Some(("urls", file)) if !file.is_empty() => Ok(Provider::Urls(file.into())),
            _ => Err(
                "expected searxng:URL (such as searxng:http://localhost:8888), serper, brave or urls:FILE"
                    .into(),
            ),
        }
    }
}

impl Provider {
    /// Makes it ready. Nothing is asked yet.
    ///
    /// # Errors
    /// Its address is none, its list is not right, or it lacks a key.
    pub fn open(&self) -> Result<Box<dyn Search>, WebError> {
        Ok(match self {
            Provider::Searxng(url) => Box::new(Searxng::at(url)?),
            Provider::Serper => Box::new(Serper::at(serper::PUBLIC, &key("PARALLAX_SERPER_KEY")?)?),
            Provider::Brave => Box::new(Brave::at(brave::PUBLIC, &key("PARALLAX_BRAVE_KEY")?)?),
            Provider::Urls(file) => Box::new(Urls::read(file)?),
        })
    }
}

fn key(name: &str) -> Result<String, WebError> {
    let key = std::env::var(name).unwrap_or_default().trim().to_owned();
    if key.is_empty() || key.contains(|c: char| !c.is_ascii_graphic()) {
        return Err(WebError::Search(format!("this engine asks for a key; put it into {name}")));
    }
    Ok(key)
}

/// An engine's server.
struct Engine {
    fetcher: Fetcher,
    /// Its address, without a slash at its end.
    base: String,
    /// The pauses between tries.
    backoff: Backoff,
}

/// What an engine answered, if it is no success.
struct Refusal {
    status: u16,
    /// What its body is, when it is not JSON.
    html: bool,
}

impl Engine {
    fn at(base: &str) -> Result<Self, WebError> {
        let base = base.trim_end_matches('/').to_owned();
        let wrong =
            |why: String| WebError::Search(format!("the engine's address {base} cannot be used: {why}"));
        let url = super::address::parse(&base).map_err(|expected| wrong(format!("expected {expected}")))?;
        if url.query().is_some() {
            return Err(wrong("it holds a ?".into()));
        }
        let fetcher = Fetcher::new(&base).map_err(wrong)?;
        Ok(Engine { fetcher, base, backoff: Backoff::default() })
    }

    /// Asks, patiently; `refused` puts what is no success into words.
    fn ask(
        &self,
        ask: &Ask<'_>,
        stop: &Stop,
        refused: &dyn Fn(&Refusal) -> String,
    ) -> Result<Value, WebError> {
        for tried in 1.. {
            let (mut body, mut status) = (Vec::new(), 0);
            let answer = self.fetcher.get(
                ask,
                stop,
                &mut |head| {
                    status = head.status;
                    Ok(true)
                },
                &mut |bytes| {
                    if body.len() + bytes.len() > LARGEST {
                        return Err(std::io::Error::other("the engine's answer does not end"));
                    }
                    body.extend_from_slice(bytes);
                    Ok(())
                },
            );
            let (why, pause) = match answer {
                Ok(head) => match (status, serde_json::from_slice::<Value>(&body)) {
                    (200..=299, Ok(json)) => return Ok(json),
                    _ => {
                        let html = body.trim_ascii_start().starts_with(b"<");
                        let why = refused(&Refusal { status, html });
                        if !passes(status) {
                            return Err(WebError::Search(why));
                        }
                        (why, head.pause)
                    }
                },
                Err(NetError::Stopped(stopped)) => return Err(stopped.into()),
                Err(error) => {
                    let why = format!(
                        "{} could not be asked ({error}); check its address and the connection",
                        self.base
                    );
                    (why, None)
                }
            };
            if tried >= TRIES || pause.is_some_and(|pause| pause > self.backoff.longest_asked) {
                return Err(WebError::Search(why));
            }
            wait(self.backoff.pause(tried, pause), stop)?;
        }
        Err(WebError::Search(format!("{} could not be asked", self.base)))
    }
}

/// Asks for one page of results after another until enough pages are found or nothing new comes.
fn paged(
    wanted: usize,
    delay: Duration,
    stop: &Stop,
    mut page: impl FnMut(usize) -> Result<Vec<String>, WebError>,
) -> Result<Vec<String>, WebError> {
    let (mut found, mut seen) = (Vec::new(), HashSet::new());
    for number in 0..DEEPEST {
        if number > 0 {
            wait(delay, stop)?;
        }
        let before = found.len();
        found.extend(page(number)?.into_iter().filter(|url| seen.insert(url.clone())));
        if found.len() == before || found.len() >= wanted {
            break;
        }
    }
    found.truncate(wanted);
    Ok(found)
}

/// The texts under `key` of the objects in a list; none where there is no list.
fn texts(list: &Value, key: &str) -> Vec<String> {
    let each = list.as_array().into_iter().flatten();
    each.filter_map(|one| Some(one.get(key)?.as_str()?.to_owned())).collect()
}

/// What an engine that asks for a key refuses with.
fn keyed(who: &str, variable: &str, refusal: &Refusal) -> String {
    let advice = match refusal.status {
        401 | 403 | 422 => format!("it does not take the key in {variable}; set it anew"),
        402 | 429 => "too much was asked of it, or nothing is left to your key; try again later".into(),
        500..=599 => "it fails; try again later".into(),
        200..=299 => "what it sent is not JSON; try again later".into(),
        _ => "it was not expected to; try again later".into(),
    };
    format!("{who} answered {}: {advice}", refusal.status)
}
