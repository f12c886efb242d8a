//! A GGUF file: its header, and tensors read in place, of any model.
//!
//! candle's own reader, `candle_core::quantized::gguf_file` (0.11), is not used, for three reasons. It panics on some damaged files: it divides
//! by `general.alignment`, which may be 0, and multiplies the sides of a tensor without a check. It refuses the whole file for one tensor of an
//! unknown type, without the name of the tensor. And it reads each tensor into a buffer before copying it. Here every length is compared with
//! the rest of the file before anything is allocated, and each error says what is wrong and where.

use std::borrow::Cow;
use std::collections::HashMap;
use std::path::{Path, PathBuf};

use candle_core::Device;
use candle_core::quantized::{GgmlDType, QStorage, QTensor};
use memmap2::Mmap;

use crate::input::{InputError, excerpt, open_regular};

/// Why a header cannot be read.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub(super) enum HeaderError {
    /// The first four bytes are not `GGUF`; holds the beginning of the file.
    #[error("not a GGUF file: it begins with {0}, not with `GGUF`")]
    Magic(String),
    /// The numbers are in big-endian order.
    #[error("its bytes are in big-endian order; take another file")]
    BigEndian,
    /// The version is unknown.
    #[error("a GGUF file of version {0}; 2 and 3 can be read")]
    Version(u32),
    /// The file ends inside the header.
    #[error("it is cut short: its header goes on after the end of the file, at byte {0}; fetch it again")]
    CutShort(usize),
    /// A tensor has too many dimensions.
    #[error("the tensor {} has {count} dimensions; ggml allows 4", excerpt(name))]
    Dimensions {
        /// The tensor.
        name: String,
        /// The number of its dimensions.
        count: u32,
    },
    /// The type of a value is unknown.
    #[error("a value of an unknown type ({kind}) at byte {at}; fetch it again")]
    ValueType {
        /// The type's number.
        kind: u32,
        /// The offset of the value.
        at: usize,
    },
    /// The alignment is 0 or not a power of two.
    #[error("`general.alignment` is not a power of two; fetch it again")]
    Alignment,
}

/// Why a tensor cannot be read.
#[derive(Debug, thiserror::Error)]
enum TensorError {
    #[error("it is empty")]
    Empty,
    #[error("its rows cannot be divided into blocks of {0} numbers")]
    Blocks(usize),
    #[error("it is too large")]
    TooLarge,
    #[error("the file is cut short: the tensor goes on to byte {0}; fetch it again")]
    CutShort(usize),
    #[error("it does not begin at a multiple of 4 bytes")]
    Misaligned,
    #[error("{0}")]
    Candle(#[from] candle_core::Error),
}

/// The limit of nested arrays; no model's file needs nested arrays.
const DEEPEST: usize = 4;

/// A value of the header. Types that no model needs are `Other`.
#[derive(Debug, PartialEq)]
pub(super) enum Value {
    Whole(u64),
    Real(f64),
    Truth(bool),
    Text(String),
    Texts(Vec<String>),
    Wholes(Vec<u64>),
    Reals(Vec<f64>),
    Other,
}

/// A tensor's shape (longest stride first), ggml type number, and offset after the header.
pub(super) struct Place {
    pub shape: Vec<u64>,
    pub number: u32,
    pub from: u64,
}

type Header = (HashMap<String, Value>, HashMap<String, Place>, u64);

/// The values, the tensors, and the offset of their data.
pub(super) fn header(bytes: &[u8]) -> Result<Header, HeaderError> {
    if !bytes.starts_with(b"GGUF") {
        let begins = excerpt(&String::from_utf8_lossy(&bytes[..bytes.len().min(8)]));
        return Err(HeaderError::Magic(begins));
    }
    let mut at = Cursor { bytes, at: 4 };
    match at.u32()? {
        2 | 3 => {}
        other if other.swap_bytes() < 100 => {
            return Err(HeaderError::BigEndian);
        }
        other => return Err(HeaderError::Version(other)),
    }
    let (tensors, values) = (at.u64()?, at.u64()?);
    let mut named = HashMap::new();
    for _ in 0..values {
        let (name, kind) = (at.string()?, at.u32()?);
        named.insert(name, at.value(kind, 0)?);
    }
    let mut places = HashMap::new();
    for _ in 0..tensors {
        let (name, count) = (at.string()?, at.u32()?);
        if count > 4 {
            return Err(HeaderError::Dimensions { name, count });
        }
        let mut shape = (0..count).map(|_| at.u64()).collect::<Result<Vec<_>, _>>()?;
        shape.reverse();
        places.insert(name, Place { shape, number: at.u32()?, from: at.u64()? });
    }
    let alignment = match named.get("general.alignment") {
        None => 32,
        Some(Value::Whole(alignment)) if alignment.is_power_of_two() => *alignment,
        Some(_) => return Err(HeaderError::Alignment),
    };
    let data =
        (at.at as u64).checked_next_multiple_of(alignment).ok_or(HeaderError::CutShort(bytes.len()))?;
    Ok((named, places, data))
}

/// Reads little-endian numbers in order.
struct Cursor<'a> {
    bytes: &'a [u8],
    at: usize,
}

