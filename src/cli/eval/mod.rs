//! `parallax eval`: lanes or finished runs, measured over a question set.

pub mod args;
mod berds;
mod bias;
mod columns;
mod coverage;
mod gathered;
mod lanes;
mod page;
mod per_question;
mod pir;
mod reader;
mod sets;
mod sycophancy;
mod trec;
mod under;
mod write;

use std::io::{self, Write};
use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::bail;

pub use columns::by_verdicts;

use super::args::{Common, Eval, Suite, TableFormat, Ties};
use crate::measure::significance::{DRAWS, bootstrap_interval, holm, paired_randomisation};
use crate::measure::trec::RunOrder;
use crate::pipeline::Recipe;
use crate::pipeline::recipe::{Base, RunFile};
use crate::report::table::{Cell, Row};

/// Runs the command.
///
/// # Errors
/// A file is not right, a measure is unknown, or nothing could be measured.
pub fn run(common: &Common, args: &Eval) -> anyhow::Result<ExitCode> {
    if args.suite != Suite::Reader
        && let Some(option) = common.reads()
    {
        bail!("{option} is for eval reader");
    }
    let bounds = under::bounds(args)?;
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
    if args.attribute.is_some() && args.suite != Suite::Bias {
        bail!("--attribute is for eval bias");
    }
    if !args.measures.is_empty() && !matches!(args.suite, Suite::Trec | Suite::Berds) {
        bail!(
            "--measures is for eval trec and eval berds; coverage has Cover, sycophancy Lean and Shift, pir pRecall, reader EM"
        );
    }
    let mut tables = Vec::new();
    for (set, common) in sets::each(common, args)? {
        let table = match args.suite {
            Suite::Trec => trec::table(&common, args)?,
            Suite::Berds => berds::table(&common, args)?,
            Suite::Pir => pir::table(&common, args)?,
            Suite::Coverage => coverage::table(&common, args)?,
            Suite::Bias => bias::table(&common, args)?,
            Suite::Reader => reader::table(&common, args)?,
            Suite::Sycophancy => sycophancy::table(&common, args)?,
        };
        let Some(table) = table else {
            writeln!(
                io::stderr(),
                "parallax: interrupted; what was finished is kept, the same command goes on"
            )?;
            return Ok(ExitCode::from(super::interrupt::INTERRUPTED));
        };
        tables.push((set, table));
    }
    let table = sets::averaged(tables)?;
    let text = match args.format {
        format if args.per_question.is_some() => {
            per_question::printed(&table, args.per_question.as_deref().unwrap_or_default(), format)?
        }
        TableFormat::Text => table.text(),
        TableFormat::Md => table.markdown(),
        TableFormat::Latex => table.latex(),
        TableFormat::Tsv => table.tsv(),
        TableFormat::Json => format!("{:#}\n", table.json()),
        TableFormat::Html => page::html(&table),
    };
    io::stdout().write_all(text.as_bytes())?;
    if let Some(folder) = &args.plots {
        page::write_plots(&table, folder)?;
    }
    let mut ended = ExitCode::SUCCESS;
    for bound in &bounds {
        if let Some(reason) = bound.broken(&table)? {
            writeln!(io::stderr(), "parallax: {reason}")?;
            ended = ExitCode::from(1);
        }
    }
    if !args.allow_failed && table.rows.iter().any(|row| !row.failed.is_empty()) {
        ended = ExitCode::from(1);
    }
    Ok(ended)
}

/// `--run FILE` is short for `--lane run:FILE` and comes first; `--ties` holds for every run.
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

/// One lane's values of one measure, a value a question; none where the question cannot be measured by it.
type Values = Vec<Option<f64>>;

/// A row a lane: its figures, the questions that failed, the share of passages judged, and the values question by question.
fn rows(
    names: impl IntoIterator<Item = String>,
    values: Vec<Vec<Values>>,
    versus: &[Option<usize>],
    failed: Vec<Vec<(String, String)>>,
    judged: Vec<(usize, usize)>,
) -> anyhow::Result<Vec<Row>> {
    let cells = cells(&values, versus)?;
    let all = names.into_iter().zip(cells).zip(failed).zip(judged).zip(values);
    let row = |((((lane, cells), failed), (judged, of)), values)| {
        let judged = (of > 0).then(|| judged as f64 / of as f64);
        Row { lane, cells, failed, judged, values, ..Row::default() }
    };
    Ok(all.map(row).collect())
}

/// Means and intervals of every lane (rows) and measure (columns), each lane compared with the row in `versus`, if any.
fn cells(lanes: &[Vec<Values>], versus: &[Option<usize>]) -> anyhow::Result<Vec<Vec<Option<Cell>>>> {
    let mut rows: Vec<Vec<Option<Cell>>> = Vec::new();
    for columns in lanes {
        let row = columns.iter().map(|values| -> anyhow::Result<Option<Cell>> {
            let known: Vec<f64> = values.iter().flatten().copied().collect();
            if known.is_empty() {
                return Ok(None);
            }
            let interval = bootstrap_interval(&known, 0.95, DRAWS, 0)?;
            let (mean, n) = (interval.mean, known.len());
            Ok(Some(Cell { mean, interval: Some((interval.low, interval.high)), n, ..Cell::default() }))
        });
        rows.push(row.collect::<anyhow::Result<_>>()?);
    }
    let measures = lanes.first().map_or(0, Vec::len);
    for measure in 0..measures {
        let mut compared = Vec::new();
        for (lane, other) in versus.iter().enumerate() {
            let Some(other) = other else { continue };
            let both = lanes[lane][measure].iter().zip(&lanes[*other][measure]);
            let (left, right): (Vec<f64>, Vec<f64>) = both.filter_map(|(a, b)| Some(((*a)?, (*b)?))).unzip();
            if !left.is_empty() {
                compared.push((lane, paired_randomisation(&left, &right, DRAWS, 0)?));
            }
        }
        let corrected = holm(&compared.iter().map(|(_, p)| *p).collect::<Vec<_>>());
        for ((lane, _), p) in compared.iter().zip(corrected) {
            if let Some(cell) = &mut rows[*lane][measure] {
                cell.p = Some(p);
            }
        }
    }
    Ok(rows)
}
