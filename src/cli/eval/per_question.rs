//! `--per-question`: a row a question and lane instead of the table, in the order of the set or the worst first.

use std::collections::HashMap;

use anyhow::bail;
use serde_json::{Map, Value, json};

use super::super::args::TableFormat;
use crate::report::safe;
use crate::report::table::{Row, Table};

/// A question under a lane.
struct Line<'a> {
    table: &'a Table,
    row: &'a Row,
    question: &'a str,
    at: usize,
    failed: Option<&'a str>,
}

impl Line<'_> {
    fn value(&self, column: usize) -> Option<f64> {
        *self.row.values.get(column)?.get(self.at)?
    }
}

/// The rows, in order of the measure named if one is.
///
/// # Errors
/// The suite tells nothing by question, there is no such measure, or the format is one for tables.
pub fn printed(table: &Table, measure: &str, format: TableFormat) -> anyhow::Result<String> {
    // With several sets, those that are averaged have the questions.
    let tables: Vec<&Table> = if table.set.is_some() {
        table.further.iter().filter(|own| own.suite == table.suite).collect()
    } else {
        vec![table]
    };
    let by = match measure {
        "" => None,
        measure => match table.columns.iter().position(|name| name.eq_ignore_ascii_case(measure)) {
            Some(column) => Some(column),
            None => {
                bail!("--per-question: no measure `{measure}` here; there are {}", table.columns.join(", "))
            }
        },
    };
    let mut lines = Vec::new();
    for table in &tables {
        for row in &table.rows {
            let failed: HashMap<&str, &str> =
                row.failed.iter().map(|(id, why)| (id.as_str(), why.as_str())).collect();
            if row.values.iter().all(Vec::is_empty) {
                continue;
            }
            for (at, question) in table.asked.iter().enumerate() {
                let failed = failed.get(question.as_str()).copied();
                lines.push(Line { table, row, question, at, failed });
            }
        }
    }
    if lines.is_empty() {
        bail!("eval {} tells nothing by question", table.suite);
    }
    if let Some(column) = by {
        // Those without a value last.
        let key = |line: &Line| line.value(column).unwrap_or(f64::INFINITY);
        lines.sort_by(|one, other| key(one).total_cmp(&key(other)));
    }
    Ok(match format {
        TableFormat::Json => format!("{:#}\n", json(table, &lines)),
        TableFormat::Tsv => texts(table, &lines).iter().map(|row| row.join("\t") + "\n").collect(),
        TableFormat::Text => aligned(&texts(table, &lines)),
        _ => bail!("--per-question is printed as text, tsv or json"),
    })
}

fn texts(table: &Table, lines: &[Line]) -> Vec<Vec<String>> {
    let mut heads: Vec<String> = table.set.iter().map(|_| "set".to_owned()).collect();
    heads.extend(["question", "lane"].map(String::from));
    heads.extend(table.columns.iter().cloned());
    heads.extend(["failed", "label_source"].map(String::from));
    let row = |line: &Line| {
        let mut texts: Vec<String> = line.table.set.iter().map(|set| safe::line(set)).collect();
        texts.extend([safe::line(line.question), safe::line(&line.row.lane)]);
        let value = |column| line.value(column).map_or_else(String::new, |value| format!("{value:.4}"));
        texts.extend((0..table.columns.len()).map(value));
        texts.extend([line.failed.map(safe::line).unwrap_or_default(), line.table.label_source.clone()]);
        texts
    };
    std::iter::once(heads).chain(lines.iter().map(row)).collect()
}

/// Columns under one another, what is empty as a dash.
fn aligned(rows: &[Vec<String>]) -> String {
    let wide = |text: &String| text.chars().count().max(1);
    let columns = rows.first().map_or(0, Vec::len);
    let widths: Vec<usize> =
        (0..columns).map(|column| rows.iter().map(|row| wide(&row[column])).max().unwrap_or(1)).collect();
    let line = |row: &Vec<String>| {
        let cells = row.iter().zip(&widths).map(|(text, width)| {
            let text = if text.is_empty() { "–" } else { text };
            format!("{text}{}", " ".repeat(width.saturating_sub(text.chars().count())))
        });
        cells.collect::<Vec<_>>().join("  ").trim_end().to_owned() + "\n"
    };
    rows.iter().map(line).collect()
}

fn json(table: &Table, lines: &[Line]) -> Value {
    let line = |line: &Line| {
        let values = table.columns.iter().enumerate();
        let measures: Map<String, Value> =
            values.map(|(column, name)| (name.clone(), json!(line.value(column)))).collect();
        json!({
            "set": line.table.set,
            "question": line.question,
            "lane": line.row.lane,
            "measures": measures,
            "failed": line.failed,
        })
    };
    json!({
        "suite": table.suite,
        "k": table.k,
        "label_source": table.label_source,
        "rows": lines.iter().map(line).collect::<Vec<_>>(),
        "provenance": table.provenance,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn table() -> Table {
        let row = |lane: &str, values: [Option<f64>; 3]| Row {
            lane: lane.into(),
            values: vec![values.to_vec()],
            failed: vec![("q2".into(), "no server".into())],
            ..Row::default()
        };
        Table {
            suite: "berds",
            columns: vec!["Prec@5".into()],
            asked: ["q1", "q2", "q3"].map(String::from).to_vec(),
            rows: vec![
                row("bm25", [Some(0.4), Some(0.0), None]),
                row("minilm", [Some(0.2), Some(0.0), Some(1.0)]),
            ],
            ..Table::default()
        }
    }

    #[test]
    fn a_row_a_question_and_lane_stands_in_the_order_of_the_set_or_the_worst_first() {
        let tsv = printed(&table(), "", TableFormat::Tsv).unwrap();
        assert_eq!(tsv.lines().nth(2), Some("q2\tbm25\t0.0000\tno server\t"));
        assert_eq!(tsv.lines().count(), 7);
        let sorted = printed(&table(), "prec@5", TableFormat::Json).unwrap();
        let sorted: Value = serde_json::from_str(&sorted).unwrap();
        let order: Vec<&str> =
            sorted["rows"].as_array().unwrap().iter().map(|row| row["question"].as_str().unwrap()).collect();
        assert_eq!(order, ["q2", "q2", "q1", "q1", "q3", "q3"]);
        assert_eq!(sorted["rows"][5]["measures"]["Prec@5"], Value::Null);
        assert!(printed(&table(), "", TableFormat::Text).unwrap().contains("q3        bm25    –"));
    }

    #[test]
    fn an_unknown_measure_and_a_format_for_tables_are_refused() {
        for (measure, format, word) in
            [("MRecall@5", TableFormat::Tsv, "Prec@5"), ("", TableFormat::Latex, "text, tsv or json")]
        {
            assert!(printed(&table(), measure, format).unwrap_err().to_string().contains(word));
        }
        let empty = Table { suite: "pir", ..Table::default() };
        assert!(printed(&empty, "", TableFormat::Tsv).unwrap_err().to_string().contains("pir"));
    }
}
