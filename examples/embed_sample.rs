//! A tool of the maintainers: writes `sample_data/minilm.f32`, the vectors of the sample's passages by the built-in encoder.
//!
//! ```text
//! cargo run --release --example embed_sample
//! ```

use parallax::corpus::sample;
use parallax::encode::{Encoder, MiniLm, Role};
use parallax::engine::{model_threads, sample_key};
use parallax::work::{Stop, on_all};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let encoder = MiniLm::builtin()?;
    let corpus = sample::corpus();
    let places: Vec<_> = corpus.places().collect();
    let rows = on_all(&model_threads()?, places.len(), &Stop::never(), |i| {
        encoder.encode(&corpus.passage(places[i]).contents(), Role::Passage)
    });
    let rows: Result<Vec<Vec<f32>>, _> = rows.into_iter().collect();
    let mut bytes = sample_key(encoder.key()).to_vec();
    bytes.extend(rows?.iter().flatten().flat_map(|x| x.to_le_bytes()));
    std::fs::write("sample_data/minilm.f32", bytes)?;
    println!("{} passages", places.len());
    Ok(())
}
