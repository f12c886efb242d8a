//! The vectors of a corpus, one row per passage.
//!
//! Small corpora are held in memory. Large ones are read with positioned reads, not mapped: a search touches a few hundred rows, and
//! mapped pages would count as this program's memory. They come with [`Codes`], a quarter of their size.
//! They have checksums ([`crate::storage::checked`]).

use std::borrow::Cow;
use std::ops::Range;
use std::path::Path;

use super::array::Filed;
use super::codes::{Codes, Layout, per_list};
use crate::corpus::PassageIx;
use crate::storage::checked::Damaged;
use crate::vector::{dot, floats, length, unit};
use crate::work::{Stop, on_cores};

/// Up to this many rows are held in memory: 12 MB at 384 dimensions.
const HELD: usize = 8_192;

#[expect(clippy::large_enum_variant, reason = "one value per corpus")]
enum Rows {
    Held(Vec<f32>),
    Filed { file: Filed, codes: Codes },
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
            let codes = Codes::of(&file, &path.with_extension("i8"), len, |most| layout(&file, len, most))?;
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

/// How the rows of a file are coded, by what a sample of them shows.
fn layout(vectors: &Filed, rows: usize, most: usize) -> std::io::Result<Layout> {
    let dimensions = vectors.dimensions;
    let sample = sample(vectors, rows)?;
    let list = per_list(rows);
    let tree = Tree::of(&sample, dimensions, rows.div_ceil(list));
    let starts: Vec<usize> = (0..rows).step_by(list).collect();
    let leaves = on_cores(starts.len(), &Stop::never(), |i| {
        let rows = vectors.rows(starts[i]..(starts[i] + list).min(rows))?;
        Ok(rows.chunks_exact(dimensions).map(|row| tree.leaf(row)).collect::<Vec<_>>())
    });
    let leaves = leaves.into_iter().collect::<std::io::Result<Vec<_>>>()?.concat();
    let mut order: Vec<u32> = (0..rows as u32).collect();
    order.sort_by_key(|row| leaves[*row as usize]);
    // Rows of one list are read in the order of the file.
    order.chunks_mut(list).for_each(<[u32]>::sort_unstable);
    Ok(Layout { axes: axes(&sample, dimensions, most), order })
}

/// Rows from all parts of a file, of length 1.
fn sample(vectors: &Filed, rows: usize) -> std::io::Result<Vec<f32>> {
    const LEAST: usize = 16_384;
    const SHARE: usize = 256;
    const RUN: usize = 64;
    let dimensions = vectors.dimensions;
    let mut out = Vec::new();
    for start in (0..rows).step_by((rows / (LEAST.max(rows / SHARE) / RUN)).max(RUN)) {
        for row in vectors.rows(start..(start + RUN).min(rows))?.chunks_exact(dimensions) {
            let length = length(row.iter().map(|x| f64::from(*x)));
            if length.is_normal() {
                out.extend(row.iter().map(|x| x / length));
            }
        }
    }
    Ok(out)
}

/// A binary tree that cuts the space in two at every node, where the rows of a sample differ most, with half of them on either side.
/// Rows of one leaf are near to each other, and so mostly are those of the next.
struct Tree {
    /// A direction and a threshold of every node; those of node i's children are at 2i + 1 and 2i + 2.
    cuts: Vec<(Vec<f32>, f32)>,
}

impl Tree {
    /// A tree with at least so many leaves.
    fn of(sample: &[f32], dimensions: usize, leaves: usize) -> Self {
        let mut cuts = Vec::new();
        let mut parts = vec![sample.chunks_exact(dimensions).collect::<Vec<_>>()];
        while parts.len() < leaves {
            let mut halves = Vec::new();
            for part in parts {
                let (along, least) = cut(&part, dimensions);
                let (one, other) = part.into_iter().partition(|row| dot(&along, row) <= least);
                halves.extend([one, other]);
                cuts.push((along, least));
            }
            parts = halves;
        }
        Tree { cuts }
    }

