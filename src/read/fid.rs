//! Fusion-in-Decoder (Izacard & Grave, "Leveraging Passage Retrieval with Generative Models"): a T5 that encodes each passage
//! with the question, and writes its answer from all of them at once. Their order does not matter to it, unless its checkpoint has a bias
//! by distance in the attention from the answer to the passages, as those of FiD's own code do: then it matters which one is first.
//!
//! This module holds the input and output texts and the cache of encoded passages; the network is in `encode`.
//!
//! May use: encode, input, work.

use std::path::{Path, PathBuf};
use std::sync::{Arc, OnceLock};

use lru::LruCache;
use parking_lot::Mutex;
use tokenizers::Tokenizer;

use super::reader::{Answer, Context, ReadError, Reader};
use crate::encode::family::{Config, Fusion, Part, Weights, Writing, weight_files};
use crate::encode::{EncodeError, ModelError, tokens};
use crate::input::{InputError, excerpt};
use crate::work::{Stop, Stopped};

/// The file that describes the network.
pub const CONFIG: &str = "config.json";
/// The files of a Fusion-in-Decoder reader.
pub const EXPECTED: &str =
    "config.json with tokenizer.json and model.safetensors or pytorch_model.bin (a T5 for Fusion-in-Decoder)";

/// The number of tokens read of each passage, including the question before it.
const WINDOW: usize = 200;
/// The most tokens of an answer as `transformers` counts them: including the first (start) and the last (end).
const LENGTH: usize = 50;

/// The settings in the configuration.
struct Settings {
    config: Config,
    /// The number of tokens.
    vocabulary: usize,
    /// The token that begins an answer.
    first: u32,
    /// The token that ends an answer.
    last: u32,
}

impl Settings {
    fn read(folder: &Path) -> Result<Self, InputError> {
        let config = Config::read(folder)?;
        let kind = config.model_type()?;
        if kind != "t5" {
            return Err(config
                .wrong(&format!("`model_type` is {}; a reader of this kind is a t5 (FiD)", excerpt(kind))));
        }
        let vocabulary = config.vocabulary()?;
        // By default, T5 starts with the padding token.
        let first = config.size(&["decoder_start_token_id", "pad_token_id"])?;
        let last = config.size(&["eos_token_id"])?;
        if first.max(last) >= vocabulary {
            return Err(config.wrong(&format!(
                "answers begin with token {first} and end with {last}, and `vocab_size` is {vocabulary}"
            )));
        }
        Ok(Settings { config, vocabulary, first: first as u32, last: last as u32 })
    }
}

/// The name of the reader in a folder, without reading its tokenizer and weights.
///
/// # Errors
/// The configuration is damaged or of another model, or another file is missing.
pub fn name(folder: &Path) -> Result<String, InputError> {
    Settings::read(folder)?;
    has_tokenizer(folder)?;
    weight_files(folder)?;
    Ok(folder_name(folder))
}

fn folder_name(folder: &Path) -> String {
    folder.file_name().unwrap_or(folder.as_os_str()).to_string_lossy().into_owned()
}

/// Reads through a T5 in a folder.
pub struct Fid {
    name: String,
    folder: PathBuf,
    key: OnceLock<Option<String>>,
    tokenizer: Tokenizer,
    network: Fusion,
    first: u32,
    last: u32,
    memory: EncodedPassages,
}

impl Fid {
    /// Opens a folder with `config.json`, `tokenizer.json` and the weights, under the names of `transformers` or those of FiD's own
    /// code.
    ///
    /// # Errors
    /// A file is missing or damaged, or two contradict each other.
    pub fn open(folder: &Path) -> Result<Self, InputError> {
        let Settings { config, vocabulary, first, last } = Settings::read(folder)?;
        let tokenizer = tokenizer(folder, vocabulary)?;
        let network = Fusion::load(&config, Weights::read(folder)?)?;
        Ok(Fid {
            name: folder_name(folder),
            folder: folder.into(),
            key: OnceLock::new(),
            tokenizer,
            network,
            first,
            last,
            memory: EncodedPassages::default(),
        })
    }

