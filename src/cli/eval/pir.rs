//! `eval pir`: pRecall@k by task (Tables 2, 4 and 8 of Zhao et al.), the sides that root queries retrieve (Table 3), and what the
//! perspective in the query does (Figures 2 and 4). Without lanes, the built-in encoder under every projection and BM25 rank the tasks.
//!
//! Every task holds its passages; a labelled question set over a corpus is a task too, asked once a statement.

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;

use anyhow::bail;
use serde_json::{Value, json};

use crate::cli::eval::args::{Eval, RESAMPLING_SEED, check_thresholds};
use crate::cli::eval::bias::countries;
use crate::cli::eval::lanes::Lanes;
use crate::cli::job::{Meter, stop_on_signal};
use crate::cli::options::Common;
use crate::engine::pir::{self, Positions, RankedTask, rank_by_lanes, without_projection};
use crate::engine::pir_hub;
use crate::engine::recipe::{Base, Recipe};
use crate::engine::{Ranked as Hit, Setup};
use crate::measure::pir::{Reading, SideCounts, grouped_interval, side_counts};
use crate::measure::significance::DRAWS;
use crate::project::Variant;
use crate::question::pir::{NO_SIDE, Row as QueryOf, Task, read};
use crate::report::lists::{make_folder, put};
use crate::report::means::{Values, cells};
use crate::report::table::{Cell, Head, Row, Table};
use crate::retrieve::bm25::Bm25;

/// The lanes, and the tasks that they have ranked.
struct Study {
    names: Vec<String>,
    /// For each lane with a projection, its plain form.
    plain: Vec<Option<usize>>,
    tasks: Vec<RankedTask>,
    /// The encoders behind the lists.
    models: Value,
    /// Where the gold passages come from.
    labels: &'static str,
}

/// Returns the tables, or `None` if the user interrupted.
///
/// # Errors
/// A task file is not valid, or a model or the disk failed.
pub fn table(common: &Common, args: &Eval) -> anyhow::Result<Option<Table>> {
    if common.questions.is_empty() {
        bail!("eval pir needs its tasks: --questions FILE, such as the authors' demo_pir_dataset.json");
    }
    if let Some(other) = args.attribute.as_deref().filter(|name| *name != "country") {
        bail!("--attribute {other}: eval pir reads `country` from its queries, and no other attribute");
    }
    let recipes = args.switches.apply(common.named_recipes())?;
    if !args.runs.is_empty() || recipes.iter().any(|recipe| recipe.run().is_some()) {
        bail!("eval pir asks root queries and statements, which no finished run has; leave run:FILE out");
    }
    let (meter, stop) = (Meter::default(), stop_on_signal()?);
    let on_progress = |progress| meter.show(progress);
    let depth = usize::from(common.k.max(args.bias_k));
    let labels = if common.labels.is_empty() { "key_ref" } else { "--labels" };
    let recipes = if recipes.is_empty() && labels == "--labels" { common.recipes() } else { recipes };
    let (names, plain) = lanes(&recipes);
    check_thresholds(args, names.iter().cloned())?;
    let (models, tasks, left_out) = if labels == "--labels" {
        let own = Common { lane: recipes.clone(), lanes: Vec::new(), ..common.clone() };
        let opened = Lanes::open(&own, args)?;
        let Some(gold) = &opened.setup.labels else { bail!("eval pir needs --labels FILE") };
        let (mut tasks, left_out) = with_gold(vec![pir_hub::labelled(&opened.setup, gold)], common)?;
        let (task, at) = (tasks.remove(0), |hit: &Hit| hit.at.0 as usize);
        let ranked = rank_by_lanes(&opened.setup, &recipes, task, (depth, &at), &on_progress, &stop);
        let Some(ranked) = ranked else { return Ok(None) };
        (encoders(&opened.setup, &recipes)?, vec![ranked], left_out)
    } else {
        let (tasks, left_out) = with_gold(read_tasks(&common.questions)?, common)?;
        if recipes.is_empty() {
            let data = common.opening().data_dir;
            match pir::rank_every_projection(tasks, depth, &data, &on_progress, &stop) {
                Err(_) if stop.is_set() => return Ok(None),
                ranked => {
                    let (encoder, ranked) = ranked?;
                    (json!({"encoder": encoder}), ranked, left_out)
                }
            }
        } else {
            let (mut models, mut all) = (Value::Null, Vec::new());
            for task in tasks {
                let setup = pir::setup_of(&task, &common.opening(), &on_progress, &stop)?;
                setup.embed_for(&recipes, &on_progress, &stop)?;
                // The ids are numbers, and the importer may have left passages out.
                let at = |hit: &Hit| hit.passage.id.parse().unwrap_or(usize::MAX);
                let ranked = rank_by_lanes(&setup, &recipes, task, (depth, &at), &on_progress, &stop);
                let Some(ranked) = ranked else { return Ok(None) };
                all.push(ranked);
                models = encoders(&setup, &recipes)?;
            }
            (models, all, left_out)
        }
    };
    let study = Study { names, plain, tasks, models, labels };
    if let Some(folder) = &args.write {
        make_folder(folder)?;
        put(folder, "queries.jsonl", study.queries(usize::from(common.k)).as_bytes())?;
    }
    study.table(common, args, left_out).map(Some)
}

