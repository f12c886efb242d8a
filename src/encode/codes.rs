//! Codes of a corpus's vectors: bytes that bound every dot product, so that an exact search reads few of the vectors.
//!
//! Rows are turned to axes of which the first hold most of their length: the principal components of a sample. A search scans the codes of the
//! first quarter, reads the second quarter for the rows that are still in reach, and the rest for those that are still in reach then.
//! Rows that are near to each other lie in one list, as in an inverted file, and a search begins with the lists that are nearest.
//!
//! ```text
//! f32                            how far the axes are from being perpendicular and of length 1
//! [dimensions × dimensions] f32  the axes, one a row
//! 16 bytes                       what stands for the vectors ([`Summed::digest`]), then zeros up to a multiple of 64
//! of every list of at most 4,096 rows, all but the last of one length:
//!   f32 × 4                      the largest errors of a row's first quarter, of its second and of all after the first, as multiples of their scale;
//!                                the length of the longest row with its error; then zeros up to 64 bytes
//!   [dimensions] f32             the sum of its finite rows, divided by the number of rows; then zeros up to a multiple of 64
//!   [rows] u32                   their numbers
//!   [rows × first] i8            the first numbers of the turned row, divided by their scale and rounded, sixteen rows abreast; an odd width and a
//!                                last group of fewer rows are filled up with zeros
//!   [rows] f32, [rows] f32       their scale, and the length of the others
//!   [rows] f32 × 2               the scale of the others, and the length of those after the second quarter
//!   [rows × second] i8           the second quarter
//!   [rows × rest] i8             the rest
//! ```
//!
//! With `y = s·c + e`, a query `p = t·d + f` with integer `d` has `p·y = s·t·(d·c) + p·e + f·(s·c)`. By Cauchy–Schwarz the
//! last two terms are at most `‖p‖‖e‖ + ‖f‖(‖y‖ + ‖e‖)`, and numbers that are not read add at most `‖p‖‖y‖`. A search that scores
//! every row whose upper bound reaches the best is therefore exact.
//! Damaged codes ([`crate::storage::checked`]) cost a search only time: it reads all vectors then.

use std::fs::File;
use std::io::Write;
use std::ops::Range;
use std::path::Path;
use std::sync::OnceLock;

use memmap2::Mmap;

use super::array::Filed;
use super::family::along;
use crate::storage::checked::{Damaged, SUM, Summed, open_sum, open_unchecked, sum_file};
use crate::storage::replace_with;
use crate::vector::{
    ABREAST, Outline, Reach, abreast, add_products, code, float, floats, highs, length, products_abreast,
    reaching, rounding, scale, signed, skew, turning,
};
use crate::work::{Stop, on_cores};

/// What changes when the layout does.
const FORMAT: &str = "codes in quarters, in lists of near rows, all of one length";
/// The largest integer of a query.
const FINEST: i32 = 2_047;
/// The bytes of a row beside its codes: its number, two scales and two lengths.
const NOTES: usize = 20;
/// Lists, and so the parts of all but the last one, begin at multiples of this: a line of the processor's caches.
const LINE: usize = 64;

/// The codes of a file of vectors, memory-mapped.
pub struct Codes {
    map: Mmap,
    sums: Summed,
    rows: usize,
    dimensions: usize,
    /// How far the axes are off, and the axes.
    head: OnceLock<Vec<f32>>,
}

/// How rows are coded.
pub(super) struct Layout {
    /// The axes that rows are turned to, one a row.
    pub axes: Vec<f32>,
    /// The numbers of all rows: those of the first list, of the second, and so on.
    pub order: Vec<u32>,
}

/// A query direction in integers.
pub struct Direction {
    /// The first quarter, the second, and the rest.
    whole: [Vec<i16>; 3],
    /// What an integer stands for.
    step: f32,
    /// The lengths of the first quarter, of the second, of all after the first and of all after the second.
    lengths: [f32; 4],
    /// What the score of a row of length 1 can be off.
    slack: f32,
    /// A row up to this length has a finite score in f32.
    longest: f32,
}

