//! `parallax eval`: measures lanes or finished runs over a question set.
//!
//! May use: everything below `cli`.

pub mod args;
mod berds;
mod bias;
mod corrected;
mod estimates;
mod lanes;
mod pir;
mod reader;
mod results;
mod trec;

use std::io::Write;
use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::bail;

use super::job::interrupted;
use super::options::Common;
use crate::engine::Recipe;
use crate::engine::recipe::{Base, RunFile};
use crate::measure::trec::RunOrder;
use crate::report::means::PerQuestion;
use crate::report::means::averaged;
use crate::report::page;
use crate::report::safe;
use crate::report::table::Table;
use args::{Eval, Suite, TableFormat, Target, Ties, each, thresholds};

/// Runs the command.
///
/// # Errors
/// A file is not valid, a measure is unknown, or nothing could be measured.
pub fn run(common: &Common, args: &Eval) -> anyhow::Result<ExitCode> {
    if args.suite != Suite::Reader
        && let Some(option) = common.reads()
    {
        bail!("{option} is for eval reader");
    }
    let thresholds = thresholds(args)?;
    let common = &with_runs(common, args);
    if args.suite != Suite::Trec && args.qrels.is_some() {
        bail!("--qrels is for eval trec; the other suites measure by --labels or the model");
    }
    if args.write.is_some() && args.suite != Suite::Berds {
        bail!("--write is for eval berds");
    }
    if args.oracle && args.suite != Suite::Berds {
        bail!("--oracle is for eval berds");
    }
    if args.oracle && !common.source().is_labels() {
        bail!(
            "--oracle: the best order is known only by labels, and the model's means are expectations, which may be higher; add \
             --label-source gold or --label-source human"
        );
    }
    if args.target != Target::default() && args.correct.is_none() {
        bail!("--target is for --correct");
    }
    if args.attribute.is_some() && args.suite != Suite::Bias {
        bail!("--attribute is for eval bias");
    }
    if !args.measures.is_empty() && !matches!(args.suite, Suite::Trec | Suite::Berds) {
        bail!(
            "--measures is for eval trec and eval berds; coverage has Cover, sycophancy Lean and Shift, pir pRecall, reader EM"
        );
    }
    // Before the measuring, which may take hours.
    for folder in args.write.iter().chain(&args.plots).filter(|path| path.exists() && !path.is_dir()) {
        bail!("{}: a file; expected a folder", folder.display());
    }
    let mut tables = Vec::new();
    for (set, common) in each(common, args)? {
        let table = match (&args.correct, args.suite) {
            (Some(folder), _) => corrected::table(&common, args, folder)?,
            (None, Suite::Trec) => trec::table(&common, args)?,
            (None, Suite::Berds) => berds::berds(&common, args)?,
            (None, Suite::Pir) => pir::table(&common, args)?,
            (None, Suite::Coverage) => berds::coverage(&common, args)?,
            (None, Suite::Bias) => bias::table(&common, args)?,
            (None, Suite::Reader) => reader::table(&common, args)?,
            (None, Suite::Sycophancy) => berds::sycophancy(&common, args)?,
        };
        let Some(table) = table else {
            writeln!(
                safe::stderr(),
                "parallax: interrupted; what was finished is kept, the same command goes on"
            )?;
            return Ok(interrupted());
        };
        tables.push((set, table));
    }
    let table = averaged(tables)?;
    let text = format_table(&table, args.format, args.per_question.as_deref())?;
    safe::stdout().write_all(text.as_bytes())?;
    if let Some(folder) = &args.plots {
        page::write_plots(&table, folder)?;
    }
    let mut ended = ExitCode::SUCCESS;
    for threshold in &thresholds {
        if let Some(reason) = threshold.failure(&table)? {
            writeln!(safe::stderr(), "parallax: {reason}")?;
            ended = ExitCode::from(1);
        }
    }
    if !args.allow_failed && table.rows.iter().any(|row| !row.failed.is_empty()) {
        ended = ExitCode::from(1);
    }
    Ok(ended)
}

/// The table in a format. If `per_question` is set, it has one row per question and lane, sorted by that measure if it names one.
fn format_table(table: &Table, format: TableFormat, per_question: Option<&str>) -> anyhow::Result<String> {
    if let Some(measure) = per_question {
        let rows = PerQuestion::of(table, measure)?;
        return Ok(match format {
            TableFormat::Json => safe::json(&rows.json())?,
            TableFormat::Tsv => rows.tsv(),
            TableFormat::Text => rows.text(),
            _ => bail!("--per-question prints text, tsv or json; choose one of them with --format"),
        });
    }
    Ok(match format {
        TableFormat::Text => table.text(),
        TableFormat::Md => table.markdown(),
        TableFormat::Latex => table.latex(),
        TableFormat::Tsv => table.tsv(),
        TableFormat::Json => safe::json(&table.json())?,
        TableFormat::Html => page::html(table),
    })
}

/// The options with the lanes of `--run FILE` (short for `--lane run:FILE`) first, and with `--ties` applied to every run.
fn with_runs(common: &Common, args: &Eval) -> Common {
    let order = match args.ties {
        Ties::AsRead => None,
        Ties::TrecEval => Some(RunOrder::TrecEval),
    };
    let ordered = |mut recipe: Recipe| {
        if let (Base::Run(file), Some(order)) = (&mut recipe.base, order) {
            file.order = order;
        }
        recipe
    };
    let run = |path: &PathBuf| Base::Run(RunFile { path: path.clone(), order: RunOrder::AsGiven }).into();
    let lanes = args.runs.iter().map(run).chain(common.lanes.iter().cloned());
    Common {
        lanes: lanes.map(ordered).collect(),
        lane: common.lane.iter().cloned().map(ordered).collect(),
        ..common.clone()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::table::Row;

    #[test]
    fn rows_by_question_are_refused_in_a_format_for_tables() {
        let row = Row { lane: "bm25".into(), values: vec![vec![Some(0.4)]], ..Row::default() };
        let table = Table {
            suite: "berds",
            columns: vec!["Prec@5".into()],
            question_ids: vec!["q1".into()],
            rows: vec![row],
            ..Table::default()
        };
        let refused = format_table(&table, TableFormat::Latex, Some("")).unwrap_err().to_string();
        assert!(refused.contains("text, tsv or json"), "{refused}");
        assert!(format_table(&table, TableFormat::Tsv, Some("")).unwrap().contains("q1\tbm25\t0.4000"));
    }
}
