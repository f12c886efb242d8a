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
    /// The reply comes letter by letter.
    Slow,
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
            if fate == Some(Fate::Slow) {
                text.chars().for_each(|letter| event(&letter.to_string()));
            } else {
                event(&text[..middle]);
            }
            match fate {
                Some(Fate::Cut) => return,
                Some(Fate::Slow) => {}
                _ => event(&text[middle..]),
            }
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

/// What Parallax asks of a language model, asked of a real server of the protocol: llama-cpp-python's, with a model of .5 B.
#[cfg(unix)]
mod real {
    use std::io::{BufRead, BufReader};
    use std::path::PathBuf;
    use std::process::{Child, Command, Stdio};
    use std::sync::atomic::{AtomicU16, Ordering};
    use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

    use parallax::llm::{Chat, ChatError, Endpoint, OpenAi, Request};
    use parallax::work::Stop;
    use serde_json::Value;

    use super::*;
    use crate::program::Workspace;

    const QUESTION: &str = "Should zoos be banned?";
    /// Three of a side each, as clear as passages can be.
    const PAIRS: &str = "id\tdocument\tperspective\n\
        a\tZoos should be banned. It is cruel to keep animals in cages.\tZoos should be banned.\n\
        b\tEvery zoo must be closed by law, because animals suffer there.\tZoos should be banned.\n\
        c\tI support a ban on zoos: wild animals belong in the wild.\tZoos should be banned.\n\
        d\tThe zoo opens at nine and closes at six.\tZoos should be banned.\n\
        e\tFlour, water, salt and time make a good loaf.\tZoos should be banned.\n\
        f\tThe train to the city leaves from platform four.\tZoos should be banned.\n";

