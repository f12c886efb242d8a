//! A server on loopback that answers as each test says.

use super::USER;
use crate::net::Secret;
use crate::remote::{Place, RemoteError, Row, Scored};
use crate::work::Stop;
use serde_json::{Value, json};
use std::collections::HashMap;
use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use super::Dialect;
use super::*;
use crate::net::Backoff;

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

#[test]
fn a_text_is_matched_in_title_and_text_and_the_schema_is_asked_for_once() {
    let server = searched(|_| ok(&hits(&[("a", 7.5), ("b", 2.0), ("a", 1.0)])));
    let engine = server.engine();
    let found = engine.by_text("Should zoos be banned?", 5, &never()).unwrap();
    let ids: Vec<(&str, f32)> = found.iter().map(|hit| (hit.id.as_str(), hit.score)).collect();
    assert_eq!(ids, [("a", 7.5), ("b", 2.0)], "an id stands once");
    engine.by_text("again", 1, &never()).unwrap();
    assert_eq!(server.lines(), ["GET /args/_mapping", "POST /args/_search", "POST /args/_search"]);
    let sent: Value = serde_json::from_str(&server.got.lock().unwrap()[1].body).unwrap();
    assert_eq!(sent["size"], 5);
    let should = &sent["query"]["bool"]["should"];
    assert_eq!(should[0]["match"]["title"]["query"], "Should zoos be banned?");
    assert_eq!(should[1]["match"]["text"]["query"], "Should zoos be banned?");
}

#[test]
fn vectors_are_asked_for_in_the_words_of_either_server_and_scores_are_cosines() {
    for dialect in [Dialect::OpenSearch, Dialect::Elasticsearch] {
        let server = Server::start(move |got, _| match got.line.as_str() {
            "GET /args/_mapping" => ok(&mapping(dialect, 2)),
            _ => ok(&hits(&[("a", 1.0), ("b", 0.75)])),
        });
        let found = server.engine().by_vector(&[0.6, 0.8], 7, &never()).unwrap();
        assert_eq!(found.iter().map(|hit| hit.score).collect::<Vec<_>>(), [1.0, 0.5]);
        let sent: Value = serde_json::from_str(&server.got.lock().unwrap()[1].body).unwrap();
        match dialect {
            Dialect::OpenSearch => assert_eq!(sent["query"]["knn"]["vector"]["k"], 7),
            Dialect::Elasticsearch => assert_eq!(sent["knn"]["field"], "vector"),
        }
    }
}

#[test]
fn another_schema_is_reported_by_what_differs() {
    let server = Server::start(|_, _| {
        ok(&json!({"args": {"mappings": {"properties": {
            "title": {"type": "text"}, "text": {"type": "keyword"},
            "vector": {"type": "dense_vector", "dims": 768, "similarity": "cosine"},
        }}}}))
    });
    let error = |result: Result<Vec<Scored>, RemoteError>| match result {
        Err(RemoteError::Schema(error)) => error,
        other => panic!("{other:?}"),
    };
    let engine = server.engine();
    let text = error(engine.by_text("x", 5, &never()));
    assert!(text.contains("`text` is `keyword`, expected text") && text.contains("corpus push"), "{text}");
    let vectors = error(engine.by_vector(&[0.6, 0.8], 5, &never()));
    assert!(vectors.contains("`vector` has 768 numbers, expected 2"), "{vectors}");
    match engine.prepare(2, &never()) {
        Err(RemoteError::Schema(error)) => assert!(error.contains("`hash` is missing"), "{error}"),
        other => panic!("{other:?}"),
    }
    assert!(server.lines().iter().all(|line| line == "GET /args/_mapping"), "nothing was changed");
}

