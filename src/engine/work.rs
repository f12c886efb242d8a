//! What each thread does with its orders. Replies to a screen that is gone are dropped.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Instant;

use super::{Opened, Order, Reach, Reply, Shared, Tell, Wanted};
use crate::detect::evidence::evidence;
use crate::pipeline::{
    Book, LaneError, Opening, Pair, Ranking, Setup, SetupError, deeper, judge, rank, top_pairs,
};
use crate::work::{Job, Stop};

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
        lanes(shared, setup, &mut order, false, tell);
        match order.reach {
            Reach::Terms => settled(&order, tell),
            Reach::All => shared.models.put(order),
        }
    }
}

/// The detector's card is read here, so that its threshold is known before the first verdict.
fn about(setup: &Setup) -> Result<Opened, SetupError> {
    let card = crate::detect::CrossEncoder::card()?;
    Ok(Opened {
        corpus: setup.corpus.name.clone(),
        passages: setup.corpus.len(),
        questions: setup.questions.clone(),
        labelled: setup.labels.is_some(),
        threshold: card.threshold,
        experimental: card.experimental,
        notice: setup.verdicts.not_kept.clone(),
    })
}

/// Ranks the lanes that need vectors, or those that do not.
fn lanes(shared: &Shared, setup: &Setup, order: &mut Order, vectors: bool, tell: &Tell) {
    let stop = Stop::when_past(&shared.now, order.turn.0);
    let turn = order.turn;
    for (lane, recipe) in
        order.plan.lanes.iter().enumerate().filter(|(_, recipe)| recipe.needs_vectors() == vectors)
    {
        let began = Instant::now();
        let reply = match rank(setup, *recipe, &order.plan.question.text, &mut order.lists, &stop) {
            Ok(ranking) => {
                order.rankings[lane] = Some(Arc::clone(&ranking));
                Reply::LaneReady { turn, lane, ranking, took: began.elapsed() }
            }
            Err(error) if error.is_stop() => return,
            Err(LaneError::NotEmbedded) => {
                if !shared.embedding.swap(true, Ordering::Relaxed) {
                    shared.embed.put(());
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
        lanes(shared, setup, &mut order, true, tell);
        let stop = Stop::when_past(&shared.now, order.turn.0);
        if let Err(error) = verdicts(setup, &order, &stop, tell) {
            tell(Reply::NoVerdicts { turn: order.turn, reason: error.to_string() });
        }
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
    let mut book =
        Book::new(order.plan.question.perspectives.len(), Default::default(), detector.threshold());
    let mut pairs: Vec<Pair> = top_pairs(&rankings, order.plan.k, &book);
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
        pairs = deeper(&rankings, order.plan.k, &book);
    }
    Ok(())
}

/// Embeds the corpus when a lane asks for it.
pub fn embedder(shared: &Shared, tell: &Tell) {
    let ended = Stop::when_past(&shared.ended, 0);
    while shared.embed.take().is_some() {
        let Some(setup) = shared.setup.get() else { return };
        let progress = |progress| tell(Reply::Progress(progress));
        let done = setup.embed(&progress, &ended);
        if ended.is_set() {
            return;
        }
        // After a failure the next question may try again: room may have been made.
        shared.embedding.store(false, Ordering::Relaxed);
        tell(Reply::Embedded(done.map_err(|error| error.to_string())));
    }
}

/// Finds evidence for one passage after another; the newest wins.
pub fn reader(shared: &Shared, tell: &Tell) {
    while let Some(Wanted { at, passage, statements, stop }) = shared.wanted.take() {
        let Some(detector) = shared.setup.get().and_then(|setup| setup.detector().ok()) else { return };
        for (perspective, statement) in statements {
            // No evidence is shown where none was found, for whatever reason.
            let found = evidence(detector.as_ref(), &passage, &statement, &stop);
            let Ok(sentence) = found.unwrap_or(Ok(None)) else { break };
            tell(Reply::Evidence { at, perspective, sentence });
        }
    }
}
