//! Draws a table's plots, alone or with the table on one HTML page without external resources.

use std::fmt::Write;
use std::path::Path;

use serde_json::{Value, json};

pub use super::cell::{BERDS_OVER_K, MIX_OVER_SHARE, READER_OVER_K};
use super::marks::share;
use super::safe::escape;
use super::table::Cell;
use crate::report::lists::{SaveError, make_folder, put};
use crate::report::plot::{Group, Leans, Series, bars, curves, heat, intervals, leans, paths, png, stacks};
use crate::report::table::{Head, Row, Table};

/// Returns the page of a table.
pub fn html(table: &Table) -> String {
    let (title, text) = super::cell::about(table.suite);
    let command = std::env::args().collect::<Vec<_>>().join(" ");
    let plots = plots(table).into_iter().map(|(_, plot)| plot).collect();
    let mut tables = Vec::new();
    below(table, &mut tables);
    page(title, &command, &[Section { heading: title.into(), text: text.into(), tables, plots }])
}

/// Collects the table and all tables below it.
fn below<'a>(table: &'a Table, all: &mut Vec<&'a Table>) {
    all.push(table);
    for table in &table.further {
        below(table, all);
    }
}

/// Plots the measures over k: one plot per table, one line per lane.
fn over_k(table: &Table) -> Vec<(String, String)> {
    let own = table.further.iter().filter(|below| below.suite == BERDS_OVER_K && below.set == table.set);
    let plot = |below: &Table| {
        let (name, _) = below.columns.first()?.name.split_once('@')?;
        let depths: Vec<Option<f64>> =
            below.columns.iter().map(|head| head.name.split_once('@')?.1.parse().ok()).collect();
        let line = |row: &Row| {
            let points = depths.iter().zip(&row.cells);
            let points = points.filter_map(|(depth, cell)| Some(((*depth)?, cell.as_ref()?.mean))).collect();
            let intervals = depths.iter().zip(&row.cells).filter_map(|(depth, cell)| {
                let (low, high) = cell.as_ref()?.interval?;
                Some(((*depth)?, low, high))
            });
            Series { name: row.lane.clone(), points, band: intervals.collect() }
        };
        let series: Vec<Series> = below.rows.iter().map(line).collect();
        Some((format!("{name}-over-k"), curves(&series, "k", &format!("{name}@k"))))
    };
    own.filter_map(plot).collect()
}

/// Returns one line per row of a table whose columns are depths, or numbers of queries.
fn measures(table: &Table) -> Vec<Series> {
    let line = |row: &Row| {
        let depth = |head: &Head| head.name.split_once('=')?.1.parse::<f64>().ok();
        let cells = || table.columns.iter().zip(&row.cells);
        let points = cells().filter_map(|(head, cell)| Some((depth(head)?, cell.as_ref()?.mean))).collect();
        let intervals = cells().filter_map(|(head, cell)| {
            let (low, high) = cell.as_ref()?.interval?;
            Some((depth(head)?, low, high))
        });
        Series { name: row.lane.clone(), points, band: intervals.collect() }
    };
    table.rows.iter().map(line).collect()
}

/// The wordings of Chen and Choi's Figure 3 from left to right, each as the table and as the plot name it.
const WORDINGS: [(&str, &str); 3] =
    [("as-2", "as opposing"), ("neutral", "neutrally"), ("as-1", "as supporting")];

/// Returns a line for every lane: Δ in the three wordings, with intervals. A wording in which no passage supports has no point.
fn deltas(table: &Table) -> Vec<Series> {
    let column = |wording: &str| {
        let is_asked =
            |head: &Head| head.name.starts_with("Δ@") && head.name.ends_with(&format!(" {wording}"));
        table.columns.iter().position(is_asked)
    };
    let places: Vec<usize> = WORDINGS.iter().filter_map(|(wording, _)| column(wording)).collect();
    if places.len() < WORDINGS.len() {
        return Vec::new();
    }
    let line = |row: &Row| {
        let cells = || {
            places.iter().enumerate().filter_map(|(x, at)| Some((x as f64, row.cells.get(*at)?.as_ref()?)))
        };
        let ends = |(x, cell): (f64, &Cell)| cell.interval.map(|(low, high)| (x, low, high));
        Series {
            name: row.lane.clone(),
            points: cells().map(|(x, cell)| (x, cell.mean)).collect(),
            band: cells().filter_map(ends).collect(),
        }
    };
    table.rows.iter().map(line).collect()
}