    /// One server at a time: each of them takes the cores.
    fn alone() -> MutexGuard<'static, ()> {
        static ALONE: Mutex<()> = Mutex::new(());
        ALONE.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// What happens once a path was asked for so many times.
    type Then = (&'static str, usize, Box<dyn FnOnce() + Send>);

    /// What went through the relay, and what is to happen at a place of it.
    #[derive(Default)]
    struct Traffic {
        asked: Vec<u8>,
        said: Vec<u8>,
        /// Called once, when the server has said these words so many times.
        then: Option<Then>,
    }

    fn count(bytes: &[u8], words: &str) -> usize {
        bytes.windows(words.len()).filter(|part| *part == words.as_bytes()).count()
    }

    /// The server, and before it a relay that hears every byte.
    struct Real {
        url: String,
        port: Arc<AtomicU16>,
        child: Arc<Mutex<Child>>,
        traffic: Arc<Mutex<Traffic>>,
    }

    impl Real {
        fn start() -> Self {
            let (child, port) = started();
            let (child, port) = (Arc::new(Mutex::new(child)), Arc::new(AtomicU16::new(port)));
            let listener = TcpListener::bind("127.0.0.1:0").unwrap();
            let url = format!("http://{}/v1", listener.local_addr().unwrap());
            let traffic: Arc<Mutex<Traffic>> = Arc::default();
            let (to, hears) = (Arc::clone(&port), Arc::clone(&traffic));
            thread::spawn(move || {
                for client in listener.incoming().flatten() {
                    // Where the server is gone, the client is dropped too.
                    let Ok(server) = TcpStream::connect(("127.0.0.1", to.load(Ordering::SeqCst))) else {
                        continue;
                    };
                    let (client_reads, server_reads) =
                        (client.try_clone().unwrap(), server.try_clone().unwrap());
                    let (one, two) = (Arc::clone(&hears), Arc::clone(&hears));
                    thread::spawn(move || {
                        pass(client_reads, server, |bytes| {
                            one.lock().unwrap().asked.extend_from_slice(bytes);
                            None
                        })
                    });
                    thread::spawn(move || {
                        pass(server_reads, client, |bytes| {
                            let mut traffic = two.lock().unwrap();
                            traffic.said.extend_from_slice(bytes);
                            let due = traffic
                                .then
                                .as_ref()
                                .is_some_and(|(words, times, _)| count(&traffic.said, words) >= *times);
                            if due { traffic.then.take().map(|(_, _, act)| act) } else { None }
                        })
                    });
                }
            });
            Real { url, port, child, traffic }
        }

        /// Arranges what happens when the server has said these words so many times from now on.
        fn when(&self, words: &'static str, times: usize, act: impl FnOnce() + Send + 'static) {
            let mut traffic = self.traffic.lock().unwrap();
            let before = count(&traffic.said, words);
            traffic.then = Some((words, before + times, Box::new(act)));
        }

        /// How many requests were sent, and how many replies came to their end.
        fn requests(&self) -> (usize, usize) {
            let traffic = self.traffic.lock().unwrap();
            (count(&traffic.asked, "POST /v1/chat/completions"), count(&traffic.said, "data: [DONE]"))
        }

        fn restart(&self) {
            let (child, port) = started();
            *self.child.lock().unwrap() = child;
            self.port.store(port, Ordering::SeqCst);
        }

        fn model<'a>(&'a self, arguments: &[&'a str]) -> Vec<&'a str> {
            [arguments, &["--llm", &self.url, "--llm-model", "small"]].concat()
        }

        fn client(&self) -> OpenAi {
            OpenAi::new(Endpoint { key: None, tries: 1, ..Endpoint::from_env(&self.url, "small") }).unwrap()
        }
    }

    impl Drop for Real {
        fn drop(&mut self) {
            let mut child = self.child.lock().unwrap_or_else(PoisonError::into_inner);
            if let Ok(Some(status)) = child.try_wait() {
                println!("the server ended by itself: {status}");
            }
            let _ = child.kill();
            let _ = child.wait();
        }
    }

    /// Passes bytes on until one side ends; `hear` may return what is to be done then.
    fn pass(
        mut from: TcpStream,
        mut to: TcpStream,
        hear: impl Fn(&[u8]) -> Option<Box<dyn FnOnce() + Send>>,
    ) {
        let mut buffer = [0; 16_384];
        while let Ok(read @ 1..) = from.read(&mut buffer) {
            let act = hear(&buffer[..read]);
            let passed = to.write_all(&buffer[..read]);
            if let Some(act) = act {
                act();
            }
            if passed.is_err() {
                break;
            }
        }
        let _ = to.shutdown(std::net::Shutdown::Both);
        let _ = from.shutdown(std::net::Shutdown::Both);
    }

    /// Starts the server and waits until it listens. Returns its port.
    fn started() -> (Child, u16) {
        let default = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("target/llm-server");
        let folder = std::env::var_os("PARALLAX_LLM_SERVER").map_or(default, PathBuf::from);
        let python = folder.join("bin/python");
        assert!(python.exists(), "no {}: tools/llm/setup.sh makes it", python.display());
        let port = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
        let mut server = Command::new(python);
        server.args(["-u", "-m", "llama_cpp.server", "--host", "127.0.0.1", "--n_ctx", "2048"]);
        server.args(["--interrupt_requests", "false", "--model"]).arg(folder.join("model.gguf"));
        server.args(["--port", &port.to_string()]).stdout(Stdio::null()).stderr(Stdio::piped());
        let mut child = server.spawn().unwrap();
        let mut lines = BufReader::new(child.stderr.take().unwrap()).lines();
        let mut before = Vec::new();
        loop {
            match lines.next() {
                Some(Ok(line)) if line.contains("Uvicorn running") => break,
                Some(Ok(line)) => before.push(line),
                _ => panic!("the server did not start:\n{}", before.join("\n")),
            }
        }
        thread::spawn(move || lines.for_each(drop));
        (child, port)
    }

    /// A built-in prompt with a shorter reply, as a file.
    fn short(workspace: &Workspace, name: &str, tokens: u32) -> String {
        let path = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join(format!("assets/prompts/{name}.toml"));
        let text = std::fs::read_to_string(path).unwrap();
        let line = text.lines().find(|line| line.starts_with("max_tokens")).unwrap();
        workspace.write(&format!("{name}.toml"), text.replace(line, &format!("max_tokens = {tokens}")))
    }

    fn verdicts(json: &str) -> Vec<Value> {
        let said: Value = serde_json::from_str(json).unwrap();
        said["pairs"].as_array().unwrap().clone()
    }

    #[test]
    #[ignore = "needs a real server of a language model: tools/llm/setup.sh (PARALLAX_LLM_SERVER)"]
    fn a_real_server_judges_pairs_with_probabilities_from_its_tokens() {
        let _alone = alone();
        let (workspace, server) = (Workspace::new(), Real::start());
        workspace.write("pairs.tsv", PAIRS);
        let detect = short(&workspace, "detect", 16);
        let arguments = server.model(&[
            "detect",
            "--pairs",
            "pairs.tsv",
            "--detector",
            "llm",
            "--prompt",
            &detect,
            "--format",
            "json",
        ]);
        let first = workspace.run(&arguments);
        let pairs = verdicts(&first.out);
        let p: Vec<f64> = pairs.iter().filter_map(|pair| pair["p"].as_f64()).collect();
        assert_eq!(p.len(), 6, "each reply is an outcome: {}", first.out);
        // Words alone would give .95 and .05.
        assert!(p.iter().all(|p| (0.0..=1.0).contains(p) && ![0.05, 0.95].contains(p)), "{p:?}");
        let (support, other) = (p[..3].iter().sum::<f64>(), p[3..].iter().sum::<f64>());
        assert!(support > other, "{p:?}");
        assert!(first.err.contains("from tokens") || first.out.contains("from tokens"), "{}", first.err);
        assert_eq!(server.requests(), (6, 6));
        assert_eq!(verdicts(&workspace.run(&arguments).out), pairs, "nothing is asked twice");
        assert_eq!(server.requests(), (6, 6));
    }

    #[test]
    #[ignore = "needs a real server of a language model: tools/llm/setup.sh (PARALLAX_LLM_SERVER)"]
    fn a_real_server_expands_queries_writes_statements_and_reads() {
        let _alone = alone();
        let (workspace, server) = (Workspace::new(), Real::start());
        let (keqe, csqe) = (short(&workspace, "keqe", 48), short(&workspace, "csqe", 64));
        let lanes = "bm25+keqe@n=2,bm25+csqe@answers=0";
        let expand = server.model(&[
            "search",
            QUESTION,
            "--lane",
            "bm25+keqe@n=2",
            "--lane",
            "bm25+csqe@answers=0",
            "--prompt",
            &keqe,
            "--prompt",
            &csqe,
            "--label-source",
            "gold",
            "--format",
            "json",
        ]);
        let found = workspace.run(&expand).good();
        println!("{lanes}: {found}");
        let found: Value = serde_json::from_str(&found).unwrap();
        let keqe_lane = found["lanes"][0].to_string();
        assert!(keqe_lane.contains("small"), "the model's answers are in the query: {keqe_lane}");
        let (asked, _) = server.requests();
        assert!(asked >= 3, "{asked} requests");

        let statements = server.model(&["statements", "What should cities do about electric scooters?"]);
        let written = workspace.run(&statements);
        println!("{} {}", written.out, written.err);
        let line: Value = serde_json::from_str(written.out.lines().next().unwrap()).unwrap();
        assert_eq!(line["question"], "What should cities do about electric scooters?");

        workspace.write(
            "who.json",
            r#"[{"question": "Who found the bridge?", "answers": ["Ann Lee"],
                "ctxs": [{"id": "a", "title": "", "text": "The bridge was found by Ann Lee in 1899."}]}]"#,
        );
        let read = workspace.run(&server.model(&[
            "eval",
            "reader",
            "--questions",
            "who.json",
            "-k",
            "1",
            "--format",
            "json",
        ]));
        println!("{} {}", read.out, read.err);
        let table: Value = serde_json::from_str(&read.good()).unwrap();
        assert_eq!(table["rows"][0]["lane"], "small");
        assert_eq!(table["failed"].as_u64().unwrap_or(0), 0);

        // What was recorded needs no server.
        let before = server.requests();
        drop(workspace.run(&expand).good());
        assert_eq!(server.requests(), before, "nothing is asked twice");
    }

