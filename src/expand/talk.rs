//! Sends several prompts to a model, counts tokens and collects failures; and reads JSON as models write it (somewhere in the text, cut
//! off, with keys whose order matters).

use std::collections::HashSet;
use std::fmt;

use serde::de::{DeserializeOwned, IgnoredAny, MapAccess, SeqAccess, Visitor};
use serde::{Deserialize, Deserializer};

use crate::llm::{Chat, ChatError, Reply, Request, Tokens};
use crate::work::{Stop, Stopped};

/// A conversation of independent prompts.
pub struct Talk<'a> {
    chat: &'a dyn Chat,
    stop: &'a Stop,
    unreachable: bool,
    troubles: Vec<String>,
    /// The cost so far.
    pub cost: Cost,
}

/// What an expansion cost.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Cost {
    /// The number of replies.
    pub replies: usize,
    /// The number of them that were recorded, so that no model was asked.
    pub recorded: usize,
    /// The tokens of all replies; `None` if no reply has a count.
    pub tokens: Option<Tokens>,
}

impl Cost {
    /// Both costs together.
    pub fn plus(self, other: Self) -> Self {
        let tokens = match (self.tokens, other.tokens) {
            (Some(a), Some(b)) => Some(Tokens { prompt: a.prompt + b.prompt, reply: a.reply + b.reply }),
            (a, b) => a.or(b),
        };
        Cost { replies: self.replies + other.replies, recorded: self.recorded + other.recorded, tokens }
    }
}

impl<'a> Talk<'a> {
    /// A conversation with a model.
    pub fn new(chat: &'a dyn Chat, stop: &'a Stop) -> Self {
        Talk { chat, stop, unreachable: false, troubles: Vec::new(), cost: Cost::default() }
    }

    /// The reply, or `None` if it is empty or the model failed.
    ///
    /// # Errors
    /// The conversation was stopped.
    pub fn ask(&mut self, request: &Request) -> Result<Option<Reply>, Stopped> {
        if self.stop.is_set() {
            return Err(Stopped);
        }
        // Every further prompt to an unreachable server would wait until its timeout.
        if self.unreachable {
            return Ok(None);
        }
        match self.chat.reply(request, self.stop) {
            Ok(mut reply) => {
                let recorded = usize::from(reply.recorded);
                self.cost = self.cost.plus(Cost { replies: 1, recorded, tokens: reply.tokens });
                reply.text = reply.answer().to_owned();
                if reply.text.is_empty() {
                    self.trouble("an empty reply".into());
                    return Ok(None);
                }
                Ok(Some(reply))
            }
            Err(ChatError::Stopped(stopped)) => Err(stopped),
            Err(error) => {
                self.unreachable = matches!(error, ChatError::Unreachable(_));
                self.trouble(error.to_string());
                Ok(None)
            }
        }
    }

    /// Records a failure for the note.
    pub fn trouble(&mut self, what: String) {
        if !self.troubles.contains(&what) {
            self.troubles.push(what);
        }
    }

    /// The failures followed by `outcome`; `None` if there were no failures.
    pub fn note(&self, outcome: &str) -> Option<String> {
        let troubles = self.troubles.join("; ");
        (!troubles.is_empty()).then(|| format!("{}: {troubles}; {outcome}", self.chat.model()))
    }
}

/// A value whose fields keep their order, which serde_json's own does not.
#[derive(Debug, PartialEq)]
pub(super) enum Json {
    Text(String),
    List(Vec<Json>),
    Map(Vec<(String, Json)>),
    /// A number, a truth value or null.
    Other,
}

impl<'de> Deserialize<'de> for Json {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct AnyValue;

        impl<'de> Visitor<'de> for AnyValue {
            type Value = Json;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("any JSON")
            }

            fn visit_bool<E>(self, _: bool) -> Result<Json, E> {
                Ok(Json::Other)
            }

            fn visit_i64<E>(self, _: i64) -> Result<Json, E> {
                Ok(Json::Other)
            }

            fn visit_u64<E>(self, _: u64) -> Result<Json, E> {
                Ok(Json::Other)
            }

            fn visit_f64<E>(self, _: f64) -> Result<Json, E> {
                Ok(Json::Other)
            }

            fn visit_unit<E>(self) -> Result<Json, E> {
                Ok(Json::Other)
            }

