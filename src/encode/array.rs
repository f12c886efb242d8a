//! A matrix in a file: NumPy's `.npy`, the only tensor of a `.safetensors`, or a corpus's own rows. Rows are read on demand.

use std::fs::File;
use std::ops::Range;
use std::path::Path;

use serde::Deserialize;

use crate::input::{InputError, excerpt, open_regular, read_at};
use crate::storage::checked::{Summed, open_file};
use crate::vector::floats;

/// The limit of a header in bytes.
const LONGEST: u64 = 100 << 20;

/// A file of rows that is checked as it is read.
pub(super) struct Filed {
    file: File,
    /// Its checksums.
    pub sums: Summed,
    /// The length of a row.
    pub dimensions: usize,
}

impl Filed {
    pub fn open(path: &Path, dimensions: usize) -> std::io::Result<Self> {
        let (sums, file) = open_file(path)?;
        Ok(Filed { sums, file, dimensions })
    }

    /// The numbers of consecutive rows. Many threads can read at once.
    pub fn rows(&self, range: Range<usize>) -> std::io::Result<Vec<f32>> {
        let row = self.dimensions as u64 * 4;
        let place = range.start as u64 * row..range.end as u64 * row;
        self.sums.check(place, |block, at| read_at(&self.file, block, at))?;
        let mut bytes = vec![0; range.len() * self.dimensions * 4];
        read_at(&self.file, &mut bytes, range.start as u64 * row)?;
        Ok(floats(&bytes))
    }
}

#[derive(Clone, Copy, PartialEq)]
enum Kind {
    F32,
    F16,
}

/// Why a file of vectors was not imported.
#[derive(Debug, thiserror::Error)]
pub enum ArrayError {
    /// The file cannot be read.
    #[error(transparent)]
    Input(#[from] InputError),
    /// The file has another format, or does not fit the corpus or the model.
    #[error("{path}: expected {expected}, found {found}; nothing was taken from it")]
    Unfit {
        /// The file.
        path: String,
        /// What was expected.
        expected: String,
        /// What was found.
        found: String,
    },
}

impl ArrayError {
    pub(super) fn unfit(path: &Path, expected: impl Into<String>, found: impl Into<String>) -> Self {
        let path = path.display().to_string();
        ArrayError::Unfit { path, expected: expected.into(), found: found.into() }
    }
}

/// Rows of f32 or f16, one after another.
pub struct Array {
    file: File,
    kind: Kind,
    start: u64,
    /// The number of rows.
    pub rows: usize,
    /// The length of a row.
    pub dimensions: usize,
}

impl Array {
    /// Opens a file by its extension.
    ///
    /// # Errors
    /// It cannot be read, or has another format.
    pub fn open(path: &Path) -> Result<Self, ArrayError> {
        let unreadable = |error| ArrayError::Input(InputError::unreadable(path, &error));
        let file = open_regular(path).map_err(unreadable)?;
        let size = file.metadata().map_err(unreadable)?.len();
        let read = |at: u64, length: u64| {
            if at.checked_add(length).is_none_or(|end| end > size) || length > LONGEST {
                return Err(ArrayError::unfit(path, "a whole file", format!("one that ends at byte {size}")));
            }
            let mut bytes = vec![0; length as usize];
            read_at(&file, &mut bytes, at).map_err(unreadable)?;
            Ok(bytes)
        };
        let unfit = |(expected, found): (&str, String)| ArrayError::unfit(path, expected, found);
        let (kind, rows, dimensions, start) = match path.extension().and_then(|end| end.to_str()) {
            Some("npy") => {
                let magic = read(0, 10)?;
                if !magic.starts_with(b"\x93NUMPY") {
                    return Err(unfit(("a file that NumPy saved", "other bytes at its beginning".into())));
                }
                let (at, length) = if magic[6] == 1 {
                    (10, u64::from(u16::from_le_bytes([magic[8], magic[9]])))
                } else {
                    let length = read(8, 4)?;
                    (12, u64::from(u32::from_le_bytes([length[0], length[1], length[2], length[3]])))
                };
                let header = String::from_utf8_lossy(&read(at, length)?).into_owned();
                let (kind, rows, dimensions) = numpy(&header).map_err(unfit)?;
                (kind, rows, dimensions, at + length)
            }
            Some("safetensors") => {
                let length = read(0, 8)?.try_into().map_or(u64::MAX, u64::from_le_bytes);
                let (kind, rows, dimensions, begin) = tensor(&read(8, length)?).map_err(unfit)?;
                (kind, rows, dimensions, (8 + length).saturating_add(begin))
            }
            _ => return Err(unfit(("a file that ends in .npy or .safetensors", "another".into()))),
        };
        let array = Array { file, kind, start, rows, dimensions };
        let needed = (rows as u64)
            .checked_mul(dimensions as u64)
            .and_then(|numbers| numbers.checked_mul(array.width() as u64)?.checked_add(start));
        if rows == 0 || dimensions == 0 || needed.is_none_or(|needed| needed > size) {
            let found = format!("a header for {rows} × {dimensions} and {size} bytes");
            return Err(ArrayError::unfit(path, "a whole file with at least one number", found));
        }
        Ok(array)
    }

