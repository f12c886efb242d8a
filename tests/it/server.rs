//! A server of a language model on loopback, with an OpenAI-compatible interface: it streams, and refuses, fails, cuts the connection or
//! falls silent on request.

use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::{Arc, Mutex};
use std::thread;

/// The treatment of one request, in the order of arrival. After the last one, every request is answered.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Fate {
    /// Refused for now, with a time to wait.
    TooMany,
    /// The server fails.
    Broken,
    /// The connection ends in the middle of the reply.
    Cut,
    /// Nothing is sent until the client closes the connection.
    Silent,
    /// A reply that is not a chat completion.
    Nonsense,
}

/// The server. It ends with the test's process.
pub struct Server {
    /// Its address.
    pub url: String,
    /// The bodies of all requests so far.
    pub asked: Arc<Mutex<Vec<String>>>,
}

impl Server {
    /// Answers a prompt with the result of `reply`.
    pub fn start(fates: Vec<Fate>, reply: fn(&str) -> String) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let url = format!("http://{}/v1", listener.local_addr().unwrap());
        let asked: Arc<Mutex<Vec<String>>> = Arc::default();
        let taken = Arc::clone(&asked);
        let fates = Arc::new(Mutex::new(fates.into_iter()));
        thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                let (taken, fates) = (Arc::clone(&taken), Arc::clone(&fates));
                thread::spawn(move || serve(stream, &taken, &fates, reply));
            }
        });
        Server { url, asked }
    }
}

fn serve(
    mut stream: TcpStream,
    asked: &Mutex<Vec<String>>,
    fates: &Mutex<std::vec::IntoIter<Fate>>,
    reply: fn(&str) -> String,
) {
    let Some(body) = body(&mut stream) else { return };
    let json: serde_json::Value = serde_json::from_str(&body).unwrap();
    let prompt = json["messages"].as_array().unwrap().last().unwrap()["content"].as_str().unwrap().to_owned();
    asked.lock().unwrap().push(body);
    let fate = fates.lock().unwrap().next();
    let mut send = |text: &str| drop(stream.write_all(text.as_bytes()));
    match fate {
        Some(Fate::TooMany) => send(
            "HTTP/1.1 429 Too Many Requests\r\nRetry-After: 0\r\nContent-Length: 0\r\nConnection: close\r\n\r\n",
        ),
        Some(Fate::Broken) => {
            send("HTTP/1.1 500 Oops\r\nContent-Length: 0\r\nConnection: close\r\n\r\n");
        }
        Some(Fate::Nonsense) => {
            send("HTTP/1.1 200 OK\r\nContent-Length: 12\r\nConnection: close\r\n\r\n<html>hello\n");
        }
        Some(Fate::Silent) => drop(stream.read(&mut [0; 16])),
        fate => {
            send(
                "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nConnection: close\r\nTransfer-Encoding: chunked\r\n\r\n",
            );
            let text = reply(&prompt);
            let middle = text.char_indices().nth(text.chars().count() / 2).map_or(0, |(i, _)| i);
            let mut event = |delta: &str| {
                let json = serde_json::json!({"choices": [{"index": 0, "delta": {"content": delta}}]});
                let line = format!("data: {json}\n\n");
                send(&format!("{:x}\r\n{line}\r\n", line.len()));
            };
            event(&text[..middle]);
            if fate == Some(Fate::Cut) {
                return;
            }
            event(&text[middle..]);
            let end = "data: {\"choices\":[{\"index\":0,\"delta\":{},\"finish_reason\":\"stop\"}]}\n\ndata: [DONE]\n\n";
            send(&format!("{:x}\r\n{end}\r\n0\r\n\r\n", end.len()));
        }
    }
}

fn body(stream: &mut TcpStream) -> Option<String> {
    let (mut bytes, mut buffer) = (Vec::new(), [0; 4096]);
    loop {
        let text = String::from_utf8_lossy(&bytes).into_owned();
        if let Some((head, body)) = text.split_once("\r\n\r\n") {
            let length = head.lines().find_map(|line| {
                line.to_lowercase().strip_prefix("content-length: ")?.parse::<usize>().ok()
            })?;
            if body.len() >= length {
                return Some(body.to_owned());
            }
        }
        let count = stream.read(&mut buffer).ok().filter(|count| *count > 0)?;
        bytes.extend_from_slice(&buffer[..count]);
    }
}
