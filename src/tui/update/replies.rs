//! What the engine tells. Replies of a turn that is past are dropped.

use super::super::app::{App, Corpus, LaneState, Screen};
use super::super::message::Effect;
use super::{answering, asking, biasing, comparing, labelling, moving, reading, swaying, tuning};
use crate::engine::{Reply, Turn};
use crate::work::{Job, Progress};

/// Takes one reply.
pub fn take(app: &mut App, reply: Reply) -> Vec<Effect> {
    if turn(&reply).is_some_and(|turn| turn != app.turn) {
        return Vec::new();
    }
    match reply {
        Reply::Opened(opened) => {
            app.jobs.clear();
            app.notice = opened.notice.clone().or(app.notice.take());
            app.book.threshold = opened.threshold;
            app.corpus = Corpus::Open(opened);
            if !app.line.value().trim().is_empty() {
                // Who is still typing goes on typing.
                return if app.typing { asking::changed(app) } else { asking::ask(app) };
            }
            asking::complete(app);
        }
        Reply::OpenFailed(reason) => {
            app.jobs.clear();
            (app.settled, app.typing) = (true, false);
            app.corpus = Corpus::Failed(reason);
        }
        // The shell, which has a clock, turns it into words first.
        Reply::Progress(progress) => progressed(app, progress, progress.job.name().to_owned()),
        Reply::Embedded(done) => {
            // Nothing else goes on once a corpus is open.
            app.jobs.clear();
            match done {
                Ok(()) => return wake(app),
                Err(reason) => {
                    for lane in app.lanes.iter_mut().filter(|lane| waits(&lane.state)) {
                        lane.state = LaneState::Failed(reason.clone(), None);
                    }
                }
            }
        }
        Reply::LaneReady { lane, ranking, took, .. } => {
            if let Some(lane) = app.lanes.get_mut(lane) {
                // The mark stays where it was only on a list that stayed the same.
                if !lane.ranking.iter().map(|ranked| ranked.at).eq(ranking.iter().map(|ranked| ranked.at)) {
                    (lane.selected, lane.top) = (0, 0);
                }
                (lane.ranking, lane.took, lane.state) = (ranking, took, LaneState::Ready);
            }
            moving::keep_in_view(app);
            return reading::evidence(app);
        }
        Reply::LaneFailed { lane, reason, waits, .. } => {
            if let Some(lane) = app.lanes.get_mut(lane) {
                lane.state = LaneState::Failed(reason, waits);
                lane.ranking = Default::default();
            }
        }
        Reply::Verdict { judged, .. } => {
            app.book.write(judged.at, judged.perspective, judged.known);
            return reading::evidence(app);
        }
        Reply::AboutVerdicts { told, .. } => app.notice = Some(told),
        Reply::Settled { .. } => app.settled = true,
        Reply::Evidence { study, at, perspective, sentence } => {
            if study > app.reading.since {
                app.reading.evidence.insert((at, perspective), sentence);
            }
        }
        Reply::Why { study, recipe, at, reasons } => {
            // The reasons of a passage that was left meanwhile must not take the place of those that are read.
            let open = app.open_passage().is_some_and(|(open, _)| open == at);
            if study > app.reading.since && open {
                app.reading.why = Some((at, recipe, reasons));
            }
        }
        Reply::Fields(fields) => {
            app.jobs.retain(|(progress, _)| progress.job != Job::Counting);
            app.biasing.fields = Some(fields);
        }
        Reply::Compared { number, question, compared } => {
            if number == app.comparing.number
                && let Some(place) = app.comparing.questions.get_mut(question)
            {
                *place = Some(compared);
            }
        }
        Reply::Desk(desk) => return labelling::laid(app, desk),
        Reply::Labelled(written) => return labelling::written(app, written),
        Reply::Weighed { number, item, probabilities } => {
            labelling::weighed(app, number, item, probabilities)
        }
        Reply::Swayed { number, lane, swayed } => {
            if number == app.swaying.number
                && let Some(place) = app.swaying.lanes.get_mut(lane)
            {
                *place = Some(swayed);
            }
        }
        Reply::Heard { number, heard } => answering::heard(app, number, heard),
        Reply::Swept { number, tallies, ended } => {
            if number == app.tuning.number {
                (app.tuning.tallies, app.tuning.ended) = (tallies, ended);
            }
        }
    }
    Vec::new()
}

fn turn(reply: &Reply) -> Option<Turn> {
    match reply {
        Reply::LaneReady { turn, .. }
        | Reply::LaneFailed { turn, .. }
        | Reply::Verdict { turn, .. }
        | Reply::AboutVerdicts { turn, .. }
        | Reply::Settled { turn } => Some(*turn),
        _ => None,
    }
}

/// A long job went on.
pub fn progressed(app: &mut App, progress: Progress, told: String) {
    // Words of a count that was given up say nothing of what goes on.
    if progress.job == Job::Counting && (app.screen != Screen::Bias || app.biasing.fields.is_some()) {
        return;
    }
    // One job follows another while a corpus is opened; embedding goes on beside them.
    app.jobs.retain(|(known, _)| known.job != progress.job && known.job == Job::Embedding);
    app.jobs.push((progress, told));
}

fn waits(state: &LaneState) -> bool {
    matches!(state, LaneState::Failed(_, Some(_)))
}

/// The corpus has its vectors now: lanes that waited for them are asked again.
fn wake(app: &mut App) -> Vec<Effect> {
    let mut effects = match app.screen {
        Screen::Tune => tuning::measure(app),
        Screen::Sway => swaying::ask(app),
        Screen::Compare => comparing::ask(app),
        Screen::Bias => biasing::ask(app),
        _ => Vec::new(),
    };
    if app.lanes.iter().any(|lane| waits(&lane.state)) {
        effects.extend(asking::again(app));
    }
    effects
}
