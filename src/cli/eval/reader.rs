//! `eval reader`: what a reader concludes from the first k. Questions with passages and gold answers are read one after another
//! (Oh and Thorne). A question of two sides is answered by the stance that its passages take together.

use std::collections::HashMap;
use std::path::Path;

use anyhow::bail;

use crate::cli::eval::args::{Eval, check_thresholds};
use crate::cli::eval::lanes::{LaneNotes, Lanes};
use crate::cli::job::{Meter, by_job, stop_on_signal};
use crate::cli::options::Common;
use crate::engine::{Depth, Shares, StanceTimeline, readers};
use crate::llm::{Chat, Job as PromptJob, Prompts};
use crate::read::files::{self, Case};
use crate::read::incremental::{Added, added, unstable};
use crate::read::incremental::{each_k, from_places, pattern};
use crate::read::pattern::Probe;
use crate::read::pattern::Stance;
use crate::read::prompted::widen_gold;
use crate::read::{Answer, ReadError, Reader, reader};
use crate::report::means::{Values, rows};
use crate::report::reading::{self, Judge, ReadCase};
use crate::report::table::{Head, Table};
use crate::work::{Job, Progress, Stop};

/// Returns the table, or `None` if the user interrupted.
pub fn table(common: &Common, args: &Eval) -> anyhow::Result<Option<Table>> {
    match common.questions.first() {
        Some(path) if files::is_reading(path)? => read_cases(common, args, path),
        _ => stances(common, args),
    }
}

/// Returns the table, or `None` if the user interrupted.
fn read_cases(common: &Common, args: &Eval, path: &Path) -> anyhow::Result<Option<Table>> {
    if !common.named_recipes().is_empty() {
        bail!(
            "{} has its own passages: lanes are for questions without passages; leave --lane out",
            path.display()
        );
    }
    let (stop, meter) = (stop_on_signal()?, Meter::default());
    let all = files::read(path)?;
    let (chat, reader) = readers(&common.opening())?;
    let prompts = Prompts::with(&common.prompts)?;
    let judge = chat.as_deref().map(|chat| (chat, &prompts));
    let k = usize::from(common.k);
    let rows = [reader.as_ref().map_or(reading::HELD, |reader| reader.name()).to_owned()];
    check_thresholds(args, rows)?;
    let (questions, passages) = (all.len(), all.iter().map(|case| case.passages.len()).sum::<usize>());
    let cases: Vec<Case> = all.into_iter().filter(|case| !case.gold.is_empty()).collect();
    if cases.is_empty() {
        bail!(
            "{}: no question has a gold answer, so no answer can be right or wrong; add some",
            path.display()
        );
    }
    let mut notes = vec![format!("{questions} questions, {passages} passages; read to k = {k}")];
    if cases.len() < questions {
        notes.push(format!("{} questions have no gold answer and are left out", questions - cases.len()));
    }
    let Some(reader) = reader else {
        notes.push(
            "nothing was read: give a model with --reader or --llm, or recorded answers with --answers"
                .into(),
        );
        return Ok(Some(reading::table(&cases, &[], &[], None, k, notes)?));
    };
    let (mut read, mut failed) = (Vec::new(), Vec::new());
    let mut unreachable: Option<String> = None;
    for (at, case) in cases.iter().enumerate() {
        meter.show(Progress { job: Job::Measuring, done: at as u64, total: cases.len() as u64 });
        let one = match &unreachable {
            // If the server cannot be reached, every further question would wait until its timeout.
            Some(reason) => Err(reason.clone()),
            None => match read_case(reader.as_ref(), judge, &cases, at, k, &stop) {
                Ok(read) => Ok(read),
                Err(error) if error.is_stop() => return Ok(None),
                Err(error) => {
                    unreachable = error.is_lasting().then(|| error.to_string());
                    Err(error.to_string())
                }
            },
        };
        read.push(one.unwrap_or_else(|reason| {
            failed.push((case.id.clone(), reason));
            let depth = case.passages.len().min(k);
            ReadCase { pattern: (0..depth).map(|_| false).collect(), ..ReadCase::default() }
        }));
    }
    meter.show(Progress { job: Job::Measuring, done: cases.len() as u64, total: cases.len() as u64 });
    if reader.recorded() {
        notes.push("the answers were recorded before".into());
    }
    if let Some(chat) = &chat {
        notes
            .push(format!("SeEM, SeAcEM: {} judged which answers mean the same as a gold one", chat.model()));
    }
    if reader.order_sensitive() {
        notes.push("the order of the passages matters to this reader".into());
    }
    let mut table = reading::table(&cases, &read, &failed, Some(reader.as_ref()), k, notes)?;
    let jobs: &[PromptJob] = match (&chat, common.reads()) {
        (None, _) => &[],
        (Some(_), Some(_)) => &[PromptJob::SameAnswer],
        (Some(_), None) => &[PromptJob::Read, PromptJob::ReadAlone, PromptJob::SameAnswer],
    };
    if let Some(prompts) = by_job(&prompts, jobs) {
        table.provenance["prompts"] = prompts;
    }
    Ok(Some(table))
}

