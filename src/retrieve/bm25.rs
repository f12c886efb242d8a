//! BM25 as Lucene scores it, with `k1` and `b` free.
//!
//! `Σ_t idf(t) · tf / (tf + k1·(1 − b + b·|d|/avg))` over the terms of the query, repeated terms counting as often as they
//! stand there; `idf = ln(1 + (N − df + ½)/(df + ½))`. There is no `(k1 + 1)` factor. `|d|` is counted exactly, where Lucene
//! keeps one byte of it: at k1 = 1.2, b = .75 the byte costs half a point of nDCG@10 on ArguAna. Every posting is scored: tantivy's
//! block maxima hold for its own constants only.

use std::sync::Arc;

use tantivy::DocSet;
use tantivy::postings::Postings;
use tantivy::schema::IndexRecordOption;

use super::analysis::terms;
use super::index::TermIndex;
use super::{Hit, RetrieveError, Retriever, top::top};
use crate::corpus::{Corpus, PassageIx};
use crate::work::{Stop, Stopped};

/// BM25's two constants.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Bm25 {
    /// How soon a repeated term stops counting, ≥ 0.
    pub k1: f32,
    /// How much a long passage is held against it, from 0 to 1.
    pub b: f32,
}

impl Default for Bm25 {
    /// Anserini's constants.
    fn default() -> Self {
        Bm25 { k1: 0.9, b: 0.4 }
    }
}

/// What one term of the query gives one passage.
#[derive(Clone, Debug, PartialEq)]
pub struct TermShare {
    /// The stem.
    pub term: String,
    /// Its part of the score.
    pub share: f32,
}

/// A retriever over a term index.
pub struct TermRetriever {
    corpus: Arc<Corpus>,
    index: Arc<TermIndex>,
    constants: Bm25,
    average: f32,
}

impl TermRetriever {
    /// Scores the postings of `index`, which must be of `corpus`.
    pub fn new(corpus: Arc<Corpus>, index: Arc<TermIndex>, constants: Bm25) -> Self {
        let terms: f64 =
            index.segments.iter().flat_map(|segment| &segment.lengths).map(|n| f64::from(*n)).sum();
        let average = (terms / corpus.len().max(1) as f64) as f32;
        TermRetriever { corpus, index, constants, average }
    }

    /// The query's distinct terms in order of appearance, with how often each stands there.
    pub fn weighted(query: &str) -> Vec<(String, f32)> {
        let mut weighted: Vec<(String, f32)> = Vec::new();
        for term in terms(query) {
            match weighted.iter_mut().find(|(known, _)| *known == term.text) {
                Some((_, times)) => *times += 1.0,
                None => weighted.push((term.text, 1.0)),
            }
        }
        weighted
    }

    /// In how many passages a term stands.
    ///
    /// # Errors
    /// The index cannot be read.
    pub fn frequency(&self, term: &str) -> Result<usize, RetrieveError> {
        let mut frequency = 0;
        self.postings(term, 1.0, |_, _| frequency += 1)?;
        Ok(frequency)
    }

    /// Calls `each` with every posting of a term and what it is worth.
    fn postings(
        &self,
        term: &str,
        times: f32,
        mut each: impl FnMut(PassageIx, f32),
    ) -> Result<(), RetrieveError> {
        let term = tantivy::Term::from_field_text(self.index.contents, term);
        let mut frequency = 0u32;
        let mut found = Vec::new();
        for segment in &self.index.segments {
            let inverted = segment.reader.inverted_index(self.index.contents)?;
            if let Some(postings) = inverted.read_postings(&term, IndexRecordOption::WithFreqs)? {
                frequency += postings.doc_freq();
                found.push((segment, postings));
            }
        }
        let (count, frequency) = (self.corpus.len() as f32, frequency as f32);
        let weight = times * (1.0 + (count - frequency + 0.5) / (frequency + 0.5)).ln();
        let Bm25 { k1, b } = self.constants;
        let (base, slope) = (k1 * (1.0 - b), k1 * b / self.average);
        for (segment, mut postings) in found {
            let mut document = postings.doc();
            while document != tantivy::TERMINATED {
                let times_here = postings.term_freq() as f32;
                let length = base + slope * segment.lengths[document as usize];
                each(PassageIx(segment.first.0 + document), weight * times_here / (times_here + length));
                document = postings.advance();
            }
        }
        Ok(())
    }

