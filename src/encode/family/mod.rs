//! The networks of custom models, on candle.
//!
//! | file | holds |
//! | --- | --- |
//! | `mod` | a model of any family: token numbers to rows, to the logits of a classifier, or to those of a masked language model |
//! | `checkpoint` | `config.json` and the weights |
//! | `layer` | the layers that families share |
//! | `bert` | BERT, RoBERTa, DistilBERT, MPNet; DeBERTa, versions 2 and 3 |
//! | `rotary` | ModernBERT, NomicBERT, GTE; Qwen3 and Gemma 3 as encoders |
//! | `t5` | T5's encoder, and the whole T5 for fusion in decoder |
//!
//! Reads token numbers only: no tokenizer, no pooling, no network access. Each sequence runs alone on one thread, so its rows do not
//! depend on other sequences; to use more cores, call from more threads. All weights are converted to f32, because CPUs are slow at f16.
//! May use: encode's errors, input.

use candle_nn::{Linear, Module};

use super::encoder::{EncodeError, ModelError};
use crate::input::InputError;
use layer::{TokenNetwork, on_one_thread};

mod bert;
mod checkpoint;
mod layer;
mod rotary;
mod t5;

pub use checkpoint::{Config, Weights, weight_files};
pub use layer::{Activation, Dense, Norm, UnknownActivation, along};
pub use t5::{Fusion, Part, Writing};

/// A network with its weights.
pub struct Network(Box<dyn TokenNetwork>);

/// The rows of a sequence, one per token.
pub struct Rows {
    /// All numbers, row by row.
    pub numbers: Vec<f32>,
    /// The length of a row.
    pub width: usize,
}

impl Network {
    /// Builds the network that the configuration describes.
    ///
    /// # Errors
    /// The family is not supported, or a tensor is missing or has another shape than configured.
    pub fn load(config: &Config, weights: &mut Weights) -> Result<Self, InputError> {
        on_one_thread();
        let layers: Box<dyn TokenNetwork> = match config.model_type()? {
            "bert" | "dpr" => Box::new(bert::Bert::load(config, weights, false)?),
            "roberta" | "xlm-roberta" | "camembert" => Box::new(bert::Bert::load(config, weights, true)?),
            "mpnet" => Box::new(bert::MpNet::load(config, weights)?),
            "distilbert" => Box::new(bert::DistilBert::load(config, weights)?),
            "deberta-v2" => Box::new(bert::Deberta::load(config, weights)?),
            "t5" => Box::new(t5::Encoder::load(config, weights)?),
            known if rotary::TYPES.contains(&known) => Box::new(rotary::Rotary::load(config, weights)?),
            other => {
                return Err(config.wrong(&format!(
                    "`model_type` is {}; bert, roberta, xlm-roberta, camembert, mpnet, distilbert, deberta-v2, dpr, t5, {} can be read",
                    crate::input::excerpt(other),
                    rotary::TYPES.join(", ")
                )));
            }
        };
        Ok(Network(layers))
    }

    /// The rows of one sequence.
    ///
    /// # Errors
    /// A token number is out of range, or there are too many tokens.
    pub fn rows(&self, ids: &[u32]) -> Result<Rows, EncodeError> {
        self.pair_rows(ids, &[])
    }

    /// The rows of one sequence whose tokens attend to its first `seen` tokens only.
    ///
    /// # Errors
    /// As [`Network::rows`], or the family cannot do so.
    pub fn rows_seeing(&self, ids: &[u32], seen: usize) -> Result<Rows, EncodeError> {
        let compute = || -> candle_core::Result<Rows> {
            let rows = self.0.rows_seeing(ids, seen)?;
            let width = rows.dim(1)?;
            Ok(Rows { numbers: rows.flatten_all()?.to_vec1()?, width })
        };
        compute().map_err(|error| ModelError::network(error).into())
    }

    fn pair_rows(&self, ids: &[u32], segment_ids: &[u32]) -> Result<Rows, EncodeError> {
        let compute = || -> candle_core::Result<Rows> {
            let rows = self.0.rows(ids, segment_ids)?;
            let width = rows.dim(1)?;
            Ok(Rows { numbers: rows.flatten_all()?.to_vec1()?, width })
        };
        compute().map_err(|error| ModelError::network(error).into())
    }
}

/// The families that [`Classifier`] supports.
const CLASSIFIER_FAMILIES: [&str; 6] =
    ["bert", "roberta", "xlm-roberta", "camembert", "deberta-v2", "modernbert"];

