//! Pages on loopback: what is read, what is refused and why, and what is stored.

use std::fs;
use std::io::Write;
use std::net::IpAddr;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use serde_json::Value;
use tempfile::TempDir;

use super::engines::Urls;
use super::fetch::Web;
use super::manners::{Manners, WebError, anywhere, public};
use super::search::{Search, Wiki};
use super::site::{Answer, Site, answer, article, lagging, mediawiki_double, page, words};
use super::store::{End, Page, Store};
use super::{Gather, OnGrown, Summary, gather};
use crate::net::Backoff;
use crate::net::Forbidden;
use crate::work::Stop;

/// Allows the test's own address; other addresses are checked as usual.
fn loopback(address: IpAddr) -> Result<(), Forbidden> {
    if address == IpAddr::from([127, 0, 0, 1]) { Ok(()) } else { public(address) }
}

/// Without pauses, for the test's own sites.
fn hasty() -> Manners {
    Manners {
        delay: Duration::ZERO,
        largest: 200_000,
        patience: Duration::from_secs(20),
        backoff: Backoff { base: Duration::ZERO, ..Backoff::default() },
        allow: loopback,
        ..Manners::default()
    }
}

const HTML: &str = "text/html; charset=utf-8";

fn ask_with(manners: Manners, url: &str) -> Page {
    Web::new(manners).unwrap().page(url, &Stop::never()).unwrap()
}

fn ask(url: &str) -> Page {
    ask_with(hasty(), url)
}

#[track_caller]
fn refused(page: &Page, end: End, why: &str) {
    let reason = page.reason.clone().unwrap_or_default();
    assert_eq!(page.end, end, "{reason}");
    assert!(reason.contains(why) && page.text.is_empty(), "{reason}");
}

fn send(status: &str, headers: &str, body: &[u8]) -> Vec<Answer> {
    vec![Answer::Send(answer(status, headers, body))]
}

fn gz(bytes: &[u8]) -> Vec<u8> {
    let mut packer = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::best());
    packer.write_all(bytes).unwrap();
    packer.finish().unwrap()
}

#[test]
fn the_main_text_is_read_and_what_stands_around_it_is_not() {
    let site = Site::start(|_| vec![page("/a", HTML, article("On zoos", &words("zoo", 150)).as_bytes())]);
    let read = ask(&format!("{}/a", site.url));
    assert_eq!((read.end, read.title.as_str()), (End::Read, "On zoos"));
    assert!(read.text.contains("zoo0") && read.text.contains("zoo149"), "{}", read.text);
    for chrome in ["Log in", "newsletter", "track()", "color"] {
        assert!(!read.text.contains(chrome), "{chrome} in {}", read.text);
    }
    let requests = site.requests();
    assert!(requests[0].starts_with("GET /robots.txt "), "{requests:?}");
    let agent = format!("user-agent: parallax/{}", env!("CARGO_PKG_VERSION"));
    assert!(requests.iter().all(|request| request.to_lowercase().contains(&agent)), "{requests:?}");
}

#[test]
fn plain_text_is_taken_as_it_is_and_a_page_without_text_is_reported() {
    let site = Site::start(|_| {
        vec![page("/t", "Text/Plain", b"two words"), page("/e", HTML, b"<html><body></body></html>")]
    });
    assert_eq!(ask(&format!("{}/t", site.url)).text, "two words");
    refused(&ask(&format!("{}/e", site.url)), End::Empty, "text");
}

#[test]
fn a_charset_is_taken_from_the_header_or_from_the_page() {
    let latin = article("Caf\u{e9}", &"caf\u{e9} ".repeat(60));
    let latin: Vec<u8> = latin.chars().map(|c| u8::try_from(u32::from(c)).unwrap()).collect();
    let meta = String::from_utf8_lossy(&latin).into_owned();
    let at = meta.find("<title>").unwrap();
    let meta = [&latin[..at], b"<meta charset=iso-8859-1>", &latin[at..]].concat();
    let site = Site::start(|_| {
        vec![page("/header", "text/html; charset=ISO-8859-1", &latin), page("/meta", "text/html", &meta)]
    });
    for path in ["/header", "/meta"] {
        let read = ask(&format!("{}{path}", site.url));
        assert!(read.title == "Café" && read.text.contains("café"), "{path}: {read:?}");
    }
}

