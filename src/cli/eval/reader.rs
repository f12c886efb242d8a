//! `eval reader`: what a reader concludes from the first k. Questions with gold answers are read one after another, from the passages
//! that they bring or from those that lanes retrieve (Oh and Thorne). Without gold answers it prints which side the reader takes (`bias`).

use std::collections::HashMap;
use std::path::Path;
use std::sync::Arc;

use anyhow::bail;
use serde_json::json;

use crate::cli::eval::args::{Analysis, Eval, Negatives, check_thresholds};
use crate::cli::eval::bias;
use crate::cli::eval::lanes::{LaneNotes, Lanes};
use crate::cli::job::{Meter, by_job, stop_on_signal};
use crate::cli::options::Common;
use crate::corpus::{Corpus, Passage, PassageIx};
use crate::engine::{Query, readers};
use crate::llm::{Chat, Job as PromptJob, Prompts};
use crate::measure::seeded::SplitMix64;
use crate::question::{Question, set};
use crate::read::files::{self, Answers, Case};
use crate::read::incremental::{
    MOST, THRESHOLDS, Types, attended, each_k, from_places, pattern, ranked_after, reordered, stands,
    with_added, without, without_answer,
};
use crate::read::pattern::Probe;
use crate::read::prompted::widen_gold;
use crate::read::{Answer, Context, Effect, ReadError, Reader, reader};
use crate::report::analysis;
use crate::report::lists::{make_folder, put};
use crate::report::reading::{self, Attended, Judge, ReadCase, ReadLane, Study};
use crate::report::table::Table;
use crate::retrieve::bm25::{Bm25, TermRetriever};
use crate::retrieve::{Retriever, TermIndex};
use crate::work::{Job, Progress, Stop};

/// Returns the table, or `None` if the user interrupted.
pub fn table(common: &Common, args: &Eval) -> anyhow::Result<Option<Table>> {
    let Some(path) = common.questions.first() else { return bias::stances(common, args) };
    if files::is_reading(path)? {
        let all = files::read(path)?;
        let question = |case: &Case| set::question(case.id.clone(), &case.question, Vec::new(), None);
        let questions = all.iter().filter_map(|case| question(case).ok()).collect();
        return read_cases(common, args, path, (all, questions));
    }
    if common.reads().is_some() || common.llm.is_some() {
        let questions = set::read(path)?;
        let case = |question: &Question| Case {
            id: question.id.clone(),
            question: question.text.clone(),
            gold: question.answers.clone(),
            passages: Vec::new(),
            marked: Vec::new(),
        };
        if questions.iter().any(|question| !question.answers.is_empty()) {
            return read_cases(common, args, path, (questions.iter().map(case).collect(), questions));
        }
    }
    bias::stances(common, args)
}

/// What is done with every list.
struct Plan {
    k: usize,
    analyses: Vec<Analysis>,
    types: Option<Types>,
}

