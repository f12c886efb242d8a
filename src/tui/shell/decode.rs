//! Turns the bytes of a terminal into keys, mouse events and pastes.
//!
//! crossterm waits for the end of a sequence however long that takes, and meanwhile swallows every key, Ctrl-C too. Here an incomplete
//! sequence is given up after [`PATIENCE`], and Ctrl-C always counts.

use std::mem;
use std::time::Duration;

use crossterm::event::{
    Event, KeyCode, KeyEvent, KeyEventKind, KeyModifiers, MouseButton, MouseEvent, MouseEventKind,
};

/// An incomplete sequence is given up when nothing follows for this long.
const PATIENCE: Duration = Duration::from_millis(100);
/// An escape alone counts as the key when nothing follows for this long.
const ALONE: Duration = Duration::from_millis(25);
/// The longest sequence in bytes; a longer one is noise.
const LONGEST: usize = 64;
/// The longest paste in bytes; the rest is dropped.
const LONGEST_PASTE: usize = 1 << 20;

const ESCAPE: u8 = 0x1b;
const CTRL_C: u8 = 3;
const PASTE_ENDS: &[u8] = b"\x1b[201~";

/// The bytes of a sequence that has begun.
#[derive(Default)]
pub struct Decoder {
    /// An incomplete sequence or character.
    begun: Vec<u8>,
    /// The text of a paste that has not ended.
    paste: Option<Vec<u8>>,
}

/// What a sequence of bytes is.
enum Read {
    /// The beginning of something longer.
    More,
    /// A whole event, or a sequence without a meaning here.
    Whole(Option<Event>),
    /// The bytes before the last one give this event; the last one begins something else.
    Before(Option<Event>),
    /// The beginning of a paste.
    Paste,
}

impl Decoder {
    /// How long to wait for more bytes; `None` if nothing has begun.
    pub fn patience(&self) -> Option<Duration> {
        match (&self.paste, self.begun.as_slice()) {
            (None, []) => None,
            (None, [ESCAPE]) => Some(ALONE),
            _ => Some(PATIENCE),
        }
    }

    /// Takes bytes and passes on the events that they complete.
    pub fn feed(&mut self, bytes: &[u8], each: &mut dyn FnMut(Event)) {
        for byte in bytes {
            self.take(*byte, each);
        }
    }

    /// Gives up what has begun, because nothing followed. An escape alone is a key, and the text of a paste is passed on.
    pub fn expire(&mut self, each: &mut dyn FnMut(Event)) {
        self.end_paste(each);
        match mem::take(&mut self.begun).as_slice() {
            [ESCAPE] => each(key(KeyCode::Esc, KeyModifiers::NONE)),
            [ESCAPE, byte @ (b'[' | b'O')] => each(key(KeyCode::Char(char::from(*byte)), KeyModifiers::ALT)),
            _ => {}
        }
    }

    fn end_paste(&mut self, each: &mut dyn FnMut(Event)) {
        if let Some(text) = self.paste.take() {
            each(Event::Paste(String::from_utf8_lossy(&text).into_owned()));
        }
    }

    fn take(&mut self, byte: u8, each: &mut dyn FnMut(Event)) {
        if byte == CTRL_C {
            self.end_paste(each);
            self.begun.clear();
            each(key(KeyCode::Char('c'), KeyModifiers::CONTROL));
            return;
        }
        if let Some(paste) = &mut self.paste {
            paste.push(byte);
            if paste.ends_with(PASTE_ENDS) {
                paste.truncate(paste.len() - PASTE_ENDS.len());
                self.end_paste(each);
            } else if paste.len() >= LONGEST_PASTE + PASTE_ENDS.len() {
                paste.remove(LONGEST_PASTE);
            }
            return;
        }
        self.begun.push(byte);
        match read(&self.begun) {
            Read::More => {}
            Read::Whole(event) => {
                self.begun.clear();
                event.into_iter().for_each(each);
            }
            Read::Before(event) => {
                self.begun.clear();
                event.into_iter().for_each(&mut *each);
                self.take(byte, each);
            }
            Read::Paste => {
                self.begun.clear();
                self.paste = Some(Vec::new());
            }
        }
    }
}

