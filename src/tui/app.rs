//! The state of the explorer, and what it starts with. This is plain data: the code that changes it is in `update` and in the screens.

use std::path::PathBuf;
use std::sync::Arc;

use tui_input::Input;

use super::config::{Config, Layout, Source};
use super::keymap::{Action, Context, Keymap, Screen};
use super::message::Effect;
use super::query_history::{History, PastQuery, QueryHistory};
use super::screens::bias::BiasState;
use super::screens::compare::Comparing;
use super::screens::detectors::Choosing;
use super::screens::labelling::state::Labelling;
use super::screens::palette::Palette;
use super::screens::passage::Reading;
use super::screens::reader::{AnswerSides, Answering, Mixing, Points};
use super::screens::statements::Editing;
use super::screens::sycophancy::SycophancyScreen;
use super::screens::tune::Tuning;
use super::script::Size;
use super::session::Replay;
use super::theme::{Depth, Look, Theme};
use super::undo::Acts;
pub use super::undo::{Lane, LaneState, Options};
use super::widgets::text::fit;
use crate::corpus::{Passage, PassageIx};
use crate::detect::{Choice, LabelSource};
use crate::engine::{
    Compared, Figures, Judgments, Opened, Opening, Query, Ranked, Recipe, Shares, Shelved, Turn, recipe,
};
use crate::question::{By, Question};
use crate::report::marks::{Glyphs, Mark};
use crate::report::safe;
use crate::work::{Job, Progress};

/// How many statements have a number key.
pub const NUMBERS: usize = 9;

/// The corpus, as far as it is open.
#[derive(Clone, Debug)]
pub enum Corpus {
    /// It is being opened.
    Opening,
    /// It is open.
    Open(Box<Opened>),
    /// It could not be opened, for this reason.
    Failed(String),
}

/// The words that a passage must contain to be shown.
#[derive(Clone, Debug, Default)]
pub struct Filter {
    /// The words.
    pub line: Input,
    /// Whether they are being typed.
    pub typing: bool,
}

impl Filter {
    /// Whether the title or the text contains every word, ignoring case.
    pub fn passes(&self, ranked: &Ranked) -> bool {
        let mut words = self.line.value().split_whitespace().map(str::to_lowercase).peekable();
        if words.peek().is_none() {
            return true;
        }
        let texts = [&ranked.passage.title, &ranked.passage.text].map(|text| text.to_lowercase());
        words.all(|word| texts.iter().any(|text| text.contains(&word)))
    }
}

