//! Text → terms, as Lucene's English analyzer does it.
//!
//! Standard tokenizer (UAX #29 words), possessive strip, lower case, Lucene's stop set, original Porter stem. tantivy's
//! own English analysis stems by Porter2 and keeps possessives, which moves published figures by points.

use std::ops::Range;

use unicode_segmentation::UnicodeSegmentation;

const STOP: [&str; 33] = [
    "a", "an", "and", "are", "as", "at", "be", "but", "by", "for", "if", "in", "into", "is", "it", "no",
    "not", "of", "on", "or", "such", "that", "the", "their", "then", "there", "these", "they", "this", "to",
    "was", "will", "with",
];

/// Lucene cuts longer words into pieces of this many characters.
const LONGEST: usize = 255;

/// A term and the bytes of the text it was made from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Term {
    /// The stem.
    pub text: String,
    /// Where its word stands.
    pub at: Range<usize>,
}

/// The terms of a text, in order.
pub fn terms(text: &str) -> Vec<Term> {
    let mut out = Vec::new();
    for (start, word) in text.unicode_word_indices() {
        let mut from = start;
        for piece in pieces(word) {
            let at = from..from + piece.len();
            from = at.end;
            if let Some(text) = term(piece) {
                out.push(Term { text, at });
            }
        }
    }
    out
}

fn pieces(word: &str) -> impl Iterator<Item = &str> {
    let mut rest = word;
    std::iter::from_fn(move || {
        if rest.is_empty() {
            return None;
        }
        let end = rest.char_indices().nth(LONGEST).map_or(rest.len(), |(i, _)| i);
        let (piece, tail) = rest.split_at(end);
        rest = tail;
        Some(piece)
    })
}

fn term(word: &str) -> Option<String> {
    let word = word
        .strip_suffix(['s', 'S'])
        .and_then(|w| w.strip_suffix(['\'', '\u{2019}', '\u{ff07}']))
        .unwrap_or(word);
    let lower = word.to_lowercase();
    if lower.is_empty() || STOP.contains(&lower.as_str()) {
        return None;
    }
    Some(stem(&lower))
}

/// The original Porter stem with the two departures that its author published later and Lucene has: `bli` → `ble` and
/// `logi` → `log`, behind a vowel and a consonant.
fn stem(word: &str) -> String {
    // Lucene leaves words of one or two UTF-16 units as they are; letters other than a–z count as consonants.
    if word.encode_utf16().count() < 3 {
        return word.to_owned();
    }
    let departure = [
        ("blies", "ble"),
        ("bly", "ble"),
        ("bli", "ble"),
        ("logies", "log"),
        ("logy", "log"),
        ("logi", "log"),
    ]
    .iter()
    .find_map(|(ending, other)| Some((word.strip_suffix(ending)?, other)))
    .filter(|(before, _)| has_measure(before))
    .map(|(before, other)| format!("{before}{other}"));
    let porter = frostem::Stemmer::new(frostem::Algorithm::Porter);
    porter.stem(departure.as_deref().unwrap_or(word)).into_owned()
}

/// Porter's m > 0: somewhere a consonant follows a vowel.
fn has_measure(text: &str) -> bool {
    let mut vowel_before = false;
    text.chars().any(|c| {
        let vowel = matches!(c, 'a' | 'e' | 'i' | 'o' | 'u') || (c == 'y' && !vowel_before);
        let turn = vowel_before && !vowel;
        vowel_before = vowel;
        turn
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn texts(text: &str) -> Vec<String> {
        terms(text).into_iter().map(|term| term.text).collect()
    }

    #[test]
    fn words_are_lowered_stemmed_and_stopped_as_in_lucene() {
        assert_eq!(
            texts("The keepers' animals were NOT relational; it's Zoo's"),
            ["keeper", "anim", "were", "relat", "zoo"]
        );
    }

    #[test]
    fn the_later_departures_of_porters_stemmer_are_lucenes_too() {
        assert_eq!(
            texts("possibly possible archaeology archaeological technologies naïve"),
            ["possibl", "possibl", "archaeolog", "archaeolog", "technolog", "naïv"]
        );
    }

    #[test]
    fn a_term_knows_where_its_word_stands() {
        let text = "wide Züge running";
        assert_eq!(
            terms(text).iter().map(|t| &text[t.at.clone()]).collect::<Vec<_>>(),
            ["wide", "Züge", "running"]
        );
    }

    #[test]
    fn every_ideograph_is_a_term_and_a_word_without_end_is_cut() {
        assert_eq!(texts("動物園"), ["動", "物", "園"]);
        assert_eq!(texts(&"x".repeat(600)).iter().map(String::len).collect::<Vec<_>>(), [255, 255, 90]);
        assert_eq!(texts("🦁 … \u{1b}[31m").len(), 1);
    }
}
