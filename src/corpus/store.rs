//! The passages of one corpus, read from disk on demand, and their metadata fields.
//!
//! A store is BEIR JSONL, one passage per line, and a file with the byte offset of every line: a corpus of any size opens at once, and
//! reading a passage reads one line.
//!
//! Fields with few values, such as outlet, country, ideology or year, divide passages into groups. Values are compared as text, so a
//! number and the same number in quotes are one value.

use std::borrow::Cow;
use std::collections::{BTreeMap, HashMap};
use std::fs::File;
use std::path::Path;
use std::sync::OnceLock;

use memmap2::Mmap;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::input::read_at;
use crate::storage::checked::{Damaged, Summed};
use crate::work::{Job, OnProgress, Progress, Stop, Stopped};

/// One retrievable piece of text, as BEIR's `corpus.jsonl` writes it.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Passage {
    /// Id, unique in its corpus.
    #[serde(rename = "_id")]
    pub id: String,
    /// Title of the page it comes from; may be empty.
    #[serde(default)]
    pub title: String,
    /// The text itself.
    pub text: String,
    /// Everything else: outlet, author, address, …
    #[serde(default, skip_serializing_if = "Map::is_empty")]
    pub metadata: Map<String, Value>,
}

impl Passage {
    /// What a list shows of it: its title, else its first 200 characters, else its id.
    pub fn heading(&self) -> &str {
        let text = self.text.trim_start();
        let end = text.char_indices().nth(200).map_or(text.len(), |(end, _)| end);
        [self.title.trim(), &text[..end], &self.id]
            .into_iter()
            .find(|shown| !shown.is_empty())
            .unwrap_or_default()
    }

    /// The text that retrievers and encoders read: `title + ' ' + text`, or the text alone.
    pub fn contents(&self) -> String {
        if self.title.is_empty() { self.text.clone() } else { format!("{} {}", self.title, self.text) }
    }
}

/// A passage's position in its corpus, from 0.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct PassageIx(pub u32);

impl PassageIx {
    /// Positions from this number on stand for passages that a run names and the corpus does not contain; no corpus is this large.
    const OUTSIDE: u32 = 1 << 31;

    /// The position of a passage outside the corpus.
    pub fn outside(number: u32) -> Self {
        PassageIx(number | Self::OUTSIDE)
    }

    /// The number of a passage outside the corpus; `None` if it is inside.
    pub fn as_outside(self) -> Option<u32> {
        (self.0 >= Self::OUTSIDE).then_some(self.0 & !Self::OUTSIDE)
    }
}

/// Identity of a corpus's content: two corpora with equal fingerprints hold the same passages.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Fingerprint(pub String);

enum Bytes {
    /// Read line by line. Mapped pages would stay resident, until all of a large corpus counted as memory.
    Filed(File, Summed),
    Held(Cow<'static, [u8]>),
}

enum Offsets {
    Mapped(Mmap),
    Counted(Vec<u64>),
}

/// Passages in a fixed order.
pub struct Corpus {
    /// Name for the user.
    pub name: String,
    /// Identity of its content.
    pub fingerprint: Fingerprint,
    bytes: Bytes,
    offsets: Offsets,
    by_id: OnceLock<HashMap<String, PassageIx>>,
    /// The first line that could not be read.
    damage: OnceLock<Damaged>,
}

impl Corpus {
    /// Passages stored as `passages.jsonl` and `offsets.u64` (little-endian starts of lines, then the end).
    pub(super) fn from_files(
        name: String,
        fingerprint: Fingerprint,
        (lines, sums): (File, Summed),
        offsets: Mmap,
    ) -> Self {
        let (bytes, offsets) = (Bytes::Filed(lines, sums), Offsets::Mapped(offsets));
        Corpus { name, fingerprint, bytes, offsets, by_id: OnceLock::new(), damage: OnceLock::new() }
    }

    /// Passages compiled into the binary as JSONL.
    pub fn builtin(name: &str, jsonl: &'static [u8]) -> Self {
        Corpus::in_memory(name, jsonl.into())
    }

