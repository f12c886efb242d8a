//! Decisions from elsewhere as entries of a journal.
//!
//! A journal has one view of a passage under a question, with all its statements; a decision is of one statement. What the file
//! says is laid over what stands, so that a label of a statement which the file does not name is kept.

use std::collections::BTreeMap;

use super::{Act, Decision, Entry, History, Key};

/// The entries that bring `decisions` into a history, each with its own date; none for a view that says the same already. Where the
/// statements of one passage have different notes, the view has all of them, a line each.
///
/// # Errors
/// Never on texts; it is what writing JSON may say.
pub fn entries(decisions: &[Decision], history: &History) -> serde_json::Result<Vec<Entry>> {
    let mut views: BTreeMap<(&str, &str, &str), Vec<&Decision>> = BTreeMap::new();
    for one in decisions {
        views.entry((&one.by, &one.question, &one.passage)).or_default().push(one);
    }
    let mut made = Vec::new();
    for ((by, question, passage), mut said) in views {
        // The latest has the last word.
        said.sort_by_key(|one| one.at);
        let key = Key { by: by.into(), question: question.into(), passage: passage.into() };
        let heads = history.heads(&key);
        // What was decided on another text is not carried over to this one.
        let same = |head: &&&Entry| said.iter().all(|one| one.text == head.text);
        let before = heads.last().filter(same).map(|head| head.view.clone()).unwrap_or_default();
        let mut view = before.clone();
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
        // Most formats have no such mark, so its absence takes none away.
        view.flagged |= said.iter().any(|one| one.flagged);
        let Some(last) = said.last().filter(|_| view != before || heads.len() > 1) else { continue };
        let was = heads.iter().map(|head| head.id.clone()).collect();
        let took = said.iter().filter_map(|one| one.took).max();
        let act =
            Act { question: question.into(), passage: passage.into(), text: last.text.clone(), view, took };
        made.push(Entry::new(act, by, was, last.at)?);
    }
    Ok(made)
}

/// A name as a journal may have it: every sign that no file's name should have becomes `-`.
pub fn name_for_journal(name: &str) -> String {
    let kept = |c: char| c.is_alphanumeric() || "-_.".contains(c);
    let name: String = name.chars().take(60).map(|c| if kept(c) { c } else { '-' }).collect();
    name.trim_start_matches(['-', '_', '.']).to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::annotate::agree::tests::said;
    use crate::annotate::is_name;

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
            ..said("anna", "Q?", 1, false)
        };
        let decisions = vec![other, said("anna", "Q?", 1, true), said("ben", "Q?", 1, true)];
        let entries = entries(&decisions, &History::default()).unwrap();
        assert_eq!(entries.len(), 2);
        assert_eq!(history(entries).decisions(), decisions);
    }

    #[test]
    fn the_same_file_twice_adds_nothing_and_another_label_takes_the_place_of_the_first() {
        let first = vec![
            said("anna", "Q?", 1, true),
            Decision { perspective: "No.".into(), ..said("anna", "Q?", 1, false) },
        ];
        let mut standing = history(entries(&first, &History::default()).unwrap());
        assert!(entries(&first, &standing).unwrap().is_empty());
        let turned =
            Decision { at: 9, note: Some("on second thoughts".into()), ..said("anna", "Q?", 1, false) };
        for entry in entries(std::slice::from_ref(&turned), &standing).unwrap() {
            standing.take(entry);
        }
        assert!(standing.conflicts().is_empty());
        let now = standing.decisions();
        assert_eq!(now.len(), 2);
        assert!(now.iter().all(|one| !one.supports && one.at == 9));
    }

    #[test]
    fn different_notes_on_the_statements_of_a_passage_are_all_kept() {
        let note = |text: &str, statement: &str| Decision {
            note: Some(text.into()),
            perspective: statement.into(),
            ..said("anna", "Q?", 1, true)
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
}
