//! Servers over loopback, against the whole client: answers for the fuzz targets, and hostile servers (bodies and heads without
//! end, streams that break off, redirects in circles, wrong lengths, endlessly nested JSON).
//!
//! Five clients are tried: of language models, of the Hugging Face hub, of search engines (SearXNG), of web pages, and of remote
//! indices (OpenSearch). Each must end with an error message and in bounded memory.

use std::cell::OnceCell;
use std::fs;
use std::io::{self, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::path::Path;
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::Duration;

use parallax::encode::hub::Hub;
use parallax::llm::{Chat, Endpoint, OpenAi, Request};
use parallax::remote::{self, Place};
use parallax::web::{self, End, Gather, Manners, Provider, Results, Search, Store, WebError};
use parallax::work::Stop;

use super::memory::held;
use super::report;
use super::targets::{place, refused};

/// What the server sends for a path.
type Answers = Arc<Mutex<Box<dyn Fn(&str) -> Vec<u8> + Send>>>;

/// A server that sends the answer set last and closes the connection.
pub struct Server {
    pub url: String,
    answers: Answers,
}

impl Server {
    pub fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        let answers: Answers = Arc::new(Mutex::new(Box::new(|_| Vec::new())));
        let current = Arc::clone(&answers);
        thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                let current = Arc::clone(&current);
                // A client that has gone is not a failure.
                thread::spawn(move || serve(stream, &current));
            }
        });
        Server { url, answers }
    }

    pub fn sends(&self, answer: impl Fn(&str) -> Vec<u8> + Send + 'static) {
        *self.answers.lock().unwrap() = Box::new(answer);
    }
}

fn serve(mut stream: TcpStream, answers: &Answers) {
    let (mut bytes, mut buffer) = (Vec::new(), [0; 4096]);
    // Reads the body too: closing a connection with unread bytes resets it, and the answer is lost.
    let (path, mut left) = loop {
        let Ok(count @ 1..) = stream.read(&mut buffer) else { return };
        bytes.extend_from_slice(&buffer[..count]);
        let text = String::from_utf8_lossy(&bytes);
        let Some((head, body)) = text.split_once("\r\n\r\n") else { continue };
        let length =
            head.lines().find_map(|line| line.to_lowercase().strip_prefix("content-length: ")?.parse().ok());
        let path = head.split(' ').nth(1).unwrap_or_default().to_owned();
        break (path, length.unwrap_or(0usize).saturating_sub(body.len()));
    };
    while left > 0 {
        let Ok(count @ 1..) = stream.read(&mut buffer) else { return };
        left = left.saturating_sub(count);
    }
    let answer = answers.lock().unwrap()(&path);
    let _ = stream.write_all(&answer);
}

thread_local! {
    static SERVER: OnceCell<Server> = const { OnceCell::new() };
    static CHAT: OnceCell<OpenAi> = const { OnceCell::new() };
}

fn with(answer: impl Fn(&str) -> Vec<u8> + Send + 'static, ask: impl FnOnce(&str)) {
    SERVER.with(|server| {
        let server = server.get_or_init(Server::start);
        server.sends(answer);
        ask(&server.url);
    });
}

/// A complete successful answer.
pub fn success(kind: &str, body: &[u8]) -> Vec<u8> {
    let head = format!(
        "HTTP/1.1 200 OK\r\nContent-Type: {kind}\r\nConnection: close\r\nContent-Length: {}\r\n\r\n",
        body.len()
    );
    [head.as_bytes(), body].concat()
}

fn request() -> Request {
    Request { prompt: "zoos".into(), max_tokens: 9, ..Request::default() }
}

fn chat(url: &str) -> OpenAi {
    let patience = Duration::from_secs(20);
    let url = format!("{url}/v1");
    OpenAi::new(Endpoint { patience, tries: 1, key: None, ..Endpoint::from_env(url, "m") }).unwrap()
}

fn chats(answer: Vec<u8>) {
    with(
        move |_| answer.clone(),
        |url| {
            CHAT.with(|client| {
                drop(refused(client.get_or_init(|| chat(url)).reply(&request(), &Stop::never())))
            })
        },
    );
}

/// The body of an event stream.
pub fn chat_stream(input: &[u8]) {
    chats(success("text/event-stream", input));
}

/// A whole answer with its head.
pub fn chat_answer(input: &[u8]) {
    chats(input.to_vec());
}

fn hub(answer: impl Fn(&str) -> Vec<u8> + Send + 'static) {
    with(answer, |url| {
        let models = place("models");
        let mut hub = Hub::at(url, None).unwrap();
        hub.patience(Duration::from_secs(20));
        hub.backoff.base = Duration::ZERO;
        hub.backoff.longest_asked = Duration::ZERO;
        let _ = refused(hub.fetch("org/model", &models, &|_| (), &Stop::never()));
        let above = fs::read_dir(models.parent().unwrap()).unwrap().flatten();
        assert!(above.count() <= 2, "a file was written beside the folder of models");
        let _ = fs::remove_dir_all(models);
    });
}