    /// A corpus in memory, one passage per text, with ids in the order of the texts.
    ///
    /// # Errors
    /// Writing JSON failed, which does not happen for strings.
    pub fn of_texts(name: &str, texts: &[String]) -> serde_json::Result<Self> {
        let mut jsonl = Vec::new();
        for (i, text) in texts.iter().enumerate() {
            // Ties are broken by id, so ids must sort like the numbers.
            let passage = Passage { id: format!("{i:010}"), text: text.clone(), ..Passage::default() };
            serde_json::to_writer(&mut jsonl, &passage)?;
            jsonl.push(b'\n');
        }
        Ok(Corpus::in_memory(name, jsonl.into()))
    }

    fn in_memory(name: &str, jsonl: Cow<'static, [u8]>) -> Self {
        let mut offsets = vec![0];
        offsets
            .extend(jsonl.iter().enumerate().filter(|(_, byte)| **byte == b'\n').map(|(i, _)| i as u64 + 1));
        Corpus {
            name: name.to_owned(),
            fingerprint: Fingerprint(blake3::hash(&jsonl).to_hex()[..24].to_owned()),
            bytes: Bytes::Held(jsonl),
            offsets: Offsets::Counted(offsets),
            by_id: OnceLock::new(),
            damage: OnceLock::new(),
        }
    }

    /// Fails once a passage could not be read back. Whatever was computed from this corpus does not count then.
    ///
    /// # Errors
    /// [`Damaged`]: the first such passage.
    pub fn sound(&self) -> Result<(), Damaged> {
        self.damage.get().map_or(Ok(()), |damaged| Err(damaged.clone()))
    }

    /// Number of passages.
    pub fn len(&self) -> usize {
        let offsets = match &self.offsets {
            Offsets::Mapped(map) => map.len() / 8,
            Offsets::Counted(all) => all.len(),
        };
        offsets.saturating_sub(1)
    }

    /// Whether it has no passages.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    fn offset(&self, i: usize) -> usize {
        match &self.offsets {
            Offsets::Mapped(map) => {
                let bytes = map.get(i * 8..i * 8 + 8).and_then(|b| b.try_into().ok());
                bytes.map_or(0, u64::from_le_bytes) as usize
            }
            Offsets::Counted(all) => all.get(i).copied().unwrap_or(0) as usize,
        }
    }

    /// A line.
    fn line(&self, PassageIx(ix): PassageIx) -> Result<Cow<'_, [u8]>, Damaged> {
        let (start, end) = (self.offset(ix as usize), self.offset(ix as usize + 1));
        let unfit =
            |path: &Path| Damaged::new(path, format!("passage {ix} would be at bytes {start} to {end}"));
        match &self.bytes {
            Bytes::Held(all) => {
                all.get(start..end).map(Cow::from).ok_or_else(|| unfit(Path::new(&self.name)))
            }
            // Damaged offsets can point past the end and request any amount of memory.
            Bytes::Filed(_, sums) if start > end || end as u64 > sums.bytes() => Err(unfit(sums.path())),
            Bytes::Filed(file, sums) => {
                let mut line = vec![0; end - start];
                let read = sums
                    .check(start as u64..end as u64, |block, at| read_at(file, block, at))
                    .and_then(|()| read_at(file, &mut line, start as u64));
                read.map(|()| line.into()).map_err(|error| {
                    Damaged::of(&error)
                        .cloned()
                        .unwrap_or_else(|| Damaged::new(sums.path(), error.to_string()))
                })
            }
        }
    }

    /// A line as a value. The first failure is kept for [`Corpus::sound`].
    fn value<T: DeserializeOwned>(&self, ix: PassageIx) -> Option<T> {
        let read = self.line(ix).and_then(|line| {
            serde_json::from_slice(&line).map_err(|error| {
                let path = match &self.bytes {
                    Bytes::Filed(_, sums) => sums.path(),
                    Bytes::Held(_) => Path::new(&self.name),
                };
                Damaged::new(path, format!("passage {} is no line of JSON ({error})", ix.0))
            })
        });
        match read {
            Ok(value) => Some(value),
            Err(damaged) => {
                tracing::error!("{damaged}");
                let _ = self.damage.set(damaged);
                None
            }
        }
    }

    /// The passage at a position. One that cannot be read has no words, so nothing judges it, and [`Corpus::sound`] fails from then on.
    pub fn passage(&self, ix: PassageIx) -> Passage {
        self.value(ix).unwrap_or_else(|| Passage { id: unreadable(ix), ..Passage::default() })
    }

    /// A passage's id alone.
    pub fn id(&self, ix: PassageIx) -> String {
        #[derive(serde::Deserialize)]
        struct Id {
            #[serde(rename = "_id")]
            id: String,
        }
        self.value(ix).map_or_else(|| unreadable(ix), |line: Id| line.id)
    }

    /// A passage's metadata; empty if its line cannot be read, and [`Corpus::sound`] fails then.
    pub fn metadata(&self, ix: PassageIx) -> Map<String, Value> {
        #[derive(Default, serde::Deserialize)]
        struct Line {
            #[serde(default)]
            metadata: Map<String, Value>,
        }
        self.value::<Line>(ix).unwrap_or_default().metadata
    }

    /// The position of the passage with this id. The first call reads all ids.
    pub fn find(&self, id: &str) -> Option<PassageIx> {
        self.by_id.get_or_init(|| self.places().map(|ix| (self.id(ix), ix)).collect()).get(id).copied()
    }

    /// All positions in order.
    pub fn places(&self) -> impl Iterator<Item = PassageIx> + use<> {
        (0..self.len() as u32).map(PassageIx)
    }
}

