//! The work of each thread on its orders. Replies to a screen that has ended are dropped.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::thread;

use super::orders::{Batch, Order, Reach, ReadList, Shared, Study, Turn, Want};
use super::reply::{AnswerEvent, Opened, PointsEvent, ReadEvent, Reply, SendReply, Shelved};
use crate::annotate::Item;
use crate::corpus::PassageIx;
use crate::detect::evidence;
use crate::detect::{DetectError, LabelSource, PairLabels};
use crate::encode::Named;
use crate::engine::answer::Judge;
use crate::engine::compare::compare;
use crate::engine::detectors::{DetectorEvent, detectors, fetch_detector, language_models};
use crate::engine::edit::{Draft, judge_draft, rewrite, score_draft};
use crate::engine::explain::{explain, index_entry};
use crate::engine::framing::{framing, worded};
use crate::engine::judge::readings;
use crate::engine::judgments::Judgments;
use crate::engine::list::{LaneError, Lists};
use crate::engine::nuggets::{key_points, pool};
use crate::engine::opening::{Opening, SetupError};
use crate::engine::query::Query;
use crate::engine::recipe::Recipe;
use crate::engine::run::{Event, Run};
use crate::engine::setup::Setup;
use crate::engine::sycophancy::{sweep, sycophancy};
use crate::question::wordings::{Frame, Framed, Missing, PERSONA};
use crate::question::{By, Question};
use crate::read::incremental::{each_k, reordered, without};
use crate::read::{Answer, Context, ReadError};
use crate::work::{Job, Stop, on_all};

/// Opens the corpus, then ranks, for each order, the lanes that need no vectors.
pub(super) fn terms(shared: &Shared, opening: &Opening, send: &SendReply) {
    let ended = Stop::when_past(&shared.ended, 0);
    let progress = |progress| send(Reply::Progress(progress));
    let opened = Setup::open(opening, &progress, &ended).and_then(|setup| {
        let about = about(&setup)?;
        Ok((setup, about))
    });
    match opened {
        Ok((setup, about)) => {
            let _ = shared.setup.set(Arc::new(setup));
            send(Reply::Opened(Box::new(about)));
        }
        Err(error) => {
            send(Reply::OpenFailed(error.to_string()));
            return;
        }
    }
    let Some(setup) = shared.setup.get() else { return };
    while let Some(mut order) = shared.terms.take() {
        let stop = Stop::when_past(&shared.now, order.turn.0);
        let on_event = on_event(shared, order.turn, order.run.query(), send);
        order.run.rank(setup, &|recipe| !recipe.is_slow(), &stop, &on_event);
        match order.reach {
            Reach::Terms => send(Reply::Settled { turn: order.turn }),
            Reach::All => shared.models.put(order),
        }
    }
}

/// Describes the open corpus for the screen. The rule is part of it, so that the screen has it before the first verdict.
fn about(setup: &Setup) -> Result<Opened, SetupError> {
    let notices: Vec<&str> =
        setup.damage.iter().chain(&setup.verdicts.unsaved).chain(&setup.notes).map(String::as_str).collect();
    Ok(Opened {
        corpus: setup.corpus.name.clone(),
        passages: setup.corpus.len(),
        questions: setup.questions.clone(),
        labelled: setup.labels.is_some(),
        labels: (setup.source_name(LabelSource::Gold), setup.label_words()),
        by_hand: setup.has_human(),
        reader: setup.reader.as_ref().map(|reader| (reader.name().to_owned(), reader.recorded())),
        rerankers: setup.fetched_rerankers(),
        rule: setup.rule()?,
        detector: setup.caution()?,
        notice: (!notices.is_empty()).then(|| notices.join(" · ")),
    })
}

