//! All that the interface knows. Plain data: everything that changes it is in `update`.

use std::sync::Arc;
use std::time::Duration;

use tui_input::Input;

use super::answering::Answering;
use super::config::Layout;
use super::desk::Labelling;
pub use super::instruments::{
    Biasing, Comparing, Editing, Filter, Options, Order, Palette, Reading, Swaying, Tuning,
};
pub use super::kept::History;
use super::keymap::{Action, Context, Keymap};
use super::session::Replay;
use super::wrap::fit;
use super::{Size, Start};
use crate::corpus::{Passage, PassageIx};
use crate::engine::{Opened, Turn};
use crate::pipeline::recipe::{self};
use crate::pipeline::{Book, Compared, Figures, Plan, Ranked, Ranking, Recipe};
use crate::question::{By, Question};
use crate::report::marks::{Glyphs, Mark};
use crate::report::safe;
use crate::work::{Job, Progress};

/// What fills the screen.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Screen {
    /// The question and its lanes.
    Explore,
    /// One passage in full.
    Read,
    /// The statements being edited.
    Statements,
    /// One lane in all forms of one switch.
    Tune,
    /// The lanes asked neutrally and as either side.
    Sway,
    /// The lanes over the question set.
    Compare,
    /// Passages being labelled by hand.
    Annotate,
    /// Which way the lanes lean, and whose passages they bring up.
    Bias,
    /// What is read from the lanes' lists.
    Answer,
    /// The list of keys.
    Help,
}

/// Whether there is something to search in.
#[derive(Clone, Debug)]
pub enum Corpus {
    /// Being opened.
    Opening,
    /// Open.
    Open(Box<Opened>),
    /// Could not be opened.
    Failed(String),
}

/// What a lane has to show.
#[derive(Clone, Debug, PartialEq)]
pub enum LaneState {
    /// Nothing was asked yet.
    Idle,
    /// Its list is on the way.
    Waiting,
    /// Its list is there.
    Ready,
    /// It has no list, for this reason; it will have one when the job has ended.
    Failed(String, Option<Job>),
}

/// One retriever's column.
#[derive(Clone, Debug)]
pub struct Lane {
    /// How it is made.
    pub recipe: Recipe,
    /// How its present list stands.
    pub state: LaneState,
    /// Its last list; dimmed while a new one is on the way.
    pub ranking: Ranking,
    /// How long the list took.
    pub took: Duration,
    /// The marked passage, from 0.
    pub selected: usize,
    /// How many of the passages that the filter lets through stand above the first one on screen.
    pub top: usize,
    /// What it was before the last change to it.
    pub before: Option<Box<Before>>,
    /// How much of the width it takes, beside [`Lane::WIDTH`] of a lane that nobody dragged.
    pub width: u32,
}

impl Lane {
    /// The width of a lane that nobody dragged.
    pub const WIDTH: u32 = 1_000;

    /// A lane that nothing was asked of yet.
    pub fn new(recipe: Recipe) -> Self {
        Lane {
            recipe,
            state: LaneState::Idle,
            ranking: Arc::default(),
            took: Duration::ZERO,
            selected: 0,
            top: 0,
            before: None,
            width: Lane::WIDTH,
        }
    }
}

/// A lane before the last change to it: what rank moves are told against, and what `x` brings back.
#[derive(Clone, Debug)]
pub struct Before {
    /// How it was made.
    pub recipe: Recipe,
    /// Its list.
    pub ranking: Ranking,
    /// How long the list took.
    pub took: Duration,
}

