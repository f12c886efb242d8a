//! What is known of passages beside their text: the metadata fields of a corpus that sort its passages into groups.
//!
//! A field is a category where its values are few: an outlet, a country, an ideology, a year. Values are compared as the text they are
//! written as, so that a number and the same number in quotes are one value.

use std::collections::{BTreeMap, HashMap};

use serde_json::{Map, Value};

use super::{Corpus, PassageIx};
use crate::work::{Job, Progress, Stop, Stopped, Tell};

/// More different values than this are no groups.
pub const MOST: usize = 50;
/// The value of a passage that does not have the field.
pub const NONE: &str = "(none)";
/// Passages between two looks at `stop`, and between two reports.
const BATCH: u32 = 50_000;

/// A field by which passages can be told apart.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Field {
    /// Its name in `metadata`.
    pub name: String,
    /// Its values with the passages that have each, the most frequent first; [`NONE`] last, if any passage goes without.
    pub values: Vec<(String, usize)>,
}

impl Field {
    /// The place of a passage's value among [`Field::values`].
    pub fn place(&self, metadata: &Map<String, Value>) -> Option<usize> {
        let value = metadata.get(&self.name).and_then(written);
        let value = value.as_deref().unwrap_or(NONE);
        self.values.iter().position(|(known, _)| known == value)
    }

    /// Passages a value.
    pub fn counts(&self) -> Vec<usize> {
        self.values.iter().map(|(_, count)| *count).collect()
    }
}

/// The fields of a corpus.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Fields {
    /// Passages that were looked at: all.
    pub passages: usize,
    /// The categories, by name.
    pub categories: Vec<Field>,
    /// Names of the other fields: of too many values, or of lists and objects alone.
    pub others: Vec<String>,
}

impl Fields {
    /// Reads the metadata of every passage.
    ///
    /// # Errors
    /// `stop` was set.
    pub fn read(corpus: &Corpus, tell: Tell<'_>, stop: &Stop) -> Result<Self, Stopped> {
        let mut seen: BTreeMap<String, Seen> = BTreeMap::new();
        let total = corpus.len() as u64;
        for ix in corpus.places() {
            let PassageIx(done) = ix;
            if done % BATCH == BATCH - 1 {
                tell(Progress { job: Job::Counting, done: u64::from(done) + 1, total });
            }
            if done % 1_000 == 0 && stop.is_set() {
                return Err(Stopped);
            }
            for (name, value) in corpus.metadata(ix) {
                seen.entry(name).or_default().take(&value);
            }
        }
        let mut fields = Fields { passages: corpus.len(), ..Fields::default() };
        for (name, seen) in seen {
            match seen.values(corpus.len()) {
                Some(values) => fields.categories.push(Field { name, values }),
                None => fields.others.push(name),
            }
        }
        Ok(fields)
    }
}

/// The values of one field so far; `None` once there are too many.
struct Seen {
    counts: Option<HashMap<String, usize>>,
}

impl Default for Seen {
    fn default() -> Self {
        Seen { counts: Some(HashMap::new()) }
    }
}

impl Seen {
    fn take(&mut self, value: &Value) {
        let (Some(counts), Some(value)) = (&mut self.counts, written(value)) else { return };
        *counts.entry(value).or_default() += 1;
        if counts.len() > MOST {
            self.counts = None;
        }
    }

    /// The values in order, if they are few and there are any.
    fn values(self, passages: usize) -> Option<Vec<(String, usize)>> {
        let mut values: Vec<(String, usize)> = self.counts?.into_iter().collect();
        // A text that reads like it counts with the passages that go without.
        let named_none: usize =
            values.extract_if(.., |(value, _)| value == NONE).map(|(_, count)| count).sum();
        if values.is_empty() {
            return None;
        }
        values.sort_by(|a, b| b.1.cmp(&a.1).then_with(|| a.0.cmp(&b.0)));
        let with: usize = values.iter().map(|(_, count)| count).sum();
        if with < passages || named_none > 0 {
            values.push((NONE.to_owned(), passages - with));
        }
        Some(values)
    }
}

/// A value as text; none for what is no single value.
fn written(value: &Value) -> Option<String> {
    match value {
        Value::String(text) => Some(text.trim().to_owned()).filter(|text| !text.is_empty()),
        Value::Number(number) => Some(number.to_string()),
        Value::Bool(truth) => Some(truth.to_string()),
        Value::Null | Value::Array(_) | Value::Object(_) => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn fields(metadata: &[Value]) -> Fields {
        let line = |(i, metadata): (usize, &Value)| {
            json!({"_id": i.to_string(), "text": "x", "metadata": metadata}).to_string() + "\n"
        };
        let jsonl: String = metadata.iter().enumerate().map(line).collect();
        let corpus = Corpus::carried("test", jsonl.into_bytes().leak());
        Fields::read(&corpus, &|_| {}, &Stop::never()).unwrap()
    }

    fn values(fields: &Fields, name: &str) -> Vec<(String, usize)> {
        fields.categories.iter().find(|field| field.name == name).unwrap().values.clone()
    }

    fn pairs(of: &[(&str, usize)]) -> Vec<(String, usize)> {
        of.iter().map(|(value, count)| ((*value).to_owned(), *count)).collect()
    }

    #[test]
    fn values_are_counted_the_most_frequent_first_and_who_goes_without_last() {
        let read =
            fields(&[json!({"outlet": "B"}), json!({"outlet": "A"}), json!({"outlet": "A"}), json!({})]);
        assert_eq!(read.passages, 4);
        assert_eq!(values(&read, "outlet"), pairs(&[("A", 2), ("B", 1), (NONE, 1)]));
    }

    #[test]
    fn values_of_mixed_types_are_one_by_their_text_and_lists_are_no_value() {
        let read = fields(&[
            json!({"year": 1999}),
            json!({"year": "1999"}),
            json!({"year": true}),
            json!({"year": ["1999", "2000"]}),
            json!({"year": null}),
            json!({"year": "  "}),
        ]);
        assert_eq!(values(&read, "year"), pairs(&[("1999", 2), ("true", 1), (NONE, 3)]));
        let field = &read.categories[0];
        let place = |metadata: Value| field.place(metadata.as_object().unwrap());
        assert_eq!(place(json!({"year": 1999})), Some(0));
        assert_eq!(place(json!({"year": {"of": 1999}})), Some(2));
        assert_eq!(place(json!({})), Some(2));
        assert_eq!(place(json!({"year": "3"})), None);
    }

    #[test]
    fn a_field_of_ten_thousand_values_or_of_lists_alone_is_no_category() {
        let all: Vec<Value> =
            (0..10_000).map(|i| json!({"address": i.to_string(), "tags": [i], "side": i % 2})).collect();
        let read = fields(&all);
        assert_eq!(read.others, ["address", "tags"]);
        let edge: Vec<Value> = (0..MOST).map(|i| json!({"x": i})).collect();
        assert_eq!(values(&fields(&edge), "x").len(), MOST);
    }

    #[test]
    fn a_text_that_reads_like_none_counts_as_none() {
        let read = fields(&[json!({"a": NONE}), json!({"a": "b"})]);
        assert_eq!(values(&read, "a"), pairs(&[("b", 1), (NONE, 1)]));
    }

    #[test]
    fn a_count_that_is_not_wanted_any_more_is_given_up() {
        let corpus = crate::corpus::sample::corpus();
        let now = std::sync::Arc::new(std::sync::atomic::AtomicU64::new(1));
        assert!(Fields::read(&corpus, &|_| {}, &Stop::when_past(&now, 0)).is_err());
    }
}
