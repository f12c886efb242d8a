//! Words that live in questions and denials only — *ever*, *any*, *yet*, *at all* — and what they are in an affirmation.
//!
//! Owns their replacement. It must not move words or touch the verb.

use super::clause::{Clause, Finite};
use super::lexicon as lex;
use super::tokens::{Word, in_case};
use super::verbs::Form;

/// What follows the finite verb, as it is said in an affirmative sentence.
pub(super) fn affirmative(clause: &Clause) -> Vec<Word> {
    let expletive = clause.is_there();
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
                    && !matches!(rest.last().map_or("", |word: &Word| word.key.as_str()), "have" | "be") =>
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
                    || rest.iter().any(|word: &Word| matches!(word.key.as_str(), "no" | "not" | "never")) =>
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

/// After a modal, *any* mostly means whichever: `should work with any country`.
fn is_modal(clause: &Clause) -> bool {
    matches!(&clause.finite, Finite::Auxiliary(word) if lex::is_modal(&word.to_lowercase()))
}

fn is_perfect_or_past(clause: &Clause) -> bool {
    match &clause.finite {
        Finite::Auxiliary(word) => lex::is_have(&word.to_lowercase()),
        Finite::Lexical { form, .. } => *form == Form::Past,
    }
}
