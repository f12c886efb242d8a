//! Turns a yes/no question into the clause that it asks about.

use super::clause::{Clause, Finite};
use super::subject::Tagged;
use super::words::{Case, Part, Word, in_case, parts};
use super::{lexicon as lex, subject, verbs, words};

/// The clause that a yes/no question asks about; `None` if the text is not a yes/no question or its subject is unclear.
pub(super) fn invert(words: &[Word], case: Case) -> Option<Clause> {
    let start = auxiliary_at(words)?;
    let (opener, question) = words.split_at(start);
    let (first, body) = question.split_first()?;
    let contracted = lex::contracted_negative(&first.key);
    let auxiliary = contracted.unwrap_or(&first.key).to_owned();
    let opener = answer_words(opener, case);
    let body = answer_words(body, case);
    let body = without_not(&auxiliary, body);
    let tags = words::parts(&body, case);
    let tagged = Tagged { words: &body, parts: &tags };
    let end = predicate_at(&auxiliary, tagged)?;
    let (mut subject, mut rest) = (body[..end].to_vec(), body[end..].to_vec());
    drop_trailing_not(&auxiliary, &subject, &mut rest);
    if offers_choice(&auxiliary, &subject, &rest) || starts_with_any(&subject) {
        return None;
    }
    if let Some(last) =
        subject.last_mut().filter(|_| rest.first().is_some_and(|word| !word.before.contains('(')))
    {
        // The comma that closes an aside before the verb stays only if another one opens the aside.
        let opened = body[..end - 1].iter().any(Word::ends_phrase);
        if !opened {
            last.after.retain(|c| c != ',');
        }
    }
    let finite = if lex::is_do(&auxiliary) || (lex::is_have(&auxiliary) && subject::possesses(tagged)) {
        lexical(&auxiliary, &mut rest)?
    } else {
        let agreed = agree_with(&auxiliary, &subject);
        let written = match case {
            Case::Sentence => agreed.to_owned(),
            _ => in_case(agreed, if first.is_capitalised() { case } else { Case::Sentence }),
        };
        Finite::Auxiliary(written)
    };
    Some(Clause { opener, subject, finite, rest, case })
}

/// The position of the auxiliary that opens the question, after an opener such as `In the long run,`.
pub(super) fn auxiliary_at(words: &[Word]) -> Option<usize> {
    let opens = |word: &Word| {
        lex::is_auxiliary(&word.key)
            || lex::contracted_negative(&word.key).is_some_and(|_| word.key != "cannot")
    };
    let first = words.first()?;
    if opens(first) {
        return Some(0);
    }
    let when = first.key == "when" && !words.get(1).is_some_and(opens);
    if lex::is_wh(&first.key) && !when {
        return None;
    }
    let comma = words.iter().take(40).position(|word| word.ends_phrase());
    let after = comma.map(|comma| comma + 1)?;
    let after = if words.get(after).is_some_and(opens) {
        after
    } else {
        (after..words.len().min(40)).find(|&at| words[at - 1].ends_phrase() && opens(&words[at]))?
    };
    let opener = &words[..after];
    let asks = opener
        .iter()
        .any(|word| lex::is_wh(&word.key) && word.key != "which" && word.key != "who" && word.key != "where");
    (!asks && !holds_statement(opener)).then_some(after)
}

/// True for `X is Y,` before an auxiliary: a statement with a tag, not an opener.
fn holds_statement(opener: &[Word]) -> bool {
    let Some(first) = opener.first() else {
        return false;
    };
    let adverbial = lex::is_subordinator(&first.key)
        || lex::is_preposition(&first.key)
        || lex::is_adverb(&first.key)
        || matches!(first.key.as_str(), "given" | "assuming" | "considering" | "to" | "supposing" | "when");
    !adverbial && opener.iter().any(|word| lex::is_auxiliary(&word.key))
}

fn predicate_at(auxiliary: &str, tagged: Tagged<'_>) -> Option<usize> {
    if lex::is_be(auxiliary) {
        subject::before_predicate(tagged)
    } else if lex::is_have(auxiliary) {
        if subject::possesses(tagged) { Some(1) } else { subject::before_participle(tagged) }
    } else if auxiliary == "ought" {
        (1..tagged.words.len()).find(|&at| tagged.part(at) == Some(Part::To))
    } else {
        subject::before_base_verb(tagged)
    }
}

/// `Is it not …`, `Should not we …`: a negative question asks whether the affirmative is true.
fn without_not(auxiliary: &str, mut body: Vec<Word>) -> Vec<Word> {
    let second = body.get(1).map_or("", |word| word.key.as_str());
    let leads = body.first().is_some_and(|word| word.key == "not");
    let gerund = second.ends_with("ing") || matches!(second, "all" | "every" | "only" | "everyone");
    if leads && !gerund && !auxiliary.is_empty() {
        body.remove(0);
    }
    body
}

fn drop_trailing_not(auxiliary: &str, subject: &[Word], rest: &mut Vec<Word>) {
    let at = rest.iter().take(3).position(|word| word.key == "not");
    let Some(at) = at.filter(|at| rest[..*at].iter().all(|word| lex::is_adverb(&word.key))) else {
        return;
    };
    let only = rest.get(at + 1).is_some_and(|next| next.key == "only");
    let pronoun = matches!(subject, [only] if lex::is_pronoun(&only.key));
    // `Should schools not teach …` asks about not teaching; `Should we not …` asks about doing it.
    if !only && (pronoun || !lex::is_modal(auxiliary)) {
        rest.remove(at);
    }
}

