//! Engines on other machines: a corpus pushed and searched through the program, against a double of OpenSearch and a real Milvus Lite.

use std::collections::BTreeMap;
use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::{Arc, Mutex};

use serde_json::{Value, json};

use crate::program::Desk;

const QUESTION: &str = "Should zoos be banned?";

/// Seven passages, no two of them alike.
fn corpus(desk: &Desk) -> String {
    let texts = [
        "Zoos should be banned. No cage is kind to an elephant.",
        "Zoos should not be banned: they breed species that would be gone without them.",
        "A train between two cities saves more fuel than a plane.",
        "Homework takes the afternoon from children who have none to spare.",
        "Bears that live in cages walk in circles for hours.",
        "The museum opens at nine; children pay nothing.",
        "A tax on sugar lowers what people drink.",
    ];
    let lines = texts.iter().enumerate();
    let lines = lines.map(|(i, text)| {
        let title = if i % 2 == 0 { format!("Title {i}") } else { String::new() };
        json!({"_id": format!("p\"{i}"), "title": title, "text": text}).to_string() + "\n"
    });
    desk.write("corpus.jsonl", lines.collect::<String>())
}

/// Ids and scores of a lane's hits.
fn hits(told: &Value, lane: usize) -> Vec<(String, f64)> {
    let hits = told["lanes"][lane]["hits"].as_array().unwrap().iter();
    hits.map(|hit| (hit["id"].as_str().unwrap().to_owned(), hit["score"].as_f64().unwrap())).collect()
}

fn ids(told: &Value, lane: usize) -> Vec<String> {
    hits(told, lane).into_iter().map(|(id, _)| id).collect()
}

/// Pushes twice, then asks every kind of lane: what holds for both engines.
fn pushed_and_asked(desk: &Desk, place: &str) {
    let corpus = corpus(desk);
    let push = |corpus: &str| desk.run(&["corpus", "push", place, "--corpus", corpus]).good();
    let first = push(&corpus);
    assert!(first.contains("made ") && first.contains("7 passages new, 0 changed"), "{first}");
    let second = push(&corpus);
    assert!(second.contains("nothing to do: all 7 passages") && !second.contains("made"), "{second}");
    let (vectors, terms) = (format!("{place}@by=vectors"), format!("{place}@by=bm25"));
    let (pap, mmr) = (format!("{vectors}+pap@1"), format!("{vectors}+mmr@.5"));
    let mut lanes = vec!["search", QUESTION, "--corpus", &corpus, "-k", "7"];
    for lane in ["minilm", &vectors, &terms, "minilm+pap@1", &pap, "minilm+mmr@.5", &mmr] {
        lanes.extend(["--lane", lane]);
    }
    let told = desk.json(&lanes);
    for (here, there) in [(0, 1), (3, 4), (5, 6)] {
        let (here, there) = (hits(&told, here), hits(&told, there));
        assert_eq!(here.len(), 7, "{told:#}");
        for ((id, score), (other, same)) in here.iter().zip(&there) {
            assert!(id == other && (score - same).abs() < 2e-3, "{here:?}\n{there:?}");
        }
    }
    let by_terms = hits(&told, 2);
    assert!(by_terms.iter().take(2).all(|(id, _)| id == "p\"0" || id == "p\"1"), "{by_terms:?}");
    assert!(by_terms.windows(2).all(|two| two[0].1 >= two[1].1) && by_terms[0].1 > 0.0, "{by_terms:?}");
    // A corpus that lacks some of what is there: they keep their ranks and are told once.
    let fewer = std::fs::read_to_string(desk.files.path().join("corpus.jsonl")).unwrap();
    let fewer: String = fewer.lines().skip(1).map(|line| format!("{line}\n")).collect();
    let fewer = desk.write("fewer.jsonl", fewer);
    let less = desk.json(&["search", QUESTION, "--corpus", &fewer, "-k", "7", "--lane", &vectors]);
    assert_eq!(ids(&less, 0), ids(&told, 1));
    let notes = less["lanes"][0]["notes"].to_string();
    assert!(notes.contains("1 passage of this list is not in the corpus"), "{notes}");
    let others = push(&fewer);
    assert!(others.contains("nothing to do: all 6") && others.contains("1 more are there"), "{others}");
}

/// What is stored: by id, the document.
type Stored = Arc<Mutex<Option<BTreeMap<String, Value>>>>;

/// A server that keeps documents in memory, and searches them as OpenSearch would.
fn open_search() -> String {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    let stored = Stored::default();
    std::thread::spawn(move || {
        for mut stream in listener.incoming().flatten() {
            let Some((line, body)) = request(&mut stream) else { continue };
            let (status, said) = answer(&line, &body, &stored);
            let said = said.to_string();
            let length = said.len();
            let head =
                format!("HTTP/1.1 {status} X\r\nConnection: close\r\nContent-Length: {length}\r\n\r\n");
            let _ = stream.write_all((head + &said).as_bytes());
        }
    });
    url
}

fn request(stream: &mut TcpStream) -> Option<(String, String)> {
    let (mut head, mut byte) = (Vec::new(), [0]);
    while !head.ends_with(b"\r\n\r\n") {
        stream.read(&mut byte).ok().filter(|count| *count > 0)?;
        head.push(byte[0]);
    }
    let head = String::from_utf8(head).ok()?.to_lowercase();
    let length = head.lines().find_map(|line| line.strip_prefix("content-length: ")?.parse().ok());
    let mut body = vec![0; length.unwrap_or(0)];
    stream.read_exact(&mut body).ok()?;
    Some((head.lines().next()?.trim_end_matches(" http/1.1").to_owned(), String::from_utf8(body).ok()?))
}

