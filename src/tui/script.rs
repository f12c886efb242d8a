//! Reads and writes key scripts in Vim's notation: `zoos<Enter>j<C-Left><Resize:80x24><Click:3,7><Wait>`. The mouse also has `<Drag:3,7>`,
//! `<Release:3,7>`, `<WheelUp:3,7>` and `<WheelDown:3,7>`. Sessions and configurations use the same notation.

use std::str::FromStr;

use crossterm::event::{KeyCode, KeyEvent, KeyModifiers, MouseButton, MouseEvent, MouseEventKind};

/// Columns and rows of a terminal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Size {
    /// Columns.
    pub width: u16,
    /// Rows.
    pub height: u16,
}

/// The text is not a [`Size`].
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("expected columns and rows such as 140x40, found `{0}`")]
pub struct SizeError(String);

impl FromStr for Size {
    type Err = SizeError;

    fn from_str(text: &str) -> Result<Self, SizeError> {
        let number = |side: &str| side.trim().parse::<u16>().ok().filter(|n| (1..=1000).contains(n));
        let (width, height) = text.split_once(['x', 'X']).unwrap_or((text, ""));
        match (number(width), number(height)) {
            (Some(width), Some(height)) => Ok(Size { width, height }),
            _ => Err(SizeError(text.into())),
        }
    }
}

/// One step of a key script.
#[derive(Clone, Debug, PartialEq)]
pub enum Step {
    /// A key.
    Key(KeyEvent),
    /// The terminal changes its size.
    Resize(Size),
    /// A mouse event, with column and row from 0.
    Mouse(MouseEvent),
    /// Wait until all lanes and verdicts have arrived.
    Wait,
}

/// The script cannot be read.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "the keys, at `{at}`: expected a key such as <Enter>, <C-c>, <lt>, <Resize:80x24>, <Click:x,y> or <Wait>"
)]
pub struct ScriptError {
    at: String,
}

/// The names of mouse events in a script.
const MOUSE: [(&str, MouseEventKind); 5] = [
    ("Click", MouseEventKind::Down(MouseButton::Left)),
    ("Drag", MouseEventKind::Drag(MouseButton::Left)),
    ("Release", MouseEventKind::Up(MouseButton::Left)),
    ("WheelUp", MouseEventKind::ScrollUp),
    ("WheelDown", MouseEventKind::ScrollDown),
];

/// Writes a mouse event as a script; `None` for events that a script cannot hold.
pub fn mouse(mouse: &MouseEvent) -> Option<String> {
    let (name, _) = MOUSE.iter().find(|(_, kind)| *kind == mouse.kind)?;
    Some(format!("<{name}:{},{}>", mouse.column, mouse.row))
}

/// Reads a script.
///
/// # Errors
/// A `<…>` is not closed or is not a key.
pub fn parse(script: &str) -> Result<Vec<Step>, ScriptError> {
    let mut steps = Vec::new();
    let mut rest = script;
    while let Some(first) = rest.chars().next() {
        if first == '<' {
            let wrong = || ScriptError { at: rest.chars().take(20).collect() };
            let (name, after) = bracketed(&rest[1..]).ok_or_else(wrong)?;
            steps.push(step_of(name).ok_or_else(wrong)?);
            rest = after;
        } else {
            steps.push(Step::Key(KeyEvent::new(KeyCode::Char(first), KeyModifiers::NONE)));
            rest = &rest[first.len_utf8()..];
        }
    }
    Ok(steps)
}

/// The prefixes of modifiers, in the order in which they are written.
const HELD: [(&str, KeyModifiers); 3] =
    [("A-", KeyModifiers::ALT), ("C-", KeyModifiers::CONTROL), ("S-", KeyModifiers::SHIFT)];

/// Writes a key with its modifiers as a script; `None` for keys that a script cannot hold.
pub fn key(key: &KeyEvent) -> Option<String> {
    let plain = name(&KeyEvent::new(key.code, KeyModifiers::NONE))?;
    let held = match key.code {
        KeyCode::Tab | KeyCode::BackTab => key.modifiers - KeyModifiers::SHIFT,
        // Shift is part of the letter.
        KeyCode::Char(_) if (key.modifiers - KeyModifiers::SHIFT).is_empty() => KeyModifiers::NONE,
        _ => key.modifiers,
    };
    let names: String = HELD.iter().filter(|(_, one)| held.contains(*one)).map(|(name, _)| *name).collect();
    if names.is_empty() {
        return Some(plain);
    }
    let inner = plain.strip_prefix('<').and_then(|rest| rest.strip_suffix('>')).unwrap_or(&plain);
    Some(format!("<{names}{inner}>"))
}

/// Splits a text at the closing `>`. `C->>` closes at the second one.
fn bracketed(text: &str) -> Option<(&str, &str)> {
    let first = text.find('>')?;
    let closes = if modifiers_of(&text[..=first]).1 == ">" && text[first + 1..].starts_with('>') {
        first + 1
    } else {
        first
    };
    Some((&text[..closes], &text[closes + 1..]))
}

/// Returns the modifiers of a name, and the rest of it.
fn modifiers_of(mut name: &str) -> (KeyModifiers, &str) {
    let mut held = KeyModifiers::NONE;
    for (prefix, one) in HELD {
        if let Some(rest) = name.strip_prefix(prefix).filter(|rest| !rest.is_empty()) {
            (held, name) = (held | one, rest);
        }
    }
    (held, name)
}