/// The id of a passage that cannot be read.
fn unreadable(PassageIx(ix): PassageIx) -> String {
    format!("unreadable-{ix}")
}

/// The limit of distinct values: a field with more does not form groups.
pub const MOST: usize = 50;
/// The value of a passage without the field.
pub const NONE: &str = "(none)";
/// Passages between two progress reports.
const BATCH: u32 = 50_000;

/// A field that divides passages into groups.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Field {
    /// Its name in `metadata`.
    pub name: String,
    /// Its values with their number of passages, the most frequent first; [`NONE`] last, if any passage lacks the field.
    pub values: Vec<(String, usize)>,
}

impl Field {
    /// The position of a passage's value in [`Field::values`].
    pub fn place(&self, metadata: &Map<String, Value>) -> Option<usize> {
        let value = metadata.get(&self.name).and_then(as_text);
        let value = value.as_deref().unwrap_or(NONE);
        self.values.iter().position(|(other, _)| other == value)
    }

    /// Passages per value.
    pub fn counts(&self) -> Vec<usize> {
        self.values.iter().map(|(_, count)| *count).collect()
    }
}

/// The fields of a corpus.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Fields {
    /// The number of passages.
    pub passages: usize,
    /// The categories, by name.
    pub categories: Vec<Field>,
    /// Names of the other fields: too many values, or only lists and objects.
    pub others: Vec<String>,
}

