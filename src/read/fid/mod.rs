//! Fusion-in-Decoder (Izacard & Grave, "Leveraging Passage Retrieval with Generative Models"): a T5 that encodes every passage
//! apart, beside the question, and writes its answer from all of them at once. Their order does not matter to it.
//!
//! Owns what goes in and comes out as text, and what was encoded before; the network is `encode`'s.

mod known;

use std::path::{Path, PathBuf};
use std::sync::{Arc, OnceLock};

use tokenizers::Tokenizer;

use self::known::{Known, Read};
use super::reader::{Answer, Context, ReadError, Reader};
use crate::encode::EncodeError;
use crate::encode::family::{Config, Fusion, Weights, Writing, weight_files};
use crate::encode::tokens;
use crate::input::{InputError, excerpt};
use crate::work::{Stop, Stopped};

/// The file that says what the network is.
pub const CONFIG: &str = "config.json";
/// The files of such a reader.
pub const EXPECTED: &str =
    "config.json with tokenizer.json and model.safetensors or pytorch_model.bin (a T5 for Fusion-in-Decoder)";

/// Tokens that are read of a passage, the question before it among them.
const WINDOW: usize = 200;
/// Tokens of an answer at most, as `transformers` counts them: the one that it begins with and the one that ends it among them.
const LENGTH: usize = 50;

/// What the configuration says.
struct Said {
    config: Config,
    /// How many tokens there are.
    known: usize,
    /// What an answer begins with.
    first: u32,
    /// What ends it.
    last: u32,
}

impl Said {
    fn read(folder: &Path) -> Result<Self, InputError> {
        let config = Config::read(folder)?;
        let kind = config.model_type()?;
        if kind != "t5" {
            return Err(config
                .wrong(&format!("`model_type` is {}; a reader of this kind is a t5 (FiD)", excerpt(kind))));
        }
        let known = config.vocabulary()?;
        // T5 begins with its padding where nothing else is said.
        let first = config.size(&["decoder_start_token_id", "pad_token_id"])?;
        let last = config.size(&["eos_token_id"])?;
        if first.max(last) >= known {
            return Err(config.wrong(&format!(
                "answers begin with token {first} and end with {last}, and `vocab_size` is {known}"
            )));
        }
        Ok(Said { config, known, first: first as u32, last: last as u32 })
    }
}

/// The name of the reader in a folder, whose tokenizer and weights are not read.
///
/// # Errors
/// The configuration is damaged or of another model, or one of the others is not there.
pub fn name(folder: &Path) -> Result<String, InputError> {
    Said::read(folder)?;
    has_tokenizer(folder)?;
    weight_files(folder)?;
    Ok(called(folder))
}

fn called(folder: &Path) -> String {
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
    known: Known,
}

impl Fid {
    /// Opens a folder with `config.json`, `tokenizer.json` and the weights, under the names of `transformers` or those of FiD's own
    /// code.
    ///
    /// # Errors
    /// A file is missing or damaged, or two contradict each other.
    pub fn open(folder: &Path) -> Result<Self, InputError> {
        let Said { config, known, first, last } = Said::read(folder)?;
        let tokenizer = tokenizer(folder, known)?;
        let network = Fusion::load(&config, Weights::read(folder)?)?;
        Ok(Fid {
            name: called(folder),
            folder: folder.into(),
            key: OnceLock::new(),
            tokenizer,
            network,
            first,
            last,
            known: Known::default(),
        })
    }