#[test]
fn vectors_that_are_not_scored_by_the_cosine_are_refused() {
    for (method, expected) in [
        (json!({"engine": "lucene", "space_type": "l2"}), "compared by `l2`, expected the cosine"),
        (json!({"engine": "lucene", "space_type": "l2".repeat(9_000)}), "l2l2l2…`, expected the cosine"),
        (
            json!({"engine": "nmslib", "space_type": "cosinesimil"}),
            "stored by nmslib, expected lucene or faiss",
        ),
        (Value::Null, "names no space_type, which means l2, expected cosinesimil"),
        (json!({"engine": "faiss", "name": "hnsw"}), "names no space_type"),
    ] {
        let field = json!({"type": "knn_vector", "dimension": 2, "method": method});
        let server =
            Server::start(move |_, _| ok(&json!({"args": {"mappings": {"properties": {"vector": field}}}})));
        let Err(RemoteError::Schema(error)) = server.engine().by_vector(&[0.6, 0.8], 5, &never()) else {
            panic!()
        };
        assert!(error.contains(expected), "{error}");
    }
}

#[test]
fn a_space_is_read_where_either_server_writes_it() {
    for field in [
        json!({"type": "knn_vector", "dimension": 2, "space_type": "cosinesimil"}),
        json!({"type": "dense_vector", "dims": 2}),
    ] {
        let server = Server::start(move |got, _| match got.line.as_str() {
            "GET /args/_mapping" => ok(&json!({"args": {"mappings": {"properties": {"vector": field}}}})),
            _ => ok(&hits(&[("a", 1.0)])),
        });
        assert_eq!(server.engine().by_vector(&[0.6, 0.8], 5, &never()).unwrap().len(), 1);
    }
}

#[test]
fn an_index_that_does_not_fit_is_looked_at_again_once_it_was_mended() {
    let server = Server::start(|got, count| match (got.line.as_str(), count) {
        ("GET /args/_mapping", 1) => ok(&json!({"args": {"mappings": {}}})),
        ("GET /args/_mapping", _) => ok(&mapping(Dialect::OpenSearch, 2)),
        _ => ok(&hits(&[("a", 1.0)])),
    });
    let engine = server.engine();
    assert!(matches!(engine.by_text("x", 5, &never()), Err(RemoteError::Schema(_))));
    assert_eq!(engine.by_text("x", 5, &never()).unwrap().len(), 1);
    assert_eq!(engine.by_vector(&[0.6, 0.8], 5, &never()).unwrap().len(), 1);
    let count = server.lines().iter().filter(|line| *line == "GET /args/_mapping").count();
    assert_eq!(count, 2, "what was found right is remembered");
}

#[test]
fn an_index_that_is_not_there_is_reported_with_what_makes_it() {
    let server = Server::start(|_, _| missing());
    let Err(RemoteError::Schema(error)) = server.engine().by_text("x", 5, &never()) else { panic!() };
    assert!(error.contains("parallax corpus push os:http://127.0.0.1"), "{error}");
}

#[test]
fn secrets_go_into_the_header_and_a_refusal_names_the_variables() {
    let refusing = || {
        Server::start(|_, _| {
            let why = json!({"type": "security_exception", "reason": "unable to authenticate"});
            answer("401 Unauthorized", "", &json!({"error": why, "status": 401}))
        })
    };
    let error = |server: &Server, secret| match server.engine_with(secret).by_text("x", 5, &never()) {
        Err(RemoteError::Refused(error)) => error,
        other => panic!("{other:?}"),
    };
    let server = refusing();
    let without = error(&server, None);
    assert!(
        without.contains("unable to authenticate") && without.contains(&format!("set {USER}")),
        "{without}"
    );
    let with = error(&server, Some(Secret::Basic("me".into(), "hush".into())));
    assert!(with.contains("check PARALLAX_OPENSEARCH_USER") && !with.contains("hush"), "{with}");
    error(&server, Some(Secret::ApiKey("a2V5".into())));
    let sent: Vec<Option<String>> = server.got.lock().unwrap().iter().map(|got| got.secret.clone()).collect();
    assert_eq!(sent, [None, Some("Basic bWU6aHVzaA==".into()), Some("ApiKey a2V5".into())]);
    assert_eq!(format!("{:?}", Secret::ApiKey("a2V5".into())), "(hidden)");
}

