//! Lines, blocks and braille as paths. Fonts differ in how far these reach, and a frame drawn with another font than
//! the one meant would fall apart at the joints.

use std::fmt::Write;

/// Width of a cell.
pub const WIDE: f32 = 10.0;
/// Height of a cell.
pub const HIGH: f32 = 20.0;
// Half a unit off the middle, so that lines of one and three units fall on whole pixels at every whole scale.
const MID: (f32, f32) = (5.5, 10.5);

/// How a path is drawn.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Pen {
    /// Filled, edges on pixels: neighbours meet without a seam.
    Sharp,
    /// Filled, edges smoothed.
    Smooth,
    /// A line one unit thick.
    Line,
}

/// A character as a path.
#[derive(Clone, Debug, PartialEq)]
pub struct Shape {
    /// Data of an SVG path.
    pub path: String,
    /// How it is drawn.
    pub pen: Pen,
    /// How much of its colour covers the ground, in percent.
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

/// Whether the character goes on from cell to cell, so that several in a row are one shape.
pub fn goes_on(c: char) -> bool {
    matches!(c, '─' | '━' | '░'..='▓' | '▁'..='█')
}

/// The shape of a character in the cell whose corner is at `x`, `y`; none where the font draws it.
pub fn shape(c: char, x: f32, y: f32) -> Option<Shape> {
    stretched(c, x, y, 1)
}

/// The same over several cells beside each other, for a character that [goes on](goes_on).
pub fn stretched(c: char, x: f32, y: f32, cells: usize) -> Option<Shape> {
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
    /// What reaches from edge to edge of a cell reaches so far.
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
                // As far over the middle as the thickest arm across it, which fills corners.
                self.arm(i, 0.0, half_of_this, next.max(last).max(0.5));
            }
        }
    }

    /// A piece from the edge in direction `i` (up, right, down, left) to `reach` beyond the middle; `aside` counts
    /// clockwise.
    fn arm(&mut self, i: usize, aside: f32, half: f32, reach: f32) {
        let (x, y) = MID;
        match i {
            0 => self.rect(x + aside - half, 0.0, 2.0 * half, y + reach),
            1 => self.rect(x - reach, y + aside - half, WIDE - x + reach, 2.0 * half),
            2 => self.rect(x - aside - half, y - reach, 2.0 * half, HIGH - y + reach),
            _ => self.rect(0.0, y - aside - half, x + reach, 2.0 * half),
        }
    }

    /// Rails two units off the middle, which stop at the rails of the arm beside them, and go round a corner.
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
                    for (beside, beyond, aside) in [(at(1), at(3), 2.0), (at(3), at(1), -2.0)] {
                        let reach = match (beside, at(2), beyond) {
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

    /// Four characters a count: light and heavy across, light and heavy down.
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
