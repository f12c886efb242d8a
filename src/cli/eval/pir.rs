//! `eval pir`: Tables 2, 4 and 8 of Zhao et al. (pRecall@k of BM25 and of the built-in encoder under every projection), and
//! Table 3 (the sides that root queries retrieve). It needs no corpus: every task holds its passages.

use std::collections::{BTreeMap, BTreeSet};

use anyhow::bail;
use serde_json::json;

use crate::cli::eval::args::{Eval, RESAMPLING_SEED, check_thresholds};
use crate::cli::job::{Meter, stop_on_signal};
use crate::cli::options::Common;
use crate::engine::pir::{self, Ranked};
use crate::engine::pir_hub;
use crate::engine::recipe::{Base, Recipe};
use crate::measure::pir::{QueryRow, Reading, by_root};
use crate::measure::pir::{SideCounts, grouped_interval, side_counts};
use crate::measure::significance::DRAWS;
use crate::project::Variant;
use crate::question::pir::{NO_SIDE, Row as QueryOf, Task, read};
use crate::report::means::{Values, cells};
use crate::report::table::{Cell, Head, Row, Table};
use crate::retrieve::bm25::Bm25;

/// Returns the tables, or `None` if the user interrupted.
///
/// # Errors
/// A task file is not valid, or a model or the disk failed.
pub fn table(common: &Common, args: &Eval) -> anyhow::Result<Option<Table>> {
    let Some(path) = common.questions.first() else {
        bail!("eval pir needs its tasks: --questions FILE, such as the authors' demo_pir_dataset.json");
    };
    if !common.lane.is_empty() || !common.lanes.is_empty() || !args.runs.is_empty() {
        bail!("eval pir ranks by the built-in encoder and BM25 and takes no --lane, --lanes or --run");
    }
    check_thresholds(args, lanes())?;
    let mut tasks = if path.is_dir() { vec![pir_hub::read(path)?] } else { read(path)? };
    let left_out = tasks.iter().flat_map(|task| &task.rows).filter(|row| row.gold.is_empty()).count();
    for task in &mut tasks {
        task.rows.retain(|row| !row.gold.is_empty());
    }
    if tasks.iter().all(|task| task.rows.is_empty()) {
        bail!("{}: no query has gold passages in `key_ref`, so nothing can be measured", path.display());
    }
    let (meter, stop) = (Meter::default(), stop_on_signal()?);
    let depth = usize::from(common.k.max(args.bias_k));
    let data = common.opening().data_dir;
    let ranking = pir::rank_all(&tasks, depth, &data, &|progress| meter.show(progress), &stop);
    let (encoder, ranked) = match ranking {
        Err(_) if stop.is_set() => return Ok(None),
        ranking => ranking?,
    };
    let reading = if args.pir_notebook { Reading::Notebook } else { Reading::Paper };
    let k = usize::from(common.k);
    let scored: Vec<Vec<Vec<f64>>> = (0..lanes().len())
        .map(|lane| {
            let tasks = tasks.iter().zip(&ranked);
            tasks.map(|(task, ranked)| root_scores(task, ranked, lane, k, reading)).collect()
        })
        .collect();
    let rows = lanes().into_iter().zip(lane_cells(&scored)?).map(|(lane, cells)| Row {
        lane,
        cells,
        ..Row::default()
    });
    let names = tasks.iter().map(|task| task.name.clone());
    let mut notes = vec![measure_note(k, &tasks, reading)];
    notes.extend(
        (left_out > 0).then(|| format!("{left_out} queries name no gold passages and are in no mean")),
    );
    notes.extend(projection_notes(&tasks, &ranked));
    let corpora = tasks.iter().zip(&ranked).map(|(task, ranked)| {
        json!({"name": task.name, "passages": task.corpus.len(), "fingerprint": ranked.fingerprint})
    });
    Ok(Some(Table {
        suite: "pir",
        columns: names.map(Head::from).chain([Head::plotted("avg")]).collect(),
        rows: rows.collect(),
        questions: scored[0].iter().map(Vec::len).sum(),
        k: Some(k),
        label_source: "key_ref".into(),
        notes,
        provenance: json!({
            "version": env!("CARGO_PKG_VERSION"),
            "models": {"encoder": encoder},
            "corpora": corpora.collect::<Vec<_>>(),
            "reading": if args.pir_notebook { "notebook" } else { "paper" },
            "seed": RESAMPLING_SEED,
        }),
        further: side_tables(&tasks, &ranked, usize::from(args.bias_k))?,
        ..Table::default()
    }))
}

/// The names of the rows: the encoder plain and projected, then BM25, whose name includes its constants.
fn lanes() -> Vec<String> {
    let plain = |base| Recipe::from(base).to_string();
    let projected = |variant| match variant {
        Variant::None => plain(Base::MiniLm),
        variant => format!("{}+{variant}", plain(Base::MiniLm)),
    };
    let bm25 = plain(Base::Bm25(Bm25::default()));
    Variant::ALL.into_iter().map(projected).chain([bm25]).collect()
}

/// The score of every root of a task in one lane.
fn root_scores(task: &Task, ranked: &Ranked, lane: usize, k: usize, reading: Reading) -> Vec<f64> {
    let ids: Vec<String> = (0..task.corpus.len()).map(|i| i.to_string()).collect();
    let named = |passages: &[usize]| passages.iter().map(|i| ids[*i].as_str()).collect::<Vec<_>>();
    let lists: Vec<_> = ranked.rows.iter().map(|row| named(&row.lists[lane])).collect();
    let gold: Vec<_> = task.rows.iter().map(|row| named(&row.gold)).collect();
    let rows = task.rows.iter().zip(&lists).zip(&gold);
    let rows: Vec<_> =
        rows.map(|((row, ranking), gold)| QueryRow { root: &row.root, ranking, gold }).collect();
    by_root(&rows, k, reading)
}

