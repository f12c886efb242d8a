//! Reads the finished runs of lanes once, remembers them by path, size and time, and finds their passages in the corpus.
//!
//! Only as many ranks as needed are kept. A passage that the corpus does not hold keeps its rank; it gets a number outside the corpus,
//! has no text, and cannot be judged by the model.

use std::collections::HashMap;
use std::fs::Metadata;
use std::io::{self, BufRead, Read};
use std::sync::{Arc, OnceLock};
use std::time::SystemTime;

use parking_lot::Mutex;

use super::recipe::RunFile;
use crate::corpus::results::is_json;
use crate::corpus::{Corpus, Passage, PassageIx};
use crate::input::{self, InputError};
use crate::measure::trec::{Run, TrecError, is_text_id, read_json_run, read_run_top, text_id};
use crate::work::{Stop, Stopped};

/// The text of a passage that is not in the corpus.
const NO_TEXT: &str = "(not in the corpus)";
/// The number of missing passages that a note names.
const NAMED: usize = 3;

/// Why a run was not read.
#[derive(Debug, thiserror::Error)]
pub enum RunError {
    /// The file cannot be opened.
    #[error(transparent)]
    Input(#[from] InputError),
    /// It is not a valid run.
    #[error(transparent)]
    Content(#[from] TrecError),
    /// Stopped on request.
    #[error(transparent)]
    Stopped(#[from] Stopped),
}

/// A run and the numbers of its passages in the corpus.
#[derive(Debug)]
pub struct Located {
    /// The run.
    pub run: Arc<Run>,
    /// The numbers of its passages, question by question.
    pub places: Vec<Vec<PassageIx>>,
    /// A note about passages that the corpus does not hold.
    pub note: Option<String>,
}

/// All runs read so far.
#[derive(Default)]
pub struct RunFiles {
    known: Mutex<HashMap<RunFile, StoredRun>>,
    outside: Mutex<Outside>,
    texts: OnceLock<HashMap<String, PassageIx>>,
}

/// A run as last read, with the size and time of its file.
struct StoredRun {
    size: u64,
    time: Option<SystemTime>,
    depth: usize,
    run: Arc<Run>,
    located: Option<Arc<Located>>,
}

/// Ids that the corpus does not hold.
#[derive(Default)]
struct Outside {
    ids: Vec<Arc<str>>,
    places: HashMap<Arc<str>, u32>,
}

impl RunFiles {
    /// Reads a run, at least the first `depth` ranks of each question.
    ///
    /// # Errors
    /// The file is not a run, or `stop` was set.
    pub fn read(&self, file: &RunFile, depth: usize, stop: &Stop) -> Result<Arc<Run>, RunError> {
        let mut known = self.known.lock();
        Ok(Arc::clone(&entry(&mut known, file, depth, stop)?.run))
    }

    /// Reads a run and finds its passages in the corpus.
    ///
    /// # Errors
    /// The file is not a run, or `stop` was set.
    pub fn locate(
        &self,
        file: &RunFile,
        depth: usize,
        corpus: &Corpus,
        stop: &Stop,
    ) -> Result<Arc<Located>, RunError> {
        let mut known = self.known.lock();
        let entry = entry(&mut known, file, depth, stop)?;
        if let Some(located) = &entry.located {
            return Ok(Arc::clone(located));
        }
        let located = Arc::new(self.find_passages(&entry.run, corpus, stop)?);
        entry.located = Some(Arc::clone(&located));
        Ok(located)
    }

    fn find_passages(&self, run: &Arc<Run>, corpus: &Corpus, stop: &Stop) -> Result<Located, RunError> {
        let mut outside = self.outside.lock();
        let mut missing: Vec<&str> = Vec::new();
        let mut missed = std::collections::HashSet::new();
        let mut places = Vec::new();
        for question in run.questions() {
            let mut own = Vec::new();
            for id in question.ids() {
                let mut at = corpus.find(id);
                if at.is_none() && is_text_id(id) {
                    at = self.by_text(corpus, stop)?.get(id).copied();
                }
                if at.is_none() && missed.insert(id) {
                    missing.push(id);
                }
                own.push(at.unwrap_or_else(|| outside.place(id)));
            }
            places.push(own);
            if stop.is_set() {
                return Err(Stopped.into());
            }
        }
        Ok(Located { run: Arc::clone(run), places, note: note("run", &missing) })
    }

    /// Finds the passages that an engine on another machine gave by their ids, with a note about those that the corpus does not hold.
    pub fn places<'a>(
        &self,
        ids: impl IntoIterator<Item = &'a str>,
        corpus: &Corpus,
    ) -> (Vec<PassageIx>, Option<String>) {
        let mut outside = self.outside.lock();
        let mut missing = Vec::new();
        let place = |id: &'a str| {
            corpus.find(id).unwrap_or_else(|| {
                missing.push(id);
                outside.place(id)
            })
        };
        let places = ids.into_iter().map(place).collect();
        (places, note("list", &missing))
    }

    /// Finds passages by their texts, for runs whose passages have no ids.
    fn by_text(&self, corpus: &Corpus, stop: &Stop) -> Result<&HashMap<String, PassageIx>, RunError> {
        if let Some(texts) = self.texts.get() {
            return Ok(texts);
        }
        let mut texts = HashMap::new();
        for at in corpus.places() {
            if stop.is_set() {
                return Err(Stopped.into());
            }
            texts.entry(text_id(&corpus.passage(at).text)).or_insert(at);
        }
        Ok(self.texts.get_or_init(|| texts))
    }

    /// A passage outside the corpus; only its id is known.
    pub fn outside(&self, number: u32) -> Passage {
        let outside = self.outside.lock();
        let id = outside.ids.get(number as usize).map(ToString::to_string).unwrap_or_default();
        Passage { id, text: NO_TEXT.into(), ..Passage::default() }
    }
}

impl Outside {
    /// The number of an id, the same for all runs.
    fn place(&mut self, id: &str) -> PassageIx {
        if let Some(number) = self.places.get(id) {
            return PassageIx::outside(*number);
        }
        let (number, id) = (self.ids.len() as u32, Arc::<str>::from(id));
        self.ids.push(Arc::clone(&id));
        self.places.insert(id, number);
        PassageIx::outside(number)
    }
}

/// A note about passages that the corpus does not hold.
fn note(whose: &str, missing: &[&str]) -> Option<String> {
    let named = missing.iter().take(NAMED).copied().collect::<Vec<_>>().join(", ");
    let more = if missing.len() > NAMED { ", …" } else { "" };
    match missing.len() {
        0 => None,
        1 => Some(format!(
            "1 passage of this {whose} is not in the corpus: {named}; it keeps its rank, unjudged"
        )),
        n => Some(format!(
            "{n} passages of this {whose} are not in the corpus: {named}{more}; they keep their ranks, unjudged"
        )),
    }
}

/// Returns the run from `known`, or reads the file if it is new, has changed, or was not read deep enough.
fn entry<'a>(
    known: &'a mut HashMap<RunFile, StoredRun>,
    file: &RunFile,
    depth: usize,
    stop: &Stop,
) -> Result<&'a mut StoredRun, RunError> {
    let path = &file.path;
    let unreadable = |error: io::Error| InputError::unreadable(path, &error);
    let about = path.metadata().map_err(unreadable)?;
    let fresh = |entry: &StoredRun| {
        entry.size == about.len() && entry.time == modified(&about) && entry.depth >= depth
    };
    if !known.get(file).is_some_and(fresh) {
        let run = Arc::new(read(file, depth, stop)?);
        let (size, time) = (about.len(), modified(&about));
        known.insert(file.clone(), StoredRun { size, time, depth, run, located: None });
    }
    known.get_mut(file).ok_or_else(|| unreadable(io::ErrorKind::NotFound.into()).into())
}

