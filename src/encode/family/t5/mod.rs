//! T5: norms before each part, no biases, and a bias by distance instead of positions.
//!
//! Owns what its two halves share: the sizes and the product after attention. [`Encoder`] is a family by itself; [`Fusion`] joins
//! what it makes of several sequences and writes.

mod decoder;
mod encoder;
mod fusion;

use candle_core::{Result, Tensor};
use candle_nn::{Linear, Module, RmsNorm};

use super::layer::Attention;
use super::{Activation, Config, Weights};
use crate::input::InputError;

pub use encoder::Encoder;
pub use fusion::{Fusion, Part, Writing};

/// What `config.json` says of the network.
struct Sizes {
    width: usize,
    eps: f64,
    heads: usize,
    size: usize,
    wide: usize,
    vocabulary: usize,
    gated: bool,
    activation: Activation,
    buckets: usize,
    farthest: usize,
}

impl Sizes {
    fn read(config: &Config) -> std::result::Result<Self, InputError> {
        let forward = config.word(&["feed_forward_proj"]).unwrap_or("relu");
        let (gated, activation) = match forward.strip_prefix("gated-") {
            // T5's gated form has always meant the approximation.
            Some("gelu") => (true, "gelu_new"),
            Some(activation) => (true, activation),
            None => (false, forward),
        };
        let buckets = config.size(&["relative_attention_num_buckets"])?;
        let farthest = match config.has("relative_attention_max_distance") {
            true => config.size(&["relative_attention_max_distance"])?,
            false => 128,
        };
        // Half of the buckets, or a quarter, are for near distances; the others share what lies between these and the farthest.
        if buckets < 4 || farthest <= buckets / 2 {
            return Err(config.wrong(&format!(
                "{buckets} buckets of distances up to {farthest} cannot be told apart; expected at least 4, and \
                 `relative_attention_max_distance` above half of them"
            )));
        }
        Ok(Sizes {
            width: config.width()?,
            eps: config.number(&["layer_norm_epsilon"], 1e-6),
            heads: config.size(&["num_heads"])?,
            size: config.size(&["d_kv"])?,
            wide: config.size(&["d_ff"])?,
            vocabulary: config.vocabulary()?,
            gated,
            activation: activation.parse().map_err(|why: String| config.wrong(&why))?,
            buckets,
            farthest,
        })
    }

    fn norm(&self, weights: &Weights, name: &str) -> std::result::Result<RmsNorm, InputError> {
        Ok(RmsNorm::new(weights.get(&format!("{name}.weight"), &[self.width])?, self.eps))
    }

    /// One row a bucket, which all layers of a stack share.
    fn distances(&self, weights: &Weights, stack: &str) -> std::result::Result<Tensor, InputError> {
        let table = format!("{stack}.block.0.layer.0.SelfAttention.relative_attention_bias.weight");
        weights.get(&table, &[self.buckets, self.heads])
    }

    fn attention(&self, weights: &Weights, name: &str) -> std::result::Result<Attention, InputError> {
        let (width, inner) = (self.width, self.heads * self.size);
        let line = |part: &str, from, to| weights.linear_without_bias(&format!("{name}.{part}"), from, to);
        Ok(Attention {
            query: line("q", width, inner)?,
            key: line("k", width, inner)?,
            value: line("v", width, inner)?,
            output: line("o", inner, width)?,
            heads: self.heads,
            size: self.size,
            scale: 1.0,
        })
    }

    /// As many blocks as `config.json` says, and not one more in the weights.
    fn blocks<B>(
        &self,
        weights: &Weights,
        (stack, count): (&str, usize),
        block: impl Fn(&str) -> std::result::Result<B, InputError>,
    ) -> std::result::Result<Vec<B>, InputError> {
        let beyond = format!("{stack}.block.{count}.layer.0.SelfAttention.q.weight");
        if weights.has(&beyond) {
            return Err(weights.wrong(&format!(
                "there is a tensor `{beyond}`, and config.json says {count} layers; the files are of two models"
            )));
        }
        (0..count).map(|i| block(&format!("{stack}.block.{i}.layer"))).collect()
    }
}

/// The product after attention, with its norm.
struct Forward {
    norm: RmsNorm,
    up: Linear,
    gate: Option<Linear>,
    activation: Activation,
    down: Linear,
}

impl Forward {
    fn load(sizes: &Sizes, weights: &Weights, place: &str) -> std::result::Result<Self, InputError> {
        let line = |part: &str, from, to| {
            weights.linear_without_bias(&format!("{place}.DenseReluDense.{part}"), from, to)
        };
        let (width, wide) = (sizes.width, sizes.wide);
        let (up, gate) = match sizes.gated {
            true => (line("wi_1", width, wide)?, Some(line("wi_0", width, wide)?)),
            false => (line("wi", width, wide)?, None),
        };
        let norm = sizes.norm(weights, &format!("{place}.layer_norm"))?;
        Ok(Forward { norm, up, gate, activation: sizes.activation, down: line("wo", wide, width)? })
    }

    /// `[tokens, width]` to the same, with what came in added.
    fn add(&self, rows: &Tensor) -> Result<Tensor> {
        let normed = self.norm.forward(rows)?;
        let up = self.up.forward(&normed)?;
        let wide = match &self.gate {
            Some(gate) => (self.activation.forward(&gate.forward(&normed)?)? * up)?,
            None => self.activation.forward(&up)?,
        };
        rows + self.down.forward(&wide)?
    }
}
