//! DeBERTa, versions 2 and 3: tokens attend to each other by what they are and by how far apart they stand, each on its own.

use candle_core::{Device, Result, Tensor};
use candle_nn::{Embedding, LayerNorm, Linear, Module, ops::softmax_last_dim};

use super::layer::{Names, Rest};
use super::{Config, Layers, Weights};
use crate::input::InputError;

const NAMES: Names = Names {
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
    layers: Vec<Layer>,
    distances: Distances,
}

/// How distances between tokens share the rows of their table.
struct Distances {
    /// Rows on each side.
    span: usize,
    /// Near distances have a row each up to half of these, far ones share by their logarithm; none where all have their own.
    buckets: Option<usize>,
    farthest: usize,
}

struct Layer {
    query: Linear,
    key: Linear,
    value: Linear,
    output: Linear,
    /// What a query meets at every distance, `[heads, size, 2 · span]`, divided by the scale.
    keys_of_places: Option<Tensor>,
    /// What a key meets at every distance.
    queries_of_places: Option<Tensor>,
    heads: usize,
    size: usize,
    scale: f64,
    rest: Rest,
}

impl Deberta {
    pub fn load(config: &Config, weights: &mut Weights) -> std::result::Result<Self, InputError> {
        for (name, why) in [
            ("conv_kernel_size", "a convolution after the first layer"),
            ("embedding_size", "embeddings of another width than its rows"),
            ("attention_head_size", "heads of another width than its rows share"),
        ] {
            let usual = match name {
                "embedding_size" => config.width()?,
                "attention_head_size" => config.heads()?.1,
                _ => 0,
            };
            if config.size(&[name]).is_ok_and(|size| size != usual) {
                return Err(
                    config.wrong(&format!("`{name}`: the model has {why}, which nothing here can read"))
                );
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
            return Err(config.wrong("`position_buckets` do not fit the distances; fetch the model anew"));
        }
        let distances = Distances { span: buckets.unwrap_or(farthest), buckets, farthest };
        let kinds = config.size(&["type_vocab_size"]).unwrap_or(0);
        let positions = match config.is("position_biased_input", true) {
            true => Some(table("position", config.size(&["max_position_embeddings"])?)?),
            false => None,
        };
        Ok(Deberta {
            words: table("word", config.vocabulary()?)?,
            positions,
            segments: if kinds > 0 { Some(table("token_type", kinds)?) } else { None },
            norm: weights.norm("embeddings.LayerNorm", width, eps)?,
            layers: Layer::all(config, weights, distances.span, eps)?,
            distances,
        })
    }
}

impl Layers for Deberta {
    fn rows(&self, ids: &[u32], kinds: &[u32]) -> Result<Tensor> {
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
        let apart = self.distances.between(ids.len())?;
        for layer in &self.layers {
            rows = layer.forward(&rows, &apart)?;
        }
        Ok(rows)
    }
}

impl Distances {
    /// The row of every pair of tokens, `[tokens, tokens]`.
    fn between(&self, tokens: usize) -> Result<Tensor> {
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

/// Distances up to `middle` are their own bucket.
fn bucket(distance: i64, middle: i64, farthest: usize) -> i64 {
    let far = distance.abs();
    if far <= middle {
        return distance;
    }
    // In single precision, as PyTorch computes it: a bucket's edge may lie exactly on a distance.
    let share = (far as f32 / middle as f32).ln() / (((farthest as f64 - 1.0) / middle as f64) as f32).ln();
    distance.signum() * ((share * (middle - 1) as f32).ceil() as i64 + middle)
}

impl Layer {
    fn all(
        config: &Config,
        weights: &Weights,
        span: usize,
        eps: f64,
    ) -> std::result::Result<Vec<Self>, InputError> {
        let ((heads, size), width) = (config.heads()?, config.width()?);
        let kinds = config.words("pos_att_type");
        let relative = config.is("relative_attention", false);
        let attends = |kind: &str| relative && kinds.iter().any(|one| one == kind);
        let parts = 1 + ["c2p", "p2c"].into_iter().filter(|kind| kinds.iter().any(|one| one == kind)).count();
        let scale = 1.0 / ((size * parts) as f64).sqrt();
        let shared = config.is("share_att_key", false);
        let places = if relative { Some(places(config, weights, span, eps)?) } else { None };
        let layers = (0..config.layers()?).map(|i| {
            let place = format!("encoder.layer.{i}");
            let square = |name: &str| weights.linear(&format!("{place}.{name}"), width, width);
            let (query, key) = (square(NAMES.query)?, square(NAMES.key)?);
            // What places are to attention hangs on no text, so it is made once.
            let of_places = |kind: &str, own: &Linear, other: &str| match &places {
                Some(places) if attends(kind) => {
                    let linear = if shared { own.clone() } else { square(other)? };
                    let made = || -> Result<Tensor> {
                        let rows = linear.forward(places)?.reshape((2 * span, heads, size))?;
                        (rows.permute((1, 2, 0))?.contiguous()? * scale)?.contiguous()
                    };
                    made().map(Some).map_err(|error| config.wrong(&error.to_string()))
                }
                _ => Ok(None),
            };
            Ok(Layer {
                keys_of_places: of_places("c2p", &key, "attention.self.pos_key_proj")?,
                queries_of_places: of_places("p2c", &query, "attention.self.pos_query_proj")?,
                query,
                key,
                value: square(NAMES.value)?,
                output: square(NAMES.output)?,
                heads,
                size,
                scale,
                rest: Rest::load(config, weights, &place, &NAMES, eps)?,
            })
        });
        layers.collect()
    }

    fn forward(&self, rows: &Tensor, apart: &Tensor) -> Result<Tensor> {
        let tokens = rows.dim(0)?;
        let split = |linear: &Linear| {
            let part = linear.forward(rows)?.reshape((tokens, self.heads, self.size))?;
            part.transpose(0, 1)?.contiguous()
        };
        let (query, key, value) = (split(&self.query)?, split(&self.key)?, split(&self.value)?);
        let mut scores = (query.matmul(&key.t()?)? * self.scale)?;
        let every_head = |apart: &Tensor| apart.broadcast_as((self.heads, tokens, tokens))?.contiguous();
        if let Some(places) = &self.keys_of_places {
            scores = (scores + query.matmul(places)?.gather(&every_head(apart)?, 2)?)?;
        }
        if let Some(places) = &self.queries_of_places {
            // A key looks at the query from the other end, where the distance is the same row read by columns.
            let seen = key.matmul(places)?.gather(&every_head(&apart.t()?)?, 2)?;
            scores = (scores + seen.transpose(1, 2)?)?;
        }
        let seen = softmax_last_dim(&scores.contiguous()?)?.matmul(&value)?;
        let attended =
            self.output.forward(&seen.transpose(0, 1)?.reshape((tokens, self.heads * self.size))?)?;
        self.rest.forward(rows, &attended)
    }
}

/// The rows of all distances.
fn places(
    config: &Config,
    weights: &Weights,
    span: usize,
    eps: f64,
) -> std::result::Result<Tensor, InputError> {
    let width = config.width()?;
    let rows = weights.get("encoder.rel_embeddings.weight", &[2 * span, width])?;
    if !config.words("norm_rel_ebd").iter().any(|word| word == "layer_norm") {
        return Ok(rows);
    }
    let norm = weights.norm("encoder.LayerNorm", width, eps)?;
    norm.forward(&rows).map_err(|error| config.wrong(&error.to_string()))
}
