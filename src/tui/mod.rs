//! The terminal interface: messages in, state and effects out, and a frame drawn from the state.
//!
//! [`update`] does no I/O and reads no clock; [`draw`](draw::draw) changes nothing; [`layout::arrange`] serves drawing and
//! mouse alike. [`run`](fn@run) owns the terminal and carries effects out, [`play`](fn@play) does the same without a
//! terminal. Nothing outside this folder knows ratatui or crossterm.

pub mod answering;
pub mod app;
pub mod config;
pub mod desk;
pub mod draw;
mod dump;
pub mod export;
mod guard;
pub mod instruments;
pub mod kept;
pub mod keymap;
pub mod layout;
pub mod message;
mod play;
mod run;
pub mod script;
pub mod session;
mod settled;
pub mod theme;
pub mod update;
mod wrap;

use std::str::FromStr;

use crate::detect::LabelSource;
use crate::pipeline::{Opening, Recipe};

use config::{Config, Source};
pub use dump::Dump;
use kept::Kept;
pub use play::{PlayError, film, frame, play};
pub use run::run;
use theme::{Depth, Theme};

/// What the interface starts with.
#[derive(Clone, Debug)]
pub struct Start {
    /// What to open.
    pub opening: Opening,
    /// The lanes, left to right.
    pub lanes: Vec<Recipe>,
    /// How many passages count.
    pub k: usize,
    /// Which labels count.
    pub source: LabelSource,
    /// A question to begin with; may be empty.
    pub question: String,
    /// Its perspectives, if not its own.
    pub perspectives: Vec<String>,
    /// What was asked before, and where it is kept; none where nothing is.
    pub kept: Option<Kept>,
    /// What is set.
    pub config: Config,
    /// Where that came from, to be read again when it changes.
    pub config_from: Source,
    /// How many colours the terminal shows.
    pub depth: Depth,
}

impl Start {
    /// What meanings look like.
    pub fn theme(&self) -> Theme {
        Theme { look: self.config.look, depth: self.depth }
    }
}

/// Columns and rows of a terminal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Size {
    /// Columns.
    pub width: u16,
    /// Rows.
    pub height: u16,
}

impl FromStr for Size {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let number = |side: &str| side.trim().parse::<u16>().ok().filter(|n| (1..=1000).contains(n));
        let (width, height) = text.split_once(['x', 'X']).unwrap_or((text, ""));
        match (number(width), number(height)) {
            (Some(width), Some(height)) => Ok(Size { width, height }),
            _ => Err(format!("expected columns and rows such as 140x40, found `{text}`")),
        }
    }
}
