//! A product after pooling: BERT's pooler, DPR's projection, the `Dense` module of sentence-transformers.

use std::str::FromStr;

use candle_core::{Device, Result, Tensor};
use candle_nn::{Linear, Module};

use super::Weights;
use crate::encode::EncodeError;
use crate::input::InputError;

/// What stands between two products.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Activation {
    /// Nothing.
    Identity,
    /// tanh
    Tanh,
    /// The rectifier.
    Relu,
    /// x · Φ(x)
    Gelu,
    /// Its approximation by tanh.
    GeluTanh,
    /// x · σ(x)
    Silu,
}

impl FromStr for Activation {
    type Err = String;

    /// The names of `transformers`, and PyTorch's paths of classes.
    fn from_str(name: &str) -> std::result::Result<Self, String> {
        match name.rsplit('.').next().unwrap_or_default().to_ascii_lowercase().as_str() {
            "identity" | "linear" => Ok(Activation::Identity),
            "tanh" => Ok(Activation::Tanh),
            "relu" => Ok(Activation::Relu),
            "gelu" => Ok(Activation::Gelu),
            "gelu_new" | "gelu_fast" | "gelu_pytorch_tanh" => Ok(Activation::GeluTanh),
            "silu" | "swish" => Ok(Activation::Silu),
            _ => Err(format!(
                "the activation {} is none of gelu, gelu_new, relu, silu, tanh and identity",
                crate::input::excerpt(name)
            )),
        }
    }
}

impl Activation {
    pub(super) fn forward(self, x: &Tensor) -> Result<Tensor> {
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

/// A product and what follows it.
pub struct Dense {
    linear: Linear,
    activation: Activation,
    /// Length of what comes out.
    pub width: usize,
}

impl Dense {
    /// Takes `NAME.weight`, and `NAME.bias` where there is one.
    ///
    /// # Errors
    /// The tensors are missing or do not take rows of `from` numbers.
    pub fn load(
        weights: &Weights,
        name: &str,
        from: usize,
        activation: Activation,
    ) -> std::result::Result<Self, InputError> {
        let to = weights.shape(&format!("{name}.weight")).and_then(|shape| shape.first().copied());
        let width = to.unwrap_or_default();
        let linear = if weights.has(&format!("{name}.bias")) {
            weights.linear(name, from, width)?
        } else {
            weights.linear_without_bias(name, from, width)?
        };
        Ok(Dense { linear, activation, width })
    }

    /// The product of one row.
    ///
    /// # Errors
    /// The row has another length.
    pub fn of(&self, row: Vec<f32>) -> std::result::Result<Vec<f32>, EncodeError> {
        let made = || -> Result<Vec<f32>> {
            let width = row.len();
            let row = Tensor::from_vec(row, (1, width), &Device::Cpu)?;
            self.activation.forward(&self.linear.forward(&row)?)?.flatten_all()?.to_vec1()
        };
        made().map_err(|error| EncodeError(error.to_string()))
    }
}