/// Returns every plot of a table, each with the name of its file.
fn plots(table: &Table) -> Vec<(String, String)> {
    let column = |name: &str| table.columns.iter().position(|head| head.name.starts_with(name));
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
            let is_asked = |head: &Head| head.name.starts_with(name) && head.name.ends_with(wording);
            table.columns.iter().position(is_asked)
        })
    });
    if let [[Some(a), Some(b)], [Some(c), Some(d)], [Some(e), Some(f)]] = wordings {
        let lane = |row: &Row| {
            let pair = |p, n| (mean(row, p).unwrap_or(0.0), mean(row, n).unwrap_or(0.0));
            Leans {
                name: row.lane.clone(),
                neutral: pair(a, b),
                as_support: pair(c, d),
                as_oppose: pair(e, f),
            }
        };
        plots.push(("arrows".to_owned(), leans(&table.rows.iter().map(lane).collect::<Vec<_>>())));
    }
    let deltas = deltas(table);
    if !deltas.is_empty() {
        let wordings = WORDINGS.map(|(_, shown)| shown);
        plots.push(("deltas".to_owned(), paths(&deltas, &wordings, "asked", "Δ = (p − n)/p")));
    }
    for (i, head) in table.columns.iter().enumerate().filter(|(_, head)| head.plotted) {
        let rows = table.rows.iter().filter_map(|row| {
            let cell = row.cells[i].as_ref()?;
            let (low, high) = cell.interval.unwrap_or((cell.mean, cell.mean));
            Some((row.lane.clone(), cell.mean, low, high))
        });
        plots.push((head.name.replace('@', "-at-"), intervals(&rows.collect::<Vec<_>>())));
    }
    let attributes = table.further.iter().filter(|table| table.suite == "bias-attribute");
    plots.extend(attributes.map(|table| ("attribute".to_owned(), bars(&groups(table)))));
    let desired =
        table.further.iter().filter(|table| ["bias-desired", "pir-countries"].contains(&table.suite));
    plots.extend(desired.map(|table| {
        let heads: Vec<String> = table.columns.iter().map(|head| head.name.clone()).collect();
        let row = |row: &Row| (row.lane.clone(), (0..heads.len()).map(|at| mean(row, at)).collect());
        let name = table.set.as_ref().map_or("desired".into(), |set| format!("countries-{set}"));
        (name, heat(&heads, &table.rows.iter().map(row).collect::<Vec<_>>()))
    }));
    let over_n = || ("over-n".to_owned(), curves(&measures(table), "n queries", "MRecall"));
    plots.extend((table.suite == "ask").then(over_n));
    plots.extend(over_k(table));
    let questions = "share of questions";
    let either = "share of questions; side: of those answered with one";
    for (suite, x, y) in [(READER_OVER_K, "k", questions), (MIX_OVER_SHARE, "share", either)] {
        let over = table.further.iter().filter(|below| below.suite == suite);
        plots.extend(over.map(|below| (format!("over-{x}"), curves(&measures(below), x, y))));
    }
    plots
}

/// Returns one group per value of a table of shares. The corpus's shares are in the first row, then one row per lane.
fn groups(table: &Table) -> Vec<Group> {
    let Some((corpus, lanes)) = table.rows.split_first() else { return Vec::new() };
    let mean = |row: &Row, at: usize| row.cells.get(at)?.as_ref().map(|cell| cell.mean);
    let group = |(at, head): (usize, &Head)| {
        let top = lanes.iter().filter_map(|row| Some((row.lane.clone(), mean(row, at)?))).collect();
        // A value without a share of the corpus is left out.
        Some(Group { name: head.name.clone(), corpus: mean(corpus, at)?, top })
    };
    table.columns.iter().enumerate().filter_map(group).collect()
}

/// Writes every plot as `SUITE-NAME.svg` and `.png`. Each file is replaced as a whole.
///
/// # Errors
/// The folder cannot be made, a file cannot be written, or a plot cannot be drawn.
pub fn write_plots(table: &Table, folder: &Path) -> Result<(), SaveError> {
    make_folder(folder)?;
    for (name, plot) in plots(table) {
        let name: String =
            name.chars().map(|c| if c.is_ascii_alphanumeric() || c == '-' { c } else { '_' }).collect();
        let name = format!("{}-{name}", table.suite);
        put(folder, &format!("{name}.svg"), plot.as_bytes())?;
        let name = format!("{name}.png");
        let picture = png(&plot).map_err(|source| SaveError::Plot { name: name.clone(), source })?;
        put(folder, &name, &picture)?;
    }
    Ok(())
}

