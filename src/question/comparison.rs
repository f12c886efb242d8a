//! Opposites by exchange: more good than harm, B better than A.
//!
//! Owns the swap of two compared sides. It must not find the parts of a clause.

use super::clause::{Clause, Finite};
use super::lexicon as lex;
use super::parts::is_plural;
use super::tokens::{Case, Word, in_case};
use super::verbs;

/// The opposite by exchange: `more harm than good`, or `A is better than B` with its sides swapped.
pub(super) fn swapped(clause: &Clause) -> Option<String> {
    let rest = harm_and_good(&clause.rest).or_else(|| good_and_harm_elsewhere(&clause.rest));
    if let Some(rest) = rest {
        return Some(clause.said(&clause.subject, &clause.finite_words(), &rest));
    }
    compared(clause)
}

fn harm_and_good(rest: &[Word]) -> Option<Vec<Word>> {
    const PAIRS: [(&str, &str); 5] = [
        ("harm", "good"),
        ("benefit", "harm"),
        ("benefits", "drawbacks"),
        ("pros", "cons"),
        ("advantages", "disadvantages"),
    ];
    let more = rest.windows(4).position(|four| {
        four[0].key == "more"
            && four[2].key == "than"
            && PAIRS.iter().any(|&(a, b)| {
                let pair = (four[1].key.as_str(), four[3].key.as_str());
                pair == (a, b) || pair == (b, a)
            })
    })?;
    exchange(rest, more + 1, more + 3)
}

fn good_and_harm_elsewhere(rest: &[Word]) -> Option<Vec<Word>> {
    // `more of a blessing than a curse`
    let more = rest.windows(7).position(|words| {
        let keys: Vec<&str> = words.iter().map(|word| word.key.as_str()).collect();
        keys[..3] == ["more", "of", "a"] && keys[4..6] == ["than", "a"]
    })?;
    exchange(rest, more + 3, more + 6)
}

fn exchange(rest: &[Word], left: usize, right: usize) -> Option<Vec<Word>> {
    let mut swapped = rest.to_vec();
    let (a, b) = (rest.get(left)?, rest.get(right)?);
    swapped[left] = a.with_core(&b.core);
    swapped[right] = b.with_core(&a.core);
    Some(swapped)
}

/// `A is better than B` → `B is better than A`, where both are plain noun phrases.
fn compared(clause: &Clause) -> Option<String> {
    let Finite::Auxiliary(finite) = &clause.finite else {
        return None;
    };
    let finite_key = finite.to_lowercase();
    if !lex::is_be(&finite_key) || clause.subject.len() > 12 {
        return None;
    }
    let than = clause.rest.iter().position(|word| word.key == "than")?;
    let (measure, other) = (&clause.rest[..than], &clause.rest[than + 1..]);
    if !is_comparative(measure) || !is_nominal(&clause.subject) {
        return None;
    }
    let end = other
        .iter()
        .position(|word| {
            matches!(
                word.key.as_str(),
                "for" | "in" | "at" | "when" | "because" | "on" | "as" | "if" | "to" | "during"
            ) || word.before.starts_with('(')
        })
        .unwrap_or(other.len());
    // `right to vote`: an infinitive belongs to its noun.
    let end = if other.get(end).is_some_and(|word| word.key == "to") { other.len() } else { end };
    let (other, trailing) = other.split_at(end);
    // What trails may belong to both sides: `… with China on trade than … with China on trade`.
    if clause.subject.len() > 5 && !trailing.is_empty() {
        return None;
    }
    if !is_nominal(other)
        || other.iter().any(|word| word.ends_phrase() && !std::ptr::eq(word, &other[other.len() - 1]))
    {
        return None;
    }
    let was_plural = matches!(finite_key.as_str(), "are" | "were");
    let becomes_plural = phrase_is_plural(other);
    if was_plural != becomes_plural
        && measure.iter().any(|word| word.key == "a" || word.key == "an" || is_plural(&word.key))
    {
        return None;
    }
    let finite = Word::plain(&in_case(agree(&finite_key, becomes_plural), case_like(finite, clause.case)));
    let mut subject = other.to_vec();
    let mut object = clause.subject.clone();
    close(&mut subject, "");
    if let (Some(last), Some(first)) = (object.last_mut(), other.last()) {
        last.after.push_str(if trailing.is_empty() { "" } else { &first.after });
    }
    lower_first(&mut object, clause.case, clause.opener.is_empty());
    let rest: Vec<Word> =
        measure.iter().chain([&clause.rest[than]]).chain(&object).chain(trailing).cloned().collect();
    Some(clause.said(&subject, &[finite], &rest))
}

