//! Figures of several lanes over a question set as a table, written as text, Markdown, LaTeX, TSV and JSON.

use std::fmt::Write;

use serde_json::{Value, json};
use unicode_width::UnicodeWidthStr;

use super::marks::share;
use super::safe;
use crate::measure::Measure;
use crate::measure::score::Column;
use crate::measure::uncertainty::Spread;

/// The name of a column, and whether it has a plot of its own.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Head {
    /// The name.
    pub name: String,
    /// Whether the column is plotted by itself. A column that shares a plot with others, or belongs only in the table, is not.
    pub plotted: bool,
}

impl Head {
    /// A column with a plot of its own.
    pub fn plotted(name: impl Into<String>) -> Self {
        Head { name: name.into(), plotted: true }
    }
}

/// A column without a plot of its own.
impl From<String> for Head {
    fn from(name: String) -> Self {
        Head { name, plotted: false }
    }
}

/// A column without a plot of its own.
impl From<&str> for Head {
    fn from(name: &str) -> Self {
        Head::from(name.to_owned())
    }
}

/// Every measure has a plot of its own.
impl From<Measure> for Head {
    fn from(measure: Measure) -> Self {
        Head::plotted(measure.to_string())
    }
}

impl From<Column> for Head {
    fn from(column: Column) -> Self {
        match column {
            Column::Named(measure) => Head::from(measure),
            // The shares of covered sides are stacked in one plot.
            Column::Covers(..) => Head::from(column.to_string()),
        }
    }
}

/// A measure of one lane over all questions.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Cell {
    /// The mean.
    pub mean: f64,
    /// The 95 % interval of the mean, if there is one.
    pub interval: Option<(f64, f64)>,
    /// The number of questions that the mean is over.
    pub n: usize,
    /// The p-value of the difference from the lane's plain form, corrected for the number of lanes compared; `None` if it is not
    /// compared.
    pub p: Option<f64>,
    /// The interval that includes the uncertainty of the model's verdicts, if they counted.
    pub doubt: Option<Spread>,
    /// The difference from the lane's plain form with questions and verdicts drawn, if the model's verdicts counted.
    pub difference: Option<Spread>,
    /// The share of labelled passages among those that the measure looks at, if it differs from the row's.
    pub judged: Option<f64>,
    /// How far both ends of [`Cell::doubt`] were moved outwards, for the bias of the model's means.
    pub widened: f64,
    /// Whether it is a count, which is printed without decimals.
    pub count: bool,
}

/// A lane's figures.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Row {
    /// The lane's recipe, or the run's name.
    pub lane: String,
    /// One cell per column; `None` if there is nothing to measure.
    pub cells: Vec<Option<Cell>>,
    /// The questions without a list, each with the reason. They count as 0.
    pub failed: Vec<(String, String)>,
    /// The share of the first k passages that have a label.
    pub judged: Option<f64>,
    /// The values of each measure, one per question in the order of [`Table::question_ids`]; empty if there are none by question.
    pub values: Vec<Vec<Option<f64>>>,
    /// The mean of each measure in every replicate that its interval comes from.
    pub replicates: Vec<Option<Vec<f64>>>,
}

/// The figures of all lanes.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Table {
    /// The suite that was measured.
    pub suite: &'static str,
    /// The question set's name, if there are several sets.
    pub set: Option<String>,
    /// The questions' ids.
    pub question_ids: Vec<String>,
    /// The heads of the columns: mostly measures.
    pub columns: Vec<Head>,
    /// The lanes.
    pub rows: Vec<Row>,
    /// The number of questions.
    pub questions: usize,
    /// How many passages count, if that is the same for all measures.
    pub k: Option<usize>,
    /// Which labels counted.
    pub label_source: String,
    /// A warning about the figures, printed first.
    pub caution: Option<String>,
    /// Notes for the reader, one per line.
    pub notes: Vec<String>,
    /// Versions, models and corpus.
    pub provenance: Value,
    /// Whether the printed table has one row per measure instead of one row per lane: for many measures of few lanes.
    pub turned: bool,
    /// Tables with other columns, printed below this one.
    pub further: Vec<Table>,
}

