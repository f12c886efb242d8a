//! Writes a drawn frame as text, with or without its styles (`parallax frame` prints this and tests compare it), and turns it into the rows of
//! glyphs that every other format is written from. Lines, blocks and braille become paths: fonts draw them to different lengths, which would
//! leave gaps between cells.

use std::fmt::Write;

use ratatui::buffer::{Buffer, Cell};
use ratatui::style::{Color, Modifier};
use unicode_width::UnicodeWidthStr;

/// A drawn frame.
#[derive(Clone, Debug, PartialEq)]
pub struct Dump {
    buffer: Buffer,
}

impl Dump {
    /// Makes a frame from a drawn buffer.
    pub fn of(buffer: Buffer) -> Self {
        Dump { buffer }
    }

    /// Returns the drawn buffer.
    pub fn buffer(&self) -> &Buffer {
        &self.buffer
    }

    /// Returns the text. With `style`, a second block has one letter per column, and a legend names the style of each letter. Letters are
    /// given in order of appearance; the second column of a wide character repeats the letter of the first.
    pub fn dump(&self, style: bool) -> String {
        let mut text = String::new();
        let mut letters = String::new();
        let mut legend: Vec<String> = Vec::new();
        for row in self.rows() {
            let (mut columns, mut shown, mut styled) = (0, String::new(), String::new());
            for cell in row {
                if columns > 0 {
                    // Hidden under the wide character before it.
                    columns -= 1;
                    styled.push(styled.chars().last().unwrap_or(' '));
                    continue;
                }
                shown.push_str(cell.symbol());
                columns = cell.symbol().width().saturating_sub(1);
                let name = style_name(cell);
                let place = legend.iter().position(|other| *other == name).unwrap_or_else(|| {
                    legend.push(name);
                    legend.len() - 1
                });
                styled.push(letter(place));
            }
            text.push_str(shown.trim_end());
            text.push('\n');
            letters.push_str(styled.trim_end());
            letters.push('\n');
        }
        if !style {
            return text;
        }
        let legend = legend.iter().enumerate().map(|(i, name)| format!("{} {name}\n", letter(i)));
        format!("{text}\n{letters}\n{}", legend.collect::<String>())
    }

    fn rows(&self) -> impl Iterator<Item = &[Cell]> {
        self.buffer.content.chunks(usize::from(self.buffer.area.width).max(1))
    }
}

/// Returns the letter of a style; letters repeat after 62 styles.
fn letter(place: usize) -> char {
    const LETTERS: &[u8] = b"abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789";
    char::from(LETTERS[place % LETTERS.len()])
}

/// Names the style of a cell.
fn style_name(cell: &Cell) -> String {
    let mut parts = Vec::new();
    if cell.fg != Color::Reset {
        parts.push(format!("{:?}", cell.fg).to_lowercase());
    }
    if cell.bg != Color::Reset {
        parts.push(format!("on {:?}", cell.bg).to_lowercase());
    }
    let modifiers = [
        (Modifier::BOLD, "bold"),
        (Modifier::DIM, "dim"),
        (Modifier::UNDERLINED, "underlined"),
        (Modifier::REVERSED, "reversed"),
        (Modifier::ITALIC, "italic"),
    ];
    parts.extend(
        modifiers.iter().filter(|(one, _)| cell.modifier.contains(*one)).map(|(_, name)| (*name).to_owned()),
    );
    if parts.is_empty() { "plain".into() } else { parts.join(" ") }
}

/// The content of one column, or of the two of a wide character.
#[derive(Clone, Debug)]
pub struct Glyph {
    /// The first column.
    pub column: usize,
    /// The number of columns it takes.
    pub columns: usize,
    /// The text without control characters, safe in any document.
    pub text: String,
    /// Its colours and modifiers.
    pub look: Look,
}

impl Glyph {
    /// Returns the character, if the text has only one.
    pub fn single(&self) -> Option<char> {
        let mut chars = self.text.chars();
        chars.next().filter(|_| chars.next().is_none())
    }
}

/// Colours and modifiers of a cell.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Look {
    /// The text colour.
    pub fg: Color,
    /// The background.
    pub bg: Color,
    /// Weight, underlines and the like.
    pub modifier: Modifier,
}

