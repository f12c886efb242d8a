//! BERT and its relatives. RoBERTa shifts positions and has one segment; DistilBERT has no segments; MPNet adds a bias that depends on distance;
//! DeBERTa (versions 2 and 3) scores content and distance separately in its attention.

use candle_core::{Device, Tensor};
use candle_nn::ops::softmax_last_dim;
use candle_nn::{Embedding, LayerNorm, Linear, Module};

use super::checkpoint::{Config, Weights};
use super::layer::{FeedForward, Layer, LayerNames, TokenNetwork, distance_bias, hidden_after};
use crate::input::InputError;

const BERT: LayerNames = LayerNames {
    query: "attention.self.query",
    key: "attention.self.key",
    value: "attention.self.value",
    output: "attention.output.dense",
    attention_norm: "attention.output.LayerNorm",
    up: "intermediate.dense",
    down: "output.dense",
    norm: "output.LayerNorm",
};

/// The network.
pub struct Bert {
    words: Embedding,
    positions: Embedding,
    /// The row of the first segment, which a single text uses.
    segment: Tensor,
    /// The rows of all segments, for a pair of texts.
    segments: Embedding,
    norm: LayerNorm,
    layers: Vec<Layer>,
    /// The padding token, if positions are numbered from its number on.
    padding: Option<u32>,
    heads: usize,
}

impl Bert {
    pub fn load(config: &Config, weights: &mut Weights, roberta: bool) -> Result<Self, InputError> {
        if config.word(&["position_embedding_type"]).is_some_and(|kind| kind != "absolute") {
            return Err(config.wrong("`position_embedding_type` is not absolute, which is not supported"));
        }
        weights.below("embeddings.word_embeddings.weight")?;
        let (width, eps) = (config.width()?, config.number(&["layer_norm_eps"], 1e-12));
        let table =
            |name: &str, rows: usize| weights.table(&format!("embeddings.{name}_embeddings"), rows, width);
        let kinds = config.size(&["type_vocab_size"])?;
        let segments = table("token_type", kinds)?;
        let first = segments.embeddings().get(0).map_err(|error| config.wrong(&error.to_string()))?;
        Ok(Bert {
            words: table("word", config.size(&["vocab_size"])?)?,
            positions: table("position", config.size(&["max_position_embeddings"])?)?,
            segment: first,
            segments,
            norm: weights.norm("embeddings.LayerNorm", width, eps)?,
            layers: Layer::all(config, weights, "encoder.layer", &BERT, eps)?,
            padding: roberta.then(|| config.padding()),
            heads: config.heads()?.0,
        })
    }

    fn compute(&self, ids: &[u32], kinds: &[u32], bias: Option<&Tensor>) -> candle_core::Result<Tensor> {
        let words = self.words.forward(&Tensor::new(ids, &Device::Cpu)?)?;
        let numbers = positions(ids, self.padding);
        let positions = self.positions.forward(&Tensor::new(numbers.as_slice(), &Device::Cpu)?)?;
        let sum = (words + positions)?;
        let last = self.segments.embeddings().dim(0)? as u32 - 1;
        let sum = if kinds.is_empty() || last == 0 {
            sum.broadcast_add(&self.segment)?
        } else {
            let kinds: Vec<u32> = kinds.iter().map(|kind| last.min(*kind)).collect();
            (sum + self.segments.forward(&Tensor::new(kinds, &Device::Cpu)?)?)?
        };
        let mut rows = self.norm.forward(&sum)?;
        for layer in &self.layers {
            rows = layer.forward(&rows, bias)?;
        }
        Ok(rows)
    }
}

impl TokenNetwork for Bert {
    fn rows(&self, ids: &[u32], kinds: &[u32]) -> candle_core::Result<Tensor> {
        self.compute(ids, kinds, None)
    }

    fn rows_seeing(&self, ids: &[u32], seen: usize) -> candle_core::Result<Tensor> {
        let bias = if seen < ids.len() { Some(hidden_after(self.heads, ids.len(), seen)?) } else { None };
        self.compute(ids, &[], bias.as_ref())
    }
}

/// The positions of the tokens: from 0, or from the number after the padding token's; a padding token in the text keeps its own number.
pub fn positions(ids: &[u32], padding: Option<u32>) -> Vec<u32> {
    let Some(padding) = padding else { return (0..ids.len() as u32).collect() };
    let mut last = padding;
    let position = |id: &u32| {
        if *id == padding {
            return padding;
        }
        last += 1;
        last
    };
    ids.iter().map(position).collect()
}

