//! Questions and their perspectives, and the rules that turn a contentious question into its two opposite statements.
//!
//! Owns the types `Question` and `Statements`, and the rules. It must not ask a model or the user: where no rule applies
//! it says so (`By::None`). The rules are for English; every function is total, and linear in the length of its text.
//!
//! A text goes through `tokens` (words), `frame` (what surrounds it), `invert` (questions) or `negate` (statements),
//! which find the parts of one `clause`; that is said once affirmed and once denied.

mod choice;
mod clause;
mod comparison;
mod contrast;
mod finite;
mod frame;
mod gerunds;
mod invert;
mod lexicon;
mod negate;
mod parts;
mod person;
pub mod pir;
mod polarity;
mod predicate;
pub mod set;
mod subject;
mod tokens;
mod topics;
mod verbs;

#[cfg(test)]
mod tests;

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use frame::Strictness;
use tokens::{Case, Word};

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
    /// The right answers, as a reader is measured by; most questions have none.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub answers: Vec<String>,
    /// Perspectives written out beforehand, to expand the question with.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub expansions: Vec<Written>,
    /// Anything else that is known of it, such as the outlet that it asks for.
    #[serde(default, skip_serializing_if = "Map::is_empty")]
    pub metadata: Map<String, Value>,
}

impl Question {
    /// The perspective that supports the question and the other one, by their indices; none where there are not two sides.
    pub fn sides(&self) -> Option<[usize; 2]> {
        let first = self.supports.filter(|_| self.perspectives.len() == 2)?.min(1);
        Some([first, 1 - first])
    }
}

/// A perspective written out. Reads `{name, text}` and BERDS's `{perspective, text}`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Written {
    /// A few words, which are not searched for.
    #[serde(alias = "perspective")]
    pub name: Option<String>,
    /// What is held there.
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
    /// Came with the question's file.
    Given,
    /// Nobody: there are none.
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

/// The two opposite statements of a yes/no question or a plain statement, the supporting one first.
///
/// `by` is [`By::Rule`], or [`By::None`] with no perspectives where no rule applies: wh-questions, choices between
/// alternatives, texts that are not one English sentence. Never fails.
///
/// ```
/// let made = parallax::question::statements("Should zoos be banned?");
/// assert_eq!(made.perspectives, ["Zoos should be banned.", "Zoos should not be banned."]);
/// assert_eq!(made.supports, Some(0));
/// ```
pub fn statements(question: &str) -> Statements {
    let pair = pair(question);
    let by = if pair.is_some() { By::Rule } else { By::None };
    Statements {
        question: question.to_owned(),
        supports: pair.as_ref().map(|_| 0),
        perspectives: pair.map(Vec::from).unwrap_or_default(),
        by,
    }
}

/// The opposite of a plain statement; an already negative statement loses its negation.
///
/// `None` where no finite verb is found or the opposite cannot be said by rule.
pub fn opposite(statement: &str) -> Option<String> {
    let words = tokens::words(statement);
    if frame::is_beyond_rules(&words) {
        return None;
    }
    let case = tokens::case_of(&words);
    negate::read(&words, case)?.opposite()
}

fn pair(question: &str) -> Option<[String; 2]> {
    let words = tokens::words(question);
    if frame::is_beyond_rules(&words) {
        return None;
    }
    let case = tokens::case_of(&words);
    let words = frame::without_label(frame::without_tag(frame::without_label(frame::one_sentence(&words)?)));
    let untitled = frame::untitled(words).and_then(|words| asked(&words, case));
    let [first, second] = untitled.or_else(|| asked(words, case)).or_else(|| stated(words, case))?;
    (first != second).then_some([first, second])
}

/// The statements of a yes/no question.
fn asked(words: &[Word], case: Case) -> Option<[String; 2]> {
    let start = invert::auxiliary_at(words)?;
    if let Some((inner, strictness)) = frame::framed(&words[start..])
        && let Some(pair) = believed(&words[..start], inner, strictness, case)
    {
        return Some(pair);
    }
    let clause = invert::invert(words, case)?;
    Some([clause.affirmed(), clause.denied()?])
}

/// The statements of the clause behind `Do you think that`.
fn believed(opener: &[Word], inner: &[Word], strictness: Strictness, case: Case) -> Option<[String; 2]> {
    let words: Vec<Word> = opener.iter().chain(inner).cloned().collect();
    let words = person::believed(&words, case);
    let read = negate::read(&words, case)?;
    if strictness == Strictness::Auxiliary && !matches!(read.clause.finite, clause::Finite::Auxiliary(_)) {
        return None;
    }
    if choice::offers_choice("", &read.clause.subject, &read.clause.rest) {
        return None;
    }
    Some([negate::restated(&words, &read), read.opposite()?])
}

/// A plain statement and its opposite.
fn stated(words: &[Word], case: Case) -> Option<[String; 2]> {
    let first = words.first()?;
    let when = first.key == "when" && !words.get(1).is_some_and(|next| lexicon::is_auxiliary(&next.key));
    if (lexicon::is_wh(&first.key) && !when)
        || lexicon::is_auxiliary(&first.key)
        || lexicon::contracted_negative(&first.key).is_some()
    {
        return None;
    }
    if lexicon::is_preposition(&first.key) && words.get(1).is_some_and(|next| lexicon::is_wh(&next.key)) {
        return None;
    }
    let titled = words.windows(2).any(|two| {
        two[0].ends_phrase() && matches!(two[1].key.as_str(), "which" | "who" | "what" | "how" | "why")
    });
    let questioned = words.last().is_some_and(|last| last.after.contains('?'));
    if questioned && titled {
        return None;
    }
    if questioned && words.iter().any(|word| lexicon::is_wh(&word.key) && !lexicon::is_relative(&word.key)) {
        return None;
    }
    let read = negate::read(words, case)?;
    Some([tokens::sentence(words), read.opposite()?])
}
