//! Where the finite verb of a statement stands.
//!
//! Owns the scan for it: auxiliaries first, then the forms of other verbs. It must not say what the verb means.

use super::parts::Part;
use super::subject::{Relatives, Tagged, opens_relative};
use super::verbs;

const ENOUGH: f32 = 2.5;
/// For a sentence that holds no auxiliary at all.
const ENOUGH_ALONE: f32 = 1.8;

/// The place of the finite verb of the main clause.
pub(super) fn finite_at(tagged: Tagged<'_>) -> Option<usize> {
    let mut best: Option<(f32, usize)> = None;
    let mut relatives = Relatives::default();
    for at in 1..tagged.words.len() {
        let owed = relatives.owes(tagged, at);
        let part = tagged.part(at)?;
        let auxiliary = part == Part::Auxiliary && tagged.part(at - 1) != Some(Part::To);
        let score = if auxiliary { 4.0 } else { lexical_score(tagged, at) };
        if owed {
            if (score > 0.5 || opens_relative(tagged, at)) && part != Part::Relative {
                relatives.paid();
            }
            continue;
        }
        let top = best.map_or(0.0, |(top, _)| top);
        if part == Part::Subordinator && top >= ENOUGH {
            break;
        }
        if auxiliary {
            if top < 3.0 {
                best = Some((score, at));
            }
            break;
        }
        if score > top {
            best = Some((score, at));
        }
    }
    let enough = if tagged.parts.contains(&Part::Auxiliary) { ENOUGH } else { ENOUGH_ALONE };
    best.filter(|(score, _)| *score >= enough).map(|(_, at)| at)
}

fn lexical_score(tagged: Tagged<'_>, at: usize) -> f32 {
    use Part::{Adverb, Auxiliary, Determiner, Gerund, Plural, Preposition, Pronoun, To};
    let (Some(part), key) = (tagged.part(at), tagged.key(at)) else {
        return 0.0;
    };
    if key == "be" || tagged.key(at - 1) == "be" {
        return 0.0;
    }
    if tagged.words[at].is_capitalised() && tagged.words[at - 1].is_capitalised() && part == Part::Noun {
        return 0.0;
    }
    let start = tagged.adverbs_before(at);
    let before = tagged.part(start - 1);
    // `the choices people make contribute`: the verb of a bare relative clause stands before the finite verb.
    let nested =
        before == Some(Part::Verb) && start == at && !verbs::takes_bare_infinitive(tagged.key(at - 1));
    // `the rich pay`, `the poor suffer`
    let class = before == Some(Part::Adjective) && start > 1 && tagged.key(start - 2) == "the";
    if !(before.is_some_and(Part::ends_phrase) || nested || class) || tagged.words[at - 1].ends_phrase() {
        return 0.0;
    }
    let plural = class
        || matches!(before, Some(Plural))
        || matches!(tagged.key(start - 1), "we" | "they" | "you" | "i");
    let pronoun = before == Some(Pronoun);
    let mut score: f32 = if let Some(base) = verbs::base_of_third(key).filter(|_| part == Plural) {
        let sure: f32 = if verbs::is_sure_base(&base) { 3.0 } else { 1.2 };
        if plural { sure - 0.5 } else { sure }
    } else if part == Part::Verb || verbs::is_sure_base(key) && part != Adverb {
        if plural {
            3.0
        } else if nested {
            2.5
        } else {
            1.8
        }
    } else if part == Part::Either {
        if plural { 1.5 } else { 0.5 }
    } else if verbs::base_of_past(key).is_some() && tagged.key(at + 1) != "by" {
        if verbs::is_participle(key) { 2.0 } else { 3.0 }
    } else if part == Part::Noun && plural {
        // An unknown word between a plural and an object is taken for a verb.
        0.5
    } else {
        return 0.0;
    };
    if pronoun || start < at {
        score += 1.0;
    }
    score += match tagged.part(at + 1) {
        Some(Determiner | Pronoun) => 1.5,
        Some(Part::Relative) if tagged.key(at + 1) == "that" => 1.0,
        Some(Preposition) if tagged.key(at + 1) == "of" => -1.5,
        Some(To)
            if part != Part::Verb
                && !verbs::base_of_third(key).is_some_and(|base| verbs::is_sure_base(&base)) =>
        {
            -0.5
        }
        Some(Plural) => 0.7,
        Some(Part::Noun) if part == Plural => 0.7,
        Some(To | Preposition | Adverb | Gerund | Part::Adjective | Part::Trailing) => 0.5,
        Some(Auxiliary) => -3.0,
        Some(Part::Verb) if !verbs::takes_bare_infinitive(key) => -2.0,
        None if part == Part::Verb => 0.5,
        _ => 0.0,
    };
    score
}
