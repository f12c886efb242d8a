//! The shell runs the interface with a terminal ([`run()`](run::run)) or without one ([`play()`](play::play)).
//!
//! The shell owns the terminal, the channels, the clock and the engine; it executes the effects that `update` returns. This file takes
//! over the terminal at the start, listens to it and to signals, and restores it however the program ends. May use everything in `tui`, and `engine`.

#[cfg(unix)]
use std::fs::File;
use std::io::Stdout;
#[cfg(unix)]
use std::io::{IsTerminal, Read};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicI32, Ordering};
use std::sync::mpsc::Sender;
#[cfg(unix)]
use std::sync::mpsc::{self, RecvTimeoutError};
use std::{io, panic, process, thread};

use crossterm::event::{
    DisableBracketedPaste, DisableMouseCapture, EnableBracketedPaste, EnableMouseCapture, Event, KeyEventKind,
};
use crossterm::terminal::{EnterAlternateScreen, LeaveAlternateScreen, disable_raw_mode, enable_raw_mode};
use crossterm::{cursor, execute};
use ratatui::Terminal;
use ratatui::backend::CrosstermBackend;

#[cfg(unix)]
use self::decode::Decoder;
use super::config::Mouse;
use super::message::Msg;
use super::script::Size;
use crate::encode::graph::is_graph_thread;
use crate::signals::{self, HANG_UP, Signal, Which};
use crate::work::is_catching;

#[cfg(unix)]
mod decode;
mod linear;
pub mod play;
pub mod run;

/// The exit code of a Rust program whose main thread panicked.
const PANICKED: i32 = 101;

/// Whether the terminal shows sentences below one another instead of frames.
static LINEAR: AtomicBool = AtomicBool::new(false);

/// Restores the terminal when dropped.
pub struct Guard;

impl Guard {
    /// Takes over the terminal. From here on a panic restores it before the panic's message is printed.
    ///
    /// # Errors
    /// The terminal cannot be set up.
    pub fn take(mouse: Mouse, linear: bool) -> io::Result<(Guard, Terminal<CrosstermBackend<Stdout>>)> {
        let (hook, main) = (panic::take_hook(), thread::current().id());
        panic::set_hook(Box::new(move |panic| {
            // These panics are caught and become errors.
            if is_graph_thread() || is_catching() {
                return;
            }
            restore();
            hook(panic);
            // The terminal is restored already, and without one of its threads the program cannot go on.
            if thread::current().id() != main {
                process::exit(PANICKED);
            }
        }));
        let guard = Guard;
        LINEAR.store(linear, Ordering::Relaxed);
        enter(mouse)?;
        Ok((guard, Terminal::new(CrosstermBackend::new(io::stdout()))?))
    }
}

impl Drop for Guard {
    fn drop(&mut self) {
        restore();
    }
}

/// Switches the terminal to the explorer's screen.
///
/// # Errors
/// The terminal cannot be set up.
pub fn enter(mouse: Mouse) -> io::Result<()> {
    enable_raw_mode()?;
    if LINEAR.load(Ordering::Relaxed) {
        return Ok(());
    }
    execute!(io::stdout(), EnterAlternateScreen, EnableBracketedPaste)?;
    capture_mouse(mouse)
}

/// Takes the terminal over again after a stop that this program did not see coming, such as SIGSTOP: the user's shell has changed the
/// terminal meanwhile.
///
/// # Errors
/// The terminal cannot be set up.
pub fn enter_again(mouse: Mouse) -> io::Result<()> {
    // Otherwise crossterm believes that the terminal is still raw.
    disable_raw_mode()?;
    enter(mouse)
}

/// Captures the mouse or leaves it to the terminal.
///
/// # Errors
/// The terminal is gone.
pub fn capture_mouse(mouse: Mouse) -> io::Result<()> {
    match mouse {
        _ if LINEAR.load(Ordering::Relaxed) => Ok(()),
        Mouse::On => execute!(io::stdout(), EnableMouseCapture),
        Mouse::Off => execute!(io::stdout(), DisableMouseCapture),
    }
}

/// Restores the terminal. A step that fails does not stop the others.
pub fn restore() {
    if !LINEAR.load(Ordering::Relaxed) {
        let _ = execute!(
            io::stdout(),
            DisableBracketedPaste,
            DisableMouseCapture,
            LeaveAlternateScreen,
            cursor::Show
        );
    }
    let _ = disable_raw_mode();
}

/// How the interface ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ended {
    /// The user quit.
    Quit,
    /// This signal asked the program to end. The program's exit code should be 128 plus its number.
    Signal(i32),
}