    /// Encodes the passages, or only the question if there are none. Also returns their places in the list.
    ///
    /// They are sorted, because sums of rounded numbers depend slightly on their order. So the answer is the same to the last bit for any
    /// order of the list.
    fn read(
        &self,
        question: &str,
        passages: &[Context],
        stop: &Stop,
    ) -> Result<(Vec<usize>, Vec<Arc<Read>>), ReadError> {
        let mut inputs: Vec<(usize, String)> =
            passages.iter().map(|context| input(question, context)).enumerate().collect();
        if inputs.is_empty() {
            inputs.push((0, format!("question: {question}")));
        }
        inputs.sort_by(|a, b| a.1.cmp(&b.1));
        let read = inputs.iter().map(|(_, input)| {
            if stop.is_set() {
                return Err(Stopped.into());
            }
            Ok(self.memory.get(input, || self.encode(input))?)
        });
        let read = read.collect::<Result<_, ReadError>>()?;
        Ok((inputs.into_iter().map(|(at, _)| at).collect(), read))
    }

    fn encode(&self, input: &str) -> Result<Read, EncodeError> {
        let beginning = tokens::beginning(input, WINDOW);
        let encoded = self.tokenizer.encode_fast(beginning, true)?;
        let cut = beginning.len() < input.len() || !encoded.get_overflowing().is_empty();
        // A text may spell special tokens; only those that the tokenizer adds count.
        let tokens = encoded.get_ids().iter().zip(encoded.get_special_tokens_mask());
        let kept = tokens.filter(|(id, added)| **added == 1 || ![self.first, self.last].contains(id));
        let ids: Vec<u32> = kept.map(|(id, _)| *id).collect();
        Ok(Read { part: self.network.encode(&ids)?, cut })
    }

    /// Starts an answer from encoded passages. `order` has the place of each in its list.
    fn begin(&self, order: &[usize], read: &[Arc<Read>]) -> Result<Writing, EncodeError> {
        let parts: Vec<_> = read.iter().map(|read| &read.part).collect();
        let first = order.iter().position(|place| *place == 0).unwrap_or_default();
        self.network.begin(&parts, first)
    }

    /// Writes the answer: each token is the likeliest after the previous ones.
    fn write(&self, order: &[usize], read: &[Arc<Read>], stop: &Stop) -> Result<Vec<u32>, ReadError> {
        let mut writing = self.begin(order, read)?;
        let mut tokens = vec![self.first];
        while tokens.len() < LENGTH {
            if stop.is_set() {
                return Err(Stopped.into());
            }
            let scores = self.network.next(&mut writing, tokens[tokens.len() - 1])?;
            let next = greatest(&scores).ok_or(EncodeError(ModelError::NotFinite("scores")))?;
            if next == self.last {
                break;
            }
            tokens.push(next);
        }
        Ok(tokens.split_off(1))
    }
}

impl Reader for Fid {
    fn name(&self) -> &str {
        &self.name
    }

    fn order_sensitive(&self) -> bool {
        self.network.has_bias_across()
    }

    fn key(&self) -> Option<String> {
        self.key.get_or_init(|| key(&self.folder)).clone()
    }

    fn window(&self) -> String {
        format!("{WINDOW} tokens a passage")
    }

    /// The attention of the answer's first token, over all heads and layers.
    fn attention(
        &self,
        question: &str,
        passages: &[Context],
        stop: &Stop,
    ) -> Result<Option<Vec<f64>>, ReadError> {
        if passages.is_empty() {
            return Ok(None);
        }
        let (order, read) = self.read(question, passages, stop)?;
        let mut writing = self.begin(&order, &read)?;
        self.network.next(&mut writing, self.first)?;
        let mut shares = vec![0.0; order.len()];
        order.into_iter().zip(writing.shares()).for_each(|(at, share)| shares[at] = share);
        Ok(Some(shares))
    }

