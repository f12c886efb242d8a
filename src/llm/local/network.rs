//! The networks of the llama family on candle: llama (with Mistral, TinyLlama and SmolLM), qwen2 and qwen3.

use std::sync::Arc;

use candle_core::quantized::{QMatMul, QTensor};
use candle_core::{Device, Module, Tensor};
use candle_nn::kv_cache::KvCache;
use candle_nn::ops::{rms_norm, silu, softmax_last_dim};
use candle_nn::rotary_emb::{rope, rope_i};

use super::gguf::Gguf;
use crate::input::{InputError, excerpt};

/// The limit of any dimension, so that products of two do not overflow.
const LARGEST: u64 = 1 << 24;

/// The dimensions of a network of the llama family.
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
    /// The maximum number of tokens in prompt and reply together.
    pub window: usize,
    pub eps: f32,
    /// Whether rotary pairs are neighbours; otherwise each pair has one number from each half.
    pub neighbours: bool,
    base: f64,
    /// Divides the rotary frequencies; 1 if the window is not extended.
    scaling: f64,
}

impl Shape {
    /// Reads the dimensions from the header.
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
                "`{kind}.{name}` is an array, one number per block; such a model cannot be read"
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
            // Within a sliding window, all tokens are visible.
            window: side("context_length")?.min(optional("attention.sliding_window")?.unwrap_or(usize::MAX)),
            eps: file.real(&named("attention.layer_norm_rms_epsilon")).unwrap_or(1e-5) as f32,
            neighbours,
            base: file.real(&named("rope.freq_base")).unwrap_or(10_000.0),
            scaling: file.real(&named("rope.scaling.factor")).unwrap_or(1.0),
        };
        let no = |why: &str| Err(file.wrong(format!("{why}; such a model cannot be read")));
        let scaling = file.text(&named("rope.scaling.type")).unwrap_or(if shape.scaling == 1.0 {
            "none"
        } else {
            "linear"
        });
        if file.whole(&named("expert_count")).is_some_and(|count| count > 0) {
            return no("it is a mixture of experts");
        }
        if !heads.is_multiple_of(groups) || head == 0 || head % 2 == 1 {
            return no("its heads cannot be divided evenly among those of keys and values");
        }
        if optional("attention.value_length")?.is_some_and(|length| length != head)
            || optional("rope.dimension_count")?.is_some_and(|length| length != head)
        {
            return no("its heads have parts of different lengths");
        }
        match scaling {
            "none" => Ok(Shape { scaling: 1.0, ..shape }),
            "linear" if shape.scaling >= 1.0 => Ok(shape),
            other => no(&format!("its window is extended by the method {}", excerpt(other))),
        }
    }

    /// The rotary frequency of each pair of a head.
    pub fn frequencies(&self) -> Vec<f32> {
        (0..self.head)
            .step_by(2)
            .map(|at| (self.base.powf(-(at as f64 / self.head as f64)) / self.scaling) as f32)
            .collect()
    }
}

/// The number of tokens by which the cache grows.
const GROWTH: usize = 256;

/// A network with its weights.
pub(super) struct Network {
    shape: Shape,
    embedding: Arc<QTensor>,
    blocks: Vec<Block>,
    norm: Tensor,
    head: QMatMul,
    /// The rotary frequency of each pair.
    frequencies: Vec<f32>,
}

struct Block {
    attention_norm: Tensor,
    queries: Linear,
    keys: Linear,
    values: Linear,
    /// The norms of queries and of keys, in some models.
    norms: Option<(Tensor, Tensor)>,
    out: Linear,
    feed_forward_norm: Tensor,
    gate: Linear,
    up: Linear,
    down: Linear,
}

struct Linear {
    weight: QMatMul,
    bias: Option<Tensor>,
}

impl Linear {
    fn forward(&self, x: &Tensor) -> candle_core::Result<Tensor> {
        let y = self.weight.forward(x)?;
        self.bias.as_ref().map_or(Ok(y.clone()), |bias| y.broadcast_add(bias))
    }
}

