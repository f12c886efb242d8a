//! Makes text from outside safe for a terminal, before its width is measured, and for spreadsheets, JSON, SVG and HTML.
//!
//! Control characters and escape sequences become visible marks, bidirectional controls are dropped, white space becomes one space. The
//! commands print through [`stdout`] and [`stderr`], which do this to whatever was not made safe before, so nothing printed can move a
//! cursor.

use std::borrow::Cow;
use std::io::{self, Stderr, Stdout, Write};

use serde::Serialize;

use super::safe;
use crate::input::is_harmful;

/// What a control character, a zero-width character or a direction mark becomes; `None` for other characters. The joiner stays: emoji
/// need it.
fn harmless(c: char) -> Option<&'static str> {
    const CONTROLS: [&str; 32] = [
        "␀", "␁", "␂", "␃", "␄", "␅", "␆", "␇", "␈", "␉", "␊", "␋", "␌", "␍", "␎", "␏", "␐", "␑", "␒", "␓",
        "␔", "␕", "␖", "␗", "␘", "␙", "␚", "␛", "␜", "␝", "␞", "␟",
    ];
    Some(match c {
        '\0'..='\u{1f}' => CONTROLS[c as usize],
        '\u{7f}' => "␡",
        '\u{80}'..='\u{9f}' => "\u{fffd}",
        c if is_harmful(c) => "",
        _ => return None,
    })
}

/// Returns lines of text that cannot move a cursor, change a colour or turn the reading direction. Line feeds and tabs stay.
pub fn text(text: &str) -> Cow<'_, str> {
    let stays = |c: char| matches!(c, '\n' | '\t') || harmless(c).is_none();
    if text.chars().all(stays) {
        return text.into();
    }
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        match harmless(c).filter(|_| !stays(c)) {
            Some(mark) => out.push_str(mark),
            None => out.push(c),
        }
    }
    out.into()
}

/// Returns the text as one line, for a field of a table that a spreadsheet may open: one that would be a formula begins with `'`.
pub fn field(text: &str) -> String {
    let line = safe::line(text);
    let formula = line.starts_with(['=', '+', '-', '@']) && line.parse::<f64>().is_err();
    if formula { format!("'{line}") } else { line }
}

/// Writes a value as indented JSON with a line end. Characters that a terminal would obey are escaped.
pub fn json(value: &impl Serialize) -> serde_json::Result<String> {
    serde_json::to_string_pretty(value).map(|text| escaped(&text) + "\n")
}

/// Writes a value as JSON on one line, with a line end. Characters that a terminal would obey are escaped.
pub fn json_line(value: &impl Serialize) -> serde_json::Result<String> {
    serde_json::to_string(value).map(|text| escaped(&text) + "\n")
}

/// Escapes what serde_json leaves: the control characters above ASCII and the direction marks, which occur in strings alone.
fn escaped(json: &str) -> String {
    let mut out = String::with_capacity(json.len());
    for c in json.chars() {
        match c {
            '\n' => out.push(c),
            c if harmless(c).is_some() => out.push_str(&format!("\\u{:04x}", c as u32)),
            c => out.push(c),
        }
    }
    out
}

/// Standard output, for text that may come from outside.
pub fn stdout() -> Safe<Stdout> {
    Safe { to: io::stdout(), begun: Vec::new() }
}

/// Standard error, for text that may come from outside.
pub fn stderr() -> Safe<Stderr> {
    Safe { to: io::stderr(), begun: Vec::new() }
}

/// Makes everything written to it safe, as [`text`] does.
pub struct Safe<W: Write> {
    to: W,
    /// The bytes of an incomplete character.
    begun: Vec<u8>,
}

impl<W: Write> Write for Safe<W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.begun.extend_from_slice(bytes);
        let whole = match std::str::from_utf8(&self.begun) {
            Err(error) if error.error_len().is_none() => error.valid_up_to(),
            _ => self.begun.len(),
        };
        let whole: Vec<u8> = self.begun.drain(..whole).collect();
        self.to.write_all(text(&String::from_utf8_lossy(&whole)).as_bytes())?;
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        self.to.flush()
    }
}

/// Returns the text as one line that cannot move a cursor, change a colour or turn the reading direction.
pub fn line(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '\n' | '\r' | '\t' | '\u{a0}' | '\u{2028}' | '\u{2029}' => {
                if !out.ends_with(' ') {
                    out.push(' ');
                }
            }
            c => match harmless(c) {
                Some(mark) => out.push_str(mark),
                None => out.push(c),
            },
        }
    }
    out
}

