//! Opposites that need more than a plain *not*: not all, no longer, never, and second verbs of the same subject.
//!
//! Owns the exceptions to `Clause::denied`. It must not find the parts of a clause.

use super::clause::{Clause, Finite};
use super::lexicon as lex;
use super::parts::{Part, is_plural, parts};
use super::tokens::{Case, Word, in_case};
use super::verbs;

/// The subject of the opposite where a quantifier carries the negation: `All …` → `Not all …`, `Some …` → `No …`.
/// The inner `None` says that the opposite cannot be said.
pub(super) fn denied_subject(clause: &Clause) -> Option<Option<(Vec<Word>, Vec<Word>)>> {
    let (first, tail) = clause.subject.split_first()?;
    if first.aside {
        return None;
    }
    // `Some people working more than others …` is about the working, not about some people.
    let gerund = tail.iter().take(2).any(|word| word.key.ends_with("ing"));
    let second = tail.first().map_or("", |word| word.key.as_str());
    let put = |core: &str, tail: &[Word]| {
        let mut subject: Vec<Word> =
            core.split(' ').map(|word| Word::plain(&in_case(word, clause.case))).collect();
        if let (Some(start), true) = (subject.first_mut(), first.before.len() <= 2) {
            start.before = first.before.clone();
        }
        subject.extend_from_slice(tail);
        Some(Some((subject, clause.rest.clone())))
    };
    match first.key.as_str() {
        "all" | "every" | "everyone" | "everybody" | "everything" | "both" => {
            if clause.rest.iter().take(2).any(|word| word.key == "not") {
                return None;
            }
            put(&format!("not {}", first.key), tail)
        }
        "many" => put("not many", tail),
        "only" => put("not only", tail),
        "no" if second == "one" => {
            put("some people", tail.get(1..).unwrap_or(&[])).filter(|_| clause.can_be_plural())
        }
        "no" => put("some", tail),
        "none" if second == "of" => put("some", tail),
        "nothing" => put("something", tail),
        "nobody" => put("somebody", tail),
        "some" if second != "of" && !gerund => put("no", tail),
        "not"
            if matches!(
                second,
                "all" | "every" | "everyone" | "everybody" | "everything" | "many" | "only"
            ) =>
        {
            Some(Some((tail.to_vec(), clause.rest.clone())))
        }
        "any" | "anyone" | "anybody" | "anything" | "neither" | "few" | "hardly" | "nor" => Some(None),
        _ => None,
    }
}

/// The rest of the opposite where the object is already negative: `has no use` → `has some use`.
pub(super) fn denied_object(clause: &Clause) -> Option<Vec<Word>> {
    let at = clause.rest.iter().take(4).position(|word| {
        matches!(word.key.as_str(), "no" | "nothing" | "nobody" | "never" | "nowhere") && !word.ends_phrase()
    })?;
    let replace = |word: &str| {
        let mut rest = clause.rest.clone();
        rest[at] = rest[at].with_core(&in_case(word, clause.case));
        rest
    };
    let after = clause.rest.get(at + 1).map_or("", |word| word.key.as_str());
    let before = &clause.rest[..at];
    if before.iter().any(|word| lex::is_preposition(&word.key) || lex::is_conjunction(&word.key)) {
        return None;
    }
    Some(match (clause.rest[at].key.as_str(), after) {
        ("no", "longer") => {
            let mut rest = replace("still");
            rest.remove(at + 1);
            rest
        }
        ("no", "such") => {
            let mut rest = clause.rest.clone();
            rest[at] = rest[at].with_core(&in_case("such", clause.case));
            rest[at + 1] = rest[at + 1].with_core(&in_case("a", clause.case));
            rest
        }
        ("no", "more" | "better" | "less" | "worse" | "different") => {
            let mut rest = clause.rest.clone();
            rest.remove(at);
            rest
        }
        ("no", noun) if clause.is_copular() && at == 0 => {
            if is_plural(noun) {
                let mut rest = clause.rest.clone();
                rest.remove(at);
                rest
            } else {
                replace(if noun.starts_with(['a', 'e', 'i', 'o', 'u']) { "an" } else { "a" })
            }
        }
        ("no", _) => replace("some"),
        ("nothing", _) => replace("something"),
        ("nobody", _) => replace("somebody"),
        ("never", _) if clause.is_perfect() => {
            let mut rest = clause.rest.clone();
            rest.remove(at);
            rest
        }
        ("never", _) => replace("sometimes"),
        _ => return None,
    })
}

