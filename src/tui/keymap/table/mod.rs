//! The table itself, one file a place.

mod instruments;
mod labelling;
mod lanes;

use super::{Action, Binding, Context};
use instruments::INSTRUMENTS;
use labelling::LABELLING;
use lanes::LANES;

const fn bind(
    context: Context,
    keys: &'static [&'static str],
    action: Action,
    short: &'static str,
    help: &'static str,
) -> Binding {
    Binding { context, keys, action, short, help }
}

const ANYWHERE: &[Binding] = &[
    bind(Context::Palette, &["<Enter>"], Action::Choose, "do it", "do the marked action"),
    bind(Context::Palette, &["<Down>", "<C-n>"], Action::Down, "choose", "mark the next action"),
    bind(Context::Palette, &["<Up>", "<C-p>"], Action::Up, "", "mark the action before"),
    bind(Context::Palette, &["<Esc>"], Action::Back, "cancel", "do nothing"),
    bind(Context::Help, &["<Esc>", "q", "?"], Action::Back, "back", "go back"),
    bind(Context::Help, &["j", "<Down>"], Action::Down, "scroll", "scroll down"),
    bind(Context::Help, &["k", "<Up>"], Action::Up, "", "scroll up"),
    bind(Context::Help, &["<PageDown>", "<C-d>"], Action::PageDown, "", "go a screen down"),
    bind(Context::Help, &["<PageUp>", "<C-u>"], Action::PageUp, "", "go a screen up"),
    bind(Context::Help, &["g", "<Home>"], Action::First, "", "go to the beginning"),
    bind(Context::Help, &["G", "<End>"], Action::Last, "", "go to the end"),
    bind(Context::Anywhere, &["<C-z>"], Action::Suspend, "", "sleep; `fg` wakes it"),
    bind(Context::Anywhere, &["<C-c>"], Action::Quit, "", "leave at once"),
];

const PARTS: [&[Binding]; 4] = [LANES, INSTRUMENTS, LABELLING, ANYWHERE];
const LINES: usize = LANES.len() + INSTRUMENTS.len() + LABELLING.len() + ANYWHERE.len();

/// The table.
pub const TABLE: &[Binding] = &joined();

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
