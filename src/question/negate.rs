//! Reads a plain statement: finds its finite verb, and whether it is already negative.

use super::clause::{Clause, Finite, affirm};
use super::deny::deny;
use super::subject::{Relatives, Tagged, opens_relative};
use super::verbs::Form;
use super::words::{Case, Part, Word, sentence};
use super::{lexicon as lex, verbs, words};

/// The parts of a statement.
pub(super) struct Read {
    pub(super) clause: Clause,
    /// True if the statement denies its clause.
    pub(super) negative: bool,
}

impl Read {
    /// The opposite of the statement that was read.
    pub(super) fn opposite(&self) -> Option<String> {
        if self.negative { Some(affirm(&self.clause)) } else { deny(&self.clause) }
    }
}

/// Reads a statement; `None` if no finite verb is found.
pub(super) fn read(words: &[Word], case: Case) -> Option<Read> {
    let words = expand_contractions(words);
    let start = opener_end(&words);
    let opens = words.first()?.key.clone();
    if start == 0
        && (lex::is_subordinator(&opens)
            || lex::is_conjunction(&opens)
            || matches!(opens.as_str(), "as" | "that" | "yes"))
    {
        return None;
    }
    let (opener, body) = words.split_at(start);
    let tags = words::parts(body, case);
    let tagged = Tagged { words: body, parts: &tags };
    let ordered = imperative(opener, tagged, case);
    match finite_at(tagged) {
        Some(at) if ordered.is_some() && tagged.part(at) != Some(Part::Auxiliary) => ordered,
        Some(at) => Some(read_at(opener, body, at, case)),
        None => ordered,
    }
}

/// The statement as a sentence. If it came from a question, words of questions and denials are replaced.
pub(super) fn restate(words: &[Word], read: &Read) -> String {
    let polar = words.iter().any(|word| matches!(word.key.as_str(), "ever" | "any" | "yet"));
    if polar && !read.negative { affirm(&read.clause) } else { sentence(words) }
}

/// Splits `it's` into `it is`, so that *not* can follow.
fn expand_contractions(words: &[Word]) -> Vec<Word> {
    let mut expanded = Vec::with_capacity(words.len() + 2);
    for word in words {
        let cut = word.core.char_indices().rev().find(|(_, c)| matches!(c, '\'' | '’')).map(|(at, _)| at);
        let verb = match word.key.as_str() {
            "it's" | "that's" | "there's" | "he's" | "she's" => "is",
            "i'm" => "am",
            key if key.ends_with("'re") => "are",
            key if key.ends_with("'ll") => "will",
            key if key.ends_with("'ve") => "have",
            _ => "",
        };
        match cut {
            Some(cut) if !verb.is_empty() => {
                let mut pronoun = word.with_core(&word.core[..cut]);
                pronoun.after.clear();
                let mut tail = Word::plain(verb);
                tail.after.clone_from(&word.after);
                expanded.extend([pronoun, tail]);
            }
            _ => expanded.push(word.clone()),
        }
    }
    expanded
}

/// The length of an adverbial opener that a comma closes.
fn opener_end(words: &[Word]) -> usize {
    let Some(first) = words.first() else { return 0 };
    let key = first.key.as_str();
    let opens = (lex::is_preposition(key) && key != "like")
        || lex::is_subordinator(key)
        || lex::is_adverb(key)
            && !matches!(key, "most" | "more" | "less" | "not" | "only" | "just" | "better")
        || matches!(
            key,
            "to" | "given" | "assuming" | "considering" | "today" | "overall" | "so" | "well" | "nowadays"
        )
        || (verbs::is_participle(key) && !words.iter().take(4).any(|word| lex::is_auxiliary(&word.key)))
        || first.ends_phrase();
    let comma = words.iter().take(30).position(Word::ends_phrase).map_or(0, |comma| comma + 1);
    let clause = words.get(comma).is_some_and(|next| {
        !lex::is_preposition(&next.key) && !lex::is_conjunction(&next.key) && !lex::is_relative(&next.key)
    });
    if opens && clause { comma } else { 0 }
}

