//! The last touch to a frame that is drawn: the ground of a theme that has its own, and plain ASCII for whoever needs it. What is
//! below may use any glyph of one column.

use ratatui::buffer::Buffer;
use ratatui::style::Color;

use crate::report::marks::Glyphs;
use crate::tui::theme::Theme;

/// Goes over every cell.
pub fn finish(theme: Theme, glyphs: Glyphs, buffer: &mut Buffer) {
    let ground = theme.ground();
    for cell in &mut buffer.content {
        if let Some((text, ground)) = ground {
            cell.fg = if cell.fg == Color::Reset { text } else { cell.fg };
            cell.bg = if cell.bg == Color::Reset { ground } else { cell.bg };
        }
        if glyphs == Glyphs::Ascii
            && let Some(plain) = plain(cell.symbol())
        {
            cell.set_char(plain);
        }
    }
}

/// The ASCII for a glyph of the interface. The frame with the cursor keeps another line than the rest, without colour too. What
/// else is not ASCII is a passage's own.
fn plain(symbol: &str) -> Option<char> {
    let mut chars = symbol.chars();
    let (glyph, None) = (chars.next()?, chars.next()) else { return None };
    Some(match glyph {
        '─' | '–' | '−' => '-',
        '│' | '┤' | '├' => '|',
        '┌' | '┐' | '└' | '┘' | '┬' | '┴' | '┼' => '+',
        '━' => '=',
        '┃' | '┏' | '┓' | '┗' | '┛' => '#',
        '█' => '=',
        '▒' => '#',
        '▲' => '+',
        '▼' => '-',
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
        '…' => '~',
        '×' => 'x',
        '≠' => '#',
        '“' | '”' => '"',
        'α' => 'a',
        'κ' => 'k',
        'λ' => 'l',
        'Δ' => 'D',
        '•' => '*',
        // What a control character of a passage is shown as.
        '\u{2400}'..='\u{2421}' => '?',
        '\u{2800}' => ' ',
        '\u{2801}'..='\u{28ff}' => '*',
        _ => return None,
    })
}
