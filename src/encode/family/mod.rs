//! The networks of brought models, on candle: BERT, RoBERTa, MPNet, DistilBERT, DeBERTa, the encoder of T5, and a whole T5 that
//! reads several sequences and writes.
//!
//! From token numbers to one row a token, to a classifier's numbers or to the scores of the next one, and nothing else: no tokenizer, no
//! pooling, no network. A sequence is run alone and on one thread, so that its rows depend on nothing beside it; callers that want more
//! cores call from more threads. Weights are kept in full precision, whatever they were stored in: processors are slow at halves.

mod bert;
mod classify;
mod config;
mod deberta;
mod dense;
mod distilbert;
mod layer;
mod mpnet;
mod t5;
mod weights;

use std::path::Path;

use candle_core::{Result, Tensor};

pub use classify::Classifier;
pub use config::Config;
pub use dense::{Activation, Dense};
pub use t5::{Fusion, Part, Writing};
pub use weights::{Weights, weight_files};

use super::EncodeError;
use crate::input::InputError;

/// A network with its weights.
pub struct Network(Box<dyn Layers>);

/// The rows a network gives, one a token.
pub struct Rows {
    /// All numbers, row by row.
    pub numbers: Vec<f32>,
    /// Length of a row.
    pub width: usize,
}

/// What every family can do.
trait Layers: Send + Sync {
    /// `kinds` says of every token to which text of a pair it belongs; it is empty where there is one text.
    fn rows(&self, ids: &[u32], kinds: &[u32]) -> Result<Tensor>;
}

impl Network {
    /// Takes the weights that the configuration asks for.
    ///
    /// # Errors
    /// The family is none of these, a tensor is missing, or has another shape than the configuration says.
    pub fn load(config: &Config, weights: &mut Weights) -> std::result::Result<Self, InputError> {
        on_one_thread();
        let layers: Box<dyn Layers> = match config.model_type()? {
            "bert" | "dpr" => Box::new(bert::Bert::load(config, weights, false)?),
            "roberta" | "xlm-roberta" | "camembert" => Box::new(bert::Bert::load(config, weights, true)?),
            "mpnet" => Box::new(mpnet::MpNet::load(config, weights)?),
            "distilbert" => Box::new(distilbert::DistilBert::load(config, weights)?),
            "deberta-v2" => Box::new(deberta::Deberta::load(config, weights)?),
            "t5" => Box::new(t5::Encoder::load(config, weights)?),
            other => {
                return Err(config.wrong(&format!(
                    "`model_type` is {}; bert, roberta, xlm-roberta, camembert, mpnet, distilbert, deberta-v2, dpr and t5 can be read",
                    crate::input::excerpt(other)
                )));
            }
        };
        Ok(Network(layers))
    }

    /// The rows of one sequence.
    ///
    /// # Errors
    /// A token number is none of the network's, or there are too many.
    pub fn rows(&self, ids: &[u32]) -> std::result::Result<Rows, EncodeError> {
        self.of_pair(ids, &[])
    }

    fn of_pair(&self, ids: &[u32], kinds: &[u32]) -> std::result::Result<Rows, EncodeError> {
        let made = || -> Result<Rows> {
            let rows = self.0.rows(ids, kinds)?;
            let width = rows.dim(1)?;
            Ok(Rows { numbers: rows.flatten_all()?.to_vec1()?, width })
        };
        made().map_err(|error| EncodeError(error.to_string()))
    }
}

/// candle spreads large products over threads, and with them the order of its sums.
fn on_one_thread() {
    gemm::set_threading_threshold(usize::MAX);
}

/// An error that names a file.
fn wrong(path: &Path, reason: impl Into<String>) -> InputError {
    InputError::Unreadable { path: path.into(), reason: reason.into() }
}
