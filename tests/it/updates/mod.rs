//! Messages in, state and effects out.

mod turns;
mod typing;

use std::sync::Arc;
use std::time::Duration;

use parallax::corpus::PassageIx;
use parallax::detect::LabelSource;
use parallax::engine::{Reach, Reply, Study, Turn};
use parallax::pipeline::Judged;
use parallax::question::By;
use parallax::tui::app::{App, Corpus, LaneState, Screen};
use parallax::tui::message::{Effect, Msg};
use parallax::tui::update::update;
use parallax::work::{Job, Progress};

use crate::stage::{self, PASSAGES, QUESTION, asked, empty, press, ranking, said};

fn tell(app: &mut App, reply: Reply) -> Vec<Effect> {
    update(app, Msg::Engine(reply))
}

fn lane_ready(turn: u64, lane: usize, order: &[usize]) -> Reply {
    let ranking = ranking(&PASSAGES, order, 1.0);
    Reply::LaneReady { turn: Turn(turn), lane, ranking, took: Duration::from_millis(1) }
}

fn verdict(turn: u64, at: u32, perspective: usize, p: f32) -> Reply {
    Reply::Verdict { turn: Turn(turn), judged: Judged { at: PassageIx(at), perspective, known: said(p) } }
}

/// The reach and the statements of the one plan that was ordered.
fn started(effects: &[Effect]) -> (Turn, Reach, Vec<String>) {
    let [Effect::Start { turn, plan, reach }] = effects else { panic!("no plan alone: {effects:?}") };
    (*turn, *reach, plan.question.perspectives.clone())
}

fn studied(effects: &[Effect]) -> Option<Study> {
    match effects {
        [Effect::Study(study)] => Some(study.clone()),
        [] => None,
        other => panic!("{other:?}"),
    }
}

/// Answers why the open passage stands where it does.
fn explained(app: &mut App) {
    let (at, _) = app.open_passage().unwrap();
    let (study, recipe) = (app.studies, app.lanes[app.lane].recipe.clone());
    tell(app, Reply::Why { study, recipe, at, reasons: Ok(Vec::new()) });
}
