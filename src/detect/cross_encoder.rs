//! The carried detector: a cross-encoder that reads passage and statement together, joined with the carried encoder's cosine
//! of the two, which knows the topic better.
//!
//! A passage longer than the window is read in windows that overlap by half, each with a cosine of its own; its probability is that
//! of the window that supports most.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use serde::Deserialize;
use tokenizers::{Encoding, Tokenizer};

use super::pair::{STATEMENT, text};
use super::{DetectError, Detector};
use crate::assets;
use crate::corpus::Passage;
use crate::encode::graph::{Graph, tokenizer};
use crate::encode::windows::windows;
use crate::encode::{EncodeError, Encoder, MiniLm, Role};
use crate::retrieve::dense::dot;
use crate::work::{Stop, Stopped};

const CLS: i32 = 101;
const SEP: i32 = 102;

/// What is known of the carried weights.
#[derive(Clone, Debug, Deserialize)]
pub struct Card {
    /// From which probability on a verdict is a yes; chosen on development questions.
    pub threshold: f32,
    /// How its logits and the cosine are weighed.
    pub join: Join,
    /// Tokens it reads at once, passage and statement together.
    pub max_tokens: usize,
    /// On a test split by topic not yet better than plain cosine, or too often on the wrong side.
    #[serde(default)]
    pub experimental: bool,
}

/// The weights of the joined logit, fitted on development questions.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Join {
    support: f32,
    polarity: f32,
    cosine: f32,
    bias: f32,
}

impl Join {
    /// The probability of support, from the logits of supports, opposes, neither, and the cosine.
    fn probability(&self, [supports, opposes, neither]: [f32; 3], cosine: f32) -> f32 {
        let logit = self.support * (supports - neither)
            + self.polarity * (supports - opposes)
            + self.cosine * cosine
            + self.bias;
        1.0 / (1.0 + (-logit).exp())
    }
}

/// What a verdict hangs on besides the carried files: how a long passage is read.
const READ: &[u8] = b"a cosine for every window";

/// Vectors kept; a question has a few hundred passages.
const KEPT: usize = 2_048;

/// The carried cross-encoder, int8.
pub struct CrossEncoder {
    graph: Graph,
    encoder: MiniLm,
    /// Vectors of the texts met lately: a passage is judged for several statements, a statement against many passages.
    vectors: Mutex<HashMap<[u8; 32], Arc<Vec<f32>>>>,
    tokenizer: &'static Tokenizer,
    card: Card,
    key: String,
}

impl From<EncodeError> for DetectError {
    fn from(EncodeError(reason): EncodeError) -> Self {
        DetectError::Model(reason)
    }
}

impl CrossEncoder {
    /// Loads the carried model.
    ///
    /// # Errors
    /// The carried files are damaged.
    pub fn carried() -> Result<Self, DetectError> {
        let mut hash = blake3::Hasher::new();
        // A verdict hangs on all of these.
        for part in [assets::DETECTOR, assets::DETECTOR_CARD, assets::MINILM, READ] {
            hash.update(part);
        }
        let hash = hash.finalize().to_hex();
        Ok(CrossEncoder {
            graph: Graph::carried(assets::DETECTOR, &["input_ids", "attention_mask", "token_type_ids"])?,
            encoder: MiniLm::carried()?,
            vectors: Mutex::default(),
            tokenizer: tokenizer()?,
            card: Self::card()?,
            key: format!("parallax-{}", &hash[..12]),
        })
    }

    /// The card alone, without loading the weights.
    ///
    /// # Errors
    /// The carried file is damaged.
    pub fn card() -> Result<Card, DetectError> {
        serde_json::from_slice(assets::DETECTOR_CARD).map_err(|error| DetectError::Model(error.to_string()))
    }

    fn room(&self, statement: usize) -> usize {
        self.card.max_tokens - statement - 3
    }

