//! Finds perspectives, or sentences copied from passages, in a reply, in whatever form the model wrote them.

use super::talk::{Json, is_json, key, plain, values};
use crate::question::Written;

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
/// Fields of an object with copied sentences that do not hold sentences.
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

/// The perspectives in a reply, in order; empty if there are none.
pub(super) fn perspectives(reply: &str) -> Vec<Written> {
    let mut found = Vec::new();
    for value in values(reply) {
        collect_perspectives(&value, &mut found);
    }
    if found.is_empty() && !is_json(reply) {
        found = from_lines(reply);
    }
    found.retain(|perspective| !is_empty_phrase(&perspective.text));
    found
}

fn collect_perspectives(value: &Json, found: &mut Vec<Written>) {
    match value {
        Json::Text(text) => found.push(split_name(text)),
        Json::List(items) => items.iter().for_each(|item| collect_perspectives(item, found)),
        Json::Map(fields) => collect_from_fields(fields, found),
        Json::Other => {}
    }
}

/// An object is a perspective, contains several, or has one per field with its name as the key.
fn collect_from_fields(fields: &[(String, Json)], found: &mut Vec<Written>) {
    let field = |wanted: &'static str| {
        let (_, value) = fields.iter().find(|(name, _)| name.eq_ignore_ascii_case(wanted))?;
        Some((wanted, join_text(value).filter(|text| !text.is_empty())?))
    };
    if fields.iter().any(|(name, _)| name.eq_ignore_ascii_case("error")) {
        return;
    }
    let body = TEXTS.into_iter().find_map(field);
    let taken = body.as_ref().map_or("", |(name, _)| *name);
    let name = NAMES.into_iter().filter(|name| *name != taken).find_map(field);
    let nested = fields.iter().any(|(_, value)| matches!(value, Json::List(_) | Json::Map(_)));
    match (name, body) {
        (Some((_, name)), Some((_, text))) => found.push(Written { name: meaningful_name(&name), text }),
        (None, Some((_, text))) if !nested => found.push(split_name(&text)),
        (Some((_, text)), None) if !nested => found.push(Written { name: None, text }),
        _ if nested => {
            let values = fields.iter().map(|(_, value)| value);
            values
                .filter(|value| !matches!(value, Json::Text(_)))
                .for_each(|value| collect_perspectives(value, found));
        }
        _ => found.extend(fields.iter().filter_map(|(name, value)| {
            Some(Written { name: meaningful_name(name), text: join_text(value)? })
        })),
    }
}

