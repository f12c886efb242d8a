//! The vectors of a corpus, one row a passage: a few are held in memory, many are read where they lie.
//!
//! Rows on disk are read and not mapped: a search touches some hundred of them, and mapped pages would stay and be counted as
//! this program's memory.

use std::borrow::Cow;
use std::fs::File;
use std::ops::Range;
use std::path::Path;

use super::codes::Codes;
use crate::corpus::PassageIx;
use crate::input::read_at;

/// So many rows are read once and held: at 384 dimensions 12 MB.
const HELD: usize = 8_192;

enum Rows {
    Held(Vec<f32>),
    Filed { file: File, codes: Codes },
}

/// `[passages, dimensions]` f32.
pub struct Vectors {
    rows: Rows,
    len: usize,
    dimensions: usize,
}

impl Vectors {
    /// Opens a file of little-endian rows. Where they are many, their codes are opened with them, and made the first time.
    ///
    /// # Errors
    /// The file cannot be read, or the codes not be written beside it.
    pub fn open(path: &Path, dimensions: usize) -> std::io::Result<Self> {
        Self::holding(HELD, path, dimensions)
    }

    fn holding(most: usize, path: &Path, dimensions: usize) -> std::io::Result<Self> {
        let file = File::open(path)?;
        let len = file.metadata()?.len() as usize / 4 / dimensions;
        let rows = if len <= most {
            Rows::Held(read_rows(&file, 0..len, dimensions)?)
        } else {
            let codes = Codes::of(&file, &path.with_extension("i8"), len, dimensions)?;
            Rows::Filed { file, codes }
        };
        Ok(Vectors { rows, len, dimensions })
    }

    /// Opens a file with codes, however few the rows are.
    #[cfg(test)]
    pub(crate) fn filed(path: &Path, dimensions: usize) -> std::io::Result<Self> {
        Self::holding(0, path, dimensions)
    }

    /// Rows from little-endian bytes.
    pub fn from_bytes(bytes: &[u8], dimensions: usize) -> Self {
        let rows = floats(bytes);
        Vectors { len: rows.len() / dimensions, rows: Rows::Held(rows), dimensions }
    }

    /// How many rows there are.
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

    /// One passage's row.
    ///
    /// # Errors
    /// The file cannot be read.
    pub fn row(&self, PassageIx(i): PassageIx) -> std::io::Result<Cow<'_, [f32]>> {
        self.rows(i as usize..i as usize + 1)
    }

    /// The rows of passages that follow one another.
    ///
    /// # Errors
    /// The file cannot be read or does not reach that far.
    pub fn rows(&self, range: Range<usize>) -> std::io::Result<Cow<'_, [f32]>> {
        match &self.rows {
            Rows::Filed { file, .. } => read_rows(file, range, self.dimensions).map(Cow::Owned),
            Rows::Held(rows) => {
                let rows = rows.get(range.start * self.dimensions..range.end * self.dimensions);
                rows.map(Cow::Borrowed).ok_or_else(|| std::io::ErrorKind::UnexpectedEof.into())
            }
        }
    }

    /// The codes that narrow a search down, where the rows are many.
    pub fn codes(&self) -> Option<&Codes> {
        match &self.rows {
            Rows::Held(_) => None,
            Rows::Filed { codes, .. } => Some(codes),
        }
    }
}

/// Reads rows from a file of f32, moving no cursor: many threads read at once.
pub(super) fn read_rows(file: &File, range: Range<usize>, dimensions: usize) -> std::io::Result<Vec<f32>> {
    let mut bytes = vec![0; range.len() * dimensions * 4];
    read_at(file, &mut bytes, range.start as u64 * dimensions as u64 * 4)?;
    Ok(floats(&bytes))
}

fn floats(bytes: &[u8]) -> Vec<f32> {
    bytes.chunks_exact(4).map(|b| f32::from_le_bytes(b.try_into().unwrap_or_default())).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_that_are_held_and_rows_that_are_filed_are_the_same() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("v.f32");
        let bytes: Vec<u8> = (0..12).flat_map(|i| (i as f32).to_le_bytes()).collect();
        std::fs::write(&path, &bytes).unwrap();
        for vectors in [Vectors::open(&path, 3), Vectors::filed(&path, 3), Ok(Vectors::from_bytes(&bytes, 3))]
        {
            let vectors = vectors.unwrap();
            assert_eq!((vectors.len(), vectors.dimensions()), (4, 3));
            assert_eq!(vectors.row(PassageIx(2)).unwrap().as_ref(), [6.0, 7.0, 8.0]);
            assert_eq!(vectors.rows(1..3).unwrap().as_ref(), [3.0, 4.0, 5.0, 6.0, 7.0, 8.0]);
            assert!(vectors.row(PassageIx(4)).is_err());
        }
    }
}
