//! What the binary carries: models and their tokenizers. Origin, licence and hashes stand in `assets/README.md`.

/// all-MiniLM-L6-v2 as an int8 graph: `input_ids [1, n]` → `embedding [1, 384]`, unit length.
pub static MINILM: &[u8] = include_bytes!("../assets/minilm/model.int8.onnx");
/// The tokenizer of [`MINILM`] and [`DETECTOR`].
pub static TOKENIZER: &[u8] = include_bytes!("../assets/minilm/tokenizer.json");
/// The perspective detector as an int8 graph: a pair of texts → logits `[1, 3]` of supports, opposes, neither.
pub static DETECTOR: &[u8] = include_bytes!("../assets/detector/detector.onnx");
/// Threshold, temperature and figures of [`DETECTOR`].
pub static DETECTOR_CARD: &[u8] = include_bytes!("../assets/detector/detector.json");
/// The session that `parallax demo` plays.
pub static TOUR: &[u8] = include_bytes!("../assets/tour.session.jsonl");