/// Formats a figure: four decimals between −1 and 1, else two.
fn figure(value: f64) -> String {
    // No sign before a zero.
    let value = value + 0.0;
    if (-1.0..=1.0).contains(&value) { format!("{value:.4}") } else { format!("{value:.2}") }
}

impl Cell {
    fn star(&self) -> &'static str {
        // No lane is called better or worse if the model's doubt allows the opposite.
        let undecided = self.difference.is_some_and(|difference| difference.holds_zero());
        if !undecided && self.p.is_some_and(|p| p < 0.05) { "*" } else { "" }
    }

    fn text(&self) -> String {
        if self.count {
            return format!("{:.0}", self.mean);
        }
        let short = |x: f64| if (-1.0..=1.0).contains(&x) { share(x) } else { format!("{x:.1}") };
        let range = |low, high| format!("{}–{}", short(low), short(high));
        let interval =
            self.interval.map_or_else(String::new, |(low, high)| format!(" ({})", range(low, high)));
        let doubt =
            self.doubt.map_or_else(String::new, |doubt| format!(" [{}]", range(doubt.low, doubt.high)));
        format!("{}{}{interval}{doubt}", figure(self.mean), self.star())
    }
}

impl Table {
    /// Returns the suite's name, with the question set's if there are several.
    pub fn name(&self) -> String {
        let set = self.set.as_ref().map(|set| format!("/{}", safe::line(set)));
        format!("{}{}", self.suite, set.unwrap_or_default())
    }

    /// Returns every row as texts, the lane first.
    fn texts(&self) -> Vec<Vec<String>> {
        let one = |row: &Row| {
            let cells = row.cells.iter().map(|cell| cell.as_ref().map_or_else(|| "–".into(), Cell::text));
            let mut texts = vec![safe::line(&row.lane)];
            texts.extend(cells);
            if self.rows.iter().any(|row| row.judged.is_some()) {
                texts.push(row.judged.map_or_else(|| "–".into(), share));
            }
            texts
        };
        self.rows.iter().map(one).collect()
    }

    fn heads(&self) -> Vec<String> {
        let mut heads = vec!["lane".to_owned()];
        heads.extend(self.columns.iter().map(|head| safe::line(&head.name)));
        heads.extend(self.rows.iter().any(|row| row.judged.is_some()).then(|| "judged".to_owned()));
        heads
    }

    /// Returns heads and rows as they are printed, turned if the table asks for it.
    fn printed(&self) -> (Vec<String>, Vec<Vec<String>>) {
        let (heads, rows) = (self.heads(), self.texts());
        if !self.turned {
            return (heads, rows);
        }
        let column = |at: usize| std::iter::once(&heads).chain(&rows).map(|row| row[at].clone()).collect();
        (column(0), (1..heads.len()).map(column).collect())
    }

    /// Returns the notes below the table.
    pub(super) fn remarks(&self) -> Vec<String> {
        let cells = || self.rows.iter().flat_map(|row| row.cells.iter().flatten());
        let set = self.set.as_ref().map_or_else(String::new, |set| format!("{set}: "));
        let intervals =
            if cells().any(|cell| cell.interval.is_some()) { " · 95 % intervals by question" } else { "" };
        let mut remarks: Vec<String> = self.caution.iter().cloned().collect();
        remarks.push(format!("{set}{} questions · labels: {}{intervals}", self.questions, self.label_source));
        if cells().any(|cell| cell.doubt.is_some()) {
            remarks.push(
                "means are expected values under the model's probabilities; […]: 95 % with the questions resampled and the verdicts drawn from these"
                    .into(),
            );
        }
        if self.rows.iter().flat_map(|row| row.cells.iter().flatten()).any(|cell| cell.p.is_some()) {
            remarks.push(
                match cells().any(|cell| cell.difference.is_some()) {
                    false => "* differs from the lane's plain form: paired randomisation, Holm-corrected p < .05",
                    true => {
                        "* differs from the lane's plain form: paired randomisation, Holm-corrected p < .05, and the interval of the \
                         difference with the verdicts drawn does not hold 0"
                    }
                }
                .into(),
            );
        }
        for row in self.rows.iter().filter(|row| !row.failed.is_empty()) {
            let (first, reason) = &row.failed[0];
            remarks.push(format!(
                "{}: {} questions without a list, counted as 0 (first {first}: {reason})",
                row.lane,
                row.failed.len()
            ));
        }
        remarks.extend(self.notes.iter().cloned());
        remarks.iter().map(|remark| safe::line(remark)).collect()
    }

