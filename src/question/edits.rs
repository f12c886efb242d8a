//! Edits of a passage by rule, for the counterfactual editor: a source named or removed, another tone, length or order, numbers and hedges.
//!
//! No edit adds a claim. One that changes nothing, or that leaves no word, gives no text.

use std::fmt;

use unicode_segmentation::UnicodeSegmentation;

/// An edit by rule, or by a language model. The studies behind them: sources and citations move readers' trust (Wan et al. 2024), retrievers
/// favour the words of language models (Dai et al. 2024), short passages and early evidence.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Edit {
    /// A source is named before the first word.
    SourceNamed,
    /// Attributions, citations and addresses are removed.
    SourceRemoved,
    /// `do not` becomes `don't`.
    Casual,
    /// `don't` becomes `do not`.
    Formal,
    /// The first half of the sentences, at least one.
    Shorter,
    /// All sentences, then all of them again: the same content at twice the length.
    Longer,
    /// The first sentence stands last.
    FirstLast,
    /// Numbers become words of quantity.
    NumbersRemoved,
    /// Every sentence is hedged.
    Hedged,
    /// Words that hedge are removed.
    Unhedged,
    /// A language model writes the passage anew.
    Rewritten,
}

impl Edit {
    /// The edits that a rule makes.
    pub const BY_RULE: [Edit; 10] = [
        Edit::SourceNamed,
        Edit::SourceRemoved,
        Edit::Casual,
        Edit::Formal,
        Edit::Shorter,
        Edit::Longer,
        Edit::FirstLast,
        Edit::NumbersRemoved,
        Edit::Hedged,
        Edit::Unhedged,
    ];

    /// Its name in tables and on screen.
    pub fn name(self) -> &'static str {
        match self {
            Edit::SourceNamed => "source-named",
            Edit::SourceRemoved => "source-removed",
            Edit::Casual => "casual",
            Edit::Formal => "formal",
            Edit::Shorter => "shorter",
            Edit::Longer => "longer",
            Edit::FirstLast => "first-last",
            Edit::NumbersRemoved => "no-numbers",
            Edit::Hedged => "hedged",
            Edit::Unhedged => "unhedged",
            Edit::Rewritten => "rewritten",
        }
    }

    /// The edited text.
    ///
    /// # Errors
    /// The edit changes nothing, or leaves no word.
    pub fn of(self, text: &str) -> Result<String, NoEdit> {
        let edited = match self {
            Edit::SourceNamed => format!("According to {SOURCE}: {}", text.trim_start()),
            Edit::SourceRemoved => without_source(text),
            Edit::Casual => replaced(text, &CONTRACTIONS),
            Edit::Formal => replaced(text, &CONTRACTIONS.map(|(long, short)| (short, long))),
            Edit::Shorter => {
                let all = split(text);
                joined(&all[..all.len().div_ceil(2)])
            }
            Edit::Longer => {
                let all = split(text);
                joined(&[all.as_slice(), all.as_slice()].concat())
            }
            Edit::FirstLast => {
                let mut all = split(text);
                if all.len() > 1 {
                    all.rotate_left(1);
                }
                joined(&all)
            }
            Edit::NumbersRemoved => without_numbers(text),
            Edit::Hedged => joined(&split(text).iter().map(|one| hedged(one)).collect::<Vec<_>>()),
            Edit::Unhedged => without_words(text, &HEDGES),
            Edit::Rewritten => text.to_owned(),
        };
        if !edited.chars().any(char::is_alphanumeric) {
            return Err(NoEdit::Empty(self.name()));
        }
        // Apostrophes are written alike, which is no edit.
        let plain = text.replace('’', "'");
        let same = edited.replace('’', "'").split_whitespace().eq(plain.split_whitespace());
        if same { Err(NoEdit::Same(self.name())) } else { Ok(edited) }
    }
}