/// The tasks of files, and of folders as on the hub.
pub fn read_tasks(paths: &[PathBuf]) -> anyhow::Result<Vec<Task>> {
    let mut tasks: Vec<Task> = Vec::new();
    for path in paths {
        tasks.extend(if path.is_dir() { vec![pir_hub::read(path)?] } else { read(path)? });
    }
    let mut names = BTreeSet::new();
    if let Some(task) = tasks.iter().find(|task| !names.insert(&task.name)) {
        bail!("two tasks are called `{}`: rename a folder or a task", task.name);
    }
    Ok(tasks)
}

/// The tasks without the queries that name no gold passages, and the number of these.
fn with_gold(mut tasks: Vec<Task>, common: &Common) -> anyhow::Result<(Vec<Task>, usize)> {
    let left_out = tasks.iter().flat_map(|task| &task.rows).filter(|row| row.gold.is_empty()).count();
    for task in &mut tasks {
        task.rows.retain(|row| !row.gold.is_empty());
    }
    if tasks.iter().all(|task| task.rows.is_empty()) {
        let named: Vec<String> = common.questions.iter().map(|path| path.display().to_string()).collect();
        bail!("{}: no query has gold passages in `key_ref`, so nothing can be measured", named.join(", "));
    }
    Ok((tasks, left_out))
}

/// The names of the rows and their plain forms. Without lanes: the encoder plain and projected, then BM25, whose name includes its
/// constants.
fn lanes(recipes: &[Recipe]) -> (Vec<String>, Vec<Option<usize>>) {
    let named = |recipe: &Recipe| match &recipe.switches.project {
        None => recipe.to_string(),
        // A query has one perspective, so the number behind the @ says nothing.
        Some(project) => format!("{}+{}", without_projection(recipe), project.variant),
    };
    if !recipes.is_empty() {
        let plain = |recipe: &Recipe| {
            let plain = recipe.plain();
            recipes.iter().position(|other| *other == plain).filter(|_| *recipe != plain)
        };
        return (recipes.iter().map(named).collect(), recipes.iter().map(plain).collect());
    }
    let plain = |base| Recipe::from(base).to_string();
    let projected = |variant| match variant {
        Variant::None => plain(Base::MiniLm),
        variant => format!("{}+{variant}", plain(Base::MiniLm)),
    };
    let bm25 = plain(Base::Bm25(Bm25::default()));
    let names: Vec<String> = Variant::ALL.into_iter().map(projected).chain([bm25]).collect();
    let plain = (0..names.len()).map(|lane| (1..Variant::ALL.len()).contains(&lane).then_some(0));
    let plain = plain.collect();
    (names, plain)
}

/// The keys of the encoders that these lanes use.
fn encoders(setup: &Setup, recipes: &[Recipe]) -> anyhow::Result<Value> {
    let mut keys = BTreeSet::new();
    for recipe in recipes.iter().filter(|recipe| recipe.base.encodes_query()) {
        keys.insert(setup.encoder(recipe.model())?.key().to_owned());
    }
    Ok(json!({"encoders": keys}))
}

