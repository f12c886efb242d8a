//! Computes the tables of the bias screen.

use std::sync::Arc;

use super::{Inputs, Measured, SideRow};
use crate::engine::{Compared, Sources, Uneven, covered_sides, desired};
use crate::measure::pir::{crossed, pooled, standings};
use crate::measure::significance::bootstrap_interval;
use crate::measure::uncertainty::DRAWS;
use crate::question::Question;
use crate::report::marks::share;
use crate::tui::app::{App, Corpus, Lane, LaneState};

/// Recomputes the tables if anything that they depend on has changed.
pub fn refresh(app: &mut App) {
    let inputs = Inputs::of(app);
    if !app.biasing.measured.inputs.as_ref().is_some_and(|before| before.same(&inputs)) {
        app.biasing.measured = Measured::of(app, inputs);
    }
}

impl Inputs {
    fn of(app: &App) -> Self {
        let done = app.comparing.questions.iter().flatten().count();
        let list = |lane: &Lane| (lane.state == LaneState::Ready, Arc::clone(&lane.ranking));
        Inputs {
            set: app.biasing.over_set.then_some((app.comparing.number, done)),
            judgments: (app.judgments.revision(), app.judgments.source),
            question: app.question.clone(),
            k: app.k,
            shown: (app.biasing.at, app.lane),
            fields: app.biasing.fields.clone(),
            lists: app.lanes.iter().map(list).collect(),
        }
    }
}

impl Measured {
    /// Measures this question, or all questions of the set whose outcome has arrived.
    fn of(app: &App, inputs: Inputs) -> Self {
        if !app.biasing.over_set {
            let compared = app.compared();
            return Measured::of_outcomes(app, &[(&compared, &app.question)], inputs);
        }
        let set = match &app.corpus {
            Corpus::Open(opened) => opened.questions.as_slice(),
            _ => &[],
        };
        let outcomes = app.comparing.questions.iter().zip(set);
        let outcomes: Vec<(&Compared, &Question)> = outcomes
            .filter_map(|(outcome, question)| Some((outcome.as_ref()?.as_ref().ok()?, question)))
            .collect();
        Measured::of_outcomes(app, &outcomes, inputs)
    }

    fn of_outcomes(app: &App, outcomes: &[(&Compared, &Question)], inputs: Inputs) -> Self {
        let compared: Vec<&Compared> = outcomes.iter().map(|(compared, _)| *compared).collect();
        // With the model's probabilities, one question has shares too.
        let expected = compared.first().is_some_and(|first| first.expected.is_some());
        let lanes = 0..app.lanes.len();
        let sides = lanes.clone().map(|lane| SideRow::of(app, &compared, lane)).collect();
        let as_shares = app.biasing.over_set || expected;
        let Some(field) = app.biasing.category(app.biasing.at) else {
            return Measured { sides, as_shares, inputs: Some(inputs), ..Measured::default() };
        };
        let counts =
            |lane: usize| compared.iter().map(|one| one.counts(lane, field)).collect::<Vec<Vec<usize>>>();
        let corpus = field.counts();
        let standings = lanes
            .map(|lane| standings(&pooled(counts(lane).iter().map(Vec::as_slice), corpus.len()), &corpus))
            .collect();
        let asked: Vec<Vec<usize>> = outcomes.iter().map(|(_, question)| desired(field, question)).collect();
        let matrix = crossed(&asked, &counts(app.lane), field.values.len());
        Measured { sides, as_shares, standings, matrix, inputs: Some(inputs) }
    }
}

impl SideRow {
    fn of(app: &App, compared: &[&Compared], lane: usize) -> Self {
        let lean_of = |one: &&Compared| match app.biasing.over_set {
            true => one.lean(lane),
            false => one.sides(lane).and_then(|_| one.lean(lane)),
        };
        let leans: Vec<f64> = compared.iter().filter_map(lean_of).collect();
        // Over the set, the questions are drawn; on one question, the model's verdicts.
        let interval = match app.biasing.over_set {
            true => bootstrap_interval(&leans, 0.95, DRAWS, 0).ok().map(|it| (it.low, it.high)),
            false => {
                app.lanes.get(lane).and_then(|lane| lane.figures.doubt?.lean).map(|it| (it.low, it.high))
            }
        };
        let counts = covered_sides(compared.iter().copied(), lane);
        let all: f64 = counts.iter().sum();
        let uneven: Vec<Uneven> = compared.iter().filter_map(|one| one.uneven(lane, app.k)).collect();
        let shown = |value: Option<f64>| value.map_or_else(|| "–".into(), share);
        let supports = compared.iter().filter_map(|one| one.supports.get(lane)).flatten();
        let (none, of) = supports.fold((0, 0), |(none, of), set| {
            (none + usize::from(set.is_none_or(|set| set.is_empty())), of + 1)
        });
        let many = !app.biasing.over_set && app.question.sides().is_none();
        let supporters = |statement: usize| {
            let sets = compared.iter().filter_map(|one| one.supports.get(lane)).flatten().flatten();
            sets.filter(|set| set.contains(statement)).count()
        };
        let statements = if many { app.question.perspectives.len() } else { 0 };
        let sources = compared.iter().fold(Sources::default(), |sum, one| sum.plus(one.sources(lane, app.k)));
        // Of one question of which nothing was judged, no side is known; over a set, such a question counts as covering none.
        let known =
            app.biasing.over_set || sources.judged > 0 || compared.iter().any(|one| one.expected.is_some());
        SideRow {
            supporters: (0..statements).map(supporters).collect(),
            covered: covered_text(app, compared, lane),
            shares: (known && all > 0.0).then(|| counts.map(|count| count / all)),
            lean: mean(leans.iter().copied()),
            interval,
            rkl: shown(mean(uneven.iter().map(|one| one.rkl.value))),
            awrf: shown(mean(uneven.iter().map(|one| one.awrf.value))),
            no_side: if known { format!("{none}/{of}") } else { "–".into() },
            sources,
        }
    }
}

/// The sides that the first k cover: in words for one question, as shares over the set.
fn covered_text(app: &App, compared: &[&Compared], lane: usize) -> String {
    let counts = covered_sides(compared.iter().copied(), lane);
    let all: f64 = counts.iter().sum();
    let expected = compared.first().is_some_and(|first| first.expected.is_some());
    if app.biasing.over_set || (expected && all > 0.0) {
        let [a, b, c, d] = counts.map(|count| share(count / all.max(1.0)));
        return if all == 0.0 { "–".into() } else { format!("{a:<7}{b:<7}{c:<5}{d}") };
    }
    let figures = compared.first().and_then(|first| first.figures.get(lane)?.as_ref());
    match (figures.filter(|figures| figures.is_measured()), counts.iter().position(|count| *count > 0.0)) {
        (None, _) => "–".into(),
        (Some(_), Some(place)) => ["▲ only", "▼ only", "both ▲ and ▼", "neither side"][place].to_owned(),
        (Some(figures), None) => format!("{} of {} statements", figures.covered.len(), figures.first.len()),
    }
}

fn mean(values: impl Iterator<Item = f64>) -> Option<f64> {
    let all: Vec<f64> = values.collect();
    (!all.is_empty()).then(|| all.iter().sum::<f64>() / all.len() as f64)
}