/// The keys and values of the tokens read so far.
pub(super) struct Memory {
    blocks: Vec<KvCache>,
    read: usize,
}

impl Network {
    /// Reads the weights.
    pub fn load(file: &Gguf, shape: Shape) -> Result<Self, InputError> {
        // candle splits large products over threads, which changes the order in which numbers are added.
        gemm::set_threading_threshold(usize::MAX);
        let wrong = |error: candle_core::Error| file.wrong(error.to_string());
        let vector =
            |name: &str, length: usize| file.tensor(name, &[length])?.dequantize(&Device::Cpu).map_err(wrong);
        let linear = |name: String, rows: usize, columns: usize| {
            let weight = file.tensor(&format!("{name}.weight"), &[rows, columns])?;
            let bias = format!("{name}.bias");
            let bias = file.has(&bias).then(|| vector(&bias, rows)).transpose()?;
            Ok::<_, InputError>(Linear { weight: QMatMul::from_qtensor(weight).map_err(wrong)?, bias })
        };
        let Shape { width, inner, head, .. } = shape;
        let (queries, keys) = (shape.heads * head, shape.groups * head);
        let mut blocks = Vec::new();
        for at in 0..shape.blocks {
            let name = |part: &str| format!("blk.{at}.{part}");
            let norm = |part: &str, length| vector(&name(&format!("{part}.weight")), length);
            let has_norms = file.has(&name("attn_q_norm.weight"));
            blocks.push(Block {
                attention_norm: norm("attn_norm", width)?,
                queries: linear(name("attn_q"), queries, width)?,
                keys: linear(name("attn_k"), keys, width)?,
                values: linear(name("attn_v"), keys, width)?,
                norms: if has_norms {
                    Some((norm("attn_q_norm", head)?, norm("attn_k_norm", head)?))
                } else {
                    None
                },
                out: linear(name("attn_output"), width, queries)?,
                feed_forward_norm: norm("ffn_norm", width)?,
                gate: linear(name("ffn_gate"), inner, width)?,
                up: linear(name("ffn_up"), inner, width)?,
                down: linear(name("ffn_down"), width, inner)?,
            });
        }
        let embedding = Arc::new(file.tensor("token_embd.weight", &[shape.vocabulary, width])?);
        let has_own_head = file.has("output.weight");
        let out = if has_own_head {
            Arc::new(file.tensor("output.weight", &[shape.vocabulary, width])?)
        } else {
            Arc::clone(&embedding)
        };
        let mut frequencies = shape.frequencies();
        // Llama 3.1 and later scale the low frequencies.
        if file.has("rope_freqs.weight") {
            let factors = vector("rope_freqs.weight", frequencies.len())?.to_vec1::<f32>().map_err(wrong)?;
            frequencies.iter_mut().zip(factors).for_each(|(frequency, factor)| *frequency /= factor);
        }
        Ok(Network {
            norm: vector("output_norm.weight", width)?,
            head: QMatMul::from_arc(out).map_err(wrong)?,
            embedding,
            blocks,
            frequencies,
            shape,
        })
    }

    /// An empty cache.
    pub fn memory(&self) -> Memory {
        Memory { blocks: self.blocks.iter().map(|_| KvCache::new(2, GROWTH)).collect(), read: 0 }
    }

