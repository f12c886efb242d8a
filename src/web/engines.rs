//! The search engines by their names: SearXNG, serper.dev, Brave Search, wikis, and lists of addresses.

use std::fmt;
use std::path::{Path, PathBuf};
use std::str::FromStr;
use std::time::Duration;

use serde_json::{Value, json};

use super::manners::{self, SearchError, WebError};
use super::search::{Engine, Refusal, Results, Search, Wiki, texts};
use crate::input::{InputError, lines};
use crate::net::{Ask, is_here};
use crate::work::Stop;

/// A search engine, as named on the command line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Provider {
    /// An instance of SearXNG.
    Searxng(String),
    /// serper.dev, with the key of `PARALLAX_SERPER_KEY`.
    Serper,
    /// Brave Search, with the key of `PARALLAX_BRAVE_KEY`.
    Brave,
    /// Wikipedia in a language.
    Wikipedia(String),
    /// Another wiki, by the address of the folder with its `api.php`.
    MediaWiki(String),
    /// A list of addresses.
    Urls(PathBuf),
}

/// A text is not the name of a search engine.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "expected searxng:URL (such as searxng:http://localhost:8888), serper, brave, wikipedia:LANGUAGE (such as wikipedia:en), \
     mediawiki:URL or urls:FILE"
)]
pub struct ProviderError;

impl FromStr for Provider {
    type Err = ProviderError;

    fn from_str(text: &str) -> Result<Self, ProviderError> {
        match text.split_once(':') {
            None if text == "serper" => Ok(Provider::Serper),
            None if text == "brave" => Ok(Provider::Brave),
            Some(("searxng", url)) if !url.is_empty() => Ok(Provider::Searxng(url.into())),
            Some(("wikipedia", language)) if is_language(language) => {
                Ok(Provider::Wikipedia(language.into()))
            }
            Some(("mediawiki", url)) if manners::parse(url).is_ok() => Ok(Provider::MediaWiki(url.into())),
            Some(("urls", file)) if !file.is_empty() => Ok(Provider::Urls(file.into())),
            _ => Err(ProviderError),
        }
    }
}

impl fmt::Display for Provider {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Provider::Searxng(url) => write!(f, "searxng:{url}"),
            Provider::Serper => f.write_str("serper"),
            Provider::Brave => f.write_str("brave"),
            Provider::Wikipedia(language) => write!(f, "wikipedia:{language}"),
            Provider::MediaWiki(url) => write!(f, "mediawiki:{url}"),
            Provider::Urls(file) => write!(f, "urls:{}", file.display()),
        }
    }
}

impl Default for Provider {
    /// The one that needs no key.
    fn default() -> Self {
        Provider::Wikipedia("en".into())
    }
}

/// Whether a text can be the language of a Wikipedia, which is part of its host's name: `en`, `simple`, `zh-min-nan`.
fn is_language(text: &str) -> bool {
    let parts = || text.split('-');
    (2..=20).contains(&text.len())
        && parts().all(|part| !part.is_empty() && part.bytes().all(|byte| byte.is_ascii_lowercase()))
}

impl Provider {
    /// Whether it refuses requests of programs that name no contact.
    pub fn wants_contact(&self) -> bool {
        matches!(self, Provider::Wikipedia(_) | Provider::MediaWiki(_))
    }

    /// The pause between requests to it, if one of `usual` is wanted: a server on this machine needs none.
    pub fn pause(&self, usual: Duration) -> Duration {
        match self {
            Provider::MediaWiki(url) if manners::parse(url).is_ok_and(|url| is_here(&url)) => Duration::ZERO,
            _ => usual,
        }
    }

