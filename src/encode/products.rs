//! The dot products of rows of bytes with one query, in whole numbers: every machine gives the same ones.

/// Writes the dot product of each row with `query` to `out`; a row is as long as the query.
///
/// No product may exceed an i32, which the caller sees to by the size of the query's numbers.
pub fn products(rows: &[i8], query: &[i16], out: &mut [i32]) {
    #[cfg(target_arch = "x86_64")]
    {
        if is_x86_feature_detected!("avx512bw") && is_x86_feature_detected!("avx512vnni") {
            // SAFETY: the processor has just said that it knows these instructions.
            return unsafe { with_avx512(rows, query, out) };
        }
        if is_x86_feature_detected!("avx2") {
            // SAFETY: the processor has just said that it knows these instructions.
            return unsafe { with_avx2(rows, query, out) };
        }
    }
    plain(rows, query, out);
}

/// The same loop for each kind of processor: the compiler makes of it what the processor does best.
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
    fn every_kind_of_processor_gives_the_same_products_at_every_length() {
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
                // SAFETY: the processor has just said that it knows these instructions.
                unsafe { with_avx2(&rows, &query, &mut out) };
                assert_eq!(out, expected);
            }
        }
    }
}