impl fmt::Display for Edit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// Why an edit gives no text.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum NoEdit {
    /// It would leave no word.
    #[error("{0} would leave no word of the passage")]
    Empty(&'static str),
    /// It changes nothing.
    #[error("{0} changes nothing in this passage")]
    Same(&'static str),
}

/// The source that is named.
const SOURCE: &str = "the BBC";

/// Full forms and their contractions.
const CONTRACTIONS: [(&str, &str); 16] = [
    ("do not", "don't"),
    ("does not", "doesn't"),
    ("did not", "didn't"),
    ("is not", "isn't"),
    ("are not", "aren't"),
    ("was not", "wasn't"),
    ("were not", "weren't"),
    ("cannot", "can't"),
    ("could not", "couldn't"),
    ("should not", "shouldn't"),
    ("would not", "wouldn't"),
    ("will not", "won't"),
    ("has not", "hasn't"),
    ("have not", "haven't"),
    ("it is", "it's"),
    ("they are", "they're"),
];

/// Words that hedge and can go without harm to the sentence.
const HEDGES: [&str; 9] = [
    "perhaps",
    "possibly",
    "probably",
    "arguably",
    "apparently",
    "seemingly",
    "presumably",
    "allegedly",
    "maybe",
];

/// The sentences of a text.
fn split(text: &str) -> Vec<String> {
    let all = text.split_sentence_bounds().map(str::trim).filter(|sentence| !sentence.is_empty());
    all.map(str::to_owned).collect()
}

fn joined(sentences: &[String]) -> String {
    sentences.join(" ")
}

/// The first letter in upper or lower case; a name or an acronym keeps its capital.
fn first_letter(text: &str, upper: bool) -> String {
    let mut letters = text.chars();
    let Some(first) = letters.next() else { return String::new() };
    let rest = letters.as_str();
    let common =
        ["the", "a", "an", "it", "they", "this", "these", "there", "we", "some", "many", "in", "if", "for"];
    let word: String = text.chars().take_while(|c| c.is_alphanumeric()).collect::<String>().to_lowercase();
    match upper {
        true => format!("{}{rest}", first.to_uppercase()),
        false if common.contains(&word.as_str()) => format!("{}{rest}", first.to_lowercase()),
        false => text.to_owned(),
    }
}

fn hedged(sentence: &str) -> String {
    if sentence.trim_end().ends_with('?') {
        return sentence.to_owned();
    }
    format!("It may be that {}", first_letter(sentence, false))
}

/// Replaces whole phrases, whatever their case; a capital at their beginning stays.
fn replaced(text: &str, pairs: &[(&str, &str)]) -> String {
    let mut edited = text.replace('’', "'");
    for (from, to) in pairs {
        let mut done = String::new();
        let mut rest = edited.as_str();
        while let Some(at) = find_phrase(rest, from) {
            let own = &rest[at..at + from.len()];
            let capital = own.chars().next().is_some_and(char::is_uppercase);
            done.push_str(&rest[..at]);
            done.push_str(&if capital { first_letter(to, true) } else { (*to).to_owned() });
            rest = &rest[at + from.len()..];
        }
        done.push_str(rest);
        edited = done;
    }
    edited
}

/// The place of an ASCII phrase as whole words.
fn find_phrase(text: &str, phrase: &str) -> Option<usize> {
    let lower = text.to_ascii_lowercase();
    lower.match_indices(phrase).map(|(at, _)| at).find(|at| {
        let inside = |c: char| c.is_alphanumeric() || c == '\'';
        let before = text[..*at].chars().next_back().is_some_and(inside);
        let after = text[at + phrase.len()..].chars().next().is_some_and(inside);
        !before && !after
    })
}

/// Removes words, with a comma that closes them.
fn without_words(text: &str, words: &[&str]) -> String {
    let mut edited = text.to_owned();
    for word in words {
        while let Some(at) = find_phrase(&edited, word) {
            let capital = edited[at..].chars().next().is_some_and(char::is_uppercase);
            let tail = edited[at + word.len()..].trim_start_matches(',').trim_start().to_owned();
            let head = edited[..at].to_owned();
            edited = head + &if capital { first_letter(&tail, true) } else { tail };
        }
    }
    edited
}

/// Removes `According to …,`, bracketed citations and addresses.
fn without_source(text: &str) -> String {
    let mut edited = text.to_owned();
    while let Some(at) = find_phrase(&edited, "according to") {
        // Up to the comma or colon that closes it, within the sentence.
        let tail = &edited[at..];
        let end = tail.find([',', ':', '.', '!', '?', ';']).unwrap_or(tail.len());
        let closes = tail[end..].starts_with([',', ':']);
        let rest = tail[end + usize::from(closes)..].trim_start().to_owned();
        let head = edited[..at].trim_end().trim_end_matches(',').to_owned();
        let begins = head.is_empty() || head.ends_with(['.', '!', '?']);
        let blank = if head.is_empty() || rest.starts_with(['.', '!', '?', ';']) { "" } else { " " };
        edited = format!("{head}{blank}{}", if begins { first_letter(&rest, true) } else { rest });
    }
    let cited = |inside: &str| inside.chars().any(|c| c.is_ascii_digit()) && inside.chars().count() <= 60;
    for (open, close) in [('[', ']'), ('(', ')')] {
        let mut done = String::new();
        let mut rest = edited.as_str();
        while let Some(at) = rest.find(open) {
            let inside = rest[at + 1..].find(close).map(|end| &rest[at + 1..at + 1 + end]);
            match inside.filter(|inside| cited(inside)) {
                Some(inside) => {
                    done.push_str(rest[..at].trim_end());
                    rest = &rest[at + inside.len() + 2..];
                }
                None => {
                    done.push_str(&rest[..=at]);
                    rest = &rest[at + 1..];
                }
            }
        }
        done.push_str(rest);
        edited = done;
    }
    let words = edited.split_whitespace();
    let plain =
        words.filter(|word| !["http://", "https://", "www."].iter().any(|begin| word.starts_with(begin)));
    plain.collect::<Vec<_>>().join(" ")
}

/// `40 %` and `40 percent` become `a share`, `1,200` becomes `some`.
fn without_numbers(text: &str) -> String {
    let words: Vec<&str> = text.split_whitespace().collect();
    let mut edited: Vec<String> = Vec::new();
    let mut skip = false;
    for (at, word) in words.iter().enumerate() {
        if std::mem::take(&mut skip) {
            continue;
        }
        let core = word.trim_matches(|c: char| !c.is_alphanumeric() && c != '%');
        let number = core.trim_end_matches('%');
        let is_number = number.starts_with(|c: char| c.is_ascii_digit())
            && number.chars().all(|c| c.is_ascii_digit() || matches!(c, ',' | '.' | '-' | '–'));
        if !is_number {
            edited.push((*word).to_owned());
            continue;
        }
        let next =
            words.get(at + 1).map(|next| next.trim_matches(|c: char| c.is_ascii_punctuation() && c != '%'));
        let percent = core.ends_with('%');
        let spelled = !percent && next.is_some_and(|next| matches!(next, "%" | "percent"));
        skip = spelled;
        let closing = if skip { words[at + 1] } else { word };
        let mark: String =
            closing.chars().rev().take_while(|c| matches!(c, '.' | ',' | ';' | ':' | '!' | '?')).collect();
        let core = if percent || spelled { "a share" } else { "some" };
        edited.push(format!("{core}{}", mark.chars().rev().collect::<String>()));
    }
    edited.join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn done(edit: Edit, text: &str) -> String {
        edit.of(text).unwrap()
    }

    #[test]
    fn every_edit_changes_what_its_name_says_and_nothing_else() {
        let text = "According to Smith, zoos do not help. Perhaps 40 % of bears suffer [3].";
        assert_eq!(done(Edit::SourceNamed, "Zoos help."), "According to the BBC: Zoos help.");
        assert_eq!(done(Edit::SourceRemoved, text), "Zoos do not help. Perhaps 40 % of bears suffer.");
        assert_eq!(
            done(Edit::SourceRemoved, "It fell, according to the BBC. See www.x.org now."),
            "It fell. See now."
        );
        assert_eq!(done(Edit::Casual, "Do not go. It is late."), "Don't go. It's late.");
        assert_eq!(done(Edit::Formal, "Don’t go; they can't."), "Do not go; they cannot.");
        assert_eq!(done(Edit::Shorter, "One. Two. Three."), "One. Two.");
        assert_eq!(done(Edit::Longer, "One. Two."), "One. Two. One. Two.");
        assert_eq!(done(Edit::FirstLast, "One. Two. Three."), "Two. Three. One.");
        assert_eq!(
            done(Edit::NumbersRemoved, "In 1990, 40 % of 1,200 bears and 5% of apes fell."),
            "In some, a share of some bears and a share of apes fell."
        );
        assert_eq!(
            done(Edit::Hedged, "The zoo helps. Bears suffer."),
            "It may be that the zoo helps. It may be that Bears suffer."
        );
        assert_eq!(done(Edit::Unhedged, "Perhaps, zoos help. They possibly harm."), "Zoos help. They harm.");
    }

    #[test]
    fn an_edit_that_changes_nothing_or_empties_a_passage_is_refused() {
        for edit in [Edit::SourceRemoved, Edit::Casual, Edit::Unhedged, Edit::FirstLast, Edit::NumbersRemoved]
        {
            assert_eq!(edit.of("Zoos help."), Err(NoEdit::Same(edit.name())), "{edit}");
        }
        assert_eq!(Edit::SourceRemoved.of("https://www.example.org"), Err(NoEdit::Empty("source-removed")));
        assert_eq!(Edit::Unhedged.of("Perhaps."), Err(NoEdit::Empty("unhedged")));
        for edit in Edit::BY_RULE {
            assert!(edit.of("").is_err() || edit == Edit::SourceNamed, "{edit}");
        }
    }
}