            fn visit_str<E>(self, text: &str) -> Result<Json, E> {
                Ok(Json::Text(text.to_owned()))
            }

            fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<Json, A::Error> {
                let mut list = Vec::new();
                while let Some(item) = items.next_element()? {
                    list.push(item);
                }
                Ok(Json::List(list))
            }

            fn visit_map<A: MapAccess<'de>>(self, mut fields: A) -> Result<Json, A::Error> {
                let mut map = Vec::new();
                while let Some(field) = fields.next_entry()? {
                    map.push(field);
                }
                Ok(Json::Map(map))
            }
        }

        deserializer.deserialize_any(AnyValue)
    }
}

/// Every list and object in a text, outermost first. If one is broken or cut off, the complete ones inside it.
pub(super) fn values(text: &str) -> Vec<Json> {
    // Models break lines within strings. Between values a space is as good as a line break.
    let text = text.replace(|c: char| c.is_control(), " ");
    if let Some((inner, _)) = prefix::<String>(text.trim_start())
        && inner.starts_with(['[', '{'])
    {
        return values(&inner);
    }
    let (mut found, mut at) = (Vec::new(), 0);
    while let Some(open) = text[at..].find(['[', '{']) {
        at += open;
        let rest = &text[at..];
        at += match prefix(rest).or_else(|| broken_strings(rest)) {
            Some((value, length)) => {
                found.push(value);
                length
            }
            None => 1,
        };
    }
    found
}

/// The value at the beginning of a text, and its length.
fn prefix<T: DeserializeOwned>(text: &str) -> Option<(T, usize)> {
    let mut stream = serde_json::Deserializer::from_str(text).into_iter::<T>();
    let value = stream.next()?.ok()?;
    Some((value, stream.byte_offset()))
}

/// The complete strings of a list that is cut off or has an extra comma.
fn broken_strings(text: &str) -> Option<(Json, usize)> {
    let mut rest = text.strip_prefix('[')?.trim_start();
    let mut strings = Vec::new();
    while let Some((string, length)) = prefix::<String>(rest) {
        strings.push(Json::Text(string));
        rest = rest[length..].trim_start_matches([' ', ',']);
    }
    (!strings.is_empty()).then(|| (Json::List(strings), text.len() - rest.len()))
}

/// Whether a text is JSON and nothing else.
pub(super) fn is_json(text: &str) -> bool {
    serde_json::from_str::<IgnoredAny>(text.trim()).is_ok()
}

/// Replaces white space and control characters by single spaces and trims the ends.
pub fn plain(text: &str) -> String {
    let words = text.split(|c: char| c.is_whitespace() || c.is_control()).filter(|word| !word.is_empty());
    words.collect::<Vec<_>>().join(" ")
}

/// Folds white space and case.
pub(super) fn fold(text: &str) -> String {
    plain(text).to_lowercase()
}

/// Only the letters and digits, in lower case: two texts with the same key are treated as equal.
pub(super) fn key(text: &str) -> String {
    text.chars().filter(|c| c.is_alphanumeric()).flat_map(char::to_lowercase).collect()
}

/// Whether a text is not empty and differs from all texts in `seen`, to which it is added.
pub(super) fn is_new(seen: &mut HashSet<String>, text: &str) -> bool {
    let key = key(text);
    !key.is_empty() && seen.insert(key)
}

/// The beginning of a text up to its `count`th word. Words are separated by white space.
pub fn cut(text: &str, count: usize) -> &str {
    let (mut words, mut inside) = (0, false);
    for (i, c) in text.char_indices() {
        if c.is_whitespace() {
            if inside && words == count {
                return &text[..i];
            }
            inside = false;
        } else if !inside {
            inside = true;
            words += 1;
        }
    }
    text
}

#[cfg(test)]
mod talk_tests {
    use super::*;
    use crate::expand::testing::Scripted;

    fn answer(question: &str, sample: u32) -> Request {
        Request { prompt: question.into(), sample, ..Request::default() }
    }

    #[test]
    fn thoughts_are_no_part_of_a_reply() {
        for (text, said_of_it) in [
            ("<think>hm</think>\n yes ", "yes"),
            ("hm</think>yes", "yes"),
            ("<think>cut short", ""),
            (" yes", "yes"),
        ] {
            let reply = Reply { text: text.into(), model: String::new(), ..Reply::default() };
            assert_eq!(reply.answer(), said_of_it);
        }
    }

