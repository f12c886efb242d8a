//! What tests of journals have in common.

use std::collections::BTreeMap;
use std::path::Path;

use super::{Act, Journal, View, text_hash};
use crate::corpus::Passage;

/// The question of all tests.
pub const QUESTION: &str = "Should zoos be banned?";
/// Its first statement.
pub const YES: &str = "Zoos should be banned.";

/// A passage that says no more than its number.
pub fn passage(n: usize) -> Passage {
    Passage { id: format!("p{n}"), text: format!("Text {n}."), ..Passage::default() }
}

/// An answer on passage `n`.
pub fn act(n: usize, supports: bool) -> Act {
    let passage = passage(n);
    let answers = BTreeMap::from([(YES.to_owned(), supports)]);
    let (text, view) = (text_hash(&passage), View { answers, ..View::default() });
    Act { question: QUESTION.into(), passage: passage.id, text, view, took: Some(1200) }
}

/// The journal, opened for writing.
pub fn open(path: &Path) -> Journal {
    let journal = Journal::open(path, "anna").unwrap().journal;
    assert_eq!(journal.read_only(), None);
    journal
}

/// What the journal's annotator says of passage `n`.
pub fn said(journal: &Journal, n: usize) -> Option<bool> {
    let act = act(n, true);
    let key =
        super::Key { by: journal.by().into(), question: act.question.clone(), passage: act.passage.clone() };
    journal.history().view(&key)?.answers.get(YES).copied()
}
