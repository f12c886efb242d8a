use std::collections::BTreeMap;
use std::io::{Read, Write};
use std::net::TcpListener;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};

use super::*;
use crate::encode::manifest::Manifest;

const REVISION: &str = "0123456789abcdef0123456789abcdef01234567";
const TOKEN: &str = "hf_secret";

/// One request as it arrived.
#[derive(Clone, Debug)]
struct Got {
    path: String,
    from: Option<u64>,
    token: Option<String>,
}

/// A loopback server that responds with the bytes of `answer` and records the requests.
struct Server {
    url: String,
    got: Arc<Mutex<Vec<Got>>>,
}

impl Server {
    fn start(answer: impl Fn(&Got, usize) -> Vec<u8> + Send + 'static) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        let got: Arc<Mutex<Vec<Got>>> = Arc::default();
        let taken = Arc::clone(&got);
        std::thread::spawn(move || {
            for mut stream in listener.incoming().flatten() {
                let (mut head, mut byte) = (Vec::new(), [0]);
                while !head.ends_with(b"\r\n\r\n") && stream.read(&mut byte).is_ok_and(|count| count > 0) {
                    head.push(byte[0]);
                }
                let head = String::from_utf8(head).unwrap();
                let header = |name: &str| {
                    let line =
                        head.lines().find(|line| line.to_lowercase().starts_with(&format!("{name}: ")))?;
                    Some(line[name.len() + 2..].to_owned())
                };
                let one = Got {
                    path: head.split(' ').nth(1).unwrap_or_default().to_owned(),
                    from: header("range")
                        .and_then(|range| range.strip_prefix("bytes=")?.trim_end_matches('-').parse().ok()),
                    token: header("authorization"),
                };
                let count = {
                    let mut taken = taken.lock().unwrap();
                    taken.push(one.clone());
                    taken.iter().filter(|other| other.path == one.path).count()
                };
                let _ = stream.write_all(&answer(&one, count));
            }
        });
        Server { url, got }
    }

    fn requests(&self, part: &str) -> Vec<Got> {
        self.got.lock().unwrap().iter().filter(|got| got.path.contains(part)).cloned().collect()
    }
}

fn answer(status: &str, headers: &str, body: &[u8]) -> Vec<u8> {
    let head =
        format!("HTTP/1.1 {status}\r\nContent-Length: {}\r\nConnection: close\r\n{headers}\r\n", body.len());
    [head.as_bytes(), body].concat()
}

fn weights() -> Vec<u8> {
    (0..100_000u32).flat_map(|i| i.to_le_bytes()).collect()
}

fn files() -> BTreeMap<&'static str, Vec<u8>> {
    BTreeMap::from([
        ("config.json", b"{}".to_vec()),
        ("vocab.txt", b"[CLS]\n".to_vec()),
        ("model.safetensors", weights()),
    ])
}

fn sha256(bytes: &[u8]) -> String {
    let digest = ring::digest::digest(&ring::digest::SHA256, bytes);
    digest.as_ref().iter().map(|b| format!("{b:02x}")).collect()
}

fn listing() -> Vec<u8> {
    let siblings: Vec<_> = files()
        .into_iter()
        .map(|(name, bytes)| match name {
            "model.safetensors" => {
                serde_json::json!({"rfilename": name, "size": bytes.len(), "lfs": {"sha256": sha256(&bytes), "size": bytes.len()}})
            }
            _ => serde_json::json!({"rfilename": name, "size": bytes.len()}),
        })
        .collect();
    answer("200 OK", "", serde_json::json!({"sha": REVISION, "siblings": siblings}).to_string().as_bytes())
}

/// A file from the requested offset on.
fn part(got: &Got, bytes: &[u8]) -> Vec<u8> {
    match got.from {
        None => answer("200 OK", "", bytes),
        Some(from) => {
            let range = format!("Content-Range: bytes {from}-{}/{}\r\n", bytes.len() - 1, bytes.len());
            answer("206 Partial Content", &range, &bytes[from as usize..])
        }
    }
}

/// A hub without faults.
fn right(got: &Got) -> Vec<u8> {
    match got.path.rsplit('/').next().unwrap_or_default() {
        name if files().contains_key(name) => part(got, &files()[name]),
        _ if got.path.starts_with("/api/models/org/model/") => listing(),
        _ => answer("404 Not Found", "", b""),
    }
}

fn hub(server: &Server) -> Hub {
    let mut hub = Hub::at(&server.url, Some(TOKEN.into())).unwrap();
    let pause = Duration::from_millis(1);
    hub.backoff = Backoff { base: pause, longest: pause, longest_asked: pause };
    hub.patience(Duration::from_secs(5));
    hub
}

