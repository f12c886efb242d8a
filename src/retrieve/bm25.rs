//! BM25 as Lucene scores it, with `k1` and `b` free.
//!
//! `Σ_t idf(t) · tf / (tf + k1·(1 − b + b·|d|/avg))` over the terms of the query; repeated terms count as often as they occur;
//! `idf = ln(1 + (N − df + ½)/(df + ½))`. There is no `(k1 + 1)` factor. `|d|` is exact; Lucene
//! rounds it to one byte, which costs half a point of nDCG@10 on ArguAna at k1 = 1.2, b = .75.
//!
//! tantivy's block maxima hold for its own constants alone, so lists are cut short as in MaxScore (Turtle & Flood, 1995): a term adds at
//! most its weight, whatever `k1` and `b`. Once the remaining terms together cannot lift a new passage into the list, they are only looked
//! up for passages that can still reach it. The list and its scores are those of a full scan, to the last bit.

use std::sync::Arc;

use tantivy::DocSet;
use tantivy::postings::{BlockSegmentPostings, Postings, TermInfo};
use tantivy::schema::IndexRecordOption;

use super::index::{Segment, TermIndex, terms};
use super::{Bar, Hit, RetrieveError, Retriever, top};
use crate::corpus::{Corpus, PassageIx};
use crate::vector;
use crate::work::{Stop, Stopped, on_cores};

/// BM25's two constants.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Bm25 {
    /// Saturation of repeated terms, ≥ 0.
    pub k1: f32,
    /// Length normalisation, from 0 to 1.
    pub b: f32,
}

impl Default for Bm25 {
    /// Anserini's constants.
    fn default() -> Self {
        Bm25 { k1: 0.9, b: 0.4 }
    }
}

/// The contribution of one query term to a passage's score.
#[derive(Clone, Debug, PartialEq)]
pub struct TermShare {
    /// The stem.
    pub term: String,
    /// Its part of the score.
    pub share: f32,
}

/// What a term index holds about a passage.
#[derive(Clone, Debug, PartialEq)]
pub struct IndexEntry {
    /// The number of its terms.
    pub length: usize,
    /// The average number of terms of a passage.
    pub average: f32,
    /// Its distinct terms.
    pub terms: Vec<IndexedTerm>,
}

/// A term of a passage in a term index.
#[derive(Clone, Debug, PartialEq)]
pub struct IndexedTerm {
    /// The stem.
    pub term: String,
    /// How often the passage holds it.
    pub times: u32,
    /// How many passages hold it.
    pub passages: usize,
    /// Its inverse document frequency.
    pub idf: f32,
}

/// A retriever over a term index.
pub struct TermRetriever {
    corpus: Arc<Corpus>,
    index: Arc<TermIndex>,
    constants: Bm25,
}

impl TermRetriever {
    /// Ranks `corpus` by its `index`.
    pub fn new(corpus: Arc<Corpus>, index: Arc<TermIndex>, constants: Bm25) -> Self {
        TermRetriever { corpus, index, constants }
    }

    /// The query's distinct terms in order of appearance, with their number of occurrences.
    pub fn query_terms(query: &str) -> Vec<(String, f32)> {
        let mut weighted: Vec<(String, f32)> = Vec::new();
        for term in terms(query) {
            match weighted.iter_mut().find(|(other, _)| *other == term.text) {
                Some((_, times)) => *times += 1.0,
                None => weighted.push((term.text, 1.0)),
            }
        }
        weighted
    }

    /// The number of passages with a term.
    ///
    /// # Errors
    /// The index cannot be read.
    pub fn frequency(&self, term: &str) -> Result<usize, RetrieveError> {
        let term = tantivy::Term::from_field_text(self.index.contents, term);
        let mut frequency = 0;
        for segment in &self.index.segments {
            frequency += segment.postings.doc_freq(&term)? as usize;
        }
        Ok(frequency)
    }

    /// The weight of a term that so many passages hold: its idf times its number of occurrences in the query.
    fn weight(&self, frequency: usize, times: f32) -> f32 {
        let (count, frequency) = (self.corpus.len() as f32, frequency as f32);
        times * (1.0 + (count - frequency + 0.5) / (frequency + 0.5)).ln()
    }

    /// A term's part of a score.
    fn share(&self, weight: f32, times: u32, terms: f32) -> f32 {
        let Bm25 { k1, b } = self.constants;
        let (base, slope) = (k1 * (1.0 - b), k1 * b / self.index.average);
        weight * times as f32 / (times as f32 + (base + slope * terms))
    }

