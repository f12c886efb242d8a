//! Dot products of f32 rows and of int8 codes. May use: nothing of this crate.

/// The dot product, in eight running sums so that the compiler can use wide registers.
#[inline(always)]
pub fn dot(a: &[f32], b: &[f32]) -> f32 {
    let mut sums = [0f32; 8];
    let (a_rows, b_rows) = (a.chunks_exact(8), b.chunks_exact(8));
    let tail: f32 = a_rows.remainder().iter().zip(b_rows.remainder()).map(|(x, y)| x * y).sum();
    for (x, y) in a_rows.zip(b_rows) {
        for lane in 0..8 {
            sums[lane] += x[lane] * y[lane];
        }
    }
    sums.iter().sum::<f32>() + tail
}

/// Numbers from little-endian bytes.
pub fn floats(bytes: &[u8]) -> Vec<f32> {
    bytes.as_chunks::<4>().0.iter().map(|four| f32::from_le_bytes(*four)).collect()
}

/// The first numbers of little-endian bytes; infinite where there are none.
#[inline(always)]
pub fn first_floats<const N: usize>(bytes: &[u8]) -> [f32; N] {
    let mut numbers = [f32::INFINITY; N];
    for (number, four) in numbers.iter_mut().zip(bytes.as_chunks::<4>().0) {
        *number = f32::from_le_bytes(*four);
    }
    numbers
}

/// What an upper bound takes of a query: of its first numbers the scale, length and error, of the others the length, and of all the slack.
#[derive(Clone, Copy)]
pub struct Reach {
    /// What an integer of the query stands for.
    pub scale: f32,
    /// The length of its first numbers.
    pub length: f32,
    /// The length of what rounding took from them.
    pub error: f32,
    /// The length of its other numbers.
    pub others: f32,
    /// What the score of a row of length 1 can be off.
    pub slack: f32,
    /// A row up to this length has a finite score in f32.
    pub longest: f32,
}

impl Reach {
    /// The middle of the bounds by the first numbers, what these can be off, and the most that the others add, for a row with these notes: the
    /// scale, error and length of its first numbers, and the length of the others. The product of two small scales may be none in f32.
    #[inline(always)]
    pub fn of(&self, product: i32, [scale, error, length, beyond]: [f32; 4]) -> [f32; 3] {
        let middle = (f64::from(self.scale) * f64::from(scale) * f64::from(product)) as f32;
        let all = length + beyond;
        let slack = if all <= self.longest { self.slack * all + f32::MIN_POSITIVE } else { f32::INFINITY };
        [middle, self.length * error + self.error * (length + error) + slack, self.others * beyond]
    }
}

/// Writes the upper bound of each row to `highs`; see [`Reach::of`].
pub fn highs(reach: Reach, products: &[i32], notes: &[[u8; 16]], highs: &mut [f32]) {
    #[cfg(target_arch = "x86_64")]
    if is_x86_feature_detected!("avx2") {
        // SAFETY: the processor supports these instructions, as just detected.
        return unsafe { highs_avx2(reach, products, notes, highs) };
    }
    highs_plain(reach, products, notes, highs);
}

