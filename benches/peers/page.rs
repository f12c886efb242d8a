//! The tables as Markdown: printed, and put between the markers of the page.

use std::path::Path;

use crate::Outcome;
use crate::rounds::Rounds;

const BEGIN: &str = "<!-- measured -->";
const END: &str = "<!-- /measured -->";

/// What has been measured so far.
#[derive(Default)]
pub struct Page(String);

impl Page {
    /// Adds lines of text, and prints them.
    pub fn add(&mut self, lines: &str) {
        println!("{lines}");
        self.0.push_str(lines);
        self.0.push('\n');
    }

    /// Begins a table whose first column names the row.
    pub fn table(&mut self, title: &str, columns: &[&str]) {
        let rules: String = columns.iter().map(|_| " ---: |").collect();
        self.add(&format!("\n### {title}\n\n| | {} |\n| --- |{rules}", columns.join(" | ")));
    }

    /// Adds a row.
    pub fn row(&mut self, name: &str, cells: &[String]) {
        self.add(&format!("| {name} | {} |", cells.join(" | ")));
    }

    /// Puts everything between the markers of a page.
    pub fn write(&self, page: &Path) -> Outcome<()> {
        let text = std::fs::read_to_string(page)?;
        let (before, rest) = text.split_once(BEGIN).ok_or("the page has no marker")?;
        let (_, after) = rest.split_once(END).ok_or("the page has no closing marker")?;
        let beside = page.with_extension("md.new");
        std::fs::write(&beside, format!("{before}{BEGIN}\n{}\n{END}{after}", self.0.trim()))?;
        Ok(std::fs::rename(beside, page)?)
    }
}

/// A number with three figures that say something.
pub fn figure(x: f64) -> String {
    match x.abs() {
        size if size >= 100.0 || !size.is_finite() => format!("{x:.0}"),
        size if size >= 10.0 => format!("{x:.1}"),
        _ => format!("{x:.2}"),
    }
}

/// Our figure, theirs, and the ratio with its least and most; `of` makes a figure of seconds.
pub fn cells(rounds: &Rounds, of: impl Fn(f64) -> f64) -> Vec<String> {
    let theirs = rounds.theirs().map_or_else(|| "–".into(), |seconds| figure(of(seconds)));
    let ratio = rounds.ratio().map_or_else(
        || "–".into(),
        |[median, least, most]| format!("**{}** ({}–{})", figure(median), figure(least), figure(most)),
    );
    vec![figure(of(rounds.ours())), theirs, ratio]
}
