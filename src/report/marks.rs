//! The marks of statements: a glyph and a short label, so that nothing is shown by colour alone.

use crate::corpus::PassageIx;
use crate::engine::Judgments;
use crate::measure::SupportSet;
pub use crate::measure::share;
use crate::question::Question;

/// A number with its noun: `1 entry`, `2 entries`.
pub fn count(count: usize, one: &str, many: &str) -> String {
    format!("{count} {}", if count == 1 { one } else { many })
}

/// The characters that marks are drawn with.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Glyphs {
    /// Geometric shapes.
    #[default]
    Shapes,
    /// Plain ASCII, for terminals that draw shapes two columns wide.
    Ascii,
}

/// The mark of a statement, or of a passage by what it supports.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Mark {
    /// Supports the question; or the supporting statement itself.
    Support,
    /// Opposes the question; or the opposing statement itself.
    Oppose,
    /// Supports one statement of many, by number from 0; or that statement itself.
    Other(usize),
    /// Judged, and supports no statement.
    None,
    /// Supports more than one statement.
    Several,
    /// The side is unclear.
    Unclear,
    /// Not judged yet.
    Pending,
}

impl Glyphs {
    /// Returns the character of an empty cell.
    pub fn dot(self) -> &'static str {
        match self {
            Glyphs::Shapes => "·",
            Glyphs::Ascii => ".",
        }
    }
}

impl Mark {
    /// Returns the mark of a statement of a question.
    pub fn of(perspective: usize, question: &Question) -> Self {
        match question.supports {
            Some(supporting) if supporting == perspective => Mark::Support,
            Some(_) if question.perspectives.len() == 2 => Mark::Oppose,
            _ => Mark::Other(perspective),
        }
    }

    /// Returns the mark of a passage that supports `set`.
    pub fn of_set(set: Option<SupportSet>, question: &Question) -> Self {
        let Some(set) = set else { return Mark::Pending };
        match (set.len(), set.iter().next()) {
            (0, _) | (_, None) => Mark::None,
            (1, Some(perspective)) => Mark::of(perspective, question),
            _ => Mark::Several,
        }
    }

    /// Returns the mark of a passage, according to the judgments that count.
    pub fn of_passage(judgments: &Judgments, at: PassageIx, question: &Question) -> Self {
        if judgments.is_unclear(at) { Mark::Unclear } else { Mark::of_set(judgments.support(at), question) }
    }

    /// Returns its character.
    pub fn glyph(self, glyphs: Glyphs) -> char {
        const SHAPES: [char; 5] = ['◆', '●', '■', '★', '□'];
        let shapes = glyphs == Glyphs::Shapes;
        match self {
            Mark::Support => {
                if shapes {
                    '▲'
                } else {
                    // Not `+`, because a number often follows.
                    'Y'
                }
            }
            Mark::Oppose => {
                if shapes {
                    '▼'
                } else {
                    'N'
                }
            }
            Mark::Other(i) => {
                // A letter where there is no shape of its own.
                let shape = SHAPES.get(i).copied().filter(|_| shapes);
                shape.unwrap_or_else(|| letter(i).chars().next().unwrap_or('#'))
            }
            Mark::None => {
                if shapes {
                    '○'
                } else {
                    'o'
                }
            }
            Mark::Several => {
                if shapes {
                    '◐'
                } else {
                    '*'
                }
            }
            Mark::Unclear => {
                if shapes {
                    '◇'
                } else {
                    '?'
                }
            }
            Mark::Pending => {
                if shapes {
                    '·'
                } else {
                    '.'
                }
            }
        }
    }

    /// Returns its character and label: `▲`, `◆A`, `●B`; the label alone where the character is a letter: `F`.
    pub fn text(self, glyphs: Glyphs) -> String {
        match self {
            Mark::Other(i) if self.glyph(glyphs).is_ascii() => letter(i),
            Mark::Other(i) => format!("{}{}", self.glyph(glyphs), letter(i)),
            mark => mark.glyph(glyphs).to_string(),
        }
    }
}

/// Returns the label of a statement: A, B, … Z, A2, B2, …
fn letter(i: usize) -> String {
    let letter = char::from(b'A' + (i % 26) as u8);
    if i < 26 { letter.to_string() } else { format!("{letter}{}", i / 26 + 1) }
}

/// Writes a signed share: `+.40`, `-.20`, ` .00`. What rounds to 0 has no sign.
pub fn signed(p: f64) -> String {
    match share(p.abs()) {
        none if none == share(0.0) => format!(" {none}"),
        text if p > 0.0 => format!("+{text}"),
        _ => share(p),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shares_are_short_and_keep_their_sign() {
        assert_eq!([share(0.944), share(1.0), share(0.0)], [".94", "1.0", ".00"]);
        assert_eq!([signed(0.4), signed(-0.2), signed(0.0), signed(-1.0)], ["+.40", "-.20", " .00", "-1.0"]);
        assert_eq!([signed(0.004), signed(-0.004), signed(-0.006)], [" .00", " .00", "-.01"]);
    }

    #[test]
    fn two_sides_have_arrows_and_many_have_letters() {
        let question = |m: usize, supports| Question {
            perspectives: vec![String::new(); m],
            supports,
            ..Question::default()
        };
        assert_eq!(Mark::of(1, &question(2, Some(0))).text(Glyphs::Shapes), "▼");
        assert_eq!(Mark::of(1, &question(3, None)).text(Glyphs::Shapes), "●B");
        assert_eq!(Mark::of(27, &question(42, None)).text(Glyphs::Ascii), "B2");
        assert_eq!(
            Mark::of(5, &question(6, None)).text(Glyphs::Shapes),
            "F",
            "a sixth shape would repeat the first"
        );
    }

    #[test]
    fn no_mark_of_a_side_reads_as_the_sign_of_the_number_after_it() {
        for mark in [Mark::Support, Mark::Oppose, Mark::None, Mark::Several, Mark::Unclear] {
            let text = format!("{}{}", mark.text(Glyphs::Ascii), share(0.8));
            assert!(text.parse::<f64>().is_err(), "{text}");
        }
    }
}