fn is_comparative(measure: &[Word]) -> bool {
    const OTHERS: [&str; 3] = ["better", "worse", "superior"];
    let starts = measure.iter().position(|word| {
        !matches!(
            word.key.as_str(),
            "a" | "an" | "much" | "far" | "generally" | "even" | "significantly" | "inherently"
        )
    });
    let Some(start) = starts else { return false };
    let first = measure[start].key.as_str();
    let graded = OTHERS.contains(&first)
        || matches!(first, "more" | "less")
        || (first.len() > 4
            && first.ends_with("er")
            && !matches!(first, "other" | "rather" | "never" | "either"));
    graded
        && measure.len() <= start + 4
        && !measure.iter().any(|word| word.ends_phrase() || word.key == "likely")
}

/// True for a phrase that can change places: no pronoun, no clause.
fn is_nominal(words: &[Word]) -> bool {
    const REFUSED: [&str; 34] = [
        "it", "he", "she", "they", "we", "i", "you", "them", "him", "us", "me", "there", "this", "that",
        "these", "those", "which", "who", "ever", "before", "what", "others", "any", "not", "ones", "one",
        "people", "its", "their", "all", "most", "some", "every", "or",
    ];
    !words.is_empty()
        && !words.iter().any(|word| {
            lex::is_auxiliary(&word.key)
                || (REFUSED.contains(&word.key.as_str()) && !(word.key == "people" && words.len() > 1))
        })
}

/// True where the head of a noun phrase takes `are`.
pub(super) fn phrase_is_plural(words: &[Word]) -> bool {
    // A gerund is singular whatever its object: `eating apples is …`.
    if words.len() > 1 && words[0].key.ends_with("ing") {
        return false;
    }
    let head_end = words
        .iter()
        .position(|word| lex::is_preposition(&word.key) || lex::is_relative(&word.key) || word.key == "to")
        .unwrap_or(words.len());
    let head = &words[..head_end];
    head.iter().any(|word| word.key == "and") || head.last().is_some_and(|last| is_plural(&last.key))
}

fn agree(finite: &str, plural: bool) -> &str {
    match (finite, plural) {
        ("is" | "are", false) => "is",
        ("is" | "are", true) => "are",
        ("was" | "were", false) => "was",
        ("was" | "were", true) => "were",
        (other, _) => other,
    }
}

fn case_like(written: &str, case: Case) -> Case {
    let capital = written.chars().next().is_some_and(char::is_uppercase);
    if case == Case::Title && !capital { Case::Sentence } else { case }
}

fn close(words: &mut [Word], mark: &str) {
    if let Some(last) = words.last_mut() {
        let keep: String =
            last.after.chars().filter(|c| matches!(c, ')' | ']' | '"' | '”' | '\'' | '’')).collect();
        last.after = keep + mark;
    }
}

/// Lowers the capital of a phrase that opened its sentence, unless it is a name.
pub(super) fn lower_first(words: &mut [Word], case: Case, opened: bool) {
    if case != Case::Sentence || !opened {
        return;
    }
    let next_is_name = words.get(1).is_some_and(Word::is_capitalised);
    let Some(first) = words.first_mut() else {
        return;
    };
    let rest_is_lower = first.core.chars().skip(1).all(|c| !c.is_uppercase() && !c.is_ascii_digit());
    let key = first.key.as_str();
    let common = lex::is_determiner(key)
        || lex::is_preposition(key)
        || lex::is_adjective(key)
        || lex::is_pronoun(key) && key != "i"
        || verbs::is_any_form(key)
        || is_plural(key)
        || ["ing", "tion", "ism", "ment", "ness", "ity", "ship", "ence", "ance", "ogy", "omy"]
            .iter()
            .any(|end| key.ends_with(end));
    let article = matches!(key, "the" | "a" | "an" | "our" | "this" | "these");
    if rest_is_lower && common && (article || !next_is_name) {
        *first = first.with_core(&first.core.to_lowercase());
    }
}
