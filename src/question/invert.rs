//! A yes/no question to the clause that it asks about.
//!
//! Owns the way from word order of questions to that of statements: auxiliaries, openers, negative questions,
//! and the person asked. Where the subject ends is `subject`'s part; it must not say the opposite.

use super::choice;
use super::clause::{Clause, Finite};
use super::lexicon as lex;
use super::parts::{self, Part};
use super::person;
use super::predicate;
use super::subject::{self, Tagged};
use super::tokens::{Case, Word, in_case};
use super::verbs;

/// The clause that a yes/no question asks about; `None` if the text is no such question or its subject is unclear.
pub(super) fn invert(words: &[Word], case: Case) -> Option<Clause> {
    let start = auxiliary_at(words)?;
    let (opener, asked) = words.split_at(start);
    let (first, body) = asked.split_first()?;
    let contracted = lex::contracted_negative(&first.key);
    let auxiliary = contracted.unwrap_or(&first.key).to_owned();
    let opener = person::answered(opener, case);
    let body = person::answered(body, case);
    let body = without_not(&auxiliary, body);
    let tags = parts::parts(&body, case);
    let tagged = Tagged { words: &body, parts: &tags };
    let end = predicate_at(&auxiliary, tagged)?;
    let (mut subject, mut rest) = (body[..end].to_vec(), body[end..].to_vec());
    drop_trailing_not(&auxiliary, &subject, &mut rest);
    if choice::offers_choice(&auxiliary, &subject, &rest) || starts_with_any(&subject) {
        return None;
    }
    if let Some(last) =
        subject.last_mut().filter(|_| rest.first().is_some_and(|word| !word.before.contains('(')))
    {
        // The comma of an aside before the verb stays only if the aside was opened by one.
        let opened = body[..end - 1].iter().any(Word::ends_phrase);
        if !opened {
            last.after.retain(|c| c != ',');
        }
    }
    let finite = if lex::is_do(&auxiliary) || (lex::is_have(&auxiliary) && subject::possesses(tagged)) {
        lexical(&auxiliary, &mut rest)?
    } else {
        let agreed = agreed(&auxiliary, &subject);
        let written = match case {
            Case::Sentence => agreed.to_owned(),
            _ => in_case(agreed, if first.is_capitalised() { case } else { Case::Sentence }),
        };
        Finite::Auxiliary(written)
    };
    Some(Clause { opener, subject, finite, rest, case })
}

/// The place of the auxiliary that opens the question, after an opener such as `In the long run,`.
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
        predicate::before_predicate(tagged)
    } else if lex::is_have(auxiliary) {
        if subject::possesses(tagged) { Some(1) } else { subject::before_participle(tagged) }
    } else if auxiliary == "ought" {
        (1..tagged.words.len()).find(|&at| tagged.part(at) == Some(Part::To))
    } else {
        subject::before_base_verb(tagged)
    }
}

/// `Is it not …`, `Should not we …`: a negative question asks about the affirmative.
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

/// The verb of a *do* question, taken out of what follows the subject.
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

fn agreed<'a>(auxiliary: &'a str, subject: &[Word]) -> &'a str {
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