impl<'a> Cursor<'a> {
    fn take(&mut self, count: u64) -> Result<&'a [u8], HeaderError> {
        let end = usize::try_from(count).ok().and_then(|count| self.at.checked_add(count));
        let taken = end.and_then(|end| self.bytes.get(self.at..end));
        let taken = taken.ok_or(HeaderError::CutShort(self.bytes.len()))?;
        self.at += taken.len();
        Ok(taken)
    }

    fn array_of<const N: usize>(&mut self) -> Result<[u8; N], HeaderError> {
        self.take(N as u64)?.try_into().map_err(|_| HeaderError::CutShort(self.bytes.len()))
    }

    fn u32(&mut self) -> Result<u32, HeaderError> {
        self.array_of().map(u32::from_le_bytes)
    }

    fn u64(&mut self) -> Result<u64, HeaderError> {
        self.array_of().map(u64::from_le_bytes)
    }

    fn string(&mut self) -> Result<String, HeaderError> {
        let length = self.u64()?;
        Ok(String::from_utf8_lossy(self.take(length)?).into_owned())
    }

    fn value(&mut self, kind: u32, depth: usize) -> Result<Value, HeaderError> {
        let whole = |number: i64| u64::try_from(number).map_or(Value::Other, Value::Whole);
        Ok(match kind {
            0 => Value::Whole(self.array_of::<1>()?[0].into()),
            1 => whole(i8::from_le_bytes(self.array_of()?).into()),
            2 => Value::Whole(u16::from_le_bytes(self.array_of()?).into()),
            3 => whole(i16::from_le_bytes(self.array_of()?).into()),
            4 => Value::Whole(self.u32()?.into()),
            5 => whole(i32::from_le_bytes(self.array_of()?).into()),
            6 => Value::Real(f32::from_le_bytes(self.array_of()?).into()),
            7 => Value::Truth(self.array_of::<1>()?[0] != 0),
            8 => Value::Text(self.string()?),
            9 if depth < DEEPEST => self.array(depth)?,
            10 => Value::Whole(self.u64()?),
            11 => whole(i64::from_le_bytes(self.array_of()?)),
            12 => Value::Real(f64::from_le_bytes(self.array_of()?)),
            kind => return Err(HeaderError::ValueType { kind, at: self.at }),
        })
    }

    /// Reads an array. Each item takes at least one byte, so a length that is too large ends with an error at the end of the file.
    fn array(&mut self, depth: usize) -> Result<Value, HeaderError> {
        let (kind, count) = (self.u32()?, self.u64()?);
        let (mut texts, mut wholes, mut reals) = (Vec::new(), Vec::new(), Vec::new());
        for _ in 0..count {
            match self.value(kind, depth + 1)? {
                Value::Text(text) => texts.push(text),
                Value::Whole(number) => wholes.push(number),
                Value::Real(number) => reals.push(number),
                _ => {}
            }
        }
        let all = |read: usize| read as u64 == count;
        Ok(match kind {
            8 => Value::Texts(texts),
            6 | 12 if all(reals.len()) => Value::Reals(reals),
            0..=5 | 10 | 11 if all(wholes.len()) => Value::Wholes(wholes),
            _ => Value::Other,
        })
    }
}

/// The number of bytes at each end of a tensor that are hashed.
const SAMPLED: u64 = 4 << 10;

/// An open file.
pub(super) struct Gguf {
    path: PathBuf,
    bytes: Mmap,
    values: HashMap<String, Value>,
    tensors: HashMap<String, Place>,
    data: u64,
}

impl Gguf {
    /// Maps a file and reads its header.
    pub fn open(path: &Path) -> Result<Self, InputError> {
        let file = open_regular(path).map_err(|error| InputError::unreadable(path, &error))?;
        // Safety: a mapped file must not be changed while it is open; finished models are not.
        let bytes = unsafe { Mmap::map(&file) }.map_err(|error| InputError::unreadable(path, &error))?;
        let wrong =
            |error: HeaderError| InputError::Unreadable { path: path.into(), reason: error.to_string() };
        let (values, tensors, data) = header(&bytes).map_err(wrong)?;
        Ok(Gguf { path: path.into(), bytes, values, tensors, data })
    }

    /// An error that names the file.
    pub fn wrong(&self, reason: impl Into<String>) -> InputError {
        InputError::Unreadable { path: self.path.clone(), reason: reason.into() }
    }

    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Hashes the file's length, its header, and both ends of each tensor. Hashing gigabytes would take longer than loading them.
    pub fn hash_sample(&self, hasher: &mut blake3::Hasher) {
        let end = self.bytes.len() as u64;
        let bytes = |from: u64, to: u64| &self.bytes[from.min(end) as usize..to.min(end) as usize];
        hasher.update(&end.to_le_bytes()).update(bytes(0, self.data));
        let mut places: Vec<u64> =
            self.tensors.values().map(|place| self.data.saturating_add(place.from).min(end)).collect();
        places.push(end);
        places.sort_unstable();
        for ends in places.windows(2) {
            hasher.update(bytes(ends[0], ends[1].min(ends[0] + SAMPLED)));
            hasher.update(bytes(ends[0].max(ends[1].saturating_sub(SAMPLED)), ends[1]));
        }
    }

