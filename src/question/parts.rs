//! What each word can be in its sentence, by lexicon and ending.
//!
//! Owns the part of speech of single words. It must not decide where a subject ends: `subject` and `finite` do.

use super::lexicon as lex;
use super::tokens::{Case, Word};
use super::verbs;

/// A part of speech, as fine as the rules need it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Part {
    /// Articles, possessives, quantifiers, and nouns with `'s`.
    Determiner,
    Preposition,
    /// The word *to*.
    To,
    Conjunction,
    /// That, which, who, where.
    Relative,
    /// Because, if, when.
    Subordinator,
    /// A pronoun that is a noun phrase.
    Pronoun,
    Auxiliary,
    /// Not, and adverbs that stand before a predicate.
    Adverb,
    /// Adverbs that stay with what is before them.
    Trailing,
    Adjective,
    /// A form in -ed or an irregular participle.
    Participle,
    Gerund,
    /// A bare verb.
    Verb,
    /// A bare verb or a noun.
    Either,
    Noun,
    Plural,
    /// Inside brackets or quotes, or bare punctuation.
    Aside,
}

impl Part {
    /// True for words that a noun phrase can end in.
    pub(super) fn ends_phrase(self) -> bool {
        use Part::{Aside, Either, Gerund, Noun, Plural, Pronoun, Trailing};
        matches!(self, Noun | Plural | Pronoun | Either | Aside | Trailing | Gerund)
    }

    /// True for words that open a noun phrase after a verb.
    pub(super) fn opens_object(self) -> bool {
        matches!(self, Part::Determiner | Part::Pronoun)
    }
}

/// The part of each word of a sentence.
pub(super) fn parts(words: &[Word], case: Case) -> Vec<Part> {
    let mut parts: Vec<Part> = Vec::with_capacity(words.len());
    for (at, word) in words.iter().enumerate() {
        let next = words.get(at + 1).map(|next| next.key.as_str());
        let proper = case == Case::Sentence && at > 0 && word.is_capitalised();
        let part = part(word, parts.last().copied(), next, proper);
        parts.push(part);
    }
    parts
}

fn part(word: &Word, before: Option<Part>, next: Option<&str>, proper: bool) -> Part {
    let key = word.key.as_str();
    let next = next.unwrap_or("");
    if word.aside || key.is_empty() {
        return Part::Aside;
    }
    if key == "to" {
        return Part::To;
    }
    // `WHO`, `US`, `IT` in a sentence of small letters are names.
    if proper && word.core.len() > 1 && word.core.chars().all(|c| c.is_ascii_uppercase()) {
        return Part::Noun;
    }
    if let Some(part) = closed_class(key, before, next) {
        return part;
    }
    if proper && lex::is_adjective(key) && (next.is_empty() || matches!(next, "with" | "for" | "to" | "than"))
    {
        return Part::Adjective;
    }
    if proper || key.chars().any(|c| c.is_ascii_digit()) {
        return if is_plural(key) { Part::Plural } else { Part::Noun };
    }
    let human_right = key == "right" && before == Some(Part::Noun) && next.is_empty();
    if human_right { Part::Noun } else { open_class(key, before) }
}

