//! The parts that families share: BERT's layer (attention, then a feed-forward network; each is added to its input and normalised),
//! T5's position bias, and the dense layers after pooling (BERT's pooler, DPR's projection, the `Dense` module of sentence-transformers).

use std::str::FromStr;

use candle_core::{Device, Tensor};
use candle_nn::ops::softmax_last_dim;
use candle_nn::{LayerNorm, Linear, Module};

use super::checkpoint::{Config, Weights};
use crate::encode::encoder::{EncodeError, ModelError};
use crate::input::{InputError, excerpt};

/// Stops candle from splitting large products over threads, which would change the order of sums.
pub(super) fn on_one_thread() {
    gemm::set_threading_threshold(usize::MAX);
}

/// The numbers of rows along axes, `[rows × axes]`.
///
/// # Errors
/// The rows are not of so many dimensions.
pub fn along(rows: &[f32], axes: &[f32], dimensions: usize) -> candle_core::Result<Vec<f32>> {
    on_one_thread();
    let matrix = |numbers: &[f32]| {
        Tensor::from_slice(numbers, (numbers.len() / dimensions.max(1), dimensions), &Device::Cpu)
    };
    matrix(rows)?.matmul(&matrix(axes)?.t()?)?.flatten_all()?.to_vec1()
}

/// A network of any family.
pub trait TokenNetwork: Send + Sync {
    /// The vectors of a sequence's tokens, one row each. `segment_ids` holds the segment of every token of a pair; it is empty for a single text.
    fn rows(&self, ids: &[u32], segment_ids: &[u32]) -> candle_core::Result<Tensor>;

    /// The same of a single text whose tokens attend to its first `seen` tokens only, as late interaction pads its queries.
    fn rows_seeing(&self, ids: &[u32], seen: usize) -> candle_core::Result<Tensor> {
        if seen >= ids.len() {
            return self.rows(ids, &[]);
        }
        Err(candle_core::Error::Msg("this family cannot leave tokens out of attention".into()))
    }
}

/// What is added to the scores of `[heads, tokens, tokens]` so that only the first `seen` tokens are attended to.
pub fn hidden_after(heads: usize, tokens: usize, seen: usize) -> candle_core::Result<Tensor> {
    let row: Vec<f32> = (0..tokens).map(|to| if to < seen { 0.0 } else { f32::NEG_INFINITY }).collect();
    Tensor::from_vec(row, (1, 1, tokens), &Device::Cpu)?.broadcast_as((heads, tokens, tokens))?.contiguous()
}

/// The tensor names of a layer in one family.
pub struct LayerNames {
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
    rest: FeedForward,
}

/// The part of a layer after attention.
pub struct FeedForward {
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
        names: &LayerNames,
        eps: f64,
    ) -> Result<Vec<Self>, InputError> {
        let ((heads, size), width) = (config.heads()?, config.width()?);
        let layers = (0..config.layers()?).map(|i| {
            let place = format!("{place}.{i}");
            let square = |name: &str| weights.linear(&format!("{place}.{name}"), width, width);
            let [query, key, value] = [square(names.query)?, square(names.key)?, square(names.value)?];
            let scale = 1.0 / (size as f64).sqrt();
            Ok(Layer {
                attention: Attention { query, key, value, output: square(names.output)?, heads, size, scale },
                rest: FeedForward::load(config, weights, &place, names, eps)?,
            })
        });
        layers.collect()
    }

    /// Maps `[tokens, width]` to the same shape; `bias` is `[heads, tokens, tokens]`.
    pub fn forward(&self, rows: &Tensor, bias: Option<&Tensor>) -> candle_core::Result<Tensor> {
        self.rest.forward(rows, &self.attention.forward(rows, bias)?)
    }
}

impl FeedForward {
    /// Reads the layer at `place`, such as `encoder.layer.0`.
    pub fn load(
        config: &Config,
        weights: &Weights,
        place: &str,
        names: &LayerNames,
        eps: f64,
    ) -> Result<Self, InputError> {
        let at = |name: &str| format!("{place}.{name}");
        let (width, wide) = (config.width()?, config.size(&["intermediate_size", "hidden_dim"])?);
        let activation = config.word(&["hidden_act", "activation"]).unwrap_or("gelu");
        Ok(FeedForward {
            attention_norm: weights.norm(&at(names.attention_norm), width, eps)?,
            up: weights.linear(&at(names.up), width, wide)?,
            activation: activation
                .parse()
                .map_err(|error: UnknownActivation| config.wrong(&error.to_string()))?,
            down: weights.linear(&at(names.down), wide, width)?,
            norm: weights.norm(&at(names.norm), width, eps)?,
        })
    }

    /// The layer's output, from its input and the output of attention.
    pub fn forward(&self, rows: &Tensor, attended: &Tensor) -> candle_core::Result<Tensor> {
        let rows = self.attention_norm.forward(&(rows + attended)?)?;
        let wide = self.activation.forward(&self.up.forward(&rows)?)?;
        self.norm.forward(&(&rows + self.down.forward(&wide)?)?)
    }
}