/// The state of the explorer.
#[derive(Clone, Debug)]
pub struct App {
    /// Columns and rows of the terminal.
    pub size: Size,
    /// The screen that is shown.
    pub screen: Screen,
    /// Whether the cursor is in the question line.
    pub typing: bool,
    /// Whether the line holds the question of an earlier start, untouched: what is typed takes its place.
    pub recalled: bool,
    /// The question line.
    pub line: Input,
    /// Questions of the set that match the line.
    pub completions: Vec<String>,
    /// The index of the marked completion.
    pub completion: Option<usize>,
    /// The earlier questions, and which of them the line shows.
    pub history: History,
    /// The words that a passage must contain to be shown.
    pub filter: Filter,
    /// Whether all lanes scroll together.
    pub together: bool,
    /// What was done, for undo, redo and the baseline of all differences.
    pub acts: Acts,
    /// Which nine statements the number keys label, as a count of presses.
    pub label_page: usize,
    /// The user's home folder, for paths that begin with `~/`.
    pub home: Option<PathBuf>,
    /// The corpora of the library, once they were listed.
    pub corpora: Option<Result<Vec<Shelved>, String>>,
    /// Whether plots are left blank for pictures, which the terminal shows in their places.
    pub pictures: bool,
    /// Whether two lanes are shown in large, without texts.
    pub presenting: bool,
    /// The explanation of the figure under the mouse or the cursor.
    pub hint: Option<String>,
    /// The figure that is explained by its key, as an index.
    pub explained: Option<usize>,
    /// The number of the newest lane.
    pub lane_ids: u64,
    /// The colours that were chosen in the program, if they were.
    pub look: Look,
    /// The best similarity to the question and the usual one, if the question is far from every passage.
    pub far_off: Option<(f32, f32)>,
    /// The label source over the corpus that was open before the one that is being opened; if that fails, both are taken again.
    pub returns_to: Option<LabelSource>,
    /// The question that a corpus is being made for from the web.
    pub gathering: Option<String>,
    /// The lane whose right border is being dragged.
    pub dragged: Option<usize>,
    /// The present question with its statements.
    pub question: Question,
    /// Who made the statements.
    pub by: By,
    /// The language of the question, if it is not English: no statements can be derived from it.
    pub foreign: Option<&'static str>,
    /// The number of the present query; every change of the question or of a lane increases it.
    pub turn: Turn,
    /// The corpus that is searched.
    pub corpus: Corpus,
    /// The lanes, left to right.
    pub lanes: Vec<Lane>,
    /// The index of the lane with the cursor.
    pub lane: usize,
    /// The number of passages that count in the measures.
    pub k: usize,
    /// The judgments of the present question.
    pub judgments: Judgments,
    /// Who judged the first k passages of all lanes.
    pub judged_by: Shares,
    /// Long jobs in progress, each with a description.
    pub jobs: Vec<(Progress, String)>,
    /// Whether the present turn is complete.
    pub settled: bool,
    /// The notice at the bottom of the screen.
    pub notice: Option<String>,
    /// The state of the open passage.
    pub reading: Reading,
    /// The number of the last study of a passage.
    pub studies: u64,
    /// The statements being edited.
    pub editing: Editing,
    /// The lane being tuned.
    pub tuning: Tuning,
    /// The state of the screen that asks the question in three wordings.
    pub sycophancy_screen: SycophancyScreen,
    /// The comparison of the lanes over the question set.
    pub comparing: Comparing,
    /// The state of the screen about bias.
    pub biasing: BiasState,
    /// The reader's lists and answers.
    pub answering: Answering,
    /// The key points of the question.
    pub points: Points,
    /// The sides that the answer gives.
    pub answer_sides: AnswerSides,
    /// The list that is mixed by hand.
    pub mixing: Mixing,
    /// The state of the screen that chooses a detector.
    pub choosing: Choosing,
    /// The detector that judges.
    pub detector: Choice,
    /// The language model that judges, or can be chosen to judge: its server and its name.
    pub llm: Option<(String, String)>,
    /// The number of the last batch.
    pub batches: u64,
    /// The options last used with each switch.
    pub options: Options,
    /// The state of labelling by hand.
    pub labelling: Labelling,
    /// The session that is being played.
    pub replay: Option<Replay>,
    /// The file of the recording in progress.
    pub recording: Option<String>,
    /// The list of actions to choose from, while it is open.
    pub palette: Option<Palette>,
    /// The screen that help was called from.
    pub help_from: Screen,
    /// The first line of the help that is visible.
    pub help_scroll: usize,
    /// The characters that marks are drawn with.
    pub glyphs: Glyphs,
    /// The sizes from the configuration.
    pub layout: Layout,
    /// The keys.
    pub keys: Arc<Keymap>,
    /// The configuration as it was last read.
    pub settings: Config,
    /// Statements given on the command line for the first question.
    pub given: Vec<String>,
}

