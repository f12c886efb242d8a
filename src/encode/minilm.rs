//! The carried encoder: all-MiniLM-L6-v2, mean pooling, cosine, 256 tokens.

use std::sync::{Arc, OnceLock};

use tokenizers::Tokenizer;

use super::graph::{Graph, tokenizer};
use super::{EncodeError, Encoder, Role};
use crate::assets;

const WINDOW: usize = 256;
/// No 256 tokens of English reach this far; it bounds the work on a passage without end.
const LONGEST: usize = 16_384;

/// all-MiniLM-L6-v2, int8. However often it is asked for, its weights are in memory once.
#[derive(Clone)]
pub struct MiniLm {
    graph: Arc<Graph>,
    tokenizer: &'static Tokenizer,
    key: String,
}

impl MiniLm {
    /// Loads the carried model.
    ///
    /// # Errors
    /// The carried files are damaged.
    pub fn carried() -> Result<Self, EncodeError> {
        static READ: OnceLock<Result<MiniLm, String>> = OnceLock::new();
        READ.get_or_init(|| Self::read().map_err(|EncodeError(reason)| reason)).clone().map_err(EncodeError)
    }

    fn read() -> Result<Self, EncodeError> {
        let hash = blake3::hash(assets::MINILM).to_hex();
        Ok(MiniLm {
            graph: Arc::new(Graph::carried(assets::MINILM, &["input_ids"])?),
            tokenizer: tokenizer()?,
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
        let mut ids: Vec<i32> = tokens.get_ids().iter().map(|id| *id as i32).collect();
        if let (true, Some(last)) = (ids.len() > WINDOW, ids.last().copied()) {
            // The mark that ends a sequence ends a cut one too.
            ids.truncate(WINDOW - 1);
            ids.push(last);
        }
        self.graph.run(&[ids])
    }
}
