//! `parallax eval trec`: graded relevance of lanes or finished runs, as trec_eval measures it.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{self, BufRead, BufReader, Write};
use std::path::Path;
use std::process::ExitCode;

use anyhow::{Context, bail};
use serde_json::json;

use super::args::{Common, Eval, Format, Suite, Ties};
use super::progress::Meter;
use crate::measure::Measure;
use crate::measure::graded::GradedRanking;
use crate::measure::score::{Evidence, score};
use crate::measure::significance::bootstrap_interval;
use crate::measure::trec::{Qrels, RunOrder, read_beir_qrels, read_qrels, read_rank_llm, read_run};
use crate::pipeline::{LaneError, Lists, Plan, Recipe, Setup, rank};
use crate::work::{Stop, on_all};

/// Draws of the bootstrap behind the intervals.
const DRAWS: usize = 1_000;

/// One lane's ranked ids by question.
type Rankings = BTreeMap<String, Vec<String>>;

struct Row {
    lane: String,
    /// Mean, interval, questions, failed.
    measures: Vec<(Measure, f64, f64, f64)>,
    questions: usize,
    failed: Vec<String>,
}

/// Runs the command.
///
/// # Errors
/// A file is not right, a measure is unknown, or a question failed.
pub fn run(common: &Common, args: &Eval) -> anyhow::Result<ExitCode> {
    let Suite::Trec = args.suite;
    let measures = args.measures.iter().map(|name| name.parse::<Measure>()).collect::<Result<Vec<_>, _>>()?;
    let qrels = qrels(&args.qrels)?;
    let mut rows = Vec::new();
    for path in &args.runs {
        let rankings = read(path, args.ties)?;
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        rows.push(row(format!("run:{name}"), &rankings, &qrels, &measures)?);
    }
    if args.runs.is_empty() || !common.lane.is_empty() || !common.lanes.is_empty() {
        for (recipe, rankings) in lanes(common, args, &qrels, &measures)? {
            rows.push(row(recipe.to_string(), &rankings, &qrels, &measures)?);
        }
    }
    print(args, &measures, &rows)?;
    let failed = rows.iter().any(|row| !row.failed.is_empty());
    Ok(if failed { ExitCode::from(1) } else { ExitCode::SUCCESS })
}

fn open(path: &Path) -> anyhow::Result<BufReader<File>> {
    File::open(path).map(BufReader::new).with_context(|| path.display().to_string())
}

fn qrels(path: &Path) -> anyhow::Result<Qrels> {
    let mut reader = open(path)?;
    let mut first = String::new();
    reader.read_line(&mut first).with_context(|| path.display().to_string())?;
    let name = path.display().to_string();
    // BEIR's files have a header and three columns, TREC's neither.
    let beir = first.split('\t').count() == 3;
    Ok(if beir { read_beir_qrels(&name, open(path)?)? } else { read_qrels(&name, open(path)?)? })
}

fn read(path: &Path, ties: Ties) -> anyhow::Result<Rankings> {
    let order = match ties {
        Ties::AsRead => RunOrder::AsGiven,
        Ties::TrecEval => RunOrder::TrecEval,
    };
    let name = path.display().to_string();
    let json = path.extension().is_some_and(|end| end == "json" || end == "jsonl");
    let run =
        if json { read_rank_llm(&name, open(path)?, order)? } else { read_run(&name, open(path)?, order)? };
    let ranked =
        |question: &crate::measure::trec::RankedQuestion| question.ids().map(str::to_owned).collect();
    Ok(run.questions().iter().map(|question| (question.id.clone(), ranked(question))).collect())
}