#[test]
fn an_index_is_made_in_the_words_of_the_server() {
    for (root, kind) in [
        (json!({"version": {"distribution": "opensearch", "number": "3.3.0"}}), "knn_vector"),
        (json!({"version": {"number": "9.1.0"}, "tagline": "You Know, for Search"}), "dense_vector"),
    ] {
        let server = Server::start(move |got, _| match got.line.as_str() {
            "GET /args/_mapping" => missing(),
            "GET /" => ok(&root),
            "PUT /args" => ok(&json!({"acknowledged": true})),
            other => panic!("{other}"),
        });
        assert_eq!(server.engine().prepare(384, &never()), Ok(true));
        let made: Value = serde_json::from_str(&server.got.lock().unwrap()[2].body).unwrap();
        assert_eq!(made["mappings"]["properties"]["vector"]["type"], kind);
    }
    let other = Server::start(|got, _| match got.line.as_str() {
        "GET /" => ok(&json!({"hello": "world"})),
        _ => missing(),
    });
    assert!(matches!(other.engine().prepare(384, &never()), Err(RemoteError::Nonsense(_))));
}

#[test]
fn passages_are_sent_as_lines_and_those_the_server_had_no_room_for_again() {
    let server = Server::start(|_, count| {
        let full = json!({"index": {"status": 429, "error": {"reason": "queue full"}}});
        let done = json!({"index": {"status": 201}});
        let items = if count == 1 { vec![done, full] } else { vec![done] };
        ok(&json!({"errors": count == 1, "items": items}))
    });
    server.engine().put(&[row("a"), row("b\n")], &never()).unwrap();
    let got = server.got.lock().unwrap().clone();
    assert_eq!(got.len(), 2);
    let lines: Vec<Value> = got[0].body.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!((lines.len(), got[1].body.lines().count()), (4, 2));
    assert_eq!(lines[2]["index"]["_id"], "b\n");
    assert_eq!(lines[1]["text"], "Line one.\nLine two.");
    assert!(got[0].body.contains("\"vector\":[0.6,0.8]"), "numbers are written short: {}", got[0].body);
    assert_eq!(server.engine().size(&row("a")) + server.engine().size(&row("b\n")), got[0].body.len());
}

#[test]
fn a_passage_that_is_refused_is_named() {
    let server = Server::start(|_, _| {
        let why = json!({"type": "mapper_parsing_exception", "reason": "failed to parse"});
        ok(&json!({"errors": true, "items": [{"index": {"status": 400, "error": why}}]}))
    });
    let Err(RemoteError::Refused(error)) = server.engine().put(&[row("a-7")], &never()) else { panic!() };
    assert!(error.contains("`a-7`") && error.contains("failed to parse"), "{error}");
    let short = Server::start(|_, _| ok(&json!({"items": []})));
    assert!(matches!(short.engine().put(&[row("a")], &never()), Err(RemoteError::Nonsense(_))));
}

#[test]
fn a_request_that_is_too_large_is_reported_as_such() {
    let server = Server::start(|_, _| raw("413 Content Too Large", "", ""));
    let Err(RemoteError::TooLarge(error)) = server.engine().put(&[row("a")], &never()) else { panic!() };
    assert!(error.contains("takes no requests of this size"), "{error}");
}

#[test]
fn hashes_are_those_of_the_passages_that_are_there() {
    let server = Server::start(|_, _| {
        ok(&json!({"docs": [
            {"_id": "a", "found": true, "_source": {"hash": "h1"}},
            {"_id": "b", "found": false},
            {"_id": "c", "found": true},
        ]}))
    });
    let hashes = server.engine().hashes(&["a".into(), "b".into(), "c".into()], &never()).unwrap();
    assert_eq!(hashes, HashMap::from([("a".into(), "h1".into()), ("c".into(), String::new())]));
}

