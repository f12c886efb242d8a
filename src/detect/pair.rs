//! What of a passage and a statement is read.

use crate::corpus::Passage;

/// Tokens of the statement that are read.
pub const STATEMENT: usize = 96;

/// Bytes of a passage that are read: more than a chapter. Without a bound one passage of megabytes would take every detector hours.
const LONGEST: usize = 100_000;

/// Passage text, then title, as BERDS gives it to its detectors.
pub fn text(passage: &Passage) -> String {
    let beginning = |text: &'_ str| text[..text.floor_char_boundary(LONGEST)].to_owned();
    format!("{} {}", beginning(&passage.text), beginning(&passage.title)).trim_end().to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn of_a_passage_without_end_the_beginning_is_read_and_the_title_still() {
        let passage = |text: String| Passage { title: "T".into(), text, ..Passage::default() };
        assert_eq!(text(&passage("x".into())), "x T");
        let read = text(&passage("é".repeat(5_000_000)));
        assert_eq!((read.len(), read.ends_with("é T")), (LONGEST + 2, true));
    }
}
