//! What a model's folder says of itself: pooling, prefixes, similarity, window. Where it is silent, its family speaks.
//!
//! The files are those of sentence-transformers: `modules.json` with its folders, `sentence_bert_config.json` and
//! `config_sentence_transformers.json`. Files that contradict each other are refused, with both named.

use std::borrow::Cow;
use std::fmt;
use std::path::{Path, PathBuf};

use serde_json::Value;

use super::family::Config;
use super::registry::{self, Family};
use super::{EncodeError, Encoder, Role};
use crate::input::{InputError, excerpt};

/// How the rows of a text become its vector.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Pooling {
    /// The first token's row.
    Cls,
    /// The first token's row through BERT's pooler, a product and tanh.
    Pooler,
    /// Their mean.
    Mean,
    /// The greatest number of every column.
    Max,
}

/// How two vectors are compared.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Similarity {
    /// The dot product of the vectors as the model gives them.
    Dot,
    /// The cosine: vectors are brought to unit length.
    Cosine,
}

impl Similarity {
    /// Its name.
    pub fn name(self) -> &'static str {
        match self {
            Similarity::Dot => "dot product",
            Similarity::Cosine => "cosine",
        }
    }

    /// A vector with unit length: as it is, where all of them have it.
    pub fn unit(self, row: &[f32]) -> Cow<'_, [f32]> {
        match self {
            Similarity::Cosine => Cow::Borrowed(row),
            Similarity::Dot => {
                let length = row.iter().map(|x| f64::from(*x).powi(2)).sum::<f64>().sqrt() as f32;
                Cow::Owned(row.iter().map(|x| if length > 0.0 { x / length } else { 0.0 }).collect())
            }
        }
    }
}

/// An encoder whose vectors all have unit length, so that their dot product is the cosine.
pub struct Directions<'a>(pub &'a dyn Encoder);

impl Encoder for Directions<'_> {
    fn key(&self) -> &str {
        self.0.key()
    }

    fn dimensions(&self) -> usize {
        self.0.dimensions()
    }

    fn encode(&self, text: &str, role: Role) -> Result<Vec<f32>, EncodeError> {
        Ok(self.0.similarity().unit(&self.0.encode(text, role)?).into_owned())
    }
}

/// What becomes of a passage's title.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Title {
    /// It is read before the text, after a blank between the two.
    Before,
    /// Title and text are read as a pair.
    Pair,
}

