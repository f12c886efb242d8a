//! What each thread does with its orders. Replies to a screen that is gone are dropped.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::thread;

use super::{Heard, Hearing, Opened, Order, Reach, Reply, Shared, Study, Survey, Tell, Want};
use crate::annotate::Item;
use crate::detect::DetectError;
use crate::detect::evidence::evidence;
use crate::pipeline::{
    Asked, Book, LaneError, Lists, Opening, Pair, Plan, Ranking, Recipe, Setup, SetupError, compare, deeper,
    judge, sway, sweep, timed, top_pairs, why,
};
use crate::question::Question;
use crate::read::ReadError;
use crate::read::incremental::{each_k, reordered, without};
use crate::work::{Job, Stop, on_all};

/// Opens the corpus, then ranks the term lanes of one order after another.
pub fn terms(shared: &Shared, opening: &Opening, tell: &Tell) {
    let ended = Stop::when_past(&shared.ended, 0);
    let progress = |progress| tell(Reply::Progress(progress));
    let opened = Setup::open(opening, &progress, &ended).and_then(|setup| {
        let about = about(&setup)?;
        Ok((setup, about))
    });
    match opened {
        Ok((setup, about)) => {
            let _ = shared.setup.set(Arc::new(setup));
            tell(Reply::Opened(Box::new(about)));
        }
        Err(error) => {
            tell(Reply::OpenFailed(error.to_string()));
            return;
        }
    }
    let Some(setup) = shared.setup.get() else { return };
    while let Some(mut order) = shared.terms.take() {
        lanes(shared, setup, &mut order, &|recipe| !recipe.is_slow(), tell);
        match order.reach {
            Reach::Terms => settled(&order, tell),
            Reach::All => shared.models.put(order),
        }
    }
}

/// The threshold is told here, so that it is known before the first verdict.
fn about(setup: &Setup) -> Result<Opened, SetupError> {
    let notices: Vec<&str> = setup.verdicts.not_kept.iter().chain(&setup.notes).map(String::as_str).collect();
    Ok(Opened {
        corpus: setup.corpus.name.clone(),
        passages: setup.corpus.len(),
        questions: setup.questions.clone(),
        labelled: setup.labels.is_some(),
        by_hand: setup.has_human(),
        reader: setup.reader.as_ref().map(|reader| (reader.name().to_owned(), reader.recorded())),
        threshold: setup.threshold()?,
        detector: setup.caution()?,
        notice: (!notices.is_empty()).then(|| notices.join(" · ")),
    })
}

/// Ranks the lanes that `now` says.
fn lanes(shared: &Shared, setup: &Setup, order: &mut Order, now: &dyn Fn(&Recipe) -> bool, tell: &Tell) {
    let stop = Stop::when_past(&shared.now, order.turn.0);
    let turn = order.turn;
    let asked = Asked::plainly(&order.plan.question);
    for (lane, recipe) in order.plan.lanes.iter().enumerate().filter(|(_, recipe)| now(recipe)) {
        let (ranking, took) = timed(setup, recipe, asked, &mut order.lists, &stop);
        let reply = match ranking {
            Ok(ranking) => {
                order.rankings[lane] = Some(Arc::clone(&ranking));
                Reply::LaneReady { turn, lane, ranking, took }
            }
            Err(error) if error.is_stop() => return,
            Err(LaneError::NotEmbedded) => {
                if !shared.embedding.swap(true, Ordering::Relaxed) {
                    shared.embed.put(recipe.model().cloned());
                }
                let reason = LaneError::NotEmbedded.to_string();
                Reply::LaneFailed { turn, lane, reason, waits: Some(Job::Embedding) }
            }
            Err(error) => Reply::LaneFailed { turn, lane, reason: error.to_string(), waits: None },
        };
        tell(reply);
    }
}

/// Ranks the vector lanes of one order after another and judges what all lanes brought up.
pub fn models(shared: &Shared, tell: &Tell) {
    while let Some(mut order) = shared.models.take() {
        let Some(setup) = shared.setup.get() else { return };
        let stop = Stop::when_past(&shared.now, order.turn.0);
        let judged = |order: &Order| {
            if let Err(error) = verdicts(setup, order, &stop, tell) {
                tell(Reply::AboutVerdicts { turn: order.turn, told: error.to_string() });
            }
        };
        let writes = |recipe: &Recipe| {
            recipe.base.remote().is_some() || (setup.chat.is_some() && recipe.switches.writes())
        };
        if order.plan.lanes.iter().any(writes) {
            // Lanes that wait for a language model or an engine elsewhere are made beside the others and their verdicts.
            let mut beside = order.clone();
            beside.lists = Lists::default();
            thread::scope(|scope| {
                let writer = thread::Builder::new().name("writer".into());
                let beside = &mut beside;
                let writing = writer.spawn_scoped(scope, || lanes(shared, setup, beside, &writes, tell));
                lanes(shared, setup, &mut order, &|recipe| recipe.is_slow() && !writes(recipe), tell);
                judged(&order);
                drop(writing);
            });
            for (own, written) in order.rankings.iter_mut().zip(beside.rankings) {
                *own = own.take().or(written);
            }
        } else {
            lanes(shared, setup, &mut order, &Recipe::is_slow, tell);
        }
        judged(&order);
        if !stop.is_set() {
            settled(&order, tell);
        }
    }
}

