//! A GGUF file: its header, and tensors read in place. Knows no model.

use std::borrow::Cow;
use std::collections::HashMap;
use std::fs::File;
use std::path::{Path, PathBuf};

use candle_core::Device;
use candle_core::quantized::{GgmlDType, QStorage, QTensor};
use memmap2::Mmap;

use crate::input::{InputError, excerpt};

pub(super) const CUT: &str = "it is cut short: fetch it again";

/// The limit of nested arrays; no model's file needs any.
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

/// A tensor's shape (longest stride first), ggml type number, and offset behind the header.
pub(super) struct Place {
    pub shape: Vec<u64>,
    pub number: u32,
    pub from: u64,
}

type Header = (HashMap<String, Value>, HashMap<String, Place>, u64);

/// The values, the tensors, and the offset of their data.
pub(super) fn header(bytes: &[u8]) -> Result<Header, String> {
    if !bytes.starts_with(b"GGUF") {
        let begins = excerpt(&String::from_utf8_lossy(&bytes[..bytes.len().min(8)]));
        return Err(format!("no GGUF file: it begins with {begins}, not with `GGUF`"));
    }
    let mut at = Cursor { bytes, at: 4 };
    match at.u32()? {
        2 | 3 => {}
        other if other.swap_bytes() < 100 => {
            return Err("its bytes are in big-endian order; take another file".into());
        }
        other => return Err(format!("a GGUF file of version {other}; 2 and 3 can be read")),
    }
    let (tensors, values) = (at.u64()?, at.u64()?);
    let mut named = HashMap::new();
    for _ in 0..values {
        let (name, kind) = (at.string()?, at.u32()?);
        named.insert(name, at.value(kind, 0)?);
    }
    let mut placed = HashMap::new();
    for _ in 0..tensors {
        let (name, sides) = (at.string()?, at.u32()?);
        if sides > 4 {
            return Err(format!("the tensor {} has {sides} dimensions; ggml knows 4", excerpt(&name)));
        }
        let mut shape = (0..sides).map(|_| at.u64()).collect::<Result<Vec<_>, _>>()?;
        shape.reverse();
        placed.insert(name, Place { shape, number: at.u32()?, from: at.u64()? });
    }
    let aligned = match named.get("general.alignment") {
        None => 32,
        Some(Value::Whole(aligned)) if aligned.is_power_of_two() => *aligned,
        Some(_) => return Err("`general.alignment` is no power of two; fetch it again".into()),
    };
    let data = (at.at as u64).checked_next_multiple_of(aligned).ok_or(CUT)?;
    Ok((named, placed, data))
}

/// Reads little-endian numbers in order.
struct Cursor<'a> {
    bytes: &'a [u8],
    at: usize,
}

impl<'a> Cursor<'a> {
    fn take(&mut self, count: u64) -> Result<&'a [u8], String> {
        let end = usize::try_from(count).ok().and_then(|count| self.at.checked_add(count));
        let taken = end.and_then(|end| self.bytes.get(self.at..end)).ok_or(CUT)?;
        self.at += taken.len();
        Ok(taken)
    }

    fn some<const N: usize>(&mut self) -> Result<[u8; N], String> {
        self.take(N as u64)?.try_into().map_err(|_| CUT.to_owned())
    }

    fn u32(&mut self) -> Result<u32, String> {
        self.some().map(u32::from_le_bytes)
    }

    fn u64(&mut self) -> Result<u64, String> {
        self.some().map(u64::from_le_bytes)
    }

    fn string(&mut self) -> Result<String, String> {
        let length = self.u64()?;
        Ok(String::from_utf8_lossy(self.take(length)?).into_owned())
    }

    fn value(&mut self, kind: u32, depth: usize) -> Result<Value, String> {
        let whole = |number: i64| u64::try_from(number).map_or(Value::Other, Value::Whole);
        Ok(match kind {
            0 => Value::Whole(self.some::<1>()?[0].into()),
            1 => whole(i8::from_le_bytes(self.some()?).into()),
            2 => Value::Whole(u16::from_le_bytes(self.some()?).into()),
            3 => whole(i16::from_le_bytes(self.some()?).into()),
            4 => Value::Whole(self.u32()?.into()),
            5 => whole(i32::from_le_bytes(self.some()?).into()),
            6 => Value::Real(f32::from_le_bytes(self.some()?).into()),
            7 => Value::Truth(self.some::<1>()?[0] != 0),
            8 => Value::Text(self.string()?),
            9 if depth < DEEPEST => self.array(depth)?,
            10 => Value::Whole(self.u64()?),
            11 => whole(i64::from_le_bytes(self.some()?)),
            12 => Value::Real(f64::from_le_bytes(self.some()?)),
            other => {
                return Err(format!(
                    "a value of an unknown type ({other}) at byte {}; fetch it again",
                    self.at
                ));
            }
        })
    }

    /// Each item takes at least one byte, so a false length ends with the file.
    fn array(&mut self, depth: usize) -> Result<Value, String> {
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
        let all = |count_kept: usize| count_kept as u64 == count;
        Ok(match kind {
            8 => Value::Texts(texts),
            6 | 12 if all(reals.len()) => Value::Reals(reals),
            0..=5 | 10 | 11 if all(wholes.len()) => Value::Wholes(wholes),
            _ => Value::Other,
        })
    }
}