impl Study {
    fn table(&self, common: &Common, args: &Eval, left_out: usize) -> anyhow::Result<Table> {
        let reading = if args.pir_notebook { Reading::Notebook } else { Reading::Paper };
        let k = usize::from(common.k);
        let scored: Vec<Vec<Vec<f64>>> = (0..self.names.len())
            .map(|lane| {
                self.tasks
                    .iter()
                    .map(|ranked| ranked.by_root(&ranked.lanes.lists[lane], k, reading))
                    .collect()
            })
            .collect();
        let every =
            self.tasks.iter().flat_map(|ranked| (0..ranked.task.rows.len()).map(move |row| (ranked, row)));
        let every: Vec<(&RankedTask, usize)> = every.collect();
        let rows = self.names.iter().zip(lane_cells(&scored, &self.plain)?).enumerate();
        let rows = rows.map(|(lane, (name, cells))| {
            let success = |task: &RankedTask| {
                let one = |(own, row): &(&RankedTask, usize)| {
                    std::ptr::eq(*own, task)
                        .then(|| f64::from(u8::from(own.finds(&own.lanes.lists[lane], *row, k))))
                };
                every.iter().map(one).collect::<Values>()
            };
            let mut values: Vec<Values> = self.tasks.iter().map(success).collect();
            values.push(
                every
                    .iter()
                    .map(|(own, row)| Some(f64::from(u8::from(own.finds(&own.lanes.lists[lane], *row, k)))))
                    .collect(),
            );
            let failed = self.tasks.iter().flat_map(|ranked| ranked.lanes.failed[lane].clone()).collect();
            Row { lane: name.clone(), cells, values, failed, ..Row::default() }
        });
        let names = self.tasks.iter().map(|ranked| ranked.task.name.clone());
        let mut notes = vec![self.measure_note(k, reading)];
        notes.extend(
            (left_out > 0).then(|| format!("{left_out} queries name no gold passages and are in no mean")),
        );
        notes.extend(self.projection_notes());
        let corpora = self.tasks.iter().map(|ranked| {
            json!({"name": ranked.task.name, "passages": ranked.passages.0, "fingerprint": ranked.fingerprint})
        });
        let corpora: Vec<Value> = corpora.collect();
        let mut further = Vec::new();
        for ranked in &self.tasks {
            further.extend(self.side_table(ranked, usize::from(args.bias_k))?);
        }
        for ranked in &self.tasks {
            further.push(self.perspective_table(ranked, k)?);
        }
        if args.attribute.is_some() {
            for ranked in &self.tasks {
                further.extend(countries(&self.names, ranked, k)?);
            }
        }
        further.push(self.cards());
        Ok(Table {
            suite: "pir",
            columns: names.map(Head::from).chain([Head::plotted("avg")]).collect(),
            rows: rows.collect(),
            questions: scored.first().map_or(0, |tasks| tasks.iter().map(Vec::len).sum()),
            question_ids: every.iter().map(|(ranked, row)| ranked.query_name(*row)).collect(),
            k: Some(k),
            label_source: self.labels.into(),
            notes,
            provenance: json!({
                "version": env!("CARGO_PKG_VERSION"),
                "models": self.models,
                "corpora": corpora,
                "reading": if args.pir_notebook { "notebook" } else { "paper" },
                "seed": RESAMPLING_SEED,
            }),
            further,
            ..Table::default()
        })
    }

    fn measure_note(&self, k: usize, reading: Reading) -> String {
        let rows: usize = self.tasks.iter().map(|ranked| ranked.task.rows.len()).sum();
        let whose = match reading {
            Reading::Paper => "",
            Reading::Notebook => {
                ", as the authors' notebook computes it: a root with one query scores 0, the first query of a root counts any gold \
                 passage of the root"
            }
        };
        let asked = if self.labels == "--labels" { "; every question is asked once a statement" } else { "" };
        format!(
            "pRecall@{k} by task and over tasks; a question is a root, {rows} queries in all{whose}{asked}"
        )
    }