const DISTILBERT: LayerNames = LayerNames {
    query: "attention.q_lin",
    key: "attention.k_lin",
    value: "attention.v_lin",
    output: "attention.out_lin",
    attention_norm: "sa_layer_norm",
    up: "ffn.lin1",
    down: "ffn.lin2",
    norm: "output_layer_norm",
};

/// DistilBERT's configuration has no epsilon.
const EPS: f64 = 1e-12;

/// The network.
pub struct DistilBert {
    words: Embedding,
    positions: Embedding,
    norm: LayerNorm,
    layers: Vec<Layer>,
}

impl DistilBert {
    pub fn load(config: &Config, weights: &mut Weights) -> Result<Self, InputError> {
        weights.below("embeddings.word_embeddings.weight")?;
        let width = config.width()?;
        let table =
            |name: &str, rows: usize| weights.table(&format!("embeddings.{name}_embeddings"), rows, width);
        Ok(DistilBert {
            words: table("word", config.size(&["vocab_size"])?)?,
            positions: table("position", config.size(&["max_position_embeddings"])?)?,
            norm: weights.norm("embeddings.LayerNorm", width, EPS)?,
            layers: Layer::all(config, weights, "transformer.layer", &DISTILBERT, EPS)?,
        })
    }
}

impl TokenNetwork for DistilBert {
    fn rows(&self, ids: &[u32], _: &[u32]) -> candle_core::Result<Tensor> {
        let words = self.words.forward(&Tensor::new(ids, &Device::Cpu)?)?;
        let numbers = positions(ids, None);
        let positions = self.positions.forward(&Tensor::new(numbers.as_slice(), &Device::Cpu)?)?;
        let mut rows = self.norm.forward(&(words + positions)?)?;
        for layer in &self.layers {
            rows = layer.forward(&rows, None)?;
        }
        Ok(rows)
    }
}

const MPNET: LayerNames = LayerNames {
    query: "attention.attn.q",
    key: "attention.attn.k",
    value: "attention.attn.v",
    output: "attention.attn.o",
    attention_norm: "attention.LayerNorm",
    up: "intermediate.dense",
    down: "output.dense",
    norm: "output.LayerNorm",
};

/// Larger distances share the last bucket.
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
    pub fn load(config: &Config, weights: &mut Weights) -> Result<Self, InputError> {
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
            layers: Layer::all(config, weights, "encoder.layer", &MPNET, eps)?,
            padding: config.padding(),
        })
    }
}

impl TokenNetwork for MpNet {
    fn rows(&self, ids: &[u32], _: &[u32]) -> candle_core::Result<Tensor> {
        let words = self.words.forward(&Tensor::new(ids, &Device::Cpu)?)?;
        let numbers = positions(ids, Some(self.padding));
        let positions = self.positions.forward(&Tensor::new(numbers.as_slice(), &Device::Cpu)?)?;
        let mut rows = self.norm.forward(&(words + positions)?)?;
        let bias = distance_bias(&self.distances, ids.len(), FARTHEST)?;
        for layer in &self.layers {
            rows = layer.forward(&rows, Some(&bias))?;
        }
        Ok(rows)
    }
}

const NAMES: LayerNames = LayerNames {
    query: "attention.self.query_proj",
    key: "attention.self.key_proj",
    value: "attention.self.value_proj",
    output: "attention.output.dense",
    attention_norm: "attention.output.LayerNorm",
    up: "intermediate.dense",
    down: "output.dense",
    norm: "output.LayerNorm",
};

/// The network.
pub struct Deberta {
    words: Embedding,
    positions: Option<Embedding>,
    segments: Option<Embedding>,
    norm: LayerNorm,
    layers: Vec<DisentangledLayer>,
    distances: Distances,
}

/// Maps distances between tokens to rows of the distance table.
struct Distances {
    /// The number of rows for each direction.
    span: usize,
    /// Distances up to half of this number have one row each; farther ones share rows by their logarithm. `None` if every distance has
    /// its own row.
    buckets: Option<usize>,
    farthest: usize,
}

