//! The lanes asked neutrally, as the supporting statement and as the opposing one.
//!
//! May use: as `screens` says.

pub mod screen;

use std::sync::Arc;

use crate::engine::Sycophancy;
use crate::tui::keymap::action::{Action, Context, Screen};
use crate::tui::keymap::action::{Binding, bind};

impl Screen {
    /// The lanes asked in three wordings.
    pub const SYCOPHANCY: Screen = Screen("sycophancy");
}

/// The lanes asked in three wordings.
#[derive(Clone, Debug, Default)]
pub struct SycophancyScreen {
    /// The batch whose answers are shown.
    pub number: u64,
    /// One a lane, once it is there.
    pub lanes: Vec<Option<Result<Arc<Sycophancy>, String>>>,
}

/// The keys.
pub const KEYS: &[Binding] = &[
    bind(Context::Sycophancy, &["<Tab>", "<Right>", "l"], Action::NextLane, "lane", "show the next lane"),
    bind(Context::Sycophancy, &["<S-Tab>", "<Left>", "h"], Action::PreviousLane, "", "show the lane before"),
    bind(
        Context::Sycophancy,
        &["s"],
        Action::NextLabelSource,
        "labels",
        "let other labels count: auto, model, gold, human",
    ),
    bind(Context::Sycophancy, &["<Esc>", "q", "y"], Action::Back, "back", "go back to the lanes"),
    bind(Context::Sycophancy, &["S"], Action::SaveFrame, "", "save the frame as an SVG picture"),
    bind(Context::Sycophancy, &["R"], Action::Record, "", "record the session, or stop"),
    bind(Context::Sycophancy, &["?"], Action::Help, "keys", "show all keys"),
    bind(Context::Sycophancy, &[":"], Action::Palette, "", "find an action by its words"),
];
