//! The client against a server on loopback that behaves as each test says.

use crate::work::{Stop, Stopped};
use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::{Duration, Instant};

use super::*;
use crate::net::Backoff;

/// The steps on one connection, which is closed after the last.
pub type Script = Vec<Act>;

/// One step.
pub enum Act {
    /// Sends bytes at once.
    Send(Vec<u8>),
    /// Waits for so many milliseconds.
    Pause(u64),
    /// Sets a stop of the turn 0.
    Stop(Arc<AtomicU64>),
    /// Waits until the client closes the connection.
    Hang,
}

/// A server on this machine.
pub struct Fake {
    /// Its base URL.
    pub url: String,
    requests: Arc<Mutex<Vec<String>>>,
    most: Arc<AtomicUsize>,
}

impl Fake {
    /// Answers as many connections as there are scripts.
    pub fn start(scripts: Vec<Script>) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let url = format!("http://{}/v1", listener.local_addr().unwrap());
        let fake = Fake { url, requests: Arc::default(), most: Arc::default() };
        let (requests, most) = (Arc::clone(&fake.requests), Arc::clone(&fake.most));
        thread::spawn(move || {
            let open = Arc::new(AtomicUsize::new(0));
            for script in scripts {
                let Ok((stream, _)) = listener.accept() else { return };
                let (requests, most, open) = (Arc::clone(&requests), Arc::clone(&most), Arc::clone(&open));
                thread::spawn(move || {
                    most.fetch_max(open.fetch_add(1, Ordering::SeqCst) + 1, Ordering::SeqCst);
                    play(stream, script, &requests, &open);
                });
            }
        });
        fake
    }

    /// The complete requests so far.
    pub fn requests(&self) -> Vec<String> {
        self.requests.lock().unwrap().clone()
    }

    /// The most connections that were open at the same time.
    pub fn most_at_once(&self) -> usize {
        self.most.load(Ordering::SeqCst)
    }
}

fn play(mut stream: TcpStream, script: Script, requests: &Mutex<Vec<String>>, open: &AtomicUsize) {
    stream.set_nodelay(true).unwrap();
    stream.set_read_timeout(Some(Duration::from_secs(20))).unwrap();
    requests.lock().unwrap().push(received(&mut stream));
    let count = script.len();
    for (at, act) in script.into_iter().enumerate() {
        if at + 1 == count {
            // Counted before the client can see the end and connect again.
            open.fetch_sub(1, Ordering::SeqCst);
        }
        match act {
            // The client may have closed the connection.
            Act::Send(bytes) => drop(stream.write_all(&bytes)),
            Act::Pause(millis) => thread::sleep(Duration::from_millis(millis)),
            Act::Stop(now) => now.store(1, Ordering::SeqCst),
            Act::Hang => drop(stream.read(&mut [0; 16])),
        }
    }
}

fn received(stream: &mut TcpStream) -> String {
    let (mut bytes, mut buffer) = (Vec::new(), [0; 4096]);
    loop {
        let text = String::from_utf8_lossy(&bytes);
        if let Some((head, body)) = text.split_once("\r\n\r\n") {
            let length = head
                .lines()
                .find_map(|line| line.to_lowercase().strip_prefix("content-length: ")?.parse().ok());
            if body.len() >= length.unwrap_or(0) {
                return text.into_owned();
            }
        }
        match stream.read(&mut buffer) {
            // The greeting of TLS, which no end of a head will follow.
            Ok(count) if count > 0 && bytes.is_empty() && buffer[0] == 0x16 => return String::new(),
            Ok(count) if count > 0 => bytes.extend_from_slice(&buffer[..count]),
            _ => return text.into_owned(),
        }
    }
}

/// A whole response; `headers` end in a line break each.
pub fn response(status: &str, headers: &str, body: &str) -> Script {
    let length = body.len();
    let head = format!("HTTP/1.1 {status}\r\nConnection: close\r\nContent-Length: {length}\r\n{headers}\r\n");
    vec![Act::Send((head + body).into_bytes())]
}

/// The beginning of a response whose end is the end of the connection.
pub fn head() -> Act {
    Act::Send(b"HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Type: text/event-stream\r\n\r\n".to_vec())
}

/// The beginning of a response in chunks, which can be seen to be cut.
pub fn chunked_head() -> Act {
    Act::Send(b"HTTP/1.1 200 OK\r\nConnection: close\r\nTransfer-Encoding: chunked\r\n\r\n".to_vec())
}