    fn width(&self) -> usize {
        if self.kind == Kind::F32 { 4 } else { 2 }
    }

    /// One row.
    ///
    /// # Errors
    /// The file cannot be read.
    pub fn row(&self, row: usize) -> std::io::Result<Vec<f32>> {
        let mut bytes = vec![0; self.dimensions * self.width()];
        let at = self.start + row as u64 * bytes.len() as u64;
        read_at(&self.file, &mut bytes, at)?;
        Ok(match self.kind {
            Kind::F32 => {
                bytes.chunks_exact(4).map(|b| f32::from_le_bytes(b.try_into().unwrap_or_default())).collect()
            }
            Kind::F16 => bytes.chunks_exact(2).map(|b| half(u16::from_le_bytes([b[0], b[1]]))).collect(),
        })
    }
}

/// What was expected, and what was found.
type Mismatch = (&'static str, String);

const FORM: &str = "f32 or f16, little-endian, row after row, of two dimensions";

/// Reads `{'descr': '<f4', 'fortran_order': False, 'shape': (3, 2), }`.
fn numpy(header: &str) -> Result<(Kind, usize, usize), Mismatch> {
    let wrong = || (FORM, excerpt(header.trim()));
    let after = |key: &str| header.split_once(&format!("'{key}':")).map(|(_, rest)| rest.trim_start());
    let kind = match after("descr").and_then(|rest| rest.get(..5)) {
        Some("'<f4'") => Kind::F32,
        Some("'<f2'") => Kind::F16,
        _ => return Err(wrong()),
    };
    let by_rows = after("fortran_order").is_some_and(|rest| rest.starts_with("False"));
    let shape = after("shape").and_then(|rest| rest.strip_prefix('(')?.split_once(')'));
    let shape: Vec<usize> = shape
        .map(|(shape, _)| shape.split(',').filter_map(|number| number.trim().parse().ok()).collect())
        .unwrap_or_default();
    match shape[..] {
        [rows, dimensions] if by_rows => Ok((kind, rows, dimensions)),
        _ => Err(wrong()),
    }
}

#[derive(Deserialize)]
struct Tensor {
    dtype: String,
    shape: Vec<usize>,
    data_offsets: (u64, u64),
}

/// Reads the header of a file that holds one matrix, and where its numbers begin.
fn tensor(header: &[u8]) -> Result<(Kind, usize, usize, u64), Mismatch> {
    const ONE: &str = "the header of a .safetensors file with one tensor";
    let mut tensors: serde_json::Map<String, serde_json::Value> =
        serde_json::from_slice(header).map_err(|error| (ONE, error.to_string()))?;
    tensors.remove("__metadata__");
    if tensors.len() != 1 {
        let names: Vec<&str> = tensors.keys().map(String::as_str).collect();
        return Err((ONE, excerpt(&format!("{} ({})", names.len(), names.join(", ")))));
    }
    let tensor = tensors.into_iter().next().map(|(_, tensor)| serde_json::from_value::<Tensor>(tensor));
    let Some(Ok(Tensor { dtype, shape, data_offsets })) = tensor else {
        return Err((ONE, "one without dtype, shape and data_offsets".into()));
    };
    match (dtype.as_str(), &shape[..]) {
        ("F32", [rows, dimensions]) => Ok((Kind::F32, *rows, *dimensions, data_offsets.0)),
        ("F16", [rows, dimensions]) => Ok((Kind::F16, *rows, *dimensions, data_offsets.0)),
        _ => Err((FORM, excerpt(&format!("{dtype} of shape {shape:?}")))),
    }
}

/// Converts IEEE 754 half precision.
fn half(bits: u16) -> f32 {
    let (exponent, fraction) = (i32::from(bits >> 10 & 31), f32::from(bits & 1023) / 1024.0);
    let size = match exponent {
        0 => fraction * 2f32.powi(-14),
        31 if fraction == 0.0 => f32::INFINITY,
        31 => f32::NAN,
        _ => (1.0 + fraction) * 2f32.powi(exponent - 15),
    };
    if bits >> 15 == 1 { -size } else { size }
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;

    /// Only for numbers that half precision represents exactly.
    fn bytes(numbers: &[f32], half: bool) -> Vec<u8> {
        if !half {
            return numbers.iter().flat_map(|x| x.to_le_bytes()).collect();
        }
        let bits = |x: &f32| (0..=u16::MAX).find(|bits| super::half(*bits).to_bits() == x.to_bits());
        numbers.iter().flat_map(|x| bits(x).expect("a number of half precision").to_le_bytes()).collect()
    }

    pub fn npy(kind: &str, shape: &[usize], numbers: &[f32]) -> Vec<u8> {
        let shape: Vec<String> = shape.iter().map(ToString::to_string).collect();
        let header =
            format!("{{'descr': '{kind}', 'fortran_order': False, 'shape': ({}), }}\n", shape.join(", "));
        let length = (header.len() as u16).to_le_bytes();
        [b"\x93NUMPY\x01\x00", length.as_slice(), header.as_bytes(), &bytes(numbers, kind == "<f2")].concat()
    }

    pub fn safetensors(kind: &str, shape: &[usize], numbers: &[f32]) -> Vec<u8> {
        let data = bytes(numbers, kind == "F16");
        let header = format!(
            "{{\"__metadata__\":{{\"by\":\"test\"}},\"v\":{{\"dtype\":\"{kind}\",\"shape\":{shape:?},\"data_offsets\":[0,{}]}}}}",
            data.len()
        );
        [(header.len() as u64).to_le_bytes().as_slice(), header.as_bytes(), &data].concat()
    }

    #[test]
    fn half_precision_is_converted_as_ieee_754_defines_it() {
        for (bits, expected) in [
            (0x0000, 0.0),
            (0x3c00, 1.0),
            (0xc000, -2.0),
            (0x7bff, 65_504.0),
            (0x0001, 5.960_464_5e-8),
            (0x3555, 0.333_251_95),
            (0x7c00, f32::INFINITY),
        ] {
            assert_eq!(half(bits), expected, "{bits:#x}");
        }
        assert!(half(0x7e00).is_nan());
    }

    #[test]
    fn a_file_of_another_format_is_refused_with_what_was_expected() {
        let folder = tempfile::tempdir().unwrap();
        let error = |name: &str, bytes: &[u8]| {
            let path = folder.path().join(name);
            std::fs::write(&path, bytes).unwrap();
            Array::open(&path).err().expect("it is refused").to_string()
        };
        let whole = npy("<f4", &[2, 2], &[1.0; 4]);
        let two = br#"{"a":{"dtype":"F32","shape":[1,1],"data_offsets":[0,4]},"b":{"dtype":"F32","shape":[1,1],"data_offsets":[4,8]}}"#;
        let two = [(two.len() as u64).to_le_bytes().as_slice(), two, &[0; 8]].concat();
        for (name, bytes, expected) in [
            ("v.bin", whole.clone(), "expected a file that ends in .npy or .safetensors"),
            ("v.npy", b"hello, this is text".to_vec(), "expected a file that NumPy saved"),
            ("v.npy", Vec::new(), "expected a whole file"),
            ("v.npy", whole[..whole.len() - 1].to_vec(), "a header for 2 × 2"),
            ("v.npy", npy("<f8", &[2, 2], &[1.0; 8]), FORM),
            ("v.npy", npy("<f4", &[4], &[1.0; 4]), FORM),
            ("v.safetensors", vec![255; 64], "expected a whole file"),
            ("v.safetensors", two, "with one tensor, found `2 (a, b)`"),
            ("v.safetensors", safetensors("I64", &[2, 2], &[1.0; 8]), FORM),
        ] {
            let message = error(name, &bytes);
            assert!(message.contains(expected), "{name}: {message}");
        }
        assert!(Array::open(&folder.path().join("none.npy")).is_err());
    }
}

pub(crate) mod tokens {
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

    use crate::encode::card::json;
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
        let read = catch_panic(|| {
            let tokenizer = Tokenizer::from_file(file)?;
            // A template with a token that the file does not describe panics only when a text is encoded. Errors are reported with the first real text.
            let _ = (tokenizer.encode_fast("a", true), tokenizer.encode_fast(("a", "a"), true));
            Ok(tokenizer)
        });
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
            None => {
                "it contains no tokenizer; expected tokenizer.json, vocab.txt, or vocab.json with merges.txt"
            }
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

        #[test]
        fn a_template_with_a_token_that_the_file_does_not_describe_is_refused() {
            let kept =
                concat!(env!("CARGO_MANIFEST_DIR"), "/tests/fixtures/encoders/contriever/tokenizer.json");
            assert!(from_file(Path::new(kept)).is_ok());
            let folder = tempfile::tempdir().unwrap();
            let place = folder.path().join("tokenizer.json");
            let harmed = std::fs::read_to_string(kept).unwrap().replacen("\"[SEP]\": {", "\"[SEPT]\": {", 1);
            std::fs::write(&place, harmed).unwrap();
            let error = from_file(&place).unwrap_err().to_string();
            assert!(error.contains("the format of the crate"), "{error}");
        }
    }
}