#[test]
fn a_busy_server_is_asked_again_and_given_up_after_four_tries() {
    let server = searched(|count| match count {
        1 => raw("429 Too Many Requests", "Retry-After: 0\r\n", ""),
        2 => raw("503 Service Unavailable", "", "{}"),
        _ => ok(&hits(&[("a", 1.0)])),
    });
    assert_eq!(server.engine().by_text("x", 5, &never()).unwrap().len(), 1);
    let server = searched(|_| raw("503 Service Unavailable", "", "{}"));
    let Err(RemoteError::Refused(error)) = server.engine().by_text("x", 5, &never()) else { panic!() };
    assert!(error.contains("503") && error.contains("tried 4 times"), "{error}");
    assert_eq!(server.lines().len(), 5);
}

#[test]
fn a_server_that_is_down_slow_or_cuts_the_answer_is_reported() {
    let closed = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let place = Place::parse(&format!("os:http://{closed}/args")).unwrap();
    let Err(RemoteError::Unreached(error)) = OpenSearch::at(&place, None).unwrap().by_text("x", 5, &never())
    else {
        panic!()
    };
    assert!(error.contains("could not be reached") && !error.contains("tried"), "{error}");

    let slow = Server::start(|_, _| Vec::new());
    let mut engine = slow.engine();
    engine.caller.patience = Duration::from_millis(30);
    let Err(RemoteError::Unreached(error)) = engine.by_text("x", 5, &never()) else { panic!() };
    assert!(error.contains("sent nothing for 30ms"), "{error}");

    let cut = Server::start(|_, _| b"HTTP/1.1 200 OK\r\nContent-Length: 900\r\n\r\n{\"hits".to_vec());
    let Err(RemoteError::Unreached(error)) = cut.engine().by_text("x", 5, &never()) else { panic!() };
    assert!(error.contains("tried 4 times"), "{error}");
}

#[test]
fn a_server_that_speaks_tls_is_not_believed_without_a_certificate_and_http_is_not_taken_for_it() {
    let plain = Server::start(|_, _| raw("200 OK", "", "{}"));
    let place = Place::parse(&format!("os:{}/args", plain.url.replace("http://", "https://"))).unwrap();
    // Where the system has no certificates, there is no client at all.
    if let Ok(mut engine) = OpenSearch::at(&place, None) {
        engine.caller.patience = Duration::from_millis(500);
        assert!(matches!(engine.by_text("x", 5, &never()), Err(RemoteError::Unreached(_))));
    }
    assert!(plain.lines().is_empty(), "nothing was sent in the clear");
}

#[test]
fn nonsense_is_no_list() {
    for nonsense in [
        raw("200 OK", "", "<html>hello"),
        ok(&json!({"hits": {"hits": [{"_id": 7, "_score": 1.0}]}})),
        ok(&json!({"hits": {"hits": [{"_id": "a", "_score": null}]}})),
        ok(&json!({"hits": {"hits": [{"_id": "a", "_score": 1e300}]}})),
        ok(&json!([])),
    ] {
        let server = searched(move |_| nonsense.clone());
        let error = server.engine().by_text("x", 5, &never());
        assert!(matches!(error, Err(RemoteError::Nonsense(_))), "{error:?}");
    }
    let server = searched(|_| ok(&json!({"timed_out": true, "hits": {"hits": []}})));
    let Err(RemoteError::Refused(error)) = server.engine().by_text("x", 5, &never()) else { panic!() };
    assert!(error.contains("a part of the index"), "{error}");
    let server = Server::start(|_, _| raw("301 Moved", "Location: http://elsewhere/\r\n", ""));
    assert!(matches!(server.engine().by_text("x", 5, &never()), Err(RemoteError::Refused(_))));
    assert_eq!(server.lines().len(), 1, "a redirect is not followed");
}

#[test]
fn a_stop_ends_the_waiting() {
    let now = Arc::new(AtomicU64::new(0));
    let stops = Arc::clone(&now);
    let server = Server::start(move |_, _| {
        stops.store(1, Ordering::SeqCst);
        Vec::new()
    });
    let error = server.engine().by_text("x", 5, &Stop::when_past(&now, 0));
    assert!(matches!(error, Err(RemoteError::Stopped(_))), "{error:?}");
}
