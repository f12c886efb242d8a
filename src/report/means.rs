//! Makes tables from values by question. One has a row per lane: means, intervals, the test against the plain lane, the macro-average of
//! several question sets. The other, of `--per-question`, has a row per question and lane, in the order of the set or the worst first.

use std::collections::{HashMap, HashSet};

use serde_json::{Map, Value, json};

use super::safe;
use crate::measure::pir::grouped_interval;
use crate::measure::significance::{
    DRAWS, SignificanceError, bootstrap_interval, holm, paired_randomisation,
};
use crate::measure::uncertainty::Spread;
use crate::report::table::{Cell, Change, Row, Table};

/// The values of one lane and measure, one per question; `None` if the question has no value of this measure.
pub type Values = Vec<Option<f64>>;

/// Makes one row per lane: its figures, the questions that failed, the share of passages judged, and the values by question.
///
/// `values` holds every lane's measures; `versus` the row that each lane is compared with, if any; `judged` the counts of judged passages
/// and of all.
pub fn rows(
    names: impl IntoIterator<Item = String>,
    values: Vec<Vec<Values>>,
    versus: &[Option<usize>],
    failed: Vec<Vec<(String, String)>>,
    judged: Vec<(usize, usize)>,
) -> Result<Vec<Row>, SignificanceError> {
    let cells = cells(&values, versus)?;
    let names: Vec<String> = names.into_iter().collect();
    let all = names.iter().cloned().zip(cells).zip(failed).zip(judged).zip(values).zip(versus);
    let row = |(((((lane, cells), failed), (judged, of)), values), versus): (_, &Option<usize>)| {
        let judged = (of > 0).then(|| judged as f64 / of as f64);
        let versus = versus.and_then(|base| names.get(base).cloned());
        Row { lane, cells, failed, judged, values, versus, ..Row::default() }
    };
    Ok(all.map(row).collect())
}

/// Returns means and intervals of every lane (rows) and measure (columns), each lane compared with the row in `versus`, if any.
pub fn cells(
    lanes: &[Vec<Values>],
    versus: &[Option<usize>],
) -> Result<Vec<Vec<Option<Cell>>>, SignificanceError> {
    let mut rows: Vec<Vec<Option<Cell>>> = Vec::new();
    for columns in lanes {
        let row = columns.iter().map(|values| -> Result<Option<Cell>, SignificanceError> {
            let known: Vec<f64> = values.iter().flatten().copied().collect();
            if known.is_empty() {
                return Ok(None);
            }
            let interval = bootstrap_interval(&known, 0.95, DRAWS, 0)?;
            let (mean, n) = (interval.mean, known.len());
            Ok(Some(Cell { mean, interval: Some((interval.low, interval.high)), n, ..Cell::default() }))
        });
        rows.push(row.collect::<Result<_, _>>()?);
    }
    compare(&mut rows.iter_mut().collect::<Vec<_>>(), &lanes.iter().collect::<Vec<_>>(), versus)?;
    Ok(rows)
}

/// Adds to the cells of every lane its difference from the row in `versus`, if any: the paired test, Holm-corrected over the lanes
/// compared, and the interval, over the questions of which both lanes have a value.
pub fn compare(
    rows: &mut [&mut Vec<Option<Cell>>],
    lanes: &[&Vec<Values>],
    versus: &[Option<usize>],
) -> Result<(), SignificanceError> {
    for measure in 0..lanes.iter().map(|values| values.len()).max().unwrap_or(0) {
        let mut compared = Vec::new();
        for (lane, other) in versus.iter().enumerate() {
            let Some(other) = other else { continue };
            let (Some(own), Some(plain)) = (lanes[lane].get(measure), lanes[*other].get(measure)) else {
                continue;
            };
            let both = own.iter().zip(plain).filter_map(|(a, b)| Some(((*a)?, (*b)?)));
            let (left, right): (Vec<f64>, Vec<f64>) = both.unzip();
            if !left.is_empty() {
                let change = change(&left, &right)?;
                compared.push((lane, paired_randomisation(&left, &right, DRAWS, 0)?, change));
            }
        }
        let corrected = holm(&compared.iter().map(|(_, p, _)| *p).collect::<Vec<_>>());
        for ((lane, _, change), p) in compared.into_iter().zip(corrected) {
            if let Some(Some(cell)) = rows[lane].get_mut(measure) {
                (cell.p, cell.change) = (Some(p), Some(change));
            }
        }
    }
    Ok(())
}

