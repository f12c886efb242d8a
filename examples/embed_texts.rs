//! A tool of the maintainers: reads a JSON array of strings and writes their vectors as little-endian f32 rows. The encoder is the
//! built-in one or that of a recipe.
//!
//! ```text
//! echo '["zoos", "trains"]' | cargo run --release --example embed_texts -- query > vectors.f32
//! echo '["zoos", "trains"]' | cargo run --release --example embed_texts -- passage path:FOLDER > vectors.f32
//! ```

use std::io::{Read, Write, stdin, stdout};

use parallax::encode::{CustomEncoder, Encoder, MiniLm, Role};
use parallax::engine::{Recipe, model_threads};
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
    let recipe = std::env::args().nth(2).map(|recipe| recipe.parse::<Recipe>()).transpose()?;
    let encoder: Box<dyn Encoder> = match recipe.as_ref().and_then(Recipe::model) {
        Some(named) => Box::new(CustomEncoder::load(named, &named.towers("models".as_ref())?)?),
        None => Box::new(MiniLm::builtin()?),
    };
    let rows = on_all(&model_threads()?, texts.len(), &Stop::never(), |i| encoder.encode(&texts[i], role));
    let rows: Result<Vec<Vec<f32>>, _> = rows.into_iter().collect();
    let bytes: Vec<u8> = rows?.iter().flatten().flat_map(|x| x.to_le_bytes()).collect();
    stdout().lock().write_all(&bytes)?;
    Ok(())
}
