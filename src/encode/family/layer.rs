//! One layer as BERT has it: attention, then two products, each followed by a norm. The families name its parts differently.

use candle_core::{Result, Tensor};
use candle_nn::{LayerNorm, Linear, Module, ops::softmax_last_dim};

use super::{Activation, Config, Weights};
use crate::input::InputError;

/// What a family calls the parts of a layer.
pub struct Names {
    pub query: &'static str,
    pub key: &'static str,
    pub value: &'static str,
    pub output: &'static str,
    pub attention_norm: &'static str,
    pub up: &'static str,
    pub down: &'static str,
    pub norm: &'static str,
}

/// One layer.
pub struct Layer {
    attention: Attention,
    rest: Rest,
}

/// What follows attention in a layer.
pub struct Rest {
    attention_norm: LayerNorm,
    up: Linear,
    activation: Activation,
    down: Linear,
    norm: LayerNorm,
}

impl Layer {
    /// All layers below `place`, such as `encoder.layer`.
    pub fn all(
        config: &Config,
        weights: &Weights,
        place: &str,
        names: &Names,
        eps: f64,
    ) -> std::result::Result<Vec<Self>, InputError> {
        let ((heads, size), width) = (config.heads()?, config.width()?);
        let layers = (0..config.layers()?).map(|i| {
            let place = format!("{place}.{i}");
            let square = |name: &str| weights.linear(&format!("{place}.{name}"), width, width);
            let [query, key, value] = [square(names.query)?, square(names.key)?, square(names.value)?];
            let scale = 1.0 / (size as f64).sqrt();
            Ok(Layer {
                attention: Attention { query, key, value, output: square(names.output)?, heads, size, scale },
                rest: Rest::load(config, weights, &place, names, eps)?,
            })
        });
        layers.collect()
    }

    /// `[tokens, width]` to the same; `bias` is `[heads, tokens, tokens]`.
    pub fn forward(&self, rows: &Tensor, bias: Option<&Tensor>) -> Result<Tensor> {
        self.rest.forward(rows, &self.attention.forward(rows, bias)?)
    }
}

impl Rest {
    /// Of the layer at `place`, such as `encoder.layer.0`.
    pub fn load(
        config: &Config,
        weights: &Weights,
        place: &str,
        names: &Names,
        eps: f64,
    ) -> std::result::Result<Self, InputError> {
        let at = |name: &str| format!("{place}.{name}");
        let (width, wide) = (config.width()?, config.size(&["intermediate_size", "hidden_dim"])?);
        let activation = config.word(&["hidden_act", "activation"]).unwrap_or("gelu");
        Ok(Rest {
            attention_norm: weights.norm(&at(names.attention_norm), width, eps)?,
            up: weights.linear(&at(names.up), width, wide)?,
            activation: activation.parse().map_err(|why: String| config.wrong(&why))?,
            down: weights.linear(&at(names.down), wide, width)?,
            norm: weights.norm(&at(names.norm), width, eps)?,
        })
    }

    /// The layer's rows, from what went into it and what attention made of that.
    pub fn forward(&self, rows: &Tensor, attended: &Tensor) -> Result<Tensor> {
        let rows = self.attention_norm.forward(&(rows + attended)?)?;
        let wide = self.activation.forward(&self.up.forward(&rows)?)?;
        self.norm.forward(&(&rows + self.down.forward(&wide)?)?)
    }
}

/// Attention of several heads, over one sequence.
pub struct Attention {
    pub query: Linear,
    pub key: Linear,
    pub value: Linear,
    pub output: Linear,
    pub heads: usize,
    pub size: usize,
    pub scale: f64,
}

/// Keys and values of the tokens that came before.
#[derive(Default)]
pub struct Past(Option<(Tensor, Tensor)>);

impl Attention {
    pub fn forward(&self, rows: &Tensor, bias: Option<&Tensor>) -> Result<Tensor> {
        let split = |linear| self.split(linear, rows);
        self.seen(&split(&self.query)?, &split(&self.key)?, &split(&self.value)?, bias)
    }

    /// The same for the newest row alone, which sees itself and what came before.
    pub fn go_on(&self, row: &Tensor, past: &mut Past, bias: &Tensor) -> Result<Tensor> {
        let (key, value) = (self.split(&self.key, row)?, self.split(&self.value, row)?);
        let (keys, values) = match past.0.take() {
            Some((keys, values)) => (Tensor::cat(&[keys, key], 1)?, Tensor::cat(&[values, value], 1)?),
            None => (key, value),
        };
        let seen = self.seen(&self.split(&self.query, row)?, &keys, &values, Some(bias))?;
        past.0 = Some((keys, values));
        Ok(seen)
    }

    /// `[tokens, width]` to `[heads, tokens, size]`.
    fn split(&self, linear: &Linear, rows: &Tensor) -> Result<Tensor> {
        let part = linear.forward(rows)?.reshape((rows.dim(0)?, self.heads, self.size))?;
        part.transpose(0, 1)?.contiguous()
    }

    fn seen(&self, query: &Tensor, key: &Tensor, value: &Tensor, bias: Option<&Tensor>) -> Result<Tensor> {
        let mut scores = (query.matmul(&key.t()?)? * self.scale)?;
        if let Some(bias) = bias {
            scores = (scores + bias)?;
        }
        let seen = softmax_last_dim(&scores)?.matmul(value)?;
        self.output.forward(&seen.transpose(0, 1)?.reshape((query.dim(1)?, self.heads * self.size))?)
    }
}

/// What attention adds for the distance between two tokens: `[heads, tokens, tokens]` from a table with one row a bucket.
pub fn by_distance(table: &Tensor, tokens: usize, farthest: usize) -> Result<Tensor> {
    let (buckets, heads) = table.dims2()?;
    let numbers: Vec<u32> = (0..tokens)
        .flat_map(|from| (0..tokens).map(move |to| bucket(to as i64 - from as i64, buckets, farthest)))
        .collect();
    let numbers = Tensor::from_vec(numbers, tokens * tokens, table.device())?;
    table.index_select(&numbers, 0)?.reshape((tokens, tokens, heads))?.permute((2, 0, 1))?.contiguous()
}

/// The same for the last of some tokens alone, in a network that only looks back: `[heads, 1, tokens]`.
pub fn behind(table: &Tensor, tokens: usize, farthest: usize) -> Result<Tensor> {
    let (buckets, heads) = table.dims2()?;
    let numbers: Vec<u32> = (0..tokens).rev().map(|far| within(far, buckets, farthest) as u32).collect();
    let numbers = Tensor::from_vec(numbers, tokens, table.device())?;
    table.index_select(&numbers, 0)?.reshape((1, tokens, heads))?.permute((2, 0, 1))?.contiguous()
}

/// Half of the buckets look back and half ahead.
fn bucket(distance: i64, buckets: usize, farthest: usize) -> u32 {
    let half = buckets / 2;
    let side = if distance > 0 { half } else { 0 };
    (side + within(distance.unsigned_abs() as usize, half, farthest)) as u32
}

/// Near distances have a bucket each, far ones share by their logarithm.
fn within(far: usize, buckets: usize, farthest: usize) -> usize {
    let exact = buckets / 2;
    if far < exact {
        return far;
    }
    // In single precision, as PyTorch computes it: a bucket's edge may lie exactly on a distance.
    let share = (far as f32 / exact as f32).ln() / ((farthest as f64 / exact as f64).ln() as f32);
    (exact + (share * (buckets - exact) as f32) as usize).min(buckets - 1)
}
