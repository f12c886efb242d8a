//! An action found by its words.
//!
//! May use: as `screens` says.

pub mod screen;

use tui_input::Input;

use crate::tui::keymap::action::{Action, Binding, Context, bind};

/// An action being looked for.
#[derive(Clone, Debug, Default)]
pub struct Palette {
    /// Words that the action's help must hold.
    pub line: Input,
    /// The marked one of those that do.
    pub at: usize,
    /// Those that do, best first, by their places in the table of keys.
    pub found: Vec<usize>,
}

/// The keys.
pub const KEYS: &[Binding] = &[
    bind(Context::Palette, &["<Enter>"], Action::Choose, "do it", "do the marked action"),
    bind(Context::Palette, &["<Down>", "<C-n>"], Action::Down, "choose", "mark the next action"),
    bind(Context::Palette, &["<Up>", "<C-p>"], Action::Up, "", "mark the action before"),
    bind(Context::Palette, &["<Esc>"], Action::Back, "cancel", "do nothing"),
];