    /// The passages of one segment that can be among the best `depth` of all, with their scores. `weighted`: the terms that it holds.
    fn search_segment(
        &self,
        segment: &Segment,
        weighted: &[(TermInfo, f32)],
        depth: usize,
        bar: &Bar,
        stop: &Stop,
    ) -> Result<Vec<Hit>, RetrieveError> {
        let open =
            |term| segment.postings.read_block_postings_from_terminfo(term, IndexRecordOption::WithFreqs);
        let mut lists = Vec::with_capacity(weighted.len());
        for (term, weight) in weighted {
            lists.push((open(term)?, *weight));
        }
        lists.sort_by(|a, b| b.1.total_cmp(&a.1));
        // Sums in another order differ by no more than this part.
        let slack = 1.0 - 2.0 * f32::EPSILON * (weighted.len() + 8) as f32;
        let remaining = |from: usize| lists[from..].iter().map(|(_, weight)| weight).sum::<f32>();
        let remaining: Vec<f32> = (0..=lists.len()).map(remaining).collect();

        let mut scores = self.index.zeros.take(segment.lengths.len());
        // Other segments have set the bar, unless this is one of the first.
        let mut least = bar.get();
        let first = least == 0.0;
        let mut scanned = 0;
        while scanned < lists.len() {
            if stop.is_set() {
                return Err(Stopped.into());
            }
            // What was met has at most the weights that were scanned.
            if first && remaining[scanned] < remaining[0] / 2.0 {
                least = least.max(slack * nth_best(&reaching(&scores, 0.0), &scores, depth, remaining[0]));
            }
            if remaining[scanned] < slack * least {
                break;
            }
            let (postings, weight) = &mut lists[scanned];
            while !postings.docs().is_empty() {
                self.add(*weight, postings, &segment.lengths, &mut scores);
                postings.advance();
            }
            scanned += 1;
        }
        let mut met = reaching(&scores, slack * least - remaining[scanned]);
        least = bar.get().max(least).max(slack * nth_best(&met, &scores, depth, remaining[0]));
        for (i, (postings, weight)) in lists.iter_mut().enumerate().skip(scanned) {
            met.retain(|at| scores[*at as usize] + remaining[i] >= slack * least);
            for at in &met {
                if let Some(times) = occurrences(postings, *at) {
                    let at = *at as usize;
                    scores[at] += self.share(*weight, times, segment.lengths[at]);
                }
            }
        }
        met.retain(|at| scores[*at as usize] >= slack * least);
        bar.count(met.iter().map(|at| slack * scores[*at as usize]));
        self.index.zeros.give_back(scores);
        // The few that are left are scored as the formula says, in the order of the query's terms.
        let mut exact = vec![0f32; met.len()];
        for (term, weight) in weighted {
            let mut postings = open(term)?;
            for (at, score) in met.iter().zip(&mut exact) {
                if let Some(times) = occurrences(&mut postings, *at) {
                    *score += self.share(*weight, times, segment.lengths[*at as usize]);
                }
            }
        }
        let scored = met.iter().map(|at| PassageIx(segment.first.0 + at)).zip(exact);
        Ok(top(&self.corpus, depth, scored.filter(|(_, score)| *score > 0.0)))
    }

    /// Adds a term's shares of the documents in the current block of its list. The divisions stand in a loop of their own, which the
    /// compiler makes wide.
    fn add(&self, weight: f32, postings: &BlockSegmentPostings, lengths: &[f32], scores: &mut [f32]) {
        const BLOCK: usize = 128;
        let blocks = postings.docs().chunks(BLOCK).zip(postings.freqs().chunks(BLOCK));
        for (documents, times) in blocks {
            let mut shares = [0f32; BLOCK];
            for (share, document) in shares.iter_mut().zip(documents) {
                *share = lengths[*document as usize];
            }
            for (share, times) in shares.iter_mut().zip(times) {
                *share = self.share(weight, *times, *share);
            }
            for (share, document) in shares.iter().zip(documents) {
                scores[*document as usize] += share;
            }
        }
    }

    /// The contribution of each weighted term to a passage's score, which is their sum.
    ///
    /// # Errors
    /// The index cannot be read.
    pub fn explain(
        &self,
        weighted: &[(String, f32)],
        passage: PassageIx,
    ) -> Result<Vec<TermShare>, RetrieveError> {
        let holds = |segment: &&Segment| {
            passage.0.checked_sub(segment.first.0).is_some_and(|at| (at as usize) < segment.lengths.len())
        };
        let segment = self.index.segments.iter().find(holds);
        let mut shares = Vec::new();
        for (term, times) in weighted {
            let mut share = 0.0;
            if let Some(segment) = segment {
                let document = passage.0 - segment.first.0;
                let term_key = tantivy::Term::from_field_text(self.index.contents, term);
                let found = segment.postings.read_postings(&term_key, IndexRecordOption::WithFreqs)?;
                if let Some(mut postings) = found
                    && postings.doc() <= document
                    && postings.seek(document) == document
                {
                    let terms = segment.lengths[document as usize];
                    let weight = self.weight(self.frequency(term)?, *times);
                    share = self.share(weight, postings.term_freq(), terms);
                }
            }
            shares.push(TermShare { term: term.clone(), share });
        }
        Ok(shares)
    }

