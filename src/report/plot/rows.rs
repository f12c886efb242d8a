//! Draws plots with one row per lane: means with intervals, and shares in the top k against shares of the corpus.

use super::sheet::{COLUMN, NAME, Scale, Shape, Sheet, columns, empty, hatch, range, shorten, ticks};
use crate::report::marks::share;

/// The width of the axis.
const AXIS: f64 = 440.0;

/// The places of the rows.
#[derive(Clone, Copy, Debug)]
pub struct Rows {
    /// The x at which the axis starts and ends.
    pub span: (f64, f64),
    top: f64,
    height: f64,
    count: usize,
}

impl Rows {
    /// Places rows of the given height below a head of height `top`.
    pub fn new<'a>(names: impl Iterator<Item = &'a str>, top: f64, height: f64) -> Self {
        let (mut count, mut widest) = (0, 4);
        for name in names {
            count += 1;
            widest = widest.max(columns(name).min(NAME));
        }
        let left = 28.0 + widest as f64 * COLUMN;
        Rows { span: (left, left + AXIS), top, height, count }
    }

    /// Returns the y of the middle of a row.
    pub fn middle(&self, row: usize) -> f64 {
        self.top + (row as f64 + 0.5) * self.height
    }

    /// Returns the y at which the last row ends.
    pub fn bottom(&self) -> f64 {
        self.top + self.count as f64 * self.height
    }

    /// Draws the name of a row.
    pub fn name(&self, sheet: &mut Sheet, row: usize, name: &str) {
        let place = (self.span.0 - 14.0, self.middle(row) + 4.0);
        sheet.text(place, "mono end", &shorten(name, NAME));
    }

    /// Draws vertical lines and their labels, and shades every other row so that it is easy to follow across the sheet. Comes first, so that
    /// marks are on top.
    pub fn axis(
        &self,
        sheet: &mut Sheet,
        scale: &Scale,
        ticks: &[(f64, String)],
        label: &str,
        side: &Margin,
    ) {
        for row in (0..self.count).step_by(2) {
            let y = self.top + row as f64 * self.height;
            sheet.rect((6.0, y), (self.width(side) - 12.0, self.height), "band");
        }
        for (value, text) in ticks {
            let x = scale.at(*value);
            sheet.line((x, self.top), (x, self.bottom() + 4.0), if *value == 0.0 { "zero" } else { "rule" });
            sheet.text((x, self.bottom() + 18.0), "mid soft", text);
        }
        let middle = (self.span.0 + self.span.1) / 2.0;
        sheet.text((middle, self.bottom() + 36.0), "mid soft", label);
    }

    /// Draws the numbers of a row.
    pub fn side(&self, sheet: &mut Sheet, row: usize, side: &Margin) {
        let cells = side.rows.get(row).map_or(&[][..], Vec::as_slice);
        self.cells(sheet, cells, self.middle(row) + 4.0, ("mono end", side));
    }

    /// Draws the heads of the columns of numbers.
    pub fn side_heads(&self, sheet: &mut Sheet, side: &Margin) {
        self.cells(sheet, &side.heads, self.top - 8.0, ("mono soft end", side));
    }

    fn cells(&self, sheet: &mut Sheet, cells: &[String], y: f64, (class, side): (&str, &Margin)) {
        for (text, end) in cells.iter().zip(&side.ends).filter(|(text, _)| !text.is_empty()) {
            sheet.text((self.span.1 + end, y), class, text);
        }
    }

    fn width(&self, side: &Margin) -> f64 {
        self.span.1 + side.ends.last().map_or(14.0, |end| end.max(14.0)) + 20.0
    }

    /// Returns the size of the sheet.
    pub fn size(&self, side: &Margin) -> (f64, f64) {
        (self.width(side), self.bottom() + 48.0)
    }
}

/// Columns of numbers to the right of the axis, each as wide as its widest text.
#[derive(Clone, Debug, Default)]
pub struct Margin {
    heads: Vec<String>,
    rows: Vec<Vec<String>>,
    ends: Vec<f64>,
}

impl Margin {
    /// Lays out column heads and the texts of each row.
    pub fn new(heads: &[&str], rows: Vec<Vec<String>>) -> Self {
        let heads: Vec<String> = heads.iter().map(|&head| head.to_owned()).collect();
        let mut ends = Vec::new();
        let mut end = 0.0;
        for (i, head) in heads.iter().enumerate() {
            let texts = rows.iter().filter_map(|row| row.get(i)).chain([head]);
            let widest = texts.map(|text| columns(text)).max().unwrap_or(0);
            if widest > 0 {
                end += 14.0 + widest as f64 * COLUMN;
            }
            ends.push(end);
        }
        Margin { heads, rows, ends }
    }
}