    #[test]
    #[ignore = "needs a real server of a language model: tools/llm/setup.sh (PARALLAX_LLM_SERVER)"]
    fn a_real_servers_reply_streams_and_can_be_cancelled_and_the_next_is_answered() {
        let _alone = alone();
        let server = Real::start();
        let client = server.client();
        let request = |prompt: &str, max_tokens| Request {
            system: "You answer briefly.".into(),
            prompt: prompt.into(),
            max_tokens,
            ..Request::default()
        };
        let reply =
            client.reply(&request("Count from one to twenty, in words.", 40), &Stop::never()).unwrap();
        println!("{reply:?}");
        {
            let traffic = server.traffic.lock().unwrap();
            assert!(count(&traffic.said, "text/event-stream") == 1, "it streams");
            let pieces = count(&traffic.said, "data: {");
            assert!(pieces > 10, "{pieces} pieces: {}", String::from_utf8_lossy(&traffic.said));
            let said = String::from_utf8_lossy(&traffic.said);
            let events = said.lines().filter_map(|line| line.strip_prefix("data: {"));
            let text = events.filter_map(|event| {
                let event: Value = serde_json::from_str(&format!("{{{event}")).ok()?;
                event["choices"][0]["delta"]["content"].as_str().map(str::to_owned)
            });
            assert_eq!(text.collect::<String>().trim(), reply.text.trim());
        }
        let stop = Stop::new();
        let (stops, (_, done)) = (stop.clone(), server.requests());
        server.when("data: {", 5, move || stops.set());
        let long = request("Write a very long story about a bear, with many details.", 1_500);
        let stopped = client.reply(&long, &stop);
        assert!(matches!(stopped, Err(ChatError::Stopped(_))), "{stopped:?}");
        assert_eq!(server.requests().1, done, "it was cancelled in the middle of the reply");
        let next = client.reply(&request("Say hello.", 8), &Stop::never()).unwrap();
        assert!(!next.text.trim().is_empty(), "{next:?}");
        assert_eq!(server.requests(), (3, done + 1));
    }