/// Ranks the other lanes of each run, and judges the passages of all lanes.
pub(super) fn models(shared: &Shared, send: &SendReply) {
    while let Some(Order { turn, mut run, .. }) = shared.models.take() {
        let Some(setup) = shared.setup.get() else { return };
        let stop = Stop::when_past(&shared.now, turn.0);
        let on_event = on_event(shared, turn, run.query(), send);
        let report = |done: Result<(), SetupError>| {
            if let Err(error) = done {
                send(Reply::AboutVerdicts { turn, text: error.to_string() });
            }
        };
        // The first k of every wording come before deeper ranks: they are on the screen.
        let judge = |run: &mut Run| {
            report(run.judge_top(setup, &stop, &on_event));
            report(reword(setup, run, &stop, &on_event));
            report(run.judge(setup, &stop, &on_event));
        };
        // Lanes that wait for a server are ranked on a thread of their own, so that the others and their verdicts do not wait.
        let waits = |recipe: &Recipe| recipe.waits_for_server(setup.chat.is_some());
        if run.query().lanes.iter().any(waits) {
            let mut server_run = run.clone();
            let spawned = thread::scope(|scope| {
                let thread = thread::Builder::new().name("server_lanes".into());
                let thread = thread.spawn_scoped(scope, || server_run.rank(setup, &waits, &stop, &on_event));
                run.rank(setup, &|recipe| !waits(recipe), &stop, &on_event);
                judge(&mut run);
                thread.is_ok()
            });
            if !spawned {
                // The system gave no thread: rank here.
                server_run.rank(setup, &waits, &stop, &on_event);
            }
            run.adopt(server_run);
        } else {
            run.rank(setup, &|_| true, &stop, &on_event);
        }
        judge(&mut run);
        if let Some((best, usual)) = setup.far_off(&run.query().question, &stop) {
            send(Reply::FarOff { turn, best, usual });
        }
        if !stop.is_set() {
            send(Reply::Settled { turn });
        }
    }
}

/// Asks the lanes as either side, unless that costs money: with a language model as the detector no lane is asked, and a lane that a
/// language model on a server expands is not.
fn reword(
    setup: &Setup,
    run: &mut Run,
    stop: &Stop,
    on_event: &(dyn Fn(Event) + Sync),
) -> Result<(), SetupError> {
    if setup.deep() == 0 && !run.query().source.is_labels() {
        return Ok(());
    }
    let free = |recipe: &Recipe| setup.llm.is_none() || !recipe.switches.asks_chat();
    run.reword(setup, &free, stop, on_event)
}

/// Turns events into replies. If a lane's passages have no vectors, orders them from the embedder.
fn on_event<'a>(
    shared: &'a Shared,
    turn: Turn,
    query: &Query,
    send: &'a SendReply,
) -> impl Fn(Event) + Sync + use<'a> {
    let models: Vec<Option<Named>> =
        query.lanes.iter().map(|recipe| recipe.model().or(recipe.indexed()).cloned()).collect();
    move |event| {
        send(match event {
            Event::LaneReady { lane, ranking, took } => Reply::LaneReady { turn, lane, ranking, took },
            Event::LaneFailed { lane, error } => {
                let waits = matches!(*error, LaneError::NotEmbedded).then_some(Job::Embedding);
                if waits.is_some() && !shared.embedding.swap(true, Ordering::Relaxed) {
                    shared.embed.put(models[lane].clone());
                }
                Reply::LaneFailed { turn, lane, reason: error.to_string(), waits }
            }
            Event::Reworded { lane, lists } => {
                Reply::Reworded { turn, lane, lists: lists.map_err(|error| error.to_string()) }
            }
            Event::Judged(judged) => Reply::Verdict { turn, judged },
            Event::Note(text) => Reply::AboutVerdicts { turn, text },
        });
    }
}

/// Embeds the corpus when a lane needs it.
pub(super) fn embedder(shared: &Shared, send: &SendReply) {
    let ended = Stop::when_past(&shared.ended, 0);
    while let Some(model) = shared.embed.take() {
        let Some(setup) = shared.setup.get() else { return };
        let progress = |progress| send(Reply::Progress(progress));
        let done = setup.embed(model.as_ref(), &progress, &ended);
        if ended.is_set() {
            return;
        }
        // After a failure the next question may try again: the disk may have room by then.
        shared.embedding.store(false, Ordering::Relaxed);
        send(Reply::Embedded(done.map_err(|error| error.to_string())));
    }
}

/// Studies one passage after another; the newest wins.
pub(super) fn reader(shared: &Shared, send: &SendReply) {
    while let Some((Study { number, at, passage, statements, list, index }, stop)) = shared.studies.take() {
        let Some(setup) = shared.setup.get() else { return };
        if let Some((list, recipe, text)) = list {
            let explanations = explain(setup, &list, &text, at).map_err(|error| error.to_string());
            send(Reply::Explained { study: number, recipe, at, explanations });
        }
        if let Some(recipe) = index {
            let entry = index_entry(setup, &recipe, at).map_err(|error| error.to_string());
            send(Reply::IndexEntry { study: number, at, recipe, entry });
        }
        for (perspective, statement, other) in statements {
            let Ok(detector) = setup.detector() else { break };
            let sentence = match evidence(detector.as_ref(), &passage, &statement, other.as_deref(), &stop) {
                Err(DetectError::Stopped(_)) => break,
                // After any other error no evidence is shown.
                sentence => sentence.unwrap_or_default(),
            };
            send(Reply::Evidence { study: number, at, perspective, sentence });
        }
    }
}

