//! The lanes, and what the user did with them: the state before every act, for undo, redo and the baseline of all differences.
//!
//! An act is a change of the lanes, of k, of the label source, of the question, of its statements, or of a label. The state before each act
//! is kept whole, so undoing it restores the very same frame. Lists are shared, so a state is small.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use tui_input::Input;

use super::keymap::action::Action;
use super::screens::lanes::LaneFigures;
use crate::annotate::View;
use crate::corpus::Passage;
use crate::engine::recipe::{ByModel, Diversify, Mmr, Project, Switches, Toward};
use crate::engine::{Judged, Judgments, Ranking, Recipe, SetTo};
use crate::expand::{Expand, Kind};
use crate::project::Variant;
use crate::question::{By, Question};
use crate::work::Job;

/// The most acts that can be undone.
const MOST: usize = 500;

/// The most dropped lanes that can be added again.
const DROPPED: usize = 8;

/// The state of a lane's list.
#[derive(Clone, Debug, PartialEq)]
pub enum LaneState {
    /// No question was asked yet.
    Idle,
    /// The list has not arrived yet.
    Waiting,
    /// The list has arrived.
    Ready,
    /// There is no list, for this reason. With a job, the lane is asked again when the job ends.
    Failed(String, Option<Job>),
}

/// One retriever's column.
#[derive(Clone, Debug)]
pub struct Lane {
    /// The recipe of its list.
    pub recipe: Recipe,
    /// The state of its list.
    pub state: LaneState,
    /// Its last list; drawn dimmed until a new one arrives.
    pub ranking: Ranking,
    /// How long the list took.
    pub took: Duration,
    /// The marked passage, from 0.
    pub selected: usize,
    /// The first passage on screen, counted among those that pass the filter.
    pub top: usize,
    /// The number that the lane keeps while it is moved and changed.
    pub id: u64,
    /// Its lists when it is asked as the supporting and as the opposing statement.
    pub reworded: Option<Result<[Ranking; 2], String>>,
    /// Its share of the width. A lane whose border was not dragged has [`Lane::WIDTH`].
    pub width: u32,
    /// The figures of the list.
    pub figures: LaneFigures,
}

impl Lane {
    /// The width of a lane whose border was not dragged.
    pub const WIDTH: u32 = 1_000;

    /// A lane before the first question.
    pub fn new(recipe: Recipe) -> Self {
        Lane {
            recipe,
            state: LaneState::Idle,
            ranking: Arc::default(),
            took: Duration::ZERO,
            selected: 0,
            top: 0,
            id: 0,
            reworded: None,
            width: Lane::WIDTH,
            figures: LaneFigures::default(),
        }
    }
}

/// The options last used with each switch.
#[derive(Clone, Debug)]
pub struct Options {
    /// The options of MMR.
    pub mmr: Mmr,
    /// The kind of expansion.
    pub expand: Expand,
    /// The options of projection.
    pub project: Project,
    /// The diversifier and its λ.
    pub diversify: (Diversify, f32),
    /// The model that re-ranked last.
    pub rerank: Option<ByModel>,
}

impl Default for Options {
    fn default() -> Self {
        Options {
            mmr: Mmr::new(Switches::LAMBDA),
            expand: Kind::Perspectives.into(),
            project: Project { variant: Variant::PapPlus, toward: Toward::Perspective(1) },
            diversify: (Diversify::Xquad, Switches::BALANCE),
            rerank: None,
        }
    }
}

/// Everything that an act can change.
#[derive(Clone, Debug)]
pub struct State {
    /// The lanes with their lists and their cursors.
    pub lanes: Vec<Lane>,
    /// The number of passages that count.
    pub k: usize,
    /// The judgments, with the label source.
    pub judgments: Judgments,
    /// The question with its statements.
    pub question: Question,
    /// The index of the lane with the cursor.
    pub lane: usize,
    /// Who made the statements.
    pub by: By,
    /// The language of the question, if it is not English.
    pub foreign: Option<&'static str>,
    /// The question line.
    pub line: Input,
    /// Statements given on the command line.
    pub given: Vec<String>,
    /// The options last used with each switch.
    pub options: Options,
    /// Whether everything had arrived.
    pub settled: bool,
    /// Whether the corpus had labels by hand.
    pub by_hand: bool,
    /// The best similarity and the usual one, if the question is far from every passage.
    pub far_off: Option<(f32, f32)>,
    /// The pinned baseline.
    pub pinned: Option<Arc<State>>,
    /// The number of labels written before.
    pub labels: u64,
}

impl State {
    /// Whether every lane has its list or has failed.
    pub fn is_listed(&self) -> bool {
        self.lanes.iter().all(|lane| matches!(lane.state, LaneState::Ready | LaneState::Failed(_, None)))
    }

    /// The lane of that number, if it had a list.
    pub fn lane(&self, id: u64) -> Option<&Lane> {
        self.lanes.iter().find(|lane| lane.id == id && lane.state == LaneState::Ready)
    }
}

/// A label set from the lanes.
#[derive(Clone, Debug)]
pub struct LabelStep {
    /// The number of the order.
    pub number: u64,
    /// The question.
    pub question: Question,
    /// The passage.
    pub passage: Arc<Passage>,
    /// Whether it supports each statement.
    pub answers: BTreeMap<String, bool>,
    /// The annotator's view before; `None` until it is on disk.
    pub before: Option<View>,
}

