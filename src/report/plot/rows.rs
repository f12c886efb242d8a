//! Plots with a row a lane: names on the left, an axis, numbers on the right.

use super::axis::Scale;
use super::sheet::{COLUMN, NAME, Sheet, columns, shorten};

/// How wide the axis is.
const AXIS: f64 = 440.0;

/// Where the rows stand.
#[derive(Clone, Copy, Debug)]
pub struct Rows {
    /// Where the axis starts and ends.
    pub span: (f64, f64),
    top: f64,
    height: f64,
    count: usize,
}

impl Rows {
    /// Rows of that height below a head of that height.
    pub fn new<'a>(names: impl Iterator<Item = &'a str>, top: f64, height: f64) -> Self {
        let (mut count, mut widest) = (0, 4);
        for name in names {
            count += 1;
            widest = widest.max(columns(name).min(NAME));
        }
        let left = 28.0 + widest as f64 * COLUMN;
        Rows { span: (left, left + AXIS), top, height, count }
    }

    /// The middle of a row.
    pub fn middle(&self, row: usize) -> f64 {
        self.top + (row as f64 + 0.5) * self.height
    }

    /// Where the last row ends.
    pub fn bottom(&self) -> f64 {
        self.top + self.count as f64 * self.height
    }

    /// A name, with every other row shaded so that the eye keeps to it across the sheet.
    pub fn name(&self, sheet: &mut Sheet, row: usize, name: &str) {
        let place = (self.span.0 - 14.0, self.middle(row) + 4.0);
        sheet.text(place, "mono end", &shorten(name, NAME));
    }

    /// Shades, upright lines and what they stand for; it comes first, so that marks are drawn over it.
    pub fn axis(&self, sheet: &mut Sheet, scale: &Scale, ticks: &[(f64, String)], label: &str, side: &Side) {
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

    /// A row's numbers.
    pub fn side(&self, sheet: &mut Sheet, row: usize, side: &Side) {
        let cells = side.rows.get(row).map_or(&[][..], Vec::as_slice);
        self.cells(sheet, cells, self.middle(row) + 4.0, ("mono end", side));
    }

    /// What the numbers are.
    pub fn side_heads(&self, sheet: &mut Sheet, side: &Side) {
        self.cells(sheet, &side.heads, self.top - 8.0, ("mono soft end", side));
    }

    fn cells(&self, sheet: &mut Sheet, cells: &[String], y: f64, (class, side): (&str, &Side)) {
        for (text, end) in cells.iter().zip(&side.ends).filter(|(text, _)| !text.is_empty()) {
            sheet.text((self.span.1 + end, y), class, text);
        }
    }

    fn width(&self, side: &Side) -> f64 {
        self.span.1 + side.ends.last().map_or(14.0, |end| end.max(14.0)) + 20.0
    }

    /// The sheet's size.
    pub fn size(&self, side: &Side) -> (f64, f64) {
        (self.width(side), self.bottom() + 48.0)
    }
}

/// Columns of numbers beside the axis, each as wide as its widest text.
#[derive(Clone, Debug, Default)]
pub struct Side {
    heads: Vec<String>,
    rows: Vec<Vec<String>>,
    ends: Vec<f64>,
}

impl Side {
    /// What stands over the columns, and the texts of each row.
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
        Side { heads, rows, ends }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_column_of_numbers_is_as_wide_as_its_widest_and_an_empty_one_takes_no_room() {
        let row = |cells: [&str; 3]| cells.map(String::from).to_vec();
        let side = Side::new(&["a", "", "b"], vec![row([".10", "", "1"]), row(["1.0", "", ""]), Vec::new()]);
        assert_eq!(side.ends, [14.0 + 3.0 * COLUMN, 14.0 + 3.0 * COLUMN, 28.0 + 4.0 * COLUMN]);
    }
}