impl Fields {
    /// Reads the metadata of every passage.
    ///
    /// # Errors
    /// `stop` was set.
    pub fn read(corpus: &Corpus, on_progress: OnProgress<'_>, stop: &Stop) -> Result<Self, Stopped> {
        let mut seen: BTreeMap<String, Seen> = BTreeMap::new();
        let total = corpus.len() as u64;
        for ix in corpus.places() {
            let PassageIx(done) = ix;
            if done % BATCH == BATCH - 1 {
                on_progress(Progress { job: Job::Counting, done: u64::from(done) + 1, total });
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
        let (Some(counts), Some(value)) = (&mut self.counts, as_text(value)) else { return };
        *counts.entry(value).or_default() += 1;
        if counts.len() > MOST {
            self.counts = None;
        }
    }

    /// The values in order, if they are few and there are any.
    fn values(self, passages: usize) -> Option<Vec<(String, usize)>> {
        let mut values: Vec<(String, usize)> = self.counts?.into_iter().collect();
        // A text equal to [`NONE`] counts with the passages without the field.
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

/// A value as text; `None` for lists and objects.
fn as_text(value: &Value) -> Option<String> {
    match value {
        Value::String(text) => Some(text.trim().to_owned()).filter(|text| !text.is_empty()),
        Value::Number(number) => Some(number.to_string()),
        Value::Bool(truth) => Some(truth.to_string()),
        Value::Null | Value::Array(_) | Value::Object(_) => None,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn fields(metadata: &[Value]) -> Fields {
        let line = |(i, metadata): (usize, &Value)| {
            json!({"_id": i.to_string(), "text": "x", "metadata": metadata}).to_string() + "\n"
        };
        let jsonl: String = metadata.iter().enumerate().map(line).collect();
        let corpus = Corpus::builtin("test", jsonl.into_bytes().leak());
        Fields::read(&corpus, &|_| {}, &Stop::never()).unwrap()
    }

    fn values(fields: &Fields, name: &str) -> Vec<(String, usize)> {
        fields.categories.iter().find(|field| field.name == name).unwrap().values.clone()
    }

    fn pairs(of: &[(&str, usize)]) -> Vec<(String, usize)> {
        of.iter().map(|(value, count)| ((*value).to_owned(), *count)).collect()
    }

    #[test]
    fn values_are_counted_most_frequent_first_and_missing_ones_last() {
        let read =
            fields(&[json!({"outlet": "B"}), json!({"outlet": "A"}), json!({"outlet": "A"}), json!({})]);
        assert_eq!(read.passages, 4);
        assert_eq!(values(&read, "outlet"), pairs(&[("A", 2), ("B", 1), (NONE, 1)]));
    }

    #[test]
    fn values_of_different_types_with_the_same_text_are_one_and_lists_are_ignored() {
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
    fn a_field_with_ten_thousand_values_or_only_lists_is_no_category() {
        let all: Vec<Value> =
            (0..10_000).map(|i| json!({"address": i.to_string(), "tags": [i], "side": i % 2})).collect();
        let read = fields(&all);
        assert_eq!(read.others, ["address", "tags"]);
        let edge: Vec<Value> = (0..MOST).map(|i| json!({"x": i})).collect();
        assert_eq!(values(&fields(&edge), "x").len(), MOST);
    }

    #[test]
    fn a_text_equal_to_none_counts_as_none() {
        let read = fields(&[json!({"a": NONE}), json!({"a": "b"})]);
        assert_eq!(values(&read, "a"), pairs(&[("b", 1), (NONE, 1)]));
    }

    #[test]
    fn a_stopped_count_returns_an_error() {
        let corpus = crate::corpus::sample::corpus();
        let now = std::sync::Arc::new(std::sync::atomic::AtomicU64::new(1));
        assert!(Fields::read(&corpus, &|_| {}, &Stop::when_past(&now, 0)).is_err());
    }

    #[test]
    fn a_passage_that_cannot_be_read_has_no_words_and_the_corpus_is_no_longer_sound() {
        use crate::storage::checked::{open_unchecked, sum_file};
        let folder = tempfile::tempdir().unwrap();
        let (path, map) = (folder.path().join("passages.jsonl"), folder.path().join("offsets.u64"));
        let line = |i: usize| format!("{{\"_id\":\"{i}\",\"text\":\"{}\"}}\n", "zoos ".repeat(2_000));
        let lines: Vec<String> = (0..8).map(line).collect();
        let ends = lines.iter().scan(0u64, |end, line| {
            *end += line.len() as u64;
            Some(*end)
        });
        let offsets: Vec<u8> = std::iter::once(0).chain(ends).flat_map(u64::to_le_bytes).collect();
        std::fs::write(&map, offsets).unwrap();
        std::fs::write(&path, lines.concat()).unwrap();
        sum_file(&path, &path).unwrap();
        let mut bytes = lines.concat().into_bytes();
        let last = bytes.len() - 40;
        bytes[last] = b'Z';
        std::fs::write(&path, &bytes).unwrap();
        let open = || {
            let sums = open_unchecked(&path).unwrap().pop().unwrap();
            // SAFETY: the file does not change.
            let offsets = unsafe { Mmap::map(&File::open(&map).unwrap()) }.unwrap();
            Corpus::from_files(
                "t".into(),
                Fingerprint("f".into()),
                (File::open(&path).unwrap(), sums),
                offsets,
            )
        };
        let corpus = open();
        assert_eq!((corpus.passage(PassageIx(0)).id.as_str(), corpus.sound()), ("0", Ok(())));
        let lost = corpus.passage(PassageIx(7));
        assert_eq!((lost.id.as_str(), lost.contents().as_str()), ("unreadable-7", ""));
        let damaged = corpus.sound().unwrap_err().to_string();
        assert!(damaged.contains("passages.jsonl is damaged") && damaged.contains("set aside"), "{damaged}");
        assert!(folder.path().join("passages.jsonl.damaged").exists());
    }
}