/// One chunk of such a response; an empty one ends it.
pub fn chunk(bytes: &[u8]) -> Act {
    Act::Send([format!("{:x}\r\n", bytes.len()).as_bytes(), bytes, b"\r\n"].concat())
}

/// One event with a piece of the reply.
pub fn event(text: &str) -> String {
    format!(
        "data: {{\"model\":\"m-served\",\"choices\":[{{\"index\":0,\"delta\":{{\"content\":{text:?}}}}}]}}\n\n"
    )
}

/// The events that end a reply.
pub const END: &str = concat!(
    "data: {\"choices\":[{\"index\":0,\"delta\":{},\"finish_reason\":\"stop\"}]}\n\n",
    "data: {\"choices\":[],\"usage\":{\"prompt_tokens\":11,\"completion_tokens\":5}}\n\n",
    "data: [DONE]\n\n",
);

/// A whole streamed reply.
pub fn reply(text: &str) -> Script {
    response("200 OK", "Content-Type: text/event-stream\r\n", &(event(text) + END))
}

pub(super) fn request() -> Request {
    Request {
        system: "be brief".into(),
        prompt: "say \"hi\"".into(),
        temperature: 0.7,
        max_tokens: 64,
        ..Request::default()
    }
}

pub(super) fn client(endpoint: Endpoint) -> OpenAi {
    let mut client = OpenAi::new(endpoint).unwrap();
    let millis = Duration::from_millis;
    client.backoff = Backoff { base: millis(1), longest: millis(4), longest_asked: Duration::from_secs(60) };
    client
}

pub(super) fn endpoint(fake: &Fake) -> Endpoint {
    Endpoint { key: Some("sk-hush".into()), ..Endpoint::from_env(&fake.url, "m-asked") }
}

pub(super) fn ask(fake: &Fake) -> Result<Reply, ChatError> {
    client(endpoint(fake)).reply(&request(), &Stop::never())
}

#[test]
fn a_streamed_reply_is_complete_even_if_chunks_end_inside_a_letter() {
    let text = format!("{}{}{}", event("Grüße, "), event("世界 🌍"), END);
    let mut script = vec![chunked_head()];
    for part in text.as_bytes().chunks(53).flat_map(|part| part.chunks(29)) {
        script.extend([chunk(part), Act::Pause(1)]);
    }
    // In the middle of the ü, beyond what the sizes above may happen to hit.
    let (cut, mut other) = (text.find('ü').unwrap() + 1, vec![chunked_head()]);
    other.extend([chunk(&text.as_bytes()[..cut]), Act::Pause(5), chunk(&text.as_bytes()[cut..])]);
    let fake = Fake::start(vec![script, other]);
    for _ in 0..2 {
        let right = Reply {
            text: "Grüße, 世界 🌍".into(),
            model: "m-served".into(),
            recorded: false,
            tokens: Some(Tokens { prompt: 11, reply: 5 }),
            ..Reply::default()
        };
        assert_eq!(ask(&fake), Ok(right));
    }
}

#[test]
fn the_request_holds_the_prompt_and_the_key() {
    let fake = Fake::start(vec![reply("hi"), reply("hi")]);
    ask(&fake).unwrap();
    client(Endpoint { key: None, ..endpoint(&fake) })
        .reply(&Request { system: String::new(), ..request() }, &Stop::never())
        .unwrap();
    let requests = fake.requests();
    assert!(requests[0].starts_with("POST /v1/chat/completions HTTP/1.1\r\n"), "{}", requests[0]);
    assert!(requests[0].to_lowercase().contains("authorization: bearer sk-hush\r\n"));
    assert!(!requests[1].to_lowercase().contains("authorization"));
    let body = |at: usize| -> serde_json::Value {
        serde_json::from_str(requests[at].split_once("\r\n\r\n").unwrap().1).unwrap()
    };
    let user = serde_json::json!({"role": "user", "content": "say \"hi\""});
    assert_eq!(body(0)["messages"], serde_json::json!([{"role": "system", "content": "be brief"}, user]));
    assert_eq!(body(1)["messages"], serde_json::json!([user]));
    assert!(requests[0].contains("\"temperature\":0.7,\"max_tokens\":64,\"stream\":true"), "{}", requests[0]);
    assert_eq!(body(0)["stream_options"]["include_usage"], true);
    assert_eq!(body(0)["model"], "m-asked");
}

