//! Makes a corpus from the web: a search engine finds pages for a question, the pages are fetched politely, and their main text is cut
//! into passages.
//!
//! Holds the search engines, the rules on addresses, robots.txt and pace, and the journal of fetched pages. Uses the network only
//! through `net`. Must not depend on rankings, models or the screen.
//!
//! May use: corpus, input, net, storage, work.
//!
//! This file holds the job: search, fetch what is missing, write the corpus.

use std::collections::{BTreeMap, HashSet, VecDeque};
use std::path::PathBuf;

use parking_lot::Mutex;

use crate::work::{Job, OnProgress, Progress, Stop};
use fetch::{Web, now};
use store::Searched;

mod fetch;
mod host;
mod manners;
pub mod search;
#[cfg(test)]
mod search_tests;
#[cfg(test)]
mod site;
mod store;
#[cfg(test)]
mod tests;

pub use manners::{Manners, SearchError, WebError, anywhere, public};
pub use search::{Provider, Results, Search};
pub use store::{CORPUS, End, FOLDER, PAGES, Store, place};

/// The number of pages fetched at once. Two requests to one host are always apart by its pause.
const AT_ONCE: usize = 4;

/// The result of [`gather`].
#[derive(Clone, Debug, PartialEq)]
pub struct Summary {
    /// When the search was made.
    pub searched: String,
    /// The number of pages that it found.
    pub pages: usize,
    /// The number of pages by outcome.
    pub ends: BTreeMap<End, usize>,
    /// Pages that were not read, with the reason.
    pub unread: Vec<(String, End, String)>,
    /// The number of pages requested in this run.
    pub fetched: usize,
    /// The number of pages with the same text as an earlier one.
    pub repeats: usize,
    /// The number of passages.
    pub passages: usize,
    /// The corpus.
    pub corpus: PathBuf,
    /// Whether it was stopped before its end.
    pub stopped: bool,
}

/// Makes the corpus of one question from up to `wanted` pages. Searches and pages of earlier runs are not requested again, except pages
/// that failed for now.
///
/// # Errors
/// The search found nothing, or a file cannot be written. A stop is not an error once the search is done.
pub fn gather(
    question: &str,
    search: &dyn Search,
    wanted: usize,
    manners: Manners,
    store: &mut Store,
    on_progress: OnProgress<'_>,
    stop: &Stop,
) -> Result<Summary, WebError> {
    let searched = search_once(question, search, wanted, manners, store, stop)?;
    let urls: Vec<String> = searched.urls.iter().take(wanted).cloned().collect();
    let settled = |url: &String| store.page(url).is_some_and(|page| page.end != End::Failed);
    let todo: VecDeque<String> = urls.iter().filter(|url| !settled(url)).cloned().collect();
    let (total, open) = (urls.len(), todo.len());
    let fetched = if open > 0 { fetch(todo, total, manners, store, on_progress, stop) } else { Ok(0) };
    let (passages, repeats) = store.write_corpus()?;
    let fetched = fetched?;
    let mut summary = Summary {
        searched: searched.searched,
        pages: total,
        ends: BTreeMap::new(),
        unread: Vec::new(),
        fetched,
        repeats,
        passages,
        corpus: store.corpus(),
        stopped: fetched < open,
    };
    for page in urls.iter().filter_map(|url| store.page(url)) {
        *summary.ends.entry(page.end).or_default() += 1;
        if let Some(why) = &page.reason {
            summary.unread.push((page.url.clone(), page.end, why.clone()));
        }
    }
    Ok(summary)
}

/// The stored search, or a new one.
fn search_once(
    question: &str,
    search: &dyn Search,
    wanted: usize,
    manners: Manners,
    store: &mut Store,
    stop: &Stop,
) -> Result<Searched, WebError> {
    let provider = search.name();
    if let Some(stored) = store.searched() {
        if stored.question != question || stored.provider != provider {
            return Err(WebError::OtherSearch {
                path: store.corpus(),
                provider: stored.provider.clone(),
                question: stored.question.clone(),
            });
        }
        if stored.wanted >= wanted && !search.is_free() {
            return Ok(stored.clone());
        }
    }
    let found = search.find(question, wanted, manners.delay, stop)?;
    let mut seen = HashSet::new();
    let urls: Vec<String> = found
        .into_iter()
        .map(|url| manners::parse(&url).map_or(url, Into::into))
        .filter(|url| seen.insert(url.clone()))
        .take(wanted)
        .collect();
    if urls.is_empty() {
        return Err(SearchError::NoPage { provider, question: question.into() }.into());
    }
    if let Some(stored) = store.searched().filter(|stored| stored.urls == urls && stored.wanted == wanted) {
        return Ok(stored.clone());
    }
    let searched = Searched { question: question.into(), provider, wanted, searched: now(), urls };
    store.keep_search(searched.clone())?;
    Ok(searched)
}

/// Fetches pages until all are done or `stop` is set. Returns how many were requested.
fn fetch(
    todo: VecDeque<String>,
    total: usize,
    manners: Manners,
    store: &mut Store,
    on_progress: OnProgress<'_>,
    stop: &Stop,
) -> Result<usize, WebError> {
    let web = Web::new(manners)?;
    let before = total - todo.len();
    let progress = |fetched: usize| {
        on_progress(Progress { job: Job::Gathering, done: (before + fetched) as u64, total: total as u64 });
    };
    progress(0);
    let todo = Mutex::new(todo);
    let stored = Mutex::new((store, 0, Ok(())));
    let state = || stored.lock();
    let next = || todo.lock().pop_front();
    let work = || {
        while let Some(url) = next() {
            if state().2.is_err() {
                return;
            }
            let Ok(page) = web.page(&url, stop) else { return };
            let (store, fetched, failed) = &mut *state();
            match store.keep_page(page) {
                Ok(()) => {
                    *fetched += 1;
                    progress(*fetched);
                }
                Err(error) => {
                    *failed = Err(error);
                    return;
                }
            }
        }
    };
    std::thread::scope(|scope| {
        for _ in 1..AT_ONCE {
            // If the system cannot start a thread, this one fetches all pages.
            let _ = std::thread::Builder::new().name("page".into()).spawn_scoped(scope, work);
        }
        work();
    });
    let (_, fetched, failed) = stored.into_inner();
    failed.map(|()| fetched)
}
