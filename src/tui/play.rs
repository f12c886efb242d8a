//! The shell around the interface without a terminal: a key script in, a frame out. The clock is virtual: pauses end as soon
//! as the script waits.

use std::sync::mpsc::{self, Receiver};
use std::time::{Duration, Instant};

use ratatui::Terminal;
use ratatui::backend::TestBackend;

use super::app::App;
use super::draw::draw;
use super::dump::Dump;
use super::message::{Effect, Msg};
use super::run::{carry_out, teller};
use super::script::Step;
use super::session::{Replay, Session};
use super::settled::settled;
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

/// Plays a session and shows a frame wherever something changes, with how long it stands. Its times are those of the session: work
/// takes as long as it took there, whatever it takes here.
///
/// # Errors
/// See [`PlayError`].
pub fn film(
    start: Start,
    session: &Session,
    patience: Duration,
    mut show: impl FnMut(&Dump, Duration),
) -> Result<(), PlayError> {
    let theme = start.theme();
    let mut player = Player::begin(start, session.head.size);
    let late = Instant::now() + patience;
    player.settle(late).ok_or(PlayError::Late(patience))?;
    Replay::filmed(session).onto(&mut player.app);
    let mut stands: Option<(Dump, Duration)> = None;
    while let Some(replay) = &player.app.replay {
        match replay.left(settled(&player.app)) {
            Some(lasts) => {
                let frame = frame(&player.app, theme)?;
                match &mut stands {
                    Some((last, so_far)) if *last == frame => *so_far += lasts,
                    _ if lasts.is_zero() => {}
                    _ => {
                        if let Some((frame, lasts)) = stands.replace((frame, lasts)) {
                            show(&frame, lasts);
                        }
                    }
                }
                player.take(Msg::Passed(lasts));
            }
            None => player.settle(late).ok_or(PlayError::Late(patience))?,
        }
    }
    if let Some((frame, lasts)) = stands {
        show(&frame, lasts);
    }
    Ok(())
}

/// Plays a script and draws the last frame.
///
/// # Errors
/// See [`PlayError`].
pub fn play(start: Start, size: Size, script: &[Step], patience: Duration) -> Result<Dump, PlayError> {
    let theme = start.theme();
    let mut player = Player::begin(start, size);
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
    fn begin(start: Start, size: Size) -> Self {
        let (send, messages) = mpsc::channel();
        let engine = Engine::start(start.opening.clone(), &teller(send));
        Player { app: App::new(&start, size), engine, messages, quiet: Vec::new(), ended: false }
    }

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
            if self.ended || settled(&self.app) {
                return Some(());
            }
            let left = late.checked_duration_since(Instant::now())?;
            let msg = self.messages.recv_timeout(left).ok()?;
            self.take(msg);
        }
    }
}
