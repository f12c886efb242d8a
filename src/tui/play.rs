//! The shell around the interface without a terminal: a key script in, a frame out. The clock is virtual: pauses end as soon
//! as the script waits.

use std::sync::mpsc::{self, Receiver};
use std::time::{Duration, Instant};

use crossterm::event::{KeyModifiers, MouseButton, MouseEvent, MouseEventKind};
use ratatui::Terminal;
use ratatui::backend::TestBackend;

use super::app::{App, Corpus, LaneState, Screen};
use super::draw::draw;
use super::dump::Dump;
use super::message::{Effect, Msg};
use super::run::{carry_out, teller};
use super::script::Step;
use super::theme::Theme;
use super::update::update;
use super::{Size, Start};
use crate::engine::Engine;

/// Why there is no frame.
#[derive(Debug, thiserror::Error)]
pub enum PlayError {
    /// The lanes and verdicts took too long.
    #[error("not settled after {0:?}; give more with --timeout")]
    Late(Duration),
    /// The frame could not be drawn.
    #[error("the frame could not be drawn: {0}")]
    Draw(String),
}

struct Player {
    app: App,
    engine: Engine,
    messages: Receiver<Msg>,
    /// Pauses that will end when the script waits.
    quiet: Vec<Msg>,
    ended: bool,
}

/// Plays a script and draws the last frame.
///
/// # Errors
/// See [`PlayError`].
pub fn play(start: Start, size: Size, script: &[Step], patience: Duration) -> Result<Dump, PlayError> {
    let (send, messages) = mpsc::channel();
    let engine = Engine::start(start.opening.clone(), &teller(send));
    let theme = start.theme();
    let mut player =
        Player { app: App::new(&start, size), engine, messages, quiet: Vec::new(), ended: false };
    let late = Instant::now() + patience;
    player.settle(late).ok_or(PlayError::Late(patience))?;
    for step in script.iter().chain([&Step::Wait]) {
        if player.ended {
            break;
        }
        let msg = match step {
            Step::Key(key) => Msg::Key(*key),
            Step::Resize(size) => Msg::Resized(*size),
            Step::Click(column, row) => Msg::Mouse(MouseEvent {
                kind: MouseEventKind::Down(MouseButton::Left),
                column: *column,
                row: *row,
                modifiers: KeyModifiers::NONE,
            }),
            Step::Wait => {
                player.settle(late).ok_or(PlayError::Late(patience))?;
                continue;
            }
        };
        player.take(msg);
    }
    frame(&player.app, theme)
}

/// Draws one frame of a state.
///
/// # Errors
/// The backend refused it.
pub fn frame(app: &App, theme: Theme) -> Result<Dump, PlayError> {
    let backend = TestBackend::new(app.size.width, app.size.height);
    let mut terminal = Terminal::new(backend).map_err(|error| PlayError::Draw(error.to_string()))?;
    terminal.draw(|frame| draw(app, theme, frame)).map_err(|error| PlayError::Draw(error.to_string()))?;
    Ok(Dump::of(terminal.backend().buffer().clone()))
}

impl Player {
    fn take(&mut self, msg: Msg) {
        for effect in update(&mut self.app, msg) {
            match effect {
                Effect::WaitQuiet { turn, reach, .. } => {
                    self.quiet.push(Msg::QuietPeriodEnded { turn, reach })
                }
                Effect::Quit => self.ended = true,
                effect => carry_out(&self.engine, effect),
            }
        }
    }

    /// Takes messages until nothing more is on the way; none if that takes too long.
    fn settle(&mut self, late: Instant) -> Option<()> {
        loop {
            // The later of two pauses asks for all that the earlier one would.
            if let Some(pause) = self.quiet.pop() {
                self.quiet.clear();
                self.take(pause);
            }
            let opening = matches!(self.app.corpus, Corpus::Opening);
            let still = opening || !self.app.settled || !self.app.jobs.is_empty() || self.waits();
            if self.ended || (!still && self.read()) {
                return Some(());
            }
            let left = late.checked_duration_since(Instant::now())?;
            let msg = self.messages.recv_timeout(left).ok()?;
            self.take(msg);
        }
    }

    /// Whether a lane will be asked again when a job ends, which may not have told of itself yet.
    fn waits(&self) -> bool {
        self.app.lanes.iter().any(|lane| matches!(lane.state, LaneState::Failed(_, Some(_))))
    }

    /// Whether all that was asked of the open passage or the tuned lane has come.
    fn read(&self) -> bool {
        let reading = &self.app.reading;
        let mut asked = reading.asked.iter().flat_map(|(at, all)| all.iter().map(move |i| (*at, *i)));
        let why = self.app.screen != Screen::Read
            || self.app.open_passage().is_none_or(|(at, _)| {
                let lane = &self.app.lanes[self.app.lane];
                let known = |(of, recipe, _): &(_, _, _)| *of == at && *recipe == lane.recipe;
                reading.why.as_ref().is_some_and(known) || lane.state != LaneState::Ready
            });
        let swept = self.app.screen != Screen::Tune || self.app.tuning.ended;
        let swayed = self.app.screen != Screen::Sway || self.app.swaying.lanes.iter().all(Option::is_some);
        let compared =
            self.app.screen != Screen::Compare || self.app.comparing.questions.iter().all(Option::is_some);
        let labelling = &self.app.labelling;
        let labelled = self.app.screen != Screen::Annotate
            || match &labelling.desk {
                None => false,
                Some(Err(_)) => true,
                Some(Ok(_)) => labelling.saving.is_none() && labelling.weighed.iter().all(Option::is_some),
            };
        let biasing = &self.app.biasing;
        let biased = self.app.screen != Screen::Bias
            || biasing.fields.is_some()
                && (!biasing.over_set || self.app.comparing.questions.iter().all(Option::is_some));
        let heard = self.app.screen != Screen::Answer || !self.app.answering.going;
        let instruments = heard && swept && swayed && compared && biased && labelled;
        instruments && why && asked.all(|pair| reading.evidence.contains_key(&pair))
    }
}