#[test]
fn a_page_that_is_nested_without_end_breaks_nothing() {
    let site = Site::start(|_| {
        let deep = format!("{}<p>at the bottom", "<div>".repeat(4_000));
        vec![page("/deep", HTML, deep.as_bytes())]
    });
    let page = ask(&format!("{}/deep", site.url));
    assert!(page.end == End::Read && page.text.contains("at the bottom"), "{page:?}");
}

#[test]
fn robots_txt_is_asked_once_and_kept() {
    let robots = b"User-agent: *\nDisallow: /private\n";
    let site = Site::start(|_| {
        let open = article("Open", &words("open", 80));
        vec![
            page("/robots.txt", "text/plain", robots),
            page("/a", HTML, open.as_bytes()),
            page("/b", HTML, open.as_bytes()),
        ]
    });
    let web = Web::new(hasty()).unwrap();
    let ask = |path: &str| web.page(&format!("{}{path}", site.url), &Stop::never()).unwrap();
    assert_eq!([ask("/a").end, ask("/b").end], [End::Read, End::Read]);
    refused(&ask("/private/c"), End::Robots, "robots.txt forbids it");
    assert_eq!(site.paths(), ["/a", "/b"]);
    assert_eq!(site.requests().len(), 3);
}

#[test]
fn where_robots_txt_cannot_be_had_nothing_is_asked() {
    let site = Site::start(|_| vec![("/robots.txt".into(), send("503 Busy", "", b""))]);
    refused(&ask(&format!("{}/a", site.url)), End::Failed, "robots.txt");
    assert!(site.paths().is_empty());
    assert_eq!(site.requests().len(), 3, "it is asked again what may pass");
}

#[test]
fn what_is_too_large_is_not_read_to_its_end() {
    let site = Site::start(|_| {
        let unpacked = gz(&vec![b'a'; 50_000_000]);
        assert!(unpacked.len() < 100_000);
        let endless = [
            &b"HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\nConnection: close\r\n\r\n"[..],
            &vec![b'a'; 300_000],
        ];
        vec![
            page("/declared", "text/plain", &vec![b'a'; 300_000]),
            ("/endless".into(), vec![Answer::Send(endless.concat())]),
            (
                "/bomb".into(),
                send("200 OK", "Content-Type: text/plain\r\nContent-Encoding: gzip\r\n", &unpacked),
            ),
            (
                "/torn".into(),
                send("200 OK", "Content-Type: text/plain\r\nContent-Encoding: gzip\r\n", &unpacked[..90]),
            ),
            (
                "/packed".into(),
                send(
                    "200 OK",
                    "Content-Type: text/plain\r\nContent-Encoding: gzip\r\n",
                    &gz(b"a packed text"),
                ),
            ),
            ("/odd".into(), send("200 OK", "Content-Type: text/plain\r\nContent-Encoding: br\r\n", b"abc")),
            page("/tags", HTML, "<p>".repeat(60_001).as_bytes()),
        ]
    });
    for path in ["/declared", "/endless", "/bomb"] {
        refused(&ask(&format!("{}{path}", site.url)), End::Size, "larger than 200 kB");
    }
    refused(&ask(&format!("{}/torn", site.url)), End::Failed, "unpacked");
    refused(&ask(&format!("{}/odd", site.url)), End::Type, "compressed as br");
    refused(&ask(&format!("{}/tags", site.url)), End::Size, "tags");
    assert_eq!(ask(&format!("{}/packed", site.url)).text, "a packed text");
}

