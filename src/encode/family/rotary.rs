//! Networks with rotary positions: ModernBERT, NomicBERT, GTE (arctic-embed v2), and the decoders Qwen3 and Gemma 3 as encoders.
//!
//! They share one layer: attention, then a gated feed-forward network. They differ in where norms stand (before a part, after it, or
//! after its sum with the input), in how tensors are named and packed, and in which tokens a token attends to.

use candle_core::{DType, Device, Tensor};
use candle_nn::ops::softmax_last_dim;
use candle_nn::rotary_emb::rope;
use candle_nn::{Embedding, LayerNorm, Linear, Module};

use super::checkpoint::{Config, Weights};
use super::layer::{Activation, TokenNetwork, UnknownActivation};
use crate::input::InputError;

/// The tensor names of a layer in one family; an empty name stands for a part that the family lacks.
struct Names {
    /// The layers, such as `layers`.
    layers: &'static str,
    /// Query, key and value in one tensor.
    packed: &'static str,
    output: &'static str,
    /// The norm before attention, after it, and after its sum with the input.
    attention_norms: [&'static str; 3],
    /// The activated half and the other half of the feed-forward network: one tensor for both if the names are equal.
    gate: &'static str,
    up: &'static str,
    /// Whether the activated half comes first in a tensor for both.
    gate_first: bool,
    down: &'static str,
    /// The norms of the feed-forward network, as those of attention.
    wide_norms: [&'static str; 3],
}

const MODERN: Names = Names {
    layers: "layers",
    packed: "attn.Wqkv",
    output: "attn.Wo",
    attention_norms: ["attn_norm", "", ""],
    gate: "mlp.Wi",
    up: "mlp.Wi",
    gate_first: true,
    down: "mlp.Wo",
    wide_norms: ["mlp_norm", "", ""],
};
const NOMIC: Names = Names {
    layers: "encoder.layers",
    packed: "attn.Wqkv",
    output: "attn.out_proj",
    attention_norms: ["", "", "norm1"],
    gate: "mlp.fc12",
    up: "mlp.fc11",
    gate_first: false,
    down: "mlp.fc2",
    wide_norms: ["", "", "norm2"],
};
const GTE: Names = Names {
    layers: "encoder.layer",
    packed: "attention.qkv_proj",
    output: "attention.o_proj",
    attention_norms: ["", "", "attn_ln"],
    gate: "mlp.up_gate_proj",
    up: "mlp.up_gate_proj",
    gate_first: false,
    down: "mlp.down_proj",
    wide_norms: ["", "", "mlp_ln"],
};
const DECODER: Names = Names {
    layers: "layers",
    packed: "",
    output: "self_attn.o_proj",
    attention_norms: ["input_layernorm", "", ""],
    gate: "mlp.gate_proj",
    up: "mlp.up_proj",
    gate_first: true,
    down: "mlp.down_proj",
    wide_norms: ["post_attention_layernorm", "", ""],
};
const GEMMA: Names = Names {
    attention_norms: ["input_layernorm", "post_attention_layernorm", ""],
    wide_norms: ["pre_feedforward_layernorm", "post_feedforward_layernorm", ""],
    ..DECODER
};

/// How a family's norms are computed.
#[derive(Clone, Copy, PartialEq)]
enum NormKind {
    /// Layer norm; its bias may be missing.
    Layer,
    /// Root mean square.
    Rms,
    /// Root mean square, with weights stored as their distance from 1.
    RmsFromOne,
}

/// The network.
pub struct Rotary {
    words: Embedding,
    /// What word rows are multiplied by.
    scale: f64,
    segments: Option<Embedding>,
    first_norm: Option<LayerNorm>,
    layers: Vec<Block>,
    last_norm: Option<LayerNorm>,
    /// The bases of rotation of layers that see all tokens and of those that see near ones.
    bases: [f64; 2],
    /// How far layers of near tokens see.
    reach: usize,
    /// Whether a token sees only those before it.
    causal: bool,
}

struct Block {
    near: bool,
    query: Linear,
    key: Linear,
    value: Linear,
    output: Linear,
    query_norm: Option<LayerNorm>,
    key_norm: Option<LayerNorm>,
    heads: usize,
    /// Heads of keys and values; several heads of queries share one.
    shared: usize,
    size: usize,
    scale: f64,
    attention_norms: [Option<LayerNorm>; 3],
    gate: Linear,
    up: Linear,
    down: Linear,
    activation: Activation,
    wide_norms: [Option<LayerNorm>; 3],
}

/// The model types that this file reads.
pub const TYPES: [&str; 6] = ["modernbert", "nomic_bert", "gte", "new", "qwen3", "gemma3_text"];

/// The most numbers of an attention matrix that are held for all heads at once; with more, one head follows another.
const ALL_HEADS: usize = 1 << 24;

impl Rotary {
    pub fn load(config: &Config, weights: &mut Weights) -> Result<Self, InputError> {
        let kind = config.model_type()?;
        let width = config.width()?;
        if config.has("rope_scaling") {
            return Err(config.wrong("`rope_scaling`: scaled rotary positions are not supported"));
        }
        let eps = config.number(&["norm_eps", "layer_norm_eps", "layer_norm_epsilon", "rms_norm_eps"], 1e-12);
        let (names, norm, words) = match kind {
            "modernbert" => (&MODERN, NormKind::Layer, "embeddings.tok_embeddings"),
            "nomic_bert" => (&NOMIC, NormKind::Layer, "embeddings.word_embeddings"),
            "gte" | "new" => (&GTE, NormKind::Layer, "embeddings.word_embeddings"),
            "qwen3" => (&DECODER, NormKind::Rms, "embed_tokens"),
            _ => (&GEMMA, NormKind::RmsFromOne, "embed_tokens"),
        };
        weights.below(&format!("{words}.weight"))?;
        let norms = Norms { kind: norm, eps, width };
        let kinds = config.size(&["type_vocab_size"]).unwrap_or(0);
        let segments = matches!(kind, "nomic_bert" | "gte" | "new") && kinds > 0;
        let segments = segments.then(|| weights.table("embeddings.token_type_embeddings", kinds, width));
        let (first_norm, last_norm) = match kind {
            "modernbert" => ("embeddings.norm", "final_norm"),
            "nomic_bert" => ("emb_ln", ""),
            "gte" | "new" => ("embeddings.LayerNorm", ""),
            _ => ("", "norm"),
        };
        let bases = match kind {
            "modernbert" => [
                config.rotation(Some("full_attention"), "global_rope_theta", 160_000.0)?,
                config.rotation(Some("sliding_attention"), "local_rope_theta", 10_000.0)?,
            ],
            "gemma3_text" => [
                config.rotation(Some("full_attention"), "rope_theta", 1_000_000.0)?,
                config.rotation(Some("sliding_attention"), "rope_local_base_freq", 10_000.0)?,
            ],
            "nomic_bert" => [config.rotation(None, "rotary_emb_base", 1_000.0)?; 2],
            "qwen3" => [config.rotation(None, "rope_theta", 1_000_000.0)?; 2],
            _ => [config.rotation(None, "rope_theta", 160_000.0)?; 2],
        };
        // Both files state the whole window, of which one half lies on either side.
        let reach = config.size(&["local_attention", "sliding_window"]).unwrap_or(0) / 2;
        let causal = match kind {
            "qwen3" => true,
            "gemma3_text" => !config.is("use_bidirectional_attention", false),
            _ => false,
        };
        if causal && kind == "gemma3_text" {
            return Err(config.wrong(
                "`use_bidirectional_attention` is not true, so this Gemma writes text and is no encoder; choose embeddinggemma",
            ));
        }
        Ok(Rotary {
            words: weights.table(words, config.vocabulary()?, width)?,
            scale: if kind == "gemma3_text" { (width as f64).sqrt() } else { 1.0 },
            segments: segments.transpose()?,
            first_norm: norms.get(weights, first_norm)?,
            layers: (0..config.layers()?)
                .map(|i| Block::load(config, weights, names, &norms, i))
                .collect::<Result<_, _>>()?,
            last_norm: norms.get(weights, last_norm)?,
            bases,
            reach,
            causal,
        })
    }
}

/// How norms are read.
struct Norms {
    kind: NormKind,
    eps: f64,
    width: usize,
}

impl Norms {
    fn get(&self, weights: &Weights, name: &str) -> Result<Option<LayerNorm>, InputError> {
        self.of(weights, name, self.width)
    }

    fn of(&self, weights: &Weights, name: &str, width: usize) -> Result<Option<LayerNorm>, InputError> {
        if name.is_empty() {
            return Ok(None);
        }
        let weight = weights.get(&format!("{name}.weight"), &[width])?;
        let bias = format!("{name}.bias");
        Ok(Some(match self.kind {
            NormKind::Layer if weights.has(&bias) => {
                LayerNorm::new(weight, weights.get(&bias, &[width])?, self.eps)
            }
            NormKind::Layer => LayerNorm::new_no_bias(weight, self.eps),
            NormKind::Rms => LayerNorm::rms_norm(weight, self.eps),
            NormKind::RmsFromOne => {
                let weight = (weight + 1.0).map_err(|error| weights.wrong(&error.to_string()))?;
                LayerNorm::rms_norm(weight, self.eps)
            }
        }))
    }
}

impl Block {
    fn load(
        config: &Config,
        weights: &Weights,
        names: &Names,
        norms: &Norms,
        i: usize,
    ) -> Result<Self, InputError> {
        let width = config.width()?;
        let at = |name: &str| {
            if name.is_empty() { String::new() } else { format!("{}.{i}.{name}", names.layers) }
        };
        let heads = config.size(&["num_attention_heads", "n_head"])?;
        let size = config.size(&["head_dim"]).ok();
        let size = match size {
            Some(size) if size > 0 => size,
            _ => config.heads()?.1,
        };
        let shared = config.size(&["num_key_value_heads"]).unwrap_or(heads);
        if shared == 0 || !heads.is_multiple_of(shared) || !size.is_multiple_of(2) {
            return Err(config.wrong(&format!(
                "{heads} heads of {size} numbers cannot share {shared} heads of keys and values"
            )));
        }
        let (query, key, value) = if names.packed.is_empty() {
            let part = |name: &str, heads: usize| {
                weights.linear_of(&at(&format!("self_attn.{name}_proj")), width, heads * size)
            };
            (part("q", heads)?, part("k", shared)?, part("v", shared)?)
        } else {
            let mut three = weights.packed(&at(names.packed), width, heads * size, 3)?.into_iter();
            match (three.next(), three.next(), three.next()) {
                (Some(query), Some(key), Some(value)) => (query, key, value),
                _ => return Err(config.wrong("query, key and value are not in one tensor")),
            }
        };
        let wide = config.size(&["intermediate_size", "n_inner"])?;
        let (gate, up) = if names.gate == names.up {
            let mut halves = weights.packed(&at(names.gate), width, wide, 2)?.into_iter();
            match (halves.next(), halves.next()) {
                (Some(first), Some(second)) if names.gate_first => (first, second),
                (Some(first), Some(second)) => (second, first),
                _ => return Err(config.wrong("the feed-forward network is not in one tensor")),
            }
        } else {
            (weights.linear_of(&at(names.gate), width, wide)?, weights.linear_of(&at(names.up), width, wide)?)
        };
        let normed = names.packed.is_empty();
        let head_norm = |name: &str| norms.of(weights, &if normed { at(name) } else { String::new() }, size);
        let three = |names: &[&str; 3], skip_first: bool| -> Result<[Option<LayerNorm>; 3], InputError> {
            let first = if skip_first { String::new() } else { at(names[0]) };
            Ok([
                norms.get(weights, &first)?,
                norms.get(weights, &at(names[1]))?,
                norms.get(weights, &at(names[2]))?,
            ])
        };
        // ModernBERT's embeddings are normalised already, so its first layer does not do so again.
        let skip = config.model_type()? == "modernbert" && i == 0;
        let scale = config.number(&["query_pre_attn_scalar"], size as f64);
        // NomicBERT's name for the network is that of SiLU here.
        let activation = config.word(&["hidden_activation", "hidden_act", "activation_function"]);
        let activation = match activation.unwrap_or("gelu") {
            "swiglu" => "silu",
            "geglu" => "gelu",
            other => other,
        };
        Ok(Block {
            near: config.is_near(i)?,
            query,
            key,
            value,
            output: weights.linear_of(&at(names.output), heads * size, width)?,
            query_norm: head_norm("self_attn.q_norm")?,
            key_norm: head_norm("self_attn.k_norm")?,
            heads,
            shared,
            size,
            scale: 1.0 / scale.sqrt(),
            attention_norms: three(&names.attention_norms, skip)?,
            gate,
            up,
            down: weights.linear_of(&at(names.down), wide, width)?,
            activation: activation
                .parse()
                .map_err(|error: UnknownActivation| config.wrong(&error.to_string()))?,
            wide_norms: three(&names.wide_norms, false)?,
        })
    }

    fn forward(&self, rows: &Tensor, turn: &Turn, seen: Option<&Tensor>) -> candle_core::Result<Tensor> {
        let attended = around(rows, &self.attention_norms, |rows| self.attend(rows, turn, seen))?;
        around(&attended, &self.wide_norms, |rows| {
            let gate = self.activation.forward(&self.gate.forward(rows)?)?;
            self.down.forward(&(gate * self.up.forward(rows)?)?)
        })
    }

    fn attend(&self, rows: &Tensor, turn: &Turn, seen: Option<&Tensor>) -> candle_core::Result<Tensor> {
        let tokens = rows.dim(0)?;
        let split = |linear: &Linear, heads: usize, norm: Option<&LayerNorm>| {
            let part = linear.forward(rows)?.reshape((tokens, heads, self.size))?;
            let part = norm.map_or(Ok(part.clone()), |norm| norm.forward(&part))?;
            part.transpose(0, 1)?.contiguous()
        };
        let turned = |part: Tensor| rope(&part.unsqueeze(0)?.contiguous()?, &turn.cos, &turn.sin)?.squeeze(0);
        let query = turned(split(&self.query, self.heads, self.query_norm.as_ref())?)?;
        let key = self.repeat(turned(split(&self.key, self.shared, self.key_norm.as_ref())?)?)?;
        let value = self.repeat(split(&self.value, self.shared, None)?)?;
        let mix = |query: &Tensor, key: &Tensor, value: &Tensor| {
            let mut scores = (query.matmul(&key.t()?)? * self.scale)?;
            if let Some(seen) = seen {
                scores = scores.broadcast_add(seen)?;
            }
            let mut weights = softmax_last_dim(&scores)?;
            if let Some(seen) = seen {
                // A token that sees nothing mixes nothing.
                weights = weights.broadcast_mul(&seen.max_keepdim(1)?.ge(-1f32)?.to_dtype(DType::F32)?)?;
            }
            weights.matmul(value)
        };
        let mixed = if tokens * tokens * self.heads <= ALL_HEADS {
            mix(&query, &key, &value)?
        } else {
            let one = |i: usize| mix(&query.narrow(0, i, 1)?, &key.narrow(0, i, 1)?, &value.narrow(0, i, 1)?);
            Tensor::cat(&(0..self.heads).map(one).collect::<candle_core::Result<Vec<_>>>()?, 0)?
        };
        self.output.forward(&mixed.transpose(0, 1)?.reshape((tokens, self.heads * self.size))?)
    }

    /// Gives every head of queries its head of keys or values.
    fn repeat(&self, part: Tensor) -> candle_core::Result<Tensor> {
        let times = self.heads / self.shared;
        if times == 1 {
            return Ok(part);
        }
        let (heads, tokens, size) = part.dims3()?;
        part.unsqueeze(1)?.expand((heads, times, tokens, size))?.reshape((heads * times, tokens, size))
    }
}

/// Adds the output of a part to its input, with the norms before it, after it and after the sum.
fn around(
    rows: &Tensor,
    [before, after, sum]: &[Option<LayerNorm>; 3],
    part: impl Fn(&Tensor) -> candle_core::Result<Tensor>,
) -> candle_core::Result<Tensor> {
    let normed = |norm: &Option<LayerNorm>, rows: Tensor| {
        norm.as_ref().map_or(Ok(rows.clone()), |norm| norm.forward(&rows))
    };
    let output = normed(after, part(&normed(before, rows.clone())?)?)?;
    normed(sum, (rows + output)?)
}

/// The rotations of all positions, `[tokens, size / 2]`.
struct Turn {
    cos: Tensor,
    sin: Tensor,
}

impl Turn {
    fn of(tokens: usize, size: usize, base: f64) -> candle_core::Result<Self> {
        // In single precision, as in PyTorch.
        let speeds: Vec<f32> =
            (0..size / 2).map(|i| 1.0 / (base as f32).powf(2.0 * i as f32 / size as f32)).collect();
        let angles: Vec<f32> =
            (0..tokens).flat_map(|place| speeds.iter().map(move |speed| place as f32 * speed)).collect();
        let angles = Tensor::from_vec(angles, (tokens, size / 2), &Device::Cpu)?;
        Ok(Turn { cos: angles.cos()?, sin: angles.sin()? })
    }
}

/// What is added to the scores of `[tokens, tokens]`: 0 for a token that is seen, a very low number for another; `None` if all are seen. Tokens from
/// `end` on are seen by none.
fn seen(
    tokens: usize,
    reach: Option<usize>,
    causal: bool,
    end: usize,
) -> candle_core::Result<Option<Tensor>> {
    if !causal && end >= tokens && reach.is_none_or(|reach| reach + 1 >= tokens) {
        return Ok(None);
    }
    let sees = |from: usize, to: usize| {
        to < end && (!causal || to <= from) && reach.is_none_or(|reach| from.abs_diff(to) <= reach)
    };
    // Finite, so that a token that sees nothing has numbers.
    let mask: Vec<f32> = (0..tokens)
        .flat_map(|from| (0..tokens).map(move |to| (from, to)))
        .map(|(from, to)| if sees(from, to) { 0.0 } else { -1e30 })
        .collect();
    Tensor::from_vec(mask, (tokens, tokens), &Device::Cpu).map(Some)
}

impl TokenNetwork for Rotary {
    fn rows(&self, ids: &[u32], kinds: &[u32]) -> candle_core::Result<Tensor> {
        self.compute(ids, kinds, ids.len())
    }

    fn rows_seeing(&self, ids: &[u32], seen: usize) -> candle_core::Result<Tensor> {
        self.compute(ids, &[], seen)
    }
}

impl Rotary {
    fn compute(&self, ids: &[u32], kinds: &[u32], end: usize) -> candle_core::Result<Tensor> {
        let mut rows = (self.words.forward(&Tensor::new(ids, &Device::Cpu)?)? * self.scale)?;
        if let Some(segments) = &self.segments {
            let last = segments.embeddings().dim(0)? as u32 - 1;
            let kinds: Vec<u32> =
                (0..ids.len()).map(|i| kinds.get(i).copied().unwrap_or(0).min(last)).collect();
            rows = (rows + segments.forward(&Tensor::new(kinds, &Device::Cpu)?)?)?;
        }
        if let Some(norm) = &self.first_norm {
            rows = norm.forward(&rows)?;
        }
        let (tokens, size) = (ids.len(), self.layers.first().map_or(2, |layer| layer.size));
        let turns = [Turn::of(tokens, size, self.bases[0])?, Turn::of(tokens, size, self.bases[1])?];
        let masks =
            [seen(tokens, None, self.causal, end)?, seen(tokens, Some(self.reach), self.causal, end)?];
        for layer in &self.layers {
            let which = usize::from(layer.near);
            rows = layer.forward(&rows, &turns[which], masks[which].as_ref())?;
        }
        self.last_norm.as_ref().map_or(Ok(rows.clone()), |norm| norm.forward(&rows))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_token_sees_its_neighbours_or_what_came_before() {
        let rows = |mask: Option<Tensor>| -> Vec<Vec<bool>> {
            let rows: Vec<Vec<f32>> = mask.unwrap().to_vec2().unwrap();
            rows.into_iter().map(|row| row.into_iter().map(|x| x == 0.0).collect()).collect()
        };
        let (t, f) = (true, false);
        assert_eq!(rows(seen(4, Some(1), false, 4).unwrap())[1], [t, t, t, f]);
        assert_eq!(rows(seen(4, None, true, 4).unwrap())[1], [t, t, f, f]);
        assert_eq!(rows(seen(4, Some(1), true, 4).unwrap())[3], [f, f, t, t]);
        assert_eq!(rows(seen(4, None, false, 2).unwrap())[3], [t, t, f, f]);
        assert!(seen(2, Some(1), false, 2).unwrap().is_none() && seen(9, None, false, 9).unwrap().is_none());
    }

    #[test]
    fn positions_turn_pairs_of_numbers_by_their_own_speed() {
        let turn = Turn::of(3, 4, 100.0).unwrap();
        let sin: Vec<Vec<f32>> = turn.sin.to_vec2().unwrap();
        // Speeds 1 and 1/√100.
        assert!((sin[2][0] - 2f32.sin()).abs() < 1e-6 && (sin[2][1] - 0.2f32.sin()).abs() < 1e-6);
    }
}
