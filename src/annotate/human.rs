//! What of the annotators' decisions counts as a label.
//!
//! Owns [`Human`]: a pair's label is what most annotators hold; a tie is none. A decision counts only for the text it was made on,
//! and for the exact words of its statement.

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};
use std::fs;
use std::path::{Path, PathBuf};

use super::{Decision, History, Key, Read, text_hash};
use crate::corpus::Corpus;
use crate::input::InputError;

/// Labels by hand, as they stand.
#[derive(Clone, Debug, Default)]
pub struct Human {
    by_passage: HashMap<String, Vec<Decision>>,
    /// What does not count, in sentences.
    pub notes: Vec<String>,
}

impl Human {
    /// The decisions of a history that are about passages of this corpus. `statements` are those of the question set, if there is one.
    pub fn of(history: &History, corpus: &Corpus, statements: &HashSet<&str>) -> Self {
        let mut human = Human::default();
        let (mut gone, mut changed, mut unknown) = (0, 0, 0);
        for decision in history.decisions() {
            match corpus.find(&decision.passage).map(|at| text_hash(&corpus.passage(at))) {
                None => gone += 1,
                Some(text) if text != decision.text => changed += 1,
                Some(_) => {
                    if !statements.is_empty() && !statements.contains(decision.perspective.as_str()) {
                        unknown += 1;
                    }
                    human.by_passage.entry(decision.passage.clone()).or_default().push(decision);
                }
            }
        }
        let conflicts = history.conflicts().len();
        let ties = human.ties();
        let mut note = |count: usize, what: &str| {
            if count > 0 {
                human.notes.push(format!("labels by hand: {count} {what}"));
            }
        };
        note(
            gone,
            "of passages that this corpus does not hold (parallax annotate remap finds them by their text)",
        );
        note(changed, "of passages whose text has changed since; they do not count");
        note(unknown, "of statements that no question of the set has word for word");
        note(ties, "on which as many annotators say yes as no; they count as unjudged");
        note(
            conflicts,
            "passages on which two machines of one annotator disagree (parallax annotate status)",
        );
        human
    }

    /// What most annotators hold of a pair; none where nobody decided, or as many say yes as no.
    pub fn supports(&self, statement: &str, passage: &str) -> Option<bool> {
        let (yes, no) = self.votes(statement, passage)?;
        (yes != no).then_some(yes > no)
    }

    /// How many annotators say yes and no. Who says both, under two questions, says neither.
    fn votes(&self, statement: &str, passage: &str) -> Option<(usize, usize)> {
        let mut voices: BTreeMap<&str, BTreeSet<bool>> = BTreeMap::new();
        for decision in self.by_passage.get(passage)?.iter().filter(|one| one.perspective == statement) {
            voices.entry(&decision.by).or_default().insert(decision.supports);
        }
        let say = |supports: bool| {
            voices.values().filter(|said| said.len() == 1 && said.contains(&supports)).count()
        };
        (!voices.is_empty()).then(|| (say(true), say(false)))
    }

    fn ties(&self) -> usize {
        let pairs: HashSet<(&str, &str)> = self.decisions().map(|d| (&*d.perspective, &*d.passage)).collect();
        pairs.into_iter().filter(|(statement, passage)| self.supports(statement, passage).is_none()).count()
    }

    /// Puts what an annotator holds of a passage now in the place of what counted so far: `history.decisions_on(key)` after an act.
    pub fn decided(&mut self, key: &Key, decisions: Vec<Decision>) {
        let all = self.by_passage.entry(key.passage.clone()).or_default();
        all.retain(|one| one.by != key.by || one.question != key.question);
        all.extend(decisions);
    }

    /// The decisions that count.
    pub fn decisions(&self) -> impl Iterator<Item = &Decision> {
        self.by_passage.values().flatten()
    }

    /// Whether nothing was decided.
    pub fn is_empty(&self) -> bool {
        self.by_passage.values().all(Vec::is_empty)
    }
}

/// The union of journals, which are named one by one or by their folder, and what was passed over in them. Paths that are not there
/// are an error, an empty folder is none.
///
/// # Errors
/// A file cannot be read, or is no journal.
pub fn journals(paths: &[PathBuf]) -> Result<(History, Vec<String>), InputError> {
    let (mut history, mut notes) = (History::default(), Vec::new());
    for path in paths {
        let files = if path.is_dir() { in_folder(path)? } else { vec![path.clone()] };
        for file in files {
            if !file.exists() {
                let error = std::io::ErrorKind::NotFound.into();
                return Err(InputError::unreadable(&file, &error));
            }
            let read = Read::file(&file)?;
            notes.extend(read.told(&file));
            if read.entries.is_empty() && read.newer == 0 && !read.bad.is_empty() && !path.is_dir() {
                return Err(InputError::BadLines(read.bad));
            }
            for entry in read.entries {
                history.take(entry);
            }
        }
    }
    Ok((history, notes))
}

/// The journals of a folder, by name.
pub(super) fn in_folder(folder: &Path) -> Result<Vec<PathBuf>, InputError> {
    let unreadable = |error: std::io::Error| InputError::unreadable(folder, &error);
    let mut files = Vec::new();
    for entry in fs::read_dir(folder).map_err(unreadable)? {
        let path = entry.map_err(unreadable)?.path();
        let pool = path.file_name().is_some_and(|name| name == super::project::POOL);
        if path.extension().is_some_and(|end| end == "jsonl") && !pool {
            files.push(path);
        }
    }
    files.sort();
    Ok(files)
}

#[cfg(test)]
mod tests;