fn read_at(opener: &[Word], body: &[Word], at: usize, case: Case) -> Read {
    let verb = &body[at];
    // `Russia Is a Friend` and `Russia is a Friend`: inserted words follow the verb.
    let case = match case {
        Case::Title if !verb.is_capitalised() => Case::Sentence,
        other => other,
    };
    let mut rest = body[at + 1..].to_vec();
    let contracted = lex::contracted_negative(&verb.key);
    let auxiliary = contracted.unwrap_or(&verb.key).to_owned();
    let denied =
        rest.iter().take(3).position(|word| word.key == "not").filter(|at| {
            rest[..*at].iter().all(|word| lex::is_adverb(&word.key)) && !is_not_only(&rest, *at)
        });
    let negative = contracted.is_some() || denied.is_some();
    if contracted.is_none()
        && let Some(at) = denied
    {
        rest.remove(at);
    }
    if auxiliary == "ought" && rest.first().is_some_and(|first| first.key != "to") {
        rest.insert(0, Word::plain("to"));
    }
    let next_verb = rest.iter().position(|word| !lex::is_adverb(&word.key)).filter(|at| {
        let key = rest[*at].key.as_str();
        verbs::is_sure_base(key) || verbs::is_either_base(key) || (negative && *at < 2)
    });
    let obliges = rest.first().is_some_and(|first| first.key == "to");
    let perfect =
        !obliges && rest.iter().take(3).any(|word| verbs::is_participle(&word.key) || word.key == "been");
    let subject = body[..at].to_vec();
    let clause = |subject: Vec<Word>, finite: Finite, rest: Vec<Word>| Clause {
        opener: opener.to_vec(),
        subject,
        finite,
        rest,
        case,
    };
    let clause = match auxiliary.as_str() {
        key if lex::is_do(key)
            && let Some(base) = next_verb =>
        {
            let finite = Finite::Lexical {
                adverbs: rest[..base].to_vec(),
                base: rest[base].with_core(&rest[base].key),
                form: verbs::form_of_do(key),
            };
            clause(subject, finite, rest[base + 1..].to_vec())
        }
        key if lex::is_have(key) && !perfect => {
            let form = if key == "had" {
                Form::Past
            } else if key == "has" {
                Form::Third
            } else {
                Form::Base
            };
            clause(subject, Finite::Lexical { adverbs: Vec::new(), base: verb.with_core("have"), form }, rest)
        }
        key if lex::is_auxiliary(key) && !lex::is_do(key) => {
            let written = if contracted.is_some() {
                super::words::in_case(key, if verb.is_capitalised() { case } else { Case::Sentence })
            } else {
                verb.core.clone()
            };
            clause(subject, Finite::Auxiliary(written), rest)
        }
        key => {
            let (base, form) = lexical(key);
            let base = verb.with_core(&base);
            let start = at - body[..at].iter().rev().take_while(|word| lex::is_adverb(&word.key)).count();
            let adverbs = body[start.max(1)..at].to_vec();
            clause(body[..start.max(1)].to_vec(), Finite::Lexical { adverbs, base, form }, rest)
        }
    };
    unless_never(clause, negative)
}

/// `not only … but also` and the like do not deny the clause.
fn is_not_only(rest: &[Word], at: usize) -> bool {
    rest.get(at + 1).is_some_and(|next| next.key == "only")
}

/// `X never does` and `X no longer does` deny before the verb.
fn unless_never(mut clause: Clause, negative: bool) -> Read {
    if let Finite::Lexical { adverbs, form, .. } = &mut clause.finite
        && let Some(at) = adverbs.iter().position(|word| word.key == "never")
    {
        if *form == Form::Past {
            adverbs.remove(at);
        } else {
            adverbs[at] = adverbs[at].with_core("sometimes");
        }
        return Read { clause, negative: true };
    }
    let length = clause.subject.len();
    if let Finite::Lexical { adverbs, .. } = &mut clause.finite
        && length > 2
        && clause.subject[length - 2].key == "no"
        && clause.subject[length - 1].key == "longer"
    {
        let longer = clause.subject.split_off(length - 2);
        adverbs.extend(longer.first().map(|no| no.with_core("still")));
        return Read { clause, negative: true };
    }
    Read { clause, negative }
}

fn lexical(key: &str) -> (String, Form) {
    if lex::is_do(key) {
        return ("do".into(), verbs::form_of_do(key));
    }
    if let Some(base) = verbs::base_of_third(key) {
        return (base, Form::Third);
    }
    if verbs::is_sure_base(key) || verbs::is_either_base(key) {
        return (key.to_owned(), Form::Base);
    }
    match verbs::base_of_past(key) {
        Some(base) => (base, Form::Past),
        None => (key.to_owned(), Form::Base),
    }
}

/// True for words that are verbs at the beginning of a motion as often as they are nouns.
fn is_motion(key: &str) -> bool {
    matches!(
        key,
        "ban"
            | "tax"
            | "end"
            | "stop"
            | "scrap"
            | "fund"
            | "raise"
            | "cut"
            | "lower"
            | "free"
            | "defund"
            | "boycott"
    )
}

/// `Abolish zoos`: an order, denied by `do not`.
fn imperative(opener: &[Word], tagged: Tagged<'_>, case: Case) -> Option<Read> {
    let first = tagged.words.first()?;
    let sure = verbs::is_sure_base(&first.key);
    let object = match tagged.part(1)? {
        Part::Determiner => sure || verbs::is_either_base(&first.key),
        _ if !(sure || is_motion(&first.key)) => false,
        Part::Plural | Part::Noun | Part::Adjective => true,
        Part::Either => sure,
        part => part == Part::Gerund && tagged.words.len() < 4,
    };
    if !object || first.ends_phrase() || tagged.words.len() > 20 {
        return None;
    }
    let finite = Finite::Lexical { adverbs: Vec::new(), base: first.with_core(&first.key), form: Form::Base };
    let clause = Clause {
        opener: opener.to_vec(),
        subject: Vec::new(),
        finite,
        rest: tagged.words[1..].to_vec(),
        case,
    };
    Some(Read { clause, negative: false })
}

const ENOUGH: f32 = 2.5;
/// For a sentence without an auxiliary.
const ENOUGH_ALONE: f32 = 1.8;

/// The position of the finite verb of the main clause.
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
    // `the choices people make contribute`: the verb of a relative clause without `that` comes before the finite verb.
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