#[test]
fn a_server_that_does_not_stream_is_understood() {
    let body = r#"{"choices":[{"index":0,"message":{"role":"assistant","content":"hi"},"finish_reason":"stop"}],
        "usage":{"prompt_tokens":3,"completion_tokens":1,"total_tokens":4}}"#;
    let fake = Fake::start(vec![response("200 OK", "Content-Type: application/json\r\n", body)]);
    let error = ask(&fake).unwrap();
    assert_eq!((error.text.as_str(), error.model.as_str()), ("hi", "m-asked"));
    assert_eq!(error.tokens, Some(Tokens { prompt: 3, reply: 1 }));
}

#[test]
fn a_complete_reply_counts_even_without_the_end_of_the_stream() {
    let finish = END.split_inclusive("\n\n").next().unwrap();
    let fake = Fake::start(vec![vec![chunked_head(), chunk(format!("{}{finish}", event("hi")).as_bytes())]]);
    let error = ask(&fake).unwrap();
    assert_eq!((error.text.as_str(), error.tokens), ("hi", None));
}

#[test]
fn a_wrong_key_is_not_tried_again_and_not_shown() {
    let body =
        r#"{"error":{"message":"Incorrect API key\u001b[31m provided: sk-hush.","code":"invalid_api_key"}}"#;
    let fake = Fake::start(vec![response("401 Unauthorized", "", body), reply("hi")]);
    let error = ask(&fake);
    let Err(ChatError::Barred(error)) = error else { panic!("{error:?}") };
    assert!(error.contains("401") && error.contains("Incorrect API key·[31m provided: (key)."), "{error}");
    assert!(error.contains(KEY_VARIABLE) && !error.contains("hush"), "{error}");
    assert_eq!(fake.requests().len(), 1);
    assert!(!format!("{:?}", client(endpoint(&fake))).contains("hush"));
}

#[test]
fn a_permanent_failure_is_not_tried_again_and_is_reported_briefly() {
    for status in ["400 Bad Request", "403 Forbidden", "404 Not Found", "302 Found"] {
        let fake = Fake::start(vec![response(status, "", &"long ".repeat(4000)), reply("hi")]);
        let error = ask(&fake);
        let error = match error {
            Err(ChatError::Refused(error)) if status.starts_with("400") => error,
            Err(ChatError::Barred(error)) if !status.starts_with("400") => error,
            other => panic!("{other:?}"),
        };
        assert!(error.contains(status) && error.chars().count() < 500, "{error}");
        assert_eq!(fake.requests().len(), 1);
    }
}

#[test]
fn a_body_that_is_not_a_chat_completion_is_reported_with_an_excerpt() {
    for (body, excerpt) in
        [("{\"hello\":1}", "hello"), ("<h1>Welcome</h1>", "Welcome"), ("data: what\n\n", "what")]
    {
        let fake = Fake::start(vec![response("200 OK", "", body), reply("hi")]);
        let error = ask(&fake);
        let Err(ChatError::Nonsense(error)) = error else { panic!("{error:?}") };
        assert!(error.contains(excerpt), "{error}");
        assert_eq!(fake.requests().len(), 1);
    }
}

#[test]
fn an_empty_reply_is_an_error() {
    let fake = Fake::start(vec![reply("")]);
    let error = ask(&fake);
    assert!(
        matches!(&error, Err(ChatError::Nonsense(error)) if error.contains("an empty reply")),
        "{error:?}"
    );
}

#[test]
fn a_client_needs_a_usable_endpoint() {
    let error = |endpoint| OpenAi::new(endpoint).unwrap_err().to_string();
    assert!(error(Endpoint::from_env("", "m")).contains("set --llm URL"));
    assert!(error(Endpoint::from_env("http://localhost:1/v1", " ")).contains("http://localhost:1/v1/models"));
    let odd = Endpoint { key: Some("sk-\nhush".into()), ..Endpoint::from_env("http://localhost:1/v1", "m") };
    assert!(!error(odd).contains("hush"));
}

#[test]
fn a_request_with_an_invalid_temperature_is_not_sent() {
    let fake = Fake::start(vec![reply("hi")]);
    let error =
        client(endpoint(&fake)).reply(&Request { temperature: f32::NAN, ..request() }, &Stop::never());
    assert!(matches!(error, Err(ChatError::Refused(_))));
    assert!(fake.requests().is_empty());
}

