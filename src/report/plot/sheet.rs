//! The drawing surface of a plot: elements with escaped texts and rounded coordinates, marks and hatches, and axes.
//!
//! Marks and hatches are paths: fonts differ in how they draw ▲, and SVG patterns need ids that clash when several pictures share a page.

use std::fmt::Write;

use crate::report;
use crate::report::PictureError;
use crate::report::safe::escape;

/// The width of a column of `mono` text.
pub const COLUMN: f64 = 6.75;

/// The most columns of a name.
pub const NAME: usize = 52;

/// A picture that is being drawn.
#[derive(Debug, Default)]
pub struct Sheet {
    body: String,
}

impl Sheet {
    /// Draws a text. Its classes decide whether its baseline starts, ends or is centred at the place.
    pub fn text(&mut self, (x, y): (f64, f64), class: &str, text: &str) {
        let text = escape(text);
        let _ = writeln!(self.body, "<text class=\"{class}\" x=\"{x:.1}\" y=\"{y:.1}\">{text}</text>");
    }

    /// Draws a line.
    pub fn line(&mut self, (x1, y1): (f64, f64), (x2, y2): (f64, f64), class: &str) {
        self.path(&format!("M{x1:.1} {y1:.1}L{x2:.1} {y2:.1}"), class);
    }

    /// Draws lines from each place to the next.
    pub fn polyline(&mut self, places: &[(f64, f64)], class: &str) {
        let mut path = String::new();
        for (i, (x, y)) in places.iter().enumerate() {
            let _ = write!(path, "{}{x:.1} {y:.1}", if i == 0 { 'M' } else { 'L' });
        }
        self.path(&path, class);
    }

    /// Draws a path.
    pub fn path(&mut self, path: &str, class: &str) {
        let _ = writeln!(self.body, "<path class=\"{class}\" d=\"{path}\"/>");
    }

    /// Draws a rectangle.
    pub fn rect(&mut self, (x, y): (f64, f64), (width, height): (f64, f64), class: &str) {
        let _ = writeln!(
            self.body,
            "<rect class=\"{class}\" x=\"{x:.1}\" y=\"{y:.1}\" width=\"{width:.1}\" height=\"{height:.1}\"/>"
        );
    }

    /// Draws a rectangle of which so much of the colour shows: from 0 to 1.
    pub fn shade(&mut self, (x, y): (f64, f64), (width, height): (f64, f64), class: &str, share: f64) {
        let _ = writeln!(
            self.body,
            "<rect class=\"{class}\" fill-opacity=\"{share:.2}\" x=\"{x:.1}\" y=\"{y:.1}\" width=\"{width:.1}\" height=\"{height:.1}\"/>"
        );
    }

    /// Draws a mark centred at a place.
    pub fn mark(&mut self, shape: Shape, place: (f64, f64), radius: f64, class: &str) {
        self.path(&shape.path(place, radius), class);
    }

    /// Opens a group, up to [`Sheet::close`], that shows `title` when the mouse is over it.
    pub fn open(&mut self, class: &str, title: &str) {
        let _ = writeln!(self.body, "<g class=\"{class}\"><title>{}</title>", escape(title));
    }

    /// Closes the group of [`Sheet::open`].
    pub fn close(&mut self) {
        self.body.push_str("</g>\n");
    }

