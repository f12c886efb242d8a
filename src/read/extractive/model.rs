//! The network: a question and a passage to the texts that the passage may say.

use std::path::Path;

use tokenizers::Tokenizer;

use super::card::Card;
use super::spans::{Piece, Said, Window, joined, texts};
use super::{CARD, Extract, GRAPH, TOKENIZER};
use crate::corpus::Passage;
use crate::encode::EncodeError;
use crate::encode::graph::{self, Graph};
use crate::encode::tokens::{beginning, from_file};
use crate::encode::windows::windows;
use crate::input::InputError;
use crate::read::ReadError;
use crate::work::{Stop, Stopped};

const INPUTS: [&str; 3] = ["input_ids", "attention_mask", "token_type_ids"];
const OUTPUT: &str = "spans";

/// Bytes of a passage that are read: what is past them is told as cut.
pub const LONGEST: usize = 1 << 20;

/// The graph with its tokenizer, as the card has it.
pub struct Model {
    card: Card,
    graph: Graph,
    tokenizer: Tokenizer,
    cls: i32,
    sep: i32,
}

impl Model {
    /// Loads the model of a folder and has it read a sentence and as many tokens as it is said to read at once.
    ///
    /// # Errors
    /// A file is missing or damaged, or the graph is of another kind.
    pub fn load(folder: &Path, card: Card) -> Result<Self, InputError> {
        let path = folder.join(GRAPH);
        let bytes = std::fs::read(&path).map_err(|error| InputError::unreadable(&path, &error))?;
        card.is_of(&bytes, &path)?;
        let wrong = |reason: &dyn std::fmt::Display| InputError::Unreadable {
            path: path.clone(),
            reason: format!(
                "{reason}; expected a graph of {} [1, n] to `{OUTPUT}` [1, n, 2], logits of start and end",
                INPUTS.map(|name| format!("`{name}`")).join(", ")
            ),
        };
        let graph = Graph::brought(bytes, &INPUTS, OUTPUT).map_err(|error| wrong(&error.0))?;
        let (tokenizer, [cls, sep]) = tokenizer(folder)?;
        let model = Model { card, graph, tokenizer, cls, sep };
        let sentence = Passage { text: "It is a sentence.".into(), ..Passage::default() };
        model.read("What is it?", &sentence, &Stop::never()).map_err(|error| wrong(&error))?;
        // A graph may know fewer places than the card says, which only a long passage would show.
        let most = model.card.max_tokens;
        model
            .logits(&[model.sep], &vec![model.sep; most - 4])
            .map_err(|error| wrong(&format!("with {most} tokens, the `max_tokens` of {CARD}: {error}")))?;
        Ok(model)
    }

    /// Logits of the start and the end, of "no answer" and of every token of the passage.
    fn logits(&self, question: &[i32], passage: &[i32]) -> Result<([f32; 2], Vec<[f32; 2]>), EncodeError> {
        let ids = [&[self.cls], question, &[self.sep], passage, &[self.sep]].concat();
        let (length, first) = (ids.len(), question.len() + 2);
        let kinds = (0..length).map(|at| i32::from(at >= first)).collect();
        let (shape, numbers) = self.graph.numbers::<3>(&[ids, vec![1; length], kinds])?;
        if shape != [1, length, 2] {
            return Err(EncodeError(format!(
                "the graph gave numbers of shape {shape:?} for {length} tokens"
            )));
        }
        let at = |token: usize| [numbers[2 * token], numbers[2 * token + 1]];
        let (none, spans) = (at(0), (first..first + passage.len()).map(at).collect::<Vec<_>>());
        // A model may forbid places outside of the passage by an infinite logit.
        if !std::iter::once(&none).chain(&spans).flatten().all(|logit| logit.is_finite()) {
            return Err(EncodeError("the graph gave logits that are no numbers".into()));
        }
        Ok((none, spans))
    }
}

impl Extract for Model {
    fn read(&self, question: &str, passage: &Passage, stop: &Stop) -> Result<Vec<Said>, ReadError> {
        if stop.is_set() {
            return Err(Stopped.into());
        }
        let (mut asked, _) = tokens(&self.tokenizer, beginning(question, self.card.question_tokens))?;
        asked.truncate(self.card.question_tokens);
        if asked.is_empty() {
            return Err(ReadError::NoQuestion);
        }
        let text = text(passage);
        let (ids, pieces) = tokens(&self.tokenizer, &text)?;
        let room = self.card.max_tokens - asked.len() - 3;
        let mut found = Vec::new();
        for at in windows(ids.len(), room).filter(|at| !at.is_empty()) {
            if stop.is_set() {
                return Err(Stopped.into());
            }
            let (none, logits) = self.logits(&asked, &ids[at.clone()])?;
            let window = Window { at, none, logits: &logits };
            found.push(texts(&text, &pieces, &window, self.card.answer_tokens, self.card.temperature));
        }
        Ok(joined(found))
    }
}

/// What is read of a passage.
fn text(passage: &Passage) -> String {
    let mut text = if passage.title.trim().is_empty() {
        passage.text.clone()
    } else {
        format!("{}. {}", passage.title, passage.text)
    };
    text.truncate(text.floor_char_boundary(LONGEST));
    text
}

/// Whether a passage is longer than what is read of it.
pub fn is_cut(passage: &Passage) -> bool {
    passage.title.len() + ". ".len() + passage.text.len() > LONGEST
}

/// The folder's tokenizer, else the carried one, and the numbers of its marks.
fn tokenizer(folder: &Path) -> Result<(Tokenizer, [i32; 2]), InputError> {
    let path = folder.join(TOKENIZER);
    let wrong = |reason: String| InputError::Unreadable { path: path.clone(), reason };
    let mut tokenizer = if path.exists() {
        let mut read = from_file(&path).map_err(|error| {
            wrong(format!("no tokenizer that can be read ({error}); bring the folder anew"))
        })?;
        read.with_padding(None);
        read.with_truncation(None).map_err(|error| wrong(error.to_string()))?;
        read
    } else {
        graph::tokenizer(None).map_err(|error| wrong(error.0))?
    };
    // The marks are set here: where a stranger's text spells one, it is text.
    tokenizer.set_encode_special_tokens(true);
    let mark = |name: &str| {
        let id = tokenizer.token_to_id(name).map(|id| id as i32);
        id.ok_or_else(|| wrong(format!("it knows no {name}; expected a tokenizer of BERT's kind")))
    };
    let marks = [mark("[CLS]")?, mark("[SEP]")?];
    Ok((tokenizer, marks))
}

/// A text's tokens, and where each lies in it.
fn tokens(tokenizer: &Tokenizer, text: &str) -> Result<(Vec<i32>, Vec<Piece>), EncodeError> {
    let encoded = tokenizer.encode(text, false)?;
    let ids = encoded.get_ids().iter().map(|id| *id as i32).collect();
    let words = encoded.get_word_ids();
    let pieces = encoded.get_offsets().iter().enumerate().map(|(at, (from, to))| Piece {
        bytes: *from..*to,
        begins: at == 0 || words[at].is_none() || words[at] != words[at - 1],
    });
    Ok((ids, pieces.collect()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_mark_that_a_text_spells_is_text() {
        let (tokenizer, marks) = tokenizer(Path::new("none")).unwrap();
        let (ids, pieces) = tokens(&tokenizer, "a [SEP] b [CLS]").unwrap();
        assert!(!ids.iter().any(|id| marks.contains(id)), "{ids:?}");
        assert_eq!((ids.len(), pieces[2].bytes.clone()), (9, 3..6));
    }
}
