//! Texts to vectors, and the vectors of a corpus.
//!
//! | file | holds |
//! | --- | --- |
//! | `encoder` | the [`Encoder`] trait, [`Similarity`], a cache of query vectors |
//! | `graph` | ONNX graphs and the built-in encoder; files are validated first |
//! | `int8` | int8 products for processors that cannot add them exactly |
//! | `registry` | models by name, and the families they belong to |
//! | `hub`, `manifest` | models fetched from a Hugging Face hub |
//! | `custom` | an encoder from a folder: its settings and tokenizer (`card`), its network (`family`) |
//! | `reranker` | models that score a passage with a query |
//! | `sparse` | learned sparse models: texts to weights of terms |
//! | `vectors` | the vectors of a corpus, and in which order they are coded |
//! | `codes` | bytes that bound their dot products, in lists of near ones |
//! | `corpus_vectors`, `array` | vectors computed elsewhere |
//!
//! The vector of a text never depends on other texts.
//! May use: assets, corpus, input, net, storage, vector, work.

mod array;
mod codes;
pub mod corpus_vectors;
mod custom;
mod encoder;
pub(crate) mod family;
pub(crate) mod graph;
pub mod hub;
mod int8;
mod manifest;
pub mod registry;
pub mod reranker;
pub mod sparse;
mod vectors;

pub(crate) use array::tokens;

pub use card::Card;
pub use codes::{Codes, Direction};
pub use corpus_vectors::{EmbedError, ImportError, embed};
pub use custom::CustomEncoder;
pub use encoder::{
    Directions, EncodeError, Encoder, Instructed, Met, ModelError, PassageScore, PassageScorer, Remembering,
    Role, Similarity,
};
pub use graph::{MiniLm, first_tokens, multiplies_int8};
pub use manifest::{HubError, Manifest};
pub use registry::{Named, Pooling, Source, Title, Towers};
pub use reranker::{CrossScorer, LateScorer};
pub use sparse::SparseEncoder;
pub use vectors::Vectors;

pub(crate) mod card {
    //! The settings in a model's folder: pooling, prefixes, similarity, window; and its tokenizer. The family supplies settings that are missing.
    //!
    //! The files are those of sentence-transformers: `modules.json` and the folders it names, `sentence_bert_config.json`, and
    //! `config_sentence_transformers.json`. Contradicting files are refused, and the error names both.

    use std::fmt;
    use std::path::{Path, PathBuf};

    use serde_json::Value;

    use super::encoder::Similarity;
    use super::family::Config;
    use super::registry::{self, Family, Pooling, Title};
    use crate::input::{InputError, SMALL, excerpt, read_regular};

    /// How a model reads texts.
    #[derive(Clone, Debug, PartialEq)]
    pub struct Card {
        /// How token rows become a vector.
        pub pooling: Pooling,
        /// Folders of the dense layers after pooling.
        pub dense: Vec<PathBuf>,
        /// The folder of the layer norm after them.
        pub norm: Option<PathBuf>,
        /// Whether vectors have unit length.
        pub unit: bool,
        /// How vectors are compared.
        pub similarity: Similarity,
        /// The prefix of a question.
        pub query: String,
        /// The prefix of a passage.
        pub passage: String,
        /// Whether pooling includes the tokens of the prefix.
        pub counts_prefix: bool,
        /// How a passage's title is read.
        pub title: Title,
        /// The number of tokens read.
        pub window: usize,
    }

