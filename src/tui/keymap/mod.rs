//! The key table: context, keys, action and help, composed of the keys of each screen. Dispatch, the footer, the help screen, the palette
//! and `docs/keys.md` use it, in its order. A [`Keymap`] is the table with its present keys: those of a preset, changed by a configuration.
//! Keys are written as Vim writes them: `<C-x>`, `<Enter>`, `j`.
//!
//! May use: the keys of the screens, script.

use crossterm::event::{KeyCode, KeyEvent, KeyModifiers};

use super::screens::{
    bias, compare, detectors, help, labelling, lanes, palette, passage, reader, statements, sycophancy, tune,
};
use super::script::{self, name};
use action::bind;

pub mod action;

pub use action::{Action, Binding, Context, Screen};

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

/// The keys before a configuration changes any.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Preset {
    /// The keys of the table.
    #[default]
    Default,
    /// The same with `hjkl` first, and Vim's keys for pages and completions.
    Vim,
}

impl Preset {
    /// All presets.
    pub const ALL: [Preset; 2] = [Preset::Default, Preset::Vim];

    /// Its name in a configuration.
    pub fn name(self) -> &'static str {
        match self {
            Preset::Default => "default",
            Preset::Vim => "vim",
        }
    }

    fn keys(self, line: &Binding) -> Vec<String> {
        let mut keys: Vec<String> = line.keys.iter().map(ToString::to_string).collect();
        if self == Preset::Vim {
            let more = match line.action {
                Action::PageDown => Some("<C-f>"),
                Action::PageUp => Some("<C-b>"),
                Action::NextCompletion => Some("<C-n>"),
                Action::PreviousCompletion => Some("<C-p>"),
                _ => None,
            };
            keys.splice(0..0, more.map(str::to_owned));
            keys.sort_by_key(|key| !matches!(key.as_str(), "h" | "j" | "k" | "l"));
        }
        keys
    }
}

/// One line of the table with its present keys.
#[derive(Clone, Debug, PartialEq)]
pub struct Bound {
    /// The line; its own keys are those of the default preset.
    pub line: &'static Binding,
    /// The keys; the first is the one shown.
    pub keys: Vec<String>,
}

/// One key with two actions in one context.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Clash {
    /// The key.
    pub key: String,
    /// The index of the first line.
    pub first: usize,
    /// The index of the second line.
    pub second: usize,
}

/// The table with its present keys.
#[derive(Clone, Debug, PartialEq)]
pub struct Keymap {
    /// The preset it started from.
    pub preset: Preset,
    lines: Vec<Bound>,
}

impl Default for Keymap {
    fn default() -> Self {
        Keymap::of(Preset::Default)
    }
}

impl Keymap {
    /// The keys of a preset, unchanged.
    pub fn of(preset: Preset) -> Self {
        Keymap { preset, lines: TABLE.iter().map(|line| Bound { line, keys: preset.keys(line) }).collect() }
    }

    /// All lines, in the table's order.
    pub fn lines(&self) -> &[Bound] {
        &self.lines
    }

    /// The lines of one context.
    pub fn of_context(&self, context: Context) -> impl Iterator<Item = &Bound> {
        self.lines.iter().filter(move |bound| bound.line.context == context)
    }

    /// The lines whose keys work in a context: its own and those that work everywhere.
    pub fn here(&self, context: Context) -> impl Iterator<Item = &Bound> {
        self.lines.iter().filter(move |bound| meet(bound.line.context, context))
    }

    /// The action of a key in a context.
    pub fn action(&self, context: Context, key: &KeyEvent) -> Option<Action> {
        let name = name(key)?;
        self.here(context).find_map(|bound| {
            let place = bound.keys.iter().position(|key| *key == name)?;
            Some(bound.line.action.at(place))
        })
    }

