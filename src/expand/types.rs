//! Expansions: which there are, what they need, and what they give.

use std::collections::HashSet;
use std::fmt;
use std::ops::Range;
use std::str::FromStr;
use std::sync::Arc;

use super::talk;
use crate::corpus::{Passage, PassageIx};
use crate::llm::{Chat, Prompts, Tokens};
use crate::question::Written;
use crate::work::Stop;

/// How a question is expanded.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Kind {
    /// One query a perspective, lists merged in turn.
    Perspectives,
    /// Hypothetical answers beside the question.
    Keqe,
    /// Sentences copied from the first passages, and hypothetical answers, beside the question.
    Csqe,
    /// Weighted terms from the first passages. It makes no text: a dense lane has nothing to embed.
    Rm3,
}

impl Kind {
    /// All of them.
    pub const ALL: [Kind; 4] = [Kind::Perspectives, Kind::Keqe, Kind::Csqe, Kind::Rm3];
}

impl fmt::Display for Kind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Kind::Perspectives => "perspectives",
            Kind::Keqe => "keqe",
            Kind::Csqe => "csqe",
            Kind::Rm3 => "rm3",
        })
    }
}

/// No expansion has this name.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("no expansion is called `{0}`; choose perspectives, keqe, csqe or rm3")]
pub struct KindError(String);

impl FromStr for Kind {
    type Err = KindError;

    fn from_str(text: &str) -> Result<Self, KindError> {
        let name = text.trim().to_ascii_lowercase();
        Kind::ALL.into_iter().find(|kind| kind.to_string() == name).ok_or_else(|| KindError(text.to_owned()))
    }
}

/// Which form of an expansion ran.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Form {
    /// A model wrote the perspectives.
    PerspectivesByModel,
    /// They came with the question.
    PerspectivesGiven,
    /// The question's own statements stand in for them.
    Statements,
    /// A model wrote the answers.
    KeqeByModel,
    /// The question's own statements stand in for them.
    KeqeStatements,
    /// A model copied sentences and wrote answers.
    CsqeByModel,
    /// The sentences nearest to the question were taken.
    CsqeExtractive,
    /// Terms of the first passages.
    Rm3,
    /// There was nothing to add.
    QuestionAlone,
}

impl fmt::Display for Form {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Form::PerspectivesByModel => "perspectives, by the model",
            Form::PerspectivesGiven => "perspectives, from the question set",
            Form::Statements => "perspectives, own statements (no model)",
            Form::KeqeByModel => "KEQE, by the model",
            Form::KeqeStatements => "KEQE, own statements (no model)",
            Form::CsqeByModel => "CSQE, by the model",
            Form::CsqeExtractive => "CSQE, extractive (no model)",
            Form::Rm3 => "RM3",
            Form::QuestionAlone => "the question alone",
        })
    }
}

impl Form {
    /// The method's name alone.
    pub(super) fn method(self) -> &'static str {
        match self {
            Form::PerspectivesByModel | Form::PerspectivesGiven | Form::Statements => "perspectives",
            Form::KeqeByModel | Form::KeqeStatements => "KEQE",
            Form::CsqeByModel | Form::CsqeExtractive => "CSQE",
            Form::Rm3 => "RM3",
            Form::QuestionAlone => "the question alone",
        }
    }
}

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
    pub(super) fn new(text: String, source: Source) -> Self {
        Added { text, name: None, source, sentences: Vec::new() }
    }
}

/// The queries that replace the question.
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
    pub(super) fn joined(question: &str, copies: usize, texts: &[&str]) -> Self {
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
    /// What failed and what was done instead; may hold a server's words.
    pub notes: Vec<String>,
    /// The cost of all replies, useless ones included.
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

/// The cosine of each text with the question.
pub type Similarity<'a, E> = &'a dyn Fn(&[&str]) -> Result<Vec<f32>, E>;

/// What an expansion may use.
pub struct Ask<'a, E> {
    /// The question.
    pub question: &'a str,
    /// Its statements.
    pub statements: &'a [String],
    /// Perspectives that came with it; if there are any, no model is asked for others.
    pub given: &'a [Written],
    /// A model to ask.
    pub chat: Option<&'a dyn Chat>,
    /// How to ask it.
    pub prompts: &'a Prompts,
    /// The bare question's own BM25 list, to this depth.
    pub first: &'a dyn Fn(usize) -> Result<Vec<Listed>, E>,
    /// Computed by the built-in encoder.
    pub similarity: Similarity<'a, E>,
    /// How many passages have a stem.
    pub document_frequency: &'a dyn Fn(&str) -> Result<usize, E>,
    /// How many passages there are.
    pub passages: usize,
    /// Checked before each slow step.
    pub stop: &'a Stop,
}

impl<E> Ask<'_, E> {
    /// The question's distinct statements that are not empty.
    pub(super) fn statements(&self) -> Vec<Added> {
        let mut seen = HashSet::new();
        let numbered = self.statements.iter().enumerate();
        numbered
            .map(|(i, statement)| Added::new(talk::plain(statement), Source::Statement(i)))
            .filter(|added| talk::is_new(&mut seen, &added.text))
            .collect()
    }
}

impl Expansion {
    /// The form that ran and whose words it added: `KEQE, recorded replies of llama-3`.
    pub fn describe(&self) -> String {
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

/// Merges lists: the first passage of each, then the second of each, until `depth`. A passage already there is skipped, and its
/// list's turn with it. Each passage comes with the list that had it first.
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
mod kind_tests {
    use super::*;

    #[test]
    fn a_kind_reads_its_own_name_and_an_unknown_one_gets_the_choices() {
        for kind in Kind::ALL {
            assert_eq!(kind.to_string().to_uppercase().parse(), Ok(kind));
        }
        assert_eq!(
            "q2d".parse::<Kind>().unwrap_err().to_string(),
            "no expansion is called `q2d`; choose perspectives, keqe, csqe or rm3"
        );
    }
}

#[cfg(test)]
mod base_tests {
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
