//! Questions and their perspectives, and the rules that turn a contentious question into its two opposite statements.
//!
//! The rules are for English. Every function is total and linear in the length of its text; where no rule applies, the result says so
//! ([`By::None`]). No model and no user is asked.
//!
//! A text goes through `words` (words and parts of speech), `statements` (what surrounds the question), then `invert` (questions) or
//! `negate` (plain statements). Both find the parts of one `clause`, which is affirmed, and denied by `deny`.
//! [`set`] and [`pir`] read question files.
//!
//! May use: input.
//!
//! This file holds the types: questions, their perspectives and their statements.

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

mod clause;
mod deny;
mod invert;
mod lexicon;
mod negate;
pub mod pir;
pub mod set;
mod statements;
mod subject;
#[cfg(test)]
mod tests;
mod verbs;
mod words;

pub use statements::{common_words, opposite, statements};

/// A contentious question with the statements that answer it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Question {
    /// Unique within its file.
    pub id: String,
    /// The question as asked.
    pub text: String,
    /// One sentence each; any number from one up.
    pub perspectives: Vec<String>,
    /// Index of the perspective that supports the question; only where there are two.
    pub supports: Option<usize>,
    /// The gold answers that a reader is measured against; most questions have none.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub answers: Vec<String>,
    /// Perspectives that came with the question, for expansion.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub expansions: Vec<Written>,
    /// Anything else about it, such as the outlet that it asks for.
    #[serde(default, skip_serializing_if = "Map::is_empty")]
    pub metadata: Map<String, Value>,
}

impl Question {
    /// The indices of the supporting and the opposing perspective; `None` unless there are two sides.
    pub fn sides(&self) -> Option<[usize; 2]> {
        let first = self.supports.filter(|_| self.perspectives.len() == 2)?.min(1);
        Some([first, 1 - first])
    }
}

/// A perspective written out. Reads `{name, text}` and BERDS's `{perspective, text}`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Written {
    /// A few words; not searched for.
    #[serde(alias = "perspective")]
    pub name: Option<String>,
    /// What the perspective holds.
    pub text: String,
}

/// Who made a question's statements.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum By {
    /// The rules of this module.
    Rule,
    /// A language model.
    Llm,
    /// Typed by the user.
    User,
    /// From the question's file.
    Given,
    /// There are none.
    None,
}

/// The statements of a question, as `parallax statements` prints them.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Statements {
    /// The question as asked.
    pub question: String,
    /// Two opposite sentences, or none.
    pub perspectives: Vec<String>,
    /// Index of the perspective that supports the question.
    pub supports: Option<usize>,
    /// Who made them.
    pub by: By,
}