/// Returns the rows, each with its glyphs from left to right. A cell hidden under a wide character is left out.
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

/// Replaces characters that XML forbids or that reverse the text by a visible sign.
fn safe(symbol: &str) -> String {
    let unfit = |c: char| {
        c.is_control()
            || matches!(c, '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}' | '\u{2028}' | '\u{2029}')
            || matches!(c, '\u{fffe}' | '\u{ffff}')
    };
    let text: String = symbol.chars().map(|c| if unfit(c) { '\u{fffd}' } else { c }).collect();
    if text.is_empty() { " ".into() } else { text }
}

/// Writes the frame as plain text, without blanks at the ends of lines.
pub fn text(buffer: &Buffer) -> String {
    let mut all = String::new();
    for row in rows(buffer) {
        let line: String = row.iter().map(|glyph| glyph.text.as_str()).collect();
        all.push_str(line.trim_end());
        all.push('\n');
    }
    all
}

/// Escapes text for XML and HTML, in text and in attributes.
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

/// Escapes a title, which may come from a file name.
pub fn heading(title: &str) -> String {
    escape(&safe(title))
}

/// Width of a cell.
pub const WIDE: f32 = 10.0;
/// Height of a cell.
pub const HIGH: f32 = 20.0;
// The middle of a cell, moved by half a unit, so that lines of one and three units fall on whole pixels at every whole scale.
const MID: (f32, f32) = (5.5, 10.5);

/// How a path is drawn.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Pen {
    /// Filled, with edges on pixels, so that neighbours meet without a seam.
    Sharp,
    /// Filled, with smooth edges.
    Smooth,
    /// A line one unit thick.
    Line,
}

/// A character as a path.
#[derive(Clone, Debug, PartialEq)]
pub struct Shape {
    /// The data of an SVG path.
    pub path: String,
    /// How it is drawn.
    pub pen: Pen,
    /// How much of the background its colour covers, in percent.
    pub cover: u8,
}

/// Weights of the arms up, right, down and left of U+2500 to U+257F (1 light, 2 heavy, 3 double); dots where arms do
/// not describe the character.
const ARMS: &str = "\
    0101 0202 1010 2020 .... .... .... .... .... .... .... .... 0110 0210 0120 0220 \
    0011 0012 0021 0022 1100 1200 2100 2200 1001 1002 2001 2002 1110 1210 2110 1120 \
    2120 2210 1220 2220 1011 1012 2011 1021 2021 2012 1022 2022 0111 0112 0211 0212 \
    0121 0122 0221 0222 1101 1102 1201 1202 2101 2102 2201 2202 1111 1112 1211 1212 \
    2111 1121 2121 2112 2211 1122 1221 2212 1222 2122 2221 2222 .... .... .... .... \
    0303 3030 0310 0130 0330 0013 0031 0033 1300 3100 3300 1003 3001 3003 1310 3130 \
    3330 1013 3031 3033 0313 0131 0333 1303 3101 3303 1313 3131 3333 .... .... .... \
    .... .... .... .... 0001 1000 0100 0010 0002 2000 0200 0020 0201 1020 0102 2010";

/// Whether a run of the character is drawn as one shape.
pub fn joins_runs(c: char) -> bool {
    matches!(c, '─' | '━' | '░'..='▓' | '▁'..='█')
}

/// Returns the shape of a character in the cell with its corner at `x`, `y`; `None` if the font draws it.
pub fn shape(c: char, x: f32, y: f32) -> Option<Shape> {
    run_shape(c, x, y, 1)
}

/// Returns the shape of a run over several cells, of a character that [joins runs](joins_runs).
pub fn run_shape(c: char, x: f32, y: f32, cells: usize) -> Option<Shape> {
    let mut draw = Draw { path: String::new(), x, y, wide: WIDE * cells as f32 };
    let (mut pen, mut cover) = (Pen::Sharp, 100);
    match c {
        '┄'..='┋' | '╌'..='╏' => {
            pen = Pen::Smooth;
            draw.dashes(c);
        }
        '╭'..='╳' => {
            pen = Pen::Line;
            draw.curve(c);
        }
        '\u{2500}'..='\u{257f}' => draw.arms(c),
        '░'..='▓' => {
            cover = 25 * (1 + offset(c, '░') as u8);
            draw.rect(0.0, 0.0, WIDE, HIGH);
        }
        '▀'..='▟' => draw.block(c),
        '\u{2800}'..='\u{28ff}' => {
            pen = Pen::Smooth;
            draw.braille(offset(c, '\u{2800}'));
        }
        _ => return None,
    }
    Some(Shape { path: draw.path, pen, cover })
}