/// The listing of a repository.
pub fn hub_listing(input: &[u8]) {
    let input = input.to_vec();
    hub(move |path| match path.contains("/resolve/") {
        true => success("application/octet-stream", b"{}"),
        false => success("application/json", &input),
    });
}

/// The whole answer for a file.
pub fn hub_file(input: &[u8]) {
    let input = input.to_vec();
    hub(move |path| match path.contains("/resolve/") {
        true => input.clone(),
        false => success("application/json", LISTING.as_bytes()),
    });
}

pub const LISTING: &str = r#"{"sha":"0123456789abcdef0123456789abcdef01234567","siblings":[
    {"rfilename":"config.json","size":2,"blobId":"9e26dfeeb6e641a33dae4961196235bdb965b21b"},
    {"rfilename":"tokenizer.json","size":2},
    {"rfilename":"model.safetensors","size":2,"lfs":{"sha256":"44136fa355b3678a1146ad16f7e8649e94fb4fc21fe77e8310c060f61caaff8a","size":2}}]}"#;

pub fn searxng_answer(input: &[u8]) {
    let answer = success("application/json", input);
    with(
        move |_| answer.clone(),
        |url| {
            let engine = Provider::Searxng(url.to_owned()).open(None).unwrap();
            let _ = refused(engine.find("zoos", &[], 30, Duration::ZERO, &Stop::never()));
        },
    );
}

/// As the mapping of an index and as the result of a search.
pub fn open_search_answer(input: &[u8]) {
    for mapped in [false, true] {
        let (answer, mapping) =
            (success("application/json", input), success("application/json", MAPPING.as_bytes()));
        with(
            move |path| if mapped && path.ends_with("_mapping") { mapping.clone() } else { answer.clone() },
            |url| {
                let engine = remote::open(&Place::parse(&format!("os:{url}/args")).unwrap()).unwrap();
                for hits in [
                    refused(engine.by_text("zoos", 5, &Stop::never())),
                    refused(engine.by_vector(&[0.6, 0.8], 5, &Stop::never())),
                ] {
                    assert!(hits.iter().flatten().all(|hit| hit.score.is_finite()));
                }
                let _ = refused(engine.stored_hashes(&["a".into(), "b".into()], &Stop::never()));
            },
        );
    }
}

pub const MAPPING: &str = r#"{"args":{"mappings":{"properties":{"title":{"type":"text"},"text":{"type":"text"},
    "hash":{"type":"keyword","index":false},"vector":{"type":"knn_vector","dimension":2,
    "method":{"name":"hnsw","engine":"lucene","space_type":"cosinesimil"}}}}}}"#;

/// A search that finds one page.
struct One(String);

impl Search for One {
    fn name(&self) -> String {
        "one".into()
    }

    fn is_free(&self) -> bool {
        true
    }

    fn page(&self, _: &str, _: usize, _: &Stop) -> Result<Results, WebError> {
        Ok(Results { urls: vec![self.0.clone()], last: true })
    }
}

fn manners() -> Manners {
    let mut manners = Manners {
        delay: Duration::ZERO,
        patience: Duration::from_secs(20),
        allow: web::anywhere,
        ..Manners::default()
    };
    manners.backoff.base = Duration::ZERO;
    manners.backoff.longest_asked = Duration::ZERO;
    manners
}

/// Fetches and reads the page as `corpus from-web` does.
fn gathered(url: &str, manners: Manners, folder: &Path) -> Option<web::Summary> {
    let mut store = refused(Store::open(folder))?;
    let search = One(format!("{url}/page"));
    let one = Gather { question: "zoos", statements: &[], search: &search, wanted: 1, manners, grown: None };
    refused(web::gather(&one, &mut store, &|_| (), &Stop::never()))
}

fn pages(answer: impl Fn(&str) -> Vec<u8> + Send + 'static) {
    with(answer, |url| {
        let folder = place("gathered");
        let _ = gathered(url, manners(), &folder);
        let _ = fs::remove_dir_all(folder);
    });
}

/// A whole answer with its head.
pub fn web_page(input: &[u8]) {
    let input = input.to_vec();
    pages(move |path| match path {
        "/robots.txt" => b"HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\nConnection: close\r\n\r\n".to_vec(),
        _ => input.clone(),
    });
}

pub fn robots(input: &[u8]) {
    let rules = success("text/plain", input);
    pages(move |path| match path {
        "/robots.txt" => rules.clone(),
        _ => success("text/plain", b"Zoos should be banned."),
    });
}