fn fetch(hub: &Hub, models: &Path) -> Result<PathBuf, String> {
    hub.fetch("org/model", models, &|_| {}, &Stop::never()).map_err(|error| error.to_string())
}

#[test]
fn a_model_is_fetched_whole_with_a_redirect_that_does_not_see_the_token() {
    let elsewhere = Server::start(|got, _| part(got, &weights()));
    let to = format!("{}/cdn", elsewhere.url);
    let server = Server::start(move |got, _| match got.path.ends_with("model.safetensors") {
        true => answer(
            "302 Found",
            &format!("Location: {to}\r\nX-Linked-Etag: \"{}\"\r\n", sha256(&weights())),
            b"",
        ),
        false => right(got),
    });
    let models = tempfile::tempdir().unwrap();
    let reports = Mutex::new(Vec::new());
    let on_progress = |progress: Progress| reports.lock().unwrap().push(progress);
    let place = hub(&server).fetch("org/model", models.path(), &on_progress, &Stop::never()).unwrap();
    for (name, bytes) in files() {
        assert_eq!(fs::read(place.join(name)).unwrap(), bytes, "{name}");
    }
    let manifest = Manifest::read(&place).unwrap();
    assert_eq!((manifest.revision.as_str(), manifest.files.len()), (REVISION, 3));
    manifest.check(&place).unwrap();
    let reports = reports.into_inner().unwrap();
    let last = reports.last().unwrap();
    assert!(reports.len() > 2 && last.done == last.total && last.total >= 400, "{last:?}");
    assert!(server.requests("").iter().all(|got| got.token.as_deref() == Some(&format!("Bearer {TOKEN}"))));
    assert!(elsewhere.requests("cdn").iter().all(|got| got.token.is_none()));
    let names: Vec<_> =
        fs::read_dir(models.path()).unwrap().map(|entry| entry.unwrap().file_name()).collect();
    assert!(names.iter().all(|name| !name.to_string_lossy().contains("part")), "{names:?}");
    // A fetched model is not requested again.
    let before = server.requests("").len();
    fetch(&hub(&server), models.path()).unwrap();
    assert_eq!(server.requests("").len(), before);
    // A changed file is found.
    fs::write(place.join("vocab.txt"), "[SEP]\n").unwrap();
    assert!(manifest.check(&place).unwrap_err().to_string().contains("vocab.txt"));
}

#[test]
fn a_broken_connection_is_resumed() {
    let server = Server::start(|got, count| match (got.path.ends_with("safetensors"), count) {
        (true, 1) => {
            let mut cut = right(got);
            cut.truncate(150_000);
            cut
        }
        _ => right(got),
    });
    let models = tempfile::tempdir().unwrap();
    let place = fetch(&hub(&server), models.path()).unwrap();
    assert_eq!(fs::read(place.join("model.safetensors")).unwrap(), weights());
    let asked: Vec<_> = server.requests("safetensors").iter().map(|got| got.from.unwrap_or(0)).collect();
    assert!(asked.len() == 2 && asked[0] == 0 && asked[1] > 100_000, "{asked:?}");
}

#[test]
fn a_second_run_resumes_and_a_server_without_ranges_starts_over() {
    for ranges in [true, false] {
        let server = Server::start(move |got, _| match ranges {
            true => right(got),
            false => right(&Got { from: None, ..got.clone() }),
        });
        let models = tempfile::tempdir().unwrap();
        let part = models.path().join(format!("org--model.{}.part", &REVISION[..12]));
        fs::create_dir(&part).unwrap();
        fs::write(part.join("model.safetensors.part"), &weights()[..1000]).unwrap();
        let place = fetch(&hub(&server), models.path()).unwrap();
        assert_eq!(fs::read(place.join("model.safetensors")).unwrap(), weights());
        assert_eq!(server.requests("safetensors")[0].from, Some(1000));
    }
}

#[test]
fn a_file_that_is_not_what_was_listed_is_removed() {
    let server = Server::start(|got, count| match (got.path.ends_with("safetensors"), count) {
        (true, 1) => {
            let mut other = weights();
            other[70] ^= 1;
            answer("200 OK", "", &other)
        }
        _ => right(got),
    });
    let models = tempfile::tempdir().unwrap();
    let error = fetch(&hub(&server), models.path()).unwrap_err();
    assert!(
        error.contains("model.safetensors is not what the hub lists") && error.contains(&sha256(&weights())),
        "{error}"
    );
    assert!(!models.path().join("org--model").exists());
    // The next attempt finds no leftovers.
    fetch(&hub(&server), models.path()).unwrap();
}

