//! The shell runs the interface with a terminal ([`run()`](run::run)) or without one ([`play()`](play::play)).
//!
//! The shell owns the terminal, the channels, the clock and the engine; it executes the effects that `update` returns. This file takes
//! over the terminal at the start and restores it however the program ends. May use everything in `tui`, and `engine`.

use std::io::Stdout;
use std::{io, panic, process, thread};

use crossterm::event::{
    DisableBracketedPaste, DisableMouseCapture, EnableBracketedPaste, EnableMouseCapture,
};
use crossterm::terminal::{EnterAlternateScreen, LeaveAlternateScreen, disable_raw_mode, enable_raw_mode};
use crossterm::{cursor, execute};
use ratatui::Terminal;
use ratatui::backend::CrosstermBackend;

use super::config::Mouse;
use crate::encode::graph::is_graph_thread;
use crate::work::is_catching;

mod engines;
pub mod play;
pub mod run;

/// The exit code of a Rust program whose main thread panicked.
const PANICKED: i32 = 101;

/// Restores the terminal when dropped.
pub struct Guard;

impl Guard {
    /// Takes over the terminal. From here on a panic restores it before the panic's message is printed.
    ///
    /// # Errors
    /// The terminal cannot be set up.
    pub fn take(mouse: Mouse) -> io::Result<(Guard, Terminal<CrosstermBackend<Stdout>>)> {
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
    execute!(io::stdout(), EnterAlternateScreen, EnableBracketedPaste)?;
    capture_mouse(mouse)
}

/// Captures the mouse or leaves it to the terminal.
///
/// # Errors
/// The terminal is gone.
pub fn capture_mouse(mouse: Mouse) -> io::Result<()> {
    match mouse {
        Mouse::On => execute!(io::stdout(), EnableMouseCapture),
        Mouse::Off => execute!(io::stdout(), DisableMouseCapture),
    }
}

/// Restores the terminal. A step that fails does not stop the others.
pub fn restore() {
    let _ = execute!(
        io::stdout(),
        DisableBracketedPaste,
        DisableMouseCapture,
        LeaveAlternateScreen,
        cursor::Show
    );
    let _ = disable_raw_mode();
}