/// Where the parts of a list lie.
struct Parts {
    head: Range<usize>,
    mean: Range<usize>,
    numbers: Range<usize>,
    first: Range<usize>,
    scales: Range<usize>,
    rests: Range<usize>,
    notes: Range<usize>,
    further: [Range<usize>; 2],
}

impl Codes {
    /// Opens the codes of `rows` vectors, computing them if they are missing or damaged or bound other vectors. `layout` is given
    /// how many of its first axes should hold most of the rows' length.
    ///
    /// # Errors
    /// The vectors cannot be read, or the codes cannot be written.
    pub(super) fn of(
        vectors: &Filed,
        place: &Path,
        rows: usize,
        layout: impl FnOnce(usize) -> std::io::Result<Layout>,
    ) -> std::io::Result<Self> {
        let dimensions = vectors.dimensions;
        let codes = |sums: Summed| {
            // SAFETY: the file is never written again once it has its final name.
            let map = unsafe { Mmap::map(&File::open(place)?) }?;
            let codes = Codes { map, sums, rows, dimensions, head: OnceLock::new() };
            let size = parts(rows.saturating_sub(1) / per_list(rows), rows, dimensions).further[1].end;
            let whole = codes.sums.bytes() == size as u64 && codes.map.len() == size;
            let at = axes_end(dimensions)..axes_end(dimensions) + SUM;
            let own = whole && codes.read(at)? == vectors.sums.digest(FORMAT);
            Ok::<_, std::io::Error>(own.then_some(codes))
        };
        match open_sum(place).and_then(codes) {
            Ok(Some(codes)) => return Ok(codes),
            Err(error) if Damaged::of(&error).is_none() => return Err(error),
            // Not set aside: another process may be writing the same codes, and they are made again from the vectors alone.
            _ => (),
        }
        let [first, second, _] = quarters(dimensions);
        write(vectors, place, &layout(first + second)?)?;
        sum_file(place, place)?;
        let sums = open_unchecked(place)?.pop().ok_or(std::io::ErrorKind::NotFound)?;
        // Another version of this program may have put its own there.
        codes(sums)?.ok_or_else(|| std::io::ErrorKind::ResourceBusy.into())
    }

    /// Prepares a direction for comparison with the rows. `slack` widens the bounds of a row of length 1.
    ///
    /// # Errors
    /// The codes are [`Damaged`].
    pub fn direction(&self, direction: &[f32], slack: f32) -> std::io::Result<Direction> {
        let read = self.read(0..axes_end(self.dimensions))?;
        let (skew, axes) =
            self.head.get_or_init(|| floats(read)).split_first().ok_or(std::io::ErrorKind::UnexpectedEof)?;
        let product = |(a, x): (&f32, &f32)| f64::from(*a) * f64::from(*x);
        let along = |axis: &[f32]| axis.iter().zip(direction).map(product).sum();
        let turned: Vec<f64> = axes.chunks_exact(self.dimensions).map(along).collect();
        // Sums must fit into an i32.
        let most = (i32::MAX / 127 / self.dimensions.max(1) as i32).min(FINEST) as f32;
        let step = turned.iter().fold(0f64, |most, x| most.max(x.abs())) as f32 / most.max(1.0);
        let whole =
            |x: &f64| if step > 0.0 { (x / f64::from(step)).round() as f32 } else { 0.0 }.clamp(-most, most);
        let mut whole: Vec<i16> = turned.iter().map(|x| whole(x) as i16).collect();
        let lost = turned.iter().zip(&whole).map(|(x, w)| x - f64::from(step) * f64::from(*w));
        let of = |numbers: &[f64]| length(numbers.iter().copied());
        let (lost, all) = (length(lost), length(direction.iter().map(|x| f64::from(*x))));
        let slack = slack + lost + all * (rounding(self.dimensions) + skew + turning(self.dimensions));
        let [first, second, _] = quarters(self.dimensions);
        let (others, rest) = (&turned[first..], &turned[first + second..]);
        let lengths = [of(&turned[..first]), of(&others[..second]), of(others), of(rest)];
        let last = whole.split_off(first + second);
        let second = whole.split_off(first);
        whole.resize(first.next_multiple_of(2), 0);
        // Anything can be off if a part of a score's sum can be infinite. If a query is so long or short that bounds leave the range of f32, every
        // row is scored.
        let longest = if (1e-25..1e30).contains(&all) { f32::MAX / 4.0 / all } else { -1.0 };
        Ok(Direction { whole: [whole, second, last], step, lengths, slack, longest })
    }

