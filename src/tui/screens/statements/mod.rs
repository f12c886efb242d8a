//! The editor of the question's statements.
//!
//! May use: as `screens` says.

pub mod screen;

use tui_input::Input;

use crate::tui::keymap::action::{Action, Binding, Context, Screen, bind};

impl Screen {
    /// The editor of the statements.
    pub const STATEMENTS: Screen = Screen("statements");
}

/// The state of the editor.
#[derive(Clone, Debug, Default)]
pub struct Editing {
    /// The statements, one line each.
    pub lines: Vec<Input>,
    /// The index of the line under the cursor.
    pub at: usize,
    /// Of two statements, the index of the one that says yes.
    pub supports: usize,
    /// The last question for which the editor opened by itself.
    pub offered: Option<String>,
}

/// The keys.
pub const KEYS: &[Binding] = &[
    bind(
        Context::Statements,
        &["<Enter>"],
        Action::ApplyStatements,
        "use them",
        "use the statements and ask again",
    ),
    bind(Context::Statements, &["<Esc>"], Action::Back, "cancel", "leave them as they were"),
    bind(Context::Statements, &["<Down>", "<Tab>"], Action::Down, "choose", "go to the next statement"),
    bind(Context::Statements, &["<Up>", "<S-Tab>"], Action::Up, "", "go to the statement before"),
    bind(Context::Statements, &["<C-n>"], Action::AddStatement, "add", "add a statement"),
    bind(Context::Statements, &["<C-x>"], Action::DropStatement, "drop", "drop the statement"),
    bind(
        Context::Statements,
        &["<C-s>"],
        Action::SwapSides,
        "swap sides",
        "swap which statement supports and which opposes",
    ),
];