    /// Notes on queries whose projection could not use a perspective as given.
    fn projection_notes(&self) -> Vec<String> {
        let own = |row: &&QueryOf| row.perspective.as_ref().is_none_or(|text| *text == row.query);
        let own = self.tasks.iter().flat_map(|ranked| &ranked.task.rows).filter(own).count();
        let mut notes = Vec::new();
        if own > 0 && self.plain.iter().any(Option::is_some) {
            notes.push(format!(
                "{own} queries have no perspective beside themselves: cast and pap take the query without its root for it"
            ));
        }
        let mut plain: BTreeMap<(usize, &str), usize> = BTreeMap::new();
        for ((lane, reason), count) in self.tasks.iter().flat_map(|ranked| &ranked.lanes.degenerate) {
            *plain.entry((*lane, reason)).or_default() += count;
        }
        notes.extend(plain.into_iter().map(|((lane, reason), count)| {
            let plain = self.plain[lane].map_or("its plain form", |plain| &self.names[plain]);
            format!("{}: {count} queries rank as {plain} ({reason})", self.names[lane])
        }));
        notes
    }

    /// The sides that the root queries of a task retrieve; `None` unless its queries ask for at least two.
    fn side_table(&self, ranked: &RankedTask, k: usize) -> anyhow::Result<Option<Table>> {
        let task = &ranked.task;
        let sides: Vec<&str> =
            ranked.labels().into_iter().filter(|label| !label.eq_ignore_ascii_case(NO_SIDE)).collect();
        if sides.len() < 2 {
            return Ok(None);
        }
        let mut roots: BTreeMap<&str, Root> = BTreeMap::new();
        for (query, row) in task.rows.iter().enumerate() {
            let root = roots.entry(&row.root).or_insert_with(|| Root { query, ..Root::default() });
            if let Some(side) = sides.iter().position(|side| *side == row.label) {
                root.gold.extend(row.gold.iter().map(|passage| (*passage, side)));
            }
        }
        let (mut rows, mut found) = (Vec::new(), Vec::new());
        for (lane, lists) in self.names.iter().zip(&ranked.lanes.roots) {
            let Some(lists) = lists else { continue };
            let (mut counts, mut returned) = (Vec::new(), 0);
            for root in roots.values() {
                let list = &lists[root.query];
                let top = &list[..k.min(list.len())];
                returned += top.len();
                counts.push(side_counts(top, &root.gold, sides.len()));
            }
            let passages: usize = counts.iter().map(|counts| counts.passages).sum();
            let judged = (returned > 0).then(|| passages as f64 / returned as f64);
            let cells =
                (0..sides.len()).map(|side| side_share(&counts, side)).collect::<anyhow::Result<_>>()?;
            rows.push(Row { lane: lane.clone(), cells, judged, ..Row::default() });
            found.push(format!("{passages} of {returned} ({lane})"));
        }
        let note = format!(
            "{}: shares among the passages in the top {k} of the root queries that are gold of a side, {}",
            task.name,
            found.join(", ")
        );
        Ok(Some(Table {
            suite: "pir-bias",
            columns: sides.iter().map(|side| Head::from(format!("{}/{side}@{k}", task.name))).collect(),
            rows,
            questions: roots.len(),
            k: Some(k),
            label_source: "query_labels".into(),
            notes: vec![note],
            ..Table::default()
        }))
    }

