//! Rows in a byte a number: a quarter of the vectors' size, and how far each may be from what it stands for.
//!
//! ```text
//! [rows × dimensions] i8    the numbers, divided by the row's scale and rounded
//! [rows] f32 × 3            scale, error and length of every row
//! ```
//!
//! With `x = s·c + e`, a query `q = t·d + f` in whole numbers `d` has `q·x = s·t·(d·c) + q·e + f·(s·c)`. By Cauchy and Schwarz the last
//! two are at most `‖q‖‖e‖ + ‖f‖(‖x‖ + ‖e‖)`. So the product of the codes says within which bounds the true one lies, and a search that
//! looks again at every row whose bounds leave it a chance is exact.

use std::fs::{self, File};
use std::io::{BufWriter, Write};
use std::ops::Range;
use std::path::Path;

use memmap2::Mmap;

use super::products::products;
use super::vectors::read_rows;

/// Rows read at a time when codes are made.
const BLOCK: usize = 4_096;
/// The greatest whole number of a query.
const FINEST: i32 = 2_047;

/// The codes of a file of vectors, mapped.
pub struct Codes {
    map: Mmap,
    rows: usize,
    dimensions: usize,
}

/// A direction in whole numbers, and what that lost.
pub struct Direction {
    whole: Vec<i16>,
    scale: f32,
    length: f32,
    error: f32,
    /// What the score may be off by for another reason, for a row of length 1.
    slack: f32,
}

/// What stands beside a row's numbers.
struct Beside {
    scale: f32,
    error: f32,
    length: f32,
}

impl Codes {
    /// Opens the codes of `rows` vectors, making them if they are not there or of another number.
    ///
    /// # Errors
    /// The vectors cannot be read or the codes not be written.
    pub(super) fn of(vectors: &File, place: &Path, rows: usize, dimensions: usize) -> std::io::Result<Self> {
        let size = rows as u64 * (dimensions as u64 + 12);
        if fs::metadata(place).map_or(true, |about| about.len() != size) {
            make(vectors, place, rows, dimensions)?;
        }
        // SAFETY: the file is never written again once it has its final name.
        let map = unsafe { Mmap::map(&File::open(place)?) }?;
        Ok(Codes { map, rows, dimensions })
    }

    /// How many rows there are.
    pub(crate) fn len(&self) -> usize {
        self.rows
    }

    /// Prepares a direction to be compared with the rows. `slack` widens the bounds of a row of length 1.
    pub fn direction(&self, direction: &[f32], slack: f32) -> Direction {
        // No sum may exceed an i32.
        let most = (i32::MAX / 127 / direction.len().max(1) as i32).min(FINEST) as f32;
        let scale = direction.iter().fold(0f32, |most, x| most.max(x.abs())) / most.max(1.0);
        let whole = |x: &f32| if scale > 0.0 { (x / scale).round().clamp(-most, most) as i16 } else { 0 };
        let whole: Vec<i16> = direction.iter().map(whole).collect();
        let lost =
            direction.iter().zip(&whole).map(|(x, w)| f64::from(*x) - f64::from(scale) * f64::from(*w));
        let (error, length) = (length(lost), length(direction.iter().map(|x| f64::from(*x))));
        Direction { whole, scale, length, error, slack: slack + length * rounding(direction.len()) }
    }

    /// Calls `each` with every row of a range and the bounds between which its dot product with the direction lies, as exact
    /// arithmetic and as f32 have it.
    pub fn bounds(&self, direction: &Direction, range: Range<usize>, mut each: impl FnMut(usize, f32, f32)) {
        let range = range.start.min(self.rows)..range.end.min(self.rows);
        let bytes =
            self.map.get(range.start * self.dimensions..range.end * self.dimensions).unwrap_or_default();
        // SAFETY: every byte is an i8.
        let codes = unsafe { bytes.align_to::<i8>().1 };
        let mut made = vec![0; range.len()];
        products(codes, &direction.whole, &mut made);
        for (i, product) in range.zip(made) {
            let Beside { scale, error, length } = self.beside(i);
            let middle = direction.scale * scale * product as f32;
            let apart = direction.length * error + (direction.error + direction.slack) * (length + error);
            each(i, middle - apart, middle + apart);
        }
    }

