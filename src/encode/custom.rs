//! A custom encoder: a folder's network, tokenizer and card, or two folders, one for questions and one for passages.

use std::path::Path;
use std::sync::Arc;

use tokenizers::Tokenizer;

use super::card::{Card, json};
use super::encoder::{EncodeError, Encoder, ModelError, Role, Similarity};
use super::family::{
    Activation, Config, Dense, Network, Norm, Rows, UnknownActivation, Weights, weight_files,
};
use super::registry::{Named, Pooling, Title, Towers};
use super::tokens;
use crate::corpus::Passage;
use crate::input::InputError;

/// An encoder from a folder or the hub.
pub struct CustomEncoder {
    key: String,
    dimensions: usize,
    queries: Arc<Tower>,
    passages: Arc<Tower>,
}

/// One network with tokenizer, card and dense layers.
struct Tower {
    card: Card,
    tokenizer: Tokenizer,
    network: Network,
    dense: Vec<Dense>,
    /// The layer norm after them.
    norm: Option<Norm>,
    /// The length of its vectors: how many numbers are kept.
    length: usize,
    /// Whether the vector is centred before it is shortened.
    centred: bool,
    hash: blake3::Hash,
}

impl CustomEncoder {
    /// Loads the model that a recipe names from its folders.
    ///
    /// # Errors
    /// A file is missing or damaged, or two contradict each other.
    pub fn load(named: &Named, towers: &Towers) -> Result<Self, InputError> {
        let queries = Arc::new(Tower::load(named, &towers.queries)?);
        let passages = if towers.passages == towers.queries {
            Arc::clone(&queries)
        } else {
            Arc::new(Tower::load(named, &towers.passages)?)
        };
        let dimensions = queries.length;
        if passages.length != dimensions {
            let reason = format!(
                "its vectors have {} numbers and those of {} have {dimensions}; the two folders belong to different models",
                passages.length,
                towers.queries.display()
            );
            return Err(InputError::Unreadable { path: towers.passages.clone(), reason });
        }
        let mut hasher = blake3::Hasher::new();
        for part in [&queries, &passages] {
            hasher.update(part.hash.as_bytes());
        }
        let key = format!("{}-{}", named.slug(), &hasher.finalize().to_hex()[..12]);
        Ok(CustomEncoder { key, dimensions, queries, passages })
    }

    /// How the model reads passages.
    pub fn card(&self) -> &Card {
        &self.passages.card
    }
}

impl Encoder for CustomEncoder {
    fn key(&self) -> &str {
        &self.key
    }

    fn dimensions(&self) -> usize {
        self.dimensions
    }

    fn similarity(&self) -> Similarity {
        self.passages.card.similarity
    }

    fn encode(&self, text: &str, role: Role) -> Result<Vec<f32>, EncodeError> {
        match role {
            Role::Query => self.queries.vector(&self.queries.card.query, None, text),
            Role::Passage => self.passages.vector(&self.passages.card.passage, None, text),
        }
    }

    fn instructed(&self, instruction: &str, text: &str) -> Result<Vec<f32>, EncodeError> {
        self.queries.vector(instruction, None, text)
    }

    fn passage(&self, passage: &Passage) -> Result<Vec<f32>, EncodeError> {
        let tower = &self.passages;
        match tower.card.title {
            Title::Pair if !passage.title.is_empty() => {
                tower.vector(&tower.card.passage, Some(&passage.title), &passage.text)
            }
            _ => tower.vector(&tower.card.passage, None, &passage.contents()),
        }
    }
}