fn change(own: &[f64], plain: &[f64]) -> Result<Change, SignificanceError> {
    let pairs: Vec<f64> = own.iter().zip(plain).map(|(own, plain)| own - plain).collect();
    let interval = bootstrap_interval(&pairs, 0.95, DRAWS, 0)?;
    let plain = plain.iter().sum::<f64>() / plain.len() as f64;
    Ok(Change { mean: interval.mean, low: interval.low, high: interval.high, plain, pairs })
}

/// Every text once, in the order of its first occurrence.
pub fn distinct<'a>(texts: impl Iterator<Item = &'a str>) -> Vec<&'a str> {
    let mut seen = HashSet::new();
    texts.filter(|text| seen.insert(*text)).collect()
}

/// Returns the average of the tables, with the tables below it. A single table is returned unchanged.
///
/// # Errors
/// A value is not a number.
pub fn averaged(mut tables: Vec<(String, Table)>) -> Result<Table, SignificanceError> {
    if tables.len() < 2 {
        return Ok(tables.pop().map(|(_, table)| table).unwrap_or_default());
    }
    let sets: Vec<Table> = tables.into_iter().map(|(name, table)| of_set(table, &name)).collect();
    let mut average = average(&sets.iter().collect::<Vec<_>>())?;
    average.further.extend(sets);
    Ok(average)
}

fn of_set(mut table: Table, name: &str) -> Table {
    table.set = Some(name.to_owned());
    table.further = table.further.into_iter().map(|below| of_set(below, name)).collect();
    table
}

/// Averages tables of different sets with the same lanes and columns.
fn average(sets: &[&Table]) -> Result<Table, SignificanceError> {
    let Some(first) = sets.first() else { return Ok(Table::default()) };
    let mut rows = Vec::new();
    for (at, row) in first.rows.iter().enumerate() {
        let same: Vec<&Row> = sets.iter().filter_map(|set| set.rows.get(at)).collect();
        let cells = (0..first.columns.len()).map(|column| cell(&same, column));
        let failed = sets.iter().zip(&same).flat_map(|(set, row)| {
            let name = set.set.clone().unwrap_or_default();
            row.failed.iter().map(move |(id, why)| (format!("{name}/{id}"), why.clone()))
        });
        let mean = |share: fn(&Row) -> Option<f64>| {
            same.iter().map(|row| share(row)).sum::<Option<f64>>().map(|sum| sum / same.len() as f64)
        };
        rows.push(Row {
            lane: row.lane.clone(),
            form: row.form.clone().filter(|form| same.iter().all(|other| other.form.as_ref() == Some(form))),
            cells: cells.collect::<Result<_, _>>()?,
            failed: failed.collect(),
            judged: mean(|row| row.judged),
            by_model: mean(|row| row.by_model),
            ..Row::default()
        });
    }
    let further = (0..first.further.len())
        .map(|at| average(&sets.iter().filter_map(|set| set.further.get(at)).collect::<Vec<_>>()));
    let labels = distinct(sets.iter().map(|set| set.label_source.as_str()));
    let names: Vec<String> = sets.iter().filter_map(|set| set.set.clone()).collect();
    Ok(Table {
        suite: first.suite,
        set: Some("macro-average".into()),
        columns: first.columns.clone(),
        rows,
        questions: sets.iter().map(|set| set.questions).sum(),
        k: first.k,
        label_source: labels.join(", "),
        caution: first.caution.clone(),
        counts: first.counts,
        notes: vec![format!(
            "mean of the means of {}; – if a set has none; the intervals resample the questions of every set",
            names.join(", ")
        )],
        provenance: json!({"sets": sets.iter().map(|set| set.provenance.clone()).collect::<Vec<Value>>()}),
        further: further.collect::<Result<_, _>>()?,
        ..Table::default()
    })
}

