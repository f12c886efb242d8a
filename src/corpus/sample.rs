//! The sample that the binary carries: questions, passages, gold labels and the passages' vectors.

use super::Corpus;

/// Passages, one a line.
pub const CORPUS: &[u8] = include_bytes!("../../sample_data/corpus.jsonl");
/// Questions with their perspectives, one a line.
pub const QUESTIONS: &str = include_str!("../../sample_data/questions.jsonl");
/// Gold labels: question, id, perspective, label, evidence.
pub const LABELS: &str = include_str!("../../sample_data/labels.tsv");
/// Replies of a language model to the expansions' prompts for these questions, recorded.
pub const REPLIES: &[u8] = include_bytes!("../../sample_data/replies.jsonl");
/// The passages' vectors by the carried encoder, `[passages, 384]` little-endian f32, after a 32-byte key.
pub const VECTORS: &[u8] = include_bytes!("../../sample_data/minilm.f32");

/// The carried corpus.
pub fn corpus() -> Corpus {
    Corpus::carried("sample", CORPUS)
}