/// Chunks of 64 kB: 2 GB in all, so that a client that takes everything is noticed.
const CHUNKS: usize = 32_768;

/// What a server does to its client.
#[derive(Clone, Copy, Debug)]
enum Harm {
    EndlessBody,
    EndlessHead,
    EndlessLine,
    Circle,
    TooShort,
    TooLong,
    NoJson,
    Deep,
    WrongTypes,
    HugeNumbers,
    NoHttp,
    Nothing,
    Bomb,
    BreaksOff,
}

const ALL: [Harm; 14] = [
    Harm::EndlessBody,
    Harm::EndlessHead,
    Harm::EndlessLine,
    Harm::Circle,
    Harm::TooShort,
    Harm::TooLong,
    Harm::NoJson,
    Harm::Deep,
    Harm::WrongTypes,
    Harm::HugeNumbers,
    Harm::NoHttp,
    Harm::Nothing,
    Harm::Bomb,
    Harm::BreaksOff,
];

impl Harm {
    /// Starts a server that does it on every path for which `good` has no answer.
    fn start(self, good: fn(&str) -> Option<Vec<u8>>) -> String {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        thread::spawn(move || {
            for mut stream in listener.incoming().flatten() {
                thread::spawn(move || {
                    let path = requested(&mut stream);
                    // A client may close the connection early.
                    let _ = match good(&path) {
                        Some(answer) => stream.write_all(&answer),
                        None => self.harm(&mut stream, &path),
                    };
                });
            }
        });
        url
    }

    fn harm(self, stream: &mut TcpStream, path: &str) -> io::Result<()> {
        let json = |body: &str| success("application/json", body.as_bytes());
        match self {
            Harm::EndlessBody => {
                stream.write_all(b"HTTP/1.1 200 OK\r\nContent-Type: text/html\r\n\r\n{\"x\":\"")?;
                (0..CHUNKS).try_for_each(|_| stream.write_all(&[b'a'; 65_536]))
            }
            Harm::EndlessHead => {
                stream.write_all(b"HTTP/1.1 200 OK\r\n")?;
                (0..CHUNKS * 100).try_for_each(|i| write!(stream, "X-{i}: {}\r\n", "a".repeat(600)))
            }
            Harm::EndlessLine => {
                stream.write_all(b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n\r\ndata: ")?;
                (0..CHUNKS).try_for_each(|_| stream.write_all(&[b' '; 65_536]))
            }
            Harm::Circle => {
                write!(stream, "HTTP/1.1 302 Found\r\nLocation: {path}\r\nContent-Length: 0\r\nConnection: close\r\n\r\n")
            }
            Harm::TooShort => stream.write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 1000\r\n\r\n{\"results\":["),
            Harm::TooLong => stream.write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 18446744073709551615\r\n\r\n{}"),
            Harm::NoJson => stream.write_all(&json("<html>\u{1b}[2J\u{202e}")),
            Harm::Deep => stream.write_all(&json(&"[".repeat(1_000_000))),
            Harm::WrongTypes => stream.write_all(&json(
                r#"{"results":7,"choices":"x","hits":{"hits":{"a":1}},"sha":3,"siblings":"x","args":[],"docs":{},"error":[1]}"#,
            )),
            Harm::HugeNumbers => stream.write_all(&json(
                r#"{"choices":[{"delta":{"content":1e400}}],"results":[{"url":1e308}],"sha":"0123456789abcdef","siblings":[{"rfilename":"config.json",
                "size":18446744073709551615},{"rfilename":"../../x","size":-1}],"usage":{"prompt_tokens":1e99},"hits":{"hits":[{"_id":"a","_score":1e39}]}}"#,
            )),
            Harm::NoHttp => stream.write_all(&[0x15, 3, 1, 0, 2, 2, 80]),
            Harm::Nothing => Ok(()),
            Harm::Bomb => {
                let mut packed = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::best());
                (0..300).try_for_each(|_| packed.write_all(&[b' '; 1 << 20]))?;
                let body = packed.finish()?;
                let head = "HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nContent-Encoding: gzip\r\nConnection: close\r\n";
                stream.write_all(format!("{head}Content-Length: {}\r\n\r\n", body.len()).as_bytes())?;
                stream.write_all(&body)
            }
            Harm::BreaksOff => {
                stream.write_all(b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n")?;
                let event = "data: {\"choices\":[{\"delta\":{\"content\":\"zoos\"}}]}\n\n";
                write!(stream, "{:x}\r\n{event}\r\n", event.len())
            }
        }
    }
}

