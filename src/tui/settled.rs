//! Whether anything is still on the way: what `<Wait>` in a script or a session waits for.

use super::app::{App, Corpus, LaneState, Screen};

/// Whether all lanes, verdicts and whatever the screen asked for have come.
pub fn settled(app: &App) -> bool {
    let opening = matches!(app.corpus, Corpus::Opening);
    let still = opening || !app.settled || !app.jobs.is_empty() || waits(app);
    !still && read(app)
}

/// Whether a lane will be asked again when a job ends, which may not have told of itself yet.
fn waits(app: &App) -> bool {
    app.lanes.iter().any(|lane| matches!(lane.state, LaneState::Failed(_, Some(_))))
}

/// Whether all that was asked of the open passage or the tuned lane has come.
fn read(app: &App) -> bool {
    let reading = &app.reading;
    let mut asked = reading.asked.iter().flat_map(|(at, all)| all.iter().map(move |i| (*at, *i)));
    let why = app.screen != Screen::Read
        || app.open_passage().is_none_or(|(at, _)| {
            let lane = &app.lanes[app.lane];
            let known = |(of, recipe, _): &(_, _, _)| *of == at && *recipe == lane.recipe;
            reading.why.as_ref().is_some_and(known) || lane.state != LaneState::Ready
        });
    let swept = app.screen != Screen::Tune || app.tuning.ended;
    let swayed = app.screen != Screen::Sway || app.swaying.lanes.iter().all(Option::is_some);
    let compared = app.screen != Screen::Compare || app.comparing.questions.iter().all(Option::is_some);
    let labelling = &app.labelling;
    let labelled = app.screen != Screen::Annotate
        || match &labelling.desk {
            None => false,
            Some(Err(_)) => true,
            Some(Ok(_)) => labelling.saving.is_none() && labelling.weighed.iter().all(Option::is_some),
        };
    let biasing = &app.biasing;
    let biased = app.screen != Screen::Bias
        || biasing.fields.is_some()
            && (!biasing.over_set || app.comparing.questions.iter().all(Option::is_some));
    let heard = app.screen != Screen::Answer || !app.answering.going;
    let instruments = heard && swept && swayed && compared && biased && labelled;
    instruments && why && asked.all(|pair| reading.evidence.contains_key(&pair))
}
