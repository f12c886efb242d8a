//! `parallax eval trec`: graded relevance of lanes or finished runs, as trec_eval measures it.

use std::collections::BTreeMap;
use std::io::{BufRead, Cursor, Read};
use std::path::Path;

use anyhow::{Context, bail};
use serde_json::json;

use super::super::args::{Common, Eval, Ties};
use super::lanes::Lanes;
use super::{Values, cells};
use crate::input;
use crate::measure::Measure;
use crate::measure::graded::GradedRanking;
use crate::measure::score::{Evidence, score};
use crate::measure::trec::{
    Qrels, RunOrder, read_beir_qrels, read_jsonl_qrels, read_qrels, read_rank_llm, read_run,
};
use crate::pipeline::recipe::Switch;
use crate::pipeline::{Asked, LaneError, Lists, Plan, rank};
use crate::question::Question;
use crate::report::table::{Row, Table};
use crate::work::on_all;

/// One lane's ranked ids by question.
type Rankings = BTreeMap<String, Vec<String>>;

/// The table.
///
/// # Errors
/// A file is not right, or a measure is unknown.
pub fn table(common: &Common, args: &Eval) -> anyhow::Result<Option<Table>> {
    let names: Vec<&str> = match args.measures.as_slice() {
        [] => vec!["nDCG@10", "R@100"],
        names => names.iter().map(String::as_str).collect(),
    };
    let measures = names.iter().map(|name| name.parse::<Measure>()).collect::<Result<Vec<_>, _>>()?;
    let Some(qrels) = &args.qrels else { bail!("eval trec needs judgements: --qrels FILE") };
    let qrels = qrels_of(qrels)?;
    let mut lanes: Vec<Lane> = Vec::new();
    for path in &args.runs {
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        lanes.push((format!("run:{name}"), read(path, args.ties)?, Vec::new()));
    }
    if args.runs.is_empty() || !common.lane.is_empty() || !common.lanes.is_empty() {
        let Some(ranked) = ranked(common, args, &qrels, &measures)? else { return Ok(None) };
        lanes.extend(ranked);
    }
    let mut values = Vec::new();
    for (_, rankings, _) in &lanes {
        values.push(measured(rankings, &qrels, &measures)?);
    }
    let cells = cells(&values, &vec![None; lanes.len()])?;
    let rows = lanes.into_iter().zip(cells).map(|((lane, rankings, mut failed), cells)| {
        let known: Vec<String> = failed.iter().map(|(id, _)| id.clone()).collect();
        let missing = qrels.questions().map(|(id, _)| id);
        let missing =
            missing.filter(|id| !rankings.contains_key(*id) && !known.iter().any(|known| known == id));
        failed.extend(missing.map(|id| (id.to_owned(), "it has no list for it".to_owned())));
        Row { lane, cells, failed, judged: None }
    });
    Ok(Some(Table {
        suite: "trec",
        columns: measures.iter().map(ToString::to_string).collect(),
        rows: rows.collect(),
        questions: qrels.len(),
        label_source: "qrels".into(),
        provenance: json!({"version": env!("CARGO_PKG_VERSION"), "seed": 0}),
        ..Table::default()
    }))
}

fn open(path: &Path) -> anyhow::Result<Box<dyn BufRead>> {
    Ok(input::open(path)?)
}

fn qrels_of(path: &Path) -> anyhow::Result<Qrels> {
    let mut reader = open(path)?;
    let mut first = String::new();
    reader.read_line(&mut first).with_context(|| path.display().to_string())?;
    let name = path.display().to_string();
    // BEIR's files have a header and three columns, TREC's neither.
    let beir = first.split('\t').count() == 3;
    // Standard input is read once only.
    let whole = Cursor::new(first.clone()).chain(reader);
    if first.trim_start().starts_with('{') {
        return Ok(read_jsonl_qrels(&name, whole)?);
    }
    Ok(if beir { read_beir_qrels(&name, whole)? } else { read_qrels(&name, whole)? })
}

