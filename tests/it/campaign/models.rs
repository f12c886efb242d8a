//! The parsers of model files: weights, tokenizers, configurations, graphs and vectors.

use std::path::Path;
use std::sync::Arc;

use parallax::corpus::{Corpus, Passage};
use parallax::detect::CustomCrossEncoder;
use parallax::encode::{CustomEncoder, Encoder, Named, Role, Similarity, Source, corpus_vectors};
use parallax::llm::{Chat, Local, Request};
use parallax::read::extractive::Extractive;
use parallax::read::open as open_reader;
use parallax::read::{Context, Reader};
use parallax::work::Stop;

use super::targets::{file, fixtures, folder, place, refused};

const TEXT: &str = "Zoos should be banned, said the 2 keepers of 動物園.";

/// A model that loads must also encode.
fn encoder(at: &Path) {
    let source = Source::Folder(at.to_str().unwrap().to_owned());
    let named = Named::from(source);
    let Some(towers) = refused(named.towers(Path::new("none"))) else { return };
    if let Some(model) = refused(CustomEncoder::load(&named, &towers)) {
        for text in ["", TEXT] {
            if let Some(vector) = refused(model.encode(text, Role::Passage)) {
                assert_eq!(vector.len(), model.dimensions());
            }
        }
    }
}

pub fn weights_safetensors(input: &[u8]) {
    encoder(&folder("encoders/contriever", "model.safetensors", input));
}

pub fn weights_pickle(input: &[u8]) {
    encoder(&folder("encoders/dpr/ctx_encoder", "pytorch_model.bin", input));
    encoder(&folder("encoders/instructor", "2_Dense/pytorch_model.bin", input));
}

pub fn model_config(input: &[u8]) {
    encoder(&folder("encoders/contriever", "config.json", input));
}

pub fn word_pieces(input: &[u8]) {
    encoder(&folder("encoders/contriever", "tokenizer.json", input));
}

pub fn unigrams(input: &[u8]) {
    encoder(&folder("encoders/instructor", "tokenizer.json", input));
}

pub fn byte_pairs(input: &[u8]) {
    encoder(&folder("encoders/roberta", "merges.txt", input));
    encoder(&folder("encoders/roberta", "vocab.json", input));
}

pub fn detector_folder(input: &[u8]) {
    for (name, fixture) in
        [("config.json", "detectors/deberta-v3"), ("tokenizer.json", "detectors/deberta-v2")]
    {
        let at = folder(fixture, name, input);
        let source = Source::Folder(at.to_str().unwrap().to_owned());
        if let Some(model) = refused(CustomCrossEncoder::load(&source, None, Path::new("none"))) {
            let passage = Passage { text: TEXT.into(), ..Passage::default() };
            let _ = refused(model.logits(&passage, "Zoos should be banned."));
        }
    }
}

/// Vectors for a corpus of three texts.
fn vectors(name: &str, input: &[u8]) {
    let corpus = Corpus::of_texts("three", &["a".into(), "b".into(), "c".into()]).unwrap();
    let to = place("vectors.f32");
    let shape = (2, Similarity::Cosine);
    let _ = refused(corpus_vectors::import(
        &corpus,
        &file(name, input),
        None,
        shape,
        &to,
        &|_| (),
        &Stop::never(),
    ));
}

pub fn vectors_npy(input: &[u8]) {
    vectors("rows.npy", input);
}

pub fn vectors_safetensors(input: &[u8]) {
    vectors("rows.safetensors", input);
}

pub fn gguf(input: &[u8]) {
    if let Some(model) = refused(Local::open(&file("model.gguf", input))) {
        let request = Request { prompt: "zoos".into(), max_tokens: 2, ..Request::default() };
        let _ = refused(model.reply(&request, &Stop::never()));
    }
}

fn ask(reader: &dyn Reader) {
    let passages = Context::list([Arc::new(Passage { text: TEXT.into(), ..Passage::default() })]);
    let _ = refused(reader.answer("Should zoos be banned?", &passages, &Stop::never()));
}

pub fn fid_weights(input: &[u8]) {
    if let Some(reader) = refused(open_reader(&folder("fid/plain", "model.safetensors", input))) {
        ask(reader.as_ref());
    }
}

pub fn fid_config(input: &[u8]) {
    for name in ["config.json", "tokenizer.json"] {
        if let Some(reader) = refused(open_reader(&folder(&format!("fid/{}", fixture_of(name)), name, input)))
        {
            ask(reader.as_ref());
        }
    }
}

/// Each file is changed in a folder of its own, so that the other stays whole.
fn fixture_of(name: &str) -> &'static str {
    if name == "config.json" { "plain" } else { "gated" }
}

/// The card gets the hash of the changed graph, so that the graph itself is read.
pub fn reader_graph(input: &[u8]) {
    let at = folder("readers/words", "reader.onnx", input);
    let mut card: serde_json::Value =
        serde_json::from_slice(&std::fs::read(fixtures("readers/words/reader.json")).unwrap()).unwrap();
    card["sha256"] = sha256(input).into();
    std::fs::write(at.join("reader.json"), card.to_string()).unwrap();
    if let Some(reader) = refused(Extractive::load(&at)) {
        ask(&reader);
    }
}

pub fn sha256(bytes: &[u8]) -> String {
    let digest = ring::digest::digest(&ring::digest::SHA256, bytes);
    digest.as_ref().iter().map(|b| format!("{b:02x}")).collect()
}

pub fn reader_card(input: &[u8]) {
    if let Some(reader) = refused(Extractive::load(&folder("readers/words", "reader.json", input))) {
        ask(&reader);
    }
}