/// How a model reads texts.
#[derive(Clone, Debug, PartialEq)]
pub struct Card {
    /// How rows become a vector.
    pub pooling: Pooling,
    /// Folders of products after pooling.
    pub dense: Vec<PathBuf>,
    /// Vectors come out with unit length.
    pub unit: bool,
    /// How vectors are compared.
    pub similarity: Similarity,
    /// What stands before a question.
    pub query: String,
    /// What stands before a passage.
    pub passage: String,
    /// Whether pooling counts the tokens of what stands before.
    pub counts_prefix: bool,
    /// What becomes of a passage's title.
    pub title: Title,
    /// Tokens that are read.
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
        };
        write!(f, "{pooled} at most {} tokens", self.window)?;
        if !self.dense.is_empty() {
            write!(f, ", {} products after it", self.dense.len())?;
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
    /// Reads what a folder says, and asks the family for the rest.
    ///
    /// # Errors
    /// A file is damaged, two contradict each other, or one asks for what cannot be done here.
    pub fn read(folder: &Path, config: &Config, named: Option<&Family>) -> Result<Self, InputError> {
        let implied = if config.model_type()? == "dpr" { "dpr" } else { "mean" };
        let fallback = registry::family(implied).ok_or_else(|| config.wrong("its family is not known"))?;
        let family = named.unwrap_or(fallback);
        let modules = modules(folder)?;
        let mut card = Card {
            pooling: family.pooling,
            dense: Vec::new(),
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
                "Dense" => card.dense.push(place.clone()),
                "Normalize" => card.unit = true,
                other => {
                    let file = folder.join("modules.json");
                    let why = format!(
                        "the module {} cannot be done here; Transformer, Pooling, Dense and Normalize can",
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

    /// Takes `1_Pooling/config.json`.
    fn pool(&mut self, place: &Path, config: &Config, named: Option<&Family>) -> Result<(), InputError> {
        let file = place.join("config.json");
        let wrong = |reason: String| InputError::Unreadable { path: file.clone(), reason };
        let Some(said) = json(&file)? else {
            return Err(wrong("modules.json names it and it is not there; fetch the model anew".into()));
        };
        let width = config.width()?;
        if let Some(pooled) = said.get("word_embedding_dimension").or_else(|| said.get("embedding_dimension"))
            && pooled.as_u64() != Some(width as u64)
        {
            return Err(wrong(format!(
                "it pools rows of {pooled} numbers, and config.json says {width}; the files are of two models: fetch it anew"
            )));
        }
        let mut modes: Vec<&str> = Vec::new();
        if let Some(entries) = said.as_object() {
            let on = |value: &Value| value.as_bool() == Some(true);
            modes.extend(
                entries
                    .iter()
                    .filter(|(_, value)| on(value))
                    .filter_map(|(key, _)| key.strip_prefix("pooling_mode_")),
            );
        }
        modes.extend(said.get("pooling_mode").and_then(Value::as_str));
        let pooling = match modes.as_slice() {
            ["cls_token" | "cls"] => Pooling::Cls,
            ["mean_tokens" | "mean"] => Pooling::Mean,
            ["max_tokens" | "max"] => Pooling::Max,
            [] => return Err(wrong("it names no way of pooling; expected cls, mean or max".into())),
            [other] => {
                return Err(wrong(format!(
                    "pooling by `{other}` cannot be done here; cls, mean and max can"
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
        if let Some(counts) = said.get("include_prompt").and_then(Value::as_bool) {
            // The hub's INSTRUCTOR says nothing, and true is what sentence-transformers writes for nothing.
            self.counts_prefix &= counts;
        }
        Ok(())
    }

    /// Takes `config_sentence_transformers.json`.
    fn prompts(&mut self, folder: &Path) -> Result<(), InputError> {
        let file = folder.join("config_sentence_transformers.json");
        let Some(said) = json(&file)? else { return Ok(()) };
        let prompt = |names: &[&str]| {
            let prompts = said.get("prompts")?;
            names.iter().find_map(|name| prompts.get(name)?.as_str()).filter(|text| !text.is_empty())
        };
        if let Some(text) = prompt(&["query"]) {
            self.query = text.into();
        }
        if let Some(text) = prompt(&["document", "passage", "corpus"]) {
            self.passage = text.into();
        }
        match said.get("similarity_fn_name").and_then(Value::as_str) {
            None => {}
            Some("cosine") => self.similarity = Similarity::Cosine,
            Some("dot" | "dot_score") => self.similarity = Similarity::Dot,
            Some(other) => {
                let reason = format!(
                    "vectors compared by {} cannot be searched here; by cosine and dot they can",
                    excerpt(other)
                );
                return Err(InputError::Unreadable { path: file, reason });
            }
        }
        if self.similarity == Similarity::Dot && self.dense.is_empty() {
            // Only a module of its own brings these to unit length.
            self.unit = modules(folder)?.iter().any(|(kind, _)| kind == "Normalize");
        }
        Ok(())
    }
}

/// The modules in order, each with its folder; none where there is no `modules.json`.
fn modules(folder: &Path) -> Result<Vec<(String, PathBuf)>, InputError> {
    let file = folder.join("modules.json");
    let wrong = |reason: &str| InputError::Unreadable { path: file.clone(), reason: reason.into() };
    let Some(said) = json(&file)? else { return Ok(Vec::new()) };
    let all = said.as_array().ok_or_else(|| wrong("expected a list of modules; fetch the model anew"))?;
    let module = |value: &Value| {
        let kind = value.get("type")?.as_str()?.rsplit('.').next()?.to_owned();
        let path = value.get("path")?.as_str()?;
        // A path that leads out of the folder is nobody's module.
        let inside = !path.contains("..") && !Path::new(path).is_absolute();
        inside.then(|| (kind, folder.join(path)))
    };
    let read: Option<Vec<_>> = all.iter().map(module).collect();
    read.ok_or_else(|| {
        wrong("expected a `type` and a `path` inside the folder for every module; fetch the model anew")
    })
}

/// Tokens that are read: what the files say, and never more than the network has positions for.
pub fn window(folder: &Path, config: &Config) -> Result<usize, InputError> {
    const USUAL: usize = 512;
    let positions = config.positions();
    let file = folder.join("sentence_bert_config.json");
    let said = json(&file)?.and_then(|said| said.get("max_seq_length")?.as_u64());
    if let Some(window) = said {
        let window = window as usize;
        if window < 3 || positions.is_some_and(|positions| window > positions) {
            let most = positions.map_or_else(|| "any number".into(), |positions| positions.to_string());
            let reason = format!(
                "`max_seq_length` is {window}, and config.json has positions for {most}; set it to 3 or more, and to no more than that"
            );
            return Err(InputError::Unreadable { path: file, reason });
        }
        return Ok(window);
    }
    let tokenizer = json(&folder.join("tokenizer_config.json"))?;
    let tokenizer = tokenizer.and_then(|said| said.get("model_max_length")?.as_u64());
    let most = positions.unwrap_or(USUAL);
    match tokenizer.map_or(most, |window| most.min(window as usize)) {
        window @ 3.. => Ok(window),
        few => Err(config.wrong(&format!("a window of {few} tokens has no room for a text"))),
    }
}

/// A JSON file; none where there is none.
pub(super) fn json(file: &Path) -> Result<Option<Value>, InputError> {
    match std::fs::read(file) {
        Ok(bytes) => serde_json::from_slice(&bytes).map(Some).map_err(|error| InputError::Unreadable {
            path: file.into(),
            reason: format!("no whole JSON ({error}); fetch the model anew"),
        }),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(InputError::unreadable(file, &error)),
    }
}
