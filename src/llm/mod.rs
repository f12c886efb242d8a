//! Language models that answer prompts: an OpenAI-compatible endpoint, a GGUF file, and recorded replies.
//!
//! All of them implement [`Chat`]. [`Prompts`] holds one prompt for each job, read from TOML files. The replies are interpreted by other
//! rooms.
//!
//! May use: assets (prompts), encode (tokenizers), input, net, storage, work.

mod chat;
mod completion;
mod endpoint;
mod openai;
mod prompts;
mod recorded;
mod recording;
#[cfg(test)]
mod tests;

pub use chat::{Alternative, Chat, ChatError, FENCE, Job, PromptId, Reply, Request, Tokens};
pub use endpoint::{AT_ONCE, BadEndpoint, Endpoint, KEY_VARIABLE};
#[cfg(feature = "local-llm")]
pub use local::Local;
pub use nearby::{Nearby, PORTS, nearby};
pub use openai::{OpenAi, named};
pub use prompts::{Prompt, Prompts};
pub use recorded::{RecordError, Recorded, is_damaged, line};
pub use recording::Recording;

#[cfg(feature = "local-llm")]
mod local {
    //! A model from a GGUF file, run by candle on its own thread.
    //!
    //! [`Local::open`] reads the header, so that a wrong file is reported at once; the weights are read at the first request.
    //!
    //! May use: as `llm` says.

    mod gguf;
    mod model;
    mod network;
    mod prompt;
    #[cfg(test)]
    mod tests;

    pub use model::Local;
}

mod nearby {
    //! Model servers on this machine, found by one request each to the ports where they usually listen.

    use std::thread;
    use std::time::Duration;

    use serde::Deserialize;

    use crate::net::{Ask, Fetcher};
    use crate::work::Stop;

    /// The usual ports of servers that speak the OpenAI protocol.
    pub const PORTS: [(u16, &str); 4] =
        [(11434, "Ollama"), (8080, "llama.cpp"), (1234, "LM Studio"), (8000, "vLLM")];

    /// How long a server on this machine may stay silent.
    const PATIENCE: Duration = Duration::from_millis(800);
    /// The limit in bytes of a server's list of models.
    const LONGEST: usize = 1 << 20;
    /// The limit of models listed per server.
    const MOST: usize = 20;

    /// A server on this machine and what it serves.
    #[derive(Clone, Debug, PartialEq, Eq)]
    pub struct Nearby {
        /// The program that usually listens at this port.
        pub kind: &'static str,
        /// Its base URL, as for `--llm`.
        pub url: String,
        /// The names of its models.
        pub models: Vec<String>,
    }

    #[derive(Deserialize)]
    struct Listing {
        data: Vec<Model>,
    }

    #[derive(Deserialize)]
    struct Model {
        id: String,
    }

    /// Queries all these ports of the loopback address at once. A port without such a server is left out.
    pub fn nearby(ports: &[(u16, &'static str)], stop: &Stop) -> Vec<Nearby> {
        thread::scope(|scope| {
            let queries: Vec<_> =
                ports.iter().map(|(port, kind)| scope.spawn(move || query_port(*port, kind, stop))).collect();
            // A query that panicked has found nothing.
            queries.into_iter().filter_map(|query| query.join().ok().flatten()).collect()
        })
    }

    fn query_port(port: u16, kind: &'static str, stop: &Stop) -> Option<Nearby> {
        let url = format!("http://127.0.0.1:{port}/v1");
        let mut fetcher = Fetcher::new(&url).ok()?;
        fetcher.patience = PATIENCE;
        let (list, mut page) = (format!("{url}/models"), Vec::new());
        let mut body = |bytes: &[u8]| {
            if page.len() + bytes.len() > LONGEST {
                return Err(std::io::Error::other("the list of models is too long"));
            }
            page.extend_from_slice(bytes);
            Ok(())
        };
        fetcher.get(&Ask::of(&list), stop, &mut |head| Ok(head.status == 200), &mut body).ok()?;
        let Listing { data } = serde_json::from_slice(&page).ok()?;
        // The name is sent back to the server and shown, so it must be short and have no control characters.
        let plain = |id: &String| !id.trim().is_empty() && id.len() <= 200 && !id.contains(char::is_control);
        let models: Vec<String> = data.into_iter().map(|model| model.id).filter(plain).take(MOST).collect();
        (!models.is_empty()).then_some(Nearby { kind, url, models })
    }

    #[cfg(test)]
    mod tests {
        use std::io::{Read, Write};
        use std::net::TcpListener;
        use std::sync::Arc;
        use std::sync::atomic::{AtomicUsize, Ordering};

        use super::*;

        /// A server that sends one body to every request, and counts them.
        fn server(body: &'static str) -> (u16, Arc<AtomicUsize>) {
            let listener = TcpListener::bind("127.0.0.1:0").unwrap();
            let port = listener.local_addr().unwrap().port();
            let count = Arc::new(AtomicUsize::new(0));
            let counted = Arc::clone(&count);
            thread::spawn(move || {
                for mut stream in listener.incoming().flatten() {
                    counted.fetch_add(1, Ordering::Relaxed);
                    let mut bytes = [0; 2_048];
                    let read = stream.read(&mut bytes).unwrap_or(0);
                    assert!(bytes[..read].starts_with(b"GET /v1/models "), "{:?}", &bytes[..read]);
                    let head = format!(
                        "HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: {}\r\n\r\n",
                        body.len()
                    );
                    let _ = stream.write_all(format!("{head}{body}").as_bytes());
                }
            });
            (port, count)
        }

        #[test]
        fn a_server_is_found_by_one_request_and_what_is_no_such_server_is_left_out() {
            let (good, asked) = server(
                r#"{"object": "list", "data": [{"id": "bear-7b"}, {"id": ""}, {"id": "owl\u001b[2J"}]}"#,
            );
            let (page, _) = server("<html>It works!</html>");
            let (empty, _) = server(r#"{"data": []}"#);
            // A free port: nothing listens there.
            let free = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
            let found = nearby(&[(page, "a"), (free, "b"), (good, "Ollama"), (empty, "c")], &Stop::never());
            let url = format!("http://127.0.0.1:{good}/v1");
            assert_eq!(found, [Nearby { kind: "Ollama", url, models: vec!["bear-7b".into()] }]);
            assert_eq!(asked.load(Ordering::Relaxed), 1);
        }
    }
}
