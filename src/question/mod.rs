//! Questions and their perspectives, and the rules that turn a contentious question into its two opposite statements.
//!
//! The rules are for English. No function fails, and each takes time linear in the length of its text. If no rule applies, the result is
//! [`By::None`]. Neither a model nor the user is asked.
//!
//! A text goes through `words` (words and parts of speech), `statements` (removes introductions and tags), then `invert` (questions) or
//! `negate` (plain statements). Both find the parts of one `clause`. `clause` writes it as an affirmative sentence, `deny` as its opposite.
//! [`wordings`] words a question in other ways, [`edits`] edits a passage. [`set`] and [`pir`] read question files; [`sources`] builds questions from other data sets.
//!
//! May use: input.
//!
//! This file holds the types: questions, their perspectives and their statements.

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

mod clause;
mod deny;
pub mod edits;
mod invert;
mod lexicon;
mod negate;
pub mod pir;
pub mod set;
pub mod sources;
mod statements;
mod subject;
#[cfg(test)]
mod tests;
mod verbs;
pub mod wordings;
mod words;

pub use statements::{common_words, draft, opposite, resolve, statements};
pub use wordings::ask;

/// A contentious question with the statements that answer it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Question {
    /// Its id, unique within its file.
    pub id: String,
    /// The question as asked.
    pub text: String,
    /// Its statements, one sentence each. A query of PIR has its perspective here, or none.
    pub perspectives: Vec<String>,
    /// The index of the perspective that supports the question; `None` unless there are two.
    pub supports: Option<usize>,
    /// The gold answers that a reader is measured against; most questions have none.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub answers: Vec<String>,
    /// Perspectives that came with the question, for expansion.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub expansions: Vec<Written>,
    /// PIR: the query without its perspective. Projections then take query, root and perspective as they stand.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub root: Option<String>,
    /// Other data about it, such as the outlet that it asks for.
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

/// A perspective with its text. Reads `{name, text}` and BERDS's `{perspective, text}`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Written {
    /// A few words; not searched for.
    #[serde(alias = "perspective")]
    pub name: Option<String>,
    /// The text of the perspective.
    pub text: String,
}

/// The origin of a question's statements.
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
    /// The question has no statements.
    None,
}

/// The statements of a question, as `parallax statements` prints them.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Statements {
    /// The question as asked.
    pub question: String,
    /// Two opposite sentences, or none.
    pub perspectives: Vec<String>,
    /// The index of the perspective that supports the question.
    pub supports: Option<usize>,
    /// Their origin.
    pub by: By,
}
