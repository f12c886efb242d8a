//! The sycophancy screen: every lane is asked neutrally, as the supporting statement and as the opposing one.
//!
//! May use: as `screens` says.

pub mod screen;

use std::sync::Arc;

use crate::engine::Sycophancy;
use crate::tui::keymap::action::{Action, Binding, Context, Screen, bind, shared};

impl Screen {
    /// The sycophancy screen.
    pub const SYCOPHANCY: Screen = Screen("sycophancy");
}

/// The state of the sycophancy screen.
#[derive(Clone, Debug, Default)]
pub struct SycophancyScreen {
    /// The batch whose answers are shown.
    pub number: u64,
    /// Each lane's answer, once it has arrived.
    pub lanes: Vec<Option<Result<Arc<Sycophancy>, String>>>,
}

/// The keys.
pub const KEYS: &[Binding] = &[
    shared::next_lane(Context::Sycophancy, "show the next lane"),
    shared::previous_lane(Context::Sycophancy, "show the lane before"),
    shared::label_source(Context::Sycophancy),
    bind(Context::Sycophancy, &["<Esc>", "q", "y"], Action::Back, "back", "go back to the lanes"),
    shared::save_frame(Context::Sycophancy),
    shared::record(Context::Sycophancy),
    shared::help(Context::Sycophancy),
    shared::palette(Context::Sycophancy),
];
