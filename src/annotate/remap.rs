//! Labels that lost their passage, and where its text is now.

use std::collections::HashMap;

use super::{Act, History, Key, View, text_hash};
use crate::corpus::{Corpus, PassageIx};

/// Why a label stays where it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Lost {
    /// No passage of the corpus has its text.
    NoSuchText,
    /// The annotator holds something else of the passage that has its text now.
    Otherwise,
    /// Two machines say different things: that is to be decided first.
    Conflict,
}

/// What can be tied again and what cannot.
#[derive(Clone, Debug, Default)]
pub struct Remap {
    /// The key as it was, and the act that ties it to the passage of the same text.
    pub moves: Vec<(Key, Act)>,
    /// Labels that stay without a passage.
    pub lost: Vec<(Key, Lost)>,
}

/// Looks for the text of every label whose passage the corpus does not hold, or holds with another text.
pub fn remap(history: &History, corpus: &Corpus) -> Remap {
    let hash = |at: PassageIx| text_hash(&corpus.passage(at));
    let mut astray = Vec::new();
    for key in history.keys() {
        let heads = history.heads(key);
        let Some(first) = heads.first() else { continue };
        if corpus.find(&key.passage).map(hash).as_ref() != Some(&first.text) {
            astray.push((key, *first));
        }
    }
    let mut found = Remap::default();
    if astray.is_empty() {
        return found;
    }
    let mut places: HashMap<String, PassageIx> = HashMap::new();
    for at in corpus.places() {
        // Of equal texts, the first.
        places.entry(hash(at)).or_insert(at);
    }
    for (key, first) in astray {
        let Some(view) = history.view(key) else {
            found.lost.push((key.clone(), Lost::Conflict));
            continue;
        };
        let Some(at) = places.get(&first.text) else {
            found.lost.push((key.clone(), Lost::NoSuchText));
            continue;
        };
        let (passage, text) = (corpus.id(*at), first.text.clone());
        let to = Key { passage: passage.clone(), ..key.clone() };
        if history.heads(&to).iter().any(|head| head.view != *view) {
            found.lost.push((key.clone(), Lost::Otherwise));
            continue;
        }
        let act = Act { question: key.question.clone(), passage, text, view: view.clone(), took: first.took };
        found.moves.push((key.clone(), act));
    }
    found
}

/// What ties the labels of the statement `from` to the statement `to`, and what of them stays: a label is moved only where somebody
/// says that both mean the same.
pub fn restate(history: &History, from: &str, to: &str) -> Remap {
    let mut found = Remap::default();
    for key in history.keys() {
        let heads = history.heads(key);
        let Some(first) = heads.iter().find(|head| head.view.answers.contains_key(from)) else { continue };
        let Some(view) = history.view(key) else {
            found.lost.push((key.clone(), Lost::Conflict));
            continue;
        };
        let held = view.answers.get(from);
        if view.answers.get(to).is_some_and(|supports| Some(supports) != held) {
            found.lost.push((key.clone(), Lost::Otherwise));
            continue;
        }
        let renamed = |statement: &String| if statement == from { to.to_owned() } else { statement.clone() };
        let view = View {
            answers: view
                .answers
                .iter()
                .map(|(statement, supports)| (renamed(statement), *supports))
                .collect(),
            evidence: view
                .evidence
                .iter()
                .map(|(statement, words)| (renamed(statement), words.clone()))
                .collect(),
            ..view.clone()
        };
        let (question, passage, text) = (key.question.clone(), key.passage.clone(), first.text.clone());
        found.moves.push((key.clone(), Act { question, passage, text, view, took: first.took }));
    }
    found
}
