//! `parallax eval trec`: graded relevance of lanes or finished runs, by the measures of trec_eval. All rows of a table are lists of one
//! depth, and a measure without a cut-off reads the first [`UNCUT`] passages, whatever other measures are asked for.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::io::{BufRead, Cursor, Read};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use anyhow::{Context, bail};
use serde_json::{Value, json};

use crate::cli::eval::args::{Eval, RESAMPLING_SEED, check_thresholds};
use crate::cli::eval::lanes::{LaneNotes, Lanes, ListFacts, chosen, plain_forms};
use crate::cli::job::stop_on_signal;
use crate::cli::options::Common;
use crate::engine::recipe::Switch;
use crate::engine::{LaneError, Lists, Query, Recipe, RunFiles, rank_lanes};
use crate::input;
use crate::measure::Measure;
use crate::measure::graded::GradedRanking;
use crate::measure::score::{Evidence, score};
use crate::measure::trec::{Qrels, Run, read_beir_qrels, read_jsonl_qrels, read_qrels};
use crate::question::{self, Question};
use crate::report::means::{Values, rows};
use crate::report::table::{Head, Table};
use crate::work::{Stopped, on_all};

/// How many passages a measure without a cut-off reads: the depth of TREC's runs.
const UNCUT: usize = 1000;

/// One lane's ranked ids by question.
type Rankings = BTreeMap<String, Vec<String>>;

/// Returns the table, or `None` if the user interrupted.
///
/// # Errors
/// A file is not valid, or a measure is unknown.
pub fn table(
    common: &Common,
    args: &Eval,
    qrels: Option<&PathBuf>,
    several: bool,
) -> anyhow::Result<Option<Table>> {
    let names: Vec<&str> = match args.measures.as_slice() {
        [] => vec!["nDCG@10", "R@100"],
        names => names.iter().map(String::as_str).collect(),
    };
    let measures = names.iter().map(|name| name.parse::<Measure>()).collect::<Result<Vec<_>, _>>()?;
    let Some(qrels) = qrels else { bail!("eval trec needs judgments: --qrels FILE") };
    let mut qrels = read_any_qrels(qrels)?;
    if several {
        // One file of judgments serves several sets, as TREC ships them; each set is measured on its own questions.
        let path = common.questions.first().context("expected a question set")?;
        let own: HashSet<String> = question::set::read(path)?.into_iter().map(|one| one.id).collect();
        qrels.retain(|id| own.contains(id));
        if qrels.is_empty() {
            bail!("{}: the judgments have none of its questions' ids", path.display());
        }
    }
    let depth = depth(&measures);
    let Some(Ranked { lanes, base, prompts, lane_notes }) = rank(common, args, &qrels, depth)? else {
        return Ok(None);
    };
    let mut provenance =
        json!({"version": env!("CARGO_PKG_VERSION"), "seed": RESAMPLING_SEED, "depth": depth});
    if let Some(prompts) = prompts {
        provenance["prompts"] = prompts;
    }
    let (mut values, mut failed, mut recipes) = (Vec::new(), Vec::new(), Vec::new());
    for (recipe, rankings, mut missing) in lanes {
        values.push(measure(&rankings, &qrels, &measures)?);
        let known: Vec<String> = missing.iter().map(|(id, _)| id.clone()).collect();
        let without = qrels.questions().map(|(id, _)| id);
        let without =
            without.filter(|id| !rankings.contains_key(*id) && !known.iter().any(|known| known == id));
        missing.extend(without.map(|id| (id.to_owned(), "it has no list for it".to_owned())));
        failed.push(missing);
        recipes.push(recipe);
    }
    let names: Vec<String> = recipes.iter().map(ToString::to_string).collect();
    let versus: Vec<Option<usize>> = match base {
        Some(base) => (0..names.len()).map(|lane| (lane != base).then_some(base)).collect(),
        None => plain_forms(&recipes),
    };
    let baseline = base.map(|base| names[base].clone());
    let judged = vec![(0, 0); recipes.len()];
    let mut rows = rows(names, values, &versus, failed, judged)?;
    lane_notes.name(&mut rows);
    let uncut: Vec<String> =
        measures.iter().filter(|measure| measure.cutoff().is_none()).map(ToString::to_string).collect();
    let reads = match uncut.as_slice() {
        [] => String::new(),
        names => {
            format!("; {} without a cut-off: the first {UNCUT}, as trec_eval -M {UNCUT}", names.join(", "))
        }
    };
    Ok(Some(Table {
        suite: "trec",
        columns: measures.iter().copied().map(Head::from).collect(),
        rows,
        question_ids: qrels.questions().map(|(id, _)| id.to_owned()).collect(),
        questions: qrels.len(),
        label_source: "qrels".into(),
        notes: std::iter::once(format!("lists of at most {depth} passages in every row{reads}"))
            .chain(lane_notes.notes())
            .collect(),
        further: args.cost.then(|| lane_notes.cost_table(&recipes)).into_iter().collect(),
        baseline,
        provenance,
        ..Table::default()
    }))
}

