//! The shell around the interface in a real terminal: events in, effects out, a frame after every burst.

use std::io;
use std::path::Path;
use std::sync::Arc;
use std::sync::mpsc::{self, Receiver, RecvTimeoutError, Sender};
use std::thread;
use std::time::{Duration, Instant};

use crossterm::clipboard::CopyToClipboard;
use crossterm::event::{self, Event, KeyEventKind};
use crossterm::style::force_color_output;
use ratatui::layout::Rect;

use super::app::{App, Screen};
use super::config::{Mouse, watch};
use super::draw::draw;
use super::guard::{self, Guard};
use super::kept::{Keeper, Kept};
use super::message::{Effect, Msg, Recording};
use super::session::{Recorder, Replay, Session, unrecorded};
use super::settled::settled;
use super::update::update;
use super::{Dump, Size, Start, play};
use crate::engine::{Engine, Labelling, Reach, Reply, Turn};
use crate::report::progress::Rates;

/// Messages taken before the next frame: a burst of keys or verdicts is drawn once.
const BURST: usize = 256;

/// A pause that is being waited for.
type Quiet = (Instant, Turn, Reach);

/// Runs the interface until the user leaves. A session that is given is played first, so many times as fast as it was.
///
/// # Errors
/// The terminal cannot be set up or drawn to.
pub fn run(start: Start, session: Option<(&Session, f64)>) -> io::Result<()> {
    let (send, messages) = mpsc::channel();
    let mut mouse = start.config.mouse;
    // Before the terminal is taken: a long session takes its time.
    let replay = session.map(|(session, pace)| Replay::begin(session, pace));
    let (guard, mut terminal) = Guard::take(mouse)?;
    listen(send.clone());
    signals(send.clone())?;
    let told = send.clone();
    watch(start.config_from.clone(), start.config.clone(), move |read| {
        told.send(Msg::Configured(read)).is_ok()
    });
    let failed = send.clone();
    let keep = start.kept.as_ref().map(|kept| {
        let failed = move |why| drop(failed.send(Msg::Saved(Err(why))));
        (kept, kept.keeper(failed))
    });
    let mut engine = Engine::start(start.opening.clone(), &teller(send));
    let mut theme = start.theme();
    // Whether there are colours was decided with the theme, by the same NO_COLOR among others.
    force_color_output(true);
    let area = terminal.size()?;
    let mut app = App::new(&start, Size { width: area.width, height: area.height });
    if let Some(replay) = replay {
        replay.onto(&mut app);
    }
    let mut recorder: Option<Recorder> = None;
    let mut before = Instant::now();
    let mut quiet: Vec<Quiet> = Vec::new();
    let mut rates = Rates::default();
    let mut watch = Watch::default();
    let mut kept_since = app.turn;
    loop {
        terminal.draw(|frame| draw(&app, theme, frame))?;
        keep_asked(keep.as_ref(), &mut kept_since, &app);
        if let Some(writing) = &mut recorder
            && let Err(error) = writing.look(&app, Instant::now())
        {
            recorder = None;
            update(&mut app, Msg::Recorded(Recording::Failed(error.to_string())));
            continue;
        }
        let next = app.replay.as_ref().and_then(|replay| replay.left(settled(&app)));
        let mut all = burst(&messages, &mut quiet, next);
        let passed = Instant::now().saturating_duration_since(before);
        before += passed;
        all.extend(app.replay.as_ref().map(|_| Msg::Passed(passed)));
        for msg in all {
            let msg = match msg {
                Msg::Engine(Reply::Progress(progress)) => {
                    Msg::Progressed { progress, told: rates.text(progress, Instant::now()) }
                }
                Msg::Resized(_) => {
                    let area = terminal.size()?;
                    Msg::Resized(Size { width: area.width, height: area.height })
                }
                Msg::Configured(Ok(config)) => {
                    theme.look = config.look;
                    mouse = config.mouse;
                    guard::listen_to(mouse)?;
                    Msg::Configured(Ok(config))
                }
                msg => msg,
            };
            let (at, did) = (Instant::now(), recorder.is_some().then(|| msg.clone()));
            let effects = update(&mut app, msg);
            for effect in watch.time(&app, effects) {
                match effect {
                    Effect::WaitQuiet { turn, reach, pause } => {
                        quiet.retain(|(_, waiting, _)| *waiting == turn);
                        quiet.push((Instant::now() + pause, turn, reach));
                    }
                    // The terminal's own clipboard, which works over SSH too.
                    Effect::Copy(text) => {
                        crossterm::execute!(io::stdout(), CopyToClipboard::to_clipboard_from(text))?;
                    }
                    Effect::SaveFrame => {
                        let saved = play::frame(&app, theme).map_err(|error| error.to_string());
                        let saved = saved.and_then(|frame| save(&frame));
                        update(&mut app, Msg::Saved(saved));
                    }
                    Effect::Record => {
                        let told = match Recorder::begin(Path::new(""), &start, &app, Instant::now()) {
                            Ok(began) => {
                                let name = recorder.insert(began).name.clone();
                                Recording::Began(name, unrecorded(&start, &app))
                            }
                            Err(error) => Recording::Failed(error.to_string()),
                        };
                        update(&mut app, Msg::Recorded(told));
                    }
                    Effect::StopRecording => {
                        if let Some(ended) = recorder.take() {
                            update(&mut app, Msg::Recorded(Recording::Ended(ended.name)));
                        }
                    }
                    Effect::Suspend => {
                        suspend(mouse)?;
                        // Everything is drawn anew. `clear` would ask the terminal where its cursor is, and the thread that listens
                        // would have the answer.
                        let area = terminal.size()?;
                        terminal.resize(Rect::new(0, 0, area.width, area.height))?;
                    }
                    Effect::Quit => {
                        // It shows the cursor as it goes, which a terminal that was given back could hold up: Ctrl-S stops it.
                        drop(terminal);
                        drop(guard);
                        keep_asked(keep.as_ref(), &mut kept_since, &app);
                        drop(keep);
                        engine.write_down();
                        // All that is to be kept is kept: from now on a signal ends it at once.
                        drop(messages);
                        drop(engine);
                        return Ok(());
                    }
                    effect => carry_out(&engine, effect),
                }
            }
            // The key that begins or ends a recording is no part of it.
            if let (Some(writing), Some(did)) = (&mut recorder, did)
                && let Err(error) = writing.take(&did, at)
            {
                recorder = None;
                update(&mut app, Msg::Recorded(Recording::Failed(error.to_string())));
            }
        }
    }
}

