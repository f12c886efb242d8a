//! One table of context, keys, action and help. Dispatch, the footer, the help screen and the README come from it; a
//! [`Keymap`] is the table with the keys that a configuration gives.

mod action;
mod bound;
mod table;

use crossterm::event::{KeyCode, KeyEvent, KeyModifiers};

pub use action::{Action, Context};
pub use bound::{Bound, Clash, Keymap, Preset};
pub use table::TABLE;

/// One line of the table.
#[derive(Clone, Copy, Debug, PartialEq)]
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
        // Scripts know no others.
        KeyCode::F(n @ 1..=12) => return Some(format!("<F{n}>")),
        _ => return None,
    };
    Some(format!("<{special}>"))
}

/// The key that a text names, in the one form that [`name`] gives it; none if it names no key or several.
pub fn written(text: &str) -> Option<String> {
    let script = super::script::parse(text).ok()?;
    let [super::script::Step::Key(event)] = script.as_slice() else { return None };
    if matches!(event.code, KeyCode::Char(c) if c.is_control()) {
        return None;
    }
    let name = name(event)?;
    // Terminals send the same for these.
    Some(match name.as_str() {
        "<C-i>" => "<Tab>".into(),
        "<C-m>" => "<Enter>".into(),
        "<C-[>" => "<Esc>".into(),
        // Of others no byte is sent, or that of another key.
        _ => return arrives(event).then_some(name),
    })
}

/// Whether a terminal can send the key as one of its own: with control, letters and the space alone have a byte.
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
    use super::*;

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
                let script =
                    crate::tui::script::parse(&text).unwrap_or_else(|error| panic!("{code:?}: {error}"));
                let [crate::tui::script::Step::Key(read)] = script[..] else { panic!("{code:?}: {text}") };
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