/// Reads one question at every depth, with every probe, and with passages added.
fn read_case(
    reader: &dyn Reader,
    judge: Option<(&dyn Chat, &Prompts)>,
    cases: &[Case],
    at: usize,
    k: usize,
    stop: &Stop,
) -> Result<ReadCase, ReadError> {
    let case = &cases[at];
    let passages = &case.passages[..case.passages.len().min(k)];
    let answers = each_k(reader, &case.question, passages, 0, stop, &mut |_, _| {})?;
    let own = pattern(&answers, &case.gold);
    let judged = match judge {
        None => None,
        Some((chat, prompts)) => {
            let wider = widen_gold(chat, prompts, &case.question, &answers, &case.gold, stop)?;
            let judge = Judge { added: wider.added, discarded: wider.discarded };
            Some((pattern(&answers, &wider.gold), judge))
        }
    };
    // Two probes often keep the same passages, which are then read only once.
    let mut known: HashMap<Vec<usize>, Option<Answer>> =
        answers.iter().enumerate().map(|(i, answer)| ((0..=i).collect(), Some(answer.clone()))).collect();
    let mut probes = Vec::new();
    for probe in Probe::all() {
        let mut right = Vec::new();
        for size in 1..=k {
            let kept = probe.at_most(size).keep(&own.effects());
            if !known.contains_key(&kept) {
                let answer = from_places(reader, &case.question, passages, &kept, stop);
                known.insert(kept.clone(), if_recorded(answer)?);
            }
            let answer = known.get(&kept).and_then(Option::as_ref);
            right.push(answer.map(|said| reader::matches(&said.text, &case.gold)));
        }
        probes.push((probe.keep(&own.effects()).len(), right));
    }
    let stable =
        |from| if_recorded(unstable(reader, case, &added(cases, at, from), stop)).map(Option::flatten);
    let unstable = [stable(Added::Retrieved)?, stable(Added::Random)?];
    Ok(ReadCase { answers, pattern: own, judged, probes, unstable })
}

/// `None` if an answer was not recorded, which is not an error here.
fn if_recorded<T>(answer: Result<T, ReadError>) -> Result<Option<T>, ReadError> {
    match answer {
        Ok(answer) => Ok(Some(answer)),
        Err(ReadError::NotRecorded(_)) => Ok(None),
        Err(error) => Err(error),
    }
}

const STANCES: [(Stance, &str); 4] = [
    (Stance::Supports, "supports"),
    (Stance::Opposes, "opposes"),
    (Stance::Balanced, "balanced"),
    (Stance::Silent, "silent"),
];

/// Returns the table, or `None` if the user interrupted.
fn stances(common: &Common, args: &Eval) -> anyhow::Result<Option<Table>> {
    if let Some(option) = common.reads() {
        anyhow::bail!(
            "{option} is for questions with passages and gold answers (FiD, RAMDocs, RetrievalQA); name such a file with --questions"
        );
    }
    let lanes = Lanes::open(common, args)?;
    check_thresholds(args, lanes.recipes.iter().map(ToString::to_string))?;
    let k = usize::from(common.k);
    let measured: Vec<_> = lanes
        .setup
        .questions
        .iter()
        .filter(|question| question.supports.is_some() && question.perspectives.len() == 2)
        .collect();
    let (maxima, count) = (lanes.maxima()?, lanes.recipes.len());
    let mut values: Vec<Vec<Values>> = vec![vec![Values::new(); STANCES.len() + 3]; count];
    let (mut failed, mut judged) = (vec![Vec::new(); count], vec![(0, 0); count]);
    let (mut lane_notes, mut shares) = (LaneNotes::default(), Shares::default());
    for (done, question) in measured.iter().enumerate() {
        lanes.show(done, measured.len());
        let outcome = lanes.run(question, k, Depth::Top, &maxima)?;
        if lanes.stop.is_set() {
            return Ok(None);
        }
        lane_notes.take(&outcome);
        shares = shares.plus(outcome.shares());
        for (lane, found) in outcome.lanes.iter().enumerate() {
            let top: Vec<_> = match &found.ranking {
                Ok(list) => list.iter().take(k).map(|ranked| ranked.at).collect(),
                Err(error) => {
                    failed[lane].push((question.id.clone(), error.to_string()));
                    Vec::new()
                }
            };
            let Some(timeline) = StanceTimeline::of(question, &outcome.judgments, &top) else { continue };
            judged[lane] = (judged[lane].0 + timeline.judged, judged[lane].1 + top.len());
            let is = |yes: bool| Some(f64::from(u8::from(yes)));
            let mut own: Vec<Option<f64>> = STANCES
                .iter()
                .map(|(stance, _)| is(found.ranking.is_ok() && timeline.last() == *stance))
                .collect();
            own.push(is(!timeline.turns.is_empty()));
            own.push(Some(timeline.turns.len() as f64));
            own.push(timeline.removed.map(|removed| removed.len() as f64));
            for (column, value) in own.into_iter().enumerate() {
                values[lane][column].push(value);
            }
        }
    }
    lanes.show(measured.len(), measured.len());
    let names = lanes.recipes.iter().map(ToString::to_string);
    let mut rows = rows(names, values, &lanes.plain_forms(), failed, judged)?;
    lane_notes.name(&mut rows);
    let mut columns: Vec<String> = STANCES.iter().map(|(_, name)| format!("{name}@{k}")).collect();
    columns.extend(["turned", "turns", "removed"].map(|name| format!("{name}@{k}")));
    Ok(Some(Table {
        columns: columns.into_iter().map(Head::from).collect(),
        rows,
        notes: [
            "the stance of the first k: passages weigh 1/log2(rank + 1), one for both sides half on either, one that is not judged for both statements none; balanced within a fifth of the whole"
                .to_owned(),
            "turned: a passage below the first changed the stance; turns: how many did; removed: the fewest of one side that must go for another stance, over the questions where that can be"
                .to_owned(),
        ]
        .into_iter()
        .chain(lane_notes.notes())
        .collect(),
        ..lanes.table("reader", measured.iter().copied(), k, shares)?
    }))
}
