//! The sycophancy screen: every lane is asked neutrally, as the supporting statement and as the opposing one. Its second page is the
//! framing lab: the lane under the cursor in all wordings.
//!
//! May use: as `screens` says.

pub mod lab;
pub mod screen;

use std::sync::Arc;

use tui_input::Input;

use crate::engine::{Framing, Sycophancy};
use crate::question::wordings::Framed;
use crate::tui::keymap::action::{Action, Binding, Context, Screen, bind, shared};

impl Screen {
    /// The sycophancy screen.
    pub const SYCOPHANCY: Screen = Screen("sycophancy");
    /// Its second page, the framing lab.
    pub const FRAMING: Screen = Screen("framing");
}

/// The state of the sycophancy screen.
#[derive(Clone, Debug, Default)]
pub struct SycophancyScreen {
    /// The batch whose answers are shown.
    pub number: u64,
    /// Each lane's answer, once it has arrived.
    pub lanes: Vec<Option<Result<Arc<Sycophancy>, String>>>,
    /// The second page.
    pub lab: Lab,
}

/// The state of the lab.
#[derive(Clone, Debug, Default)]
pub struct Lab {
    /// The batch whose answers are shown.
    pub number: u64,
    /// The wordings; the last one is typed.
    pub wordings: Vec<Framed>,
    /// Each lane's answers, once they have arrived.
    pub lanes: Vec<Option<Result<Arc<Framing>, String>>>,
    /// The marked wording.
    pub at: usize,
    /// The wording that is being typed.
    pub typed: Option<Input>,
}

/// The keys.
pub const KEYS: &[Binding] = &[
    shared::next_lane(Context::Sycophancy, "show the next lane"),
    shared::previous_lane(Context::Sycophancy, "show the lane before"),
    shared::label_source(Context::Sycophancy),
    bind(
        Context::Sycophancy,
        &["w"],
        Action::FramingLab,
        "wordings",
        "the framing lab: ask the lanes in more wordings",
    ),
    bind(Context::Sycophancy, &["<Esc>", "q", "y"], Action::Back, "back", "go back to the lanes"),
    shared::save_frame(Context::Sycophancy),
    shared::record(Context::Sycophancy),
    shared::help(Context::Sycophancy),
    shared::palette(Context::Sycophancy),
    shared::down(Context::Framing, "wording", "mark the next wording"),
    shared::up(Context::Framing, "mark the wording before"),
    shared::next_lane(Context::Framing, "show the next lane"),
    shared::previous_lane(Context::Framing, "show the lane before"),
    bind(Context::Framing, &["i", "<Enter>"], Action::TypeWording, "type", "type the marked wording anew"),
    shared::label_source(Context::Framing),
    bind(Context::Framing, &["<Esc>", "q", "w"], Action::Back, "back", "go back to the three wordings"),
    shared::save_frame(Context::Framing),
    shared::record(Context::Framing),
    shared::help(Context::Framing),
    shared::palette(Context::Framing),
    bind(Context::Wording, &["<Enter>"], Action::ApplyWording, "ask", "ask in the words that were typed"),
    bind(Context::Wording, &["<Esc>"], Action::Back, "cancel", "leave the wording as it was"),
];