    /// The leaf that a row falls into, from the left.
    fn leaf(&self, row: &[f32]) -> u32 {
        // The sample's rows have length 1.
        let (mut node, length) = (0, dot(row, row).sqrt());
        while let Some((along, least)) = self.cuts.get(node) {
            node = 2 * node + 1 + usize::from(dot(along, row) > *least * length);
        }
        (node - self.cuts.len()) as u32
    }
}

/// The direction in which rows differ most (by power iteration), and the median of their products with it.
fn cut(rows: &[&[f32]], dimensions: usize) -> (Vec<f32>, f32) {
    const ROUNDS: usize = 6;
    let mut mean = vec![0.0; dimensions];
    for row in rows {
        mean.iter_mut().zip(*row).for_each(|(sum, x)| *sum += x / rows.len() as f32);
    }
    let from_mean = |row: &[f32]| row.iter().zip(&mean).map(|(x, m)| x - m).collect::<Vec<f32>>();
    let far = rows.iter().min_by(|one, other| dot(one, &mean).total_cmp(&dot(other, &mean)));
    let mut along = far.map_or_else(|| mean.clone(), |row| from_mean(row));
    for _ in 0..ROUNDS {
        let mut next = vec![0.0; dimensions];
        for row in rows {
            let off = from_mean(row);
            let much = dot(&off, &along);
            next.iter_mut().zip(off).for_each(|(sum, x)| *sum += much * x);
        }
        if !unit(&mut next) {
            break;
        }
        along = next;
    }
    let mut products: Vec<f32> = rows.iter().map(|row| dot(row, &along)).collect();
    products.sort_by(f32::total_cmp);
    let median = products.get(products.len().saturating_sub(1) / 2).copied().unwrap_or(0.0);
    (along, median)
}

/// Perpendicular axes of length 1, one a row, of which the first `most` span about what as many principal components of the rows span.
fn axes(rows: &[f32], dimensions: usize, most: usize) -> Vec<f32> {
    const ROUNDS: usize = 6;
    let unit = |at: usize| (0..dimensions).map(move |i| f64::from(u8::from(i == at))).collect::<Vec<f64>>();
    let mut spread = vec![vec![0f64; dimensions]; dimensions];
    for row in rows.chunks_exact(dimensions) {
        for (to, x) in spread.iter_mut().zip(row) {
            to.iter_mut().zip(row).for_each(|(sum, y)| *sum += f64::from(*x) * f64::from(*y));
        }
    }
    let mut span: Vec<Vec<f64>> = (0..most).map(unit).collect();
    // Orthogonal iteration. Rows that span less leave room for what was there before.
    for _ in 0..ROUNDS {
        let next = |row: &Vec<f64>| spread.iter().map(|to| dot(to, row)).collect::<Vec<f64>>();
        let next: Vec<Vec<f64>> = span.iter().map(next).collect();
        span = perpendicular(next.into_iter().chain(span), most);
    }
    let every = perpendicular(span.into_iter().chain((0..dimensions).map(unit)), dimensions);
    every.iter().flatten().map(|x| *x as f32).collect()
}

/// The first `count` directions that are new among `rows`, perpendicular and of length 1 (Gram–Schmidt, twice for its rounding).
fn perpendicular(rows: impl Iterator<Item = Vec<f64>>, count: usize) -> Vec<Vec<f64>> {
    let mut span: Vec<Vec<f64>> = Vec::new();
    for mut row in rows {
        if span.len() == count {
            break;
        }
        let before = dot(&row, &row);
        for _ in 0..2 {
            for axis in &span {
                let along = dot(&row, axis);
                row.iter_mut().zip(axis).for_each(|(x, a)| *x -= along * a);
            }
        }
        let left = dot(&row, &row);
        if left.is_normal() && left > 1e-12 * before {
            row.iter_mut().for_each(|x| *x /= left.sqrt());
            span.push(row);
        }
    }
    span
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::vector::skew;

    #[test]
    fn rows_that_are_near_lie_in_one_list_and_every_row_lies_in_one() {
        // Four places in turn, each a little blurred.
        let folder = tempfile::tempdir().unwrap();
        let (path, rows) = (folder.path().join("v.f32"), 4 * 4_096);
        let place = |i: usize| [[3.0, 0.0], [0.0, 3.0], [-3.0, 0.0], [0.0, -3.0f32]][i % 4];
        let row = |i: usize| place(i).map(|x| x + (i as f32).sin()).into_iter().chain([(i as f32).cos()]);
        let bytes: Vec<u8> = (0..rows).flat_map(row).flat_map(f32::to_le_bytes).collect();
        std::fs::write(&path, bytes).unwrap();
        crate::storage::checked::sum_file(&path, &path).unwrap();
        let layout = layout(&Filed::open(&path, 3).unwrap(), rows, 1).unwrap();
        for list in layout.order.chunks(per_list(rows)) {
            let strangers = list.iter().filter(|row| *row % 4 != list[0] % 4).count();
            assert!(strangers < list.len() / 20 && list.is_sorted(), "{strangers}");
        }
        let mut all = layout.order;
        all.sort_unstable();
        assert!(all.into_iter().eq(0..rows as u32));
    }

    #[test]
    fn no_rows_and_equal_rows_make_a_tree() {
        let equal = [1.0, 0.0].repeat(9);
        for sample in [&[][..], &equal, &[f32::NAN; 4]] {
            let tree = Tree::of(sample, 2, 5);
            assert_eq!(tree.cuts.len(), 7);
            assert!([[1.0, 0.0], [f32::NAN, 1.0]].iter().all(|row| tree.leaf(row) < 8));
        }
    }

    #[test]
    fn the_first_axes_are_those_along_which_the_rows_differ() {
        // Rows in a plane of six dimensions, which no axis of theirs lies in.
        let (one, other) = ([1.0, 1.0, 0.0, 0.0, 1.0, 0.0f32], [0.0, 1.0, -1.0, 0.0, 0.0, 2.0f32]);
        let mix = |i: usize| {
            let (a, b) = ((i as f32).sin(), (i as f32 * 0.7).cos());
            (0..6).map(move |at| a * one[at] + b * other[at])
        };
        let rows: Vec<f32> = (0..50).flat_map(mix).collect();
        let axes = axes(&rows, 6, 2);
        assert!(skew(&axes, 6) < 1e-6);
        for row in rows.chunks(6) {
            let along = |at: usize| dot(row, &axes[at * 6..at * 6 + 6]).powi(2);
            assert!(along(0) + along(1) > 0.999 * dot(row, row), "{axes:?}");
        }
        for empty in [&[][..], &[0.0; 12]] {
            assert!(skew(&super::axes(empty, 6, 2), 6) < 1e-6);
        }
    }
}
