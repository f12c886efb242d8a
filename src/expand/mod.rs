//! Query expansion: from a question to the texts or terms that are searched in its place.
//!
//! Owns [`Expansion`] and one file a [`Kind`]. A chat that fails never fails an expansion: the form without a model takes its
//! place, and the notes say so. It must not know how lists are made, only how to ask for the question's own.

mod csqe;
mod json;
mod keqe;
mod kind;
mod perspectives;
mod prompts;
mod replies;
mod rm3;
mod talk;
#[cfg(test)]
mod testing;
mod text;

use std::collections::HashSet;
use std::ops::Range;
use std::sync::Arc;

pub use kind::{Form, Kind, KindError};

use crate::corpus::{Passage, PassageIx};
use crate::llm::{Chat, Tokens};
use crate::question::Written;
use crate::work::{Stop, Stopped};

/// Where an added text comes from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Source {
    /// The question set's own expansion.
    Given,
    /// The question's statement at this place, from 0.
    Statement(usize),
    /// A model's reply.
    Model {
        /// Its name.
        model: String,
        /// It was read from recorded replies.
        recorded: bool,
        /// Which of several replies to the same prompt, from 0.
        sample: u32,
    },
    /// A passage of the question's own list.
    Passage {
        /// Which.
        at: PassageIx,
        /// Its rank there, from 1.
        rank: usize,
    },
    /// Terms counted in the first passages.
    Feedback,
}

/// A text that was added to the question.
#[derive(Clone, Debug, PartialEq)]
pub struct Added {
    /// The text.
    pub text: String,
    /// A perspective's name, which is not searched for.
    pub name: Option<String>,
    /// Where it comes from.
    pub source: Source,
    /// Sentences copied from passages: where each stands in the text, and the passage that has it; none has it where a model
    /// copied badly.
    pub sentences: Vec<(Range<usize>, Option<PassageIx>)>,
}

impl Added {
    fn new(text: String, source: Source) -> Self {
        Added { text, name: None, source, sentences: Vec::new() }
    }
}

/// What is searched in the question's place.
#[derive(Clone, Debug, PartialEq)]
pub enum Queries {
    /// One list each, merged by [`round_robin`]; the bare question's own list is not among them.
    Each(Vec<String>),
    /// One list.
    Joined {
        /// The text to search for by terms.
        terms: String,
        /// The texts whose embeddings are averaged.
        vectors: Vec<String>,
    },
    /// One list by terms: stems and what each weighs, heaviest first.
    Terms(Vec<(String, f32)>),
}

impl Queries {
    /// The question `copies` times and each text once; vectors of the question and of each text.
    fn joined(question: &str, copies: usize, texts: &[&str]) -> Self {
        let terms: Vec<&str> = std::iter::repeat_n(question, copies).chain(texts.iter().copied()).collect();
        let vectors = std::iter::once(question).chain(texts.iter().copied()).map(str::to_owned).collect();
        Queries::Joined { terms: terms.join("\n"), vectors }
    }
}

/// An expanded question.
#[derive(Clone, Debug, PartialEq)]
pub struct Expansion {
    /// What was asked for.
    pub kind: Kind,
    /// What ran.
    pub form: Form,
    /// What to search for.
    pub queries: Queries,
    /// What was added to the question, in order of generation.
    pub added: Vec<Added>,
    /// What did not go as asked, and what was done about it; may hold a server's words.
    pub notes: Vec<String>,
    /// What all replies cost together, those that were of no use included.
    pub tokens: Option<Tokens>,
}

/// A passage of the question's own list.
#[derive(Clone, Debug, PartialEq)]
pub struct Listed {
    /// Where it lies.
    pub at: PassageIx,
    /// What it says.
    pub passage: Arc<Passage>,
    /// Its BM25 score.
    pub score: f32,
}

/// How like the question each of several texts is: cosines, one a text.
pub type Likeness<'a, E> = &'a dyn Fn(&[&str]) -> Result<Vec<f32>, E>;

/// What an expansion may use.
pub struct Ask<'a, E> {
    /// The question.
    pub question: &'a str,
    /// Its statements.
    pub statements: &'a [String],
    /// Perspectives that came with it; where there are any, no model is asked for others.
    pub given: &'a [Written],
    /// A model to ask.
    pub chat: Option<&'a dyn Chat>,
    /// The bare question's own BM25 list, to this depth.
    pub first: &'a dyn Fn(usize) -> Result<Vec<Listed>, E>,
    /// By the carried encoder.
    pub likeness: Likeness<'a, E>,
    /// How many passages have a stem.
    pub document_frequency: &'a dyn Fn(&str) -> Result<usize, E>,
    /// How many passages there are.
    pub passages: usize,
    /// Asked before every slow step.
    pub stop: &'a Stop,
}

impl<E> Ask<'_, E> {
    /// The question's statements that are not empty, told apart.
    fn statements(&self) -> Vec<Added> {
        let mut seen = HashSet::new();
        let numbered = self.statements.iter().enumerate();
        numbered
            .map(|(i, statement)| Added::new(text::plain(statement), Source::Statement(i)))
            .filter(|added| text::is_new(&mut seen, &added.text))
            .collect()
    }
}

impl Expansion {
    /// What ran, and whose words were added: `KEQE, recorded replies of llama-3`.
    pub fn told(&self) -> String {
        let model = self.added.iter().find_map(|added| match &added.source {
            Source::Model { model, recorded, .. } => Some((model, *recorded)),
            _ => None,
        });
        match model {
            Some((model, true)) => format!("{}, recorded replies of {model}", self.form.method()),
            Some((model, false)) => format!("{}, by {model}", self.form.method()),
            None => self.form.to_string(),
        }
    }
}

/// Expands a question.
///
/// # Errors
/// Stopped, or what the asker's own functions say. A chat's failure is a note.
pub fn expand<E: From<Stopped>>(kind: Kind, ask: &Ask<'_, E>) -> Result<Expansion, E> {
    match kind {
        Kind::Perspectives => perspectives::expand(ask),
        Kind::Keqe => keqe::expand(ask),
        Kind::Csqe => csqe::expand(ask),
        Kind::Rm3 => rm3::expand(ask),
    }
}

/// Merges lists: the first passage of each, then the second of each, until `depth`. A passage already there is skipped, and its
/// list's turn with it. With each goes the list that brought it first.
pub fn round_robin(lists: &[Vec<PassageIx>], depth: usize) -> Vec<(PassageIx, usize)> {
    let longest = lists.iter().map(Vec::len).max().unwrap_or(0);
    let mut seen = HashSet::new();
    (0..longest)
        .flat_map(|rank| lists.iter().enumerate().filter_map(move |(i, list)| Some((*list.get(rank)?, i))))
        .filter(|(passage, _)| seen.insert(*passage))
        .take(depth)
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lists_are_merged_in_turn_without_repeats_and_each_passage_knows_its_list() {
        let list = |numbers: &[u32]| numbers.iter().copied().map(PassageIx).collect::<Vec<_>>();
        let lists = [list(&[1, 2, 3]), list(&[1, 4]), list(&[]), list(&[5, 2, 6, 7])];
        let merged: Vec<(u32, usize)> = round_robin(&lists, 100).iter().map(|(p, i)| (p.0, *i)).collect();
        assert_eq!(merged, [(1, 0), (5, 3), (2, 0), (4, 1), (3, 0), (6, 3), (7, 3)]);
        assert_eq!(round_robin(&lists, 2).len(), 2);
        assert!(round_robin(&[], 5).is_empty());
        assert!(round_robin(&lists, 0).is_empty());
    }
}