    #[test]
    fn a_server_that_is_not_there_is_asked_once_and_one_that_talks_nonsense_again() {
        let never = Stop::never();
        for (error, calls) in [
            (ChatError::Unreachable("connection refused".into()), 1),
            (ChatError::Nonsense("<html>".into()), 3),
            (ChatError::Refused("no".into()), 3),
            (ChatError::NotRecorded, 3),
        ] {
            let message = error.to_string();
            let chat = Scripted::new(vec![Err(error.clone()), Err(error.clone()), Err(error)]);
            let mut talk = Talk::new(&chat, &never);
            for sample in 0..3 {
                assert_eq!(talk.ask(&answer("q", sample)), Ok(None));
            }
            assert_eq!(chat.requests().len(), calls);
            assert_eq!(talk.note("nothing came"), Some(format!("fake: {message}; nothing came")));
        }
    }

    #[test]
    fn costs_add_up_over_replies_of_no_use() {
        let never = Stop::never();
        let chat = Scripted::saying(&["one", "", "three"]);
        let mut talk = Talk::new(&chat, &never);
        let replies: Vec<bool> =
            (0..3).map(|sample| talk.ask(&answer("q", sample)).unwrap().is_some()).collect();
        assert_eq!(replies, [true, false, true]);
        let tokens = Some(Tokens { prompt: 30, reply: 9 });
        assert_eq!(talk.cost, Cost { replies: 3, recorded: 0, tokens });
    }
}

#[cfg(test)]
mod json_tests {
    use super::*;

    fn texts(texts: &[&str]) -> Json {
        Json::List(texts.iter().map(|text| Json::Text((*text).to_owned())).collect())
    }

    #[test]
    fn lists_and_objects_are_found_in_prose_and_keep_their_order() {
        let found = values(
            "Sure [as asked]:\n```json\n{\"z\": \"1\",\n \"a\": [null, 2, true, 1.5]}\n``` and [\"x\"]!",
        );
        let other = || Json::Other;
        let map = Json::Map(vec![
            ("z".into(), Json::Text("1".into())),
            ("a".into(), Json::List(vec![other(), other(), other(), other()])),
        ]);
        assert_eq!(found, [map, texts(&["x"])]);
    }

    #[test]
    fn of_a_value_cut_off_the_whole_parts_are_kept() {
        assert_eq!(values(r#"{"a": [["x", "y", "z"#), [texts(&["x", "y"])]);
        assert_eq!(values(r#"["x", "y",]"#), [texts(&["x", "y"])]);
        assert_eq!(values(r#"[{"a": "x"}, {"a": "#), [Json::Map(vec![("a".into(), Json::Text("x".into()))])]);
    }

    #[test]
    fn json_within_a_string_is_read_and_a_line_break_within_a_string_is_a_space() {
        assert_eq!(values(r#""[\"x\"]""#), [texts(&["x"])]);
        assert_eq!(values("[\"x\ny\"]"), [texts(&["x y"])]);
    }

    #[test]
    fn garbage_and_endless_nesting_are_no_values() {
        for text in ["", "no", "[", "{]", "[[[[", &"[".repeat(2000), &"{\"a\":".repeat(2000)] {
            assert_eq!(values(text), []);
        }
    }
}

#[cfg(test)]
mod text_tests {
    use super::*;

    #[test]
    fn a_text_is_cut_behind_a_word_and_a_short_one_is_left() {
        for (text, count, cut_to) in
            [(" a  bé\nc d", 2, " a  bé"), ("a b", 2, "a b"), ("a b ", 5, "a b "), ("", 3, "")]
        {
            assert_eq!(cut(text, count), cut_to, "{text:?}");
        }
    }

    #[test]
    fn texts_that_differ_in_case_space_and_signs_alone_say_the_same() {
        let mut seen = HashSet::new();
        assert!(is_new(&mut seen, "Zoos: keep animals."));
        assert!(!is_new(&mut seen, "  zoos keep\nANIMALS!"));
        assert!(!is_new(&mut seen, "…"));
        assert!(is_new(&mut seen, "動物園"));
    }
}