fn offset(c: char, from: char) -> u32 {
    u32::from(c) - u32::from(from)
}

struct Draw {
    path: String,
    x: f32,
    y: f32,
    /// The width of all cells.
    wide: f32,
}

impl Draw {
    fn put(&mut self, command: std::fmt::Arguments<'_>) {
        // Writing to a String cannot fail.
        let _ = self.path.write_fmt(command);
    }

    fn rect(&mut self, x: f32, y: f32, wide: f32, high: f32) {
        let (x, y) = (self.x + x, self.y + y);
        let wide = if wide == WIDE { self.wide } else { wide };
        self.put(format_args!("M{x} {y}h{wide}v{high}h-{wide}z"));
    }

    fn arms(&mut self, c: char) {
        let weights = ARMS.split_ascii_whitespace().nth(offset(c, '\u{2500}') as usize).unwrap_or_default();
        let mut arms = [0; 4];
        for (arm, weight) in arms.iter_mut().zip(weights.chars()) {
            *arm = weight.to_digit(10).unwrap_or(0);
        }
        if arms.contains(&3) {
            return self.double(arms);
        }
        let half = arms.map(|weight| [0.0, 0.5, 1.5][weight.min(2) as usize]);
        for (i, half_of_this) in half.into_iter().enumerate().filter(|(_, half)| *half > 0.0) {
            let (next, across, last) = (half[(i + 1) % 4], half[(i + 2) % 4], half[(i + 3) % 4]);
            if across == half_of_this {
                // One piece for both arms, drawn with the first.
                if i < 2 {
                    self.arm(i, 0.0, half_of_this, [HIGH - MID.1, MID.0][i]);
                }
            } else {
                // Reaches as far over the middle as the thickest crossing arm, which fills corners.
                self.arm(i, 0.0, half_of_this, next.max(last).max(0.5));
            }
        }
    }

    /// Draws a piece from the edge in direction `i` (up, right, down, left) to `reach` beyond the middle, moved clockwise by `aside`.
    fn arm(&mut self, i: usize, aside: f32, half: f32, reach: f32) {
        let (x, y) = MID;
        match i {
            0 => self.rect(x + aside - half, 0.0, 2.0 * half, y + reach),
            1 => self.rect(x - reach, y + aside - half, WIDE - x + reach, 2.0 * half),
            2 => self.rect(x - aside - half, y - reach, 2.0 * half, HIGH - y + reach),
            _ => self.rect(0.0, y - aside - half, x + reach, 2.0 * half),
        }
    }

    /// Draws double lines: rails two units off the middle, which stop at the rails of a crossing arm and go round a corner.
    fn double(&mut self, arms: [u32; 4]) {
        const NEAR: f32 = -1.5;
        const MIDDLE: f32 = 0.5;
        const FAR: f32 = 2.5;
        for (i, weight) in arms.into_iter().enumerate() {
            let at = |turns: usize| arms[(i + turns) % 4];
            match weight {
                0 => {}
                1 if at(2) > 0 => self.arm(i, 0.0, 0.5, MIDDLE),
                1 if at(1) > 0 && at(3) > 0 => self.arm(i, 0.0, 0.5, NEAR),
                1 => self.arm(i, 0.0, 0.5, FAR),
                _ => {
                    for (near, far, aside) in [(at(1), at(3), 2.0), (at(3), at(1), -2.0)] {
                        let reach = match (near, at(2), far) {
                            (3, _, _) => NEAR,
                            (0, 0, 3) => FAR,
                            _ => MIDDLE,
                        };
                        self.arm(i, aside, 0.5, reach);
                    }
                }
            }
        }
    }