    /// Returns the picture; screen readers read out `label`.
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

/// Returns a picture that says there is nothing to draw.
pub fn empty(label: &str) -> String {
    let mut sheet = Sheet::default();
    sheet.text((160.0, 34.0), "mid soft", "nothing to show");
    sheet.finish((320.0, 60.0), label)
}

/// Draws a plot as PNG, in the light colours and the built-in font.
///
/// # Errors
/// The plot is too large, for example with thousands of lanes.
pub fn png(plot: &str) -> Result<Vec<u8>, PictureError> {
    report::png(&without_theme(plot), 2.0)
}

/// Removes the dark theme from a plot: each rule keeps its first colour. Makes the text smaller, because the built-in font is wide.
fn without_theme(plot: &str) -> String {
    let themed = |line: &&str| !line.starts_with(".plx{--") && !line.starts_with("@media");
    let lines = plot.lines().filter(themed).map(|line| {
        let Some((_, declarations)) =
            line.strip_suffix('}').filter(|_| line.starts_with(".plx")).and_then(|l| l.split_once('{'))
        else {
            return line.to_owned();
        };
        let selector = &line[..line.len() - declarations.len() - 2];
        let kept: Vec<&str> = declarations.split(';').filter(|one| !one.contains("var(")).collect();
        format!("{selector}{{{}}}", kept.join(";").replace("font:12px", "font:11px"))
    });
    lines.collect::<Vec<_>>().join("\n")
}

/// Returns the number of columns of a text. East Asian characters and emoji take two.
pub fn columns(text: &str) -> usize {
    let wide = |c: char| matches!(c, '\u{1100}'..='\u{115f}' | '\u{2e80}'..='\u{a4cf}' | '\u{ac00}'..='\u{d7a3}' | '\u{f900}'..='\u{faff}' | '\u{fe30}'..='\u{fe6f}' | '\u{ff00}'..='\u{ff60}' | '\u{1f300}'..);
    text.chars().map(|c| if wide(c) { 2 } else { 1 }).sum()
}

/// Shortens a text to at most `most` columns. The middle is left out, because recipes differ at their ends.
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

/// The shape of a mark.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Shape {
    /// ●
    Circle,
    /// ■
    Square,
    /// ▲
    Up,
    /// ◆
    Diamond,
    /// ▼
    Down,
    /// ✚
    Cross,
    /// The filled half of ◐.
    Half,
}

impl Shape {
    /// The shapes that distinguish lines.
    pub const ALL: [Shape; 6] =
        [Shape::Circle, Shape::Square, Shape::Up, Shape::Diamond, Shape::Down, Shape::Cross];

    /// Returns its outline around a place. All shapes have about the same area.
    pub fn path(self, (x, y): (f64, f64), r: f64) -> String {
        let closed = |corners: &[(f64, f64)]| {
            let mut path = String::new();
            for (i, (dx, dy)) in corners.iter().enumerate() {
                let letter = if i == 0 { 'M' } else { 'L' };
                let _ = write!(path, "{letter}{:.1} {:.1}", x + dx * r, y + dy * r);
            }
            path + "Z"
        };
        let top = y - r;
        match self {
            Shape::Circle => {
                format!("M{x:.1} {top:.1}a{r:.1} {r:.1} 0 1 0 .01 0Z")
            }
            Shape::Half => format!("M{x:.1} {top:.1}a{r:.1} {r:.1} 0 0 0 0 {:.1}Z", 2.0 * r),
            Shape::Square => closed(&[(-0.9, -0.9), (0.9, -0.9), (0.9, 0.9), (-0.9, 0.9)]),
            Shape::Up => closed(&[(0.0, -1.15), (1.2, 0.95), (-1.2, 0.95)]),
            Shape::Down => closed(&[(0.0, 1.15), (1.2, -0.95), (-1.2, -0.95)]),
            Shape::Diamond => closed(&[(0.0, -1.3), (1.3, 0.0), (0.0, 1.3), (-1.3, 0.0)]),
            Shape::Cross => {
                let (a, b) = (0.42, 1.2);
                closed(&[
                    (-a, -b),
                    (a, -b),
                    (a, -a),
                    (b, -a),
                    (b, a),
                    (a, a),
                    (a, b),
                    (-a, b),
                    (-a, a),
                    (-b, a),
                    (-b, -a),
                    (-a, -a),
                ])
            }
        }
    }
}

