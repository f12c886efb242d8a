//! The list of keys.
//!
//! May use: as `screens` says.

pub mod screen;

use crate::tui::keymap::action::{Action, Context, Screen};
use crate::tui::keymap::action::{Binding, bind};

impl Screen {
    /// The list of keys.
    pub const HELP: Screen = Screen("help");
}

/// The keys.
pub const KEYS: &[Binding] = &[
    bind(Context::Help, &["<Esc>", "q", "?"], Action::Back, "back", "go back"),
    bind(Context::Help, &["j", "<Down>"], Action::Down, "scroll", "scroll down"),
    bind(Context::Help, &["k", "<Up>"], Action::Up, "", "scroll up"),
    bind(Context::Help, &["<PageDown>", "<C-d>"], Action::PageDown, "", "go a screen down"),
    bind(Context::Help, &["<PageUp>", "<C-u>"], Action::PageUp, "", "go a screen up"),
    bind(Context::Help, &["g", "<Home>"], Action::First, "", "go to the beginning"),
    bind(Context::Help, &["G", "<End>"], Action::Last, "", "go to the end"),
];