impl App {
    /// The state at the start.
    pub fn new(start: &Start, size: Size) -> Self {
        let recalled = start.history.as_ref().is_some_and(|history| history.recalled);
        App {
            size,
            screen: Screen::LANES,
            typing: start.question.is_empty() || recalled,
            recalled,
            line: Input::new(start.question.clone()),
            completions: Vec::new(),
            completion: None,
            history: History::of(
                start
                    .history
                    .iter()
                    .flat_map(|history| history.queries.iter().map(|query| query.question.clone())),
            ),
            filter: Filter::default(),
            together: false,
            acts: Acts::default(),
            label_page: 0,
            home: start.home.clone(),
            corpora: None,
            pictures: false,
            presenting: start.presenting,
            hint: None,
            explained: None,
            lane_ids: start.lanes.len() as u64,
            look: start.config.look(),
            far_off: None,
            returns_to: None,
            gathering: None,
            dragged: None,
            question: Question::default(),
            by: By::None,
            foreign: None,
            turn: Turn::default(),
            corpus: Corpus::Opening,
            lanes: start
                .lanes
                .iter()
                .cloned()
                .zip(1..)
                .map(|(recipe, id)| Lane { id, ..Lane::new(recipe) })
                .collect(),
            lane: 0,
            k: start.k,
            judgments: Judgments::new(&Question::default(), start.source, Default::default()),
            judged_by: Shares::default(),
            jobs: Vec::new(),
            settled: true,
            notice: start
                .history
                .as_ref()
                .and_then(|history| history.problem.as_ref())
                .map(ToString::to_string),
            reading: Reading::default(),
            studies: 0,
            editing: Editing::default(),
            tuning: Tuning::default(),
            sycophancy_screen: SycophancyScreen::default(),
            comparing: Comparing::default(),
            biasing: BiasState::default(),
            answering: Answering::default(),
            points: Points::default(),
            answer_sides: AnswerSides::default(),
            mixing: Mixing::default(),
            choosing: Choosing::default(),
            detector: start.opening.detector.clone(),
            llm: start.opening.llm.clone(),
            batches: 0,
            options: Options::default(),
            labelling: Labelling::default(),
            replay: None,
            recording: None,
            palette: None,
            help_from: Screen::LANES,
            help_scroll: 0,
            glyphs: start.config.glyphs,
            layout: start.config.layout,
            keys: Arc::clone(&start.config.keys),
            settings: start.config.clone(),
            given: start.perspectives.clone(),
        }
    }

    /// Whether plots are left to pictures.
    pub fn shows_pictures(&self) -> bool {
        self.pictures && self.glyphs != Glyphs::Ascii
    }

    /// Whether the lanes are shown in large now.
    pub fn in_large(&self) -> bool {
        self.presenting && self.screen == Screen::LANES
    }

    /// Returns the key of an action in a context, as it is drawn.
    pub fn key(&self, context: Context, action: Action) -> String {
        self.keys.shown(context, action, self.glyphs == Glyphs::Ascii)
    }

    /// Returns a new batch number. The batch with it replaces all earlier ones.
    pub fn next_batch(&mut self) -> u64 {
        self.batches += 1;
        self.batches
    }

    /// Returns the names of all lanes, safe to draw.
    pub fn titles(&self) -> Vec<String> {
        let titles = recipe::titles(self.lanes.iter().map(|lane| &lane.recipe));
        titles.iter().map(|title| safe::line(title)).collect()
    }

    /// Returns a lane's name in at most `width` columns, distinct from the others.
    pub fn short_title(&self, lane: usize, width: usize) -> String {
        fit(&recipe::fit_apart(&self.titles(), lane, width), width)
    }

    /// Returns the query for the engine.
    pub fn query(&self) -> Query {
        let lanes = self.lanes.iter().map(|lane| lane.recipe.clone()).collect();
        Query { question: self.question.clone(), lanes, k: self.k, source: self.judgments.source }
    }

    /// Returns the query as the history saves it, on this corpus.
    pub fn past_query(&self, corpus: String) -> PastQuery {
        let source = self.judgments.source;
        PastQuery {
            corpus,
            question: self.question.text.clone(),
            lanes: self.lanes.iter().map(|lane| lane.recipe.to_string()).collect(),
            source: (source != LabelSource::Auto).then(|| source.to_string()),
            theme: (self.look != Look::default()).then(|| self.look.name().to_owned()),
        }
    }

    /// Returns the page of statements that the number keys label, from 0.
    pub fn statement_page(&self) -> usize {
        self.label_page % self.question.perspectives.len().div_ceil(NUMBERS).max(1)
    }

    /// Returns the marked passage of the lane with the cursor, if the filter lets it through.
    pub fn selected(&self) -> Option<&Ranked> {
        let lane = self.lanes.get(self.lane)?;
        lane.ranking.get(lane.selected).filter(|ranked| self.filter.passes(ranked))
    }

