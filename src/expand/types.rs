//! The types of expansions: their kinds, inputs and results.

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
    /// One query per perspective; the lists are merged round-robin.
    Perspectives,
    /// Hypothetical answers added to the question.
    Keqe,
    /// Sentences copied from the first passages, and hypothetical answers, added to the question.
    Csqe,
    /// Weighted terms from the first passages. There is no text that a dense lane could embed.
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
    /// The question's own statements are used instead.
    Statements,
    /// A model wrote the answers.
    KeqeByModel,
    /// The question's own statements are used as answers.
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

/// The origin of an added text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum AddedFrom {
    /// The question set's own expansion.
    Given,
    /// The question's statement at this place, from 0.
    Statement(usize),
    /// A model's reply.
    Model {
        /// Its name.
        model: String,
        /// Whether it was read from recorded replies.
        recorded: bool,
        /// Which of several replies to the same prompt, from 0.
        sample: u32,
    },
    /// A passage of the first-pass list.
    Passage {
        /// The passage.
        at: PassageIx,
        /// Its rank in that list, from 1.
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
    /// Its origin.
    pub source: AddedFrom,
    /// Sentences copied from passages: the range of each in the text, and its passage; `None` if the model did not copy exactly.
    pub sentences: Vec<(Range<usize>, Option<PassageIx>)>,
}

impl Added {
    pub(super) fn new(text: String, source: AddedFrom) -> Self {
        Added { text, name: None, source, sentences: Vec::new() }
    }
}

/// The queries that replace the question.
#[derive(Clone, Debug, PartialEq)]
pub enum Queries {
    /// One list per query, merged by [`round_robin`]; the list of the unexpanded question is not among them.
    Each(Vec<String>),
    /// One list.
    Joined {
        /// The text to search for by terms.
        terms: String,
        /// The texts whose embeddings are averaged.
        vectors: Vec<String>,
    },
    /// One list by terms: stems and their weights, greatest weight first.
    Terms(Vec<(String, f32)>),
}

impl Queries {
    /// Joins the question, `copies` times, and each text once; one vector for the question and one per text.
    pub(super) fn join(question: &str, copies: usize, texts: &[&str]) -> Self {
        let terms: Vec<&str> = std::iter::repeat_n(question, copies).chain(texts.iter().copied()).collect();
        let vectors = std::iter::once(question).chain(texts.iter().copied()).map(str::to_owned).collect();
        Queries::Joined { terms: terms.join("\n"), vectors }
    }
}

/// An expanded question.
#[derive(Clone, Debug, PartialEq)]
pub struct Expansion {
    /// The kind of expansion that was requested.
    pub kind: Kind,
    /// The form that ran.
    pub form: Form,
    /// The queries to search for.
    pub queries: Queries,
    /// The texts added to the question, in order of generation.
    pub added: Vec<Added>,
    /// Failures and what was done instead; may quote a server.
    pub notes: Vec<String>,
    /// The cost of all replies, including useless ones.
    pub tokens: Option<Tokens>,
}

/// A passage of the first-pass BM25 list of the unexpanded question.
#[derive(Clone, Debug, PartialEq)]
pub struct FirstPassHit {
    /// Its position in the corpus.
    pub at: PassageIx,
    /// The passage.
    pub passage: Arc<Passage>,
    /// Its BM25 score.
    pub score: f32,
}

/// The cosine of each text with the question.
pub type Similarity<'a, E> = &'a dyn Fn(&[&str]) -> Result<Vec<f32>, E>;

/// Everything that an expansion may use.
pub struct ExpansionInputs<'a, E> {
    /// The question.
    pub question: &'a str,
    /// Its statements.
    pub statements: &'a [String],
    /// Perspectives from the question set; if there are any, no model is asked.
    pub given: &'a [Written],
    /// The language model, if there is one.
    pub chat: Option<&'a dyn Chat>,
    /// The prompts for the model.
    pub prompts: &'a Prompts,
    /// Returns the BM25 list of the unexpanded question, to the given depth.
    pub first: &'a dyn Fn(usize) -> Result<Vec<FirstPassHit>, E>,
    /// Computed with the built-in encoder.
    pub similarity: Similarity<'a, E>,
    /// Returns the number of passages that contain a stem.
    pub document_frequency: &'a dyn Fn(&str) -> Result<usize, E>,
    /// The number of passages in the corpus.
    pub passages: usize,
    /// Checked before each slow step.
    pub stop: &'a Stop,
}

impl<E> ExpansionInputs<'_, E> {
    /// The question's statements that are distinct and not empty.
    pub(super) fn statements(&self) -> Vec<Added> {
        let mut seen = HashSet::new();
        let numbered = self.statements.iter().enumerate();
        numbered
            .map(|(i, statement)| Added::new(talk::plain(statement), AddedFrom::Statement(i)))
            .filter(|added| talk::is_new(&mut seen, &added.text))
            .collect()
    }
}

impl Expansion {
    /// Names the form that ran and the origin of its texts: `KEQE, recorded replies of llama-3`.
    pub fn describe(&self) -> String {
        let model = self.added.iter().find_map(|added| match &added.source {
            AddedFrom::Model { model, recorded, .. } => Some((model, *recorded)),
            _ => None,
        });
        match model {
            Some((model, true)) => format!("{}, recorded replies of {model}", self.form.method()),
            Some((model, false)) => format!("{}, by {model}", self.form.method()),
            None => self.form.to_string(),
        }
    }
}

/// Merges lists: the first passage of each, then the second of each, until `depth`. A passage already in the result is skipped, and its
/// list loses that turn. Each passage is returned with the number of the list that had it first.
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
