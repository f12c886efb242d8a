//! An ONNX graph, run one unpadded sequence at a time.
//!
//! Dynamic int8 takes one scale over all it is given at once, so a batch would make a text's vector depend on its
//! neighbours. Every inference runs on one thread; callers that want more cores call from more threads.

use std::sync::{Arc, OnceLock};

use rten::{Model, ModelOptions, NodeId, RunOptions, ThreadPool};
use rten_tensor::NdTensor;
use rten_tensor::prelude::*;
use tokenizers::{Tokenizer, TruncationParams};

use super::{EncodeError, wire};
use crate::assets;
use crate::caught::caught;

impl From<tokenizers::Error> for EncodeError {
    fn from(error: tokenizers::Error) -> Self {
        EncodeError(error.to_string())
    }
}

/// A graph that takes token numbers and gives numbers.
pub struct Graph {
    model: Model,
    inputs: Vec<NodeId>,
    output: NodeId,
}

thread_local! {
    static ONE_THREAD: Arc<ThreadPool> = Arc::new(ThreadPool::with_num_threads(1));
}

impl Graph {
    /// Reads a carried graph whose inputs are named `inputs`.
    ///
    /// # Errors
    /// The bytes are not such a graph.
    pub fn carried(bytes: &'static [u8], inputs: &[&str]) -> Result<Self, EncodeError> {
        let model = options().load_static_slice(bytes).map_err(|error| said(&error))?;
        let output =
            *model.output_ids().first().ok_or_else(|| EncodeError("the graph has no output".into()))?;
        Ok(Graph { inputs: named(&model, inputs)?, model, output })
    }

    /// Reads a graph that was brought along, with inputs and an output of these names.
    ///
    /// # Errors
    /// The bytes are not such a graph.
    pub fn brought(bytes: Vec<u8>, inputs: &[&str], output: &str) -> Result<Self, EncodeError> {
        if !wire::is_whole(&bytes) {
            return Err(EncodeError("it is no ONNX file, or a damaged one".into()));
        }
        let model = stumbling(|| options().load(bytes).map_err(|error| said(&error)))?;
        let output = model.node_id(output).map_err(|error| said(&error))?;
        Ok(Graph { inputs: named(&model, inputs)?, model, output })
    }

    /// Runs one sequence to one row; each of `rows` is one input, in the order of their names.
    ///
    /// # Errors
    /// The graph refused it.
    pub fn run(&self, rows: &[Vec<i32>]) -> Result<Vec<f32>, EncodeError> {
        Ok(self.numbers::<2>(rows)?.1)
    }

    /// Runs one sequence, as [`Graph::run`], to an output of `N` dimensions: its shape and its numbers, the last dimension running
    /// fastest.
    ///
    /// # Errors
    /// The graph refused it or gave something else.
    pub fn numbers<const N: usize>(&self, rows: &[Vec<i32>]) -> Result<([usize; N], Vec<f32>), EncodeError> {
        let inputs = self.inputs.iter().zip(rows).map(|(id, row)| {
            let tensor = NdTensor::from_data([1, row.len()], row.clone());
            (*id, tensor.into())
        });
        let options = ONE_THREAD.with(|pool| RunOptions::default().with_thread_pool(Some(Arc::clone(pool))));
        let inputs = inputs.collect();
        let run = || self.model.run_n(inputs, [self.output], Some(options)).map_err(|error| said(&error));
        let [out] = stumbling(run)?;
        let out: NdTensor<f32, N> = out
            .try_into()
            .map_err(|_| EncodeError(format!("the graph gave no numbers of {N} dimensions")))?;
        Ok((out.shape(), out.to_vec()))
    }
}

fn said(error: &dyn std::fmt::Display) -> EncodeError {
    EncodeError(error.to_string())
}

/// A graph that rten stumbles over is an error like any other: anybody can bring one.
fn stumbling<T>(run: impl FnOnce() -> Result<T, EncodeError>) -> Result<T, EncodeError> {
    caught(run).unwrap_or_else(|| Err(EncodeError("the graph holds what cannot be run here".into())))
}

/// Whether this is a thread that runs graphs and nothing else; a panic there is caught by whoever asked.
pub fn on_a_graphs_thread() -> bool {
    std::thread::current().name().is_some_and(|name| name.starts_with("rten-"))
}

fn options() -> ModelOptions {
    let mut options = ModelOptions::with_all_ops();
    options.prepack_weights(true);
    options
}

fn named(model: &Model, names: &[&str]) -> Result<Vec<NodeId>, EncodeError> {
    names.iter().map(|name| model.node_id(name).map_err(|error| said(&error))).collect()
}

/// The carried tokenizer, without its own padding and truncation.
///
/// # Errors
/// The carried file is damaged.
pub fn tokenizer(window: Option<usize>) -> Result<Tokenizer, EncodeError> {
    static READ: OnceLock<Result<Tokenizer, String>> = OnceLock::new();
    let read = READ.get_or_init(|| {
        let mut tokenizer = Tokenizer::from_bytes(assets::TOKENIZER).map_err(|error| error.to_string())?;
        tokenizer.with_padding(None);
        Ok(tokenizer)
    });
    let mut tokenizer = read.clone().map_err(EncodeError)?;
    let truncation = window.map(|max_length| TruncationParams { max_length, ..TruncationParams::default() });
    tokenizer.with_truncation(truncation)?;
    Ok(tokenizer)
}