    /// Writes it as aligned text.
    pub fn text(&self) -> String {
        let (heads, rows) = self.printed();
        let width =
            |column: usize| rows.iter().chain([&heads]).map(|row| row[column].width()).max().unwrap_or(0);
        let widths: Vec<usize> = (0..heads.len()).map(width).collect();
        let mut out = String::new();
        for row in std::iter::once(&heads).chain(&rows) {
            let cells = row.iter().zip(&widths).enumerate();
            let cells: Vec<String> = cells
                .map(|(i, (text, width))| {
                    let pad = " ".repeat(width - text.width());
                    if i == 0 { format!("{text}{pad}") } else { format!("{pad}{text}") }
                })
                .collect();
            let _ = writeln!(out, "{}", cells.join("  ").trim_end());
        }
        for remark in self.remarks() {
            let _ = writeln!(out, "{remark}");
        }
        self.with_further(out, Table::text)
    }

    /// Appends the tables below, with a blank line between tables.
    fn with_further(&self, out: String, print: impl Fn(&Table) -> String) -> String {
        self.further.iter().fold(out, |out, table| out + "\n" + &print(table))
    }

    /// Writes it as Markdown, with GitHub's tables.
    pub fn markdown(&self) -> String {
        let (heads, rows) = self.printed();
        let cells =
            |row: &[String]| row.iter().map(|cell| cell.replace('|', "\\|")).collect::<Vec<_>>().join(" | ");
        let mut out = format!("| {} |\n| --- |{}\n", cells(&heads), " ---: |".repeat(heads.len() - 1));
        for row in rows {
            let _ = writeln!(out, "| {} |", cells(&row));
        }
        out.push('\n');
        // A star at the start of a line would begin a list.
        let unlisted = |remark: &String| match remark.strip_prefix('*') {
            Some(rest) => format!("\\*{rest}"),
            None => remark.clone(),
        };
        out += &(self.remarks().iter().map(unlisted).collect::<Vec<_>>().join("  \n") + "\n");
        self.with_further(out, Table::markdown)
    }

    /// Writes it as LaTeX, with booktabs.
    pub fn latex(&self) -> String {
        let escape = |text: &str| {
            let mut out = String::new();
            for c in text.chars() {
                match c {
                    '&' | '%' | '$' | '#' | '_' | '{' | '}' => out.extend(['\\', c]),
                    '\\' => out.push_str("\\textbackslash{}"),
                    '~' => out.push_str("\\textasciitilde{}"),
                    '^' => out.push_str("\\textasciicircum{}"),
                    '–' => out.push_str("--"),
                    '*' => out.push_str("$^{*}$"),
                    c => out.push(c),
                }
            }
            out
        };
        let line = |row: &[String]| row.iter().map(|cell| escape(cell)).collect::<Vec<_>>().join(" & ");
        let (heads, rows) = self.printed();
        let mut out = format!("\\begin{{tabular}}{{l{}}}\n\\toprule\n", "r".repeat(heads.len() - 1));
        let _ = writeln!(out, "{} \\\\\n\\midrule", line(&heads));
        for row in rows {
            let _ = writeln!(out, "{} \\\\", line(&row));
        }
        out.push_str("\\bottomrule\n\\end{tabular}\n");
        for remark in self.remarks() {
            let _ = writeln!(out, "% {remark}");
        }
        self.with_further(out, Table::latex)
    }

