//! Models that score a passage with a query: cross-encoders with a short name, from the hub or a folder.

use std::path::{Path, PathBuf};

use tokenizers::Tokenizer;

use super::card;
use super::encoder::EncodeError;
use super::family::{Classifier, Config, Weights, weight_files};
use super::registry::{MANIFEST, Named, Source, folder};
use super::tokens;
use crate::corpus::Passage;
use crate::input::{Expected, InputError};

/// A model that re-ranks, with a short name.
#[derive(Debug, PartialEq)]
pub struct Reranker {
    /// The short name, for `+rerank@NAME` and `models get`.
    pub name: &'static str,
    /// Its repository on the hub.
    pub repository: &'static str,
    /// The licence its authors state.
    pub licence: &'static str,
    /// Approximate size of the download, in MB.
    pub megabytes: u32,
    /// Its network, as its card states it.
    pub architecture: &'static str,
}

const fn reranker(
    name: &'static str,
    repository: &'static str,
    licence: &'static str,
    megabytes: u32,
    architecture: &'static str,
) -> Reranker {
    Reranker { name, repository, licence, megabytes, architecture }
}

/// All re-rankers with a short name.
pub static RERANKERS: [Reranker; 4] = [
    reranker(
        "ms-marco-minilm",
        "cross-encoder/ms-marco-MiniLM-L6-v2",
        "Apache-2.0",
        92,
        "cross-encoder, BERT, 6 layers, 23M",
    ),
    reranker(
        "bge-reranker-base",
        "BAAI/bge-reranker-base",
        "MIT",
        1130,
        "cross-encoder, XLM-RoBERTa, 12 layers, 278M",
    ),
    reranker(
        "bge-reranker-v2-m3",
        "BAAI/bge-reranker-v2-m3",
        "Apache-2.0",
        2290,
        "cross-encoder, XLM-RoBERTa, 24 layers, 568M",
    ),
    reranker(
        "gte-reranker-modernbert",
        "Alibaba-NLP/gte-reranker-modernbert-base",
        "Apache-2.0",
        300,
        "cross-encoder, ModernBERT, 22 layers, 149M",
    ),
];

/// A re-ranker by its short name.
pub fn entry(name: &str) -> Option<&'static Reranker> {
    RERANKERS.iter().find(|entry| entry.name.eq_ignore_ascii_case(name))
}

/// A re-ranker by its short name, `hf:ORG/MODEL` or `path:FOLDER`.
///
/// # Errors
/// The text has none of these forms.
pub fn source(text: &str) -> Result<Source, Expected> {
    if let Some(entry) = entry(text) {
        return Ok(Source::Hub(entry.repository.into()));
    }
    match Source::parse(text) {
        Ok(source @ (Source::Hub(_) | Source::Folder(_))) => Ok(source),
        Err(error) if text.starts_with("hf:") || text.starts_with("path:") => Err(error),
        _ => {
            let names: Vec<&str> = RERANKERS.iter().map(|entry| entry.name).collect();
            Err(format!("a re-ranker: {}, hf:ORG/MODEL or path:FOLDER", names.join(", ")).into())
        }
    }
}

/// The name of a re-ranker: its short name, else its source.
pub fn name(source: &Source) -> String {
    let known = RERANKERS.iter().find(|entry| matches!(source, Source::Hub(own) if own == entry.repository));
    known.map_or_else(|| source.to_string(), |entry| entry.name.to_owned())
}

/// The folder of a re-ranker; models from the hub are below `models`.
///
/// # Errors
/// It was not fetched yet, or the folder does not exist.
pub fn place(source: &Source, models: &Path) -> Result<PathBuf, InputError> {
    match source {
        Source::Hub(repository) if !folder(models, repository).join(MANIFEST).exists() => {
            let name =
                entry(&name(source)).map_or_else(|| format!("rerank@{source}"), |entry| entry.name.into());
            let reason =
                format!("{repository} is not fetched yet; fetch it with: parallax models get {name}");
            Err(InputError::Unreadable { path: folder(models, repository), reason })
        }
        _ => Ok(Named::from(source.clone()).towers(models)?.passages),
    }
}

