//! Text as words, words as text, and the part of speech of each word.

use super::{lexicon as lex, verbs};

/// How a text uses capitals, so that inserted words can do the same.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Case {
    /// `Should zoos be banned`
    Sentence,
    /// `Should Zoos Be Banned`
    Title,
    /// `SHOULD ZOOS BE BANNED`
    Upper,
}

/// One word with the punctuation attached to it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Word {
    /// Opening marks: quotes, brackets.
    pub(super) before: String,
    /// The word as written.
    pub(super) core: String,
    /// Closing marks: commas, brackets, stops.
    pub(super) after: String,
    /// The core in lower case with straight apostrophes; empty for bare punctuation.
    pub(super) key: String,
    /// True inside brackets or double quotes, where no rule may look for a verb.
    pub(super) aside: bool,
}

impl Word {
    /// A word that the rules insert, without punctuation.
    pub(super) fn plain(core: &str) -> Self {
        Word {
            before: String::new(),
            core: core.to_owned(),
            after: String::new(),
            key: core.to_lowercase(),
            aside: false,
        }
    }

    /// The same word with another core.
    pub(super) fn with_core(&self, core: &str) -> Self {
        Word {
            before: self.before.clone(),
            after: self.after.clone(),
            aside: self.aside,
            ..Word::plain(core)
        }
    }

    /// True if a comma, colon or dash closes this word.
    pub(super) fn ends_phrase(&self) -> bool {
        self.after.contains([',', ':', ';', '–', '—'])
    }

    /// True for a first letter in upper case.
    pub(super) fn is_capitalised(&self) -> bool {
        self.core.chars().next().is_some_and(char::is_uppercase)
    }

    fn split(raw: &str) -> Self {
        let is_core = |c: char| c.is_alphanumeric() || matches!(c, '$' | '€' | '£' | '%' | '#' | '&' | '@');
        let (start, end) = match (raw.find(is_core), raw.rfind(is_core)) {
            (Some(start), Some(last)) => {
                let width = raw[last..].chars().next().map_or(1, char::len_utf8);
                (start, last + width)
            }
            _ => (0, 0),
        };
        // A possessive of a plural keeps its apostrophe: `citizens' rights`.
        let end = match raw[end..].chars().next() {
            Some(mark @ ('\'' | '’'))
                if end > 0 && raw[..end].ends_with('s') && !raw[..start].contains(['\'', '‘']) =>
            {
                end + mark.len_utf8()
            }
            _ => end,
        };
        Word {
            before: raw[..start].to_owned(),
            core: raw[start..end].to_owned(),
            after: raw[end..].to_owned(),
            key: raw[start..end].to_lowercase().replace(['’', '‘', 'ʼ'], "'"),
            aside: false,
        }
    }
}

/// Cuts a text at white space and control characters, and marks words in brackets or double quotes.
pub(super) fn words(text: &str) -> Vec<Word> {
    let ignorable = |c: char| matches!(c, '\u{200b}'..='\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}' | '\u{feff}');
    let clean: String =
        text.chars().filter(|&c| !ignorable(c)).map(|c| if c.is_control() { ' ' } else { c }).collect();
    let mut words: Vec<Word> = clean.split_whitespace().map(Word::split).collect();
    mark_asides(&mut words, |c| matches!(c, '(' | '[' | '“'), |c| matches!(c, ')' | ']' | '”'));
    mark_asides(&mut words, |c| c == '"', |c| c == '"');
    words
}

fn mark_asides(words: &mut [Word], opens: impl Fn(char) -> bool, closes: impl Fn(char) -> bool) {
    // An opening mark without its partner would hide the rest of the sentence.
    let count = |side: &dyn Fn(&Word) -> bool| words.iter().filter(|word| side(word)).count();
    let starts = count(&|word| word.before.contains(&opens));
    let ends = count(&|word| word.after.contains(&closes));
    if starts == 0 || starts != ends {
        return;
    }
    let mut inside = false;
    for word in words {
        inside |= word.before.contains(&opens);
        word.aside |= inside;
        if word.after.contains(&closes) {
            inside = false;
        }
    }
}

/// Infers the use of capitals from the words after the first.
pub(super) fn case_of(words: &[Word]) -> Case {
    let letters = |word: &&Word| word.core.chars().filter(|c| c.is_alphabetic()).count();
    let all: Vec<&Word> = words.iter().filter(|word| letters(word) > 1).collect();
    if all.len() > 1 && all.iter().all(|word| !word.core.chars().any(char::is_lowercase)) {
        return Case::Upper;
    }
    let long: Vec<&Word> = words.iter().skip(1).filter(|word| letters(word) > 3 && !word.aside).collect();
    let capital = long.iter().filter(|word| word.is_capitalised()).count();
    // Names alone do not make a title: `Should Oslo be renamed by South Norway`.
    let titled = if long.len() < 5 { capital == long.len() } else { capital * 5 >= long.len() * 4 };
    if long.len() > 1 && titled { Case::Title } else { Case::Sentence }
}

