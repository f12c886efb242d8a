//! The interface in a real terminal: events in, effects out, a frame after every burst of messages.

use std::io::{self, IsTerminal, Write};
use std::mem::{self, ManuallyDrop};
use std::ops::ControlFlow;
use std::path::Path;
use std::sync::mpsc::{self, Receiver, RecvTimeoutError, Sender};
use std::time::{Duration, Instant};

use crossterm::clipboard::CopyToClipboard;
use crossterm::style::force_color_output;

use super::engines::Engines;
use super::linear::Linear;
use super::play::{self, LabelClock, execute};
use super::{Ended, Ending, Guard};
use crate::engine::{Opening, Reach, Reply, Turn};
use crate::net;
use crate::report::Rates;
use crate::signals::HANG_UP;
use crate::tui::app::{App, Start};
use crate::tui::config::{Mouse, watch};
use crate::tui::draw::pictures::{Picture, Screenful, redraw_all};
use crate::tui::export::FrameWriter;
use crate::tui::message::{Effect, Msg, Recording};
use crate::tui::pages::{page, settled};
use crate::tui::query_history::HistoryWriter;
use crate::tui::script::Size;
use crate::tui::session::{Recorder, Replay, Session, unrecorded_options};
use crate::tui::shell;
use crate::tui::theme::{Look, Theme};
use crate::tui::update::{refresh, update, update_in_burst};

/// The most messages handled before the next frame, so that a burst of keys or verdicts is drawn once.
const BURST: usize = 256;

/// Runs the interface until the user leaves or a signal arrives. Plays a session first if there is one, at the given pace (2.0 is
/// twice as fast as it was recorded).
///
/// # Errors
/// The terminal cannot be set up or drawn to, or the system gives no thread.
pub fn run(start: Start, session: Option<(&Session, f64)>) -> io::Result<Ended> {
    let (send, messages) = mpsc::channel();
    // Before the terminal is taken: a long session takes a while to prepare.
    let replay = session.map(|(session, pace)| Replay::begin(session, pace));
    let ending = Ending::default();
    // Before the terminal is taken: from here on no signal leaves it raw.
    shell::listen_to_signals(send.clone(), ending.clone())?;
    let (guard, terminal) = Guard::take(start.config.mouse, start.linear)?;
    // Dropping it would show the cursor, which the guard does, and would panic if the terminal is gone.
    let mut terminal = ManuallyDrop::new(terminal);
    shell::listen(send.clone(), ending.clone())?;
    let waits = send.clone();
    net::observe(move |wait| drop(waits.send(Msg::Waits(wait.to_string()))));
    let configured = send.clone();
    watch(start.config_from.clone(), start.config.clone(), move |read| {
        configured.send(Msg::Configured(read)).is_ok()
    })?;
    // The theme has already decided about colours, NO_COLOR included.
    force_color_output(true);
    let mut shell = Shell::new(start, replay, size_of(&terminal)?, send)?;
    let served = shell.serve(&messages, &mut terminal);
    // Before the engines, which may take a while to end.
    drop(guard);
    // The drawing may fail before the signal or the end of input arrives.
    if served.is_err() && !(io::stdin().is_terminal() && io::stdout().is_terminal()) {
        ending.by(HANG_UP);
    }
    let ended = ending.ended();
    let engines = shell.save_all();
    let unsaved = match &served {
        Ok(unhandled) => unsaved(unhandled.iter().cloned().chain(messages.try_iter())),
        Err(_) => unsaved(messages.try_iter()),
    };
    // Everything is saved. From here on a signal ends the program at once.
    drop(messages);
    drop(engines);
    if ended == Ended::Quit {
        served?;
    }
    match (ended, unsaved) {
        (Ended::Quit, Some(reasons)) => Err(io::Error::other(reasons)),
        (Ended::Signal(_), Some(reasons)) => {
            // The terminal may be gone, and the exit code names the signal.
            let _ = writeln!(io::stderr(), "parallax: {reasons}");
            Ok(ended)
        }
        (ended, None) => Ok(ended),
    }
}

/// Returns why pictures, questions or labels were not saved, from messages that no frame will show.
fn unsaved(messages: impl Iterator<Item = Msg>) -> Option<String> {
    let reasons = messages.filter_map(|msg| match msg {
        Msg::Saved(Err(reason)) | Msg::Engine(Reply::Labelled(Err(reason))) => Some(reason),
        _ => None,
    });
    let reasons: Vec<String> = reasons.collect();
    (!reasons.is_empty()).then(|| reasons.join("; "))
}

fn size_of(terminal: &Screenful) -> io::Result<Size> {
    let area = terminal.size()?;
    Ok(Size { width: area.width, height: area.height })
}