/// Returns slanting lines across a rectangle, rising or falling to the right.
pub fn hatch((x, y): (f64, f64), (width, height): (f64, f64), rising: bool) -> String {
    const GAP: f64 = 7.0;
    let mut path = String::new();
    let mut start = GAP / 2.0 - height;
    while start < width {
        let (from, to) = (start.max(0.0), (start + height).min(width));
        let (down, up) = (from - start, to - start);
        let (y1, y2) = if rising { (y + height - down, y + height - up) } else { (y + down, y + up) };
        if to > from {
            let _ = write!(path, "M{:.1} {y1:.1}L{:.1} {y2:.1}", x + from, x + to);
        }
        start += GAP;
    }
    path
}

/// Larger values are drawn at this one, so that a range never overflows.
const FAR: f64 = 1e12;

/// An axis.
#[derive(Clone, Copy, Debug)]
pub struct Scale {
    low: f64,
    high: f64,
    from: f64,
    to: f64,
    log: bool,
}

impl Scale {
    /// Maps values `low`–`high` to places `from`–`to`.
    pub fn linear((low, high): (f64, f64), (from, to): (f64, f64)) -> Self {
        Scale { low, high, from, to, log: false }
    }

    /// Maps values to places on a logarithmic axis. Both ends must be above 0.
    pub fn log(values: (f64, f64), places: (f64, f64)) -> Self {
        Scale { log: true, ..Scale::linear(values, places) }
    }

    /// Returns the place of a value; the nearest end for a value outside the axis.
    pub fn at(&self, value: f64) -> f64 {
        let map = |x: f64| if self.log { x.ln() } else { x };
        let span = map(self.high) - map(self.low);
        let inside = value.clamp(self.low, self.high);
        let part = if span > 0.0 { (map(inside) - map(self.low)) / span } else { 0.5 };
        self.from + part * (self.to - self.from)
    }
}

/// Returns a range with round ends around all values that are numbers; it includes 0 if that is near. `None` if there are no numbers.
pub fn range(values: impl Iterator<Item = f64>) -> Option<(f64, f64)> {
    let finite = values.filter(|x| x.is_finite()).map(|x| x.clamp(-FAR, FAR));
    let (low, high) = finite
        .fold(None, |ends: Option<(f64, f64)>, x| Some(ends.map_or((x, x), |(a, b)| (a.min(x), b.max(x)))))?;
    // Otherwise nearly equal shares would look far apart.
    let low = if low > 0.0 && low < 0.6 * high { 0.0 } else { low };
    let least = (high.abs().max(low.abs()) * 0.1).max(0.01);
    let below = if low >= 0.0 { (low - least).max(0.0) } else { low - least };
    let (low, high) = if high - low < least { (below, high + least) } else { (low, high) };
    let step = step(low, high);
    Some(((low / step).floor() * step, (high / step).ceil() * step))
}

/// Returns the smallest round step of which about six fit into the range.
fn step(low: f64, high: f64) -> f64 {
    let raw = (high - low) / 6.0;
    let magnitude = 10f64.powf(raw.log10().floor());
    let round = [1.0, 2.0, 5.0].into_iter().find(|m| m * magnitude >= raw * 0.999).unwrap_or(10.0);
    round * magnitude
}

/// Returns round values within the range, with their texts.
pub fn ticks((low, high): (f64, f64)) -> Vec<(f64, String)> {
    let step = step(low, high);
    let decimals = (-(step * 1.001).log10().floor()).clamp(0.0, 6.0) as usize;
    let (first, last) = ((low / step - 0.001).ceil() as i64, (high / step + 0.001).floor() as i64);
    // Adding 0 turns the -0 of a range below 0 into 0.
    let tick = |i| i as f64 * step + 0.0;
    (first..=last).take(20).map(tick).map(|x| (x, format!("{x:.decimals$}"))).collect()
}

/// Returns those of 1, 2, 5, 10, … that are within the range.
pub fn log_ticks((low, high): (f64, f64)) -> Vec<(f64, String)> {
    let rounds = (0..13).flat_map(|power| [1.0, 2.0, 5.0].map(|x| x * 10f64.powi(power)));
    rounds.filter(|x| (low..=high).contains(x)).map(|x| (x, plain(x))).collect()
}