struct DisentangledLayer {
    query: Linear,
    key: Linear,
    value: Linear,
    output: Linear,
    /// Keys of all distances, `[heads, size, 2 · span]`, divided by the scale.
    distance_keys: Option<Tensor>,
    /// Queries of all distances, in the same shape.
    distance_queries: Option<Tensor>,
    heads: usize,
    size: usize,
    scale: f64,
    rest: FeedForward,
}

impl Deberta {
    pub fn load(config: &Config, weights: &mut Weights) -> Result<Self, InputError> {
        for (name, why) in [
            ("conv_kernel_size", "a convolution after the first layer"),
            ("embedding_size", "embeddings that are not as wide as its rows"),
            ("attention_head_size", "heads whose width is not that of a row divided by the number of heads"),
        ] {
            let usual = match name {
                "embedding_size" => config.width()?,
                "attention_head_size" => config.heads()?.1,
                _ => 0,
            };
            if config.size(&[name]).is_ok_and(|size| size != usual) {
                return Err(config.wrong(&format!("`{name}`: the model has {why}, which is not supported")));
            }
        }
        weights.below("embeddings.word_embeddings.weight")?;
        let (width, eps) = (config.width()?, config.number(&["layer_norm_eps"], 1e-7));
        let table =
            |name: &str, rows: usize| weights.table(&format!("embeddings.{name}_embeddings"), rows, width);
        let farthest = match config.size(&["max_relative_positions"]) {
            Ok(farthest) if farthest > 0 => farthest,
            _ => config.size(&["max_position_embeddings"])?,
        };
        let buckets = config.size(&["position_buckets"]).ok().filter(|buckets| *buckets > 0);
        if buckets.is_some_and(|buckets| buckets < 2 || farthest < buckets / 2 + 2) {
            return Err(config.wrong("`position_buckets` do not fit the distances; fetch the model again"));
        }
        let distances = Distances { span: buckets.unwrap_or(farthest), buckets, farthest };
        let kinds = config.size(&["type_vocab_size"]).unwrap_or(0);
        let positions = if config.is("position_biased_input", true) {
            Some(table("position", config.size(&["max_position_embeddings"])?)?)
        } else {
            None
        };
        Ok(Deberta {
            words: table("word", config.vocabulary()?)?,
            positions,
            segments: if kinds > 0 { Some(table("token_type", kinds)?) } else { None },
            norm: weights.norm("embeddings.LayerNorm", width, eps)?,
            layers: DisentangledLayer::all(config, weights, distances.span, eps)?,
            distances,
        })
    }
}

impl TokenNetwork for Deberta {
    fn rows(&self, ids: &[u32], kinds: &[u32]) -> candle_core::Result<Tensor> {
        let mut rows = self.words.forward(&Tensor::new(ids, &Device::Cpu)?)?;
        if let Some(positions) = &self.positions {
            let places: Vec<u32> = (0..ids.len() as u32).collect();
            rows = (rows + positions.forward(&Tensor::new(places, &Device::Cpu)?)?)?;
        }
        if let Some(segments) = &self.segments {
            let last = segments.embeddings().dim(0)? as u32 - 1;
            let kinds: Vec<u32> =
                (0..ids.len()).map(|i| kinds.get(i).copied().unwrap_or(0).min(last)).collect();
            rows = (rows + segments.forward(&Tensor::new(kinds, &Device::Cpu)?)?)?;
        }
        let mut rows = self.norm.forward(&rows)?;
        let distances = self.distances.table_rows(ids.len())?;
        for layer in &self.layers {
            rows = layer.forward(&rows, &distances)?;
        }
        Ok(rows)
    }
}

impl Distances {
    /// The table row for every pair of tokens, `[tokens, tokens]`.
    fn table_rows(&self, tokens: usize) -> candle_core::Result<Tensor> {
        let rows: Vec<u32> = (0..tokens as i64)
            .flat_map(|from| (0..tokens as i64).map(move |to| self.row(from - to)))
            .collect();
        Tensor::from_vec(rows, (tokens, tokens), &Device::Cpu)
    }

    fn row(&self, distance: i64) -> u32 {
        let bucket = match self.buckets {
            Some(buckets) => bucket(distance, buckets as i64 / 2, self.farthest),
            None => distance,
        };
        let span = self.span as i64;
        (bucket + span).clamp(0, 2 * span - 1) as u32
    }
}

