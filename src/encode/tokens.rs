//! Tokenizers of custom models (`tokenizer.json`, or the vocabulary files of older models), and windows over long texts.

use std::path::{Path, PathBuf};

use tokenizers::models::bpe::BPE;
use tokenizers::models::wordpiece::WordPiece;
use tokenizers::normalizers::BertNormalizer;
use tokenizers::pre_tokenizers::bert::BertPreTokenizer;
use tokenizers::pre_tokenizers::byte_level::ByteLevel;
use tokenizers::processors::bert::BertProcessing;
use tokenizers::processors::roberta::RobertaProcessing;
use tokenizers::{AddedToken, Tokenizer, TruncationParams};

use super::card::json;
use crate::input::{InputError, tame};
use crate::work::catch_panic;

/// Characters read per token of the window. No language needs as many; it bounds the work on very long texts.
const LETTERS: usize = 64;

/// The beginning of a text, long enough for `window` tokens.
pub fn beginning(text: &str, window: usize) -> &str {
    &text[..text.char_indices().nth(window * LETTERS).map_or(text.len(), |(i, _)| i)]
}

/// Reads a folder's tokenizer, without its own padding and truncation: sequences run alone, and `window` comes from the card.
///
/// # Errors
/// It is missing or damaged, or has more tokens than the network.
pub fn read(folder: &Path, window: usize, rows: usize) -> Result<Tokenizer, InputError> {
    let (file, kind) = find(folder)?;
    let read = match &kind {
        Kind::Whole => from_file(&file),
        Kind::Words => words(folder, &file),
        Kind::Bytes(merges) => bytes(&file, merges),
    };
    let wrong = |reason: String| InputError::Unreadable { path: file.clone(), reason };
    let mut tokenizer = read.map_err(|error| {
        wrong(format!(
            "not a tokenizer that can be read ({}); fetch the model again",
            tame(&error.to_string())
        ))
    })?;
    tokenizer.with_padding(None);
    let truncation = TruncationParams { max_length: window, ..TruncationParams::default() };
    tokenizer.with_truncation(Some(truncation)).map_err(|error| wrong(error.to_string()))?;
    let count = tokenizer.get_vocab(true).into_values().max().map_or(0, |id| id as usize + 1);
    if count > rows {
        return Err(wrong(format!(
            "it has {count} tokens, and config.json states {rows}; the files belong to two different models: fetch it again"
        )));
    }
    Ok(tokenizer)
}

/// Reads a `tokenizer.json`. The crate's own reader panics on some invalid files.
///
/// # Errors
/// It cannot be read.
pub fn from_file(file: &Path) -> tokenizers::Result<Tokenizer> {
    let read = catch_panic(|| Tokenizer::from_file(file));
    read.unwrap_or_else(|| Err("it does not have the format of the crate `tokenizers`".into()))
}

/// The files of a folder's tokenizer.
///
/// # Errors
/// There are none.
pub fn files(folder: &Path) -> Result<Vec<PathBuf>, InputError> {
    Ok(match find(folder)? {
        (file, Kind::Bytes(merges)) => vec![file, merges],
        (file, _) => vec![file],
    })
}

enum Kind {
    Whole,
    Words,
    Bytes(PathBuf),
}

fn find(folder: &Path) -> Result<(PathBuf, Kind), InputError> {
    let at = |name: &str| Some(folder.join(name)).filter(|path| path.exists());
    if let Some(file) = at("tokenizer.json") {
        return Ok((file, Kind::Whole));
    }
    if let Some(file) = at("vocab.txt") {
        return Ok((file, Kind::Words));
    }
    if let (Some(file), Some(merges)) = (at("vocab.json"), at("merges.txt")) {
        return Ok((file, Kind::Bytes(merges)));
    }
    let reason = match at("spiece.model") {
        None => "it contains no tokenizer; expected tokenizer.json, vocab.txt, or vocab.json with merges.txt",
        Some(_) => {
            "it has no tokenizer.json, only spiece.model; make one with Python's transformers: \
             `AutoTokenizer.from_pretrained(FOLDER).save_pretrained(FOLDER)`"
        }
    };
    Err(InputError::Unreadable { path: folder.into(), reason: reason.into() })
}

