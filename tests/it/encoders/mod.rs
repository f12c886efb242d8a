//! Custom encoders against the Python `transformers` classes, on tiny random checkpoints (`tools/encoders/make_fixtures.py`),
//! and the errors for invalid models.

mod families;
mod late;
mod refused;

use std::fs;
use std::path::{Path, PathBuf};

use parallax::corpus::Passage;
use parallax::encode::sparse::write_weights;
use parallax::encode::{
    CrossScorer, CustomEncoder, Encoder, LateScorer, Named, PassageScorer, Role, Similarity, Source,
    SparseEncoder,
};
use parallax::engine::recipe::Base;
use parallax::engine::{Explanation, LaneQuery, Lists, Opening, Recipe, Setup, explain, rank};
use parallax::question::Question;
use parallax::work::Stop;
use serde_json::{Value, json};

fn fixture(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures/encoders").join(name)
}

/// A fixture of `tools/encoders/make_modern.py`.
fn modern(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures/modern").join(name)
}

/// A recipe's encoder, with options as the recipe writes them.
fn named(folder: &Path, options: &str) -> Named {
    let recipe: Recipe =
        format!("path:{}{options}", parallax::engine::recipe::escaped(&folder.to_string_lossy()))
            .parse()
            .unwrap_or_else(|error| panic!("{error}"));
    let Base::Custom(named) = recipe.base else { panic!("no custom encoder") };
    (*named).clone()
}

fn load(folder: &Path, options: &str) -> Result<CustomEncoder, String> {
    let named = named(folder, options);
    let towers = named.towers(Path::new("nowhere")).map_err(|error| error.to_string())?;
    CustomEncoder::load(&named, &towers).map_err(|error| error.to_string())
}

/// Compares all vectors of a fixture that have this role, each written by Python under `role` and read here as `as_role`.
fn agrees(name: &str, options: &str, role: &str, as_role: Role) -> CustomEncoder {
    let encoder = load(&fixture(name), options).unwrap_or_else(|error| panic!("{error}"));
    let rows: Vec<Value> =
        serde_json::from_slice(&fs::read(fixture(name).join("expected.json")).unwrap()).unwrap();
    let rows: Vec<&Value> = rows.iter().filter(|row| row["role"] == role).collect();
    assert!(rows.len() >= 6);
    for row in rows {
        let word = |name: &str| row[name].as_str().unwrap().to_owned();
        let expected: Vec<f64> =
            row["vector"].as_array().unwrap().iter().map(|x| x.as_f64().unwrap()).collect();
        let passage = Passage { title: word("title"), text: word("text"), ..Passage::default() };
        let made = match as_role {
            Role::Passage => encoder.passage(&passage),
            Role::Query => encoder.encode(&passage.contents(), Role::Query),
        };
        let made = made.unwrap();
        assert_eq!(made.len(), expected.len());
        assert_eq!(made.len(), encoder.dimensions());
        let dot = |a: &[f64], b: &[f64]| a.iter().zip(b).map(|(a, b)| a * b).sum::<f64>();
        let made: Vec<f64> = made.into_iter().map(f64::from).collect();
        let cosine = dot(&made, &expected) / (dot(&made, &made) * dot(&expected, &expected)).sqrt();
        let lengths = (dot(&made, &made) / dot(&expected, &expected)).sqrt();
        assert!(cosine > 0.999_999 && (lengths - 1.0).abs() < 1e-4, "{name}, {row}: {cosine}, {lengths}");
    }
    encoder
}

/// A copy of a fixture, to be damaged.
fn copy(name: &str) -> tempfile::TempDir {
    copy_of(&fixture(name))
}

/// A copy of a folder, to be damaged.
fn copy_of(from: &Path) -> tempfile::TempDir {
    fn fill(from: &Path, to: &Path) {
        for entry in fs::read_dir(from).unwrap() {
            let path = entry.unwrap().path();
            let target = to.join(path.file_name().unwrap());
            if path.is_dir() {
                fs::create_dir(&target).unwrap();
                fill(&path, &target);
            } else {
                fs::copy(&path, &target).unwrap();
            }
        }
    }
    let folder = tempfile::tempdir().unwrap();
    fill(from, folder.path());
    folder
}

/// Changes one entry of a JSON file.
fn change(file: &Path, key: &str, value: Value) {
    let mut json: Value = serde_json::from_slice(&fs::read(file).unwrap()).unwrap();
    json[key] = value;
    fs::write(file, json.to_string()).unwrap();
}

fn refused(folder: &Path, options: &str, words: &[&str]) {
    let Err(error) = load(folder, options) else { panic!("{words:?} was taken") };
    assert!(words.iter().all(|word| error.contains(word)), "{words:?}: {error}");
    assert!(!error.contains('\n'), "{error}");
}

/// A small corpus with the vectors of the lanes' encoders.
fn opened(data: &Path, lanes: &[Recipe]) -> Setup {
    let corpus = data.join("corpus.jsonl");
    let texts =
        ["Zoos keep wolves.", "Animals suffer in cages.", "The old bears.", "Owls, wolves and bears.", ""];
    let line = |(i, text): (usize, &&str)| {
        json!({"_id": format!("p{i}"), "title": "Zoos", "text": text}).to_string()
    };
    fs::write(&corpus, texts.iter().enumerate().map(line).collect::<Vec<_>>().join("\n")).unwrap();
    let opening = Opening { corpus: Some(corpus), data_dir: data.into(), ..Opening::default() };
    let setup = Setup::open(&opening, &|_| {}, &Stop::never()).unwrap();
    setup.embed_for(lanes, &|_| {}, &Stop::never()).unwrap();
    setup
}

/// The only corpus's folder.
fn setup_folder(data: &Path) -> PathBuf {
    let mut folders = fs::read_dir(data.join("corpora")).unwrap().map(|entry| entry.unwrap().path());
    folders.find(|path| path.is_dir()).unwrap()
}
