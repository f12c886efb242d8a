//! A corpus from the web, as a whole program against sites on loopback: a search to its end, kills, refusals.

use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};

use serde_json::Value;

#[path = "site.rs"]
mod site;

use parallax::engine::Opening;
use parallax::tui::config::Config;
use parallax::tui::script::parse;
use parallax::tui::{Start, play};
use site::{Answer, Site, answer, article, lagging, mediawiki_double, page, words};

use crate::stage::{self, QUESTION};

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
        (&["Q?", "--provider", "wikipedia:en", "--config", "none.toml"], "no such file"),
        (&["Q?", "--provider", "wikipedia:EN"], "wikipedia:LANGUAGE"),
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

const FERRETS: &str = "Should ferrets be banned?";

/// A double of MediaWiki's interface with four pages about ferrets. Its first answer is that its servers lag behind.
fn ferrets() -> Site {
    let text = |side: &str| format!("Ferrets {side}. {}", words("ferret", 60));
    let texts = ["should be banned", "should not be banned", "are mustelids", "live in burrows"].map(text);
    let titles = ["Ferret ban", "Ferret clubs", "Ferret", "Polecat"];
    let pages: Vec<(u64, &str, &str)> = (1..)
        .zip(titles.into_iter().zip(&texts))
        .map(|(id, (title, text))| (id, title, text.as_str()))
        .collect();
    let found: [(&str, &[u64]); 3] = [
        ("Should+ferrets+be+banned", &[3, 1]),
        ("Ferrets+should+be+banned", &[1, 4]),
        ("Ferrets+should+not+be+banned", &[2]),
    ];
    let mut paths = mediawiki_double(&found, &pages);
    paths[0].1.insert(0, lagging());
    Site::start(|_| paths)
}

#[test]
fn a_wiki_needs_a_contact_and_gives_passages_that_can_be_cited() {
    let (files, wiki) = (tempfile::tempdir().unwrap(), ferrets());
    let provider = format!("mediawiki:{}/w", wiki.url);
    fs::write(files.path().join("none.toml"), "mouse = true\n").unwrap();
    fs::write(files.path().join("mine.toml"), "contact = \"me@example.org\"\n").unwrap();
    let make = |config| {
        run(
            files.path(),
            &["corpus", "from-web", FERRETS, "--provider", &provider, "--name", "f", "--config", config],
        )
    };
    let (code, _, err) = make("none.toml");
    assert_eq!(code, Some(2));
    assert!(err.contains("contact = ") && wiki.requests().is_empty(), "{err}");
    let (code, out, err) = make("mine.toml");
    assert_eq!(code, Some(0), "{err}");
    assert!(out.contains("4 read") && out.contains("passages    4"), "{out}");
    let corpus = fs::read_to_string(files.path().join("data/web/f/corpus.jsonl")).unwrap();
    let first: Value = serde_json::from_str(corpus.lines().next().unwrap()).unwrap();
    assert_eq!(
        (first["title"].as_str(), first["metadata"]["revision"].as_u64()),
        (Some("Ferret"), Some(1003))
    );
    assert_eq!(first["metadata"]["url"], format!("{}/w/index.php?oldid=1003", wiki.url));
    assert!(wiki.requests().iter().all(|request| request.contains("(me@example.org)")));
}

