//! `parallax eval trec`: graded relevance of lanes or finished runs, as trec_eval measures it.

use std::collections::{BTreeMap, HashMap};
use std::io::{BufRead, Cursor, Read};
use std::path::Path;
use std::sync::Arc;

use anyhow::{Context, bail};
use serde_json::{Value, json};

use crate::cli::eval::args::{Eval, RESAMPLING_SEED, check_thresholds};
use crate::cli::eval::lanes::Lanes;
use crate::cli::job::stop_on_signal;
use crate::cli::options::Common;
use crate::engine::recipe::Switch;
use crate::engine::{LaneError, Lists, Query, Recipe, RunFiles, lane};
use crate::input;
use crate::measure::Measure;
use crate::measure::graded::GradedRanking;
use crate::measure::score::{Evidence, score};
use crate::measure::trec::{Qrels, Run, read_beir_qrels, read_jsonl_qrels, read_qrels};
use crate::question::{self, Question};
use crate::report::means::{Values, cells};
use crate::report::table::{Head, Row, Table};
use crate::work::on_all;

/// One lane's ranked ids by question.
type Rankings = BTreeMap<String, Vec<String>>;

/// Returns the table, or `None` if the user interrupted.
///
/// # Errors
/// A file is not valid, or a measure is unknown.
pub fn table(common: &Common, args: &Eval) -> anyhow::Result<Option<Table>> {
    let names: Vec<&str> = match args.measures.as_slice() {
        [] => vec!["nDCG@10", "R@100"],
        names => names.iter().map(String::as_str).collect(),
    };
    let measures = names.iter().map(|name| name.parse::<Measure>()).collect::<Result<Vec<_>, _>>()?;
    let Some(qrels) = &args.qrels else { bail!("eval trec needs judgments: --qrels FILE") };
    let qrels = read_any_qrels(qrels)?;
    let Some((lanes, prompts)) = rank(common, args, &qrels, &measures)? else { return Ok(None) };
    let mut provenance = json!({"version": env!("CARGO_PKG_VERSION"), "seed": RESAMPLING_SEED});
    if let Some(prompts) = prompts {
        provenance["prompts"] = prompts;
    }
    let mut values = Vec::new();
    for (_, rankings, _) in &lanes {
        values.push(measure(rankings, &qrels, &measures)?);
    }
    let cells = cells(&values, &vec![None; lanes.len()])?;
    let rows =
        lanes.into_iter().zip(cells).zip(values).map(|(((lane, rankings, mut failed), cells), values)| {
            let known: Vec<String> = failed.iter().map(|(id, _)| id.clone()).collect();
            let missing = qrels.questions().map(|(id, _)| id);
            let missing =
                missing.filter(|id| !rankings.contains_key(*id) && !known.iter().any(|known| known == id));
            failed.extend(missing.map(|id| (id.to_owned(), "it has no list for it".to_owned())));
            Row { lane, cells, failed, values, ..Row::default() }
        });
    Ok(Some(Table {
        suite: "trec",
        columns: measures.iter().copied().map(Head::from).collect(),
        rows: rows.collect(),
        question_ids: qrels.questions().map(|(id, _)| id.to_owned()).collect(),
        questions: qrels.len(),
        label_source: "qrels".into(),
        provenance,
        ..Table::default()
    }))
}

fn open(path: &Path) -> anyhow::Result<Box<dyn BufRead>> {
    Ok(input::open(path)?)
}

/// Reads qrels in the format that the first line shows.
fn read_any_qrels(path: &Path) -> anyhow::Result<Qrels> {
    let mut reader = open(path)?;
    let mut first = String::new();
    // A file without lines is refused by the reader below.
    (&mut reader)
        .take(input::LONGEST as u64)
        .read_line(&mut first)
        .with_context(|| path.display().to_string())?;
    let name = path.display().to_string();
    // BEIR's files have three columns and a header, TREC's have four and none.
    let beir = first.split('\t').count() == 3;
    // Standard input can be read only once.
    let whole = Cursor::new(first.clone()).chain(reader);
    if first.trim_start().starts_with('{') {
        return Ok(read_jsonl_qrels(&name, whole)?);
    }
    Ok(if beir { read_beir_qrels(&name, whole)? } else { read_qrels(&name, whole)? })
}

/// A lane's lists, and the questions it has none for, with the reason.
type Lane = (String, Rankings, Vec<(String, String)>);