/// A part of the page.
#[derive(Clone, Debug, Default)]
pub struct Section<'a> {
    /// Its heading.
    pub heading: String,
    /// Paragraphs, with an empty line between them.
    pub text: String,
    /// Its tables.
    pub tables: Vec<&'a Table>,
    /// Its plots, as [`super::plot`] makes them: they are trusted to be well-formed.
    pub plots: Vec<String>,
}

/// Returns the page; `command` is the command that makes it again.
pub fn page(title: &str, command: &str, sections: &[Section]) -> String {
    let mut body = String::new();
    if sections.len() > 2 {
        body.push_str("<nav><ul>\n");
        for (i, section) in sections.iter().enumerate() {
            let _ = writeln!(body, "<li><a href=\"#s{i}\">{}</a></li>", escape(&section.heading));
        }
        body.push_str("</ul></nav>\n");
    }
    for (i, section) in sections.iter().enumerate() {
        let _ = writeln!(body, "<section id=\"s{i}\"><h2>{}</h2>", escape(&section.heading));
        for paragraph in paragraphs(&section.text) {
            let _ = writeln!(body, "<p>{}</p>", escape(&paragraph));
        }
        for plot in &section.plots {
            let _ = writeln!(body, "<figure>{}</figure>", plot.trim_end());
        }
        for one in &section.tables {
            table(&mut body, one);
        }
        body.push_str("</section>\n");
    }
    let (title, command_text) = (escape(title), escape(command));
    let (style, script) = (include_str!("html.css"), include_str!("html.js"));
    let provenance = lines(&format!("{:#}", provenance(command, sections)));
    // The policy keeps markup in a text from loading resources.
    format!(
        "<!DOCTYPE html>\n<html lang=\"en\"><head><meta charset=\"utf-8\">\n\
         <meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; style-src 'unsafe-inline'; \
         script-src 'unsafe-inline'\">\n\
         <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n\
         <meta name=\"color-scheme\" content=\"light dark\">\n\
         <title>{title}</title>\n<style>\n{style}</style></head>\n<body>\n\
         <header><h1>{title}</h1>\n<p><code>{command_text}</code></p></header>\n<main>\n{body}\
         <details><summary>Provenance</summary><pre>{provenance}</pre></details>\n\
         </main>\n<script>\n{script}</script>\n</body></html>\n"
    )
}

fn paragraphs(text: &str) -> Vec<String> {
    let mut paragraphs = vec![String::new()];
    for line in text.lines().map(str::trim) {
        match paragraphs.last_mut() {
            Some(last) if !line.is_empty() => {
                last.push_str(line);
                last.push(' ');
            }
            _ => paragraphs.push(String::new()),
        }
    }
    paragraphs.retain(|paragraph| !paragraph.is_empty());
    paragraphs.iter().map(|paragraph| paragraph.trim_end().to_owned()).collect()
}

/// Escapes every line; line breaks stay.
fn lines(text: &str) -> String {
    text.lines().map(escape).collect::<Vec<_>>().join("\n")
}

/// Returns the command and the provenance of the tables, grouped by provenance.
fn provenance(command: &str, sections: &[Section]) -> Value {
    let mut sources: Vec<(Vec<&str>, &Value)> = Vec::new();
    for table in sections.iter().flat_map(|section| &section.tables) {
        match sources.iter_mut().find(|(_, known)| **known == table.provenance) {
            Some((suites, _)) if suites.contains(&table.suite) => {}
            Some((suites, _)) => suites.push(table.suite),
            None => sources.push((vec![table.suite], &table.provenance)),
        }
    }
    let sources: Vec<Value> =
        sources.iter().map(|(suites, value)| json!({"suites": suites, "provenance": value})).collect();
    json!({"command": command, "sources": sources})
}