    /// pRecall of the full and of the root queries, and the share of the queries of every label that find a gold passage.
    fn perspective_table(&self, ranked: &RankedTask, k: usize) -> anyhow::Result<Table> {
        let labels = ranked.labels();
        let values = |lists: &[Positions]| {
            let of = |label: Option<&str>| {
                let one = |(row, query): (usize, &QueryOf)| {
                    let counts = label.is_none_or(|label| query.label == label);
                    counts.then(|| f64::from(u8::from(ranked.finds(lists, row, k))))
                };
                ranked.task.rows.iter().enumerate().map(one).collect::<Values>()
            };
            let by_root = ranked.by_root(lists, k, Reading::Paper).into_iter().map(Some).collect();
            std::iter::once(by_root)
                .chain(labels.iter().map(|label| of(Some(label))))
                .collect::<Vec<Values>>()
        };
        let (mut names, mut all) = (Vec::new(), Vec::new());
        for (lane, name) in self.names.iter().enumerate() {
            names.push(name.clone());
            all.push(values(&ranked.lanes.lists[lane]));
            if let Some(lists) = &ranked.lanes.roots[lane] {
                names.push(format!("{name}, root alone"));
                all.push(values(lists));
            }
        }
        let cells = cells(&all, &vec![None; names.len()])?;
        let rows = names.into_iter().zip(cells).map(|(lane, cells)| Row { lane, cells, ..Row::default() });
        let counts = labels.iter().map(|label| {
            format!("{label} {}", ranked.task.rows.iter().filter(|row| row.label == **label).count())
        });
        let note = format!(
            "{}: pRecall@{k}, and by label the share of queries with a gold passage in the top {k}, full and with the root query alone; queries: {}",
            ranked.task.name,
            counts.collect::<Vec<_>>().join(", ")
        );
        let head = |what: &str| Head::from(format!("{}/{what}@{k}", ranked.task.name));
        Ok(Table {
            suite: "pir-perspective",
            columns: std::iter::once("pRecall").chain(labels.iter().copied()).map(head).collect(),
            rows: rows.collect(),
            questions: ranked.roots().len(),
            k: Some(k),
            label_source: "query_labels".into(),
            notes: vec![note],
            ..Table::default()
        })
    }

    /// The sizes of every task.
    fn cards(&self) -> Table {
        let count =
            |value: usize| Some(Cell { mean: value as f64, n: value, count: true, ..Cell::default() });
        let row = |ranked: &RankedTask| {
            let rows = &ranked.task.rows;
            let mean = |sum: usize, of: usize| {
                (of > 0).then(|| Cell { mean: sum as f64 / of as f64, n: of, ..Cell::default() })
            };
            let (passages, own) = ranked.passages;
            let asked = rows.iter().map(|row| row.query.split_whitespace().count()).sum();
            let cells = vec![
                count(rows.len()),
                mean(asked, rows.len()),
                count(ranked.roots().len()),
                count(ranked.labels().len()),
                count(passages),
                own.and_then(|own| mean(own, passages)),
            ];
            Row { lane: ranked.task.name.clone(), cells, ..Row::default() }
        };
        let heads = ["queries", "words a query", "roots", "labels", "passages", "words a passage"];
        Table {
            suite: "pir-tasks",
            columns: heads.map(Head::from).to_vec(),
            rows: self.tasks.iter().map(row).collect(),
            questions: self.tasks.iter().map(|ranked| ranked.task.rows.len()).sum(),
            label_source: self.labels.into(),
            notes: vec!["the tasks as they were measured, without queries that name no gold passages".into()],
            ..Table::default()
        }
    }

    /// Every query with its list in every lane, for `--write`.
    fn queries(&self, k: usize) -> String {
        let mut out = String::new();
        for ranked in &self.tasks {
            for (at, row) in ranked.task.rows.iter().enumerate() {
                for (lane, name) in self.names.iter().enumerate() {
                    let list = &ranked.lanes.lists[lane][at];
                    let line = json!({
                        "task": ranked.task.name, "query": row.query, "root": row.root,
                        "perspective": row.perspective, "label": row.label, "lane": name, "gold": row.gold,
                        "top": &list[..k.min(list.len())], "success": ranked.finds(&ranked.lanes.lists[lane], at, k),
                    });
                    out += &format!("{line}\n");
                }
            }
        }
        out
    }
}

/// The cells of every lane: one column per task, then their mean.
fn lane_cells(scored: &[Vec<Vec<f64>>], plain: &[Option<usize>]) -> anyhow::Result<Vec<Vec<Option<Cell>>>> {
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
    let mut rows = cells(&values, plain)?;
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

/// A root of a task: its first query, and its gold passages with their sides.
#[derive(Default)]
struct Root {
    query: usize,
    gold: Vec<(usize, usize)>,
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
