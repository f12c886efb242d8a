//! The decoder of T5, one token at a time: what was said before is remembered, and what was read is looked at anew.

use candle_core::{D, Device, Result, Tensor};
use candle_nn::{Embedding, Linear, Module, RmsNorm, ops::softmax_last_dim};

use super::super::layer::{Attention, Past, behind};
use super::super::{Config, Weights};
use super::{Forward, Sizes};
use crate::input::InputError;

/// The network, up to the scores of the next token.
pub struct Decoder {
    words: Embedding,
    distances: Tensor,
    farthest: usize,
    blocks: Vec<Block>,
    norm: RmsNorm,
    scale: f64,
    scores: Linear,
}

struct Block {
    attention: Attention,
    attention_norm: RmsNorm,
    across: Across,
    across_norm: RmsNorm,
    forward: Forward,
}

/// Attention to what was read.
///
/// Keys and values of all that was read are never made: a query is taken through the keys' weights to the length of a row, and
/// what it sees through those of the values. An answer has few tokens and what is read has thousands, for which this is many times
/// less work, and only the rows are kept. There is no bias: the distance from an answer to a passage means nothing.
struct Across {
    query: Linear,
    /// `[heads, size, width]`
    key: Tensor,
    /// `[heads, width, size]`
    value: Tensor,
    output: Linear,
}

impl Across {
    fn load(sizes: &Sizes, weights: &Weights, name: &str) -> std::result::Result<Self, InputError> {
        let Attention { query, key, value, output, heads, size, .. } = sizes.attention(weights, name)?;
        let split = |linear: &Linear| linear.weight().reshape((heads, size, sizes.width));
        let parts = || Ok((split(&key)?, split(&value)?.transpose(1, 2)?.contiguous()?));
        let (key, value) = parts().map_err(|error: candle_core::Error| weights.wrong(&error.to_string()))?;
        Ok(Across { query, key, value, output })
    }

    /// What one row sees of `read`, and how each head shares its attention out: `[heads, tokens]`.
    fn forward(&self, row: &Tensor, read: &Tensor) -> Result<(Tensor, Tensor)> {
        let (heads, size, width) = self.key.dims3()?;
        let query = self.query.forward(row)?.reshape((heads, 1, size))?;
        let query = query.matmul(&self.key)?.reshape((heads, width))?;
        let shares = softmax_last_dim(&query.matmul(&read.t()?)?)?;
        let seen = shares.matmul(read)?.reshape((heads, 1, width))?;
        let seen = seen.matmul(&self.value)?.reshape((1, heads * size))?;
        Ok((self.output.forward(&seen)?, shares))
    }
}

/// An answer that is being written.
pub struct State {
    read: Tensor,
    past: Vec<Past>,
    said: usize,
    /// How the first token shares its attention out among the tokens that were read, over all heads and layers.
    pub first: Vec<f32>,
}

impl Decoder {
    pub fn load(
        config: &Config,
        weights: &Weights,
        words: &Embedding,
    ) -> std::result::Result<Self, InputError> {
        let sizes = Sizes::read(config)?;
        let count = match config.has("num_decoder_layers") {
            true => config.size(&["num_decoder_layers"])?,
            false => config.size(&["num_layers"])?,
        };
        let block = |place: &str| {
            Ok(Block {
                attention: sizes.attention(weights, &format!("{place}.0.SelfAttention"))?,
                attention_norm: sizes.norm(weights, &format!("{place}.0.layer_norm"))?,
                across: Across::load(&sizes, weights, &format!("{place}.1.EncDecAttention"))?,
                across_norm: sizes.norm(weights, &format!("{place}.1.layer_norm"))?,
                forward: Forward::load(&sizes, weights, &format!("{place}.2"))?,
            })
        };
        // T5 shares its words with the scores and makes up for their length; later forms have a table for each. `transformers` 5
        // says so by a name of its own.
        let tied = config.switch("tie_word_embeddings").unwrap_or(true);
        let scaled = config.switch("scale_decoder_outputs").unwrap_or(tied);
        let scores = match weights.has("lm_head.weight") || !tied {
            true => weights.linear_without_bias("lm_head", sizes.width, sizes.vocabulary)?,
            false => Linear::new(words.embeddings().clone(), None),
        };
        Ok(Decoder {
            words: words.clone(),
            distances: sizes.distances(weights, "decoder")?,
            farthest: sizes.farthest,
            blocks: sizes.blocks(weights, ("decoder", count), block)?,
            norm: sizes.norm(weights, "decoder.final_layer_norm")?,
            scale: if scaled { 1.0 / (sizes.width as f64).sqrt() } else { 1.0 },
            scores,
        })
    }

    /// Nothing is said yet of what was read, `[tokens, width]`.
    pub fn begin(&self, read: Tensor) -> State {
        let past = self.blocks.iter().map(|_| Past::default()).collect();
        State { read, past, said: 0, first: Vec::new() }
    }

    /// The scores of what follows this token.
    pub fn next(&self, state: &mut State, token: u32) -> Result<Vec<f32>> {
        state.said += 1;
        let mut row = self.words.forward(&Tensor::new(&[token], &Device::Cpu)?)?;
        let bias = behind(&self.distances, state.said, self.farthest)?;
        let mut shares = Vec::new();
        for (block, past) in self.blocks.iter().zip(&mut state.past) {
            let seen = block.attention.go_on(&block.attention_norm.forward(&row)?, past, &bias)?;
            row = (row + seen)?;
            let (seen, share) = block.across.forward(&block.across_norm.forward(&row)?, &state.read)?;
            row = block.forward.add(&(row + seen)?)?;
            if state.said == 1 {
                shares.push(share);
            }
        }
        if !shares.is_empty() {
            state.first = Tensor::cat(&shares, 0)?.mean(0)?.to_vec1()?;
        }
        let row = (self.norm.forward(&row)? * self.scale)?;
        self.scores.forward(&row)?.squeeze(D::Minus2)?.to_vec1()
    }
}
