//! A main clause taken apart — opener, subject, finite verb, rest — and said again, affirmed or denied.
//!
//! Owns where *not* goes and which words change with it. It must not find the parts: `invert` and `negate` do.

use super::comparison;
use super::contrast;
use super::lexicon as lex;
use super::parts;
use super::polarity;
use super::tokens::{Case, Word, in_case, sentence};
use super::verbs::{self, Form};

/// The finite verb of a clause.
#[derive(Clone, Debug)]
pub(super) enum Finite {
    /// *Be*, *have* with a participle, or a modal; as written, without *not*.
    Auxiliary(String),
    /// Any other verb: the adverbs before it, its base and its form.
    Lexical {
        adverbs: Vec<Word>,
        /// In its base form, with the punctuation of the verb.
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
    /// What follows the finite verb, *not* left out.
    pub(super) rest: Vec<Word>,
    pub(super) case: Case,
}

impl Clause {
    /// The clause as an affirmative sentence; words that live only in questions and denials are replaced.
    pub(super) fn affirmed(&self) -> String {
        let mut rest = polarity::affirmative(self);
        let finite = match &self.finite {
            Finite::Auxiliary(word) => vec![Word::plain(word)],
            Finite::Lexical { adverbs, base, form } => {
                rest = self.agreeing(rest, *form);
                let verb = self.conjugated(base, *form);
                adverbs.iter().filter(|adverb| adverb.key != "ever").cloned().chain([verb]).collect()
            }
        };
        self.said(&self.subject, &finite, &rest)
    }

    /// The opposite of the clause; `None` if none can be said by rule.
    pub(super) fn denied(&self) -> Option<String> {
        if contrast::joins_clauses(&self.rest, self.case) {
            return None;
        }
        if let Some(swapped) = comparison::swapped(self) {
            return Some(swapped);
        }
        if let Some(subject) = contrast::denied_subject(self) {
            return subject.map(|(subject, rest)| self.said(&subject, &self.finite_words(), &rest));
        }
        if let Some(rest) = contrast::denied_object(self) {
            return Some(self.said(&self.subject, &self.finite_words(), &rest));
        }
        let not = |word: &str| Word::plain(&in_case(word, self.case));
        let (finite, tail) = match &self.finite {
            Finite::Auxiliary(word) => {
                let (adverb, rest) = contrast::negator(&self.rest);
                (self.with_negator(word, adverb), rest)
            }
            Finite::Lexical { adverbs, base, form } => {
                let (adverb, kept) = contrast::negator(adverbs);
                let mut finite = match adverb {
                    "not" => vec![not(verbs::support(*form)), not("not")],
                    other => other.split(' ').map(not).collect(),
                };
                finite.extend(kept);
                let form = if adverb == "not" { Form::Base } else { *form };
                finite.push(self.conjugated(base, form));
                (finite, self.agreeing(self.rest.clone(), form))
            }
        };
        let tail = if self.is_there() && finite.last().is_some_and(|last| last.key == "not") {
            contrast::nothing_there(tail, self.case)
        } else {
            contrast::denied_again(tail, self.case)
        };
        let finite = match tail.first() {
            Some(first) if self.is_there() && first.key == "no" => &finite[..finite.len() - 1],
            _ => &finite[..],
        };
        Some(self.said(&self.subject, finite, &tail))
    }

    fn with_negator(&self, auxiliary: &str, negator: &str) -> Vec<Word> {
        if auxiliary.eq_ignore_ascii_case("can") && negator == "not" {
            return vec![Word::plain(&in_case("cannot", self.case))];
        }
        [auxiliary]
            .into_iter()
            .map(Word::plain)
            .chain(negator.split(' ').map(|word| Word::plain(&in_case(word, self.case))))
            .collect()
    }

    fn conjugated(&self, base: &Word, form: Form) -> Word {
        base.with_core(&in_case(&verbs::conjugate(&base.key, form), self.case))
    }

    /// The finite verb in its own form.
    pub(super) fn finite_words(&self) -> Vec<Word> {
        match &self.finite {
            Finite::Auxiliary(word) => vec![Word::plain(word)],
            Finite::Lexical { adverbs, base, form } => {
                adverbs.iter().cloned().chain([self.conjugated(base, *form)]).collect()
            }
        }
    }

    /// One sentence from the opener of this clause and the given parts.
    pub(super) fn said(&self, subject: &[Word], finite: &[Word], rest: &[Word]) -> String {
        sentence(self.opener.iter().chain(subject).chain(finite).chain(rest))
    }

    /// True for `there is …`.
    pub(super) fn is_there(&self) -> bool {
        matches!(self.subject.as_slice(), [only] if only.key == "there")
            && matches!(&self.finite, Finite::Auxiliary(word) if lex::is_be(&word.to_lowercase()))
    }

    /// Gives the second of two coordinated verbs the form of the first: `helps and protects`.
    fn agreeing(&self, rest: Vec<Word>, form: Form) -> Vec<Word> {
        let Finite::Lexical { base: first, .. } = &self.finite else {
            return rest;
        };
        let tags = parts::parts(&rest, self.case);
        let mut nested = matches!(first.key.as_str(), "help" | "let" | "make");
        let mut agreed = rest.clone();
        for (at, word) in rest.iter().enumerate() {
            // The verb of an infinitive or of an inner clause keeps its own form.
            nested |= matches!(
                tags.get(at),
                Some(
                    parts::Part::To
                        | parts::Part::Relative
                        | parts::Part::Subordinator
                        | parts::Part::Auxiliary
                )
            );
            let joined = at > 0 && matches!(rest[at - 1].key.as_str(), "and" | "or" | "but");
            let direct = at == 1;
            if (nested && !direct) || !joined {
                continue;
            }
            let sure = verbs::is_sure_base(&word.key)
                && tags.get(at + 1).is_some_and(|next| *next != parts::Part::Preposition)
                || (direct && (verbs::is_sure_base(&word.key) || verbs::is_either_base(&word.key)));
            if sure && form != Form::Base {
                agreed[at] = word.with_core(&in_case(&verbs::conjugate(&word.key, form), self.case));
            }
        }
        agreed
    }
}
