//! A carried ONNX graph, run one unpadded sequence at a time.
//!
//! Dynamic int8 takes one scale over all it is given at once, so a batch would make a text's vector depend on its
//! neighbours. Every inference runs on one thread; callers that want more cores call from more threads.

use std::sync::{Arc, OnceLock};

use rten::{Model, ModelOptions, NodeId, RunOptions, ThreadPool};
use rten_tensor::NdTensor;
use rten_tensor::prelude::*;
use tokenizers::{Tokenizer, TruncationParams};

use super::EncodeError;
use crate::assets;

impl From<tokenizers::Error> for EncodeError {
    fn from(error: tokenizers::Error) -> Self {
        EncodeError(error.to_string())
    }
}

/// A graph that takes token numbers and gives one row.
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
        let said = |error: &dyn std::fmt::Display| EncodeError(error.to_string());
        let mut options = ModelOptions::with_all_ops();
        options.prepack_weights(true);
        let model = options.load_static_slice(bytes).map_err(|error| said(&error))?;
        let inputs = inputs.iter().map(|name| model.node_id(name)).collect::<Result<_, _>>();
        let inputs = inputs.map_err(|error| said(&error))?;
        let output =
            *model.output_ids().first().ok_or_else(|| EncodeError("the graph has no output".into()))?;
        Ok(Graph { model, inputs, output })
    }

    /// Runs one sequence; each of `rows` is one input, in the order of their names.
    ///
    /// # Errors
    /// The graph refused it.
    pub fn run(&self, rows: &[Vec<i32>]) -> Result<Vec<f32>, EncodeError> {
        let said = |error: &dyn std::fmt::Display| EncodeError(error.to_string());
        let inputs = self.inputs.iter().zip(rows).map(|(id, row)| {
            let tensor = NdTensor::from_data([1, row.len()], row.clone());
            (*id, tensor.into())
        });
        let options = ONE_THREAD.with(|pool| RunOptions::default().with_thread_pool(Some(Arc::clone(pool))));
        let [out] =
            self.model.run_n(inputs.collect(), [self.output], Some(options)).map_err(|error| said(&error))?;
        let out: NdTensor<f32, 2> =
            out.try_into().map_err(|_| EncodeError("the graph gave no row of numbers".into()))?;
        Ok(out.to_vec())
    }
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
