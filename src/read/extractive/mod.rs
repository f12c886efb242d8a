//! A reader that copies: a network finds spans in every passage by itself, and the passages vote for what they say.
//!
//! | file | owns |
//! | --- | --- |
//! | `card` | `reader.json` |
//! | `model` | the graph, the tokenizer, windows |
//! | `spans` | from logits to texts and their probabilities |
//! | `kept` | what was read before |
//!
//! The answer is the text with the greatest sum of its probabilities over the passages. A passage is read alone, so that neither
//! the others nor their order change what it says.

mod card;
mod kept;
mod model;
mod spans;
#[cfg(test)]
mod tests;

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

use self::card::Card;
use self::kept::Kept;
use self::model::Model;
use self::spans::Said;
use super::reader::{Answer, Context, ReadError, Reader};
use crate::corpus::Passage;
use crate::input::InputError;
use crate::work::{Stop, Stopped};

/// The file that says how the model reads.
pub const CARD: &str = "reader.json";
const GRAPH: &str = "reader.onnx";
const TOKENIZER: &str = "tokenizer.json";
/// The files of such a reader.
pub const EXPECTED: &str = "reader.json with reader.onnx (an extractive reader), perhaps tokenizer.json";

/// The name of the reader in a folder, whose graph is not read.
///
/// # Errors
/// The card is damaged, or the graph is not there.
pub fn name(folder: &Path) -> Result<String, InputError> {
    let card = Card::read(folder)?;
    let graph = folder.join(GRAPH);
    std::fs::metadata(&graph).map_err(|error| InputError::unreadable(&graph, &error))?;
    Ok(card.name)
}

/// What finds texts in a passage.
trait Extract: Send + Sync {
    /// The likeliest texts of one passage.
    fn read(&self, question: &str, passage: &Passage, stop: &Stop) -> Result<Vec<Said>, ReadError>;
}

/// An extractive reader.
pub struct Extractive {
    name: String,
    key: Option<String>,
    model: Box<dyn Extract>,
    kept: Kept,
}

impl Extractive {
    /// Loads the reader of a folder.
    ///
    /// # Errors
    /// A file is missing or damaged, or two contradict each other.
    pub fn load(folder: &Path) -> Result<Self, InputError> {
        let card = Card::read(folder)?;
        let (name, key) = (card.name.clone(), Some(card.key()));
        Ok(Extractive { name, key, model: Box::new(Model::load(folder, card)?), kept: Kept::default() })
    }
}

impl Reader for Extractive {
    fn name(&self) -> &str {
        &self.name
    }

    fn order_sensitive(&self) -> bool {
        false
    }

    fn recorded(&self) -> bool {
        false
    }

    fn key(&self) -> Option<String> {
        self.key.clone()
    }

    fn window(&self) -> String {
        format!("{} MB of a passage", model::LONGEST >> 20)
    }

    /// From no passage there is nothing to copy: the answer is empty then.
    fn answer(&self, question: &str, passages: &[Context], stop: &Stop) -> Result<Answer, ReadError> {
        let question = question.trim();
        if question.is_empty() {
            return Err(ReadError::NoQuestion);
        }
        let mut found = Vec::with_capacity(passages.len());
        for Context { passage, .. } in passages {
            if stop.is_set() {
                return Err(Stopped.into());
            }
            found.push(self.kept.get(question, passage, || self.model.read(question, passage, stop))?);
        }
        let cut = passages.iter().filter(|context| model::is_cut(&context.passage)).count();
        Ok(Answer { text: elected(&found), recorded: false, cut })
    }
}

/// The words of the text that has most over all passages; of texts with as much, the first in the alphabet.
fn elected(passages: &[Arc<Vec<Said>>]) -> String {
    let mut votes: BTreeMap<&str, Vec<&Said>> = BTreeMap::new();
    for said in passages.iter().flat_map(|said| said.iter()) {
        votes.entry(&said.normalised).or_default().push(said);
    }
    let mut best: Option<(f64, Vec<&Said>)> = None;
    for mut said in votes.into_values() {
        // In an order of their own: a sum of floating-point numbers hangs on it.
        said.sort_by(|a, b| b.p.total_cmp(&a.p));
        let sum = said.iter().map(|one| one.p).sum();
        if best.as_ref().is_none_or(|(most, _)| sum > *most) {
            best = Some((sum, said));
        }
    }
    let wording = best
        .into_iter()
        .flat_map(|(_, said)| said)
        .max_by(|a, b| a.likeliest.total_cmp(&b.likeliest).then_with(|| b.wording.cmp(&a.wording)));
    wording.map_or_else(String::new, |said| said.wording.clone())
}