fn mean_or_end(value: f64) -> String {
    if !value.is_finite() {
        "–".into()
    } else if (-1.0..=1.0).contains(&value) {
        share(value)
    } else {
        shorten(&format!("{value:.1}"), 12)
    }
}

fn mean_text(mean: f64) -> String {
    if (-1.0..=1.0).contains(&mean) { format!("{mean:.4}") } else { mean_or_end(mean) }
}

/// Draws each lane's mean with its 95 % interval. A row has name, mean, low and high end.
pub fn intervals(rows: &[(String, f64, f64, f64)]) -> String {
    let label = "Mean of each lane with its 95 % interval";
    let Some(values) = range(rows.iter().flat_map(|&(_, mean, low, high)| [mean, low, high])) else {
        return empty(label);
    };
    let layout = Rows::new(rows.iter().map(|(name, ..)| name.as_str()), 20.0, 26.0);
    let scale = Scale::linear(values, layout.span);
    let means = rows.iter().map(|&(_, mean, ..)| mean_text(mean));
    let ends = rows.iter().map(|&(_, _, low, high)| match low.is_finite() && high.is_finite() {
        true => format!("({}–{})", mean_or_end(low), mean_or_end(high)),
        false => String::new(),
    });
    let numbers: Vec<Vec<String>> = means.zip(ends).map(|(mean, ends)| vec![mean, ends]).collect();
    let side = Margin::new(&[""; 2], numbers.clone());

    let mut sheet = Sheet::default();
    layout.axis(&mut sheet, &scale, &ticks(values), "mean and 95 % interval", &side);
    for (row, (name, mean, low, high)) in rows.iter().enumerate() {
        sheet.open("lane", &format!("{name}: {}", numbers[row].join(" ")));
        layout.name(&mut sheet, row, name);
        let y = layout.middle(row);
        if low.is_finite() && high.is_finite() {
            let (from, to) = (scale.at(low.min(*high)), scale.at(high.max(*low)));
            sheet.line((from, y), (to, y), "whisker");
            for end in [from, to] {
                sheet.line((end, y - 5.0), (end, y + 5.0), "whisker");
            }
        }
        if mean.is_finite() {
            sheet.mark(Shape::Circle, (scale.at(*mean), y), 4.5, "ink");
        }
        layout.side(&mut sheet, row, &side);
        sheet.close();
    }
    sheet.finish(layout.size(&side), label)
}

/// A value of an attribute.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Group {
    /// The value: a country, an outlet, a side.
    pub name: String,
    /// Its share of the corpus.
    pub corpus: f64,
    /// Its share in the top k of each lane.
    pub top: Vec<(String, f64)>,
}

const BAR: f64 = 14.0;

fn number(value: f64) -> String {
    if value.is_finite() { share(value.clamp(-9.0, 9.0)) } else { "–".into() }
}

fn numbers(top: f64, corpus: f64) -> [String; 2] {
    let ratio = top / corpus;
    let known = ratio.is_finite() && corpus > 0.0 && (0.0..1e6).contains(&ratio);
    let times = if known { format!("×{ratio:.2}") } else { "–".into() };
    [number(top), times]
}

/// Draws one bar per lane under each value's name. A line across the bars marks the share of the corpus.
pub fn bars(groups: &[Group]) -> String {
    let label = "Share of each value in the top k against its share of the corpus";
    let inside = |x: f64| if x.is_finite() { x.clamp(0.0, 1.0) } else { 0.0 };
    let shares = groups.iter().flat_map(|group| {
        group.top.iter().map(|(_, top)| *top).chain([group.corpus]).filter(|x| x.is_finite()).map(inside)
    });
    // From 0, because readers compare the lengths of bars.
    let Some((_, high)) = range(shares.chain([0.0])).filter(|_| !groups.is_empty()) else {
        return empty(label);
    };
    let values = (0.0, high.min(1.0));
    let names = groups.iter().flat_map(|group| {
        std::iter::once(group.name.as_str()).chain(group.top.iter().map(|(lane, _)| lane.as_str()))
    });
    let layout = Rows::new(names, 44.0, 24.0);
    let scale = Scale::linear(values, layout.span);
    let texts = groups.iter().flat_map(|group| {
        let lanes = group.top.iter().map(|(_, top)| numbers(*top, group.corpus).to_vec());
        std::iter::once(Vec::new()).chain(lanes)
    });
    let side = Margin::new(&["top k", "times"], texts.collect());

    let mut sheet = Sheet::default();
    layout.axis(&mut sheet, &scale, &ticks(values), "share", &side);
    layout.side_heads(&mut sheet, &side);
    legend(&mut sheet, layout.span.0);
    let mut row = 0;
    for group in groups {
        let corpus = scale.at(inside(group.corpus));
        let first = row;
        sheet.text((14.0, layout.middle(row) + 4.0), "strong", &shorten(&group.name, NAME));
        let text = format!("corpus {}", number(group.corpus));
        // At the far end, the text would overlap the numbers.
        if corpus > layout.span.1 - 80.0 {
            sheet.text((corpus - 6.0, layout.middle(row) + 4.0), "mono soft end", &text);
        } else {
            sheet.text((corpus + 6.0, layout.middle(row) + 4.0), "mono soft", &text);
        }
        for (lane, top) in &group.top {
            row += 1;
            sheet.open("lane", &format!("{}, {lane}: {}", group.name, numbers(*top, group.corpus).join(" ")));
            layout.name(&mut sheet, row, lane);
            bar(&mut sheet, layout.middle(row), (layout.span.0, scale.at(inside(*top)), corpus));
            layout.side(&mut sheet, row, &side);
            sheet.close();
        }
        if group.corpus.is_finite() {
            let (from, to) = (layout.middle(first) - 9.0, layout.middle(row) + 10.0);
            sheet.line((corpus, from), (corpus, to), "mark");
        }
        row += 1;
    }
    sheet.finish(layout.size(&side), label)
}

