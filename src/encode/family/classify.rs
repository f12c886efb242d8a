//! What a network for sequence classification puts on top: products of the first token's row, the last with a number a class.

use super::{Activation, Config, Dense, Network, Weights};
use crate::encode::EncodeError;
use crate::input::InputError;

const FAMILIES: [&str; 5] = ["bert", "roberta", "xlm-roberta", "camembert", "deberta-v2"];

/// A network that tells classes apart.
pub struct Classifier {
    network: Network,
    dense: Vec<Dense>,
    /// How many classes there are.
    pub classes: usize,
}

impl Classifier {
    /// Takes the network and its head.
    ///
    /// # Errors
    /// The family is none that can be read, it has no such head, or a tensor is missing or has another shape than it should.
    pub fn load(config: &Config, weights: &mut Weights) -> Result<Self, InputError> {
        let family = config.model_type()?;
        if !FAMILIES.contains(&family) {
            return Err(config.wrong(&format!(
                "`model_type` is {}; of classifiers {} can be read",
                crate::input::excerpt(family),
                FAMILIES.join(", ")
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
        let above = |weights: &mut Weights, name: &str| {
            match weights.look_above(&format!("{name}.weight")) {
            true => Ok(()),
            false => Err(config.wrong(&format!(
                "the weights have no `{name}`, so this model tells no classes apart; name one that was trained to, for NLI or stance"
            ))),
        }
        };
        let classes = match family {
            "bert" => {
                // The pooler lies within the network, so it is taken before looking above.
                head(weights, "pooler.dense", Activation::Tanh)?;
                above(weights, "classifier")?;
                head(weights, "classifier", Activation::Identity)?
            }
            "roberta" | "xlm-roberta" | "camembert" => {
                above(weights, "classifier.dense")?;
                head(weights, "classifier.dense", Activation::Tanh)?;
                head(weights, "classifier.out_proj", Activation::Identity)?
            }
            _ => {
                let activation = config.word(&["pooler_hidden_act"]).unwrap_or("gelu");
                let activation = activation.parse().map_err(|why: String| config.wrong(&why))?;
                above(weights, "pooler.dense")?;
                head(weights, "pooler.dense", activation)?;
                head(weights, "classifier", Activation::Identity)?
            }
        };
        Ok(Classifier { network, dense, classes })
    }

    /// A number for every class, of one sequence; `kinds` says of every token to which text of the pair it belongs.
    ///
    /// # Errors
    /// A token number is none of the network's, there are too many, or what comes out is no number.
    pub fn logits(&self, ids: &[u32], kinds: &[u32]) -> Result<Vec<f32>, EncodeError> {
        let rows = self.network.of_pair(ids, kinds)?;
        let mut row = rows.numbers.get(..rows.width).unwrap_or_default().to_vec();
        for dense in &self.dense {
            row = dense.of(row)?;
        }
        match row.iter().all(|x| x.is_finite()) {
            true => Ok(row),
            false => Err(EncodeError("it gave classes numbers that are none".into())),
        }
    }
}
