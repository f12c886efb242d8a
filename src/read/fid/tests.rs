//! FiD compared with the Python `transformers` classes on tiny random checkpoints (`tools/reader/make_fid_fixture.py`), and
//! folders that must be refused.

use std::fs;
use std::path::PathBuf;
use std::sync::atomic::{AtomicU64, Ordering};

use serde::Deserialize;
use serde_json::{Value, json};

use super::*;
use crate::corpus::Passage;
use crate::measure::seeded::SplitMix64;
use crate::read::incremental::{each_k, reordered};

const FOLDERS: [&str; 5] = ["plain", "plain-untied", "gated", "gated-untied", "wrapped"];

/// Python's results.
#[derive(Deserialize)]
struct Expected {
    question: String,
    passages: Vec<(String, String)>,
    cut: usize,
    tokens: Vec<u32>,
    text: String,
    /// The scores of every token, before each of the first tokens of the answer.
    scores: Vec<Vec<f32>>,
    attention: Vec<f64>,
}

impl Expected {
    fn passages(&self) -> Vec<Context> {
        let passage = |(title, text): &(String, String)| {
            Arc::new(Passage { title: title.clone(), text: text.clone(), ..Passage::default() })
        };
        Context::list(self.passages.iter().map(passage))
    }
}

fn fixture(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures/fid").join(name)
}

fn open(name: &str) -> Fid {
    Fid::open(&fixture(name)).unwrap_or_else(|error| panic!("{error}"))
}

fn expected(name: &str) -> Vec<Expected> {
    let file = fixture(name).join("expected.json");
    serde_json::from_slice(&fs::read(file).unwrap()).unwrap()
}

#[test]
fn answers_are_those_of_python_token_by_token() {
    for name in FOLDERS {
        let fid = open(name);
        // The wrapped weights are the plain ones under FiD's own names, with a bias across.
        assert!(fid.name() == name && fid.order_sensitive() == (name == "wrapped") && !fid.recorded());
        for case in expected(name) {
            let passages = case.passages();
            let (order, read) = fid.read(&case.question, &passages, &Stop::never()).unwrap();
            let written = fid.write(&order, &read, &Stop::never()).unwrap();
            assert_eq!(written, case.tokens, "{name}: {}", case.question);
            let answer = fid.answer(&case.question, &passages, &Stop::never()).unwrap();
            assert_eq!(answer, Answer { text: case.text, recorded: false, cut: case.cut });
        }
    }
}

#[test]
fn scores_are_those_of_python() {
    for name in FOLDERS {
        let fid = open(name);
        for case in expected(name) {
            let (order, read) = fid.read(&case.question, &case.passages(), &Stop::never()).unwrap();
            let mut writing = fid.begin(&order, &read).unwrap();
            let mut token = fid.first;
            for scores in &case.scores {
                let made = fid.network.next(&mut writing, token).unwrap();
                assert_eq!(made.len(), scores.len());
                for (made, score) in made.iter().zip(scores) {
                    assert!((made - score).abs() < 1e-4, "{name}, {}: {made}, {score}", case.question);
                }
                token = greatest(&made).unwrap();
            }
        }
    }
}

#[test]
fn the_first_token_s_attention_is_shared_out_as_python_has_it() {
    for name in FOLDERS {
        let fid = open(name);
        for case in expected(name) {
            let shares = fid.attention(&case.question, &case.passages(), &Stop::never()).unwrap();
            let shares = shares.unwrap_or_default();
            assert_eq!(shares.len(), case.attention.len());
            for (share, expected) in shares.iter().zip(&case.attention) {
                assert!((share - expected).abs() < 1e-5, "{name}, {}: {shares:?}", case.question);
            }
            assert!(shares.is_empty() || (shares.iter().sum::<f64>() - 1.0).abs() < 1e-5);
        }
    }
}

#[test]
fn the_order_of_the_passages_changes_no_bit_and_each_keeps_its_share() {
    let fid = open("gated");
    let mut draw = SplitMix64::new(7);
    for case in expected("gated") {
        let own = case.passages();
        let (order, read) = fid.read(&case.question, &own, &Stop::never()).unwrap();
        let scores = fid.network.next(&mut fid.begin(&order, &read).unwrap(), fid.first).unwrap();
        let shares = fid.attention(&case.question, &own, &Stop::never()).unwrap().unwrap_or_default();
        for _ in 0..20 {
            let mut other = own.clone();
            draw.shuffle(&mut other);
            let (order, read) = fid.read(&case.question, &other, &Stop::never()).unwrap();
            assert_eq!(fid.network.next(&mut fid.begin(&order, &read).unwrap(), fid.first).unwrap(), scores);
            let moved = fid.attention(&case.question, &other, &Stop::never()).unwrap().unwrap_or_default();
            for (context, share) in other.iter().zip(moved) {
                assert!((share - shares[context.rank - 1]).abs() < 1e-6);
            }
        }
        let shuffled = reordered(&fid, &case.question, &own, (5, 1), &Stop::never()).unwrap();
        assert_eq!(shuffled.same, 5);
    }
}

