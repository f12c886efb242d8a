//! The carried encoder: all-MiniLM-L6-v2, mean pooling, cosine, 256 tokens.

use tokenizers::Tokenizer;

use super::graph::{Graph, tokenizer};
use super::{EncodeError, Encoder, Role};
use crate::assets;

const WINDOW: usize = 256;
/// No 256 tokens of English reach this far; it bounds the work on a passage without end.
const LONGEST: usize = 16_384;

/// all-MiniLM-L6-v2, int8.
pub struct MiniLm {
    graph: Graph,
    tokenizer: Tokenizer,
    key: String,
}

impl MiniLm {
    /// Loads the carried model.
    ///
    /// # Errors
    /// The carried files are damaged.
    pub fn carried() -> Result<Self, EncodeError> {
        let hash = blake3::hash(assets::MINILM).to_hex();
        Ok(MiniLm {
            graph: Graph::carried(assets::MINILM, &["input_ids"])?,
            tokenizer: tokenizer(Some(WINDOW))?,
            key: format!("minilm-{}", &hash[..12]),
        })
    }
}

impl Encoder for MiniLm {
    fn key(&self) -> &str {
        &self.key
    }

    fn dimensions(&self) -> usize {
        384
    }

    fn encode(&self, text: &str, _: Role) -> Result<Vec<f32>, EncodeError> {
        let end = text.char_indices().nth(LONGEST).map_or(text.len(), |(i, _)| i);
        let tokens = self.tokenizer.encode_fast(&text[..end], true)?;
        self.graph.run(&[tokens.get_ids().iter().map(|id| *id as i32).collect()])
    }
}