    /// The key of an action in a context, as shown to people.
    pub fn shown(&self, context: Context, action: Action, ascii: bool) -> String {
        let bound = self.here(context).find(|bound| bound.line.action == action);
        bound.and_then(|bound| bound.keys.first()).map(|key| shown(key, ascii)).unwrap_or_default()
    }

    /// Changes the keys of a line.
    pub fn give(&mut self, line: usize, keys: Vec<String>) {
        if let Some(bound) = self.lines.get_mut(line) {
            bound.keys = keys;
        }
    }

    /// Every key with two actions in one context.
    pub fn clashes(&self) -> Vec<Clash> {
        let mut found = Vec::new();
        for (second, bound) in self.lines.iter().enumerate() {
            for (first, other) in self.lines.iter().enumerate().take(second) {
                let apart = !meet(other.line.context, bound.line.context)
                    && !meet(bound.line.context, other.line.context);
                if apart || other.line.action == bound.line.action {
                    continue;
                }
                let both = bound.keys.iter().filter(|key| other.keys.contains(key));
                found.extend(both.map(|key| Clash { key: key.clone(), first, second }));
            }
        }
        found
    }
}

/// Whether the keys of context `of` work in `place`.
fn meet(of: Context, place: Context) -> bool {
    of == place || of == Context::Anywhere
}

/// The key that a text names, in the notation of [`name`]; `None` unless it names exactly one.
pub fn written(text: &str) -> Option<String> {
    let script = script::parse(text).ok()?;
    let [script::Step::Key(event)] = script.as_slice() else { return None };
    if matches!(event.code, KeyCode::Char(c) if c.is_control()) {
        return None;
    }
    let name = name(event)?;
    // Terminals send the same bytes for these pairs.
    Some(match name.as_str() {
        "<C-i>" => "<Tab>".into(),
        "<C-m>" => "<Enter>".into(),
        "<C-[>" => "<Esc>".into(),
        // A terminal sends nothing or another key for other combinations.
        _ => return arrives(event).then_some(name),
    })
}

/// Whether a terminal can send the key: with control, only letters and the space have a byte.
fn arrives(key: &KeyEvent) -> bool {
    let more = key.modifiers - KeyModifiers::CONTROL;
    if !more.is_empty() && key.code != KeyCode::BackTab {
        return false;
    }
    let control = key.modifiers.contains(KeyModifiers::CONTROL);
    !control || matches!(key.code, KeyCode::Char(c) if c.is_ascii_alphabetic() || c == ' ')
}

