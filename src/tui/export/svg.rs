//! A frame as SVG: every character at the place of its cell, whatever font the reader has.

use std::collections::BTreeMap;
use std::fmt::Write;

use ratatui::buffer::Buffer;
use ratatui::style::Modifier;

use super::grid::{Glyph, Look, escape, heading, rows};
use super::palette::{DARK, Rgb};
use super::shapes::{HIGH, Pen, WIDE, goes_on, stretched};

/// Around the frame.
pub(super) const MARGIN: f32 = 10.0;
/// At this size, DejaVu Sans Mono advances by the width of a cell.
const SIZE: f32 = 16.6;
/// From the top of a cell.
const BASELINE: f32 = 15.5;
const FONTS: &str = "DejaVu Sans Mono,Menlo,Consolas,Cascadia Mono,Liberation Mono,monospace";

/// A look in colours.
#[derive(Clone, Copy, PartialEq)]
struct Ink {
    fg: Rgb,
    bg: Rgb,
    bold: bool,
    italic: bool,
}

impl Ink {
    fn of(look: Look) -> Ink {
        let has = |modifier| look.modifier.contains(modifier);
        let (mut fg, mut bg) = (DARK.rgb(look.fg, DARK.text), DARK.rgb(look.bg, DARK.ground));
        if has(Modifier::REVERSED) {
            (fg, bg) = (bg, fg);
        }
        if has(Modifier::DIM) {
            fg = fg.over(bg, 60);
        }
        if has(Modifier::HIDDEN) {
            fg = bg;
        }
        Ink { fg, bg, bold: has(Modifier::BOLD), italic: has(Modifier::ITALIC) }
    }
}

/// Characters of one ink in one row, one a cell.
struct Run {
    ink: Ink,
    baseline: f32,
    x: f32,
    text: String,
}

/// Rows as they are drawn one after another.
pub(super) struct Picture {
    /// Behind everything; what has it for its ground needs none.
    ground: Rgb,
    grounds: String,
    shapes: BTreeMap<(Pen, Rgb), String>,
    lines: String,
    texts: String,
    run: Option<Run>,
}

/// A self-contained SVG of the frame. Lines, blocks and braille are paths; the rest is text that can be selected.
pub fn svg(buffer: &Buffer, title: &str) -> String {
    let rows = rows(buffer);
    let ground = ground(buffer);
    let mut picture = Picture::on(ground);
    for (i, row) in rows.iter().enumerate() {
        picture.row(row, MARGIN + i as f32 * HIGH);
    }
    let size = (buffer.area.width, buffer.area.height);
    format!("{}{}</g>\n</svg>\n", beginning(size, ground, title, ""), picture.markup())
}

/// What a document begins with: its size in cells, its ground, perhaps a style sheet, and a group with the font.
pub(super) fn beginning((columns, rows): (u16, u16), ground: Rgb, title: &str, style: &str) -> String {
    let wide = f32::from(columns) * WIDE + 2.0 * MARGIN;
    let high = f32::from(rows) * HIGH + 2.0 * MARGIN;
    format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{wide}\" height=\"{high}\" \
         viewBox=\"0 0 {wide} {high}\" role=\"img\">\n<title>{}</title>\n{style}\
         <rect width=\"{wide}\" height=\"{high}\" fill=\"{ground}\"/>\n\
         <g font-family=\"{FONTS}\" font-size=\"{SIZE}\" fill=\"{}\">\n",
        heading(title),
        DARK.text
    )
}

/// What lies behind everything, the margin too: the ground of the first cell.
pub(super) fn ground(buffer: &Buffer) -> Rgb {
    buffer.content.first().map_or(DARK.ground, |cell| DARK.rgb(cell.bg, DARK.ground))
}

impl Picture {
    /// Nothing yet.
    pub(super) fn on(ground: Rgb) -> Self {
        let (grounds, lines, texts) = (String::new(), String::new(), String::new());
        Picture { ground, grounds, shapes: BTreeMap::new(), lines, texts, run: None }
    }

    /// The elements, grounds first.
    pub(super) fn markup(&self) -> String {
        let mut svg = String::new();
        let sharp = |svg: &mut String, elements: &str| {
            if !elements.is_empty() {
                let _ = writeln!(svg, "<g shape-rendering=\"crispEdges\">\n{elements}</g>");
            }
        };
        sharp(&mut svg, &self.grounds);
        for ((pen, colour), path) in &self.shapes {
            let paint = match pen {
                Pen::Sharp => format!("shape-rendering=\"crispEdges\" fill=\"{colour}\""),
                Pen::Smooth => format!("fill=\"{colour}\""),
                Pen::Line => format!("fill=\"none\" stroke=\"{colour}\""),
            };
            let _ = writeln!(svg, "<path {paint} d=\"{path}\"/>");
        }
        sharp(&mut svg, &self.lines);
        svg + &self.texts
    }

