//! The terminal: taken at the start, given back on every way out.

use std::io::{self, Stdout};
use std::{panic, process, thread};

use crossterm::event::{
    DisableBracketedPaste, DisableMouseCapture, EnableBracketedPaste, EnableMouseCapture,
};
use crossterm::terminal::{EnterAlternateScreen, LeaveAlternateScreen, disable_raw_mode, enable_raw_mode};
use crossterm::{cursor, execute};
use ratatui::Terminal;
use ratatui::backend::CrosstermBackend;

use super::config::Mouse;
use crate::caught::is_caught;
use crate::encode::graph::on_a_graphs_thread;

/// The status that Rust gives a program whose main thread panicked.
const PANICKED: i32 = 101;

/// Gives the terminal back when dropped.
pub struct Guard;

impl Guard {
    /// Takes the terminal, and has a panic give it back before it is told.
    ///
    /// # Errors
    /// The terminal cannot be set up.
    pub fn take(mouse: Mouse) -> io::Result<(Guard, Terminal<CrosstermBackend<Stdout>>)> {
        let (hook, main) = (panic::take_hook(), thread::current().id());
        panic::set_hook(Box::new(move |panic| {
            // What is caught where it was asked for, on its own threads or this one, is told as an error.
            if on_a_graphs_thread() || is_caught() {
                return;
            }
            restore();
            hook(panic);
            // Without one of its threads the program would go on deaf, on a screen that is no longer its own.
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

/// Takes the screen.
///
/// # Errors
/// The terminal cannot be set up.
pub fn enter(mouse: Mouse) -> io::Result<()> {
    enable_raw_mode()?;
    execute!(io::stdout(), EnterAlternateScreen, EnableBracketedPaste)?;
    listen_to(mouse)
}

/// Listens to the mouse, or leaves it to the terminal.
///
/// # Errors
/// The terminal is gone.
pub fn listen_to(mouse: Mouse) -> io::Result<()> {
    match mouse {
        Mouse::Heard => execute!(io::stdout(), EnableMouseCapture),
        Mouse::Left => execute!(io::stdout(), DisableMouseCapture),
    }
}

/// Gives everything back. Every step is tried, whatever became of the others.
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