impl Harm {
    /// How fetching a page ends. With `no_rules` false, the harm already hits robots.txt, which is fetched first.
    fn end_of_page(self, no_rules: bool) -> End {
        match self {
            Harm::EndlessBody | Harm::Bomb => End::Size,
            Harm::Circle => End::Redirect,
            Harm::EndlessHead | Harm::TooLong | Harm::NoHttp | Harm::Nothing => End::Failed,
            // An incomplete robots.txt forbids the page; a page of the wrong type is not read to its end.
            Harm::TooShort | Harm::BreaksOff if !no_rules => End::Failed,
            Harm::TooShort | Harm::BreaksOff => End::Type,
            Harm::EndlessLine | Harm::NoJson | Harm::Deep | Harm::WrongTypes | Harm::HugeNumbers => End::Type,
        }
    }
}

fn requested(stream: &mut TcpStream) -> String {
    let (mut bytes, mut buffer) = (Vec::new(), [0; 4096]);
    while let Ok(count @ 1..) = stream.read(&mut buffer) {
        bytes.extend_from_slice(&buffer[..count]);
        if bytes.windows(4).any(|part| part == b"\r\n\r\n") {
            break;
        }
    }
    String::from_utf8_lossy(&bytes).split(' ').nth(1).unwrap_or("/").to_owned()
}

/// An error message must be short and safe to print.
fn check(message: &str) {
    assert!(!message.trim().is_empty() && message.len() < 4_000, "{} bytes: {message}", message.len());
    assert!(!message.contains(['\u{1b}', '\u{202e}']), "{message:?}");
}

fn nothing_good(_: &str) -> Option<Vec<u8>> {
    None
}

#[test]
fn the_client_of_language_models_ends_with_a_message() {
    for harm in ALL {
        let answer = chat(&harm.start(nothing_good)).reply(&request(), &Stop::never());
        check(&answer.expect_err(&format!("{harm:?}")).to_string());
    }
    memory("language models");
}

#[test]
fn the_client_of_the_hub_ends_with_a_message_and_stores_nothing() {
    for good in [nothing_good as fn(&str) -> _, |path: &str| {
        (!path.contains("/resolve/")).then(|| success("application/json", LISTING.as_bytes()))
    }] {
        for harm in ALL {
            let models = tempfile::tempdir().unwrap();
            let mut hub = Hub::at(&harm.start(good), None).unwrap();
            hub.patience(Duration::from_secs(20));
            hub.backoff.base = Duration::ZERO;
            let answer = hub.fetch("org/model", models.path(), &|_| (), &Stop::never());
            check(&answer.expect_err(&format!("{harm:?}")).to_string());
            assert!(!models.path().join("org--model").exists(), "{harm:?}");
        }
    }
    memory("the hub");
}

#[test]
fn the_client_of_search_engines_ends_with_a_message() {
    for harm in ALL {
        let engine = Provider::Searxng(harm.start(nothing_good)).open(None).unwrap();
        let answer = engine.find("zoos", &[], 10, Duration::ZERO, &Stop::never());
        check(&answer.expect_err(&format!("{harm:?}")).to_string());
    }
    memory("search engines");
}

#[test]
fn a_harmful_page_is_reported_and_gives_no_passage() {
    let no_robots = |path: &str| {
        (path == "/robots.txt")
            .then(|| b"HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\nConnection: close\r\n\r\n".to_vec())
    };
    for (good, no_rules) in [(nothing_good as fn(&str) -> _, false), (no_robots, true)] {
        for harm in ALL {
            let folder = tempfile::tempdir().unwrap();
            // A page never fails the whole job: it is listed as unread.
            let summary = gathered(&harm.start(good), manners(), folder.path());
            let summary = summary.unwrap_or_else(|| panic!("{harm:?}: the job ended"));
            let [(_, end, why)] = &summary.unread[..] else { panic!("{harm:?}: {:?}", summary.unread) };
            check(why);
            assert_eq!((*end, summary.passages), (harm.end_of_page(no_rules), 0), "{harm:?}: {why}");
        }
    }
    memory("pages");
}

#[test]
fn the_client_of_remote_indices_ends_with_a_message() {
    for harm in ALL {
        let engine =
            remote::open(&Place::parse(&format!("os:{}/args", harm.start(nothing_good))).unwrap()).unwrap();
        let answer = engine.by_text("zoos", 5, &Stop::never());
        check(&answer.expect_err(&format!("{harm:?}")).to_string());
    }
    memory("remote indices");
}

/// All tests of this binary share the memory, so only a gross excess is noticed.
fn memory(client: &str) {
    let most = held(std::process::id(), "VmHWM").unwrap_or(0) >> 10;
    assert!(most < 1_900, "{client}: {most} MB");
    report(&format!("hostile servers, {client}: {} kinds, the whole test at most {most} MB", ALL.len()));
}
