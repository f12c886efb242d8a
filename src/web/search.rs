//! Searching for pages: what every search engine does, the requests to their servers, and wikis, which also give the texts of their pages.

use std::collections::HashSet;
use std::time::Duration;

use serde_json::Value;
use url::Url;

use super::fetch::now;
use super::manners::{self, PageUrlError, SearchError, WebError};
use super::store::{End, Page};
use crate::net::{Ask, Backoff, Fetcher, NetError, is_temporary, wait};
use crate::work::{Stop, Stopped};

/// The most bytes of an engine's answer.
const LARGEST: usize = 8 << 20;
/// The most pages of results that are requested.
const DEEPEST: usize = 10;
/// The most tries of a request.
const TRIES: u32 = 3;

/// Finds pages.
pub trait Search: Sync {
    /// The engine's name for the journal and the screen, without any key.
    fn name(&self) -> String;
    /// Whether a search costs nothing and sends nothing.
    fn is_free(&self) -> bool {
        false
    }
    /// Whether it also searches for the statements of a question.
    fn takes_statements(&self) -> bool {
        false
    }
    /// Whether the engine itself gives the texts of pages. It is then asked for one page after another.
    fn takes_turns(&self) -> bool {
        false
    }
    /// The text of a page that it found. Failures are results too; `Page::end` says how it ended.
    ///
    /// # Errors
    /// `stop` was set.
    fn text(&self, url: &str, _stop: &Stop) -> Result<Page, Stopped> {
        let reason = Some("this engine gives no texts".to_owned());
        Ok(Page { url: url.to_owned(), end: End::Failed, reason, ..Page::default() })
    }
    /// One page of results, counted from 0.
    ///
    /// # Errors
    /// The engine could not be reached, or refused.
    fn page(&self, question: &str, number: usize, stop: &Stop) -> Result<Results, WebError>;
    /// Addresses of pages, best first, each once. Requests one page of results after another, with a pause of `delay`, until enough
    /// addresses are found or a page has no new ones. Most engines search for the question alone.
    ///
    /// # Errors
    /// See [`Search::page`].
    fn find(
        &self,
        question: &str,
        _statements: &[String],
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

/// An engine's server.
pub(super) struct Engine {
    pub fetcher: Fetcher,
    /// Its address, without a slash at its end.
    pub base: String,
    /// Its name in messages.
    pub who: String,
    /// The pauses between tries.
    pub backoff: Backoff,
}

/// An answer that is not a success.
pub(super) struct Refusal {
    pub status: u16,
    /// Whether its body is HTML.
    pub html: bool,
    /// Whether a wiki asks to try again later.
    pub busy: bool,
}

impl Engine {
    pub fn at(base: &str) -> Result<Self, WebError> {
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
    pub fn url(&self, path: &str) -> Result<Url, WebError> {
        let wrong = |expected: PageUrlError| SearchError::Address {
            base: self.base.clone(),
            reason: format!("expected {expected}"),
        };
        Ok(manners::parse(&format!("{}{path}", self.base)).map_err(wrong)?)
    }

    /// Sends a request, and tries again if that may help. `advice` returns what to do about an answer that is not a success.
    pub fn ask(
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
                Ok(head) => {
                    let json = serde_json::from_slice::<Value>(&body).ok();
                    let busy = json.as_ref().is_some_and(is_busy);
                    match (status, json) {
                        (200..=299, Some(json)) if !busy => return Ok(json),
                        _ => {
                            let html = body.trim_ascii_start().starts_with(b"<");
                            let advice = advice(&Refusal { status, html, busy });
                            let refused = SearchError::Refused { who: self.who.clone(), status, advice };
                            if !is_temporary(status) && !busy {
                                return Err(refused.into());
                            }
                            (refused, head.pause)
                        }
                    }
                }
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
pub(super) fn texts(list: &Value, key: &str) -> Vec<String> {
    let each = list.as_array().into_iter().flatten();
    each.filter_map(|one| Some(one.get(key)?.as_str()?.to_owned())).collect()
}

/// Whether a wiki answered that its servers lag behind (`maxlag`), or that requests come too fast. It says so with status 200.
fn is_busy(answer: &Value) -> bool {
    let code = answer.pointer("/error/code").and_then(Value::as_str);
    matches!(code, Some("maxlag" | "ratelimited" | "readonly"))
}

/// The most results of a wiki on one page.
const AT_MOST: usize = 50;
/// The most bytes of a search in a wiki.
const LONGEST: usize = 300;
/// The lag in seconds above which a wiki's servers refuse. <https://www.mediawiki.org/wiki/Manual:Maxlag_parameter> asks for 5.
const MAXLAG: &str = "5";

/// A wiki that runs MediaWiki with the extension TextExtracts, as every Wikipedia does. It is searched, and its pages are read, through its
/// interface for programs, one request at a time.
pub struct Wiki {
    engine: Engine,
    name: String,
    /// This program, with the address of its user.
    agent: String,
}

impl Wiki {
    /// The wiki whose `api.php` stands below an address. Its servers can reach the user at `contact`.
    ///
    /// # Errors
    /// The address cannot be used, or there is no contact.
    pub fn at(base: &str, name: &str, contact: Option<&str>) -> Result<Self, WebError> {
        let engine = Engine { who: name.into(), ..Engine::at(base)? };
        let contact = contact.filter(|contact| is_contact(contact)).ok_or(SearchError::NoContact)?;
        let agent = format!("parallax/{} ({contact})", env!("CARGO_PKG_VERSION"));
        Ok(Wiki { engine, name: name.into(), agent })
    }

    #[cfg(test)]
    pub(crate) fn hasty(mut self) -> Self {
        self.engine.backoff.base = Duration::ZERO;
        self
    }

    /// Asks the interface.
    fn query(&self, fields: &[(&str, &str)], stop: &Stop) -> Result<Value, WebError> {
        let mut url = self.engine.url("/api.php")?;
        let always = [("action", "query"), ("format", "json"), ("formatversion", "2"), ("maxlag", MAXLAG)];
        url.query_pairs_mut().extend_pairs(always.iter().chain(fields));
        let headers = [("user-agent", self.agent.as_str()), ("accept", "application/json")];
        let ask = Ask { headers: &headers, ..Ask::of(url.as_str()) };
        let answer = self.engine.ask(&ask, stop, &|refusal| {
            match refusal {
                Refusal { busy: true, .. } | Refusal { status: 429, .. } => {
                    "its servers are busy; try again later"
                }
                Refusal { status: 403, .. } => {
                    "it refuses this program; check the contact in the configuration"
                }
                Refusal { status: 500..=599, .. } => "it fails; try again later",
                _ => "there is no interface of MediaWiki; check the language or the address",
            }
            .into()
        })?;
        match answer.pointer("/error/info").and_then(Value::as_str) {
            Some(info) => {
                let advice = format!("it said `{info}`");
                Err(SearchError::Refused { who: self.name.clone(), status: 200, advice }.into())
            }
            None => Ok(answer),
        }
    }

    /// The revision that a page has now, with its text.
    fn read(&self, url: &str, stop: &Stop) -> Result<Page, WebError> {
        let empty = |end, reason: &str| Page { end, reason: Some(reason.into()), ..Page::default() };
        let Some((_, id)) = url.rsplit_once("curid=") else {
            return Ok(empty(End::Address, "it is no page of this wiki"));
        };
        let fields = [
            ("prop", "extracts|revisions"),
            ("pageids", id),
            ("explaintext", "1"),
            ("exsectionformat", "plain"),
            ("rvprop", "ids|timestamp"),
        ];
        let answer = self.query(&fields, stop)?;
        let page = answer.pointer("/query/pages/0").unwrap_or(&Value::Null);
        let text = |name: &str| page.get(name).and_then(Value::as_str).unwrap_or_default().to_owned();
        let revision = page.pointer("/revisions/0/revid").and_then(Value::as_u64);
        let (Some(revision), Some(extract)) = (revision, page.get("extract")) else {
            return Ok(empty(End::Status, "the wiki has no text of this page; does it have TextExtracts?"));
        };
        if extract.as_str().is_none_or(|text| text.trim().is_empty()) {
            return Ok(empty(End::Empty, "it has no text"));
        }
        Ok(Page {
            at: Some(format!("{}/index.php?oldid={revision}", self.engine.base)),
            title: text("title"),
            text: text("extract"),
            revision: Some(revision),
            revised: page.pointer("/revisions/0/timestamp").and_then(Value::as_str).map(str::to_owned),
            ..Page::default()
        })
    }
}

impl Search for Wiki {
    fn name(&self) -> String {
        self.name.clone()
    }

    fn takes_statements(&self) -> bool {
        true
    }

    fn takes_turns(&self) -> bool {
        true
    }

    fn text(&self, url: &str, stop: &Stop) -> Result<Page, Stopped> {
        let page = match self.read(url, stop) {
            Ok(page) => page,
            Err(WebError::Stopped(stopped)) => return Err(stopped),
            Err(error) => Page { end: End::Failed, reason: Some(error.to_string()), ..Page::default() },
        };
        Ok(Page { url: url.to_owned(), fetched: now(), ..page })
    }

    fn page(&self, words: &str, number: usize, stop: &Stop) -> Result<Results, WebError> {
        let (count, offset) = (AT_MOST.to_string(), (number * AT_MOST).to_string());
        let fields = [
            ("list", "search"),
            ("srsearch", words),
            ("srnamespace", "0"),
            ("srprop", ""),
            ("srlimit", &count),
            ("sroffset", &offset),
        ];
        let answer = self.query(&fields, stop)?;
        let found = answer.pointer("/query/search").and_then(Value::as_array);
        let ids = found.into_iter().flatten().filter_map(|one| one.get("pageid")?.as_u64());
        let urls = ids.map(|id| format!("{}/index.php?curid={id}", self.engine.base)).collect();
        Ok(Results { urls, last: answer.get("continue").is_none() })
    }

    /// Searches for the question and for every statement, and takes their results in turn.
    fn find(
        &self,
        question: &str,
        statements: &[String],
        wanted: usize,
        delay: Duration,
        stop: &Stop,
    ) -> Result<Vec<String>, WebError> {
        let mut first = true;
        let mut search = |words: &str, number| {
            if !std::mem::take(&mut first) {
                wait(&self.name, delay, stop)?;
            }
            self.page(words, number, stop)
        };
        let mut texts: Vec<(String, bool)> = Vec::new();
        for text in std::iter::once(question).chain(statements.iter().map(String::as_str)) {
            let words = searchable(text, " ");
            if !words.is_empty() && !texts.iter().any(|(known, _)| *known == words) {
                texts.push((words, false));
            }
        }
        let (mut found, mut seen) = (Vec::new(), HashSet::new());
        for number in 0..DEEPEST {
            let mut lists = Vec::new();
            for (words, ended) in texts.iter_mut().filter(|(_, ended)| !*ended) {
                let Results { urls, last } = search(words, number)?;
                *ended = last;
                lists.push(urls);
            }
            let longest = lists.iter().map(Vec::len).max().unwrap_or(0);
            let in_turn = (0..longest).flat_map(|rank| lists.iter().filter_map(move |list| list.get(rank)));
            found.extend(in_turn.filter(|url| seen.insert((*url).clone())).cloned());
            if found.len() >= wanted || texts.iter().all(|(_, ended)| *ended) {
                break;
            }
        }
        if found.is_empty() {
            // A wiki wants every word of a search on the page; few pages hold all words of a sentence.
            let any = searchable(question, " OR ");
            if !any.is_empty() {
                found = search(&any, 0)?.urls;
            }
        }
        found.truncate(wanted);
        Ok(found)
    }
}

/// Whether the servers of a wiki could reach somebody there: an address of mail, or of a page.
pub fn is_contact(text: &str) -> bool {
    let plain = text.len() <= 200 && text.chars().all(|c| c.is_ascii_graphic() && !"()<>".contains(c));
    let mail = text.split_once('@').is_some_and(|(name, host)| !name.is_empty() && host.contains('.'));
    plain && (mail || manners::parse(text).is_ok())
}

/// The words of a text without signs that mean something in a wiki's search, such as `-`, `"` and `intitle:`. Words joined by anything but a
/// space are those that carry a meaning: of more than three letters.
fn searchable(text: &str, joined: &str) -> String {
    let words = text.split(|c: char| !c.is_alphanumeric() && !matches!(c, '\'' | '’'));
    let wanted = words.filter(|word| !word.is_empty() && (joined == " " || word.chars().count() > 3));
    let mut all = String::new();
    for word in wanted {
        if all.len() + joined.len() + word.len() > LONGEST {
            break;
        }
        if !all.is_empty() {
            all += joined;
        }
        all += word;
    }
    all
}
