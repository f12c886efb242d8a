//! Answers of servers. The whole client is tried, over loopback: an input is what the server sends, or what stands in the body.

use std::cell::OnceCell;
use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::path::Path;
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::Duration;

use parallax::encode::hub::Hub;
use parallax::llm::{Chat, Endpoint, OpenAi, Request};
use parallax::remote::{self, Place};
use parallax::web::{self, Manners, Provider, Search, Store, WebError};
use parallax::work::Stop;

use super::{place, refused};

/// What the server sends for a path.
type Answers = Arc<Mutex<Box<dyn Fn(&str) -> Vec<u8> + Send>>>;

/// A server that sends what it was told last, and ends the connection.
pub struct Server {
    pub url: String,
    answers: Answers,
}

impl Server {
    pub fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        let answers: Answers = Arc::new(Mutex::new(Box::new(|_| Vec::new())));
        let told = Arc::clone(&answers);
        thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                let told = Arc::clone(&told);
                // A client that has gone is no fault.
                thread::spawn(move || serve(stream, &told));
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
    // The body is read too: a connection that is closed over unread bytes is reset, and the answer lost.
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

/// A whole answer that is a success.
pub fn success(kind: &str, body: &[u8]) -> Vec<u8> {
    let head = format!(
        "HTTP/1.1 200 OK\r\nContent-Type: {kind}\r\nConnection: close\r\nContent-Length: {}\r\n\r\n",
        body.len()
    );
    [head.as_bytes(), body].concat()
}

pub fn asking() -> Request {
    Request { system: String::new(), prompt: "zoos".into(), temperature: 0.0, max_tokens: 9, sample: 0 }
}

pub fn chat(url: &str) -> OpenAi {
    let patience = Duration::from_secs(20);
    let url = format!("{url}/v1");
    OpenAi::new(Endpoint { patience, tries: 1, key: None, ..Endpoint::from_env(url, "m") }).unwrap()
}

fn chats(answer: Vec<u8>) {
    with(
        move |_| answer.clone(),
        |url| {
            CHAT.with(|kept| drop(refused(kept.get_or_init(|| chat(url)).reply(&asking(), &Stop::never()))))
        },
    );
}

/// The body of a stream of events.
pub fn chat_stream(input: &[u8]) {
    chats(success("text/event-stream", input));
}

/// The whole of an answer, its head too.
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
        let above = std::fs::read_dir(models.parent().unwrap()).unwrap().flatten();
        assert!(above.count() <= 2, "nothing is written beside the folder of models");
        let _ = std::fs::remove_dir_all(models);
    });
}

/// What the hub says that a repository holds.
pub fn hub_listing(input: &[u8]) {
    let input = input.to_vec();
    hub(move |path| match path.contains("/resolve/") {
        true => success("application/octet-stream", b"{}"),
        false => success("application/json", &input),
    });
}

/// The whole of what it sends for a file.
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
            let engine = Provider::Searxng(url.to_owned()).open().unwrap();
            let _ = refused(engine.find("zoos", 30, Duration::ZERO, &Stop::never()));
        },
    );
}

/// Both as what an index holds, and as what a search finds.
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
                let _ = refused(engine.known(&["a".into(), "b".into()], &Stop::never()));
            },
        );
    }
}

pub const MAPPING: &str = r#"{"args":{"mappings":{"properties":{"title":{"type":"text"},"text":{"type":"text"},
    "hash":{"type":"keyword","index":false},"vector":{"type":"knn_vector","dimension":2,
    "method":{"name":"hnsw","engine":"lucene","space_type":"cosinesimil"}}}}}}"#;

/// A search that finds the one page.
struct One(String);

impl Search for One {
    fn name(&self) -> String {
        "one".into()
    }

    fn is_free(&self) -> bool {
        true
    }

    fn find(&self, _: &str, _: usize, _: Duration, _: &Stop) -> Result<Vec<String>, WebError> {
        Ok(vec![self.0.clone()])
    }
}

pub fn manners() -> Manners {
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

/// Fetches the page and reads it, as `corpus from-web` does.
pub fn gathered(url: &str, manners: Manners, folder: &Path) -> Option<web::Summary> {
    let mut store = refused(Store::open(folder))?;
    let search = One(format!("{url}/page"));
    refused(web::gather("zoos", &search, 1, manners, &mut store, &|_| (), &Stop::never()))
}

fn pages(answer: impl Fn(&str) -> Vec<u8> + Send + 'static) {
    with(answer, |url| {
        let folder = place("gathered");
        let _ = gathered(url, manners(), &folder);
        let _ = std::fs::remove_dir_all(folder);
    });
}

/// The whole of an answer, its head too.
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
