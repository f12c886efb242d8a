//! Against a server on loopback that answers as it was told to.

mod asking;
mod filling;
mod trouble;

use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use super::mapping::Dialect;
use super::*;
use crate::net::retry::Backoff;

/// One request as it arrived.
#[derive(Clone, Debug)]
struct Got {
    line: String,
    secret: Option<String>,
    body: String,
}

struct Server {
    url: String,
    got: Arc<Mutex<Vec<Got>>>,
}

impl Server {
    /// Answers with the bytes that `answer` gives for a request and its number among those of the same line, from 1. Without any it
    /// says nothing until the client goes.
    fn start(answer: impl Fn(&Got, usize) -> Vec<u8> + Send + 'static) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        let got: Arc<Mutex<Vec<Got>>> = Arc::default();
        let taken = Arc::clone(&got);
        std::thread::spawn(move || {
            for mut stream in listener.incoming().flatten() {
                let Some(one) = read(&mut stream) else { continue };
                let count = {
                    let mut taken = taken.lock().unwrap();
                    taken.push(one.clone());
                    taken.iter().filter(|other| other.line == one.line).count()
                };
                match answer(&one, count) {
                    bytes if bytes.is_empty() => drop(stream.read(&mut [0; 16])),
                    bytes => drop(stream.write_all(&bytes)),
                }
            }
        });
        Server { url, got }
    }

    fn engine(&self) -> OpenSearch {
        self.engine_with(None)
    }

    fn engine_with(&self, secret: Option<Secret>) -> OpenSearch {
        let place = Place::parse(&format!("os:{}/args", self.url)).unwrap();
        let mut engine = OpenSearch::at(&place, secret).unwrap();
        let short = Duration::from_millis(1);
        engine.caller.backoff = Backoff { base: short, longest: short, longest_asked: short };
        engine
    }

    fn lines(&self) -> Vec<String> {
        self.got.lock().unwrap().iter().map(|got| got.line.clone()).collect()
    }
}

fn read(stream: &mut TcpStream) -> Option<Got> {
    let (mut head, mut byte) = (Vec::new(), [0]);
    while !head.ends_with(b"\r\n\r\n") {
        stream.read(&mut byte).ok().filter(|count| *count > 0)?;
        head.push(byte[0]);
    }
    let head = String::from_utf8(head).unwrap();
    let header = |name: &str| {
        let found = head.lines().find_map(|line| {
            let (own, value) = line.split_once(": ")?;
            (own.eq_ignore_ascii_case(name)).then_some(value)
        });
        found.map(str::to_owned)
    };
    let mut body = vec![0; header("content-length").map_or(0, |length| length.parse().unwrap())];
    stream.read_exact(&mut body).ok()?;
    let line = head.lines().next()?.trim_end_matches(" HTTP/1.1").to_owned();
    Some(Got { line, secret: header("authorization"), body: String::from_utf8(body).unwrap() })
}

fn answer(status: &str, headers: &str, body: &Value) -> Vec<u8> {
    raw(status, headers, &body.to_string())
}

fn raw(status: &str, headers: &str, body: &str) -> Vec<u8> {
    let length = body.len();
    format!("HTTP/1.1 {status}\r\nConnection: close\r\nContent-Length: {length}\r\n{headers}\r\n{body}")
        .into_bytes()
}

fn ok(body: &Value) -> Vec<u8> {
    answer("200 OK", "", body)
}

fn mapping(dialect: Dialect, dimensions: usize) -> Value {
    json!({"args-000001": {"mappings": dialect.index(dimensions)["mappings"]}})
}

fn missing() -> Vec<u8> {
    let why = json!({"type": "index_not_found_exception", "reason": "no such index [args]"});
    answer("404 Not Found", "", &json!({"error": why, "status": 404}))
}

fn hits(list: &[(&str, f64)]) -> Value {
    let hits: Vec<Value> = list.iter().map(|(id, score)| json!({"_id": id, "_score": score})).collect();
    json!({"timed_out": false, "_shards": {"failed": 0}, "hits": {"hits": hits}})
}

/// A server whose index is right and whose searches are answered by `search`.
fn searched(search: impl Fn(usize) -> Vec<u8> + Send + 'static) -> Server {
    Server::start(move |got, count| match got.line.as_str() {
        "GET /args/_mapping" => ok(&mapping(Dialect::OpenSearch, 2)),
        _ => search(count),
    })
}

fn never() -> Stop {
    Stop::never()
}

fn row(id: &str) -> Row {
    Row {
        id: id.into(),
        title: "A \"title\"".into(),
        text: "Line one.\nLine two.".into(),
        hash: "h".into(),
        vector: vec![0.6, 0.8],
    }
}