fn join_text(value: &Json) -> Option<String> {
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

/// The sentences that a reply copied, in order; empty if there are none.
pub(super) fn sentences(reply: &str) -> Vec<String> {
    let mut found = Vec::new();
    values(reply).iter().for_each(|value| collect_sentences(value, &mut found));
    if found.is_empty() && !is_json(reply) {
        found = quotations(reply);
        if found.is_empty() {
            found = reply
                .lines()
                .filter_map(|line| after_mark(line.trim()))
                .map(|line| remove_emphasis(&line))
                .collect();
        }
    }
    found.retain(|sentence| !is_empty_phrase(sentence));
    found
}

fn collect_sentences(value: &Json, found: &mut Vec<String>) {
    match value {
        Json::Text(text) => found.push(remove_quotes(text)),
        Json::List(items) => items.iter().for_each(|item| collect_sentences(item, found)),
        Json::Map(fields) => {
            let about = |name: &str| ABOUT.iter().any(|field| name.eq_ignore_ascii_case(field));
            for (name, value) in fields {
                if !(matches!(value, Json::Text(_)) && about(name)) {
                    collect_sentences(value, found);
                }
            }
        }
        Json::Other => {}
    }
}

/// Words that only introduce a number, or say that there is nothing.
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

/// Marked lines with the text that follows each; or, if no line is marked, two or more lines of `Name: text`.
pub(super) fn from_lines(reply: &str) -> Vec<Written> {
    let (mut items, mut open): (Vec<String>, bool) = (Vec::new(), false);
    for line in reply.lines().map(str::trim).filter(|line| !line.starts_with("```")) {
        if let Some(rest) = after_mark(line) {
            items.push(rest);
            open = true;
        } else if line.is_empty() {
            open = items.last().is_some_and(|item| split_name(item).text.is_empty());
        } else if let Some(item) = items.last_mut().filter(|_| open) {
            item.push(' ');
            item.push_str(line);
        }
    }
    if items.is_empty() {
        // Lines of JSON that could not be read look like names as well.
        let prose =
            reply.lines().map(str::trim).filter(|line| !line.starts_with(['{', '[', '}', ']', '\'', '"']));
        let lines = prose.map(split_name).filter(|line| line.name.is_some() && !line.text.is_empty());
        return Some(lines.collect()).filter(|lines: &Vec<_>| lines.len() > 1).unwrap_or_default();
    }
    items.iter().map(|item| split_name(item)).collect()
}

/// The text after a number, a bullet or the mark of a heading.
pub(super) fn after_mark(line: &str) -> Option<String> {
    if let Some(heading) = line.strip_prefix('#') {
        let heading = heading.trim_start_matches('#').replace("**", "");
        let heading = heading.trim();
        return Some(format!("**{}**", after_number(heading).as_deref().unwrap_or(heading)));
    }
    let rest = line.trim_start_matches(['-', '*', '•', '–', '—', '·', '+']);
    if rest.len() < line.len() && (rest.starts_with(char::is_whitespace) || line.starts_with('•')) {
        let rest = rest.trim_start();
        return Some(after_number(rest).unwrap_or_else(|| rest.to_owned()));
    }
    after_number(line)
}

/// The text after `1.`, `(1)`, `[1]`, `**1)` or `Passage 1:`.
fn after_number(line: &str) -> Option<String> {
    let (bold, rest) = line.strip_prefix("**").map_or(("", line), |rest| ("**", rest));
    let rest = rest.trim_start_matches(['(', '[']);
    let labelled = rest.split_once(' ').filter(|(word, _)| {
        !word.is_empty() && word.chars().all(char::is_alphabetic) && is_empty_phrase(word)
    });
    let rest = labelled.map_or(rest, |(_, rest)| rest);
    let digits = rest.len() - rest.trim_start_matches(|c: char| c.is_ascii_digit()).len();
    let behind = rest[digits..].trim_start_matches(['.', ')', ':', ']']);
    let parted =
        behind.len() < rest.len() - digits && (behind.is_empty() || behind.starts_with([' ', '*', '\t']));
    ((1..=3).contains(&digits) && parted).then(|| format!("{bold}{}", behind.trim_start()))
}

/// Splits `Name: text` and `**Name** text`; the text is empty if there is only a name.
pub(super) fn split_name(item: &str) -> Written {
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
            return Written { name: None, text: remove_emphasis(item) };
        };
        let text = text.trim_start_matches([':', '-', '–', '—', '.', ' ']);
        if let Some(name) = meaningful_name(name) {
            return Written { name: Some(name), text: remove_emphasis(text) };
        }
        item = text;
    }
}

/// The name, unless it is only a number or a word such as `perspective`.
pub(super) fn meaningful_name(name: &str) -> Option<String> {
    let name = plain(&name.replace("**", ""));
    let name = name.trim_matches(['"', '“', '”', ':', '#', '_', ' ']);
    (!is_empty_phrase(name)).then(|| name.to_owned())
}

/// The text without emphasis and without quotation marks around it.
pub(super) fn remove_emphasis(text: &str) -> String {
    remove_quotes(&text.replace("**", ""))
}

pub(super) fn remove_quotes(text: &str) -> String {
    let text = plain(text);
    let inner = text.strip_prefix(['"', '“']).and_then(|text| text.strip_suffix(['"', '”']));
    inner.filter(|inner| !inner.contains(['"', '“', '”'])).unwrap_or(&text).trim().to_owned()
}

pub(super) fn is_empty_phrase(text: &str) -> bool {
    let letters = key(text);
    EMPTY.contains(&letters.trim_matches(|c: char| c.is_ascii_digit()))
}

