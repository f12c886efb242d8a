//! The opposite of a clause.

use super::clause::{Clause, Finite};
use super::verbs::Form;
use super::words::{Case, Part, Word, in_case, is_plural, parts};
use super::{lexicon as lex, verbs};

/// The subject of the opposite if a quantifier carries the negation: `All …` → `Not all …`, `Some …` → `No …`.
/// `Some(None)` if no opposite can be formed.
pub(super) fn deny_subject(clause: &Clause) -> Option<Option<(Vec<Word>, Vec<Word>)>> {
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

/// The rest of the opposite if the object is already negative: `has no use` → `has some use`.
pub(super) fn deny_object(clause: &Clause) -> Option<Vec<Word>> {
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

/// The negator for the words after the verb, and the words that remain.
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
            // `ever` may also come later: `can we ever be`.
            let ever = rest.iter().take(4).position(|word| word.key == "ever");
            match ever {
                Some(at) => {
                    let mut others = rest.to_vec();
                    others.remove(at);
                    ("never", others)
                }
                None => ("not", rest.to_vec()),
            }
        }
    }
}

/// `there is not evidence` → `there is no evidence`; an article keeps `not`.
pub(super) fn deny_existence(mut rest: Vec<Word>, case: Case) -> Vec<Word> {
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
pub(super) fn deny_second_auxiliary(rest: Vec<Word>, case: Case) -> Vec<Word> {
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

/// True for two coordinated clauses: `X is good and Y is bad`. Denying only one of them is not the opposite.
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

/// The opposite of the clause; `None` if no rule gives one.
pub(super) fn deny(clause: &Clause) -> Option<String> {
    if joins_clauses(&clause.rest, clause.case) {
        return None;
    }
    if let Some(swapped) = swap_sides(clause) {
        return Some(swapped);
    }
    if let Some(subject) = deny_subject(clause) {
        return subject.map(|(subject, rest)| clause.sentence_of(&subject, &clause.finite_words(), &rest));
    }
    if let Some(rest) = deny_object(clause) {
        return Some(clause.sentence_of(&clause.subject, &clause.finite_words(), &rest));
    }
    let not = |word: &str| Word::plain(&in_case(word, clause.case));
    let (finite, tail) = match &clause.finite {
        Finite::Auxiliary(word) => {
            let (adverb, rest) = negator(&clause.rest);
            (clause.with_negator(word, adverb), rest)
        }
        Finite::Lexical { adverbs, base, form } => {
            let (adverb, others) = negator(adverbs);
            let mut finite = match adverb {
                "not" => vec![not(verbs::support(*form)), not("not")],
                other => other.split(' ').map(not).collect(),
            };
            finite.extend(others);
            let form = if adverb == "not" { Form::Base } else { *form };
            finite.push(clause.conjugate(base, form));
            (finite, clause.agree_second_verb(clause.rest.clone(), form))
        }
    };
    let tail = if clause.is_existential() && finite.last().is_some_and(|last| last.key == "not") {
        deny_existence(tail, clause.case)
    } else {
        deny_second_auxiliary(tail, clause.case)
    };
    let finite = match tail.first() {
        Some(first) if clause.is_existential() && first.key == "no" => &finite[..finite.len() - 1],
        _ => &finite[..],
    };
    Some(clause.sentence_of(&clause.subject, finite, &tail))
}

/// The opposite by exchange: `more harm than good`, or `A is better than B` with its sides swapped.
pub(super) fn swap_sides(clause: &Clause) -> Option<String> {
    let rest = harm_and_good(&clause.rest).or_else(|| good_and_harm_elsewhere(&clause.rest));
    if let Some(rest) = rest {
        return Some(clause.sentence_of(&clause.subject, &clause.finite_words(), &rest));
    }
    swap_comparison(clause)
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

/// `A is better than B` → `B is better than A`, if both are plain noun phrases.
fn swap_comparison(clause: &Clause) -> Option<String> {
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
    // Trailing words may belong to both sides: `… with China on trade than … with China on trade`.
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
    Some(clause.sentence_of(&subject, &[finite], &rest))
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

/// True for a phrase that can swap places: it holds no pronoun and no clause.
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

/// True if the head of a noun phrase takes `are`.
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
        || ["ing", "tion", "ism", "ment", "ness", "ity", "ship", "ence", "ance", "ogy", "omy", "work"]
            .iter()
            .any(|end| key.ends_with(end));
    let article = matches!(key, "the" | "a" | "an" | "our" | "this" | "these");
    if rest_is_lower && common && (article || !next_is_name) {
        *first = first.with_core(&first.core.to_lowercase());
    }
}