/// Multi-head attention over one sequence.
pub struct Attention {
    pub query: Linear,
    pub key: Linear,
    pub value: Linear,
    pub output: Linear,
    pub heads: usize,
    pub size: usize,
    pub scale: f64,
}

/// Keys and values of earlier tokens.
#[derive(Default)]
pub struct Past(Option<(Tensor, Tensor)>);

impl Attention {
    pub fn forward(&self, rows: &Tensor, bias: Option<&Tensor>) -> candle_core::Result<Tensor> {
        let split = |linear| self.split(linear, rows);
        self.attend(&split(&self.query)?, &split(&self.key)?, &split(&self.value)?, bias)
    }

    /// Computes the attention of the newest row alone, to itself and earlier tokens.
    pub fn step(&self, row: &Tensor, past: &mut Past, bias: &Tensor) -> candle_core::Result<Tensor> {
        let (key, value) = (self.split(&self.key, row)?, self.split(&self.value, row)?);
        let (keys, values) = match past.0.take() {
            Some((keys, values)) => (Tensor::cat(&[keys, key], 1)?, Tensor::cat(&[values, value], 1)?),
            None => (key, value),
        };
        let output = self.attend(&self.split(&self.query, row)?, &keys, &values, Some(bias))?;
        past.0 = Some((keys, values));
        Ok(output)
    }

    /// Maps `[tokens, width]` to `[heads, tokens, size]`.
    fn split(&self, linear: &Linear, rows: &Tensor) -> candle_core::Result<Tensor> {
        let part = linear.forward(rows)?.reshape((rows.dim(0)?, self.heads, self.size))?;
        part.transpose(0, 1)?.contiguous()
    }

    fn attend(
        &self,
        query: &Tensor,
        key: &Tensor,
        value: &Tensor,
        bias: Option<&Tensor>,
    ) -> candle_core::Result<Tensor> {
        let mut scores = (query.matmul(&key.t()?)? * self.scale)?;
        if let Some(bias) = bias {
            scores = (scores + bias)?;
        }
        let mixed = softmax_last_dim(&scores)?.matmul(value)?;
        self.output.forward(&mixed.transpose(0, 1)?.reshape((query.dim(1)?, self.heads * self.size))?)
    }
}

/// T5's relative position bias, `[heads, tokens, tokens]`, from a table with one row per bucket.
pub fn distance_bias(table: &Tensor, tokens: usize, max_distance: usize) -> candle_core::Result<Tensor> {
    let (buckets, heads) = table.dims2()?;
    let numbers: Vec<u32> = (0..tokens)
        .flat_map(|from| (0..tokens).map(move |to| bucket(to as i64 - from as i64, buckets, max_distance)))
        .collect();
    let numbers = Tensor::from_vec(numbers, tokens * tokens, table.device())?;
    table.index_select(&numbers, 0)?.reshape((tokens, tokens, heads))?.permute((2, 0, 1))?.contiguous()
}

/// The bias for the last token alone in a causal network, `[heads, 1, tokens]`.
pub fn causal_bias(table: &Tensor, tokens: usize, max_distance: usize) -> candle_core::Result<Tensor> {
    let (buckets, heads) = table.dims2()?;
    let numbers: Vec<u32> =
        (0..tokens).rev().map(|far| one_sided_bucket(far, buckets, max_distance) as u32).collect();
    let numbers = Tensor::from_vec(numbers, tokens, table.device())?;
    table.index_select(&numbers, 0)?.reshape((1, tokens, heads))?.permute((2, 0, 1))?.contiguous()
}

/// The bias, `[heads, tokens]`, of the token at position `written` towards the tokens at `places`. A token at or after `written` gets
/// bucket 0.
pub fn bias_towards(
    table: &Tensor,
    written: usize,
    places: impl Iterator<Item = usize>,
    max_distance: usize,
) -> candle_core::Result<Tensor> {
    let buckets = table.dim(0)?;
    let numbers: Vec<u32> = places
        .map(|place| one_sided_bucket(written.saturating_sub(place), buckets, max_distance) as u32)
        .collect();
    let tokens = numbers.len();
    table.index_select(&Tensor::from_vec(numbers, tokens, table.device())?, 0)?.t()?.contiguous()
}

/// Half of the buckets are for distances back and half for distances ahead.
fn bucket(distance: i64, buckets: usize, max_distance: usize) -> u32 {
    let half = buckets / 2;
    let side = if distance > 0 { half } else { 0 };
    (side + one_sided_bucket(distance.unsigned_abs() as usize, half, max_distance)) as u32
}

/// Near distances have one bucket each; far ones share buckets by their logarithm.
fn one_sided_bucket(far: usize, buckets: usize, max_distance: usize) -> usize {
    let exact = buckets / 2;
    if far < exact {
        return far;
    }
    // Computed in single precision, as in PyTorch: a bucket's edge may lie exactly on a distance.
    let share = (far as f32 / exact as f32).ln() / ((max_distance as f64 / exact as f64).ln() as f32);
    (exact + (share * (buckets - exact) as f32) as usize).min(buckets - 1)
}

