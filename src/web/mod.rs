//! Makes a corpus from the web: a search engine finds pages for a question, the pages are fetched politely, and their main text is cut
//! into passages.
//!
//! Holds the search engines, the rules on addresses, robots.txt and pace, and the journal of fetched pages. Uses the network only
//! through `net`. Wikis give the texts of their pages themselves. Must not depend on rankings, models or the screen.
//!
//! May use: corpus, input, net, storage, work.
//!
//! This file holds the job: search, fetch what is missing, write the corpus.

use std::collections::{BTreeMap, HashSet, VecDeque};
use std::path::{Path, PathBuf};

use parking_lot::Mutex;

use crate::net::wait;
use crate::work::{Job, OnProgress, Progress, Stop};
use fetch::{Web, now};
use store::Searched;

#[cfg(test)]
mod double_tests;
pub mod engines;
mod fetch;
mod manners;
pub mod search;
#[cfg(test)]
#[path = "../../tests/it/site.rs"]
mod site;
mod store;

pub use engines::Provider;
pub use manners::{Manners, SearchError, WebError, anywhere, public};
pub use search::{Results, Search, is_contact};
pub use store::{CORPUS, End, FOLDER, PAGES, Store, corpus_name, place};

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

/// Called with the corpus and the number of its pages, while more are fetched.
pub type OnGrown<'a> = &'a (dyn Fn(&Path, usize) + Sync);

/// The pages that the corpus grows by before it is first shown; their number is doubled each time.
const FIRST: usize = 3;

/// A corpus to make.
#[derive(Clone, Copy)]
pub struct Gather<'a> {
    /// The question.
    pub question: &'a str,
    /// Its statements, for engines that search for them too.
    pub statements: &'a [String],
    /// The search engine.
    pub search: &'a dyn Search,
    /// The most pages.
    pub wanted: usize,
    /// Pace and limits.
    pub manners: Manners,
    /// If somebody watches, the corpus is also written before it is complete.
    pub grown: Option<OnGrown<'a>>,
}

/// Makes the corpus of one question. Searches and pages of earlier runs are not requested again, except pages
/// that failed for now.
///
/// # Errors
/// The search found nothing, or a file cannot be written. A stop is not an error once the search is done.
pub fn gather(
    gather: &Gather<'_>,
    store: &mut Store,
    on_progress: OnProgress<'_>,
    stop: &Stop,
) -> Result<Summary, WebError> {
    let searched = search_once(gather, store, stop)?;
    let urls: Vec<String> = searched.urls.iter().take(gather.wanted).cloned().collect();
    let settled = |url: &String| store.page(url).is_some_and(|page| page.end != End::Failed);
    let todo: VecDeque<String> = urls.iter().filter(|url| !settled(url)).cloned().collect();
    let (total, open) = (urls.len(), todo.len());
    let fetched = if open > 0 { fetch(todo, total, gather, store, on_progress, stop) } else { Ok(0) };
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
fn search_once(gather: &Gather<'_>, store: &mut Store, stop: &Stop) -> Result<Searched, WebError> {
    let Gather { question, search, wanted, .. } = *gather;
    let statements = if search.takes_statements() { gather.statements } else { &[] };
    let provider = search.name();
    if let Some(stored) = store.searched() {
        if stored.question != question || stored.provider != provider {
            return Err(WebError::OtherSearch {
                path: store.corpus(),
                provider: stored.provider.clone(),
                question: stored.question.clone(),
            });
        }
        if stored.wanted >= wanted && stored.statements == statements && !search.is_free() {
            return Ok(stored.clone());
        }
    }
    let found = search.find(question, statements, wanted, gather.manners.delay, stop)?;
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
    if let Some(stored) = store
        .searched()
        .filter(|stored| stored.urls == urls && stored.wanted == wanted && stored.statements == statements)
    {
        return Ok(stored.clone());
    }
    let (question, statements) = (question.into(), statements.to_vec());
    let searched = Searched { question, statements, provider, wanted, searched: now(), urls };
    store.keep_search(searched.clone())?;
    Ok(searched)
}

/// Fetches pages until all are done or `stop` is set. Returns how many were requested.
fn fetch(
    todo: VecDeque<String>,
    total: usize,
    gather: &Gather<'_>,
    store: &mut Store,
    on_progress: OnProgress<'_>,
    stop: &Stop,
) -> Result<usize, WebError> {
    let Gather { search, manners, grown, .. } = *gather;
    let web = Web::new(manners)?;
    let grows_to = Mutex::new(FIRST);
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
            // An engine that gives texts is one host, so its requests are apart by the pause of a host.
            let own = search.takes_turns().then(|| wait(&search.name(), manners.delay, stop));
            let page = match own {
                Some(Err(_)) => return,
                Some(Ok(())) => search.text(&url, stop),
                None => web.page(&url, stop),
            };
            let Ok(page) = page else { return };
            let (store, fetched, failed) = &mut *state();
            let kept = store.keep_page(page).and_then(|()| {
                let (read, mut next) = (store.read(), grows_to.lock());
                if let Some(grown) = grown.filter(|_| read >= *next) {
                    *next = 2 * read;
                    store.write_corpus()?;
                    grown(&store.corpus(), read);
                }
                Ok(())
            });
            match kept {
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
        let at_once = if search.takes_turns() { 1 } else { AT_ONCE };
        for _ in 1..at_once {
            // If the system cannot start a thread, this one fetches all pages.
            let _ = std::thread::Builder::new().name("page".into()).spawn_scoped(scope, work);
        }
        work();
    });
    let (_, fetched, failed) = stored.into_inner();
    failed.map(|()| fetched)
}