    /// What the first quarter says of a list's rows whose upper bounds are `least` or more, or unknown.
    ///
    /// # Errors
    /// The codes are [`Damaged`].
    pub fn outlines(&self, along: &Direction, list: usize, least: f32) -> std::io::Result<Vec<Outline>> {
        let parts = parts(list, self.rows, self.dimensions);
        let ([of_first, ..], slack) = self.errors(along, &parts)?;
        let reach = Reach { step: along.step, error: of_first, others: along.lengths[2], slack };
        let (numbers, scales, rests) =
            (self.read(parts.numbers)?, self.read(parts.scales)?, self.read(parts.rests)?);
        let held = numbers.len() / 4;
        let mut products = vec![0; held.next_multiple_of(ABREAST)];
        products_abreast(signed(self.read(parts.first)?), &along.whole[0], &mut products);
        let mut above = vec![0.0; held];
        highs(reach, &products, scales, rests, &mut above);
        let mut outlines = Vec::new();
        for at in reaching(&above, least).into_iter().map(|at| at as usize) {
            let own = float(scales, at);
            let (middle, width) = reach.of(products[at], own, float(rests, at));
            let row = numbers.as_chunks::<4>().0.get(at).map_or(u32::MAX, |four| u32::from_le_bytes(*four));
            let error = own * of_first;
            outlines.push(Outline { row, at, low: middle - width, high: middle + width, middle, error });
        }
        Ok(outlines)
    }

    /// Narrows the bounds of a list's rows by the codes that [`Codes::outlines`] did not read. Rows whose upper bounds do not reach `least` on the way
    /// are left out.
    ///
    /// # Errors
    /// The codes are [`Damaged`].
    pub fn narrow(
        &self,
        along: &Direction,
        list: usize,
        mut outlines: Vec<Outline>,
        least: impl Fn() -> f32,
    ) -> std::io::Result<Vec<Outline>> {
        let parts = parts(list, self.rows, self.dimensions);
        let ([_, of_second, of_others], slack) = self.errors(along, &parts)?;
        let notes = self.read(parts.notes)?;
        // An infinite length is noted of a row without bounds, and 0 times that is none.
        let steps = [(of_second, along.lengths[3]), (of_others, 0.0)];
        for ((codes, whole), (error, others)) in parts.further.iter().zip(&along.whole[1..]).zip(steps) {
            let least = least();
            outlines.retain(|outline| outline.reaches(least));
            let at: Vec<usize> = outlines.iter().map(|outline| outline.at).collect();
            for at in &at {
                let row = codes.start + at * whole.len();
                self.sums.check_bytes(row as u64..(row + whole.len()) as u64, &self.map)?;
            }
            let codes = self.map.get(codes.clone()).ok_or(std::io::ErrorKind::UnexpectedEof)?;
            let mut products = vec![0; at.len()];
            add_products(signed(codes), whole, &at, &mut products);
            for ((outline, at), product) in outlines.iter_mut().zip(at).zip(products) {
                let (scale, rest) = (float(notes, 2 * at), float(notes, 2 * at + 1));
                let reach = Reach { step: along.step, error, others, slack: slack + outline.error };
                let (middle, width) = reach.of(product, scale, rest);
                outline.middle += middle;
                outline.low = outline.middle - width;
                // Both bounds from above hold.
                outline.high = (outline.middle + width).min(outline.high);
            }
        }
        Ok(outlines)
    }

    /// What rounding the first quarter, the second, and all after the first can change in units of their scale; and what else can be off.
    fn errors(&self, along: &Direction, parts: &Parts) -> std::io::Result<([f32; 3], f32)> {
        let head = self.read(parts.head.clone())?;
        let [first, second, others, _] = along.lengths;
        let errors = [first * float(head, 0), second * float(head, 1), others * float(head, 2)];
        let longest = float(head, 3);
        Ok((
            errors,
            if longest <= along.longest { along.slack * longest + f32::MIN_POSITIVE } else { f32::INFINITY },
        ))
    }