fn read(path: &Path, ties: Ties) -> anyhow::Result<Rankings> {
    let order = match ties {
        Ties::AsRead => RunOrder::AsGiven,
        Ties::TrecEval => RunOrder::TrecEval,
    };
    let name = path.display().to_string();
    let json = matches!(input::ending(path), Some("json" | "jsonl"));
    let run =
        if json { read_rank_llm(&name, open(path)?, order)? } else { read_run(&name, open(path)?, order)? };
    let ranked =
        |question: &crate::measure::trec::RankedQuestion| question.ids().map(str::to_owned).collect();
    Ok(run.questions().iter().map(|question| (question.id.clone(), ranked(question))).collect())
}

/// A lane's lists, and the questions it has none for, with the reason.
type Lane = (String, Rankings, Vec<(String, String)>);

/// Ranks every judged question of the set with every lane, in parallel over questions; nothing where the user interrupted.
fn ranked(
    common: &Common,
    args: &Eval,
    qrels: &Qrels,
    measures: &[Measure],
) -> anyhow::Result<Option<Vec<Lane>>> {
    let lanes = Lanes::open(common, args)?;
    let maxima = lanes.maxima()?;
    let Lanes { setup, recipes, stop, .. } = lanes;
    let deepest = measures.iter().filter_map(|measure| measure.cutoff()).max().unwrap_or(0);
    // One more than is measured, because the question's own document may be among them.
    let depth = deepest.max(Plan::DEPTH) + usize::from(args.ignore_identical_ids);
    let judged: Vec<_> =
        setup.questions.iter().filter(|question| qrels.question(&question.id).is_some()).collect();
    if judged.is_empty() {
        bail!("none of the question set's ids stands in the judgements; name their --corpus and --questions");
    }
    let mut all = Vec::new();
    for recipe in recipes {
        let one = |question: &Question| -> Result<Vec<String>, LaneError> {
            let mut lists = Lists::to_depth(depth);
            lists.maxima.clone_from(&maxima);
            let ranking = rank(&setup, &recipe, Asked::plainly(question), &mut lists, &stop)?;
            let ids = ranking.iter().map(|ranked| ranked.passage.id.clone());
            Ok(ids.filter(|id| !(args.ignore_identical_ids && *id == question.id)).collect())
        };
        let ranked: Vec<Result<_, LaneError>> = if recipe.switches.is_on(Switch::Diversify) {
            // Judging takes all model threads for itself.
            judged.iter().map(|question| one(question)).collect()
        } else {
            on_all(&setup.models, judged.len(), &stop, |i| one(judged[i]))
        };
        if stop.is_set() {
            return Ok(None);
        }
        let (mut rankings, mut failed) = (Rankings::new(), Vec::new());
        for (question, ids) in judged.iter().zip(ranked) {
            match ids {
                Ok(ids) => drop(rankings.insert(question.id.clone(), ids)),
                Err(error) => failed.push((question.id.clone(), error.to_string())),
            }
        }
        all.push((recipe.to_string(), rankings, failed));
    }
    Ok(Some(all))
}

/// A question that the lane has no list for counts as an empty list, never as absent.
fn measured(rankings: &Rankings, qrels: &Qrels, measures: &[Measure]) -> anyhow::Result<Vec<Values>> {
    let mut values = vec![Values::new(); measures.len()];
    for (question, judged) in qrels.questions() {
        let ids = rankings.get(question).map(Vec::as_slice).unwrap_or_default();
        let graded = GradedRanking::new(ids.iter().map(String::as_str), judged);
        let evidence = Evidence { graded: Some(&graded), support: None };
        for (measure, values) in measures.iter().zip(&mut values) {
            values.push(Some(score(*measure, &evidence)?.value));
        }
    }
    Ok(values)
}
