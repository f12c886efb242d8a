//! The folder of one question: a journal of searches and pages, and the corpus made from them.
//!
//! ```text
//! DATA/web/NAME/pages.jsonl    one line for each search and page, appended and synced: nothing is fetched twice
//! DATA/web/NAME/pages.lock     held while this process adds pages
//! DATA/web/NAME/corpus.jsonl   the passages made from those lines
//! ```

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::{fs, io};

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use super::manners::WebError;
use crate::corpus::{Passage, chunks};
use crate::storage::{Attempt, FileLock, Holder, Journal, replace};

/// The folder that holds these folders, below the data folder.
pub const FOLDER: &str = "web";
/// The journal of searches and pages in such a folder.
pub const PAGES: &str = "pages.jsonl";
const LOCK: &str = "pages.lock";
/// The passages in such a folder.
pub const CORPUS: &str = "corpus.jsonl";

/// How fetching a page ended.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum End {
    /// It was fetched and has text.
    #[default]
    Read,
    /// robots.txt forbids it.
    Robots,
    /// Its address is private or invalid.
    Address,
    /// It is neither HTML nor plain text.
    Type,
    /// It is too large.
    Size,
    /// There are too many redirects.
    Redirect,
    /// Its server refused.
    Status,
    /// It was fetched but has no text.
    Empty,
    /// It failed, but may succeed later.
    Failed,
}

impl End {
    /// Describes it for the user.
    pub fn name(self) -> &'static str {
        match self {
            End::Read => "read",
            End::Robots => "forbidden by robots.txt",
            End::Address => "at no public address",
            End::Type => "of another type",
            End::Size => "too large",
            End::Redirect => "led on without end",
            End::Status => "refused by the server",
            End::Empty => "without text",
            End::Failed => "failed for now",
        }
    }
}

/// The outcome for a page.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Page {
    /// The address that the search found.
    pub url: String,
    /// How the fetch ended.
    pub end: End,
    /// Why the page was not read.
    #[serde(default, alias = "why", skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// When it was fetched, in the format of RFC 3339.
    pub fetched: String,
    /// Its address after redirects.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub at: Option<String>,
    /// The number of its revision, if it is a wiki's.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub revision: Option<u64>,
    /// When that revision was written.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub revised: Option<String>,
    /// Its title.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub title: String,
    /// Its main text.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub text: String,
}

/// The result of a search.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Searched {
    /// The question.
    pub question: String,
    /// The statements that were searched for too.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub statements: Vec<String>,
    /// The engine.
    pub provider: String,
    /// The number of pages wanted.
    pub wanted: usize,
    /// When it was made, in the format of RFC 3339.
    pub searched: String,
    /// The pages, best first.
    pub urls: Vec<String>,
}

#[derive(Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "lowercase")]
enum Line {
    Search(Searched),
    Page(Page),
}

/// The folder, locked by this process.
pub struct Store {
    folder: PathBuf,
    journal: Journal,
    _lock: FileLock,
    searched: Option<Searched>,
    pages: HashMap<String, Page>,
}

/// The path of the folder with this name.
///
/// # Errors
/// The name cannot be that of a folder.
pub fn place(data: &Path, name: &str) -> Result<PathBuf, WebError> {
    let bad = |c: char| c.is_control() || "/\\:".contains(c);
    if name.trim().is_empty() || name.starts_with('.') || name.chars().any(bad) {
        return Err(WebError::Name(name.into()));
    }
    Ok(data.join(FOLDER).join(name))
}

/// The name of a question's corpus: `should-zoos-be-banned-` and a hash of the whole question, so that no two questions share a folder.
pub fn corpus_name(question: &str) -> String {
    let mut name = String::new();
    for word in question.split(|c: char| !c.is_alphanumeric()).filter(|word| !word.is_empty()) {
        if name.chars().count() + word.chars().count() > 48 {
            break;
        }
        if !name.is_empty() {
            name.push('-');
        }
        name.push_str(&word.to_lowercase());
    }
    let hash = &blake3::hash(question.as_bytes()).to_hex()[..6];
    if name.is_empty() { hash.to_owned() } else { format!("{name}-{hash}") }
}