#[test]
fn a_client_works_and_ends_inside_another_runtime() {
    let fake = Fake::start(vec![reply("hi")]);
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).build().unwrap();
    runtime.block_on(async { assert_eq!(ask(&fake).unwrap().text, "hi") });
}

/// Longer than a stop takes even on a busy machine, and shorter than the 20 seconds for which a server waits.
const SOON: Duration = Duration::from_secs(5);

/// Sends a request to a server that sets the stop itself. Returns the result, and whether it came soon.
fn stopped(script: impl FnOnce(Act) -> Script) -> (Result<Reply, ChatError>, bool) {
    let now = Arc::new(AtomicU64::new(0));
    let fake = Fake::start(vec![script(Act::Stop(Arc::clone(&now)))]);
    let begun = Instant::now();
    let error = client(endpoint(&fake)).reply(&request(), &Stop::when_past(&now, 0));
    (error, begun.elapsed() < SOON)
}

#[test]
fn a_busy_server_is_asked_again_after_the_pause_that_it_requests() {
    let fake =
        Fake::start(vec![response("429 Too Many Requests", "Retry-After: 1\r\n", "busy"), reply("hi")]);
    let begun = Instant::now();
    assert_eq!(client(endpoint(&fake)).reply(&request(), &Stop::never()).unwrap().text, "hi");
    assert!(begun.elapsed() >= Duration::from_secs(1));
}

#[test]
fn a_server_that_asks_for_a_pause_of_days_is_not_waited_for() {
    let fake = Fake::start(vec![response("429 Too Many Requests", "Retry-After: 999999\r\n", "busy")]);
    let begun = Instant::now();
    let error = ask(&fake).unwrap_err().to_string();
    assert!(error.contains("asks for a pause of 999999s"), "{error}");
    assert!(begun.elapsed() < SOON);
}

#[test]
fn a_server_that_only_pings_is_given_up_after_the_total_time() {
    let mut script = vec![head()];
    for _ in 0..500 {
        script.extend([Act::Pause(20), Act::Send(b": ping\n\n".to_vec())]);
    }
    let fake = Fake::start(vec![script]);
    let endpoint = Endpoint { total: Duration::from_millis(300), ..endpoint(&fake) };
    let begun = Instant::now();
    let error = client(endpoint).reply(&request(), &Stop::never()).unwrap_err().to_string();
    assert!(error.contains("did not finish its reply within 300ms"), "{error}");
    assert!(begun.elapsed() < SOON);
}

#[test]
fn a_request_is_repeated_after_an_error_of_the_server() {
    let stream_error = event("ha") + "data: {\"error\":{\"message\":\"oom\",\"code\":500}}\n\n";
    let fake = Fake::start(vec![
        response("500 Internal Server Error", "", ""),
        response("503 Service Unavailable", "", "{\"error\":{\"message\":\"loading\"}}"),
        response("200 OK", "", &stream_error),
        reply("hi"),
    ]);
    assert_eq!(ask(&fake).unwrap().text, "hi");
    assert_eq!(fake.requests().len(), 4);
}

#[test]
fn a_request_is_repeated_after_a_cut_connection_and_the_text_is_not_doubled() {
    let half = event("ha");
    let fake = Fake::start(vec![
        vec![],
        vec![Act::Send(b"HTTP/1.1 200".to_vec())],
        vec![chunked_head(), chunk(half.as_bytes())],
        vec![head(), Act::Send(half.into_bytes())],
        reply("hi"),
    ]);
    assert_eq!(ask(&fake).unwrap().text, "hi");
}

#[test]
fn tries_are_limited_and_the_message_says_how_many() {
    let busy = || response("503 Service Unavailable", "", "{\"message\":\"loading\"}");
    let fake = Fake::start(vec![busy(), busy(), busy()]);
    let error = client(Endpoint { tries: 3, ..endpoint(&fake) }).reply(&request(), &Stop::never());
    let Err(ChatError::Barred(error)) = error else { panic!("{error:?}") };
    assert!(
        error.contains("503") && error.contains("loading") && error.ends_with("(tried 3 times)"),
        "{error}"
    );
}

#[test]
fn a_stop_ends_the_wait_for_the_first_byte() {
    assert_eq!(stopped(|stop| vec![stop, Act::Hang]), (Err(Stopped.into()), true));
}

