//! The palette: finds an action by its words.
//!
//! May use: as `screens` says.

pub mod screen;

use tui_input::Input;

use crate::tui::keymap::action::{Action, Binding, Context, bind};

/// The state of the palette.
#[derive(Clone, Debug, Default)]
pub struct Palette {
    /// The words that the action's help must contain.
    pub line: Input,
    /// The marked action, as an index into `found`.
    pub at: usize,
    /// The matching actions, best first, as indices into the key table.
    pub found: Vec<usize>,
}

/// The keys.
pub const KEYS: &[Binding] = &[
    bind(Context::Palette, &["<Enter>"], Action::Choose, "do it", "do the marked action"),
    bind(Context::Palette, &["<Down>", "<C-n>"], Action::Down, "choose", "mark the next action"),
    bind(Context::Palette, &["<Up>", "<C-p>"], Action::Up, "", "mark the action before"),
    bind(Context::Palette, &["<Esc>"], Action::Back, "cancel", "do nothing"),
];