/// A network for sequence classification: dense layers over the first token's row (or the mean of all rows), the last with one logit
/// per class.
pub struct Classifier {
    network: Network,
    /// Whether the mean of all rows is classified.
    mean: bool,
    dense: Vec<Dense>,
    /// The norm before the last layer, as ModernBERT has it.
    norm: Option<Norm>,
    /// The number of classes.
    pub classes: usize,
}

impl Classifier {
    /// Builds the network and its head.
    ///
    /// # Errors
    /// The family is not supported, there is no classifier head, or a tensor is missing or has another shape than configured.
    pub fn load(config: &Config, weights: &mut Weights) -> Result<Self, InputError> {
        let family = config.model_type()?;
        if !CLASSIFIER_FAMILIES.contains(&family) {
            return Err(config.wrong(&format!(
                "`model_type` is {}; classifiers of these types can be read: {}, and a t5 that answers 1 or 0",
                crate::input::excerpt(family),
                CLASSIFIER_FAMILIES.join(", ")
            )));
        }
        let network = Network::load(config, weights)?;
        let width = config.width()?;
        let mut dense = Vec::new();
        let mut head = |weights: &mut Weights, name: &str, activation| -> Result<usize, InputError> {
            let from = dense.last().map_or(width, |dense: &Dense| dense.width);
            dense.push(Dense::load(weights, name, from, activation)?);
            Ok(dense.last().map_or(0, |dense| dense.width))
        };
        let mut norm = None;
        let find_prefix = |weights: &mut Weights, name: &str| {
            if weights.find_prefix(&format!("{name}.weight")) {
                return Ok(());
            }
            Err(config.wrong(&format!(
                "the weights have no `{name}`, so this is not a classifier; choose a model trained for NLI or stance"
            )))
        };
        let classes = match family {
            "bert" => {
                // The pooler is inside the network, so it is read before the prefix changes.
                head(weights, "pooler.dense", Activation::Tanh)?;
                find_prefix(weights, "classifier")?;
                head(weights, "classifier", Activation::Identity)?
            }
            "roberta" | "xlm-roberta" | "camembert" => {
                find_prefix(weights, "classifier.dense")?;
                head(weights, "classifier.dense", Activation::Tanh)?;
                head(weights, "classifier.out_proj", Activation::Identity)?
            }
            "modernbert" => {
                let activation = config.word(&["classifier_activation"]).unwrap_or("gelu");
                let activation = activation
                    .parse()
                    .map_err(|error: UnknownActivation| config.wrong(&error.to_string()))?;
                find_prefix(weights, "head.dense")?;
                head(weights, "head.dense", activation)?;
                norm = Some(Norm::of(weights, "head.norm", width, config.number(&["norm_eps"], 1e-5))?);
                find_prefix(weights, "classifier")?;
                head(weights, "classifier", Activation::Identity)?
            }
            _ => {
                let activation = config.word(&["pooler_hidden_act"]).unwrap_or("gelu");
                let activation = activation
                    .parse()
                    .map_err(|error: UnknownActivation| config.wrong(&error.to_string()))?;
                find_prefix(weights, "pooler.dense")?;
                head(weights, "pooler.dense", activation)?;
                head(weights, "classifier", Activation::Identity)?
            }
        };
        let mean = match (family, config.word(&["classifier_pooling"])) {
            ("modernbert", Some("mean")) => true,
            ("modernbert", None | Some("cls")) => false,
            ("modernbert", Some(other)) => {
                return Err(config.wrong(&format!(
                    "`classifier_pooling` is {}; cls and mean are supported",
                    crate::input::excerpt(other)
                )));
            }
            _ => false,
        };
        Ok(Classifier { network, mean, dense, norm, classes })
    }

    /// The logit of every class for one sequence; `segment_ids` holds the segment of every token.
    ///
    /// # Errors
    /// A token number is out of range, there are too many tokens, or a logit is not finite.
    pub fn logits(&self, ids: &[u32], segment_ids: &[u32]) -> Result<Vec<f32>, EncodeError> {
        let rows = self.network.pair_rows(ids, segment_ids)?;
        let mut row = if self.mean {
            let count = (rows.numbers.len() / rows.width.max(1)).max(1) as f32;
            let column = |i: usize| rows.numbers.iter().skip(i).step_by(rows.width).sum::<f32>() / count;
            (0..rows.width).map(column).collect()
        } else {
            rows.numbers.get(..rows.width).unwrap_or_default().to_vec()
        };
        for (i, dense) in self.dense.iter().enumerate() {
            if let Some(norm) = self.norm.as_ref().filter(|_| i + 1 == self.dense.len()) {
                row = norm.apply(row)?;
            }
            row = dense.apply(row)?;
        }
        if row.iter().all(|x| x.is_finite()) { Ok(row) } else { Err(ModelError::NotFinite("logits").into()) }
    }
}

