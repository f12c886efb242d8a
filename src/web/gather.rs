//! The job: search, fetch what is not there yet, make the corpus of what is.

use std::collections::{BTreeMap, HashSet, VecDeque};
use std::path::PathBuf;
use std::sync::{Mutex, PoisonError};

use super::fetch::{Web, now};
use super::store::{End, Searched, Store};
use super::{Manners, Search, WebError, address};
use crate::work::{Job, Progress, Stop, Tell};

/// Pages that are asked for at once. One host is never asked for two within its pause.
const AT_ONCE: usize = 4;

/// What came of it.
#[derive(Clone, Debug, PartialEq)]
pub struct Summary {
    /// When the search was made.
    pub searched: String,
    /// How many pages it brought up.
    pub pages: usize,
    /// How many of them ended how.
    pub ends: BTreeMap<End, usize>,
    /// Pages that were not read, with the reason.
    pub unread: Vec<(String, End, String)>,
    /// Pages asked for in this run.
    pub asked: usize,
    /// Pages that hold the same text as an earlier one.
    pub repeats: usize,
    /// Passages in all.
    pub passages: usize,
    /// The corpus.
    pub corpus: PathBuf,
    /// Whether it was stopped before its end.
    pub stopped: bool,
}

/// Makes the corpus of one question from up to `wanted` pages. What was searched and fetched before is not asked for again, except
/// pages that failed for now.
///
/// # Errors
/// The search gave nothing, or what came cannot be kept. A stop is no error once pages were searched.
pub fn gather(
    question: &str,
    search: &dyn Search,
    wanted: usize,
    manners: Manners,
    store: &mut Store,
    tell: Tell<'_>,
    stop: &Stop,
) -> Result<Summary, WebError> {
    let searched = searched(question, search, wanted, manners, store, stop)?;
    let urls: Vec<String> = searched.urls.iter().take(wanted).cloned().collect();
    let settled = |url: &String| store.page(url).is_some_and(|page| page.end != End::Failed);
    let todo: VecDeque<String> = urls.iter().filter(|url| !settled(url)).cloned().collect();
    let (total, open) = (urls.len(), todo.len());
    let fetched = if open > 0 { fetch(todo, total, manners, store, tell, stop) } else { Ok(0) };
    let (passages, repeats) = store.write_corpus()?;
    let asked = fetched?;
    let mut summary = Summary {
        searched: searched.searched,
        pages: total,
        ends: BTreeMap::new(),
        unread: Vec::new(),
        asked,
        repeats,
        passages,
        corpus: store.corpus(),
        stopped: asked < open,
    };
    for page in urls.iter().filter_map(|url| store.page(url)) {
        *summary.ends.entry(page.end).or_default() += 1;
        if let Some(why) = &page.why {
            summary.unread.push((page.url.clone(), page.end, why.clone()));
        }
    }
    Ok(summary)
}

/// The search that is kept, or a new one.
fn searched(
    question: &str,
    search: &dyn Search,
    wanted: usize,
    manners: Manners,
    store: &mut Store,
    stop: &Stop,
) -> Result<Searched, WebError> {
    let provider = search.name();
    if let Some(kept) = store.searched() {
        if kept.question != question || kept.provider != provider {
            return Err(WebError::Other(format!(
                "{} holds what {} found for `{}`; name another corpus with --name",
                store.corpus().display(),
                kept.provider,
                kept.question
            )));
        }
        if kept.wanted >= wanted && !search.is_free() {
            return Ok(kept.clone());
        }
    }
    let found = search.find(question, wanted, manners.delay, stop)?;
    let mut seen = HashSet::new();
    let urls: Vec<String> = found
        .into_iter()
        .map(|url| address::parse(&url).map_or(url, Into::into))
        .filter(|url| seen.insert(url.clone()))
        .take(wanted)
        .collect();
    if urls.is_empty() {
        return Err(WebError::Search(format!(
            "{provider} found no page for `{question}`; ask in other words"
        )));
    }
    if let Some(kept) = store.searched().filter(|kept| kept.urls == urls && kept.wanted == wanted) {
        return Ok(kept.clone());
    }
    let searched = Searched { question: question.into(), provider, wanted, searched: now(), urls };
    store.keep_search(searched.clone())?;
    Ok(searched)
}

/// Fetches pages until all are there or `stop` is set. Gives how many were asked for.
fn fetch(
    todo: VecDeque<String>,
    total: usize,
    manners: Manners,
    store: &mut Store,
    tell: Tell<'_>,
    stop: &Stop,
) -> Result<usize, WebError> {
    let web = Web::new(manners)?;
    let before = total - todo.len();
    let progress = |asked: usize| {
        tell(Progress { job: Job::Gathering, done: (before + asked) as u64, total: total as u64 });
    };
    progress(0);
    let todo = Mutex::new(todo);
    let kept = Mutex::new((store, 0, Ok(())));
    let held = || kept.lock().unwrap_or_else(PoisonError::into_inner);
    let next = || todo.lock().unwrap_or_else(PoisonError::into_inner).pop_front();
    let work = || {
        while let Some(url) = next() {
            if held().2.is_err() {
                return;
            }
            let Ok(page) = web.page(&url, stop) else { return };
            let (store, asked, failed) = &mut *held();
            match store.keep_page(page) {
                Ok(()) => {
                    *asked += 1;
                    progress(*asked);
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
            // Where the system gives no thread, this one does all.
            let _ = std::thread::Builder::new().name("page".into()).spawn_scoped(scope, work);
        }
        work();
    });
    let (_, asked, failed) = kept.into_inner().unwrap_or_else(PoisonError::into_inner);
    failed.map(|()| asked)
}