fn read_cases(
    common: &Common,
    args: &Eval,
    path: &Path,
    (all, questions): (Vec<Case>, Vec<Question>),
) -> anyhow::Result<Option<Table>> {
    let own = all.iter().any(|case| !case.passages.is_empty());
    let searched = !own || !common.named_recipes().is_empty();
    let no_corpus = common.corpus.is_none() && common.opening().runs.is_empty();
    if own && searched && no_corpus {
        bail!(
            "{} has its own passages: to search for its questions, name the passages with --corpus; to read its own, leave --lane out",
            path.display()
        );
    }
    let (stop, meter) = (stop_on_signal()?, Meter::default());
    let (chat, mut reader) = readers(&common.opening())?;
    if let (true, Some(path)) = (searched, &common.answers) {
        reader = Some(Arc::new(Answers::read(path)?.of_named_passages()));
    }
    let prompts = Prompts::with(&common.prompts)?;
    let judge = chat.as_deref().map(|chat| (chat, &prompts));
    let types = args.types.as_deref().map(Types::read).transpose()?;
    let plan = Plan { k: usize::from(common.k), analyses: args.analyse.clone(), types };
    let k = plan.k;
    let (asked, passages) = (all.len(), all.iter().map(|case| case.passages.len()).sum::<usize>());
    let (cases, questions): (Vec<Case>, Vec<Question>) =
        all.into_iter().zip(questions).filter(|(case, _)| !case.gold.is_empty()).unzip();
    if cases.is_empty() {
        bail!(
            "{}: no question has a gold answer, so no answer can be right or wrong; add some",
            path.display()
        );
    }
    let name = reader.as_ref().map_or(reading::HELD, |reader| reader.name()).to_owned();
    let mut notes = vec![format!("{asked} questions, {passages} passages; read to k = {k}")];
    if cases.len() < asked {
        notes.push(format!("{} questions have no gold answer and are left out", asked - cases.len()));
    }
    let from_corpus = common.corpus.is_some() && !args.negatives.is_empty();
    let opened = match searched || from_corpus {
        true => Some(Lanes::over(common, args, questions)?),
        false => None,
    };
    let (mut lanes, lane_notes) = match opened.as_ref().filter(|_| searched) {
        None => {
            check_thresholds(args, [name.clone()])?;
            let own = ReadLane { name, cases, read: Vec::new(), failed: Vec::new(), plain: None };
            (vec![own], LaneNotes::default())
        }
        Some(opened) => {
            check_thresholds(args, opened.recipes.iter().map(ToString::to_string))?;
            let Some(lanes) = retrieved(opened, &cases, k, &mut notes)? else { return Ok(None) };
            lanes
        }
    };
    let sources: Vec<String> = negatives_of(args).iter().map(|source| source.name().to_owned()).collect();
    let study = Study { reader: reader.as_deref(), k, sources };
    let Some(reader) = reader.as_deref() else {
        notes.push(
            "nothing was read: give a model with --reader or --llm, or recorded answers with --answers"
                .into(),
        );
        return Ok(Some(reading::table(&lanes, &study, notes)?));
    };
    let pool = Pool::of(opened.as_ref(), &lanes)?;
    let total = lanes.iter().map(|lane| lane.cases.len() as u64).sum();
    let mut unreachable: Option<String> = None;
    let mut done = 0;
    for lane in &mut lanes {
        for at in 0..lane.cases.len() {
            meter.show(Progress { job: Job::Measuring, done, total });
            done += 1;
            let case = &lane.cases[at];
            if lane.name == GOLD && case.passages.is_empty() {
                lane.read.push(ReadCase { left_out: true, ..ReadCase::default() });
                continue;
            }
            let failed = lane.failed.iter().any(|(id, _)| *id == case.id);
            let one = match &unreachable {
                _ if failed => Ok(ReadCase::unread(case, k)),
                // If the server cannot be reached, every further question would wait until its timeout.
                Some(reason) => Err(reason.clone()),
                None => {
                    let added = pool.negatives(args, lane, at, &stop)?;
                    match read_case(reader, judge, lane, at, (&plan, added), &stop) {
                        Ok(read) => Ok(read),
                        Err(error) if error.is_stop() => return Ok(None),
                        Err(error) => {
                            unreachable = error.is_lasting().then(|| error.to_string());
                            Err(error.to_string())
                        }
                    }
                }
            };
            let read = one.unwrap_or_else(|reason| {
                lane.failed.push((case.id.clone(), reason));
                ReadCase::unread(case, k)
            });
            lane.read.push(read);
        }
    }
    meter.show(Progress { job: Job::Measuring, done: total, total });
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
    let read = || lanes.iter().flat_map(|lane| &lane.read);
    if plan.analyses.contains(&Analysis::Attention) && read().all(|read| read.attention.is_none()) {
        notes.push("this reader has no attention to show; a Fusion-in-Decoder has".into());
    }
    let mut table = reading::table(&lanes, &study, notes)?;
    lane_notes.name(&mut table.rows);
    table.further.extend(analysis::tables(&lanes)?);
    let jobs: &[PromptJob] = match (&chat, common.reads()) {
        (None, _) => &[],
        (Some(_), Some(_)) => &[PromptJob::SameAnswer],
        (Some(_), None) => &[PromptJob::Read, PromptJob::ReadAlone, PromptJob::SameAnswer],
    };
    if let Some(prompts) = by_job(&prompts, jobs) {
        table.provenance["prompts"] = prompts;
    }
    if let Some(opened) = &opened {
        let corpus = &opened.setup.corpus;
        table.provenance["corpus"] =
            json!({"name": corpus.name, "passages": corpus.len(), "fingerprint": corpus.fingerprint.0});
    }
    if let Some(folder) = &args.write {
        make_folder(folder)?;
        for (name, text) in analysis::files(&lanes) {
            put(folder, name, text.as_bytes())?;
        }
    }
    Ok(Some(table))
}

