//! A million passages grown from real ones: every passage is mixed with some of those that follow it, text and vector
//! alike, the same every time.

use std::collections::HashSet;
use std::fs::File;
use std::io::{BufWriter, Write};
use std::path::Path;

use serde::{Deserialize, Serialize};

/// A passage as the program stores it.
#[derive(Deserialize, Serialize)]
pub struct Line {
    /// Its name.
    #[serde(rename = "_id")]
    pub id: String,
    /// Its page.
    #[serde(default)]
    pub title: String,
    /// Its text.
    pub text: String,
}

/// Numbers without meaning, the same every time (SplitMix64).
struct Numbers(u64);

impl Numbers {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut x = self.0;
        x = (x ^ (x >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        x = (x ^ (x >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        x ^ (x >> 31)
    }

    /// From 0 to 1.
    fn share(&mut self) -> f32 {
        (self.next() >> 40) as f32 / (1u64 << 24) as f32
    }
}

/// Writes `corpus.jsonl` and `vectors.npy` with `total` passages: first the real ones, then mixtures of passage `i` with the
/// passages 1, 2, 3 … places after it. A mixture takes a share of 35 to 65 % of the first one's words from its beginning and the
/// rest from the other's end; its vector is that mixture of the two vectors with some noise, brought to unit length.
pub fn grow(
    real: &[Line],
    vectors: &[f32],
    dimensions: usize,
    total: usize,
    folder: &Path,
) -> std::io::Result<()> {
    let mut passages = BufWriter::new(File::create(folder.join("corpus.jsonl.part"))?);
    let mut rows = BufWriter::new(File::create(folder.join("vectors.npy.part"))?);
    rows.write_all(&npy_header(total, dimensions))?;
    let row = |i: usize| &vectors[i * dimensions..(i + 1) * dimensions];
    let mut ids = HashSet::new();
    let mut numbers = Numbers(1);
    for place in 0..total {
        let (i, apart) = (place % real.len(), place / real.len());
        let (one, other) = (&real[i], &real[(i + apart) % real.len()]);
        let (line, vector) = if apart == 0 {
            // Passages of two corpora may have one name.
            let id = if ids.insert(one.id.clone()) { one.id.clone() } else { format!("{}-{place}", one.id) };
            (Line { id, title: one.title.clone(), text: one.text.clone() }, row(i).to_vec())
        } else {
            let share = 0.35 + 0.3 * numbers.share();
            let words: Vec<&str> = one.text.split_whitespace().collect();
            let others: Vec<&str> = other.text.split_whitespace().collect();
            let head = &words[..(words.len() as f32 * share) as usize];
            let tail = &others[(others.len() as f32 * share) as usize..];
            let text = [head, tail].concat().join(" ");
            let line = Line { id: format!("{}+{apart}", one.id), title: one.title.clone(), text };
            let noise = 0.01;
            let mixed = row(i).iter().zip(row((i + apart) % real.len()));
            let mixed: Vec<f32> =
                mixed.map(|(a, b)| share * a + (1.0 - share) * b + noise * (numbers.share() - 0.5)).collect();
            let length = mixed.iter().map(|x| x * x).sum::<f32>().sqrt();
            (line, mixed.into_iter().map(|x| x / length).collect())
        };
        serde_json::to_writer(&mut passages, &line)?;
        passages.write_all(b"\n")?;
        rows.write_all(&vector.iter().flat_map(|x| x.to_le_bytes()).collect::<Vec<u8>>())?;
    }
    for (file, name) in [(passages, "corpus.jsonl"), (rows, "vectors.npy")] {
        file.into_inner().map_err(|error| error.into_error())?.sync_all()?;
        std::fs::rename(folder.join(format!("{name}.part")), folder.join(name))?;
    }
    Ok(())
}

/// What NumPy writes before f32 rows.
pub fn npy_header(rows: usize, dimensions: usize) -> Vec<u8> {
    let dictionary = format!("{{'descr': '<f4', 'fortran_order': False, 'shape': ({rows}, {dimensions}), }}");
    let length = (10 + dictionary.len() + 1).next_multiple_of(64) - 10;
    let mut header = b"\x93NUMPY\x01\x00".to_vec();
    header.extend((length as u16).to_le_bytes());
    header.extend(dictionary.bytes());
    header.resize(10 + length - 1, b' ');
    header.push(b'\n');
    header
}