#[test]
fn other_types_are_refused_by_their_head() {
    let site = Site::start(|_| {
        vec![
            page("/a.pdf", "application/pdf", b"%PDF-1.7"),
            page("/a.png", "image/png", b"\x89PNG"),
            page("/b.png", "text/html", b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR words of a page"),
            ("/none".into(), send("200 OK", "", b"<p>text")),
        ]
    });
    refused(&ask(&format!("{}/a.pdf", site.url)), End::Type, "a PDF, which is not read");
    refused(&ask(&format!("{}/a.png", site.url)), End::Type, "image/png");
    refused(&ask(&format!("{}/b.png", site.url)), End::Type, "it is sent as text/html and is no text");
    refused(&ask(&format!("{}/none", site.url)), End::Type, "does not state");
}

#[test]
fn redirects_are_followed_and_each_step_is_checked() {
    let site = Site::start(|_| {
        let to = |place: &str| send("302 Found", &format!("Location: {place}\r\n"), b"");
        vec![
            ("/moved".into(), to("/here")),
            page("/here", "text/plain", b"it is here"),
            ("/loop".into(), to("/loop")),
            ("/private".into(), to("http://10.0.0.1/admin")),
            ("/metadata".into(), to("http://169.254.169.254/latest/meta-data/")),
            ("/six".into(), to("http://[::ffff:192.168.0.1]/")),
            ("/file".into(), to("file:///etc/passwd")),
            page("/robots.txt", "text/plain", b"User-agent: *\nDisallow: /secret\n"),
            ("/sly".into(), to("/secret")),
        ]
    });
    let read = ask(&format!("{}/moved", site.url));
    assert_eq!((read.text.as_str(), read.at), ("it is here", Some(format!("{}/here", site.url))));
    refused(&ask(&format!("{}/loop", site.url)), End::Redirect, "more than 5 times");
    assert_eq!(site.paths().iter().filter(|path| *path == "/loop").count(), 6);
    for (path, why) in
        [("/private", "private network"), ("/metadata", "link-local"), ("/six", "private network")]
    {
        refused(&ask(&format!("{}{path}", site.url)), End::Address, why);
    }
    refused(&ask(&format!("{}/file", site.url)), End::Redirect, "http");
    refused(&ask(&format!("{}/sly", site.url)), End::Robots, "forbids");
    // A name is resolved before it is connected to; this one is this machine.
    let strict = Manners { allow: public, ..hasty() };
    let named = ask_with(strict, &format!("{}/here", site.url.replace("127.0.0.1", "localhost")));
    refused(&named, End::Address, "localhost is");
    refused(&ask_with(strict, &format!("{}/here", site.url)), End::Address, "this machine");
    assert!(!site.paths().contains(&"/secret".to_owned()));
    let open = Manners { allow: anywhere, ..hasty() };
    assert_eq!(
        ask_with(open, &format!("{}/here", site.url.replace("127.0.0.1", "localhost"))).end,
        End::Read
    );
}

#[test]
fn a_server_that_asks_for_a_pause_gets_it_and_one_that_refuses_is_let_alone() {
    let busy = || Answer::Send(answer("429 Too Many Requests", "Retry-After: 0\r\n", b""));
    let site = Site::start(|_| {
        let text = Answer::Send(answer("200 OK", "Content-Type: text/plain\r\n", b"now it goes"));
        vec![
            ("/busy".into(), vec![busy(), busy(), text]),
            ("/always".into(), vec![busy()]),
            ("/tomorrow".into(), send("503 Busy", "Retry-After: 86400\r\n", b"")),
            ("/closed".into(), send("403 Forbidden", "", b"")),
        ]
    });
    assert_eq!(ask(&format!("{}/busy", site.url)).text, "now it goes");
    refused(&ask(&format!("{}/always", site.url)), End::Failed, "429");
    refused(&ask(&format!("{}/tomorrow", site.url)), End::Failed, "86400s");
    refused(&ask(&format!("{}/closed", site.url)), End::Status, "403");
    refused(&ask(&format!("{}/gone", site.url)), End::Status, "404");
    let count = |path: &str| site.paths().iter().filter(|requests| *requests == path).count();
    assert_eq!([count("/busy"), count("/always"), count("/tomorrow"), count("/closed")], [3, 3, 1, 1]);
}

#[test]
fn a_server_that_falls_silent_or_dawdles_is_left() {
    let site =
        Site::start(|_| vec![("/silent".into(), vec![Answer::Hang]), page("/a", "text/plain", b"a text")]);
    let impatient = Manners { patience: Duration::from_millis(200), ..hasty() };
    refused(&ask_with(impatient, &format!("{}/silent", site.url)), End::Failed, "sent nothing");
    let hurried = Manners { longest: Duration::ZERO, ..hasty() };
    let web = Web::new(hurried).unwrap();
    refused(&web.page(&format!("{}/a", site.url), &Stop::never()).unwrap(), End::Failed, "took longer");
}

const QUESTION: &str = "Should zoos be banned?";

/// All pages of a search for a question, without pauses.
fn wanted<'a>(question: &'a str, search: &'a dyn Search, grown: Option<OnGrown<'a>>) -> Gather<'a> {
    Gather { question, statements: &[], search, wanted: 1_000, manners: hasty(), grown }
}

