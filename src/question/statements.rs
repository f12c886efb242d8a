//! Turns a question into two opposite statements: removes introductions and tags, and tries the rules in order.

use super::clause::affirm;
use super::deny::deny;
use super::words::{Case, Word};
use super::{By, Question, Statements};
use super::{clause, invert, lexicon, lexicon as lex, negate, words};

/// The two opposite statements of a yes/no question or a plain statement, the supporting one first.
///
/// `by` is [`By::Rule`]; or [`By::None`], without perspectives, if no rule applies: wh-questions, choices between alternatives, texts that
/// are not one English sentence.
///
/// ```
/// let made = parallax::question::statements("Should zoos be banned?");
/// assert_eq!(made.perspectives, ["Zoos should be banned.", "Zoos should not be banned."]);
/// assert_eq!(made.supports, Some(0));
/// ```
pub fn statements(question: &str) -> Statements {
    // "Find a news article …" asks for passages and says nothing that could be opposed.
    let pair = if super::pir::split(question).is_some() { None } else { pair(question) };
    let by = if pair.is_some() { By::Rule } else { By::None };
    Statements {
        question: question.to_owned(),
        supports: pair.as_ref().map(|_| 0),
        perspectives: pair.map(Vec::from).unwrap_or_default(),
        by,
    }
}

/// Makes a question of the text that a user asked, the same for the explorer and the commands: the question of `set` with the same text,
/// else a new one. Its statements are those in `given`, if there are any; else those of the set; else those by rule.
///
/// The case of ASCII letters does not count in the comparison. The question of the set keeps its own text, id and other data, so that
/// encoders and finished runs give the same lists however it was typed.
pub fn resolve(text: &str, given: &[String], set: &[Question]) -> (Question, By) {
    let text = text.trim();
    let known = set.iter().find(|question| question.text.eq_ignore_ascii_case(text));
    if !given.is_empty() {
        let supports = (given.len() == 2).then_some(0);
        let perspectives = given.to_vec();
        let question =
            known.cloned().unwrap_or_else(|| Question { text: text.into(), ..Question::default() });
        return (Question { perspectives, supports, ..question }, By::User);
    }
    if let Some(question) = known {
        return (question.clone(), By::Given);
    }
    let Statements { perspectives, supports, by, .. } = statements(text);
    (Question { text: text.into(), perspectives, supports, ..Question::default() }, by)
}

/// The opposite of a plain statement; a negative statement loses its negation.
///
/// `None` if no finite verb is found or no rule gives an opposite.
pub fn opposite(statement: &str) -> Option<String> {
    let words = words::words(statement);
    if is_beyond_rules(&words) {
        return None;
    }
    let case = words::case_of(&words);
    negate::read(&words, case)?.opposite()
}

/// Whether a text is a plain sentence.
pub(super) fn is_sentence(text: &str) -> bool {
    let all = words::words(text);
    let asked = all.last().is_some_and(|last| last.after.contains('?'));
    let wh = all.first().is_some_and(|first| lex::is_wh(&first.key) || lex::is_auxiliary(&first.key));
    !asked && !wh && all.len() > 2 && negate::read(&all, words::case_of(&all)).is_some()
}

/// A draft of two opposite statements for a text that no rule turns into statements: a noun phrase, or a question that asks about one, such as
/// "What is the case against abortion?". `None` for other questions, and if no word is left once the words that only ask are taken away.
///
/// ```
/// let [first, other] = parallax::question::draft("What is the case against abortion?").unwrap();
/// assert_eq!(first, "There is a good case for abortion.");
/// assert_eq!(other, "There is a good case against abortion.");
/// ```
pub fn draft(text: &str) -> Option<[String; 2]> {
    /// Words that introduce what is asked about, when they stand before it.
    const ASKING: &str = "who whom whose what which why when where how much many are is was were do does did can could will would \
        should has have had the a an case cases argument arguments reason reasons evidence pros and cons people think say know about \
        for against of in favour favor on opinion opinions view views there any debate over";
    let asking: Vec<&str> = ASKING.split_whitespace().collect();
    let plain = text.trim().trim_end_matches(['?', '!', '.', ' ']);
    let mut words: Vec<&str> = plain.split_whitespace().collect();
    let bare = |word: &str| word.trim_matches(|c: char| !c.is_alphanumeric()).to_lowercase();
    let asked = words.iter().take_while(|word| asking.contains(&bare(word).as_str())).count();
    let prefix: Vec<String> = words.drain(..asked).map(bare).collect();
    // Only after a preposition, or without a question, is the rest surely a noun phrase: after "why do" it is a clause.
    let last = prefix.last().map_or("", String::as_str);
    let about = matches!(last, "for" | "against" | "of" | "about" | "on" | "over");
    let phrase_alone = prefix.iter().all(|word| matches!(word.as_str(), "the" | "a" | "an"));
    if !(about || phrase_alone && (words.len() <= 2 || !text.contains('?'))) {
        return None;
    }
    let phrase = words.join(" ");
    let first = phrase.chars().next()?;
    // A name keeps its capital; the first word of a text does not.
    let starts = plain.starts_with(&phrase) && !phrase.chars().nth(1).is_some_and(char::is_uppercase);
    let phrase = if starts { phrase.replacen(first, &first.to_lowercase().to_string(), 1) } else { phrase };
    Some(["for", "against"].map(|side| format!("There is a good case {side} {phrase}.")))
}