    /// The score of a text that the index does not hold, by the statistics of the passages that it holds.
    ///
    /// # Errors
    /// The index cannot be read.
    pub fn score_text(&self, weighted: &[(String, f32)], text: &str) -> Result<f32, RetrieveError> {
        let own = terms(text);
        let mut score = 0.0;
        for (term, times) in weighted {
            let found = own.iter().filter(|known| known.text == *term).count() as u32;
            if found > 0 {
                let weight = self.weight(self.frequency(term)?, *times);
                score += self.share(weight, found, own.len() as f32);
            }
        }
        Ok(score)
    }

    /// What the index holds about a passage, the terms that few passages share first.
    ///
    /// # Errors
    /// The index cannot be read.
    pub fn entry(&self, passage: PassageIx) -> Result<IndexEntry, RetrieveError> {
        let holds = |segment: &&Segment| {
            passage.0.checked_sub(segment.first.0).is_some_and(|at| (at as usize) < segment.lengths.len())
        };
        let mut entry = IndexEntry { length: 0, average: self.index.average, terms: Vec::new() };
        let Some(segment) = self.index.segments.iter().find(holds) else { return Ok(entry) };
        let document = passage.0 - segment.first.0;
        entry.length = segment.lengths[document as usize] as usize;
        for (term, _) in Self::query_terms(&self.corpus.passage(passage).contents()) {
            let key = tantivy::Term::from_field_text(self.index.contents, &term);
            let found = segment.postings.read_postings(&key, IndexRecordOption::WithFreqs)?;
            if let Some(mut postings) = found
                && postings.doc() <= document
                && postings.seek(document) == document
            {
                let passages = self.frequency(&term)?;
                let idf = self.weight(passages, 1.0);
                entry.terms.push(IndexedTerm { term, times: postings.term_freq(), passages, idf });
            }
        }
        entry.terms.sort_by(|a, b| a.passages.cmp(&b.passages).then_with(|| a.term.cmp(&b.term)));
        Ok(entry)
    }

    /// The best `depth` passages for terms with weights above 0, best first; equal scores in order of passage id.
    ///
    /// # Errors
    /// The index cannot be read, or `stop` was set.
    pub fn search_weighted(
        &self,
        weighted: &[(String, f32)],
        depth: usize,
        stop: &Stop,
    ) -> Result<Vec<Hit>, RetrieveError> {
        // Segments are scored one by one: their scores fit into a core's cache.
        let segments = &self.index.segments;
        let mut found = vec![Vec::new(); segments.len()];
        for (term, times) in weighted {
            let term = tantivy::Term::from_field_text(self.index.contents, term);
            let held = segments.iter().map(|segment| segment.postings.get_term_info(&term));
            let held = held.collect::<Result<Vec<_>, _>>()?;
            let frequency = held.iter().flatten().map(|info| info.doc_freq as usize).sum();
            let weight = self.weight(frequency, *times);
            for (found, info) in found.iter_mut().zip(held) {
                found.extend(info.map(|info| (info, weight)));
            }
        }
        let bar = Bar::new(depth, 0.0);
        let best = on_cores(segments.len(), stop, |i| {
            self.search_segment(&segments[i], &found[i], depth, &bar, stop)
        });
        if best.len() < segments.len() {
            return Err(Stopped.into());
        }
        let best = best.into_iter().collect::<Result<Vec<_>, _>>()?;
        Ok(top(&self.corpus, depth, best.into_iter().flatten().map(|hit| (hit.passage, hit.score))))
    }
}

/// The documents with a score of at least `least` and above 0, or none, in order.
fn reaching(scores: &[f32], least: f32) -> Vec<u32> {
    vector::reaching(scores, least.max(f32::from_bits(1)))
}

