//! The tuning screen: one lane in all forms of one switch. The lane shows the marked form; `Enter` takes it, `Esc` puts the lane back.
//!
//! May use: as `screens` says.

pub mod draw;
pub mod update;

use tui_input::Input;

use crate::engine::recipe::{Mmr, Rerank, Switch};
use crate::engine::{Ranking, Recipe, Tally};
use crate::tui::keymap::action::{Action, Binding, Context, Screen, bind, shared};
use crate::tui::widgets::text::Row;

impl Screen {
    /// The tuning screen.
    pub const TUNE: Screen = Screen("tune");
}

/// The state of the tuning screen.
#[derive(Clone, Debug)]
pub struct Tuning {
    /// The switch.
    pub switch: Switch,
    /// The lane's recipe in all forms of that switch; the first form is off.
    pub forms: Vec<Recipe>,
    /// The marked form.
    pub at: usize,
    /// Whether to measure over the whole question set instead of this question.
    pub over_set: bool,
    /// The batch whose figures are shown.
    pub number: u64,
    /// The figures of each form so far, or why there are none.
    pub tallies: Result<Vec<Tally>, String>,
    /// Whether all figures have arrived.
    pub ended: bool,
    /// The first visible line of what the form did.
    pub scroll: usize,
    /// The perspective being typed, to project toward.
    pub typed: Option<Input>,
    /// What the expansion added, laid out for the present width.
    pub added: AddedText,
}

/// The texts of a lane's expansion as they are drawn; laid out again if the lane's list or the width changes.
#[derive(Clone, Debug, Default)]
pub struct AddedText {
    /// The lines; empty if the lane was not expanded.
    pub rows: Vec<Row>,
    /// The list and the columns that they were laid out for.
    inputs: Option<(Ranking, usize)>,
}

impl Default for Tuning {
    fn default() -> Self {
        Tuning {
            switch: Switch::Mmr,
            forms: Vec::new(),
            at: 0,
            over_set: false,
            number: 0,
            tallies: Ok(Vec::new()),
            ended: true,
            scroll: 0,
            typed: None,
            added: AddedText::default(),
        }
    }
}

impl Tuning {
    /// MRecall and Prec over λ of MMR, as far as they have arrived; without MMR λ is 1.
    pub fn curves(&self) -> [Vec<(f64, f64)>; 2] {
        let mut points: [Vec<(f64, f64)>; 2] = Default::default();
        for (form, tally) in self.forms.iter().zip(self.tallies.as_deref().unwrap_or_default()) {
            let lambda = match form.switches.rerank {
                Some(Rerank::Mmr(Mmr { lambda, .. })) => f64::from(lambda),
                Some(_) => continue,
                None => 1.0,
            };
            points[0].extend(tally.mrecall().map(|value| (lambda, value)));
            points[1].extend(tally.prec().map(|value| (lambda, value)));
        }
        for points in &mut points {
            points.sort_by(|a, b| a.0.total_cmp(&b.0));
        }
        points
    }
}

/// The switches in the order of the tabs.
pub const SWITCHES: [Switch; 4] = [Switch::Mmr, Switch::Expand, Switch::Project, Switch::Diversify];

/// The keys.
pub const KEYS: &[Binding] = &[
    bind(
        Context::Tune,
        &["<Tab>", "<Right>", "l"],
        Action::NextSwitch,
        "switch",
        "go to the next switch: MMR, expansion, projection, diversifier",
    ),
    bind(Context::Tune, &["<S-Tab>", "<Left>", "h"], Action::PreviousSwitch, "", "go to the switch before"),
    shared::down(Context::Tune, "form", "try the next form on the lane"),
    shared::up(Context::Tune, "try the form before"),
    bind(
        Context::Tune,
        &["o"],
        Action::OverSet,
        "over the set",
        "measure over the question set, or on this question alone",
    ),
    bind(
        Context::Tune,
        &["="],
        Action::TypePerspective,
        "toward",
        "project toward a perspective that you type",
    ),
    bind(Context::Toward, &["<Enter>"], Action::ApplyPerspective, "project", "project toward what was typed"),
    bind(Context::Toward, &["<Esc>"], Action::Back, "cancel", "leave the projection as it was"),
    shared::page_down(Context::Tune, "scroll", "scroll what the form did"),
    shared::page_up(Context::Tune, "scroll back"),
    bind(Context::Tune, &["<Enter>"], Action::TakeForm, "take it", "give the lane the marked form"),
    bind(Context::Tune, &["<Esc>", "q", "t"], Action::Back, "put back", "leave the lane as it was"),
    shared::save_frame(Context::Tune),
    shared::record(Context::Tune),
    shared::help(Context::Tune),
    shared::palette(Context::Tune),
];