    /// The passages as the network knows them, with their places in the list: the question alone if there are none.
    ///
    /// They always stand in the same order, so that an answer is the same to the last bit whatever order they come in: sums of
    /// rounded numbers are not quite free of theirs.
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
            Ok(self.known.get(input, || self.encode(input))?)
        });
        let read = read.collect::<Result<_, ReadError>>()?;
        Ok((inputs.into_iter().map(|(at, _)| at).collect(), read))
    }

    fn encode(&self, input: &str) -> Result<Read, EncodeError> {
        let beginning = tokens::beginning(input, WINDOW);
        let encoded = self.tokenizer.encode_fast(beginning, true)?;
        let cut = beginning.len() < input.len() || !encoded.get_overflowing().is_empty();
        // A text may spell out the marks; only those that the tokenizer sets itself count.
        let set = encoded.get_ids().iter().zip(encoded.get_special_tokens_mask());
        let own = set.filter(|(id, set)| **set == 1 || ![self.first, self.last].contains(id));
        let ids: Vec<u32> = own.map(|(id, _)| *id).collect();
        Ok(Read { part: self.network.encode(&ids)?, cut })
    }

    fn begin(&self, read: &[Arc<Read>]) -> Result<Writing, EncodeError> {
        let parts: Vec<_> = read.iter().map(|read| &read.part).collect();
        self.network.begin(&parts)
    }

    /// The answer's tokens, each the likeliest after those before it.
    fn write(&self, read: &[Arc<Read>], stop: &Stop) -> Result<Vec<u32>, ReadError> {
        let mut writing = self.begin(read)?;
        let mut said = vec![self.first];
        while said.len() < LENGTH {
            if stop.is_set() {
                return Err(Stopped.into());
            }
            let scores = self.network.next(&mut writing, said[said.len() - 1])?;
            let next =
                greatest(&scores).ok_or_else(|| EncodeError("it gave scores that are no numbers".into()))?;
            if next == self.last {
                break;
            }
            said.push(next);
        }
        Ok(said.split_off(1))
    }
}

impl Reader for Fid {
    fn name(&self) -> &str {
        &self.name
    }

    fn order_sensitive(&self) -> bool {
        false
    }

    fn recorded(&self) -> bool {
        false
    }

    fn key(&self) -> Option<String> {
        self.key.get_or_init(|| key(&self.folder)).clone()
    }

    fn window(&self) -> String {
        format!("{WINDOW} tokens a passage")
    }

    /// Of the first token of the answer, over all heads and layers.
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
        let mut writing = self.begin(&read)?;
        self.network.next(&mut writing, self.first)?;
        let mut shares = vec![0.0; order.len()];
        order.into_iter().zip(writing.shares()).for_each(|(at, share)| shares[at] = share);
        Ok(Some(shares))
    }

    fn answer(&self, question: &str, passages: &[Context], stop: &Stop) -> Result<Answer, ReadError> {
        let (_, read) = self.read(question, passages, stop)?;
        let said = self.write(&read, stop)?;
        let text = self.tokenizer.decode(&said, true).map_err(EncodeError::from)?;
        let cut = if passages.is_empty() { 0 } else { read.iter().filter(|read| read.cut).count() };
        Ok(Answer { text: text.trim().to_owned(), recorded: false, cut })
    }
}

/// What is encoded of a passage.
fn input(question: &str, context: &Context) -> String {
    let passage = &context.passage;
    format!("question: {question} title: {} context: {}", passage.title, passage.text)
}

/// Where the greatest score stands, the first of several; none if one of them is no number.
fn greatest(scores: &[f32]) -> Option<u32> {
    if scores.iter().any(|score| score.is_nan()) {
        return None;
    }
    let best = scores.iter().enumerate().reduce(|best, next| if next.1 > best.1 { next } else { best });
    best.map(|(at, _)| at as u32)
}

/// T5 comes with `spiece.model`, and checkpoints of FiD with no tokenizer at all.
fn has_tokenizer(folder: &Path) -> Result<(), InputError> {
    if folder.join("tokenizer.json").exists() {
        return Ok(());
    }
    let found = if folder.join("spiece.model").exists() { ", only spiece.model" } else { "" };
    let reason = format!(
        "no tokenizer.json is in it{found}; with Python's transformers, \
         `AutoTokenizer.from_pretrained(FOLDER).save_pretrained(FOLDER)` makes one, where FOLDER is the model's own or that of \
         the T5 it was trained from, such as t5-base"
    );
    Err(InputError::Unreadable { path: folder.into(), reason })
}

fn tokenizer(folder: &Path, known: usize) -> Result<Tokenizer, InputError> {
    has_tokenizer(folder)?;
    tokens::read(folder, WINDOW, known)
}

/// The first digits of a hash of the weights' files.
fn key(folder: &Path) -> Option<String> {
    let mut hasher = blake3::Hasher::new();
    for file in weight_files(folder).ok()? {
        hasher.update_mmap(file).ok()?;
    }
    Some(hasher.finalize().to_hex()[..12].to_owned())
}

#[cfg(test)]
mod tests;