    fn tokens(&self, text: &str) -> Result<Encoding, DetectError> {
        Ok(self.tokenizer.encode(text, false).map_err(EncodeError::from)?)
    }

    fn logits(&self, passage: &[i32], statement: &[i32]) -> Result<[f32; 3], DetectError> {
        let mut ids = vec![CLS];
        ids.extend(passage);
        ids.push(SEP);
        let first = ids.len();
        ids.extend(statement);
        ids.push(SEP);
        let kinds = (0..ids.len()).map(|i| i32::from(i >= first)).collect();
        let logits = self.graph.run(&[ids.clone(), vec![1; ids.len()], kinds])?;
        logits.try_into().map_err(|_| DetectError::Model("the graph gave no three classes".into()))
    }

    /// The encoder's vector of a text. It hangs on the text alone, so keeping it changes no verdict.
    fn vector(&self, text: &str) -> Result<Arc<Vec<f32>>, DetectError> {
        let key = *blake3::hash(text.as_bytes()).as_bytes();
        let kept = || self.vectors.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(vector) = kept().get(&key) {
            return Ok(Arc::clone(vector));
        }
        let vector = Arc::new(self.encoder.encode(text, Role::Passage)?);
        let mut kept = kept();
        if kept.len() >= KEPT {
            kept.clear();
        }
        kept.insert(key, Arc::clone(&vector));
        Ok(vector)
    }
}

fn ids(encoded: &Encoding) -> Vec<i32> {
    encoded.get_ids().iter().map(|id| *id as i32).collect()
}

impl Detector for CrossEncoder {
    fn key(&self) -> &str {
        &self.key
    }

    fn threshold(&self) -> f32 {
        self.card.threshold
    }

    fn experimental(&self) -> bool {
        self.card.experimental
    }

    fn judge(&self, passage: &Passage, statement: &str, stop: &Stop) -> Result<f32, DetectError> {
        let read = text(passage)?;
        let (encoded, asked) = (self.tokens(&read)?, self.tokens(statement)?);
        let (tokens, mut asked) = (ids(&encoded), ids(&asked));
        asked.truncate(STATEMENT);
        if asked.is_empty() {
            return Err(DetectError::Empty("statement"));
        }
        if tokens.is_empty() {
            return Err(DetectError::Empty("passage"));
        }
        let about = self.vector(statement)?;
        let mut most = 0.0f32;
        for window in windows(tokens.len(), self.room(asked.len())) {
            if stop.is_set() {
                return Err(Stopped.into());
            }
            let (first, last) = (encoded.get_offsets()[window.start], encoded.get_offsets()[window.end - 1]);
            let whole = window.len() == tokens.len();
            let part = if whole { None } else { read.get(first.0..last.1) };
            let cosine = dot(&self.vector(part.unwrap_or(&read))?, &about);
            let logits = self.logits(&tokens[window], &asked)?;
            most = most.max(self.card.join.probability(logits, cosine));
        }
        Ok(most)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_weight_of_the_join_counts_and_one_that_is_not_known_is_an_error() {
        let join = |weights: &str| serde_json::from_str::<Join>(weights);
        let of = |support, polarity, cosine, bias| {
            let weights = format!(
                r#"{{"support": {support}, "polarity": {polarity}, "cosine": {cosine}, "bias": {bias}}}"#
            );
            join(&weights).unwrap().probability([2.0, 1.0, -1.0], 0.5)
        };
        let sigmoid = |logit: f32| 1.0 / (1.0 + (-logit).exp());
        assert_eq!(of(1.0, 0.0, 0.0, 0.0), sigmoid(3.0));
        assert_eq!(of(0.0, 1.0, 0.0, 0.0), sigmoid(1.0));
        assert_eq!(of(0.0, 0.0, 4.0, -1.0), sigmoid(1.0));
        let told = join(r#"{"support": 1, "polarity": 0, "cosine": 1, "bias": 0, "title": 1}"#).unwrap_err();
        assert!(told.to_string().contains("title"), "{told}");
    }
}
