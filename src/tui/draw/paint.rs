//! The last touch to a frame that is drawn: the ground of a theme that has its own, and plain ASCII for whoever needs it. What is
//! below may use any glyph of one column.

use ratatui::buffer::Buffer;
use ratatui::style::{Color, Modifier};

use crate::report::marks::Glyphs;
use crate::tui::theme::Theme;

/// Stands in the cells of a passage's own characters until [`finish`], which leaves them as they are. No theme blinks.
pub const OWN: Modifier = Modifier::RAPID_BLINK;

/// Goes over every cell.
pub fn finish(theme: Theme, glyphs: Glyphs, buffer: &mut Buffer) {
    let ground = theme.ground();
    for cell in &mut buffer.content {
        if let Some((text, ground)) = ground {
            cell.fg = if cell.fg == Color::Reset { text } else { cell.fg };
            cell.bg = if cell.bg == Color::Reset { ground } else { cell.bg };
        }
        let own = cell.modifier.contains(OWN);
        cell.modifier.remove(OWN);
        if glyphs == Glyphs::Ascii
            && let Some(glyph) = alone(cell.symbol())
            && let Some(plain) = put_there(glyph).or_else(|| plain(glyph).filter(|_| !own))
        {
            cell.set_char(plain);
        }
    }
}

/// The one character of a cell.
fn alone(symbol: &str) -> Option<char> {
    let mut chars = symbol.chars();
    chars.next().filter(|_| chars.next().is_none())
}

/// The ASCII for what the interface puts into a passage's characters: where they were cut off, and for a control character.
fn put_there(glyph: char) -> Option<char> {
    match glyph {
        '…' => Some('~'),
        '\u{2400}'..='\u{2421}' | '\u{fffd}' => Some('?'),
        _ => None,
    }
}

/// The ASCII for a glyph of the interface. The frame with the cursor keeps another line than the rest, without colour too.
fn plain(glyph: char) -> Option<char> {
    Some(match glyph {
        '─' | '–' | '−' => '-',
        '│' | '┤' | '├' => '|',
        '┌' | '┐' | '└' | '┘' | '┬' | '┴' | '┼' => '+',
        '━' => '=',
        '┃' | '┏' | '┓' | '┗' | '┛' => '#',
        '█' => '@',
        '▒' => ':',
        '▲' => 'Y',
        '▼' => 'N',
        '◆' | '●' | '■' | '★' | '◇' | '□' => '#',
        '○' => 'o',
        '◐' => '*',
        '↑' => '^',
        '↓' => 'v',
        '←' => '<',
        '→' | '▸' => '>',
        '▏' => '|',
        '✓' => 'y',
        '✗' => 'n',
        '·' => '.',
        '×' => 'x',
        '≠' => '#',
        '“' | '”' => '"',
        'α' => 'a',
        'κ' => 'k',
        'λ' => 'l',
        'Δ' => 'D',
        '•' => '*',
        '\u{2800}' => ' ',
        '\u{2801}'..='\u{28ff}' => '*',
        _ => return None,
    })
}
