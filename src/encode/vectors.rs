//! The vectors of a corpus, one row per passage: stored, and approximated by int8 codes.
//!
//! Small corpora are held in memory. Large ones are read with positioned reads, not mapped: a search touches a few hundred rows, and
//! mapped pages would count as this program's memory.
//!
//! Codes take one byte per number, a quarter of the vectors' size, and bound the error of every product:
//!
//! ```text
//! [rows × dimensions] i8    the numbers, divided by the row's scale and rounded
//! [rows] f32 × 3            scale, error and length of every row
//! ```
//!
//! Vectors and codes have checksums ([`crate::storage::checked`]). Damaged codes cost a search only time: it reads all vectors then.
//!
//! With `x = s·c + e`, a query `q = t·d + f` with integer `d` has `q·x = s·t·(d·c) + q·e + f·(s·c)`. By Cauchy–Schwarz the last
//! two terms are at most `‖q‖‖e‖ + ‖f‖(‖x‖ + ‖e‖)`. The integer product therefore bounds the true one, and a search that rescores
//! every row whose upper bound reaches the best is exact.

use std::borrow::Cow;
use std::fs::File;
use std::io::Write;
use std::ops::Range;
use std::path::Path;

use memmap2::Mmap;

use crate::corpus::PassageIx;
use crate::input::read_at;
use crate::storage::checked::{Damaged, Summed, open_sum, open_unchecked, sum_file};
use crate::storage::replace_with;
use crate::vector::{floats, products, rounding};

/// Up to this many rows are held in memory: 12 MB at 384 dimensions.
const HELD: usize = 8_192;

#[expect(clippy::large_enum_variant, reason = "one value per corpus")]
enum Rows {
    Held(Vec<f32>),
    Filed { file: Filed, codes: Codes },
}

/// A file of rows that is checked as it is read.
struct Filed {
    file: File,
    sums: Summed,
    dimensions: usize,
}

