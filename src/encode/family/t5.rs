//! The encoder of T5: norms before each part, no biases, and a bias by distance instead of positions.

use candle_core::{Device, Result, Tensor};
use candle_nn::{Embedding, Linear, Module, RmsNorm};

use super::layer::{Attention, by_distance};
use super::{Activation, Config, Layers, Weights};
use crate::input::InputError;

/// The network.
pub struct T5 {
    words: Embedding,
    distances: Tensor,
    farthest: usize,
    blocks: Vec<Block>,
    norm: RmsNorm,
}

struct Block {
    attention: Attention,
    attention_norm: RmsNorm,
    up: Linear,
    gate: Option<Linear>,
    activation: Activation,
    down: Linear,
    norm: RmsNorm,
}

impl T5 {
    pub fn load(config: &Config, weights: &mut Weights) -> std::result::Result<Self, InputError> {
        weights.below("encoder.final_layer_norm.weight")?;
        let (width, eps) = (config.width()?, config.number(&["layer_norm_epsilon"], 1e-6));
        let (heads, size) = (config.size(&["num_heads"])?, config.size(&["d_kv"])?);
        let (wide, inner) = (config.size(&["d_ff"])?, heads * size);
        let vocabulary = config.size(&["vocab_size"])?;
        let shared = if weights.has("shared.weight") { "shared" } else { "encoder.embed_tokens" };
        let forward = config.word(&["feed_forward_proj"]).unwrap_or("relu");
        let (gated, activation) = match forward.strip_prefix("gated-") {
            // T5's gated form has always meant the approximation.
            Some("gelu") => (true, "gelu_new"),
            Some(activation) => (true, activation),
            None => (false, forward),
        };
        let activation: Activation = activation.parse().map_err(|why: String| config.wrong(&why))?;
        let norm = |name: &str| {
            Ok::<_, InputError>(RmsNorm::new(weights.get(&format!("{name}.weight"), &[width])?, eps))
        };
        let block = |i: usize| {
            let at = |name: &str| format!("encoder.block.{i}.layer.{name}");
            let line = |name: &str, from, to| weights.linear_without_bias(&at(name), from, to);
            let attention = Attention {
                query: line("0.SelfAttention.q", width, inner)?,
                key: line("0.SelfAttention.k", width, inner)?,
                value: line("0.SelfAttention.v", width, inner)?,
                output: line("0.SelfAttention.o", inner, width)?,
                heads,
                size,
                scale: 1.0,
            };
            let (up, gate) = if gated {
                let up = line("1.DenseReluDense.wi_1", width, wide)?;
                (up, Some(line("1.DenseReluDense.wi_0", width, wide)?))
            } else {
                (line("1.DenseReluDense.wi", width, wide)?, None)
            };
            let down = line("1.DenseReluDense.wo", wide, width)?;
            let attention_norm = norm(&at("0.layer_norm"))?;
            Ok(Block {
                attention,
                attention_norm,
                up,
                gate,
                activation,
                down,
                norm: norm(&at("1.layer_norm"))?,
            })
        };
        let table = "encoder.block.0.layer.0.SelfAttention.relative_attention_bias.weight";
        let buckets = config.size(&["relative_attention_num_buckets"])?;
        Ok(T5 {
            words: weights.table(shared, vocabulary, width)?,
            distances: weights.get(table, &[buckets, heads])?,
            farthest: config.size(&["relative_attention_max_distance"]).unwrap_or(128),
            blocks: (0..config.size(&["num_layers"])?)
                .map(block)
                .collect::<std::result::Result<_, InputError>>()?,
            norm: norm("encoder.final_layer_norm")?,
        })
    }
}

impl Layers for T5 {
    fn rows(&self, ids: &[u32], _: &[u32]) -> Result<Tensor> {
        let mut rows = self.words.forward(&Tensor::new(ids, &Device::Cpu)?)?;
        let bias = by_distance(&self.distances, ids.len(), self.farthest)?;
        for block in &self.blocks {
            let seen = block.attention.forward(&block.attention_norm.forward(&rows)?, Some(&bias))?;
            rows = (rows + seen)?;
            let normed = block.norm.forward(&rows)?;
            let up = block.up.forward(&normed)?;
            let wide = match &block.gate {
                Some(gate) => (block.activation.forward(&gate.forward(&normed)?)? * up)?,
                None => block.activation.forward(&up)?,
            };
            rows = (rows + block.down.forward(&wide)?)?;
        }
        self.norm.forward(&rows)
    }
}