fn table(out: &mut String, table: &Table) {
    let depth = table.k.map_or_else(String::new, |k| format!(", k = {k}"));
    let _ = writeln!(out, "<div class=\"wide\"><table><caption>{}{depth}</caption>", escape(&table.name()));
    let _ = write!(out, "<thead><tr><th scope=\"col\">{}</th>", table.first_head());
    for head in table.columns.iter().map(|head| head.name.as_str()).chain(table.share_heads()) {
        let _ = write!(out, "<th scope=\"col\">{}</th>", escape(head));
    }
    out.push_str("</tr></thead>\n<tbody>\n");
    for row in &table.rows {
        let _ = write!(out, "<tr><th scope=\"row\">{}{}</th>", escape(&row.name()), failed(row));
        // Even if a row has too few cells, the shares belong in their own columns.
        for i in 0..table.columns.len() {
            cell(out, row.cells.get(i).and_then(Option::as_ref));
        }
        for part in table.shares(row) {
            match part.filter(|part| part.is_finite()) {
                Some(part) => {
                    let _ = write!(out, "<td data-v=\"{part}\"><b>{}</b></td>", share(part));
                }
                None => cell(out, None),
            }
        }
        out.push_str("</tr>\n");
    }
    out.push_str("</tbody></table></div>\n<ul class=\"remarks\">\n");
    for remark in table.remarks() {
        let _ = writeln!(out, "<li>{}</li>", escape(&remark));
    }
    out.push_str("</ul>\n");
}

fn failed(row: &Row) -> String {
    if row.failed.is_empty() {
        return String::new();
    }
    format!(" <small>({} failed)</small>", row.failed.len())
}

