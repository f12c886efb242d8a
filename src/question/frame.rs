//! What surrounds a question or statement without being part of it: tags, labels, `Do you think that`, `or not`;
//! and the texts that no rule may touch: other languages, several sentences.
//!
//! Owns recognition of such frames. It must not build statements.

use super::lexicon as lex;
use super::tokens::Word;

/// Longer texts are no single question, and no rule can vouch for them.
const MOST_WORDS: usize = 150;

/// True for texts that no rule may touch: empty, endless, or not English.
pub(super) fn is_beyond_rules(words: &[Word]) -> bool {
    let letters =
        words.iter().take(MOST_WORDS).flat_map(|word| word.core.chars()).filter(|c| c.is_alphabetic());
    let (ascii, other) =
        letters.fold(
            (0usize, 0usize),
            |(ascii, other), c| {
                if c.is_ascii() { (ascii + 1, other) } else { (ascii, other + 1) }
            },
        );
    let foreign = words.iter().filter(|word| lex::is_foreign(&word.key)).count();
    let english = words.iter().filter(|word| lex::is_english(&word.key)).count();
    let inverted_marks = words.iter().any(|word| word.before.contains(['¿', '¡']));
    words.len() < 2
        || words.len() > MOST_WORDS
        || words.iter().any(|word| word.core.len() > 80)
        || ascii < 3
        || other * 4 > ascii
        || (foreign > 1 && foreign > english)
        || inverted_marks
}

/// Cuts tags at the end: `, isn't it?`, `, right?`, `or not?`.
pub(super) fn without_tag(words: &[Word]) -> &[Word] {
    let keys: Vec<&str> = words.iter().rev().take(4).map(|word| word.key.as_str()).collect();
    let comma_before = |length: usize| {
        words
            .len()
            .checked_sub(length + 1)
            .and_then(|at| words.get(at))
            .is_some_and(|word| word.ends_phrase() || word.after.ends_with(['.', '?']))
    };
    let cut = match keys.as_slice() {
        ["not", "or", ..] => 2,
        ["no", "or", "yes", ..] | ["false", "or", "true", ..] if comma_before(3) => 3,
        ["disagree", "or", "agree", ..] if comma_before(3) => 3,
        ["not" | "why", "why", "or", "why", ..] => 4,
        [
            "right" | "correct" | "no" | "yes" | "agree" | "agreed" | "huh" | "eh" | "true" | "ok" | "okay",
            ..,
        ] if comma_before(1) => 1,
        ["think" | "agree", "you", "don't", ..] if comma_before(3) => 3,
        ["not", pronoun, auxiliary, ..] if is_tag(auxiliary, pronoun) && comma_before(3) => 3,
        [pronoun, auxiliary, ..] if is_tag(auxiliary, pronoun) && comma_before(2) => 2,
        _ => 0,
    };
    // A tag alone is a question of its own.
    if cut + 1 < words.len() { &words[..words.len() - cut] } else { words }
}

fn is_tag(auxiliary: &str, pronoun: &str) -> bool {
    let known = lex::is_auxiliary(auxiliary) || lex::contracted_negative(auxiliary).is_some();
    known && matches!(pronoun, "it" | "they" | "we" | "he" | "she" | "you" | "i" | "there")
}

/// Cuts what only introduces: `So,`, `In your opinion,`, `CMV:`, `True or false:`.
pub(super) fn without_label(words: &[Word]) -> &[Word] {
    const LABELS: [&str; 22] = [
        "so",
        "well",
        "ok",
        "okay",
        "and",
        "but",
        "cmv",
        "question",
        "poll",
        "debate",
        "yes or no",
        "true or false",
        "agree or disagree",
        "in your opinion",
        "in your view",
        "honestly",
        "seriously",
        "thbt",
        "motion",
        "topic",
        "resolved",
        "be it resolved",
    ];
    let end = words
        .iter()
        .take(4)
        .position(|word| word.ends_phrase() || word.after.contains('?'))
        .map_or(0, |at| at + 1);
    let label: Vec<&str> = words[..end].iter().map(|word| word.key.as_str()).collect();
    if end > 0 && end < words.len() && LABELS.contains(&label.join(" ").as_str()) {
        return &words[end..];
    }
    match words.first().map(|word| word.key.as_str()) {
        Some("so" | "and" | "but") if words.get(1).is_some_and(|next| lex::is_auxiliary(&next.key)) => {
            &words[1..]
        }
        _ => words,
    }
}

