//! MPNet: RoBERTa's positions, and a bias by distance that all layers share.

use candle_core::{Device, Result, Tensor};
use candle_nn::{Embedding, LayerNorm, Module};

use super::bert::places;
use super::layer::{Layer, Names, by_distance};
use super::{Config, Layers, Weights};
use crate::input::InputError;

const NAMES: Names = Names {
    query: "attention.attn.q",
    key: "attention.attn.k",
    value: "attention.attn.v",
    output: "attention.attn.o",
    attention_norm: "attention.LayerNorm",
    up: "intermediate.dense",
    down: "output.dense",
    norm: "output.LayerNorm",
};

/// Distances beyond it share the last bucket.
const FARTHEST: usize = 128;

/// The network.
pub struct MpNet {
    words: Embedding,
    positions: Embedding,
    norm: LayerNorm,
    distances: Tensor,
    layers: Vec<Layer>,
    padding: u32,
}

impl MpNet {
    pub fn load(config: &Config, weights: &mut Weights) -> std::result::Result<Self, InputError> {
        weights.below("embeddings.word_embeddings.weight")?;
        let (width, eps) = (config.width()?, config.number(&["layer_norm_eps"], 1e-12));
        let table =
            |name: &str, rows: usize| weights.table(&format!("embeddings.{name}_embeddings"), rows, width);
        let (heads, _) = config.heads()?;
        let buckets = config.size(&["relative_attention_num_buckets"])?;
        Ok(MpNet {
            words: table("word", config.size(&["vocab_size"])?)?,
            positions: table("position", config.size(&["max_position_embeddings"])?)?,
            norm: weights.norm("embeddings.LayerNorm", width, eps)?,
            distances: weights.get("encoder.relative_attention_bias.weight", &[buckets, heads])?,
            layers: Layer::all(config, weights, "encoder.layer", &NAMES, eps)?,
            padding: config.padding(),
        })
    }
}

impl Layers for MpNet {
    fn rows(&self, ids: &[u32], _: &[u32]) -> Result<Tensor> {
        let words = self.words.forward(&Tensor::new(ids, &Device::Cpu)?)?;
        let places = places(ids, Some(self.padding));
        let positions = self.positions.forward(&Tensor::new(places.as_slice(), &Device::Cpu)?)?;
        let mut rows = self.norm.forward(&(words + positions)?)?;
        let bias = by_distance(&self.distances, ids.len(), FARTHEST)?;
        for layer in &self.layers {
            rows = layer.forward(&rows, Some(&bias))?;
        }
        Ok(rows)
    }
}
