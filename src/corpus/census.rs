//! Which ids and which texts a corpus already has.
//!
//! It keeps hashes instead of ids and texts: 16 bytes of BLAKE3 an id and 12 bytes a text, 40 to 80 bytes a passage with the
//! room that tables keep free. That two ids of a corpus share a hash will not happen; that two texts do, and a passage is told
//! as repeated that is not, has a chance of one in a hundred thousand among twenty million.

use std::collections::{HashMap, HashSet};
use std::hash::{DefaultHasher, Hash, Hasher};

use serde::{Deserialize, Serialize};

use super::Passage;

/// How many repeated passages are told by name.
const TOLD: usize = 5;

/// A passage whose title and text an earlier one has too. It is kept: judgements may name either.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Repeat {
    /// The later passage's id.
    pub id: String,
    /// The earlier one's place in the corpus, from 0.
    pub of: u32,
}

/// What was counted.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Repeats {
    /// How many passages repeat an earlier one.
    pub count: u64,
    /// The first of them.
    pub first: Vec<Repeat>,
}

/// Counts passages as they come.
#[derive(Default)]
pub struct Census {
    ids: HashSet<[u8; 16]>,
    texts: HashMap<u64, u32>,
    /// Passages that have the title and text of an earlier one.
    pub repeats: Repeats,
}

impl Census {
    /// Takes a passage in.
    ///
    /// # Errors
    /// An earlier one has its id, or there are more passages than can be numbered; what was expected is told.
    pub fn add(&mut self, passage: &Passage) -> Result<(), String> {
        let hash = blake3::hash(passage.id.as_bytes());
        let key = <[u8; 16]>::try_from(&hash.as_bytes()[..16]).unwrap_or_default();
        let place = u32::try_from(self.ids.len()).map_err(|_| "at most 4,294,967,296 passages")?;
        if !self.ids.insert(key) {
            return Err(format!("an id of its own (`{}` stood on an earlier line)", passage.id));
        }
        let mut text = DefaultHasher::new();
        (&passage.title, &passage.text).hash(&mut text);
        let earlier = *self.texts.entry(text.finish()).or_insert(place);
        if earlier != place {
            self.repeats.count += 1;
            if self.repeats.first.len() < TOLD {
                self.repeats.first.push(Repeat { id: passage.id.clone(), of: earlier });
            }
        }
        Ok(())
    }

    /// How many passages there are.
    pub fn len(&self) -> u64 {
        self.ids.len() as u64
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.ids.is_empty()
    }
}
