//! A table's plots, alone or with the table on one page.

use std::fs;
use std::path::Path;

use anyhow::Context;

use super::berds::OVER_K;
use super::reader;
use super::write::put;
use crate::report::html::{Section, page};
use crate::report::plot::{Arrow, Group, Series, arrows, bars, curves, intervals, png, stacks};
use crate::report::table::{Row, Table};

/// The page.
pub fn html(table: &Table) -> String {
    let (title, text) = about(table.suite);
    let command = std::env::args().collect::<Vec<_>>().join(" ");
    let plots = plots(table).into_iter().map(|(_, plot)| plot).collect();
    let mut tables = Vec::new();
    below(table, &mut tables);
    page(title, &command, &[Section { heading: title.into(), text: text.into(), tables, plots }])
}

fn about(suite: &str) -> (&'static str, &'static str) {
    match suite {
        "berds" => (
            "Perspectives in the first passages",
            "MRecall asks whether the first k passages cover the question's perspectives, Prec how many of them support any. The stacks say \
             how often only one side, both or neither was there (Chen and Choi, Tables 3 and 4, Figure 2).",
        ),
        "coverage" => (
            "How far to read",
            "The rank at which every perspective has been met, and how often that is within the first 100 (Chen and Choi, Tables 5 and 6).",
        ),
        "bias" => (
            "Which way the lanes lean",
            "The lean towards one of two sides, how far the order is from an even place for every perspective (rKL, AWRF), and of a field of the \
             passages, whose stand at the top against their share of the corpus (Zhao et al., Figures 3, 5 and 6).",
        ),
        "sycophancy" => (
            "Does the answer follow the wording?",
            "Every lane asked neutrally, as the supporting statement and as the opposing one (Chen and Choi, Figure 3).",
        ),
        "pir" => (
            "Perspective awareness",
            "p-Recall of every way to score a passage (Zhao et al., Tables 2 and 8).",
        ),
        "reader" => (
            "What is read from the first passages",
            "Whether a reader is right from the first k (EM), was right at any depth up to k (AcEM), and what more passages cost (Oh and \
             Thorne); for questions of two sides, the stance that the first k take together and what turns it.",
        ),
        _ => ("Graded relevance", "As trec_eval measures it."),
    }
}

/// The table and all below it.
fn below<'a>(table: &'a Table, all: &mut Vec<&'a Table>) {
    all.push(table);
    for table in &table.further {
        below(table, all);
    }
}

/// Both measures over k: a line a lane, a plot a table.
fn over_k(table: &Table) -> Vec<(String, String)> {
    let own = table.further.iter().filter(|below| below.suite == OVER_K && below.set == table.set);
    let plot = |below: &Table| {
        let (name, _) = below.columns.first()?.split_once('@')?;
        let depths: Vec<Option<f64>> =
            below.columns.iter().map(|column| column.split_once('@')?.1.parse().ok()).collect();
        let line = |row: &Row| {
            let points = depths.iter().zip(&row.cells);
            let points = points.filter_map(|(depth, cell)| Some(((*depth)?, cell.as_ref()?.mean))).collect();
            Series { name: row.lane.clone(), points }
        };
        let series: Vec<Series> = below.rows.iter().map(line).collect();
        Some((format!("{name}-over-k"), curves(&series, "k", &format!("{name}@k"))))
    };
    own.filter_map(plot).collect()
}

/// A line a measure, of a table whose columns are depths.
fn measures(table: &Table) -> Vec<Series> {
    let line = |row: &Row| {
        let points = row.cells.iter().enumerate();
        let points = points.filter_map(|(i, cell)| Some(((i + 1) as f64, cell.as_ref()?.mean))).collect();
        Series { name: row.lane.clone(), points }
    };
    table.rows.iter().map(line).collect()
}