    fn read(&self, place: Range<usize>) -> std::io::Result<&[u8]> {
        self.sums.check_bytes(place.start as u64..place.end as u64, &self.map)?;
        self.map.get(place).ok_or_else(|| std::io::ErrorKind::UnexpectedEof.into())
    }

    /// How many lists there are.
    pub fn lists(&self) -> usize {
        self.rows.div_ceil(per_list(self.rows))
    }

    /// The `most` nearest lists, nearest first: in order of the product of their rows' mean with a direction.
    ///
    /// # Errors
    /// The codes are [`Damaged`].
    pub fn nearest(&self, direction: &[f32], most: usize) -> std::io::Result<Vec<usize>> {
        let near = |list| {
            let mean = self.read(parts(list, self.rows, self.dimensions).mean)?;
            Ok((list, (0..self.dimensions).map(|i| float(mean, i) * direction[i]).sum::<f32>()))
        };
        let mut lists = (0..self.lists()).map(near).collect::<std::io::Result<Vec<_>>>()?;
        lists.sort_by(|(_, one), (_, other)| other.total_cmp(one));
        Ok(lists.into_iter().take(most).map(|(list, _)| list).collect())
    }
}

/// The rows of every list; the last may have less. One of few rows would be chosen too often, because means of few rows are longer.
pub(super) fn per_list(rows: usize) -> usize {
    const MOST: usize = 4_096;
    let lists = rows.div_ceil(MOST).max(1);
    rows.div_ceil(lists).next_multiple_of(ABREAST).max(ABREAST)
}

/// How many numbers are scanned of a row, how many are read next, and how many are left.
fn quarters(dimensions: usize) -> [usize; 3] {
    let first = (dimensions / 4).max(1);
    let second = first.min(dimensions - first);
    [first, second, dimensions - first - second]
}

fn axes_end(dimensions: usize) -> usize {
    4 + dimensions * dimensions * 4
}

/// Where the parts of a list lie, in a file of so many rows.
fn parts(list: usize, rows: usize, dimensions: usize) -> Parts {
    let [first, second, rest] = quarters(dimensions);
    let (first, mean) = (first.next_multiple_of(2), (dimensions * 4).next_multiple_of(LINE));
    let (most, held) = (per_list(rows), per_list(rows).min(rows - list * per_list(rows)));
    let mut at = (axes_end(dimensions) + SUM).next_multiple_of(LINE)
        + list * (LINE + mean + most * (first + NOTES + second + rest));
    let mut next = |bytes: usize| {
        at += bytes;
        at - bytes..at
    };
    Parts {
        head: next(LINE),
        mean: next(mean),
        numbers: next(held * 4),
        first: next(held.next_multiple_of(ABREAST) * first),
        scales: next(held * 4),
        rests: next(held * 4),
        notes: next(held * 8),
        further: [next(held * second), next(held * rest)],
    }
}

/// Computes the codes and writes them. Two processes that do so at once write the same bytes on processors of one kind.
fn write(vectors: &Filed, place: &Path, layout: &Layout) -> std::io::Result<()> {
    let dimensions = vectors.dimensions;
    let lists: Vec<&[u32]> = layout.order.chunks(per_list(layout.order.len())).collect();
    replace_with(place, |file| {
        let mut head = skew(&layout.axes, dimensions).to_le_bytes().to_vec();
        head.extend(layout.axes.iter().flat_map(|x| x.to_le_bytes()));
        head.extend(vectors.sums.digest(FORMAT));
        head.resize(head.len().next_multiple_of(LINE), 0);
        file.write_all(&head)?;
        // So many are in memory at once.
        for some in lists.chunks(8) {
            for list in on_cores(some.len(), &Stop::never(), |i| list(vectors, some[i], &layout.axes)) {
                file.write_all(&list?)?;
            }
        }
        Ok(())
    })
}

