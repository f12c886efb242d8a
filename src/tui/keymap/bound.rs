//! The key table with the keys that hold: those of a preset, and those that a configuration gives instead.

use crossterm::event::KeyEvent;

use super::{Action, Binding, Context, TABLE, name, shown};

/// Which keys there are before any is given.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Preset {
    /// Those of the table.
    #[default]
    Default,
    /// The same with `hjkl` first, and Vim's keys for pages and completions.
    Vim,
}

impl Preset {
    /// All.
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

/// One line of the table, with the keys that hold.
#[derive(Clone, Debug, PartialEq)]
pub struct Bound {
    /// The line; its own keys are those of the default preset.
    pub line: &'static Binding,
    /// The keys, the first one being the one that is shown.
    pub keys: Vec<String>,
}

/// One key that would order two things in one place: the two lines, from 0.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Clash {
    /// The key.
    pub key: String,
    /// The line that comes first.
    pub first: usize,
    /// The other.
    pub second: usize,
}

/// The table with the keys that hold.
#[derive(Clone, Debug, PartialEq)]
pub struct Keymap {
    /// What it began with.
    pub preset: Preset,
    lines: Vec<Bound>,
}

impl Default for Keymap {
    fn default() -> Self {
        Keymap::of(Preset::Default)
    }
}

impl Keymap {
    /// A preset as it is.
    pub fn of(preset: Preset) -> Self {
        Keymap { preset, lines: TABLE.iter().map(|line| Bound { line, keys: preset.keys(line) }).collect() }
    }

    /// All lines, in the table's order.
    pub fn lines(&self) -> &[Bound] {
        &self.lines
    }

    /// The lines of one place alone.
    pub fn of_place(&self, context: Context) -> impl Iterator<Item = &Bound> {
        self.lines.iter().filter(move |bound| bound.line.context == context)
    }

    /// What can be ordered in a place.
    pub fn here(&self, context: Context) -> impl Iterator<Item = &Bound> {
        self.lines.iter().filter(move |bound| meet(bound.line.context, context))
    }

    /// The action of a key in a place.
    pub fn action(&self, context: Context, key: &KeyEvent) -> Option<Action> {
        let name = name(key)?;
        self.here(context).find_map(|bound| {
            let place = bound.keys.iter().position(|key| *key == name)?;
            Some(bound.line.action.at(place))
        })
    }

    /// The key of an action in a place, as it is shown to people.
    pub fn shown(&self, context: Context, action: Action, ascii: bool) -> String {
        let bound = self.here(context).find(|bound| bound.line.action == action);
        bound.and_then(|bound| bound.keys.first()).map(|key| shown(key, ascii)).unwrap_or_default()
    }

    /// Gives a line other keys.
    pub fn give(&mut self, line: usize, keys: Vec<String>) {
        if let Some(bound) = self.lines.get_mut(line) {
            bound.keys = keys;
        }
    }

    /// Every key that would order two things in one place.
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

/// Whether keys of `of` are heard in `place`.
fn meet(of: Context, place: Context) -> bool {
    of == place || of == Context::Anywhere
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tui::keymap::written;
    use std::collections::HashSet;

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
}
