//! A corpus from the web, as a whole program against sites on loopback: a search to its end, kills, refusals.

use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};

use serde_json::Value;

#[path = "../../src/web/site.rs"]
mod site;

use site::{Answer, Site, answer, article, page, words};

use crate::stage::QUESTION;

fn command(files: &Path, args: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_parallax"));
    command.args(args).arg("--data-dir").arg(files.join("data")).current_dir(files).stdin(Stdio::null());
    for name in ["PARALLAX_CORPUS", "PARALLAX_QUESTIONS", "PARALLAX_SERPER_KEY", "PARALLAX_BRAVE_KEY"] {
        command.env_remove(name);
    }
    command
}

fn run(files: &Path, args: &[&str]) -> (Option<i32>, String, String) {
    let printed = command(files, args).output().unwrap();
    (
        printed.status.code(),
        String::from_utf8(printed.stdout).unwrap(),
        String::from_utf8(printed.stderr).unwrap(),
    )
}

fn text(path: &str, text: &str) -> (String, Vec<Answer>) {
    page(path, "text/plain", text.as_bytes())
}

/// A page that fails at first and succeeds later.
fn late() -> (String, Vec<Answer>) {
    let there = Answer::Send(answer("200 OK", "Content-Type: text/plain\r\n", b"there at last"));
    ("/late".into(), vec![Answer::Hang, there])
}