/// Returns the text as one line, escaped for markup.
pub fn escape(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in safe::line(text).chars() {
        match c {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '"' => out.push_str("&quot;"),
            '\'' => out.push_str("&#39;"),
            // XML forbids these: one of them would make the whole picture invalid.
            '\u{fffe}' | '\u{ffff}' => out.push('\u{fffd}'),
            c => out.push(c),
        }
    }
    out
}

/// Asserts that every element is closed in order and every special character is escaped.
#[cfg(test)]
pub fn assert_balanced(markup: &str) {
    const VOID: [&str; 4] = ["!DOCTYPE", "meta", "br", "hr"];
    let mut open: Vec<&str> = Vec::new();
    let mut rest = markup;
    while let Some(start) = rest.find('<') {
        let text = &rest[..start];
        let raw = matches!(open.last(), Some(&("style" | "script")));
        assert!(raw || !text.contains('>'), "a bare > in {text:?}");
        let entities = ["&amp;", "&lt;", "&gt;", "&quot;", "&#39;", "&#160;"];
        let known: usize = entities.iter().map(|entity| text.matches(entity).count()).sum();
        assert!(raw || text.matches('&').count() == known, "a bare & in {text:?}");
        let end = rest[start..].find('>').map(|end| start + end).expect("a tag ends");
        let tag = &rest[start + 1..end];
        assert_eq!(tag.matches('"').count() % 2, 0, "quotes in <{tag}>");
        assert!(!tag.contains('<'), "a tag in <{tag}>");
        if let Some(name) = tag.strip_prefix('/') {
            assert_eq!(open.pop(), Some(name), "</{name}> closes another");
        } else if !tag.ends_with('/') {
            let name = tag.split_whitespace().next().expect("a tag has a name");
            if !VOID.contains(&name) {
                open.push(name);
            }
        }
        rest = &rest[end + 1..];
    }
    assert!(open.is_empty(), "left open: {open:?}");
    assert!(!rest.contains('>'), "a bare > in {rest:?}");
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn escape_sequences_become_visible_and_direction_marks_are_dropped() {
        assert_eq!(line("a\u{1b}[31mred\u{7}\n\tb\u{202e}c\u{9b}"), "a␛[31mred␇ bc\u{fffd}");
    }

    #[test]
    fn wide_right_to_left_and_joined_characters_stay() {
        let text = "動物園 حديقة 👩‍🚀 é";
        assert_eq!(line(text), text);
    }

    #[test]
    fn whatever_is_written_to_the_outputs_is_safe_and_lines_and_tabs_stay() {
        let mut out = Safe { to: Vec::new(), begun: Vec::new() };
        for byte in "a\u{1b}]0;b\u{7}\tc\u{9b}31m\r\nd\u{202e}é".as_bytes() {
            assert_eq!(out.write(&[*byte]).unwrap(), 1);
        }
        assert_eq!(String::from_utf8(out.to).unwrap(), "a␛]0;b␇\tc\u{fffd}31m␍\ndé");
        assert!(matches!(text("plain\n\ttext"), Cow::Borrowed(_)));
    }

    #[test]
    fn a_field_is_no_formula_and_a_number_stays_one() {
        for formula in ["=1+1", "+cmd", "-x", "@SUM(A1)", "\u{202e}=1"] {
            assert!(field(formula).starts_with('\''), "{formula}");
        }
        for plain in ["-0.5", "+1e9", "a=b", "", "zoo\u{2013}", "3-1"] {
            assert_eq!(field(plain), plain);
        }
        assert_eq!(field("a\tb\nc"), "a b c");
    }

    #[test]
    fn json_escapes_what_a_terminal_obeys_and_reads_back_the_same() {
        let value = serde_json::json!({"a\u{9b}": ["\u{1b}[31m", "\u{202e}\u{2028}x", "é動👩\u{200d}🚀", "\u{7f}\n"]});
        for json in [json(&value).unwrap(), json_line(&value).unwrap()] {
            assert!(json.chars().all(|c| c == '\n' || harmless(c).is_none()), "{json:?}");
            assert_eq!(serde_json::from_str::<serde_json::Value>(&json).unwrap(), value);
        }
    }

    #[test]
    fn markup_and_control_characters_lose_their_power() {
        assert_eq!(
            escape("<b a='1' c=\"2\">&\u{1b}\n\u{ffff}"),
            "&lt;b a=&#39;1&#39; c=&quot;2&quot;&gt;&amp;␛ \u{fffd}"
        );
    }

    #[test]
    #[should_panic(expected = "closes another")]
    fn the_check_itself_sees_crossed_tags() {
        assert_balanced("<a><b></a></b>");
    }
}
