//! `eval extract`: how well the perspective is found in a query of PIR (Zhao et al., Table 6): by the rule for PIR's templates, and by a
//! language model if there is one. Scored by QA-F1 against the perspectives of the tasks.

use std::collections::HashMap;

use anyhow::bail;
use serde_json::json;

use crate::cli::eval::args::{Eval, check_thresholds};
use crate::cli::eval::pir::read_tasks;
use crate::cli::job::{Meter, by_job, stop_on_signal};
use crate::cli::options::Common;
use crate::engine::readers;
use crate::llm::{Chat, ChatError, Job as PromptJob, Prompts};
use crate::measure::pir::qa_f1;
use crate::question::pir::{Task, split};
use crate::report::means::{Values, rows};
use crate::report::table::{Head, Table};
use crate::work::{Job, Progress, Stop};

/// The name of the rule's row.
const RULE: &str = "rule";

/// What a row finds in one query, or why it failed.
type Found = Result<Option<String>, String>;

/// Returns the table, or `None` if the user interrupted.
///
/// # Errors
/// A task file is not valid, or the language model cannot be opened.
pub fn table(common: &Common, args: &Eval) -> anyhow::Result<Option<Table>> {
    if common.questions.is_empty() {
        bail!(
            "eval extract needs tasks of PIR: --questions FILE, such as the authors' demo_pir_dataset.json"
        );
    }
    if !common.named_recipes().is_empty() {
        bail!("eval extract finds perspectives in queries and searches nothing; leave --lane out");
    }
    let tasks = read_tasks(&common.questions)?;
    let golds = golds(&tasks);
    if golds.is_empty() {
        bail!("no query of these tasks has a perspective, so nothing can be compared");
    }
    let (stop, meter) = (stop_on_signal()?, Meter::default());
    let (chat, prompts) = (readers(&common.opening())?.0, Prompts::with(&common.prompts)?);
    let names: Vec<String> =
        std::iter::once(RULE).chain(chat.as_ref().map(|chat| chat.model())).map(str::to_owned).collect();
    check_thresholds(args, names.iter().cloned())?;
    let mut found: Vec<Vec<Found>> = vec![Vec::new(); names.len()];
    let mut unreachable = None;
    for (done, one) in golds.iter().enumerate() {
        meter.show(Progress { job: Job::Measuring, done: done as u64, total: golds.len() as u64 });
        found[0].push(Ok(split(one.query).map(|(perspective, _)| perspective.to_owned())));
        let Some(chat) = &chat else { continue };
        found[1].push(match &unreachable {
            // If the server cannot be reached, every further query would wait until its timeout.
            Some(reason) => Err(String::clone(reason)),
            None => match ask(chat.as_ref(), &prompts, one.query, &stop) {
                Ok(text) => Ok(text),
                Err(ChatError::Stopped(_)) => return Ok(None),
                Err(error) => {
                    unreachable = matches!(error, ChatError::Unreachable(_)).then(|| error.to_string());
                    Err(error.to_string())
                }
            },
        });
    }
    meter.show(Progress { job: Job::Measuring, done: golds.len() as u64, total: golds.len() as u64 });
    let mut notes = vec![
        format!(
            "QA-F1: shared words over all words of the perspective found and the gold one, the best of a query's; {} queries",
            golds.len()
        ),
        "found: the share of queries in which a perspective was found; a query without one scores 0".into(),
    ];
    if chat.is_none() {
        notes.push("the rule knows PIR's templates alone; give a language model with --llm or recorded replies with --replies".into());
    }
    let score = |(one, found): (&Gold<'_>, &Found)| match found {
        Ok(Some(text)) => qa_f1(text, &one.perspectives),
        _ => 0.0,
    };
    let is_found = |found: &Found| f64::from(u8::from(matches!(found, Ok(Some(_)))));
    let mut values: Vec<Vec<Values>> = Vec::new();
    for own in &found {
        let all: Vec<f64> = golds.iter().zip(own).map(score).collect();
        let of = |task: usize| {
            let one = |(one, value): (&Gold<'_>, &f64)| (one.task == task).then_some(*value);
            golds.iter().zip(&all).map(one).collect::<Values>()
        };
        let mut columns: Vec<Values> = (0..tasks.len()).map(of).collect();
        columns.push(all.iter().copied().map(Some).collect());
        columns.push(own.iter().map(|found| Some(is_found(found))).collect());
        values.push(columns);
    }
    let failed = found.iter().map(|own| {
        let one = |(one, found): (&Gold<'_>, &Found)| Some((one.id.clone(), found.as_ref().err()?.clone()));
        golds.iter().zip(own).filter_map(one).collect()
    });
    let count = names.len();
    let mut provenance =
        json!({"version": env!("CARGO_PKG_VERSION"), "models": {"llm": names.get(1)}, "seed": 0});
    if let Some(used) = by_job(&prompts, if chat.is_some() { &[PromptJob::Extract] } else { &[] }) {
        provenance["prompts"] = used;
    }
    Ok(Some(Table {
        suite: "extract",
        columns: tasks
            .iter()
            .map(|task| Head::from(format!("{}/QA-F1", task.name)))
            .chain(["QA-F1", "found"].map(Head::plotted))
            .collect(),
        rows: rows(names, values, &vec![None; count], failed.collect(), vec![(0, 0); count])?,
        questions: golds.len(),
        question_ids: golds.iter().map(|one| one.id.clone()).collect(),
        label_source: "perspectives".into(),
        notes,
        provenance,
        ..Table::default()
    }))
}

/// A query with the perspectives that its rows give it.
struct Gold<'a> {
    task: usize,
    id: String,
    query: &'a str,
    perspectives: Vec<&'a str>,
}

/// The distinct queries of every task that have a perspective beside themselves.
fn golds(tasks: &[Task]) -> Vec<Gold<'_>> {
    let (mut all, mut places) = (Vec::<Gold<'_>>::new(), HashMap::new());
    for (task, of) in tasks.iter().enumerate() {
        for (row, own) in of.rows.iter().enumerate() {
            let Some(perspective) = own.perspective.as_deref().filter(|text| *text != own.query) else {
                continue;
            };
            let place = *places.entry((task, own.query.as_str())).or_insert_with(|| {
                let id = format!("{}/{row}", of.name);
                all.push(Gold { task, id, query: &own.query, perspectives: Vec::new() });
                all.len() - 1
            });
            all[place].perspectives.push(perspective);
        }
    }
    all
}

/// The first line of the model's reply that says something, without quotes.
fn ask(chat: &dyn Chat, prompts: &Prompts, query: &str, stop: &Stop) -> Result<Option<String>, ChatError> {
    let request = prompts.get(PromptJob::Extract).request(&[("question", query)], 0);
    let reply = chat.reply(&request, stop)?;
    let line = reply.answer().lines().map(str::trim).find(|line| !line.is_empty()).unwrap_or_default();
    let line = line.strip_prefix("Perspective:").unwrap_or(line).trim().trim_matches(['"', '“', '”']);
    Ok(Some(line.to_owned()).filter(|line| !line.is_empty() && !line.eq_ignore_ascii_case("none")))
}