#[test]
fn a_question_becomes_a_corpus_that_lanes_can_search() {
    let files = tempfile::tempdir().unwrap();
    let home = Site::start(|_| {
        let body = article("On cages", &format!("Zoos should be banned. {}", words("cage", 120)));
        vec![page("/cages", "text/html", body.as_bytes())]
    });
    let other = Site::start(|_| {
        vec![text("/robots.txt", "User-agent: parallax\nDisallow: /"), text("/no", "secret")]
    });
    let engine = Site::start(|_| {
        let found = format!(
            r#"{{"results":[{{"url":"{0}/cages"}},{{"url":"{1}/no"}},{{"url":"{0}/cages#top"}}]}}"#,
            home.url, other.url
        );
        let json = |body: &str| {
            Answer::Send(answer("200 OK", "Content-Type: application/json\r\n", body.as_bytes()))
        };
        let path = |number: usize| format!("/search?q=Should+zoos+be+banned%3F&format=json&pageno={number}");
        vec![(path(1), vec![json(&found)]), (path(2), vec![json(r#"{"results":[]}"#)])]
    });
    let provider = format!("searxng:{}", engine.url);
    let make = ["corpus", "from-web", QUESTION, "--provider", &provider, "--name", "zoos", "--allow-private"];
    let (code, out, err) = run(files.path(), &make);
    assert_eq!(code, Some(0), "{err}");
    for line in
        ["1 read", "1 forbidden by robots.txt", "passages    2", "the web changes", "parallax --corpus"]
    {
        assert!(out.contains(line), "no `{line}` in\n{out}");
    }
    assert!(other.paths().is_empty());
    let corpus = files.path().join("data/web/zoos/corpus.jsonl");
    let (code, out, err) = run(
        files.path(),
        &["search", QUESTION, "--corpus", corpus.to_str().unwrap(), "--lanes", "bm25", "--format", "json"],
    );
    assert_eq!(code, Some(0), "{err}");
    let found: Value = serde_json::from_str(&out).unwrap();
    assert_eq!(found["corpus"]["name"], "zoos");
    // Neither stored pages nor search results are requested again.
    let before = (engine.requests().len(), home.requests().len());
    assert_eq!(run(files.path(), &make).0, Some(0));
    assert_eq!((engine.requests().len(), home.requests().len()), before);
}

#[test]
fn a_killed_run_resumes_and_repeats_no_request() {
    let files = tempfile::tempdir().unwrap();
    // Each page has its own host, so that there are no pauses between requests.
    let sites: Vec<Site> = (0..5).map(|i| Site::start(|_| vec![text("/a", &format!("text {i}"))])).collect();
    let slow = Site::start(|_| vec![late()]);
    let mut urls: Vec<String> = sites.iter().map(|site| format!("{}/a", site.url)).collect();
    urls.push(format!("{}/late", slow.url));
    fs::write(files.path().join("urls.txt"), urls.join("\n")).unwrap();
    let make =
        ["corpus", "from-web", QUESTION, "--provider", "urls:urls.txt", "--name", "q", "--allow-private"];
    let journal = files.path().join("data/web/q/pages.jsonl");
    let kept = || fs::read_to_string(&journal).map_or(0, |text| text.matches('\n').count());
    let mut child = command(files.path(), &make).stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
    while kept() < 6 {
        assert_eq!(child.try_wait().unwrap(), None, "it ended before it was killed");
        std::thread::yield_now();
    }
    while slow.paths().is_empty() {
        std::thread::yield_now();
    }
    child.kill().unwrap();
    child.wait().unwrap();
    assert!(!files.path().join("data/web/q/corpus.jsonl").exists());
    let (code, out, err) = run(files.path(), &make);
    assert_eq!(code, Some(0), "{err}");
    assert!(out.contains("1 asked for in this run") && out.contains("passages    6"), "{out}");
    assert!(sites.iter().all(|site| site.paths() == ["/a"]));
    assert_eq!(slow.paths().len(), 2);
}

#[cfg(unix)]
#[test]
fn an_interrupt_keeps_the_fetched_pages_as_a_corpus() {
    let files = tempfile::tempdir().unwrap();
    let (quick, slow) = (Site::start(|_| vec![text("/a", "a text")]), Site::start(|_| vec![late()]));
    fs::write(files.path().join("urls.txt"), format!("{}/a\n{}/late\n", quick.url, slow.url)).unwrap();
    let make =
        ["corpus", "from-web", QUESTION, "--provider", "urls:urls.txt", "--name", "q", "--allow-private"];
    let journal = files.path().join("data/web/q/pages.jsonl");
    let child = command(files.path(), &make).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    while fs::read_to_string(&journal).map_or(0, |text| text.matches('\n').count()) < 2
        || slow.paths().is_empty()
    {
        std::thread::yield_now();
    }
    assert!(Command::new("kill").args(["-INT", &child.id().to_string()]).status().unwrap().success());
    let printed = child.wait_with_output().unwrap();
    assert_eq!(printed.status.code(), Some(130));
    assert!(String::from_utf8_lossy(&printed.stderr).contains("run the same command again"));
    let corpus = fs::read_to_string(files.path().join("data/web/q/corpus.jsonl")).unwrap();
    assert!(corpus.contains("a text") && corpus.lines().count() == 1, "{corpus}");
}

#[test]
fn private_addresses_are_refused_unless_allowed_and_nothing_gives_no_corpus() {
    let files = tempfile::tempdir().unwrap();
    let site = Site::start(|_| vec![text("/a", "a text")]);
    fs::write(files.path().join("urls.txt"), format!("{}/a\n", site.url)).unwrap();
    let make = ["corpus", "from-web", QUESTION, "--provider", "urls:urls.txt"];
    let (code, out, err) = run(files.path(), &make);
    assert_eq!(code, Some(2));
    assert!(out.contains("this machine") && err.contains("there is no corpus"), "{out}{err}");
    assert!(site.requests().is_empty());
}

#[test]
fn wrong_arguments_are_reported_before_any_request() {
    let files = tempfile::tempdir().unwrap();
    fs::write(files.path().join("bad.txt"), "zoos\n").unwrap();
    for (args, words) in [
        (&["Q?", "--provider", "google"][..], "searxng:URL"),
        (&["Q?", "--provider", "serper"], "PARALLAX_SERPER_KEY"),
        (&["Q?", "--provider", "brave"], "PARALLAX_BRAVE_KEY"),
        (&["Q?", "--provider", "urls:bad.txt"], "bad.txt:1: expected"),
        (&["Q?", "--provider", "urls:none.txt"], "no such file"),
        (&["Q?", "--provider", "urls:bad.txt", "--name", "../up"], "without slashes"),
        (&["--provider", "urls:bad.txt"], "--questions"),
        (&[" ", "--provider", "urls:bad.txt"], "empty"),
        (&["Q?", "--provider", "urls:bad.txt", "--delay", "0"], "1..=120"),
    ] {
        let (code, out, err) = run(files.path(), &[&["corpus", "from-web"], args].concat());
        assert_eq!((code, out.as_str()), (Some(2), ""), "{args:?}: {err}");
        assert!(err.contains(words) && !err.contains("panicked"), "{args:?}: {err}");
    }
}

#[test]
fn the_overlap_by_url_of_two_searches_is_counted_for_each_question() {
    let files = tempfile::tempdir().unwrap();
    let search = |data: &str, name: &str, urls: &[&str]| {
        let folder = files.path().join(data).join("web").join(name);
        fs::create_dir_all(&folder).unwrap();
        let line = serde_json::json!({
            "kind": "search", "question": "q", "provider": "p", "wanted": 9, "searched": "2026-01-01T00:00:00Z", "urls": urls,
        });
        fs::write(folder.join("pages.jsonl"), format!("{line}\n")).unwrap();
    };
    search("data", "zoos", &["https://www.a.org/x/", "http://b.org/y", "https://c.org"]);
    search("data", "cars", &["https://d.org"]);
    search("other", "zoos", &["http://a.org/x#top", "https://b.org/Y", "https://C.org/", "https://e.org"]);
    search("other", "bread", &["https://e.org"]);
    let (code, out, err) = run(files.path(), &["corpus", "overlap", "data", "other"]);
    assert_eq!(code, Some(0), "{err}");
    let lines: Vec<&str> = out.lines().collect();
    // a.org/x and c.org are in both; a path keeps its capitals. 2 of 5 addresses.
    assert_eq!(lines[1], "zoos\t3\t4\t2\t0.4000\t2", "{out}");
    assert_eq!((lines.len(), lines[2]), (3, "mean of 1\t3.0\t4.0\t2.0\t0.4000\t2.0"));
    assert!(err.contains("2 questions have a corpus in one of the two only"), "{err}");
    let (code, out, _) = run(files.path(), &["corpus", "overlap", "zoos", "cars"]);
    assert!(code == Some(0) && out.contains("zoos / cars\t3\t1\t0\t0.0000\t0"), "{out}");
    let (code, _, err) = run(files.path(), &["corpus", "overlap", "zoos", "nowhere"]);
    assert!(code == Some(2) && err.contains("nowhere: neither the name of a corpus"), "{err}");
}