/// How a key is shown to people: `⏎` instead of `<Enter>`.
pub fn shown(key: &str, ascii: bool) -> String {
    let inner = key.strip_prefix('<').and_then(|rest| rest.strip_suffix('>')).unwrap_or(key);
    match (inner, ascii) {
        ("lt", _) => "<".into(),
        ("Enter", false) => "⏎".into(),
        ("Up", false) => "↑".into(),
        ("Down", false) => "↓".into(),
        ("Left", false) => "←".into(),
        ("Right", false) => "→".into(),
        _ => inner.strip_prefix("C-").map_or_else(|| inner.to_owned(), |letter| format!("^{letter}")),
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;

    #[test]
    fn no_preset_has_a_key_that_means_two_things_in_one_place() {
        for preset in Preset::ALL {
            assert_eq!(Keymap::of(preset).clashes(), [], "{}", preset.name());
        }
    }

    #[test]
    fn every_key_of_a_preset_can_be_typed_and_is_written_one_way() {
        for preset in Preset::ALL {
            for bound in Keymap::of(preset).lines() {
                for key in &bound.keys {
                    assert_eq!(written(key).as_ref(), Some(key));
                }
            }
        }
    }

    #[test]
    fn a_place_has_one_line_an_action_and_no_name_is_both_a_places_and_an_actions() {
        let mut lines = HashSet::new();
        let places: HashSet<String> = TABLE.iter().map(|line| line.context.key()).collect();
        for line in TABLE {
            assert!(lines.insert((line.context, line.action.name())), "{}", line.action.name());
            assert!(!places.contains(&line.action.name()), "{}", line.action.name());
            assert!(line.action.name() != "preset");
        }
        let actions: HashSet<Action> = TABLE.iter().map(|line| line.action).collect();
        let names: HashSet<String> = actions.iter().map(|action| action.name()).collect();
        assert_eq!(actions.len(), names.len());
    }

    #[test]
    fn no_character_is_an_order_where_text_is_typed() {
        for preset in Preset::ALL {
            for bound in Keymap::of(preset).lines().iter().filter(|bound| bound.line.context.takes_text()) {
                assert!(bound.keys.iter().all(|key| key.starts_with('<') && key != "<Space>"));
            }
        }
    }

    #[test]
    fn vim_shows_its_own_keys_first() {
        let keys = Keymap::of(Preset::Vim);
        assert_eq!(keys.shown(Context::Lanes, Action::NextLane, false), "l");
        assert_eq!(keys.shown(Context::Lanes, Action::PageDown, false), "^f");
        assert_eq!(keys.shown(Context::Question, Action::NextCompletion, false), "^n");
        assert_eq!(Keymap::default().shown(Context::Lanes, Action::NextLane, false), "Tab");
    }

    #[test]
    fn every_name_is_read_as_the_key_that_has_it() {
        let letters = ('\0'..'\u{3000}').chain(['動', '🦍', '\u{10ffff}']).map(KeyCode::Char);
        let functions = (0..=u8::MAX).map(KeyCode::F);
        let others = [
            KeyCode::Backspace,
            KeyCode::Enter,
            KeyCode::Left,
            KeyCode::Right,
            KeyCode::Up,
            KeyCode::Down,
            KeyCode::Home,
            KeyCode::End,
            KeyCode::PageUp,
            KeyCode::PageDown,
            KeyCode::Tab,
            KeyCode::BackTab,
            KeyCode::Delete,
            KeyCode::Insert,
            KeyCode::Null,
            KeyCode::Esc,
            KeyCode::CapsLock,
            KeyCode::Menu,
        ];
        let mut named = 0;
        for code in letters.chain(functions).chain(others) {
            for modifiers in KeyModifiers::all().iter().chain([KeyModifiers::NONE]) {
                let Some(text) = name(&KeyEvent::new(code, modifiers)) else { continue };
                let script = script::parse(&text).unwrap_or_else(|error| panic!("{code:?}: {error}"));
                let [script::Step::Key(read)] = script[..] else { panic!("{code:?}: {text}") };
                assert_eq!(name(&read), Some(text));
                named += 1;
            }
        }
        assert!(named > 10_000, "{named}");
    }

    #[test]
    fn a_key_is_read_in_one_notation_and_what_terminals_send_alike_is_one_key() {
        let read = |text: &str| written(text);
        assert_eq!(read("<C-X>").as_deref(), Some("<C-x>"));
        assert_eq!(read("<CR>").as_deref(), Some("<Enter>"));
        assert_eq!(read("<C-i>").as_deref(), Some("<Tab>"));
        assert_eq!(read("<F5>").as_deref(), Some("<F5>"));
        assert_eq!(read("<").as_deref(), None);
        assert_eq!(read(" ").as_deref(), Some("<Space>"));
        assert_eq!(read("<C- >").as_deref(), Some("<C- >"));
        assert_eq!(read("<C-[>").as_deref(), Some("<Esc>"));
        for text in [
            "",
            "gg",
            "\u{7f}",
            "ctrl-x",
            "<Wait>",
            "<Click:1,2>",
            "<F0>",
            "<C-1>",
            "<C-/>",
            "<C-ä>",
            "<C-Left>",
            "<A-x>",
            "<S-F5>",
        ] {
            assert_eq!(read(text), None, "{text}");
        }
    }
}