    /// Opens the engine. It sends nothing yet. `contact` is the user's address, for wikis.
    ///
    /// # Errors
    /// Its address or its list is invalid, it has no key, or it has no contact and needs one.
    pub fn open(&self, contact: Option<&str>) -> Result<Box<dyn Search>, WebError> {
        Ok(match self {
            Provider::Searxng(url) => Box::new(Searxng::at(url)?),
            Provider::Serper => Box::new(Serper::at(SERPER, &key(SERPER_KEY)?)?),
            Provider::Brave => Box::new(Brave::at(BRAVE, &key(BRAVE_KEY)?)?),
            Provider::Wikipedia(language) => {
                let base = format!("https://{language}.wikipedia.org/w");
                Box::new(Wiki::at(&base, &self.to_string(), contact)?)
            }
            Provider::MediaWiki(url) => Box::new(Wiki::at(url, &self.to_string(), contact)?),
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
            Refusal { status: 403, .. } | Refusal { status: 200..=299, html: true, .. } => {
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::web::site::{Answer, Site, answer};

    const JSON: &str = "Content-Type: application/json\r\n";

    fn json(body: &str) -> Answer {
        Answer::Send(answer("200 OK", JSON, body.as_bytes()))
    }

    fn find(search: &dyn Search, wanted: usize) -> Result<Vec<String>, String> {
        search
            .find("Should zoos & parks be banned?", &[], wanted, Duration::ZERO, &Stop::never())
            .map_err(|error| error.to_string())
    }

    const ASKED: &str = "/search?q=Should+zoos+%26+parks+be+banned%3F&format=json&pageno=";

    fn searxng(answers: Vec<(usize, Answer)>) -> (Site, Searxng) {
        let answers = answers.into_iter().map(|(page, answer)| (format!("{ASKED}{page}"), vec![answer]));
        let site = Site::start(|_| answers.collect());
        let engine = Searxng::at(&format!("{}/", site.url)).unwrap().hasty();
        (site, engine)
    }

    #[test]
    fn searxng_is_asked_page_by_page_until_enough_or_nothing_new_is_found() {
        let one = r#"{"results":[{"url":"https://a.org/"},{"url":"https://b.org/"}],"unresponsive_engines":[["x","timeout"]]}"#;
        let two = r#"{"results":[{"url":"https://b.org/"},{"title":"no address"},{"url":"https://c.org/"}]}"#;
        let (site, engine) = searxng(vec![(1, json(one)), (2, json(two)), (3, json(two))]);
        assert_eq!(find(&engine, 50).unwrap(), ["https://a.org/", "https://b.org/", "https://c.org/"]);
        assert_eq!(site.requests().len(), 3);
        assert_eq!(find(&engine, 2).unwrap().len(), 2);
        assert_eq!(site.requests().len(), 4);
        assert_eq!(engine.name(), format!("searxng:{}", site.url));
    }

    #[test]
    fn each_way_in_which_searxng_fails_says_what_to_do() {
        let html = |status: &str| {
            Answer::Send(answer(status, "Content-Type: text/html\r\n", b"<!doctype html><html>"))
        };
        let silent = r#"{"results":[],"unresponsive_engines":[["google","CAPTCHA"],["bing","timeout"]]}"#;
        for (answer, words) in [
            (html("403 Forbidden"), &["settings.yml", "formats: [html, json]"][..]),
            (html("200 OK"), &["formats: [html, json]"]),
            (html("404 Not Found"), &["no SearXNG"]),
            (html("429 Too Many Requests"), &["limiter"]),
            (html("500 Error"), &["look into its log"]),
            (html("302 Found"), &["it redirects"]),
            (json("[1]"), &["is it a SearXNG"]),
            (json(r#"{"results":7}"#), &["without a list of `results`"]),
            (json("{\"results\""), &["not an answer of a SearXNG"]),
            (json(silent), &["google (CAPTCHA), bing (timeout)"]),
        ] {
            let (_site, engine) = searxng(vec![(1, answer)]);
            let error = find(&engine, 5).unwrap_err();
            for word in words {
                assert!(error.contains(word), "no `{word}` in {error}");
            }
        }
        let (_site, nothing) = searxng(vec![(1, json(r#"{"results":[]}"#))]);
        assert_eq!(find(&nothing, 5), Ok(Vec::new()));
        let nobody = Searxng::at("http://127.0.0.1:1").unwrap().hasty();
        assert!(find(&nobody, 5).unwrap_err().contains("could not be reached"));
        assert!(Searxng::at("localhost:8888").is_err());
    }

    #[test]
    fn serper_is_posted_the_question_with_the_key() {
        let pages = |_: &str| {
            let one = json(
                r#"{"organic":[{"link":"https://a.org/"},{"link":"https://b.org/"}],"ads":[{"link":"https://ad.org/"}]}"#,
            );
            vec![("/search".into(), vec![one, json(r#"{"organic":[]}"#)])]
        };
        let site = Site::start(pages);
        let engine = Serper::at(&site.url, "k-123").unwrap();
        assert_eq!(find(&engine, 50).unwrap(), ["https://a.org/", "https://b.org/"]);
        let requests = site.requests();
        assert!(
            requests[0].starts_with("POST /search ") && requests[0].contains("x-api-key: k-123"),
            "{}",
            requests[0]
        );
        assert!(
            requests[0].contains(r#""q":"Should zoos & parks be banned?""#)
                && requests[1].contains(r#""page":2"#),
            "{requests:?}"
        );
        assert!(!engine.name().contains("k-123"));
    }

    #[test]
    fn brave_is_asked_with_the_key_and_not_beyond_its_end() {
        let requests = |offset: usize| {
            format!("/res/v1/web/search?q=Should+zoos+%26+parks+be+banned%3F&count=20&offset={offset}")
        };
        let one = r#"{"query":{"more_results_available":true},"web":{"results":[{"url":"https://a.org/"}]}}"#;
        let two =
            r#"{"query":{"more_results_available":false},"web":{"results":[{"url":"https://b.org/"}]}}"#;
        let site = Site::start(|_| vec![(requests(0), vec![json(one)]), (requests(1), vec![json(two)])]);
        let engine = Brave::at(&site.url, "k-123").unwrap();
        assert_eq!(find(&engine, 50).unwrap(), ["https://a.org/", "https://b.org/"]);
        assert_eq!(site.requests().len(), 2);
        assert!(site.requests()[0].contains("x-subscription-token: k-123"));
    }

    #[test]
    fn a_key_that_is_not_taken_is_reported_without_showing_it() {
        let site = Site::start(|_| {
            vec![("/search".into(), vec![Answer::Send(answer("403 Forbidden", JSON, b"{}"))])]
        });
        let error = find(&Serper::at(&site.url, "k-123").unwrap(), 5).unwrap_err();
        assert!(error.contains("PARALLAX_SERPER_KEY") && !error.contains("k-123"), "{error}");
    }

    #[test]
    fn providers_are_named_with_what_they_need() {
        assert_eq!(
            "searxng:http://localhost:8888".parse(),
            Ok(Provider::Searxng("http://localhost:8888".into()))
        );
        assert_eq!("urls:list.txt".parse(), Ok(Provider::Urls("list.txt".into())));
        assert_eq!("brave".parse(), Ok(Provider::Brave));
        assert_eq!("wikipedia:zh-min-nan".parse(), Ok(Provider::Wikipedia("zh-min-nan".into())));
        assert_eq!(
            "mediawiki:http://localhost/w".parse(),
            Ok(Provider::MediaWiki("http://localhost/w".into()))
        );
        for wrong in [
            "",
            "searxng",
            "urls:",
            "google",
            "brave:k",
            "wikipedia",
            "wikipedia:",
            "wikipedia:en.evil/",
            "mediawiki:w",
        ] {
            assert!(wrong.parse::<Provider>().unwrap_err().to_string().contains("searxng:URL"), "{wrong}");
        }
    }
}
