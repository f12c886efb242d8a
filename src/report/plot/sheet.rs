//! What a plot is drawn on: elements with their texts escaped and their places rounded.

use std::fmt::Write;

use super::shape::Shape;
use crate::report::markup::escape;

/// How wide a column of `mono` text is.
pub const COLUMN: f64 = 6.75;

/// A name takes at most this many columns.
pub const NAME: usize = 52;

/// A picture in the making.
#[derive(Debug, Default)]
pub struct Sheet {
    body: String,
}

impl Sheet {
    /// A text whose base line starts, ends or has its middle there, as its classes say.
    pub fn text(&mut self, (x, y): (f64, f64), class: &str, text: &str) {
        let text = escape(text);
        let _ = writeln!(self.body, "<text class=\"{class}\" x=\"{x:.1}\" y=\"{y:.1}\">{text}</text>");
    }

    /// A line.
    pub fn line(&mut self, (x1, y1): (f64, f64), (x2, y2): (f64, f64), class: &str) {
        self.path(&format!("M{x1:.1} {y1:.1}L{x2:.1} {y2:.1}"), class);
    }

    /// Lines from each place to the next.
    pub fn polyline(&mut self, places: &[(f64, f64)], class: &str) {
        let mut path = String::new();
        for (i, (x, y)) in places.iter().enumerate() {
            let _ = write!(path, "{}{x:.1} {y:.1}", if i == 0 { 'M' } else { 'L' });
        }
        self.path(&path, class);
    }

    /// Whatever a path can be.
    pub fn path(&mut self, path: &str, class: &str) {
        let _ = writeln!(self.body, "<path class=\"{class}\" d=\"{path}\"/>");
    }

    /// A rectangle.
    pub fn rect(&mut self, (x, y): (f64, f64), (width, height): (f64, f64), class: &str) {
        let _ = writeln!(
            self.body,
            "<rect class=\"{class}\" x=\"{x:.1}\" y=\"{y:.1}\" width=\"{width:.1}\" height=\"{height:.1}\"/>"
        );
    }

    /// A mark with its middle there.
    pub fn mark(&mut self, shape: Shape, place: (f64, f64), radius: f64, class: &str) {
        self.path(&shape.path(place, radius), class);
    }

    /// What follows until [`Sheet::close`] belongs together and says `title` under a pointer.
    pub fn open(&mut self, class: &str, title: &str) {
        let _ = writeln!(self.body, "<g class=\"{class}\"><title>{}</title>", escape(title));
    }

    /// See [`Sheet::open`].
    pub fn close(&mut self) {
        self.body.push_str("</g>\n");
    }

    /// The picture; `label` is what a screen reader says.
    pub fn finish(self, (width, height): (f64, f64), label: &str) -> String {
        let (label, body, style) = (escape(label), self.body, include_str!("style.css"));
        format!(
            "<svg xmlns=\"http://www.w3.org/2000/svg\" class=\"plx\" role=\"img\" aria-label=\"{label}\" \
             width=\"{width:.0}\" height=\"{height:.0}\" viewBox=\"0 0 {width:.0} {height:.0}\">\n\
             <style>\n{style}</style>\n<rect class=\"paper\" width=\"{width:.0}\" height=\"{height:.0}\"/>\n\
             {body}</svg>\n"
        )
    }
}

/// A picture that says there is none.
pub fn empty(label: &str) -> String {
    let mut sheet = Sheet::default();
    sheet.text((160.0, 34.0), "mid soft", "nothing to show");
    sheet.finish((320.0, 60.0), label)
}

/// How many columns a text takes, where East Asian characters and emoji take two.
pub fn columns(text: &str) -> usize {
    let wide = |c: char| matches!(c, '\u{1100}'..='\u{115f}' | '\u{2e80}'..='\u{a4cf}' | '\u{ac00}'..='\u{d7a3}' | '\u{f900}'..='\u{faff}' | '\u{fe30}'..='\u{fe6f}' | '\u{ff00}'..='\u{ff60}' | '\u{1f300}'..);
    text.chars().map(|c| if wide(c) { 2 } else { 1 }).sum()
}

/// The text in at most `most` columns; what is left out is in the middle, as recipes differ at either end.
pub fn shorten(text: &str, most: usize) -> String {
    if columns(text) <= most {
        return text.to_owned();
    }
    let cut = |chars: &mut dyn Iterator<Item = char>, most: usize| {
        let mut used = 0;
        let mut part: Vec<char> = Vec::new();
        for c in chars {
            used += columns(c.encode_utf8(&mut [0; 4]));
            if used > most {
                break;
            }
            part.push(c);
        }
        part
    };
    let half = most.saturating_sub(1) / 2;
    let head = cut(&mut text.chars(), most.saturating_sub(1) - half);
    let tail = cut(&mut text.chars().rev(), half);
    head.into_iter().chain(['…']).chain(tail.into_iter().rev()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_names_keep_both_ends() {
        assert_eq!(shorten("abcdefghij", 7), "abc…hij");
        assert_eq!(shorten("abcdefg", 7), "abcdefg");
        assert!(columns(&shorten("動物園動物園動物園", 8)) <= 8);
    }
}
