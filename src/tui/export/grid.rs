//! A frame as rows of glyphs: what every format is written from.

use ratatui::buffer::{Buffer, Cell};
use ratatui::style::{Color, Modifier};
use unicode_width::UnicodeWidthStr;

/// What stands in one column, or in the two of a wide character.
#[derive(Clone, Debug)]
pub struct Glyph {
    /// The first column.
    pub column: usize,
    /// How many columns it takes.
    pub columns: usize,
    /// Without control characters, so that it may stand in any document.
    pub text: String,
    /// How it looks.
    pub look: Look,
}

impl Glyph {
    /// The character, if it is only one.
    pub fn single(&self) -> Option<char> {
        let mut chars = self.text.chars();
        chars.next().filter(|_| chars.next().is_none())
    }
}

/// Colours and modifiers of a cell.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Look {
    /// Of the text.
    pub fg: Color,
    /// Behind it.
    pub bg: Color,
    /// Weight, lines and the like.
    pub modifier: Modifier,
}

/// The rows, each with its glyphs from left to right; cells hidden under a wide character are left out.
pub fn rows(buffer: &Buffer) -> Vec<Vec<Glyph>> {
    let width = usize::from(buffer.area.width);
    buffer.content.chunks(width.max(1)).map(row).collect()
}

fn row(cells: &[Cell]) -> Vec<Glyph> {
    let mut glyphs = Vec::new();
    let mut column = 0;
    while let Some(cell) = cells.get(column) {
        let text = safe(cell.symbol());
        let columns = text.width().clamp(1, cells.len() - column);
        let look = Look { fg: cell.fg, bg: cell.bg, modifier: cell.modifier };
        glyphs.push(Glyph { column, columns, text, look });
        column += columns;
    }
    glyphs
}

/// With a visible stand-in for what no XML may hold and for what would turn the order of the text around.
fn safe(symbol: &str) -> String {
    let unfit = |c: char| {
        c.is_control()
            || matches!(c, '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}' | '\u{2028}' | '\u{2029}')
            || matches!(c, '\u{fffe}' | '\u{ffff}')
    };
    let text: String = symbol.chars().map(|c| if unfit(c) { '\u{fffd}' } else { c }).collect();
    if text.is_empty() { " ".into() } else { text }
}

/// The frame as plain text, without blanks at the ends of lines.
pub fn text(buffer: &Buffer) -> String {
    let mut all = String::new();
    for row in rows(buffer) {
        let line: String = row.iter().map(|glyph| glyph.text.as_str()).collect();
        all.push_str(line.trim_end());
        all.push('\n');
    }
    all
}

/// For XML and HTML, in text and in attributes alike.
pub fn escape(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '<' => escaped.push_str("&lt;"),
            '>' => escaped.push_str("&gt;"),
            '&' => escaped.push_str("&amp;"),
            '"' => escaped.push_str("&quot;"),
            '\'' => escaped.push_str("&#39;"),
            c => escaped.push(c),
        }
    }
    escaped
}

/// A title, which may come from a file's name: fit for a document, escaped.
pub fn heading(title: &str) -> String {
    escape(&safe(title))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_wide_character_takes_two_columns_and_hides_the_second() {
        let rows = rows(&Buffer::with_lines(["a物b"]));
        let places: Vec<_> = rows[0].iter().map(|g| (g.column, g.columns, g.text.as_str())).collect();
        assert_eq!(places, [(0, 1, "a"), (1, 2, "物"), (3, 1, "b")]);
    }

    #[test]
    fn control_characters_and_turned_text_become_a_stand_in() {
        assert_eq!(safe("\u{1b}"), "\u{fffd}");
        assert_eq!(safe("\u{0}"), "\u{fffd}");
        assert_eq!(safe("a\u{202e}"), "a\u{fffd}");
        assert_eq!(safe("\u{ffff}"), "\u{fffd}");
        assert_eq!(safe(""), " ");
    }

    #[test]
    fn text_has_no_blanks_at_the_end_of_a_line() {
        assert_eq!(text(&Buffer::with_lines(["ab  ", "物 c "])), "ab\n物 c\n");
    }

    #[test]
    fn all_five_special_characters_are_escaped() {
        assert_eq!(escape("<a href=\"x\">'&'</a>"), "&lt;a href=&quot;x&quot;&gt;&#39;&amp;&#39;&lt;/a&gt;");
    }
}
