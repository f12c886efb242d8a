//! Ranks every query of PIR's tasks, by the built-in encoder under each projection and by BM25. The vectors of the passages are stored
//! in the data folder for later runs.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::{fs, io};

use rayon::ThreadPool;

use crate::corpus::BuildError;
use crate::corpus::library::Library;
use crate::corpus::{Corpus, Fingerprint};
use crate::detect::LabelSource;
use crate::encode::{EmbedError, EncodeError, Encoder, MiniLm, Remembering, Role, Vectors, embed};
use crate::engine::setup::store_texts;
use crate::engine::{
    Lane, Lists, Opening, Query, Ranking, Recipe, Setup, SetupError, model_threads, rank_lanes,
};
use crate::measure::pir::{QueryRow, Reading, by_root};
use crate::project::{Degenerate, Parts, Perspective, Projection, Variant};
use crate::question::Question;
use crate::question::pir::{Row, Task};
use crate::retrieve::bm25::{Bm25, TermRetriever};
use crate::retrieve::{RetrieveError, Retriever, TermIndex};
use crate::storage::checked::{Damaged, adopt, set_aside};
use crate::work::{Job, OnProgress, Progress, Stop, Stopped, on_all, on_cores};

/// Why a task could not be ranked.
#[derive(Debug, thiserror::Error)]
pub enum RankError {
    /// The encoder failed.
    #[error(transparent)]
    Encode(#[from] EncodeError),
    /// The passages could not be embedded.
    #[error(transparent)]
    Embed(#[from] EmbedError),
    /// BM25 failed.
    #[error(transparent)]
    Retrieve(#[from] RetrieveError),
    /// The library cannot be locked.
    #[error(transparent)]
    Lock(#[from] BuildError),
    /// The passages do not form a corpus.
    #[error(transparent)]
    Passages(#[from] serde_json::Error),
    /// The threads of the models cannot be started.
    #[error(transparent)]
    Setup(#[from] SetupError),
    /// The folder of the vectors cannot be made.
    #[error("{} cannot be used; name another folder with --data-dir", path.display())]
    Folder {
        /// The folder.
        path: PathBuf,
        /// The reason.
        source: io::Error,
    },
    /// Stored vectors cannot be opened.
    #[error("{} cannot be read", path.display())]
    Vectors {
        /// Their file.
        path: PathBuf,
        /// The reason.
        source: io::Error,
    },
    /// Stored vectors are fewer than the passages.
    #[error("{} is cut short; remove it, and it is made again", path.display())]
    CutShort {
        /// Their file.
        path: PathBuf,
    },
    /// Stored vectors cannot be read.
    #[error(transparent)]
    Read(#[from] io::Error),
    /// Stopped on request.
    #[error(transparent)]
    Stopped(#[from] Stopped),
}

/// A task's lists.
pub struct Ranked {
    /// Identity of the task's passages.
    pub fingerprint: String,
    /// One row per query.
    pub rows: Vec<RankedRow>,
}

/// One query's lists of passage numbers, best first.
pub struct RankedRow {
    /// One list per projection, in their order, then BM25's.
    pub lists: Vec<Vec<usize>>,
    /// Projections that were impossible, by their place in `lists`.
    pub degenerate: Vec<(usize, Degenerate)>,
    /// The lists of the root query: the encoder's, then BM25's.
    pub root: [Vec<usize>; 2],
}

/// The vectors and the term index of one task.
struct TaskIndex<'a> {
    vectors: Vectors,
    terms: TermRetriever,
    encoder: &'a dyn Encoder,
    depth: usize,
}

/// Ranks every query to `depth`. Returns the encoder's key and the lists.
///
/// # Errors
/// A model or the disk failed, or `stop` was set.
pub fn rank_all(
    tasks: &[Task],
    depth: usize,
    data: &Path,
    on_progress: OnProgress<'_>,
    stop: &Stop,
) -> Result<(String, Vec<Ranked>), RankError> {
    let (models, encoder) = (model_threads()?, Remembering::new(MiniLm::builtin()?));
    let corpora = tasks.iter().map(|task| Ok(Arc::new(Corpus::of_texts(&task.name, &task.corpus)?)));
    let corpora = corpora.collect::<Result<Vec<_>, RankError>>()?;
    let made = vectors_of_all(&corpora, &encoder, data, &models, on_progress, stop)?;
    let total = tasks.iter().map(|task| task.rows.len() as u64).sum();
    let done = AtomicU64::new(0);
    let mut all = Vec::new();
    for ((task, corpus), vectors) in tasks.iter().zip(&corpora).zip(made) {
        let index = Arc::new(TermIndex::in_memory(corpus)?);
        let terms = TermRetriever::new(Arc::clone(corpus), index, Bm25::default());
        let index_of = TaskIndex { vectors, terms, encoder: &encoder, depth };
        let rows = on_all(&models, task.rows.len(), stop, |i| {
            let ranked = index_of.row(&task.rows[i], stop);
            let done = done.fetch_add(1, Ordering::Relaxed) + 1;
            on_progress(Progress { job: Job::Measuring, done, total });
            ranked
        });
        if rows.len() < task.rows.len() {
            return Err(Stopped.into());
        }
        let rows = rows.into_iter().collect::<Result<_, RankError>>()?;
        all.push(Ranked { fingerprint: corpus.fingerprint.0.clone(), rows });
    }
    Ok((encoder.key().to_owned(), all))
}

impl TaskIndex<'_> {
    fn row(&self, row: &Row, stop: &Stop) -> Result<RankedRow, RankError> {
        let encode = |text: &str| self.encoder.encode(text, Role::Query);
        let p = match &row.perspective {
            None => Perspective::Missing,
            Some(text) if *text == row.query => Perspective::Query,
            Some(text) => Perspective::Text(encode(text)?),
        };
        let parts = Parts { q: encode(&row.query)?, r: encode(&row.root)?, p };
        let root = Parts { q: parts.r.clone(), r: parts.r.clone(), p: Perspective::Missing };
        let (mut lists, mut degenerate) = (Vec::new(), Vec::new());
        for (place, variant) in Variant::ALL.into_iter().enumerate() {
            let (projection, reason) = Projection::new(variant, parts.clone());
            degenerate.extend(reason.map(|reason| (place, reason)));
            lists.push(self.best(&projection)?);
        }
        lists.push(self.terms(&row.query, stop)?);
        let root = [self.best(&Projection::new(Variant::None, root).0)?, self.terms(&row.root, stop)?];
        Ok(RankedRow { lists, degenerate, root })
    }

    fn best(&self, projection: &Projection) -> std::io::Result<Vec<usize>> {
        let rows = self.vectors.rows(0..self.vectors.len())?;
        Ok(best(rows.chunks_exact(self.vectors.dimensions()).map(|row| projection.score(row)), self.depth))
    }

    fn terms(&self, query: &str, stop: &Stop) -> Result<Vec<usize>, RankError> {
        let hits = self.terms.search(query, self.depth, stop)?;
        Ok(hits.iter().map(|hit| hit.passage.0 as usize).collect())
    }
}

/// Returns the places of the `depth` highest scores; equal scores keep their order.
fn best(scores: impl Iterator<Item = f32>, depth: usize) -> Vec<usize> {
    let mut scored: Vec<(usize, f32)> = scores.enumerate().collect();
    scored.sort_by(|(_, a), (_, b)| b.total_cmp(a));
    scored.into_iter().take(depth).map(|(place, _)| place).collect()
}

/// Opens the vectors of every corpus, or embeds it if an earlier run has not.
///
/// # Errors
/// The model or the disk failed, or `stop` was set; finished vectors are kept.
fn vectors_of_all(
    corpora: &[Arc<Corpus>],
    encoder: &dyn Encoder,
    data: &Path,
    models: &ThreadPool,
    on_progress: OnProgress<'_>,
    stop: &Stop,
) -> Result<Vec<Vectors>, RankError> {
    let folder = data.join("texts");
    fs::create_dir_all(&folder).map_err(|source| RankError::Folder { path: folder.clone(), source })?;
    let total = corpora.iter().map(|corpus| corpus.len() as u64).sum();
    let mut before = 0;
    let mut made = Vec::new();
    for corpus in corpora {
        let shifted =
            |progress: Progress| on_progress(Progress { done: before + progress.done, total, ..progress });
        made.push(vectors_of(corpus, encoder, &folder, models, &shifted, stop, &Library::at(data))?);
        before += corpus.len() as u64;
    }
    Ok(made)
}

fn vectors_of(
    corpus: &Corpus,
    encoder: &dyn Encoder,
    folder: &Path,
    models: &ThreadPool,
    on_progress: OnProgress<'_>,
    stop: &Stop,
    library: &Library,
) -> Result<Vectors, RankError> {
    let name = name(corpus, encoder.key());
    let place = folder.join(format!("{name}.f32"));
    let failed = |source| RankError::Vectors { path: place.clone(), source };
    adopt(folder, |name| name.ends_with(".f32") || name.ends_with(".i8")).map_err(failed)?;
    let open = || match Vectors::open(&place, encoder.dimensions()) {
        Err(error) if place.exists() && Damaged::of(&error).is_none() => Err(failed(error)),
        Err(_) => Ok(None),
        Ok(vectors) if vectors.len() != corpus.len() => Ok(None),
        Ok(vectors) => Ok(Some(vectors)),
    };
    if let Some(vectors) = open()? {
        return Ok(vectors);
    }
    let _lock = library.lock(&Fingerprint(name), on_progress, stop)?;
    // Another process may have made them while this one waited.
    if let Some(vectors) = open()? {
        return Ok(vectors);
    }
    if place.exists() {
        let aside = set_aside(&place).map_err(failed)?;
        tracing::warn!("{} is damaged; it was set aside as {}", place.display(), aside.display());
    }
    embed(corpus, encoder, &place, models, on_progress, stop)?;
    open()?.ok_or(RankError::CutShort { path: place.clone() })
}

/// A name that depends on the texts, their boundaries and the encoder.
fn name(corpus: &Corpus, encoder: &str) -> String {
    let mut hasher = blake3::Hasher::new();
    let mut take = |text: &str| {
        hasher.update(&(text.len() as u64).to_le_bytes());
        hasher.update(text.as_bytes());
    };
    take(encoder);
    corpus.places().for_each(|place| take(&corpus.passage(place).contents()));
    hasher.finalize().to_hex()[..32].to_owned()
}

/// The positions of the passages of one list, best first.
pub type Positions = Vec<usize>;

/// The lists that lanes make of a task's queries.
pub struct LaneLists {
    /// By lane, then by query.
    pub lists: Vec<Vec<Positions>>,
    /// The lists of the root queries, by lane and query; `None` for a lane with a projection whose plain form is there too.
    pub roots: Vec<Option<Vec<Positions>>>,
    /// By lane, the queries without a list, each with the reason.
    pub failed: Vec<Vec<(String, String)>>,
    /// How many queries were not projected, by lane and reason.
    pub degenerate: BTreeMap<(usize, String), usize>,
}

/// The recipe of a root query, which has no perspective to project from.
pub fn without_projection(recipe: &Recipe) -> Recipe {
    let mut recipe = recipe.clone();
    recipe.switches.project = None;
    recipe
}

/// Opens a task's passages as a corpus, which is stored in the data folder. The ids of the passages are their positions.
///
/// # Errors
/// The passages cannot be stored or opened.
pub fn setup_of(
    task: &Task,
    opening: &Opening,
    on_progress: OnProgress<'_>,
    stop: &Stop,
) -> Result<Setup, RankError> {
    let path = store_texts(task, &opening.data_dir)?;
    let opening = Opening { corpus: Some(path), questions: None, labels: None, ..opening.clone() };
    Ok(Setup::open(&opening, on_progress, stop)?)
}

/// Ranks a task's queries and root queries by every lane, on one thread per core. `at` is a passage's position. `None` once `stop` is set.
pub fn rank_by_lanes(
    setup: &Setup,
    recipes: &[Recipe],
    task: Task,
    (depth, at): (usize, &(dyn Fn(&super::Ranked) -> usize + Sync)),
    on_progress: OnProgress<'_>,
    stop: &Stop,
) -> Option<RankedTask> {
    let bare: Vec<Recipe> = recipes.iter().map(without_projection).collect();
    let positions = |list: &Ranking| list.iter().take(depth).map(at).collect::<Positions>();
    let ask = |question: Question, lanes: &[Recipe]| {
        let query = Query { question, lanes: lanes.to_vec(), k: depth, source: LabelSource::Model };
        rank_lanes(setup, query, Lists::default(), stop)
    };
    let (done, total) = (AtomicU64::new(0), task.rows.len() as u64);
    let found = on_cores(task.rows.len(), stop, |row| {
        let Row { query, root, perspective, .. } = &task.rows[row];
        let id = format!("{}/{row}", task.name);
        let asked = Question {
            id: id.clone(),
            text: query.clone(),
            perspectives: perspective.iter().cloned().collect(),
            root: Some(root.clone()),
            ..Question::default()
        };
        let root = Question { id, text: root.clone(), ..Question::default() };
        let ranked = (ask(asked, recipes), ask(root, &bare));
        on_progress(Progress { job: Job::Measuring, done: done.fetch_add(1, Ordering::Relaxed) + 1, total });
        ranked
    });
    if stop.is_set() || found.len() < task.rows.len() {
        return None;
    }
    let (mut failed, mut degenerate) = (vec![Vec::new(); recipes.len()], BTreeMap::new());
    let (mut lists, mut roots) = (Vec::new(), Vec::new());
    for (lane, recipe) in recipes.iter().enumerate() {
        let mut own = Vec::new();
        for (row, (full, _)) in found.iter().enumerate() {
            own.push(match &full[lane].ranking {
                Ok(list) => {
                    let impossible = list.trace.projected().is_some_and(|one| one.ran != one.asked);
                    for note in list.trace.own_notes().filter(|_| impossible) {
                        *degenerate.entry((lane, note.clone())).or_default() += 1;
                    }
                    positions(list)
                }
                Err(error) => {
                    failed[lane].push((format!("{}/{row}", task.name), error.to_string()));
                    Vec::new()
                }
            });
        }
        lists.push(own);
        let shown = recipe.switches.project.is_none() || !recipes.contains(&bare[lane]);
        let root =
            |(_, root): &(_, Vec<Lane>)| root[lane].ranking.as_ref().map(positions).unwrap_or_default();
        roots.push(shown.then(|| found.iter().map(root).collect()));
    }
    let passages = if task.corpus.is_empty() { (setup.corpus.len(), None) } else { sizes(&task.corpus) };
    let lanes = LaneLists { lists, roots, failed, degenerate };
    Some(RankedTask { passages, fingerprint: setup.corpus.fingerprint.0.clone(), lanes, task })
}

/// A task that every lane has ranked.
pub struct RankedTask {
    /// The task.
    pub task: Task,
    /// The number of its passages, and the words of all of them; `None` if they are in a corpus.
    pub passages: (usize, Option<usize>),
    /// Identity of the passages.
    pub fingerprint: String,
    /// The lists.
    pub lanes: LaneLists,
}

impl RankedTask {
    /// Whether a query finds one of its gold passages.
    pub fn finds(&self, lists: &[Positions], row: usize, k: usize) -> bool {
        lists[row].iter().take(k).any(|passage| self.task.rows[row].gold.contains(passage))
    }

    /// The score of every root.
    pub fn by_root(&self, lists: &[Positions], k: usize, reading: Reading) -> Vec<f64> {
        let named = |passages: &[usize]| passages.iter().map(usize::to_string).collect::<Vec<String>>();
        let named: Vec<_> =
            lists.iter().zip(&self.task.rows).map(|(list, row)| (named(list), named(&row.gold))).collect();
        fn texts(all: &[String]) -> Vec<&str> {
            all.iter().map(String::as_str).collect()
        }
        let named: Vec<_> = named.iter().map(|(list, gold)| (texts(list), texts(gold))).collect();
        let rows = self.task.rows.iter().zip(&named);
        let rows: Vec<_> =
            rows.map(|(row, (ranking, gold))| QueryRow { root: &row.root, ranking, gold }).collect();
        by_root(&rows, k, reading)
    }

    /// The labels of the queries, in the order of the alphabet.
    pub fn labels(&self) -> Vec<&str> {
        let labels: BTreeSet<&str> = self.task.rows.iter().map(|row| row.label.as_str()).collect();
        labels.into_iter().collect()
    }

    /// The roots.
    pub fn roots(&self) -> BTreeSet<&str> {
        self.task.rows.iter().map(|row| row.root.as_str()).collect()
    }

    /// A query's name in rows by question.
    pub fn query_name(&self, row: usize) -> String {
        let Row { root, perspective, .. } = &self.task.rows[row];
        format!("{}/{row}: {root} [{}]", self.task.name, perspective.as_deref().unwrap_or_default())
    }
}

/// Ranks every task by the built-in encoder under every projection, and by BM25. Returns the encoder's key too.
///
/// # Errors
/// As [`rank_all`].
pub fn rank_every_projection(
    tasks: Vec<Task>,
    depth: usize,
    data: &Path,
    on_progress: OnProgress<'_>,
    stop: &Stop,
) -> Result<(String, Vec<RankedTask>), RankError> {
    let (encoder, found) = rank_all(&tasks, depth, data, on_progress, stop)?;
    let count = Variant::ALL.len() + 1;
    let ranked = tasks.into_iter().zip(found).map(|(task, Ranked { fingerprint, rows })| {
        let mut degenerate = BTreeMap::new();
        for (variant, reason) in rows.iter().flat_map(|row| &row.degenerate) {
            *degenerate.entry((*variant, reason.to_string())).or_default() += 1;
        }
        let of_root = |place: usize| Some(rows.iter().map(|row| row.root[place].clone()).collect());
        let mut roots = vec![None; count];
        (roots[0], roots[count - 1]) = (of_root(0), of_root(1));
        let lists = (0..count).map(|lane| rows.iter().map(|row| row.lists[lane].clone()).collect()).collect();
        let lanes = LaneLists { lists, roots, failed: vec![Vec::new(); count], degenerate };
        RankedTask { passages: sizes(&task.corpus), fingerprint, lanes, task }
    });
    Ok((encoder, ranked.collect()))
}

/// The number of passages and of their words.
fn sizes(corpus: &[String]) -> (usize, Option<usize>) {
    (corpus.len(), Some(corpus.iter().map(|text| text.split_whitespace().count()).sum()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn equal_scores_keep_the_order_of_the_passages() {
        assert_eq!(best([0.5, 0.9, 0.5, 0.9, -0.1].into_iter(), 4), [1, 3, 0, 2]);
        assert_eq!(best([0.5].into_iter(), 4), [0]);
    }

    #[test]
    fn other_texts_another_cut_between_them_and_another_encoder_have_another_name() {
        let of = |texts: &[&str], encoder| {
            let texts: Vec<String> = texts.iter().map(|text| (*text).to_owned()).collect();
            name(&Corpus::of_texts("t", &texts).unwrap(), encoder)
        };
        let one = of(&["ab", "c"], "e");
        assert_eq!(one, of(&["ab", "c"], "e"));
        for other in
            [of(&["a", "bc"], "e"), of(&["ab", "d"], "e"), of(&["c", "ab"], "e"), of(&["ab", "c"], "f")]
        {
            assert_ne!(one, other);
        }
    }
}