fn key(code: KeyCode, modifiers: KeyModifiers) -> Event {
    Event::Key(KeyEvent::new(code, modifiers))
}

fn read(bytes: &[u8]) -> Read {
    match bytes {
        [ESCAPE] => Read::More,
        [ESCAPE, ESCAPE] => Read::Before(Some(key(KeyCode::Esc, KeyModifiers::NONE))),
        [ESCAPE, b'[', sequence @ ..] => csi(sequence),
        [ESCAPE, b'O'] => Read::More,
        [ESCAPE, b'O', 0..=0x1f] => Read::Before(Some(key(KeyCode::Char('O'), KeyModifiers::ALT))),
        [ESCAPE, b'O', last] => Read::Whole(letter(*last).map(|code| key(code, KeyModifiers::NONE))),
        [ESCAPE, rest @ ..] => match plain(rest) {
            Read::Whole(Some(Event::Key(event))) => {
                Read::Whole(Some(key(event.code, event.modifiers | KeyModifiers::ALT)))
            }
            other => other,
        },
        _ => plain(bytes),
    }
}

/// A key without an escape sequence: a control character, or a character in UTF-8.
fn plain(bytes: &[u8]) -> Read {
    let control = |letter: u8| key(KeyCode::Char(char::from(letter)), KeyModifiers::CONTROL);
    let bare = |code| key(code, KeyModifiers::NONE);
    Read::Whole(Some(match bytes {
        b"\r" => bare(KeyCode::Enter),
        b"\t" => bare(KeyCode::Tab),
        b"\x7f" => bare(KeyCode::Backspace),
        b"\0" => control(b' '),
        [byte @ 1..=0x1a] => control(byte - 1 + b'a'),
        [byte @ 0x1c..=0x1f] => control(byte - 0x1c + b'4'),
        _ => match std::str::from_utf8(bytes) {
            Ok(text) => match text.chars().next() {
                Some(c) => character(c),
                None => return Read::More,
            },
            // `None` says that the character is incomplete.
            Err(error) if error.error_len().is_none() => return Read::More,
            Err(_) if bytes.len() > 1 => return Read::Before(None),
            Err(_) => return Read::Whole(None),
        },
    }))
}

fn character(c: char) -> Event {
    key(KeyCode::Char(c), if c.is_uppercase() { KeyModifiers::SHIFT } else { KeyModifiers::NONE })
}

/// The bytes after `ESC [`.
fn csi(bytes: &[u8]) -> Read {
    let Some((last, before)) = bytes.split_last() else { return Read::More };
    match before {
        // The console of Linux: `ESC [ [ A` is F1.
        [] if *last == b'[' => return Read::More,
        [b'['] if *last >= b' ' => {
            return Read::Whole(matches!(last, b'A'..=b'E').then(|| function(last - b'A' + 1)));
        }
        // The oldest mouse report has three bytes of any value, none below a space.
        [] if *last == b'M' => return Read::More,
        [b'M', numbers @ ..] if *last >= b' ' => {
            return match numbers {
                [button, column] => Read::Whole(old_mouse(*button, *column, *last)),
                _ => Read::More,
            };
        }
        _ => {}
    }
    match last {
        0x20..=0x3f if bytes.len() < LONGEST => Read::More,
        0x20..=0x3f => Read::Whole(None),
        b'~' if before == b"200" => Read::Paste,
        0x40..=0x7e => {
            Read::Whole(std::str::from_utf8(before).ok().and_then(|before| finished(before, *last)))
        }
        // A control character or one beyond ASCII is no part of a sequence.
        _ => Read::Before(None),
    }
}

