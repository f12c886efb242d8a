//! What is in a reply: perspectives, or sentences copied from passages, however the model wrote them down.

mod lines;

use super::json::{Json, is_all, values};
use super::text::plain;
use crate::question::Written;
use lines::{bare, in_lines, marked, named, quoted, says_nothing, telling, unquoted};

const TEXTS: [&str; 17] = [
    "text",
    "description",
    "explanation",
    "argument",
    "arguments",
    "statement",
    "answer",
    "summary",
    "content",
    "details",
    "reason",
    "perspective",
    "viewpoint",
    "view",
    "opinion",
    "position",
    "stance",
];
const NAMES: [&str; 10] =
    ["name", "title", "label", "heading", "perspective", "viewpoint", "view", "position", "stance", "side"];
/// Fields beside copied sentences that hold none.
const ABOUT: [&str; 17] = [
    "id",
    "title",
    "passage",
    "document",
    "doc",
    "number",
    "index",
    "rank",
    "reason",
    "why",
    "explanation",
    "relevance",
    "relevant",
    "name",
    "question",
    "query",
    "error",
];

/// The perspectives in a reply, in its order; none in one that has none.
pub(super) fn perspectives(reply: &str) -> Vec<Written> {
    let mut found = Vec::new();
    for value in values(reply) {
        in_value(&value, &mut found);
    }
    if found.is_empty() && !is_all(reply) {
        found = in_lines(reply);
    }
    found.retain(|perspective| !says_nothing(&perspective.text));
    found
}

fn in_value(value: &Json, found: &mut Vec<Written>) {
    match value {
        Json::Text(text) => found.push(named(text)),
        Json::List(items) => items.iter().for_each(|item| in_value(item, found)),
        Json::Map(fields) => in_fields(fields, found),
        Json::Other => {}
    }
}

/// An object is a perspective, or a wrapper around some, or has one in each field with the name for a key.
fn in_fields(fields: &[(String, Json)], found: &mut Vec<Written>) {
    let field = |wanted: &'static str| {
        let (_, value) = fields.iter().find(|(name, _)| name.eq_ignore_ascii_case(wanted))?;
        Some((wanted, joined(value).filter(|text| !text.is_empty())?))
    };
    if fields.iter().any(|(name, _)| name.eq_ignore_ascii_case("error")) {
        return;
    }
    let body = TEXTS.into_iter().find_map(field);
    let taken = body.as_ref().map_or("", |(name, _)| *name);
    let name = NAMES.into_iter().filter(|name| *name != taken).find_map(field);
    let nested = fields.iter().any(|(_, value)| matches!(value, Json::List(_) | Json::Map(_)));
    match (name, body) {
        (Some((_, name)), Some((_, text))) => found.push(Written { name: telling(&name), text }),
        (None, Some((_, text))) if !nested => found.push(named(&text)),
        (Some((_, text)), None) if !nested => found.push(Written { name: None, text }),
        _ if nested => {
            let values = fields.iter().map(|(_, value)| value);
            values.filter(|value| !matches!(value, Json::Text(_))).for_each(|value| in_value(value, found));
        }
        _ => found.extend(
            fields
                .iter()
                .filter_map(|(name, value)| Some(Written { name: telling(name), text: joined(value)? })),
        ),
    }
}

fn joined(value: &Json) -> Option<String> {
    match value {
        Json::Text(text) => Some(plain(text)),
        Json::List(items) => {
            let texts = items.iter().map(|item| match item {
                Json::Text(text) => Some(plain(text)),
                _ => None,
            });
            Some(texts.collect::<Option<Vec<_>>>()?.join(" "))
        }
        _ => None,
    }
}

/// The sentences that a reply copied, in its order; none in one that has none.
pub(super) fn sentences(reply: &str) -> Vec<String> {
    let mut found = Vec::new();
    values(reply).iter().for_each(|value| copied(value, &mut found));
    if found.is_empty() && !is_all(reply) {
        found = quoted(reply);
        if found.is_empty() {
            found = reply.lines().filter_map(|line| marked(line.trim())).map(|line| bare(&line)).collect();
        }
    }
    found.retain(|sentence| !says_nothing(sentence));
    found
}

fn copied(value: &Json, found: &mut Vec<String>) {
    match value {
        Json::Text(text) => found.push(unquoted(text)),
        Json::List(items) => items.iter().for_each(|item| copied(item, found)),
        Json::Map(fields) => {
            let about = |name: &str| ABOUT.iter().any(|known| name.eq_ignore_ascii_case(known));
            for (name, value) in fields {
                if !(matches!(value, Json::Text(_)) && about(name)) {
                    copied(value, found);
                }
            }
        }
        Json::Other => {}
    }
}

#[cfg(test)]
mod tests;