/// Writes an inserted word in the case of its surroundings.
pub(super) fn in_case(word: &str, case: Case) -> String {
    match case {
        Case::Sentence => word.to_owned(),
        Case::Upper => word.to_uppercase(),
        Case::Title => capitalise(word),
    }
}

/// The word with its first letter in upper case; `iPhone` and `eBay` stay.
pub(super) fn capitalise(word: &str) -> String {
    let mut letters = word.chars();
    match letters.next() {
        Some(first) if first.is_lowercase() && !letters.as_str().chars().take(2).any(char::is_uppercase) => {
            first.to_uppercase().chain(letters).collect()
        }
        _ => word.to_owned(),
    }
}

/// Joins words into one sentence: capital at the start, one full stop at the end.
pub(super) fn sentence<'a>(words: impl IntoIterator<Item = &'a Word>) -> String {
    let mut text = String::new();
    let mut begun = false;
    for word in words {
        if !text.is_empty() {
            text.push(' ');
        }
        text.push_str(&word.before);
        if begun {
            text.push_str(&word.core);
        } else {
            text.push_str(&capitalise(&word.core));
        }
        begun |= !word.core.is_empty();
        text.push_str(&word.after);
    }
    let end = text
        .trim_end_matches(|c: char| {
            matches!(c, '?' | '.' | '!' | '…' | ',' | ';' | ':' | '‽' | '？') || c.is_whitespace()
        })
        .len();
    text.truncate(end);
    text.push('.');
    text
}

/// A part of speech, in the detail that the rules need.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Part {
    /// Articles, possessives, quantifiers, and nouns with `'s`.
    Determiner,
    Preposition,
    /// The word *to*.
    To,
    Conjunction,
    /// That, which, who, where.
    Relative,
    /// Because, if, when.
    Subordinator,
    /// A pronoun that is a noun phrase.
    Pronoun,
    Auxiliary,
    /// *Not*, and adverbs before a predicate.
    Adverb,
    /// Adverbs that belong to the word before them.
    Trailing,
    Adjective,
    /// A form in -ed or an irregular participle.
    Participle,
    Gerund,
    /// A bare verb.
    Verb,
    /// A bare verb or a noun.
    Either,
    Noun,
    Plural,
    /// Inside brackets or quotes, or bare punctuation.
    Aside,
}

impl Part {
    /// True for words that a noun phrase can end in.
    pub(super) fn ends_phrase(self) -> bool {
        use Part::{Aside, Either, Gerund, Noun, Plural, Pronoun, Trailing};
        matches!(self, Noun | Plural | Pronoun | Either | Aside | Trailing | Gerund)
    }

    /// True for words that open a noun phrase after a verb.
    pub(super) fn opens_object(self) -> bool {
        matches!(self, Part::Determiner | Part::Pronoun)
    }
}

/// The part of each word of a sentence.
pub(super) fn parts(words: &[Word], case: Case) -> Vec<Part> {
    let mut parts: Vec<Part> = Vec::with_capacity(words.len());
    for (at, word) in words.iter().enumerate() {
        let next = words.get(at + 1).map(|next| next.key.as_str());
        let proper = case == Case::Sentence && at > 0 && word.is_capitalised();
        let part = part(word, parts.last().copied(), next, proper);
        parts.push(part);
    }
    parts
}

fn part(word: &Word, before: Option<Part>, next: Option<&str>, proper: bool) -> Part {
    let key = word.key.as_str();
    let next = next.unwrap_or("");
    if word.aside || key.is_empty() {
        return Part::Aside;
    }
    if key == "to" {
        return Part::To;
    }
    // `WHO`, `US`, `IT` in a sentence of small letters are names.
    if proper && word.core.len() > 1 && word.core.chars().all(|c| c.is_ascii_uppercase()) {
        return Part::Noun;
    }
    if let Some(part) = closed_class(key, before, next) {
        return part;
    }
    if proper && lex::is_adjective(key) && (next.is_empty() || matches!(next, "with" | "for" | "to" | "than"))
    {
        return Part::Adjective;
    }
    if proper || key.chars().any(|c| c.is_ascii_digit()) {
        return if is_plural(key) { Part::Plural } else { Part::Noun };
    }
    let human_right = key == "right" && before == Some(Part::Noun) && next.is_empty();
    if human_right { Part::Noun } else { open_class(key, before) }
}

