//! The encoder of T5.

use candle_core::{Device, Result, Tensor};
use candle_nn::{Embedding, Module, RmsNorm};

use super::super::layer::{Attention, by_distance};
use super::super::{Config, Layers, Weights};
use super::{Forward, Sizes};
use crate::input::InputError;

/// The network.
pub struct Encoder {
    words: Embedding,
    distances: Tensor,
    farthest: usize,
    blocks: Vec<Block>,
    norm: RmsNorm,
}

struct Block {
    attention: Attention,
    attention_norm: RmsNorm,
    forward: Forward,
}

impl Encoder {
    pub fn load(config: &Config, weights: &mut Weights) -> std::result::Result<Self, InputError> {
        weights.below("encoder.final_layer_norm.weight")?;
        let sizes = Sizes::read(config)?;
        let shared = if weights.has("shared.weight") { "shared" } else { "encoder.embed_tokens" };
        let block = |place: &str| {
            Ok(Block {
                attention: sizes.attention(weights, &format!("{place}.0.SelfAttention"))?,
                attention_norm: sizes.norm(weights, &format!("{place}.0.layer_norm"))?,
                forward: Forward::load(&sizes, weights, &format!("{place}.1"))?,
            })
        };
        Ok(Encoder {
            words: weights.table(shared, sizes.vocabulary, sizes.width)?,
            distances: sizes.distances(weights, "encoder")?,
            farthest: sizes.farthest,
            blocks: sizes.blocks(weights, ("encoder", config.size(&["num_layers"])?), block)?,
            norm: sizes.norm(weights, "encoder.final_layer_norm")?,
        })
    }

    /// The table of tokens, which the decoder shares.
    pub(super) fn words(&self) -> &Embedding {
        &self.words
    }
}

impl Layers for Encoder {
    fn rows(&self, ids: &[u32], _: &[u32]) -> Result<Tensor> {
        let mut rows = self.words.forward(&Tensor::new(ids, &Device::Cpu)?)?;
        let bias = by_distance(&self.distances, ids.len(), self.farthest)?;
        for block in &self.blocks {
            let seen = block.attention.forward(&block.attention_norm.forward(&rows)?, Some(&bias))?;
            rows = block.forward.add(&(rows + seen)?)?;
        }
        self.norm.forward(&rows)
    }
}
