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

    /// Its two opposite perspectives, in their order; `None` unless there are two sides.
    pub fn both(&self) -> Option<[&str; 2]> {
        self.sides().map(|_| [self.perspectives[0].as_str(), self.perspectives[1].as_str()])
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

mod clause {
    //! The parts of a main clause: opener, subject, finite verb, rest.

    use super::verbs::Form;
    use super::words::{Case, Word, in_case, sentence};
    use super::{lexicon as lex, verbs, words};

    /// The finite verb of a clause.
    #[derive(Clone, Debug)]
    pub(super) enum Finite {
        /// *Be*, *have* with a participle, or a modal: as written, without *not*.
        Auxiliary(String),
        /// Any other verb: the adverbs before it, its base and its form.
        Lexical {
            adverbs: Vec<Word>,
            /// The verb in its base form, with its punctuation.
            base: Word,
            form: Form,
        },
    }

    /// A main clause without its negation.
    #[derive(Clone, Debug)]
    pub(super) struct Clause {
        /// Words before the subject, up to a comma; may be empty.
        pub(super) opener: Vec<Word>,
        pub(super) subject: Vec<Word>,
        pub(super) finite: Finite,
        /// The words after the finite verb, without *not*.
        pub(super) rest: Vec<Word>,
        pub(super) case: Case,
    }

    impl Clause {
        pub(super) fn with_negator(&self, auxiliary: &str, negator: &str) -> Vec<Word> {
            if auxiliary.eq_ignore_ascii_case("can") && negator == "not" {
                return vec![Word::plain(&in_case("cannot", self.case))];
            }
            [auxiliary]
                .into_iter()
                .map(Word::plain)
                .chain(negator.split(' ').map(|word| Word::plain(&in_case(word, self.case))))
                .collect()
        }

        pub(super) fn conjugate(&self, base: &Word, form: Form) -> Word {
            base.with_core(&in_case(&verbs::conjugate(&base.key, form), self.case))
        }

        /// The finite verb in its own form.
        pub(super) fn finite_words(&self) -> Vec<Word> {
            match &self.finite {
                Finite::Auxiliary(word) => vec![Word::plain(word)],
                Finite::Lexical { adverbs, base, form } => {
                    adverbs.iter().cloned().chain([self.conjugate(base, *form)]).collect()
                }
            }
        }

        /// One sentence from the opener of this clause and the given parts.
        pub(super) fn sentence_of(&self, subject: &[Word], finite: &[Word], rest: &[Word]) -> String {
            sentence(self.opener.iter().chain(subject).chain(finite).chain(rest))
        }

        /// True for `there is …`.
        pub(super) fn is_existential(&self) -> bool {
            matches!(self.subject.as_slice(), [only] if only.key == "there")
                && matches!(&self.finite, Finite::Auxiliary(word) if lex::is_be(&word.to_lowercase()))
        }

        /// Gives the second of two coordinated verbs the form of the first: `helps and protects`.
        pub(super) fn agree_second_verb(&self, rest: Vec<Word>, form: Form) -> Vec<Word> {
            let Finite::Lexical { base: first, .. } = &self.finite else {
                return rest;
            };
            let tags = words::parts(&rest, self.case);
            let mut nested = matches!(first.key.as_str(), "help" | "let" | "make");
            let mut agreed = rest.clone();
            for (at, word) in rest.iter().enumerate() {
                // A verb in an infinitive or an inner clause keeps its own form.
                nested |= matches!(
                    tags.get(at),
                    Some(
                        words::Part::To
                            | words::Part::Relative
                            | words::Part::Subordinator
                            | words::Part::Auxiliary
                    )
                );
                let joined = at > 0 && matches!(rest[at - 1].key.as_str(), "and" | "or" | "but");
                let direct = at == 1;
                if (nested && !direct) || !joined {
                    continue;
                }
                let sure = verbs::is_sure_base(&word.key)
                    && tags.get(at + 1).is_some_and(|next| *next != words::Part::Preposition)
                    || (direct && (verbs::is_sure_base(&word.key) || verbs::is_either_base(&word.key)));
                if sure && form != Form::Base {
                    agreed[at] = word.with_core(&in_case(&verbs::conjugate(&word.key, form), self.case));
                }
            }
            agreed
        }

        /// `X is no Y`, but not `there is no Y`.
        pub(super) fn is_copular(&self) -> bool {
            !self.is_existential()
                && matches!(&self.finite, Finite::Auxiliary(word) if lex::is_be(&word.to_lowercase()))
        }

        pub(super) fn is_perfect(&self) -> bool {
            matches!(&self.finite, Finite::Auxiliary(word) if lex::is_have(&word.to_lowercase()))
        }

        pub(super) fn can_be_plural(&self) -> bool {
            match &self.finite {
                Finite::Auxiliary(word) => lex::is_modal(&word.to_lowercase()),
                Finite::Lexical { form, .. } => *form != verbs::Form::Third,
            }
        }
    }

    /// The words after the finite verb, as in an affirmative sentence.
    pub(super) fn affirmative(clause: &Clause) -> Vec<Word> {
        let expletive = clause.is_existential();
        let mut rest = Vec::with_capacity(clause.rest.len());
        let mut words = clause.rest.iter().peekable();
        while let Some(word) = words.next() {
            match word.key.as_str() {
                "ever" if is_perfect_or_past(clause) => {}
                "ever" => rest.push(word.with_core(&in_case("sometimes", clause.case))),
                "yet" if words.peek().is_none() => {}
                "any"
                    if expletive
                        || words.peek().is_some_and(|next| {
                            matches!(next.key.as_str(), "good" | "better" | "worse" | "different" | "easier")
                        }) => {}
                "any" if words.peek().is_some_and(|next| matches!(next.key.as_str(), "longer" | "more")) => {
                    rest.push(word.with_core(&in_case("still", clause.case)));
                    words.next();
                }
                "any"
                    if is_modal(clause)
                        && !matches!(
                            rest.last().map_or("", |word: &Word| word.key.as_str()),
                            "have" | "be"
                        ) =>
                {
                    rest.push(word.clone());
                }
                // Free choice: `better than any other`, `a duty for any state`.
                "any"
                    if rest.last().is_some_and(|word: &Word| {
                        matches!(
                            word.key.as_str(),
                            "than" | "for" | "in" | "at" | "by" | "as" | "from" | "without"
                        )
                    }) || words.peek().is_some_and(|next| next.key == "other")
                        || rest
                            .iter()
                            .any(|word: &Word| matches!(word.key.as_str(), "no" | "not" | "never")) =>
                {
                    rest.push(word.clone());
                }
                "any" => rest.push(word.with_core(&in_case("some", clause.case))),
                "anymore" => rest.push(word.with_core(&in_case("still", clause.case))),
                "at" if words.peek().is_some_and(|next| next.key == "all") => {
                    words.next();
                }
                _ => rest.push(word.clone()),
            }
        }
        rest
    }

    /// After a modal, *any* usually means *whichever*: `should work with any country`.
    fn is_modal(clause: &Clause) -> bool {
        matches!(&clause.finite, Finite::Auxiliary(word) if lex::is_modal(&word.to_lowercase()))
    }

    fn is_perfect_or_past(clause: &Clause) -> bool {
        match &clause.finite {
            Finite::Auxiliary(word) => lex::is_have(&word.to_lowercase()),
            Finite::Lexical { form, .. } => *form == Form::Past,
        }
    }

    /// The clause as an affirmative sentence; words that occur only in questions and denials are replaced.
    pub(super) fn affirm(clause: &Clause) -> String {
        let mut rest = affirmative(clause);
        let finite = match &clause.finite {
            Finite::Auxiliary(word) => vec![Word::plain(word)],
            Finite::Lexical { adverbs, base, form } => {
                rest = clause.agree_second_verb(rest, *form);
                let verb = clause.conjugate(base, *form);
                adverbs.iter().filter(|adverb| adverb.key != "ever").cloned().chain([verb]).collect()
            }
        };
        clause.sentence_of(&clause.subject, &finite, &rest)
    }
}