/// A score that `depth` of some documents reach, near the `depth`-th best; 0 if there are fewer. `most` is a score that none exceeds.
fn nth_best(documents: &[u32], scores: &[f32], depth: usize, most: f32) -> f32 {
    const STEPS: usize = 1_024;
    if depth == 0 || documents.len() < depth || most <= 0.0 {
        return 0.0;
    }
    let mut counts = [0u32; STEPS];
    let step = (STEPS - 1) as f32 / most;
    for document in documents {
        counts[((scores[*document as usize] * step) as usize).min(STEPS - 1)] += 1;
    }
    let mut reached = 0;
    let at = counts.iter().rposition(|count| {
        reached += *count as usize;
        reached >= depth
    });
    // One step less, for what rounding may have lifted over an edge.
    at.map_or(0.0, |at| at.saturating_sub(1) as f32 / step)
}

/// How often a term occurs in a document, if it does; documents must ascend from call to call.
fn occurrences(postings: &mut BlockSegmentPostings, document: u32) -> Option<u32> {
    let i = postings.seek(document);
    (postings.doc(i) == document).then(|| postings.freq(i))
}

impl Retriever for TermRetriever {
    fn search(&self, query: &str, depth: usize, stop: &Stop) -> Result<Vec<Hit>, RetrieveError> {
        self.search_weighted(&Self::query_terms(query), depth, stop)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Scores every passage by the formula as written.
    fn by_hand(corpus: &Corpus, query: &str, Bm25 { k1, b }: Bm25) -> Vec<(PassageIx, f32)> {
        let passages: Vec<Vec<String>> = corpus
            .places()
            .map(|at| terms(&corpus.passage(at).contents()).into_iter().map(|term| term.text).collect())
            .collect();
        let count = passages.len() as f32;
        let average = (passages.iter().map(Vec::len).sum::<usize>() as f64 / f64::from(count)) as f32;
        let mut scores = vec![0f32; passages.len()];
        for (term, times) in TermRetriever::query_terms(query) {
            let frequency = passages.iter().filter(|terms| terms.contains(&term)).count() as f32;
            let weight = times * (1.0 + (count - frequency + 0.5) / (frequency + 0.5)).ln();
            for (terms, score) in passages.iter().zip(&mut scores) {
                let here = terms.iter().filter(|other| **other == term).count() as f32;
                let length = k1 * (1.0 - b) + k1 * b / average * terms.len() as f32;
                if here > 0.0 {
                    *score += weight * here / (here + length);
                }
            }
        }
        (0..).map(PassageIx).zip(scores).filter(|(_, score)| *score > 0.0).collect()
    }

    #[test]
    fn an_index_of_many_segments_scores_exactly_as_the_formula_over_all_passages() {
        let words = ["zoo", "animal", "cage", "wild", "law", "keeper", "the", "city"];
        let text = |i: usize| {
            let word = |j: usize| words[(i * 31 + j * j * 7 + i / 5) % (3 + i % 6)];
            (0..3 + i % 9).map(word).collect::<Vec<_>>().join(" ")
        };
        let corpus = Arc::new(Corpus::of_texts("t", &(0..900).map(text).collect::<Vec<_>>()).unwrap());
        let index = Arc::new(TermIndex::in_segments_of(70, &corpus).unwrap());
        assert!(index.segments.len() > 5);
        for constants in [Bm25::default(), Bm25 { k1: 1.2, b: 0.75 }, Bm25 { k1: 0.0, b: 1.0 }] {
            let retriever = TermRetriever::new(Arc::clone(&corpus), Arc::clone(&index), constants);
            for query in ["zoo", "wild animals in the zoo", "keepers keepers law", "city", "nothing"] {
                let expected = top(&corpus, 900, by_hand(&corpus, query, constants).into_iter());
                for depth in [0, 1, 7, 100, 900] {
                    let found = retriever.search(query, depth, &Stop::never()).unwrap();
                    assert_eq!(found, expected[..depth.min(expected.len())], "{query} {depth}");
                }
                let found = expected;
                for hit in found.iter().take(5) {
                    let shares = retriever.explain(&TermRetriever::query_terms(query), hit.passage).unwrap();
                    assert_eq!(shares.iter().map(|share| share.share).sum::<f32>(), hit.score);
                }
            }
        }
    }

    fn retriever(constants: Bm25) -> TermRetriever {
        let corpus = Arc::new(Corpus::builtin(
            "t",
            b"{\"_id\":\"1\",\"text\":\"zoos keep animals\"}\n{\"_id\":\"2\",\"text\":\"animals animals run\"}\n{\"_id\":\"3\",\"text\":\"trains\"}\n",
        ));
        let index = Arc::new(TermIndex::in_memory(&corpus).unwrap());
        TermRetriever::new(corpus, index, constants)
    }

    #[test]
    fn the_score_is_lucenes_formula_computed_by_hand() {
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
    fn a_term_that_occurs_twice_in_the_query_counts_twice() {
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
            retriever.explain(&TermRetriever::query_terms("do animals run in zoos"), hit.passage).unwrap();
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
