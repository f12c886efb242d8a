//! What counts as a label, and what is tied again.

use super::super::testing::{QUESTION, YES, act, passage};
use super::super::{Act, Entry, Lost, Remap, remap, restate};
use super::*;
use crate::corpus::Passage;

fn corpus(passages: &[Passage]) -> Corpus {
    let lines: String = passages.iter().map(|one| serde_json::to_string(one).unwrap() + "\n").collect();
    Corpus::carried("test", Box::leak(lines.into_bytes().into_boxed_slice()))
}

fn history(acts: &[(&str, Act)]) -> History {
    let mut history = History::default();
    for (by, act) in acts {
        let was = history.heads_of(act, by);
        history.take(Entry::new(act.clone(), by, was, 0).unwrap());
    }
    history
}

fn human(history: &History, passages: &[Passage]) -> Human {
    Human::of(history, &corpus(passages), &HashSet::from([YES]))
}

#[test]
fn most_annotators_decide_and_a_tie_is_no_label_and_is_told() {
    let acts = [
        ("anna", act(1, true)),
        ("ben", act(1, false)),
        ("cleo", act(1, true)),
        ("anna", act(2, true)),
        ("ben", act(2, false)),
        ("ben", act(3, false)),
    ];
    let human = human(&history(&acts), &[passage(1), passage(2), passage(3)]);
    let says: Vec<_> = ["p1", "p2", "p3", "p4"].map(|id| human.supports(YES, id)).into();
    assert_eq!(says, [Some(true), None, Some(false), None]);
    assert_eq!(human.supports("Zoos should be closed.", "p1"), None);
    assert_eq!(human.notes.len(), 1);
    assert!(human.notes[0].contains(": 1 on which as many"), "{:?}", human.notes);
}

#[test]
fn labels_of_passages_that_are_gone_or_changed_and_of_edited_statements_are_told_and_do_not_count() {
    let changed = Passage { text: "Rewritten.".into(), ..passage(2) };
    let mut edited = act(3, true);
    edited.view.answers = BTreeMap::from([("Zoos must be banned.".to_owned(), true)]);
    let history = history(&[("anna", act(1, true)), ("anna", act(2, true)), ("anna", edited)]);
    let human = human(&history, &[changed, passage(3)]);
    assert_eq!(["p1", "p2", "p3"].map(|id| human.supports(YES, id)), [None; 3]);
    assert_eq!(human.notes.len(), 3);
    for (note, words) in human.notes.iter().zip(["does not hold", "text has changed", "word for word"]) {
        assert!(note.contains(": 1 of ") && note.contains(words), "{note}");
    }
}

#[test]
fn a_decision_counts_at_once_and_a_cleared_one_no_longer() {
    let mut history = history(&[("anna", act(1, true)), ("ben", act(1, true))]);
    let mut human = human(&history, &[passage(1)]);
    let key = Key { by: "anna".into(), question: QUESTION.into(), passage: "p1".into() };
    for (answers, expected) in [
        (BTreeMap::from([(YES.to_owned(), false)]), None),
        (BTreeMap::new(), Some(true)),
        (BTreeMap::from([(YES.to_owned(), true)]), Some(true)),
    ] {
        let mut act = act(1, true);
        act.view.answers = answers;
        let was = history.heads_of(&act, "anna");
        history.take(Entry::new(act, "anna", was, 9).unwrap());
        human.decided(&key, history.decisions_on(&key));
        assert_eq!(human.supports(YES, "p1"), expected);
    }
}

#[test]
fn a_label_follows_the_text_of_its_passage_and_what_cannot_follow_is_listed() {
    let history = history(&[
        ("anna", act(1, true)),
        ("anna", act(2, false)),
        ("anna", act(3, true)),
        ("anna", act(4, false)),
    ]);
    // 1 has another id, 2 is gone, 3 stayed; the text of 4 is now where another label is.
    let renamed = Passage { id: "new".into(), ..passage(1) };
    let swapped = [Passage { id: "p3".into(), ..passage(4) }, Passage { id: "p5".into(), ..passage(3) }];
    let found = remap(&history, &corpus(&[renamed, swapped[0].clone(), swapped[1].clone()]));
    let moves: Vec<_> =
        found.moves.iter().map(|(key, act)| (key.passage.as_str(), act.passage.as_str())).collect();
    assert_eq!(moves, [("p1", "new"), ("p3", "p5")]);
    let lost: Vec<_> = found.lost.iter().map(|(key, why)| (key.passage.as_str(), *why)).collect();
    assert_eq!(lost, [("p2", Lost::NoSuchText), ("p4", Lost::Otherwise)]);

    let folder = tempfile::tempdir().unwrap();
    let mut journal = super::super::testing::open(&folder.path().join("anna.jsonl"));
    journal.append(act(1, true)).unwrap();
    let (key, act) = &found.moves[0];
    journal.retie(key, act.clone()).unwrap();
    let passages: Vec<&str> = journal.history().keys().map(|key| key.passage.as_str()).collect();
    assert_eq!((passages, journal.history().len()), (vec!["new"], 2));
    // Undone, it is under its old id no longer, but nothing is lost from the journal.
    assert!(
        remap(journal.history(), &corpus(&[Passage { id: "new".into(), ..passage(1) }])).moves.is_empty()
    );
}

#[test]
fn a_reworded_statement_takes_its_labels_along_when_somebody_says_so() {
    let history = history(&[("anna", act(1, true)), ("ben", act(2, false))]);
    let Remap { moves, lost } = restate(&history, YES, "Ban zoos.");
    assert!(lost.is_empty());
    assert_eq!(moves.len(), 2);
    assert_eq!(moves[1].1.view.answers, BTreeMap::from([("Ban zoos.".to_owned(), false)]));
    assert_eq!(restate(&history, "Never asked.", "Ban zoos.").moves, []);
}

#[test]
fn journals_of_a_folder_are_one_and_a_file_that_is_none_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name);
    super::super::testing::open(&path("anna.jsonl")).append(act(1, true)).unwrap();
    fs::copy(path("anna.jsonl"), path("copy.jsonl")).unwrap();
    fs::write(path("pool.jsonl"), "{}\n").unwrap();
    let (history, notes) = journals(&[folder.path().into()]).unwrap();
    assert_eq!((history.len(), notes.len()), (1, 0));
    fs::write(path("notes.jsonl"), "my notes\n").unwrap();
    let (_, notes) = journals(&[folder.path().into()]).unwrap();
    assert!(notes[0].contains("1 line damaged"), "{notes:?}");
    let told = journals(&[path("notes.jsonl")]).unwrap_err().to_string();
    assert!(told.contains("notes.jsonl:1: expected a journal's line"), "{told}");
    assert!(journals(&[path("absent.jsonl")]).unwrap_err().to_string().contains("no such file"));
}
