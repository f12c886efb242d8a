//! Dot products of f32 rows and of int8 codes, and bounds of them. May use: nothing of this crate.

use std::iter::Sum;
use std::ops::{Add, Mul};

/// The dot product, in eight running sums so that the compiler can use wide registers.
#[inline(always)]
pub fn dot<T: Copy + Default + Add<Output = T> + Mul<Output = T> + Sum>(a: &[T], b: &[T]) -> T {
    let mut sums = [T::default(); 8];
    let (a_rows, b_rows) = (a.chunks_exact(8), b.chunks_exact(8));
    let tail: T = a_rows.remainder().iter().zip(b_rows.remainder()).map(|(x, y)| *x * *y).sum();
    for (x, y) in a_rows.zip(b_rows) {
        for lane in 0..8 {
            sums[lane] = sums[lane] + x[lane] * y[lane];
        }
    }
    sums.into_iter().sum::<T>() + tail
}

/// Numbers from little-endian bytes.
pub fn floats(bytes: &[u8]) -> Vec<f32> {
    bytes.as_chunks::<4>().0.iter().map(|four| f32::from_le_bytes(*four)).collect()
}

/// Bytes as the codes that they are.
pub fn signed(bytes: &[u8]) -> &[i8] {
    // SAFETY: every byte is an i8, of the same size.
    unsafe { std::slice::from_raw_parts(bytes.as_ptr().cast(), bytes.len()) }
}

