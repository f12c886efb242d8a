//! A piece of a passage by where it begins and ends.
//!
//! Tools count characters differently once a text has any beyond the first 65 536: browsers count halves of them. So a piece is
//! given by numbers only in texts where all counts agree.

/// Where `piece` first stands in `text`, in characters; none where it does not or where counts could differ.
pub fn of(piece: &str, text: &str) -> Option<(usize, usize)> {
    if piece.is_empty() || text.chars().any(|c| c.len_utf16() > 1) {
        return None;
    }
    let start = text[..text.find(piece)?].chars().count();
    Some((start, start + piece.chars().count()))
}

/// The characters from `start` to `end`; none where there are not so many.
pub fn cut(text: &str, start: usize, end: usize) -> Option<String> {
    let piece: String = text.chars().skip(start).take(end.checked_sub(start)?).collect();
    (piece.chars().count() == end - start).then_some(piece)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_piece_comes_back_by_its_numbers_or_has_none() {
        let text = "Žlutý kůň — حصان";
        for piece in ["Žlutý", "ůň", "حصان", text] {
            let (start, end) = of(piece, text).unwrap();
            assert_eq!(cut(text, start, end).as_deref(), Some(piece));
        }
        assert_eq!(of("horse", text), None);
        assert_eq!(of("a", "a 🐎"), None);
        assert_eq!(cut(text, 3, 2), None);
        assert_eq!(cut(text, 3, 99), None);
    }
}
