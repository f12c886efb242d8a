//! Texts made comparable, and cut.

use std::collections::HashSet;

/// White space and control characters as single spaces, none at the ends.
pub(super) fn plain(text: &str) -> String {
    let words = text.split(|c: char| c.is_whitespace() || c.is_control()).filter(|word| !word.is_empty());
    words.collect::<Vec<_>>().join(" ")
}

/// White space and case folded.
pub(super) fn folded(text: &str) -> String {
    plain(text).to_lowercase()
}

/// Letters and digits alone, case folded: two texts with the same key say the same.
pub(super) fn key(text: &str) -> String {
    text.chars().filter(|c| c.is_alphanumeric()).flat_map(char::to_lowercase).collect()
}

/// Whether a text says something that was not said before.
pub(super) fn is_new(seen: &mut HashSet<String>, text: &str) -> bool {
    let key = key(text);
    !key.is_empty() && seen.insert(key)
}

/// The beginning of a text up to its `count`th word, words being what white space parts.
pub(super) fn cut(text: &str, count: usize) -> &str {
    let (mut words, mut inside) = (0, false);
    for (i, c) in text.char_indices() {
        if c.is_whitespace() {
            if inside && words == count {
                return &text[..i];
            }
            inside = false;
        } else if !inside {
            inside = true;
            words += 1;
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_is_cut_behind_a_word_and_a_short_one_is_left() {
        for (text, count, cut_to) in
            [(" a  bé\nc d", 2, " a  bé"), ("a b", 2, "a b"), ("a b ", 5, "a b "), ("", 3, "")]
        {
            assert_eq!(cut(text, count), cut_to, "{text:?}");
        }
    }

    #[test]
    fn texts_that_differ_in_case_space_and_signs_alone_say_the_same() {
        let mut seen = HashSet::new();
        assert!(is_new(&mut seen, "Zoos: keep animals."));
        assert!(!is_new(&mut seen, "  zoos keep\nANIMALS!"));
        assert!(!is_new(&mut seen, "…"));
        assert!(is_new(&mut seen, "動物園"));
    }
}