/// How the words after the verb are denied: the negator, and the words without those it replaces.
pub(super) fn negator(rest: &[Word]) -> (&'static str, Vec<Word>) {
    let Some((first, tail)) = rest.split_first() else {
        return ("not", Vec::new());
    };
    match first.key.as_str() {
        "still" => ("no longer", tail.to_vec()),
        "ever" | "sometimes" => ("never", tail.to_vec()),
        "indeed" | "definitely" | "certainly" | "surely" => ("not", tail.to_vec()),
        "already" => ("not yet", tail.to_vec()),
        _ => {
            // `Is terrorism ever …` can keep `ever` deeper in: `can we ever be`.
            let ever = rest.iter().take(4).position(|word| word.key == "ever");
            match ever {
                Some(at) => {
                    let mut kept = rest.to_vec();
                    kept.remove(at);
                    ("never", kept)
                }
                None => ("not", rest.to_vec()),
            }
        }
    }
}

/// `there is not evidence` → `there is no evidence`; an article keeps `not`.
pub(super) fn nothing_there(mut rest: Vec<Word>, case: Case) -> Vec<Word> {
    let Some(first) = rest.first() else {
        return rest;
    };
    let key = first.key.clone();
    match key.as_str() {
        "any" | "some" => rest[0] = first.with_core(&in_case("no", case)),
        "a" | "an" | "the" | "enough" | "too" | "more" | "much" | "many" | "such" | "only" | "always"
        | "one" | "sufficient" | "anything" | "something" | "necessarily" | "really" | "actually"
        | "still" | "currently" | "just" | "also" | "less" | "this" | "that" => {}
        "been" | "being" => {}
        _ if lex::is_adverb(&key) || lex::is_preposition(&key) || key.chars().any(|c| c.is_ascii_digit()) => {
        }
        _ => rest.insert(0, Word::plain(&in_case("no", case))),
    }
    rest
}

/// `is cheap and is safe`: a second auxiliary of the same subject is denied like the first.
pub(super) fn denied_again(rest: Vec<Word>, case: Case) -> Vec<Word> {
    let third = |word: &Word| verbs::base_of_third(&word.key).filter(|base| verbs::is_sure_base(base));
    let at = rest.windows(3).position(|three| {
        three[0].key == "and"
            && (lex::is_auxiliary(&three[1].key) || third(&three[1]).is_some())
            && !matches!(three[2].key.as_str(), "not" | "never" | "no")
    });
    let Some(at) = at else { return rest };
    if has_inner_clause(&rest[..at]) {
        return rest;
    }
    let mut denied = rest;
    let not = Word::plain(&in_case("not", case));
    let (second, tail) = (denied[at + 1].clone(), at + 2);
    match third(&second) {
        Some(base) => {
            denied.splice(
                at + 1..tail,
                [Word::plain(&in_case("does", case)), not, second.with_core(&in_case(&base, case))],
            );
        }
        None => denied.insert(tail, not),
    }
    denied
}

/// True for two whole clauses side by side: `X is good and Y is bad`. Denying one is not the opposite.
pub(super) fn joins_clauses(rest: &[Word], case: Case) -> bool {
    let tags = parts(rest, case);
    rest.iter().enumerate().any(|(at, word)| {
        let splice = word.after.contains([',', ';'])
            && matches!(tags.get(at + 1), Some(Part::Pronoun))
            && matches!(tags.get(at + 2), Some(Part::Auxiliary));
        let joined = matches!(word.key.as_str(), "and" | "but") && !has_inner_clause(&rest[..at]) && {
            let tail = tags.get(at + 1..).unwrap_or(&[]);
            let verb = tail.iter().position(|part| *part == Part::Auxiliary);
            verb.is_some_and(|verb| {
                verb > 0
                    && !tail[..verb].iter().any(|part| {
                        matches!(
                            part,
                            Part::Relative | Part::Subordinator | Part::Adverb | Part::Preposition | Part::To
                        )
                    })
                    && !rest[at + 1..=at + 1 + verb].iter().any(Word::ends_phrase)
            })
        };
        (splice && !has_inner_clause(&rest[..=at])) || joined
    })
}

fn has_inner_clause(words: &[Word]) -> bool {
    words.iter().any(|word| {
        lex::is_relative(&word.key)
            || lex::is_subordinator(&word.key)
            || lex::is_auxiliary(&word.key)
            || lex::is_wh(&word.key)
            || word.key == "than"
    })
}

impl Clause {
    /// `X is no Y`, but not `there is no Y`.
    fn is_copular(&self) -> bool {
        !self.is_there()
            && matches!(&self.finite, Finite::Auxiliary(word) if lex::is_be(&word.to_lowercase()))
    }

    fn is_perfect(&self) -> bool {
        matches!(&self.finite, Finite::Auxiliary(word) if lex::is_have(&word.to_lowercase()))
    }

    fn can_be_plural(&self) -> bool {
        match &self.finite {
            Finite::Auxiliary(word) => lex::is_modal(&word.to_lowercase()),
            Finite::Lexical { form, .. } => *form != verbs::Form::Third,
        }
    }
}