    /// Whether a filter is being typed or is set.
    pub fn filtered(&self) -> bool {
        self.screen == Screen::LANES && (self.filter.typing || !self.filter.line.value().trim().is_empty())
    }

    /// Returns the places of a lane's passages that pass the filter, from 0, best first.
    pub fn shown(&self, lane: &Lane) -> Vec<usize> {
        let passages = lane.ranking.iter().enumerate();
        passages.filter(|(_, ranked)| self.filter.passes(ranked)).map(|(place, _)| place).collect()
    }

    /// Returns a passage's rank in a lane, from 1.
    pub fn rank_in(&self, lane: &Lane, at: PassageIx) -> Option<usize> {
        lane.ranking.rank_of(at)
    }

    /// Returns the figures of a lane, if the question has statements and the lane has a list.
    pub fn figures(&self, lane: &Lane) -> Option<Figures> {
        (lane.state == LaneState::Ready)
            .then(|| Figures::of(&lane.ranking, &self.judgments, &self.question, self.k))?
    }

    /// Returns the outcome of the present lists. A lane without a list counts as failed.
    pub fn compared(&self) -> Compared {
        let lists =
            self.lanes.iter().map(|lane| (lane.state == LaneState::Ready).then_some(&lane.ranking[..]));
        let lists: Vec<Option<&[Ranked]>> = lists.collect();
        Compared::of(&self.question, self.k, &lists, &self.judgments)
    }

    /// Returns the mark of a passage.
    pub fn mark(&self, at: PassageIx) -> Mark {
        if self.judgments.perspectives == 0 {
            return Mark::Pending;
        }
        Mark::of_passage(&self.judgments, at, &self.question)
    }

    /// Returns the statements that a passage supports, by number from 0, according to the judgments that count.
    pub fn supported(&self, at: PassageIx) -> Vec<usize> {
        let supports =
            |i: &usize| self.judgments.verdict(at, *i).is_some_and(|verdict| verdict.supports == Some(true));
        (0..self.judgments.perspectives).filter(supports).collect()
    }

    /// Returns the open passage.
    pub fn open_passage(&self) -> Option<(PassageIx, Arc<Passage>)> {
        self.selected().map(|ranked| (ranked.at, Arc::clone(&ranked.passage)))
    }

    /// Returns the progress of a job, if it is running.
    pub fn job(&self, job: Job) -> Option<Progress> {
        self.jobs.iter().map(|(progress, _)| *progress).find(|progress| progress.job == job)
    }

    /// Goes back to the lanes and cancels the screen's batch.
    pub fn leave(&mut self) -> Vec<Effect> {
        self.screen = Screen::LANES;
        self.jobs.retain(|(progress, _)| progress.job != Job::Counting);
        vec![Effect::StopBatch(self.next_batch())]
    }
}

/// What the interface starts with.
#[derive(Clone, Debug)]
pub struct Start {
    /// The files and models to open.
    pub opening: Opening,
    /// The recipes of the lanes, left to right.
    pub lanes: Vec<Recipe>,
    /// The number of passages that count in the measures.
    pub k: usize,
    /// The source of the judgments.
    pub source: LabelSource,
    /// The first question; may be empty.
    pub question: String,
    /// The statements of the question, if the user named them.
    pub perspectives: Vec<String>,
    /// The queries of earlier runs; `None` if queries are not saved.
    pub history: Option<QueryHistory>,
    /// The settings.
    pub config: Config,
    /// The source of the settings, which is watched for changes.
    pub config_from: Source,
    /// How many colours the terminal has.
    pub depth: Depth,
    /// Whether to print what changed as sentences instead of drawing frames.
    pub linear: bool,
    /// The user's home folder, if the system has one.
    pub home: Option<PathBuf>,
    /// Whether to begin with two lanes in large.
    pub presenting: bool,
}

impl Start {
    /// Returns the colours to draw with.
    pub fn theme(&self) -> Theme {
        Theme { look: self.config.look(), depth: self.depth }
    }
}