fn function(number: u8) -> Event {
    key(KeyCode::F(number), KeyModifiers::NONE)
}

/// The key that a letter at the end of a sequence stands for.
fn letter(last: u8) -> Option<KeyCode> {
    Some(match last {
        b'A' => KeyCode::Up,
        b'B' => KeyCode::Down,
        b'C' => KeyCode::Right,
        b'D' => KeyCode::Left,
        b'F' => KeyCode::End,
        b'H' => KeyCode::Home,
        b'P'..=b'S' => KeyCode::F(last - b'P' + 1),
        _ => return None,
    })
}

/// The event of a whole sequence: its parameters and its last byte.
fn finished(parameters: &str, last: u8) -> Option<Event> {
    if let Some(report) = parameters.strip_prefix('<') {
        return matches!(last, b'M' | b'm').then(|| mouse(report, 0, last == b'm')).flatten();
    }
    match last {
        // A terminal's report of its cursor, which looks like F3 with modifiers.
        b'R' => None,
        b'Z' => Some(key(KeyCode::BackTab, KeyModifiers::SHIFT)),
        b'M' => mouse(parameters, 32, false),
        b'~' => numbered(parameters),
        b'u' => by_code_point(parameters),
        _ => {
            let code = letter(last)?;
            let (modifiers, kind) = match parameters.split_once(';') {
                Some((_, held)) => held_keys(held)?,
                // `ESC [ 5 A` holds the modifiers alone.
                None if parameters.is_empty() => (KeyModifiers::NONE, KeyEventKind::Press),
                None => held_keys(parameters)?,
            };
            Some(Event::Key(KeyEvent::new_with_kind(code, modifiers, kind)))
        }
    }
}

/// The modifiers and the kind of a key event, such as `5` or `5:3`.
fn held_keys(text: &str) -> Option<(KeyModifiers, KeyEventKind)> {
    let (mask, kind) = text.split_once(':').unwrap_or((text, "1"));
    let mask = mask.parse::<u8>().ok()?.saturating_sub(1);
    let all = [
        KeyModifiers::SHIFT,
        KeyModifiers::ALT,
        KeyModifiers::CONTROL,
        KeyModifiers::SUPER,
        KeyModifiers::HYPER,
        KeyModifiers::META,
    ];
    let held = (0..).zip(all).filter(|(bit, _)| mask >> bit & 1 == 1);
    let kind = match kind {
        "2" => KeyEventKind::Repeat,
        "3" => KeyEventKind::Release,
        _ => KeyEventKind::Press,
    };
    Some((held.fold(KeyModifiers::NONE, |all, (_, one)| all | one), kind))
}

/// The key of `ESC [ NUMBER ; MODIFIERS ~`.
fn numbered(parameters: &str) -> Option<Event> {
    let (number, held) = parameters.split_once(';').unwrap_or((parameters, "1"));
    let code = match number.parse::<u8>().ok()? {
        1 | 7 => KeyCode::Home,
        2 => KeyCode::Insert,
        3 => KeyCode::Delete,
        4 | 8 => KeyCode::End,
        5 => KeyCode::PageUp,
        6 => KeyCode::PageDown,
        f @ 11..=15 => KeyCode::F(f - 10),
        f @ 17..=21 => KeyCode::F(f - 11),
        f @ 23..=26 => KeyCode::F(f - 12),
        f @ 28..=29 => KeyCode::F(f - 15),
        f @ 31..=34 => KeyCode::F(f - 17),
        _ => return None,
    };
    let (modifiers, kind) = held_keys(held)?;
    Some(Event::Key(KeyEvent::new_with_kind(code, modifiers, kind)))
}

