//! The labels by hand that count: a pair has the label of most annotators, or none if there is a tie.
//!
//! A decision counts only for the text that was labelled and for the exact words of its statement.

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};

use super::entry::{Decision, Key, text_hash};
use super::history::History;
use super::project::Item;
use crate::corpus::Corpus;

/// The current labels by hand.
#[derive(Clone, Debug, Default)]
pub struct Human {
    by_passage: HashMap<String, Vec<Decision>>,
    /// Notes on the labels that do not count.
    pub notes: Vec<String>,
}

impl Human {
    /// The decisions of a history on passages of this corpus. `statements` are those of the question set; empty without one.
    pub fn of(history: &History, corpus: &Corpus, statements: &HashSet<&str>) -> Self {
        let mut human = Human::default();
        let (mut gone, mut changed, mut unknown) = (0, 0, 0);
        // A passage has many labels, and is read once.
        let mut texts: HashMap<String, Option<String>> = HashMap::new();
        for decision in history.decisions() {
            let text = texts
                .entry(decision.passage.clone())
                .or_insert_with(|| corpus.find(&decision.passage).map(|at| text_hash(&corpus.passage(at))));
            match text {
                None => gone += 1,
                Some(text) if *text != decision.text => changed += 1,
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

    /// The decisions on the passages of a project's pool, with the texts that it holds.
    pub fn of_pool(decisions: impl IntoIterator<Item = Decision>, items: &[Item]) -> Self {
        let texts: HashMap<(&str, &str), String> = items
            .iter()
            .map(|item| ((item.question.as_str(), item.passage.id.as_str()), text_hash(&item.passage)))
            .collect();
        let mut human = Human::default();
        for decision in decisions {
            let text = texts.get(&(decision.question.as_str(), decision.passage.as_str()));
            if text == Some(&decision.text) {
                human.by_passage.entry(decision.passage.clone()).or_default().push(decision);
            }
        }
        human
    }

    /// The majority label of a pair; `None` without labels, and for a tie.
    pub fn supports(&self, statement: &str, passage: &str) -> Option<bool> {
        self.label(statement, passage).flatten()
    }

    /// The majority label of a pair, `Some(None)` for a tie; `None` without labels.
    pub fn label(&self, statement: &str, passage: &str) -> Option<Option<bool>> {
        let (yes, no) = self.votes(statement, passage)?;
        Some((yes != no).then_some(yes > no))
    }

    /// The number of annotators who say yes, and who say no. One who says both, under two questions, counts for neither.
    fn votes(&self, statement: &str, passage: &str) -> Option<(usize, usize)> {
        let mut voices: BTreeMap<&str, BTreeSet<bool>> = BTreeMap::new();
        let all = self.by_passage.get(passage)?.iter().filter(|one| one.perspective == statement);
        // A third decision that settles a disagreement takes the place of the first two.
        let settled = all.clone().any(Decision::settles);
        for decision in all.filter(|one| one.settles() == settled) {
            voices.entry(&decision.by).or_default().insert(decision.supports);
        }
        let say = |supports: bool| {
            voices.values().filter(|said| said.len() == 1 && said.contains(&supports)).count()
        };
        (!voices.is_empty()).then(|| (say(true), say(false)))
    }

    /// When a passage was last labelled, in milliseconds since 1970; 0 if it never was.
    pub fn labelled_at(&self, passage: &str) -> u64 {
        self.by_passage.get(passage).into_iter().flatten().map(|one| one.at).max().unwrap_or(0)
    }

    fn ties(&self) -> usize {
        let pairs: HashSet<(&str, &str)> = self.decisions().map(|d| (&*d.perspective, &*d.passage)).collect();
        pairs.into_iter().filter(|(statement, passage)| self.supports(statement, passage).is_none()).count()
    }

    /// Replaces the decisions of a key after an action; `decisions` is `history.decisions_on(key)`.
    pub fn decided(&mut self, key: &Key, decisions: Vec<Decision>) {
        let all = self.by_passage.entry(key.passage.clone()).or_default();
        all.retain(|one| one.by != key.by || one.question != key.question);
        all.extend(decisions);
    }

    /// The passages with a label of one of these statements.
    pub fn passages(&self, statements: &[String]) -> Vec<String> {
        let labelled = self
            .by_passage
            .iter()
            .filter(|(_, decisions)| decisions.iter().any(|one| statements.contains(&one.perspective)));
        labelled.map(|(passage, _)| passage.clone()).collect()
    }

    /// The pairs on which as many annotators say yes as no, with the decisions on each: to be adjudicated.
    pub fn tied(&self) -> Vec<(&str, &str, Vec<&Decision>)> {
        let pairs: BTreeSet<(&str, &str)> =
            self.decisions().map(|one| (one.perspective.as_str(), one.passage.as_str())).collect();
        let tied =
            pairs.into_iter().filter(|(statement, passage)| self.label(statement, passage) == Some(None));
        let with = |(statement, passage): (&str, &str)| -> Vec<&Decision> {
            let all = self.by_passage.get(passage).into_iter().flatten();
            all.filter(|one| one.perspective == statement).collect()
        };
        tied.map(|(statement, passage)| (statement, passage, with((statement, passage)))).collect()
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::annotate::entry::{Act, Entry, Seen};
    use crate::annotate::testing::{QUESTION, YES, act, corpus, history, passage};
    use crate::corpus::Passage;

    fn human(history: &History, passages: &[Passage]) -> Human {
        Human::of(history, &corpus(passages), &HashSet::from([YES]))
    }

    #[test]
    fn the_majority_decides_and_a_tie_is_no_label_and_is_reported() {
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
        let labelled: Vec<_> = ["p2", "p4"].map(|id| human.label(YES, id)).into();
        assert_eq!(labelled, [Some(None), None]);
        assert_eq!(human.supports("Zoos should be closed.", "p1"), None);
        assert_eq!(human.notes.len(), 1);
        assert!(human.notes[0].contains(": 1 on which as many"), "{:?}", human.notes);
    }

    #[test]
    fn a_third_decision_that_settles_a_disagreement_counts_alone() {
        let settling = |by: &'static str, yes| {
            let seen = Seen {
                blind: true,
                guidelines: "g".into(),
                settles: Some("it quotes both".into()),
                again: false,
            };
            (by, Act { seen: Some(seen), ..act(1, yes) })
        };
        let mut acts = vec![("anna", act(1, true)), ("ben", act(1, true)), ("cleo", act(1, false))];
        let label = |acts: &[(&str, Act)]| human(&history(acts), &[passage(1)]).label(YES, "p1");
        assert_eq!(label(&acts), Some(Some(true)));
        acts.push(settling("dora", false));
        assert_eq!(label(&acts), Some(Some(false)));
        acts.push(settling("emil", true));
        assert_eq!(label(&acts), Some(None), "two adjudicators who disagree settle nothing");
        let human = human(&history(&acts), &[passage(1)]);
        let tied = human.tied();
        assert_eq!((tied.len(), tied[0].0, tied[0].1, tied[0].2.len()), (1, YES, "p1", 5));
    }

    #[test]
    fn labels_of_missing_or_changed_passages_and_edited_statements_are_reported_and_do_not_count() {
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
}
