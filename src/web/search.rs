//! Search engines, which find addresses of pages for a question.

use std::collections::HashSet;
use std::path::{Path, PathBuf};
use std::str::FromStr;
use std::time::Duration;

use serde_json::{Value, json};
use url::Url;

use super::manners::{self, PageUrlError, SearchError, WebError};
use crate::input::{InputError, lines};
use crate::net::{Ask, Backoff, Fetcher, NetError, is_temporary, wait};
use crate::work::Stop;

/// The most bytes of an engine's answer.
const LARGEST: usize = 8 << 20;
/// The most pages of results that are requested.
const DEEPEST: usize = 10;
/// The most tries of a request.
const TRIES: u32 = 3;

/// Finds pages.
pub trait Search {
    /// The engine's name for the journal and the screen, without any key.
    fn name(&self) -> String;
    /// Whether a search costs nothing and sends nothing.
    fn is_free(&self) -> bool {
        false
    }
    /// One page of results, counted from 0.
    ///
    /// # Errors
    /// The engine could not be reached, or refused.
    fn page(&self, question: &str, number: usize, stop: &Stop) -> Result<Results, WebError>;
    /// Addresses of pages, best first, each once. Requests one page of results after another, with a pause of `delay`, until enough
    /// addresses are found or a page has no new ones.
    ///
    /// # Errors
    /// See [`Search::page`].
    fn find(
        &self,
        question: &str,
        wanted: usize,
        delay: Duration,
        stop: &Stop,
    ) -> Result<Vec<String>, WebError> {
        let (mut found, mut seen) = (Vec::new(), HashSet::new());
        for number in 0..DEEPEST {
            if number > 0 {
                wait("the search engine", delay, stop)?;
            }
            let before = found.len();
            let Results { urls, last } = self.page(question, number, stop)?;
            found.extend(urls.into_iter().filter(|url| seen.insert(url.clone())));
            if last || found.len() == before || found.len() >= wanted {
                break;
            }
        }
        found.truncate(wanted);
        Ok(found)
    }
}

/// One page of results.
pub struct Results {
    /// Addresses of pages, best first.
    pub urls: Vec<String>,
    /// Whether this is known to be the last page.
    pub last: bool,
}

/// A search engine, as named on the command line.
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

/// A text is not the name of a search engine.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("expected searxng:URL (such as searxng:http://localhost:8888), serper, brave or urls:FILE")]
pub struct ProviderError;

impl FromStr for Provider {
    type Err = ProviderError;

    fn from_str(text: &str) -> Result<Self, ProviderError> {
        match text.split_once(':') {
            None if text == "serper" => Ok(Provider::Serper),
            None if text == "brave" => Ok(Provider::Brave),
            Some(("searxng", url)) if !url.is_empty() => Ok(Provider::Searxng(url.into())),
            Some(("urls", file)) if !file.is_empty() => Ok(Provider::Urls(file.into())),
            _ => Err(ProviderError),
        }
    }
}

impl Provider {
    /// Opens the engine. It sends nothing yet.
    ///
    /// # Errors
    /// Its address or its list is invalid, or it has no key.
    pub fn open(&self) -> Result<Box<dyn Search>, WebError> {
        Ok(match self {
            Provider::Searxng(url) => Box::new(Searxng::at(url)?),
            Provider::Serper => Box::new(Serper::at(SERPER, &key(SERPER_KEY)?)?),
            Provider::Brave => Box::new(Brave::at(BRAVE, &key(BRAVE_KEY)?)?),
            Provider::Urls(file) => Box::new(Urls::read(file)?),
        })
    }
}

fn key(name: &'static str) -> Result<String, WebError> {
    let key = std::env::var(name).unwrap_or_default().trim().to_owned();
    if key.is_empty() || key.contains(|c: char| !c.is_ascii_graphic()) {
        return Err(SearchError::NoKey(name).into());
    }
    Ok(key)
}

/// An engine's server.
struct Engine {
    fetcher: Fetcher,
    /// Its address, without a slash at its end.
    base: String,
    /// Its name in messages.
    who: String,
    /// The pauses between tries.
    backoff: Backoff,
}

/// An answer that is not a success.
struct Refusal {
    status: u16,
    /// Whether its body is HTML.
    html: bool,
}

impl Engine {
    fn at(base: &str) -> Result<Self, WebError> {
        let base = base.trim_end_matches('/').to_owned();
        let wrong = |reason: String| SearchError::Address { base: base.clone(), reason };
        let url = manners::parse(&base).map_err(|expected| wrong(format!("expected {expected}")))?;
        if url.query().is_some() {
            return Err(wrong("it contains a ?".into()).into());
        }
        let fetcher = Fetcher::new(&base).map_err(|error| wrong(error.to_string()))?;
        Ok(Engine { fetcher, who: base.clone(), base, backoff: Backoff::default() })
    }

