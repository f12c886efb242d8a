//! Turns imported decisions into entries of a journal, moves labels to a passage's new id or to a statement's new wording, and finds labels of
//! statements that were never on screen.

use std::collections::{BTreeMap, HashMap, HashSet};

use super::entry::{Act, Decision, Entry, Key, Seen, View, text_hash};
use super::history::History;
use crate::corpus::{Corpus, PassageIx};
use crate::question::Question;

/// The entries that add `decisions` to a history: one for each passage, dated as its latest decision. Views that would not change get no
/// entry, unless `decisions` have their time or circumstances, which were unknown. If the statements of one passage have different notes,
/// the view has all of them, one per line. Labels of statements without a decision stay, if they are about the same text and no machines
/// disagree on them.
///
/// # Errors
/// Those of writing JSON, which do not occur with texts.
pub fn entries(decisions: &[Decision], history: &History) -> serde_json::Result<Vec<Entry>> {
    let mut views: BTreeMap<(&str, &str, &str), Vec<&Decision>> = BTreeMap::new();
    for one in decisions {
        views.entry((&one.by, &one.question, &one.passage)).or_default().push(one);
    }
    let mut entries = Vec::new();
    for ((by, question, passage), mut said) in views {
        // The later of two decisions on one statement counts.
        said.sort_by_key(|one| one.at);
        let key = Key { by: by.into(), question: question.into(), passage: passage.into() };
        let heads = history.heads(&key);
        // An earlier view stays only if it is about the same text.
        let same = |head: &&&Entry| said.iter().all(|one| one.text == head.text);
        let before = heads.last().filter(same).map(|head| head.view.clone()).unwrap_or_default();
        let mut view = before.clone();
        // Where two machines disagree, the file decides only what it names.
        view.answers.retain(|statement, supports| {
            heads.iter().all(|head| head.view.answers.get(statement) == Some(supports))
        });
        let decided = view.answers.clone();
        view.evidence.retain(|statement, _| decided.contains_key(statement));
        view.skipped = false;
        let mut notes: Vec<&str> = Vec::new();
        for one in &said {
            view.answers.insert(one.perspective.clone(), one.supports);
            if let Some(evidence) = &one.evidence {
                view.evidence.insert(one.perspective.clone(), evidence.clone());
            }
            notes.extend(one.note.as_deref().filter(|note| !notes.contains(note)));
        }
        if !notes.is_empty() {
            view.note = Some(notes.join("\n"));
        }
        // Most formats cannot hold this mark, so a missing mark does not remove one.
        view.flagged |= said.iter().any(|one| one.flagged);
        let mut took = said.iter().filter_map(|one| one.took).max();
        let mut seen = circumstances(said.iter().map(|one| &one.seen));
        let Some(last) = said.last() else { continue };
        let mut at = last.at;
        if view == before && heads.len() <= 1 {
            // The file may still bring the time and the circumstances of these labels, if they came without.
            let Some(held) = heads.last() else { continue };
            let bare = held.took.is_none() && held.seen.is_none();
            let whole = view.answers.keys().all(|own| said.iter().any(|one| one.perspective == *own));
            let adds = took.is_some() && held.took.is_none() || seen.is_some() && held.seen.is_none();
            if !(adds && whole && (bare || held.at == at)) {
                continue;
            }
            (took, seen, at) = (held.took.or(took), held.seen.clone().or(seen), at.max(held.at));
        }
        let was = heads.iter().map(|head| head.id.clone()).collect();
        let act = Act {
            question: question.into(),
            passage: passage.into(),
            text: last.text.clone(),
            view,
            took,
            seen,
        };
        entries.push(Entry::new(act, by, was, at)?);
    }
    Ok(entries)
}

