//! The networks of the llama family on candle: llama (with Mistral, TinyLlama and SmolLM), qwen2 and qwen3.
//!
//! From tokens to the next one's logits. The three differ in how numbers are paired when they are turned by their place, in
//! biases, and in norms of queries and keys; the file's own tensors tell the last two apart.

use std::sync::Arc;

use candle_core::quantized::{QMatMul, QTensor};
use candle_core::{Device, Module, Result, Tensor};
use candle_nn::kv_cache::KvCache;
use candle_nn::ops::{rms_norm, silu, softmax_last_dim};
use candle_nn::rotary_emb::{rope, rope_i};

use super::gguf::Gguf;
use super::shape::Shape;
use crate::input::InputError;

/// By how many tokens the memory grows.
const GROWTH: usize = 256;

/// A network with its weights.
pub(super) struct Network {
    shape: Shape,
    embedding: Arc<QTensor>,
    blocks: Vec<Block>,
    norm: Tensor,
    head: QMatMul,
    /// How fast each pair of numbers turns.
    turns: Vec<f32>,
}

struct Block {
    before: Tensor,
    queries: Linear,
    keys: Linear,
    values: Linear,
    /// Of queries and keys.
    norms: Option<(Tensor, Tensor)>,
    out: Linear,
    between: Tensor,
    gate: Linear,
    up: Linear,
    down: Linear,
}

struct Linear {
    weight: QMatMul,
    bias: Option<Tensor>,
}

impl Linear {
    fn forward(&self, x: &Tensor) -> Result<Tensor> {
        let y = self.weight.forward(x)?;
        self.bias.as_ref().map_or(Ok(y.clone()), |bias| y.broadcast_add(bias))
    }
}

/// What a network has read so far.
pub(super) struct Memory {
    blocks: Vec<KvCache>,
    read: usize,
}

