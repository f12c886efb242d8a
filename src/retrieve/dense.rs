//! Dense retrieval: the dot product of unit vectors, over every passage.

use std::sync::Arc;

use super::{Hit, RetrieveError, Retriever, top::top};
use crate::corpus::{Corpus, PassageIx};
use crate::encode::{Encoder, Role, Vectors};
use crate::work::{Stop, Stopped};

/// Passages scored between two looks at the stop.
const BATCH: usize = 8_192;

/// Exact search by vectors.
pub struct DenseRetriever {
    corpus: Arc<Corpus>,
    encoder: Arc<dyn Encoder>,
    vectors: Arc<Vectors>,
}

impl DenseRetriever {
    /// Ranks `corpus` by `vectors`, which `encoder` made of it.
    pub fn new(corpus: Arc<Corpus>, encoder: Arc<dyn Encoder>, vectors: Arc<Vectors>) -> Self {
        DenseRetriever { corpus, encoder, vectors }
    }

    /// Ranks the corpus by a score of each passage's vector; `search` scores by the dot product with the query's.
    ///
    /// # Errors
    /// `stop` was set.
    pub fn best(
        &self,
        depth: usize,
        stop: &Stop,
        score: impl Fn(&[f32]) -> f32,
    ) -> Result<Vec<Hit>, RetrieveError> {
        let mut scores = Vec::with_capacity(self.corpus.len());
        for start in (0..self.corpus.len()).step_by(BATCH) {
            if stop.is_set() {
                return Err(Stopped.into());
            }
            let end = (start + BATCH).min(self.corpus.len());
            scores.extend((start..end).map(|i| score(self.vectors.get(PassageIx(i as u32)))));
        }
        Ok(top(
            &self.corpus,
            depth,
            scores.into_iter().enumerate().map(|(i, score)| (PassageIx(i as u32), score)),
        ))
    }
}

impl Retriever for DenseRetriever {
    fn search(&self, query: &str, depth: usize, stop: &Stop) -> Result<Vec<Hit>, RetrieveError> {
        let query = self.encoder.encode(query, Role::Query)?;
        self.best(depth, stop, |passage| dot(&query, passage))
    }
}

/// The dot product, in eight running sums so that the compiler can use wide registers.
pub fn dot(a: &[f32], b: &[f32]) -> f32 {
    let mut sums = [0f32; 8];
    let (a_rows, b_rows) = (a.chunks_exact(8), b.chunks_exact(8));
    let tail: f32 = a_rows.remainder().iter().zip(b_rows.remainder()).map(|(x, y)| x * y).sum();
    for (x, y) in a_rows.zip(b_rows) {
        for lane in 0..8 {
            sums[lane] += x[lane] * y[lane];
        }
    }
    sums.iter().sum::<f32>() + tail
}
