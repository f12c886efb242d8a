//! Language models that answer prompts: an OpenAI-compatible endpoint, a GGUF file, and recorded replies.
//!
//! All of them implement [`Chat`]. [`Prompts`] holds one prompt for each job, read from TOML files. The replies are interpreted by other
//! rooms.
//!
//! May use: assets (prompts), encode (tokenizers), input, net, storage, work.

mod chat;
mod completion;
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

mod endpoint {
    //! The address of a model server, and its form without secrets.

    use std::ffi::OsString;
    use std::fmt;
    use std::time::Duration;

    use reqwest::Url;

    /// The environment variable that holds the key.
    pub const KEY_VARIABLE: &str = "PARALLAX_LLM_KEY";

    /// The default number of concurrent requests.
    pub const AT_ONCE: usize = 4;

    /// An OpenAI-compatible server and the limits of its use.
    #[derive(Clone, PartialEq, Eq)]
    pub struct Endpoint {
        /// The base, such as `http://localhost:11434/v1`.
        pub url: String,
        /// The model, as the server names it.
        pub model: String,
        /// The bearer token. Never shown.
        pub key: Option<String>,
        /// How long the server may stay silent.
        pub patience: Duration,
        /// How long a reply may take, whatever the server sends meanwhile.
        pub total: Duration,
        /// The number of times that a request is tried.
        pub tries: u32,
        /// The maximum number of concurrent requests.
        pub at_once: usize,
    }

    /// Why `--llm` does not name a usable model.
    #[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
    #[error("{0}")]
    pub struct BadEndpoint(pub(super) String);

    impl Endpoint {
        /// A server and a model; the key comes from [`KEY_VARIABLE`] if it is set.
        pub fn from_env(url: impl Into<String>, model: impl Into<String>) -> Self {
            Endpoint {
                url: url.into(),
                model: model.into(),
                key: key_in(std::env::var_os(KEY_VARIABLE)),
                patience: Duration::from_secs(60),
                total: Duration::from_secs(600),
                tries: 5,
                at_once: AT_ONCE,
            }
        }

        /// The base URL without a pasted suffix.
        fn base(&self) -> &str {
            let base = self.url.trim().trim_end_matches('/');
            base.strip_suffix("/chat/completions").unwrap_or(base)
        }

        /// The URL of requests, and the base URL for display.
        pub(super) fn target(&self) -> Result<(Url, String), BadEndpoint> {
            let base = self.base();
            let no = |why: &str| Err(BadEndpoint(why.to_owned()));
            if base.is_empty() {
                return no(
                    "the model server's URL is empty; set --llm URL, such as http://localhost:11434/v1",
                );
            }
            let parsed = Url::parse(base).ok();
            // Such a URL often contains a secret, so this message does not repeat it.
            if base.contains('@') || parsed.as_ref().is_some_and(|u| !u.username().is_empty()) {
                return no(&format!(
                    "the model server's URL holds a user name or an @; leave it out and put the key into {KEY_VARIABLE}"
                ));
            }
            if base.contains(['?', '#']) {
                return no(&format!(
                    "the model server's URL holds a ? or a #; give the base alone, such as http://localhost:11434/v1, \
                 and put a key into {KEY_VARIABLE}"
                ));
            }
            let http = parsed.filter(|url| matches!(url.scheme(), "http" | "https") && url.has_host());
            let Some(mut url) = http else {
                return no(&format!(
                    "{} is not an http:// or https:// URL; set --llm URL, such as http://localhost:11434/v1, or --llm gguf:FILE",
                    crate::input::excerpt(base)
                ));
            };
            if self.key.is_some() && !crate::net::keeps_secrets(base) {
                return no(&crate::net::in_clear(base, &format!("the key in {KEY_VARIABLE}")));
            }
            let shown = url.as_str().trim_end_matches('/').to_owned();
            let path = format!("{}/chat/completions", url.path().trim_end_matches('/'));
            url.set_path(&path);
            Ok((url, shown))
        }
    }