/// Runs one batch after another; the newest wins.
pub(super) fn batch_worker(shared: &Shared, send: &SendReply) {
    while let Some((number, batch, stop)) = shared.batches.take() {
        let Some(setup) = shared.setup.get() else { return };
        let lanes = match &batch {
            Batch::Sweep(sweep) => sweep.forms.as_slice(),
            Batch::Sycophancy(plan)
            | Batch::Framing(plan, _)
            | Batch::Compare(plan)
            | Batch::Bias(plan, true) => plan.lanes.as_slice(),
            Batch::Edit(recipe, _) => std::slice::from_ref(recipe),
            Batch::Bias(_, false)
            | Batch::Score(..)
            | Batch::Read(_)
            | Batch::Detectors
            | Batch::Corpora
            | Batch::KeyPoints(..)
            | Batch::Lists(..)
            | Batch::Answer(..)
            | Batch::Rewrite(_)
            | Batch::Fetch(_) => &[],
        };
        let mut missing = lanes
            .iter()
            .flat_map(|recipe| setup.encoders_of(recipe))
            .filter(|model| matches!(setup.is_embedded(model.as_ref()), Ok(false)));
        if let Some(model) = missing.next()
            && !shared.embedding.swap(true, Ordering::Relaxed)
        {
            // Lanes without vectors fail now; the screen asks again once the corpus is embedded.
            shared.embed.put(model);
        }
        match batch {
            Batch::Score(items, questions) => score(setup, number, &items, &questions, &stop, send),
            Batch::Sweep(forms) => {
                let reply = |tallies: Result<&[_], String>, ended| {
                    send(Reply::Swept { number, tallies: tallies.map(<[_]>::to_vec), ended });
                };
                match sweep(setup, &forms, &stop, &|tallies| reply(Ok(tallies), false)) {
                    Ok(tallies) if !stop.is_set() => reply(Ok(&tallies), true),
                    Ok(_) => {}
                    Err(error) => reply(Err(error.to_string()), true),
                }
            }
            Batch::Detectors => {
                let reply = |event| send(Reply::Detectors { number, event });
                reply(DetectorEvent::Listed(detectors(&setup.models_folder)));
                reply(DetectorEvent::Served(language_models(setup.llm.as_ref(), setup.offline, &stop)));
            }
            Batch::Fetch(detector) => {
                let reply = |event| send(Reply::Detectors { number, event });
                let progress = |progress| reply(DetectorEvent::Fetching(progress));
                let done = fetch_detector(detector, &setup.models_folder, setup.offline, &progress, &stop);
                let failed = done.err().map(|error| error.to_string()).filter(|_| !stop.is_set());
                reply(DetectorEvent::Fetched(detectors(&setup.models_folder), failed));
            }
            Batch::Corpora => send(Reply::Corpora { number, corpora: corpora(setup) }),
            Batch::Read(list) => read(setup, number, &list, &stop, send),
            Batch::Lists(question, sides, lists) => {
                let reply = |place, answer| send(Reply::ListRead { number, place, answer });
                for (place, answer) in lists
                    .iter()
                    .enumerate()
                    .map(|(place, list)| (place, read_on_sides(setup, &question, sides.clone(), list, &stop)))
                {
                    match answer {
                        Err(error) if error.is_stop() => break,
                        Err(error) => {
                            reply(place, Err(error.to_string()));
                            break;
                        }
                        Ok(answer) => reply(place, Ok(answer)),
                    }
                }
            }
            Batch::KeyPoints(question, source, judged) => {
                let reply = |event| send(Reply::KeyPoints { number, event });
                let (pool, progress) = (pool(setup, &question, source, judged), |progress| {
                    reply(PointsEvent::Progress(progress))
                });
                match key_points(setup, &question, &pool, &progress, &stop) {
                    Err(error) if error.is_stop() => {}
                    found => reply(PointsEvent::Found(found.map_err(|error| error.to_string()))),
                }
            }
            Batch::Answer(question, list, passages) => {
                let reply = |event| send(Reply::Answered { number, event });
                let judge = Judge { setup, question: &question, stop: &stop };
                let on_answer = |answer: &Answer| reply(AnswerEvent::Read(answer.clone()));
                match judge.read_and_assess(list, &passages, &on_answer) {
                    Err(error) if error.is_stop() => {}
                    done => reply(AnswerEvent::Judged(done.map(Box::new).map_err(|error| error.to_string()))),
                }
            }
            Batch::Compare(plan) => over_set(setup, &plan, number, &stop, send),
            Batch::Bias(plan, set) => {
                let counted = setup.fields(&|progress| send(Reply::Progress(progress)), &stop);
                // It was stopped: the next order counts again.
                let Ok(fields) = counted else { continue };
                send(Reply::Fields(fields));
                if set {
                    over_set(setup, &plan, number, &stop, send);
                }
            }
            Batch::Edit(recipe, drafts) => edit(setup, number, &recipe, *drafts, &stop, send),
            Batch::Rewrite(passage) => {
                let done = rewrite(setup, &passage, &stop).map_err(|error| error.to_string());
                if !stop.is_set() {
                    send(Reply::Rewritten { number, written: done });
                }
            }
            Batch::Framing(plan, wordings) => reframe(setup, number, &plan, wordings, &stop, send),
            Batch::Sycophancy(plan) => {
                for (lane, recipe) in plan.lanes.iter().enumerate() {
                    let sycophancy =
                        sycophancy(setup, recipe, &plan.question, (plan.k, plan.source), &[], &stop);
                    if stop.is_set() {
                        break;
                    }
                    let sycophancy = sycophancy.map(Arc::new).map_err(|error| error.to_string());
                    send(Reply::Sycophancy { number, lane, sycophancy });
                }
            }
        }
    }
}