#[inline(always)]
fn highs_plain(reach: Reach, products: &[i32], notes: &[[u8; 16]], highs: &mut [f32]) {
    for ((high, product), notes) in highs.iter_mut().zip(products).zip(notes) {
        let [middle, width, rest] = reach.of(*product, first_floats(notes));
        *high = middle + (width + rest);
    }
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2")]
fn highs_avx2(reach: Reach, products: &[i32], notes: &[[u8; 16]], highs: &mut [f32]) {
    highs_plain(reach, products, notes, highs);
}

/// Scales a vector to unit length; `false` if it has none.
pub fn unit(vector: &mut [f32]) -> bool {
    let length = dot(vector, vector).sqrt();
    if length > 0.0 {
        vector.iter_mut().for_each(|x| *x /= length);
    }
    length > 0.0
}

/// The number of the row with the greatest dot product with `vector`, the first of several. A row is as long as the vector.
pub fn nearest(rows: &[f32], vector: &[f32]) -> usize {
    #[cfg(target_arch = "x86_64")]
    if is_x86_feature_detected!("avx2") {
        // SAFETY: the processor supports these instructions, as just detected.
        return unsafe { nearest_avx2(rows, vector) };
    }
    nearest_plain(rows, vector)
}

#[inline(always)]
fn nearest_plain(rows: &[f32], vector: &[f32]) -> usize {
    let (mut best, mut greatest) = (0, f32::NEG_INFINITY);
    for (place, row) in rows.chunks_exact(vector.len().max(1)).enumerate() {
        let product = dot(row, vector);
        if product > greatest {
            (best, greatest) = (place, product);
        }
    }
    best
}

/// The sums are those of [`dot`]: the compiler does not join products and sums, so every processor finds the same row.
#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2")]
fn nearest_avx2(rows: &[f32], vector: &[f32]) -> usize {
    nearest_plain(rows, vector)
}

/// The sum over the query's vectors of the greatest dot product with one of the passage's; 0 for a passage without vectors.
pub fn max_sim(query: &[Vec<f32>], passage: &[Vec<f32>]) -> f32 {
    let greatest =
        |own: &Vec<f32>| passage.iter().map(|other| dot(own, other)).reduce(f32::max).unwrap_or(0.0);
    query.iter().map(greatest).sum()
}

/// The largest rounding error of an f32 dot product of two vectors of length 1.
pub fn rounding(dimensions: usize) -> f32 {
    (dimensions as f32 / 8.0 + 32.0) * 2.0 * f32::EPSILON
}

/// The most that turning a row of length 1 in f32 can be off: every number is a sum of `dimensions` products.
pub fn turning(dimensions: usize) -> f32 {
    dimensions as f32 * (dimensions as f32).sqrt() * f32::EPSILON
}

/// Writes the dot product of each row with `query` to `out`. A row is as long as the query. The products are integers, so every machine
/// gives the same ones.
///
/// The query's numbers must be so small that sums fit into an i32.
pub fn products(rows: &[i8], query: &[i16], out: &mut [i32]) {
    #[cfg(target_arch = "x86_64")]
    {
        if is_x86_feature_detected!("avx512bw") && is_x86_feature_detected!("avx512vnni") {
            // SAFETY: the processor supports these instructions, as just detected.
            return unsafe { with_avx512(rows, query, out) };
        }
        if is_x86_feature_detected!("avx2") {
            // SAFETY: the processor supports these instructions, as just detected.
            return unsafe { with_avx2(rows, query, out) };
        }
    }
    plain(rows, query, out);
}

/// The loop that the compiler vectorises for each kind of processor.
#[inline(always)]
fn plain(rows: &[i8], query: &[i16], out: &mut [i32]) {
    for (row, out) in rows.chunks_exact(query.len().max(1)).zip(out) {
        *out = row.iter().zip(query).map(|(c, q)| i32::from(*c) * i32::from(*q)).sum();
    }
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2")]
fn with_avx2(rows: &[i8], query: &[i16], out: &mut [i32]) {
    plain(rows, query, out);
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx512f,avx512bw,avx512vl,avx512vnni")]
fn with_avx512(rows: &[i8], query: &[i16], out: &mut [i32]) {
    plain(rows, query, out);
}

/// Scale, error and length of some numbers, and their codes: bytes that are the numbers divided by the scale and rounded.
pub fn code(numbers: &[f32], finite: bool) -> ([f32; 3], Vec<u8>) {
    let scale = numbers.iter().fold(0f32, |most, x| most.max(x.abs())) / 127.0;
    if !finite {
        // The product of this row has no bounds, so every search scores it.
        return ([0.0, f32::INFINITY, 0.0], vec![0; numbers.len()]);
    }
    let whole = |x: &f32| if scale > 0.0 { (x / scale).round().clamp(-127.0, 127.0) as i8 } else { 0 };
    let codes: Vec<i8> = numbers.iter().map(whole).collect();
    let lost = numbers.iter().zip(&codes).map(|(x, c)| f64::from(*x) - f64::from(scale) * f64::from(*c));
    let notes = [scale, length(lost), length(numbers.iter().map(|x| f64::from(*x)))];
    (notes, codes.into_iter().map(|c| c as u8).collect())
}

/// The Euclidean length, rounded up.
pub fn length(numbers: impl Iterator<Item = f64>) -> f32 {
    (numbers.map(|x| x * x).sum::<f64>().sqrt() * (1.0 + 1e-6)) as f32
}

/// Perpendicular axes of length 1, one a row, of which the first `most` span about what as many principal components of the rows span.
pub fn axes(rows: &[f32], dimensions: usize, most: usize) -> Vec<f32> {
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
        let next = |row: &Vec<f64>| spread.iter().map(|to| dot64(to, row)).collect::<Vec<f64>>();
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
        let before = dot64(&row, &row);
        for _ in 0..2 {
            for axis in &span {
                let along = dot64(&row, axis);
                row.iter_mut().zip(axis).for_each(|(x, a)| *x -= along * a);
            }
        }
        let left = dot64(&row, &row);
        if left.is_normal() && left > 1e-12 * before {
            row.iter_mut().for_each(|x| *x /= left.sqrt());
            span.push(row);
        }
    }
    span
}

/// The length of `AAᵀ − 1` for square axes A. It is that of `AᵀA − 1`, and bounds what a product changes by turning.
pub fn skew(axes: &[f32], dimensions: usize) -> f32 {
    let rows = axes.chunks_exact(dimensions).map(|row| row.iter().map(|x| f64::from(*x)).collect());
    let rows: Vec<Vec<f64>> = rows.collect();
    let off = |i: usize, j: usize| dot64(&rows[i], &rows[j]) - f64::from(u8::from(i == j));
    length((0..rows.len()).flat_map(|i| (0..rows.len()).map(move |j| (i, j))).map(|(i, j)| off(i, j)))
}

/// The dot product, in eight running sums so that the compiler can use wide registers.
fn dot64(a: &[f64], b: &[f64]) -> f64 {
    let mut sums = [0f64; 8];
    let (a_rows, b_rows) = (a.chunks_exact(8), b.chunks_exact(8));
    let tail: f64 = a_rows.remainder().iter().zip(b_rows.remainder()).map(|(x, y)| x * y).sum();
    for (x, y) in a_rows.zip(b_rows) {
        for lane in 0..8 {
            sums[lane] += x[lane] * y[lane];
        }
    }
    sums.iter().sum::<f64>() + tail
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_instruction_set_gives_the_same_products_at_every_length() {
        for dimensions in [1, 3, 16, 31, 32, 63, 64, 100, 384, 1_025] {
            let rows: Vec<i8> =
                (0..dimensions * 7).map(|i| ((i * 7_919 + 13) % 255) as i16 - 127).map(|x| x as i8).collect();
            let query: Vec<i16> = (0..dimensions).map(|i| ((i * 104_729) % 4_095) as i16 - 2_047).collect();
            let expected: Vec<i32> = rows
                .chunks_exact(dimensions)
                .map(|row| row.iter().zip(&query).map(|(c, q)| i32::from(*c) * i32::from(*q)).sum())
                .collect();
            let mut out = vec![0; 7];
            products(&rows, &query, &mut out);
            assert_eq!(out, expected);
            plain(&rows, &query, &mut out);
            assert_eq!(out, expected);
            #[cfg(target_arch = "x86_64")]
            if is_x86_feature_detected!("avx2") {
                // SAFETY: the processor supports these instructions, as just detected.
                unsafe { with_avx2(&rows, &query, &mut out) };
                assert_eq!(out, expected);
            }
        }
    }

    #[test]
    fn the_nearest_row_is_the_first_with_the_greatest_product() {
        let rows = [0.6, 0.8, 1.0, 0.0, 1.0, 0.0, -1.0, 0.0];
        assert_eq!(nearest(&rows, &[1.0, 0.1]), 1);
        assert_eq!(nearest_plain(&rows, &[1.0, 0.1]), 1);
        assert_eq!(nearest(&rows, &[0.0, 1.0]), 0);
        assert_eq!(nearest(&[], &[1.0]), 0);
    }

    #[test]
    fn every_token_of_the_query_counts_its_nearest_token_of_the_passage() {
        let query = [vec![1.0, 0.0], vec![0.6, 0.8]];
        // 1 · 0.8 against 0.6 · 0.8 + 0.8 · 0.6 = 0.96, and 0 against 0.8.
        let passage = [vec![0.8, 0.6], vec![0.0, 1.0]];
        assert!((max_sim(&query, &passage) - (0.8 + 0.96)).abs() < 1e-6);
        assert_eq!(max_sim(&query, &[]), 0.0);
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
