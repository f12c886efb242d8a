//! `parallax eval`: measures lanes or finished runs over a question set.
//!
//! May use: everything below `cli`.

mod answer;
pub mod args;
mod berds;
mod bias;
mod corrected;
mod edit;
mod estimates;
mod framing;
mod lanes;
mod mix;
mod nuggets;
mod pir;
mod reader;
mod results;
mod trec;

use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::bail;

use super::corpus::remote::{WEB, corpus_name};
use super::job::interrupted;
use super::options::{Common, Layout, Tune, set_name};
use super::provenance;
use crate::engine::Recipe;
use crate::engine::recipe::{Base, RunFile};
use crate::measure::trec::RunOrder;
use crate::question;
use crate::report::means::PerQuestion;
use crate::report::means::averaged;
use crate::report::safe;
use crate::report::table::{Head, Row, Table};
use crate::report::{lists, page};
use crate::web;
use args::{Eval, Suite, TableFormat, Target, each, thresholds};
use estimates::{pairs, wide};
use lanes::ordered;
use results::put_together;

/// Measures every question set, prints or writes the table, and exits with 1 if a lane failed or is below a threshold.
///
/// # Errors
/// A file is not valid, a measure is unknown, or nothing could be measured.
pub fn run(common: &Common, args: &Eval) -> anyhow::Result<ExitCode> {
    if !matches!(args.suite, Suite::Reader | Suite::Mix | Suite::Answer)
        && let Some(option) = common.reads()
    {
        bail!("{option} is for eval reader, mix and answer");
    }
    let thresholds = thresholds(args)?;
    let common = &with_runs(common, args);
    if args.suite != Suite::Trec && args.qrels.is_some() {
        bail!("--qrels is for eval trec; the other suites measure by --labels or the model");
    }
    if args.write.is_some()
        && !matches!(args.suite, Suite::Berds | Suite::Pir | Suite::Reader | Suite::Nuggets | Suite::Answer)
    {
        bail!("--write is for eval berds, answer, nuggets, pir and reader");
    }
    if args.suite != Suite::Reader {
        let given = [
            ("--negatives", !args.negatives.is_empty()),
            ("--analyse", !args.analyse.is_empty()),
            ("--types", args.types.is_some()),
        ];
        if let Some((option, _)) = given.iter().find(|(_, given)| *given) {
            bail!("{option} is for eval reader");
        }
    }
    if args.suite != Suite::Nuggets && (args.nuggets.key_points.is_some() || args.nuggets.matching.is_some())
    {
        bail!("--key-points and --matching are for eval nuggets");
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
    if (args.framing.pairs.is_some() || args.framing.persona.is_some()) && args.suite != Suite::Framing {
        bail!("--pairs and --persona are for eval framing");
    }
    if (args.framing.times.is_some() || args.framing.by.is_some()) && args.suite != Suite::Ask {
        bail!("--times and --by are for eval ask");
    }
    if !args.edit.edits.is_empty() && args.suite != Suite::Edit {
        bail!("--edits is for eval edit");
    }
    let compares = args.baseline.is_some() || args.compare_to.is_some() || args.all_pairs;
    if compares
        && (args.correct.is_some() || !matches!(args.suite, Suite::Berds | Suite::Coverage | Suite::Trec))
    {
        bail!(
            "--baseline, --compare-to and --all-pairs are for eval berds, coverage and trec, without --correct"
        );
    }
    if let Some(run) = args.compare_to.as_ref().filter(|recipe| recipe.run().is_none()) {
        bail!("--compare-to {run}: expected a finished run, run:FILE; --baseline names any other lane");
    }
    if args.target != Target::default() && args.correct.is_none() {
        bail!("--target is for --correct");
    }
    if args.attribute.is_some() && !matches!(args.suite, Suite::Bias | Suite::Pir) {
        bail!("--attribute is for eval bias and pir");
    }
    if !args.measures.is_empty() && !matches!(args.suite, Suite::Trec | Suite::Berds) {
        bail!(
            "--measures is for eval trec and eval berds; coverage has Cover, sycophancy Lean and Shift, pir pRecall, reader EM"
        );
    }
    // Before the measuring, which may take hours.
    args.out.as_deref().map(provenance::check).transpose()?;
    if args.per_question.is_some() && !BY_QUESTION.contains(&args.format) {
        bail!(NOT_BY_QUESTION);
    }
    let sets = each(common, args)?;
    if args.layout == Layout::Wide {
        if args.per_question.is_some() || !thresholds.is_empty() {
            bail!(
                "--per-question and --fail-under read a table with a row for each lane; leave --layout wide out"
            );
        }
        if sets.len() < 2 {
            bail!("--layout wide is for several sets; name them with --set or --questions");
        }
    }
    let mut folders = args.write.iter().chain(&args.plots);
    if let Some(folder) = folders.find(|path| path.exists() && !path.is_dir()) {
        bail!("{}: a file; expected a folder", folder.display());
    }
    if !args.tune.is_empty() && args.suite != Suite::Berds {
        bail!("--tune is for eval berds");
    }
    let costs = matches!(args.suite, Suite::Berds | Suite::Coverage | Suite::Trec) && args.correct.is_none();
    if args.cost && !(costs && common.corpus.as_deref() != Some(Path::new(WEB))) {
        bail!("--cost is for eval berds, coverage and trec over one corpus, without --correct");
    }
    let mut tables = Vec::new();
    let several = common.questions.len() > 1;
    for (at, (set, common)) in sets.into_iter().enumerate() {
        let qrels = args.sets.get(at).and_then(|set| set.qrels.as_ref()).or(args.qrels.as_ref());
        let table = match (&args.correct, args.suite) {
            (Some(folder), _) => corrected::table(&common, args, folder)?,
            (None, Suite::Trec) => trec::table(&common, args, qrels, several)?,
            _ if common.corpus.as_deref() == Some(Path::new(WEB)) => of_web(&common, args)?,
            (None, Suite::Berds) if !args.tune.is_empty() => tuned(&common, args)?,
            (None, Suite::Berds) => berds::berds(&common, args, args.write.as_deref())?,
            (None, Suite::Pir) => pir::table(&common, args)?,
            (None, Suite::Extract) => edit::extract::table(&common, args)?,
            (None, Suite::Coverage) => berds::coverage(&common, args)?,
            (None, Suite::Bias) => bias::table(&common, args)?,
            (None, Suite::Answer) => answer::table(&common, args)?,
            (None, Suite::Mix) => mix::table(&common, args)?,
            (None, Suite::Nuggets) => nuggets::table(&common, args)?,
            (None, Suite::Reader) => reader::table(&common, args)?,
            (None, Suite::Sycophancy) => berds::sycophancy(&common, args)?,
            (None, Suite::Framing) => framing::table(&common, args)?,
            (None, Suite::Ask) => framing::ask(&common, args)?,
            (None, Suite::Edit) => edit::table(&common, args)?,
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
    let mut table = match args.layout {
        Layout::Wide => {
            for (name, table) in &mut tables {
                table.set = Some(name.clone());
            }
            let compared = tables.iter().map(|(_, table)| compared(table, args));
            let compared = compared.collect::<Result<Vec<_>, _>>()?;
            let places = args.sets.iter().map(|set| (set.corpus_name(), set.name.clone()));
            // Without --set, all sets are asked of one corpus.
            let own = common.corpus.as_deref().map_or_else(|| "sample".into(), set_name);
            let places = places.chain(tables.iter().map(|(name, _)| (own.clone(), name.clone())));
            let tables = places.zip(tables.iter().map(|(_, table)| table.clone())).collect();
            Table { further: compared.into_iter().flatten().collect(), ..wide(tables)? }
        }
        Layout::Stacked => averaged(tables)?,
    };
    let further = compared(&table, args)?;
    table.further.extend(further);
    let text = format_table(&table, args.format, args.per_question.as_deref())?;
    match &args.out {
        Some(path) => provenance::write(path, &text, &table.json())?,
        None => safe::stdout().write_all(text.as_bytes())?,
    }
    if let Some(folder) = args.write.as_ref().filter(|_| args.suite == Suite::Berds) {
        lists::put(folder, "table.json", format!("{:#}\n", table.json()).as_bytes())?;
    }
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

/// Chooses each lane's parameters on the development set by the first measure, and measures the plain lanes and the chosen forms. The
/// table below has the development set's means of all forms (Chen and Choi, Table 8). `None` if the user interrupted.
fn tuned(common: &Common, args: &Eval) -> anyhow::Result<Option<Table>> {
    let plain = common.recipes();
    let mut forms: Vec<(usize, String, Recipe)> = Vec::new();
    for Tune { switch, values } in &args.tune {
        for (lane, recipe) in plain.iter().enumerate() {
            for value in values {
                match format!("{recipe}+{switch}@{value}").parse::<Recipe>() {
                    Ok(form) => forms.push((lane, format!("{switch}@{value}"), form)),
                    Err(error) => bail!("--tune: {error}"),
                }
            }
        }
    }
    let lanes = |recipes: Vec<Recipe>, questions: Vec<PathBuf>, labels: Vec<String>| Common {
        lane: recipes,
        lanes: Vec::new(),
        questions,
        labels,
        ..common.clone()
    };
    let all: Vec<Recipe> = plain.iter().cloned().chain(forms.iter().map(|(.., form)| form.clone())).collect();
    let labels = args.dev_labels.clone().map_or_else(|| common.labels.clone(), |labels| vec![labels]);
    let dev = lanes(all, args.dev.iter().cloned().collect(), labels);
    // The folder of --write is for the lists over the test questions.
    let Some(dev) = berds::berds(&dev, args, None)? else { return Ok(None) };
    let Some(measure) = dev.columns.first().map(|head| head.name.clone()) else { return Ok(None) };
    // The rows are in the order of the lanes: the plain ones, then the forms.
    let cell = |row: usize| dev.rows.get(row).and_then(|row| row.cells.first().cloned().flatten());
    // A form without a value is worse than any other.
    let mean = |row: usize| cell(row).map_or(f64::NEG_INFINITY, |cell| cell.mean);
    let mut names: Vec<String> = Vec::new();
    for (_, name, _) in &forms {
        if !names.contains(name) {
            names.push(name.clone());
        }
    }
    let (mut chosen, mut rows, mut notes) = (Vec::new(), Vec::new(), Vec::new());
    for (lane, recipe) in plain.iter().enumerate() {
        let own = || forms.iter().enumerate().filter(|(_, (of, ..))| *of == lane);
        chosen.push(recipe.clone());
        for Tune { switch, .. } in &args.tune {
            let of_switch = own().filter(|(_, (_, name, _))| name.split('@').next() == Some(switch));
            // Of equal means the first counts.
            let best = of_switch.reduce(|best, other| {
                if mean(plain.len() + other.0) > mean(plain.len() + best.0) { other } else { best }
            });
            if let Some((at, (_, name, form))) = best {
                notes.push(match cell(plain.len() + at) {
                    Some(cell) => {
                        format!("{recipe}: {name}, {measure} {:.4} on the development set", cell.mean)
                    }
                    None => format!(
                        "{recipe}: {name}, the first, because none has a value on the development set"
                    ),
                });
                chosen.push(form.clone());
            }
        }
        let cells = names.iter().map(|name| {
            let (at, _) = own().find(|(_, (_, own, _))| own == name)?;
            cell(plain.len() + at)
        });
        let cells = std::iter::once(cell(lane)).chain(cells).collect();
        // All forms of the lane together.
        let all: Vec<usize> = std::iter::once(lane).chain(own().map(|(at, _)| plain.len() + at)).collect();
        let share = |of: fn(&Row) -> Option<f64>| {
            let sum = all.iter().map(|row| of(dev.rows.get(*row)?)).sum::<Option<f64>>();
            sum.map(|sum| sum / all.len() as f64)
        };
        let (judged, by_model) = (share(|row| row.judged), share(|row| row.by_model));
        rows.push(Row { lane: recipe.to_string(), cells, judged, by_model, ..Row::default() });
    }
    let test = lanes(chosen, common.questions.clone(), common.labels.clone());
    let Some(mut table) = berds::berds(&test, args, args.write.as_deref())? else { return Ok(None) };
    let heads = std::iter::once("plain".to_owned()).chain(names);
    notes.push(format!("{measure} on the development set; of each switch the parameter with the greatest mean is measured above, of equal ones the first"));
    let choice = Table {
        suite: "berds-tuned",
        columns: heads.map(Head::from).collect(),
        rows,
        questions: dev.questions,
        k: dev.k,
        label_source: dev.label_source,
        caution: dev.caution,
        notes,
        provenance: dev.provenance,
        ..Table::default()
    };
    table.further.insert(0, choice);
    Ok(Some(table))
}

/// The table of questions that have a corpus each, made by `corpus from-web`. Each is measured on its own corpus; then their values are
/// put together. `None` if the user interrupted.
fn of_web(common: &Common, args: &Eval) -> anyhow::Result<Option<Table>> {
    if !matches!(args.suite, Suite::Berds | Suite::Coverage) || !args.tune.is_empty() || args.write.is_some()
    {
        bail!("`--corpus web:` is for eval berds and eval coverage, without --tune and --write");
    }
    let Some(file) = common.questions.first() else {
        bail!("`--corpus web:` needs the questions whose corpora were made; name them with --questions");
    };
    let (data, folder) = (common.opening().data_dir, tempfile::tempdir()?);
    let (mut tables, mut lacking) = (Vec::new(), Vec::new());
    for (number, question) in question::set::read(file)?.into_iter().enumerate() {
        let corpus = web::place(&data, &corpus_name(&question.text))?.join(web::CORPUS);
        if !corpus.is_file() {
            lacking.push(question.id);
            continue;
        }
        let own = folder.path().join(format!("{number}.jsonl"));
        fs::write(&own, serde_json::to_string(&question)?)?;
        let common = Common { corpus: Some(corpus), questions: vec![own], ..common.clone() };
        let table = match args.suite {
            Suite::Coverage => berds::coverage(&common, args)?,
            _ => berds::berds(&common, args, None)?,
        };
        let Some(table) = table else { return Ok(None) };
        tables.push(table);
    }
    if tables.is_empty() {
        bail!(
            "no question of {} has a corpus from the web; make them with `parallax corpus from-web --questions`",
            file.display()
        );
    }
    let mut table = put_together(tables)?;
    if !lacking.is_empty() {
        let (count, first) = (lacking.len(), lacking.iter().take(5).cloned().collect::<Vec<_>>().join(", "));
        table.notes.insert(
            0,
            format!(
                "{count} {} no corpus and {} in no mean: {first}{}",
                if count > 1 { "questions have" } else { "question has" },
                if count > 1 { "are" } else { "is" },
                if count > 5 { " …" } else { "" }
            ),
        );
    }
    Ok(Some(table))
}

/// The comparisons that the user asked for: of this table and of those of its sets, where they have values by question.
fn compared(table: &Table, args: &Eval) -> anyhow::Result<Vec<Table>> {
    let of_sets = table.further.iter().filter(|below| below.suite == table.suite);
    let mut made = Vec::new();
    for own in std::iter::once(table).chain(of_sets) {
        let base = own.rows.iter().position(|row| Some(&row.lane) == own.baseline.as_ref());
        made.extend(estimates::comparisons(own, &pairs(args.all_pairs, base, own.rows.len()))?);
    }
    Ok(made)
}

/// The formats that have a row per question and lane.
const BY_QUESTION: [TableFormat; 3] = [TableFormat::Text, TableFormat::Tsv, TableFormat::Json];
const NOT_BY_QUESTION: &str = "--per-question prints text, tsv or json; choose one of them with --format";

/// The table in a format. If `per_question` is set, it has one row per question and lane, sorted by that measure if it names one.
fn format_table(table: &Table, format: TableFormat, per_question: Option<&str>) -> anyhow::Result<String> {
    if let Some(measure) = per_question {
        let rows = PerQuestion::of(table, measure)?;
        return Ok(match format {
            TableFormat::Json => safe::json(&rows.json())?,
            TableFormat::Tsv => rows.tsv(),
            TableFormat::Text => rows.text(),
            TableFormat::Md | TableFormat::Latex | TableFormat::Html => bail!(NOT_BY_QUESTION),
        });
    }
    formatted(table, format)
}

/// A table in a format.
///
/// # Errors
/// It cannot be written as JSON.
pub fn formatted(table: &Table, format: TableFormat) -> anyhow::Result<String> {
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
    let ordered = |recipe: Recipe| ordered(recipe, args.ties);
    let run = |path: &PathBuf| Base::Run(RunFile { path: path.clone(), order: RunOrder::AsGiven }).into();
    let lanes = args.runs.iter().map(run).chain(common.lanes.iter().cloned());
    // Without lanes of the user's own, the default lanes stay beside the run.
    let more: Vec<Recipe> = match &args.compare_to {
        None => Vec::new(),
        Some(run) if common.lane.is_empty() && common.lanes.is_empty() && args.runs.is_empty() => {
            common.recipes().into_iter().chain([run.clone()]).collect()
        }
        Some(run) => vec![run.clone()],
    };
    Common {
        lanes: lanes.map(ordered).collect(),
        lane: common.lane.iter().cloned().chain(more).map(ordered).collect(),
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