/// Ranks every judged question with every lane, in parallel over questions. Also returns the prompts in use. `None` if the user
/// interrupted.
///
/// Judgments need ids but no texts, so no corpus is opened if all lanes are unchanged finished runs.
fn rank(
    common: &Common,
    args: &Eval,
    qrels: &Qrels,
    measures: &[Measure],
) -> anyhow::Result<Option<(Vec<Lane>, Option<Value>)>> {
    let recipes = args.switches.apply(common.recipes())?;
    check_thresholds(args, recipes.iter().map(ToString::to_string))?;
    let finished = |recipe: &Recipe| recipe.run().filter(|_| *recipe == recipe.plain()).cloned();
    let opened = if recipes.iter().all(|recipe| finished(recipe).is_some()) {
        None
    } else {
        let lanes = Lanes::open(common, args)?;
        if !lanes.setup.questions.iter().any(|question| qrels.question(&question.id).is_some()) {
            bail!("the judgments have none of the question set's ids; name their --corpus and --questions");
        }
        Some(lanes)
    };
    let questions = match (&opened, common.questions.first()) {
        (Some(lanes), _) => lanes.setup.questions.clone(),
        (None, Some(path)) => question::set::read(path)?,
        (None, None) => Vec::new(),
    };
    let (runs, stop) = match &opened {
        Some(lanes) => (None, lanes.stop.clone()),
        None => (Some(RunFiles::default()), stop_on_signal()?),
    };
    let deepest = measures.iter().filter_map(|measure| measure.cutoff()).max().unwrap_or(0);
    // One passage more, because the question's own document may be among them and is left out.
    let depth = deepest.max(Query::DEPTH) + usize::from(args.ignore_identical_ids);
    // A measure without a cutoff reads a finished run to its end.
    let whole = if measures.iter().all(|measure| measure.cutoff().is_some()) { depth } else { usize::MAX };
    let maxima = opened.as_ref().map(Lanes::maxima).transpose()?.unwrap_or_default();
    let mut all = Vec::new();
    for recipe in &recipes {
        let lane = match (finished(recipe), &opened) {
            (Some(file), _) => {
                let runs = runs.as_ref().or(opened.as_ref().map(|lanes| &lanes.setup.runs));
                let run = match runs.map(|runs| runs.read(&file, whole, &stop)) {
                    Some(Err(_)) if stop.is_set() => return Ok(None),
                    Some(run) => run?,
                    None => continue,
                };
                finished_run(recipe, &run, &questions, qrels, args.ignore_identical_ids)
            }
            (None, Some(lanes)) => {
                let Some(lane) = search(lanes, recipe, qrels, depth, &maxima, args)? else {
                    return Ok(None);
                };
                lane
            }
            (None, None) => continue,
        };
        all.push(lane);
    }
    Ok(Some((all, opened.and_then(|lanes| lanes.prompts))))
}

/// A finished run's lists: the run is searched for each judged question's id, then for its text in the question set.
fn finished_run(
    recipe: &Recipe,
    run: &Run,
    questions: &[Question],
    qrels: &Qrels,
    ignore_identical_ids: bool,
) -> Lane {
    let words: HashMap<&str, &str> = questions.iter().map(|q| (q.id.as_str(), q.text.as_str())).collect();
    let mut rankings = Rankings::new();
    for (id, _) in qrels.questions() {
        if let Some(place) = run.place(Some(id), words.get(id).copied().unwrap_or_default()) {
            let ids =
                run.questions()[place].ids().filter(|passage| !(ignore_identical_ids && *passage == id));
            rankings.insert(id.to_owned(), ids.map(str::to_owned).collect());
        }
    }
    (recipe.to_string(), rankings, Vec::new())
}

/// Ranks the judged questions of the set with one lane. Returns `None` if the user interrupted.
fn search(
    lanes: &Lanes,
    recipe: &Recipe,
    qrels: &Qrels,
    depth: usize,
    maxima: &[(Recipe, f32)],
    args: &Eval,
) -> anyhow::Result<Option<Lane>> {
    let Lanes { setup, stop, .. } = lanes;
    let judged: Vec<_> =
        setup.questions.iter().filter(|question| qrels.question(&question.id).is_some()).collect();
    let one = |question: &Question| -> Result<Vec<String>, Arc<LaneError>> {
        let mut lists = Lists::to_depth(depth);
        lists.maxima = maxima.to_vec();
        let query =
            Query { question: question.clone(), lanes: vec![recipe.clone()], k: depth, source: lanes.source };
        let ranking = lane(setup, query, lists, stop)?;
        let ids = ranking.iter().map(|ranked| ranked.passage.id.clone());
        Ok(ids.filter(|id| !(args.ignore_identical_ids && *id == question.id)).collect())
    };
    let ranked: Vec<Result<_, Arc<LaneError>>> = if recipe.switches.is_on(Switch::Diversify) {
        // Judging uses all model threads itself.
        judged.iter().map(|question| one(question)).collect()
    } else {
        on_all(&setup.models, judged.len(), stop, |i| one(judged[i]))
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
    Ok(Some((recipe.to_string(), rankings, failed)))
}

/// Measures one lane. A question without a list counts as an empty list and stays in the means.
fn measure(rankings: &Rankings, qrels: &Qrels, measures: &[Measure]) -> anyhow::Result<Vec<Values>> {
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