/// Why no frame was handed over to be saved.
#[derive(Debug, thiserror::Error)]
enum SaveError {
    #[error(transparent)]
    Draw(#[from] play::PlayError),
    #[error("no thread to save the frame: {0}")]
    Thread(#[from] io::Error),
}

/// The state of the interface and everything that acts on its effects.
struct Shell {
    start: Start,
    app: App,
    theme: Theme,
    mouse: Mouse,
    engines: Engines,
    /// What was open before other corpora were chosen, the last one at the end.
    earlier: Vec<Opening>,
    /// Where the other threads send what happened.
    send: Sender<Msg>,
    history: Option<HistoryWriter>,
    /// Started with the first frame that is saved.
    frames: Option<FrameWriter>,
    /// The turn whose query was saved last, with its theme.
    saved: (Turn, Look),
    recorder: Option<Recorder>,
    rates: Rates,
    clock: LabelClock,
    pauses: Vec<Pause>,
    /// When the last burst was taken.
    before: Instant,
    /// Prints sentences instead of frames.
    linear: Option<Linear>,
    /// Whether verdicts have arrived since what is drawn was worked out.
    stale: bool,
    /// The picture of a plot, if the terminal shows some.
    picture: Picture,
}

/// A pause in typing. When it ends, the plan of its turn is run as far as `reach`.
struct Pause {
    ends: Instant,
    turn: Turn,
    reach: Reach,
}

impl Shell {
    fn new(start: Start, replay: Option<Replay>, size: Size, send: Sender<Msg>) -> io::Result<Self> {
        let failed = send.clone();
        let history = start.history.as_ref().map(|history| {
            history.writer(move |error| drop(failed.send(Msg::Saved(Err(error.to_string())))))
        });
        let history = history.transpose()?;
        let engines = Engines::start(start.opening.clone(), send.clone())?;
        let mut app = App::new(&start, size);
        let picture = Picture::of(start.config.pictures.of_terminal(|name| std::env::var(name).ok()));
        app.pictures = picture.is_shown() && !start.linear;
        if let Some(replay) = replay {
            replay.onto(&mut app);
        }
        Ok(Shell {
            theme: start.theme(),
            mouse: start.config.mouse,
            engines,
            earlier: Vec::new(),
            send,
            history,
            frames: None,
            saved: (app.turn, app.look),
            recorder: None,
            rates: Rates::default(),
            clock: LabelClock::default(),
            pauses: Vec::new(),
            before: Instant::now(),
            linear: start.linear.then(Linear::default),
            stale: false,
            picture,
            start,
            app,
        })
    }

    /// Draws and handles messages until the interface is to end. Returns the messages that came in the same burst and were not handled.
    fn serve(&mut self, messages: &Receiver<Msg>, terminal: &mut Screenful) -> io::Result<Vec<Msg>> {
        loop {
            if mem::take(&mut self.stale) {
                refresh(&mut self.app);
            }
            if let Some(linear) = &mut self.linear {
                linear.report(&self.app, &mut io::stdout())?;
            } else {
                self.picture.draw(&self.app, self.theme, terminal)?;
            }
            self.save_query();
            if self.record_settled().is_err() {
                continue;
            }
            let mut burst = self.next(messages).into_iter();
            while let Some(msg) = burst.next() {
                if self.handle(msg, terminal)?.is_break() {
                    return Ok(burst.collect());
                }
            }
        }
    }

    /// Waits for a message, the end of a pause or the next act of a replay. Returns it with all other messages that have arrived.
    fn next(&mut self, messages: &Receiver<Msg>) -> Vec<Msg> {
        let now = Instant::now();
        let pause = self.pauses.iter().map(|pause| pause.ends.saturating_duration_since(now)).min();
        let act = self.app.replay.as_ref().and_then(|replay| replay.left(settled(&self.app)));
        let wait = pause.into_iter().chain(act).min().unwrap_or(Duration::from_secs(3600));
        let first = match messages.recv_timeout(wait) {
            Ok(msg) => Some(msg),
            Err(RecvTimeoutError::Timeout) => None,
            Err(RecvTimeoutError::Disconnected) => Some(Msg::Terminated),
        };
        // The time passed before the messages came: a key that ends the pause of a replay must not let the pause count.
        let passed = self.before.elapsed();
        self.before += passed;
        let mut all = Vec::from_iter(self.app.replay.as_ref().map(|_| Msg::Passed(passed)));
        all.extend(first);
        all.extend(messages.try_iter().take(BURST));
        let now = Instant::now();
        let ended = self.pauses.extract_if(.., |pause| pause.ends <= now);
        all.extend(ended.map(|Pause { turn, reach, .. }| Msg::QuietPeriodEnded { turn, reach }));
        all
    }

    /// Updates the state and executes the effects. Returns `Break` if the interface is to end.
    fn handle(&mut self, msg: Msg, terminal: &mut Screenful) -> io::Result<ControlFlow<()>> {
        let msg = self.complete(msg, terminal)?;
        let (at, done) = (Instant::now(), self.recorder.is_some().then(|| msg.clone()));
        let effects = update_in_burst(&mut self.app, msg, &mut self.stale);
        for effect in self.clock.time(&self.app, effects) {
            if effect == Effect::Quit {
                return Ok(ControlFlow::Break(()));
            }
            self.execute(effect, terminal)?;
        }
        // Checked after the effects: the key that begins or ends a recording is not part of it. The append is not synced, so it does not
        // wait for the disk and may stay on this thread, where it is done before the next key takes effect.
        if let (Some(recorder), Some(done)) = (&mut self.recorder, done)
            && let Err(error) = recorder.take(&done, at)
        {
            self.recording_failed(&error);
        }
        Ok(ControlFlow::Continue(()))
    }

    /// Adds to a message what only the shell has: rates and the terminal's size. Takes over a changed theme and mouse setting.
    fn complete(&mut self, msg: Msg, terminal: &mut Screenful) -> io::Result<Msg> {
        Ok(match msg {
            Msg::Engine(Reply::Progress(progress)) => {
                Msg::Progressed { progress, text: self.rates.text(progress, Instant::now()) }
            }
            Msg::Resized(_) => {
                self.picture.forget();
                Msg::Resized(size_of(terminal)?)
            }
            Msg::Continued => {
                self.picture.forget();
                shell::enter_again(self.mouse)?;
                redraw_all(terminal)?;
                Msg::Resized(size_of(terminal)?)
            }
            Msg::Configured(Ok(config)) => {
                self.set_look(config.look());
                self.mouse = config.mouse;
                shell::capture_mouse(self.mouse)?;
                Msg::Configured(Ok(config))
            }
            msg => msg,
        })
    }

    /// Takes over a changed theme, for the next frame and for the next recording.
    fn set_look(&mut self, look: Look) {
        self.start.config.look = Some(look);
        self.theme = self.start.theme();
    }

    fn execute(&mut self, effect: Effect, terminal: &mut Screenful) -> io::Result<()> {
        match effect {
            Effect::WaitQuiet { turn, reach, pause } => {
                self.pauses.retain(|waiting| waiting.turn == turn);
                self.pauses.push(Pause { ends: Instant::now() + pause, turn, reach });
            }
            // OSC 52, the terminal's own clipboard, works over SSH too.
            Effect::Copy(text) => {
                crossterm::execute!(io::stdout(), CopyToClipboard::to_clipboard_from(text))?;
            }
            Effect::SaveFrame => {
                if let Err(reason) = self.save_frame() {
                    update(&mut self.app, Msg::Saved(Err(reason.to_string())));
                }
            }
            Effect::Record => {
                let recording = match Recorder::begin(Path::new(""), &self.start, &self.app, Instant::now()) {
                    Ok(began) => {
                        let name = self.recorder.insert(began).name.clone();
                        Recording::Began(name, unrecorded_options(&self.start, &self.app))
                    }
                    Err(error) => Recording::Failed(error.to_string()),
                };
                update(&mut self.app, Msg::Recorded(recording));
            }
            Effect::StopRecording => {
                if let Some(ended) = self.recorder.take() {
                    update(&mut self.app, Msg::Recorded(Recording::Ended(ended.name)));
                }
            }
            Effect::Suspend => {
                let stopped = Instant::now();
                shell::suspend(self.mouse)?;
                self.leave_out(stopped.elapsed());
                redraw_all(terminal)?;
            }
            Effect::UseDetector { choice, llm } => {
                self.reopen(play::with_detector(&self.start.opening, choice, llm));
            }
            Effect::UseCorpus(corpus) => {
                self.start.history.iter_mut().for_each(|history| history.moves_to(corpus.as_deref()));
                self.earlier.push(self.start.opening.clone());
                self.reopen(play::with_corpus(&self.start.opening, corpus));
            }
            Effect::ReturnToCorpus => {
                let before = self.earlier.pop().unwrap_or_else(|| self.start.opening.clone());
                self.start.history.iter_mut().for_each(|history| history.moves_to(before.corpus.as_deref()));
                self.reopen(before);
            }
            Effect::Gather(order) => self.engines.gather(&self.start.opening, *order),
            Effect::StopGathering => self.engines.stop_gathering(),
            Effect::SetLook(look) => self.set_look(look),
            effect => execute(self.engines.current(), effect),
        }
        Ok(())
    }

    fn reopen(&mut self, opening: Opening) {
        self.start.opening = opening;
        if let Err(error) = self.engines.replace(self.start.opening.clone()) {
            let _ = self.send.send(Msg::Engine(Reply::OpenFailed(error.to_string())));
        }
    }

    /// Leaves out the time during which the process was stopped, from the replay and from the time of the label.
    fn leave_out(&mut self, stopped: Duration) {
        self.before += stopped;
        if let Some(since) = &mut self.clock.since {
            *since += stopped;
        }
    }

    /// Draws the frame and hands it to the thread that saves frames, which reports the outcome as a message.
    fn save_frame(&mut self) -> Result<(), SaveError> {
        let whole = App { pictures: false, ..self.app.clone() };
        let frame = play::frame(&whole, self.theme)?;
        let writer = match self.frames.take() {
            Some(writer) => writer,
            None => {
                let send = self.send.clone();
                FrameWriter::start("".into(), move |saved| {
                    drop(send.send(Msg::Saved(saved.map_err(|error| error.to_string()))));
                })?
            }
        };
        let plot = page(self.app.screen).plot(&self.app);
        self.frames.insert(writer).save(frame, plot);
        Ok(())
    }

    /// Records whether all results have arrived since the last frame.
    fn record_settled(&mut self) -> Result<(), ()> {
        let Some(recorder) = &mut self.recorder else { return Ok(()) };
        let looked = recorder.look(&self.app, Instant::now());
        looked.map_err(|error| self.recording_failed(&error))
    }

    fn recording_failed(&mut self, error: &io::Error) {
        self.recorder = None;
        update(&mut self.app, Msg::Recorded(Recording::Failed(error.to_string())));
    }

    /// Saves the query once per turn, and not while it is being typed.
    fn save_query(&mut self) {
        let app = &self.app;
        if let (Some(writer), Some(history)) = (&self.history, &self.start.history)
            && self.saved != (app.turn, app.look)
            && !app.typing
            && !app.question.text.is_empty()
        {
            self.saved = (app.turn, app.look);
            writer.save(app.past_query(history.corpus.clone()));
        }
    }

    /// Waits until the last query, the frames and the labels are saved. Returns the engines, which still have to end.
    fn save_all(mut self) -> Engines {
        self.save_query();
        drop(self.history);
        drop(self.frames);
        self.engines.current().write_down();
        self.engines
    }
}

#[cfg(test)]
mod tests {
    use crossterm::event::KeyCode;

    use super::*;
    use crate::detect::LabelSource;
    use crate::engine::{Opening, Recipe};
    use crate::tui::session;
    use crate::tui::theme::Depth;

    fn shell() -> (Shell, Receiver<Msg>) {
        let start = Start {
            opening: Opening { corpus: Some("no-such-corpus.jsonl".into()), ..Opening::default() },
            lanes: Recipe::defaults(),
            k: 5,
            source: LabelSource::Auto,
            question: String::new(),
            perspectives: Vec::new(),
            history: None,
            config: Default::default(),
            config_from: Default::default(),
            depth: Depth::Millions,
            linear: false,
            home: None,
            presenting: false,
        };
        let (send, messages) = mpsc::channel();
        (Shell::new(start, None, Size { width: 80, height: 24 }, send).unwrap(), messages)
    }

    #[test]
    fn what_was_not_saved_at_the_end_is_reported() {
        let labelled = |reason: &str| Msg::Engine(Reply::Labelled(Err(reason.into())));
        let messages =
            [Msg::Saved(Ok("a.svg".into())), Msg::Saved(Err("no room".into())), labelled("read only")];
        assert_eq!(unsaved(messages.into_iter()).as_deref(), Some("no room; read only"));
        assert_eq!(unsaved([Msg::Terminated, Msg::Saved(Ok("a.svg".into()))].into_iter()), None);
    }

    #[test]
    fn a_stopped_process_adds_nothing_to_the_time_of_a_label_or_of_a_replay() {
        let (mut shell, _messages) = shell();
        let since = Instant::now();
        (shell.clock.since, shell.before) = (Some(since), since);
        shell.leave_out(Duration::from_secs(60));
        let later = since + Duration::from_secs(60);
        assert_eq!((shell.clock.since, shell.before), (Some(later), later));
    }

    #[test]
    fn the_time_before_a_key_passes_before_it() {
        let (mut shell, messages) = shell();
        let tour = session::tour().unwrap();
        Replay::begin(&tour, 1.0).onto(&mut shell.app);
        shell.send.send(Msg::Key(KeyCode::Char(' ').into())).unwrap();
        assert!(matches!(shell.next(&messages)[0], Msg::Passed(_)));
    }

    #[test]
    fn a_recording_holds_the_theme_that_was_read_again() {
        let (mut shell, _messages) = shell();
        shell.set_look(Look::Light);
        let folder = tempfile::tempdir().unwrap();
        let recorder = Recorder::begin(folder.path(), &shell.start, &shell.app, Instant::now()).unwrap();
        let text = std::fs::read_to_string(folder.path().join(recorder.name)).unwrap();
        assert!(text.contains(r#""theme":"light""#), "{text}");
        assert_eq!(shell.theme.look, Look::Light);
    }
}