impl Tower {
    fn load(named: &Named, folder: &Path) -> Result<Self, InputError> {
        let config = Config::read(folder)?;
        let mut card = Card::read(folder, &config, named.family())?;
        let query = named.query.as_ref().filter(|_| !named.instructs());
        for (own, given) in [(&mut card.query, query), (&mut card.passage, named.passage.as_ref())] {
            if let Some(given) = given {
                own.clone_from(given);
            }
        }
        let mut weights = Weights::read(folder)?;
        let network = Network::load(&config, &mut weights)?;
        let mut dense = Vec::new();
        if card.pooling == Pooling::Pooler {
            dense.push(Dense::load(&weights, "pooler.dense", config.width()?, Activation::Tanh)?);
        } else if config.model_type()? == "dpr" && weights.find_prefix("encode_proj.weight") {
            dense.push(Dense::load(&weights, "encode_proj", config.width()?, Activation::Identity)?);
        }
        drop(weights);
        let mut width = dense.last().map_or(config.width()?, |dense| dense.width);
        let mut files = weight_files(folder)?;
        for place in &card.dense {
            let entries = json(&place.join("config.json"))?.unwrap_or_default();
            let activation = entries.get("activation_function").and_then(|name| name.as_str());
            let activation =
                activation.unwrap_or("identity").parse().map_err(|error: UnknownActivation| {
                    InputError::Unreadable { path: place.join("config.json"), reason: error.to_string() }
                })?;
            let module = Dense::load(&Weights::read(place)?, "linear", width, activation)?;
            width = module.width;
            dense.push(module);
            files.extend(weight_files(place)?);
        }
        let norm = card.norm.as_ref().map(|place| {
            files.extend(weight_files(place)?);
            Norm::load(&Weights::read(place)?, width)
        });
        let norm = norm.transpose()?;
        let rows = config.vocabulary()?;
        let tokenizer = tokens::read(folder, card.window, rows)?;
        files.extend(tokens::files(folder)?);
        let length = match named.dim {
            Some(dim) if dim > width => {
                return Err(config.wrong(&format!(
                    "dim={dim} keeps more numbers than the {width} of the model's vectors; name at most {width}"
                )));
            }
            dim => dim.unwrap_or(width),
        };
        let centred = length < width && named.family().is_some_and(|family| family.centred);
        let hash = hash(&files, &card, (length < width).then_some((length, centred)))?;
        Ok(Tower { card, tokenizer, network, dense, norm, length, centred, hash })
    }

    fn vector(&self, before: &str, title: Option<&str>, text: &str) -> Result<Vec<f32>, EncodeError> {
        let text = format!("{before}{}", tokens::beginning(text, self.card.window));
        let encoded = match title {
            Some(title) => self.tokenizer.encode_fast((title, text.as_str()), true),
            None => self.tokenizer.encode_fast(text, true),
        }?;
        let ids = encoded.get_ids();
        if ids.is_empty() {
            return Ok(vec![0.0; self.length]);
        }
        let prefix_tokens = if self.card.counts_prefix || before.is_empty() {
            0
        } else {
            // All tokens of the prefix except its end token.
            self.tokenizer.encode_fast(before, true)?.get_ids().len().saturating_sub(1).min(ids.len() - 1)
        };
        let mut vector = pool(&self.network.rows(ids)?, self.card.pooling, prefix_tokens);
        for dense in &self.dense {
            vector = dense.apply(vector)?;
        }
        if let Some(norm) = &self.norm {
            vector = norm.apply(vector)?;
        }
        if vector.iter().any(|x| !x.is_finite()) {
            return Err(ModelError::NotFinite("numbers of the vector").into());
        }
        if self.centred {
            let mean = vector.iter().sum::<f32>() / vector.len() as f32;
            vector.iter_mut().for_each(|x| *x -= mean);
        }
        vector.truncate(self.length);
        if self.card.unit {
            let length = vector.iter().map(|x| f64::from(*x).powi(2)).sum::<f64>().sqrt() as f32;
            if length > 0.0 {
                vector.iter_mut().for_each(|x| *x /= length);
            }
        }
        Ok(vector)
    }
}

fn pool(rows: &Rows, pooling: Pooling, skipped: usize) -> Vec<f32> {
    let mut rows = rows.numbers.chunks_exact(rows.width);
    match pooling {
        Pooling::Cls | Pooling::Pooler => rows.next().unwrap_or_default().to_vec(),
        Pooling::Last => rows.next_back().unwrap_or_default().to_vec(),
        Pooling::Mean => {
            let rows = rows.skip(skipped);
            let count = rows.len() as f32;
            let sum = rows.map(<[f32]>::to_vec).reduce(|mut sum, row| {
                sum.iter_mut().zip(row).for_each(|(sum, x)| *sum += x);
                sum
            });
            sum.unwrap_or_default().into_iter().map(|x| x / count).collect()
        }
        Pooling::Max => {
            let greatest = rows.skip(skipped).map(<[f32]>::to_vec).reduce(|mut greatest, row| {
                greatest.iter_mut().zip(row).for_each(|(greatest, x)| *greatest = greatest.max(x));
                greatest
            });
            greatest.unwrap_or_default()
        }
    }
}

/// A hash of everything that the vectors depend on.
fn hash(
    files: &[std::path::PathBuf],
    card: &Card,
    cut: Option<(usize, bool)>,
) -> Result<blake3::Hash, InputError> {
    let mut hasher = blake3::Hasher::new();
    for file in files {
        hasher.update_mmap(file).map_err(|error| InputError::unreadable(file, &error))?;
    }
    let Card { pooling, unit, query, passage, counts_prefix, title, window, .. } = card;
    let manner = (pooling, unit, query, passage, counts_prefix, title, window);
    hasher.update(format!("{manner:?}").as_bytes());
    if let Some(cut) = cut {
        hasher.update(format!("{cut:?}").as_bytes());
    }
    Ok(hasher.finalize())
}
