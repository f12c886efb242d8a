//! What a GGUF file says of its network, checked before a weight is touched.

use super::gguf::Gguf;
use crate::input::{InputError, excerpt};

/// No side of a network is longer: products of two stay numbers.
const LARGEST: u64 = 1 << 24;

/// The sides of a network of the llama family.
#[derive(Clone, Copy)]
pub(super) struct Shape {
    pub blocks: usize,
    pub width: usize,
    pub inner: usize,
    pub heads: usize,
    /// Heads of keys and values.
    pub groups: usize,
    pub head: usize,
    pub vocabulary: usize,
    /// How many tokens it can read and write in all.
    pub window: usize,
    pub eps: f32,
    /// Neighbours are turned together, not the first half with the second.
    pub neighbours: bool,
    base: f64,
    slower: f64,
}

impl Shape {
    /// Reads it.
    pub fn read(file: &Gguf) -> Result<Self, InputError> {
        let kind = file.text("general.architecture").unwrap_or_default();
        let neighbours = match kind {
            "llama" => true,
            "qwen2" | "qwen3" => false,
            other => {
                return Err(file.wrong(format!(
                    "its architecture is {}; llama (with Mistral, TinyLlama and SmolLM), qwen2 and qwen3 can be read: serve it with \
                     llama.cpp or Ollama and name that server with --llm",
                    excerpt(other)
                )));
            }
        };
        let named = |name: &str| format!("{kind}.{name}");
        let optional = |name: &str| match file.whole(&named(name)) {
            Some(number) if (1..=LARGEST).contains(&number) => Ok(Some(number as usize)),
            Some(number) => Err(file.wrong(format!("`{kind}.{name}` is {number}; fetch the model again"))),
            None if file.wholes(&named(name)).is_some() => Err(file.wrong(format!(
                "`{kind}.{name}` is an array, one number a block; such a model cannot be read"
            ))),
            None => Ok(None),
        };
        let side = |name: &str| {
            let missing = || {
                file.wrong(format!("`{kind}.{name}` is missing, or not one number; fetch the model again"))
            };
            optional(name)?.ok_or_else(missing)
        };
        let (width, heads) = (side("embedding_length")?, side("attention.head_count")?);
        let groups = optional("attention.head_count_kv")?.unwrap_or(heads);
        let head = optional("attention.key_length")?.unwrap_or(width / heads);
        let vocabulary = file.rows("token_embd.weight");
        let shape = Shape {
            blocks: side("block_count")?,
            width,
            inner: side("feed_forward_length")?,
            heads,
            groups,
            head,
            vocabulary: vocabulary.ok_or_else(|| {
                file.wrong("the tensor `token_embd.weight` is missing; fetch the model again")
            })?,
            // Within the window that slides, all that was read is seen.
            window: side("context_length")?.min(optional("attention.sliding_window")?.unwrap_or(usize::MAX)),
            eps: file.real(&named("attention.layer_norm_rms_epsilon")).unwrap_or(1e-5) as f32,
            neighbours,
            base: file.real(&named("rope.freq_base")).unwrap_or(10_000.0),
            slower: file.real(&named("rope.scaling.factor")).unwrap_or(1.0),
        };
        let no = |why: &str| Err(file.wrong(format!("{why}; such a model cannot be read")));
        let scaling = file.text(&named("rope.scaling.type")).unwrap_or(if shape.slower == 1.0 {
            "none"
        } else {
            "linear"
        });
        if file.whole(&named("expert_count")).is_some_and(|count| count > 0) {
            return no("it is a mixture of experts");
        }
        if !heads.is_multiple_of(groups) || head == 0 || head % 2 == 1 {
            return no("its heads cannot be shared out evenly");
        }
        if optional("attention.value_length")?.is_some_and(|length| length != head)
            || optional("rope.dimension_count")?.is_some_and(|length| length != head)
        {
            return no("its heads have parts of different lengths");
        }
        match scaling {
            "none" => Ok(Shape { slower: 1.0, ..shape }),
            "linear" if shape.slower >= 1.0 => Ok(shape),
            other => no(&format!("its window is stretched in the way {}", excerpt(other))),
        }
    }

    /// How fast each pair of numbers of a head turns from one token to the next.
    pub fn turns(&self) -> Vec<f32> {
        (0..self.head)
            .step_by(2)
            .map(|at| (self.base.powf(-(at as f64 / self.head as f64)) / self.slower) as f32)
            .collect()
    }
}