/// Scores drafts, the present one first, then judges them.
fn edit(
    setup: &Setup,
    number: u64,
    recipe: &Recipe,
    [original, now]: [Option<Draft>; 2],
    stop: &Stop,
    send: &SendReply,
) {
    let drafts: Vec<(bool, Draft)> =
        now.map(|draft| (false, draft)).into_iter().chain(original.map(|draft| (true, draft))).collect();
    let reply = |original, scored, judged| send(Reply::Edited { number, original, scored, judged });
    for (original, draft) in &drafts {
        let scored = score_draft(setup, recipe, draft, &mut Lists::default(), stop);
        if stop.is_set() {
            return;
        }
        reply(*original, Some(scored.map_err(|error| error.to_string())), None);
    }
    for (original, draft) in &drafts {
        let judged = match setup.deep() {
            0 => Err("not judged: every verdict of a language model costs".to_owned()),
            _ => judge_draft(setup, draft, stop).map_err(|error| error.to_string()),
        };
        if stop.is_set() {
            return;
        }
        reply(*original, None, Some(judged.map(Arc::new)));
    }
}

/// Asks every lane in all wordings.
fn reframe(
    setup: &Setup,
    number: u64,
    plan: &Query,
    wordings: Option<Vec<Framed>>,
    stop: &Stop,
    send: &SendReply,
) {
    let words = match wordings {
        Some(words) => Ok(words),
        None => worded(setup, &plan.question, PERSONA, setup.llm.is_some(), stop).map(|mut words| {
            words.push(Framed { frame: Frame::Typed, text: Err(Missing::NoRule), by: By::None });
            words
        }),
    };
    for (lane, recipe) in plan.lanes.iter().enumerate() {
        let source = (plan.k, plan.source);
        let own = words.as_ref().map_err(ToString::to_string).and_then(|words| {
            framing(setup, recipe, &plan.question, words, source, &[], stop)
                .map_err(|error| error.to_string())
        });
        if stop.is_set() {
            return;
        }
        send(Reply::Framing { number, lane, framing: own.map(Arc::new) });
    }
}

/// The corpora of the library, by name.
fn corpora(setup: &Setup) -> Result<Vec<Shelved>, String> {
    let stored = setup.library.stored().map_err(|error| error.to_string())?;
    let whole = stored.into_iter().filter(|stored| stored.whole);
    let shelved = whole.map(|stored| {
        let from = stored.about.as_ref().map(|about| format!(", from {}", about.source.display()));
        Shelved {
            name: stored.name().to_owned(),
            about: format!("{} passages{}", stored.passages(), from.unwrap_or_default()),
            // Two corpora may have one name; no two have one fingerprint.
            path: stored.fingerprint.0.clone().into(),
        }
    });
    Ok(shelved.collect())
}