/// Writes a value with its star, and below it its interval and n. The script sorts by `data-v`.
fn cell(out: &mut String, cell: Option<&Cell>) {
    let Some(cell) = cell.filter(|cell| cell.mean.is_finite()) else {
        out.push_str("<td>–</td>");
        return;
    };
    let Cell { mean, interval, n, p, doubt, change, .. } = cell;
    let within = |x: f64| (-1.0..=1.0).contains(&x);
    let value = cell.value();
    let short = |x: f64| match x {
        x if !x.is_finite() => "–".to_owned(),
        x if within(x) => share(x),
        x => format!("{x:.1}"),
    };
    let star = if p.is_some_and(|p| p < 0.05) { "<sup>*</sup>" } else { "" };
    let chance = p.map_or_else(String::new, |p| format!(" title=\"p = {p:.4}\""));
    let interval = interval
        .map_or_else(String::new, |(low, high)| format!("<span>({}–{})</span> ", short(low), short(high)));
    let doubt = doubt.map_or_else(String::new, |doubt| {
        format!("<span>[{}–{}]</span> ", short(doubt.low), short(doubt.high))
    });
    let change =
        change.as_ref().map_or_else(String::new, |change| format!("<br><small>Δ {}</small>", change.text()));
    let _ = write!(
        out,
        "<td data-v=\"{mean}\"{chance}><b>{value}</b>{star}<br><small>{interval}{doubt}n&#160;{n}</small>{change}</td>"
    );
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::measure::Measure;
    use crate::measure::score::Column;
    use crate::report::plot;
    use crate::report::safe::assert_balanced;

    fn table() -> Table {
        let cell = |mean, p| Some(Cell { mean, interval: Some((0.1, 0.9)), n: 217, p, ..Cell::default() });
        Table {
            suite: "berds",
            columns: vec!["MRecall@5".into(), "Cover".into()],
            rows: vec![
                Row { lane: "bm25".into(), cells: vec![cell(0.5, None), None], ..Row::default() },
                Row {
                    lane: "minilm+mmr@0.75".into(),
                    cells: vec![cell(0.75, Some(0.01)), cell(17.8, Some(0.4))],
                    failed: vec![("q1".into(), "timed out".into())],
                    judged: Some(0.98),
                    ..Row::default()
                },
            ],
            questions: 217,
            k: Some(5),
            label_source: "gold".into(),
            notes: vec!["Only two-sided questions count.".into()],
            provenance: json!({"version": "0.1.0", "corpus": "a<b"}),
            ..Table::default()
        }
    }

    fn of(table: &Table) -> String {
        let section = Section {
            heading: "BERDS".into(),
            text: "One.\nStill one.\n\nTwo.".into(),
            tables: vec![table],
            plots: vec![plot::intervals(&[("bm25".into(), 0.5, 0.1, 0.9)])],
        };
        page("Report", "parallax eval", &[section])
    }

    #[test]
    fn a_cell_has_its_value_interval_star_and_n() {
        let html = of(&table());
        assert_balanced(&html);
        assert!(
            html.contains(
                "<b>0.7500</b><sup>*</sup><br><small><span>(.10–.90)</span> n&#160;217</small></td>"
            ),
            "{html}"
        );
        assert!(html.contains("<b>17.80</b><br>"), "a p of .4 has no star");
        assert!(html.contains("<td>–</td>") && html.contains("(1 failed)"));
    }

    #[test]
    fn every_measure_by_name_has_a_plot_and_the_sides_share_one() {
        let names =
            ["Shift@5", "alpha_nDCG@5", "P@5", "R@100", "AP", "RR@10", "ERR_IA@5", "StRecall@5", "P_IA@5"];
        let measures = names.map(|name| Head::from(name.parse::<Measure>().unwrap()));
        let sides = Column::at(5, &[]).unwrap().into_iter().map(Head::from);
        let columns: Vec<Head> = sides.chain(measures).collect();
        let cell = Some(Cell { mean: 0.5, n: 2, ..Cell::default() });
        let row = Row { lane: "bm25".into(), cells: vec![cell; columns.len()], ..Row::default() };
        let table = Table { columns, rows: vec![row], ..Table::default() };
        let plotted: Vec<String> = plots(&table).into_iter().map(|(name, _)| name).collect();
        let expected = ["sides", "MRecall@5", "Prec@5", "Prec@1"].into_iter().chain(names);
        assert_eq!(plotted, expected.map(|name| name.replace('@', "-at-")).collect::<Vec<_>>());
    }

    #[test]
    fn the_remarks_of_the_table_are_below_it() {
        let html = of(&table());
        for remark in ["217 questions · labels: gold", "counted as 0 (first q1: timed out)", "Only two-sided"]
        {
            assert!(html.contains(remark), "{remark}");
        }
        assert!(!html.contains("<li>lane"));
    }

    #[test]
    fn text_is_split_into_paragraphs_at_empty_lines() {
        assert!(of(&table()).contains("<p>One. Still one.</p>\n<p>Two.</p>"));
    }

    #[test]
    fn nothing_from_outside_becomes_markup() {
        let evil = "</pre></script><img src=x onerror=\"a()\">&'";
        let mut table = table();
        table.rows[0].lane = evil.into();
        table.columns[0] = evil.into();
        table.notes = vec![evil.into()];
        table.label_source = evil.into();
        table.rows[1].failed[0].1 = evil.into();
        table.provenance = json!({ evil: evil });
        let section =
            Section { heading: evil.into(), text: evil.into(), tables: vec![&table], ..Section::default() };
        let html = page(evil, evil, &[section.clone(), section.clone(), section]);
        assert_balanced(&html);
        assert!(!html.contains("<img"), "{html}");
    }

    #[test]
    fn nothing_is_loaded_from_elsewhere() {
        let html = of(&table()).replace("http://www.w3.org/2000/svg", "");
        for outside in ["http:", "https:", "src=", "@import", "url("] {
            assert!(!html.contains(outside), "{outside}");
        }
    }

    #[test]
    fn the_same_tables_give_the_same_page() {
        assert_eq!(of(&table()), of(&table()));
    }

    #[test]
    fn a_page_of_nothing_is_still_a_page() {
        let html = page("", "", &[]);
        assert_balanced(&html);
        assert!(html.contains("&quot;sources&quot;: []"), "{html}");
        assert_balanced(&of(&Table::default()));
    }

    #[test]
    fn tables_that_share_their_provenance_name_it_once() {
        let (first, second) = (table(), Table { suite: "pir", ..table() });
        let section = Section { tables: vec![&first, &second, &first], ..Section::default() };
        let value = provenance("c", &[section]);
        assert_eq!(value["sources"][0]["suites"], json!(["berds", "pir"]));
        assert_eq!(value["sources"].as_array().unwrap().len(), 1);
    }

    #[test]
    fn a_value_that_is_not_a_number_is_a_dash_and_short_rows_keep_their_columns() {
        let mut table = table();
        table.rows[0].cells = vec![Some(Cell { mean: f64::NAN, ..Cell::default() })];
        table.rows[1].judged = Some(0.5);
        let html = of(&table);
        let row = html.lines().find(|line| line.contains(">bm25</th>")).unwrap();
        assert_eq!(row.matches("<td>–</td>").count(), 3, "{row}");
    }

    #[test]
    fn a_cell_without_an_interval_has_its_n_alone() {
        let mut table = table();
        table.rows[0].cells[0] = Some(Cell { mean: 0.5, n: 9, ..Cell::default() });
        assert!(of(&table).contains("<b>0.5000</b><br><small>n&#160;9</small>"));
    }
}
