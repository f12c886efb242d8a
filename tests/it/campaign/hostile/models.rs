//! Models that claim more than they are, or that take for ever. What is refused is refused because of its harm: the unharmed copy is
//! taken. No folder is named after what is wrong in it, so that only the refusal can name it.

use std::cell::Cell;
use std::fs;
use std::time::Duration;

use serde_json::json;

use super::super::targets::models::sha256;
use super::super::targets::{root, seeds};
use super::super::tell;
use super::{told, told_within};
use crate::program::{Desk, Told};

const ENCODER: &str = "encoders/contriever";
const CONFIG: &str = "tests/fixtures/encoders/contriever/config.json";
const TOKENIZER: &str = "tests/fixtures/encoders/contriever/tokenizer.json";
const READER: &str = "readers/words";

/// Where models are tried, how many were refused, and the most MB that one made the program hold.
struct Models {
    desk: Desk,
    refused: Cell<usize>,
    most: Cell<u64>,
}

impl Models {
    fn new() -> Self {
        let models = Models { desk: Desk::new(), refused: Cell::new(0), most: Cell::new(0) };
        models.desk.write("some.jsonl", json!({"_id": "a", "text": "Zoos should be banned."}).to_string());
        models
    }

    /// A copy of a model of the fixtures with something else in the place of some files.
    fn copy(&self, fixture: &str, folder: &str, changed: &[(&str, &[u8])]) {
        let to = self.desk.files.path().join(folder);
        fs::create_dir_all(&to).unwrap();
        let files = fs::read_dir(root("tests/fixtures").join(fixture)).unwrap().flatten();
        for file in files.filter(|entry| entry.path().is_file()) {
            fs::copy(file.path(), to.join(file.file_name())).unwrap();
        }
        changed.iter().for_each(|(name, bytes)| fs::write(to.join(name), bytes).unwrap());
    }

    fn run(&self, arguments: &[&str]) -> Told {
        let (told, held) = told(&self.desk, arguments);
        self.most.set(self.most.get().max(held));
        told
    }

    fn encode(&self, folder: &str) -> Told {
        self.run(&["search", "zoos", "--corpus", "some.jsonl", "--lanes", &format!("path:{folder}")])
    }

    fn read(&self, folder: &str) -> Told {
        self.run(&["eval", "reader", "--questions", "asked.json", "--reader", folder, "-k", "1"])
    }

    /// Exit code 2, no result, and these words of the file.
    #[track_caller]
    fn refuses(&self, told: &Told, file: &str, why: &str) {
        told.bad(&[&format!("{file}: "), why]);
        self.refused.set(self.refused.get() + 1);
    }
}

fn tensors(head: &str, length: u64) -> Vec<u8> {
    [&length.to_le_bytes()[..], head.as_bytes(), &[0; 64]].concat()
}

/// The fixture's file as JSON, changed.
fn changed(path: &str, change: impl FnOnce(&mut serde_json::Value)) -> Vec<u8> {
    let mut value = serde_json::from_slice(&seeds(&[path], &[])[0]).unwrap();
    change(&mut value);
    value.to_string().into_bytes()
}

/// The encoder's configuration with another number.
fn number(key: &str, value: u64) -> Vec<u8> {
    changed(CONFIG, |config| config[key] = value.into())
}

/// The encoder's tokenizer, cutting by a pattern.
fn pattern(pattern: &str) -> Vec<u8> {
    let split =
        json!({"type": "Split", "pattern": {"Regex": pattern}, "behavior": "Isolated", "invert": false});
    changed(TOKENIZER, |tokenizer| tokenizer["pre_tokenizer"] = split)
}

fn nested() -> String {
    format!("{}1{}", "[".repeat(100_000), "]".repeat(100_000))
}

