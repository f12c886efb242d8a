//! Figures of several lanes over a question set as a table, written as text, Markdown, LaTeX, TSV and JSON.

use std::fmt::Write;

use serde_json::{Value, json};
use unicode_width::UnicodeWidthStr;

pub use super::cell::{Cell, Change, Counted, Head, Row};
use super::marks::{count, share};
use super::safe;
use crate::measure::uncertainty::Spread;

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
    /// The lane that all others are compared with; `None` if each is compared with its plain form.
    pub baseline: Option<String>,
    /// How many judged passages each source judged, in words; empty if nothing was judged.
    pub judged_by: String,
    /// A warning about the figures, printed first.
    pub caution: Option<String>,
    /// Notes for the reader, one per line.
    pub notes: Vec<String>,
    /// Notes on some of the questions, printed below the others.
    pub counted: Vec<Counted>,
    /// Versions, models and corpus.
    pub provenance: Value,
    /// Whether the printed table has one row per measure instead of one row per lane: for many measures of few lanes.
    pub turned: bool,
    /// Whether every cell shows over how many questions its mean is.
    pub counts: bool,
    /// Tables with other columns, printed below this one.
    pub further: Vec<Table>,
}

impl Table {
    /// Returns all notes as they are printed.
    pub fn all_notes(&self) -> impl Iterator<Item = String> {
        self.notes.iter().cloned().chain(self.counted.iter().map(Counted::to_string))
    }

    /// Returns the suite's name, with the question set's if there are several.
    pub fn name(&self) -> String {
        let set = self.set.as_ref().map(|set| format!("/{}", safe::line(set)));
        format!("{}{}", self.suite, set.unwrap_or_default())
    }

    /// Whether a column of differences from the plain lane stands beside a measure: if a lane is compared, beside every measure with a
    /// plot of its own, or beside all where none has one. TSV and JSON have the differences of all measures.
    fn shows_change(&self, column: usize) -> bool {
        let main = self.columns[column].plotted || !self.columns.iter().any(|head| head.plotted);
        let compared = |row: &Row| row.cells.get(column)?.as_ref()?.change.as_ref().map(drop);
        main && self.rows.iter().any(|row| compared(row).is_some())
    }

    /// Returns every row as texts, the lane first.
    fn texts(&self) -> Vec<Vec<String>> {
        let missing = || "–".to_owned();
        let one = |row: &Row| {
            let mut texts = vec![safe::line(&row.name())];
            for (column, cell) in row.cells.iter().enumerate() {
                let text = cell.as_ref().map_or_else(missing, |cell| match self.counts {
                    true => format!("{} n={}", cell.text(), cell.n),
                    false => cell.text(),
                });
                texts.push(text);
                if self.shows_change(column) {
                    let change = cell.as_ref().and_then(|cell| cell.change.as_ref());
                    texts.push(change.map_or_else(missing, Change::text));
                }
            }
            let shares = self.shares(row).into_iter();
            texts.extend(shares.map(|part| part.map_or_else(|| "–".into(), share)));
            texts
        };
        self.rows.iter().map(one).collect()
    }

    /// Whether the model judged a passage of any lane, so that each lane says how many.
    fn names_the_model(&self) -> bool {
        self.rows.iter().any(|row| row.by_model.is_some_and(|share| share > 0.0))
    }

    /// The names of the last columns: the share of passages judged, and of these verdicts the model's.
    pub(super) fn share_heads(&self) -> impl Iterator<Item = &str> {
        let judged = self.rows.iter().any(|row| row.judged.is_some());
        [("judged", judged), ("model", self.names_the_model())]
            .into_iter()
            .filter_map(|(name, has)| has.then_some(name))
    }

    /// A row's values in these columns.
    pub(super) fn shares(&self, row: &Row) -> Vec<Option<f64>> {
        self.share_heads().map(|name| if name == "judged" { row.judged } else { row.by_model }).collect()
    }