/// The name of the row that reads the gold passage alone.
const GOLD: &str = "gold";

/// Retrieves the first k passages of every lane. If the questions bring gold passages, a row reads each of these alone. `None` if the
/// user interrupted.
fn retrieved(
    lanes: &Lanes,
    cases: &[Case],
    k: usize,
    notes: &mut Vec<String>,
) -> anyhow::Result<Option<(Vec<ReadLane>, LaneNotes)>> {
    let (maxima, mut lane_notes) = (lanes.maxima()?, LaneNotes::default());
    let lane = |(recipe, plain): (&_, _)| ReadLane {
        name: ToString::to_string(recipe),
        cases: Vec::new(),
        read: Vec::new(),
        failed: Vec::new(),
        plain,
    };
    let mut found: Vec<ReadLane> = lanes.recipes.iter().zip(lanes.plain_forms()).map(lane).collect();
    for (done, (case, question)) in cases.iter().zip(&lanes.setup.questions).enumerate() {
        lanes.show(done, cases.len());
        let outcome = lanes.rank(question, k, &maxima);
        if lanes.stop.is_set() {
            return Ok(None);
        }
        for (read, ranked) in found.iter_mut().zip(&outcome) {
            let list = match &ranked.ranking {
                Ok(list) => list.iter().take(k).map(|one| Arc::clone(&one.passage)).collect(),
                Err(error) => {
                    read.failed.push((case.id.clone(), error.to_string()));
                    Vec::new()
                }
            };
            read.cases.push(Case { passages: Context::list(list), marked: Vec::new(), ..case.clone() });
        }
        lane_notes.take_lanes(question, &lanes.recipes, &outcome);
    }
    lanes.show(cases.len(), cases.len());
    notes.extend(lane_notes.notes());
    let alone = |case: &Case| {
        let passage = case.gold_passage().map(|at| Arc::clone(&case.passages[at].passage));
        Case { passages: Context::list(passage), marked: vec![0], ..case.clone() }
    };
    let gold: Vec<Case> = cases.iter().map(alone).collect();
    let with_gold = gold.iter().filter(|case| !case.passages.is_empty()).count();
    if with_gold > 0 {
        notes.push(format!(
            "{GOLD}: the gold passage alone, of the {with_gold} questions that bring one; k does not change it"
        ));
        found.push(ReadLane {
            name: GOLD.into(),
            cases: gold,
            read: Vec::new(),
            failed: Vec::new(),
            plain: None,
        });
    }
    Ok(Some((found, lane_notes)))
}

/// The sources of passages that are added to a gold passage.
fn negatives_of(args: &Eval) -> Vec<Negatives> {
    if args.negatives.is_empty() { vec![Negatives::List, Negatives::Random] } else { args.negatives.clone() }
}

/// The passages that negatives are taken from: those of the corpus, else all that the questions bring.
enum Pool {
    Corpus(Arc<Corpus>, Arc<TermIndex>),
    Brought(Arc<Corpus>, Arc<TermIndex>, Vec<Arc<Passage>>),
}

impl Pool {
    fn of(opened: Option<&Lanes>, lanes: &[ReadLane]) -> anyhow::Result<Self> {
        if let Some(opened) = opened {
            return Ok(Pool::Corpus(Arc::clone(&opened.setup.corpus), opened.setup.terms()?));
        }
        let brought = lanes.iter().flat_map(|lane| &lane.cases).flat_map(|case| &case.passages);
        let brought: Vec<Arc<Passage>> = brought.map(|context| Arc::clone(&context.passage)).collect();
        let texts: Vec<String> = brought.iter().map(|passage| passage.contents()).collect();
        let corpus = Arc::new(Corpus::of_texts("the questions' passages", &texts)?);
        let index = Arc::new(TermIndex::in_memory(&corpus)?);
        Ok(Pool::Brought(corpus, index, brought))
    }

