//! Servers that mean harm: bodies and heads without end, streams that break off, circles, lies about lengths, JSON that nests without
//! end. Five clients are tried: of language models, of the hub, of search engines (SearXNG), of pages, and of engines elsewhere
//! (OpenSearch). Each must end in words and in bounded memory.

use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::thread;
use std::time::Duration;

use parallax::encode::hub::Hub;
use parallax::llm::Chat;
use parallax::remote::{self, Place};
use parallax::web::{End, Provider};
use parallax::work::Stop;

use super::peak::held;
use super::targets::served::{LISTING, asking, chat, gathered, manners, success};
use super::tell;

/// Chunks of 64 kB that are sent at most: 2 GB, so that a client that takes all of it is seen.
const CHUNKS: usize = 32_768;

/// What a server does to whoever asks.
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
    /// Does it to whoever asks, but for the paths of which `good` says what is sent.
    fn start(self, good: fn(&str) -> Option<Vec<u8>>) -> String {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        thread::spawn(move || {
            for mut stream in listener.incoming().flatten() {
                thread::spawn(move || {
                    let path = asked(&mut stream);
                    // Whoever has enough goes, and that is no fault.
                    let _ = match good(&path) {
                        Some(answer) => stream.write_all(&answer),
                        None => self.befalls(&mut stream, &path),
                    };
                });
            }
        });
        url
    }

    fn befalls(self, stream: &mut TcpStream, path: &str) -> std::io::Result<()> {
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
    /// How a page ends that is asked for; where there are rules, they are asked for first and befall likewise.
    fn end_of_page(self, no_rules: bool) -> End {
        match self {
            Harm::EndlessBody | Harm::Bomb => End::Size,
            Harm::Circle => End::Redirect,
            Harm::EndlessHead | Harm::TooLong | Harm::NoHttp | Harm::Nothing => End::Failed,
            // Rules that were not had whole forbid; a page whose head says no fit type is not read to where it ends.
            Harm::TooShort | Harm::BreaksOff if !no_rules => End::Failed,
            Harm::TooShort | Harm::BreaksOff => End::Type,
            Harm::EndlessLine | Harm::NoJson | Harm::Deep | Harm::WrongTypes | Harm::HugeNumbers => End::Type,
        }
    }
}

fn asked(stream: &mut TcpStream) -> String {
    let (mut bytes, mut buffer) = (Vec::new(), [0; 4096]);
    while let Ok(count @ 1..) = stream.read(&mut buffer) {
        bytes.extend_from_slice(&buffer[..count]);
        if bytes.windows(4).any(|part| part == b"\r\n\r\n") {
            break;
        }
    }
    String::from_utf8_lossy(&bytes).split(' ').nth(1).unwrap_or("/").to_owned()
}

/// What is told must be safe to show, and no book.
fn words(told: &str) {
    assert!(!told.trim().is_empty() && told.len() < 4_000, "{} bytes: {told}", told.len());
    assert!(!told.contains(['\u{1b}', '\u{202e}']), "{told:?}");
}

fn nothing_good(_: &str) -> Option<Vec<u8>> {
    None
}

#[test]
fn the_client_of_language_models_ends_in_words() {
    for harm in ALL {
        let told = chat(&harm.start(nothing_good)).reply(&asking(), &Stop::never());
        words(&told.expect_err(&format!("{harm:?}")).to_string());
    }
    memory("language models");
}

#[test]
fn the_client_of_the_hub_ends_in_words_and_keeps_nothing_that_is_wrong() {
    for good in [nothing_good as fn(&str) -> _, |path: &str| {
        (!path.contains("/resolve/")).then(|| success("application/json", LISTING.as_bytes()))
    }] {
        for harm in ALL {
            let models = tempfile::tempdir().unwrap();
            let mut hub = Hub::at(&harm.start(good), None).unwrap();
            hub.patience(Duration::from_secs(20));
            hub.backoff.base = Duration::ZERO;
            let told = hub.fetch("org/model", models.path(), &|_| (), &Stop::never());
            words(&told.expect_err(&format!("{harm:?}")).to_string());
            assert!(!models.path().join("org--model").exists(), "{harm:?}");
        }
    }
    memory("the hub");
}

#[test]
fn the_client_of_search_engines_ends_in_words() {
    for harm in ALL {
        let engine = Provider::Searxng(harm.start(nothing_good)).open().unwrap();
        let told = engine.find("zoos", 10, Duration::ZERO, &Stop::never());
        words(&told.expect_err(&format!("{harm:?}")).to_string());
    }
    memory("search engines");
}

#[test]
fn a_page_that_means_harm_is_told_and_no_passage() {
    let no_robots = |path: &str| {
        (path == "/robots.txt")
            .then(|| b"HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\nConnection: close\r\n\r\n".to_vec())
    };
    for (good, no_rules) in [(nothing_good as fn(&str) -> _, false), (no_robots, true)] {
        for harm in ALL {
            let folder = tempfile::tempdir().unwrap();
            // The page itself is never an error of the whole job: it is told as one that was not read.
            let summary = gathered(&harm.start(good), manners(), folder.path());
            let summary = summary.unwrap_or_else(|| panic!("{harm:?}: the job ended"));
            let [(_, end, why)] = &summary.unread[..] else { panic!("{harm:?}: {:?}", summary.unread) };
            words(why);
            assert_eq!((*end, summary.passages), (harm.end_of_page(no_rules), 0), "{harm:?}: {why}");
        }
    }
    memory("pages");
}

#[test]
fn the_client_of_engines_elsewhere_ends_in_words() {
    for harm in ALL {
        let engine =
            remote::open(&Place::parse(&format!("os:{}/args", harm.start(nothing_good))).unwrap()).unwrap();
        let told = engine.by_text("zoos", 5, &Stop::never());
        words(&told.expect_err(&format!("{harm:?}")).to_string());
    }
    memory("engines elsewhere");
}

/// All tests of this binary share it, so that only what is far too much is seen.
fn memory(client: &str) {
    let most = held(std::process::id(), "VmHWM").unwrap_or(0) >> 10;
    assert!(most < 1_900, "{client}: {most} MB");
    tell(&format!("hostile servers, {client}: {} kinds, the whole test at most {most} MB", ALL.len()));
}
