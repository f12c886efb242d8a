//! One table of context, keys, action and help. Dispatch, the footer, the help screen and the README come from it.

mod action;
mod table;

use crossterm::event::{KeyCode, KeyEvent, KeyModifiers};

pub use action::{Action, Context};
pub use table::TABLE;

/// One line of the table.
#[derive(Clone, Copy)]
pub struct Binding {
    /// Where.
    pub context: Context,
    /// Keys in Vim's notation, the first one being the one that is shown.
    pub keys: &'static [&'static str],
    /// What.
    pub action: Action,
    /// A word or two for the footer; empty where it has no room.
    pub short: &'static str,
    /// A sentence for the help screen.
    pub help: &'static str,
}

/// The action of a key in a context.
pub fn action(context: Context, key: &KeyEvent) -> Option<Action> {
    let name = name(key)?;
    let here = |binding: &&Binding| binding.context == context || binding.context == Context::Anywhere;
    TABLE.iter().filter(here).find_map(|binding| {
        let place = binding.keys.iter().position(|key| *key == name)?;
        // The actions that say which of their keys it was.
        Some(match binding.action {
            Action::ToggleLabel(_) => Action::ToggleLabel(place),
            Action::Probe(_) => Action::Probe(place),
            action => action,
        })
    })
}

/// A key in Vim's notation; none for keys that have no name there.
pub fn name(key: &KeyEvent) -> Option<String> {
    let control = key.modifiers.contains(KeyModifiers::CONTROL);
    let special = match key.code {
        KeyCode::Char(' ') if !control => "Space",
        KeyCode::Char('<') if !control => "lt",
        KeyCode::Char(c) if control => return Some(format!("<C-{}>", c.to_ascii_lowercase())),
        KeyCode::Char(c) => return Some(c.to_string()),
        KeyCode::Enter => "Enter",
        KeyCode::Esc => "Esc",
        KeyCode::Tab => "Tab",
        KeyCode::BackTab => "S-Tab",
        KeyCode::Backspace => "BS",
        KeyCode::Delete => "Del",
        KeyCode::Up => "Up",
        KeyCode::Down => "Down",
        KeyCode::Left => "Left",
        KeyCode::Right => "Right",
        KeyCode::Home => "Home",
        KeyCode::End => "End",
        KeyCode::PageUp => "PageUp",
        KeyCode::PageDown => "PageDown",
        _ => return None,
    };
    Some(format!("<{special}>"))
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
    use super::*;
    use std::collections::HashSet;

    #[test]
    fn no_key_means_two_things_in_one_place() {
        let mut seen = HashSet::new();
        for binding in TABLE {
            for key in binding.keys {
                assert!(seen.insert((binding.context, key)), "{key} in {:?}", binding.context);
            }
        }
    }

    #[test]
    fn every_key_of_the_table_can_be_typed() {
        for binding in TABLE {
            for key in binding.keys {
                let script = crate::tui::script::parse(key).unwrap();
                let [crate::tui::script::Step::Key(event)] = script.as_slice() else { panic!("{key}") };
                assert_eq!(name(event).as_deref(), Some(*key));
            }
        }
    }
}