    /// Draws a row whose upper edge is at `top`.
    pub(super) fn row(&mut self, row: &[Glyph], top: f32) {
        let ground = self.ground;
        stretches(
            row,
            |ink, _| (ink.bg != ground).then_some(ink.bg),
            |colour, x, wide| {
                rect(&mut self.grounds, colour, (x, top), (wide, HIGH));
            },
        );
        for (modifier, down) in [(Modifier::UNDERLINED, 18.0), (Modifier::CROSSED_OUT, 10.0)] {
            stretches(
                row,
                |ink, look| look.modifier.contains(modifier).then_some(ink.fg),
                |colour, x, wide| {
                    rect(&mut self.lines, colour, (x, top + down), (wide, 1.0));
                },
            );
        }
        let one_shape =
            |a: &Glyph, b: &Glyph| a.look == b.look && a.text == b.text && a.single().is_some_and(goes_on);
        for part in row.chunk_by(one_shape) {
            if let Some(first) = part.first() {
                self.glyph(first, part.len(), top);
            }
        }
        self.flush();
    }

    fn glyph(&mut self, glyph: &Glyph, cells: usize, top: f32) {
        let (ink, x) = (Ink::of(glyph.look), left(glyph));
        let single = glyph.single();
        if let Some(shape) = single.and_then(|c| stretched(c, x, top, cells)) {
            self.flush();
            let colour = ink.fg.over(ink.bg, shape.cover);
            self.shapes.entry((shape.pen, colour)).or_default().push_str(&shape.path);
            return;
        }
        if self.run.as_ref().is_some_and(|run| run.ink != ink) {
            self.flush();
        }
        let baseline = top + BASELINE;
        match single {
            // Viewers disagree on whether blanks in a row are kept, so a run has one at most.
            Some(' ') if self.run.as_ref().is_none_or(|run| run.text.ends_with(' ')) => self.flush(),
            // Every monospace font has these, all of one width.
            Some(c @ (' '..='~' | '\u{a1}'..='\u{24f}')) if glyph.columns == 1 => {
                let run = self.run.get_or_insert(Run { ink, baseline, x, text: String::new() });
                run.text.push(c);
            }
            // Fonts for these seldom fit the grid; centred on its cells, a glyph errs evenly.
            _ => {
                self.flush();
                let middle = x + glyph.columns as f32 * WIDE / 2.0;
                self.text(ink, &format!("{middle}\" text-anchor=\"middle"), baseline, &glyph.text);
            }
        }
    }

    fn flush(&mut self) {
        let Some(run) = self.run.take() else { return };
        let text = run.text.trim_end_matches(' ');
        let columns = text.chars().count();
        // The reader's font need not advance by the width of a cell.
        let long =
            if columns > 1 { format!("\" textLength=\"{}", columns as f32 * WIDE) } else { String::new() };
        self.text(run.ink, &format!("{}{long}", run.x), run.baseline, text);
    }

    fn text(&mut self, ink: Ink, x: &str, y: f32, text: &str) {
        let mut looks = String::new();
        if ink.fg != DARK.text {
            let _ = write!(looks, " fill=\"{}\"", ink.fg);
        }
        // A stroke, not a weight: it needs no second font and leaves the glyphs as wide as they are.
        if ink.bold {
            let _ = write!(looks, " stroke=\"{}\" stroke-width=\".7\"", ink.fg);
        }
        // Leant about the baseline; the font carried for PNG has no italic face.
        if ink.italic {
            let _ = write!(looks, " transform=\"matrix(1 0 -.2 1 {} 0)\"", 0.2 * y);
        }
        let _ = writeln!(self.texts, "<text x=\"{x}\" y=\"{y}\"{looks}>{}</text>", escape(text));
    }
}

fn left(glyph: &Glyph) -> f32 {
    MARGIN + glyph.column as f32 * WIDE
}

/// Calls `draw` for each longest stretch of cells for which `pick` gives the same colour.
fn stretches(row: &[Glyph], pick: impl Fn(Ink, Look) -> Option<Rgb>, mut draw: impl FnMut(Rgb, f32, f32)) {
    for part in row.chunk_by(|a, b| pick(Ink::of(a.look), a.look) == pick(Ink::of(b.look), b.look)) {
        let colour = part.first().and_then(|glyph| pick(Ink::of(glyph.look), glyph.look));
        if let (Some(colour), Some(first)) = (colour, part.first()) {
            let columns: usize = part.iter().map(|glyph| glyph.columns).sum();
            draw(colour, left(first), columns as f32 * WIDE);
        }
    }
}

fn rect(out: &mut String, colour: Rgb, (x, y): (f32, f32), (wide, high): (f32, f32)) {
    let _ = writeln!(out, "<rect x=\"{x}\" y=\"{y}\" width=\"{wide}\" height=\"{high}\" fill=\"{colour}\"/>");
}

#[cfg(test)]
#[path = "svg_tests.rs"]
mod tests;
