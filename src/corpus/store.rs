//! The passages of one corpus, read where they lie.
//!
//! The store is BEIR JSONL, one passage a line, with the byte offset of every line beside it, so that a corpus of any
//! size opens at once and a passage costs one line.

use std::borrow::Cow;
use std::collections::HashMap;
use std::fs::File;
use std::sync::OnceLock;

use memmap2::Mmap;
use serde_json::{Map, Value};

use super::{Fingerprint, Passage, PassageIx};
use crate::input::read_at;

enum Bytes {
    /// Read line by line: a page of a map would stay, and with it its neighbours, until all of a large corpus counts as memory.
    Filed(File, u64),
    Held(Cow<'static, [u8]>),
}

enum Offsets {
    Mapped(Mmap),
    Counted(Vec<u64>),
}

/// Passages in a fixed order.
pub struct Corpus {
    /// What a person calls it.
    pub name: String,
    /// Identity of its content.
    pub fingerprint: Fingerprint,
    bytes: Bytes,
    offsets: Offsets,
    by_id: OnceLock<HashMap<String, PassageIx>>,
}

impl Corpus {
    /// Passages stored as `passages.jsonl` and `offsets.u64` (little-endian starts of lines, then the end).
    pub(super) fn filed(
        name: String,
        fingerprint: Fingerprint,
        (lines, length): (File, u64),
        offsets: Mmap,
    ) -> Self {
        let (bytes, offsets) = (Bytes::Filed(lines, length), Offsets::Mapped(offsets));
        Corpus { name, fingerprint, bytes, offsets, by_id: OnceLock::new() }
    }

    /// Passages carried in the binary as JSONL.
    pub fn carried(name: &str, jsonl: &'static [u8]) -> Self {
        Corpus::held(name, jsonl.into())
    }

    /// Texts that are kept nowhere, as passages whose ids are in the order of the texts.
    ///
    /// # Errors
    /// Never on texts; it is what writing JSON may say.
    pub fn of_texts(name: &str, texts: &[String]) -> serde_json::Result<Self> {
        let mut jsonl = Vec::new();
        for (i, text) in texts.iter().enumerate() {
            // Ties are broken by id, so that the ids must sort as the numbers do.
            let passage = Passage { id: format!("{i:010}"), text: text.clone(), ..Passage::default() };
            serde_json::to_writer(&mut jsonl, &passage)?;
            jsonl.push(b'\n');
        }
        Ok(Corpus::held(name, jsonl.into()))
    }

    fn held(name: &str, jsonl: Cow<'static, [u8]>) -> Self {
        let mut offsets = vec![0];
        offsets
            .extend(jsonl.iter().enumerate().filter(|(_, byte)| **byte == b'\n').map(|(i, _)| i as u64 + 1));
        Corpus {
            name: name.to_owned(),
            fingerprint: Fingerprint(blake3::hash(&jsonl).to_hex()[..24].to_owned()),
            bytes: Bytes::Held(jsonl),
            offsets: Offsets::Counted(offsets),
            by_id: OnceLock::new(),
        }
    }

    /// Number of passages.
    pub fn len(&self) -> usize {
        let offsets = match &self.offsets {
            Offsets::Mapped(map) => map.len() / 8,
            Offsets::Counted(all) => all.len(),
        };
        offsets.saturating_sub(1)
    }

    /// Whether it holds none.
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

    /// A line; empty where it cannot be read.
    fn line(&self, PassageIx(ix): PassageIx) -> Cow<'_, [u8]> {
        let place = self.offset(ix as usize)..self.offset(ix as usize + 1);
        match &self.bytes {
            Bytes::Held(all) => all.get(place).unwrap_or_default().into(),
            // Offsets that point past the end are damaged, and ask for any amount of memory.
            Bytes::Filed(_, length) if place.end as u64 > *length => Cow::default(),
            Bytes::Filed(file, _) => {
                let mut line = vec![0; place.len()];
                let read = read_at(file, &mut line, place.start as u64);
                read.map_or_else(|_| Cow::default(), |()| line.into())
            }
        }
    }

    /// The passage at a place.
    ///
    /// # Panics
    /// Never on a store that was built whole; a damaged line reads as a passage that says so.
    pub fn passage(&self, ix: PassageIx) -> Passage {
        serde_json::from_slice(&self.line(ix)).unwrap_or_else(|error| Passage {
            id: format!("damaged-{}", ix.0),
            text: format!("This passage could not be read back ({error}). Remove the corpus from the cache and add it again."),
            ..Passage::default()
        })
    }

    /// A passage's id alone.
    pub fn id(&self, ix: PassageIx) -> String {
        #[derive(serde::Deserialize)]
        struct Id<'a> {
            #[serde(rename = "_id", borrow)]
            id: Cow<'a, str>,
        }
        match serde_json::from_slice::<Id>(&self.line(ix)) {
            Ok(line) => line.id.into_owned(),
            Err(_) => self.passage(ix).id,
        }
    }

    /// What else is known of a passage; nothing where its line cannot be read.
    pub fn metadata(&self, ix: PassageIx) -> Map<String, Value> {
        #[derive(Default, serde::Deserialize)]
        struct Known {
            #[serde(default)]
            metadata: Map<String, Value>,
        }
        serde_json::from_slice::<Known>(&self.line(ix)).unwrap_or_default().metadata
    }

    /// Where the passage of that id lies. The first call reads all ids.
    pub fn find(&self, id: &str) -> Option<PassageIx> {
        self.by_id.get_or_init(|| self.places().map(|ix| (self.id(ix), ix)).collect()).get(id).copied()
    }

    /// All places in order.
    pub fn places(&self) -> impl Iterator<Item = PassageIx> + use<> {
        (0..self.len() as u32).map(PassageIx)
    }
}
