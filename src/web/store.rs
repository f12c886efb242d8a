//! The folder of one question: a journal of what was searched and asked, and the corpus that is made of it.
//!
//! ```text
//! DATA/web/NAME/pages.jsonl    a line a search and a page, appended and synced: nobody is asked twice
//! DATA/web/NAME/corpus.jsonl   the passages, made of those lines
//! ```

use std::collections::HashMap;
use std::fs::{self, File, OpenOptions};
use std::io::{self, Read, Write};
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use super::WebError;
use crate::corpus::library::replace;
use crate::corpus::{Passage, chunks};

/// Where these folders lie, below the data folder.
pub const FOLDER: &str = "web";
const PAGES: &str = "pages.jsonl";
const CORPUS: &str = "corpus.jsonl";

/// How asking for a page ended.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum End {
    /// It came and holds text.
    #[default]
    Read,
    /// robots.txt forbids it.
    Robots,
    /// It lies in a private network, or nowhere.
    Address,
    /// Neither HTML nor plain text.
    Type,
    /// Too large.
    Size,
    /// Led on without end.
    Redirect,
    /// Its server refused.
    Status,
    /// It came and holds no text.
    Empty,
    /// It may come another time.
    Failed,
}

impl End {
    /// In words.
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

/// What became of a page.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Page {
    /// The address that was searched.
    pub url: String,
    /// How it ended.
    pub end: End,
    /// Why it was not read.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub why: Option<String>,
    /// When, as RFC 3339 writes it.
    pub fetched: String,
    /// Where it was found in the end.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub at: Option<String>,
    /// Its title.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub title: String,
    /// Its main text.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub text: String,
}

/// What a search brought up.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Searched {
    /// The question.
    pub question: String,
    /// Who was asked.
    pub provider: String,
    /// How many pages were wanted.
    pub wanted: usize,
    /// When, as RFC 3339 writes it.
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

/// The folder, held by this process.
pub struct Store {
    folder: PathBuf,
    journal: File,
    searched: Option<Searched>,
    pages: HashMap<String, Page>,
}

/// The folder of that name.
///
/// # Errors
/// It is no name of a folder.
pub fn place(data: &Path, name: &str) -> Result<PathBuf, WebError> {
    let bad = |c: char| c.is_control() || "/\\:".contains(c);
    if name.trim().is_empty() || name.starts_with('.') || name.chars().any(bad) {
        let name = name.escape_debug();
        return Err(WebError::Other(format!(
            "a corpus cannot be called `{name}`; expected a name without slashes, such as --name zoos"
        )));
    }
    Ok(data.join(FOLDER).join(name))
}

impl Store {
    /// Opens the folder, and makes it if it is not there.
    ///
    /// # Errors
    /// It cannot be written, another process holds it, or its journal is not one.
    pub fn open(folder: &Path) -> Result<Self, WebError> {
        let path = folder.join(PAGES);
        let keep = |reason: io::Error| WebError::Keep { path: path.clone(), reason };
        fs::create_dir_all(folder).map_err(keep)?;
        let mut journal =
            OpenOptions::new().read(true).append(true).create(true).open(&path).map_err(keep)?;
        match journal.try_lock() {
            Err(fs::TryLockError::WouldBlock) => {
                let told = format!("another process fills {}; wait for its end", folder.display());
                return Err(WebError::Other(told));
            }
            Err(fs::TryLockError::Error(error)) if error.kind() != io::ErrorKind::Unsupported => {
                return Err(keep(error));
            }
            _ => {}
        }
        let mut bytes = Vec::new();
        journal.read_to_end(&mut bytes).map_err(keep)?;
        let whole = bytes.iter().rposition(|byte| *byte == b'\n').map_or(0, |at| at + 1);
        if whole < bytes.len() {
            // Half a line of a process that was killed.
            journal.set_len(whole as u64).map_err(keep)?;
        }
        let mut store = Store { folder: folder.into(), journal, searched: None, pages: HashMap::new() };
        for (number, line) in bytes[..whole].split_inclusive(|byte| *byte == b'\n').enumerate() {
            match serde_json::from_slice(line) {
                Ok(line) => store.take(line),
                Err(error) => {
                    return Err(WebError::Other(format!(
                        "{}:{}: expected a search or a page ({error}); remove that line, or the folder",
                        path.display(),
                        number + 1
                    )));
                }
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
        let path = self.folder.join(PAGES);
        let keep = |reason: io::Error| WebError::Keep { path: path.clone(), reason };
        let mut bytes = serde_json::to_vec(&line).map_err(|error| keep(error.into()))?;
        bytes.push(b'\n');
        let before = self.journal.metadata().map_err(keep)?.len();
        if let Err(error) = self.journal.write_all(&bytes).and_then(|()| self.journal.sync_data()) {
            // A full disk takes half a line. Should this fail as well, the next opening finds it.
            let _ = self.journal.set_len(before);
            return Err(keep(error));
        }
        self.take(line);
        Ok(())
    }

    /// Keeps what a search brought up.
    pub(super) fn keep_search(&mut self, searched: Searched) -> Result<(), WebError> {
        self.append(Line::Search(searched))
    }

    /// Keeps what became of a page.
    pub(super) fn keep_page(&mut self, page: Page) -> Result<(), WebError> {
        self.append(Line::Page(page))
    }

    /// The last search.
    pub fn searched(&self) -> Option<&Searched> {
        self.searched.as_ref()
    }

    /// What became of a page, if it was asked for.
    pub fn page(&self, url: &str) -> Option<&Page> {
        self.pages.get(url)
    }

    /// Where the passages lie.
    pub fn corpus(&self) -> PathBuf {
        self.folder.join(CORPUS)
    }

    /// Writes the passages of the pages that were read, in the order of the search. A text that stands at two addresses counts once.
    /// Gives how many passages there are, and how many pages repeat another one's text.
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
            let told = [("url", url), ("fetched", &page.fetched), ("question", &searched.question)];
            let metadata: Map<String, Value> =
                told.into_iter().map(|(name, value)| (name.to_owned(), value.clone().into())).collect();
            let id = &blake3::hash(page.url.as_bytes()).to_hex()[..12];
            for (number, text) in chunks(&page.text).enumerate() {
                let id = format!("{id}#{}", number + 1);
                let passage = Passage { id, title: page.title.clone(), text, metadata: metadata.clone() };
                serde_json::to_writer(&mut bytes, &passage).map_err(|error| keep(error.into()))?;
                bytes.push(b'\n');
                passages += 1;
            }
        }
        // An unchanged file keeps its time, and with it the index that was made of it.
        if passages > 0 && fs::read(self.corpus()).ok().as_deref() != Some(&bytes) {
            replace(&self.corpus(), &bytes).map_err(keep)?;
        }
        Ok((passages, repeats))
    }
}