    /// Draws dashes. There are four characters for each number of dashes: light and heavy across, light and heavy down.
    fn dashes(&mut self, c: char) {
        let (count, kind) = match c {
            '┄'..='┇' => (3, offset(c, '┄')),
            '┈'..='┋' => (4, offset(c, '┈')),
            _ => (2, offset(c, '╌')),
        };
        let thick = if kind % 2 == 0 { 1.0 } else { 3.0 };
        for i in 0..count {
            let (at, part) = (i as f32 / count as f32, 0.6 / count as f32);
            let start = at + 0.2 / count as f32;
            if kind < 2 {
                self.rect(start * WIDE, MID.1 - thick / 2.0, part * WIDE, thick);
            } else {
                self.rect(MID.0 - thick / 2.0, start * HIGH, thick, part * HIGH);
            }
        }
    }

    fn curve(&mut self, c: char) {
        let (left, top, right, low) = (self.x, self.y, self.x + WIDE, self.y + HIGH);
        let (x, y) = (self.x + MID.0, self.y + MID.1);
        let (r, l) = (WIDE - MID.0, MID.0);
        match c {
            '╭' => self.put(format_args!("M{x} {low}V{}A{r} {r} 0 0 1 {right} {y}", y + r)),
            '╮' => self.put(format_args!("M{x} {low}V{}A{l} {l} 0 0 0 {left} {y}", y + l)),
            '╯' => self.put(format_args!("M{x} {top}V{}A{l} {l} 0 0 1 {left} {y}", y - l)),
            '╰' => self.put(format_args!("M{x} {top}V{}A{r} {r} 0 0 0 {right} {y}", y - r)),
            _ => {
                if c != '╲' {
                    self.put(format_args!("M{left} {low}L{right} {top}"));
                }
                if c != '╱' {
                    self.put(format_args!("M{left} {top}L{right} {low}"));
                }
            }
        }
    }

    fn block(&mut self, c: char) {
        const QUADRANTS: [u8; 10] =
            [0b0010, 0b0001, 0b1000, 0b1011, 0b1001, 0b1110, 0b1101, 0b0100, 0b0110, 0b0111];
        let eighth = |n: u32, of: f32| n as f32 * of / 8.0;
        match c {
            '▀' => self.rect(0.0, 0.0, WIDE, HIGH / 2.0),
            '▁'..='█' => {
                let high = eighth(1 + offset(c, '▁'), HIGH);
                self.rect(0.0, HIGH - high, WIDE, high);
            }
            '▉'..='▏' => self.rect(0.0, 0.0, eighth(7 - offset(c, '▉'), WIDE), HIGH),
            '▐' => self.rect(WIDE / 2.0, 0.0, WIDE / 2.0, HIGH),
            '▔' => self.rect(0.0, 0.0, WIDE, HIGH / 8.0),
            '▕' => self.rect(WIDE * 7.0 / 8.0, 0.0, WIDE / 8.0, HIGH),
            _ => {
                let set = QUADRANTS.get(offset(c, '▖') as usize).copied().unwrap_or(0);
                for (bit, x, y) in [(8, 0.0, 0.0), (4, 0.5, 0.0), (2, 0.0, 0.5), (1, 0.5, 0.5)] {
                    if set & bit != 0 {
                        self.rect(x * WIDE, y * HIGH, WIDE / 2.0, HIGH / 2.0);
                    }
                }
            }
        }
    }

    fn braille(&mut self, set: u32) {
        const DOTS: [(f32, f32); 8] =
            [(0.0, 0.0), (0.0, 1.0), (0.0, 2.0), (1.0, 0.0), (1.0, 1.0), (1.0, 2.0), (0.0, 3.0), (1.0, 3.0)];
        for (i, (column, row)) in DOTS.iter().enumerate() {
            if set & (1 << i) != 0 {
                let (x, y) = (self.x + 1.25 + 5.0 * column, self.y + 2.5 + 5.0 * row);
                self.put(format_args!("M{x} {y}a1.25 1.25 0 1 0 2.5 0a1.25 1.25 0 1 0-2.5 0z"));
            }
        }
    }
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
    fn control_characters_and_reversed_text_become_a_visible_sign() {
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
