//! Text from outside, made safe for SVG and HTML, in elements and in quoted attributes.

use super::safe;

/// The text as one line that no markup can get out of.
pub fn escape(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in safe::line(text).chars() {
        match c {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '"' => out.push_str("&quot;"),
            '\'' => out.push_str("&#39;"),
            // XML forbids them, and one would make the whole picture unreadable.
            '\u{fffe}' | '\u{ffff}' => out.push('\u{fffd}'),
            c => out.push(c),
        }
    }
    out
}

/// Whether every element is closed in order, and no character that must be escaped stands bare.
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
