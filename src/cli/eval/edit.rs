//! `eval edit`: passages of the first k with other words, one at a time. Whether the lane scores the edited passage above its original, and
//! how many ranks it moves: source bias, outlet, length, position, tone.

use anyhow::bail;

use crate::cli::eval::args::{EditArgs, Eval, check_thresholds};
use crate::cli::eval::lanes::Lanes;
use crate::cli::options::Common;
use crate::corpus::Passage;
use crate::engine::edit::{Draft, Rewriter, score_draft};
use crate::engine::recipe::Base;
use crate::engine::{Lists, Query, Shares, rank_lanes};
use crate::question::edits::Edit;
use crate::report::means::{Values, rows};
use crate::report::table::{Head, Table};

/// The edits that were asked for.
fn edits(common: &Common, args: &EditArgs) -> anyhow::Result<Vec<Edit>> {
    let all = || Edit::BY_RULE.into_iter().chain([Edit::Rewritten]);
    if args.edits.is_empty() {
        return Ok(all().filter(|edit| *edit != Edit::Rewritten || common.llm.is_some()).collect());
    }
    let read = |name: &String| match all().find(|edit| edit.name() == name.trim()) {
        Some(edit) => Ok(edit),
        None => {
            let names: Vec<&str> = all().map(Edit::name).collect();
            bail!("--edits: there is no edit `{}`, only {}", name.trim(), names.join(", "))
        }
    };
    args.edits.iter().map(read).collect()
}

