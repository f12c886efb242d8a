//! Writes a frame as SVG. Every character is at the place of its cell, whatever font the reader has.

use std::collections::BTreeMap;
use std::fmt::Write;

use ratatui::buffer::Buffer;
use ratatui::style::Modifier;

use super::frame::{Glyph, Look, escape, heading, rows};
use super::frame::{HIGH, Pen, WIDE, joins_runs, run_shape};
use crate::tui::theme::palette::{DARK, Rgb};

/// The margin around the frame.
pub(super) const MARGIN: f32 = 10.0;
/// The font size at which DejaVu Sans Mono advances by the width of a cell.
const SIZE: f32 = 16.6;
/// The baseline, from the top of a cell.
const BASELINE: f32 = 15.5;
const FONTS: &str = "DejaVu Sans Mono,Menlo,Consolas,Cascadia Mono,Liberation Mono,monospace";

/// The colours of a glyph.
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

/// Characters of one ink in one row, one per cell.
struct Run {
    ink: Ink,
    baseline: f32,
    x: f32,
    text: String,
}

/// The rows drawn so far.
pub(super) struct Picture {
    /// The background; glyphs on it need no rectangle.
    ground: Rgb,
    grounds: String,
    shapes: BTreeMap<(Pen, Rgb), String>,
    lines: String,
    texts: String,
    run: Option<Run>,
}

/// Writes a self-contained SVG of the frame. Lines, blocks and braille are paths; the rest is text that can be selected.
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

/// Writes the beginning of a document: size in cells, background, style sheet, and a group with the font.
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

/// Returns the background of the first cell, which is also used for the margin.
pub(super) fn ground(buffer: &Buffer) -> Rgb {
    buffer.content.first().map_or(DARK.ground, |cell| DARK.rgb(cell.bg, DARK.ground))
}

impl Picture {
    /// Returns an empty picture.
    pub(super) fn on(ground: Rgb) -> Self {
        let (grounds, lines, texts) = (String::new(), String::new(), String::new());
        Picture { ground, grounds, shapes: BTreeMap::new(), lines, texts, run: None }
    }

    /// Returns the elements, backgrounds first.
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

    /// Draws a row with its upper edge at `top`.
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
            |a: &Glyph, b: &Glyph| a.look == b.look && a.text == b.text && a.single().is_some_and(joins_runs);
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
        if let Some(shape) = single.and_then(|c| run_shape(c, x, top, cells)) {
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
            // Viewers disagree about several blanks, so a run has at most one in a row.
            Some(' ') if self.run.as_ref().is_none_or(|run| run.text.ends_with(' ')) => self.flush(),
            // Every monospace font has these at one width.
            Some(c @ (' '..='~' | '\u{a1}'..='\u{24f}')) if glyph.columns == 1 => {
                let run = self.run.get_or_insert(Run { ink, baseline, x, text: String::new() });
                run.text.push(c);
            }
            // Glyphs of other fonts seldom fit the grid, so they are centred on their cells.
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
        // The reader's font may advance by another width.
        let long =
            if columns > 1 { format!("\" textLength=\"{}", columns as f32 * WIDE) } else { String::new() };
        self.text(run.ink, &format!("{}{long}", run.x), run.baseline, text);
    }

