//! The vectors of a corpus, one row per passage.
//!
//! Small corpora are held in memory. Large ones are read with positioned reads, not mapped: a search touches a few hundred rows, and
//! mapped pages would count as this program's memory. They come with codes ([`super::codes`]), a quarter of their size.
//!
//! Vectors and codes have checksums ([`crate::storage::checked`]). Damaged codes cost a search only time: it reads all vectors then.

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
    dimensions: usize,
}

impl Filed {
    pub(super) fn dimensions(&self) -> usize {
        self.dimensions
    }

    pub(super) fn rows(&self, range: Range<usize>) -> std::io::Result<Vec<f32>> {
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

    fn open_holding(most: usize, path: &Path, dimensions: usize) -> std::io::Result<Self> {
        let sums = open_sum(path)?;
        let (len, over) = (sums.bytes() as usize / 4 / dimensions, sums.bytes() as usize % (4 * dimensions));
        if over > 0 {
            return Err(Damaged::new(path, format!("no whole rows of {dimensions} numbers")).into());
        }
        let file = Filed { file: File::open(path)?, sums, dimensions };
        let rows = if len <= most {
            Rows::Held(file.rows(0..len)?)
        } else {
            let codes = Codes::of(&file, &path.with_extension("i8"), len)?;
            Rows::Filed { file, codes }
        };
        Ok(Vectors { rows, len, dimensions })
    }

    /// The file, to make codes of.
    #[cfg(test)]
    pub(super) fn filed(path: &Path, dimensions: usize) -> std::io::Result<Filed> {
        Ok(Filed { file: File::open(path)?, sums: open_sum(path)?, dimensions })
    }

    /// Opens a file with codes, whatever its size.
    #[cfg(test)]
    pub(crate) fn open_with_codes(path: &Path, dimensions: usize) -> std::io::Result<Self> {
        Self::open_holding(0, path, dimensions)
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

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;
    use crate::storage::checked::sum_file;

    #[test]
    fn rows_in_memory_and_rows_on_disk_are_equal() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("v.f32");
        let bytes: Vec<u8> = (0..12).flat_map(|i| (i as f32).to_le_bytes()).collect();
        std::fs::write(&path, &bytes).unwrap();
        sum_file(&path, &path).unwrap();
        for vectors in
            [Vectors::open(&path, 3), Vectors::open_with_codes(&path, 3), Ok(Vectors::from_bytes(&bytes, 3))]
        {
            let vectors = vectors.unwrap();
            assert_eq!((vectors.len(), vectors.dimensions()), (4, 3));
            assert_eq!(vectors.row(PassageIx(2)).unwrap().as_ref(), [6.0, 7.0, 8.0]);
            assert_eq!(vectors.rows(1..3).unwrap().as_ref(), [3.0, 4.0, 5.0, 6.0, 7.0, 8.0]);
            assert!(vectors.row(PassageIx(4)).is_err());
        }
    }

    #[test]
    fn changed_rows_are_an_error_in_memory_on_disk_and_of_another_corpus() {
        let folder = tempfile::tempdir().unwrap();
        let bytes: Vec<u8> = (0..60_000).flat_map(|i| (i as f32).to_le_bytes()).collect();
        let path = |corpus: &str| folder.path().join(corpus).join("v.f32");
        for corpus in ["a", "b"] {
            fs::create_dir(folder.path().join(corpus)).unwrap();
            fs::write(path(corpus), &bytes).unwrap();
            sum_file(&path(corpus), &path(corpus)).unwrap();
        }
        let vectors = Vectors::open_with_codes(&path("a"), 10).unwrap();
        assert!(vectors.row(PassageIx(5_999)).is_ok());
        // The vectors of another corpus, with their checksums.
        let sums = crate::storage::checked::sums_path;
        fs::copy(sums(&path("b")), sums(&path("a"))).unwrap();
        assert!(Vectors::open(&path("a"), 10).is_err());
        sum_file(&path("a"), &path("a")).unwrap();
        let changes: [fn(&mut Vec<u8>); 4] = [
            |bytes| bytes[100_003] ^= 0x40,
            |bytes| bytes.chunks_exact_mut(4).for_each(|x| x[3] ^= 0x80),
            |bytes| bytes.rotate_left(40),
            |bytes| bytes.chunks_exact_mut(4).for_each(|x| x.copy_from_slice(&f32::NAN.to_le_bytes())),
        ];
        for change in changes {
            let mut changed = bytes.clone();
            change(&mut changed);
            fs::write(path("a"), &changed).unwrap();
            let error = Vectors::open(&path("a"), 10).err().unwrap();
            assert!(Damaged::of(&error).is_some(), "{error}");
        }
    }
}
