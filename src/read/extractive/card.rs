//! What the model's folder says of it: `reader.json`.

use std::path::Path;

use ring::digest::{SHA256, digest};
use serde::Deserialize;

use super::CARD;
use crate::input::InputError;

/// How the model reads.
#[derive(Clone, Debug, Deserialize)]
pub struct Card {
    /// Its name, to be shown.
    pub name: String,
    /// Tokens it reads at once, question and passage together.
    pub max_tokens: usize,
    /// Tokens of the question that are read.
    pub question_tokens: usize,
    /// Tokens that an answer may have.
    pub answer_tokens: usize,
    /// What logits are divided by.
    pub temperature: f64,
    /// SHA-256 of the graph, in hexadecimal digits.
    sha256: String,
}

/// More tokens at once no such model reads; attention grows with their square.
const MOST_TOKENS: usize = 4_096;
/// A longer copy is no answer; the spans that are weighed grow with it.
const LONGEST_ANSWER: usize = 256;

const EXPECTED: &str = "expected a JSON object with `name`, `max_tokens`, `question_tokens`, `answer_tokens`, `temperature` and \
                        `sha256` (of reader.onnx)";

impl Card {
    /// Reads the card of a folder.
    ///
    /// # Errors
    /// It is damaged, or says what cannot be.
    pub fn read(folder: &Path) -> Result<Self, InputError> {
        let path = folder.join(CARD);
        let bytes = std::fs::read(&path).map_err(|error| InputError::unreadable(&path, &error))?;
        let wrong = |reason: String| InputError::Unreadable { path: path.clone(), reason };
        let card: Card =
            serde_json::from_slice(&bytes).map_err(|error| wrong(format!("{EXPECTED} ({error})")))?;
        card.possible().map_err(|reason| wrong(reason.into()))?;
        Ok(card)
    }

    fn possible(&self) -> Result<(), &'static str> {
        if self.name.trim().is_empty() {
            return Err("expected a `name` to be shown");
        }
        if self.question_tokens == 0 || self.answer_tokens == 0 {
            return Err("expected `question_tokens` and `answer_tokens` of at least 1");
        }
        if self.max_tokens > MOST_TOKENS || self.answer_tokens > LONGEST_ANSWER {
            return Err("expected `max_tokens` of at most 4096 and `answer_tokens` of at most 256");
        }
        // Windows overlap by half, so that an answer of any place lies whole in one of them.
        let room = self.max_tokens.saturating_sub(3).saturating_sub(self.question_tokens);
        if room / 2 < self.answer_tokens {
            return Err("expected `max_tokens` of at least `question_tokens` + 2 × `answer_tokens` + 3");
        }
        if !(self.temperature.is_finite() && self.temperature > 0.0) {
            return Err("expected a `temperature` above 0");
        }
        Ok(())
    }

    /// What tells the graph from others: the beginning of its hash, which was held against the file.
    pub fn key(&self) -> String {
        self.sha256.chars().take(12).collect::<String>().to_ascii_lowercase()
    }

    /// Whether this is the graph that the card was written for.
    ///
    /// # Errors
    /// It is another one.
    pub fn is_of(&self, graph: &[u8], path: &Path) -> Result<(), InputError> {
        let found: String = digest(&SHA256, graph).as_ref().iter().map(|b| format!("{b:02x}")).collect();
        if self.sha256.eq_ignore_ascii_case(&found) {
            return Ok(());
        }
        let reason = format!(
            "its SHA-256 is {found}, and {CARD} says {}; the files are of two models, or one is damaged: bring the folder anew",
            crate::input::excerpt(&self.sha256)
        );
        Err(InputError::Unreadable { path: path.into(), reason })
    }
}
