//! The help screen: the list of keys.
//!
//! May use: as `screens` says.

pub mod screen;

use crate::tui::keymap::action::{Action, Binding, Context, Screen, bind, shared};

impl Screen {
    /// The help screen.
    pub const HELP: Screen = Screen("help");
}

/// The keys.
pub const KEYS: &[Binding] = &[
    bind(Context::Help, &["<Esc>", "q", "?"], Action::Back, "back", "go back"),
    shared::down(Context::Help, "scroll", "scroll down"),
    shared::up(Context::Help, "scroll up"),
    shared::page_down(Context::Help, "", "go a screen down"),
    shared::page_up(Context::Help, "go a screen up"),
    shared::first(Context::Help, "go to the beginning"),
    shared::last(Context::Help, "go to the end"),
];
