//! What of a passage and a statement is read.

use super::DetectError;
use crate::corpus::Passage;

/// Tokens of the statement that are read.
pub const STATEMENT: usize = 96;

/// Bytes of a passage that are read: more than a chapter. Without a bound one passage of megabytes would take every detector hours.
const LONGEST: usize = 100_000;

/// Passage text, then title, as BERDS gives it to its detectors.
///
/// # Errors
/// Both are empty. A title alone is judged: published corpora hold passages that are nothing else.
pub fn text(passage: &Passage) -> Result<String, DetectError> {
    let beginning = |text: &'_ str| text[..text.floor_char_boundary(LONGEST)].to_owned();
    let read = format!("{} {}", beginning(&passage.text), beginning(&passage.title));
    if read.trim().is_empty() { Err(DetectError::Empty("passage")) } else { Ok(read.trim_end().to_owned()) }
}

/// Whether a passage is so long that its beginning alone is judged.
pub fn cut(passage: &Passage) -> bool {
    passage.text.len() > LONGEST
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn of_a_passage_without_end_the_beginning_is_read_and_the_title_still() {
        let passage = |text: String| Passage { title: "T".into(), text, ..Passage::default() };
        assert_eq!(text(&passage("x".into())), Ok("x T".into()));
        let long = passage("é".repeat(5_000_000));
        let read = text(&long).unwrap();
        assert_eq!((read.len(), read.ends_with("é T"), cut(&long)), (LONGEST + 2, true, true));
    }

    #[test]
    fn a_title_alone_is_read_and_without_one_the_passage_is_empty() {
        let titled = |title: &str| Passage { title: title.into(), text: " ".into(), ..Passage::default() };
        assert_eq!(text(&titled("Zoos")).as_deref(), Ok("  Zoos"));
        assert_eq!((text(&titled("")), cut(&titled(""))), (Err(DetectError::Empty("passage")), false));
    }
}
