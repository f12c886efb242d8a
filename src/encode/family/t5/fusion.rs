//! Fusion in decoder (Izacard & Grave): sequences are encoded apart, and the decoder looks at all of them at once.

use candle_core::Tensor;

use super::super::{Config, Layers, Weights};
use super::Encoder;
use super::decoder::{Decoder, State};
use crate::encode::EncodeError;
use crate::input::InputError;

/// Both halves of a T5.
pub struct Fusion {
    encoder: Encoder,
    decoder: Decoder,
}

/// What the encoder made of one sequence.
pub struct Part(Tensor);

/// An answer that is being written from some parts.
pub struct Writing {
    state: State,
    tokens: Vec<usize>,
}

fn said(error: candle_core::Error) -> EncodeError {
    EncodeError(error.to_string().lines().next().unwrap_or_default().to_owned())
}

impl Fusion {
    /// Takes the weights that the configuration asks for, under the names of `transformers` or those of FiD's own code.
    ///
    /// # Errors
    /// A tensor is missing, or has another shape than the configuration says.
    pub fn load(config: &Config, mut weights: Weights) -> Result<Self, InputError> {
        super::super::on_one_thread();
        // FiD's code wraps the encoder as a whole, and each of its blocks.
        weights.rename(|name| {
            name.replace("encoder.encoder.", "encoder.").replace(".module.layer.", ".layer.")
        })?;
        let encoder = Encoder::load(config, &mut weights)?;
        let decoder = Decoder::load(config, &weights, encoder.words())?;
        Ok(Fusion { encoder, decoder })
    }

    /// Reads one sequence.
    ///
    /// # Errors
    /// A token number is none of the network's.
    pub fn encode(&self, ids: &[u32]) -> Result<Part, EncodeError> {
        self.encoder.rows(ids, &[]).map(Part).map_err(said)
    }

    /// Begins an answer from these parts.
    ///
    /// # Errors
    /// There are none.
    pub fn begin(&self, parts: &[&Part]) -> Result<Writing, EncodeError> {
        let rows: Vec<&Tensor> = parts.iter().map(|part| &part.0).collect();
        let tokens = parts.iter().map(|part| part.tokens()).collect();
        Ok(Writing { state: self.decoder.begin(Tensor::cat(&rows, 0).map_err(said)?), tokens })
    }

    /// The score of every token to follow this one.
    ///
    /// # Errors
    /// The token is none of the network's.
    pub fn next(&self, writing: &mut Writing, token: u32) -> Result<Vec<f32>, EncodeError> {
        self.decoder.next(&mut writing.state, token).map_err(said)
    }
}

impl Part {
    /// How many tokens it has.
    pub fn tokens(&self) -> usize {
        self.0.dims().first().copied().unwrap_or_default()
    }

    /// How many numbers it holds.
    pub fn numbers(&self) -> usize {
        self.0.elem_count()
    }
}

impl Writing {
    /// How the first token shared its attention out among the parts, over all heads and layers; they add up to 1. None before it.
    pub fn shares(&self) -> Vec<f64> {
        let mut first = self.state.first.iter().map(|share| f64::from(*share));
        self.tokens.iter().map(|tokens| first.by_ref().take(*tokens).sum()).collect()
    }
}