fn settled(order: &Order, tell: &Tell) {
    tell(Reply::Settled { turn: order.turn });
}

/// The top k of every lane first, then deeper until every lane covers all perspectives or ends.
fn verdicts(setup: &Setup, order: &Order, stop: &Stop, tell: &Tell) -> Result<(), SetupError> {
    let rankings: Vec<Ranking> = order.rankings.iter().flatten().cloned().collect();
    let detector = setup.detector()?;
    let mut book = Book::new(order.plan.question.perspectives.len(), order.plan.source, detector.threshold());
    let mut pairs: Vec<Pair> = top_pairs(&rankings, order.plan.k, &book);
    let before = detector.told();
    while !pairs.is_empty() && !stop.is_set() {
        let found = std::sync::Mutex::new(Vec::new());
        judge(setup, &order.plan.question, &pairs, stop, &|judged| {
            tell(Reply::Verdict { turn: order.turn, judged: judged.clone() });
            found.lock().unwrap_or_else(std::sync::PoisonError::into_inner).push(judged);
        })?;
        for judged in found.into_inner().unwrap_or_else(std::sync::PoisonError::into_inner) {
            book.write(judged.at, judged.perspective, judged.known);
        }
        if stop.is_set() {
            break;
        }
        pairs = deeper(&rankings, order.plan.k, &book, setup.deep());
    }
    if let Some(told) = detector.told().filter(|told| before.as_ref() != Some(told)) {
        tell(Reply::AboutVerdicts { turn: order.turn, told });
    }
    Ok(())
}

/// Embeds the corpus when a lane asks for it.
pub fn embedder(shared: &Shared, tell: &Tell) {
    let ended = Stop::when_past(&shared.ended, 0);
    while let Some(model) = shared.embed.take() {
        let Some(setup) = shared.setup.get() else { return };
        let progress = |progress| tell(Reply::Progress(progress));
        let done = setup.embed(model.as_ref(), &progress, &ended);
        if ended.is_set() {
            return;
        }
        // After a failure the next question may try again: room may have been made.
        shared.embedding.store(false, Ordering::Relaxed);
        tell(Reply::Embedded(done.map_err(|error| error.to_string())));
    }
}

/// Studies one passage after another; the newest wins.
pub fn reader(shared: &Shared, tell: &Tell) {
    while let Some((Study { number, at, passage, statements, list }, stop)) = shared.studies.take() {
        let Some(setup) = shared.setup.get() else { return };
        if let Some((list, recipe, text)) = list {
            let reasons = why(setup, &list, &text, at).map_err(|error| error.to_string());
            tell(Reply::Why { study: number, recipe, at, reasons });
        }
        for (perspective, statement) in statements {
            let Ok(detector) = setup.detector() else { break };
            let sentence = match evidence(detector.as_ref(), &passage, &statement, &stop) {
                Err(DetectError::Stopped(_)) => break,
                // No evidence is shown where none was found, for whatever other reason.
                found => found.unwrap_or_default(),
            };
            tell(Reply::Evidence { study: number, at, perspective, sentence });
        }
    }
}