/// What stands behind `Do you think that`, `Is it true that`, and whether it must be a clause with an auxiliary.
pub(super) fn framed(words: &[Word]) -> Option<(&[Word], Strictness)> {
    let key = |at: usize| words.get(at).map_or("", |word| word.key.as_str());
    let that = |at: usize| {
        if key(at) == "that" && !matches!(key(at + 1), "is" | "was" | "would") {
            (at + 1, true)
        } else {
            (at, false)
        }
    };
    if matches!((key(0), key(1)), ("is" | "isn't", "it")) {
        let at = match (key(2), key(3), key(4)) {
            ("true", "that", _) => 4,
            ("the", "case", "that") | ("a", "fact", "that") => 5,
            ("fair" | "safe" | "accurate" | "true", "to", "say") if key(5) == "that" => 6,
            _ => return None,
        };
        return words.get(at..).map(|rest| (rest, Strictness::AnyVerb));
    }
    let asks = matches!(key(0), "do" | "don't" | "would" | "wouldn't" | "did" | "can" | "could");
    let person = matches!(key(1), "you" | "we")
        && !(key(1) == "we" && matches!(key(0), "do" | "don't" | "did" | "would"));
    if !asks || !person {
        return None;
    }
    let verb = if lex::is_adverb(key(2)) { 3 } else { 2 };
    let (start, has_that) = that(verb + 1);
    let strictness = match key(verb) {
        "think" | "believe" if key(1) == "you" => Strictness::AnyVerb,
        "feel" | "say" | "argue" | "expect" | "suppose" | "consider" | "find" | "agree" | "accept"
            if has_that =>
        {
            Strictness::AnyVerb
        }
        "feel" | "say" | "argue" | "expect" if key(1) == "you" => Strictness::Auxiliary,
        _ => return None,
    };
    let opener = words.get(start)?;
    let clause = has_that
        || !lex::is_preposition(&opener.key)
        || words.iter().skip(start).take(12).any(Word::ends_phrase);
    let about = matches!(opener.key.as_str(), "of" | "about" | "in" | "so" | "with")
        && !has_that
        && !words.iter().skip(start).take(8).any(Word::ends_phrase);
    (clause && !about).then(|| words.get(start..).map(|rest| (rest, strictness)))?
}

/// What kind of finite verb the text behind a frame must have to count as a clause.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Strictness {
    AnyVerb,
    /// `Do you expect prices to rise` is no clause.
    Auxiliary,
}

/// The one sentence to work on: the text itself, or its only yes/no question; `None` where there are several.
pub(super) fn one_sentence(words: &[Word]) -> Option<&[Word]> {
    let mut sentences: Vec<&[Word]> = Vec::new();
    let mut start = 0;
    for at in 0..words.len() {
        if at + 1 == words.len() || ends_sentence(words, at) {
            sentences.push(&words[start..=at]);
            start = at + 1;
        }
    }
    if let [only] = sentences.as_slice() {
        return Some(only);
    }
    let asks = |sentence: &&&[Word]| sentence.last().is_some_and(|last| last.after.contains('?'));
    let invites = |sentence: &&&[Word]| {
        sentence.len() <= 4
            && sentence
                .iter()
                .any(|word| matches!(word.key.as_str(), "why" | "explain" | "discuss" | "thoughts"))
    };
    let mut questions = sentences.iter().filter(asks).filter(|sentence| !invites(sentence));
    let question = *questions.next()?;
    // `Zoos are old. Should they close?` leans on what went before.
    let leans = question
        .iter()
        .take(3)
        .any(|word| matches!(word.key.as_str(), "they" | "he" | "she" | "this" | "these" | "those"))
        || question.get(1).is_some_and(|word| word.key == "it")
            && question.first().is_some_and(|first| !lex::is_be(&first.key));
    let leans = leans && !sentences.first().is_some_and(|first| std::ptr::eq(*first, question));
    let opens = question
        .first()
        .is_some_and(|first| lex::is_auxiliary(&first.key) || lex::contracted_negative(&first.key).is_some());
    (questions.next().is_none() && opens && !leans).then_some(question)
}

fn ends_sentence(words: &[Word], at: usize) -> bool {
    const SHORT: [&str; 13] =
        ["mr", "mrs", "ms", "dr", "st", "vs", "etc", "e.g", "i.e", "jr", "sr", "prof", "gov"];
    let (word, next) = (&words[at], words.get(at + 1));
    let stop =
        word.after.ends_with(['.', '!', '?']) || word.after.ends_with(".\"") || word.after.ends_with("?\"");
    let short = word.after.ends_with('.')
        && (SHORT.contains(&word.key.as_str()) || word.key.contains('.') || word.key.len() < 2);
    let name = word.key == "u.s" || word.key == "u.k";
    stop && !short
        && !name
        && !word.aside
        && next.is_some_and(|next| next.is_capitalised() || next.core.is_empty())
}

/// `Brexit: Was it wise?` — the question behind a title, its pronoun replaced by the title.
pub(super) fn untitled(words: &[Word]) -> Option<Vec<Word>> {
    let end = words.iter().take(8).position(|word| {
        word.after.contains([':', '?', '–', '—']) || (word.core.is_empty() && word.after.is_empty())
    })? + 1;
    let (title, body) = words.split_at(end);
    let first = body.first()?;
    if !lex::is_auxiliary(&first.key) && lex::contracted_negative(&first.key).is_none() {
        return None;
    }
    if title.first().is_some_and(|first| lex::is_auxiliary(&first.key) || lex::is_wh(&first.key)) {
        return None;
    }
    let pronoun = body.get(1).filter(|word| matches!(word.key.as_str(), "it" | "they"));
    if pronoun.is_none()
        || lex::is_adjective(body.get(2).map_or("", |word| &word.key))
            && body.iter().any(|word| matches!(word.key.as_str(), "to" | "that"))
    {
        return Some(body.to_vec());
    }
    let mut named = vec![first.clone()];
    named.extend(title.iter().filter(|word| !word.core.is_empty()).cloned());
    if let Some(last) = named.last_mut() {
        last.after.retain(|c| matches!(c, ')' | '"' | '”'));
    }
    named.extend_from_slice(&body[2..]);
    Some(named)
}