    /// The address of a page below it.
    fn url(&self, path: &str) -> Result<Url, WebError> {
        let wrong = |expected: PageUrlError| SearchError::Address {
            base: self.base.clone(),
            reason: format!("expected {expected}"),
        };
        Ok(manners::parse(&format!("{}{path}", self.base)).map_err(wrong)?)
    }

    /// Sends a request, and tries again if that may help. `advice` returns what to do about an answer that is not a success.
    fn ask(
        &self,
        ask: &Ask<'_>,
        stop: &Stop,
        advice: &dyn Fn(&Refusal) -> String,
    ) -> Result<Value, WebError> {
        let mut tried = 0;
        loop {
            tried += 1;
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
                        let advice = advice(&Refusal { status, html });
                        let refused = SearchError::Refused { who: self.who.clone(), status, advice };
                        if !is_temporary(status) {
                            return Err(refused.into());
                        }
                        (refused, head.pause)
                    }
                },
                Err(NetError::Stopped(stopped)) => return Err(stopped.into()),
                Err(error) => (SearchError::Unreached { base: self.base.clone(), error }, None),
            };
            if tried >= TRIES || self.backoff.is_too_long(pause) {
                return Err(why.into());
            }
            wait(&self.who, self.backoff.pause(tried, pause), stop)?;
        }
    }
}

/// The texts under `key` of the objects in a list; empty if there is no list.
fn texts(list: &Value, key: &str) -> Vec<String> {
    let each = list.as_array().into_iter().flatten();
    each.filter_map(|one| Some(one.get(key)?.as_str()?.to_owned())).collect()
}

/// The environment variable with the key of Brave Search.
const BRAVE_KEY: &str = "PARALLAX_BRAVE_KEY";
/// The address of Brave Search.
const BRAVE: &str = "https://api.search.brave.com";
/// The most results on one page.
const COUNT: usize = 20;

/// An engine that needs a key.
struct Keyed {
    engine: Engine,
    key: String,
    /// The environment variable with the key.
    variable: &'static str,
}

impl Keyed {
    fn at(base: &str, key: &str, who: &str, variable: &'static str) -> Result<Self, WebError> {
        Ok(Keyed { engine: Engine { who: who.into(), ..Engine::at(base)? }, key: key.into(), variable })
    }

    fn ask(&self, ask: &Ask<'_>, stop: &Stop) -> Result<Value, WebError> {
        self.engine.ask(ask, stop, &|refusal| self.advice(refusal))
    }

    fn advice(&self, refusal: &Refusal) -> String {
        let variable = self.variable;
        match refusal.status {
            401 | 403 | 422 => format!("it does not accept the key in {variable}; set it again"),
            402 | 429 => {
                "there were too many requests, or the quota of your key is used up; try again later".into()
            }
            500..=599 => "it fails; try again later".into(),
            200..=299 => "its answer is not JSON; try again later".into(),
            _ => "this answer was not expected; try again later".into(),
        }
    }
}

/// Brave Search.
pub struct Brave(Keyed);

impl Brave {
    /// The engine at an address.
    ///
    /// # Errors
    /// The address cannot be used.
    pub fn at(base: &str, key: &str) -> Result<Self, WebError> {
        Ok(Brave(Keyed::at(base, key, "Brave Search", BRAVE_KEY)?))
    }
}

impl Search for Brave {
    fn name(&self) -> String {
        "brave".into()
    }

    fn page(&self, question: &str, number: usize, stop: &Stop) -> Result<Results, WebError> {
        let headers = [("x-subscription-token", self.0.key.as_str()), ("accept", "application/json")];
        let mut url = self.0.engine.url("/res/v1/web/search")?;
        url.query_pairs_mut()
            .append_pair("q", question)
            .append_pair("count", &COUNT.to_string())
            .append_pair("offset", &number.to_string());
        let answer = self.0.ask(&Ask { headers: &headers, ..Ask::of(url.as_str()) }, stop)?;
        let last = answer.pointer("/query/more_results_available").and_then(Value::as_bool) == Some(false);
        Ok(Results { urls: texts(answer.pointer("/web/results").unwrap_or(&Value::Null), "url"), last })
    }
}

/// An instance of SearXNG.
pub struct Searxng(Engine);

impl Searxng {
    /// The instance at an address.
    ///
    /// # Errors
    /// The address cannot be used.
    pub fn at(base: &str) -> Result<Self, WebError> {
        Ok(Searxng(Engine::at(base.trim_end_matches('/').trim_end_matches("/search"))?))
    }

    #[cfg(test)]
    pub(crate) fn hasty(mut self) -> Self {
        self.0.backoff.base = Duration::ZERO;
        self
    }

