//! Makes `sample_data/minilm.f32`, the vectors of the carried passages by the carried encoder.
//!
//! ```text
//! cargo run --release --example embed_sample
//! ```

use parallax::corpus::sample;
use parallax::encode::{Encoder, MiniLm, Role};
use parallax::pipeline::sample_key;
use rayon::prelude::*;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let encoder = MiniLm::carried()?;
    let corpus = sample::corpus();
    let places: Vec<_> = corpus.places().collect();
    let rows: Result<Vec<Vec<f32>>, _> =
        places.par_iter().map(|at| encoder.encode(&corpus.passage(*at).contents(), Role::Passage)).collect();
    let mut bytes = sample_key(encoder.key()).to_vec();
    bytes.extend(rows?.iter().flatten().flat_map(|x| x.to_le_bytes()));
    std::fs::write("sample_data/minilm.f32", bytes)?;
    println!("{} passages", places.len());
    Ok(())
}