/// A question's folder, and a list of addresses.
struct Job {
    folder: TempDir,
}

impl Job {
    fn run(&self, urls: &[String], stop: &Stop) -> Result<Summary, WebError> {
        let file = self.folder.path().join("urls.txt");
        fs::write(&file, format!("# a list\n{}\n", urls.join("\n"))).unwrap();
        let mut store = Store::open(&self.folder.path().join("q"))?;
        gather(&wanted(QUESTION, &Urls::read(&file)?, None), &mut store, &|_| (), stop)
    }

    fn pages(&self) -> std::path::PathBuf {
        self.folder.path().join("q/pages.jsonl")
    }
}

fn passages(corpus: &Path) -> Vec<Value> {
    fs::read_to_string(corpus).unwrap().lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

#[test]
fn pages_become_passages_of_100_words_that_know_where_and_when_they_come_from() {
    let site = Site::start(|_| {
        let long = article("Long", &words("long", 230));
        vec![
            page("/long", HTML, long.as_bytes()),
            page("/again", HTML, long.as_bytes()),
            page("/note", "text/plain", b"short"),
        ]
    });
    let urls: Vec<String> = ["/note#part", "/long", "/again", "/long#end", "/gone"]
        .map(|path| format!("{}{path}", site.url))
        .into();
    let job = Job { folder: tempfile::tempdir().unwrap() };
    let summary = job.run(&urls, &Stop::never()).unwrap();
    assert_eq!((summary.pages, summary.fetched, summary.repeats), (4, 4, 1));
    assert_eq!((summary.ends[&End::Read], summary.ends[&End::Status], summary.unread.len()), (3, 1, 1));
    let passages = passages(&summary.corpus);
    assert_eq!((passages.len(), summary.passages), (4, 4));
    // Passages are in the order of the list, whichever page came first.
    assert_eq!(passages[0]["text"], "short");
    assert_eq!(passages[1]["title"], "Long");
    let about = &passages[1]["metadata"];
    assert_eq!(about["url"], format!("{}/long", site.url));
    assert_eq!(about["question"], "Should zoos be banned?");
    let when = about["fetched"].as_str().unwrap();
    assert!(when.ends_with('Z') && when.contains('T') && when.len() == 20, "{when}");
    let ids: std::collections::HashSet<&str> =
        passages.iter().map(|one| one["_id"].as_str().unwrap()).collect();
    assert_eq!(ids.len(), 4);
}

#[test]
fn a_second_run_asks_for_what_is_missing_or_failed_and_nothing_else() {
    let site = Site::start(|_| {
        let mut pages: Vec<_> =
            (0..6).map(|i| page(&format!("/{i}"), "text/plain", format!("text {i}").as_bytes())).collect();
        let first = ["busy"; 3].map(|_| Answer::Send(answer("503 Busy", "", b"")));
        let then = Answer::Send(answer("200 OK", "Content-Type: text/plain\r\n", b"at last"));
        pages.push(("/later".into(), first.into_iter().chain([then]).collect()));
        pages
    });
    let url = |path: &str| format!("{}/{path}", site.url);
    let job = Job { folder: tempfile::tempdir().unwrap() };
    let first = job.run(&[url("0"), url("1"), url("gone"), url("later")], &Stop::never()).unwrap();
    assert_eq!((first.passages, first.ends[&End::Failed]), (2, 1));
    // The state that a killed process leaves.
    let mut torn = fs::OpenOptions::new().append(true).open(job.pages()).unwrap();
    torn.write_all(b"{\"kind\":\"page\",\"url\":\"http").unwrap();
    drop(torn);
    let all: Vec<String> = ["0", "1", "gone", "later", "2", "3", "4", "5"].map(url).into();
    let second = job.run(&all, &Stop::never()).unwrap();
    assert_eq!((second.fetched, second.passages), (5, 7));
    let third = job.run(&all, &Stop::never()).unwrap();
    assert_eq!((third.fetched, third.passages), (0, 7));
    let count = |path: &str| site.paths().iter().filter(|requests| *requests == path).count();
    assert_eq!([count("/0"), count("/gone"), count("/later"), count("/5")], [1, 1, 4, 1]);
}

#[test]
fn a_stop_keeps_what_is_there() {
    let now = Arc::new(AtomicU64::new(0));
    let site =
        Site::start(|_| vec![page("/a", "text/plain", b"a text"), ("/silent".into(), vec![Answer::Hang])]);
    let job = Job { folder: tempfile::tempdir().unwrap() };
    let file = job.folder.path().join("urls.txt");
    fs::write(&file, format!("{0}/a\n{0}/silent\n", site.url)).unwrap();
    let mut store = Store::open(&job.folder.path().join("q")).unwrap();
    let on_progress = |progress: crate::work::Progress| now.store(progress.done, Ordering::SeqCst);
    let stop = Stop::when_past(&now, 0);
    let summary =
        gather(&wanted("Q?", &Urls::read(&file).unwrap(), None), &mut store, &on_progress, &stop).unwrap();
    assert!(summary.stopped);
    assert_eq!((summary.fetched, summary.passages), (1, 1));
    assert_eq!(passages(&summary.corpus)[0]["text"], "a text");
}

#[test]
fn a_folder_serves_one_question_and_one_process() {
    let job = Job { folder: tempfile::tempdir().unwrap() };
    let site = Site::start(|_| vec![page("/a", "text/plain", b"a text")]);
    let file = job.folder.path().join("list");
    fs::write(&file, format!("{}/a", site.url)).unwrap();
    let place = job.folder.path().join("q");
    let mut store = Store::open(&place).unwrap();
    assert!(Store::open(&place).err().unwrap().to_string().contains("another process"));
    let urls = Urls::read(&file).unwrap();
    let mut run =
        |question: &str| gather(&wanted(question, &urls, None), &mut store, &|_| (), &Stop::never());
    assert_eq!(run("A?").unwrap().passages, 1);
    assert!(run("B?").unwrap_err().to_string().contains("--name"));
    drop(store);
    fs::write(place.join("pages.jsonl"), "{}\n").unwrap();
    assert!(Store::open(&place).err().unwrap().to_string().contains("pages.jsonl:1: expected"));
}

const STATEMENTS: [&str; 2] = ["Zoos should be banned.", "Zoos should not be banned."];

/// A wiki with five pages: a double of MediaWiki's interface, whose first answer is that its servers lag behind.
fn wiki() -> (Site, Wiki) {
    let texts: Vec<String> = (1..=5).map(|id| words(&format!("zoo{id}x"), 150)).collect();
    let titles = ["Zoo", "Animal rights", "Captivity", "Condor", "Ménagerie"];
    let pages: Vec<(u64, &str, &str)> = (1..=5)
        .zip(titles.into_iter().zip(&texts))
        .map(|(id, (title, text))| (id, title, text.as_str()))
        .collect();
    let found: [(&str, &[u64]); 3] = [
        ("Should+zoos+be+banned", &[1, 2]),
        ("Zoos+should+be+banned", &[2, 3, 9]),
        ("Zoos+should+not+be+banned", &[4, 5]),
    ];
    let mut paths = mediawiki_double(&found, &pages);
    paths[0].1.insert(0, lagging());
    let site = Site::start(|_| paths);
    let wiki = Wiki::at(&format!("{}/w", site.url), "wikipedia:en", Some("me@example.org")).unwrap().hasty();
    (site, wiki)
}

#[test]
fn a_wiki_is_searched_for_the_question_and_both_statements_and_gives_texts_with_their_revisions() {
    let (site, wiki) = wiki();
    let folder = tempfile::tempdir().unwrap();
    let mut store = Store::open(folder.path()).unwrap();
    let statements = STATEMENTS.map(str::to_owned);
    let grown = parking_lot::Mutex::new(Vec::new());
    let on_grown = |corpus: &Path, pages: usize| grown.lock().push((passages(corpus).len(), pages));
    let order = Gather { statements: &statements, ..wanted(QUESTION, &wiki, Some(&on_grown)) };
    let summary = gather(&order, &mut store, &|_| (), &Stop::never()).unwrap();
    assert_eq!((summary.pages, summary.ends[&End::Read], summary.passages), (6, 5, 10));
    assert_eq!(summary.unread[0].1, End::Status, "page 9 is gone");
    assert_eq!(*grown.lock(), [(6, 3)], "three pages are a corpus while the others are still fetched");
    let passages = passages(&summary.corpus);
    let titles: Vec<&str> = passages.iter().step_by(2).map(|one| one["title"].as_str().unwrap()).collect();
    // The best of each search come first.
    assert_eq!(titles, ["Zoo", "Animal rights", "Condor", "Captivity", "Ménagerie"]);
    let about = &passages[0]["metadata"];
    assert_eq!(about["url"], format!("{}/w/index.php?oldid=1001", site.url));
    assert_eq!(
        (about["revision"].as_u64(), about["revised"].as_str()),
        (Some(1001), Some("2026-01-02T03:04:05Z"))
    );
    assert!(about["fetched"].as_str().is_some_and(|when| when.ends_with('Z')));
    let requests = site.requests();
    assert_eq!(requests.len(), 4 + 6, "the search that was refused for lag is sent again: {requests:?}");
    let agent = format!("user-agent: parallax/{} (me@example.org)", env!("CARGO_PKG_VERSION"));
    assert!(
        requests.iter().all(|request| request.contains(&agent) && request.contains("maxlag=5")),
        "{requests:?}"
    );
    assert!(!requests.iter().any(|request| request.contains("robots.txt")));
    // Neither the searches nor the pages are asked for again, but other statements are searched for.
    gather(&order, &mut store, &|_| (), &Stop::never()).unwrap();
    assert_eq!(site.requests().len(), 10);
    gather(&wanted(QUESTION, &wiki, None), &mut store, &|_| (), &Stop::never()).unwrap();
    assert_eq!(site.requests().len(), 11);
}

#[test]
fn a_wiki_is_not_asked_without_a_contact_and_its_errors_say_what_to_do() {
    for contact in
        [None, Some(""), Some("me"), Some("me@host"), Some("me (x)@example.org"), Some("a@b.org\r\nx: y")]
    {
        let error = Wiki::at("http://localhost/w", "wikipedia:en", contact).err().unwrap().to_string();
        assert!(
            error.contains("contact = ") && error.contains("parallax config path"),
            "{contact:?}: {error}"
        );
    }
    let path = mediawiki_double(&[("Should+zoos+be+banned", &[])], &[]).remove(0).0;
    let failing = |answer: Answer| {
        let site = Site::start(|_| vec![(path.clone(), vec![answer])]);
        let wiki = Wiki::at(&format!("{}/w", site.url), "wikipedia:en", Some("https://example.org/me"))
            .unwrap()
            .hasty();
        let folder = tempfile::tempdir().unwrap();
        let mut store = Store::open(folder.path()).unwrap();
        let order = wanted(QUESTION, &wiki, None);
        (gather(&order, &mut store, &|_| (), &Stop::never()).unwrap_err().to_string(), site.requests().len())
    };
    let (error, tries) = failing(lagging());
    assert!(error.contains("busy") && tries == 3, "{error}, {tries}");
    let (error, tries) =
        failing(Answer::Send(answer("404 Not Found", "Content-Type: text/html\r\n", b"<p>no")));
    assert!(error.contains("no interface of MediaWiki") && tries == 1, "{error}, {tries}");
}

#[test]
fn a_list_with_bad_lines_is_reported_line_by_line() {
    let file = tempfile::NamedTempFile::new().unwrap();
    fs::write(file.path(), "https://example.org/\nzoos\nftp://example.org/\n").unwrap();
    let reason = Urls::read(file.path()).err().unwrap().to_string();
    assert!(reason.contains(":2: expected an address") && reason.contains(":3: expected"), "{reason}");
    fs::write(file.path(), "# nothing\n").unwrap();
    assert!(Urls::read(file.path()).err().unwrap().to_string().contains("is empty"));
    assert_eq!(loopback([127, 0, 0, 1].into()), Ok(()));
}