#[test]
fn every_question_is_measured_on_its_own_corpus_and_those_without_one_are_named() {
    let files = tempfile::tempdir().unwrap();
    let home = Site::start(|_| {
        vec![
            text("/for", &format!("Zoos should be banned because of cages. {}", words("cage", 20))),
            text("/against", &format!("Zoos should stay and not be banned. {}", words("breed", 20))),
            text("/sport", &format!("Sport should be free for all. {}", words("pool", 20))),
        ]
    });
    let (zoos, sport) = ("Should zoos be banned?", "Should sport be free?");
    let list = |name: &str, pages: &[&str]| {
        let lines: Vec<String> = pages.iter().map(|page| format!("{}{page}", home.url)).collect();
        fs::write(files.path().join(name), lines.join("\n")).unwrap();
        format!("urls:{name}")
    };
    for (question, pages) in
        [(zoos, list("zoos.txt", &["/for", "/against"])), (sport, list("sport.txt", &["/sport"]))]
    {
        let make = ["corpus", "from-web", question, "--provider", &pages, "--allow-private"];
        let (code, _, err) = run(files.path(), &make);
        assert_eq!(code, Some(0), "{err}");
    }
    let set = [("z", zoos), ("s", sport), ("t", "Should tea be taxed?")]
        .map(|(id, question)| serde_json::json!({"id": id, "question": question}).to_string());
    fs::write(files.path().join("set.jsonl"), set.join("\n")).unwrap();
    let (code, out, err) = run(files.path(), &["corpus", "info", "web:", "--questions", "set.jsonl"]);
    assert_eq!(code, Some(0), "{err}");
    for line in ["\t2\t2\t2\n", "\t1\t1\t1\n", "no corpus", "mean of 2\t1.5\t1.5\t1.5\n"] {
        assert!(out.contains(line), "no {line:?} in {out}");
    }
    // The first passage of either side is labelled; the question on sport has one side only.
    let mut labels = String::from("id\tperspective\tlabel\n");
    for folder in fs::read_dir(files.path().join("data/web")).unwrap() {
        let corpus = fs::read_to_string(folder.unwrap().path().join("corpus.jsonl")).unwrap();
        for line in corpus.lines() {
            let passage: Value = serde_json::from_str(line).unwrap();
            let (id, own) = (passage["_id"].as_str().unwrap_or_default(), passage["text"].as_str().unwrap());
            let statement = match own {
                _ if own.contains("because of cages") => "Zoos should be banned.",
                _ if own.contains("should stay") => "Zoos should not be banned.",
                _ => "Sport should be free.",
            };
            labels += &format!("{id}\t{statement}\t1\n");
        }
    }
    fs::write(files.path().join("labels.tsv"), labels).unwrap();
    let eval = ["eval", "berds", "--corpus", "web:", "--questions", "set.jsonl", "--labels", "labels.tsv"];
    let more = ["--label-source", "gold", "--lane", "bm25", "-k", "2", "--format", "json"];
    let (code, out, err) = run(files.path(), &[&eval[..], &more].concat());
    assert_eq!(code, Some(0), "{err}");
    let table: Value = serde_json::from_str(&out).unwrap();
    // Both sides of the one question, one side of the other.
    assert_eq!(table["rows"][0]["measures"]["MRecall@2"]["mean"], 0.5, "{table}");
    assert_eq!(table["rows"][0]["measures"]["MRecall@2"]["n"], 2, "{table}");
    assert!(out.contains("1 question has no corpus and is in no mean: t"), "{out}");
}

#[test]
fn one_key_makes_a_corpus_for_a_question_that_this_one_does_not_hold() {
    let (files, wiki) = (tempfile::tempdir().unwrap(), ferrets());
    let config = Config {
        contact: Some("me@example.org".into()),
        provider: format!("mediawiki:{}/w", wiki.url).parse().unwrap(),
        ..Config::default()
    };
    let opening = Opening { data_dir: files.path().into(), ..Opening::default() };
    let lanes = vec!["bm25".parse().unwrap()];
    let start = |offline| {
        let opening = Opening { offline, ..opening.clone() };
        Start { opening, lanes: lanes.clone(), config: config.clone(), ..stage::start() }
    };
    let keys = format!("{FERRETS}<Enter><Wait>B<Wait>");
    let played = |offline| {
        let patience = std::time::Duration::from_secs(600);
        play(start(offline), stage::size(100, 40), &parse(&keys).unwrap(), patience).unwrap().dump(false)
    };
    let refused = played(true);
    assert!(refused.contains("--offline") && wiki.requests().is_empty(), "{refused}");
    // A long notice is wrapped.
    let shown = played(false).split_whitespace().collect::<Vec<_>>().join(" ");
    for words in
        ["4 passages", "Ferret ban", "Ferret clubs", "4 of 4 pages have a text", "Ferrets should be banned."]
    {
        assert!(shown.contains(words), "no `{words}` in\n{shown}");
    }
}
