//! Search engines on loopback: the requests sent to them, and the meaning of their answers.

use std::time::Duration;

use super::search::{Brave, Provider, Search, Searxng, Serper};
use super::site::{Answer, Site, answer};
use crate::work::Stop;

const JSON: &str = "Content-Type: application/json\r\n";

fn json(body: &str) -> Answer {
    Answer::Send(answer("200 OK", JSON, body.as_bytes()))
}

fn find(search: &dyn Search, wanted: usize) -> Result<Vec<String>, String> {
    search
        .find("Should zoos & parks be banned?", wanted, Duration::ZERO, &Stop::never())
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
    let html =
        |status: &str| Answer::Send(answer(status, "Content-Type: text/html\r\n", b"<!doctype html><html>"));
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
    let two = r#"{"query":{"more_results_available":false},"web":{"results":[{"url":"https://b.org/"}]}}"#;
    let site = Site::start(|_| vec![(requests(0), vec![json(one)]), (requests(1), vec![json(two)])]);
    let engine = Brave::at(&site.url, "k-123").unwrap();
    assert_eq!(find(&engine, 50).unwrap(), ["https://a.org/", "https://b.org/"]);
    assert_eq!(site.requests().len(), 2);
    assert!(site.requests()[0].contains("x-subscription-token: k-123"));
}

#[test]
fn a_key_that_is_not_taken_is_reported_without_showing_it() {
    let site =
        Site::start(|_| vec![("/search".into(), vec![Answer::Send(answer("403 Forbidden", JSON, b"{}"))])]);
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
    for wrong in ["", "searxng", "urls:", "google", "brave:k"] {
        assert!(wrong.parse::<Provider>().unwrap_err().to_string().contains("searxng:URL"), "{wrong}");
    }
}
