//! Text from outside, made safe for a terminal before it is measured.
//!
//! Control characters and escape sequences become visible marks, bidirectional controls are dropped, white space becomes one
//! space.

/// The text as one line that cannot move a cursor, change a colour or turn the reading direction.
pub fn line(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '\n' | '\r' | '\t' | '\u{a0}' | '\u{2028}' | '\u{2029}' => {
                if !out.ends_with(' ') {
                    out.push(' ');
                }
            }
            '\u{1b}' => out.push('␛'),
            '\0'..='\u{1f}' => out.push(char::from_u32(0x2400 + c as u32).unwrap_or('␀')),
            '\u{7f}' => out.push('␡'),
            '\u{80}'..='\u{9f}' => out.push('\u{fffd}'),
            // Zero-width and direction marks: they hide text or turn it round. The joiner stays, emoji need it.
            '\u{200b}'
            | '\u{200e}'
            | '\u{200f}'
            | '\u{61c}'
            | '\u{202a}'..='\u{202e}'
            | '\u{2060}'..='\u{2069}'
            | '\u{feff}' => {}
            c => out.push(c),
        }
    }
    out
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
}
