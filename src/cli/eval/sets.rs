//! Several question sets: a table for each, and the macro-average over them, as BERDS averages over its corpora.

use std::path::Path;

use anyhow::bail;
use serde_json::{Value, json};

use super::super::args::{Common, Eval, Suite};
use crate::measure::seeded::hashed;
use crate::measure::sides::grouped_interval;
use crate::measure::significance::DRAWS;
use crate::measure::uncertainty::Spread;
use crate::report::table::{Cell, Row, Table};

/// The options of each set with the set's name: labels are given once for all, or once a set in the same order.
///
/// # Errors
/// There are several label files and not as many sets, two sets have one name, or the suite takes one set only.
pub fn each(common: &Common, args: &Eval) -> anyhow::Result<Vec<(String, Common)>> {
    let (sets, labels) = (&common.questions, &common.labels);
    if labels.len() > 1 && labels.len() != sets.len() {
        bail!(
            "{} question sets and {} label files: give --labels once for all sets, or once a set in the same order",
            sets.len(),
            labels.len()
        );
    }
    if sets.len() > 1
        && (matches!(args.suite, Suite::Trec | Suite::Pir | Suite::Bias) || args.write.is_some())
    {
        bail!(
            "several question sets are for eval berds, coverage, sycophancy and reader, without --write; name one with --questions"
        );
    }
    let mut named: Vec<(String, Common)> = Vec::new();
    for (i, set) in sets.iter().enumerate() {
        let name = name(set);
        if named.iter().any(|(known, _)| *known == name) {
            bail!(
                "two question sets are called `{name}`: rename a file or its folder, so that the tables can be told apart"
            );
        }
        let labels = labels.get(if labels.len() > 1 { i } else { 0 });
        let own = Common {
            questions: vec![set.clone()],
            labels: labels.cloned().into_iter().collect(),
            ..common.clone()
        };
        named.push((name, own));
    }
    if named.is_empty() {
        named.push((String::new(), common.clone()));
    }
    Ok(named)
}

/// What a set's replicates are drawn from: another number for every set, so that those of several sets are independent.
pub fn seed(common: &Common) -> u64 {
    hashed(&common.questions.first().map_or_else(String::new, |set| name(set)))
}

/// A set's name: its file's, with the folder's before it, as question files are often called alike.
fn name(path: &Path) -> String {
    let stem = path.file_stem().unwrap_or_default().to_string_lossy();
    match path.parent().and_then(Path::file_name) {
        Some(folder) => format!("{}/{stem}", folder.to_string_lossy()),
        None => stem.into_owned(),
    }
}

/// The average of the tables, with them below; one table alone is itself.
///
/// # Errors
/// A value is not a number.
pub fn averaged(mut tables: Vec<(String, Table)>) -> anyhow::Result<Table> {
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

/// Tables of the same lanes and columns, set by set.
fn average(sets: &[&Table]) -> anyhow::Result<Table> {
    let Some(first) = sets.first() else { return Ok(Table::default()) };
    let mut rows = Vec::new();
    for (at, row) in first.rows.iter().enumerate() {
        let same: Vec<&Row> = sets.iter().filter_map(|set| set.rows.get(at)).collect();
        let cells = (0..first.columns.len()).map(|column| cell(&same, column));
        let failed = sets.iter().zip(&same).flat_map(|(set, row)| {
            let name = set.set.clone().unwrap_or_default();
            row.failed.iter().map(move |(id, why)| (format!("{name}/{id}"), why.clone()))
        });
        let judged = same.iter().map(|row| row.judged).sum::<Option<f64>>();
        rows.push(Row {
            lane: row.lane.clone(),
            cells: cells.collect::<anyhow::Result<_>>()?,
            failed: failed.collect(),
            judged: judged.map(|sum| sum / same.len() as f64),
            ..Row::default()
        });
    }
    let further = (0..first.further.len())
        .map(|at| average(&sets.iter().filter_map(|set| set.further.get(at)).collect::<Vec<_>>()));
    let mut labels: Vec<&str> = sets.iter().map(|set| set.label_source.as_str()).collect();
    labels.dedup();
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
        notes: vec![format!(
            "mean of the means of {}; – where a set has none; the intervals draw the questions of every set anew",
            names.join(", ")
        )],
        provenance: json!({"sets": sets.iter().map(|set| set.provenance.clone()).collect::<Vec<Value>>()}),
        further: further.collect::<anyhow::Result<_>>()?,
        ..Table::default()
    })
}

/// One lane's mean over the sets' means; none where a set has none.
fn cell(rows: &[&Row], column: usize) -> anyhow::Result<Option<Cell>> {
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
    Ok(Some(Cell {
        mean: cells.iter().map(|cell| cell.mean).sum::<f64>() / sets,
        interval: interval.map(|interval| (interval.low, interval.high)),
        n: cells.iter().map(|cell| cell.n).sum(),
        doubt: doubt.filter(|_| cells.iter().all(|cell| cell.doubt.is_some())),
        ..Cell::default()
    }))
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
            table.text().contains("macro-average: 4 questions") && table.text().contains("b: 1 questions")
        );
    }

    #[test]
    fn one_set_is_its_own_table() {
        assert_eq!(averaged(vec![("a".into(), set(&[1.0], "q"))]).unwrap(), set(&[1.0], "q"));
    }
}
