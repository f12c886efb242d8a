//! The vectors of a corpus, one row a passage, read where they lie.

use std::fs::File;
use std::path::Path;

use memmap2::Mmap;

use crate::corpus::PassageIx;

enum Rows {
    Mapped(Mmap),
    Owned(Vec<f32>),
}

/// `[passages, dimensions]` f32, every row of unit length.
pub struct Vectors {
    rows: Rows,
    dimensions: usize,
}

impl Vectors {
    /// Maps a file of little-endian rows.
    ///
    /// # Errors
    /// The file cannot be opened.
    pub fn mapped(path: &Path, dimensions: usize) -> std::io::Result<Self> {
        // SAFETY: the file is never written again once it has its final name.
        let map = unsafe { Mmap::map(&File::open(path)?) }?;
        Ok(Vectors { rows: Rows::Mapped(map), dimensions })
    }

    /// Rows from little-endian bytes.
    pub fn from_bytes(bytes: &[u8], dimensions: usize) -> Self {
        let rows =
            bytes.chunks_exact(4).map(|b| f32::from_le_bytes(b.try_into().unwrap_or_default())).collect();
        Vectors { rows: Rows::Owned(rows), dimensions }
    }

    /// How many rows there are.
    pub fn len(&self) -> usize {
        self.all().len() / self.dimensions
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// One passage's row.
    pub fn get(&self, PassageIx(i): PassageIx) -> &[f32] {
        let start = i as usize * self.dimensions;
        self.all().get(start..start + self.dimensions).unwrap_or_default()
    }

    fn all(&self) -> &[f32] {
        match &self.rows {
            Rows::Owned(rows) => rows,
            // SAFETY: every bit pattern is an f32, and a mapping begins on a page. Rows are written little-endian, as
            // every platform that this program is built for reads them.
            Rows::Mapped(map) => unsafe { map.align_to::<f32>().1 },
        }
    }
}