    fn text(&mut self, ink: Ink, x: &str, y: f32, text: &str) {
        let mut looks = String::new();
        if ink.fg != DARK.text {
            let _ = write!(looks, " fill=\"{}\"", ink.fg);
        }
        // A stroke instead of a weight needs no second font and keeps the width.
        if ink.bold {
            let _ = write!(looks, " stroke=\"{}\" stroke-width=\".7\"", ink.fg);
        }
        // Slanted about the baseline: the built-in font has no italic face.
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
mod tests {
    use ratatui::style::{Color, Style};
    use resvg::usvg::roxmltree::Document;

    use super::*;
    use crate::tui::export::frame::shape;

    fn styled(line: &str, style: Style) -> Buffer {
        let mut buffer = Buffer::with_lines([line]);
        buffer.set_style(buffer.area, style);
        buffer
    }

    /// Characters with the x that the document gives each.
    fn places(svg: &str) -> Vec<(char, f32)> {
        let document = Document::parse(svg).unwrap();
        let mut all = Vec::new();
        for text in document.descendants().filter(|node| node.has_tag_name("text")) {
            let x: f32 = text.attribute("x").unwrap().parse().unwrap();
            let chars = text.text().unwrap();
            let long = text.attribute("textLength").map_or(WIDE, |long| long.parse().unwrap());
            let wide = long / chars.chars().count() as f32;
            all.extend(chars.chars().enumerate().map(|(i, c)| (c, x + i as f32 * wide)));
        }
        all
    }

    #[test]
    fn special_characters_are_escaped_once() {
        let svg = svg(&Buffer::with_lines(["<>&\"'"]), "<\"&'>\u{1}");
        assert!(svg.contains(">&lt;&gt;&amp;&quot;&#39;</text>"), "{svg}");
        let read: String = places(&svg).iter().map(|(c, _)| *c).collect();
        assert_eq!(read, "<>&\"'");
        assert!(svg.contains("<title>&lt;&quot;&amp;&#39;&gt;\u{fffd}</title>"), "{svg}");
    }

    #[test]
    fn a_control_character_in_a_cell_leaves_a_readable_document() {
        let mut buffer = Buffer::with_lines(["abc"]);
        buffer[(1, 0)].set_symbol("\u{1b}");
        // Its width differs between fonts, so it is centred on its cell.
        assert_eq!(places(&svg(&buffer, "t"))[1], ('\u{fffd}', MARGIN + 1.5 * WIDE));
    }

    #[test]
    fn reversed_text_has_the_colour_of_the_background() {
        let style = Style::new().fg(Color::Cyan).add_modifier(Modifier::REVERSED);
        let svg = svg(&styled("ab", style), "t");
        let (cyan, ground) = (DARK.sixteen[6], DARK.ground);
        assert!(svg.contains(&format!("width=\"20\" height=\"20\" fill=\"{cyan}\"")), "{svg}");
        assert!(svg.contains(&format!("fill=\"{ground}\">ab</text>")), "{svg}");
    }

    #[test]
    fn dim_text_is_between_its_colour_and_the_background() {
        let svg = svg(&styled("ab", Style::new().add_modifier(Modifier::DIM)), "t");
        assert!(svg.contains(&format!("fill=\"{}\">ab<", DARK.text.over(DARK.ground, 60))), "{svg}");
    }

    #[test]
    fn an_underline_runs_through_wide_characters_and_blanks() {
        let svg = svg(&styled("a 物b", Style::new().add_modifier(Modifier::UNDERLINED)), "t");
        assert!(svg.contains("<rect x=\"10\" y=\"28\" width=\"50\" height=\"1\""), "{svg}");
    }

    #[test]
    fn every_character_is_at_the_x_of_its_cell() {
        let line: String = ('!'..='~').cycle().take(140).collect();
        let expected: Vec<_> = line.chars().zip((0..140).map(|i| MARGIN + i as f32 * WIDE)).collect();
        assert_eq!(places(&svg(&Buffer::with_lines([line.as_str()]), "t")), expected);
    }

    #[test]
    fn text_after_a_wide_character_is_two_cells_further() {
        let svg = svg(&Buffer::with_lines(["物b"]), "t");
        assert!(svg.contains("<text x=\"20\" text-anchor=\"middle\""), "{svg}");
        assert_eq!(places(&svg)[1], ('b', 30.0));
    }

    #[test]
    fn one_style_is_one_element_without_trailing_blanks() {
        let svg = svg(&Buffer::with_lines(["  one and two    "]), "t");
        assert_eq!(svg.matches("<text").count(), 1);
        assert!(svg.contains(">one and two</text>"), "{svg}");
    }

    #[test]
    fn several_blanks_are_a_gap_and_not_text() {
        let svg = svg(&Buffer::with_lines(["one two   three"]), "t");
        assert!(
            svg.contains(">one two</text>") && svg.contains("<text x=\"110\" textLength=\"50\""),
            "{svg}"
        );
    }

    #[test]
    fn a_border_is_drawn_without_text() {
        let svg = svg(&Buffer::with_lines(["┌─┐", "│█│", "╰━╯", "⣿░▐"]), "t");
        assert!(!svg.contains("<text"), "{svg}");
        assert!(Document::parse(&svg).is_ok());
    }

    #[test]
    fn lines_and_bars_over_several_cells_are_one_piece() {
        let svg = svg(&Buffer::with_lines(["┌────┐ ██▒▒"]), "t");
        assert!(svg.contains("M20 20h40v1h-40z") && svg.contains("M80 10h20v20h-20z"), "{svg}");
    }

    #[test]
    fn the_margin_has_the_background_of_the_frame() {
        let svg = svg(&styled("ab", Style::new().bg(Color::Rgb(1, 2, 3))), "t");
        assert_eq!(svg.matches("<rect").count(), 1, "{svg}");
        assert!(svg.contains("height=\"40\" fill=\"#010203\""), "{svg}");
    }

    #[test]
    fn neighbouring_lines_share_an_edge() {
        let path = |c, x| shape(c, x, 0.0).unwrap().path;
        assert_eq!(path('─', 0.0), "M0 10h10v1h-10z");
        assert_eq!(path('─', 10.0), "M10 10h10v1h-10z");
        assert_eq!(path('└', 0.0), "M5 0h1v11h-1zM5 10h5v1h-5z");
    }

    #[test]
    fn double_lines_stop_at_each_other() {
        let path = |c| shape(c, 0.0, 0.0).unwrap().path;
        assert_eq!(path('╔'), "M7 12h3v1h-3zM3 8h7v1h-7zM3 8h1v12h-1zM7 12h1v8h-1z");
    }

    #[test]
    fn every_line_block_and_braille_pattern_has_a_shape() {
        for c in ('\u{2500}'..='\u{259f}').chain('\u{2801}'..='\u{28ff}') {
            assert!(shape(c, 0.0, 0.0).is_some_and(|shape| !shape.path.is_empty()), "{c}");
        }
        assert_eq!(shape('a', 0.0, 0.0), None);
    }
}