/// The key of `ESC [ CODE POINT ; MODIFIERS u`, which some terminals send for keys such as Ctrl-Enter.
fn by_code_point(parameters: &str) -> Option<Event> {
    let (code, held) = parameters.split_once(';').unwrap_or((parameters, "1"));
    let code = code.split(':').next()?.parse().ok().and_then(char::from_u32)?;
    let (modifiers, kind) = held_keys(held.split(';').next()?)?;
    let code = match code {
        '\u{1b}' => KeyCode::Esc,
        '\r' => KeyCode::Enter,
        '\t' if modifiers.contains(KeyModifiers::SHIFT) => KeyCode::BackTab,
        '\t' => KeyCode::Tab,
        '\u{7f}' => KeyCode::Backspace,
        c if c.is_control() => return None,
        c => KeyCode::Char(c),
    };
    Some(Event::Key(KeyEvent::new_with_kind(code, modifiers, kind)))
}

/// A mouse report of three numbers: the button and its bits, plus `offset`, and column and row from 1.
fn mouse(report: &str, offset: u8, released: bool) -> Option<Event> {
    let mut numbers = report.split(';');
    let button = numbers.next()?.parse::<u8>().ok()?.checked_sub(offset)?;
    let mut place = || numbers.next()?.parse::<u16>().ok()?.checked_sub(1);
    mouse_event(button, place()?, place()?, released)
}

fn old_mouse(button: u8, column: u8, row: u8) -> Option<Event> {
    let place = |byte: u8| u16::from(byte).checked_sub(33);
    mouse_event(button.checked_sub(32)?, place(column)?, place(row)?, false)
}

/// Bits of `button`: 0, 1, 6 and 7 name it; 2, 3 and 4 are Shift, Alt and Ctrl; 5 is set while the mouse moves.
fn mouse_event(button: u8, column: u16, row: u16, released: bool) -> Option<Event> {
    let kind = match (button & 3 | (button & 0xc0) >> 4, button & 0x20 != 0) {
        (3, false) => MouseEventKind::Up(MouseButton::Left),
        (3..=5, true) => MouseEventKind::Moved,
        (4, false) => MouseEventKind::ScrollUp,
        (5, false) => MouseEventKind::ScrollDown,
        (6, false) => MouseEventKind::ScrollLeft,
        (7, false) => MouseEventKind::ScrollRight,
        (number @ 0..=2, moves) => {
            let button = [MouseButton::Left, MouseButton::Middle, MouseButton::Right][usize::from(number)];
            match (moves, released) {
                (true, _) => MouseEventKind::Drag(button),
                (false, true) => MouseEventKind::Up(button),
                (false, false) => MouseEventKind::Down(button),
            }
        }
        _ => return None,
    };
    let all = [KeyModifiers::SHIFT, KeyModifiers::ALT, KeyModifiers::CONTROL];
    let held = (2..).zip(all).filter(|(bit, _)| button >> bit & 1 == 1);
    let modifiers = held.fold(KeyModifiers::NONE, |all, (_, one)| all | one);
    Some(Event::Mouse(MouseEvent { kind, column, row, modifiers }))
}

#[cfg(test)]
mod tests {
    use super::*;

    const NONE: KeyModifiers = KeyModifiers::NONE;
    fn fed(decoder: &mut Decoder, bytes: &[u8]) -> Vec<Event> {
        let mut events = Vec::new();
        decoder.feed(bytes, &mut |event| events.push(event));
        events
    }

    fn read_all(bytes: &[u8]) -> Vec<Event> {
        let mut decoder = Decoder::default();
        let mut events = fed(&mut decoder, bytes);
        decoder.expire(&mut |event| events.push(event));
        events
    }

    fn keys(text: &str) -> Vec<Event> {
        text.chars().map(character).collect()
    }

    fn ctrl(c: char) -> Event {
        key(KeyCode::Char(c), KeyModifiers::CONTROL)
    }