    /// The name of the first column.
    pub(super) fn first_head(&self) -> &'static str {
        if self.suite.starts_with("quality") { "annotator" } else { "lane" }
    }

    fn heads(&self) -> Vec<String> {
        let mut heads = vec![self.first_head().to_owned()];
        for (column, head) in self.columns.iter().enumerate() {
            let name = safe::line(&head.name);
            let change = self.shows_change(column).then(|| format!("Δ {name}"));
            heads.push(name);
            heads.extend(change);
        }
        heads.extend(self.share_heads().map(ToOwned::to_owned));
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
        let judged_by =
            if self.judged_by.is_empty() { String::new() } else { format!(" · judged: {}", self.judged_by) };
        remarks.push(format!(
            "{set}{} · labels: {}{judged_by}{intervals}",
            count(self.questions, "question", "questions"),
            self.label_source
        ));
        if cells().any(|cell| cell.doubt.is_some()) {
            remarks.push(
                "means are expected values under the model's probabilities; […]: 95 % with the questions resampled and the verdicts drawn from these"
                    .into(),
            );
        }
        if cells().any(|cell| cell.p.is_some()) {
            let base = self.baseline.as_deref().unwrap_or("the lane's plain form");
            let drawn = match cells().any(|cell| cell.difference.is_some()) {
                false => "",
                true => ", and the interval of the difference with the verdicts drawn does not hold 0",
            };
            remarks
                .push(format!("* differs from {base}: paired randomisation, Holm-corrected p < .05{drawn}"));
        }
        if (0..self.columns.len()).any(|column| self.shows_change(column)) {
            let base = self.baseline.as_deref().unwrap_or("the lane's plain form");
            remarks.push(format!(
                "Δ: difference from {base}, also in per cent of it, with its 95 % interval by question"
            ));
        }
        for row in self.rows.iter().filter(|row| !row.failed.is_empty()) {
            let (first, reason) = &row.failed[0];
            let failed = count(row.failed.len(), "question", "questions");
            let what = match self.suite {
                // There, a single passage may fail.
                "edit" => "not measured as a whole; what failed is left out",
                _ => "without a list, counted as 0",
            };
            remarks.push(format!("{}: {failed} {what} (first {first}: {reason})", row.lane));
        }
        remarks.extend(self.all_notes());
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
        let heads = "suite\tlane\tmeasure\tvalue\tlow\thigh\tn\tfailed\tp\tjudged\tlabel_source\tdoubt_mean\tdoubt_low\tdoubt_high\tchange\tchange_low\tchange_high\tchange_percent\tby_model\n";
        heads.to_owned() + &self.tab_lines()
    }

    fn tab_lines(&self) -> String {
        let mut out = String::new();
        let optional = |x: Option<f64>| x.map_or_else(String::new, |x| format!("{x:.4}"));
        for row in &self.rows {
            for (Head { name: measure, .. }, cell) in self.columns.iter().zip(&row.cells) {
                let Some(Cell { mean, interval, n, p, doubt, judged, by_model, change, .. }) = cell else {
                    continue;
                };
                let (low, high) = (optional(interval.map(|i| i.0)), optional(interval.map(|i| i.1)));
                let (lane, measure) = (safe::field(&row.name()), safe::field(measure));
                let (failed, source) = (row.failed.len(), safe::field(&self.label_source));
                let (p, judged) = (optional(*p), optional(judged.or(row.judged)));
                let by_model = optional(by_model.or(row.by_model));
                let of = |part: fn(Spread) -> f64| optional(doubt.map(part));
                let doubt = [of(|d| d.mean), of(|d| d.low), of(|d| d.high)].join("\t");
                let of = |part: fn(&Change) -> Option<f64>| optional(change.as_ref().and_then(part));
                let change =
                    [of(|c| Some(c.mean)), of(|c| Some(c.low)), of(|c| Some(c.high)), of(Change::percent)]
                        .join("\t");
                let _ = writeln!(
                    out,
                    "{}\t{lane}\t{measure}\t{mean:.4}\t{low}\t{high}\t{n}\t{failed}\t{p}\t{judged}\t{source}\t{doubt}\t{change}\t{by_model}",
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
                let Cell { mean, interval, n, p, doubt, judged, by_model, difference, change, .. } =
                    cell.as_ref()?;
                let (low, high) = (interval.map(|i| i.0), interval.map(|i| i.1));
                let judged = judged.or(row.judged);
                let mut value =
                    json!({"mean": mean, "low": low, "high": high, "n": n, "p": p, "judged": judged});
                if let Some(share) = by_model.or(row.by_model) {
                    value["by_model"] = json!(share);
                }
                if let (Some(_), Some(versus)) = (p, &row.versus) {
                    value["versus"] = json!(versus);
                }
                if let Some(Spread { mean, low, high }) = doubt {
                    value["doubt"] = json!({"mean": mean, "low": low, "high": high});
                }
                if let Some(Spread { mean, low, high }) = difference {
                    value["difference"] = json!({"mean": mean, "low": low, "high": high});
                }
                if let Some(change) = change {
                    let Change { mean, low, high, .. } = change;
                    value["change"] =
                        json!({"mean": mean, "low": low, "high": high, "percent": change.percent()});
                }
                Some((name.clone(), value))
            });
            let failed: Vec<_> = row.failed.iter().map(|(id, _)| id).collect();
            let mut value = json!({
                "lane": row.lane,
                "by_model": row.by_model,
                "measures": measures.collect::<serde_json::Map<_, _>>(),
                "failed": failed.len(),
                "failed_questions": failed,
            });
            if let Some(form) = &row.form {
                value["form"] = json!(form);
            }
            value
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
            "judged_by": self.judged_by,
            "rows": rows.collect::<Vec<_>>(),
            "notes": self.caution.iter().cloned().chain(self.all_notes()).collect::<Vec<_>>(),
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
        assert_eq!(lines[5], "minilm+mmr@0.75: 1 question without a list, counted as 0 (first q1: a_b|c)");
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
    fn a_compared_lane_shows_its_difference_beside_the_measure_and_the_form_in_its_name() {
        let mut table = table();
        let change = Change { mean: 0.25, low: -0.05, high: 0.5, plain: 0.5, pairs: Vec::new() };
        table.rows[1].cells[0].as_mut().unwrap().change = Some(change);
        table.rows[1].form = Some("extractive (no model)".into());
        let text = table.text();
        let lines: Vec<&str> = text.lines().collect();
        assert!(lines[0].contains("Δ MRecall@5") && !lines[0].contains("Δ Cover"), "{text}");
        assert!(lines[1].contains("  –  "), "the plain lane has none: {text}");
        assert!(lines[2].starts_with("minilm+mmr@0.75 [extractive (no model)]  0.7500* (.10–.90)"), "{text}");
        assert!(lines[2].contains("+0.2500 +50.0 % (-.050 to +.500)"), "{text}");
        assert!(text.contains("Δ: difference from the lane's plain form"), "{text}");
        let json = table.json();
        assert_eq!(json["rows"][1]["measures"]["MRecall@5"]["change"]["percent"], json!(50.0));
        assert_eq!(
            (&json["rows"][1]["lane"], &json["rows"][1]["form"]),
            (&json!("minilm+mmr@0.75"), &json!("extractive (no model)"))
        );
        assert!(
            table.tsv().lines().nth(2).unwrap().ends_with("\t0.2500\t-0.0500\t0.5000\t50.0000\t"),
            "{}",
            table.tsv()
        );
        table.counts = true;
        assert!(table.text().contains("0.5000 (.10–.90) n=2"), "{}", table.text());
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
