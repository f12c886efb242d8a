//! The vectors of a corpus, one row per passage.
//!
//! Small corpora are held in memory. Large ones are read with positioned reads, not mapped: a search touches a few hundred rows, and
//! mapped pages would count as this program's memory. They come with codes, a quarter of their size: bytes that bound every dot product, so that
//! an exact search reads few of the vectors.
//! Rows are turned to axes of which the first third holds most of their length: the principal components of a sample. A search scans the
//! codes of that third, and reads the rest for the rows that are still in reach.
//!
//! ```text
//! f32                            how far the axes are from being perpendicular and of length 1
//! [dimensions × dimensions] f32  the axes, one a row
//! of every 4,096 rows:
//!   [rows × first] i8            the first numbers of the turned row, divided by their scale and rounded
//!   [rows] f32 × 4               their scale, error and length, and the length of the others
//!   [rows × others] i8           the other numbers
//!   [rows] f32 × 2               their scale and error
//! ```
//!
//! In either part, with `y = s·c + e`, a query `p = t·d + f` with integer `d` has `p·y = s·t·(d·c) + p·e + f·(s·c)`. By Cauchy–Schwarz the
//! last two terms are at most `‖p‖‖e‖ + ‖f‖(‖y‖ + ‖e‖)`, and a part that is not read is at most `‖p‖‖y‖`. A search that scores
//! every row whose upper bound reaches the best is therefore exact.
//! Vectors and codes have checksums ([`crate::storage::checked`]). Damaged codes cost a search only time: it reads all vectors then.

use std::borrow::Cow;
use std::fs::File;
use std::io::Write;
use std::ops::Range;
use std::path::Path;
use std::sync::OnceLock;

use memmap2::Mmap;