/// The bytes of a list.
fn list(vectors: &Filed, numbers: &[u32], axes: &[f32]) -> std::io::Result<Vec<u8>> {
    let dimensions = vectors.dimensions;
    let [first, second, rest] = quarters(dimensions);
    let mut rows = Vec::with_capacity(numbers.len() * dimensions);
    for run in numbers.chunk_by(|one, next| one + 1 == *next) {
        let start = run[0] as usize;
        rows.extend(vectors.rows(start..start + run.len())?);
    }
    let turned = along(&rows, axes, dimensions).map_err(std::io::Error::other)?;
    let (mut largest, mut codes): ([f32; 4], [Vec<i8>; 3]) = Default::default();
    let (mut scales, mut rests, mut notes) = (Vec::new(), Vec::new(), Vec::new());
    let of = |numbers: &[f32]| length(numbers.iter().map(|x| f64::from(*x)));
    let (mut mean, share) = (vec![0f32; dimensions], 1.0 / numbers.len() as f32);
    for (row, turned) in rows.chunks_exact(dimensions).zip(turned.chunks_exact(dimensions)) {
        if turned.iter().all(|x| x.is_finite()) {
            mean.iter_mut().zip(row).for_each(|(sum, x)| *sum += x * share);
            let (of_first, others) = turned.split_at(first);
            let (of_second, of_rest) = others.split_at(second);
            let (own, further) = (scale(of_first), scale(others));
            let coded = [code(of_first, own), code(of_second, further), code(of_rest, further)];
            let [one, two, three] = coded.each_ref().map(|(_, lost)| *lost);
            let ratio = |lost: f64, scale: f32| length([lost / f64::from(scale)].into_iter());
            let all = length([f64::from(of(turned)) + one.hypot(two).hypot(three)].into_iter());
            let now = [ratio(one, own), ratio(two, further), ratio(two.hypot(three), further), all];
            largest = std::array::from_fn(|i| largest[i].max(now[i]));
            codes.iter_mut().zip(coded).for_each(|(all, (own, _))| all.extend(own));
            codes[0].resize(codes[0].len().next_multiple_of(2), 0);
            scales.push(own);
            rests.push(of(others));
            notes.extend([further, of(of_rest)]);
        } else {
            // The product of this row has no bounds, so every search scores it.
            let widths = [first.next_multiple_of(2), second, rest];
            codes.iter_mut().zip(widths).for_each(|(all, width)| all.resize(all.len() + width, 0));
            scales.push(f32::MIN_POSITIVE);
            rests.push(f32::INFINITY);
            notes.extend([f32::MIN_POSITIVE, f32::INFINITY]);
        }
    }
    let bytes = |numbers: &[f32]| numbers.iter().flat_map(|x| x.to_le_bytes()).collect::<Vec<u8>>();
    let mut out = bytes(&largest);
    out.resize(LINE, 0);
    out.extend(bytes(&mean));
    out.resize(out.len().next_multiple_of(LINE), 0);
    out.extend(numbers.iter().flat_map(|number| number.to_le_bytes()));
    out.extend(abreast(&codes[0], first.next_multiple_of(2)).iter().map(|code| *code as u8));
    out.extend([scales, rests, notes].iter().flat_map(|numbers| bytes(numbers)));
    out.extend(codes[1..].iter().flatten().map(|code| *code as u8));
    Ok(out)
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;
    use crate::vector::dot;

    /// Rows of about one length, one with a single number, zeros, NaN, infinity.
    fn rows(dimensions: usize, long: f32) -> Vec<Vec<f32>> {
        let number = |i: usize| ((i * i * 7_919 + i * 1_048_573) % 100_003) as f32 / 50_001.5 - 1.0;
        let row = |i: usize| (i * dimensions..(i + 1) * dimensions).map(|i| number(i) * long).collect();
        let mut rows: Vec<Vec<f32>> = (0..100).map(row).collect();
        rows.extend([0.0, 0.0, f32::NAN, f32::INFINITY].map(|x| vec![x; dimensions]));
        rows[100][0] = long;
        rows
    }

    #[test]
    fn the_true_product_lies_within_the_bounds_which_are_narrow_at_last() {
        for (dimensions, long) in
            [1, 2, 3, 5, 7, 64, 384].into_iter().flat_map(|width| [1.0, 1e4, 1e-4, 1e-30].map(|x| (width, x)))
        {
            let (folder, rows) = (tempfile::tempdir().unwrap(), rows(dimensions, long));
            let [file, place] = ["v.f32", "v.i8"].map(|name| folder.path().join(name));
            let bytes: Vec<u8> = rows.iter().flatten().flat_map(|x| x.to_le_bytes()).collect();
            fs::write(&file, bytes).unwrap();
            let (vectors, layout) = (filed(&file, dimensions), |_| Ok(layout(dimensions, rows.len())));
            let codes = Codes::of(&vectors, &place, rows.len(), layout).unwrap();
            for query in rows.iter().take(20).chain(&self::rows(dimensions, 1.0)[..20]) {
                let along = codes.direction(query, 0.0).unwrap();
                let wide = codes.outlines(&along, 0, f32::NEG_INFINITY).unwrap();
                let all = codes.narrow(&along, 0, wide.clone(), || f32::NEG_INFINITY).unwrap();
                assert_eq!((wide.len(), all.len()), (rows.len(), rows.len()));
                let lengths = dot(query, query).sqrt() * long * (dimensions as f32).sqrt();
                for (wide, narrow) in wide.iter().zip(&all) {
                    let product = dot(query, &rows[wide.row as usize]);
                    if rows[wide.row as usize][0].is_finite() {
                        let bounds = [wide.low, narrow.low, product, narrow.high, wide.high];
                        assert!(narrow.low <= product && product <= narrow.high, "{bounds:?}");
                        assert!(wide.low <= product && narrow.high <= wide.high, "{bounds:?}");
                        let near = narrow.high - narrow.low < 0.05 * lengths;
                        assert!(near || lengths == 0.0 || long < 1e-25, "{bounds:?}");
                    } else {
                        assert!(narrow.reaches(f32::INFINITY));
                    }
                }
            }
        }
    }

    #[test]
    fn codes_of_other_vectors_are_computed_again() {
        let folder = tempfile::tempdir().unwrap();
        let (file, place) = (folder.path().join("v.f32"), folder.path().join("v.i8"));
        let codes = |first: u8| {
            fs::write(&file, (first..first + 48).collect::<Vec<u8>>()).unwrap();
            Codes::of(&filed(&file, 4), &place, 3, |_| Ok(layout(4, 3))).unwrap();
            fs::read(&place).unwrap()
        };
        let (one, other) = (codes(0), codes(1));
        assert!(one.len() == other.len() && one != other);
    }

    /// Axes of length 1 that are perpendicular and lie along none of the numbers; the last row comes first.
    fn layout(dimensions: usize, rows: usize) -> Layout {
        let part = 2.0 / dimensions as f32;
        let every = (0..dimensions).flat_map(|i| (0..dimensions).map(move |j| (i, j)));
        let axes = every.map(|(i, j)| f32::from(u8::from(i == j)) - part).collect();
        Layout { axes, order: (0..rows as u32).rev().collect() }
    }

    fn filed(path: &Path, dimensions: usize) -> Filed {
        sum_file(path, path).unwrap();
        Filed::open(path, dimensions).unwrap()
    }

    #[test]
    fn codes_with_another_number_of_rows_and_damaged_ones_are_computed_again() {
        let folder = tempfile::tempdir().unwrap();
        let (file, place) = (folder.path().join("v.f32"), folder.path().join("v.i8"));
        fs::write(&file, (0..48).collect::<Vec<u8>>()).unwrap();
        let vectors = filed(&file, 4);
        fs::write(&place, b"cut short").unwrap();
        Codes::of(&vectors, &place, 3, |_| Ok(layout(4, 3))).unwrap();
        let right = fs::read(&place).unwrap();
        // The axes and what stands for the vectors, the list's head and mean, the first numbers of sixteen rows in pairs, and the rest of three rows.
        assert_eq!(right.len(), 128 + 64 + 64 + 16 * 2 + 3 * (20 + 3));
        for at in 0..right.len() {
            let mut damaged = right.clone();
            damaged[at] ^= 1;
            fs::write(&place, damaged).unwrap();
            Codes::of(&vectors, &place, 3, |_| Ok(layout(4, 3))).unwrap();
            assert_eq!(fs::read(&place).unwrap(), right);
        }
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 4);
    }
}