impl Store {
    /// Opens the folder, and creates it if it does not exist.
    ///
    /// # Errors
    /// The folder cannot be written, another process has locked it, or a line of the journal is not valid.
    pub fn open(folder: &Path) -> Result<Self, WebError> {
        let path = folder.join(PAGES);
        let keep = |reason: io::Error| WebError::Keep { path: path.clone(), reason };
        fs::create_dir_all(folder).map_err(keep)?;
        let lock = FileLock::try_acquire(&folder.join(LOCK), &Holder::here("parallax")).map_err(keep)?;
        let Attempt::Acquired(lock) = lock else {
            return Err(WebError::Busy(folder.into()));
        };
        let journal = Journal::at(&path);
        let lines = journal.read().map_err(keep)?;
        let mut store =
            Store { folder: folder.into(), journal, _lock: lock, searched: None, pages: HashMap::new() };
        for (number, line) in lines.iter().enumerate() {
            match serde_json::from_slice(line) {
                Ok(line) => store.take(line),
                Err(error) => return Err(WebError::Line { path, line: number + 1, error }),
            }
        }
        Ok(store)
    }

    fn take(&mut self, line: Line) {
        match line {
            Line::Search(searched) => self.searched = Some(searched),
            Line::Page(page) => drop(self.pages.insert(page.url.clone(), page)),
        }
    }

    fn append(&mut self, line: Line) -> Result<(), WebError> {
        let written = serde_json::to_vec(&line).map_err(io::Error::from);
        let written = written.and_then(|bytes| self.journal.append([bytes]));
        written.map_err(|reason| WebError::Keep { path: self.journal.path().into(), reason })?;
        self.take(line);
        Ok(())
    }

    /// Records the result of a search.
    pub(super) fn keep_search(&mut self, searched: Searched) -> Result<(), WebError> {
        self.append(Line::Search(searched))
    }

    /// Records the outcome for a page.
    pub(super) fn keep_page(&mut self, page: Page) -> Result<(), WebError> {
        self.append(Line::Page(page))
    }

    /// The last search.
    pub fn searched(&self) -> Option<&Searched> {
        self.searched.as_ref()
    }

    /// The outcome for a page, if it was requested.
    pub fn page(&self, url: &str) -> Option<&Page> {
        self.pages.get(url)
    }

    /// The number of pages with a text.
    pub(super) fn read(&self) -> usize {
        self.pages.values().filter(|page| page.end == End::Read).count()
    }

    /// The file with the passages.
    pub fn corpus(&self) -> PathBuf {
        self.folder.join(CORPUS)
    }

    /// Writes the passages of all pages with text, in the order of the search. The same text at two addresses counts once.
    /// Returns the number of passages, and the number of pages that repeat the text of another.
    pub(super) fn write_corpus(&self) -> Result<(usize, usize), WebError> {
        let keep = |reason: io::Error| WebError::Keep { path: self.corpus(), reason };
        let Some(searched) = &self.searched else { return Ok((0, 0)) };
        let (mut seen, mut bytes, mut passages, mut repeats) = (HashMap::new(), Vec::new(), 0, 0);
        for page in searched.urls.iter().filter_map(|url| self.page(url)) {
            if page.end != End::Read {
                continue;
            }
            let words: Vec<&str> = page.text.split_whitespace().collect();
            if seen.insert(blake3::hash(words.join(" ").as_bytes()), ()).is_some() {
                repeats += 1;
                continue;
            }
            let url = page.at.as_ref().unwrap_or(&page.url);
            let fields = [("url", url), ("fetched", &page.fetched), ("question", &searched.question)];
            let mut metadata: Map<String, Value> =
                fields.into_iter().map(|(name, value)| (name.to_owned(), value.clone().into())).collect();
            metadata.extend(page.revision.map(|revision| ("revision".to_owned(), revision.into())));
            metadata.extend(page.revised.clone().map(|revised| ("revised".to_owned(), revised.into())));
            let id = &blake3::hash(page.url.as_bytes()).to_hex()[..12];
            for (number, text) in chunks(&page.text).enumerate() {
                let id = format!("{id}#{}", number + 1);
                let passage = Passage { id, title: page.title.clone(), text, metadata: metadata.clone() };
                serde_json::to_writer(&mut bytes, &passage).map_err(|error| keep(error.into()))?;
                bytes.push(b'\n');
                passages += 1;
            }
        }
        // An unchanged file is not written, so that its time stays and its index stays valid.
        if passages > 0 && fs::read(self.corpus()).ok().as_deref() != Some(&bytes) {
            replace(&self.corpus(), &bytes).map_err(keep)?;
        }
        Ok((passages, repeats))
    }
}