/// Carries out one survey after another; the newest wins.
pub fn surveyor(shared: &Shared, tell: &Tell) {
    while let Some((number, survey, stop)) = shared.surveys.take() {
        let Some(setup) = shared.setup.get() else { return };
        let lanes = match &survey {
            Survey::Sweep(sweep) => sweep.forms.as_slice(),
            Survey::Sway(plan) | Survey::Compare(plan) | Survey::Bias(plan, true) => plan.lanes.as_slice(),
            Survey::Bias(_, false) | Survey::Weigh(..) | Survey::Read(_) => &[],
        };
        let mut missing = lanes
            .iter()
            .filter(|recipe| recipe.needs_vectors() && matches!(setup.vectors(recipe.model()), Ok(None)));
        if let Some(recipe) = missing.next()
            && !shared.embedding.swap(true, Ordering::Relaxed)
        {
            // Lanes without vectors fail for now; the screen asks again when the corpus has been embedded.
            shared.embed.put(recipe.model().cloned());
        }
        match survey {
            Survey::Weigh(items, questions) => weigh(setup, number, &items, &questions, &stop, tell),
            Survey::Sweep(forms) => {
                let told = |tallies: Result<&[_], String>, ended| {
                    tell(Reply::Swept { number, tallies: tallies.map(<[_]>::to_vec), ended });
                };
                match sweep(setup, &forms, &stop, &|tallies| told(Ok(tallies), false)) {
                    Ok(tallies) if !stop.is_set() => told(Ok(&tallies), true),
                    Ok(_) => {}
                    Err(error) => told(Err(error.to_string()), true),
                }
            }
            Survey::Read(hearing) => hear(setup, number, &hearing, &stop, tell),
            Survey::Compare(plan) => over_set(setup, &plan, number, &stop, tell),
            Survey::Bias(plan, set) => {
                let counted = setup.fields(&|progress| tell(Reply::Progress(progress)), &stop);
                // Given up: whoever asks again counts again.
                let Ok(fields) = counted else { continue };
                tell(Reply::Fields(fields));
                if set {
                    over_set(setup, &plan, number, &stop, tell);
                }
            }
            Survey::Sway(plan) => {
                for (lane, recipe) in plan.lanes.iter().enumerate() {
                    let swayed = sway(setup, recipe, &plan.question, (plan.k, plan.source), &[], &stop);
                    if stop.is_set() {
                        break;
                    }
                    let swayed = swayed.map(Arc::new).map_err(|error| error.to_string());
                    tell(Reply::Swayed { number, lane, swayed });
                }
            }
        }
    }
}

/// In how many shuffled orders a list is read, and drawn by which seed.
const SHUFFLES: (usize, u64) = (10, 0);

/// Has a list read; every answer is told as it comes.
fn hear(setup: &Setup, number: u64, hearing: &Hearing, stop: &Stop, tell: &Tell) {
    let told = |heard| tell(Reply::Heard { number, heard });
    let Some(reader) = setup.reader.as_deref() else {
        return told(Heard::Ended(Some("nothing reads here: give --reader, --llm or --answers".into())));
    };
    let Hearing { question, sides, passages, want } = hearing;
    let on_sides = sides.clone().and_then(|sides| reader.on_sides(sides));
    let reader = on_sides.as_deref().unwrap_or(reader);
    let done: Result<(), ReadError> = match want {
        Want::EachK(from) => each_k(reader, question, passages, *from, stop, &mut |k, answer| {
            told(Heard::Answer(k, answer.clone()));
        })
        .map(drop),
        Want::Without => reader.attention(question, passages, stop).and_then(|shares| {
            shares.into_iter().for_each(|shares| told(Heard::Attention(shares)));
            (0..passages.len()).try_for_each(|at| {
                told(Heard::Without(at, without(reader, question, passages, at, stop)?));
                Ok(())
            })
        }),
        Want::Reordered => reordered(reader, question, passages, SHUFFLES, stop)
            .map(|reordered| told(Heard::Reordered(reordered))),
    };
    told(Heard::Ended(done.err().filter(|error| !error.is_stop()).map(|error| error.to_string())));
}

/// What the model says of passages that are to be labelled, one after another.
fn weigh(setup: &Setup, number: u64, items: &[Item], questions: &[Question], stop: &Stop, tell: &Tell) {
    let Ok(detector) = setup.detector() else { return };
    on_all(setup.judging(), items.len(), stop, |i| {
        let question = questions.iter().find(|question| question.text == items[i].question);
        let statements = question.map_or(&[][..], |question| &question.perspectives);
        let judged = |statement: &String| {
            let (detector, passage) = (detector.as_ref(), &items[i].passage);
            match detector.at_once() {
                None => setup.verdicts.judge(detector, passage, statement, stop).ok(),
                // Nobody asked for these, and they would cost.
                Some(_) => setup.verdicts.kept(detector, passage, statement),
            }
        };
        let probabilities = statements.iter().map(judged).collect();
        tell(Reply::Weighed { number, item: i, probabilities });
    });
}

/// Puts the question set to all lanes, question after question.
fn over_set(setup: &Setup, plan: &Plan, number: u64, stop: &Stop, tell: &Tell) {
    for (question, asked) in setup.questions.iter().enumerate() {
        let compared = compare(setup, asked, plan, stop);
        if stop.is_set() {
            break;
        }
        let compared = compared.map_err(|error| error.to_string());
        tell(Reply::Compared { number, question, compared });
    }
}