    impl fmt::Debug for Endpoint {
        fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            // An invalid URL may contain a password, and could be printed before it is refused.
            let url = self.target().map_or_else(|_| "(not usable)".to_owned(), |(_, shown)| shown);
            f.debug_struct("Endpoint")
                .field("url", &url)
                .field("model", &self.model)
                .field("key", &self.key.as_ref().map(|_| "(hidden)"))
                .field("patience", &self.patience)
                .field("tries", &self.tries)
                .field("at_once", &self.at_once)
                .finish()
        }
    }

    fn key_in(variable: Option<OsString>) -> Option<String> {
        let key = variable?.into_string().ok()?;
        let key = key.trim();
        (!key.is_empty()).then(|| key.to_owned())
    }

    #[cfg(test)]
    mod tests {
        use super::*;
        use crate::net::is_here;

        fn target(url: &str) -> Result<String, String> {
            let target = Endpoint::from_env(url, "m").target();
            target.map(|(url, _)| url.to_string()).map_err(|bad| bad.to_string())
        }

        #[test]
        fn requests_go_below_the_base_however_it_is_written() {
            let right = Ok("http://localhost:11434/v1/chat/completions".to_owned());
            assert_eq!(target("http://localhost:11434/v1"), right);
            assert_eq!(target(" http://localhost:11434/v1/ "), right);
            assert_eq!(target("HTTP://LOCALHOST:11434/v1/chat/completions"), right);
            assert_eq!(target("https://llm.example"), Ok("https://llm.example/chat/completions".into()));
        }

        #[test]
        fn a_url_that_is_empty_or_not_http_is_refused_with_what_to_do() {
            for bad in [
                "",
                "  ",
                "localhost:11434/v1",
                "ftp://example.org",
                "file:///etc/passwd",
                "http://",
                "llama",
            ] {
                let message = target(bad).unwrap_err();
                assert!(message.contains("set --llm URL"), "{bad}: {message}");
            }
        }

        #[test]
        fn a_password_in_the_url_is_refused_and_shown_nowhere() {
            for bad in
                ["http://me:hush@host/v1", "http://me:hush@", "https://host/v1?key=hush", "http:hush@x"]
            {
                let endpoint = Endpoint::from_env(bad, "m");
                let message = endpoint.target().unwrap_err().to_string();
                assert!(message.contains(KEY_VARIABLE), "{message}");
                assert!(!message.contains("hush") && !format!("{endpoint:?}").contains("hush"));
            }
        }

        #[test]
        fn the_key_is_not_in_the_debug_output() {
            let endpoint =
                Endpoint { key: Some("sk-hush".into()), ..Endpoint::from_env("https://host/v1", "m") };
            let message = format!("{endpoint:?}");
            assert!(message.contains("(hidden)") && !message.contains("sk-hush"), "{message}");
        }

        #[test]
        fn the_key_is_not_sent_in_clear_text_to_another_machine() {
            let with = |url: &str, key: Option<&str>| {
                let endpoint = Endpoint { key: key.map(str::to_owned), ..Endpoint::from_env(url, "m") };
                endpoint.target().map(drop).map_err(|bad| bad.to_string())
            };
            for url in ["http://llm.example/v1", "http://192.0.2.1:8000", "HTTP://localhost.example.org"] {
                let error = with(url, Some("sk-hush")).unwrap_err();
                assert!(error.contains("--allow-insecure") && !error.contains("hush"), "{error}");
                assert_eq!(with(url, None), Ok(()));
            }
            assert_eq!(with("http://127.0.0.1:1/v1", Some("sk-hush")), Ok(()));
            assert_eq!(with("https://llm.example/v1", Some("sk-hush")), Ok(()));
        }

        #[test]
        fn an_empty_key_is_no_key() {
            assert_eq!(key_in(None), None);
            assert_eq!(key_in(Some("  ".into())), None);
            assert_eq!(key_in(Some(" sk-1\n".into())), Some("sk-1".into()));
        }

        #[test]
        fn all_names_of_this_machine_are_recognised() {
            for here in
                ["localhost", "a.localhost", "LOCALHOST.", "127.0.0.1", "127.9.9.9", "[::1]", "0.0.0.0"]
            {
                assert!(is_here(&Url::parse(&format!("http://{here}:1/v1")).unwrap()), "{here}");
            }
            for there in ["example.org", "localhost.example.org", "10.0.0.1", "[2001:db8::1]"] {
                assert!(!is_here(&Url::parse(&format!("http://{there}:1/v1")).unwrap()), "{there}");
            }
        }
    }
}