/// Brings a name closer to a journal's: at most 60 characters, those that a file name should not have as `-`, none of `-_.` in front. Nothing
/// may be left, so check it with `is_name`.
pub fn name_for_journal(name: &str) -> String {
    let kept = |c: char| c.is_alphanumeric() || "-_.".contains(c);
    let name: String = name.chars().take(60).map(|c| if kept(c) { c } else { '-' }).collect();
    name.trim_start_matches(['-', '_', '.']).to_owned()
}

/// Why a label cannot be moved.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Lost {
    /// No passage of the corpus has its text.
    NoSuchText,
    /// The annotator has a different label at the new place.
    OtherLabel,
    /// Two machines of the annotator disagree; the annotator must decide first.
    Conflict,
}

/// The labels that can move, and those that cannot.
#[derive(Clone, Debug, Default)]
pub struct Remap {
    /// The old key of each label, and the action that moves it.
    pub moves: Vec<(Key, Act)>,
    /// The labels that cannot be moved.
    pub lost: Vec<(Key, Lost)>,
}

/// Finds the labels whose text the corpus now has under another id, or under none.
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
        // The first of equal texts counts.
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
            found.lost.push((key.clone(), Lost::OtherLabel));
            continue;
        }
        let (took, seen) = (first.took, first.seen.clone());
        let act = Act { question: key.question.clone(), passage, text, view: view.clone(), took, seen };
        found.moves.push((key.clone(), act));
    }
    found
}

/// Moves the labels of the statement `from` to the statement `to`. The user must know that both mean the same.
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
            found.lost.push((key.clone(), Lost::OtherLabel));
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
        let (took, seen) = (first.took, first.seen.clone());
        found.moves.push((key.clone(), Act { question, passage, text, view, took, seen }));
    }
    found
}

/// The circumstances of several decisions on one passage: known if they are the same for all.
fn circumstances<'a>(all: impl IntoIterator<Item = &'a Option<Seen>>) -> Option<Seen> {
    let mut all = all.into_iter();
    let first = all.next()?;
    all.all(|one| one == first).then(|| first.clone())?
}

/// The number of statements that earlier versions of the labelling screen showed.
pub const ONCE_SHOWN: usize = 9;