fn answer(line: &str, body: &str, stored: &Stored) -> (u16, Value) {
    let mut stored = stored.lock().unwrap();
    let json = |text: &str| serde_json::from_str::<Value>(text).unwrap_or_default();
    let Some(documents) = stored.as_mut() else {
        return match line {
            "get /" => (200, json!({"version": {"distribution": "opensearch"}})),
            "put /args" => {
                *stored = Some(BTreeMap::new());
                (200, json!({"acknowledged": true}))
            }
            _ => (404, json!({"error": {"type": "index_not_found_exception"}, "status": 404})),
        };
    };
    match line {
        "get /args/_mapping" => {
            let text = json!({"type": "text"});
            let vector = json!({"type": "knn_vector", "dimension": 384});
            let fields = json!({"title": text, "text": text, "hash": {"type": "keyword"}, "vector": vector});
            (200, json!({"args": {"mappings": {"properties": fields}}}))
        }
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

#[test]
fn a_corpus_goes_to_an_open_search_once_and_its_lanes_rank_as_those_here() {
    pushed_and_asked(&Desk::new(), &format!("os:{}/args", open_search()));
}

#[test]
fn a_server_that_is_not_there_fails_its_lane_alone() {
    let desk = Desk::new();
    let corpus = corpus(&desk);
    let closed = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let place = format!("os:http://{closed}/args");
    let told = desk.run(&["search", QUESTION, "--corpus", &corpus, "--lane", "bm25", "--lane", &place]);
    assert_eq!(told.code, Some(2));
    assert!(told.out.contains("BM25") && told.out.contains("Title 0"), "{}", told.out);
    assert!(told.err.contains("could not be reached"), "{}", told.err);
    desk.run(&["corpus", "push", &place, "--corpus", &corpus])
        .bad(&["could not be reached", "start the server"]);
    desk.run(&["corpus", "push", "args", "--corpus", &corpus]).bad(&["os:URL/INDEX"]);
    desk.run(&["search", QUESTION, "--lane", &format!("{place}+rm3")]).bad(&["rm3"]);
    let projected = format!("{place}@by=vectors+pap-plus@1");
    desk.run(&["search", QUESTION, "--lane", &projected]).bad(&["another projection, such as pap"]);
}

#[cfg(feature = "milvus")]
mod milvus {
    use std::io::{BufRead, BufReader};
    use std::path::{Path, PathBuf};
    use std::process::{Child, Command, Stdio};

    use super::*;

    /// A Milvus Lite of its own; killed when dropped.
    struct Server {
        child: Child,
        url: String,
        _data: tempfile::TempDir,
    }

    impl Drop for Server {
        fn drop(&mut self) {
            let _ = self.child.kill();
            let _ = self.child.wait();
        }
    }

    /// The Python that has Milvus Lite: one that is named, one that the checks have made, or the system's.
    fn python() -> Option<PathBuf> {
        let named = std::env::var_os("PARALLAX_MILVUS_PYTHON").map(PathBuf::from);
        let made = Path::new(env!("CARGO_MANIFEST_DIR")).join("target/milvus-lite/bin/python3");
        let has = |python: &PathBuf| {
            let asked =
                Command::new(python).args(["-c", "import milvus_lite"]).stderr(Stdio::null()).status();
            asked.is_ok_and(|status| status.success())
        };
        named.into_iter().chain([made, "python3".into()]).find(has)
    }

    fn start() -> Option<Server> {
        let Some(python) = python() else {
            // Not through the test's own output, which is only shown of tests that fail.
            let _ = writeln!(
                std::io::stderr(),
                "SKIPPED, Milvus end to end: no python3 has milvus_lite (pip install milvus-lite, or name one in PARALLAX_MILVUS_PYTHON)"
            );
            return None;
        };
        let data = tempfile::tempdir().unwrap();
        let port = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
        let mut command = Command::new(python);
        command
            .args(["-u", "-m", "milvus_lite", "server", "--host", "127.0.0.1", "--data-dir"])
            .arg(data.path());
        let command =
            command.arg("--port").arg(port.to_string()).stdout(Stdio::piped()).stderr(Stdio::null());
        let mut child = command.spawn().unwrap();
        let mut out = BufReader::new(child.stdout.take().unwrap());
        let mut line = String::new();
        out.read_line(&mut line).unwrap();
        assert!(line.contains("listening"), "Milvus Lite did not start: {line}");
        // Whatever more it says is read, so that it never waits for a reader.
        std::thread::spawn(move || std::io::copy(&mut out, &mut std::io::sink()));
        Some(Server { child, url: format!("milvus:http://127.0.0.1:{port}"), _data: data })
    }

    #[test]
    fn a_corpus_goes_to_a_milvus_once_and_its_lanes_rank_as_those_here() {
        let Some(server) = start() else { return };
        let desk = Desk::new();
        pushed_and_asked(&desk, &format!("{}/args", server.url));
        let corpus = corpus(&desk);
        let absent = format!("{}/absent", server.url);
        let told = desk.run(&["search", QUESTION, "--corpus", &corpus, "--lane", &absent]);
        assert!(told.err.contains("corpus push"), "{}", told.err);
    }

    #[test]
    fn a_milvus_that_is_not_there_is_told_at_once() {
        let desk = Desk::new();
        let corpus = corpus(&desk);
        let closed = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
        let place = format!("milvus:http://{closed}/args");
        desk.run(&["corpus", "push", &place, "--corpus", &corpus]).bad(&["could not be reached"]);
    }
}
