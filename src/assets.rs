//! Files built into the binary: models, tokenizer, prompts and the demo session. Origin, licence and hashes: `assets/README.md`.
//!
//! May use: nothing of this crate.

/// all-MiniLM-L6-v2 as an int8 graph: `input_ids [1, n]` → `embedding [1, 384]`, unit length.
pub static MINILM: &[u8] = include_bytes!("../assets/minilm/model.int8.onnx");
/// The tokenizer of [`MINILM`].
pub static MINILM_TOKENIZER: &[u8] = include_bytes!("../assets/minilm/tokenizer.json");
/// The perspective detector as an int8 graph: a pair of texts → logits `[1, 3]` for *supports*, *opposes* and *neither*.
pub static DETECTOR: &[u8] = include_bytes!("../assets/detector/detector.onnx");
/// The tokenizer of [`DETECTOR`].
pub static DETECTOR_TOKENIZER: &[u8] = include_bytes!("../assets/detector/tokenizer.json");
/// Name, classes, longest input and input format of [`DETECTOR`].
pub static DETECTOR_DESCRIPTION: &[u8] = include_bytes!("../assets/detector/detector.json");
/// The parameters of [`DETECTOR`]'s decision and the scores they reached on the test, as `tools/detector/fit.py` writes them.
pub static DETECTOR_JOINT: &[u8] = include_bytes!("../assets/detector/joint.json");
/// The session that `parallax demo` plays.
pub static TOUR: &[u8] = include_bytes!("../assets/tour.session.jsonl");
/// The prompts by name, as the TOML files that `llm::Prompt` reads.
pub static PROMPTS: [(&str, &str); 20] = [
    ("detect", include_str!("../assets/prompts/detect.toml")),
    ("detect-one-shot", include_str!("../assets/prompts/detect-one-shot.toml")),
    ("detect-few-shot", include_str!("../assets/prompts/detect-few-shot.toml")),
    ("perspectives", include_str!("../assets/prompts/perspectives.toml")),
    ("perspectives-one-shot", include_str!("../assets/prompts/perspectives-one-shot.toml")),
    ("keqe", include_str!("../assets/prompts/keqe.toml")),
    ("keqe-one-shot", include_str!("../assets/prompts/keqe-one-shot.toml")),
    ("csqe", include_str!("../assets/prompts/csqe.toml")),
    ("csqe-one-shot", include_str!("../assets/prompts/csqe-one-shot.toml")),
    ("q2d-prf", include_str!("../assets/prompts/q2d-prf.toml")),
    ("statements", include_str!("../assets/prompts/statements.toml")),
    ("listwise", include_str!("../assets/prompts/listwise.toml")),
    ("read", include_str!("../assets/prompts/read.toml")),
    ("read-alone", include_str!("../assets/prompts/read-alone.toml")),
    ("read-long", include_str!("../assets/prompts/read-long.toml")),
    ("read-sides", include_str!("../assets/prompts/read-sides.toml")),
    ("same-answer", include_str!("../assets/prompts/same-answer.toml")),
    ("extract", include_str!("../assets/prompts/extract.toml")),
    ("wordings", include_str!("../assets/prompts/wordings.toml")),
    ("rewrite", include_str!("../assets/prompts/rewrite.toml")),
];
