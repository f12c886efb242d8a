//! Runs the interface without a terminal: makes a frame from a key script, or a film from a session. The clock is virtual: pauses end as
//! soon as the script waits.

use std::io;
use std::path::PathBuf;
use std::sync::mpsc::{self, Receiver};
use std::time::{Duration, Instant};

use ratatui::Terminal;
use ratatui::backend::TestBackend;

use super::engines::Engines;
use crate::detect::Choice;
use crate::engine::{Engine, Labelling, Opening, Reply};
use crate::tui::app::App;
use crate::tui::app::Start;
use crate::tui::draw::draw;
use crate::tui::export::frame::Dump;
use crate::tui::keymap::Screen;
use crate::tui::message::{Effect, Msg};
use crate::tui::pages::settled;
use crate::tui::script::{Size, Step};
use crate::tui::session::{Replay, Session};
use crate::tui::theme::Theme;
use crate::tui::update::{refresh, update};

/// The reason why a script or session gave no frame.
#[derive(Debug, thiserror::Error)]
pub enum PlayError {
    /// The lanes and verdicts did not arrive in time.
    #[error("not settled after {0:?}; give more with --timeout")]
    Late(Duration),
    /// The drawing failed.
    #[error("the frame could not be drawn: {0}")]
    Draw(String),
    /// The engine's threads could not be started.
    #[error("the system gives no thread: {0}")]
    Threads(#[from] io::Error),
}

/// Passes an effect to the engine. Effects for the shell itself do nothing here.
pub fn execute(engine: &Engine, effect: Effect) {
    match effect {
        Effect::Start { turn, plan, reach } => engine.start_run(turn, plan, reach),
        Effect::Study(study) => engine.study(*study),
        Effect::Batch(number, batch) => engine.batch(number, batch),
        Effect::Label(order) => engine.label(order),
        Effect::StopBatch(number) => engine.stop_batch(number),
        Effect::StopRun(turn) => engine.stop_run(turn),
        Effect::WaitQuiet { .. }
        | Effect::UseDetector { .. }
        | Effect::UseCorpus(_)
        | Effect::ReturnToCorpus
        | Effect::Gather(_)
        | Effect::StopGathering
        | Effect::SetLook(_)
        | Effect::SaveFrame
        | Effect::Record
        | Effect::StopRecording
        | Effect::Copy(_)
        | Effect::Suspend
        | Effect::Quit => {}
    }
}

/// Returns the options of an engine with another detector. The threshold is left out: it was fitted for the old detector.
pub fn with_detector(opening: &Opening, choice: Choice, llm: Option<(String, String)>) -> Opening {
    let llm = llm.or_else(|| opening.llm.clone());
    Opening { detector: choice, llm, threshold: None, ..opening.clone() }
}

/// Returns the options of an engine with another corpus. Questions, labels and journals that were named belong to the old one.
pub fn with_corpus(opening: &Opening, corpus: Option<PathBuf>) -> Opening {
    Opening {
        corpus,
        questions: None,
        labels: None,
        runs: Vec::new(),
        journals: Vec::new(),
        ..opening.clone()
    }
}

/// Measures how long the passage to be labelled has been on screen.
#[derive(Default)]
pub(super) struct LabelClock {
    /// The question and the passage on screen.
    shown: Option<(String, String)>,
    pub(super) since: Option<Instant>,
}

impl LabelClock {
    /// Adds to every label how long its passage was on screen before.
    pub(super) fn time(&mut self, app: &App, mut effects: Vec<Effect>) -> Vec<Effect> {
        for effect in &mut effects {
            if let (Effect::Label(Labelling::Write(act)), Some(since)) = (effect, self.since)
                && act.took.is_none()
            {
                act.took = u64::try_from(since.elapsed().as_millis()).ok();
            }
        }
        let item = app.labelling.item().filter(|_| app.screen == Screen::LABELLING);
        let shown = item.map(|item| (item.question.clone(), item.passage.id.clone()));
        if shown != self.shown {
            self.since = shown.as_ref().map(|_| Instant::now());
            self.shown = shown;
        }
        effects
    }
}

struct Player {
    app: App,
    engines: Engines,
    /// What was open before other corpora were chosen, the last one at the end.
    earlier: Vec<Opening>,
    opening: Opening,
    theme: Theme,
    messages: Receiver<Msg>,
    /// The ends of pauses, delivered when the script waits.
    quiet: Vec<Msg>,
    ended: bool,
}

/// Plays a session and passes every new frame to `show`, with its duration. All times come from the session, however long the work takes
/// here.
///
/// # Errors
/// See [`PlayError`].
pub fn film(
    start: Start,
    session: &Session,
    patience: Duration,
    mut show: impl FnMut(&Dump, Duration),
) -> Result<(), PlayError> {
    let mut player = Player::begin(start, session.head.size)?;
    let late = Instant::now() + patience;
    player.settle(late).ok_or(PlayError::Late(patience))?;
    Replay::filmed(session).onto(&mut player.app);
    let mut last: Option<(Dump, Duration)> = None;
    while let Some(replay) = &player.app.replay {
        match replay.left(settled(&player.app)) {
            Some(lasts) => {
                let frame = frame(&player.app, player.theme)?;
                match &mut last {
                    Some((shown, so_far)) if *shown == frame => *so_far += lasts,
                    _ if lasts.is_zero() => {}
                    _ => {
                        if let Some((frame, lasts)) = last.replace((frame, lasts)) {
                            show(&frame, lasts);
                        }
                    }
                }
                player.take(Msg::Passed(lasts));
            }
            None => player.settle(late).ok_or(PlayError::Late(patience))?,
        }
    }
    if let Some((frame, lasts)) = last {
        show(&frame, lasts);
    }
    Ok(())
}

/// Plays a script and returns the last frame.
///
/// # Errors
/// See [`PlayError`].
pub fn play(start: Start, size: Size, script: &[Step], patience: Duration) -> Result<Dump, PlayError> {
    let mut player = Player::begin(start, size)?;
    let late = Instant::now() + patience;
    player.settle(late).ok_or(PlayError::Late(patience))?;
    for step in script.iter().chain([&Step::Wait]) {
        if player.ended {
            break;
        }
        let msg = match step {
            Step::Key(key) => Msg::Key(*key),
            Step::Resize(size) => Msg::Resized(*size),
            Step::Mouse(mouse) => Msg::Mouse(*mouse),
            Step::Wait => {
                player.settle(late).ok_or(PlayError::Late(patience))?;
                continue;
            }
        };
        player.take(msg);
    }
    frame(&player.app, player.theme)
}

/// Draws one frame.
///
/// # Errors
/// The drawing failed.
pub fn frame(app: &App, theme: Theme) -> Result<Dump, PlayError> {
    let backend = TestBackend::new(app.size.width, app.size.height);
    let mut terminal = Terminal::new(backend).map_err(|error| PlayError::Draw(error.to_string()))?;
    // Callers, such as tests, may have changed the state since its last message.
    let mut app = app.clone();
    refresh(&mut app);
    terminal.draw(|frame| draw(&app, theme, frame)).map_err(|error| PlayError::Draw(error.to_string()))?;
    Ok(Dump::of(terminal.backend().buffer().clone()))
}

impl Player {
    fn begin(start: Start, size: Size) -> io::Result<Self> {
        let (send, messages) = mpsc::channel();
        let engines = Engines::start(start.opening.clone(), send)?;
        let (app, theme) = (App::new(&start, size), start.theme());
        Ok(Player {
            app,
            engines,
            earlier: Vec::new(),
            opening: start.opening,
            theme,
            messages,
            quiet: Vec::new(),
            ended: false,
        })
    }

