//! BERT, and RoBERTa, which numbers positions from behind the padding's and has no second kind of segment.

use candle_core::{Device, Result, Tensor};
use candle_nn::{Embedding, LayerNorm, Module};

use super::layer::{Layer, Names};
use super::{Config, Layers, Weights};
use crate::input::InputError;

const NAMES: Names = Names {
    query: "attention.self.query",
    key: "attention.self.key",
    value: "attention.self.value",
    output: "attention.output.dense",
    attention_norm: "attention.output.LayerNorm",
    up: "intermediate.dense",
    down: "output.dense",
    norm: "output.LayerNorm",
};

/// The network.
pub struct Bert {
    words: Embedding,
    positions: Embedding,
    /// The row of the first segment, which one text is.
    segment: Tensor,
    /// Those of all segments, for a pair of texts.
    segments: Embedding,
    norm: LayerNorm,
    layers: Vec<Layer>,
    /// The padding's token, where positions are numbered from behind it.
    behind: Option<u32>,
}

impl Bert {
    pub fn load(
        config: &Config,
        weights: &mut Weights,
        roberta: bool,
    ) -> std::result::Result<Self, InputError> {
        if config.word(&["position_embedding_type"]).is_some_and(|kind| kind != "absolute") {
            return Err(
                config.wrong("`position_embedding_type` is not absolute, which nothing here can read")
            );
        }
        weights.below("embeddings.word_embeddings.weight")?;
        let (width, eps) = (config.width()?, config.number(&["layer_norm_eps"], 1e-12));
        let table =
            |name: &str, rows: usize| weights.table(&format!("embeddings.{name}_embeddings"), rows, width);
        let kinds = config.size(&["type_vocab_size"])?;
        let segments = table("token_type", kinds)?;
        let first = segments.embeddings().get(0).map_err(|error| config.wrong(&error.to_string()))?;
        Ok(Bert {
            words: table("word", config.size(&["vocab_size"])?)?,
            positions: table("position", config.size(&["max_position_embeddings"])?)?,
            segment: first,
            segments,
            norm: weights.norm("embeddings.LayerNorm", width, eps)?,
            layers: Layer::all(config, weights, "encoder.layer", &NAMES, eps)?,
            behind: roberta.then(|| config.padding()),
        })
    }
}

impl Layers for Bert {
    fn rows(&self, ids: &[u32], kinds: &[u32]) -> Result<Tensor> {
        let words = self.words.forward(&Tensor::new(ids, &Device::Cpu)?)?;
        let places = places(ids, self.behind);
        let positions = self.positions.forward(&Tensor::new(places.as_slice(), &Device::Cpu)?)?;
        let sum = (words + positions)?;
        let last = self.segments.embeddings().dim(0)? as u32 - 1;
        let sum = if kinds.is_empty() || last == 0 {
            sum.broadcast_add(&self.segment)?
        } else {
            let kinds: Vec<u32> = kinds.iter().map(|kind| last.min(*kind)).collect();
            (sum + self.segments.forward(&Tensor::new(kinds, &Device::Cpu)?)?)?
        };
        let mut rows = self.norm.forward(&sum)?;
        for layer in &self.layers {
            rows = layer.forward(&rows, None)?;
        }
        Ok(rows)
    }
}

/// Positions from 0; or from behind the padding's number, which a token of padding in the text keeps.
pub fn places(ids: &[u32], behind: Option<u32>) -> Vec<u32> {
    let Some(padding) = behind else { return (0..ids.len() as u32).collect() };
    let mut place = padding;
    let of = |id: &u32| {
        if *id == padding {
            return padding;
        }
        place += 1;
        place
    };
    ids.iter().map(of).collect()
}
