//! The vectors of a corpus, one row per passage.
//!
//! Small corpora are held in memory. Large ones are read with positioned reads, not mapped: a search touches a few hundred rows, and
//! mapped pages would count as this program's memory. They come with [`Codes`], a quarter of their size.
//! They have checksums ([`crate::storage::checked`]).

use std::borrow::Cow;
use std::fs::File;
use std::ops::Range;
use std::path::Path;

use super::codes::Codes;
use crate::corpus::PassageIx;
use crate::input::read_at;
use crate::storage::checked::{Damaged, Summed, open_sum};
use crate::vector::floats;

/// Up to this many rows are held in memory: 12 MB at 384 dimensions.
const HELD: usize = 8_192;

#[expect(clippy::large_enum_variant, reason = "one value per corpus")]
enum Rows {
    Held(Vec<f32>),
    Filed { file: Filed, codes: Codes },
}

/// A file of rows that is checked as it is read.
pub(super) struct Filed {
    file: File,
    sums: Summed,
    /// The length of a row.
    pub dimensions: usize,
}

impl Filed {
    pub fn open(path: &Path, dimensions: usize) -> std::io::Result<Self> {
        Ok(Filed { sums: open_sum(path)?, file: File::open(path)?, dimensions })
    }

    pub fn rows(&self, range: Range<usize>) -> std::io::Result<Vec<f32>> {
        let row = self.dimensions as u64 * 4;
        let place = range.start as u64 * row..range.end as u64 * row;
        self.sums.check(place, |block, at| read_at(&self.file, block, at))?;
        read_rows(&self.file, range, self.dimensions)
    }
}

/// A matrix of f32, `[passages, dimensions]`.
pub struct Vectors {
    rows: Rows,
    len: usize,
    dimensions: usize,
}

impl Vectors {
    /// Opens a file of little-endian rows. Large files come with codes, which are computed on the first opening.
    ///
    /// # Errors
    /// The file cannot be read or is [`Damaged`], or the codes cannot be written to the same folder.
    pub fn open(path: &Path, dimensions: usize) -> std::io::Result<Self> {
        Self::open_holding(HELD, path, dimensions)
    }

    pub(crate) fn open_holding(most: usize, path: &Path, dimensions: usize) -> std::io::Result<Self> {
        let file = Filed::open(path, dimensions)?;
        let bytes = file.sums.bytes() as usize;
        let (len, over) = (bytes / 4 / dimensions, bytes % (4 * dimensions));
        if over > 0 {
            return Err(Damaged::new(path, format!("no whole rows of {dimensions} numbers")).into());
        }
        let rows = if len <= most {
            Rows::Held(file.rows(0..len)?)
        } else {
            let codes = Codes::of(&file, &path.with_extension("i8"), len)?;
            Rows::Filed { file, codes }
        };
        Ok(Vectors { rows, len, dimensions })
    }

    /// Rows from little-endian bytes.
    pub fn from_bytes(bytes: &[u8], dimensions: usize) -> Self {
        let rows = floats(bytes);
        Vectors { len: rows.len() / dimensions, rows: Rows::Held(rows), dimensions }
    }

    /// The number of rows.
    pub fn len(&self) -> usize {
        self.len
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// The length of a row.
    pub fn dimensions(&self) -> usize {
        self.dimensions
    }

    /// The row of one passage.
    ///
    /// # Errors
    /// The file cannot be read.
    pub fn row(&self, PassageIx(i): PassageIx) -> std::io::Result<Cow<'_, [f32]>> {
        self.rows(i as usize..i as usize + 1)
    }

    /// The rows of consecutive passages.
    ///
    /// # Errors
    /// The file cannot be read or does not reach that far.
    pub fn rows(&self, range: Range<usize>) -> std::io::Result<Cow<'_, [f32]>> {
        match &self.rows {
            Rows::Filed { file, .. } => file.rows(range).map(Cow::Owned),
            Rows::Held(rows) => {
                let rows = rows.get(range.start * self.dimensions..range.end * self.dimensions);
                rows.map(Cow::Borrowed).ok_or_else(|| std::io::ErrorKind::UnexpectedEof.into())
            }
        }
    }

    /// The codes that narrow a search down; `None` for small corpora.
    pub fn codes(&self) -> Option<&Codes> {
        match &self.rows {
            Rows::Held(_) => None,
            Rows::Filed { codes, .. } => Some(codes),
        }
    }
}

/// Reads rows of f32 without moving the cursor, so many threads can read at once.
fn read_rows(file: &File, range: Range<usize>, dimensions: usize) -> std::io::Result<Vec<f32>> {
    let mut bytes = vec![0; range.len() * dimensions * 4];
    read_at(file, &mut bytes, range.start as u64 * dimensions as u64 * 4)?;
    Ok(floats(&bytes))
}
