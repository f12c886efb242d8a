//! From the person asked to the person who answers: *you* becomes *I* or *me*, *your* becomes *my*.
//!
//! Owns the change of person in a question. It must not touch statements, and leaves a *you* that means anyone.

use super::lexicon as lex;
use super::parts::{Part, parts};
use super::tokens::{Case, Word, in_case};
use super::verbs;

/// Nouns whose *your* is the answerer's own, even where nothing else addresses anyone.
const PERSONAL: &str = "spouse partner spouse/partner household job career family opinion view community area employer \
neighborhood neighbourhood town city doctor vote income boss workplace retirement religion faith identity";

/// The words of a question without its auxiliary, as the answerer would say them.
pub(super) fn answered(words: &[Word], case: Case) -> Vec<Word> {
    if !addresses_answerer(words) {
        return words.to_vec();
    }
    changed(words, case)
}

fn changed(words: &[Word], case: Case) -> Vec<Word> {
    let tags = parts(words, case);
    let mut answered: Vec<Word> = Vec::with_capacity(words.len());
    let mut after_subject = false;
    for (at, word) in words.iter().enumerate() {
        let subject = is_subject(words, &tags, at);
        let core = match word.key.as_str() {
            "you" if subject => Some("I".to_owned()),
            "you" => Some(in_case("me", case)),
            "your" => Some(in_case("my", case)),
            "yours" => Some(in_case("mine", case)),
            "yourself" => Some(in_case("myself", case)),
            "yourselves" => Some(in_case("ourselves", case)),
            "you're" => Some("I'm".to_owned()),
            "you've" => Some("I've".to_owned()),
            "you'd" => Some("I'd".to_owned()),
            "you'll" => Some("I'll".to_owned()),
            "are" if after_subject => Some(in_case("am", case)),
            "were" if after_subject => Some(in_case("was", case)),
            "aren't" if after_subject => Some(in_case("am not", case)),
            _ => None,
        };
        after_subject = word.key == "you" && subject;
        answered.push(core.map_or_else(|| word.clone(), |core| word.with_core(&core)));
    }
    answered
}

fn addresses_answerer(words: &[Word]) -> bool {
    let Some(first) = words.first() else {
        return false;
    };
    if first.key.starts_with("you") {
        return true;
    }
    let before =
        |at: usize| at.checked_sub(1).and_then(|at| words.get(at)).map_or("", |word| word.key.as_str());
    let object = words.iter().enumerate().any(|(at, word)| {
        word.key == "you"
            && (lex::is_preposition(before(at)) || before(at) == "to" || verbs::is_any_form(before(at)))
    });
    let own = words.windows(3).any(|three| {
        three[0].key == "your"
            && three[1..]
                .iter()
                .any(|noun| PERSONAL.split(' ').any(|own| own == noun.key.trim_end_matches("'s")))
    });
    object || own
}

fn is_subject(words: &[Word], tags: &[Part], at: usize) -> bool {
    let Some(before) = at.checked_sub(1) else {
        return true;
    };
    if matches!(
        tags.get(before),
        Some(Part::Preposition | Part::To | Part::Verb | Part::Gerund | Part::Either)
    ) {
        return false;
    }
    let opens_clause =
        matches!(tags.get(before), Some(Part::Relative | Part::Subordinator | Part::Auxiliary))
            || matches!(words[before].key.as_str(), "that" | "than" | "as");
    let acts = words.get(at + 1).is_some_and(|next| {
        lex::is_auxiliary(&next.key) || lex::is_adverb(&next.key) || verbs::is_any_form(&next.key)
    });
    opens_clause || acts
}

/// The words behind `Do you think that`, where every *you* is the person asked.
pub(super) fn believed(words: &[Word], case: Case) -> Vec<Word> {
    changed(words, case)
}