/// The bucket of a distance. Distances up to `middle` have a bucket each.
fn bucket(distance: i64, middle: i64, farthest: usize) -> i64 {
    let far = distance.abs();
    if far <= middle {
        return distance;
    }
    // Computed in single precision, as in PyTorch: a bucket's edge may lie exactly on a distance.
    let share = (far as f32 / middle as f32).ln() / (((farthest as f64 - 1.0) / middle as f64) as f32).ln();
    distance.signum() * ((share * (middle - 1) as f32).ceil() as i64 + middle)
}

impl DisentangledLayer {
    fn all(config: &Config, weights: &Weights, span: usize, eps: f64) -> Result<Vec<Self>, InputError> {
        let ((heads, size), width) = (config.heads()?, config.width()?);
        let kinds = config.words("pos_att_type");
        let relative = config.is("relative_attention", false);
        let attends = |kind: &str| relative && kinds.iter().any(|one| one == kind);
        let parts = 1 + ["c2p", "p2c"].into_iter().filter(|kind| kinds.iter().any(|one| one == kind)).count();
        let scale = 1.0 / ((size * parts) as f64).sqrt();
        let shared = config.is("share_att_key", false);
        let distances = if relative { Some(distance_table(config, weights, span, eps)?) } else { None };
        let layers = (0..config.layers()?).map(|i| {
            let place = format!("encoder.layer.{i}");
            let square = |name: &str| weights.linear(&format!("{place}.{name}"), width, width);
            let (query, key) = (square(NAMES.query)?, square(NAMES.key)?);
            // Independent of the text, so computed once.
            let project_distances = |kind: &str, own: &Linear, other: &str| match &distances {
                Some(distances) if attends(kind) => {
                    let linear = if shared { own.clone() } else { square(other)? };
                    let project = || -> candle_core::Result<Tensor> {
                        let rows = linear.forward(distances)?.reshape((2 * span, heads, size))?;
                        (rows.permute((1, 2, 0))?.contiguous()? * scale)?.contiguous()
                    };
                    project().map(Some).map_err(|error| config.wrong(&error.to_string()))
                }
                _ => Ok(None),
            };
            Ok(DisentangledLayer {
                distance_keys: project_distances("c2p", &key, "attention.self.pos_key_proj")?,
                distance_queries: project_distances("p2c", &query, "attention.self.pos_query_proj")?,
                query,
                key,
                value: square(NAMES.value)?,
                output: square(NAMES.output)?,
                heads,
                size,
                scale,
                rest: FeedForward::load(config, weights, &place, &NAMES, eps)?,
            })
        });
        layers.collect()
    }

    fn forward(&self, rows: &Tensor, distances: &Tensor) -> candle_core::Result<Tensor> {
        let tokens = rows.dim(0)?;
        let split = |linear: &Linear| {
            let part = linear.forward(rows)?.reshape((tokens, self.heads, self.size))?;
            part.transpose(0, 1)?.contiguous()
        };
        let (query, key, value) = (split(&self.query)?, split(&self.key)?, split(&self.value)?);
        let mut scores = (query.matmul(&key.t()?)? * self.scale)?;
        let every_head =
            |distances: &Tensor| distances.broadcast_as((self.heads, tokens, tokens))?.contiguous();
        if let Some(keys) = &self.distance_keys {
            scores = (scores + query.matmul(keys)?.gather(&every_head(distances)?, 2)?)?;
        }
        if let Some(queries) = &self.distance_queries {
            // From the key's side the distance has the opposite sign, so the rows are transposed.
            let part = key.matmul(queries)?.gather(&every_head(&distances.t()?)?, 2)?;
            scores = (scores + part.transpose(1, 2)?)?;
        }
        let mixed = softmax_last_dim(&scores.contiguous()?)?.matmul(&value)?;
        let attended =
            self.output.forward(&mixed.transpose(0, 1)?.reshape((tokens, self.heads * self.size))?)?;
        self.rest.forward(rows, &attended)
    }
}

/// The table of all distances.
fn distance_table(config: &Config, weights: &Weights, span: usize, eps: f64) -> Result<Tensor, InputError> {
    let width = config.width()?;
    let rows = weights.get("encoder.rel_embeddings.weight", &[2 * span, width])?;
    if !config.words("norm_rel_ebd").iter().any(|word| word == "layer_norm") {
        return Ok(rows);
    }
    let norm = weights.norm("encoder.LayerNorm", width, eps)?;
    norm.forward(&rows).map_err(|error| config.wrong(&error.to_string()))
}