/// Has what is asked kept, once a turn.
fn keep_asked(keep: Option<&(&Kept, Keeper)>, since: &mut Turn, app: &App) {
    if let Some((kept, keeper)) = keep
        && *since != app.turn
        && let Some(asked) = kept.now(app)
    {
        *since = app.turn;
        keeper.keep(asked);
    }
}

/// Since when the passage that is to be labelled has been on screen.
#[derive(Default)]
struct Watch {
    shown: Option<(String, String)>,
    since: Option<Instant>,
}

impl Watch {
    /// Tells every act that is to be written down how long its passage was looked at.
    fn time(&mut self, app: &App, mut effects: Vec<Effect>) -> Vec<Effect> {
        for effect in &mut effects {
            if let (Effect::Label(Labelling::Write(act)), Some(since)) = (effect, self.since)
                && act.took.is_none()
            {
                act.took = u64::try_from(since.elapsed().as_millis()).ok();
            }
        }
        let item = app.labelling.item().filter(|_| app.screen == Screen::Annotate);
        let shown = item.map(|item| (item.question.clone(), item.passage.id.clone()));
        if shown != self.shown {
            (self.since, self.shown) = (shown.as_ref().map(|_| Instant::now()), shown);
        }
        effects
    }
}

/// Saves a frame under the first `parallax-N.svg` that is free.
fn save(frame: &Dump) -> Result<String, String> {
    let free = |n: &u32| !Path::new(&format!("parallax-{n}.svg")).exists();
    let name = format!("parallax-{}.svg", (1..).find(free).unwrap_or(1));
    frame.save(Path::new(&name)).map_err(|error| error.to_string())?;
    Ok(name)
}