impl Network {
    /// Takes the weights that the shape asks for.
    pub fn load(file: &Gguf, shape: Shape) -> std::result::Result<Self, InputError> {
        // candle spreads large products over threads, and with them the order of its sums.
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
            let normed = file.has(&name("attn_q_norm.weight"));
            blocks.push(Block {
                before: norm("attn_norm", width)?,
                queries: linear(name("attn_q"), queries, width)?,
                keys: linear(name("attn_k"), keys, width)?,
                values: linear(name("attn_v"), keys, width)?,
                norms: if normed {
                    Some((norm("attn_q_norm", head)?, norm("attn_k_norm", head)?))
                } else {
                    None
                },
                out: linear(name("attn_output"), width, queries)?,
                between: norm("ffn_norm", width)?,
                gate: linear(name("ffn_gate"), inner, width)?,
                up: linear(name("ffn_up"), inner, width)?,
                down: linear(name("ffn_down"), width, inner)?,
            });
        }
        let embedding = Arc::new(file.tensor("token_embd.weight", &[shape.vocabulary, width])?);
        let head_of_its_own = file.has("output.weight");
        let out = if head_of_its_own {
            Arc::new(file.tensor("output.weight", &[shape.vocabulary, width])?)
        } else {
            Arc::clone(&embedding)
        };
        let mut turns = shape.turns();
        // Llama 3.1 and its successors slow down the slowest pairs.
        if file.has("rope_freqs.weight") {
            let factors = vector("rope_freqs.weight", turns.len())?.to_vec1::<f32>().map_err(wrong)?;
            turns.iter_mut().zip(factors).for_each(|(turn, factor)| *turn /= factor);
        }
        Ok(Network {
            norm: vector("output_norm.weight", width)?,
            head: QMatMul::from_arc(out).map_err(wrong)?,
            embedding,
            blocks,
            turns,
            shape,
        })
    }

    /// Nothing read yet.
    pub fn memory(&self) -> Memory {
        Memory { blocks: self.blocks.iter().map(|_| KvCache::new(2, GROWTH)).collect(), read: 0 }
    }

    /// Reads more tokens and gives the logits of what may follow the last.
    pub fn read(&self, ids: &[u32], memory: &mut Memory) -> Result<Vec<f32>> {
        let eps = self.shape.eps;
        let (cos, sin) = self.angles(memory.read, ids.len())?;
        let hidden = hidden(memory.read, ids.len())?;
        let mut x = self.embedding.embedding(&Tensor::new(ids, &Device::Cpu)?)?;
        for (block, kept) in self.blocks.iter().zip(&mut memory.blocks) {
            let h = rms_norm(&x, &block.before, eps)?;
            let q = self.turned(
                &block.queries.forward(&h)?,
                block.norms.as_ref().map(|norms| &norms.0),
                &cos,
                &sin,
            )?;
            let k = self.turned(
                &block.keys.forward(&h)?,
                block.norms.as_ref().map(|norms| &norms.1),
                &cos,
                &sin,
            )?;
            let (k, v) = kept.append(&k, &self.by_head(&block.values.forward(&h)?)?)?;
            x = (x + block.out.forward(&self.attended(&q, &k, &v, hidden.as_ref())?)?)?;
            let h = rms_norm(&x, &block.between, eps)?;
            let h = (silu(&block.gate.forward(&h)?)? * block.up.forward(&h)?)?;
            x = (x + block.down.forward(&h)?)?;
        }
        memory.read += ids.len();
        let last = rms_norm(&x.narrow(0, ids.len() - 1, 1)?.contiguous()?, &self.norm, eps)?;
        self.head.forward(&last)?.squeeze(0)?.to_vec1()
    }

    /// (tokens, heads × head) to (1, heads, tokens, head).
    fn by_head(&self, x: &Tensor) -> Result<Tensor> {
        let tokens = x.dim(0)?;
        x.reshape((1, tokens, (), self.shape.head))?.transpose(1, 2)?.contiguous()
    }

    fn turned(&self, x: &Tensor, norm: Option<&Tensor>, cos: &Tensor, sin: &Tensor) -> Result<Tensor> {
        let mut x = self.by_head(x)?;
        if let Some(norm) = norm {
            x = rms_norm(&x, norm, self.shape.eps)?;
        }
        if self.shape.neighbours { rope_i(&x, cos, sin) } else { rope(&x, cos, sin) }
    }

    /// Several heads of queries share one of keys and values; they are told apart by rows, so that nothing is copied.
    fn attended(&self, q: &Tensor, k: &Tensor, v: &Tensor, hidden: Option<&Tensor>) -> Result<Tensor> {
        let Shape { heads, groups, head, .. } = self.shape;
        let (tokens, all) = (q.dim(2)?, k.dim(2)?);
        let q = q.reshape((groups, heads / groups * tokens, head))?;
        let scores = (q.matmul(&k.squeeze(0)?.t()?)? / (head as f64).sqrt())?;
        let mut scores = scores.reshape((heads, tokens, all))?;
        if let Some(hidden) = hidden {
            scores = scores.broadcast_add(hidden)?;
        }
        let shares = softmax_last_dim(&scores)?.reshape((groups, heads / groups * tokens, all))?;
        let read = shares.matmul(&v.squeeze(0)?)?.reshape((heads, tokens, head))?;
        read.transpose(0, 1)?.reshape((tokens, heads * head))
    }

    fn angles(&self, from: usize, tokens: usize) -> Result<(Tensor, Tensor)> {
        let places: Vec<f32> = (from..from + tokens).map(|place| place as f32).collect();
        let places = Tensor::from_vec(places, (tokens, 1), &Device::Cpu)?;
        let angles = places.broadcast_mul(&Tensor::new(self.turns.as_slice(), &Device::Cpu)?)?;
        Ok((angles.cos()?, angles.sin()?))
    }
}

/// What hides later tokens from earlier ones; a single token sees all.
fn hidden(read: usize, tokens: usize) -> Result<Option<Tensor>> {
    if tokens == 1 {
        return Ok(None);
    }
    let all = read + tokens;
    let hidden = (0..tokens).flat_map(|row| {
        (0..all).map(move |column| if column > read + row { f32::NEG_INFINITY } else { 0.0 })
    });
    Tensor::from_iter(hidden, &Device::Cpu)?.reshape((tokens, all)).map(Some)
}