/// The signal that ends the program; 0 for none. The first one counts.
#[derive(Clone, Default)]
pub struct Ending(Arc<AtomicI32>);

impl Ending {
    /// Remembers a signal, unless another came before.
    pub fn by(&self, signal: i32) {
        let _ = self.0.compare_exchange(0, signal, Ordering::Relaxed, Ordering::Relaxed);
    }

    /// How the interface ended.
    pub fn ended(&self) -> Ended {
        match self.0.load(Ordering::Relaxed) {
            0 => Ended::Quit,
            signal => Ended::Signal(signal),
        }
    }
}

/// Turns the terminal's events into messages, on threads that end with the process.
///
/// # Errors
/// The system gives no thread, or standard input cannot be read.
pub fn listen(send: Sender<Msg>, ending: Ending) -> io::Result<()> {
    let gone = send.clone();
    let each = move |event| {
        let msg = match event {
            Event::Key(key) if key.kind != KeyEventKind::Release => Msg::Key(key),
            Event::Mouse(mouse) => Msg::Mouse(mouse),
            Event::Paste(text) => Msg::Pasted(text),
            Event::Resize(width, height) => Msg::Resized(Size { width, height }),
            _ => return,
        };
        // Without a receiver the program is ending.
        let _ = send.send(msg);
    };
    read_events(each, move || {
        ending.by(HANG_UP);
        let _ = gone.send(Msg::Terminated);
    })
}

/// Calls `each` with every event of the terminal, and `gone` once the terminal is gone.
///
/// One thread reads bytes, one decodes them: only so can an incomplete sequence be given up while nothing arrives.
#[cfg(unix)]
fn read_events(
    mut each: impl FnMut(Event) + Send + 'static,
    gone: impl FnOnce() + Send + 'static,
) -> io::Result<()> {
    use std::os::fd::AsFd;
    // Both standard input and output are the terminal: the commands check it. Not `io::stdin`, which buffers.
    let mut terminal = File::from(io::stdin().as_fd().try_clone_to_owned()?);
    let (send, bytes) = mpsc::sync_channel::<Vec<u8>>(64);
    let reading = move || {
        let mut buffer = [0; 4096];
        loop {
            match terminal.read(&mut buffer) {
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                // Ctrl-D ends a line if the terminal is not raw for a moment, as after SIGSTOP.
                Ok(0) if terminal.is_terminal() => {}
                Ok(0) | Err(_) => return,
                Ok(count) if send.send(buffer[..count].to_vec()).is_err() => return,
                Ok(_) => {}
            }
        }
    };
    let decoding = move || {
        let mut decoder = Decoder::default();
        loop {
            let got = match decoder.patience() {
                Some(patience) => bytes.recv_timeout(patience),
                None => bytes.recv().map_err(|_| RecvTimeoutError::Disconnected),
            };
            match got {
                Ok(bytes) => decoder.feed(&bytes, &mut each),
                Err(RecvTimeoutError::Timeout) => decoder.expire(&mut each),
                Err(RecvTimeoutError::Disconnected) => return gone(),
            }
        }
    };
    thread::Builder::new().name("terminal".into()).spawn(reading)?;
    thread::Builder::new().name("keys".into()).spawn(decoding).map(drop)
}

/// Calls `each` with every event of the terminal, and `gone` once the terminal is gone.
#[cfg(not(unix))]
fn read_events(
    mut each: impl FnMut(Event) + Send + 'static,
    gone: impl FnOnce() + Send + 'static,
) -> io::Result<()> {
    let reading = move || {
        while let Ok(event) = crossterm::event::read() {
            each(event);
        }
        gone();
    };
    thread::Builder::new().name("terminal".into()).spawn(reading).map(drop)
}

/// Turns signals into messages, so that the terminal is restored after a signal as after any other end.
///
/// # Errors
/// The system refuses a handler or a thread.
pub fn listen_to_signals(send: Sender<Msg>, ending: Ending) -> io::Result<()> {
    signals::listen(Which::All, move |signal| {
        let msg = match signal {
            Signal::End(number) => {
                ending.by(number);
                Msg::Terminated
            }
            Signal::Stop => Msg::StopAsked,
            Signal::Continue => Msg::Continued,
            Signal::Resize => Msg::Resized(Size { width: 0, height: 0 }),
        };
        // Without a receiver the program is ending already: a second signal ends it at once.
        send.send(msg).is_ok() || matches!(signal, Signal::Continue | Signal::Resize)
    })
}

