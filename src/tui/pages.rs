//! The list of screens, and questions about the one that is shown.

use super::app::{App, Corpus, LaneState};
use super::keymap::{Context, Screen};
use super::page::Page;
use super::screens::bias::screen::Bias;
use super::screens::compare::screen::Compare;
use super::screens::detectors::screen::Detectors;
use super::screens::help::screen::Help;
use super::screens::labelling::update::Labels;
use super::screens::lanes::update::Lanes;
use super::screens::passage::editor::WhatIf;
use super::screens::passage::screen::Open;
use super::screens::reader::mix::Mixer;
use super::screens::reader::nuggets::KeyPoints;
use super::screens::reader::sides::Sides;
use super::screens::reader::update::Reader;
use super::screens::statements::screen::Statements;
use super::screens::sycophancy::lab::FramingLab;
use super::screens::sycophancy::screen::AsEitherSide;
use super::screens::tune::update::Tune;

/// All screens. The lanes come first; the order of the others does not matter.
pub static PAGES: [&dyn Page; 16] = [
    &Lanes,
    &Open,
    &WhatIf,
    &Statements,
    &Tune,
    &AsEitherSide,
    &FramingLab,
    &Compare,
    &Bias,
    &Reader,
    &KeyPoints,
    &Mixer,
    &Sides,
    &Labels,
    &Detectors,
    &Help,
];

/// Returns the screen of that name, or the lanes if there is none.
pub fn page(screen: Screen) -> &'static dyn Page {
    PAGES.into_iter().find(|page| page.screen() == screen).unwrap_or(PAGES[0])
}

/// Returns the context in which keys are looked up now.
pub fn context(app: &App) -> Context {
    if app.palette.is_some() { Context::Palette } else { page(app.screen).context(app) }
}

/// Whether everything that was asked for has arrived. `<Wait>` in a script or a session waits for this.
pub fn settled(app: &App) -> bool {
    let opening = matches!(app.corpus, Corpus::Opening);
    // A lane that waits for a job is asked again when the job ends.
    let waits = app.lanes.iter().any(|lane| matches!(lane.state, LaneState::Failed(_, Some(_))));
    let busy = opening
        || waits
        || app.gathering.is_some()
        || !app.settled
        || app.acts.is_writing()
        || !app.jobs.is_empty();
    let mut evidence = app.reading.requested.iter().flat_map(|(at, all)| all.iter().map(move |i| (*at, *i)));
    !busy && evidence.all(|pair| app.reading.evidence.contains_key(&pair)) && page(app.screen).settled(app)
}
