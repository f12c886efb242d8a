//! Learned sparse models: a text becomes weights of terms of the model's vocabulary, and a passage scores the sum of products with the
//! query's weights.
//!
//! SPLADE (Formal et al., SIGIR 2021; version 3, Lassance et al. 2024) takes for every term the greatest logit of a masked language
//! model over the text's tokens, and weighs it log(1 + ReLU). OpenSearch's *doc* models (Geng et al. 2024) do so for passages alone: a
//! query's terms are its own tokens, weighed by a table of idf, so a query needs no inference.

use std::collections::BTreeSet;
use std::fs::{self, File, OpenOptions};
use std::io::{self, BufReader, Read, Write};
use std::path::{Path, PathBuf};

use rayon::ThreadPool;
use serde_json::Value;
use tokenizers::Tokenizer;

use super::card::{self, json};
use super::corpus_vectors::{EmbedError, PROOF, RemoveEmpty, SHARE, proven};
use super::encoder::{EncodeError, ModelError, Role};
use super::family::{Config, Masked, Weights, weight_files};
use super::registry::{Named, Sparse};
use super::tokens;
use crate::corpus::{Corpus, Passage, PassageIx};
use crate::input::{InputError, excerpt};
use crate::work::{Job, OnProgress, Progress, Stop, Stopped, on_all};

/// Terms by their numbers in the vocabulary, ascending, each with a weight above 0.
pub type TermWeights = Vec<(u32, f32)>;

/// A learned sparse model from a folder or the hub.
pub struct SparseEncoder {
    key: String,
    network: Masked,
    tokenizer: Tokenizer,
    window: usize,
    twice: bool,
    /// The weight of every term in a query, if queries need no network.
    table: Option<Vec<f32>>,
    /// The size of the vocabulary.
    terms: usize,
}

impl SparseEncoder {
    /// Loads the model that a recipe names, from its folder.
    ///
    /// # Errors
    /// A file is missing or damaged, two contradict each other, or the model weighs terms in another way.
    pub fn load(named: &Named, folder: &Path) -> Result<Self, InputError> {
        let config = Config::read(folder)?;
        let Sparse { table, twice } = named.sparse().unwrap_or(Sparse { table: false, twice: false });
        let mut weights = Weights::read(folder)?;
        let network = Masked::load(&config, &mut weights)?;
        drop(weights);
        let terms = config.vocabulary()?;
        let twice = pooling(folder)?.unwrap_or(twice);
        let window = card::window(folder, &config)?;
        let tokenizer = tokens::read(folder, window, terms)?;
        let mut files = weight_files(folder)?;
        files.extend(tokens::files(folder)?);
        files.push(folder.join("config.json"));
        let (table, own) = match (idf(folder, &tokenizer, terms)?, table) {
            (Some((table, file)), _) => (Some(table), Some(file)),
            (None, false) => (None, None),
            (None, true) => {
                return Err(config.wrong(
                    "its family os-doc weighs queries by a table, and the folder has neither idf.json nor query_0_SparseStaticEmbedding; \
                     fetch the model again, or name it with @family=splade",
                ));
            }
        };
        files.extend(own);
        let mut hasher = blake3::Hasher::new();
        for file in files {
            hasher.update_mmap(&file).map_err(|error| InputError::unreadable(&file, &error))?;
        }
        hasher.update(format!("sparse {window} {twice} {}", table.is_some()).as_bytes());
        let key = format!("{}-{}", named.slug(), &hasher.finalize().to_hex()[..12]);
        Ok(SparseEncoder { key, network, tokenizer, window, twice, table, terms })
    }

    /// The model's name and a hash of its files; weights of another key are not comparable.
    pub fn key(&self) -> &str {
        &self.key
    }

    /// The size of the vocabulary.
    pub fn terms(&self) -> usize {
        self.terms
    }

    /// Whether queries take their weights from a table, without the network.
    pub fn is_free(&self) -> bool {
        self.table.is_some()
    }

    /// The weights of a text's terms. Text beyond the model's window is not read.
    ///
    /// # Errors
    /// The model cannot be run.
    pub fn encode(&self, text: &str, role: Role) -> Result<TermWeights, EncodeError> {
        let text = tokens::beginning(text, self.window);
        if let (Role::Query, Some(table)) = (role, &self.table) {
            let encoded = self.tokenizer.encode_fast(text, false)?;
            let own: BTreeSet<u32> = encoded.get_ids().iter().copied().collect();
            let weight = |id: u32| Some((id, *table.get(id as usize)?)).filter(|(_, weight)| *weight > 0.0);
            return Ok(own.into_iter().filter_map(weight).collect());
        }
        let encoded = self.tokenizer.encode_fast(text, true)?;
        if encoded.get_ids().is_empty() {
            return Ok(Vec::new());
        }
        // The weight grows with the logit, so the greatest weight is that of the greatest logit.
        let logits = self.network.greatest(encoded.get_ids())?;
        let weigh = |logit: f32| {
            let once = logit.max(0.0).ln_1p();
            if self.twice { once.ln_1p() } else { once }
        };
        if logits.iter().any(|logit| logit.is_nan() || *logit == f32::INFINITY) {
            return Err(ModelError::NotFinite("logits of the terms").into());
        }
        let weights = (0..).zip(logits).map(|(id, logit)| (id, weigh(logit)));
        Ok(weights.filter(|(_, weight)| *weight > 0.0).collect())
    }