/// The depth of all lists: the deepest cut-off and at least [`Query::DEPTH`]; [`UNCUT`] for a measure without one.
fn depth(measures: &[Measure]) -> usize {
    let own = measures.iter().map(|measure| measure.cutoff().unwrap_or(UNCUT));
    own.max().unwrap_or(0).max(Query::DEPTH)
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

/// A lane with its lists, and the questions it has none for, with the reason.
type Lane = (Recipe, Rankings, Vec<(String, String)>);

/// All lanes with their lists.
struct Ranked {
    lanes: Vec<Lane>,
    /// The lane that all others are compared with, if the user named one.
    base: Option<usize>,
    /// The prompts in use.
    prompts: Option<Value>,
    lane_notes: LaneNotes,
}

/// Ranks every judged question with every lane to `depth`, in parallel over questions. `None` if the user interrupted.
///
/// Judgments need ids but no texts, so no corpus is opened if all lanes are unchanged finished runs.
fn rank(common: &Common, args: &Eval, qrels: &Qrels, depth: usize) -> anyhow::Result<Option<Ranked>> {
    let (recipes, base) = chosen(common, args)?;
    check_thresholds(args, recipes.iter().map(ToString::to_string))?;
    let finished = |recipe: &Recipe| recipe.run().filter(|_| *recipe == recipe.plain()).cloned();
    let opened = if recipes.iter().all(|recipe| finished(recipe).is_some()) {
        None
    } else {
        let lanes = Lanes::for_ranking(common, args)?;
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
    // One passage more, because the question's own document may be among them and is left out.
    let read = depth + usize::from(args.ignore_identical_ids);
    let maxima = opened.as_ref().map(Lanes::maxima).transpose()?.unwrap_or_default();
    let (mut all, mut lane_notes) = (Vec::new(), LaneNotes::default());
    for recipe in &recipes {
        let lane = match (finished(recipe), &opened) {
            (Some(file), _) => {
                let runs = runs.as_ref().or(opened.as_ref().map(|lanes| &lanes.setup.runs));
                let run = match runs.map(|runs| runs.read(&file, read, &stop)) {
                    Some(Err(_)) if stop.is_set() => return Ok(None),
                    Some(run) => run?,
                    None => continue,
                };
                finished_run(recipe, &run, &questions, qrels, args.ignore_identical_ids)
            }
            (None, Some(lanes)) => {
                let Some(lane) = search(lanes, recipe, qrels, read, &maxima, args, &mut lane_notes)? else {
                    return Ok(None);
                };
                lane
            }
            (None, None) => continue,
        };
        all.push(lane);
    }
    for (_, rankings, _) in &mut all {
        rankings.values_mut().for_each(|ids| ids.truncate(depth));
    }
    Ok(Some(Ranked { lanes: all, base, prompts: opened.and_then(|lanes| lanes.prompts), lane_notes }))
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
    (recipe.clone(), rankings, Vec::new())
}

/// Ranks the judged questions of the set with one lane. Returns `None` if the user interrupted.
fn search(
    lanes: &Lanes,
    recipe: &Recipe,
    qrels: &Qrels,
    depth: usize,
    maxima: &[(Recipe, f32)],
    args: &Eval,
    lane_notes: &mut LaneNotes,
) -> anyhow::Result<Option<Lane>> {
    let Lanes { setup, stop, .. } = lanes;
    let judged: Vec<_> =
        setup.questions.iter().filter(|question| qrels.question(&question.id).is_some()).collect();
    /// The ids, and what the list says of itself.
    type Listed = (Vec<String>, ListFacts);
    let one = |question: &Question| -> Result<Listed, Arc<LaneError>> {
        let mut lists = Lists::to_depth(depth);
        lists.maxima = maxima.to_vec();
        let query =
            Query { question: question.clone(), lanes: vec![recipe.clone()], k: depth, source: lanes.source };
        let Some(crate::engine::Lane { ranking, took }) = rank_lanes(setup, query, lists, stop).pop() else {
            return Err(Arc::new(Stopped.into()));
        };
        let ranking = ranking?;
        let ids = ranking.iter().map(|ranked| ranked.passage.id.clone());
        let ids = ids.filter(|id| !(args.ignore_identical_ids && *id == question.id)).collect();
        Ok((ids, ListFacts::of(&ranking, took)))
    };
    let ranked: Vec<Result<_, Arc<LaneError>>> = if recipe.switches.is_on(Switch::Diversify) || args.cost {
        // Judging uses all model threads itself, and what others do meanwhile is no cost of a query.
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
            Ok((ids, facts)) => {
                rankings.insert(question.id.clone(), ids);
                lane_notes.take_list(recipe, question, facts);
            }
            Err(error) => failed.push((question.id.clone(), error.to_string())),
        }
    }
    Ok(Some((recipe.clone(), rankings, failed)))
}

/// Measures one lane. A question without a list counts as an empty list and stays in the means.
fn measure(rankings: &Rankings, qrels: &Qrels, measures: &[Measure]) -> anyhow::Result<Vec<Values>> {
    let mut values = vec![Values::new(); measures.len()];
    for (question, judged) in qrels.questions() {
        let ids = rankings.get(question).map(Vec::as_slice).unwrap_or_default();
        let read = |count: usize| GradedRanking::new(ids.iter().take(count).map(String::as_str), judged);
        let (whole, uncut) = (read(ids.len()), read(UNCUT));
        for (measure, values) in measures.iter().zip(&mut values) {
            let graded = if measure.cutoff().is_some() { &whole } else { &uncut };
            let evidence = Evidence { graded: Some(graded), support: None };
            values.push(Some(score(*measure, &evidence)?.value));
        }
    }
    Ok(values)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn measures(names: &[&str]) -> Vec<Measure> {
        names.iter().map(|name| name.parse().unwrap()).collect()
    }

    #[test]
    fn a_measure_without_a_cut_off_reads_a_thousand_whatever_else_is_asked() {
        let depths = [
            (&["nDCG@10"][..], 100),
            (&["nDCG@10", "R@200"], 200),
            (&["AP"], 1000),
            (&["AP", "R@1000"], 1000),
            (&["AP", "R@2000"], 2000),
        ];
        for (names, expected) in depths {
            assert_eq!(depth(&measures(names)), expected, "{names:?}");
        }
        // One relevant passage at rank 2, another at 1,500: AP reads neither more nor less beside R@2000.
        let mut ids: Vec<String> = (1..=2000).map(|rank| format!("d{rank}")).collect();
        let qrels = "q 0 d2 1\nq 0 d1500 1\n";
        let qrels = read_qrels("qrels", Cursor::new(qrels)).unwrap();
        let ap = |ids: &[String], names: &[&str]| {
            let rankings = Rankings::from([("q".to_owned(), ids.to_vec())]);
            measure(&rankings, &qrels, &measures(names)).unwrap()[0][0].unwrap()
        };
        // (1/2) / 2 relevant passages.
        assert_eq!(ap(&ids, &["AP", "R@2000"]), 0.25);
        ids.truncate(1000);
        assert_eq!(ap(&ids, &["AP"]), 0.25);
    }
}