    /// What each weighted term gives one passage; the shares add up to its score.
    ///
    /// # Errors
    /// The index cannot be read.
    pub fn explain(
        &self,
        weighted: &[(String, f32)],
        passage: PassageIx,
    ) -> Result<Vec<TermShare>, RetrieveError> {
        let mut shares = Vec::new();
        for (term, times) in weighted {
            let mut share = 0.0;
            self.postings(term, *times, |found, worth| {
                if found == passage {
                    share = worth;
                }
            })?;
            shares.push(TermShare { term: term.clone(), share });
        }
        Ok(shares)
    }

    /// The best `depth` passages for weighted terms, best first; equal scores in order of passage id.
    ///
    /// # Errors
    /// The index cannot be read, or `stop` was set.
    pub fn search_weighted(
        &self,
        weighted: &[(String, f32)],
        depth: usize,
        stop: &Stop,
    ) -> Result<Vec<Hit>, RetrieveError> {
        let mut scores = vec![0f32; self.corpus.len()];
        for (term, times) in weighted {
            if stop.is_set() {
                return Err(Stopped.into());
            }
            self.postings(term, *times, |passage, worth| scores[passage.0 as usize] += worth)?;
        }
        let scored = scores.iter().enumerate().filter(|(_, score)| **score > 0.0);
        Ok(top(&self.corpus, depth, scored.map(|(i, score)| (PassageIx(i as u32), *score))))
    }
}

impl Retriever for TermRetriever {
    fn search(&self, query: &str, depth: usize, stop: &Stop) -> Result<Vec<Hit>, RetrieveError> {
        self.search_weighted(&Self::weighted(query), depth, stop)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn retriever(constants: Bm25) -> TermRetriever {
        let corpus = Arc::new(Corpus::carried(
            "t",
            b"{\"_id\":\"1\",\"text\":\"zoos keep animals\"}\n{\"_id\":\"2\",\"text\":\"animals animals run\"}\n{\"_id\":\"3\",\"text\":\"trains\"}\n",
        ));
        let index = Arc::new(TermIndex::in_memory(&corpus).unwrap());
        TermRetriever::new(corpus, index, constants)
    }

    #[test]
    fn the_score_is_lucenes_formula_worked_by_hand() {
        let hits = retriever(Bm25::default()).search("animals", 10, &Stop::never()).unwrap();
        let idf = (1.0f32 + (3.0 - 2.0 + 0.5) / (2.0 + 0.5)).ln();
        let length = 0.9 * (1.0 - 0.4 + 0.4 * 3.0 / (7.0 / 3.0));
        let expected = [(PassageIx(1), idf * 2.0 / (2.0 + length)), (PassageIx(0), idf / (1.0 + length))];
        assert_eq!(hits.len(), 2);
        for (hit, (passage, score)) in hits.iter().zip(expected) {
            assert_eq!(hit.passage, passage);
            assert!((hit.score - score).abs() < 1e-6, "{} {score}", hit.score);
        }
    }

    #[test]
    fn a_term_that_stands_twice_in_the_query_counts_twice() {
        let retriever = retriever(Bm25::default());
        let once = retriever.search("zoos", 1, &Stop::never()).unwrap()[0].score;
        let twice = retriever.search("zoos Zoo", 1, &Stop::never()).unwrap()[0].score;
        assert!((twice - 2.0 * once).abs() < 1e-6);
    }

    #[test]
    fn the_shares_of_the_terms_add_up_to_the_score() {
        let retriever = retriever(Bm25 { k1: 1.2, b: 0.75 });
        let hit = retriever.search("do animals run in zoos", 1, &Stop::never()).unwrap()[0];
        let shares =
            retriever.explain(&TermRetriever::weighted("do animals run in zoos"), hit.passage).unwrap();
        assert!((shares.iter().map(|share| share.share).sum::<f32>() - hit.score).abs() < 1e-6);
    }

    #[test]
    fn a_query_of_stop_words_or_emoji_finds_nothing() {
        let retriever = retriever(Bm25::default());
        for query in ["", "the of", "🦁", "\u{1b}[0m\u{202e}"] {
            assert_eq!(retriever.search(query, 5, &Stop::never()).unwrap(), [], "{query:?}");
        }
    }
}
