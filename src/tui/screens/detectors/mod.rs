//! The detectors that can be chosen, fetched on the way.
//!
//! May use: as `screens` says.

pub mod screen;

use crate::engine::detectors::DetectorOffer;
use crate::tui::keymap::action::{Action, Binding, Context, Screen, bind, shared};
use crate::work::Progress;

impl Screen {
    /// The detectors that can be chosen.
    pub const DETECTORS: Screen = Screen("detectors");
}

/// The detectors that can be chosen.
#[derive(Clone, Debug, Default)]
pub struct Choosing {
    /// The batch whose replies are shown.
    pub number: u64,
    /// Those that need no server.
    pub local: Vec<DetectorOffer>,
    /// Language models; none until the ports were looked at.
    pub served: Option<Vec<DetectorOffer>>,
    /// The marked one, from 0.
    pub at: usize,
    /// What is being fetched, and how far.
    pub fetching: Option<(String, Option<Progress>)>,
    /// Why the last fetch failed.
    pub failed: Option<String>,
}

impl Choosing {
    /// All offers, in their order on the screen.
    pub fn offers(&self) -> impl Iterator<Item = &DetectorOffer> {
        self.local.iter().chain(self.served.iter().flatten())
    }
}

/// The keys.
pub const KEYS: &[Binding] = &[
    bind(
        Context::Detectors,
        &["<Enter>"],
        Action::Choose,
        "use",
        "use the marked detector, or fetch it first",
    ),
    shared::down(Context::Detectors, "choose", "mark the next detector"),
    shared::up(Context::Detectors, "mark the detector before"),
    bind(
        Context::Detectors,
        &["<Esc>", "q", "D"],
        Action::Back,
        "back",
        "stop fetching, or go back to the lanes",
    ),
    shared::save_frame(Context::Detectors),
    shared::record(Context::Detectors),
    shared::help(Context::Detectors),
    shared::palette(Context::Detectors),
];