/// The texts between quotation marks, line by line.
pub(super) fn quotations(reply: &str) -> Vec<String> {
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

#[cfg(test)]
mod tests {
    use super::*;

    /// `name|text`, or the text alone.
    fn views(reply: &str) -> Vec<String> {
        let found = perspectives(reply).into_iter();
        found.map(|p| p.name.map_or(p.text.clone(), |name| format!("{name}|{}", p.text))).collect()
    }

    #[test]
    fn perspectives_are_found_however_they_were_written() {
        let two = ["Welfare|Animals suffer there.", "Science|Much is learnt: a lot."];
        for reply in [
            r#"[{"name":"Welfare","text":"Animals suffer there."},{"name":"Science","text":"Much is learnt: a lot."}]"#,
            r#"[{"text":"Animals suffer there.","name":"Welfare","id":1},{"Title":"Science","Description":"Much is learnt: a lot."}]"#,
            r#"{"perspectives":[{"perspective":"Welfare","text":"Animals suffer there."},{"name":"Science","perspective":"Much is learnt: a lot."}]}"#,
            r#"{"question":"Why?","result":{"views":[{"name":"Welfare","text":["Animals suffer","there."]},{"name":"Science","text":"Much is learnt: a lot."}]}}"#,
            r#"{"Welfare":"Animals suffer there.","Science":"Much is learnt: a lot."}"#,
            r#"["Welfare: Animals suffer there.", "**Science** – Much is learnt: a lot."]"#,
            "Sure, here they are:\n```json\n[{\"name\":\"Welfare\",\n  \"text\":\"Animals suffer\nthere.\"},\n {\"name\":\"Science\",\"text\":\"Much is learnt: a lot.\"},]\n```\nTell me [if] more {are} wanted.",
            r#"{"name":"Welfare","text":"Animals suffer there."}
           {"name":"Science","text":"Much is learnt: a lot."}"#,
            r#"[{"name":"Welfare","text":"Animals suffer there."},{"name":"Science","text":"Much is learnt: a lot."},{"name":"Cost","text":"It is"#,
            r#""[{\"name\":\"Welfare\",\"text\":\"Animals suffer there.\"},{\"name\":\"Science\",\"text\":\"Much is learnt: a lot.\"}]""#,
            "Here are two:\n\n1. **Welfare**: Animals suffer there.\n2. **Science:** Much is learnt:\n   a lot.\n\nI hope that this helps.",
            "1) Welfare: Animals suffer there.\n\n2) Science: Much is learnt: a lot.",
            "- Welfare: Animals suffer there.\n* **Science** Much is learnt: a lot.",
            "**1. Welfare**\nAnimals suffer there.\n\n**2. Science**\n\nMuch is learnt: a lot.",
            "# Views\n\n## Welfare\n\nAnimals suffer there.\n\n## 2. Science\nMuch is learnt: a lot.",
            "Perspective 1: Welfare: Animals suffer there.\nPerspective 2: Science: Much is learnt: a lot.",
            "Two perspectives:\nWelfare: Animals suffer there.\n\n**Science:** Much is learnt: a lot.",
            "1. Welfare:\nAnimals suffer there.\n2. Science:\n\nMuch is learnt: a lot.",
        ] {
            assert_eq!(views(reply), two, "{reply}");
        }
    }

    #[test]
    fn perspectives_need_no_names_and_numbers_are_none() {
        let two = ["Animals suffer.", "Much is learnt."];
        for reply in [
            r#"["Animals suffer.", "Much is learnt."]"#,
            r#"{"1":"Animals suffer.","2":"Much is learnt."}"#,
            r#"{"perspective_1":"Animals suffer.","perspective_2":"Much is learnt."}"#,
            r#"[{"text":"Animals suffer."},{"name":"Perspective 2","text":"Much is learnt."}]"#,
            r#"{"arguments":["Animals suffer.","Much is learnt."]}"#,
            r#"{"pro":["Animals suffer."],"con":["Much is learnt."]}"#,
            "1. \"Animals suffer.\"\n2. “Much is learnt.”",
            "• Animals suffer.\n• Much is learnt.",
            "(1) Animals suffer.\n(2) Much is learnt.",
        ] {
            assert_eq!(views(reply), two, "{reply}");
        }
    }

    #[test]
    fn what_is_no_list_of_perspectives_has_none() {
        for reply in [
            "",
            " \n ",
            "I'm sorry, but I cannot help with that.",
            "Note: I cannot help with that.",
            "[]",
            "```json\n[]\n```",
            "{}",
            "null",
            "\"no\"",
            "[1, 2, null]",
            r#"{"error": "overloaded"}"#,
            r#"{"error": {"message": "overloaded", "code": 5}}"#,
            r#"[{"name": "", "text": ""}, {"text": "…"}, "None"]"#,
            "[{'name': 'A', 'text': 'b'},\n {'name': 'C', 'text': 'd'}]",
            "1.\n2.\n3.",
            "\u{0}\u{1b}[31m\u{feff}🦁",
            "[[[[[[[[",
            "{\"a\":{\"a\":{\"a\":",
        ] {
            assert_eq!(views(reply), [""; 0], "{reply:?}");
        }
    }

    #[test]
    fn copied_sentences_are_found_however_they_were_written() {
        for reply in [
            r#"[{"passage":1,"sentences":["Zoos teach.","They breed."]},{"passage":3,"sentences":["Few are freed."]}]"#,
            r#"{"relevant":[{"passage":"1","title":"Zoo","sentences":["Zoos teach.","They breed."],"reason":"On it."},{"id":3,"sentence":"Few are freed."}]}"#,
            r#"{"relevant":["1","3"],"sentences":["Zoos teach.","They breed.","Few are freed."]}"#,
            r#"{"Passage 1":["Zoos teach.","They breed."],"Passage 3":"“Few are freed.”"}"#,
            r#"["Zoos teach.","They breed.","Few are freed.",]"#,
            r#"Here: {"passage": 1, "sentences": ["Zoos teach.", "They breed.", "Few are freed.", "And he"#,
            "Passage 1:\n\"Zoos teach.\"\n\"They breed.\"\n\nPassage 3: \"Few are freed.\"",
            "1. “Zoos teach.” “They breed.”\n3. “Few are freed.”",
            "- Zoos teach.\n- They breed.\n- [3] Few are freed.",
        ] {
            assert_eq!(sentences(reply), ["Zoos teach.", "They breed.", "Few are freed."], "{reply}");
        }
    }

    #[test]
    fn what_copies_nothing_has_no_sentences() {
        for reply in [
            "",
            "[]",
            "{\"relevant\": []}",
            "No passage helps.",
            "Zoos teach.",
            r#"[{"passage":1,"sentences":[]}]"#,
            r#"{"passage": 2, "sentences": ["cut of"#,
            "none",
            "[1, 3]",
            r#"["none"]"#,
        ] {
            assert_eq!(sentences(reply), [""; 0], "{reply:?}");
        }
    }

    #[test]
    fn of_a_reply_cut_off_anywhere_only_whole_texts_are_read() {
        let cuts = |reply: &'static str| reply.char_indices().map(|(i, _)| &reply[..i]);
        let reply = "```json\n[{\"name\":\"Wölfe\",\"text\":\"One – two [3].\"},{\"name\":\"B\",\"text\":\"Four.\"}]\n```";
        let whole = views(reply);
        assert_eq!(whole, ["Wölfe|One – two [3].", "B|Four."]);
        for cut in cuts(reply) {
            assert!(whole.starts_with(&views(cut)), "{cut}");
        }
        let reply = r#"{"found":[{"passage":1,"sentences":["Zöos “teach”.","They breed."]},{"passage":3,"sentences":["Few."]}]}"#;
        let whole = sentences(reply);
        assert_eq!(whole, ["Zöos “teach”.", "They breed.", "Few."]);
        for cut in cuts(reply) {
            assert!(whole.starts_with(&sentences(cut)), "{cut}");
        }
        for cut in cuts("# A\n**1. Wölfe**: x\n\n* **B** – “y”\n(2) Perspective 3: C: z\nName: text") {
            let _ = (views(cut), sentences(cut));
        }
    }

    #[test]
    fn a_model_that_repeats_itself_without_end_does_no_harm() {
        for unit in ["- ", "1: ", "# ", "**", "[1] ", "Perspective 1: ", "\"", "{\"a\":", "<think>"] {
            let reply = unit.repeat(5000);
            assert!(views(&reply).is_empty(), "{unit}");
            assert!(sentences(&reply).len() < 2, "{unit}");
        }
    }

    #[test]
    fn a_copied_sentence_keeps_the_passages_own_marks() {
        assert_eq!(
            sentences(r#"["It is **not** so, he \"said\".", "“It is.”"]"#),
            ["It is **not** so, he \"said\".", "It is."]
        );
    }
}