    pub fn whole(&self, name: &str) -> Option<u64> {
        if let Some(Value::Whole(number)) = self.values.get(name) { Some(*number) } else { None }
    }

    pub fn real(&self, name: &str) -> Option<f64> {
        match self.values.get(name)? {
            Value::Real(number) => Some(*number),
            Value::Whole(number) => Some(*number as f64),
            _ => None,
        }
    }

    pub fn truth(&self, name: &str) -> Option<bool> {
        if let Some(Value::Truth(truth)) = self.values.get(name) { Some(*truth) } else { None }
    }

    pub fn text(&self, name: &str) -> Option<&str> {
        if let Some(Value::Text(text)) = self.values.get(name) { Some(text) } else { None }
    }

    pub fn texts(&self, name: &str) -> Option<&[String]> {
        if let Some(Value::Texts(texts)) = self.values.get(name) { Some(texts) } else { None }
    }

    pub fn wholes(&self, name: &str) -> Option<&[u64]> {
        if let Some(Value::Wholes(numbers)) = self.values.get(name) { Some(numbers) } else { None }
    }

    pub fn reals(&self, name: &str) -> Option<&[f64]> {
        if let Some(Value::Reals(numbers)) = self.values.get(name) { Some(numbers) } else { None }
    }

    /// Whether there is a tensor with this name.
    pub fn has(&self, name: &str) -> bool {
        self.tensors.contains_key(name)
    }

    /// The number of rows of a matrix.
    pub fn rows(&self, name: &str) -> Option<usize> {
        let shape = &self.tensors.get(name)?.shape;
        usize::try_from(*shape.first().filter(|_| shape.len() == 2)?).ok()
    }

    /// A tensor of the expected shape, longest stride first.
    pub fn tensor(&self, name: &str, shape: &[usize]) -> Result<QTensor, InputError> {
        let Some(place) = self.tensors.get(name) else {
            return Err(self.wrong(format!("the tensor `{name}` is missing; fetch the model again")));
        };
        if !place.shape.iter().copied().eq(shape.iter().map(|side| *side as u64)) {
            let message = format!("the tensor `{name}` has the shape {:?}, expected {shape:?}", place.shape);
            return Err(self.wrong(message));
        }
        let Some(kind) = kind(place.number) else {
            return Err(self.wrong(format!(
                "the tensor `{name}` is quantised in a way that cannot be read (type {}); take a file in F32, F16, BF16, Q4_0, \
                 Q4_1, Q5_0, Q5_1, Q8_0, or Q2_K to Q6_K",
                place.number
            )));
        };
        let read = || -> Result<QTensor, TensorError> {
            let count = shape.iter().try_fold(1usize, |all, side| all.checked_mul(*side));
            let count = count.ok_or(TensorError::TooLarge)?;
            if count == 0 {
                return Err(TensorError::Empty);
            }
            if !shape.last().is_some_and(|last| last.is_multiple_of(kind.block_size())) {
                return Err(TensorError::Blocks(kind.block_size()));
            }
            let size = (count / kind.block_size()).checked_mul(kind.type_size());
            let size = size.ok_or(TensorError::TooLarge)?;
            let from = self.data.checked_add(place.from).and_then(|from| usize::try_from(from).ok());
            let range =
                from.and_then(|from| Some(from..from.checked_add(size)?)).ok_or(TensorError::TooLarge)?;
            let bytes = self.bytes.get(range.clone()).ok_or(TensorError::CutShort(range.end))?;
            // candle reads the numbers in place, and panics if they are not aligned.
            if !bytes.as_ptr().addr().is_multiple_of(align_of::<f32>()) {
                return Err(TensorError::Misaligned);
            }
            Ok(QTensor::new(QStorage::from_data(Cow::Borrowed(bytes), &Device::Cpu, kind)?, shape)?)
        };
        read().map_err(|error| self.wrong(format!("the tensor `{name}` cannot be read ({error})")))
    }
}

/// The type with this number in ggml, if candle can multiply with it.
fn kind(number: u32) -> Option<GgmlDType> {
    use GgmlDType::{BF16, F16, F32, Q2K, Q3K, Q4_0, Q4_1, Q4K, Q5_0, Q5_1, Q5K, Q6K, Q8_0};
    let kinds = [(0, F32), (1, F16), (2, Q4_0), (3, Q4_1), (6, Q5_0), (7, Q5_1), (8, Q8_0), (10, Q2K)];
    let more = [(11, Q3K), (12, Q4K), (13, Q5K), (14, Q6K), (30, BF16)];
    kinds.into_iter().chain(more).find(|(own, _)| *own == number).map(|(_, kind)| kind)
}