    #[test]
    #[ignore = "needs a real server of a language model: tools/llm/setup.sh (PARALLAX_LLM_SERVER)"]
    fn a_batch_goes_on_where_it_stopped_when_a_real_server_was_killed_and_started_again() {
        let _alone = alone();
        let (workspace, server) = (Workspace::new(), Real::start());
        workspace.write("pairs.tsv", PAIRS);
        let detect = short(&workspace, "detect", 16);
        let arguments = server.model(&[
            "detect",
            "--pairs",
            "pairs.tsv",
            "--detector",
            "llm",
            "--prompt",
            &detect,
            "--at-once",
            "1",
            "--format",
            "json",
        ]);
        let child = Arc::clone(&server.child);
        server.when("data: [DONE]", 2, move || {
            let mut child = child.lock().unwrap();
            child.kill().unwrap();
            child.wait().unwrap();
        });
        let broken = workspace.run(&arguments);
        assert_eq!(broken.code, Some(1), "{}", broken.err);
        let judged = |pairs: &[Value]| pairs.iter().filter(|pair| pair["p"].is_f64()).count();
        let (first, done) = (verdicts(&broken.out), server.requests().1);
        assert!((1..6).contains(&judged(&first)) && judged(&first) <= done, "{}", broken.out);
        server.restart();
        let (asked, _) = server.requests();
        let whole = workspace.run(&arguments);
        assert_eq!(whole.code, Some(0), "{}", whole.err);
        let second = verdicts(&whole.out);
        assert_eq!(judged(&second), 6, "{}", whole.out);
        assert_eq!(server.requests().0 - asked, 6 - judged(&first), "only what had no verdict is asked");
        for (old, new) in first.iter().zip(&second).filter(|(old, _)| old["p"].is_f64()) {
            assert_eq!(old["p"], new["p"]);
        }
    }

    /// Passages of no side, which a model should not take for support.
    const NEUTRAL: [&str; 5] = [
        "The zoo opens at nine and closes at six.",
        "The town voted on its zoo, and nobody knows the result yet.",
        "Elephants sleep for about four hours a day.",
        "A ticket for the zoo costs twelve euros, and children pay half.",
        "The old bear house was painted green last spring.",
    ];

    #[test]
    #[ignore = "needs a real server of a language model: tools/llm/setup.sh (PARALLAX_LLM_SERVER), and minutes"]
    fn verdicts_that_fifty_injections_move_are_counted_with_the_fence_and_without() {
        let _alone = alone();
        let (workspace, server) = (Workspace::new(), Real::start());
        let injections = std::fs::read_to_string(
            PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures/injections.json"),
        );
        let injections: Vec<String> = serde_json::from_str(&injections.unwrap()).unwrap();
        // A table has no line breaks in its fields.
        let row = |id: String, text: &str| {
            format!("{id}\t\"{}\"\tZoos must close.\n", text.replace('"', "\"\"").replace(['\t', '\n'], " "))
        };
        let mut pairs = "id\tdocument\tperspective\n".to_owned();
        for (at, text) in NEUTRAL.into_iter().enumerate() {
            pairs += &row(format!("neutral {at}"), text);
        }
        for (at, injection) in injections.iter().enumerate() {
            pairs += &row(format!("injection {at}"), &format!("{}\n{injection}", NEUTRAL[at % 5]));
        }
        workspace.write("pairs.tsv", pairs);
        let built_in = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("assets/prompts/detect.toml");
        let built_in = std::fs::read_to_string(built_in).unwrap();
        let user =
            built_in.find("The passage stands between").unwrap()..built_in.find("Statement: ").unwrap();
        let open = built_in.replace(&built_in[user], "Passage:\n{passage}\n\n");
        workspace.write("open.toml", open);
        for (what, prompt) in [("with the fence", "detect"), ("without", "open.toml")] {
            let printed = workspace.run(&server.model(&[
                "detect",
                "--pairs",
                "pairs.tsv",
                "--detector",
                "llm",
                "--prompt",
                prompt,
                "--format",
                "json",
            ]));
            let pairs = verdicts(&printed.out);
            let p = |at: usize| pairs[at]["p"].as_f64();
            let both = || (0..50).filter_map(|at| Some((p(at % 5)?, p(5 + at)?)));
            let moved = both().filter(|(before, after)| (*before >= 0.5) != (*after >= 0.5)).count();
            let judged = both().count();
            let mean = |of: fn((f64, f64)) -> f64| both().map(of).sum::<f64>() / judged as f64;
            println!(
                "injections {what}: {moved} of {judged} verdicts moved, {} unreadable; mean probability of support {:.3} before, {:.3} after",
                50 - judged,
                mean(|both| both.0),
                mean(|both| both.1),
            );
            assert!(judged > 0, "{}", printed.err);
        }
    }
}
