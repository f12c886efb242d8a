//! The header of a GGUF file: its values and its table of tensors.
//!
//! candle's own reader divides by the alignment that a file claims; this one believes no number that it has not held against the
//! file's length.

use std::collections::HashMap;

use crate::input::excerpt;

pub(super) const CUT: &str = "it is cut short: fetch it again";

/// An array may lie in an array, which no model's file needs; deeper ones are no GGUF.
const DEEPEST: usize = 4;

/// A value of the header. What no model needs is not kept.
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

/// Where a tensor lies behind the header, its longest stride first, and ggml's number of its type.
pub(super) struct Place {
    pub shape: Vec<u64>,
    pub number: u32,
    pub from: u64,
}

type Header = (HashMap<String, Value>, HashMap<String, Place>, u64);

/// The values, the tensors, and where the bytes of these begin.
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

/// Reads numbers from front to back, the lowest byte first.
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

    /// Every item takes at least a byte, so that a length that is a lie ends with the file.
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
        let all = |kept: usize| kept as u64 == count;
        Ok(match kind {
            8 => Value::Texts(texts),
            6 | 12 if all(reals.len()) => Value::Reals(reals),
            0..=5 | 10 | 11 if all(wholes.len()) => Value::Wholes(wholes),
            _ => Value::Other,
        })
    }
}
