//! Models that score a passage with a query, with a short name, from the hub or a folder: cross-encoders, and late interaction, which
//! compares the vectors of all tokens.

use std::collections::HashSet;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use serde_json::Value;
use tokenizers::utils::truncation::TruncationDirection;
use tokenizers::{PostProcessor, Tokenizer};

use super::card::{self, json};
use super::encoder::{EncodeError, Met, ModelError, PassageScore, PassageScorer, Role, Token, meet};
use super::family::{
    Activation, Classifier, Config, Dense, Network, UnknownActivation, Weights, weight_files,
};
use super::registry::{MANIFEST, Named, Source, folder};
use super::tokens;
use crate::corpus::Passage;
use crate::input::{Expected, InputError, excerpt};
use crate::vector::max_sim;

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

type Str = &'static str;

const fn reranker(name: Str, repository: Str, licence: Str, megabytes: u32, architecture: Str) -> Reranker {
    Reranker { name, repository, licence, megabytes, architecture }
}

/// All re-rankers with a short name.
pub static RERANKERS: [Reranker; 8] = [
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
    reranker("colbertv2", "colbert-ir/colbertv2.0", "MIT", 440, "late interaction, BERT, 12 layers, 110M"),
    reranker(
        "answerai-colbert-small",
        "answerdotai/answerai-colbert-small-v1",
        "Apache-2.0",
        135,
        "late interaction, BERT, 12 layers, 33M",
    ),
    reranker(
        "gte-moderncolbert",
        "lightonai/GTE-ModernColBERT-v1",
        "Apache-2.0",
        600,
        "late interaction, ModernBERT, 22 layers, 149M",
    ),
    reranker("bge-m3-multi", "BAAI/bge-m3", "MIT", 2290, "late interaction, XLM-RoBERTa, 24 layers, 568M"),
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

/// Loads a re-ranker of either kind: one with the settings of ColBERT compares tokens, any other is a cross-encoder.
///
/// # Errors
/// As [`CrossScorer::load`] and [`LateScorer::load`].
pub fn load(source: &Source, models: &Path) -> Result<Arc<dyn PassageScorer>, InputError> {
    let folder = place(source, models)?;
    let own = json(&folder.join("config_sentence_transformers.json"))?;
    let named = own.is_some_and(|own| own.get("query_length").is_some());
    let late = named || [METADATA, MULTI].iter().any(|file| folder.join(file).exists());
    Ok(if late {
        Arc::new(LateScorer::load(source, models)?)
    } else {
        Arc::new(CrossScorer::load(source, models)?)
    })
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

/// The file with the settings of the first ColBERT models.
const METADATA: &str = "artifact.metadata";

/// The product for the multi-vectors of BGE-M3 (Chen et al., 2024).
const MULTI: &str = "colbert_linear.pt";

/// Late interaction (ColBERT, Khattab and Zaharia 2020; version 2, Santhanam et al. 2022): every token has a vector of unit length, and the
/// score is the sum over the query's tokens of the greatest dot product with a token of the passage.
pub struct LateScorer {
    key: String,
    network: Network,
    dense: Vec<Dense>,
    tokenizer: Tokenizer,
    query: Side,
    passage: Side,
    /// The token that fills queries up to their length, if they are filled, and whether tokens attend to it.
    fill: Option<(u32, bool)>,
    /// Tokens of a passage that are not compared.
    skipped: HashSet<u32>,
    /// As BGE-M3: the first token is not compared, and the score is the mean over the query's tokens.
    m3: bool,
}

/// How one side is read.
struct Side {
    /// The token that stands second and says which side it is.
    mark: Option<u32>,
    /// The greatest number of tokens.
    length: usize,
}

impl LateScorer {
    /// Loads a model in the files of PyLate (`modules.json` with `Dense` modules) or of the first ColBERT (`linear.weight`); models from the
    /// hub are below `models`.
    ///
    /// # Errors
    /// A file is missing or damaged, two contradict each other, or there is no product after the network.
    pub fn load(source: &Source, models: &Path) -> Result<Self, InputError> {
        let folder = place(source, models)?;
        let config = Config::read(&folder)?;
        let mut weights = Weights::read(&folder)?;
        let network = Network::load(&config, &mut weights)?;
        let (mut dense, mut width) = (Vec::new(), config.width()?);
        let mut files = weight_files(&folder)?;
        if weights.find_prefix("linear.weight") {
            dense.push(Dense::load(&weights, "linear", width, Activation::Identity)?);
        }
        drop(weights);
        let settings = Settings::read(&folder, &config)?;
        let modules = if settings.m3 { Vec::new() } else { card::modules(&folder)? };
        if settings.m3 {
            let file = folder.join(MULTI);
            dense.push(Dense::load(&Weights::of_linear(&file)?, "linear", width, Activation::Identity)?);
            files.push(file);
        }
        for (_, place) in modules.iter().filter(|(kind, _)| kind == "Dense") {
            let own = json(&place.join("config.json"))?.unwrap_or_default();
            let wrong = |reason: String| InputError::Unreadable { path: place.join("config.json"), reason };
            if own.get("use_residual").and_then(Value::as_bool) == Some(true) {
                return Err(wrong(
                    "`use_residual`: a product that is added to its input is not supported".into(),
                ));
            }
            let activation = own.get("activation_function").and_then(Value::as_str).unwrap_or("identity");
            let activation =
                activation.parse().map_err(|error: UnknownActivation| wrong(error.to_string()))?;
            let module = Dense::load(&Weights::read(place)?, "linear", width, activation)?;
            width = module.width;
            dense.push(module);
            files.extend(weight_files(place)?);
        }
        if dense.is_empty() {
            return Err(config.wrong(
                "no product stands after the network (`linear.weight`, or a Dense module), so this is no model for late interaction",
            ));
        }
        let window = card::window(&folder, &config)
            .map_or(settings.passage.1, |window| window.max(settings.passage.1));
        let mut tokenizer = tokens::read(&folder, window, config.vocabulary()?)?;
        tokenizer.with_truncation(None).map_err(|error| config.wrong(&error.to_string()))?;
        let token = |word: &str| {
            tokenizer.token_to_id(word).ok_or_else(|| {
                config.wrong(&format!(
                    "its settings name the token {}, which its tokenizer does not have; the files belong to two different models: fetch it again",
                    excerpt(word)
                ))
            })
        };
        let side = |(mark, length): &(String, usize)| -> Result<Side, InputError> {
            let most = config.positions().unwrap_or(usize::MAX);
            if *length < 4 || *length > most {
                return Err(config.wrong(&format!(
                    "its settings read {length} tokens, and the network has positions for {most}; expected 4 or more, and no more than that"
                )));
            }
            Ok(Side { mark: if mark.is_empty() { None } else { Some(token(mark)?) }, length: *length })
        };
        let (query, passage) = (side(&settings.query)?, side(&settings.passage)?);
        let special = |name: &str| settings.special(name).map(|word| token(&word));
        let fill =
            match special("mask_token").or_else(|| special("eos_token")).or_else(|| special("pad_token")) {
                Some(fill) if settings.fills => Some((fill?, settings.attends)),
                None if settings.fills => {
                    return Err(
                        config.wrong("its tokenizer_config.json names no mask_token to fill queries with")
                    );
                }
                _ => None,
            };
        let unknown = special("unk_token").transpose()?;
        let skipped =
            settings.skipped.iter().filter_map(|word| tokenizer.token_to_id(word).or(unknown)).collect();
        files.extend(tokens::files(&folder)?);
        files.push(folder.join("config.json"));
        let mut hasher = blake3::Hasher::new();
        for file in files {
            hasher.update_mmap(&file).map_err(|error| InputError::unreadable(&file, &error))?;
        }
        hasher.update(format!("{settings:?}").as_bytes());
        let key = format!("{}-{}", Named::from(source.clone()).slug(), &hasher.finalize().to_hex()[..12]);
        Ok(LateScorer { key, network, dense, tokenizer, query, passage, fill, skipped, m3: settings.m3 })
    }

    /// What the sum over a query's tokens is divided by.
    pub fn divisor(&self, tokens: usize) -> f32 {
        if self.m3 { tokens.max(1) as f32 } else { 1.0 }
    }

    /// The vectors of a text's tokens, each of unit length.
    ///
    /// # Errors
    /// The model cannot be run.
    pub fn vectors(&self, text: &str, role: Role) -> Result<Vec<Vec<f32>>, EncodeError> {
        Ok(self.tokens(text, role)?.into_iter().map(|(vector, _)| vector).collect())
    }

    fn tokens(&self, text: &str, role: Role) -> Result<Vec<Token>, EncodeError> {
        let side = if role == Role::Query { &self.query } else { &self.passage };
        let room = side.length - usize::from(side.mark.is_some());
        // Blanks at the ends are dropped, as PyLate does.
        let whole = text.len();
        let text = if self.m3 { text } else { text.trim_start() };
        let (text, dropped) = (if self.m3 { text } else { text.trim_end() }, whole - text.len());
        let mut encoded = self.tokenizer.encode(tokens::beginning(text, side.length), false)?;
        let specials = self.tokenizer.get_post_processor().map_or(0, |process| process.added_tokens(false));
        encoded.truncate(room.saturating_sub(specials), 0, TruncationDirection::Right);
        let encoded = self.tokenizer.post_process(encoded, None, true)?;
        let mut ids = encoded.get_ids().to_vec();
        let mut places: Vec<_> =
            encoded.get_offsets().iter().map(|(start, end)| start + dropped..end + dropped).collect();
        if let Some(mark) = side.mark {
            places.insert(ids.len().min(1), 0..0);
            ids.insert(ids.len().min(1), mark);
        }
        let mut seen = ids.len();
        if let (Role::Query, Some((fill, attends))) = (role, self.fill) {
            ids.resize(side.length.max(ids.len()), fill);
            places.resize(ids.len(), 0..0);
            seen = if attends { ids.len() } else { seen };
        }
        let rows = self.network.rows_seeing(&ids, seen)?;
        let compared = |id: &u32| role == Role::Query || !self.skipped.contains(id);
        let first = usize::from(self.m3);
        let mut vectors = Vec::new();
        let rows = rows.numbers.chunks_exact(rows.width).zip(&ids).zip(places);
        for ((row, _), place) in rows.skip(first).filter(|((_, id), _)| compared(id)) {
            let mut vector = row.to_vec();
            for dense in &self.dense {
                vector = dense.apply(vector)?;
            }
            let length = vector.iter().map(|x| f64::from(*x).powi(2)).sum::<f64>().sqrt() as f32;
            if !length.is_finite() {
                return Err(ModelError::NotFinite("numbers of a token").into());
            }
            vector.iter_mut().for_each(|x| *x /= length.max(f32::MIN_POSITIVE));
            vectors.push((vector, place));
        }
        Ok(vectors)
    }
}

impl PassageScorer for LateScorer {
    fn key(&self) -> &str {
        &self.key
    }

    fn with_query<'a>(&'a self, query: &'a str) -> Result<PassageScore<'a>, EncodeError> {
        let query = self.vectors(query, Role::Query)?;
        Ok(Box::new(move |passage| {
            let sum = max_sim(&query, &self.vectors(&passage.contents(), Role::Passage)?);
            Ok(sum / self.divisor(query.len()))
        }))
    }

    fn met(&self, query: &str, passage: &Passage) -> Result<Vec<Met>, EncodeError> {
        let contents = passage.contents();
        let (asked, own) = (self.tokens(query, Role::Query)?, self.tokens(&contents, Role::Passage)?);
        Ok(meet((query, &asked), (&contents, &own), self.divisor(asked.len())))
    }
}

/// The settings of a model for late interaction, from PyLate's file or that of the first ColBERT, with PyLate's defaults.
#[derive(Debug, Default)]
struct Settings {
    /// The mark and the length of queries.
    query: (String, usize),
    /// The mark and the length of passages.
    passage: (String, usize),
    fills: bool,
    attends: bool,
    skipped: Vec<String>,
    specials: Value,
    m3: bool,
}

impl Settings {
    fn read(folder: &Path, config: &Config) -> Result<Self, InputError> {
        if folder.join(MULTI).exists() {
            let side = (String::new(), card::window(folder, config)?);
            return Ok(Settings { query: side.clone(), passage: side, m3: true, ..Settings::default() });
        }
        let own = json(&folder.join("config_sentence_transformers.json"))?.unwrap_or_default();
        let first = json(&folder.join(METADATA))?;
        let marks = if first.is_some() { ["[unused0]", "[unused1]"] } else { ["[Q] ", "[D] "] };
        let first = first.unwrap_or_default();
        let text = |name: &str, old: &str, usual: &str| {
            let found = own.get(name).and_then(Value::as_str).or_else(|| first.get(old)?.as_str());
            found.unwrap_or(usual).to_owned()
        };
        let number = |name: &str, old: &str, usual: usize| {
            let found = own.get(name).and_then(Value::as_u64).or_else(|| first.get(old)?.as_u64());
            found.map_or(usual, |number| number as usize)
        };
        let is = |name: &str, old: &str, usual: bool| {
            own.get(name).and_then(Value::as_bool).or_else(|| first.get(old)?.as_bool()).unwrap_or(usual)
        };
        // What Python's `string.punctuation` holds.
        let punctuation = || ('!'..='~').filter(char::is_ascii_punctuation).map(String::from).collect();
        let words = own.get("skiplist_words").and_then(Value::as_array);
        let words =
            words.map(|words| words.iter().filter_map(|word| Some(word.as_str()?.to_owned())).collect());
        Ok(Settings {
            query: (
                text("query_prefix", "query_token_id", marks[0]),
                number("query_length", "query_maxlen", 32),
            ),
            passage: (
                text("document_prefix", "doc_token_id", marks[1]),
                number("document_length", "doc_maxlen", 180),
            ),
            fills: is("do_query_expansion", "", true),
            attends: is("attend_to_expansion_tokens", "attend_to_mask_tokens", false),
            skipped: match words {
                Some(words) => words,
                None if is("", "mask_punctuation", true) => punctuation(),
                None => Vec::new(),
            },
            specials: json(&folder.join("tokenizer_config.json"))?.unwrap_or_default(),
            m3: false,
        })
    }

    /// A special token by its role, such as `mask_token`.
    fn special(&self, role: &str) -> Option<String> {
        let found = self.specials.get(role)?;
        Some(found.as_str().or_else(|| found.get("content")?.as_str())?.to_owned())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_reranker_is_named_by_its_short_name_or_its_source() {
        for entry in &RERANKERS {
            // Late interaction ranks a corpus too, by the same model.
            let lane = crate::encode::registry::model(entry.name).map(|lane| lane.repositories);
            let late = entry.architecture.starts_with("late").then(|| vec![entry.repository]);
            assert_eq!(lane.map(<[_]>::to_vec), late, "a lane has the same name");
            let source = source(entry.name).unwrap();
            assert_eq!((name(&source), source.repositories()), (entry.name.into(), vec![entry.repository]));
        }
        assert_eq!(name(&source("path:x").unwrap()), "path:x");
        let error = source("minilm").unwrap_err();
        assert!(error.to_string().contains("ms-marco-minilm"), "an encoder is no re-ranker: {error}");
    }
}