/// The cells of every lane: one column per task, then their mean.
fn lane_cells(scored: &[Vec<Vec<f64>>]) -> anyhow::Result<Vec<Vec<Option<Cell>>>> {
    let measured = |tasks: &[Vec<f64>]| tasks.iter().filter(|roots| !roots.is_empty()).count();
    let columns = |tasks: &Vec<Vec<f64>>| {
        let mut columns: Vec<Values> =
            tasks.iter().map(|roots| roots.iter().copied().map(Some).collect()).collect();
        let all = tasks.iter().map(Vec::len).sum::<usize>() as f64;
        // Weighted so that the mean over all roots is the mean over tasks, because the paired test compares means over roots.
        let weighted = tasks.iter().flat_map(|roots| {
            let weight = all / (measured(tasks) * roots.len().max(1)) as f64;
            roots.iter().map(move |value| Some(value * weight))
        });
        columns.push(weighted.collect());
        columns
    };
    let values: Vec<Vec<Values>> = scored.iter().map(columns).collect();
    let projected = |lane: usize| (1..Variant::ALL.len()).contains(&lane).then_some(0);
    let mut rows = cells(&values, &(0..scored.len()).map(projected).collect::<Vec<_>>())?;
    for (row, tasks) in rows.iter_mut().zip(scored) {
        let groups: Vec<Vec<(f64, f64)>> = tasks
            .iter()
            .filter(|roots| !roots.is_empty())
            .map(|roots| roots.iter().map(|value| (*value, 1.0)).collect())
            .collect();
        let interval = grouped_interval(&groups, 0.95, DRAWS, RESAMPLING_SEED)?;
        if let Some(Some(average)) = row.last_mut() {
            (average.mean, average.interval) = (interval.mean, Some((interval.low, interval.high)));
        }
    }
    Ok(rows)
}

fn measure_note(k: usize, tasks: &[Task], reading: Reading) -> String {
    let rows: usize = tasks.iter().map(|task| task.rows.len()).sum();
    let whose = match reading {
        Reading::Paper => "",
        Reading::Notebook => {
            ", as the authors' notebook computes it: a root with one query scores 0, the first query of a root counts any gold \
             passage of the root"
        }
    };
    format!("pRecall@{k} by task and over tasks; a question is a root, {rows} queries in all{whose}")
}

/// Notes on queries whose projection could not use a perspective as given.
fn projection_notes(tasks: &[Task], ranked: &[Ranked]) -> Vec<String> {
    let own = |row: &&QueryOf| row.perspective.as_ref().is_none_or(|text| *text == row.query);
    let own = tasks.iter().flat_map(|task| &task.rows).filter(own).count();
    let mut notes = Vec::new();
    if own > 0 {
        notes.push(format!(
            "{own} queries have no perspective beside themselves: cast and pap take the query without its root for it"
        ));
    }
    let mut plain: BTreeMap<(usize, String), usize> = BTreeMap::new();
    for row in ranked.iter().flat_map(|ranked| &ranked.rows) {
        for (variant, reason) in &row.degenerate {
            *plain.entry((*variant, reason.to_string())).or_default() += 1;
        }
    }
    let lanes = lanes();
    notes.extend(plain.into_iter().map(|((variant, reason), count)| {
        format!("{}: {count} queries rank as {} ({reason})", lanes[variant], lanes[0])
    }));
    notes
}

/// A root of a task: its first query, and its gold passages with their sides.
#[derive(Default)]
struct Root {
    query: usize,
    gold: Vec<(usize, usize)>,
}

/// One table per task whose queries ask for at least two sides.
///
/// # Errors
/// An interval cannot be computed.
fn side_tables(tasks: &[Task], ranked: &[Ranked], k: usize) -> anyhow::Result<Vec<Table>> {
    let mut tables = Vec::new();
    for (task, ranked) in tasks.iter().zip(ranked) {
        let named = task.rows.iter().map(|row| row.label.as_str());
        let sides: BTreeSet<&str> = named.filter(|label| !label.eq_ignore_ascii_case(NO_SIDE)).collect();
        if sides.len() > 1 {
            tables.push(side_table(task, ranked, &sides.into_iter().collect::<Vec<_>>(), k)?);
        }
    }
    Ok(tables)
}

fn side_table(task: &Task, ranked: &Ranked, sides: &[&str], k: usize) -> anyhow::Result<Table> {
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
        let cells = (0..sides.len()).map(|side| side_share(&counts, side)).collect::<anyhow::Result<_>>()?;
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
        columns: sides.iter().map(|side| Head::from(format!("{}/{side}@{k}", task.name))).collect(),
        rows,
        questions: roots.len(),
        k: Some(k),
        label_source: "query_labels".into(),
        notes: vec![note],
        ..Table::default()
    })
}

/// The share of one side, over the roots that retrieve gold passages of any side.
fn side_share(counts: &[SideCounts], side: usize) -> anyhow::Result<Option<Cell>> {
    let items = counts.iter().filter(|counts| counts.passages > 0);
    let items: Vec<_> = items.map(|counts| (counts.sides[side], counts.passages as f64)).collect();
    if items.is_empty() {
        return Ok(None);
    }
    let n = counts.iter().map(|counts| counts.passages).sum();
    let interval = grouped_interval(&[items], 0.95, DRAWS, RESAMPLING_SEED)?;
    Ok(Some(Cell {
        mean: interval.mean,
        interval: Some((interval.low, interval.high)),
        n,
        ..Cell::default()
    }))
}