/// WordPiece as in BERT; with MPNet's special tokens if the vocabulary has them.
fn words(folder: &Path, file: &Path) -> tokenizers::Result<Tokenizer> {
    let lower = json(&folder.join("tokenizer_config.json"))?;
    let lower = lower.and_then(|config| config.get("do_lower_case")?.as_bool()).unwrap_or(true);
    pieces(WordPiece::from_file(&file.to_string_lossy()).unk_token("[UNK]".into()).build()?, lower)
}

/// A tokenizer around a WordPiece vocabulary.
pub fn pieces(model: WordPiece, lower: bool) -> tokenizers::Result<Tokenizer> {
    let mut tokenizer = Tokenizer::new(model);
    tokenizer.with_normalizer(Some(BertNormalizer::new(true, true, None, lower)))?;
    tokenizer.with_pre_tokenizer(Some(BertPreTokenizer));
    let id = |name: &str| Some((name.to_owned(), tokenizer.token_to_id(name)?));
    let (first, last, others) = match (id("[CLS]"), id("[SEP]"), id("<s>"), id("</s>")) {
        (Some(first), Some(last), ..) => (first, last, ["[PAD]", "[UNK]", "[MASK]"]),
        (_, _, Some(first), Some(last)) => (first, last, ["<pad>", "[UNK]", "<mask>"]),
        _ => return Err("it has neither [CLS] and [SEP] nor <s> and </s>".into()),
    };
    let marks = others.map(str::to_owned).into_iter().chain([first.0.clone(), last.0.clone()]);
    let marks: Vec<_> = marks.filter(|mark| tokenizer.token_to_id(mark).is_some()).collect();
    tokenizer.add_special_tokens(marks.into_iter().map(|mark| AddedToken::from(mark, true)))?;
    if first.0 == "<s>" {
        tokenizer.with_post_processor(Some(RobertaProcessing::new(last, first)));
    } else {
        tokenizer.with_post_processor(Some(BertProcessing::new(last, first)));
    }
    Ok(tokenizer)
}

/// Byte-level BPE as in RoBERTa.
fn bytes(file: &Path, merges: &Path) -> tokenizers::Result<Tokenizer> {
    let mut tokenizer =
        Tokenizer::new(BPE::from_file(&file.to_string_lossy(), &merges.to_string_lossy()).build()?);
    tokenizer.with_pre_tokenizer(Some(ByteLevel::new(false, true, true)));
    let id = |name: &str| Some((name.to_owned(), tokenizer.token_to_id(name)?));
    let (Some(first), Some(last)) = (id("<s>"), id("</s>")) else {
        return Err("it has no <s> and </s>".into());
    };
    let marks = ["<s>", "<pad>", "</s>", "<unk>"].map(|mark| AddedToken::from(mark, true));
    let mask = AddedToken::from("<mask>", true).lstrip(true);
    let marks = marks.into_iter().chain([mask]);
    let marks: Vec<_> = marks.filter(|mark| tokenizer.token_to_id(&mark.content).is_some()).collect();
    tokenizer.add_special_tokens(marks)?;
    tokenizer.with_post_processor(Some(RobertaProcessing::new(last, first).add_prefix_space(false)));
    Ok(tokenizer)
}

/// Ranges of at most `room` tokens that overlap by half and together cover all tokens.
pub fn windows(tokens: usize, room: usize) -> impl Iterator<Item = std::ops::Range<usize>> {
    let mut start = Some(0);
    std::iter::from_fn(move || {
        let from = start?;
        let to = (from + room).min(tokens);
        start = (to < tokens).then_some(from + (room / 2).max(1));
        Some(from..to)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn windows_overlap_by_half_and_cover_every_token() {
        assert!(windows(10, 10).eq(std::iter::once(0..10)));
        assert_eq!(windows(25, 10).collect::<Vec<_>>(), [0..10, 5..15, 10..20, 15..25]);
        assert_eq!(windows(3, 1).collect::<Vec<_>>(), [0..1, 1..2, 2..3]);
    }
}
