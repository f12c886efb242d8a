//! DistilBERT: BERT without segments, under other names.

use candle_core::{Device, Result, Tensor};
use candle_nn::{Embedding, LayerNorm, Module};

use super::bert::places;
use super::layer::{Layer, Names};
use super::{Config, Layers, Weights};
use crate::input::InputError;

const NAMES: Names = Names {
    query: "attention.q_lin",
    key: "attention.k_lin",
    value: "attention.v_lin",
    output: "attention.out_lin",
    attention_norm: "sa_layer_norm",
    up: "ffn.lin1",
    down: "ffn.lin2",
    norm: "output_layer_norm",
};

/// Its configuration has no such number.
const EPS: f64 = 1e-12;

/// The network.
pub struct DistilBert {
    words: Embedding,
    positions: Embedding,
    norm: LayerNorm,
    layers: Vec<Layer>,
}

impl DistilBert {
    pub fn load(config: &Config, weights: &mut Weights) -> std::result::Result<Self, InputError> {
        weights.below("embeddings.word_embeddings.weight")?;
        let width = config.width()?;
        let table =
            |name: &str, rows: usize| weights.table(&format!("embeddings.{name}_embeddings"), rows, width);
        Ok(DistilBert {
            words: table("word", config.size(&["vocab_size"])?)?,
            positions: table("position", config.size(&["max_position_embeddings"])?)?,
            norm: weights.norm("embeddings.LayerNorm", width, EPS)?,
            layers: Layer::all(config, weights, "transformer.layer", &NAMES, EPS)?,
        })
    }
}

impl Layers for DistilBert {
    fn rows(&self, ids: &[u32], _: &[u32]) -> Result<Tensor> {
        let words = self.words.forward(&Tensor::new(ids, &Device::Cpu)?)?;
        let places = places(ids, None);
        let positions = self.positions.forward(&Tensor::new(places.as_slice(), &Device::Cpu)?)?;
        let mut rows = self.norm.forward(&(words + positions)?)?;
        for layer in &self.layers {
            rows = layer.forward(&rows, None)?;
        }
        Ok(rows)
    }
}