/// Restores the terminal, stops the process, and takes the terminal over again when the process goes on.
///
/// # Errors
/// The process cannot be stopped, or the terminal is gone.
pub fn suspend(mouse: Mouse) -> io::Result<()> {
    restore();
    signals::stop_process()?;
    enter(mouse)
}

mod engines {
    //! The engine that serves the explorer, the threads that end the engines it replaced, and the one that makes a corpus from the web.
    //!
    //! Ending an engine takes as long as its threads need for the passage that they work on, so the main thread waits for that only when the
    //! program ends.

    use std::path::{Path, PathBuf};
    use std::sync::mpsc::Sender;
    use std::sync::{Arc, Mutex, PoisonError};
    use std::thread::{self, JoinHandle};
    use std::{io, mem};

    use crate::engine::{Engine, Opening, Reply, SendReply};
    use crate::report::thousands;
    use crate::tui::message::{Gather, Gathered, Msg};
    use crate::web::{self, Manners, Store, WebError};
    use crate::work::Stop;

    /// Whether the replies of an engine are passed on. False once the engine was replaced: a late reply would be taken for one of its
    /// successor. The lock is held while a reply is sent, so all replies of an engine come before those of its successor.
    type Passes = Arc<Mutex<bool>>;

    /// The current engine and its ending predecessors. Dropping it waits until all of them have ended.
    pub struct Engines {
        current: Engine,
        passes: Passes,
        /// Where the replies go.
        send: Sender<Msg>,
        ending: Vec<JoinHandle<()>>,
        /// The thread that makes a corpus. It outlives the engine: the explorer opens the corpus again whenever it has grown.
        gatherer: Option<(Stop, JoinHandle<()>)>,
    }

    /// The most pages of a corpus that is made from the explorer.
    const PAGES: usize = 24;

    impl Engines {
        /// Starts the first engine.
        ///
        /// # Errors
        /// The system gives no threads.
        pub fn start(opening: Opening, send: Sender<Msg>) -> io::Result<Self> {
            let (current, passes) = launch(opening, &send)?;
            Ok(Engines { current, passes, send, ending: Vec::new(), gatherer: None })
        }

        /// Returns the current engine.
        pub fn current(&mut self) -> &mut Engine {
            &mut self.current
        }

        /// Starts an engine in place of the current one, which ends on a thread of its own.
        ///
        /// # Errors
        /// The system gives no threads.
        pub fn replace(&mut self, opening: Opening) -> io::Result<()> {
            set(&self.passes, false);
            let (next, passes) = launch(opening, &self.send).inspect_err(|_| set(&self.passes, true))?;
            let old = mem::replace(&mut self.current, next);
            self.passes = passes;
            self.ending.retain(|thread| !thread.is_finished());
            self.ending.push(thread::Builder::new().name("engine_end".into()).spawn(move || drop(old))?);
            Ok(())
        }
    }

    impl Engines {
        /// Starts to make a corpus from the web, in place of an earlier one.
        pub fn gather(&mut self, opening: &Opening, order: Gather) {
            self.stop_gathering();
            let (opening, stop, failed) = (opening.clone(), Stop::new(), self.send.clone());
            let (send, stopped) = (self.send.clone(), stop.clone());
            let work = move || {
                let ended = gathered(&opening, &order, &send, &stopped).map_err(|error| error.to_string());
                // The interface may have ended.
                let _ = send.send(Msg::Gathered(Gathered::Ended(ended)));
            };
            match thread::Builder::new().name("gatherer".into()).spawn(work) {
                Ok(thread) => self.ending.extend(self.gatherer.replace((stop, thread)).map(|(_, old)| old)),
                Err(error) => {
                    let _ = failed.send(Msg::Gathered(Gathered::Ended(Err(error.to_string()))));
                }
            }
        }

        /// Stops making it. The thread writes what there is, and reports it.
        pub fn stop_gathering(&self) {
            if let Some((stop, _)) = &self.gatherer {
                stop.set();
            }
        }
    }

    #[derive(Debug, thiserror::Error)]
    enum GatherError {
        #[error("--offline: no page is fetched; start again without it")]
        Offline,
        #[error(transparent)]
        Web(#[from] WebError),
    }