fn starts_with_any(subject: &[Word]) -> bool {
    subject
        .first()
        .is_some_and(|first| matches!(first.key.as_str(), "any" | "anyone" | "anybody" | "anything"))
}

/// The verb of a *do* question, removed from the words after the subject.
fn lexical(auxiliary: &str, rest: &mut Vec<Word>) -> Option<Finite> {
    if lex::is_have(auxiliary) {
        let form = verbs::form_of_do(match auxiliary {
            "has" => "does",
            "had" => "did",
            _ => "do",
        });
        return Some(Finite::Lexical { adverbs: Vec::new(), base: Word::plain("have"), form });
    }
    let at = rest
        .iter()
        .position(|word| !lex::is_adverb(&word.key) && !matches!(word.key.as_str(), "all" | "both"))?;
    let verb = rest.get(at)?.clone();
    let adverbs = rest.drain(..=at).take(at).collect();
    Some(Finite::Lexical { adverbs, base: verb.with_core(&verb.key), form: verbs::form_of_do(auxiliary) })
}

fn agree_with<'a>(auxiliary: &'a str, subject: &[Word]) -> &'a str {
    match (auxiliary, subject) {
        ("are" | "were", [only]) if only.core == "I" => {
            if auxiliary == "are" {
                "am"
            } else {
                "was"
            }
        }
        _ => auxiliary,
    }
}

/// True if *or* separates answers, and does not join words of one claim.
pub(super) fn offers_choice(auxiliary: &str, subject: &[Word], rest: &[Word]) -> bool {
    let graded = rest.iter().take(4).any(|word| {
        matches!(word.key.as_str(), "better" | "best" | "worse" | "worst" | "more" | "most")
            || (word.key.len() > 5 && (word.key.ends_with("ier") || word.key.ends_with("est")))
    });
    if graded && !rest.iter().any(|word| word.key == "than") && subject.iter().any(|word| word.key == "or") {
        return true;
    }
    rest.iter()
        .enumerate()
        .any(|(at, word)| word.key == "or" && !word.aside && separates(auxiliary, rest, at))
}

fn separates(auxiliary: &str, rest: &[Word], at: usize) -> bool {
    const OPPOSITES: [(&str, &str); 22] = [
        ("good", "bad"),
        ("right", "wrong"),
        ("safe", "dangerous"),
        ("help", "hurt"),
        ("helpful", "harmful"),
        ("beneficial", "harmful"),
        ("beneficial", "detrimental"),
        ("better", "worse"),
        ("true", "false"),
        ("real", "fake"),
        ("more", "less"),
        ("increase", "decrease"),
        ("art", "science"),
        ("innate", "learned"),
        ("public", "private"),
        ("friend", "foe"),
        ("blessing", "curse"),
        ("hero", "villain"),
        ("fact", "fiction"),
        ("left", "right"),
        ("boon", "bane"),
        ("opt-in", "opt-out"),
    ];
    let key = |at: usize| rest.get(at).map_or("", |word| word.key.as_str());
    let before = at.checked_sub(1).map_or("", |at| key(at));
    let (after, beyond) = (key(at + 1), key(at + 2));
    let opposed = OPPOSITES.iter().any(|&pair| pair == (before, after) || pair == (after, before))
        || ["un", "in", "im", "il", "ir", "dis", "non-", "a"].iter().any(|prefix| {
            after.strip_prefix(prefix) == Some(before) || before.strip_prefix(prefix) == Some(after)
        }) && before.len() > 3;
    let asks_again = lex::is_auxiliary(after)
        || matches!(after, "rather" | "just" | "instead" | "simply" | "merely" | "that");
    let commas = rest.iter().filter(|word| word.after.contains(',')).count();
    let set_off = rest.get(at.wrapping_sub(1)).is_some_and(|word| word.after.contains(',')) && commas == 1;
    let article = |key: &str| matches!(key, "a" | "an" | "the");
    let named_again = lex::is_be(auxiliary)
        && article(after)
        && rest
            .iter()
            .take(at)
            .any(|word| word.key == after || (after != "the" && article(&word.key) && word.key != "the"));
    let acts_again = !lex::is_be(auxiliary)
        && rest.first().is_some_and(|first| !lex::is_be(&first.key) && first.key != "be")
        && !verbs::is_any_form(before)
        && at > 1
        && (verbs::is_sure_base(after) || verbs::is_either_base(after) && lex::is_determiner(beyond))
        && !rest.iter().take(at).any(|word| word.key == "to");
    let preferred = rest.first().is_some_and(|first| matches!(first.key.as_str(), "prefer" | "choose"));
    let opposed_again = matches!(after, "should" | "not");
    opposed || asks_again || set_off || named_again || acts_again || preferred || opposed_again
}

/// Nouns before which *your* means the reader's own, even if nothing else in the question addresses the reader.
const PERSONAL: &str = "spouse partner spouse/partner household job career family opinion view community area employer \
neighborhood neighbourhood town city doctor vote income boss workplace retirement religion faith identity";

/// The words of a question without its auxiliary, as the person who answers would say them.
pub(super) fn answer_words(words: &[Word], case: Case) -> Vec<Word> {
    if !addresses_answerer(words) {
        return words.to_vec();
    }
    change_person(words, case)
}

fn change_person(words: &[Word], case: Case) -> Vec<Word> {
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

/// The words after `Do you think that`, where every *you* is the person asked.
pub(super) fn belief_words(words: &[Word], case: Case) -> Vec<Word> {
    change_person(words, case)
}