/// Returns the mean of the sets' means for one lane and column; `None` if a set has none.
fn cell(rows: &[&Row], column: usize) -> Result<Option<Cell>, SignificanceError> {
    let cells: Option<Vec<&Cell>> =
        rows.iter().map(|row| row.cells.get(column).and_then(Option::as_ref)).collect();
    let Some(cells) = cells.filter(|cells| !cells.is_empty()) else { return Ok(None) };
    let sets = cells.len() as f64;
    let groups: Option<Vec<Vec<(f64, f64)>>> = rows
        .iter()
        .map(|row| Some(row.values.get(column)?.iter().flatten().map(|value| (*value, 1.0)).collect()))
        .collect();
    let bounded = cells.iter().all(|cell| cell.interval.is_some());
    let interval = match groups.filter(|groups| bounded && groups.iter().all(|group| !group.is_empty())) {
        Some(groups) => Some(grouped_interval(&groups, 0.95, DRAWS, 0)?),
        None => None,
    };
    // The replicates of the sets are independent: their means are replicates of the average.
    let replicates: Option<Vec<&Vec<f64>>> =
        rows.iter().map(|row| row.replicates.get(column)?.as_ref()).collect();
    let doubt = replicates.and_then(|sets| {
        let count = sets.iter().map(|means| means.len()).min()?;
        let mean = |at: usize| sets.iter().map(|means| means[at]).sum::<f64>() / sets.len() as f64;
        Spread::of(&mut (0..count).map(mean).collect::<Vec<f64>>())
    });
    let widened = cells.iter().map(|cell| cell.widened).sum::<f64>() / sets;
    let changes: Option<Vec<&Change>> = cells.iter().map(|cell| cell.change.as_ref()).collect();
    let change = match changes {
        Some(changes) => {
            let groups: Vec<Vec<(f64, f64)>> =
                changes.iter().map(|change| change.pairs.iter().map(|pair| (*pair, 1.0)).collect()).collect();
            let plain = changes.iter().map(|change| change.plain).sum::<f64>() / sets;
            let interval = grouped_interval(&groups, 0.95, DRAWS, 0)?;
            let (mean, low, high) = (interval.mean, interval.low, interval.high);
            Some(Change { mean, low, high, plain, pairs: Vec::new() })
        }
        None => None,
    };
    Ok(Some(Cell {
        change,
        mean: cells.iter().map(|cell| cell.mean).sum::<f64>() / sets,
        interval: interval.map(|interval| (interval.low, interval.high)),
        n: cells.iter().map(|cell| cell.n).sum(),
        doubt: doubt
            .filter(|_| cells.iter().all(|cell| cell.doubt.is_some()))
            .map(|doubt| doubt.widened(widened)),
        widened,
        ..Cell::default()
    }))
}

/// The values of one question and lane.
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

/// The reason why a table has no rows by question.
#[derive(Debug, thiserror::Error)]
pub enum PerQuestionError {
    /// No column has the name.
    #[error("--per-question: no measure `{measure}` here; expected one of {known}")]
    NoMeasure {
        /// The name that was given.
        measure: String,
        /// The names of the columns.
        known: String,
    },
    /// The suite has no values by question.
    #[error("eval {0} has no values by question")]
    NoValues(&'static str),
}

/// The rows of all questions and lanes.
pub struct PerQuestion<'a> {
    table: &'a Table,
    lines: Vec<Line<'a>>,
}