/// What the engine is asked to do.
pub fn carry_out(engine: &Engine, effect: Effect) {
    match effect {
        Effect::Start { turn, plan, reach } => engine.carry_out(turn, plan, reach),
        Effect::Study(study) => engine.study(study),
        Effect::Survey(number, survey) => engine.survey(number, survey),
        Effect::Label(order) => engine.label(order),
        Effect::StopSurvey(number) => engine.stop_survey(number),
        Effect::WaitQuiet { .. }
        | Effect::SaveFrame
        | Effect::Record
        | Effect::StopRecording
        | Effect::Copy(_)
        | Effect::Suspend
        | Effect::Quit => {}
    }
}

/// Sends what the engine tells to the interface. A screen that is gone hears nothing.
pub fn teller(send: Sender<Msg>) -> Arc<dyn Fn(Reply) + Send + Sync> {
    Arc::new(move |reply| drop(send.send(Msg::Engine(reply))))
}

/// Waits for a message, the end of a pause or the next act of a replay, then takes whatever else is there.
fn burst(messages: &Receiver<Msg>, quiet: &mut Vec<Quiet>, next: Option<Duration>) -> Vec<Msg> {
    let soonest = quiet.iter().map(|(at, ..)| *at).min();
    let wait = soonest.map_or(Duration::from_secs(3600), |at| at.saturating_duration_since(Instant::now()));
    let wait = next.map_or(wait, |next| wait.min(next));
    let mut all = match messages.recv_timeout(wait) {
        Ok(msg) => vec![msg],
        Err(RecvTimeoutError::Timeout) => Vec::new(),
        Err(RecvTimeoutError::Disconnected) => vec![Msg::Terminated],
    };
    all.extend(messages.try_iter().take(BURST));
    let now = Instant::now();
    let ended = quiet.extract_if(.., |(at, ..)| *at <= now);
    all.extend(ended.map(|(_, turn, reach)| Msg::QuietPeriodEnded { turn, reach }));
    all
}

/// Turns the terminal's events into messages, on a thread of its own that ends with the process.
fn listen(send: Sender<Msg>) {
    thread::spawn(move || {
        loop {
            let msg = match event::read() {
                Ok(Event::Key(key)) if key.kind != KeyEventKind::Release => Msg::Key(key),
                Ok(Event::Mouse(mouse)) => Msg::Mouse(mouse),
                Ok(Event::Paste(text)) => Msg::Pasted(text),
                Ok(Event::Resize(width, height)) => Msg::Resized(Size { width, height }),
                Ok(_) => continue,
                // The terminal is gone.
                Err(_) => Msg::Terminated,
            };
            let ended = matches!(msg, Msg::Terminated);
            if send.send(msg).is_err() || ended {
                return;
            }
        }
    });
}

/// A signal to end is an end like any other: the terminal is given back.
///
/// The terminal's new size is listened for here too: where it comes together with a key, the reader of events tells of the key alone.
#[cfg(unix)]
fn signals(send: Sender<Msg>) -> io::Result<()> {
    use signal_hook::consts::{SIGCONT, SIGHUP, SIGINT, SIGTERM, SIGWINCH};
    let mut signals = signal_hook::iterator::Signals::new([SIGTERM, SIGHUP, SIGINT, SIGCONT, SIGWINCH])?;
    thread::spawn(move || {
        for signal in signals.forever() {
            let msg = match signal {
                SIGCONT | SIGWINCH => Msg::Resized(Size { width: 0, height: 0 }),
                _ => Msg::Terminated,
            };
            // Nobody listens any more: the program is leaving, and what still runs is not to outlast a second wish to end.
            if send.send(msg).is_err() && signal_hook::low_level::emulate_default_handler(signal).is_err() {
                return;
            }
        }
    });
    Ok(())
}

#[cfg(not(unix))]
fn signals(_: Sender<Msg>) -> io::Result<()> {
    Ok(())
}

/// Gives the terminal back, sleeps, and takes it again on waking.
#[cfg(unix)]
fn suspend(mouse: Mouse) -> io::Result<()> {
    guard::restore();
    signal_hook::low_level::emulate_default_handler(signal_hook::consts::SIGTSTP)?;
    guard::enter(mouse)
}

#[cfg(not(unix))]
fn suspend(_: Mouse) -> io::Result<()> {
    Ok(())
}
