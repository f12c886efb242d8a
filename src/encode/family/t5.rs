//! T5: its encoder, its decoder, which writes one token at a time, and fusion in decoder (Izacard & Grave, 2021).
//!
//! T5 has norms before each part, no biases, and a position bias by distance instead of position embeddings.

use candle_core::{D, Device, Tensor};
use candle_nn::ops::softmax_last_dim;
use candle_nn::{Embedding, Linear, Module, RmsNorm};

use super::checkpoint::{Config, Weights};
use super::layer::{
    Activation, Attention, Past, TokenNetwork, UnknownActivation, bias_towards, causal_bias, distance_bias,
    on_one_thread,
};
use crate::encode::encoder::{EncodeError, ModelError};
use crate::input::InputError;

/// The sizes from `config.json`.
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
    fn read(config: &Config) -> Result<Self, InputError> {
        let forward = config.word(&["feed_forward_proj"]).unwrap_or("relu");
        let (gated, activation) = match forward.strip_prefix("gated-") {
            // T5's gated GELU has always meant the tanh approximation.
            Some("gelu") => (true, "gelu_new"),
            Some(activation) => (true, activation),
            None => (false, forward),
        };
        let buckets = config.size(&["relative_attention_num_buckets"])?;
        let farthest = if config.has("relative_attention_max_distance") {
            config.size(&["relative_attention_max_distance"])?
        } else {
            128
        };
        // Half of the buckets (a quarter if there are two directions) are for near distances; the others cover the rest logarithmically.
        if buckets < 4 || farthest <= buckets / 2 {
            return Err(config.wrong(&format!(
                "{buckets} buckets of distances up to {farthest} are invalid; expected at least 4, and \
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
            activation: activation
                .parse()
                .map_err(|error: UnknownActivation| config.wrong(&error.to_string()))?,
            buckets,
            farthest,
        })
    }

    fn norm(&self, weights: &Weights, name: &str) -> Result<RmsNorm, InputError> {
        Ok(RmsNorm::new(weights.get(&format!("{name}.weight"), &[self.width])?, self.eps))
    }

    /// The bias table, one row per bucket, shared by all layers of a stack.
    fn distances(&self, weights: &Weights, stack: &str) -> Result<Tensor, InputError> {
        let table = format!("{stack}.block.0.layer.0.SelfAttention.relative_attention_bias.weight");
        weights.get(&table, &[self.buckets, self.heads])
    }

    fn attention(&self, weights: &Weights, name: &str) -> Result<Attention, InputError> {
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

    /// Reads as many blocks as `config.json` states; more in the weights are an error.
    fn blocks<B>(
        &self,
        weights: &Weights,
        (stack, count): (&str, usize),
        block: impl Fn(&str) -> Result<B, InputError>,
    ) -> Result<Vec<B>, InputError> {
        let beyond = format!("{stack}.block.{count}.layer.0.SelfAttention.q.weight");
        if weights.has(&beyond) {
            return Err(weights.wrong(&format!(
                "there is a tensor `{beyond}`, and config.json says {count} layers; the files belong to two different models"
            )));
        }
        (0..count).map(|i| block(&format!("{stack}.block.{i}.layer"))).collect()
    }
}

/// The feed-forward part of a block, with its norm.
struct Forward {
    norm: RmsNorm,
    up: Linear,
    gate: Option<Linear>,
    activation: Activation,
    down: Linear,
}

impl Forward {
    fn load(sizes: &Sizes, weights: &Weights, place: &str) -> Result<Self, InputError> {
        let line = |part: &str, from, to| {
            weights.linear_without_bias(&format!("{place}.DenseReluDense.{part}"), from, to)
        };
        let (width, wide) = (sizes.width, sizes.wide);
        let (up, gate) = if sizes.gated {
            (line("wi_1", width, wide)?, Some(line("wi_0", width, wide)?))
        } else {
            (line("wi", width, wide)?, None)
        };
        let norm = sizes.norm(weights, &format!("{place}.layer_norm"))?;
        Ok(Forward { norm, up, gate, activation: sizes.activation, down: line("wo", wide, width)? })
    }

    /// Maps `[tokens, width]` to the same shape and adds the input.
    fn add(&self, rows: &Tensor) -> candle_core::Result<Tensor> {
        let normed = self.norm.forward(rows)?;
        let up = self.up.forward(&normed)?;
        let wide = match &self.gate {
            Some(gate) => (self.activation.forward(&gate.forward(&normed)?)? * up)?,
            None => self.activation.forward(&up)?,
        };
        rows + self.down.forward(&wide)?
    }
}

/// The network.
pub struct Encoder {
    words: Embedding,
    distances: Tensor,
    farthest: usize,
    blocks: Vec<EncoderBlock>,
    norm: RmsNorm,
}

struct EncoderBlock {
    attention: Attention,
    attention_norm: RmsNorm,
    forward: Forward,
}

impl Encoder {
    pub fn load(config: &Config, weights: &mut Weights) -> Result<Self, InputError> {
        weights.below("encoder.final_layer_norm.weight")?;
        let sizes = Sizes::read(config)?;
        let shared = if weights.has("shared.weight") { "shared" } else { "encoder.embed_tokens" };
        let block = |place: &str| {
            Ok(EncoderBlock {
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

    /// The token embeddings, shared with the decoder.
    pub(super) fn words(&self) -> &Embedding {
        &self.words
    }
}

impl TokenNetwork for Encoder {
    fn rows(&self, ids: &[u32], _: &[u32]) -> candle_core::Result<Tensor> {
        let mut rows = self.words.forward(&Tensor::new(ids, &Device::Cpu)?)?;
        let bias = distance_bias(&self.distances, ids.len(), self.farthest)?;
        for block in &self.blocks {
            let seen = block.attention.forward(&block.attention_norm.forward(&rows)?, Some(&bias))?;
            rows = block.forward.add(&(rows + seen)?)?;
        }
        self.norm.forward(&rows)
    }
}

/// The decoder, up to the scores of the next token.
pub struct Decoder {
    words: Embedding,
    distances: Tensor,
    /// The bias of the attention to the encoder's rows by distance, which FiD's own checkpoints have; shared by all blocks.
    distances_across: Option<Tensor>,
    farthest: usize,
    blocks: Vec<DecoderBlock>,
    norm: RmsNorm,
    scale: f64,
    scores: Linear,
}

struct DecoderBlock {
    attention: Attention,
    attention_norm: RmsNorm,
    across: Across,
    across_norm: RmsNorm,
    forward: Forward,
}

/// Attention to the encoder's rows.
///
/// Keys and values of these rows are never computed. The key weights turn the query into a row, and the value weights turn the attended
/// row into the output. An answer has few tokens and the input has thousands, so this is many times less work, and only the rows are
/// stored.
struct Across {
    query: Linear,
    /// `[heads, size, width]`
    key: Tensor,
    /// `[heads, width, size]`
    value: Tensor,
    output: Linear,
}

impl Across {
    fn load(sizes: &Sizes, weights: &Weights, name: &str) -> Result<Self, InputError> {
        let Attention { query, key, value, output, heads, size, .. } = sizes.attention(weights, name)?;
        let split = |linear: &Linear| linear.weight().reshape((heads, size, sizes.width));
        let parts = || Ok((split(&key)?, split(&value)?.transpose(1, 2)?.contiguous()?));
        let (key, value) = parts().map_err(|error: candle_core::Error| weights.wrong(&error.to_string()))?;
        Ok(Across { query, key, value, output })
    }

    /// The output for one row, and the attention of each head to `read`: `[heads, tokens]`, as `bias` is.
    fn forward(
        &self,
        row: &Tensor,
        read: &Tensor,
        bias: Option<&Tensor>,
    ) -> candle_core::Result<(Tensor, Tensor)> {
        let (heads, size, width) = self.key.dims3()?;
        let query = self.query.forward(row)?.reshape((heads, 1, size))?;
        let query = query.matmul(&self.key)?.reshape((heads, width))?;
        let mut scores = query.matmul(&read.t()?)?;
        if let Some(bias) = bias {
            scores = (scores + bias)?;
        }
        let shares = softmax_last_dim(&scores)?;
        let seen = shares.matmul(read)?.reshape((heads, 1, width))?;
        let seen = seen.matmul(&self.value)?.reshape((1, heads * size))?;
        Ok((self.output.forward(&seen)?, shares))
    }
}

/// The state of an answer being written.
pub struct State {
    read: Tensor,
    /// Where the passage that is first in the list begins in `read`, and its number of tokens.
    leading: (usize, usize),
    past: Vec<Past>,
    written: usize,
    /// The attention of the first answer token to the input tokens, averaged over all heads and layers.
    pub first: Vec<f32>,
}

impl Decoder {
    pub fn load(config: &Config, weights: &Weights, words: &Embedding) -> Result<Self, InputError> {
        let sizes = Sizes::read(config)?;
        let own_count = config.has("num_decoder_layers");
        let count = config.size(&[if own_count { "num_decoder_layers" } else { "num_layers" }])?;
        let block = |place: &str| {
            Ok(DecoderBlock {
                attention: sizes.attention(weights, &format!("{place}.0.SelfAttention"))?,
                attention_norm: sizes.norm(weights, &format!("{place}.0.layer_norm"))?,
                across: Across::load(&sizes, weights, &format!("{place}.1.EncDecAttention"))?,
                across_norm: sizes.norm(weights, &format!("{place}.1.layer_norm"))?,
                forward: Forward::load(&sizes, weights, &format!("{place}.2"))?,
            })
        };
        // Of the T5 that FiD's own code was written for; later versions have no such table.
        let across = "decoder.block.0.layer.1.EncDecAttention.relative_attention_bias.weight";
        let distances_across = match weights.has(across) {
            true => Some(weights.get(across, &[sizes.buckets, sizes.heads])?),
            false => None,
        };
        // T5 ties the embeddings to the scores and rescales them; later versions have separate tables. `transformers` 5
        // has a separate entry for the rescaling.
        let tied = config.switch("tie_word_embeddings").unwrap_or(true);
        let scaled = config.switch("scale_decoder_outputs").unwrap_or(tied);
        let scores = if weights.has("lm_head.weight") || !tied {
            weights.linear_without_bias("lm_head", sizes.width, sizes.vocabulary)?
        } else {
            Linear::new(words.embeddings().clone(), None)
        };
        Ok(Decoder {
            words: words.clone(),
            distances: sizes.distances(weights, "decoder")?,
            distances_across,
            farthest: sizes.farthest,
            blocks: sizes.blocks(weights, ("decoder", count), block)?,
            norm: sizes.norm(weights, "decoder.final_layer_norm")?,
            scale: if scaled { 1.0 / (sizes.width as f64).sqrt() } else { 1.0 },
            scores,
        })
    }

    /// Starts an answer from the encoder's rows, `[tokens, width]`. `leading` says where the first passage begins, and its length.
    pub fn begin(&self, read: Tensor, leading: (usize, usize)) -> State {
        let past = self.blocks.iter().map(|_| Past::default()).collect();
        State { read, leading, past, written: 0, first: Vec::new() }
    }

    /// The bias of the newest token for the encoder's rows. FiD pads every passage to the same length, which is longer than an answer, so
    /// only tokens of the first passage are before the newest token; all others share one bucket. At the first token all do, which
    /// changes nothing.
    fn across(&self, state: &State) -> candle_core::Result<Option<Tensor>> {
        let Some(table) = self.distances_across.as_ref().filter(|_| state.written > 1) else {
            return Ok(None);
        };
        let (from, tokens) = state.leading;
        let place = |at: usize| if (from..from + tokens).contains(&at) { at - from } else { usize::MAX };
        let places = (0..state.read.dim(0)?).map(place);
        bias_towards(table, state.written - 1, places, self.farthest).map(Some)
    }

    /// The scores of the next token after this one.
    pub fn next(&self, state: &mut State, token: u32) -> candle_core::Result<Vec<f32>> {
        state.written += 1;
        let mut row = self.words.forward(&Tensor::new(&[token], &Device::Cpu)?)?;
        let bias = causal_bias(&self.distances, state.written, self.farthest)?;
        let across = self.across(state)?;
        let mut shares = Vec::new();
        for (block, past) in self.blocks.iter().zip(&mut state.past) {
            let seen = block.attention.step(&block.attention_norm.forward(&row)?, past, &bias)?;
            row = (row + seen)?;
            let (seen, share) =
                block.across.forward(&block.across_norm.forward(&row)?, &state.read, across.as_ref())?;
            row = block.forward.add(&(row + seen)?)?;
            if state.written == 1 {
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

/// A whole T5 for fusion in decoder: sequences are encoded separately, and the decoder attends to all of them.
pub struct Fusion {
    encoder: Encoder,
    decoder: Decoder,
}

/// One encoded sequence.
pub struct Part(Tensor);

/// An answer being written from several parts.
pub struct Writing {
    state: State,
    tokens: Vec<usize>,
}

fn network_error(error: candle_core::Error) -> EncodeError {
    ModelError::network(error).into()
}

impl Fusion {
    /// Builds the network, from weights named as in `transformers` or in FiD's own code.
    ///
    /// # Errors
    /// A tensor is missing or has another shape than configured.
    pub fn load(config: &Config, mut weights: Weights) -> Result<Self, InputError> {
        on_one_thread();
        // FiD's code wraps the encoder, and each of its blocks.
        weights.rename(|name| {
            name.replace("encoder.encoder.", "encoder.").replace(".module.layer.", ".layer.")
        })?;
        let encoder = Encoder::load(config, &mut weights)?;
        let decoder = Decoder::load(config, &weights, encoder.words())?;
        Ok(Fusion { encoder, decoder })
    }

    /// Encodes one sequence.
    ///
    /// # Errors
    /// A token number is out of range.
    pub fn encode(&self, ids: &[u32]) -> Result<Part, EncodeError> {
        self.encoder.rows(ids, &[]).map(Part).map_err(network_error)
    }

    /// Whether the first passage of a list is attended to differently, so that the order counts.
    pub fn has_bias_across(&self) -> bool {
        self.decoder.distances_across.is_some()
    }

    /// Starts an answer from these parts; `first` is the index of the one that is first in its list.
    ///
    /// # Errors
    /// `parts` is empty.
    pub fn begin(&self, parts: &[&Part], first: usize) -> Result<Writing, EncodeError> {
        let rows: Vec<&Tensor> = parts.iter().map(|part| &part.0).collect();
        let tokens: Vec<usize> = parts.iter().map(|part| part.tokens()).collect();
        let leading = (tokens.iter().take(first).sum(), tokens.get(first).copied().unwrap_or_default());
        let state = self.decoder.begin(Tensor::cat(&rows, 0).map_err(network_error)?, leading);
        Ok(Writing { state, tokens })
    }

    /// The score of every token as the next one.
    ///
    /// # Errors
    /// The token is out of range.
    pub fn next(&self, writing: &mut Writing, token: u32) -> Result<Vec<f32>, EncodeError> {
        self.decoder.next(&mut writing.state, token).map_err(network_error)
    }
}

impl Part {
    /// The number of tokens.
    pub fn tokens(&self) -> usize {
        self.0.dims().first().copied().unwrap_or_default()
    }

    /// The number of floats.
    pub fn numbers(&self) -> usize {
        self.0.elem_count()
    }
}

impl Writing {
    /// The share of each part in the first token's attention, averaged over all heads and layers; the sum is 1. Empty before that token.
    pub fn shares(&self) -> Vec<f64> {
        let mut first = self.state.first.iter().map(|share| f64::from(*share));
        self.tokens.iter().map(|tokens| first.by_ref().take(*tokens).sum()).collect()
    }
}
