//! Replies without JSON: numbered lines, bullets, headings, `Name: text`, quotations.

use crate::expand::text::{key, plain};
use crate::question::Written;

/// Words that number things, or say that there are none.
const EMPTY: [&str; 15] = [
    "",
    "perspective",
    "viewpoint",
    "view",
    "argument",
    "side",
    "option",
    "passage",
    "document",
    "doc",
    "sentence",
    "sentences",
    "none",
    "null",
    "na",
];

/// Marked lines with what follows each; or, where no line is marked, two or more lines of `Name: text`.
pub(super) fn in_lines(reply: &str) -> Vec<Written> {
    let (mut items, mut open): (Vec<String>, bool) = (Vec::new(), false);
    for line in reply.lines().map(str::trim).filter(|line| !line.starts_with("```")) {
        if let Some(rest) = marked(line) {
            items.push(rest);
            open = true;
        } else if line.is_empty() {
            open = items.last().is_some_and(|item| named(item).text.is_empty());
        } else if let Some(item) = items.last_mut().filter(|_| open) {
            item.push(' ');
            item.push_str(line);
        }
    }
    if items.is_empty() {
        // Lines of JSON that could not be read look like names as well.
        let prose =
            reply.lines().map(str::trim).filter(|line| !line.starts_with(['{', '[', '}', ']', '\'', '"']));
        let lines = prose.map(named).filter(|line| line.name.is_some() && !line.text.is_empty());
        return Some(lines.collect()).filter(|lines: &Vec<_>| lines.len() > 1).unwrap_or_default();
    }
    items.iter().map(|item| named(item)).collect()
}

/// What stands behind a number, a bullet or a heading's sign.
pub(super) fn marked(line: &str) -> Option<String> {
    if let Some(heading) = line.strip_prefix('#') {
        let heading = heading.trim_start_matches('#').replace("**", "");
        let heading = heading.trim();
        return Some(format!("**{}**", numbered(heading).as_deref().unwrap_or(heading)));
    }
    let rest = line.trim_start_matches(['-', '*', '•', '–', '—', '·', '+']);
    if rest.len() < line.len() && (rest.starts_with(char::is_whitespace) || line.starts_with('•')) {
        let rest = rest.trim_start();
        return Some(numbered(rest).unwrap_or_else(|| rest.to_owned()));
    }
    numbered(line)
}

/// What stands behind `1.`, `(1)`, `[1]`, `**1)` or `Passage 1:`.
fn numbered(line: &str) -> Option<String> {
    let (bold, rest) = line.strip_prefix("**").map_or(("", line), |rest| ("**", rest));
    let rest = rest.trim_start_matches(['(', '[']);
    let labelled = rest
        .split_once(' ')
        .filter(|(word, _)| !word.is_empty() && word.chars().all(char::is_alphabetic) && says_nothing(word));
    let rest = labelled.map_or(rest, |(_, rest)| rest);
    let digits = rest.len() - rest.trim_start_matches(|c: char| c.is_ascii_digit()).len();
    let behind = rest[digits..].trim_start_matches(['.', ')', ':', ']']);
    let parted =
        behind.len() < rest.len() - digits && (behind.is_empty() || behind.starts_with([' ', '*', '\t']));
    ((1..=3).contains(&digits) && parted).then(|| format!("{bold}{}", behind.trim_start()))
}

/// Parts `Name: text` and `**Name** text`; a name without a text has an empty one.
pub(super) fn named(item: &str) -> Written {
    let mut item = item.trim();
    loop {
        let parted = match item.strip_prefix("**").and_then(|rest| rest.split_once("**")) {
            Some(parts) => Some(parts),
            None => {
                let parts = item.split_once(": ").or_else(|| Some((item.strip_suffix(':')?, "")));
                parts.filter(|(name, _)| {
                    name.split_whitespace().count() <= 6 && !name.contains(['.', '?', '!', '"'])
                })
            }
        };
        let Some((name, text)) = parted else {
            return Written { name: None, text: bare(item) };
        };
        let text = text.trim_start_matches([':', '-', '–', '—', '.', ' ']);
        if let Some(name) = telling(name) {
            return Written { name: Some(name), text: bare(text) };
        }
        item = text;
    }
}

/// A name that says more than a number.
pub(super) fn telling(name: &str) -> Option<String> {
    let name = plain(&name.replace("**", ""));
    let name = name.trim_matches(['"', '“', '”', ':', '#', '_', ' ']);
    (!says_nothing(name)).then(|| name.to_owned())
}

/// Without emphasis and the marks around a quotation.
pub(super) fn bare(text: &str) -> String {
    unquoted(&text.replace("**", ""))
}

pub(super) fn unquoted(text: &str) -> String {
    let text = plain(text);
    let inner = text.strip_prefix(['"', '“']).and_then(|text| text.strip_suffix(['"', '”']));
    inner.filter(|inner| !inner.contains(['"', '“', '”'])).unwrap_or(&text).trim().to_owned()
}

pub(super) fn says_nothing(text: &str) -> bool {
    let letters = key(text);
    EMPTY.contains(&letters.trim_matches(|c: char| c.is_ascii_digit()))
}

/// What stands between quotation marks, line by line.
pub(super) fn quoted(reply: &str) -> Vec<String> {
    let mut found = Vec::new();
    // JSON that could not be read quotes its keys.
    for mut rest in reply.lines().filter(|line| !line.trim_start().starts_with('{')) {
        while let Some((_, inner)) = rest.split_once(['"', '“']) {
            let Some((sentence, behind)) = inner.split_once(['"', '”']) else { break };
            if !behind.trim_start().starts_with(':') {
                found.push(plain(sentence));
            }
            rest = behind;
        }
    }
    found
}