    /// The weights of a passage's terms; its title is read before its text.
    ///
    /// # Errors
    /// The model cannot be run.
    pub fn passage(&self, passage: &Passage) -> Result<TermWeights, EncodeError> {
        self.encode(&passage.contents(), Role::Passage)
    }

    /// A term as the vocabulary writes it, without the mark of a word's beginning; its number if the tokenizer has no such token.
    pub fn term(&self, id: u32) -> String {
        match self.tokenizer.id_to_token(id) {
            Some(token) => {
                let bare = token.trim_start_matches(['Ġ', '▁']);
                if bare.is_empty() { token } else { bare.to_owned() }
            }
            None => format!("#{id}"),
        }
    }
}

/// The folders in which a model may state how it pools logits.
const POOLING: [&str; 2] = ["1_SpladePooling", "document_1_SpladePooling"];
/// The folders in which a model may have the weights of queries.
const TABLES: [&str; 2] = ["query_0_SparseStaticEmbedding", "query_0_IDF"];

/// Whether a model's own file says that the logarithm is taken twice; `None` without such a file.
fn pooling(folder: &Path) -> Result<Option<bool>, InputError> {
    for place in POOLING {
        let file = folder.join(place).join("config.json");
        let Some(value) = json(&file)? else { continue };
        let wrong = |reason: String| InputError::Unreadable { path: file.clone(), reason };
        let word = |name: &str, usual: &'static str| match value.get(name) {
            None => Ok(usual.to_owned()),
            Some(Value::String(word)) => Ok(word.clone()),
            Some(other) => Err(wrong(format!("expected a word at `{name}`, found {other}"))),
        };
        let strategy = word("pooling_strategy", "max")?;
        if strategy != "max" {
            return Err(wrong(format!("`pooling_strategy` is {}; max is supported", excerpt(&strategy))));
        }
        return match word("activation_function", "relu")?.as_str() {
            "relu" => Ok(Some(false)),
            "log1p_relu" => Ok(Some(true)),
            other => Err(wrong(format!(
                "`activation_function` is {}; relu and log1p_relu are supported",
                excerpt(other)
            ))),
        };
    }
    Ok(None)
}

/// The weight of every term in a query, and the file that has them; `None` if no file has.
fn idf(
    folder: &Path,
    tokenizer: &Tokenizer,
    terms: usize,
) -> Result<Option<(Vec<f32>, PathBuf)>, InputError> {
    let file = folder.join("idf.json");
    let (table, file) = if let Some(value) = json(&file)? {
        let wrong = |reason: String| InputError::Unreadable { path: file.clone(), reason };
        let named =
            value.as_object().ok_or_else(|| wrong("expected an object of tokens with weights".into()))?;
        let mut table = vec![0.0; terms];
        for (token, weight) in named {
            let id = tokenizer.token_to_id(token).map(|id| id as usize).filter(|id| *id < terms);
            let place = id.and_then(|id| table.get_mut(id)).ok_or_else(|| {
                wrong(format!(
                    "it weighs {}, which the tokenizer does not have; the files belong to two different models: fetch the model again",
                    excerpt(token)
                ))
            })?;
            let number = weight.as_f64();
            *place = number.ok_or_else(|| wrong(format!("expected a number for {}", excerpt(token))))? as f32;
        }
        (table, file)
    } else if let Some(place) = TABLES.into_iter().map(|name| folder.join(name)).find(|place| place.is_dir())
    {
        let file = weight_files(&place)?.swap_remove(0);
        (Weights::read(&place)?.column("weight", terms)?, file)
    } else {
        return Ok(None);
    };
    match table.iter().position(|weight| !(0.0..=f32::MAX).contains(weight)) {
        None => Ok(Some((table, file))),
        Some(id) => {
            let token = tokenizer.id_to_token(id as u32).unwrap_or_default();
            let reason = format!(
                "the weight of {} is {}; expected a number of 0 or more: fetch the model again",
                excerpt(&token),
                table[id]
            );
            Err(InputError::Unreadable { path: file, reason })
        }
    }
}

