//! PIR Table 3: asked by the root alone, which side do the gold passages at the top take?

use std::collections::{BTreeMap, BTreeSet};

use super::lanes;
use super::rank::Ranked;
use crate::measure::sides::{SideCounts, grouped_interval, side_counts};
use crate::measure::significance::DRAWS;
use crate::question::pir::Task;
use crate::report::table::{Cell, Row, Table};

/// The label of queries that ask for no side.
pub const NO_SIDE: &str = "general";

/// A root of a task: the query it was met in, and its gold passages with their sides.
#[derive(Default)]
struct Root {
    query: usize,
    gold: Vec<(usize, usize)>,
}

/// A table a task whose queries ask for two sides or more.
///
/// # Errors
/// An interval cannot be drawn.
pub fn tables(tasks: &[Task], ranked: &[Ranked], k: usize) -> anyhow::Result<Vec<Table>> {
    let mut tables = Vec::new();
    for (task, ranked) in tasks.iter().zip(ranked) {
        let named = task.rows.iter().map(|row| row.label.as_str());
        let sides: BTreeSet<&str> = named.filter(|label| !label.eq_ignore_ascii_case(NO_SIDE)).collect();
        if sides.len() > 1 {
            tables.push(table(task, ranked, &sides.into_iter().collect::<Vec<_>>(), k)?);
        }
    }
    Ok(tables)
}

fn table(task: &Task, ranked: &Ranked, sides: &[&str], k: usize) -> anyhow::Result<Table> {
    let mut roots: BTreeMap<&str, Root> = BTreeMap::new();
    for (query, row) in task.rows.iter().enumerate() {
        let root = roots.entry(&row.root).or_insert_with(|| Root { query, ..Root::default() });
        if let Some(side) = sides.iter().position(|side| *side == row.label) {
            root.gold.extend(row.gold.iter().map(|passage| (*passage, side)));
        }
    }
    let all = lanes();
    let names = [all.first(), all.last()].into_iter().flatten();
    let (mut rows, mut found) = (Vec::new(), Vec::new());
    for (place, lane) in names.enumerate() {
        let (mut counts, mut returned) = (Vec::new(), 0);
        for root in roots.values() {
            let list = &ranked.rows[root.query].root[place];
            let top = &list[..k.min(list.len())];
            returned += top.len();
            counts.push(side_counts(top, &root.gold, sides.len()));
        }
        let passages: usize = counts.iter().map(|counts| counts.passages).sum();
        let judged = (returned > 0).then(|| passages as f64 / returned as f64);
        let cells = (0..sides.len()).map(|side| cell(&counts, side)).collect::<anyhow::Result<_>>()?;
        rows.push(Row { lane: lane.clone(), cells, judged, ..Row::default() });
        found.push(format!("{passages} of {returned} ({lane})"));
    }
    let note = format!(
        "{}: shares among the passages in the top {k} of the root queries that are gold of a side, {}",
        task.name,
        found.join(", ")
    );
    Ok(Table {
        suite: "pir-bias",
        columns: sides.iter().map(|side| format!("{}/{side}@{k}", task.name)).collect(),
        rows,
        questions: roots.len(),
        k: Some(k),
        label_source: "query_labels".into(),
        notes: vec![note],
        ..Table::default()
    })
}

/// The share of one side over the roots that bring up gold of any.
fn cell(counts: &[SideCounts], side: usize) -> anyhow::Result<Option<Cell>> {
    let items = counts.iter().filter(|counts| counts.passages > 0);
    let items: Vec<_> = items.map(|counts| (counts.sides[side], counts.passages as f64)).collect();
    if items.is_empty() {
        return Ok(None);
    }
    let n = counts.iter().map(|counts| counts.passages).sum();
    let interval = grouped_interval(&[items], 0.95, DRAWS, 0)?;
    Ok(Some(Cell {
        mean: interval.mean,
        interval: Some((interval.low, interval.high)),
        n,
        ..Cell::default()
    }))
}
