//! A frame as SVG: every character at the place of its cell, whatever font the reader has.

use std::collections::BTreeMap;
use std::fmt::Write;

use ratatui::buffer::Buffer;
use ratatui::style::Modifier;

use super::grid::{Glyph, Look, escape, heading, rows};
use super::palette::{DARK, Rgb};
use super::shapes::{HIGH, Pen, WIDE, shape};

/// Around the frame.
const MARGIN: f32 = 10.0;
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

/// Characters of one ink in one row, each with its own x.
struct Run {
    ink: Ink,
    baseline: f32,
    xs: Vec<f32>,
    text: String,
}

#[derive(Default)]
struct Picture {
    grounds: String,
    shapes: BTreeMap<(Pen, Rgb), String>,
    lines: String,
    texts: String,
    run: Option<Run>,
}

/// A self-contained SVG of the frame. Lines, blocks and braille are paths; the rest is text that can be selected.
pub fn svg(buffer: &Buffer, title: &str) -> String {
    let rows = rows(buffer);
    let mut picture = Picture::default();
    for (i, row) in rows.iter().enumerate() {
        picture.row(row, MARGIN + i as f32 * HIGH);
    }
    let wide = f32::from(buffer.area.width) * WIDE + 2.0 * MARGIN;
    let high = rows.len() as f32 * HIGH + 2.0 * MARGIN;
    let mut svg = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{wide}\" height=\"{high}\" \
         viewBox=\"0 0 {wide} {high}\" role=\"img\">\n<title>{}</title>\n\
         <rect width=\"{wide}\" height=\"{high}\" fill=\"{}\"/>\n",
        heading(title),
        DARK.ground
    );
    let _ = writeln!(svg, "<g shape-rendering=\"crispEdges\">\n{}</g>", picture.grounds);
    for ((pen, colour), path) in &picture.shapes {
        let paint = match pen {
            Pen::Sharp => format!("shape-rendering=\"crispEdges\" fill=\"{colour}\""),
            Pen::Smooth => format!("fill=\"{colour}\""),
            Pen::Line => format!("fill=\"none\" stroke=\"{colour}\""),
        };
        let _ = writeln!(svg, "<path {paint} d=\"{path}\"/>");
    }
    let _ = writeln!(svg, "<g shape-rendering=\"crispEdges\">\n{}</g>", picture.lines);
    let _ = writeln!(svg, "<g font-family=\"{FONTS}\" font-size=\"{SIZE}\">\n{}</g>\n</svg>", picture.texts);
    svg
}

impl Picture {
    fn row(&mut self, row: &[Glyph], top: f32) {
        stretches(
            row,
            |ink, _| (ink.bg != DARK.ground).then_some(ink.bg),
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
        for glyph in row {
            self.glyph(glyph, top);
        }
        self.flush();
    }

    fn glyph(&mut self, glyph: &Glyph, top: f32) {
        let (ink, x) = (Ink::of(glyph.look), left(glyph));
        let single = glyph.single();
        if let Some(shape) = single.and_then(|c| shape(c, x, top)) {
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
            Some(c) if glyph.columns == 1 => {
                let run = self.run.get_or_insert(Run { ink, baseline, xs: Vec::new(), text: String::new() });
                run.xs.push(x);
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
        let xs: Vec<String> = run.xs.iter().take(text.chars().count()).map(f32::to_string).collect();
        self.text(run.ink, &xs.join(" "), run.baseline, text);
    }

    fn text(&mut self, ink: Ink, x: &str, y: f32, text: &str) {
        let mut looks = String::new();
        // A stroke, not a weight: it needs no second font and leaves the glyphs as wide as they are.
        if ink.bold {
            let _ = write!(looks, " stroke=\"{}\" stroke-width=\".7\"", ink.fg);
        }
        // Leant about the baseline; the font carried for PNG has no italic face.
        if ink.italic {
            let _ = write!(looks, " transform=\"matrix(1 0 -.2 1 {} 0)\"", 0.2 * y);
        }
        let _ = writeln!(
            self.texts,
            "<text x=\"{x}\" y=\"{y}\" fill=\"{}\"{looks}>{}</text>",
            ink.fg,
            escape(text)
        );
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
