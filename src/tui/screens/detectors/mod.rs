//! The detectors screen: choosing a detector, and fetching it first if need be.
//!
//! May use: as `screens` says.

pub mod screen;

use crate::detect::LabelSource;
use crate::engine::Ranking;
use crate::engine::detectors::DetectorOffer;
use crate::report::decisions::Decisions;
use crate::tui::keymap::action::{Action, Binding, Context, Screen, bind, shared};
use crate::work::Progress;

impl Screen {
    /// The detectors screen.
    pub const DETECTORS: Screen = Screen("detectors");
}

/// The state of the detectors screen.
#[derive(Clone, Debug, Default)]
pub struct Choosing {
    /// The batch whose replies are shown.
    pub number: u64,
    /// Detectors that need no server.
    pub local: Vec<DetectorOffer>,
    /// Language models on servers; `None` until the servers have been looked for.
    pub served: Option<Vec<DetectorOffer>>,
    /// The index of the marked detector.
    pub at: usize,
    /// The detector being fetched, and the progress.
    pub fetching: Option<(String, Option<Progress>)>,
    /// Why the last fetch failed.
    pub failed: Option<String>,
    /// The decisions on labelled passages, whose curve is drawn.
    pub decided: Decided,
}

/// The decisions of the detector on the labelled passages of the lanes; measured again if a list or a judgment changes.
#[derive(Clone, Debug, Default)]
pub struct Decided {
    /// The figures; `None` without two sides or labels.
    pub decisions: Option<Decisions>,
    /// The lists and the judgments that they were measured on.
    inputs: Option<(Vec<Ranking>, (u64, LabelSource))>,
}

impl Choosing {
    /// All detectors, in their order on the screen.
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