    /// Writes it as TSV, one line per lane and measure.
    pub fn tsv(&self) -> String {
        let heads = "suite\tlane\tmeasure\tvalue\tlow\thigh\tn\tfailed\tp\tjudged\tlabel_source\tdoubt_mean\tdoubt_low\tdoubt_high\n";
        heads.to_owned() + &self.tab_lines()
    }

    fn tab_lines(&self) -> String {
        let mut out = String::new();
        let optional = |x: Option<f64>| x.map_or_else(String::new, |x| format!("{x:.4}"));
        for row in &self.rows {
            for (Head { name: measure, .. }, cell) in self.columns.iter().zip(&row.cells) {
                let Some(Cell { mean, interval, n, p, doubt, judged, .. }) = cell else { continue };
                let (low, high) = (optional(interval.map(|i| i.0)), optional(interval.map(|i| i.1)));
                let (lane, measure) = (safe::field(&row.lane), safe::field(measure));
                let (failed, source) = (row.failed.len(), safe::field(&self.label_source));
                let (p, judged) = (optional(*p), optional(judged.or(row.judged)));
                let of = |part: fn(Spread) -> f64| optional(doubt.map(part));
                let doubt = [of(|d| d.mean), of(|d| d.low), of(|d| d.high)].join("\t");
                let _ = writeln!(
                    out,
                    "{}\t{lane}\t{measure}\t{mean:.4}\t{low}\t{high}\t{n}\t{failed}\t{p}\t{judged}\t{source}\t{doubt}",
                    safe::field(&self.name())
                );
            }
        }
        out.extend(self.further.iter().map(Table::tab_lines));
        out
    }