/// The number at a place of little-endian numbers; infinite if there is none.
pub fn float(bytes: &[u8], at: usize) -> f32 {
    bytes.as_chunks::<4>().0.get(at).map_or(f32::INFINITY, |four| f32::from_le_bytes(*four))
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

/// Whether the processor has the instructions of the functions for AVX-512.
#[cfg(target_arch = "x86_64")]
fn has_avx512() -> bool {
    is_x86_feature_detected!("avx512bw")
        && is_x86_feature_detected!("avx512vl")
        && is_x86_feature_detected!("avx512vnni")
}

/// Adds to each sum the dot product of `query` with the row of that number. A row is as long as the query. The products are integers, so every
/// machine gives the same ones; the query's numbers must be so small that sums fit into an i32.
pub fn add_products(rows: &[i8], query: &[i16], at: &[usize], sums: &mut [i32]) {
    #[cfg(target_arch = "x86_64")]
    {
        if has_avx512() {
            // SAFETY: the processor supports these instructions, as just detected.
            return unsafe { add_with_avx512(rows, query, at, sums) };
        }
        if is_x86_feature_detected!("avx2") {
            // SAFETY: the processor supports these instructions, as just detected.
            return unsafe { add_with_avx2(rows, query, at, sums) };
        }
    }
    add_plain(rows, query, at, sums);
}

#[inline(always)]
fn add_plain(rows: &[i8], query: &[i16], at: &[usize], sums: &mut [i32]) {
    for (at, sum) in at.iter().zip(sums) {
        let row = &rows[at * query.len()..(at + 1) * query.len()];
        *sum += row.iter().zip(query).map(|(c, q)| i32::from(*c) * i32::from(*q)).sum::<i32>();
    }
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2")]
fn add_with_avx2(rows: &[i8], query: &[i16], at: &[usize], sums: &mut [i32]) {
    add_plain(rows, query, at, sums);
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx512f,avx512bw,avx512vl,avx512vnni")]
fn add_with_avx512(rows: &[i8], query: &[i16], at: &[usize], sums: &mut [i32]) {
    add_plain(rows, query, at, sums);
}

/// How many rows lie side by side for [`products_abreast`].
pub const ABREAST: usize = 16;

/// The codes of rows of `width` numbers, an even number, side by side: the first two numbers of each of sixteen rows, then the next two, and so on.
/// Rows that are missing in the last sixteen are zeros.
pub fn abreast(rows: &[i8], width: usize) -> Vec<i8> {
    let of = |group: &[i8]| {
        let at = |pair: usize, row: usize| group.get(row * width + pair * 2..row * width + pair * 2 + 2);
        let every = (0..width / 2).flat_map(|pair| (0..ABREAST).map(move |row| (pair, row)));
        every
            .flat_map(|(pair, row)| at(pair, row).map_or([0, 0], |two| [two[0], two[1]]))
            .collect::<Vec<i8>>()
    };
    rows.chunks(width * ABREAST).flat_map(of).collect()
}

/// Writes the dot product of `query` with each of the rows that lie [`abreast`] to `out`. No sum is taken across a register, so short rows are
/// as quick as long ones.
pub fn products_abreast(codes: &[i8], query: &[i16], out: &mut [i32]) {
    #[cfg(target_arch = "x86_64")]
    {
        if has_avx512() {
            // SAFETY: the processor supports these instructions, as just detected.
            return unsafe { abreast_with_avx512(codes, query, out) };
        }
        if is_x86_feature_detected!("avx2") {
            // SAFETY: the processor supports these instructions, as just detected.
            return unsafe { abreast_with_avx2(codes, query, out) };
        }
    }
    abreast_plain(codes, query, out);
}

fn abreast_plain(codes: &[i8], query: &[i16], out: &mut [i32]) {
    let groups = codes.chunks_exact((query.len() * ABREAST).max(1));
    for (group, out) in groups.zip(out.as_chunks_mut::<ABREAST>().0) {
        *out = [0; ABREAST];
        for (codes, two) in group.as_chunks::<{ 2 * ABREAST }>().0.iter().zip(query.as_chunks::<2>().0) {
            for (sum, codes) in out.iter_mut().zip(codes.as_chunks::<2>().0) {
                *sum += i32::from(codes[0]) * i32::from(two[0]) + i32::from(codes[1]) * i32::from(two[1]);
            }
        }
    }
}

/// Two numbers of the query, as the instructions take them.
#[cfg(target_arch = "x86_64")]
fn twos(query: &[i16]) -> Vec<i32> {
    query.as_chunks::<2>().0.iter().map(|two| i32::from(two[0] as u16) | i32::from(two[1]) << 16).collect()
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2")]
fn abreast_with_avx2(codes: &[i8], query: &[i16], out: &mut [i32]) {
    use std::arch::x86_64::*;
    let twos = twos(query);
    let groups = codes.chunks_exact((query.len() * ABREAST).max(1));
    for (group, out) in groups.zip(out.as_chunks_mut::<ABREAST>().0) {
        let mut sums = [_mm256_setzero_si256(); 2];
        for (codes, two) in group.as_chunks::<{ 2 * ABREAST }>().0.iter().zip(&twos) {
            for (half, sum) in codes.as_chunks::<ABREAST>().0.iter().zip(&mut sums) {
                // SAFETY: sixteen bytes are read of as many.
                let codes = _mm256_cvtepi8_epi16(unsafe { _mm_loadu_si128(half.as_ptr().cast()) });
                *sum = _mm256_add_epi32(*sum, _mm256_madd_epi16(codes, _mm256_set1_epi32(*two)));
            }
        }
        for (sum, out) in sums.iter().zip(out.as_chunks_mut::<{ ABREAST / 2 }>().0) {
            // SAFETY: eight numbers are written to as many.
            unsafe { _mm256_storeu_si256(out.as_mut_ptr().cast(), *sum) };
        }
    }
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx512f,avx512bw,avx512vl,avx512vnni")]
fn abreast_with_avx512(codes: &[i8], query: &[i16], out: &mut [i32]) {
    use std::arch::x86_64::*;
    let twos = twos(query);
    let groups = codes.chunks_exact((query.len() * ABREAST).max(1));
    for (group, out) in groups.zip(out.as_chunks_mut::<ABREAST>().0) {
        let mut sums = _mm512_setzero_si512();
        for (codes, two) in group.as_chunks::<{ 2 * ABREAST }>().0.iter().zip(&twos) {
            // SAFETY: thirty-two bytes are read of as many.
            let codes = _mm512_cvtepi8_epi16(unsafe { _mm256_loadu_si256(codes.as_ptr().cast()) });
            sums = _mm512_dpwssd_epi32(sums, codes, _mm512_set1_epi32(*two));
        }
        // SAFETY: sixteen numbers are written to as many.
        unsafe { _mm512_storeu_si512(out.as_mut_ptr().cast(), sums) };
    }
}

/// What is known of a row's product with a direction.
#[derive(Clone, Copy)]
pub struct Outline {
    /// The row's number.
    pub row: u32,
    /// Its place in its list.
    pub at: usize,
    /// Its lower bound, in exact arithmetic and in f32.
    pub low: f32,
    /// Its upper bound.
    pub high: f32,
    /// The product by the codes that were read so far.
    pub middle: f32,
    /// What rounding the first quarter can change.
    pub error: f32,
}

impl Outline {
    /// Whether the row can score so much; a bound that is no number excludes nothing.
    pub fn reaches(&self, least: f32) -> bool {
        self.high >= least || self.high.is_nan()
    }
}

/// `scale · (step · product + error) + others · rest + slack` of each row: its upper bound.
#[derive(Clone, Copy)]
pub struct Reach {
    /// What an integer of the query stands for.
    pub step: f32,
    /// What rounding the row's numbers can change, in units of the row's scale.
    pub error: f32,
    /// The length of the query's numbers that were not read.
    pub others: f32,
    /// What everything else can change.
    pub slack: f32,
}

impl Reach {
    /// The middle of the bounds, and how far they are from it.
    #[inline(always)]
    pub fn of(&self, product: i32, scale: f32, rest: f32) -> (f32, f32) {
        (scale * (self.step * product as f32), scale * self.error + self.others * rest + self.slack)
    }
}

/// Writes the upper bound of each row; the rows' scales and rests are little-endian.
pub fn highs(reach: Reach, products: &[i32], scales: &[u8], rests: &[u8], highs: &mut [f32]) {
    #[cfg(target_arch = "x86_64")]
    if is_x86_feature_detected!("avx2") {
        // SAFETY: the processor supports these instructions, as just detected.
        return unsafe { highs_avx2(reach, products, scales, rests, highs) };
    }
    highs_plain(reach, products, scales, rests, highs);
}

#[inline(always)]
fn highs_plain(reach: Reach, products: &[i32], scales: &[u8], rests: &[u8], highs: &mut [f32]) {
    let notes = scales.as_chunks::<4>().0.iter().zip(rests.as_chunks::<4>().0);
    for ((high, product), (scale, rest)) in highs.iter_mut().zip(products).zip(notes) {
        let (middle, width) = reach.of(*product, f32::from_le_bytes(*scale), f32::from_le_bytes(*rest));
        *high = middle + width;
    }
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2")]
fn highs_avx2(reach: Reach, products: &[i32], scales: &[u8], rests: &[u8], highs: &mut [f32]) {
    highs_plain(reach, products, scales, rests, highs);
}

/// The places of the numbers that are `least` or more, or no numbers, in order.
pub fn reaching(numbers: &[f32], least: f32) -> Vec<u32> {
    #[cfg(target_arch = "x86_64")]
    if is_x86_feature_detected!("avx512f") {
        // SAFETY: the processor supports these instructions, as just detected.
        return unsafe { reaching_with_avx512(numbers, least) };
    }
    reaching_plain(numbers, least)
}

/// How many numbers are asked at a time.
const ASKED: usize = 16;

fn reaching_plain(numbers: &[f32], least: f32) -> Vec<u32> {
    let reaches = |number: &f32| *number >= least || number.is_nan();
    let mut places = Vec::new();
    for (i, some) in numbers.chunks(ASKED).enumerate() {
        // Most hold none: asking them together is done in wide registers.
        if some.iter().fold(false, |any, number| any | reaches(number)) {
            // Without a branch for each, which the processor could not foresee.
            let (mut found, mut count) = ([0u32; ASKED], 0);
            for (at, number) in some.iter().enumerate() {
                found[count] = (i * ASKED + at) as u32;
                count += usize::from(reaches(number));
            }
            places.extend_from_slice(&found[..count]);
        }
    }
    places
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx512f")]
fn reaching_with_avx512(numbers: &[f32], least: f32) -> Vec<u32> {
    use std::arch::x86_64::*;
    let (whole, tail) = numbers.as_chunks::<ASKED>();
    let (mut places, mut count) = (Vec::new(), 0);
    let (least_of_all, step) = (_mm512_set1_ps(least), _mm512_set1_epi32(ASKED as i32));
    let mut at = _mm512_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15);
    for some in whole {
        // SAFETY: sixteen numbers are read of as many.
        let some = unsafe { _mm512_loadu_ps(some.as_ptr()) };
        let reaches = _mm512_cmp_ps_mask::<_CMP_GE_OQ>(some, least_of_all)
            | _mm512_cmp_ps_mask::<_CMP_UNORD_Q>(some, some);
        if reaches != 0 {
            if places.len() < count + ASKED {
                places.resize(2 * count + ASKED, 0u32);
            }
            let to = &mut places[count..count + ASKED];
            // SAFETY: sixteen numbers are written to as many.
            unsafe { _mm512_storeu_si512(to.as_mut_ptr().cast(), _mm512_maskz_compress_epi32(reaches, at)) };
            count += reaches.count_ones() as usize;
        }
        at = _mm512_add_epi32(at, step);
    }
    places.truncate(count);
    let before = (whole.len() * ASKED) as u32;
    places.extend(reaching_plain(tail, least).into_iter().map(|at| before + at));
    places
}

/// What a code of 1 stands for, so that those of these numbers reach 127.
pub fn scale(numbers: &[f32]) -> f32 {
    (numbers.iter().fold(0f32, |most, x| most.max(x.abs())) / 127.0).max(f32::MIN_POSITIVE)
}

/// Bytes that are the numbers divided by the scale and rounded, and the length of what rounding took.
pub fn code(numbers: &[f32], scale: f32) -> (Vec<i8>, f64) {
    let codes: Vec<i8> = numbers.iter().map(|x| (x / scale).round().clamp(-127.0, 127.0) as i8).collect();
    let lost = numbers.iter().zip(&codes).map(|(x, c)| f64::from(*x) - f64::from(scale) * f64::from(*c));
    let lost = lost.map(|x| x * x).sum::<f64>().sqrt();
    (codes, lost)
}

/// The Euclidean length, rounded up.
pub fn length(numbers: impl Iterator<Item = f64>) -> f32 {
    (numbers.map(|x| x * x).sum::<f64>().sqrt() * (1.0 + 1e-6)) as f32
}

/// The length of `AAᵀ − 1` for square axes A. It is that of `AᵀA − 1`, and bounds what a product changes by turning.
pub fn skew(axes: &[f32], dimensions: usize) -> f32 {
    let rows = axes.chunks_exact(dimensions).map(|row| row.iter().map(|x| f64::from(*x)).collect());
    let rows: Vec<Vec<f64>> = rows.collect();
    let off = |i: usize, j: usize| dot(&rows[i], &rows[j]) - f64::from(u8::from(i == j));
    length((0..rows.len()).flat_map(|i| (0..rows.len()).map(move |j| (i, j))).map(|(i, j)| off(i, j)))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The products of all rows.
    fn products(rows: &[i8], query: &[i16]) -> Vec<i32> {
        let of = |row: &[i8]| row.iter().zip(query).map(|(c, q)| i32::from(*c) * i32::from(*q)).sum();
        rows.chunks_exact(query.len()).map(of).collect()
    }

    #[test]
    fn every_instruction_set_gives_the_same_products_at_every_length() {
        for dimensions in [1, 3, 16, 31, 32, 63, 64, 100, 384, 1_025] {
            let rows: Vec<i8> =
                (0..dimensions * 7).map(|i| ((i * 7_919 + 13) % 255) as i16 - 127).map(|x| x as i8).collect();
            let query: Vec<i16> = (0..dimensions).map(|i| ((i * 104_729) % 4_095) as i16 - 2_047).collect();
            let (at, expected) = ([6, 0, 3], products(&rows, &query));
            let same = |add: &dyn Fn(&mut [i32])| {
                let mut sums = [1; 3];
                add(&mut sums);
                assert_eq!(sums, at.map(|at| expected[at] + 1));
            };
            same(&|sums| add_products(&rows, &query, &at, sums));
            same(&|sums| add_plain(&rows, &query, &at, sums));
            #[cfg(target_arch = "x86_64")]
            if is_x86_feature_detected!("avx2") {
                // SAFETY: the processor supports these instructions, as just detected.
                same(&|sums| unsafe { add_with_avx2(&rows, &query, &at, sums) });
            }
        }
    }

    #[test]
    fn the_places_that_reach_are_found_in_order_with_those_that_are_no_numbers() {
        let mut numbers = vec![0.0f32; 200];
        let others = [(0, 0.5), (63, f32::NAN), (64, 0.7), (65, 0.4), (199, 0.5)];
        for (at, number) in others.into_iter().chain([(130, f32::INFINITY), (131, f32::NEG_INFINITY)]) {
            numbers[at] = number;
        }
        for reaching in [reaching, reaching_plain] {
            assert_eq!(reaching(&numbers, 0.5), [0, 63, 64, 130, 199]);
            assert_eq!(reaching(&numbers, 0.0).len(), 199);
            assert_eq!(reaching(&numbers, -1.0).len(), 199);
            assert_eq!(reaching(&numbers, f32::NEG_INFINITY), (0..200).collect::<Vec<u32>>());
            assert_eq!(reaching(&numbers, f32::INFINITY), [63, 130]);
            assert_eq!(reaching(&numbers, f32::NAN), [63]);
            assert!(reaching(&[], 0.0).is_empty());
        }
    }

    #[test]
    fn rows_abreast_give_the_products_of_rows_one_after_another() {
        for width in [2, 16, 30, 64, 96, 384] {
            for count in [1usize, 15, 16, 17, 40] {
                let rows: Vec<i8> = (0..width * count).map(|i| ((i * 7_919) % 255) as i8).collect();
                let query: Vec<i16> = (0..width).map(|i| ((i * 104_729) % 4_095) as i16 - 2_047).collect();
                let mut expected = products(&rows, &query);
                expected.resize(count.next_multiple_of(ABREAST), 0);
                let codes = abreast(&rows, width);
                let same = |multiply: &dyn Fn(&mut [i32])| {
                    let mut out = vec![7; expected.len()];
                    multiply(&mut out);
                    assert_eq!(out, expected);
                };
                same(&|out| products_abreast(&codes, &query, out));
                same(&|out| abreast_plain(&codes, &query, out));
                #[cfg(target_arch = "x86_64")]
                if is_x86_feature_detected!("avx2") {
                    // SAFETY: the processor supports these instructions, as just detected.
                    same(&|out| unsafe { abreast_with_avx2(&codes, &query, out) });
                }
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