    impl fmt::Display for Card {
        /// `mean over 256 tokens; before a question "query: "`
        fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            let pooled = match self.pooling {
                Pooling::Cls => "the first token of",
                Pooling::Pooler => "the pooled first token of",
                Pooling::Mean => "the mean over",
                Pooling::Max => "the maximum over",
                Pooling::Last => "the last token of",
            };
            write!(f, "{pooled} at most {} tokens", self.window)?;
            if !self.dense.is_empty() {
                write!(f, ", {} products after it", self.dense.len())?;
            }
            if self.norm.is_some() {
                f.write_str(", layer norm")?;
            }
            for (of, before) in [("questions", &self.query), ("passages", &self.passage)] {
                if !before.is_empty() {
                    write!(f, "; before {of} {}", excerpt(before))?;
                }
            }
            match self.title {
                Title::Before => f.write_str("; titles before texts"),
                Title::Pair => f.write_str("; titles and texts as pairs"),
            }
        }
    }

    impl Card {
        /// Reads a folder's files; the family supplies the settings that they lack.
        ///
        /// # Errors
        /// A file is damaged, two contradict each other, or one asks for something unsupported.
        pub fn read(folder: &Path, config: &Config, named: Option<&Family>) -> Result<Self, InputError> {
            let implied = if config.model_type()? == "dpr" { "dpr" } else { "mean" };
            let fallback =
                registry::family(implied).ok_or_else(|| config.wrong("its family is not known"))?;
            let family = named.unwrap_or(fallback);
            let modules = modules(folder)?;
            let mut card = Card {
                pooling: family.pooling,
                dense: Vec::new(),
                norm: None,
                unit: family.similarity == Similarity::Cosine,
                similarity: family.similarity,
                query: family.query.into(),
                passage: family.passage.into(),
                counts_prefix: family.counts_prefix,
                title: family.title,
                window: window(folder, config)?,
            };
            for (kind, place) in &modules {
                match kind.as_str() {
                    "Transformer" | "INSTRUCTOR_Transformer" => {}
                    "Pooling" | "INSTRUCTOR_Pooling" => card.pool(place, config, named)?,
                    "Dense" if card.norm.is_none() => card.dense.push(place.clone()),
                    "LayerNorm" => card.norm = Some(place.clone()),
                    "Normalize" => card.unit = true,
                    other => {
                        let file = folder.join("modules.json");
                        let why = format!(
                            "the module {} is not supported; Transformer, Pooling, Dense, LayerNorm after them, and Normalize are",
                            excerpt(other)
                        );
                        return Err(InputError::Unreadable { path: file, reason: why });
                    }
                }
            }
            card.prompts(folder)?;
            card.unit |= card.similarity == Similarity::Cosine;
            Ok(card)
        }

        /// Applies `1_Pooling/config.json`.
        fn pool(&mut self, place: &Path, config: &Config, named: Option<&Family>) -> Result<(), InputError> {
            let file = place.join("config.json");
            let wrong = |reason: String| InputError::Unreadable { path: file.clone(), reason };
            let Some(value) = json(&file)? else {
                return Err(wrong("modules.json names it, but it is missing; fetch the model again".into()));
            };
            let width = config.width()?;
            if let Some(pooled) =
                value.get("word_embedding_dimension").or_else(|| value.get("embedding_dimension"))
                && pooled.as_u64() != Some(width as u64)
            {
                return Err(wrong(format!(
                    "it pools rows of {pooled} numbers, and config.json says {width}; the files belong to two different models: fetch it again"
                )));
            }
            let mut modes: Vec<&str> = Vec::new();
            if let Some(entries) = value.as_object() {
                modes.extend(
                    entries
                        .iter()
                        .filter(|(_, value)| value.as_bool() == Some(true))
                        .filter_map(|(key, _)| key.strip_prefix("pooling_mode_")),
                );
            }
            modes.extend(value.get("pooling_mode").and_then(Value::as_str));
            let pooling = match modes.as_slice() {
                ["cls_token" | "cls"] => Pooling::Cls,
                ["mean_tokens" | "mean"] => Pooling::Mean,
                ["max_tokens" | "max"] => Pooling::Max,
                ["lasttoken"] => Pooling::Last,
                [] => {
                    return Err(wrong(
                        "it names no way of pooling; expected cls, mean, max or lasttoken".into(),
                    ));
                }
                [other] => {
                    return Err(wrong(format!(
                        "pooling by `{other}` is not supported; cls, mean, max and lasttoken are"
                    )));
                }
                _ => {
                    return Err(wrong(format!(
                        "it names several ways of pooling ({}); expected one",
                        modes.join(", ")
                    )));
                }
            };
            if let Some(family) = named.filter(|family| family.pooling != pooling) {
                return Err(wrong(format!(
                    "it pools by {pooling:?}, and the family {} by {:?}; name another family, or none to follow the file",
                    family.name, family.pooling
                )));
            }
            self.pooling = pooling;
            if let Some(counts) = value.get("include_prompt").and_then(Value::as_bool) {
                // INSTRUCTOR's files on the hub lack the entry, and sentence-transformers writes true by default.
                self.counts_prefix &= counts;
            }
            Ok(())
        }

        /// Applies `config_sentence_transformers.json`.
        fn prompts(&mut self, folder: &Path) -> Result<(), InputError> {
            let file = folder.join("config_sentence_transformers.json");
            let Some(value) = json(&file)? else { return Ok(()) };
            let prompt = |names: &[&str]| {
                let prompts = value.get("prompts")?;
                names.iter().find_map(|name| prompts.get(name)?.as_str()).filter(|text| !text.is_empty())
            };
            if let Some(text) = prompt(&["query"]) {
                self.query = text.into();
            }
            if let Some(text) = prompt(&["document", "passage", "corpus"]) {
                self.passage = text.into();
            }
            match value.get("similarity_fn_name").and_then(Value::as_str) {
                None => {}
                Some("cosine") => self.similarity = Similarity::Cosine,
                Some("dot" | "dot_score") => self.similarity = Similarity::Dot,
                Some(other) => {
                    let reason =
                        format!("similarity {} is not supported; cosine and dot are", excerpt(other));
                    return Err(InputError::Unreadable { path: file, reason });
                }
            }
            if self.similarity == Similarity::Dot && self.dense.is_empty() {
                // Vectors compared by dot product are scaled to unit length only by a `Normalize` module.
                self.unit = modules(folder)?.iter().any(|(kind, _)| kind == "Normalize");
            }
            Ok(())
        }
    }

    /// The modules in order, each with its folder; empty without `modules.json`.
    pub(super) fn modules(folder: &Path) -> Result<Vec<(String, PathBuf)>, InputError> {
        let file = folder.join("modules.json");
        let wrong = |reason: &str| InputError::Unreadable { path: file.clone(), reason: reason.into() };
        let Some(value) = json(&file)? else { return Ok(Vec::new()) };
        let all =
            value.as_array().ok_or_else(|| wrong("expected a list of modules; fetch the model again"))?;
        let module = |value: &Value| {
            let kind = value.get("type")?.as_str()?.rsplit('.').next()?.to_owned();
            let path = value.get("path")?.as_str()?;
            // A path must not lead out of the folder.
            let inside = !path.contains("..") && !Path::new(path).is_absolute();
            inside.then(|| (kind, folder.join(path)))
        };
        let read: Option<Vec<_>> = all.iter().map(module).collect();
        read.ok_or_else(|| {
            wrong("expected a `type` and a `path` inside the folder for every module; fetch the model again")
        })
    }

    /// The most tokens read of a text, whatever a model's files state: attention over 32,768 tokens would take gigabytes.
    const LONGEST: usize = 8_192;

    /// The number of tokens read: the number that the files state, at most the network's positions.
    pub fn window(folder: &Path, config: &Config) -> Result<usize, InputError> {
        const USUAL: usize = 512;
        let positions = config.positions();
        let file = folder.join("sentence_bert_config.json");
        let value = json(&file)?.and_then(|value| value.get("max_seq_length")?.as_u64());
        if let Some(window) = value {
            let window = window as usize;
            if window < 3 || positions.is_some_and(|positions| window > positions) {
                let most = positions.map_or_else(|| "any number".into(), |positions| positions.to_string());
                let reason = format!(
                    "`max_seq_length` is {window}, and config.json has positions for {most}; set it to 3 or more, and to no more than that"
                );
                return Err(InputError::Unreadable { path: file, reason });
            }
            return Ok(window.min(LONGEST));
        }
        let tokenizer = json(&folder.join("tokenizer_config.json"))?;
        let tokenizer = tokenizer.and_then(|value| value.get("model_max_length")?.as_u64());
        let most = positions.unwrap_or(USUAL);
        match tokenizer.map_or(most, |window| most.min(window as usize)) {
            window @ 3.. => Ok(window.min(LONGEST)),
            few => Err(config.wrong(&format!("a window of {few} tokens has no room for a text"))),
        }
    }

    /// A JSON file; `None` if it does not exist.
    pub(super) fn json(file: &Path) -> Result<Option<Value>, InputError> {
        match read_regular(file, SMALL) {
            Ok(bytes) => serde_json::from_slice(&bytes).map(Some).map_err(|error| InputError::Unreadable {
                path: file.into(),
                reason: format!("not valid JSON ({error}); fetch the model again"),
            }),
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(None),
            Err(error) => Err(InputError::unreadable(file, &error)),
        }
    }
}
