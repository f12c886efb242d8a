//! Questions that bring their passages, read one after another: what the reader said at every depth, from every probe, and from the
//! gold passage with others added.

use std::collections::HashMap;
use std::path::Path;

use anyhow::bail;

use super::super::super::args::{Common, Eval};
use super::super::super::interrupt::stop_on_interrupt;
use super::super::super::progress::Meter;
use super::super::under;
use super::figures::{self, Judge};
use crate::llm::Chat;
use crate::pipeline::readers;
use crate::read::equivalence::widened;
use crate::read::files::{self, Case};
use crate::read::incremental::{each_k, from_kept, pattern};
use crate::read::probe::Probe;
use crate::read::stability::{Added, added, unstable};
use crate::read::{Answer, Pattern, ReadError, Reader, answer};
use crate::report::table::Table;
use crate::work::{Job, Progress, Stop};

/// What was read of one question.
#[derive(Default)]
pub struct Read {
    /// The answers from the first 1 … k.
    pub answers: Vec<Answer>,
    /// Right or wrong at every depth.
    pub pattern: Pattern,
    /// The same by the model's judgement.
    pub judged: Option<(Pattern, Judge)>,
    /// Every probe's answer from its first 1 … k: right or wrong, and how many it keeps; none where no such answer was recorded.
    pub probes: Vec<(usize, Vec<Option<bool>>)>,
    /// Whether the answer differs once 1 … n passages are added, for both sources.
    pub unstable: [Option<Vec<bool>>; 2],
}

/// The table, or nothing where the user interrupted.
pub fn table(common: &Common, args: &Eval, path: &Path) -> anyhow::Result<Option<Table>> {
    if !common.recipes_given().is_empty() {
        bail!("{} brings its passages: lanes are for questions without; leave --lane out", path.display());
    }
    let (stop, meter) = (stop_on_interrupt()?, Meter::default());
    let all = files::read(path)?;
    let (chat, reader) = readers(&common.opening())?;
    let k = usize::from(common.k);
    let rows = [reader.as_ref().map_or(figures::HELD, |reader| reader.name()).to_owned()];
    under::known(args, rows)?;
    let (questions, passages) = (all.len(), all.iter().map(|case| case.passages.len()).sum::<usize>());
    let cases: Vec<Case> = all.into_iter().filter(|case| !case.gold.is_empty()).collect();
    if cases.is_empty() {
        bail!(
            "{}: no question has a gold answer, so that nothing can be right or wrong; add some",
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
        return Ok(Some(figures::table(&cases, &[], &[], None, k, notes)?));
    };
    let (mut read, mut failed) = (Vec::new(), Vec::new());
    let mut gone: Option<String> = None;
    for (at, case) in cases.iter().enumerate() {
        meter.tell(Progress { job: Job::Measuring, done: at as u64, total: cases.len() as u64 });
        let one = match &gone {
            // Every further question to a server that is not there would wait for its time to run out.
            Some(reason) => Err(reason.clone()),
            None => match one(reader.as_ref(), chat.as_deref(), &cases, at, k, &stop) {
                Ok(read) => Ok(read),
                Err(error) if error.is_stop() => return Ok(None),
                Err(error) => {
                    gone = error.is_lasting().then(|| error.to_string());
                    Err(error.to_string())
                }
            },
        };
        read.push(one.unwrap_or_else(|reason| {
            failed.push((case.id.clone(), reason));
            let depth = case.passages.len().min(k);
            Read { pattern: (0..depth).map(|_| false).collect(), ..Read::default() }
        }));
    }
    meter.tell(Progress { job: Job::Measuring, done: cases.len() as u64, total: cases.len() as u64 });
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
    Ok(Some(figures::table(&cases, &read, &failed, Some(reader.as_ref()), k, notes)?))
}

/// Reads one question in every way.
fn one(
    reader: &dyn Reader,
    chat: Option<&dyn Chat>,
    cases: &[Case],
    at: usize,
    k: usize,
    stop: &Stop,
) -> Result<Read, ReadError> {
    let case = &cases[at];
    let passages = &case.passages[..case.passages.len().min(k)];
    let answers = each_k(reader, &case.question, passages, 0, stop, &mut |_, _| {})?;
    let pattern = pattern(&answers, &case.gold);
    let judged = match chat {
        None => None,
        Some(chat) => {
            let wider = widened(chat, &case.question, &answers, &case.gold, stop)?;
            let judge = Judge { added: wider.added, discarded: wider.discarded };
            Some((self::pattern(&answers, &wider.gold), judge))
        }
    };
    // Two probes often keep the same passages: these are read once.
    let mut known: HashMap<Vec<usize>, Option<Answer>> =
        answers.iter().enumerate().map(|(i, answer)| ((0..=i).collect(), Some(answer.clone()))).collect();
    let mut probes = Vec::new();
    for probe in Probe::all() {
        let kept = probe.keep(&pattern.effects());
        let mut right = Vec::new();
        for size in 1..=k {
            let kept = &kept[..kept.len().min(size)];
            if !known.contains_key(kept) {
                let answer = from_kept(reader, &case.question, passages, kept, stop);
                known.insert(kept.to_vec(), optional(answer)?);
            }
            let answer = known.get(kept).and_then(Option::as_ref);
            right.push(answer.map(|said| answer::matches(&said.text, &case.gold)));
        }
        probes.push((kept.len(), right));
    }
    let stable = |from| optional(unstable(reader, case, &added(cases, at, from), stop)).map(Option::flatten);
    let unstable = [stable(Added::Retrieved)?, stable(Added::Random)?];
    Ok(Read { answers, pattern, judged, probes, unstable })
}

/// What was not recorded is not there, and no failure of the question's own reading.
fn optional<T>(answer: Result<T, ReadError>) -> Result<Option<T>, ReadError> {
    match answer {
        Ok(answer) => Ok(Some(answer)),
        Err(ReadError::NotRecorded(_)) => Ok(None),
        Err(error) => Err(error),
    }
}