/// Every plot of a table with the name of its file.
fn plots(table: &Table) -> Vec<(String, String)> {
    let column = |name: &str| table.columns.iter().position(|known| known.starts_with(name));
    let mean = |row: &Row, column: usize| row.cells[column].as_ref().map(|cell| cell.mean);
    let mut plots = Vec::new();
    let sides = ["only-1@", "only-2@", "both@", "neither@"].map(column);
    if let [Some(first), Some(second), Some(both), Some(neither)] = sides {
        let stack = |row: &Row| {
            let share = |column| mean(row, column).unwrap_or(0.0);
            (row.lane.clone(), [share(first), share(second), share(both), share(neither)])
        };
        plots.push(("sides".to_owned(), stacks(&table.rows.iter().map(stack).collect::<Vec<_>>())));
    }
    let wordings = ["neutral", "as-1", "as-2"].map(|wording| {
        ["p@", "n@"].map(|name| {
            table.columns.iter().position(|known| known.starts_with(name) && known.ends_with(wording))
        })
    });
    if let [[Some(a), Some(b)], [Some(c), Some(d)], [Some(e), Some(f)]] = wordings {
        let arrow = |row: &Row| {
            let pair = |p, n| (mean(row, p).unwrap_or(0.0), mean(row, n).unwrap_or(0.0));
            Arrow {
                name: row.lane.clone(),
                neutral: pair(a, b),
                as_support: pair(c, d),
                as_oppose: pair(e, f),
            }
        };
        plots.push(("arrows".to_owned(), arrows(&table.rows.iter().map(arrow).collect::<Vec<_>>())));
    }
    for (i, name) in table.columns.iter().enumerate() {
        let shown =
            ["MRecall@", "Prec@", "Cover", "covered@", "shift@", "nDCG", "avg", "Lean@", "rKL@", "AWRF@"];
        if !shown.iter().any(|shown| name.starts_with(shown)) {
            continue;
        }
        let rows = table.rows.iter().filter_map(|row| {
            let cell = row.cells[i].as_ref()?;
            let (low, high) = cell.interval.unwrap_or((cell.mean, cell.mean));
            Some((row.lane.clone(), cell.mean, low, high))
        });
        plots.push((name.replace('@', "-at-"), intervals(&rows.collect::<Vec<_>>())));
    }
    let attributes = table.further.iter().filter(|table| table.suite == "bias-attribute");
    plots.extend(attributes.map(|table| ("attribute".to_owned(), bars(&groups(table)))));
    plots.extend(over_k(table));
    let depths = table.further.iter().filter(|below| below.suite == reader::OVER_K);
    plots.extend(
        depths.map(|below| ("over-k".to_owned(), curves(&measures(below), "k", "share of questions"))),
    );
    plots
}

/// Every value of a table of shares: the corpus's in the first row, then a lane each.
fn groups(table: &Table) -> Vec<Group> {
    let Some((corpus, lanes)) = table.rows.split_first() else { return Vec::new() };
    let mean = |row: &Row, at: usize| row.cells.get(at)?.as_ref().map(|cell| cell.mean);
    let group = |(at, name): (usize, &String)| {
        let top = lanes.iter().filter_map(|row| Some((row.lane.clone(), mean(row, at)?))).collect();
        // What the corpus has no share of is no value.
        Some(Group { name: name.clone(), corpus: mean(corpus, at)?, top })
    };
    table.columns.iter().enumerate().filter_map(group).collect()
}

/// Writes every plot as `SUITE-NAME.svg` and `.png`, each beside its place first.
pub fn write_plots(table: &Table, folder: &Path) -> anyhow::Result<()> {
    fs::create_dir_all(folder).with_context(|| format!("{} cannot be made", folder.display()))?;
    for (name, plot) in plots(table) {
        let name: String =
            name.chars().map(|c| if c.is_ascii_alphanumeric() || c == '-' { c } else { '_' }).collect();
        let name = format!("{}-{name}", table.suite);
        put(folder, &format!("{name}.svg"), plot.as_bytes())?;
        put(folder, &format!("{name}.png"), &png(&plot).with_context(|| format!("{name}.png"))?)?;
    }
    Ok(())
}
