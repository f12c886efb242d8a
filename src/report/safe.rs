//! Makes text from outside safe for a terminal, before its width is measured, and for SVG and HTML.
//!
//! Control characters and escape sequences become visible marks, bidirectional controls are dropped, white space becomes one space.

use super::safe;

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
            '\u{1b}' => out.push('␛'),
            '\0'..='\u{1f}' => out.push(char::from_u32(0x2400 + c as u32).unwrap_or('␀')),
            '\u{7f}' => out.push('␡'),
            '\u{80}'..='\u{9f}' => out.push('\u{fffd}'),
            // Zero-width and direction marks hide or reverse text. The joiner stays: emoji need it.
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