    fn beside(&self, row: usize) -> Beside {
        let start = self.rows * self.dimensions + row * 12;
        let bytes = self.map.get(start..start + 12).unwrap_or_default();
        let number = |at: usize| {
            bytes.get(at..at + 4).and_then(|b| b.try_into().ok()).map_or(f32::INFINITY, f32::from_le_bytes)
        };
        Beside { scale: number(0), error: number(4), length: number(8) }
    }
}

/// How far a dot product in f32 may be off, for two vectors of length 1.
pub fn rounding(dimensions: usize) -> f32 {
    (dimensions as f32 / 8.0 + 32.0) * 2.0 * f32::EPSILON
}

/// Written beside its place, then renamed. Two processes that do so at once write the same.
fn make(vectors: &File, place: &Path, rows: usize, dimensions: usize) -> std::io::Result<()> {
    let beside = place.with_extension(format!("i8.{}", std::process::id()));
    let written = (|| {
        let mut file = BufWriter::with_capacity(1 << 20, File::create(&beside)?);
        let mut notes = Vec::with_capacity(rows * 12);
        for start in (0..rows).step_by(BLOCK) {
            let block = read_rows(vectors, start..(start + BLOCK).min(rows), dimensions)?;
            for row in block.chunks_exact(dimensions) {
                let (codes, Beside { scale, error, length }) = code(row);
                file.write_all(&codes)?;
                notes.extend([scale, error, length].iter().flat_map(|x| x.to_le_bytes()));
            }
        }
        file.write_all(&notes)?;
        file.into_inner().map_err(|error| error.into_error())?.sync_all()?;
        fs::rename(&beside, place)
    })();
    if written.is_err() {
        let _ = fs::remove_file(&beside);
    }
    written
}

fn code(row: &[f32]) -> (Vec<u8>, Beside) {
    let scale = row.iter().fold(0f32, |most, x| most.max(x.abs())) / 127.0;
    if !scale.is_finite() || row.iter().any(|x| x.is_nan()) {
        // Nothing is known of its product: it is looked at again by every search.
        let beside = Beside { scale: 0.0, error: f32::INFINITY, length: 0.0 };
        return (vec![0; row.len()], beside);
    }
    let whole = |x: &f32| if scale > 0.0 { (x / scale).round().clamp(-127.0, 127.0) as i8 } else { 0 };
    let codes: Vec<i8> = row.iter().map(whole).collect();
    let lost = row.iter().zip(&codes).map(|(x, c)| f64::from(*x) - f64::from(scale) * f64::from(*c));
    let beside = Beside { scale, error: length(lost), length: length(row.iter().map(|x| f64::from(*x))) };
    (codes.into_iter().map(|c| c as u8).collect(), beside)
}

/// Rounded up.
fn length(of: impl Iterator<Item = f64>) -> f32 {
    (of.map(|x| x * x).sum::<f64>().sqrt() * (1.0 + 1e-6)) as f32
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::retrieve::dense::dot;

    /// Rows of every kind: unit length, long, short, one number only, nothing at all, no number.
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
    fn the_true_product_lies_within_the_bounds_whatever_the_row() {
        for dimensions in [1, 7, 64, 384] {
            let (folder, rows) = (tempfile::tempdir().unwrap(), rows(dimensions));
            let bytes: Vec<u8> = rows.iter().flatten().flat_map(|x| x.to_le_bytes()).collect();
            let file = folder.path().join("v.f32");
            fs::write(&file, bytes).unwrap();
            let place = folder.path().join("v.i8");
            let codes = Codes::of(&File::open(&file).unwrap(), &place, rows.len(), dimensions).unwrap();
            for query in &rows[..40] {
                let mut met = 0;
                codes.bounds(&codes.direction(query, 0.0), 0..rows.len(), |i, low, high| {
                    let product = dot(query, &rows[i]);
                    assert!(
                        product.is_nan() || (low <= product && product <= high),
                        "{low} {product} {high}"
                    );
                    met += 1;
                });
                assert_eq!(met, rows.len());
            }
        }
    }

    #[test]
    fn codes_of_another_number_of_rows_are_made_again() {
        let folder = tempfile::tempdir().unwrap();
        let (file, place) = (folder.path().join("v.f32"), folder.path().join("v.i8"));
        fs::write(&file, [0; 4 * 4 * 3]).unwrap();
        fs::write(&place, b"cut short").unwrap();
        Codes::of(&File::open(&file).unwrap(), &place, 3, 4).unwrap();
        assert_eq!(fs::metadata(&place).unwrap().len(), 3 * (4 + 12));
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 2);
    }
}