    fn take(&mut self, msg: Msg) {
        for effect in update(&mut self.app, msg) {
            match effect {
                Effect::WaitQuiet { turn, reach, .. } => {
                    self.quiet.push(Msg::QuietPeriodEnded { turn, reach })
                }
                Effect::Quit => self.ended = true,
                Effect::UseDetector { choice, llm } => {
                    self.reopen(with_detector(&self.opening, choice, llm));
                }
                Effect::UseCorpus(corpus) => {
                    self.earlier.push(self.opening.clone());
                    self.reopen(with_corpus(&self.opening, corpus));
                }
                Effect::ReturnToCorpus => {
                    let before = self.earlier.pop().unwrap_or_else(|| self.opening.clone());
                    self.reopen(before);
                }
                Effect::Gather(order) => self.engines.gather(&self.opening, *order),
                Effect::StopGathering => self.engines.stop_gathering(),
                Effect::SetLook(look) => self.theme.look = look,
                effect => execute(self.engines.current(), effect),
            }
        }
    }

    fn reopen(&mut self, opening: Opening) {
        self.opening = opening;
        if let Err(error) = self.engines.replace(self.opening.clone()) {
            self.quiet.push(Msg::Engine(Reply::OpenFailed(error.to_string())));
        }
    }

    /// Handles messages until nothing is pending; `None` if that takes too long.
    fn settle(&mut self, late: Instant) -> Option<()> {
        loop {
            // The later of two pauses covers the earlier one.
            if let Some(pause) = self.quiet.pop() {
                self.quiet.clear();
                self.take(pause);
            }
            if self.ended || settled(&self.app) {
                return Some(());
            }
            let left = late.checked_duration_since(Instant::now())?;
            let msg = self.messages.recv_timeout(left).ok()?;
            self.take(msg);
        }
    }
}