    fn passage(&self, at: PassageIx) -> Arc<Passage> {
        match self {
            Pool::Corpus(corpus, _) => Arc::new(corpus.passage(at)),
            Pool::Brought(_, _, all) => Arc::clone(&all[at.0 as usize]),
        }
    }

    /// The gold passage of a question, and the passages to add to it from every source.
    fn negatives(
        &self,
        args: &Eval,
        lane: &ReadLane,
        at: usize,
        stop: &Stop,
    ) -> anyhow::Result<Option<(Context, Vec<Vec<Context>>)>> {
        let case = &lane.cases[at];
        let Some(gold) = case.gold_passage().map(|place| case.passages[place].clone()) else {
            return Ok(None);
        };
        let (Pool::Corpus(corpus, index) | Pool::Brought(corpus, index, _)) = self;
        let mut all = Vec::new();
        for source in negatives_of(args) {
            let found = match source {
                Negatives::List => {
                    let unmarked = (0..case.passages.len()).filter(|place| !case.marked.contains(place));
                    without_answer(case, &gold.passage, unmarked.map(|place| case.passages[place].clone()))
                }
                Negatives::Bm25 => {
                    let terms = TermRetriever::new(Arc::clone(corpus), Arc::clone(index), Bm25::default());
                    let hits = terms.search(&case.question, Query::DEPTH, stop)?;
                    let hits = ranked_after(case, hits.into_iter().map(|hit| self.passage(hit.passage)));
                    without_answer(case, &gold.passage, hits)
                }
                Negatives::Random => {
                    without_answer(case, &gold.passage, ranked_after(case, self.drawn(lane, at)))
                }
            };
            all.push(found);
        }
        Ok(Some((gold, all)))
    }

    /// A seeded draw of passages that are not the question's own: from the corpus, or from the passages of a drawn question.
    fn drawn(&self, lane: &ReadLane, at: usize) -> Vec<Arc<Passage>> {
        let mut draw = SplitMix64::new(at as u64);
        let mut found: Vec<Arc<Passage>> = Vec::new();
        // A small pool may not have enough other passages, so the tries are limited.
        for _ in 0..MOST * 16 {
            let one = match self {
                Pool::Corpus(corpus, _) if corpus.is_empty() => None,
                Pool::Corpus(corpus, _) => Some(self.passage(PassageIx(draw.below(corpus.len()) as u32))),
                Pool::Brought(..) => {
                    let other = draw.below(lane.cases.len());
                    let place = draw.below(lane.cases[other].passages.len());
                    let context = lane.cases[other].passages.get(place).filter(|_| other != at);
                    context.map(|context| Arc::clone(&context.passage))
                }
            };
            let own =
                |passage: &Arc<Passage>| lane.cases[at].passages.iter().any(|one| one.passage == *passage);
            found.extend(one.filter(|passage| !found.contains(passage) && !own(passage)));
        }
        found
    }
}

/// The readings of one list: each choice of passages is read once.
struct Readings<'a> {
    reader: &'a dyn Reader,
    case: &'a Case,
    passages: &'a [Context],
    known: HashMap<Vec<usize>, Option<Answer>>,
    /// All answers, in the order in which they were given.
    said: Vec<Answer>,
}

impl Readings<'_> {
    /// The answer from some of the passages; `None` if it was not recorded.
    fn of(&mut self, places: &[usize], stop: &Stop) -> Result<Option<Answer>, ReadError> {
        if let Some(answer) = self.known.get(places) {
            return Ok(answer.clone());
        }
        let answer = from_places(self.reader, &self.case.question, self.passages, places, stop);
        let answer = if_recorded(answer)?;
        self.said.extend(answer.clone());
        self.known.insert(places.to_vec(), answer.clone());
        Ok(answer)
    }
}

/// The gold passage, and the negatives beside it.
type Added = (Context, Vec<Vec<Context>>);

