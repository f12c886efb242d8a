//! JSON as models write it: somewhere in the text, cut off, keys in an order that counts.

use std::fmt;

use serde::de::{DeserializeOwned, IgnoredAny, MapAccess, SeqAccess, Visitor};
use serde::{Deserialize, Deserializer};

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

/// Every list and object in a text, outermost first; of one that is broken or cut off, the whole ones within it.
pub(super) fn values(text: &str) -> Vec<Json> {
    // Models break lines within strings. Between values a space does as well.
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

/// The whole strings of a list that is cut off or has a comma too many.
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
pub(super) fn is_all(text: &str) -> bool {
    serde_json::from_str::<IgnoredAny>(text.trim()).is_ok()
}

#[cfg(test)]
mod tests {
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
