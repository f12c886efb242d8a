//! The bias screen: which side each lane favours, and whose passages it returns.
//!
//! May use: as `screens` says.

pub mod screen;

use std::sync::Arc;

use crate::corpus::store::{Field, Fields};
use crate::detect::LabelSource;
use crate::engine::{Compared, Ranking, Uneven, covered_sides, desired};
use crate::measure::pir::{Crossed, Standing, crossed, pooled, standings};
use crate::question::Question;
use crate::report::marks::{share, signed};
use crate::tui::app::{App, Corpus, Lane, LaneState};
use crate::tui::keymap::action::{Action, Binding, Context, Screen, bind, shared};

impl Screen {
    /// The bias screen.
    pub const BIAS: Screen = Screen("bias");
}

/// The state of the bias screen. Outcomes over the question set are part of the comparison's state.
#[derive(Clone, Debug, Default)]
pub struct BiasState {
    /// The metadata fields of the corpus, once they are counted.
    pub fields: Option<Arc<Fields>>,
    /// The index of the category shown.
    pub at: usize,
    /// Whether to measure over the whole question set instead of this question.
    pub over_set: bool,
    /// The index of the first value shown.
    pub scroll: usize,
    /// The index of the category whose values the lanes show.
    pub on_lanes: Option<usize>,
    /// The tables that are drawn.
    pub measured: Measured,
}

/// The rows of the tables; recomputed when a list, a judgment, k, the field or the lane under the cursor changes.
#[derive(Clone, Debug, Default)]
pub struct Measured {
    /// The sides that each lane favours.
    sides: Vec<SideRow>,
    /// Whether the sides covered are shares rather than words.
    as_shares: bool,
    /// For each lane, every value's share of the first k and of the corpus.
    standings: Vec<Vec<Standing>>,
    /// Values asked for × values retrieved by the lane under the cursor, one row per value that a question asks for.
    matrix: Vec<Crossed>,
    inputs: Option<Inputs>,
}

/// A lane's row in the table of sides.
#[derive(Clone, Debug, Default)]
struct SideRow {
    /// The sides that the first k cover: in words for one question, as shares over the set.
    covered: String,
    lean: String,
    rkl: String,
    awrf: String,
    /// How many passages take no side, and of how many: `2/5`.
    no_side: String,
}

/// The inputs of the tables. Lists and fields are compared by identity: they are replaced, never changed.
#[derive(Clone, Debug)]
struct Inputs {
    /// Over the set: the batch, and how many of its questions are done.
    set: Option<(u64, usize)>,
    judgments: (u64, LabelSource),
    question: Question,
    k: usize,
    /// The category shown and the lane under the cursor.
    shown: (usize, usize),
    fields: Option<Arc<Fields>>,
    lists: Vec<(bool, Ranking)>,
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

    fn same(&self, now: &Inputs) -> bool {
        let lists = |before: &(bool, Ranking), now: &(bool, Ranking)| {
            before.0 == now.0 && Arc::ptr_eq(&before.1, &now.1)
        };
        let fields = match (&self.fields, &now.fields) {
            (Some(before), Some(now)) => Arc::ptr_eq(before, now),
            (None, None) => true,
            _ => false,
        };
        (self.set, self.judgments, self.k, self.shown) == (now.set, now.judgments, now.k, now.shown)
            && fields
            && self.question == now.question
            && self.lists.len() == now.lists.len()
            && self.lists.iter().zip(&now.lists).all(|(before, now)| lists(before, now))
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
        let lean = |one: &&Compared| match app.biasing.over_set {
            true => one.lean(lane),
            false => one.sides(lane).and_then(|_| one.lean(lane)),
        };
        let lean = mean(compared.iter().filter_map(lean));
        let uneven: Vec<Uneven> = compared.iter().filter_map(|one| one.uneven(lane, app.k)).collect();
        let shown = |value: Option<f64>| value.map_or_else(|| "–".into(), share);
        let supports = compared.iter().filter_map(|one| one.supports.get(lane)).flatten();
        let (none, of) = supports.fold((0, 0), |(none, of), set| {
            (none + usize::from(set.is_none_or(|set| set.is_empty())), of + 1)
        });
        SideRow {
            covered: covered_text(app, compared, lane),
            lean: lean.map_or_else(|| "–".into(), |lean| signed(lean).trim().to_owned()),
            rkl: shown(mean(uneven.iter().map(|one| one.rkl.value))),
            awrf: shown(mean(uneven.iter().map(|one| one.awrf.value))),
            no_side: format!("{none}/{of}"),
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
        (Some(figures), None) => format!("{} of {} perspectives", figures.covered.len(), figures.first.len()),
    }
}

fn mean(values: impl Iterator<Item = f64>) -> Option<f64> {
    let all: Vec<f64> = values.collect();
    (!all.is_empty()).then(|| all.iter().sum::<f64>() / all.len() as f64)
}

impl BiasState {
    /// The category at an index.
    pub fn category(&self, at: usize) -> Option<&Field> {
        self.fields.as_ref()?.categories.get(at)
    }
}

/// The keys.
pub const KEYS: &[Binding] = &[
    bind(
        Context::Bias,
        &["<Tab>"],
        Action::NextField,
        "field",
        "go to the next field that the passages carry",
    ),
    bind(Context::Bias, &["<S-Tab>"], Action::PreviousField, "", "go to the field before"),
    bind(
        Context::Bias,
        &["<Enter>"],
        Action::OnLanes,
        "show on the lanes",
        "show the field's values on the lanes, or no longer",
    ),
    bind(
        Context::Bias,
        &["o"],
        Action::OverSet,
        "over the set",
        "measure over the question set, or on this question alone",
    ),
    bind(Context::Bias, &["<Right>", "l"], Action::NextLane, "lane", "go to the next lane"),
    bind(Context::Bias, &["<Left>", "h"], Action::PreviousLane, "", "go to the lane before"),
    shared::down(Context::Bias, "", "scroll the values down"),
    shared::up(Context::Bias, "scroll the values up"),
    shared::label_source(Context::Bias),
    bind(Context::Bias, &["<Esc>", "q", "b"], Action::Back, "back", "go back to the lanes"),
    shared::save_frame(Context::Bias),
    shared::record(Context::Bias),
    shared::help(Context::Bias),
    shared::palette(Context::Bias),
];