/// Reads one question at every depth, with every probe, and with passages added.
fn read_case(
    reader: &dyn Reader,
    judge: Option<(&dyn Chat, &Prompts)>,
    lane: &ReadLane,
    at: usize,
    (plan, added): (&Plan, Option<Added>),
    stop: &Stop,
) -> Result<ReadCase, ReadError> {
    let (case, k) = (&lane.cases[at], plan.k);
    let passages = &case.passages[..case.passages.len().min(k)];
    let answers = each_k(reader, &case.question, passages, 0, stop, &mut |_, _| {})?;
    let own = pattern(&answers, &case.gold);
    let firsts = answers.iter().enumerate().map(|(i, answer)| ((0..=i).collect(), Some(answer.clone())));
    let known = firsts.collect::<HashMap<Vec<usize>, _>>();
    let mut readings = Readings { reader, case, passages, known, said: answers.clone() };
    let alone = readings.of(&[], stop)?;
    let given = plan.types.as_ref().map(|types| types.of(case, &lane.name, passages));
    // A passage without a type in the file is in no probe, unless the list has no definite or soft positive: then a probe keeps all.
    let effects = match &given {
        None => own.effects(),
        Some(given) => given.iter().map(|effect| effect.unwrap_or(Effect::DefiniteNegative)).collect(),
    };
    let mut probes: Vec<(usize, Vec<Option<Answer>>)> = Vec::new();
    for probe in Probe::all() {
        let mut by_size = Vec::new();
        for size in 1..=k {
            by_size.push(readings.of(&probe.at_most(size).keep(&effects), stop)?);
        }
        probes.push((probe.keep(&effects).len(), by_size));
    }
    let mut attention = None;
    if plan.analyses.contains(&Analysis::Attention)
        && let Some(shares) = reader.attention(&case.question, passages, stop)?
    {
        let mut kept = Vec::new();
        for least in THRESHOLDS {
            let places = attended(&shares, least);
            let answer = readings.of(&places, stop)?;
            kept.push((places.len(), answer.is_some_and(|said| reader::matches(&said.text, &case.gold))));
        }
        attention = Some(Attended { shares, kept });
    }
    let mut left_out = Vec::new();
    if plan.analyses.contains(&Analysis::Without) {
        for at in 0..passages.len() {
            match if_recorded(without(reader, &case.question, passages, at, stop))? {
                Some(answer) => left_out.push(answer),
                None => break,
            }
        }
    }
    let orders = match plan.analyses.contains(&Analysis::Orders) && !passages.is_empty() {
        true => if_recorded(reordered(reader, &case.question, passages, ORDERS, stop))?,
        false => None,
    };
    let wider = match judge {
        None => None,
        Some((chat, prompts)) => {
            Some(widen_gold(chat, prompts, &case.question, &readings.said, &case.gold, stop)?)
        }
    };
    let right = |gold: &[String]| {
        let one = |answer: &Option<Answer>| Some(reader::matches(&answer.as_ref()?.text, gold));
        probes.iter().map(|(_, by_size)| by_size.iter().map(one).collect()).collect::<Vec<Vec<_>>>()
    };
    let judged_probes = wider.as_ref().map_or_else(Vec::new, |wider| right(&wider.gold));
    let judged = wider.map(|wider| {
        let judge = Judge { added: wider.added, discarded: wider.discarded };
        (pattern(&answers, &wider.gold), judge)
    });
    let mut with_negatives = Vec::new();
    if let Some((gold, all)) = &added {
        for negatives in all {
            with_negatives.push(with_added(reader, case, gold, negatives, stop)?);
        }
    }
    let negative = |(at, effect): (usize, &Effect)| {
        (*effect == Effect::DefiniteNegative).then(|| stands(&answers[at].text, passages, at))
    };
    let changed = own.effects().iter().enumerate().filter_map(negative).collect();
    let kept = probes.iter().map(|(kept, _)| *kept);
    let probes = kept.zip(right(&case.gold)).collect();
    Ok(ReadCase {
        left_out: false,
        alone,
        answers,
        pattern: own,
        judged,
        probes,
        judged_probes,
        added: with_negatives,
        given,
        attention,
        without: left_out,
        orders,
        changed,
    })
}

/// The number of shuffled orders in which a list is read, and their seed.
const ORDERS: (usize, u64) = (10, 0);

/// `None` if an answer was not recorded, which is not an error here.
fn if_recorded<T>(answer: Result<T, ReadError>) -> Result<Option<T>, ReadError> {
    match answer {
        Ok(answer) => Ok(Some(answer)),
        Err(ReadError::NotRecorded(_)) => Ok(None),
        Err(error) => Err(error),
    }
}