use super::family::along;
use crate::corpus::PassageIx;
use crate::input::read_at;
use crate::storage::checked::{Damaged, Summed, open_sum, open_unchecked, sum_file};
use crate::storage::replace_with;
use crate::vector::{
    Reach, axes, code, first_floats, floats, highs, length, products, rounding, skew, turning,
};
use crate::work::{Stop, on_cores};

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

    pub(crate) fn open_holding(most: usize, path: &Path, dimensions: usize) -> std::io::Result<Self> {
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

/// Rows whose codes lie together.
const BLOCK: usize = 4_096;
/// Blocks that are computed at once.
const AT_ONCE: usize = 8;
/// The largest integer of a query.
const FINEST: i32 = 2_047;
/// The bytes of a row beside its numbers.
const NOTES: [usize; 2] = [16, 8];
/// Rows of which the axes are found.
const SAMPLE: usize = 16_384;

/// The codes of a file of vectors, memory-mapped.
pub struct Codes {
    map: Mmap,
    sums: Summed,
    rows: usize,
    dimensions: usize,
    /// How far the axes are off, and the axes.
    head: OnceLock<Vec<f32>>,
}

/// A query direction in integers, with the error of rounding.
pub struct Direction {
    parts: [Part; 2],
    reach: Reach,
}

/// The numbers along the first axes, or along the others.
struct Part {
    whole: Vec<i16>,
    scale: f32,
    length: f32,
    error: f32,
}

/// What the first numbers of a row say of its product.
#[derive(Clone, Copy)]
pub struct Outline {
    /// The row's number.
    pub row: usize,
    middle: f32,
    width: f32,
    /// The length of the other numbers, and the most that they add.
    others: f32,
    rest: f32,
}

impl Outline {
    /// The upper bound of the product.
    pub fn high(&self) -> f32 {
        self.middle + (self.width + self.rest)
    }
}

impl Codes {
    /// Opens the codes of `rows` vectors, computing them if they are missing or damaged or have another number of rows.
    ///
    /// # Errors
    /// The vectors cannot be read, or the codes cannot be written.
    fn of(vectors: &Filed, place: &Path, rows: usize) -> std::io::Result<Self> {
        let dimensions = vectors.dimensions;
        let size = header(dimensions) + rows * (dimensions + NOTES[0] + NOTES[1]);
        let sums = match open_sum(place) {
            Ok(sums) if sums.bytes() == size as u64 => sums,
            Err(error) if Damaged::of(&error).is_none() => return Err(error),
            // Not set aside: another process may be writing the same codes, and they are made again from the vectors alone.
            _ => {
                write(vectors, place, rows)?;
                sum_file(place, place)?;
                open_unchecked(place)?.pop().ok_or(std::io::ErrorKind::NotFound)?
            }
        };
        // SAFETY: the file is never written again once it has its final name.
        let map = unsafe { Mmap::map(&File::open(place)?) }?;
        Ok(Codes { map, sums, rows, dimensions, head: OnceLock::new() })
    }

    /// Prepares a direction for comparison with the rows. `slack` widens the bounds of a row of length 1.
    ///
    /// # Errors
    /// The codes are [`Damaged`].
    pub fn direction(&self, direction: &[f32], slack: f32) -> std::io::Result<Direction> {
        let read = self.read(0..header(self.dimensions))?;
        let (skew, axes) =
            self.head.get_or_init(|| floats(read)).split_first().ok_or(std::io::ErrorKind::UnexpectedEof)?;
        let along = |axis: &[f32]| {
            axis.iter().zip(direction).map(|(a, x)| f64::from(*a) * f64::from(*x)).sum::<f64>()
        };
        let turned: Vec<f32> = axes.chunks_exact(self.dimensions).map(|axis| along(axis) as f32).collect();
        let (first, others) = turned.split_at(first(self.dimensions));
        let length = length(direction.iter().map(|x| f64::from(*x)));
        let slack = slack + length * (rounding(self.dimensions) + skew + turning(self.dimensions));
        let [first, others] = [first, others].map(Part::of);
        let Part { scale, length: along_first, error, .. } = first;
        // Anything can be off if a part of a score's sum can be infinite.
        let longest = f32::MAX / 4.0 / length;
        let reach = Reach { scale, length: along_first, error, others: others.length, slack, longest };
        Ok(Direction { parts: [first, others], reach })
    }

    /// The first part of the rows of a range that lies in one block, where `wanted` by their upper bounds.
    ///
    /// # Errors
    /// The codes are [`Damaged`].
    pub fn outlines(
        &self,
        direction: &Direction,
        range: Range<usize>,
        wanted: impl Fn(f32) -> bool,
    ) -> std::io::Result<Vec<Outline>> {
        let (codes, notes) = self.part(0, range.clone())?;
        let mut dots = vec![0; range.len()];
        products(codes, &direction.parts[0].whole, &mut dots);
        let notes = notes.as_chunks::<{ NOTES[0] }>().0;
        let mut above = vec![0.0; range.len()];
        highs(direction.reach, &dots, notes, &mut above);
        let mut outlines = Vec::new();
        for (i, _) in above.iter().enumerate().filter(|(_, high)| wanted(**high)) {
            let notes = first_floats(&notes[i]);
            let [middle, width, rest] = direction.reach.of(dots[i], notes);
            outlines.push(Outline { row: range.start + i, middle, width, others: notes[3], rest });
        }
        Ok(outlines)
    }

    /// The lower and upper bound of a row's product with the direction, in exact arithmetic and in f32, by all its codes.
    ///
    /// # Errors
    /// The codes are [`Damaged`].
    pub fn bounds(&self, direction: &Direction, of: Outline) -> std::io::Result<(f32, f32)> {
        let (codes, notes) = self.part(1, of.row..of.row + 1)?;
        let others = &direction.parts[1];
        let mut product = [0];
        products(codes, &others.whole, &mut product);
        let [scale, error] = first_floats(notes);
        let middle = of.middle + others.middle(scale, product[0]);
        let width = of.width + others.width(error, of.others);
        // Both bounds from above hold.
        Ok((middle - width, (middle + width).min(of.high())))
    }

    /// A part's codes and notes of rows in one block.
    fn part(&self, part: usize, range: Range<usize>) -> std::io::Result<(&[i8], &[u8])> {
        let of_first = first(self.dimensions);
        let width = [of_first, self.dimensions - of_first];
        let block = range.start - range.start % BLOCK;
        let held = BLOCK.min(self.rows - block);
        let mut start = header(self.dimensions) + block * (self.dimensions + NOTES[0] + NOTES[1]);
        if part == 1 {
            start += held * (width[0] + NOTES[0]);
        }
        let (at, count) = (range.start - block, range.len());
        let codes = start + at * width[part]..start + (at + count) * width[part];
        let notes = start + held * width[part] + at * NOTES[part];
        // SAFETY: every byte is an i8.
        let codes = unsafe { self.read(codes)?.align_to::<i8>().1 };
        Ok((codes, self.read(notes..notes + count * NOTES[part])?))
    }

    fn read(&self, place: Range<usize>) -> std::io::Result<&[u8]> {
        self.sums.check_bytes(place.start as u64..place.end as u64, &self.map)?;
        self.map.get(place).ok_or_else(|| std::io::ErrorKind::UnexpectedEof.into())
    }

    /// The ranges of rows that lie in one block each.
    pub fn blocks(&self) -> impl Iterator<Item = Range<usize>> {
        let rows = self.rows;
        (0..rows).step_by(BLOCK).map(move |start| start..(start + BLOCK).min(rows))
    }
}

impl Part {
    fn of(numbers: &[f32]) -> Self {
        // Sums must fit into an i32.
        let most = (i32::MAX / 127 / numbers.len().max(1) as i32).min(FINEST) as f32;
        let scale = numbers.iter().fold(0f32, |most, x| most.max(x.abs())) / most.max(1.0);
        let whole = |x: &f32| if scale > 0.0 { (x / scale).round().clamp(-most, most) as i16 } else { 0 };
        let whole: Vec<i16> = numbers.iter().map(whole).collect();
        let lost = numbers.iter().zip(&whole).map(|(x, w)| f64::from(*x) - f64::from(scale) * f64::from(*w));
        let (error, length) = (length(lost), length(numbers.iter().map(|x| f64::from(*x))));
        Part { whole, scale, length, error }
    }

    /// The product of the integers in the units of the numbers. In f64, since the product of two small scales may be none in f32.
    fn middle(&self, scale: f32, product: i32) -> f32 {
        (f64::from(self.scale) * f64::from(scale) * f64::from(product)) as f32
    }

    /// The most by which the product of the integers is off, for a row with this error and length.
    fn width(&self, error: f32, length: f32) -> f32 {
        self.length * error + self.error * (length + error)
    }
}

/// How many of the numbers are scanned of every row.
fn first(dimensions: usize) -> usize {
    (dimensions / 3).max(1)
}

fn header(dimensions: usize) -> usize {
    4 + dimensions * dimensions * 4
}

/// Computes the codes and writes them. Two processes that do so at once write the same bytes.
fn write(vectors: &Filed, place: &Path, rows: usize) -> std::io::Result<()> {
    let dimensions = vectors.dimensions;
    let axes = axes(&sample(vectors, rows)?, dimensions, first(dimensions));
    let starts: Vec<usize> = (0..rows).step_by(BLOCK).collect();
    replace_with(place, |file| {
        file.write_all(&skew(&axes, dimensions).to_le_bytes())?;
        file.write_all(&axes.iter().flat_map(|x| x.to_le_bytes()).collect::<Vec<u8>>())?;
        for some in starts.chunks(AT_ONCE) {
            let block = |i: usize| block(vectors, some[i]..(some[i] + BLOCK).min(rows), &axes);
            for block in on_cores(some.len(), &Stop::never(), block) {
                file.write_all(&block?)?;
            }
        }
        Ok(())
    })
}

/// The bytes of a block.
fn block(vectors: &Filed, range: Range<usize>, axes: &[f32]) -> std::io::Result<Vec<u8>> {
    let dimensions = vectors.dimensions;
    let of_first = first(dimensions);
    let rows = vectors.rows(range.clone())?;
    let turned = along(&rows, axes, dimensions).map_err(std::io::Error::other)?;
    let mut parts: [Vec<u8>; 4] = Default::default();
    for row in turned.chunks_exact(dimensions) {
        let finite = row.iter().all(|x| x.is_finite());
        let (first, others) = row.split_at(of_first);
        let ([scale, error, length], codes) = code(first, finite);
        let ([scale_of_others, error_of_others, rest], codes_of_others) = code(others, finite);
        parts[0].extend(codes);
        parts[1].extend([scale, error, length, rest].iter().flat_map(|x| x.to_le_bytes()));
        parts[2].extend(codes_of_others);
        parts[3].extend([scale_of_others, error_of_others].iter().flat_map(|x| x.to_le_bytes()));
    }
    Ok(parts.concat())
}

/// Rows from all parts of a file, of length 1.
fn sample(vectors: &Filed, rows: usize) -> std::io::Result<Vec<f32>> {
    const RUN: usize = 64;
    let dimensions = vectors.dimensions;
    let mut out = Vec::new();
    for start in (0..rows).step_by((rows / (SAMPLE / RUN)).max(RUN)) {
        for row in vectors.rows(start..(start + RUN).min(rows))?.chunks_exact(dimensions) {
            let length = length(row.iter().map(|x| f64::from(*x)));
            if length.is_normal() {
                out.extend(row.iter().map(|x| x / length));
            }
        }
    }
    Ok(out)
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;
    use crate::vector::dot;

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
                let direction = codes.direction(query, 0.0).unwrap();
                let outlines = codes.outlines(&direction, 0..rows.len(), |_| true).unwrap();
                assert_eq!(outlines.len(), rows.len());
                for outline in outlines {
                    let product = dot(query, &rows[outline.row]);
                    let (low, high) = codes.bounds(&direction, outline).unwrap();
                    let all = [low, product, high, outline.high()];
                    assert!(product.is_nan() || all.is_sorted() || all.iter().any(|x| x.is_nan()), "{all:?}");
                }
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
        assert_eq!(right.len(), 4 + 4 * 4 * 4 + 3 * (4 + 24));
        for at in 0..right.len() {
            let mut damaged = right.clone();
            damaged[at] ^= 1;
            fs::write(&place, damaged).unwrap();
            Codes::of(&vectors, &place, 3).unwrap();
            assert_eq!(fs::read(&place).unwrap(), right);
        }
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 4);
    }
}