fn pair(question: &str) -> Option<[String; 2]> {
    let words = words::words(question);
    if is_beyond_rules(&words) {
        return None;
    }
    let case = words::case_of(&words);
    let words = without_label(without_tag(without_label(one_sentence(&words)?)));
    let untitled = replace_title_pronoun(words).and_then(|words| yes_no_question(&words, case));
    let [first, second] =
        untitled.or_else(|| yes_no_question(words, case)).or_else(|| plain_statements(words, case))?;
    (first != second).then_some([first, second])
}

/// The statements of a yes/no question.
fn yes_no_question(words: &[Word], case: Case) -> Option<[String; 2]> {
    let start = invert::auxiliary_at(words)?;
    if let Some((inner, strictness)) = remove_frame(&words[start..])
        && let Some(pair) = belief_statements(&words[..start], inner, strictness, case)
    {
        return Some(pair);
    }
    let clause = invert::invert(words, case)?;
    Some([affirm(&clause), deny(&clause)?])
}

/// The statements of the clause after `Do you think that`.
fn belief_statements(
    opener: &[Word],
    inner: &[Word],
    strictness: Strictness,
    case: Case,
) -> Option<[String; 2]> {
    let words: Vec<Word> = opener.iter().chain(inner).cloned().collect();
    let words = invert::belief_words(&words, case);
    let read = negate::read(&words, case)?;
    if strictness == Strictness::Auxiliary && !matches!(read.clause.finite, clause::Finite::Auxiliary(_)) {
        return None;
    }
    if invert::offers_choice("", &read.clause.subject, &read.clause.rest) {
        return None;
    }
    Some([negate::restate(&words, &read), read.opposite()?])
}

/// A plain statement and its opposite.
fn plain_statements(words: &[Word], case: Case) -> Option<[String; 2]> {
    let first = words.first()?;
    let when = first.key == "when" && !words.get(1).is_some_and(|next| lexicon::is_auxiliary(&next.key));
    if (lexicon::is_wh(&first.key) && !when)
        || lexicon::is_auxiliary(&first.key)
        || lexicon::contracted_negative(&first.key).is_some()
    {
        return None;
    }
    if lexicon::is_preposition(&first.key) && words.get(1).is_some_and(|next| lexicon::is_wh(&next.key)) {
        return None;
    }
    let titled = words.windows(2).any(|two| {
        two[0].ends_phrase() && matches!(two[1].key.as_str(), "which" | "who" | "what" | "how" | "why")
    });
    let questioned = words.last().is_some_and(|last| last.after.contains('?'));
    if questioned && titled {
        return None;
    }
    if questioned && words.iter().any(|word| lexicon::is_wh(&word.key) && !lexicon::is_relative(&word.key)) {
        return None;
    }
    let read = negate::read(words, case)?;
    Some([words::sentence(words), read.opposite()?])
}

/// Longer texts are not a single question, and the rules do not apply to them.
const MOST_WORDS: usize = 150;

/// Counts the words of a text that are among the commonest of English, and those among the commonest of other European languages. An
/// inverted question mark counts as one of the latter.
pub fn common_words(text: &str) -> (usize, usize) {
    let words = words::words(text);
    let count = |is: fn(&str) -> bool| words.iter().filter(|word| is(&word.key)).count();
    let inverted = usize::from(text.contains(['¿', '¡']));
    (count(lex::is_english), count(lex::is_foreign) + inverted)
}

/// True for texts to which no rule applies: empty, too long, or not English.
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
    // A tag alone is a question.
    if cut + 1 < words.len() { &words[..words.len() - cut] } else { words }
}

fn is_tag(auxiliary: &str, pronoun: &str) -> bool {
    let auxiliary = lex::is_auxiliary(auxiliary) || lex::contracted_negative(auxiliary).is_some();
    auxiliary && matches!(pronoun, "it" | "they" | "we" | "he" | "she" | "you" | "i" | "there")
}

/// Cuts introductions: `So,`, `In your opinion,`, `CMV:`, `True or false:`.
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

/// The text after `Do you think that` or `Is it true that`, and whether it must be a clause with an auxiliary.
pub(super) fn remove_frame(words: &[Word]) -> Option<(&[Word], Strictness)> {
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

/// The kind of finite verb that the text after a frame must have to count as a clause.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Strictness {
    AnyVerb,
    /// `Do you expect prices to rise` contains no clause.
    Auxiliary,
}

/// The one sentence to work on: the text itself, or its only yes/no question; `None` if there are several.
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
    // `Zoos are old. Should they close?`: the question refers to the previous sentence.
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

/// `Brexit: Was it wise?`: the question after a title, with the title in place of the pronoun.
pub(super) fn replace_title_pronoun(words: &[Word]) -> Option<Vec<Word>> {
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