    /// Reads more tokens and returns the logits of the next one.
    pub fn read(&self, ids: &[u32], memory: &mut Memory) -> candle_core::Result<Vec<f32>> {
        let eps = self.shape.eps;
        let (cos, sin) = self.angles(memory.read, ids.len())?;
        let mask = causal_mask(memory.read, ids.len())?;
        let mut x = self.embedding.embedding(&Tensor::new(ids, &Device::Cpu)?)?;
        for (block, cache) in self.blocks.iter().zip(&mut memory.blocks) {
            let h = rms_norm(&x, &block.attention_norm, eps)?;
            let q = self.rotate(
                &block.queries.forward(&h)?,
                block.norms.as_ref().map(|norms| &norms.0),
                &cos,
                &sin,
            )?;
            let k = self.rotate(
                &block.keys.forward(&h)?,
                block.norms.as_ref().map(|norms| &norms.1),
                &cos,
                &sin,
            )?;
            let (k, v) = cache.append(&k, &self.by_head(&block.values.forward(&h)?)?)?;
            x = (x + block.out.forward(&self.attend(&q, &k, &v, mask.as_ref())?)?)?;
            let h = rms_norm(&x, &block.feed_forward_norm, eps)?;
            let h = (silu(&block.gate.forward(&h)?)? * block.up.forward(&h)?)?;
            x = (x + block.down.forward(&h)?)?;
        }
        memory.read += ids.len();
        let last = rms_norm(&x.narrow(0, ids.len() - 1, 1)?.contiguous()?, &self.norm, eps)?;
        self.head.forward(&last)?.squeeze(0)?.to_vec1()
    }

    /// Maps (tokens, heads × head) to (1, heads, tokens, head).
    fn by_head(&self, x: &Tensor) -> candle_core::Result<Tensor> {
        let tokens = x.dim(0)?;
        x.reshape((1, tokens, (), self.shape.head))?.transpose(1, 2)?.contiguous()
    }

    fn rotate(
        &self,
        x: &Tensor,
        norm: Option<&Tensor>,
        cos: &Tensor,
        sin: &Tensor,
    ) -> candle_core::Result<Tensor> {
        let mut x = self.by_head(x)?;
        if let Some(norm) = norm {
            x = rms_norm(&x, norm, self.shape.eps)?;
        }
        if self.shape.neighbours { rope_i(&x, cos, sin) } else { rope(&x, cos, sin) }
    }

    /// Several query heads share one head of keys and values. Their queries become more rows of that head, so nothing is copied.
    fn attend(
        &self,
        q: &Tensor,
        k: &Tensor,
        v: &Tensor,
        mask: Option<&Tensor>,
    ) -> candle_core::Result<Tensor> {
        let Shape { heads, groups, head, .. } = self.shape;
        let (tokens, all) = (q.dim(2)?, k.dim(2)?);
        let q = q.reshape((groups, heads / groups * tokens, head))?;
        let scores = (q.matmul(&k.squeeze(0)?.t()?)? / (head as f64).sqrt())?;
        let mut scores = scores.reshape((heads, tokens, all))?;
        if let Some(mask) = mask {
            scores = scores.broadcast_add(mask)?;
        }
        let shares = softmax_last_dim(&scores)?.reshape((groups, heads / groups * tokens, all))?;
        let read = shares.matmul(&v.squeeze(0)?)?.reshape((heads, tokens, head))?;
        read.transpose(0, 1)?.reshape((tokens, heads * head))
    }

    fn angles(&self, from: usize, tokens: usize) -> candle_core::Result<(Tensor, Tensor)> {
        let positions: Vec<f32> = (from..from + tokens).map(|position| position as f32).collect();
        let positions = Tensor::from_vec(positions, (tokens, 1), &Device::Cpu)?;
        let angles = positions.broadcast_mul(&Tensor::new(self.frequencies.as_slice(), &Device::Cpu)?)?;
        Ok((angles.cos()?, angles.sin()?))
    }
}

/// The causal mask; a single token needs none.
fn causal_mask(read: usize, tokens: usize) -> candle_core::Result<Option<Tensor>> {
    if tokens == 1 {
        return Ok(None);
    }
    let all = read + tokens;
    let mask = (0..tokens).flat_map(|row| {
        (0..all).map(move |column| if column > read + row { f32::NEG_INFINITY } else { 0.0 })
    });
    Tensor::from_iter(mask, &Device::Cpu)?.reshape((tokens, all)).map(Some)
}