fn modified(about: &Metadata) -> Option<SystemTime> {
    about.modified().ok()
}

/// Reads a run of any format. The first character shows whether it is JSON.
fn read(file: &RunFile, depth: usize, stop: &Stop) -> Result<Run, RunError> {
    let mut inner = input::open(&file.path)?;
    let name = file.path.display().to_string();
    let json = is_json(&mut Stoppable { inner: &mut inner, stop });
    let json = json.map_err(|error| InputError::unreadable(&file.path, &error));
    let run = json.map_err(RunError::from).and_then(|json| {
        Ok(if json {
            // JSON is held in memory as a whole, lines are not.
            let reader = Stoppable { inner: input::bounded(&file.path, inner), stop };
            read_json_run(&name, reader, file.order, depth, &mut |_| {})?
        } else {
            read_run_top(&name, Stoppable { inner, stop }, file.order, depth)?
        })
    });
    if stop.is_set() { Err(Stopped.into()) } else { run }
}

/// A reader that fails once `stop` is set.
struct Stoppable<'a, R> {
    inner: R,
    stop: &'a Stop,
}

impl<R> Stoppable<'_, R> {
    fn check(&self) -> io::Result<()> {
        if self.stop.is_set() { Err(io::Error::other("stopped")) } else { Ok(()) }
    }
}

impl<R: Read> Read for Stoppable<'_, R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        self.check()?;
        self.inner.read(buffer)
    }
}

impl<R: BufRead> BufRead for Stoppable<'_, R> {
    fn fill_buf(&mut self) -> io::Result<&[u8]> {
        self.check()?;
        self.inner.fill_buf()
    }

    fn consume(&mut self, amount: usize) {
        self.inner.consume(amount);
    }
}
