//! Every query of every task ranked: by the carried encoder under each projection, and by BM25.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use super::vectors;
use crate::corpus::Corpus;
use crate::encode::{Encoder, MiniLm, Remembering, Role, Vectors};
use crate::pipeline::model_threads;
use crate::project::{Degenerate, Parts, Perspective, Projection, Variant};
use crate::question::pir::{Row, Task};
use crate::retrieve::bm25::{Bm25, TermRetriever};
use crate::retrieve::{Retriever, TermIndex};
use crate::work::{Job, Progress, Stop, Stopped, Tell, on_all};

/// A task's lists.
pub struct Ranked {
    /// Identity of the task's passages.
    pub fingerprint: String,
    /// One a query.
    pub rows: Vec<RankedRow>,
}

/// One query's lists of passage numbers, best first.
pub struct RankedRow {
    /// The projections in their order, then BM25.
    pub lists: Vec<Vec<usize>>,
    /// Projections that could not be made, by their place.
    pub degenerate: Vec<(usize, Degenerate)>,
    /// The lists of the root query: the encoder's, then BM25's.
    pub root: [Vec<usize>; 2],
}

/// What ranks one task.
struct Shelf<'a> {
    vectors: Vectors,
    terms: TermRetriever,
    encoder: &'a dyn Encoder,
    depth: usize,
}

/// Ranks every query to `depth`; the encoder's key comes with the lists.
///
/// # Errors
/// A model or the disk failed, or `stop` was set.
pub fn all(
    tasks: &[Task],
    depth: usize,
    data: &Path,
    tell: Tell<'_>,
    stop: &Stop,
) -> anyhow::Result<(String, Vec<Ranked>)> {
    let (models, encoder) = (model_threads()?, Remembering::new(MiniLm::carried()?));
    let corpora = tasks.iter().map(|task| Ok(Arc::new(Corpus::of_texts(&task.name, &task.corpus)?)));
    let corpora = corpora.collect::<anyhow::Result<Vec<_>>>()?;
    let made = vectors::all(&corpora, &encoder, data, &models, tell, stop)?;
    let total = tasks.iter().map(|task| task.rows.len() as u64).sum();
    let done = AtomicU64::new(0);
    let mut all = Vec::new();
    for ((task, corpus), vectors) in tasks.iter().zip(&corpora).zip(made) {
        let index = Arc::new(TermIndex::in_memory(corpus)?);
        let terms = TermRetriever::new(Arc::clone(corpus), index, Bm25::default());
        let shelf = Shelf { vectors, terms, encoder: &encoder, depth };
        let rows = on_all(&models, task.rows.len(), stop, |i| {
            let ranked = shelf.row(&task.rows[i], stop);
            let done = done.fetch_add(1, Ordering::Relaxed) + 1;
            tell(Progress { job: Job::Measuring, done, total });
            ranked
        });
        if rows.len() < task.rows.len() {
            return Err(Stopped.into());
        }
        let rows = rows.into_iter().collect::<anyhow::Result<_>>()?;
        all.push(Ranked { fingerprint: corpus.fingerprint.0.clone(), rows });
    }
    Ok((encoder.key().to_owned(), all))
}

impl Shelf<'_> {
    fn row(&self, row: &Row, stop: &Stop) -> anyhow::Result<RankedRow> {
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

    fn terms(&self, query: &str, stop: &Stop) -> anyhow::Result<Vec<usize>> {
        let hits = self.terms.search(query, self.depth, stop)?;
        Ok(hits.iter().map(|hit| hit.passage.0 as usize).collect())
    }
}

/// The places of the `depth` highest scores, equal ones in order of their places.
fn best(scores: impl Iterator<Item = f32>, depth: usize) -> Vec<usize> {
    let mut scored: Vec<(usize, f32)> = scores.enumerate().collect();
    scored.sort_by(|(_, a), (_, b)| b.total_cmp(a));
    scored.into_iter().take(depth).map(|(place, _)| place).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn equal_scores_keep_the_order_of_the_passages() {
        assert_eq!(best([0.5, 0.9, 0.5, 0.9, -0.1].into_iter(), 4), [1, 3, 0, 2]);
        assert_eq!(best([0.5].into_iter(), 4), [0]);
    }
}