fn closed_class(key: &str, before: Option<Part>, next: &str) -> Option<Part> {
    let possessive = (key.ends_with("'s") || key.ends_with("s'"))
        && !matches!(key, "it's" | "that's" | "there's" | "he's" | "she's" | "what's" | "let's" | "here's");
    let after_noun = before.is_some_and(Part::ends_phrase);
    Some(match key {
        _ if possessive => Part::Determiner,
        "that" if after_noun => Part::Relative,
        "this" | "that" | "these" | "those" if stands_alone(next) => Part::Pronoun,
        "no" | "some" | "any" | "all" | "most" | "many" | "few" | "both" | "each" | "either" | "such"
            if next == "of" =>
        {
            Part::Pronoun
        }
        "all" | "both" if before == Some(Part::Pronoun) => Part::Adverb,
        "most" | "such" if matches!(next, "likely" | "important") => Part::Adverb,
        "no" if matches!(next, "longer" | "more" | "less" | "better" | "worse") => Part::Adverb,
        "longer" if before == Some(Part::Adverb) => Part::Adverb,
        "one" if !stands_alone(next) && !next.is_empty() => Part::Determiner,
        "little" if next == "more" => Part::Adverb,
        "due" if next == "to" => Part::Preposition,
        "not" => Part::Adverb,
        "so" if before == Some(Part::Gerund) => Part::Trailing,
        "so" if next != "that" => Part::Adverb,
        "rather" if next == "than" => Part::Conjunction,
        "such" if next == "as" => Part::Preposition,
        "as" if lex::is_adjective(next) && after_noun => Part::Adverb,
        "may" | "will" | "can" | "might" | "must" if before == Some(Part::Determiner) => Part::Noun,
        "like" if matches!(before, Some(Part::Pronoun | Part::To)) => Part::Either,
        _ if lex::is_auxiliary(key) || lex::contracted_negative(key).is_some() => Part::Auxiliary,
        "it's" | "that's" | "there's" | "he's" | "she's" => Part::Pronoun,
        _ if lex::is_determiner(key) => Part::Determiner,
        _ if lex::is_pronoun(key) => Part::Pronoun,
        _ if lex::is_subordinator(key) => Part::Subordinator,
        _ if lex::is_relative(key) || lex::is_wh(key) => Part::Relative,
        _ if lex::is_conjunction(key) => Part::Conjunction,
        _ if lex::is_preposition(key) => Part::Preposition,
        _ if lex::is_trailing_adverb(key) => Part::Trailing,
        _ => return None,
    })
}

fn stands_alone(next: &str) -> bool {
    next.is_empty()
        || lex::is_determiner(next)
        || lex::is_auxiliary(next)
        || lex::is_preposition(next)
        || lex::is_adverb(next)
        || matches!(next, "to" | "who" | "which" | "be")
}

fn open_class(key: &str, before: Option<Part>) -> Part {
    let after_noun = before.is_some_and(Part::ends_phrase);
    if matches!(key, "be" | "been" | "being") {
        return if key == "be" { Part::Verb } else { Part::Participle };
    }
    if lex::is_adverb(key) {
        return Part::Adverb;
    }
    if is_gerund(key) && !lex::is_adjective(key) {
        // `animal testing`, `drug testing`: a noun, unless an object follows; the callers check that.
        return Part::Gerund;
    }
    if verbs::is_sure_base(key) && !matches!(before, Some(Part::Determiner | Part::Preposition)) {
        return Part::Verb;
    }
    if lex::is_adjective(key) {
        return Part::Adjective;
    }
    if before == Some(Part::To) && verbs::is_either_base(key) {
        return Part::Verb;
    }
    if verbs::is_either_base(key) || (verbs::is_sure_base(key) && !after_noun) {
        return Part::Either;
    }
    if verbs::is_participle(key) {
        return Part::Participle;
    }
    if is_plural(key) { Part::Plural } else { Part::Noun }
}

fn is_gerund(key: &str) -> bool {
    const NOUNS: [&str; 20] = [
        "bring",
        "cling",
        "sting",
        "swing",
        "fling",
        "wring",
        "thing",
        "king",
        "ring",
        "spring",
        "string",
        "wing",
        "sibling",
        "ceiling",
        "evening",
        "morning",
        "nothing",
        "something",
        "everything",
        "anything",
    ];
    key.len() > 4 && key.ends_with("ing") && !NOUNS.contains(&key)
}

/// True for nouns that take `are`: by ending, or by the short list of irregular plurals.
pub(super) fn is_plural(key: &str) -> bool {
    const IRREGULAR: [&str; 18] = [
        "people",
        "children",
        "men",
        "women",
        "media",
        "data",
        "police",
        "they",
        "we",
        "these",
        "those",
        "feet",
        "teeth",
        "mice",
        "criteria",
        "phenomena",
        "elites",
        "grandchildren",
    ];
    const SINGULAR: [&str; 24] = [
        "news",
        "politics",
        "economics",
        "physics",
        "mathematics",
        "ethics",
        "gas",
        "bias",
        "virus",
        "crisis",
        "basis",
        "process",
        "status",
        "campus",
        "bus",
        "christmas",
        "texas",
        "analysis",
        "always",
        "perhaps",
        "is",
        "was",
        "aids",
        "covid",
    ];
    IRREGULAR.contains(&key)
        || (key.len() > 2
            && key.ends_with('s')
            && !["ss", "us", "is", "'s"].iter().any(|end| key.ends_with(end))
            && !SINGULAR.contains(&key))
}