    fn advice(&self, refusal: &Refusal) -> String {
        match refusal {
            // The JSON format is switched off, as it is by default.
            Refusal { status: 403, .. } | Refusal { status: 200..=299, html: true } => {
                "it does not return JSON; switch that on in its settings.yml (search: formats: [html, json]) and restart it"
            }
            Refusal { status: 429, .. } => {
                "it takes you for a robot; switch its limiter off in settings.yml (server: limiter: false), or try again later"
            }
            Refusal { status: 404, .. } => {
                "there is no SearXNG; check the address, such as http://localhost:8888"
            }
            Refusal { status: 300..=399, .. } => "it redirects; name the address that it redirects to",
            Refusal { status: 500..=599, .. } => "it fails; look into its log",
            _ => "this is not an answer of a SearXNG; check the address",
        }
        .into()
    }
}

/// Lists engines with their reasons, such as `google (timeout), bing (CAPTCHA)`.
fn engines(list: &Value) -> String {
    let each = list.as_array().into_iter().flatten().filter_map(|one| {
        let name = one.get(0)?.as_str()?;
        Some(format!("{name} ({})", one.get(1).and_then(Value::as_str).unwrap_or("no reason")))
    });
    each.collect::<Vec<_>>().join(", ")
}

impl Search for Searxng {
    fn name(&self) -> String {
        format!("searxng:{}", self.0.base)
    }

    fn page(&self, question: &str, number: usize, stop: &Stop) -> Result<Results, WebError> {
        let base = &self.0.base;
        let mut url = self.0.url("/search")?;
        url.query_pairs_mut()
            .append_pair("q", question)
            .append_pair("format", "json")
            .append_pair("pageno", &(number + 1).to_string());
        let ask = Ask { headers: &[("accept", "application/json")], ..Ask::of(url.as_str()) };
        let answer = self.0.ask(&ask, stop, &|refusal| self.advice(refusal))?;
        let Some(results) = answer.get("results").filter(|results| results.is_array()) else {
            return Err(SearchError::NoResults { base: base.clone() }.into());
        };
        let urls = texts(results, "url");
        let silent = answer.get("unresponsive_engines").map(engines).unwrap_or_default();
        if urls.is_empty() && number == 0 && !silent.is_empty() {
            return Err(SearchError::Silent { base: base.clone(), engines: silent }.into());
        }
        Ok(Results { urls, last: false })
    }
}

/// The environment variable with the key of serper.dev.
const SERPER_KEY: &str = "PARALLAX_SERPER_KEY";
/// The address of serper.dev.
const SERPER: &str = "https://google.serper.dev";

/// serper.dev, which searches Google.
pub struct Serper(Keyed);

impl Serper {
    /// The engine at an address.
    ///
    /// # Errors
    /// The address cannot be used.
    pub fn at(base: &str, key: &str) -> Result<Self, WebError> {
        Ok(Serper(Keyed::at(base, key, "serper.dev", SERPER_KEY)?))
    }
}

impl Search for Serper {
    fn name(&self) -> String {
        "serper".into()
    }

    fn page(&self, question: &str, number: usize, stop: &Stop) -> Result<Results, WebError> {
        let url = self.0.engine.url("/search")?;
        let headers = [("x-api-key", self.0.key.as_str())];
        let post = Some(json!({ "q": question, "page": number + 1 }).to_string());
        let answer = self.0.ask(&Ask { headers: &headers, post, ..Ask::of(url.as_str()) }, stop)?;
        Ok(Results { urls: texts(answer.get("organic").unwrap_or(&Value::Null), "link"), last: false })
    }
}

/// A list of addresses.
pub struct Urls {
    file: PathBuf,
    urls: Vec<String>,
}

impl Urls {
    /// Reads a list.
    ///
    /// # Errors
    /// A line is not an address of a page, or the list is empty.
    pub fn read(file: &Path) -> Result<Self, InputError> {
        let mut urls = Vec::new();
        lines(file, |_, line| {
            let line = line.trim();
            if !line.starts_with('#') {
                urls.push(manners::parse(line).map_err(|error| error.to_string())?.into());
            }
            Ok(())
        })?;
        if urls.is_empty() {
            let advice = "expected a line with an address such as https://…";
            return Err(InputError::Empty { path: file.into(), what: "the list of addresses", advice });
        }
        Ok(Urls { file: file.into(), urls })
    }
}

impl Search for Urls {
    fn name(&self) -> String {
        format!("urls:{}", self.file.display())
    }

    fn is_free(&self) -> bool {
        true
    }

    fn page(&self, _: &str, _: usize, _: &Stop) -> Result<Results, WebError> {
        Ok(Results { urls: self.urls.clone(), last: true })
    }
}