/// Everything.
#[derive(Clone, Debug)]
pub struct App {
    /// Columns and rows.
    pub size: Size,
    /// What fills the screen.
    pub screen: Screen,
    /// Whether the cursor is in the question line.
    pub typing: bool,
    /// The question line.
    pub line: Input,
    /// Questions of the set that the line may become.
    pub completions: Vec<String>,
    /// The one that is marked.
    pub completion: Option<usize>,
    /// Questions asked before, and the one of them that the line holds.
    pub history: History,
    /// Words that passages must hold to be shown.
    pub filter: Filter,
    /// Whether all lanes scroll together.
    pub together: bool,
    /// The lane whose right border is being dragged.
    pub dragged: Option<usize>,
    /// What is asked, with its statements.
    pub question: Question,
    /// Who made the statements.
    pub by: By,
    /// Counts edits and toggles.
    pub turn: Turn,
    /// What is searched.
    pub corpus: Corpus,
    /// The lanes, left to right.
    pub lanes: Vec<Lane>,
    /// The lane with the cursor.
    pub lane: usize,
    /// How many passages count.
    pub k: usize,
    /// What is known of the present question's pairs.
    pub book: Book,
    /// Long jobs that are going on, with their words.
    pub jobs: Vec<(Progress, String)>,
    /// Nothing more will come for the present turn.
    pub settled: bool,
    /// Something to be told.
    pub notice: Option<String>,
    /// The passage that is open.
    pub reading: Reading,
    /// Studies asked for so far.
    pub studies: u64,
    /// The statements being edited.
    pub editing: Editing,
    /// The lane being tuned.
    pub tuning: Tuning,
    /// The lanes asked in three wordings.
    pub swaying: Swaying,
    /// The lanes over the question set.
    pub comparing: Comparing,
    /// Which way they lean.
    pub biasing: Biasing,
    /// What is read from them.
    pub answering: Answering,
    /// Surveys asked for so far.
    pub surveys: u64,
    /// What each switch was last used with.
    pub options: Options,
    /// Passages being labelled by hand.
    pub labelling: Labelling,
    /// A session that is being played.
    pub replay: Option<Replay>,
    /// The file in which what is done is being written down.
    pub recording: Option<String>,
    /// An action being looked for, over whatever fills the screen.
    pub palette: Option<Palette>,
    /// The screen that help was called from.
    pub help_from: Screen,
    /// First line of the help that is shown.
    pub help_scroll: usize,
    /// What marks are drawn with.
    pub glyphs: Glyphs,
    /// How much room there is for what.
    pub layout: Layout,
    /// What keys order.
    pub keys: Arc<Keymap>,
    /// Statements given on the command line for the first question.
    pub given: Vec<String>,
}

impl App {
    /// The interface before anything has happened.
    pub fn new(start: &Start, size: Size) -> Self {
        App {
            size,
            screen: Screen::Explore,
            typing: start.question.is_empty(),
            line: Input::new(start.question.clone()),
            completions: Vec::new(),
            completion: None,
            history: History::of(
                start.kept.iter().flat_map(|kept| kept.asked.iter().map(|asked| asked.question.clone())),
            ),
            filter: Filter::default(),
            together: false,
            dragged: None,
            question: Question::default(),
            by: By::None,
            turn: Turn::default(),
            corpus: Corpus::Opening,
            lanes: start.lanes.iter().cloned().map(Lane::new).collect(),
            lane: 0,
            k: start.k,
            book: Book::new(0, start.source, 0.5),
            jobs: Vec::new(),
            settled: true,
            notice: start.kept.as_ref().and_then(|kept| kept.told.clone()),
            reading: Reading::default(),
            studies: 0,
            editing: Editing::default(),
            tuning: Tuning::default(),
            swaying: Swaying::default(),
            comparing: Comparing::default(),
            biasing: Biasing::default(),
            answering: Answering::default(),
            surveys: 0,
            options: Options::default(),
            labelling: Labelling::default(),
            replay: None,
            recording: None,
            palette: None,
            help_from: Screen::Explore,
            help_scroll: 0,
            glyphs: start.config.glyphs,
            layout: start.config.layout,
            keys: Arc::clone(&start.config.keys),
            given: start.perspectives.clone(),
        }
    }