/// The number of shuffled orders in which a list is read, and their seed.
const SHUFFLES: (usize, u64) = (10, 0);

/// Reads a list, and reports every answer.
fn read(setup: &Setup, number: u64, list: &ReadList, stop: &Stop, send: &SendReply) {
    let reply = |event| send(Reply::ReadEvent { number, event });
    let Some(reader) = setup.reader.as_deref() else {
        return reply(ReadEvent::Ended(Some("nothing reads here: give --reader, --llm or --answers".into())));
    };
    let ReadList { question, sides, passages, want } = list;
    let on_sides = sides.clone().and_then(|sides| reader.on_sides(sides));
    let reader = on_sides.as_deref().unwrap_or(reader);
    let done: Result<(), ReadError> = match want {
        Want::EachK(from) => each_k(reader, question, passages, *from, stop, &mut |k, answer| {
            reply(ReadEvent::Answer(k, answer.clone()));
        })
        .map(drop),
        Want::Without => reader.attention(question, passages, stop).and_then(|shares| {
            shares.into_iter().for_each(|shares| reply(ReadEvent::Attention(shares)));
            (0..passages.len()).try_for_each(|at| {
                reply(ReadEvent::Without(at, without(reader, question, passages, at, stop)?));
                Ok(())
            })
        }),
        Want::Reordered => reordered(reader, question, passages, SHUFFLES, stop)
            .map(|reordered| reply(ReadEvent::Reordered(reordered))),
    };
    reply(ReadEvent::Ended(done.err().filter(|error| !error.is_stop()).map(|error| error.to_string())));
}

/// Lets the reader say which of two statements a list supports; a reader that takes no instructions answers the question.
fn read_on_sides(
    setup: &Setup,
    question: &str,
    sides: [String; 2],
    list: &[Context],
    stop: &Stop,
) -> Result<Answer, ReadError> {
    let Some(reader) = setup.reader.as_deref() else {
        return Err(ReadError::Model("there is none; give --llm, --reader or --answers".into()));
    };
    let on_sides = reader.on_sides(sides);
    on_sides.as_deref().unwrap_or(reader).answer(question, list, stop)
}

/// Judges passages that are to be labelled.
fn score(setup: &Setup, number: u64, items: &[Item], questions: &[Question], stop: &Stop, send: &SendReply) {
    /// The number of the passage in judgments that hold this passage only.
    const HERE: PassageIx = PassageIx(0);
    let (Ok(detector), Ok(rule)) = (setup.detector(), setup.rule()) else { return };
    on_all(setup.judging(), items.len(), stop, |i| {
        let none = Question::default();
        let question = questions.iter().find(|question| question.text == items[i].question).unwrap_or(&none);
        let (detector, passage) = (detector.as_ref(), &items[i].passage);
        let all: Vec<usize> = (0..question.perspectives.len()).collect();
        let read: Vec<Option<_>> = match detector.at_once() {
            None => readings(setup, detector, question, passage, &all, stop).into_iter().map(Some).collect(),
            // The user did not ask for these verdicts, and they would cost.
            Some(_) => {
                let all = question.perspectives.iter();
                all.map(|statement| setup.verdicts.cached(detector, passage, statement).map(Ok)).collect()
            }
        };
        let mut judgments = Judgments::new(question, LabelSource::Model, Arc::clone(&rule));
        for (perspective, model) in read.into_iter().enumerate() {
            judgments.write(HERE, perspective, PairLabels { model, ..PairLabels::default() });
        }
        let probabilities = (0..all.len()).map(|perspective| judgments.by_model(HERE, perspective)?.p);
        let probabilities = probabilities.collect();
        send(Reply::Scored { number, item: i, probabilities, unclear: judgments.is_unclear(HERE) });
    });
}

/// Runs every question of the set on all lanes.
fn over_set(setup: &Setup, plan: &Query, number: u64, stop: &Stop, send: &SendReply) {
    for (number_in_set, question) in setup.questions.iter().enumerate() {
        let compared = compare(setup, question, plan, stop);
        if stop.is_set() {
            break;
        }
        let compared = compared.map_err(|error| error.to_string());
        send(Reply::Compared { number, question: number_in_set, compared });
    }
}
