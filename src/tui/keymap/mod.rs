//! The key table: context, keys, action and help, composed of the keys of each screen. Dispatch, the footer, the help screen, the palette
//! and `docs/keys.md` use it, in its order. A [`Keymap`] is the table with the keys of a configuration.
//!
//! May use: the keys of the screens, script.

use super::screens::{
    bias, compare, detectors, help, labelling, lanes, palette, passage, reader, statements, sycophancy, tune,
};
use action::bind;

pub mod action;
pub mod bound;

pub use action::{Action, Binding, Context, Screen};
pub use bound::{Bound, Clash, Keymap, Preset, name, shown, written};

const ANYWHERE: &[Binding] = &[
    bind(Context::Anywhere, &["<C-z>"], Action::Suspend, "", "sleep; `fg` wakes it"),
    bind(Context::Anywhere, &["<C-c>"], Action::Quit, "", "leave at once"),
];

/// The keys of each screen.
const PARTS: [&[Binding]; 18] = [
    lanes::KEYS,
    &lanes::LABELS,
    passage::KEYS,
    &passage::LABELS,
    statements::KEYS,
    tune::KEYS,
    sycophancy::KEYS,
    compare::KEYS,
    bias::KEYS,
    reader::KEYS,
    reader::POINT_KEYS,
    reader::MIX_KEYS,
    reader::SIDE_KEYS,
    labelling::KEYS,
    detectors::KEYS,
    palette::KEYS,
    help::KEYS,
    ANYWHERE,
];

/// The key table.
pub const TABLE: &[Binding] = &joined();

const LINES: usize = {
    let (mut lines, mut part) = (0, 0);
    while part < PARTS.len() {
        lines += PARTS[part].len();
        part += 1;
    }
    lines
};

const fn joined() -> [Binding; LINES] {
    let mut all = [ANYWHERE[0]; LINES];
    let (mut part, mut line, mut next) = (0, 0, 0);
    while part < PARTS.len() {
        while line < PARTS[part].len() {
            all[next] = PARTS[part][line];
            (line, next) = (line + 1, next + 1);
        }
        (part, line) = (part + 1, 0);
    }
    all
}
