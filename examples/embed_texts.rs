//! Reads a JSON array of strings and writes their vectors by the carried encoder as little-endian f32 rows.
//!
//! ```text
//! echo '["zoos", "trains"]' | cargo run --release --example embed_texts -- query > vectors.f32
//! ```

use std::io::{Read, Write, stdin, stdout};

use parallax::encode::{Encoder, MiniLm, Role};
use parallax::pipeline::model_threads;
use parallax::work::{Stop, on_all};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let role = match std::env::args().nth(1).as_deref() {
        Some("query") => Role::Query,
        Some("passage") => Role::Passage,
        other => return Err(format!("expected `query` or `passage`, found {other:?}").into()),
    };
    let mut text = String::new();
    stdin().read_to_string(&mut text)?;
    let texts: Vec<String> = serde_json::from_str(&text)?;
    let encoder = MiniLm::carried()?;
    let rows = on_all(&model_threads()?, texts.len(), &Stop::never(), |i| encoder.encode(&texts[i], role));
    let rows: Result<Vec<Vec<f32>>, _> = rows.into_iter().collect();
    let bytes: Vec<u8> = rows?.iter().flatten().flat_map(|x| x.to_le_bytes()).collect();
    stdout().lock().write_all(&bytes)?;
    Ok(())
}
