//! A retriever of your own, judged and measured like a lane: `cargo run --example own_retriever`.

use std::cmp::Reverse;

use parallax::{Corpus, Hit, LabelSource, OpenCorpus, PassageIx, RetrieveError, Retriever, Stop};

/// Ranks by the number of words of the query that a passage contains.
struct SharedWords<'a>(&'a Corpus);

impl Retriever for SharedWords<'_> {
    fn search(&self, query: &str, depth: usize, _: &Stop) -> Result<Vec<Hit>, RetrieveError> {
        let words: Vec<String> = query.to_lowercase().split_whitespace().map(str::to_owned).collect();
        let score = |passage| {
            let text = self.0.passage(passage).text.to_lowercase();
            words.iter().filter(|word| text.contains(word.as_str())).count() as f32
        };
        let passages = (0..self.0.len() as u32).map(PassageIx);
        let mut hits: Vec<Hit> = passages.map(|passage| Hit { passage, score: score(passage) }).collect();
        // Best first; equal scores in order of passage id, as the trait asks.
        hits.sort_by_cached_key(|hit| (Reverse(hit.score as usize), self.0.id(hit.passage)));
        hits.truncate(depth);
        Ok(hits)
    }
}

fn main() -> Result<(), parallax::Error> {
    let data = std::env::temp_dir().join("parallax-own-retriever");
    let corpus = OpenCorpus::sample(&data)?.with_labels(LabelSource::Gold);
    let outcome = corpus.ask_retriever("Should zoos be banned?", &SharedWords(corpus.passages()), 5)?;
    println!("{:#?}", outcome.figures(0));
    Ok(())
}