/// What an order to label writes.
#[derive(Clone, Debug)]
pub enum LabelTo {
    /// This.
    Known(SetTo),
    /// What was on disk before the order of that number, which its reply holds.
    Before(u64),
}

/// An order to label that is not sent yet.
#[derive(Clone, Debug)]
pub struct HeldLabel {
    /// The number of the order.
    pub number: u64,
    /// The question.
    pub question: Question,
    /// The passage.
    pub passage: Arc<Passage>,
    /// What it writes.
    pub to: LabelTo,
}

/// An act, by the state on its other side.
#[derive(Clone, Debug)]
pub struct Step {
    /// The state.
    pub state: Box<State>,
    /// The label, if the act was one.
    pub label: Option<LabelStep>,
}

/// All acts, and what undo and redo need.
#[derive(Clone, Debug, Default)]
pub struct Acts {
    /// Acts to undo, the last one at the end.
    pub undo: Vec<Step>,
    /// Acts to do again.
    pub redo: Vec<Step>,
    /// The state that differences are measured against, if the user pinned one.
    pub pinned: Option<Arc<State>>,
    /// The state to go back to when a preview is given up: on the tuning screen and in the question line.
    pub preview: Option<Box<State>>,
    /// Recipes of dropped lanes, the newest first.
    pub dropped: Vec<Recipe>,
    /// The number of labels written and not undone.
    pub labels: u64,
    /// The number of the last order to label.
    pub orders: u64,
    /// Orders whose replies have not arrived, and whether they set a label instead of taking one back.
    pub pending: Vec<(u64, bool)>,
    /// Orders that are not sent yet, the oldest first. Orders for one passage never overtake each other.
    pub held: Vec<HeldLabel>,
    /// Whether the program ends once every label is on disk.
    pub leaving: bool,
    /// What was open before another corpus was chosen, and what was done there.
    pub left: Option<Box<(State, Acts)>>,
}

impl Acts {
    /// The state that all differences are measured against: the pinned one, or the last one in which all lanes had their lists. `None` if the
    /// question was another one.
    pub fn baseline(&self, question: &Question) -> Option<&State> {
        let pinned = self.pinned.as_deref();
        let last = || self.undo.iter().rev().map(|step| &*step.state).find(|state| state.is_listed());
        pinned.or_else(last).filter(|state| state.question == *question && state.is_listed())
    }

    /// Whether labels are still being written.
    pub fn is_writing(&self) -> bool {
        !self.pending.is_empty()
    }

    /// Changes every state that was kept since the order to label of that number: its label is on disk only now, and undoing a later act must not
    /// lose it.
    pub fn change_since(&mut self, number: u64, change: &mut dyn FnMut(&mut State)) {
        let of = |step: &Step| step.label.as_ref().is_some_and(|label| label.number == number);
        if let Some(at) = self.undo.iter().position(of) {
            let labels = self.undo[at].state.labels;
            self.undo[at + 1..].iter_mut().for_each(|step| change(&mut step.state));
            self.redo.iter_mut().for_each(|step| change(&mut step.state));
            self.preview.iter_mut().for_each(|state| change(state));
            let later = self.pinned.iter_mut().filter(|state| state.labels > labels);
            later.for_each(|state| change(Arc::make_mut(state)));
        } else if let Some(at) = self.redo.iter().position(of) {
            // The state after it, and after what was done later.
            self.redo[..=at].iter_mut().for_each(|step| change(&mut step.state));
        }
    }

    /// Lets a late verdict count in the baseline too.
    pub fn take_verdict(&mut self, question: &Question, judged: &Judged) {
        let write = |state: &mut State| {
            if state.question == *question {
                state.judgments.take(judged.at, judged.perspective, judged.known.clone());
            }
        };
        if let Some(step) = self.undo.iter_mut().rev().find(|step| step.state.is_listed()) {
            write(&mut step.state);
        }
        if let Some(pinned) = &mut self.pinned {
            write(Arc::make_mut(pinned));
        }
    }

    /// Remembers a dropped lane.
    pub fn remember_dropped(&mut self, recipe: Recipe) {
        self.dropped.retain(|other| *other != recipe);
        self.dropped.insert(0, recipe);
        self.dropped.truncate(DROPPED);
    }

    /// Keeps the state before an act. What was undone cannot be done again after it.
    pub fn push(&mut self, state: State, label: Option<LabelStep>) {
        self.redo.clear();
        self.undo.push(Step { state: Box::new(state), label });
        let surplus = self.undo.len().saturating_sub(MOST);
        self.undo.drain(..surplus);
    }
}

/// What a key says of the passage under the cursor.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Label {
    /// It supports the first side alone.
    Support,
    /// It supports the other side alone.
    Oppose,
    /// It supports both.
    Both,
    /// It supports no statement.
    None,
    /// It supports the statement of this number key, from 0, or no longer.
    Statement(usize),
}

impl Label {
    /// The label that an action gives; `None` if it gives none.
    pub fn of(action: Action) -> Option<Self> {
        Some(match action {
            Action::LabelSupport => Label::Support,
            Action::LabelOppose => Label::Oppose,
            Action::LabelBoth => Label::Both,
            Action::LabelNone => Label::None,
            Action::ToggleLabel(i) => Label::Statement(i),
            _ => return None,
        })
    }
}
