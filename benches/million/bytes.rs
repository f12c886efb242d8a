//! The peer of the dense search: a scan of every byte of every code, with bounds, as the program made it before it scanned a part of them first.

use parallax::encode::Vectors;
use parallax::work::{Stop, on_cores};

const BATCH: usize = 8_192;

/// A byte a number, and each row's scale, error and length.
pub struct Bytes {
    codes: Vec<i8>,
    notes: Vec<[f32; 3]>,
    dimensions: usize,
}

impl Bytes {
    /// Codes all rows.
    pub fn of(vectors: &Vectors) -> std::io::Result<Self> {
        let dimensions = vectors.dimensions();
        let mut all = Bytes { codes: Vec::new(), notes: Vec::new(), dimensions };
        for start in (0..vectors.len()).step_by(BATCH) {
            for row in vectors.rows(start..(start + BATCH).min(vectors.len()))?.chunks_exact(dimensions) {
                let scale = row.iter().fold(0f32, |most, x| most.max(x.abs())) / 127.0;
                let codes = row.iter().map(|x| (x / scale).round() as i8);
                let from = all.codes.len();
                all.codes.extend(codes);
                let lost = row.iter().zip(&all.codes[from..]).map(|(x, c)| x - scale * f32::from(*c));
                let length =
                    |numbers: &mut dyn Iterator<Item = f32>| numbers.map(|x| x * x).sum::<f32>().sqrt();
                all.notes.push([scale, length(&mut lost.into_iter()), length(&mut row.iter().copied())]);
            }
        }
        Ok(all)
    }

    /// Bounds every row's product with the query, and counts those whose upper bound reaches the `depth`-th best lower bound of their batch.
    pub fn scan(&self, query: &[f32], depth: usize) -> usize {
        let step = query.iter().fold(0f32, |most, x| most.max(x.abs())) / 2_047.0;
        let whole: Vec<i16> = query.iter().map(|x| (x / step).round() as i16).collect();
        let lost = query.iter().zip(&whole).map(|(x, w)| x - step * f32::from(*w));
        let error = lost.map(|x| x * x).sum::<f32>().sqrt();
        let batches = self.notes.len().div_ceil(BATCH);
        let reached = on_cores(batches, &Stop::never(), |i| {
            let rows = i * BATCH..((i + 1) * BATCH).min(self.notes.len());
            let mut dots = vec![0; rows.len()];
            products(
                &self.codes[rows.start * self.dimensions..rows.end * self.dimensions],
                &whole,
                &mut dots,
            );
            let bounds = dots.iter().zip(&self.notes[rows]).map(|(dot, [scale, off, length])| {
                let (middle, width) = (step * scale * *dot as f32, off + error * (length + off));
                (middle - width, middle + width)
            });
            let bounds: Vec<(f32, f32)> = bounds.collect();
            let mut lows: Vec<f32> = bounds.iter().map(|(low, _)| *low).collect();
            let last = depth.min(lows.len()) - 1;
            let least = *lows.select_nth_unstable_by(last, |a, b| b.total_cmp(a)).1;
            bounds.iter().filter(|(_, high)| *high >= least).count()
        });
        reached.iter().sum()
    }
}

/// Writes the dot product of each row with `query` to `out`.
fn products(rows: &[i8], query: &[i16], out: &mut [i32]) {
    #[cfg(target_arch = "x86_64")]
    {
        if is_x86_feature_detected!("avx512bw")
            && is_x86_feature_detected!("avx512vl")
            && is_x86_feature_detected!("avx512vnni")
        {
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

/// The loop that the compiler makes wide for each kind of processor.
#[inline(always)]
fn plain(rows: &[i8], query: &[i16], out: &mut [i32]) {
    for (row, out) in rows.chunks_exact(query.len()).zip(out) {
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