impl<'a> PerQuestion<'a> {
    /// Collects the rows. If a measure is named, its lowest values come first.
    ///
    /// # Errors
    /// The suite has no values by question, or no such measure.
    pub fn of(table: &'a Table, measure: &str) -> Result<Self, PerQuestionError> {
        // With several sets, the questions are in the tables that were averaged.
        let tables: Vec<&Table> = if table.set.is_some() {
            table.further.iter().filter(|own| own.suite == table.suite).collect()
        } else {
            vec![table]
        };
        let by = match measure {
            "" => None,
            measure => match table.columns.iter().position(|head| head.name.eq_ignore_ascii_case(measure)) {
                Some(column) => Some(column),
                None => {
                    let names: Vec<&str> = table.columns.iter().map(|head| head.name.as_str()).collect();
                    let (measure, known) = (measure.to_owned(), names.join(", "));
                    return Err(PerQuestionError::NoMeasure { measure, known });
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
                for (at, question) in table.question_ids.iter().enumerate() {
                    let failed = failed.get(question.as_str()).copied();
                    lines.push(Line { table, row, question, at, failed });
                }
            }
        }
        if lines.is_empty() {
            return Err(PerQuestionError::NoValues(table.suite));
        }
        if let Some(column) = by {
            // Rows without a value come last.
            let key = |line: &Line| line.value(column).unwrap_or(f64::INFINITY);
            lines.sort_by(|one, other| key(one).total_cmp(&key(other)));
        }
        Ok(PerQuestion { table, lines })
    }

    /// Writes one JSON object.
    pub fn json(&self) -> Value {
        json(self.table, &self.lines)
    }

    /// Writes TSV with a header.
    pub fn tsv(&self) -> String {
        let line = |row: &Vec<String>| {
            row.iter().map(|text| safe::field(text)).collect::<Vec<_>>().join("\t") + "\n"
        };
        texts(self.table, &self.lines).iter().map(line).collect()
    }

    /// Writes aligned text.
    pub fn text(&self) -> String {
        aligned(&texts(self.table, &self.lines))
    }
}

fn texts(table: &Table, lines: &[Line]) -> Vec<Vec<String>> {
    let mut heads: Vec<String> = table.set.iter().map(|_| "set".to_owned()).collect();
    heads.extend(["question", "lane"].map(String::from));
    heads.extend(table.columns.iter().map(|head| safe::line(&head.name)));
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

/// Aligns columns, with a dash in an empty cell.
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
            values.map(|(column, head)| (head.name.clone(), json!(line.value(column)))).collect();
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

    fn set(values: &[f64], failed: &str) -> Table {
        let mean = values.iter().sum::<f64>() / values.len() as f64;
        let cell = Cell { mean, interval: Some((0.0, 1.0)), n: values.len(), ..Cell::default() };
        let row = Row {
            lane: "bm25".into(),
            cells: vec![Some(cell), None],
            values: vec![values.iter().copied().map(Some).collect(), Vec::new()],
            failed: vec![(failed.into(), "no list".into())],
            ..Row::default()
        };
        Table {
            columns: vec!["Prec@5".into(), "only-1@5".into()],
            rows: vec![row],
            questions: values.len(),
            ..Table::default()
        }
    }

    #[test]
    fn every_set_counts_alike_whatever_its_size_and_failed_questions_keep_their_set() {
        let table =
            averaged(vec![("a".into(), set(&[1.0, 1.0, 1.0], "q1")), ("b".into(), set(&[0.0], "q1"))])
                .unwrap();
        let row = &table.rows[0];
        assert_eq!(
            row.cells[0].as_ref().map(|cell| (cell.mean, cell.n, cell.interval)),
            Some((0.5, 4, Some((0.5, 0.5))))
        );
        assert_eq!(row.cells[1], None);
        let failed: Vec<&str> = row.failed.iter().map(|(id, _)| id.as_str()).collect();
        assert_eq!(failed, ["a/q1", "b/q1"]);
        let below: Vec<_> = table.further.iter().map(|below| below.set.as_deref()).collect();
        assert_eq!((table.set.as_deref(), below), (Some("macro-average"), vec![Some("a"), Some("b")]));
        assert!(
            table.text().contains("macro-average: 4 questions") && table.text().contains("b: 1 question ·")
        );
    }

    #[test]
    fn the_difference_to_the_plain_lane_has_an_interval_and_a_share_of_the_plain_mean() {
        let values = |all: &[f64]| vec![all.iter().copied().map(Some).collect::<Values>()];
        // The second question has no value in the switched lane, so it does not count: .50 against (.20 + .60)/2 = .40.
        let mut switched = values(&[0.3, 0.9, 0.7]);
        switched[0][1] = None;
        let lanes = [values(&[0.2, 0.1, 0.6]), switched];
        let rows = cells(&lanes, &[None, Some(0)]).unwrap();
        let change = rows[1][0].as_ref().unwrap().change.as_ref().unwrap();
        assert!((change.mean - 0.1).abs() < 1e-12 && (change.plain - 0.4).abs() < 1e-12);
        assert!((change.percent().unwrap() - 25.0).abs() < 1e-9);
        // Both questions gain .10, so every draw does.
        assert!((change.low - 0.1).abs() < 1e-12 && (change.high - 0.1).abs() < 1e-12);
        assert!(rows[0][0].as_ref().unwrap().change.is_none(), "the plain lane is compared with nothing");
    }

    #[test]
    fn an_average_over_sets_keeps_the_difference_to_the_plain_lane() {
        let table = |plain: &[f64], own: &[f64]| {
            let values = |all: &[f64]| vec![all.iter().copied().map(Some).collect::<Values>()];
            let values = vec![values(plain), values(own)];
            let (names, judged) = (["a", "a+mmr"].map(String::from), vec![(0, 0); 2]);
            let rows = rows(names, values, &[None, Some(0)], vec![Vec::new(); 2], judged).unwrap();
            Table { columns: vec!["Prec@5".into()], rows, questions: own.len(), ..Table::default() }
        };
        let sets = [("x".into(), table(&[0.5, 0.5], &[0.7, 0.7])), ("y".into(), table(&[0.3], &[0.3]))];
        let average = averaged(sets.to_vec()).unwrap();
        let change = average.rows[1].cells[0].as_ref().unwrap().change.clone().unwrap();
        assert!((change.mean - 0.1).abs() < 1e-12 && (change.plain - 0.4).abs() < 1e-12, "{change:?}");
    }

    #[test]
    fn one_set_is_its_own_table() {
        assert_eq!(averaged(vec![("a".into(), set(&[1.0], "q"))]).unwrap(), set(&[1.0], "q"));
    }

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
            question_ids: ["q1", "q2", "q3"].map(String::from).to_vec(),
            rows: vec![
                row("bm25", [Some(0.4), Some(0.0), None]),
                row("minilm", [Some(0.2), Some(0.0), Some(1.0)]),
            ],
            ..Table::default()
        }
    }

    #[test]
    fn rows_by_question_and_lane_are_in_the_order_of_the_set_or_the_worst_first() {
        let tsv = PerQuestion::of(&table(), "").unwrap().tsv();
        assert_eq!(tsv.lines().nth(2), Some("q2\tbm25\t0.0000\tno server\t"));
        assert_eq!(tsv.lines().count(), 7);
        let sorted = PerQuestion::of(&table(), "prec@5").unwrap().json();
        let order: Vec<&str> =
            sorted["rows"].as_array().unwrap().iter().map(|row| row["question"].as_str().unwrap()).collect();
        assert_eq!(order, ["q2", "q2", "q1", "q1", "q3", "q3"]);
        assert_eq!(sorted["rows"][5]["measures"]["Prec@5"], Value::Null);
        assert!(PerQuestion::of(&table(), "").unwrap().text().contains("q3        bm25    –"));
    }

    #[test]
    fn an_unknown_measure_and_a_suite_without_values_are_refused() {
        let wrong = |table: &Table, measure| PerQuestion::of(table, measure).err().unwrap().to_string();
        assert!(wrong(&table(), "MRecall@5").contains("Prec@5"));
        let empty = Table { suite: "pir", ..Table::default() };
        assert!(wrong(&empty, "").contains("pir"));
    }
}