    /// Writes it as JSON. The format is stable.
    pub fn json(&self) -> Value {
        let rows = self.rows.iter().map(|row| {
            let measures = self.columns.iter().zip(&row.cells).filter_map(|(Head { name, .. }, cell)| {
                let Cell { mean, interval, n, p, doubt, judged, difference, .. } = cell.as_ref()?;
                let (low, high) = (interval.map(|i| i.0), interval.map(|i| i.1));
                let judged = judged.or(row.judged);
                let mut value =
                    json!({"mean": mean, "low": low, "high": high, "n": n, "p": p, "judged": judged});
                if let Some(Spread { mean, low, high }) = doubt {
                    value["doubt"] = json!({"mean": mean, "low": low, "high": high});
                }
                if let Some(Spread { mean, low, high }) = difference {
                    value["difference"] = json!({"mean": mean, "low": low, "high": high});
                }
                Some((name.clone(), value))
            });
            let failed: Vec<_> = row.failed.iter().map(|(id, _)| id).collect();
            json!({
                "lane": row.lane,
                "measures": measures.collect::<serde_json::Map<_, _>>(),
                "failed": failed.len(),
                "failed_questions": failed,
            })
        });
        let failed: std::collections::BTreeSet<_> =
            self.rows.iter().flat_map(|row| &row.failed).map(|(id, _)| id).collect();
        let mut value = json!({
            "suite": self.suite,
            "k": self.k,
            "questions": self.questions,
            "failed": failed.len(),
            "failed_questions": failed,
            "label_source": self.label_source,
            "rows": rows.collect::<Vec<_>>(),
            "notes": self.caution.iter().chain(&self.notes).collect::<Vec<_>>(),
            "provenance": self.provenance,
        });
        if let Some(set) = &self.set {
            value["set"] = json!(set);
        }
        if !self.further.is_empty() {
            value["further"] = self.further.iter().map(Table::json).collect();
        }
        value
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn table() -> Table {
        let cell = |mean, p| Some(Cell { mean, interval: Some((0.1, 0.9)), n: 2, p, ..Cell::default() });
        let row = |lane: &str, cells| Row { lane: lane.into(), cells, ..Row::default() };
        Table {
            suite: "berds",
            columns: vec!["MRecall@5".into(), "Cover".into()],
            rows: vec![
                row("bm25", vec![cell(0.5, None), None]),
                Row {
                    failed: vec![("q1".into(), "a_b|c".into())],
                    ..row("minilm+mmr@0.75", vec![cell(0.75, Some(0.01)), cell(17.8, None)])
                },
            ],
            questions: 2,
            k: Some(5),
            label_source: "gold".into(),
            ..Table::default()
        }
    }

    #[test]
    fn people_see_aligned_columns_stars_and_what_failed() {
        let text = table().text();
        let lines: Vec<&str> = text.lines().collect();
        assert_eq!(lines[0], "lane                     MRecall@5            Cover");
        assert_eq!(lines[1], "bm25              0.5000 (.10–.90)                –");
        assert_eq!(lines[2], "minilm+mmr@0.75  0.7500* (.10–.90)  17.80 (.10–.90)");
        assert_eq!(lines[3], "2 questions · labels: gold · 95 % intervals by question");
        assert!(lines[4].starts_with("* differs"));
        assert_eq!(lines[5], "minilm+mmr@0.75: 1 questions without a list, counted as 0 (first q1: a_b|c)");
    }

    #[test]
    fn wide_characters_take_two_columns_of_the_text() {
        let mut table = table();
        table.rows[0].lane = "run:物物.json".into();
        let text = table.text();
        let ends: Vec<usize> = text.lines().take(3).map(|line| line.width()).collect();
        assert_eq!((ends[0], ends[1]), (ends[2], ends[2]), "{text}");
    }

    #[test]
    fn no_lane_is_called_better_if_the_interval_of_the_difference_holds_0() {
        let mut table = table();
        let spread = |low| Some(Spread { mean: 0.1, low, high: 0.3 });
        let cell = |table: &mut Table, low| {
            let cell = table.rows[1].cells[0].as_mut().unwrap();
            (cell.doubt, cell.difference) = (spread(0.1), spread(low));
            table.text()
        };
        assert!(cell(&mut table, 0.05).contains("0.7500* ("));
        let text = cell(&mut table, -0.05);
        assert!(text.contains("0.7500 (") && text.contains("does not hold 0"), "{text}");
        assert_eq!(table.json()["rows"][1]["measures"]["MRecall@5"]["difference"]["low"], json!(-0.05));
    }

    #[test]
    fn markdown_and_latex_escape_what_would_break_them() {
        let mut table = table();
        table.rows[0].lane = "run:a|b_c&d.json".into();
        assert!(table.markdown().contains("| run:a\\|b_c&d.json |"));
        assert!(table.markdown().contains("\n\\* differs"), "{}", table.markdown());
        assert!(table.latex().contains("run:a|b\\_c\\&d.json & "), "{}", table.latex());
        assert!(table.latex().contains("0.7500$^{*}$ (.10--.90)"));
    }

    #[test]
    fn tsv_has_one_line_per_lane_and_measure_and_json_names_what_failed() {
        assert_eq!(table().tsv().lines().count(), 4);
        let json = table().json();
        assert_eq!(json["failed_questions"], json!(["q1"]));
        assert_eq!(json["rows"][1]["measures"]["Cover"]["mean"], json!(17.8));
        assert_eq!(json.get("further"), None);
    }

    #[test]
    fn tables_below_are_printed_in_every_form_under_one_tsv_header() {
        let below = Table { suite: "below", columns: vec!["side".into(), "b".into()], ..table() };
        let both = Table { further: vec![below], ..table() };
        for text in [both.text(), both.markdown(), both.latex()] {
            assert!(text.contains("MRecall@5") && text.contains("side"), "{text}");
        }
        assert_eq!(both.tsv().lines().count(), 7);
        assert_eq!(both.json()["further"][0]["suite"], json!("below"));
    }
}
