//! An open GGUF file: named values, and tensors taken from where they lie in it. Knows no model.

use std::borrow::Cow;
use std::collections::HashMap;
use std::fs::File;
use std::path::{Path, PathBuf};

use candle_core::Device;
use candle_core::quantized::{GgmlDType, QStorage, QTensor};
use memmap2::Mmap;

use super::header::{CUT, Place, Value, header};
use crate::input::InputError;

/// Bytes of a tensor's beginning and end that tell it from others.
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
        // Safety: as with every file that is mapped, it must not be written while it is open; finished models are not.
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

    /// What tells the file from others: its length, its header, and how every tensor begins and ends. To hash gigabytes would take
    /// longer than to load them.
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

    /// A tensor of the shape that is asked for, with its longest stride first.
    pub fn tensor(&self, name: &str, shape: &[usize]) -> Result<QTensor, InputError> {
        let Some(place) = self.tensors.get(name) else {
            return Err(self.wrong(format!("the tensor `{name}` is missing; fetch the model again")));
        };
        if !place.shape.iter().copied().eq(shape.iter().map(|side| *side as u64)) {
            let told = format!("the tensor `{name}` has the shape {:?}, expected {shape:?}", place.shape);
            return Err(self.wrong(told));
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
            // candle takes the bytes for numbers where they lie, and panics if these cannot begin there.
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