    fn answer(&self, question: &str, passages: &[Context], stop: &Stop) -> Result<Answer, ReadError> {
        let (order, read) = self.read(question, passages, stop)?;
        let tokens = self.write(&order, &read, stop)?;
        let text = self.tokenizer.decode(&tokens, true).map_err(EncodeError::from)?;
        let cut = if passages.is_empty() { 0 } else { read.iter().filter(|read| read.cut).count() };
        Ok(Answer { text: text.trim().to_owned(), recorded: false, cut })
    }
}

/// The text of a passage that is encoded.
fn input(question: &str, context: &Context) -> String {
    let passage = &context.passage;
    format!("question: {question} title: {} context: {}", passage.title, passage.text)
}

/// The index of the greatest score, the first if several are equal; `None` if a score is NaN.
fn greatest(scores: &[f32]) -> Option<u32> {
    if scores.iter().any(|score| score.is_nan()) {
        return None;
    }
    let best = scores.iter().enumerate().reduce(|best, next| if next.1 > best.1 { next } else { best });
    best.map(|(at, _)| at as u32)
}

/// Checks that the folder has a `tokenizer.json`. T5 is published with `spiece.model`, and FiD's checkpoints with no tokenizer at all.
fn has_tokenizer(folder: &Path) -> Result<(), InputError> {
    if folder.join("tokenizer.json").exists() {
        return Ok(());
    }
    let found = if folder.join("spiece.model").exists() { ", only spiece.model" } else { "" };
    let reason = format!(
        "it has no tokenizer.json{found}; make one with Python's transformers: \
         `AutoTokenizer.from_pretrained(FOLDER).save_pretrained(FOLDER)`, with the folder of the model or of the T5 that it was \
         trained from, such as t5-base"
    );
    Err(InputError::Unreadable { path: folder.into(), reason })
}

fn tokenizer(folder: &Path, vocabulary: usize) -> Result<Tokenizer, InputError> {
    has_tokenizer(folder)?;
    tokens::read(folder, WINDOW, vocabulary)
}

/// The first digits of a hash of the weights' files.
fn key(folder: &Path) -> Option<String> {
    let mut hasher = blake3::Hasher::new();
    for file in weight_files(folder).ok()? {
        hasher.update_mmap(file).ok()?;
    }
    Some(hasher.finalize().to_hex()[..12].to_owned())
}

/// The most numbers remembered: 256 MB, about 400 passages at T5's base size.
const REMEMBERED: usize = 64 << 20;

/// An encoded passage.
pub struct Read {
    /// The encoding.
    pub part: Part,
    /// Whether the passage was cut.
    pub cut: bool,
}

/// Encoded passages by their text. The same list is read many times, with one passage more or less or in another order, and each passage
/// is encoded only once. The least recently used are dropped first.
pub struct EncodedPassages(Mutex<(LruCache<blake3::Hash, Arc<Read>>, usize)>);

impl Default for EncodedPassages {
    fn default() -> Self {
        EncodedPassages(Mutex::new((LruCache::unbounded(), 0)))
    }
}

impl EncodedPassages {
    /// The remembered encoding of a text, or else that of `encode`.
    pub fn get(
        &self,
        input: &str,
        encode: impl FnOnce() -> Result<Read, EncodeError>,
    ) -> Result<Arc<Read>, EncodeError> {
        // The key is a hash, because a passage may be long although only its beginning is read.
        let key = blake3::hash(input.as_bytes());
        if let Some(read) = self.0.lock().0.get(&key) {
            return Ok(Arc::clone(read));
        }
        // The lock is released while encoding, so a second thread may encode the same text, with the same result.
        let read = Arc::new(encode()?);
        let (memory, numbers) = &mut *self.0.lock();
        let replaced = memory.put(key, Arc::clone(&read)).map_or(0, |read| read.part.numbers());
        *numbers = *numbers + read.part.numbers() - replaced;
        while *numbers > REMEMBERED && memory.len() > 1 {
            let oldest = memory.pop_lru().map_or(0, |(_, read)| read.part.numbers());
            *numbers -= oldest;
        }
        Ok(read)
    }

    /// The number of remembered passages.
    #[cfg(test)]
    pub fn count(&self) -> usize {
        self.0.lock().0.len()
    }
}

#[cfg(test)]
mod tests;