#[test]
fn encoders_that_claim_what_cannot_be_are_refused() {
    let models = Models::new();
    let huge =
        r#"{"w":{"dtype":"F32","shape":[4294967295,4294967295],"data_offsets":[0,18446744073709551615]}}"#;
    let (deep, weights, config, tokenizer) = (nested(), "model.safetensors", "config.json", "tokenizer.json");
    let grows = "(((((((x{1,99}){1,99}){1,99}){1,99}){1,99}){1,99}){1,99})";
    let size = "expected a size at";
    // The file, what stands in it, what is told of it.
    let cases: [(&str, Vec<u8>, &str); 12] = [
        (weights, tensors("{}", 1 << 63), "header too large"),
        (weights, tensors(huge, huge.len() as u64), "overflow"),
        (weights, tensors(&deep, deep.len() as u64), "invalid JSON in header"),
        (weights, Vec::new(), "header too small"),
        (config, number("num_hidden_layers", 1_000_000_000), size),
        (config, number("hidden_size", 1 << 62), size),
        (config, number("num_attention_heads", 0), "cannot be shared by 0 heads"),
        (config, number("max_position_embeddings", u64::MAX), size),
        (config, deep.clone().into_bytes(), "recursion limit"),
        (tokenizer, pattern(grows), "error building NFA"),
        (tokenizer, pattern("((("), "without closing parenthesis"),
        (tokenizer, deep.into_bytes(), "no tokenizer that can be read"),
    ];
    models.copy(ENCODER, "whole", &[]);
    models.encode("whole").good();
    models.copy(ENCODER, "cut", &[(tokenizer, &pattern(r"\w+"))]);
    models.encode("cut").good();
    for (at, (file, bytes, why)) in cases.iter().enumerate() {
        let folder = format!("m{at}");
        models.copy(ENCODER, &folder, &[(file, bytes)]);
        models.refuses(&models.encode(&folder), &format!("{folder}/{file}"), why);
    }
    told_of("encoders", &models);
}

#[test]
fn readers_that_are_none_are_refused() {
    let models = Models::new();
    models.desk.write(
        "asked.json",
        r#"[{"question":"Where are zoos?","answers":["Oslo"],"ctxs":[{"id":"1","title":"","text":"They are in Oslo."}]}]"#,
    );
    let garbage = b"\x08\x08garbage".repeat(1_000);
    // The card is of this graph, so that the graph itself is read.
    let card =
        changed("tests/fixtures/readers/words/reader.json", |card| card["sha256"] = sha256(&garbage).into());
    models.copy(READER, "whole", &[]);
    models.read("whole").good();
    models.copy(READER, "a", &[("reader.onnx", &garbage)]);
    models.refuses(&models.read("a"), "a/reader.onnx", "its SHA-256 is");
    models.copy(READER, "b", &[("reader.onnx", &garbage), ("reader.json", &card)]);
    models.refuses(&models.read("b"), "b/reader.onnx", "expected a graph");
    models.copy(READER, "c", &[("reader.json", b"{\"name\":")]);
    models.refuses(&models.read("c"), "c/reader.json", "expected a JSON object");
    told_of("readers", &models);
}

#[cfg(feature = "local-llm")]
#[test]
fn language_models_that_claim_what_cannot_be_are_refused() {
    let models = Models::new();
    let gguf = |counts: [u64; 2]| {
        [&b"GGUF"[..], &3u32.to_le_bytes(), &counts[0].to_le_bytes(), &counts[1].to_le_bytes(), &[0; 64]]
            .concat()
    };
    let ask = |name: &str| {
        let model = format!("gguf:{name}");
        models.run(&["search", "zoos", "--corpus", "some.jsonl", "--lanes", "bm25", "--llm", &model])
    };
    models.desk.write("whole.gguf", &seeds(&["tests/fixtures/llm/llama.gguf"], &[])[0]);
    ask("whole.gguf").good();
    for (name, counts) in
        [("a.gguf", [1 << 63, 1]), ("b.gguf", [1, 1 << 63]), ("c.gguf", [u64::MAX, u64::MAX])]
    {
        models.desk.write(name, gguf(counts));
        models.refuses(&ask(name), name, "cut short");
    }
    told_of("language models", &models);
}

fn told_of(what: &str, models: &Models) {
    let (refused, most) = (models.refused.get(), models.most.get());
    tell(&format!(
        "hostile {what}: {refused} refused with the file and the reason, the unharmed taken; at most {most} MB"
    ));
}

/// A pattern whose tries grow without end over the wrong text must not take the program with it: its engine gives up, and the text is
/// one piece. One that is not done after a minute is killed, and has no exit code.
#[test]
fn a_tokenizer_whose_pattern_never_ends_is_given_up() {
    let models = Models::new();
    // What stands for itself again makes the engine go back, which automata never do.
    models.copy(ENCODER, "a", &[("tokenizer.json", &pattern(r"(a|aa)+\1!!"))]);
    let text = "a".repeat(3_000) + "!";
    models.desk.write("c.jsonl", json!({"_id": "a", "text": text}).to_string());
    let arguments = ["search", &text, "--corpus", "c.jsonl", "--lanes", "path:a", "--format", "json"];
    let (ended, most) = told_within(&models.desk, &arguments, Duration::from_secs(60));
    let found: serde_json::Value = serde_json::from_str(&ended.good()).unwrap();
    assert_eq!(found["lanes"][0]["hits"].as_array().map(Vec::len), Some(1), "{found}");
    tell(&format!("hostile pattern: given up, and the passage found; at most {most} MB"));
}