/// How many bytes at each end of a tensor are hashed.
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
        let file = File::open(path).map_err(|error| InputError::unreadable(path, &error))?;
        // Safety: a mapped file must not be changed while it is open; finished models are not.
        let bytes = unsafe { Mmap::map(&file) }.map_err(|error| InputError::unreadable(path, &error))?;
        let wrong = |reason| InputError::Unreadable { path: path.into(), reason };
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
    pub fn sample(&self, hasher: &mut blake3::Hasher) {
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

    /// Whether there is a tensor of that name.
    pub fn has(&self, name: &str) -> bool {
        self.tensors.contains_key(name)
    }

    /// The rows of a matrix.
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
        let made = || -> Result<QTensor, String> {
            let count = shape.iter().try_fold(1usize, |all, side| all.checked_mul(*side));
            let count = count.filter(|count| *count > 0).ok_or("it has no numbers")?;
            if !shape.last().is_some_and(|last| last.is_multiple_of(kind.block_size())) {
                return Err(format!("its rows are no whole blocks of {}", kind.block_size()));
            }
            let size = (count / kind.block_size()).checked_mul(kind.type_size()).ok_or("it is too large")?;
            let from = self.data.checked_add(place.from).and_then(|from| usize::try_from(from).ok());
            let range = from.and_then(|from| Some(from..from.checked_add(size)?)).ok_or("it is too large")?;
            let bytes = self.bytes.get(range).ok_or(CUT)?;
            // candle reads the numbers in place, and panics if they are not aligned.
            if !bytes.as_ptr().addr().is_multiple_of(align_of::<f32>()) {
                return Err("it does not begin at a multiple of 4 bytes".into());
            }
            let stored = QStorage::from_data(Cow::Borrowed(bytes), &Device::Cpu, kind);
            stored.and_then(|stored| QTensor::new(stored, shape)).map_err(|error| error.to_string())
        };
        made().map_err(|why| self.wrong(format!("the tensor `{name}` cannot be read ({why})")))
    }
}

/// The types that candle multiplies with, by ggml's numbers.
fn kind(number: u32) -> Option<GgmlDType> {
    use GgmlDType::{BF16, F16, F32, Q2K, Q3K, Q4_0, Q4_1, Q4K, Q5_0, Q5_1, Q5K, Q6K, Q8_0};
    let kinds = [(0, F32), (1, F16), (2, Q4_0), (3, Q4_1), (6, Q5_0), (7, Q5_1), (8, Q8_0), (10, Q2K)];
    let more = [(11, Q3K), (12, Q4K), (13, Q5K), (14, Q6K), (30, BF16)];
    kinds.into_iter().chain(more).find(|(own, _)| *own == number).map(|(_, kind)| kind)
}