/// Scores a passage for one query.
pub type PassageScore<'a> = Box<dyn Fn(&Passage) -> Result<f32, EncodeError> + Send + Sync + 'a>;

/// A model that scores passages with a query.
pub trait PassageScorer: Send + Sync {
    /// The model's name and a hash of its weights; scores of another key are not comparable.
    fn key(&self) -> &str;

    /// Scores passages for a query; what depends on the query alone is computed once.
    ///
    /// # Errors
    /// The model cannot be run.
    fn with_query<'a>(&'a self, query: &'a str) -> Result<PassageScore<'a>, EncodeError>;
}

/// A cross-encoder (Nogueira and Cho, 2019): query and passage are read as one pair, and the logit of its only class is the score. A pair
/// that is too long for the window loses tokens at the end of its longer text, as in sentence-transformers.
pub struct CrossScorer {
    key: String,
    classifier: Classifier,
    tokenizer: Tokenizer,
    window: usize,
}

impl CrossScorer {
    /// Loads a model; models from the hub are below `models`.
    ///
    /// # Errors
    /// A file is missing or damaged, two contradict each other, or the model has several classes.
    pub fn load(source: &Source, models: &Path) -> Result<Self, InputError> {
        let named = Named::from(source.clone());
        let folder = place(source, models)?;
        let config = Config::read(&folder)?;
        let classifier = Classifier::load(&config, &mut Weights::read(&folder)?)?;
        if classifier.classes != 1 {
            return Err(config.wrong(&format!(
                "the model has {} classes, and a re-ranker has one, its score; a model of several classes judges statements: name it with --detector",
                classifier.classes
            )));
        }
        let window = card::window(&folder, &config)?;
        let tokenizer = tokens::read(&folder, window, config.vocabulary()?)?;
        if tokenizer.encode_fast(("a", "a"), true).is_err() {
            return Err(config.wrong("its tokenizer does not encode pairs of texts"));
        }
        let mut hasher = blake3::Hasher::new();
        let mut files = weight_files(&folder)?;
        files.extend(tokens::files(&folder)?);
        files.push(folder.join("config.json"));
        for file in files {
            hasher.update_mmap(&file).map_err(|error| InputError::unreadable(&file, &error))?;
        }
        hasher.update(format!("score {window}").as_bytes());
        let key = format!("{}-{}", named.slug(), &hasher.finalize().to_hex()[..12]);
        Ok(CrossScorer { key, classifier, tokenizer, window })
    }
}

impl PassageScorer for CrossScorer {
    fn key(&self) -> &str {
        &self.key
    }

    fn with_query<'a>(&'a self, query: &'a str) -> Result<PassageScore<'a>, EncodeError> {
        let query = tokens::beginning(query, self.window);
        Ok(Box::new(move |passage| {
            let text = passage.contents();
            let pair = self.tokenizer.encode_fast((query, tokens::beginning(&text, self.window)), true)?;
            let logits = self.classifier.logits(pair.get_ids(), pair.get_type_ids())?;
            Ok(logits.first().copied().unwrap_or_default())
        }))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_reranker_is_named_by_its_short_name_or_its_source() {
        for entry in &RERANKERS {
            assert_eq!(crate::encode::registry::model(entry.name), None, "a lane would have the same name");
            let source = source(entry.name).unwrap();
            assert_eq!((name(&source), source.repositories()), (entry.name.into(), vec![entry.repository]));
        }
        assert_eq!(name(&source("path:x").unwrap()), "path:x");
        let error = source("minilm").unwrap_err();
        assert!(error.to_string().contains("ms-marco-minilm"), "an encoder is no re-ranker: {error}");
    }
}