/// Finds the labels of statements that were never on screen, and the actions that take them back. Earlier versions showed the first nine
/// statements of a question and stored *no* for all others. Such an entry has a *no* for every statement after the ninth, and either lacks
/// the circumstances, which later versions store, or labels more statements at once than a screen shows, as the lanes did.
pub fn unseen(history: &History, questions: &[Question]) -> Vec<(Key, Act, usize)> {
    let mut found = Vec::new();
    for question in questions.iter().filter(|question| question.perspectives.len() > ONCE_SHOWN) {
        for key in history.keys().filter(|key| key.question == question.text) {
            let heads = history.heads(key);
            let (Some(first), Some(view)) = (heads.first(), history.view(key)) else { continue };
            let further = &question.perspectives[ONCE_SHOWN..];
            let is_no = |statement: &String| view.answers.get(statement) == Some(&false);
            let at_once = |head: &&Entry| {
                let before: HashSet<&String> = head
                    .was
                    .iter()
                    .filter_map(|id| history.entry(id))
                    .flat_map(|was| was.view.answers.keys())
                    .collect();
                head.view.answers.keys().filter(|statement| !before.contains(statement)).count() > ONCE_SHOWN
            };
            let seen = heads.iter().any(|head| head.seen.is_some() && !at_once(head));
            if seen || !further.iter().all(is_no) {
                continue;
            }
            let mut view = view.clone();
            view.answers.retain(|statement, _| !further.contains(statement));
            let (question, passage, text) = (key.question.clone(), key.passage.clone(), first.text.clone());
            let act = Act { question, passage, text, view, took: first.took, seen: None };
            found.push((key.clone(), act, further.len()));
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::annotate::is_name;
    use crate::annotate::testing::{YES, act, corpus, decision, history as acted, open, passage};
    use crate::corpus::Passage;

    fn history(entries: Vec<Entry>) -> History {
        let mut history = History::default();
        for entry in entries {
            history.take(entry);
        }
        history
    }

    #[test]
    fn decisions_come_out_of_the_journal_as_they_went_in() {
        let other = Decision {
            perspective: "No.".into(),
            evidence: Some("x".into()),
            ..decision("anna", "Q?", 1, false)
        };
        let decisions = vec![other, decision("anna", "Q?", 1, true), decision("ben", "Q?", 1, true)];
        let entries = entries(&decisions, &History::default()).unwrap();
        assert_eq!(entries.len(), 2);
        assert_eq!(history(entries).decisions(), decisions);
    }

    #[test]
    fn the_same_file_twice_adds_nothing_and_another_label_takes_the_place_of_the_first() {
        let first = vec![
            decision("anna", "Q?", 1, true),
            Decision { perspective: "No.".into(), ..decision("anna", "Q?", 1, false) },
        ];
        let mut standing = history(entries(&first, &History::default()).unwrap());
        assert!(entries(&first, &standing).unwrap().is_empty());
        let turned =
            Decision { at: 9, note: Some("on second thoughts".into()), ..decision("anna", "Q?", 1, false) };
        for entry in entries(std::slice::from_ref(&turned), &standing).unwrap() {
            standing.take(entry);
        }
        assert!(standing.conflicts().is_empty());
        let now = standing.decisions();
        assert_eq!(now.len(), 2);
        assert!(now.iter().all(|one| !one.supports && one.at == 9));
    }

    #[test]
    fn a_file_with_the_circumstances_of_labels_that_came_without_adds_them_once() {
        let bare = vec![decision("anna", "Q?", 1, true)];
        let mut standing = history(entries(&bare, &History::default()).unwrap());
        let seen = Some(Seen { settles: Some("the study decides".into()), ..Seen::default() });
        let whole = Decision { took: Some(4_000), seen: seen.clone(), ..bare[0].clone() };
        for entry in entries(std::slice::from_ref(&whole), &standing).unwrap() {
            standing.take(entry);
        }
        let now = standing.decisions();
        assert_eq!((now.len(), now[0].took, now[0].seen.clone()), (1, Some(4_000), seen.clone()));
        assert!(entries(std::slice::from_ref(&whole), &standing).unwrap().is_empty());
        // A label decided anew under other circumstances keeps them, whatever an older file says.
        let later = Decision {
            at: 9,
            took: None,
            seen: Some(Seen { blind: true, ..Seen::default() }),
            ..bare[0].clone()
        };
        let standing = history(entries(&[later], &History::default()).unwrap());
        assert!(entries(std::slice::from_ref(&whole), &standing).unwrap().is_empty());
        // The time of the same decision is added to its circumstances.
        let untimed = Decision { took: None, ..whole.clone() };
        let standing = history(entries(&[untimed], &History::default()).unwrap());
        let timed = entries(&[Decision { seen: None, ..whole }], &standing).unwrap();
        assert_eq!((timed[0].took, timed[0].seen.clone()), (Some(4_000), seen));
    }

    #[test]
    fn an_import_settles_a_conflict_of_two_machines_only_where_it_has_a_label() {
        let two = |first: bool, second: bool| {
            let mut one = act(1, first);
            one.view.answers.insert("No.".into(), second);
            Entry::new(one, "anna", Vec::new(), u64::from(first)).unwrap()
        };
        let standing = history(vec![two(true, false), two(false, true)]);
        let mut named = decision("anna", crate::annotate::testing::QUESTION, 1, true);
        (named.text, named.perspective) = (text_hash(&passage(1)), YES.into());
        let entries = entries(&[named], &standing).unwrap();
        assert_eq!(entries[0].view.answers, BTreeMap::from([(YES.to_owned(), true)]));
        assert_eq!(entries[0].was.len(), 2);
    }

    #[test]
    fn different_notes_on_the_statements_of_a_passage_are_all_kept() {
        let note = |text: &str, statement: &str| Decision {
            note: Some(text.into()),
            perspective: statement.into(),
            ..decision("anna", "Q?", 1, true)
        };
        let decisions = [note("a", "Yes."), note("b", "No."), note("a", "Perhaps.")];
        let entries = entries(&decisions, &History::default()).unwrap();
        assert_eq!(entries[0].view.note.as_deref(), Some("a\nb"));
    }

    #[test]
    fn an_address_becomes_a_journals_name_and_a_good_name_stays() {
        assert_eq!(name_for_journal("b@example.org"), "b-example.org");
        for name in ["anna", "4f1b6b8e-0000-4000-8000-000000000001", "Žofie_2"] {
            assert_eq!(name_for_journal(name), name);
            assert!(is_name(name), "{name}");
        }
        assert!(!is_name(&name_for_journal("@@")));
    }

    #[test]
    fn a_label_follows_the_text_of_its_passage_and_what_cannot_follow_is_listed() {
        let history = acted(&[
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
        assert_eq!(lost, [("p2", Lost::NoSuchText), ("p4", Lost::OtherLabel)]);

        let folder = tempfile::tempdir().unwrap();
        let mut journal = open(&folder.path().join("anna.jsonl"));
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
    fn a_no_of_statements_that_were_never_on_screen_is_found_and_taken_back() {
        let statements: Vec<String> = (0..42).map(|n| format!("Statement {n:02}.")).collect();
        let question =
            Question { text: "Which?".into(), perspectives: statements.clone(), ..Question::default() };
        let label = |n: usize, yes: &[usize], count: usize| {
            let answers = (0..count).map(|i| (statements[i].clone(), yes.contains(&i))).collect();
            Act { question: "Which?".into(), view: View { answers, ..View::default() }, ..act(n, true) }
        };
        let with = |act: Act| {
            let seen = Seen { blind: false, guidelines: "g".into(), settles: None, again: false };
            ("anna", Act { seen: Some(seen), ..act })
        };
        let mut acts = vec![
            ("anna", label(1, &[2], 42)),
            // Somebody said yes to a statement after the ninth, so that they were shown.
            ("anna", label(2, &[2, 30], 42)),
            ("anna", label(3, &[2], 9)),
            // More at once than the lanes showed.
            with(label(4, &[2], 42)),
        ];
        // Page by page, as they were on screen.
        acts.extend([9, 18, 27, 36, 42].map(|count| with(label(5, &[2], count))));
        let found = unseen(&acted(&acts), std::slice::from_ref(&question));
        let [(key, act, count), (of_lanes, ..)] = found.as_slice() else { panic!("{found:?}") };
        assert_eq!(of_lanes.passage, "p4");
        assert_eq!((key.passage.as_str(), act.view.answers.len(), *count), ("p1", 9, 33));
        assert!(act.view.answers["Statement 02."] && !act.view.answers["Statement 08."]);

        let folder = tempfile::tempdir().unwrap();
        let mut journal = open(&folder.path().join("anna.jsonl"));
        journal.append(label(1, &[2], 42)).unwrap();
        journal.retie(key, act.clone()).unwrap();
        assert_eq!(journal.history().decisions().len(), 9);
        assert_eq!(unseen(journal.history(), &[question]), []);
    }

    #[test]
    fn a_reworded_statement_takes_its_labels_along_when_somebody_says_so() {
        let history = acted(&[("anna", act(1, true)), ("ben", act(2, false))]);
        let Remap { moves, lost } = restate(&history, YES, "Ban zoos.");
        assert!(lost.is_empty());
        assert_eq!(moves.len(), 2);
        assert_eq!(moves[1].1.view.answers, BTreeMap::from([("Ban zoos.".to_owned(), false)]));
        assert_eq!(restate(&history, "Never asked.", "Ban zoos.").moves, []);
    }
}
