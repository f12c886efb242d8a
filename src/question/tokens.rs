//! Text as words and words as text: whitespace, punctuation at the edges, letter case, the final full stop.
//!
//! Owns how a sentence is taken apart and put together. It must not know any grammar.

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

/// One word with the punctuation that clings to it.
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

    /// The same place in the sentence, another word.
    pub(super) fn with_core(&self, core: &str) -> Self {
        Word {
            before: self.before.clone(),
            after: self.after.clone(),
            aside: self.aside,
            ..Word::plain(core)
        }
    }

    /// True where a comma, colon or dash closes this word.
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

/// Cuts a text at white space and control characters, and marks what stands in brackets or double quotes.
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

/// Judges the use of capitals from the words after the first.
pub(super) fn case_of(words: &[Word]) -> Case {
    let letters = |word: &&Word| word.core.chars().filter(|c| c.is_alphabetic()).count();
    let all: Vec<&Word> = words.iter().filter(|word| letters(word) > 1).collect();
    if all.len() > 1 && all.iter().all(|word| !word.core.chars().any(char::is_lowercase)) {
        return Case::Upper;
    }
    let long: Vec<&Word> = words.iter().skip(1).filter(|word| letters(word) > 3 && !word.aside).collect();
    let capital = long.iter().filter(|word| word.is_capitalised()).count();
    // Names alone must not make a title: `Should Oslo be renamed by South Norway`.
    let titled = if long.len() < 5 { capital == long.len() } else { capital * 5 >= long.len() * 4 };
    if long.len() > 1 && titled { Case::Title } else { Case::Sentence }
}

/// Writes an inserted word in the case of its surroundings.
pub(super) fn in_case(word: &str, case: Case) -> String {
    match case {
        Case::Sentence => word.to_owned(),
        Case::Upper => word.to_uppercase(),
        Case::Title => capitalised(word),
    }
}

/// The word with its first letter in upper case; `iPhone` and `eBay` stay.
pub(super) fn capitalised(word: &str) -> String {
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
            text.push_str(&capitalised(&word.core));
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