/// Returns the table, or `None` if the user interrupted.
///
/// # Errors
/// An edit is unknown, a lane's scores are not made here, or nothing could be measured.
pub fn table(common: &Common, args: &Eval) -> anyhow::Result<Option<Table>> {
    let edits = edits(common, &args.edit)?;
    let lanes = Lanes::open(common, args)?;
    let k = usize::from(common.k);
    for recipe in &lanes.recipes {
        let is_scored_here = match recipe.base {
            Base::Bm25(_)
            | Base::MiniLm
            | Base::Custom(_)
            | Base::Sparse(_)
            | Base::Late(_)
            | Base::Hybrid => true,
            Base::Run(_) | Base::Remote(_) => false,
        };
        if !is_scored_here {
            bail!(
                "{recipe}: its scores are not made here, so an edited passage has none; name bm25, minilm, hybrid or another encoder"
            );
        }
        if *recipe != recipe.plain() {
            bail!(
                "{recipe}: eval edit scores single passages, and switches change lists; name {}",
                recipe.plain()
            );
        }
    }
    let names: Vec<String> = lanes
        .recipes
        .iter()
        .flat_map(|recipe| edits.iter().map(move |edit| format!("{recipe} {edit}")))
        .collect();
    check_thresholds(args, names.iter().cloned())?;
    let questions: Vec<_> = lanes.setup.questions.iter().collect();
    let mut values: Vec<Vec<Values>> = vec![vec![Values::new(); 3]; names.len()];
    let mut failed = vec![Vec::new(); names.len()];
    let mut rewriter = None;
    if edits.contains(&Edit::Rewritten) {
        rewriter = Some(Rewriter::new(&lanes.setup)?);
    }
    for (done, question) in questions.iter().enumerate() {
        lanes.show(done, questions.len());
        for (lane, recipe) in lanes.recipes.iter().enumerate() {
            let query =
                Query { question: (*question).clone(), lanes: vec![recipe.clone()], k, source: lanes.source };
            let first = rank_lanes(&lanes.setup, query, Lists::default(), &lanes.stop).into_iter().next();
            let list = first.map(|lane| lane.ranking);
            let mut lists = Lists::default();
            for (at, edit) in edits.iter().enumerate() {
                let row = lane * edits.len() + at;
                let (mut higher, mut moved, mut changed, mut of) = (0.0, 0.0, 0usize, 0usize);
                let list = match &list {
                    Some(Ok(list)) => list,
                    Some(Err(error)) if !error.is_stop() => {
                        failed[row].push((question.id.clone(), error.to_string()));
                        values[row].iter_mut().for_each(|values| values.push(None));
                        continue;
                    }
                    _ => return Ok(None),
                };
                for (place, own) in list.iter().take(k).enumerate() {
                    let edited = match (edit, &mut rewriter) {
                        (Edit::Rewritten, Some(rewriter)) => {
                            rewriter.rewrite(&own.passage, &lanes.stop).map(|own| own.map(|(text, _)| text))
                        }
                        (edit, _) => Ok(edit.of(&own.passage.text).ok()),
                    };
                    let mut score = |text: String| {
                        let passage = Passage { text, ..Passage::clone(&own.passage) };
                        let draft = Draft { at: own.at, passage, question: (*question).clone() };
                        score_draft(&lanes.setup, recipe, &draft, &mut lists, &lanes.stop)
                    };
                    let scored = edited.and_then(|text| text.map(&mut score).transpose());
                    if lanes.stop.is_set() {
                        return Ok(None);
                    }
                    let scored = match scored {
                        Ok(scored) => scored,
                        Err(error) => {
                            // The first reason of a question is enough.
                            if failed[row].last().is_none_or(|(id, _)| *id != question.id) {
                                failed[row].push((question.id.clone(), error.to_string()));
                            }
                            continue;
                        }
                    };
                    of += 1;
                    let Some(scored) = scored else { continue };
                    changed += 1;
                    higher += match scored.score.total_cmp(&own.score) {
                        std::cmp::Ordering::Greater => 1.0,
                        std::cmp::Ordering::Equal => 0.5,
                        std::cmp::Ordering::Less => 0.0,
                    };
                    let now = scored.rank.unwrap_or(scored.depth + 1);
                    moved += (place + 1) as f64 - now as f64;
                }
                let mean = |sum: f64| (changed > 0).then(|| sum / changed as f64);
                let share = (of > 0).then(|| changed as f64 / of as f64);
                let figures = [mean(higher), mean(moved), share];
                values[row].iter_mut().zip(figures).for_each(|(values, figure)| values.push(figure));
            }
        }
    }
    lanes.show(questions.len(), questions.len());
    let judged = vec![(0, 0); names.len()];
    let versus = vec![None; names.len()];
    let rows = rows(names, values, &versus, failed, judged)?;
    let notes = vec![
        format!(
            "of the first {k} passages, one at a time, the others as they are; higher: share of edited passages that the lane scores above \
             their original, equal scores half; ranks: ranks gained, below 0 lost, where a passage below the list counts as one below its \
             end; changed: share of the passages that the edit changes"
        ),
        "means over the questions with a passage that the edit changes; .5 and 0 are no bias".to_owned(),
    ];
    Ok(Some(Table {
        columns: vec![
            Head::plotted(format!("higher@{k}")),
            Head::plotted(format!("ranks@{k}")),
            Head::from(format!("changed@{k}")),
        ],
        rows,
        notes,
        ..lanes.table("edit", questions.iter().copied(), k, Shares::default())?
    }))
}

pub mod extract {
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
            "found: the share of queries in which a perspective was found; a query without one scores 0"
                .into(),
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
            let one =
                |(one, found): (&Gold<'_>, &Found)| Some((one.id.clone(), found.as_ref().err()?.clone()));
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
    fn ask(
        chat: &dyn Chat,
        prompts: &Prompts,
        query: &str,
        stop: &Stop,
    ) -> Result<Option<String>, ChatError> {
        let request = prompts.get(PromptJob::Extract).request(&[("question", query)], 0);
        let reply = chat.reply(&request, stop)?;
        let line = reply.answer().lines().map(str::trim).find(|line| !line.is_empty()).unwrap_or_default();
        let line = line.strip_prefix("Perspective:").unwrap_or(line).trim().trim_matches(['"', '“', '”']);
        Ok(Some(line.to_owned()).filter(|line| !line.is_empty() && !line.eq_ignore_ascii_case("none")))
    }
}
