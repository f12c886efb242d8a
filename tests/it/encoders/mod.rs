//! Custom encoders against the Python `transformers` classes, on tiny random checkpoints (`tools/encoders/make_fixtures.py`),
//! and the errors for invalid models.

mod families;
mod late;

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

#[test]
fn files_that_contradict_each_other_are_refused_by_name() {
    for (file, key, value, words) in [
        ("config.json", "hidden_size", json!(64), &["1_Pooling", "32", "64"][..]),
        ("config.json", "num_attention_heads", json!(5), &["config.json", "5 heads"]),
        ("config.json", "intermediate_size", json!(47), &["model.safetensors", "intermediate", "47"]),
        ("config.json", "num_hidden_layers", json!(3), &["layer.2.", "missing"]),
        ("config.json", "vocab_size", json!(100), &["100"]),
        ("config.json", "model_type", json!("gpt2"), &["gpt2", "mpnet"]),
        ("config.json", "hidden_act", json!("mish"), &["mish", "gelu"]),
        ("1_Pooling/config.json", "pooling_mode", json!("weightedmean"), &["weightedmean", "mean"]),
        ("1_Pooling/config.json", "pooling_mode_cls_token", json!(true), &["several"]),
        ("sentence_bert_config.json", "max_seq_length", json!(512), &["512", "160"]),
        ("config_sentence_transformers.json", "similarity_fn_name", json!("manhattan"), &["manhattan"]),
    ] {
        let folder = copy("mpnet");
        change(&folder.path().join(file), key, value);
        refused(folder.path(), "", words);
    }
    refused(&fixture("mpnet"), "@family=bge", &["1_Pooling", "Mean", "bge", "Cls"]);
}

#[test]
fn truncated_and_missing_files_are_refused_by_name() {
    for (name, file) in [
        ("mpnet", "model.safetensors"),
        ("mpnet", "tokenizer.json"),
        ("mpnet", "modules.json"),
        ("mpnet", "config.json"),
        ("distilbert", "model-00002-of-00002.safetensors"),
        ("distilbert", "model.safetensors.index.json"),
        ("instructor", "2_Dense/pytorch_model.bin"),
        ("roberta", "merges.txt"),
    ] {
        for half in [true, false] {
            let folder = copy(name);
            let path = folder.path().join(file);
            let bytes = fs::read(&path).unwrap();
            if half {
                // A vocabulary cut at the end of a line is still valid.
                let cut = if file == "merges.txt" { 15 } else { bytes.len() / 2 };
                fs::write(&path, &bytes[..cut]).unwrap();
            } else {
                fs::remove_file(&path).unwrap();
            }
            if half || file != "modules.json" {
                let part = file.rsplit('/').next().unwrap().split(['.', '-']).next().unwrap();
                let at = if half { file.rsplit('/').next().unwrap() } else { part };
                let words = if file == "merges.txt" { "tokenizer" } else { at };
                let words = if !half && file != "config.json" { "" } else { words };
                refused(folder.path(), "", &[words]);
            }
        }
    }
    refused(Path::new("no/such/folder"), "", &["it holds no model", "config.json"]);
}

#[test]
fn weights_with_nan_are_refused() {
    let folder = copy("contriever");
    let file = folder.path().join("model.safetensors");
    let mut bytes = fs::read(&file).unwrap();
    let end = bytes.len();
    bytes[end - 4..].copy_from_slice(&f32::NAN.to_le_bytes());
    fs::write(&file, bytes).unwrap();
    refused(folder.path(), "", &["model.safetensors", "NaN"]);
}

#[test]
fn a_module_outside_the_folder_is_not_read() {
    let folder = copy("mpnet");
    let modules =
        json!([{"idx": 0, "path": "", "type": "Transformer"}, {"idx": 1, "path": "../x", "type": "Pooling"}]);
    fs::write(folder.path().join("modules.json"), modules.to_string()).unwrap();
    refused(folder.path(), "", &["modules.json", "inside"]);
}

#[test]
fn the_error_for_an_unfetched_model_says_how_to_fetch_it() {
    let models = tempfile::tempdir().unwrap();
    for name in ["contriever", "hf:some-one/some.model"] {
        let named = Named::from(Source::parse(name).unwrap());
        let error = named.towers(models.path()).unwrap_err().to_string();
        assert!(error.contains(&format!("parallax models get {name}")), "{error}");
    }
}

#[test]
fn a_lane_without_its_model_reports_it_and_fetches_nothing() {
    let data = tempfile::tempdir().unwrap();
    let setup = opened(data.path(), &[]);
    let question = Question { text: "zoos".into(), ..Question::default() };
    let lane: Recipe = "contriever".parse().unwrap();
    let error = rank(&setup, &lane, LaneQuery::neutral(&question), &mut Lists::default(), &Stop::never())
        .unwrap_err();
    assert!(error.to_string().contains("parallax models get contriever"), "{error}");
    assert!(!data.path().join("models").exists());
}

#[test]
fn a_recipe_of_a_custom_encoder_is_read_back_and_a_wrong_one_is_refused_with_what_was_expected() {
    for text in [
        "contriever",
        "hf:intfloat/e5-base-v2+mmr@0.75",
        "path:my%20models/a%2Bb@family=e5",
        "bge-small@query=why%3F%20,passage=+pap@2",
    ] {
        let recipe: Recipe = text.parse().unwrap_or_else(|error| panic!("{error}"));
        assert_eq!(recipe.to_string(), text);
    }
    for (text, hint) in [
        ("contreiver", "contriever"),
        ("hf:model", "ORG/MODEL"),
        ("hf:../x", "ORG/MODEL"),
        ("path:", "a folder"),
        ("path:x%zz", "hexadecimal"),
        ("contriever@family=bert", "contriever"),
        ("contriever@window=5", "query=TEXT"),
        ("contriever+rm3", "an encoder cannot read weights"),
    ] {
        let error = text.parse::<Recipe>().unwrap_err().to_string();
        assert!(error.contains(hint), "{text}: {error}");
    }
}