    /// The key of an action in a place, as it is shown.
    pub fn key(&self, context: Context, action: Action) -> String {
        self.keys.shown(context, action, self.glyphs == Glyphs::Ascii)
    }

    /// The number of a survey that takes the place of all earlier ones.
    pub fn next_survey(&mut self) -> u64 {
        self.surveys += 1;
        self.surveys
    }

    /// The names of all lanes, safe to draw.
    pub fn titles(&self) -> Vec<String> {
        let titles = recipe::titles(self.lanes.iter().map(|lane| &lane.recipe));
        titles.iter().map(|title| safe::line(title)).collect()
    }

    /// A lane's name in at most `width` columns, so that it can be told from the others.
    pub fn short_title(&self, lane: usize, width: usize) -> String {
        fit(&recipe::fit_apart(&self.titles(), lane, width), width)
    }

    /// What is asked of the engine now.
    pub fn plan(&self) -> Plan {
        let lanes = self.lanes.iter().map(|lane| lane.recipe.clone()).collect();
        Plan { question: self.question.clone(), lanes, k: self.k, source: self.book.source }
    }

    /// The marked passage of the lane with the cursor.
    pub fn selected(&self) -> Option<&Ranked> {
        let lane = self.lanes.get(self.lane)?;
        lane.ranking.get(lane.selected).filter(|ranked| self.filter.lets(ranked))
    }

    /// Whether a filter is being typed, or lets only some passages through.
    pub fn filtered(&self) -> bool {
        self.screen == Screen::Explore && (self.filter.typing || !self.filter.line.value().trim().is_empty())
    }

    /// The places of a lane's passages that the filter lets through, from 0, best first.
    pub fn shown(&self, lane: &Lane) -> Vec<usize> {
        let passages = lane.ranking.iter().enumerate();
        passages.filter(|(_, ranked)| self.filter.lets(ranked)).map(|(place, _)| place).collect()
    }

    /// A passage's rank in a lane, from 1.
    pub fn rank_in(&self, lane: &Lane, at: PassageIx) -> Option<usize> {
        lane.ranking.rank_of(at)
    }

    /// The figures of a lane, if the question has statements and the lane a list.
    pub fn figures(&self, lane: &Lane) -> Option<Figures> {
        (lane.state == LaneState::Ready)
            .then(|| Figures::of(&lane.ranking, &self.book, &self.question, self.k))?
    }

    /// What the present lists come to; a lane that has none yet counts as one that failed.
    pub fn compared(&self) -> Compared {
        let lists =
            self.lanes.iter().map(|lane| (lane.state == LaneState::Ready).then_some(&lane.ranking[..]));
        let lists: Vec<Option<&[Ranked]>> = lists.collect();
        Compared::of(&self.question, self.k, &lists, &self.book)
    }

    /// The figures of a lane before the last change to it.
    pub fn figures_before(&self, lane: &Lane) -> Option<Figures> {
        Figures::of(&lane.before.as_ref()?.ranking, &self.book, &self.question, self.k)
    }

    /// The mark of a passage.
    pub fn mark(&self, at: PassageIx) -> Mark {
        if self.book.perspectives == 0 {
            return Mark::Pending;
        }
        Mark::of_set(self.book.support(at), &self.question)
    }

    /// The perspectives that the label that counts says a passage supports.
    pub fn supported(&self, at: PassageIx) -> Vec<usize> {
        let supports = |i: &usize| self.book.verdict(at, *i).is_some_and(|verdict| verdict.supports);
        (0..self.book.perspectives).filter(supports).collect()
    }

    /// A passage that is open for reading.
    pub fn open_passage(&self) -> Option<(PassageIx, Arc<Passage>)> {
        self.selected().map(|ranked| (ranked.at, Arc::clone(&ranked.passage)))
    }

    /// The progress of a job, if it is going on.
    pub fn job(&self, job: Job) -> Option<Progress> {
        self.jobs.iter().map(|(progress, _)| *progress).find(|progress| progress.job == job)
    }
}
