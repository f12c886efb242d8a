//! A site on loopback for tests. The test sets the answer of each path, and the site records the requests.

use std::collections::HashMap;
use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::{Arc, Mutex};
use std::thread;

/// One answer. If a path has several, they are given one after another, and the last one again and again.
pub enum Answer {
    /// Sends bytes and closes the connection.
    Send(Vec<u8>),
    /// Sends nothing until the client disconnects.
    Hang,
}

/// A site. It ends with the test's process.
pub struct Site {
    /// Its address, without a slash at its end.
    pub url: String,
    requests: Arc<Mutex<Vec<String>>>,
}

impl Site {
    /// Starts a site with these paths; all others are not found. `make` takes the site's own address.
    pub fn start(make: impl FnOnce(&str) -> Vec<(String, Vec<Answer>)>) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        let paths: HashMap<String, Vec<Answer>> = make(&url).into_iter().collect();
        let (paths, requests) = (Arc::new(Mutex::new(paths)), Arc::default());
        let site = Site { url, requests: Arc::clone(&requests) };
        thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                let (paths, requests) = (Arc::clone(&paths), Arc::clone(&requests));
                thread::spawn(move || serve(stream, &paths, &requests));
            }
        });
        site
    }

    /// The full requests so far.
    pub fn requests(&self) -> Vec<String> {
        self.requests.lock().unwrap().clone()
    }

    /// The paths of the requested pages, without robots.txt.
    pub fn paths(&self) -> Vec<String> {
        let path = |request: &String| request.split(' ').nth(1).unwrap_or_default().to_owned();
        self.requests().iter().map(path).filter(|path| path != "/robots.txt").collect()
    }
}

fn serve(mut stream: TcpStream, paths: &Mutex<HashMap<String, Vec<Answer>>>, requests: &Mutex<Vec<String>>) {
    let request = request(&mut stream);
    let path = request.split(' ').nth(1).unwrap_or_default().to_owned();
    requests.lock().unwrap().push(request);
    let bytes = {
        let mut paths = paths.lock().unwrap();
        match paths.get_mut(&path) {
            Some(answers) if answers.len() > 1 => match answers.remove(0) {
                Answer::Send(bytes) => Some(bytes),
                Answer::Hang => None,
            },
            Some(answers) => match answers.first() {
                Some(Answer::Send(bytes)) => Some(bytes.clone()),
                _ => None,
            },
            None => Some(answer("404 Not Found", "Content-Type: text/html\r\n", b"<p>not here")),
        }
    };
    // The client may have disconnected, which is not an error.
    match bytes {
        Some(bytes) => drop(stream.write_all(&bytes)),
        None => drop(stream.read(&mut [0; 16])),
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
            Ok(count) if count > 0 => bytes.extend_from_slice(&buffer[..count]),
            _ => return text.into_owned(),
        }
    }
}

/// A complete HTTP answer; each of `headers` ends in a line break.
pub fn answer(status: &str, headers: &str, body: &[u8]) -> Vec<u8> {
    let head =
        format!("HTTP/1.1 {status}\r\nConnection: close\r\nContent-Length: {}\r\n{headers}\r\n", body.len());
    [head.as_bytes(), body].concat()
}

/// A path whose answer is always this page.
pub fn page(path: &str, kind: &str, body: &[u8]) -> (String, Vec<Answer>) {
    let headers = format!("Content-Type: {kind}\r\n");
    (path.into(), vec![Answer::Send(answer("200 OK", &headers, body))])
}

/// A page with an article, and with the menus and scripts that usually surround one.
pub fn article(title: &str, text: &str) -> String {
    format!(
        "<!doctype html><html><head><title>{title}</title><style>p {{ color: red }}</style></head><body>\
         <nav><a href=/>Home</a> <a href=/login>Log in</a> <a href=/shop>Shop</a></nav>\
         <article><h1>{title}</h1><p>{text}</p></article>\
         <footer>Subscribe to our newsletter. All rights reserved.</footer><script>track()</script></body></html>"
    )
}

/// A text of `count` words in sentences, different for every name.
pub fn words(name: &str, count: usize) -> String {
    let word = |i: usize| if i % 12 == 11 { format!("{name}{i}.") } else { format!("{name}{i},") };
    (0..count).map(word).collect::<Vec<_>>().join(" ")
}

/// The paths of a double of MediaWiki's interface for programs (`api.php`): searches with the ids that they find, and pages with id, title and
/// text. An id without a page is that of a page that was deleted since. Revisions are numbered from 1001 on.
pub fn mediawiki_double(
    searches: &[(&str, &[u64])],
    pages: &[(u64, &str, &str)],
) -> Vec<(String, Vec<Answer>)> {
    let start = "/w/api.php?action=query&format=json&formatversion=2&maxlag=5";
    let json = |path: String, body: serde_json::Value| {
        let body = body.to_string();
        (path, vec![Answer::Send(answer("200 OK", "Content-Type: application/json\r\n", body.as_bytes()))])
    };
    let found = searches.iter().map(|(words, ids)| {
        let path =
            format!("{start}&list=search&srsearch={words}&srnamespace=0&srprop=&srlimit=50&sroffset=0");
        let found: Vec<_> = ids.iter().map(|id| serde_json::json!({ "ns": 0, "pageid": id })).collect();
        json(path, serde_json::json!({ "batchcomplete": true, "query": { "search": found } }))
    });
    let text = |id: u64| {
        format!(
            "{start}&prop=extracts%7Crevisions&pageids={id}&explaintext=1&exsectionformat=plain&rvprop=ids%7Ctimestamp"
        )
    };
    let there = pages.iter().map(|(id, title, extract)| {
        let revision = serde_json::json!({ "revid": 1_000 + id, "timestamp": "2026-01-02T03:04:05Z" });
        let page = serde_json::json!({ "pageid": id, "ns": 0, "title": title, "revisions": [revision], "extract": extract });
        json(text(*id), serde_json::json!({ "query": { "pages": [page] } }))
    });
    let gone = searches.iter().flat_map(|(_, ids)| ids.iter());
    let gone = gone.filter(|id| pages.iter().all(|(there, ..)| there != *id)).map(|id| {
        json(text(*id), serde_json::json!({ "query": { "pages": [{ "pageid": id, "missing": true }] } }))
    });
    found.chain(there).chain(gone).collect()
}

/// The answer of a wiki whose servers lag behind, with status 200 as MediaWiki sends it.
pub fn lagging() -> Answer {
    let body = r#"{"error":{"code":"maxlag","info":"Waiting for db1: 7 seconds lagged.","lag":7}}"#;
    Answer::Send(answer("200 OK", "Content-Type: application/json\r\nRetry-After: 0\r\n", body.as_bytes()))
}
