//! A double of OpenSearch on loopback.

use std::collections::BTreeMap;
use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::{Arc, Mutex};

use serde_json::{Value, json};

/// The stored data: the mapping of the index, and the documents by id.
type Stored = Arc<Mutex<Option<(Value, BTreeMap<String, Value>)>>>;

/// One request as it arrived, in small letters.
pub struct Asked {
    pub line: String,
    pub head: String,
    body: String,
}

/// The server's reaction to one request.
pub enum Whim {
    /// The usual one.
    Habit,
    /// Sends this answer.
    Say(u16, Value),
    /// Sends nothing until the client closes the connection.
    Silence,
}

/// A server that keeps documents in memory, and searches them as OpenSearch would, unless `whim` returns another reaction.
pub fn open_search(mut whim: impl FnMut(&Asked) -> Whim + Send + 'static) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    let stored = Stored::default();
    std::thread::spawn(move || {
        for mut stream in listener.incoming().flatten() {
            let Some(asked) = request(&mut stream) else { continue };
            let (status, said) = match whim(&asked) {
                Whim::Habit => answer(&asked.line, &asked.body, &stored),
                Whim::Say(status, said) => (status, said),
                Whim::Silence => {
                    let _ = std::io::copy(&mut stream, &mut std::io::sink());
                    continue;
                }
            };
            let said = said.to_string();
            let length = said.len();
            let head =
                format!("HTTP/1.1 {status} X\r\nConnection: close\r\nContent-Length: {length}\r\n\r\n");
            let _ = stream.write_all((head + &said).as_bytes());
        }
    });
    url
}

fn request(stream: &mut TcpStream) -> Option<Asked> {
    let (mut head, mut byte) = (Vec::new(), [0]);
    while !head.ends_with(b"\r\n\r\n") {
        stream.read(&mut byte).ok().filter(|count| *count > 0)?;
        head.push(byte[0]);
    }
    let head = String::from_utf8(head).ok()?.to_lowercase();
    let length = head.lines().find_map(|line| line.strip_prefix("content-length: ")?.parse().ok());
    let mut body = vec![0; length.unwrap_or(0)];
    stream.read_exact(&mut body).ok()?;
    let line = head.lines().next()?.trim_end_matches(" http/1.1").to_owned();
    Some(Asked { line, head, body: String::from_utf8(body).ok()? })
}

fn answer(line: &str, body: &str, stored: &Stored) -> (u16, Value) {
    let mut stored = stored.lock().unwrap();
    let json = |text: &str| serde_json::from_str::<Value>(text).unwrap_or_default();
    let Some((mappings, documents)) = stored.as_mut() else {
        return match line {
            "get /" => (200, json!({"version": {"distribution": "opensearch"}})),
            "put /args" => {
                *stored = Some((json(body)["mappings"].clone(), BTreeMap::new()));
                (200, json!({"acknowledged": true}))
            }
            _ => (404, json!({"error": {"type": "index_not_found_exception"}, "status": 404})),
        };
    };
    match line {
        "get /args/_mapping" => (200, json!({"args": {"mappings": mappings}})),
        "post /args/_mget?_source_includes=hash" => {
            let asked = json(body);
            let docs = asked["ids"].as_array().unwrap().iter().map(|id| {
                let found = documents.get(id.as_str().unwrap());
                json!({"_id": id, "found": found.is_some(), "_source": {"hash": found.map(|one| &one["hash"])}})
            });
            let docs: Vec<Value> = docs.collect();
            (200, json!({"docs": docs}))
        }
        "post /args/_bulk" => {
            let lines: Vec<Value> = body.lines().map(json).collect();
            for pair in lines.chunks(2) {
                documents.insert(pair[0]["index"]["_id"].as_str().unwrap().to_owned(), pair[1].clone());
            }
            (200, json!({"items": vec![json!({"index": {"status": 201}}); lines.len() / 2]}))
        }
        "post /args/_refresh" => (200, json!({})),
        "get /args/_count" => (200, json!({"count": documents.len()})),
        "post /args/_search" => {
            let asked = json(body);
            let numbers = |value: &Value| -> Vec<f64> {
                value.as_array().unwrap().iter().map(|x| x.as_f64().unwrap()).collect()
            };
            let score = |one: &Value| match asked["query"]["bool"]["should"][1]["match"]["text"]["query"]
                .as_str()
            {
                Some(text) => {
                    let words = text.split(' ').map(|word| word.trim_matches(|c: char| !c.is_alphanumeric()));
                    let held = one["text"].as_str().unwrap().to_lowercase();
                    words.filter(|word| word.len() > 3 && held.contains(&word.to_lowercase())).count() as f64
                }
                None => {
                    let (own, asked) =
                        (numbers(&one["vector"]), numbers(&asked["query"]["knn"]["vector"]["vector"]));
                    let dot = |a: &[f64], b: &[f64]| a.iter().zip(b).map(|(a, b)| a * b).sum::<f64>();
                    (1.0 + dot(&own, &asked) / (dot(&own, &own) * dot(&asked, &asked)).sqrt()) / 2.0
                }
            };
            let mut hits: Vec<(f64, &String)> = documents.iter().map(|(id, one)| (score(one), id)).collect();
            hits.retain(|(score, _)| *score > 0.0);
            hits.sort_by(|a, b| b.0.total_cmp(&a.0));
            let hits: Vec<Value> =
                hits.iter().map(|(score, id)| json!({"_id": id, "_score": score})).collect();
            (200, json!({"timed_out": false, "hits": {"hits": hits}}))
        }
        other => (400, json!({"error": format!("the double does not know {other}")})),
    }
}