/// The tensors of a masked language model's head in one family.
struct Head {
    dense: &'static str,
    /// The entry of `config.json` that names the activation.
    activation: &'static str,
    norm: &'static str,
    eps: f64,
    /// The product with a row for every word; without it, the table of words of the network serves.
    words: &'static str,
    table: &'static str,
    /// The bias of every word, under either name.
    bias: [&'static str; 2],
}

/// A masked language model (Devlin et al., 2019): a network, and a head that gives every word of the vocabulary a logit at every token.
pub struct Masked {
    network: Network,
    dense: Dense,
    norm: Norm,
    words: Linear,
}

impl Masked {
    /// Builds the network and its head.
    ///
    /// # Errors
    /// The family is not supported, there is no such head, or a tensor is missing or has another shape than configured.
    pub fn load(config: &Config, weights: &mut Weights) -> Result<Self, InputError> {
        let family = config.model_type()?;
        let head = match family {
            "bert" => Head {
                dense: "cls.predictions.transform.dense",
                activation: "hidden_act",
                norm: "cls.predictions.transform.LayerNorm",
                eps: config.number(&["layer_norm_eps"], 1e-12),
                words: "cls.predictions.decoder",
                table: "embeddings.word_embeddings",
                bias: ["cls.predictions.bias", "cls.predictions.decoder.bias"],
            },
            "roberta" | "xlm-roberta" | "camembert" => Head {
                dense: "lm_head.dense",
                // Its class has GELU, whatever the file states.
                activation: "",
                norm: "lm_head.layer_norm",
                eps: config.number(&["layer_norm_eps"], 1e-5),
                words: "lm_head.decoder",
                table: "embeddings.word_embeddings",
                bias: ["lm_head.bias", "lm_head.decoder.bias"],
            },
            "distilbert" => Head {
                dense: "vocab_transform",
                activation: "activation",
                norm: "vocab_layer_norm",
                eps: 1e-12,
                words: "vocab_projector",
                table: "embeddings.word_embeddings",
                bias: ["vocab_projector.bias", "vocab_projector.bias"],
            },
            "modernbert" => Head {
                dense: "head.dense",
                activation: "classifier_activation",
                norm: "head.norm",
                eps: config.number(&["norm_eps"], 1e-5),
                words: "decoder",
                table: "embeddings.tok_embeddings",
                bias: ["decoder.bias", "decoder.bias"],
            },
            other => {
                return Err(config.wrong(&format!(
                    "`model_type` is {}; masked language models of bert, roberta, xlm-roberta, camembert, distilbert and modernbert can be read",
                    crate::input::excerpt(other)
                )));
            }
        };
        let network = Network::load(config, weights)?;
        let (width, vocabulary) = (config.width()?, config.vocabulary()?);
        let activation = config.word(&[head.activation]).unwrap_or("gelu");
        let activation =
            activation.parse().map_err(|error: UnknownActivation| config.wrong(&error.to_string()))?;
        if !weights.find_prefix(&format!("{}.weight", head.dense)) {
            return Err(config.wrong(&format!(
                "the weights have no `{}`, so this is no masked language model; a learned sparse model is one",
                head.dense
            )));
        }
        let dense = Dense::load(weights, head.dense, width, activation)?;
        let norm = Norm::of(weights, head.norm, width, head.eps)?;
        let bias = head.bias.into_iter().find(|name| weights.find_prefix(name));
        let bias = bias.map(|name| weights.get(name, &[vocabulary])).transpose()?;
        let own = weights.find_prefix(&format!("{}.weight", head.words));
        let words = if own { head.words } else { head.table };
        if !own {
            if !config.is("tie_word_embeddings", true) {
                return Err(config.wrong(&format!(
                    "`tie_word_embeddings` is false, and the weights have no `{}.weight`; fetch the model again",
                    head.words
                )));
            }
            weights.below(&format!("{}.weight", head.table))?;
        }
        let words =
            Linear::new(weights.linear_without_bias(words, width, vocabulary)?.weight().clone(), bias);
        Ok(Masked { network, dense, norm, words })
    }

    /// The greatest logit of every word over the tokens of a sequence.
    ///
    /// # Errors
    /// A token number is out of range, or there are too many tokens.
    pub fn greatest(&self, ids: &[u32]) -> Result<Vec<f32>, EncodeError> {
        let compute = || -> candle_core::Result<Vec<f32>> {
            let rows = self.norm.forward(&self.dense.forward(&self.network.0.rows(ids, &[])?)?)?;
            self.words.forward(&rows)?.max(0)?.to_vec1()
        };
        compute().map_err(|error| ModelError::network(error).into())
    }
}
