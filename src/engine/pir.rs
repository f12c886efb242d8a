//! Ranks every query of PIR's tasks, by the built-in encoder under each projection and by BM25. The vectors of the passages are stored
//! in the data folder for later runs.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::{fs, io};

use rayon::ThreadPool;

use crate::corpus::BuildError;
use crate::corpus::library::Library;
use crate::corpus::{Corpus, Fingerprint};
use crate::encode::{EmbedError, EncodeError, Encoder, MiniLm, Remembering, Role, Vectors, embed};
use crate::engine::{SetupError, model_threads};
use crate::project::{Degenerate, Parts, Perspective, Projection, Variant};
use crate::question::pir::{Row, Task};
use crate::retrieve::bm25::{Bm25, TermRetriever};
use crate::retrieve::{RetrieveError, Retriever, TermIndex};
use crate::storage::checked::{Damaged, adopt, set_aside};
use crate::work::{Job, OnProgress, Progress, Stop, Stopped, on_all};

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