#[test]
fn a_stop_ends_the_wait_between_two_bytes() {
    let script = |stop| vec![head(), Act::Send(event("ha").into_bytes()), stop, Act::Hang];
    assert_eq!(stopped(script), (Err(Stopped.into()), true));
}

#[test]
fn a_stop_ends_the_pause_before_another_try() {
    let script = |stop| {
        let mut script = response("429 Too Many Requests", "Retry-After: 30\r\n", "");
        script.push(stop);
        script
    };
    assert_eq!(stopped(script), (Err(Stopped.into()), true));
}

#[test]
fn a_stop_ends_the_wait_for_a_free_connection_and_prevents_a_request() {
    let now = Arc::new(AtomicU64::new(0));
    let fake = Fake::start(vec![vec![Act::Pause(60), Act::Stop(Arc::clone(&now)), Act::Hang]]);
    let client = client(Endpoint { at_once: 1, ..endpoint(&fake) });
    let ask = || client.reply(&request(), &Stop::when_past(&now, 0));
    let begun = Instant::now();
    thread::scope(|scope| {
        let both = [scope.spawn(ask), scope.spawn(ask)];
        for one in both {
            assert_eq!(one.join().unwrap(), Err(Stopped.into()));
        }
    });
    assert_eq!(ask(), Err(Stopped.into()));
    assert!(begun.elapsed() < SOON);
    assert_eq!(fake.requests().len(), 1);
}

#[test]
fn a_silent_server_is_given_up_after_the_timeout() {
    let fake = Fake::start(vec![vec![Act::Hang], vec![head(), Act::Hang]]);
    let endpoint = Endpoint { patience: Duration::from_millis(50), tries: 2, ..endpoint(&fake) };
    let error = client(endpoint).reply(&request(), &Stop::never());
    let Err(ChatError::Unreachable(error)) = error else { panic!("{error:?}") };
    assert!(error.contains("sent nothing for 50ms") && error.contains("tried 2 times"), "{error}");
}

#[test]
fn a_slow_server_is_waited_for_while_it_sends() {
    let mut script = vec![head()];
    for _ in 0..8 {
        script.extend([Act::Pause(300), Act::Send(b": working\n\n".to_vec())]);
    }
    script.push(Act::Send((event("hi") + END).into_bytes()));
    let fake = Fake::start(vec![script]);
    let endpoint = Endpoint { patience: Duration::from_secs(2), tries: 1, ..endpoint(&fake) };
    assert_eq!(client(endpoint).reply(&request(), &Stop::never()).unwrap().text, "hi");
}

#[test]
fn an_unreachable_server_is_reported_at_once_with_advice() {
    let free = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let mut client = client(Endpoint::from_env(format!("http://{free}/v1"), "m"));
    client.backoff = Backoff::default();
    let begun = Instant::now();
    let error = client.reply(&request(), &Stop::never());
    let Err(ChatError::Unreachable(error)) = error else { panic!("{error:?}") };
    assert!(error.contains("refused") && error.contains("start the server or set --llm URL"), "{error}");
    assert!(begun.elapsed() < SOON);
}

#[test]
fn a_certificate_that_cannot_be_checked_is_reported_at_once() {
    let fake = Fake::start(vec![vec![Act::Send(b"HTTP/1.1 400 Bad Request\r\n\r\n".to_vec())]]);
    let url = fake.url.replace("http:", "https:");
    let client = match OpenAi::new(Endpoint::from_env(url, "m")) {
        Ok(client) => client,
        // Minimal containers have no certificates, and the message names the package that has them.
        Err(error) => return assert!(error.to_string().contains("ca-certificates"), "{error}"),
    };
    let error = client.reply(&request(), &Stop::never());
    assert!(
        matches!(&error, Err(ChatError::Unreachable(error)) if error.contains("check the URL")),
        "{error:?}"
    );
}

#[test]
fn at_most_as_many_requests_as_allowed_run_at_once() {
    let slow = || {
        let mut script = reply("hi");
        script.insert(0, Act::Pause(20));
        script
    };
    let fake = Fake::start((0..8).map(|_| slow()).collect());
    let client = client(Endpoint { at_once: 2, ..endpoint(&fake) });
    thread::scope(|scope| {
        for _ in 0..8 {
            scope.spawn(|| assert_eq!(client.reply(&request(), &Stop::never()).unwrap().text, "hi"));
        }
    });
    assert!(fake.most_at_once() <= 2);
}
