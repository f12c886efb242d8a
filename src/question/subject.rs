//! Where the subject of a question ends and its predicate begins.
//!
//! Owns the scan of the words behind a modal, *do* or *have*; behind *be* it is `predicate`'s part. It must not build
//! statements. Each scan scores every place once, by the words beside it; a score below `ENOUGH` is no answer.

use super::gerunds::takes_complement;
use super::lexicon as lex;
use super::parts::Part;
use super::tokens::Word;
use super::verbs;

/// Below this no place is better than a guess.
pub(super) const ENOUGH: f32 = 1.0;

/// A sentence with the part of each word; both slices have one length.
#[derive(Clone, Copy)]
pub(super) struct Tagged<'a> {
    pub(super) words: &'a [Word],
    pub(super) parts: &'a [Part],
}

impl Tagged<'_> {
    pub(super) fn part(&self, at: usize) -> Option<Part> {
        self.parts.get(at).copied()
    }

    pub(super) fn key(&self, at: usize) -> &str {
        self.words.get(at).map_or("", |word| word.key.as_str())
    }

    /// The part before `at`, looking through adverbs.
    fn anchor(&self, at: usize) -> Option<Part> {
        self.adverbs_before(at).checked_sub(1).and_then(|before| self.part(before))
    }

    /// The first word of a run of adverbs that ends before `at`.
    pub(super) fn adverbs_before(&self, at: usize) -> usize {
        let mut start = at;
        loop {
            let paired = start > 3
                && self.part(start - 1) == Some(Part::Conjunction)
                && self.part(start - 2) == Some(Part::Adverb)
                && self.part(start) == Some(Part::Adverb);
            if start > 1 && self.part(start - 1) == Some(Part::Adverb) {
                start -= 1;
            } else if paired {
                start -= 2;
            } else {
                return start;
            }
        }
    }
}

/// Which relative clauses are open: each still owes its own finite verb.
#[derive(Default)]
pub(super) struct Relatives {
    owed: bool,
}

impl Relatives {
    /// Takes in the word at `at`; true if a verb there would belong to a relative clause.
    pub(super) fn owes(&mut self, tagged: Tagged<'_>, at: usize) -> bool {
        // `the skills they need`: a clause without its `that`.
        let bare = matches!(tagged.key(at), "they" | "we" | "you" | "i" | "he" | "she" | "others")
            && at > 0
            && matches!(tagged.part(at - 1), Some(Part::Noun | Part::Plural));
        if bare || (tagged.part(at) == Some(Part::Relative) && at > 0) {
            self.owed = true;
        }
        self.owed
    }

    pub(super) fn paid(&mut self) {
        self.owed = false;
    }
}

/// The length of a subject that is a pronoun alone.
pub(super) fn pronoun_subject(tagged: Tagged<'_>) -> Option<usize> {
    let pronoun = tagged.part(0) == Some(Part::Pronoun)
        && !matches!(
            tagged.key(0),
            "some" | "any" | "all" | "most" | "many" | "few" | "both" | "each" | "either" | "such"
        );
    // `everyone in the room`, `those without work` go on.
    let personal = matches!(tagged.key(0), "i" | "you" | "we" | "they" | "he" | "she" | "it" | "there");
    let goes_on = match tagged.part(1) {
        Some(Part::Conjunction | Part::Relative) => true,
        Some(Part::Preposition) => !personal || tagged.key(1) == "of",
        _ => false,
    };
    let stops = !goes_on;
    (pronoun && stops).then_some(1)
}

/// After a modal or *do*: the place where the predicate begins (its adverbs included).
pub(super) fn before_base_verb(tagged: Tagged<'_>) -> Option<usize> {
    if let Some(end) = pronoun_subject(tagged) {
        return (end < tagged.words.len()).then_some(end);
    }
    let mut best: Option<(f32, usize)> = None;
    let mut relatives = Relatives::default();
    for at in 1..tagged.words.len() {
        let owed = relatives.owes(tagged, at);
        if tagged.part(at) == Some(Part::Subordinator) && best.is_some_and(|(top, _)| top >= ENOUGH) {
            break;
        }
        let score = base_verb_score(tagged, at);
        if owed {
            let finite =
                tagged.part(at) == Some(Part::Auxiliary) || score > 1.0 || opens_relative(tagged, at);
            // A bare `be` is never the verb of a relative clause.
            let bare =
                tagged.key(at) == "be" && !matches!(tagged.part(at - 1), Some(Part::To | Part::Auxiliary));
            if finite && tagged.part(at) != Some(Part::Relative) {
                relatives.paid();
            }
            if !bare {
                continue;
            }
        }
        if best.is_none_or(|(top, _)| score > top) {
            best = Some((score, at));
        }
        if best.is_some_and(|(top, _)| top >= 2.5) {
            break;
        }
    }
    best.filter(|(score, _)| *score >= ENOUGH).map(|(_, at)| tagged.adverbs_before(at))
}