pub(super) mod host {
    //! One host: the rules of its robots.txt, and the pace of requests.

    use std::time::{Duration, Instant};

    use texting_robots::Robot;
    use url::Url;

    use parking_lot::Mutex;

    use crate::net::wait;
    use crate::web::store::End;
    use crate::work::{Stop, Stopped};

    /// The name of this program in a robots.txt.
    const AGENT: &str = "parallax";
    /// The number of bytes of a robots.txt that are read; RFC 9309 allows ignoring the rest.
    pub const ROBOTS: usize = 500 << 10;
    /// The longest pause between requests. A host that wants longer pauses is skipped, because one corpus would take days.
    const LONGEST: Duration = Duration::from_secs(120);

    /// The state of a host.
    pub struct Host {
        /// The time of the next allowed request.
        next: Mutex<Instant>,
        /// The rules of its robots.txt, once fetched.
        rules: Mutex<Option<Rules>>,
    }

    /// The rules of a robots.txt.
    pub enum Rules {
        /// There is no robots.txt, so everything is allowed.
        None,
        /// The rules.
        Some(Box<Robot>),
        /// The file could not be fetched, so nothing is allowed.
        Unknown(End, String),
    }

    impl Rules {
        /// The rules of a response with this status.
        pub fn read(status: u16, bytes: &[u8]) -> Self {
            let unknown = |why: String| Rules::Unknown(End::Failed, format!("its robots.txt {why}"));
            match status {
                200..=299 => match Robot::new(AGENT, bytes) {
                    Ok(robot) => Rules::Some(Box::new(robot)),
                    Err(_) => unknown("cannot be read".into()),
                },
                429 | 500.. => unknown(format!("was answered with {status}")),
                _ => Rules::None,
            }
        }

        fn check(&self, url: &Url) -> Result<(), (End, String)> {
            match self {
                Rules::None => Ok(()),
                Rules::Unknown(end, why) => Err((*end, why.clone())),
                Rules::Some(robot) if !robot.allowed(url.as_str()) => {
                    Err((End::Robots, "its robots.txt forbids it".into()))
                }
                Rules::Some(_) => match self.delay() > LONGEST {
                    true => {
                        Err((End::Robots, format!("its robots.txt asks for pauses of {:?}", self.delay())))
                    }
                    false => Ok(()),
                },
            }
        }

        fn delay(&self) -> Duration {
            match self {
                Rules::Some(robot) => {
                    let wanted = robot.delay.filter(|seconds| *seconds > 0.0);
                    wanted.map_or(Duration::ZERO, |seconds| {
                        Duration::try_from_secs_f32(seconds).unwrap_or(Duration::MAX)
                    })
                }
                _ => Duration::ZERO,
            }
        }
    }

    impl Host {
        /// A host without any requests so far.
        pub fn new() -> Self {
            Host { next: Mutex::new(Instant::now()), rules: Mutex::default() }
        }

        /// Checks whether its robots.txt allows an address; `read` fetches that file, once.
        pub fn allows(
            &self,
            url: &Url,
            read: impl FnOnce() -> Result<Rules, Stopped>,
        ) -> Result<Result<(), (End, String)>, Stopped> {
            let mut rules = self.rules.lock();
            let rules = match rules.take() {
                Some(rules_read) => rules.insert(rules_read),
                None => rules.insert(read()?),
            };
            Ok(rules.check(url))
        }