/// Writes the weights of every passage's terms to `file`, in the order of the corpus: a count, then so many pairs of a term's number and its
/// weight, all of 4 bytes.
///
/// # Errors
/// The model or the disk failed, or `stop` was set; the passages written so far are kept.
pub fn write_weights(
    corpus: &Corpus,
    encoder: &SparseEncoder,
    file: &Path,
    models: &ThreadPool,
    on_progress: OnProgress<'_>,
    stop: &Stop,
) -> Result<(), EmbedError> {
    let weights = |passage: &Passage| {
        let weights = encoder.passage(passage)?;
        let pair = |(term, weight): &(u32, f32)| [term.to_le_bytes(), weight.to_le_bytes()].concat();
        Ok([(weights.len() as u32).to_le_bytes().to_vec(), weights.iter().flat_map(pair).collect()].concat())
    };
    write_passages(corpus, (file, 8), weights, models, on_progress, stop)
}

/// Writes what `encode` makes of every passage to a file, in the order of the corpus, on all threads of `models`: a count of 4 bytes, then so
/// many items of `size` bytes. Resumes an interrupted call: `FILE.sums` holds the end and the checksum of every block, so that only
/// passages are kept that can be proved.
///
/// # Errors
/// The model or the disk failed, or `stop` was set; the passages written so far are kept.
pub fn write_passages(
    corpus: &Corpus,
    (file, size): (&Path, usize),
    encode: impl Fn(&Passage) -> Result<Vec<u8>, EncodeError> + Sync,
    models: &ThreadPool,
    on_progress: OnProgress<'_>,
    stop: &Stop,
) -> Result<(), EmbedError> {
    let proofs = proofs_of(file);
    let append = |path: &Path| OpenOptions::new().create(true).append(true).read(true).open(path);
    let _remove_empty = RemoveEmpty([file.to_owned(), proofs.clone()]);
    let (mut out, mut proof) = (append(file)?, append(&proofs)?);
    let (mut bytes, blocks) = proven(&out, &fs::read(&proofs)?, 1)?;
    out.set_len(bytes)?;
    proof.set_len(blocks * PROOF as u64)?;
    let total = corpus.len() as u64;
    let mut done = 0;
    each_item(file, size, &mut |_, _| done += 1)?;
    let report = |done| on_progress(Progress { job: Job::Embedding, done, total });
    report(done);
    while done < total {
        if stop.is_set() {
            out.sync_all()?;
            return Err(Stopped.into());
        }
        let end = (done + (models.current_num_threads() * SHARE) as u64).min(total);
        let items = on_all(models, (end - done) as usize, &Stop::never(), |i| {
            encode(&corpus.passage(PassageIx(done as u32 + i as u32)))
        });
        corpus.sound()?;
        let block = items.into_iter().collect::<Result<Vec<_>, _>>()?.concat();
        out.write_all(&block)?;
        (done, bytes) = (end, bytes + block.len() as u64);
        proof.write_all(&[&bytes.to_le_bytes(), &blake3::hash(&block).as_bytes()[..16]].concat())?;
        report(done);
    }
    out.sync_all()?;
    Ok(())
}

/// The file of checksums of unfinished weights.
pub fn proofs_of(file: &Path) -> PathBuf {
    let mut name = file.file_name().unwrap_or_default().to_owned();
    name.push(".sums");
    file.with_file_name(name)
}

/// Calls `each` with every passage's number and weights, as [`write_weights`] wrote them.
///
/// # Errors
/// The file cannot be read, or ends within a passage.
pub fn each_passage(file: &Path, each: &mut impl FnMut(u32, &[(u32, f32)])) -> io::Result<()> {
    let mut weights = TermWeights::new();
    each_item(file, 8, &mut |number, bytes| {
        weights.clear();
        weights.extend(bytes.as_chunks::<8>().0.iter().map(|[a, b, c, d, e, f, g, h]| {
            (u32::from_le_bytes([*a, *b, *c, *d]), f32::from_le_bytes([*e, *f, *g, *h]))
        }));
        each(number, &weights);
    })
}

/// Calls `each` with every passage's number and the bytes of its items, each `size` bytes long, as [`write_passages`] wrote them.
///
/// # Errors
/// The file cannot be read, or ends within a passage.
pub fn each_item(file: &Path, size: usize, each: &mut impl FnMut(u32, &[u8])) -> io::Result<()> {
    let mut read = BufReader::with_capacity(1 << 20, File::open(file)?);
    let (mut count, mut bytes, mut number) = ([0; 4], Vec::new(), 0);
    loop {
        match read.read_exact(&mut count) {
            Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => return Ok(()),
            other => other?,
        }
        bytes.clear();
        // Read as far as the file reaches: a damaged count would ask for any amount of memory.
        let wanted = u64::from(u32::from_le_bytes(count)) * size as u64;
        if (&mut read).take(wanted).read_to_end(&mut bytes)? as u64 != wanted {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        each(number, &bytes);
        number += 1;
    }
}
