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
}
