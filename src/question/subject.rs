//! Finds the end of a question's subject and the beginning of its predicate.

use super::lexicon::{is_activity, is_progressive, takes_complement, takes_two_objects};
use super::words::{Part, Word};
use super::{lexicon as lex, verbs};

/// A lower score is only a guess.
pub(super) const ENOUGH: f32 = 1.0;
/// A sentence with the part of speech of each word; both slices have the same length.
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

    /// The part of speech before `at`, skipping adverbs.
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

/// The open relative clauses: each still lacks its finite verb.
#[derive(Default)]
pub(super) struct Relatives {
    owed: bool,
}

impl Relatives {
    /// Reads the word at `at`; true if a verb there would belong to a relative clause.
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

/// The length of a subject that consists of a pronoun.
pub(super) fn pronoun_subject(tagged: Tagged<'_>) -> Option<usize> {
    let pronoun = tagged.part(0) == Some(Part::Pronoun)
        && !matches!(
            tagged.key(0),
            "some" | "any" | "all" | "most" | "many" | "few" | "both" | "each" | "either" | "such"
        );
    // `everyone in the room`, `those without work`: the subject continues.
    let personal = matches!(tagged.key(0), "i" | "you" | "we" | "they" | "he" | "she" | "it" | "there");
    let goes_on = match tagged.part(1) {
        Some(Part::Conjunction | Part::Relative) => true,
        Some(Part::Preposition) => !personal || tagged.key(1) == "of",
        _ => false,
    };
    let stops = !goes_on;
    (pronoun && stops).then_some(1)
}

/// After a modal or *do*: the beginning of the predicate, including its adverbs.
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

/// After *have*: the position of the participle, including its adverbs.
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

/// After *be*: the beginning of the predicate.
pub(super) fn before_predicate(tagged: Tagged<'_>) -> Option<usize> {
    if let Some(end) = pronoun_subject(tagged) {
        return (end < tagged.words.len()).then_some(end);
    }
    let mut best: Option<(f32, usize)> = None;
    let mut relatives = Relatives::default();
    let mut complement = takes_complement(tagged.key(0));
    for at in 1..tagged.words.len() {
        let owed = relatives.owes(tagged, at);
        if owed {
            let finite = matches!(tagged.part(at), Some(Part::Auxiliary | Part::Verb))
                || opens_relative(tagged, at)
                || (tagged.part(at) == Some(Part::Participle)
                    && tagged.part(at - 1).is_some_and(Part::ends_phrase)
                    && verbs::base_of_past(tagged.key(at)).is_some());
            if finite {
                relatives.paid();
            }
            continue;
        }
        let mut score = predicate_score(tagged, at);
        if complement && score > 0.0 && tagged.part(at) == Some(Part::Adjective) {
            complement = false;
            score -= 2.0;
        }
        if best.is_none_or(|(top, _)| score > top) {
            best = Some((score, at));
        }
    }
    match best {
        Some((score, at)) if score > ENOUGH => Some(at),
        // A preposition alone is weak evidence: in `… for porn anti-feminist` the predicate comes after it.
        Some((ENOUGH, at)) if !ends_in_unknown(tagged) => Some(at),
        Some((ENOUGH, _)) => None,
        _ => last_noun(tagged),
    }
}

/// `Are zoos prisons`, `Is taxation theft`: the last word is the predicate if nothing else can be.
fn last_noun(tagged: Tagged<'_>) -> Option<usize> {
    use Part::{Either, Noun, Plural};
    let last = tagged.words.len().checked_sub(1).filter(|last| *last > 0)?;
    let fits =
        |at: usize| matches!(tagged.part(at), Some(Noun | Plural | Either | Part::Gerund | Part::Aside));
    let before = matches!(tagged.part(last - 1), Some(Noun | Plural | Either | Part::Gerund));
    (fits(last) && before && last <= 3).then_some(last)
}

fn ends_in_unknown(tagged: Tagged<'_>) -> bool {
    let Some(last) = tagged.words.len().checked_sub(1).filter(|last| *last > 0) else {
        return true;
    };
    let vague =
        |part: Option<Part>| matches!(part, Some(Part::Noun | Part::Either | Part::Plural | Part::Gerund));
    vague(tagged.part(last)) && vague(tagged.part(last - 1)) && !tagged.words[last].is_capitalised()
}

fn predicate_score(tagged: Tagged<'_>, at: usize) -> f32 {
    use Part::{Adjective, Adverb, Determiner, Gerund, Participle, Preposition, To};
    let (Some(part), Some(before)) = (tagged.part(at), tagged.part(at - 1)) else {
        return 0.0;
    };
    let next = tagged.part(at + 1);
    let key = tagged.key(at);
    let penalty = match before {
        Adjective | Participle => 1.5,
        // A gerund may be a verb whose object or complement follows.
        Gerund
            if part == Adverb
                && matches!(next, Some(Participle | Adjective))
                && !takes_complement(tagged.key(at - 1)) =>
        {
            0.0
        }
        Gerund if is_verbal_gerund(tagged, at - 1) && part != Adjective => 2.5,
        Gerund if takes_complement(tagged.key(at - 1)) => 2.5,
        Part::Trailing
            if at > 1 && tagged.part(at - 2) == Some(Gerund) && is_verbal_gerund(tagged, at - 2) =>
        {
            2.5
        }
        Part::Verb => 1.5,
        _ if before.ends_phrase() => 0.0,
        _ => return 0.0,
    };
    let score = match part {
        // `these days`, `this year`: a time, not a predicate.
        Determiner if names_time(tagged.key(at + 1)) => 0.0,
        Determiner if takes_two_objects(tagged.key(0)) => 2.0,
        Determiner if key.ends_with("'s") || key.ends_with("s'") => 1.0,
        Determiner => 3.5,
        Adjective => adjective_score(tagged, at),
        Participle if key == "being" && !is_bare_so_far(tagged, at) => 0.5,
        Participle => match next {
            Some(Preposition | To)
                if matches!(
                    key,
                    "compared" | "based" | "related" | "caused" | "associated" | "called" | "posed"
                ) =>
            {
                2.4
            }
            Some(Adjective) if names_judgment(key) => 2.5,
            Some(Part::Noun | Part::Plural | Adjective) => 1.0,
            Some(Determiner) => 3.0,
            _ => 2.5,
        },
        Adverb if key == "than" => 0.0,
        Adverb => match next {
            Some(Gerund) => 3.6,
            Some(Adjective | Participle | Determiner | Adverb | Preposition | Part::Either) => 3.0,
            None => 2.0,
            _ => 1.5,
        },
        Gerund if matches!(before, Gerund) => 0.5,
        Gerund if is_activity(key) => 0.5,
        Gerund if is_progressive(key) && (key != "having" || is_bare_so_far(tagged, at)) => 3.8,
        Gerund => match next {
            Some(Determiner | Part::Pronoun) => 3.8,
            Some(Adverb) => 3.0,
            Some(Preposition | To) if is_bare_so_far(tagged, at) => 2.45,
            Some(Preposition | To) => 1.8,
            Some(_) => 1.5,
            None => 1.5,
        },
        _ if names_part(tagged, at) => 2.9,
        Part::Trailing if key == "here" && next == Some(To) => 3.0,
        Part::Either if verbs::is_participle(key) && next == Some(Preposition) => 2.5,
        Preposition if matches!(key, "of" | "with" | "for" | "between" | "from" | "by" | "as" | "than") => {
            0.0
        }
        Preposition if key == "due" => 2.4,
        Preposition | To if opens_idiom(tagged, at) => 3.0,
        Preposition => 1.0,
        To if names_aim(tagged) => {
            if AIMS.contains(&tagged.key(at - 1)) {
                1.1
            } else {
                3.0
            }
        }
        Part::Pronoun if matches!(key, "nothing" | "something" | "everything" | "one") => 3.0,
        Part::Pronoun => 1.0,
        Part::Plural if before == Part::Plural && matches!(next, None | Some(Preposition)) => 2.0,
        _ => 0.0,
    };
    score - penalty
}

fn names_time(key: &str) -> bool {
    matches!(
        key,
        "day"
            | "days"
            | "week"
            | "month"
            | "year"
            | "years"
            | "decade"
            | "century"
            | "time"
            | "times"
            | "coming"
            | "moment"
    )
}

fn is_verbal_gerund(tagged: Tagged<'_>, at: usize) -> bool {
    let before = at.checked_sub(1).and_then(|at| tagged.part(at));
    matches!(before, None | Some(Part::Preposition | Part::Conjunction | Part::Adverb | Part::To))
}

/// True if the subject so far has no preposition to which an -ing word could belong.
fn is_bare_so_far(tagged: Tagged<'_>, at: usize) -> bool {
    !tagged.parts[..at].iter().any(|part| matches!(part, Part::Preposition | Part::Relative | Part::Gerund))
}

/// Participles that an adjective follows: `considered harmful`.
fn names_judgment(key: &str) -> bool {
    matches!(
        key,
        "deemed" | "considered" | "made" | "kept" | "left" | "called" | "declared" | "rendered" | "seen"
    )
}

fn adjective_score(tagged: Tagged<'_>, at: usize) -> f32 {
    use Part::{
        Adjective, Adverb, Aside, Conjunction, Noun, Participle, Plural, Preposition, Relative, Subordinator,
        To,
    };
    if tagged.words[at].ends_phrase() {
        return 3.0;
    }
    match tagged.part(at + 1) {
        None
        | Some(
            Preposition
            | To
            | Relative
            | Subordinator
            | Adverb
            | Part::Pronoun
            | Part::Trailing
            | Aside
            | Part::Determiner,
        ) => 3.0,
        Some(Conjunction) => 2.8,
        // A bare plural can be the predicate: `are good places`.
        Some(Plural) => 1.2,
        // `legitimate work` at the very end is a predicate when nothing else can be.
        Some(Noun | Part::Either) if at + 2 == tagged.words.len() => 1.05,
        Some(Noun | Adjective | Part::Either | Part::Gerund | Participle) => 0.9,
        Some(_) => 1.0,
    }
}

/// Predicates that begin with a preposition and are set phrases.
fn opens_idiom(tagged: Tagged<'_>, at: usize) -> bool {
    let first = tagged.key(at);
    let second = tagged.key(at + 1);
    matches!(
        (first, second),
        ("to", "blame")
            | ("at", "risk" | "fault" | "odds" | "stake" | "war")
            | ("under", "threat" | "attack" | "control")
            | ("on", "par" | "track")
            | ("out", "of")
            | ("up", "to")
            | (
                "in",
                "favor"
                    | "favour"
                    | "need"
                    | "danger"
                    | "decline"
                    | "line"
                    | "crisis"
                    | "trouble"
                    | "conflict"
                    | "our"
            )
            | ("beyond", _)
            | ("against", _)
            | ("worth", _)
    )
}

const AIMS: [&str; 18] = [
    "goal",
    "aim",
    "purpose",
    "point",
    "role",
    "function",
    "job",
    "answer",
    "solution",
    "duty",
    "objective",
    "mission",
    "task",
    "intention",
    "priority",
    "way",
    "feature",
    "features",
];

/// `Is doubt part of faith`: nouns that open a predicate without an article.
fn names_part(tagged: Tagged<'_>, at: usize) -> bool {
    const NOUNS: [&str; 9] =
        ["part", "evidence", "proof", "examples", "example", "forms", "sources", "victims", "symbols"];
    NOUNS.contains(&tagged.key(at)) && matches!(tagged.key(at + 1), "of" | "that")
}

/// `Is the purpose of prison to punish`: the head noun requires an infinitive.
fn names_aim(tagged: Tagged<'_>) -> bool {
    (0..tagged.words.len().min(4)).any(|at| AIMS.contains(&tagged.key(at)))
}
