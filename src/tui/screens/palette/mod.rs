//! The palette: finds an action, a setting, a lane, a question or a corpus by its words.
//!
//! May use: as `screens` says.

pub mod screen;

use std::path::PathBuf;

use tui_input::Input;

use crate::detect::LabelSource;
use crate::engine::Recipe;
use crate::report::marks::Glyphs;
use crate::tui::keymap::action::{Action, Binding, Context, bind};
use crate::tui::theme::Look;

/// What is chosen from.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Picker {
    /// The actions of the screen below, and the settings.
    #[default]
    Actions,
    /// Lanes to add.
    Lanes,
    /// Questions of the set.
    Questions,
    /// Corpora.
    Corpora,
}

/// What an entry does.
#[derive(Clone, Debug, PartialEq)]
pub enum Does {
    /// Performs an action.
    Act(Action),
    /// Lets so many passages count.
    K(usize),
    /// Lets other labels count.
    Source(LabelSource),
    /// Draws in other colours.
    Look(Look),
    /// Draws with other characters.
    Glyphs(Glyphs),
    /// Gives a passage at most so many rows.
    Rows(u16),
    /// Gives a lane at least so many columns.
    LaneWidth(u16),
    /// Adds a copy of the lane.
    CopyLane,
    /// Adds a lane.
    Lane(Box<Recipe>),
    /// Asks a question of the set, by its index.
    Question(usize),
    /// Opens a corpus; `None` is the built-in sample.
    Corpus(Option<PathBuf>),
}

/// A line to choose.
#[derive(Clone, Debug, PartialEq)]
pub struct Entry {
    /// Its key, or a short name.
    pub key: String,
    /// What it does, in words.
    pub text: String,
    /// The effect.
    pub does: Does,
}

/// The state of the palette.
#[derive(Clone, Debug, Default)]
pub struct Palette {
    /// What is chosen from.
    pub of: Picker,
    /// The words that an entry must contain.
    pub line: Input,
    /// The marked entry, as an index into `found`.
    pub at: usize,
    /// The matching entries, best first.
    pub found: Vec<Entry>,
    /// Why nothing can be chosen, or what else can be typed.
    pub note: Option<String>,
}

/// The keys.
pub const KEYS: &[Binding] = &[
    bind(Context::Palette, &["<Enter>"], Action::Choose, "take it", "take the marked entry"),
    bind(
        Context::Palette,
        &["<Tab>"],
        Action::Complete,
        "complete",
        "complete the recipe or path with the marked one",
    ),
    bind(Context::Palette, &["<Down>", "<C-n>"], Action::Down, "choose", "mark the next entry"),
    bind(Context::Palette, &["<Up>", "<C-p>"], Action::Up, "", "mark the entry before"),
    bind(Context::Palette, &["<Esc>"], Action::Back, "cancel", "choose nothing"),
];