    #[test]
    fn keys_of_usual_terminals_are_read() {
        let shift = KeyModifiers::SHIFT;
        for (bytes, expected) in [
            ("\u{1b}[A", key(KeyCode::Up, NONE)),
            ("\u{1b}OB", key(KeyCode::Down, NONE)),
            ("\u{1b}[1;5C", key(KeyCode::Right, KeyModifiers::CONTROL)),
            ("\u{1b}[5D", key(KeyCode::Left, KeyModifiers::CONTROL)),
            ("\u{1b}[H", key(KeyCode::Home, NONE)),
            ("\u{1b}[4~", key(KeyCode::End, NONE)),
            ("\u{1b}[6;2~", key(KeyCode::PageDown, shift)),
            ("\u{1b}[Z", key(KeyCode::BackTab, shift)),
            ("\u{1b}OP", function(1)),
            ("\u{1b}[[B", function(2)),
            ("\u{1b}[15~", function(5)),
            ("\u{1b}[24~", function(12)),
            ("\u{1b}[99;5u", ctrl('c')),
            ("\u{1b}[13;2u", key(KeyCode::Enter, shift)),
            ("\u{1b}x", key(KeyCode::Char('x'), KeyModifiers::ALT)),
            ("\u{1b}é", key(KeyCode::Char('é'), KeyModifiers::ALT)),
            ("動", key(KeyCode::Char('動'), NONE)),
            ("E", key(KeyCode::Char('E'), shift)),
            ("\r", key(KeyCode::Enter, NONE)),
            ("\n", ctrl('j')),
            ("\u{1a}", ctrl('z')),
            ("\u{1c}", ctrl('4')),
            ("\0", ctrl(' ')),
            ("\u{7f}", key(KeyCode::Backspace, NONE)),
        ] {
            assert_eq!(read_all(bytes.as_bytes()), [expected], "{bytes:?}");
        }
    }

    #[test]
    fn mouse_reports_of_all_three_forms_are_read_and_column_0_is_ignored() {
        let mouse = |kind, modifiers| Event::Mouse(MouseEvent { kind, column: 4, row: 2, modifiers });
        let left = MouseButton::Left;
        for (bytes, expected) in [
            (&b"\x1b[<0;5;3M"[..], mouse(MouseEventKind::Down(left), NONE)),
            (b"\x1b[<0;5;3m", mouse(MouseEventKind::Up(left), NONE)),
            (b"\x1b[<32;5;3M", mouse(MouseEventKind::Drag(left), NONE)),
            (b"\x1b[<65;5;3M", mouse(MouseEventKind::ScrollDown, NONE)),
            (b"\x1b[<35;5;3M", mouse(MouseEventKind::Moved, NONE)),
            (
                b"\x1b[<20;5;3M",
                mouse(MouseEventKind::Down(left), KeyModifiers::SHIFT | KeyModifiers::CONTROL),
            ),
            (b"\x1b[32;5;3M", mouse(MouseEventKind::Down(left), NONE)),
            (b"\x1b[M %#", mouse(MouseEventKind::Down(left), NONE)),
        ] {
            assert_eq!(read_all(bytes), [expected], "{}", bytes.escape_ascii());
        }
        assert_eq!(read_all(b"\x1b[M   \x1b[<0;0;0M\x1b[<0;0M\x1b[0;0;0M\x1b[<999;1;1Ma"), keys("a"));
    }

    #[test]
    fn an_escape_alone_is_a_key_once_nothing_follows() {
        let mut decoder = Decoder::default();
        assert_eq!(fed(&mut decoder, b"\x1b"), []);
        assert_eq!(decoder.patience(), Some(ALONE));
        let mut events = Vec::new();
        decoder.expire(&mut |event| events.push(event));
        assert_eq!((events, decoder.patience()), (vec![key(KeyCode::Esc, NONE)], None));
        let twice = read_all(b"\x1b\x1b[A");
        assert_eq!(twice, [key(KeyCode::Esc, NONE), key(KeyCode::Up, NONE)]);
    }