#[test]
fn fid_s_bias_across_is_loaded_where_the_checkpoint_has_it_and_counts_from_the_second_token_on() {
    let (plain, wrapped) = (open("plain"), open("wrapped"));
    let scores = |fid: &Fid, passages: &[Context]| {
        let (order, read) = fid.read("who keeps owls", passages, &Stop::never()).unwrap();
        let mut writing = fid.begin(&order, &read).unwrap();
        [fid.first, 5].map(|token| fid.network.next(&mut writing, token).unwrap())
    };
    let case = &expected("wrapped")[5];
    let own = case.passages();
    let ([without, later_without], [with, later_with]) = (scores(&plain, &own), scores(&wrapped, &own));
    let far =
        |one: &[f32], other: &[f32]| one.iter().zip(other).map(|(a, b)| (a - b).abs()).fold(0.0, f32::max);
    assert!(far(&without, &with) < 1e-5, "at the first token every passage has the same bias");
    assert!(far(&later_without, &later_with) > 1e-3);
    let mut turned = own.clone();
    turned.rotate_left(1);
    assert!(far(&scores(&wrapped, &turned)[1], &later_with) > 1e-4, "it matters which passage is first");
    turned[1..].reverse();
    let mut other = own.clone();
    other.rotate_left(1);
    assert_eq!(scores(&wrapped, &turned), scores(&wrapped, &other), "and not in which order the others are");
}

#[test]
fn a_list_read_at_every_k_encodes_each_passage_once_and_says_what_a_fresh_reader_says() {
    let cases = expected("gated");
    let case = cases.iter().max_by_key(|case| case.passages.len()).unwrap();
    let (passages, fid) = (case.passages(), open("gated"));
    let answers = each_k(&fid, &case.question, &passages, 0, &Stop::never(), &mut |k, _| {
        assert!(fid.memory.count() <= k);
    })
    .unwrap();
    assert_eq!(answers.last().unwrap().text, case.text);
    for (k, answer) in answers.iter().enumerate() {
        let fresh = open("gated").answer(&case.question, &passages[..=k], &Stop::never()).unwrap();
        assert_eq!(*answer, fresh);
    }
    let distinct: std::collections::HashSet<_> = case.passages.iter().collect();
    assert_eq!(fid.memory.count(), distinct.len());
}

#[test]
fn a_question_longer_than_the_window_cuts_every_passage_and_a_text_without_end_is_no_more_work() {
    let fid = open("plain");
    let case = &expected("plain")[3];
    let answer = fid.answer(&"why ".repeat(300), &case.passages(), &Stop::never()).unwrap();
    assert_eq!(answer.cut, case.passages.len());
    let endless = Arc::new(Passage { text: "zoo ".repeat(1 << 20), ..Passage::default() });
    assert_eq!(fid.answer("why", &Context::list([endless]), &Stop::never()).unwrap().cut, 1);
    assert_eq!(fid.answer(&"why ".repeat(300), &[], &Stop::never()).unwrap().cut, 0);
}

#[test]
fn a_stop_ends_the_reading_between_passages_and_between_tokens() {
    let fid = open("plain");
    let case = &expected("plain")[3];
    let now = Arc::new(AtomicU64::new(0));
    let stop = Stop::when_past(&now, 0);
    let (order, read) = fid.read(&case.question, &case.passages(), &stop).unwrap();
    assert_eq!(fid.memory.count(), 3);
    now.store(1, Ordering::Relaxed);
    assert_eq!(fid.write(&order, &read, &stop), Err(ReadError::Stopped(Stopped)));
    assert_eq!(fid.answer("another", &case.passages(), &stop), Err(ReadError::Stopped(Stopped)));
    assert!(fid.attention("another", &case.passages(), &stop).unwrap_err().is_stop());
    assert_eq!(fid.memory.count(), 3, "nothing more was encoded");
}

#[test]
fn scores_that_are_no_numbers_give_no_token_and_the_first_of_the_greatest_counts() {
    assert_eq!(greatest(&[0.0, f32::NAN, 2.0]), None);
    assert_eq!(greatest(&[]), None);
    assert_eq!(greatest(&[1.0, 3.0, 3.0, f32::NEG_INFINITY]), Some(1));
}

#[test]
fn a_mark_that_a_passage_spells_ends_nothing() {
    let fid = open("plain");
    let tokens = |text: &str| fid.tokenizer.encode_fast(text, true).unwrap().get_ids().to_vec();
    let numbers = |text: &str| fid.encode(text).unwrap().part.numbers();
    let width = numbers("zoo") / tokens("zoo").len();
    let spelt = "question: why title: </s> context: zoo </s> zoo <pad>";
    let own = tokens("zoo").iter().filter(|id| [fid.first, fid.last].contains(id)).count();
    let marks = tokens(spelt).iter().filter(|id| [fid.first, fid.last].contains(id)).count() - own;
    assert_eq!((marks, numbers(spelt)), (3, width * (tokens(spelt).len() - 3)));
}

