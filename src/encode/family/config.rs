//! A model's `config.json`: the sizes of its network, under the names that each family gives them.

use std::path::{Path, PathBuf};

use serde_json::Value;

use super::wrong;
use crate::input::InputError;

/// The file, read.
pub struct Config {
    file: PathBuf,
    value: Value,
}

impl Config {
    /// Reads `config.json` in a folder.
    ///
    /// # Errors
    /// It is not there, or no JSON object.
    pub fn read(folder: &Path) -> Result<Self, InputError> {
        let file = folder.join("config.json");
        let bytes = std::fs::read(&file).map_err(|error| InputError::unreadable(&file, &error))?;
        match serde_json::from_slice::<Value>(&bytes) {
            Ok(value) if value.is_object() => Ok(Config { file, value }),
            Ok(_) => Err(wrong(&file, "expected a JSON object; fetch the model anew")),
            Err(error) => Err(wrong(&file, format!("no whole JSON ({error}); fetch the model anew"))),
        }
    }

    /// The family, as `transformers` names it.
    ///
    /// # Errors
    /// The file does not say.
    pub fn model_type(&self) -> Result<&str, InputError> {
        let named = self.value.get("model_type").and_then(Value::as_str);
        named.ok_or_else(|| self.wrong("it names no `model_type`, so nobody knows what network this is"))
    }

    /// Length of a token's row.
    ///
    /// # Errors
    /// The file does not say.
    pub fn width(&self) -> Result<usize, InputError> {
        self.size(&["hidden_size", "dim", "d_model"])
    }

    /// How many layers it has.
    pub(super) fn layers(&self) -> Result<usize, InputError> {
        self.size(&["num_hidden_layers", "n_layers"])
    }

    /// Tokens that the network knows.
    ///
    /// # Errors
    /// The file does not say.
    pub fn vocabulary(&self) -> Result<usize, InputError> {
        self.size(&["vocab_size"])
    }

    /// Tokens that the network can read at once; none where it has no bound.
    pub fn positions(&self) -> Option<usize> {
        let all = self.size(&["max_position_embeddings"]).ok()?;
        // RoBERTa and MPNet number their positions from behind the padding's.
        let offset = matches!(self.model_type(), Ok("roberta" | "xlm-roberta" | "camembert" | "mpnet"));
        Some(if offset { all.saturating_sub(self.padding() as usize + 1) } else { all })
    }

    /// The padding's token, which shifts the positions of some families.
    pub fn padding(&self) -> u32 {
        self.size(&["pad_token_id"]).map_or(1, |id| id as u32)
    }

    /// A whole number from 1 under the first of these names that is there; `pad_token_id` may be 0.
    ///
    /// # Errors
    /// None of them is there, or what stands there is none.
    pub fn size(&self, names: &[&str]) -> Result<usize, InputError> {
        let found = names.iter().find_map(|name| Some((name, self.value.get(name)?)));
        match found {
            Some((_, value)) if value.as_u64().is_some_and(|n| n < 1 << 24) => {
                Ok(value.as_u64().unwrap_or_default() as usize)
            }
            Some((name, value)) => Err(self.wrong(&format!("expected a size at `{name}`, found {value}"))),
            None => Err(self.wrong(&format!("it names no `{}`", names[0]))),
        }
    }

    /// Whether there is something of this name.
    pub(super) fn has(&self, name: &str) -> bool {
        self.value.get(name).is_some_and(|value| !value.is_null())
    }

    pub(super) fn switch(&self, name: &str) -> Option<bool> {
        self.value.get(name)?.as_bool()
    }

    pub(super) fn number(&self, names: &[&str], default: f64) -> f64 {
        names.iter().find_map(|name| self.value.get(name)?.as_f64()).unwrap_or(default)
    }

    pub(super) fn word(&self, names: &[&str]) -> Option<&str> {
        names.iter().find_map(|name| self.value.get(name)?.as_str())
    }

    pub(super) fn is(&self, name: &str, default: bool) -> bool {
        self.value.get(name).and_then(Value::as_bool).unwrap_or(default)
    }

    /// Words in a list, or in one text with bars between them.
    pub(super) fn words(&self, name: &str) -> Vec<String> {
        match self.value.get(name) {
            Some(Value::String(text)) => text.split('|').map(|word| word.trim().to_lowercase()).collect(),
            Some(Value::Array(words)) => {
                words.iter().filter_map(|word| Some(word.as_str()?.trim().to_lowercase())).collect()
            }
            _ => Vec::new(),
        }
    }

    /// The names of a classifier's `classes`, by number.
    ///
    /// # Errors
    /// The file names more or fewer of them.
    pub fn labels(&self, classes: usize) -> Result<Vec<String>, InputError> {
        // `transformers` leaves out names that say nothing.
        let Some(named) = self.value.get("id2label").and_then(Value::as_object) else {
            return Ok((0..classes).map(|i| format!("LABEL_{i}")).collect());
        };
        let label = |i: usize| Some(named.get(&i.to_string())?.as_str()?.to_owned());
        match (0..classes).map(label).collect() {
            Some(labels) if named.len() == classes => Ok(labels),
            _ => Err(self.wrong(&format!(
                "`id2label` does not name the {classes} classes of the weights; the files are of two models: fetch the model anew"
            ))),
        }
    }

    /// Whether a class's probability hangs on its own number alone.
    pub fn many_labels(&self) -> bool {
        self.word(&["problem_type"]) == Some("multi_label_classification")
    }

    /// Heads, and the width of one.
    pub(super) fn heads(&self) -> Result<(usize, usize), InputError> {
        let (heads, width) = (self.size(&["num_attention_heads", "n_heads", "num_heads"])?, self.width()?);
        if heads == 0 || !width.is_multiple_of(heads) {
            return Err(self.wrong(&format!("a row of {width} numbers cannot be shared by {heads} heads")));
        }
        Ok((heads, width / heads))
    }

    /// What is wrong with the file.
    pub fn wrong(&self, reason: &str) -> InputError {
        wrong(&self.file, reason)
    }
}