#[test]
fn refusals_say_what_to_do_and_never_show_the_token() {
    for (status, words, tries) in [
        ("401 Unauthorized", "HF_TOKEN", 1),
        ("403 Forbidden", "accept the model's terms", 1),
        ("404 Not Found", "check the name", 1),
        ("429 Too Many Requests", "try again later", 5),
        ("503 Service Unavailable", "try again later", 5),
        ("418 I'm a teapot", "HF_ENDPOINT", 1),
    ] {
        let server = Server::start(move |_, _| answer(status, "Retry-After: 0\r\n", TOKEN.as_bytes()));
        let models = tempfile::tempdir().unwrap();
        let error = fetch(&hub(&server), models.path()).unwrap_err();
        assert!(error.contains(words) && error.contains(&status[..3]) && !error.contains(TOKEN), "{error}");
        assert_eq!(server.requests("").len(), tries, "{status}");
    }
}

#[test]
fn a_busy_hub_is_asked_again() {
    let server = Server::start(|got, count| match count {
        1 => answer("429 Too Many Requests", "Retry-After: 0\r\n", b""),
        _ => right(got),
    });
    let models = tempfile::tempdir().unwrap();
    fetch(&hub(&server), models.path()).unwrap();
    assert_eq!(server.requests("safetensors").len(), 2);
}

#[test]
fn a_hub_that_is_down_silent_endless_or_no_hub_is_reported() {
    let closed = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let models = tempfile::tempdir().unwrap();
    let mut down = Hub::at(&format!("http://{closed}"), None).unwrap();
    down.backoff.base = Duration::from_millis(1);
    down.backoff.longest = Duration::from_millis(1);
    let error = fetch(&down, models.path()).unwrap_err();
    assert!(error.contains("HF_ENDPOINT") && error.contains("tried 5 times"), "{error}");

    // It accepts the connection and sends nothing.
    let silent = TcpListener::bind("127.0.0.1:0").unwrap();
    let mut hub = Hub::at(&format!("http://{}", silent.local_addr().unwrap()), None).unwrap();
    hub.backoff = down.backoff;
    hub.patience(Duration::from_millis(30));
    assert!(fetch(&hub, models.path()).unwrap_err().contains("sent nothing for 30ms"));

    let round = Server::start(|got, _| answer("302 Found", &format!("Location: {}\r\n", got.path), b""));
    assert!(fetch(&self::hub(&round), models.path()).unwrap_err().contains("redirects too often"));

    let page = Server::start(|_, _| answer("200 OK", "", b"<html>hello</html>"));
    assert!(fetch(&self::hub(&page), models.path()).unwrap_err().contains("names a hub"));
    for wrong in ["", "ftp://example.org", "http://user:secret@example.org", "example.org"] {
        let Err(error) = Hub::at(wrong, None) else { panic!("{wrong} was taken") };
        assert!(
            error.to_string().contains("HF_ENDPOINT") && !error.to_string().contains("secret"),
            "{error}"
        );
    }
}

#[test]
fn a_stop_ends_the_download_and_the_part_fetched_stays() {
    let now = Arc::new(AtomicU64::new(0));
    let stop = Stop::when_past(&now, 0);
    let server = Server::start(|got, _| right(got));
    let models = tempfile::tempdir().unwrap();
    let on_progress = |progress: Progress| {
        if progress.done > 50 {
            now.store(1, Ordering::Relaxed);
        }
    };
    let ended = hub(&server).fetch("org/model", models.path(), &on_progress, &stop);
    assert!(matches!(ended, Err(HubError::Stopped(_))));
    let part = models.path().join(format!("org--model.{}.part/model.safetensors.part", &REVISION[..12]));
    assert!(fs::metadata(part).unwrap().len() > 50_000);
    fetch(&hub(&server), models.path()).unwrap();
    assert!(server.requests("safetensors")[1].from.is_some());
}

#[test]
fn the_token_is_not_sent_in_clear_text_to_another_machine() {
    let at = |token: Option<&str>| Hub::at("http://hub.example", token.map(str::to_owned)).map(drop);
    let error = at(Some(TOKEN)).unwrap_err().to_string();
    assert!(error.contains("--allow-insecure hub.example") && !error.contains(TOKEN), "{error}");
    assert!(at(None).is_ok());
}

#[test]
fn a_hub_that_asks_for_a_pause_of_days_is_not_waited_for() {
    let server = Server::start(|_, _| answer("429 Too Many Requests", "Retry-After: 999999\r\n", b""));
    let models = tempfile::tempdir().unwrap();
    let error = fetch(&hub(&server), models.path()).unwrap_err();
    assert!(error.contains("it asks for a pause of 999999s"), "{error}");
}