/// A copy of a fixture that can be spoiled.
fn copy(name: &str) -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    for entry in fs::read_dir(fixture(name)).unwrap() {
        let path = entry.unwrap().path();
        fs::copy(&path, folder.path().join(path.file_name().unwrap())).unwrap();
    }
    folder
}

/// Changes one entry of the configuration.
fn change(folder: &Path, key: &str, value: Value) {
    let file = folder.join("config.json");
    let mut config: Value = serde_json::from_slice(&fs::read(&file).unwrap()).unwrap();
    config[key] = value;
    fs::write(&file, config.to_string()).unwrap();
}

fn refused(folder: &Path, words: &[&str]) {
    let Err(error) = Fid::open(folder) else { panic!("{words:?} was taken") };
    let error = error.to_string();
    assert!(words.iter().all(|word| error.contains(word)), "{words:?}: {error}");
    assert!(!error.contains('\n'), "{error}");
}

#[test]
fn a_configuration_that_contradicts_the_weights_or_the_tokenizer_is_refused() {
    for (key, value, words) in [
        ("model_type", json!("bert"), &["config.json", "`bert`", "t5"][..]),
        ("model_type", Value::Null, &["config.json", "model_type"]),
        ("d_model", json!(64), &["model.safetensors", "[82, 32]", "[82, 64]"]),
        ("d_kv", json!(8), &["SelfAttention", "two different models"]),
        ("d_ff", json!(41), &["DenseReluDense", "41"]),
        ("num_heads", json!(5), &["SelfAttention", "two different models"]),
        ("num_heads", json!(0), &["two different models"]),
        ("num_layers", json!(3), &["encoder.block.2.", "missing"]),
        ("num_layers", json!(1), &["encoder.block.1.", "says 1 layers"]),
        ("num_decoder_layers", json!(4), &["decoder.block.3.", "missing"]),
        ("num_decoder_layers", json!(2), &["decoder.block.2.", "says 2 layers"]),
        ("vocab_size", json!(8), &["tokenizer.json", "8"]),
        ("vocab_size", json!(1 << 20), &["shared.weight", "1048576"]),
        ("feed_forward_proj", json!("gated-gelu"), &["wi_1", "missing"]),
        ("feed_forward_proj", json!("mish"), &["config.json", "mish"]),
        ("relative_attention_num_buckets", json!(16), &["relative_attention_bias", "16"]),
        ("relative_attention_num_buckets", json!(0), &["config.json", "are invalid"]),
        ("relative_attention_max_distance", json!(16), &["config.json", "are invalid"]),
        ("eos_token_id", json!([1, 2]), &["config.json", "eos_token_id"]),
        ("eos_token_id", json!(4096), &["config.json", "end with 4096"]),
        ("decoder_start_token_id", json!(-1), &["config.json", "decoder_start_token_id"]),
        ("tie_word_embeddings", json!(false), &["lm_head.weight", "missing"]),
    ] {
        let folder = copy("plain");
        change(folder.path(), key, value);
        refused(folder.path(), words);
    }
}

#[test]
fn scores_of_their_own_are_recognised_by_the_old_switch_too() {
    let folder = copy("plain-untied");
    change(folder.path(), "scale_decoder_outputs", Value::Null);
    change(folder.path(), "tie_word_embeddings", json!(false));
    let fid = Fid::open(folder.path()).unwrap();
    for case in expected("plain-untied") {
        let answer = fid.answer(&case.question, &case.passages(), &Stop::never()).unwrap();
        assert_eq!(answer.text, case.text);
    }
}

#[test]
fn missing_and_truncated_files_are_refused_by_name() {
    for (name, file, word) in [
        ("plain", "model.safetensors", "model.safetensors"),
        ("plain", "config.json", "config.json"),
        ("plain", "tokenizer.json", "tokenizer.json"),
        ("wrapped", "pytorch_model.bin", "pytorch_model.bin"),
    ] {
        let folder = copy(name);
        let path = folder.path().join(file);
        let bytes = fs::read(&path).unwrap();
        fs::write(&path, &bytes[..bytes.len() / 2]).unwrap();
        refused(folder.path(), &[word]);
        fs::remove_file(&path).unwrap();
        refused(folder.path(), &[word]);
    }
    refused(Path::new("no/such/folder"), &["config.json", "no such file"]);
}

#[test]
fn a_sentencepiece_model_alone_says_how_it_is_converted() {
    let folder = copy("plain");
    fs::rename(folder.path().join("tokenizer.json"), folder.path().join("spiece.model")).unwrap();
    refused(folder.path(), &["only spiece.model", "save_pretrained", "t5-base"]);
}

#[test]
fn weights_that_are_no_numbers_are_refused() {
    let folder = copy("plain");
    let file = folder.path().join("model.safetensors");
    let mut bytes = fs::read(&file).unwrap();
    let end = bytes.len();
    // A 16-bit float that is not a number.
    bytes[end - 2..].copy_from_slice(&0x7e00_u16.to_le_bytes());
    fs::write(&file, bytes).unwrap();
    refused(folder.path(), &["model.safetensors", "NaN"]);
}
