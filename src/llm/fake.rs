//! A server for tests: it answers one connection after another as it was told to.

use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::Duration;

/// What is done on one connection, in turn; then it is closed.
pub type Script = Vec<Act>;

/// One step.
pub enum Act {
    /// Sends bytes at once.
    Send(Vec<u8>),
    /// Waits a little.
    Pause(u64),
    /// Sets a stop of the turn 0.
    Stop(Arc<AtomicU64>),
    /// Waits until the client goes.
    Hang,
}

/// A server on this machine.
pub struct Fake {
    /// Its base URL.
    pub url: String,
    asked: Arc<Mutex<Vec<String>>>,
    most: Arc<AtomicUsize>,
}

impl Fake {
    /// Answers as many connections as there are scripts.
    pub fn start(scripts: Vec<Script>) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let url = format!("http://{}/v1", listener.local_addr().unwrap());
        let fake = Fake { url, asked: Arc::default(), most: Arc::default() };
        let (asked, most) = (Arc::clone(&fake.asked), Arc::clone(&fake.most));
        thread::spawn(move || {
            let open = Arc::new(AtomicUsize::new(0));
            for script in scripts {
                let Ok((stream, _)) = listener.accept() else { return };
                let (asked, most, open) = (Arc::clone(&asked), Arc::clone(&most), Arc::clone(&open));
                thread::spawn(move || {
                    most.fetch_max(open.fetch_add(1, Ordering::SeqCst) + 1, Ordering::SeqCst);
                    play(stream, script, &asked, &open);
                });
            }
        });
        fake
    }

    /// The requests so far, whole.
    pub fn asked(&self) -> Vec<String> {
        self.asked.lock().unwrap().clone()
    }

    /// The most connections that were open at the same time.
    pub fn most_at_once(&self) -> usize {
        self.most.load(Ordering::SeqCst)
    }
}

fn play(mut stream: TcpStream, script: Script, asked: &Mutex<Vec<String>>, open: &AtomicUsize) {
    stream.set_nodelay(true).unwrap();
    stream.set_read_timeout(Some(Duration::from_secs(20))).unwrap();
    asked.lock().unwrap().push(request(&mut stream));
    let count = script.len();
    for (at, act) in script.into_iter().enumerate() {
        if at + 1 == count {
            // Before the client can know of the end and connect anew.
            open.fetch_sub(1, Ordering::SeqCst);
        }
        match act {
            // A client that has gone is no fault.
            Act::Send(bytes) => drop(stream.write_all(&bytes)),
            Act::Pause(millis) => thread::sleep(Duration::from_millis(millis)),
            Act::Stop(now) => now.store(1, Ordering::SeqCst),
            Act::Hang => drop(stream.read(&mut [0; 16])),
        }
    }
}

fn request(stream: &mut TcpStream) -> String {
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
pub fn said(text: &str) -> String {
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
    response("200 OK", "Content-Type: text/event-stream\r\n", &(said(text) + END))
}