/// Returns the step that a name between brackets stands for.
fn step_of(name: &str) -> Option<Step> {
    let (held, rest) = modifiers_of(name);
    let mut letters = rest.chars();
    if let (false, Some(letter), None) = (held.is_empty(), letters.next(), letters.next()) {
        return Some(Step::Key(KeyEvent::new(KeyCode::Char(letter), held)));
    }
    if let Some(size) = name.strip_prefix("Resize:") {
        return size.parse().ok().map(Step::Resize);
    }
    if let Some((did, place)) = name.split_once(':') {
        let (_, kind) = MOUSE.iter().find(|(name, _)| *name == did)?;
        let (x, y) = place.split_once(',')?;
        let (column, row) = (x.trim().parse().ok()?, y.trim().parse().ok()?);
        return Some(Step::Mouse(MouseEvent { kind: *kind, column, row, modifiers: KeyModifiers::NONE }));
    }
    if let Some(number) = rest.strip_prefix('F').and_then(|number| number.parse().ok()) {
        let key = KeyEvent::new(KeyCode::F(number), held);
        return (1..=12).contains(&number).then_some(Step::Key(key));
    }
    let code = match rest {
        "Wait" if held.is_empty() => return Some(Step::Wait),
        "Space" => KeyCode::Char(' '),
        "lt" => KeyCode::Char('<'),
        "Enter" | "CR" => KeyCode::Enter,
        "Esc" => KeyCode::Esc,
        "Tab" if held.contains(KeyModifiers::SHIFT) => KeyCode::BackTab,
        "Tab" => KeyCode::Tab,
        "BS" => KeyCode::Backspace,
        "Del" => KeyCode::Delete,
        "Up" => KeyCode::Up,
        "Down" => KeyCode::Down,
        "Left" => KeyCode::Left,
        "Right" => KeyCode::Right,
        "Home" => KeyCode::Home,
        "End" => KeyCode::End,
        "PageUp" => KeyCode::PageUp,
        "PageDown" => KeyCode::PageDown,
        _ => return None,
    };
    Some(Step::Key(KeyEvent::new(code, held)))
}

/// A key in Vim's notation; `None` for keys without a name in it.
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
        // Scripts have no other function keys.
        KeyCode::F(n @ 1..=12) => return Some(format!("<F{n}>")),
        _ => return None,
    };
    Some(format!("<{special}>"))
}

#[cfg(test)]
mod tests {
    use crossterm::event::Event;
    use tui_input::backend::crossterm::to_input_request;

    use super::*;

    #[test]
    fn characters_outside_brackets_are_keys() {
        let steps = parse("a <lt><Enter><C-c><Resize:80x24><Click:3,7><Wait>").unwrap();
        assert_eq!(steps.len(), 8);
        assert_eq!(steps[1], steps_of(' '));
        assert_eq!(steps[2], steps_of('<'));
        assert_eq!(steps[5], Step::Resize(Size { width: 80, height: 24 }));
        assert!(matches!(steps[6], Step::Mouse(MouseEvent { column: 3, row: 7, .. })));
    }

    #[test]
    fn a_mouse_event_is_the_same_after_it_is_written_and_read() {
        for name in ["<Click:1,2>", "<Drag:0,39>", "<Release:3,4>", "<WheelUp:5,6>", "<WheelDown:7,8>"] {
            let steps = parse(name).unwrap();
            let [Step::Mouse(event)] = steps.as_slice() else { panic!("{name}") };
            assert_eq!(mouse(event).as_deref(), Some(name));
        }
    }

    fn steps_of(c: char) -> Step {
        Step::Key(KeyEvent::new(KeyCode::Char(c), KeyModifiers::NONE))
    }

    /// Compares what a key does in the key table and in a text field.
    #[test]
    fn a_key_with_any_modifiers_does_the_same_after_it_is_written_and_read() {
        use KeyCode::*;
        let letters = ('\0'..'\u{180}').chain(['動', '🦍']).map(Char);
        let others =
            [Backspace, Enter, Left, Right, Home, End, Tab, BackTab, Delete, Insert, Esc, F(5), F(13)];
        for code in letters.chain(others) {
            for held in (0..8).map(|bits| HELD.iter().enumerate().filter(move |(n, _)| bits >> n & 1 == 1)) {
                let pressed = KeyEvent::new(code, held.map(|(_, (_, one))| *one).collect());
                let Some(text) = key(&pressed) else { continue };
                let script =
                    parse(&format!("{text}>")).unwrap_or_else(|error| panic!("{pressed:?}: {error}"));
                let [Step::Key(read), Step::Key(_)] = script[..] else { panic!("{pressed:?}: {text}") };
                let edits = |key| to_input_request(&Event::Key(key));
                assert_eq!(name(&read), name(&pressed), "{text}");
                assert_eq!(edits(read), edits(pressed), "{text}");
            }
        }
        assert_eq!(key(&KeyEvent::new(Left, KeyModifiers::CONTROL)).as_deref(), Some("<C-Left>"));
        assert_eq!(key(&KeyEvent::new(Char('>'), KeyModifiers::ALT)).as_deref(), Some("<A->>"));
    }

    #[test]
    fn an_unknown_key_is_an_error() {
        for script in [
            "<Entr>",
            "ab<",
            "<C-ab>",
            "<C-Wait>",
            "<C->",
            "<x>",
            "<Resize:0x0>",
            "<Click:1>",
            "<Stroke:1,2>",
            "<F13>",
        ] {
            assert!(parse(script).is_err(), "{script}");
        }
    }
}