/// Writes a value without needless decimals.
pub fn plain(value: f64) -> String {
    let text = format!("{value:.4}");
    let text = text.trim_end_matches('0').trim_end_matches('.');
    if text == "-0" { "0".into() } else { text.into() }
}

/// Keeps the ticks that are at least `gap` away from the last kept one.
pub fn thin_out(scale: &Scale, ticks: Vec<(f64, String)>, gap: f64) -> Vec<(f64, String)> {
    let mut kept: Vec<(f64, String)> = Vec::new();
    for (value, text) in ticks {
        if kept.last().is_none_or(|(last, _)| (scale.at(value) - scale.at(*last)).abs() >= gap) {
            kept.push((value, text));
        }
    }
    kept
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

    #[test]
    fn a_hatch_stays_within_its_rectangle() {
        for rising in [false, true] {
            for width in [0.0, 2.0, 50.0] {
                let path = hatch((10.0, 20.0), (width, 18.0), rising);
                for pair in path.split(['M', 'L']).filter(|pair| !pair.is_empty()) {
                    let (x, y) = pair.split_once(' ').unwrap();
                    let (x, y): (f64, f64) = (x.parse().unwrap(), y.parse().unwrap());
                    assert!((10.0..=10.1 + width).contains(&x) && (20.0..=38.0).contains(&y), "{path}");
                }
            }
        }
    }

    #[test]
    fn every_shape_has_an_outline_of_its_own() {
        let paths: std::collections::BTreeSet<_> =
            Shape::ALL.iter().map(|shape| shape.path((0.0, 0.0), 4.0)).collect();
        assert_eq!(paths.len(), Shape::ALL.len());
    }

    fn texts(ticks: Vec<(f64, String)>) -> Vec<String> {
        ticks.into_iter().map(|(_, text)| text).collect()
    }

    #[test]
    fn values_outside_are_at_the_nearest_end() {
        let scale = Scale::linear((-1.0, 1.0), (100.0, 300.0));
        assert_eq!([scale.at(-9.0), scale.at(0.0), scale.at(9.0)], [100.0, 200.0, 300.0]);
        assert_eq!(Scale::linear((2.0, 2.0), (0.0, 10.0)).at(2.0), 5.0);
    }

    #[test]
    fn equal_ratios_are_equally_far_apart_on_a_log_axis() {
        let scale = Scale::log((1.0, 100.0), (0.0, 200.0));
        assert_eq!(scale.at(10.0).round(), 100.0);
        assert_eq!(texts(log_ticks((1.0, 100.0))), ["1", "2", "5", "10", "20", "50", "100"]);
    }

    #[test]
    fn ticks_are_round_and_have_the_decimals_they_need() {
        assert_eq!(texts(ticks((0.0, 1.0))), ["0.0", "0.2", "0.4", "0.6", "0.8", "1.0"]);
        assert_eq!(texts(ticks((-0.1, 0.1))), ["-0.10", "-0.05", "0.00", "0.05", "0.10"]);
        assert_eq!(texts(ticks((0.0, 30.0))), ["0", "5", "10", "15", "20", "25", "30"]);
    }

    #[test]
    fn a_range_is_round_and_holds_all_values_and_0_if_it_is_near() {
        assert_eq!(range([0.11, 0.93].into_iter()), Some((0.0, 1.0)));
        assert_eq!(range([f64::NAN].into_iter()), None);
        let (low, high) = range([0.5].into_iter()).unwrap();
        assert!(low < 0.5 && 0.5 < high);
    }

    #[test]
    fn crowded_ticks_are_left_out() {
        let scale = Scale::linear((0.0, 10.0), (0.0, 100.0));
        let all = (0..=10).map(|x| (f64::from(x), plain(f64::from(x)))).collect();
        assert_eq!(texts(thin_out(&scale, all, 25.0)), ["0", "3", "6", "9"]);
    }
}