/// An activation function.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Activation {
    /// x
    Identity,
    /// tanh
    Tanh,
    /// max(x, 0)
    Relu,
    /// x · Φ(x)
    Gelu,
    /// GELU, approximated by tanh.
    GeluTanh,
    /// x · σ(x)
    Silu,
}

/// No activation has this name.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "unknown activation {}; known: gelu, gelu_new, gelu_fast, gelu_pytorch_tanh, relu, silu, swish, tanh, identity, linear",
    excerpt(.0)
)]
pub struct UnknownActivation(String);

impl FromStr for Activation {
    type Err = UnknownActivation;

    /// Reads the names of `transformers` and PyTorch's class paths.
    fn from_str(name: &str) -> Result<Self, UnknownActivation> {
        match name.rsplit('.').next().unwrap_or_default().to_ascii_lowercase().as_str() {
            "identity" | "linear" => Ok(Activation::Identity),
            "tanh" => Ok(Activation::Tanh),
            "relu" => Ok(Activation::Relu),
            "gelu" => Ok(Activation::Gelu),
            "gelu_new" | "gelu_fast" | "gelu_pytorch_tanh" => Ok(Activation::GeluTanh),
            "silu" | "swish" => Ok(Activation::Silu),
            _ => Err(UnknownActivation(name.to_owned())),
        }
    }
}

impl Activation {
    pub(super) fn forward(self, x: &Tensor) -> candle_core::Result<Tensor> {
        match self {
            Activation::Identity => Ok(x.clone()),
            Activation::Tanh => x.tanh(),
            Activation::Relu => x.relu(),
            Activation::Gelu => x.gelu_erf(),
            Activation::GeluTanh => x.gelu(),
            Activation::Silu => x.silu(),
        }
    }
}

/// A dense layer.
pub struct Dense {
    linear: Linear,
    activation: Activation,
    /// The length of its output.
    pub width: usize,
}

impl Dense {
    /// Reads `NAME.weight`, and `NAME.bias` if present.
    ///
    /// # Errors
    /// A tensor is missing or does not fit rows of `from` numbers.
    pub fn load(
        weights: &Weights,
        name: &str,
        from: usize,
        activation: Activation,
    ) -> Result<Self, InputError> {
        let to = weights.shape(&format!("{name}.weight")).and_then(|shape| shape.first().copied());
        let width = to.unwrap_or_default();
        let linear = if weights.has(&format!("{name}.bias")) {
            weights.linear(name, from, width)?
        } else {
            weights.linear_without_bias(name, from, width)?
        };
        Ok(Dense { linear, activation, width })
    }

    /// Applies the layer to rows.
    pub(super) fn forward(&self, rows: &Tensor) -> candle_core::Result<Tensor> {
        self.activation.forward(&self.linear.forward(rows)?)
    }

    /// Applies the layer to one row.
    ///
    /// # Errors
    /// The row has another length.
    pub fn apply(&self, row: Vec<f32>) -> Result<Vec<f32>, EncodeError> {
        let compute = || -> candle_core::Result<Vec<f32>> {
            let width = row.len();
            self.forward(&Tensor::from_vec(row, (1, width), &Device::Cpu)?)?.flatten_all()?.to_vec1()
        };
        compute().map_err(|error| ModelError::network(error).into())
    }
}

/// A layer norm of one row: after pooling and the dense layers, as ANCE has it, or before a classifier's last layer.
pub struct Norm(LayerNorm);

impl Norm {
    /// PyTorch's default.
    const EPS: f64 = 1e-5;

    /// Reads `norm.weight` and `norm.bias`.
    ///
    /// # Errors
    /// A tensor is missing or does not fit rows of `width` numbers.
    pub fn load(weights: &Weights, width: usize) -> Result<Self, InputError> {
        Ok(Norm(weights.norm("norm", width, Self::EPS)?))
    }

    /// Reads `NAME.weight`, and `NAME.bias` if present.
    ///
    /// # Errors
    /// A tensor is missing or does not fit rows of `width` numbers.
    pub fn of(weights: &Weights, name: &str, width: usize, eps: f64) -> Result<Self, InputError> {
        if weights.has(&format!("{name}.bias")) {
            return Ok(Norm(weights.norm(name, width, eps)?));
        }
        Ok(Norm(LayerNorm::new_no_bias(weights.get(&format!("{name}.weight"), &[width])?, eps)))
    }

    /// Applies the layer to rows.
    pub(super) fn forward(&self, rows: &Tensor) -> candle_core::Result<Tensor> {
        self.0.forward(rows)
    }

    /// Applies the layer to one row.
    ///
    /// # Errors
    /// The row has another length.
    pub fn apply(&self, row: Vec<f32>) -> Result<Vec<f32>, EncodeError> {
        let compute = || -> candle_core::Result<Vec<f32>> {
            let row = Tensor::from_slice(&row, (1, row.len()), &Device::Cpu)?;
            self.forward(&row)?.flatten_all()?.to_vec1()
        };
        compute().map_err(|error| ModelError::network(error).into())
    }
}