impl Filed {
    fn rows(&self, range: Range<usize>) -> std::io::Result<Vec<f32>> {
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

/// Rows read at a time to compute codes.
const BLOCK: usize = 4_096;
/// The largest integer of a query.
const FINEST: i32 = 2_047;

/// The codes of a file of vectors, memory-mapped.
pub struct Codes {
    map: Mmap,
    sums: Summed,
    rows: usize,
    dimensions: usize,
}

/// A query direction in integers, with the error of rounding.
pub struct Direction {
    whole: Vec<i16>,
    scale: f32,
    length: f32,
    error: f32,
    /// An additional error of the score, for a row of length 1.
    slack: f32,
}

/// Scale, error and length of one row.
struct RowNotes {
    scale: f32,
    error: f32,
    length: f32,
}

impl Codes {
    /// Opens the codes of `rows` vectors, computing them if they are missing or damaged or have another number of rows.
    ///
    /// # Errors
    /// The vectors cannot be read, or the codes cannot be written.
    fn of(vectors: &Filed, place: &Path, rows: usize) -> std::io::Result<Self> {
        let dimensions = vectors.dimensions;
        let size = rows as u64 * (dimensions as u64 + 12);
        let sums = match open_sum(place) {
            Ok(sums) if sums.bytes() == size => sums,
            Err(error) if Damaged::of(&error).is_none() => return Err(error),
            // Not set aside: another process may be writing the same codes, and they are made again from the vectors alone.
            _ => {
                write_codes(vectors, place, rows)?;
                sum_file(place, place)?;
                open_unchecked(place)?.pop().ok_or(std::io::ErrorKind::NotFound)?
            }
        };
        // SAFETY: the file is never written again once it has its final name.
        let map = unsafe { Mmap::map(&File::open(place)?) }?;
        Ok(Codes { map, sums, rows, dimensions })
    }

    /// The number of rows.
    pub(crate) fn len(&self) -> usize {
        self.rows
    }

    /// Prepares a direction for comparison with the rows. `slack` widens the bounds of a row of length 1.
    pub fn direction(&self, direction: &[f32], slack: f32) -> Direction {
        // Sums must fit into an i32.
        let most = (i32::MAX / 127 / direction.len().max(1) as i32).min(FINEST) as f32;
        let scale = direction.iter().fold(0f32, |most, x| most.max(x.abs())) / most.max(1.0);
        let whole = |x: &f32| if scale > 0.0 { (x / scale).round().clamp(-most, most) as i16 } else { 0 };
        let whole: Vec<i16> = direction.iter().map(whole).collect();
        let lost =
            direction.iter().zip(&whole).map(|(x, w)| f64::from(*x) - f64::from(scale) * f64::from(*w));
        let (error, length) = (length(lost), length(direction.iter().map(|x| f64::from(*x))));
        Direction { whole, scale, length, error, slack: slack + length * rounding(direction.len()) }
    }

    /// Calls `each` with every row of a range and the lower and upper bound of its dot product with the direction, in exact
    /// arithmetic and in f32.
    ///
    /// # Errors
    /// The codes are [`Damaged`].
    pub fn bounds(
        &self,
        direction: &Direction,
        range: Range<usize>,
        mut each: impl FnMut(usize, f32, f32),
    ) -> std::io::Result<()> {
        let range = range.start.min(self.rows)..range.end.min(self.rows);
        let place = range.start * self.dimensions..range.end * self.dimensions;
        let all = self.rows * self.dimensions;
        let notes = all + range.start * 12..all + range.end * 12;
        for part in [&place, &notes] {
            self.sums.check_bytes(part.start as u64..part.end as u64, &self.map)?;
        }
        let bytes = self.map.get(place).unwrap_or_default();
        // SAFETY: every byte is an i8.
        let codes = unsafe { bytes.align_to::<i8>().1 };
        let mut dots = vec![0; range.len()];
        products(codes, &direction.whole, &mut dots);
        for (i, product) in range.zip(dots) {
            let RowNotes { scale, error, length } = self.notes(i);
            let middle = direction.scale * scale * product as f32;
            let width = direction.length * error + (direction.error + direction.slack) * (length + error);
            each(i, middle - width, middle + width);
        }
        Ok(())
    }

    fn notes(&self, row: usize) -> RowNotes {
        let start = self.rows * self.dimensions + row * 12;
        let bytes = self.map.get(start..start + 12).unwrap_or_default();
        let number = |at: usize| {
            bytes.get(at..at + 4).and_then(|b| b.try_into().ok()).map_or(f32::INFINITY, f32::from_le_bytes)
        };
        RowNotes { scale: number(0), error: number(4), length: number(8) }
    }
}

/// Computes the codes and writes them. Two processes that do so at once write the same bytes.
fn write_codes(vectors: &Filed, place: &Path, rows: usize) -> std::io::Result<()> {
    replace_with(place, |file| {
        let mut notes = Vec::with_capacity(rows * 12);
        for start in (0..rows).step_by(BLOCK) {
            let block = vectors.rows(start..(start + BLOCK).min(rows))?;
            for row in block.chunks_exact(vectors.dimensions) {
                let (codes, RowNotes { scale, error, length }) = code(row);
                file.write_all(&codes)?;
                notes.extend([scale, error, length].iter().flat_map(|x| x.to_le_bytes()));
            }
        }
        file.write_all(&notes)
    })
}

fn code(row: &[f32]) -> (Vec<u8>, RowNotes) {
    let scale = row.iter().fold(0f32, |most, x| most.max(x.abs())) / 127.0;
    if !scale.is_finite() || row.iter().any(|x| x.is_nan()) {
        // The product of this row has no bounds, so every search rescores it.
        let notes = RowNotes { scale: 0.0, error: f32::INFINITY, length: 0.0 };
        return (vec![0; row.len()], notes);
    }
    let whole = |x: &f32| if scale > 0.0 { (x / scale).round().clamp(-127.0, 127.0) as i8 } else { 0 };
    let codes: Vec<i8> = row.iter().map(whole).collect();
    let lost = row.iter().zip(&codes).map(|(x, c)| f64::from(*x) - f64::from(scale) * f64::from(*c));
    let notes = RowNotes { scale, error: length(lost), length: length(row.iter().map(|x| f64::from(*x))) };
    (codes.into_iter().map(|c| c as u8).collect(), notes)
}

/// The Euclidean length, rounded up.
fn length(numbers: impl Iterator<Item = f64>) -> f32 {
    (numbers.map(|x| x * x).sum::<f64>().sqrt() * (1.0 + 1e-6)) as f32
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;
    use crate::vector::dot;

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

    /// Rows of unit length, long ones, short ones, one with a single number, zeros, NaN, infinity.
    fn rows(dimensions: usize) -> Vec<Vec<f32>> {
        let mut seed = 7u32;
        let mut next = || {
            seed = seed.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            (seed >> 8) as f32 / (1 << 23) as f32 - 1.0
        };
        let mut rows: Vec<Vec<f32>> = (0..200)
            .map(|i| (0..dimensions).map(|_| next() * [1.0, 1e4, 1e-4, 0.05][i % 4]).collect())
            .collect();
        let mut alone = vec![0.0; dimensions];
        alone[0] = 3.0;
        rows.extend([
            alone,
            vec![0.0; dimensions],
            vec![f32::NAN; dimensions],
            vec![f32::INFINITY; dimensions],
        ]);
        rows
    }

    #[test]
    fn the_true_product_lies_within_the_bounds_for_every_row() {
        for dimensions in [1, 7, 64, 384] {
            let (folder, rows) = (tempfile::tempdir().unwrap(), rows(dimensions));
            let bytes: Vec<u8> = rows.iter().flatten().flat_map(|x| x.to_le_bytes()).collect();
            let file = folder.path().join("v.f32");
            fs::write(&file, bytes).unwrap();
            let place = folder.path().join("v.i8");
            let codes = Codes::of(&filed(&file, dimensions), &place, rows.len()).unwrap();
            for query in &rows[..40] {
                let mut met = 0;
                let every = 0..rows.len();
                codes
                    .bounds(&codes.direction(query, 0.0), every, |i, low, high| {
                        let product = dot(query, &rows[i]);
                        assert!(
                            product.is_nan() || (low <= product && product <= high),
                            "{low} {product} {high}"
                        );
                        met += 1;
                    })
                    .unwrap();
                assert_eq!(met, rows.len());
            }
        }
    }

    fn filed(path: &Path, dimensions: usize) -> Filed {
        sum_file(path, path).unwrap();
        Filed { file: File::open(path).unwrap(), sums: open_sum(path).unwrap(), dimensions }
    }

    #[test]
    fn codes_with_another_number_of_rows_and_damaged_ones_are_computed_again() {
        let folder = tempfile::tempdir().unwrap();
        let (file, place) = (folder.path().join("v.f32"), folder.path().join("v.i8"));
        fs::write(&file, (0..48).collect::<Vec<u8>>()).unwrap();
        let vectors = filed(&file, 4);
        fs::write(&place, b"cut short").unwrap();
        Codes::of(&vectors, &place, 3).unwrap();
        let right = fs::read(&place).unwrap();
        assert_eq!(right.len(), 3 * (4 + 12));
        for at in 0..right.len() {
            let mut damaged = right.clone();
            damaged[at] ^= 1;
            fs::write(&place, damaged).unwrap();
            Codes::of(&vectors, &place, 3).unwrap();
            assert_eq!(fs::read(&place).unwrap(), right);
        }
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 4);
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