/// True for the verb of a relative clause: by its form, or because it follows `who`, `that` or their adverb.
pub(super) fn opens_relative(tagged: Tagged<'_>, at: usize) -> bool {
    let follows = tagged.part(tagged.adverbs_before(at) - 1) == Some(Part::Relative);
    let verbal = matches!(tagged.part(at), Some(Part::Noun | Part::Either | Part::Verb | Part::Participle));
    (follows && verbal) || is_third(tagged, at)
}

fn is_third(tagged: Tagged<'_>, at: usize) -> bool {
    tagged.part(at) == Some(Part::Plural) && verbs::base_of_third(tagged.key(at)).is_some()
}

fn base_verb_score(tagged: Tagged<'_>, at: usize) -> f32 {
    use Part::{Adjective, Adverb, Either, Noun, Participle, Plural, Preposition, To, Verb};
    let Some(part) = tagged.part(at) else {
        return 0.0;
    };
    let mut score: f32 = match part {
        Verb => 3.0,
        Either => 1.0,
        Adjective if verbs::is_either_base(tagged.key(at)) => 1.0,
        Noun | Adjective => 0.0,
        // `have` and `do` are tagged as auxiliaries.
        Part::Auxiliary if matches!(tagged.key(at), "have" | "do") => 3.5,
        _ => return 0.0,
    };
    match tagged.anchor(at) {
        Some(Part::Determiner | Preposition | To | Part::Conjunction | Part::Auxiliary) | None => {
            return 0.0;
        }
        Some(Adjective) if takes_complement(tagged.key(0)) => {}
        Some(Adjective | Participle | Verb) => score -= 1.0,
        Some(Plural) => score += 1.0,
        _ => {}
    }
    if tagged.part(at - 1) == Some(Adverb) && part != Noun && part != Adjective {
        score += 2.0;
    } else if tagged.part(at - 1) == Some(Adverb) {
        score += 1.0;
    }
    match tagged.part(at + 1) {
        Some(next) if next.opens_object() => score += if part == Noun { 1.2 } else { 1.5 },
        Some(Noun | Adjective) if part == Either => score += 0.3,
        Some(To | Adverb | Plural | Part::Gerund | Part::Trailing) => score += 0.5,
        Some(Preposition) if tagged.key(at + 1) != "of" => score += 0.5,
        Some(Preposition) => score -= 1.5,
        Some(Verb) if tagged.key(at) != "be" && !verbs::takes_bare_infinitive(tagged.key(at)) => score -= 2.0,
        Some(Either) if part == Either && tagged.part(at - 1) != Some(Plural) => score -= 0.5,
        Some(Part::Relative) if tagged.key(at + 1) == "that" => score += 1.5,
        Some(Part::Auxiliary) if matches!(tagged.key(at + 1), "have" | "do") => score -= 2.0,
        Some(Part::Subordinator) if matches!(part, Noun | Plural) => score += 1.2,
        None if part == Noun => score += 1.0,
        None if part == Either || part == Verb => score += 0.5,
        _ => {}
    }
    score
}

/// After *have*: the place of the participle, its adverbs included.
pub(super) fn before_participle(tagged: Tagged<'_>) -> Option<usize> {
    let participle = |at: usize| {
        let key = tagged.key(at);
        matches!(key, "been" | "had" | "done")
            || (verbs::is_participle(key) && tagged.part(at) != Some(Part::Aside))
            || matches!(
                key,
                "put" | "cut" | "set" | "let" | "read" | "hit" | "cost" | "run" | "become" | "come"
            )
    };
    let pronoun = pronoun_subject(tagged);
    let mut fallback = None;
    for at in 1..tagged.words.len() {
        let anchored = match tagged.anchor(at) {
            Some(part) => part.ends_phrase() || (part == Part::Adjective && pronoun.is_none()),
            None => false,
        };
        if !participle(at) || !anchored {
            continue;
        }
        let start = tagged.adverbs_before(at);
        if tagged.key(at + 1) != "by" {
            return Some(start);
        }
        fallback = fallback.or(Some(start));
    }
    fallback
}

/// True for a main-verb use of *have* in a question: `Have we the right`.
pub(super) fn possesses(tagged: Tagged<'_>) -> bool {
    pronoun_subject(tagged).is_some()
        && tagged.part(1) == Some(Part::Determiner)
        && lex::is_determiner(tagged.key(1))
}