/// Ranks every judged question of the set with every lane, in parallel over questions.
fn lanes(
    common: &Common,
    args: &Eval,
    qrels: &Qrels,
    measures: &[Measure],
) -> anyhow::Result<Vec<(Recipe, Rankings)>> {
    let (meter, stop) = (Meter::default(), Stop::never());
    let setup = Setup::open(&common.opening(), &|progress| meter.tell(progress), &stop)?;
    if setup.questions.is_empty() {
        bail!("lanes need questions: name a question set with --questions, or finished runs with --run");
    }
    let deepest = measures.iter().filter_map(|measure| measure.cutoff()).max().unwrap_or(0);
    // One more than is measured, because the question's own document may be among them.
    let depth = deepest.max(Plan::DEPTH) + usize::from(args.ignore_identical_ids);
    let mut all = Vec::new();
    for recipe in common.recipes() {
        if recipe.needs_vectors() && setup.vectors()?.is_none() {
            setup.embed(&|progress| meter.tell(progress), &stop)?;
        }
        let judged: Vec<_> =
            setup.questions.iter().filter(|question| qrels.question(&question.id).is_some()).collect();
        let ranked = on_all(&setup.models, judged.len(), &stop, |i| {
            let question = judged[i];
            let ranking = rank(&setup, recipe, &question.text, &mut Lists::to_depth(depth), &stop)?;
            let ids = ranking.iter().map(|ranked| ranked.passage.id.clone());
            let ids = ids.filter(|id| !(args.ignore_identical_ids && *id == question.id));
            Ok((question.id.clone(), ids.collect()))
        });
        let ranked: Result<Rankings, LaneError> = ranked.into_iter().collect();
        all.push((recipe, ranked?));
    }
    Ok(all)
}

fn row(lane: String, rankings: &Rankings, qrels: &Qrels, measures: &[Measure]) -> anyhow::Result<Row> {
    let mut values: Vec<Vec<f64>> = vec![Vec::new(); measures.len()];
    let mut failed = Vec::new();
    for (question, judged) in qrels.questions() {
        if !rankings.contains_key(question) {
            failed.push(question.to_owned());
        }
        // A question that the lane has no list for counts as an empty list, never as absent.
        let ids = rankings.get(question).map(Vec::as_slice).unwrap_or_default();
        let graded = GradedRanking::new(ids.iter().map(String::as_str), judged);
        let evidence = Evidence { graded: Some(&graded), support: None };
        for (measure, values) in measures.iter().zip(&mut values) {
            values.push(score(*measure, &evidence)?.value);
        }
    }
    let measured = measures.iter().zip(&values).map(|(measure, values)| {
        let interval = bootstrap_interval(values, 0.95, DRAWS, 0)?;
        Ok((*measure, interval.mean, interval.low, interval.high))
    });
    let measures = measured.collect::<anyhow::Result<Vec<_>>>()?;
    Ok(Row { lane, measures, questions: qrels.len(), failed })
}

fn print(args: &Eval, measures: &[Measure], rows: &[Row]) -> anyhow::Result<()> {
    let mut out = io::BufWriter::new(io::stdout().lock());
    match args.format {
        Format::Json => {
            let rows = rows.iter().map(|row| {
                let measures = row.measures.iter().map(|(measure, mean, low, high)| {
                    (measure.to_string(), json!({"mean": mean, "low": low, "high": high, "n": row.questions}))
                });
                json!({"lane": row.lane, "measures": measures.collect::<serde_json::Map<_, _>>(), "failed": row.failed.len(),
                       "failed_questions": row.failed})
            });
            let all = json!({"suite": "trec", "label_source": "qrels", "rows": rows.collect::<Vec<_>>(),
                             "provenance": {"version": env!("CARGO_PKG_VERSION"), "seed": 0}});
            writeln!(out, "{all:#}")?;
        }
        Format::Tsv => {
            writeln!(out, "suite\tlane\tmeasure\tvalue\tlow\thigh\tn\tfailed\tlabel_source")?;
            for row in rows {
                for (measure, mean, low, high) in &row.measures {
                    let (lane, n, failed) = (&row.lane, row.questions, row.failed.len());
                    writeln!(
                        out,
                        "trec\t{lane}\t{measure}\t{mean:.4}\t{low:.4}\t{high:.4}\t{n}\t{failed}\tqrels"
                    )?;
                }
            }
        }
        Format::Text => {
            let heads: Vec<String> =
                measures.iter().map(|measure| format!("{:>22}", measure.to_string())).collect();
            writeln!(out, "{:<24}{}  questions", "lane", heads.concat())?;
            for row in rows {
                write!(out, "{:<24}", row.lane)?;
                for (_, mean, low, high) in &row.measures {
                    write!(out, "{:>22}", format!("{mean:.4} ({low:.3}–{high:.3})"))?;
                }
                let failed = row.failed.len();
                let note = if failed > 0 {
                    format!(", {failed} without a list (counted as 0)")
                } else {
                    String::new()
                };
                writeln!(out, "  {}{note}", row.questions)?;
            }
        }
    }
    Ok(out.flush()?)
}