    /// Makes a corpus, and reports how far it is.
    fn gathered(
        opening: &Opening,
        order: &Gather,
        send: &Sender<Msg>,
        stop: &Stop,
    ) -> Result<(Option<PathBuf>, String), GatherError> {
        if opening.offline {
            return Err(GatherError::Offline);
        }
        let (question, provider) = (&order.question, &order.provider);
        let search = provider.open(order.contact.as_deref())?;
        let mut store = Store::open(&web::place(&opening.data_dir, &web::corpus_name(&question.text))?)?;
        let sent = Mutex::new(send.clone());
        let report = |msg| {
            let _ = sent.lock().unwrap_or_else(PoisonError::into_inner).send(msg);
        };
        let grown = |corpus: &Path, _: usize| report(Msg::Gathered(Gathered::Grew(corpus.into())));
        let usual = Manners::default();
        let gather = web::Gather {
            question: &question.text,
            statements: &question.perspectives,
            search: search.as_ref(),
            wanted: PAGES,
            manners: Manners { delay: provider.pause(usual.delay), ..usual },
            grown: Some(&grown),
        };
        let progress = |progress| report(Msg::Engine(Reply::Progress(progress)));
        let summary = web::gather(&gather, &mut store, &progress, stop)?;
        let (pages, passages) = (summary.ends.get(&web::End::Read).copied().unwrap_or(0), summary.passages);
        let stopped = if summary.stopped { "; stopped before its end" } else { "" };
        let text = format!(
            "{provider}, searched {}: {pages} of {} pages have a text, {} passages{stopped}",
            summary.searched,
            summary.pages,
            thousands(passages as u64),
        );
        Ok(((passages > 0).then_some(summary.corpus), text))
    }

    impl Drop for Engines {
        fn drop(&mut self) {
            self.stop_gathering();
            self.ending.extend(self.gatherer.take().map(|(_, thread)| thread));
            for thread in self.ending.drain(..) {
                // The panic hook has reported a thread that panicked.
                let _ = thread.join();
            }
        }
    }

    fn set(passes: &Passes, pass: bool) {
        *passes.lock().unwrap_or_else(PoisonError::into_inner) = pass;
    }

    fn launch(opening: Opening, send: &Sender<Msg>) -> io::Result<(Engine, Passes)> {
        let passes = Arc::new(Mutex::new(true));
        let engine = Engine::start(opening, &while_open(reply_sender(send.clone()), Arc::clone(&passes)))?;
        Ok((engine, passes))
    }

    fn while_open(reply: SendReply, passes: Passes) -> SendReply {
        Arc::new(move |one| {
            let passes = passes.lock().unwrap_or_else(PoisonError::into_inner);
            if *passes {
                reply(one);
            }
        })
    }

    /// Returns a function that sends the engine's replies to the interface. Once the interface has ended, replies are dropped.
    fn reply_sender(send: Sender<Msg>) -> SendReply {
        Arc::new(move |reply| drop(send.send(Msg::Engine(reply))))
    }

    #[cfg(test)]
    mod tests {
        use std::sync::mpsc;

        use super::*;
        use crate::engine::Reply;

        fn missing() -> Opening {
            Opening { corpus: Some("no-such-corpus.jsonl".into()), ..Opening::default() }
        }

        #[test]
        fn replacing_an_engine_does_not_wait_for_its_threads_but_dropping_does() {
            let (reached, replied) = mpsc::channel();
            let (release, gate) = mpsc::channel::<()>();
            let gate = Mutex::new(gate);
            // The thread that opens the corpus cannot end before the gate opens.
            let blocking: Arc<dyn Fn(Reply) + Send + Sync> = Arc::new(move |_| {
                let _ = reached.send(());
                let _ = gate.lock().map(|gate| gate.recv());
            });
            let (send, _messages) = mpsc::channel();
            let mut engines = Engines {
                current: Engine::start(missing(), &blocking).unwrap(),
                passes: Arc::new(Mutex::new(true)),
                send,
                ending: Vec::new(),
                gatherer: None,
            };
            let held = Arc::downgrade(&blocking);
            drop(blocking);
            replied.recv().unwrap();
            engines.replace(missing()).unwrap();
            assert!(held.upgrade().is_some(), "the old engine still runs");
            drop(release);
            drop(engines);
            assert!(held.upgrade().is_none(), "all threads of the old engine have ended");
        }

        #[test]
        fn a_reply_of_a_replaced_engine_is_dropped() {
            let (send, messages) = mpsc::channel();
            let mut engines = Engines::start(missing(), send.clone()).unwrap();
            let late = while_open(reply_sender(send), Arc::clone(&engines.passes));
            engines.replace(missing()).unwrap();
            late(Reply::OpenFailed("late".into()));
            drop(engines);
            let is_late =
                |msg: Msg| matches!(msg, Msg::Engine(Reply::OpenFailed(reason)) if reason == "late");
            assert!(!messages.try_iter().any(is_late));
        }
    }
}