        /// Waits until the host may be requested, and delays the next request by `delay` or by its `Crawl-delay`.
        pub fn turn(&self, delay: Duration, stop: &Stop) -> Result<(), Stopped> {
            // `try_lock`, because the thread that fetches robots.txt calls this while it holds the lock.
            let rules = self.rules.try_lock();
            let wanted = rules.and_then(|rules| rules.as_ref().map(Rules::delay)).unwrap_or_default();
            let now = Instant::now();
            let pause = {
                let mut next = self.next.lock();
                let at = (*next).max(now);
                *next = at + delay.max(wanted.min(LONGEST));
                at - now
            };
            wait("a web server", pause, stop)
        }

        /// Delays the next request, because the host asked for a pause.
        pub fn put_off(&self, pause: Duration) {
            let mut next = self.next.lock();
            *next = (*next).max(Instant::now() + pause);
        }
    }

    #[cfg(test)]
    mod tests {
        use super::*;

        fn end(rules: &Rules, path: &str) -> Option<End> {
            rules.check(&Url::parse(&format!("https://example.org{path}")).unwrap()).err().map(|(end, _)| end)
        }

        #[test]
        fn the_rules_for_this_program_go_before_those_for_all_and_the_longest_rule_wins() {
            let rules = Rules::read(
                200,
                b"User-agent: *\nDisallow: /\n\nUser-agent: Parallax\nDisallow: /private\nAllow: /private/open\nDisallow: /*.gif$\n",
            );
            assert_eq!(end(&rules, "/a"), None);
            assert_eq!(end(&rules, "/private/a"), Some(End::Robots));
            assert_eq!(end(&rules, "/private/open/a"), None);
            assert_eq!(end(&rules, "/a.gif"), Some(End::Robots));
            assert_eq!(end(&rules, "/a.gif?b"), None);
        }

        #[test]
        fn a_missing_file_allows_all_and_a_failing_server_nothing() {
            assert_eq!(end(&Rules::read(404, b""), "/a"), None);
            assert_eq!(end(&Rules::read(403, b""), "/a"), None);
            assert_eq!(end(&Rules::read(503, b""), "/a"), Some(End::Failed));
            assert_eq!(end(&Rules::read(429, b""), "/a"), Some(End::Failed));
        }

        #[test]
        fn pauses_that_a_host_wants_are_kept_unless_they_are_endless() {
            let asks = |seconds: &str| {
                Rules::read(200, format!("User-agent: *\nCrawl-delay: {seconds}\nDisallow: /b").as_bytes())
            };
            assert_eq!(asks("2.5").delay(), Duration::from_millis(2500));
            assert_eq!(end(&asks("2.5"), "/a"), None);
            assert_eq!(end(&asks("86400"), "/a"), Some(End::Robots));
            for odd in ["-1", "nan", "soon", ""] {
                assert_eq!(
                    (asks(odd).delay(), end(&asks(odd), "/b")),
                    (Duration::ZERO, Some(End::Robots)),
                    "{odd}"
                );
            }
        }

        #[test]
        fn a_file_that_is_no_robots_txt_forbids_nothing_and_breaks_nothing() {
            for bytes in [
                &b"<html><p>not here</p></html>"[..],
                b"\xff\xfe\0\x01",
                b"Disallow",
                b"User-agent:\r\r\n:::\n",
            ] {
                assert_eq!(end(&Rules::read(200, bytes), "/a"), None);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_corpus_is_called_after_its_question() {
        assert!(corpus_name("Should zoos be banned?").starts_with("should-zoos-be-banned-"));
        assert_ne!(corpus_name("Should zoos be banned?"), corpus_name("Should zoos be banned"));
        assert_eq!(corpus_name("???").len(), 6);
        assert!(corpus_name(&"very long words ".repeat(40)).len() < 64);
    }
}