/// Draws the bar up to the share of the corpus, then the excess or the gap.
fn bar(sheet: &mut Sheet, middle: f64, (from, top, corpus): (f64, f64, f64)) {
    let y = middle - BAR / 2.0;
    sheet.rect((from, y), (top.min(corpus) - from, BAR), "neither");
    if top > corpus {
        sheet.rect((corpus, y), (top - corpus, BAR), "support");
    } else if top < corpus {
        sheet.path(&hatch((top, y), (corpus - top, BAR), true), "lack");
        sheet.rect((top, y), (corpus - top, BAR), "edge");
    }
    sheet.rect((from, y), (top - from, BAR), "edge");
}

fn legend(sheet: &mut Sheet, left: f64) {
    let bar_of = |sheet: &mut Sheet, x: f64, top: f64, corpus: f64| {
        bar(sheet, 20.0, (left + x, left + x + top, left + x + corpus));
    };
    bar_of(sheet, 0.0, 26.0, 12.0);
    sheet.text((left + 33.0, 24.0), "", "more than its share");
    bar_of(sheet, 168.0, 8.0, 26.0);
    sheet.text((left + 201.0, 24.0), "", "less");
    sheet.line((left + 246.0, 12.0), (left + 246.0, 28.0), "mark");
    sheet.text((left + 253.0, 24.0), "", "share of the corpus");
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_column_of_numbers_is_as_wide_as_its_widest_number_and_an_empty_one_takes_no_room() {
        let row = |cells: [&str; 3]| cells.map(String::from).to_vec();
        let side =
            Margin::new(&["a", "", "b"], vec![row([".10", "", "1"]), row(["1.0", "", ""]), Vec::new()]);
        assert_eq!(side.ends, [14.0 + 3.0 * COLUMN, 14.0 + 3.0 * COLUMN, 28.0 + 4.0 * COLUMN]);
    }

    #[test]
    fn the_mean_and_both_ends_appear_in_numbers() {
        let svg = intervals(&[("bm25".into(), 0.3712, 0.3, 0.42), ("size".into(), 17.8, 12.0, 24.0)]);
        assert!(svg.contains(">0.3712</text>") && svg.contains(">(.30–.42)</text>"), "{svg}");
        assert!(svg.contains(">17.8</text>") && svg.contains(">(12.0–24.0)</text>"), "{svg}");
    }

    #[test]
    fn a_mean_without_an_interval_is_a_dot_alone() {
        let svg = intervals(&[("bm25".into(), 0.5, f64::NAN, f64::NAN)]);
        assert!(svg.contains(">0.5000</text>") && !svg.contains("class=\"whisker\""), "{svg}");
    }

    fn group(corpus: f64, top: f64) -> Group {
        Group { name: "US".into(), corpus, top: vec![("bm25".into(), top)] }
    }

    #[test]
    fn shares_and_how_many_times_the_corpus_appear() {
        let svg = bars(&[group(0.3, 0.45)]);
        assert!(
            svg.contains(">.45</text>")
                && svg.contains(">×1.50</text>")
                && svg.contains(">corpus .30</text>"),
            "{svg}"
        );
    }

    #[test]
    fn a_value_missing_from_the_corpus_has_no_ratio() {
        assert_eq!(numbers(0.2, 0.0), [".20", "–"]);
        assert_eq!(numbers(f64::NAN, 0.5), ["–", "–"]);
    }

    #[test]
    fn a_share_beyond_the_axis_ends_at_it() {
        let ends =
            |svg: &str| svg.lines().filter(|line| line.contains("y=\"73.0\"")).map(String::from).collect();
        let (over, full): (Vec<_>, Vec<_>) =
            (ends(&bars(&[group(0.3, 7.0)])), ends(&bars(&[group(0.3, 1.0)])));
        assert_eq!(over, full);
    }
}
