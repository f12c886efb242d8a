//! The carried detector: a cross-encoder that reads passage and statement together.
//!
//! A passage longer than the window is read in windows that overlap by half; its probability is that of the window that
//! supports most.

use serde::Deserialize;
use tokenizers::Tokenizer;

use super::{DetectError, Detector};
use crate::assets;
use crate::corpus::Passage;
use crate::encode::EncodeError;
use crate::encode::graph::{Graph, tokenizer};

const CLS: i32 = 101;
const SEP: i32 = 102;
/// Tokens of the statement that are read.
const STATEMENT: usize = 96;

/// What is known of the carried weights.
#[derive(Clone, Debug, Deserialize)]
pub struct Card {
    /// From which probability on a verdict is a yes; chosen on development questions.
    pub threshold: f32,
    /// Its logits are divided by this.
    pub temperature: f32,
    /// Tokens it reads at once, passage and statement together.
    pub max_tokens: usize,
    /// Not yet better than plain cosine on a test split by topic.
    #[serde(default)]
    pub experimental: bool,
}

/// The carried cross-encoder, int8.
pub struct CrossEncoder {
    graph: Graph,
    tokenizer: Tokenizer,
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
        let hash = blake3::hash(assets::DETECTOR).to_hex();
        Ok(CrossEncoder {
            graph: Graph::carried(assets::DETECTOR, &["input_ids", "attention_mask", "token_type_ids"])?,
            tokenizer: tokenizer(None)?,
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

    /// How many windows a passage is read in.
    ///
    /// # Errors
    /// The tokenizer failed.
    pub fn windows(&self, passage: &Passage, statement: &str) -> Result<usize, DetectError> {
        let statement = self.tokens(statement)?.len().min(STATEMENT);
        let tokens = self.tokens(&text(passage))?;
        Ok(windows(tokens.len(), self.room(statement)).count())
    }

    fn room(&self, statement: usize) -> usize {
        self.card.max_tokens - statement - 3
    }

    fn tokens(&self, text: &str) -> Result<Vec<i32>, DetectError> {
        let encoded = self.tokenizer.encode_fast(text, false).map_err(EncodeError::from)?;
        Ok(encoded.get_ids().iter().map(|id| *id as i32).collect())
    }

    fn probability(&self, passage: &[i32], statement: &[i32]) -> Result<f32, DetectError> {
        let mut ids = vec![CLS];
        ids.extend(passage);
        ids.push(SEP);
        let first = ids.len();
        ids.extend(statement);
        ids.push(SEP);
        let kinds = (0..ids.len()).map(|i| i32::from(i >= first)).collect();
        let logits = self.graph.run(&[ids.clone(), vec![1; ids.len()], kinds])?;
        let [supports, others @ ..] = logits.as_slice() else {
            return Err(DetectError::Model("the graph gave no classes".into()));
        };
        let odds: f32 = others.iter().map(|other| ((other - supports) / self.card.temperature).exp()).sum();
        Ok(1.0 / (1.0 + odds))
    }
}

/// Passage text, then title, as BERDS gives it to its detectors.
fn text(passage: &Passage) -> String {
    format!("{} {}", passage.text, passage.title).trim_end().to_owned()
}

/// Runs of at most `room` tokens that overlap by half and together hold all.
fn windows(tokens: usize, room: usize) -> impl Iterator<Item = std::ops::Range<usize>> {
    let mut start = Some(0);
    std::iter::from_fn(move || {
        let from = start?;
        let to = (from + room).min(tokens);
        start = (to < tokens).then_some(from + room / 2);
        Some(from..to)
    })
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

    fn judge(&self, passage: &Passage, statement: &str) -> Result<f32, DetectError> {
        let mut statement = self.tokens(statement)?;
        statement.truncate(STATEMENT);
        let tokens = self.tokens(&text(passage))?;
        if statement.is_empty() {
            return Err(DetectError::Empty("statement"));
        }
        if tokens.is_empty() {
            return Err(DetectError::Empty("passage"));
        }
        let mut most = 0.0f32;
        for window in windows(tokens.len(), self.room(statement.len())) {
            most = most.max(self.probability(&tokens[window], &statement)?);
        }
        Ok(most)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn windows_overlap_by_half_and_leave_no_token_out() {
        assert!(windows(10, 10).eq(std::iter::once(0..10)));
        assert_eq!(windows(25, 10).collect::<Vec<_>>(), [0..10, 5..15, 10..20, 15..25]);
    }
}