fn closed_class(key: &str, before: Option<Part>, next: &str) -> Option<Part> {
    let possessive = (key.ends_with("'s") || key.ends_with("s'"))
        && !matches!(key, "it's" | "that's" | "there's" | "he's" | "she's" | "what's" | "let's" | "here's");
    let after_noun = before.is_some_and(Part::ends_phrase);
    Some(match key {
        _ if possessive => Part::Determiner,
        "that" if after_noun => Part::Relative,
        "this" | "that" | "these" | "those" if stands_alone(next) => Part::Pronoun,
        "no" | "some" | "any" | "all" | "most" | "many" | "few" | "both" | "each" | "either" | "such"
            if next == "of" =>
        {
            Part::Pronoun
        }
        "all" | "both" if before == Some(Part::Pronoun) => Part::Adverb,
        "most" | "such" if matches!(next, "likely" | "important") => Part::Adverb,
        "no" if matches!(next, "longer" | "more" | "less" | "better" | "worse") => Part::Adverb,
        "longer" if before == Some(Part::Adverb) => Part::Adverb,
        "one" if !stands_alone(next) && !next.is_empty() => Part::Determiner,
        "little" if next == "more" => Part::Adverb,
        "due" if next == "to" => Part::Preposition,
        "not" => Part::Adverb,
        "so" if before == Some(Part::Gerund) => Part::Trailing,
        "so" if next != "that" => Part::Adverb,
        "rather" if next == "than" => Part::Conjunction,
        "such" if next == "as" => Part::Preposition,
        "as" if lex::is_adjective(next) && after_noun => Part::Adverb,
        "may" | "will" | "can" | "might" | "must" if before == Some(Part::Determiner) => Part::Noun,
        "like" if matches!(before, Some(Part::Pronoun | Part::To)) => Part::Either,
        _ if lex::is_auxiliary(key) || lex::contracted_negative(key).is_some() => Part::Auxiliary,
        "it's" | "that's" | "there's" | "he's" | "she's" => Part::Pronoun,
        _ if lex::is_determiner(key) => Part::Determiner,
        _ if lex::is_pronoun(key) => Part::Pronoun,
        _ if lex::is_subordinator(key) => Part::Subordinator,
        _ if lex::is_relative(key) || lex::is_wh(key) => Part::Relative,
        _ if lex::is_conjunction(key) => Part::Conjunction,
        _ if lex::is_preposition(key) => Part::Preposition,
        _ if lex::is_trailing_adverb(key) => Part::Trailing,
        _ => return None,
    })
}

fn stands_alone(next: &str) -> bool {
    next.is_empty()
        || lex::is_determiner(next)
        || lex::is_auxiliary(next)
        || lex::is_preposition(next)
        || lex::is_adverb(next)
        || matches!(next, "to" | "who" | "which" | "be")
}

fn open_class(key: &str, before: Option<Part>) -> Part {
    let after_noun = before.is_some_and(Part::ends_phrase);
    if matches!(key, "be" | "been" | "being") {
        return if key == "be" { Part::Verb } else { Part::Participle };
    }
    if lex::is_adverb(key) {
        return Part::Adverb;
    }
    if is_gerund(key) && !lex::is_adjective(key) {
        // `animal testing`, `drug testing`: the noun, unless it takes an object, which the callers weigh.
        return Part::Gerund;
    }
    if verbs::is_sure_base(key) && !matches!(before, Some(Part::Determiner | Part::Preposition)) {
        return Part::Verb;
    }
    if lex::is_adjective(key) {
        return Part::Adjective;
    }
    if before == Some(Part::To) && verbs::is_either_base(key) {
        return Part::Verb;
    }
    if verbs::is_either_base(key) || (verbs::is_sure_base(key) && !after_noun) {
        return Part::Either;
    }
    if verbs::is_participle(key) {
        return Part::Participle;
    }
    if is_plural(key) { Part::Plural } else { Part::Noun }
}

fn is_gerund(key: &str) -> bool {
    const NOUNS: [&str; 20] = [
        "bring",
        "cling",
        "sting",
        "swing",
        "fling",
        "wring",
        "thing",
        "king",
        "ring",
        "spring",
        "string",
        "wing",
        "sibling",
        "ceiling",
        "evening",
        "morning",
        "nothing",
        "something",
        "everything",
        "anything",
    ];
    key.len() > 4 && key.ends_with("ing") && !NOUNS.contains(&key)
}

/// True for nouns that take `are`: by ending, or by the short list of irregular plurals.
pub(super) fn is_plural(key: &str) -> bool {
    const IRREGULAR: [&str; 18] = [
        "people",
        "children",
        "men",
        "women",
        "media",
        "data",
        "police",
        "they",
        "we",
        "these",
        "those",
        "feet",
        "teeth",
        "mice",
        "criteria",
        "phenomena",
        "elites",
        "grandchildren",
    ];
    const SINGULAR: [&str; 24] = [
        "news",
        "politics",
        "economics",
        "physics",
        "mathematics",
        "ethics",
        "gas",
        "bias",
        "virus",
        "crisis",
        "basis",
        "process",
        "status",
        "campus",
        "bus",
        "christmas",
        "texas",
        "analysis",
        "always",
        "perhaps",
        "is",
        "was",
        "aids",
        "covid",
    ];
    IRREGULAR.contains(&key)
        || (key.len() > 2
            && key.ends_with('s')
            && !["ss", "us", "is", "'s"].iter().any(|end| key.ends_with(end))
            && !SINGULAR.contains(&key))
}