    #[test]
    fn whatever_is_cut_off_is_given_up_and_later_keys_count() {
        let cut = "[<0;1 [< [M [M1 [1; [? [?1;2 [[ [200 [200~ [200~text\u{1b}[201 [> O";
        let cut = cut.split(' ').map(|sequence| [b"\x1b", sequence.as_bytes()].concat());
        for bytes in cut.chain([b"\xf0\x9f".to_vec(), b"\x1b\xc3".to_vec()]) {
            let bytes = bytes.as_slice();
            let mut decoder = Decoder::default();
            fed(&mut decoder, bytes);
            assert_eq!(decoder.patience(), Some(PATIENCE), "{}", bytes.escape_ascii());
            decoder.expire(&mut |_| {});
            assert_eq!(decoder.patience(), None);
            assert_eq!(fed(&mut decoder, b"abc"), keys("abc"), "{}", bytes.escape_ascii());
            // Ctrl-C counts without any wait.
            let mut decoder = Decoder::default();
            fed(&mut decoder, bytes);
            assert_eq!(fed(&mut decoder, b"\x03").last(), Some(&ctrl('c')), "{}", bytes.escape_ascii());
            assert_eq!(decoder.patience(), None);
        }
    }

    #[test]
    fn a_control_character_ends_a_sequence_and_counts() {
        assert_eq!(read_all(b"\x1b[<0;1\r"), [key(KeyCode::Enter, NONE)]);
        assert_eq!(read_all(b"\x1b[M \x1b[A"), [key(KeyCode::Up, NONE)]);
        assert_eq!(read_all(b"\xf0\x9fa"), keys("a"));
        assert_eq!(read_all(b"\xffa"), keys("a"));
        let endless = [b"\x1b[".as_slice(), &b"1".repeat(500), b"a"].concat();
        assert!(read_all(&endless).ends_with(&keys("a")));
    }

    #[test]
    fn a_paste_is_one_event_however_it_is_divided_and_its_length_is_bounded() {
        let text = "Should zoos\r\nbe banned? \u{1b}[A 動";
        let whole = format!("\u{1b}[200~{text}\u{1b}[201~x");
        for at in 0..whole.len() {
            let mut decoder = Decoder::default();
            let mut events = fed(&mut decoder, &whole.as_bytes()[..at]);
            events.extend(fed(&mut decoder, &whole.as_bytes()[at..]));
            assert_eq!(events, [vec![Event::Paste(text.into())], keys("x")].concat(), "{at}");
        }
        let long = format!("\u{1b}[200~{}\u{1b}[201~x", "y".repeat(LONGEST_PASTE + 5_000));
        let events = read_all(long.as_bytes());
        assert_eq!(events.len(), 2);
        assert!(matches!(&events[0], Event::Paste(text) if text.len() <= LONGEST_PASTE));
        let mut decoder = Decoder::default();
        fed(&mut decoder, b"\x1b[200~half");
        assert_eq!(fed(&mut decoder, b"\x03"), [Event::Paste("half".into()), ctrl('c')]);
    }

    #[test]
    fn random_bytes_never_leave_the_decoder_deaf() {
        let mut random = crate::measure::seeded::SplitMix64::new(7);
        for _ in 0..20_000 {
            let mut decoder = Decoder::default();
            let alphabet = b"\x1b\x1b\x1b[[[O<M?;0123456789~abmuRZ\xf0\x9f\xc3\x7f\r";
            let bytes: Vec<u8> =
                (0..1 + random.below(24)).map(|_| alphabet[random.below(alphabet.len())]).collect();
            fed(&mut decoder, &bytes);
            assert_eq!(fed(&mut decoder, b"\x03").last(), Some(&ctrl('c')), "{}", bytes.escape_ascii());
            fed(&mut decoder, &bytes);
            decoder.expire(&mut |_| {});
            assert_eq!(fed(&mut decoder, b"q"), keys("q"), "{}", bytes.escape_ascii());
        }
    }
}
