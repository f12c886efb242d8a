//! What stands, given all that was ever written down.
//!
//! Owns [`History`]: entries by name, and the ones that no other has taken the place of. Its order is that of `was`, never that of a
//! clock, so that histories of several machines come together in any order to the same. It must not know files.

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};

use super::{Act, Decision, Entry, View};

/// Whose view of what.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Key {
    /// The annotator.
    pub by: String,
    /// The question, word for word.
    pub question: String,
    /// The passage's id.
    pub passage: String,
}

impl Entry {
    /// Whose view of what this is.
    pub fn key(&self) -> Key {
        Key { by: self.by.clone(), question: self.question.clone(), passage: self.passage.clone() }
    }
}

/// Entries of any number of annotators.
#[derive(Clone, Debug, Default)]
pub struct History {
    entries: HashMap<String, Entry>,
    /// Names in the order they were taken in.
    order: Vec<String>,
    /// Named in the `was` of some entry.
    replaced: HashSet<String>,
    heads: BTreeMap<Key, BTreeSet<String>>,
}

impl History {
    /// Takes an entry in, if it is not known; says whether it is new.
    pub fn take(&mut self, entry: Entry) -> bool {
        if self.entries.contains_key(&entry.id) {
            return false;
        }
        for was in &entry.was {
            self.replaced.insert(was.clone());
            // A passage that was given another id has its earlier label under another key.
            let key = self.entries.get(was).map(Entry::key);
            if let Some(heads) = key.as_ref().and_then(|key| self.heads.get_mut(key)) {
                heads.remove(was);
            }
            if let Some(key) = key
                && self.heads.get(&key).is_some_and(BTreeSet::is_empty)
            {
                self.heads.remove(&key);
            }
        }
        if !self.replaced.contains(&entry.id) {
            self.heads.entry(entry.key()).or_default().insert(entry.id.clone());
        }
        self.order.push(entry.id.clone());
        self.entries.insert(entry.id.clone(), entry);
        true
    }

    /// Takes in all that another history holds.
    pub fn merge(&mut self, other: &History) {
        for entry in other.entries() {
            self.take(entry.clone());
        }
    }

    /// All entries, in the order they were taken in.
    pub fn entries(&self) -> impl Iterator<Item = &Entry> {
        self.order.iter().filter_map(|id| self.entries.get(id))
    }

    /// The entry of that name.
    pub fn entry(&self, id: &str) -> Option<&Entry> {
        self.entries.get(id)
    }

    /// How many entries there are.
    pub fn len(&self) -> usize {
        self.entries.len()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    /// The entries that stand for a key, earliest first: one, or several where two machines went apart.
    pub fn heads(&self, key: &Key) -> Vec<&Entry> {
        let mut heads: Vec<&Entry> =
            self.heads.get(key).into_iter().flatten().filter_map(|id| self.entries.get(id)).collect();
        heads.sort_by(|a, b| (a.at, &a.id).cmp(&(b.at, &b.id)));
        heads
    }

    /// What an annotator holds of a passage; none where nothing was written down, or two machines say different things.
    pub fn view(&self, key: &Key) -> Option<&View> {
        let heads = self.heads(key);
        let first = &heads.first()?.view;
        heads.iter().all(|head| head.view == *first).then_some(first)
    }

    /// Every passage and question that an annotator holds something of.
    pub fn keys(&self) -> impl Iterator<Item = &Key> {
        self.heads.keys()
    }

    /// Where two machines of one annotator say different things, which only that annotator can decide: [`History::heads`] says what.
    pub fn conflicts(&self) -> Vec<&Key> {
        self.keys().filter(|key| self.view(key).is_none()).collect()
    }

    /// The act that puts `view` in the place of whatever stands: its entry and the entries that it replaces.
    pub(super) fn heads_of(&self, act: &Act, by: &str) -> Vec<String> {
        let key = Key { by: by.into(), question: act.question.clone(), passage: act.passage.clone() };
        self.heads(&key).into_iter().map(|head| head.id.clone()).collect()
    }

    /// The decisions on one key: of statements on which all that stands agrees.
    pub fn decisions_on(&self, key: &Key) -> Vec<Decision> {
        let heads = self.heads(key);
        let Some(first) = heads.first() else { return Vec::new() };
        let agreed = first.view.answers.iter().filter(|(statement, supports)| {
            heads.iter().all(|head| head.view.answers.get(*statement) == Some(supports))
        });
        let decision = |(statement, supports): (&String, &bool)| Decision {
            by: first.by.clone(),
            question: first.question.clone(),
            passage: first.passage.clone(),
            text: first.text.clone(),
            perspective: statement.clone(),
            supports: *supports,
            evidence: first.view.evidence.get(statement).cloned(),
            note: first.view.note.clone(),
            flagged: first.view.flagged,
            at: first.at,
            took: first.took,
        };
        agreed.map(decision).collect()
    }

    /// All decisions that stand.
    pub fn decisions(&self) -> Vec<Decision> {
        self.keys().flat_map(|key| self.decisions_on(key)).collect()
    }
}

#[cfg(test)]
mod tests;
