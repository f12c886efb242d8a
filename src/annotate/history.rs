//! The union of journals: the entries that count now, and the action that undo restores.
//!
//! Which entries are current follows from the ids that each entry replaces, not from a clock, so histories of several machines merge to the
//! same current entries in any order. The clock only orders current entries of one key. Must not read or write files.

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};

use super::entry::{Act, Decision, Entry, Key, Seen, View};

/// Entries of any number of annotators.
#[derive(Clone, Debug, Default)]
pub struct History {
    entries: HashMap<String, Entry>,
    /// Ids in the order they were added.
    order: Vec<String>,
    /// Ids in the `was` of some entry.
    replaced: HashSet<String>,
    heads: BTreeMap<Key, BTreeSet<String>>,
}

impl History {
    /// Adds an entry; returns whether it is new.
    pub fn take(&mut self, entry: Entry) -> bool {
        if self.entries.contains_key(&entry.id) {
            return false;
        }
        for was in &entry.was {
            self.replaced.insert(was.clone());
            // If the passage's id has changed, its earlier label has another key.
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

    /// Adds all entries of another history.
    pub fn merge(&mut self, other: &History) {
        for entry in other.entries() {
            self.take(entry.clone());
        }
    }

    /// All entries, in the order they were added.
    pub fn entries(&self) -> impl Iterator<Item = &Entry> {
        self.order.iter().filter_map(|id| self.entries.get(id))
    }

    /// The entry with this id.
    pub fn entry(&self, id: &str) -> Option<&Entry> {
        self.entries.get(id)
    }

    /// The number of entries.
    pub fn len(&self) -> usize {
        self.entries.len()
    }

    /// Whether there are no entries.
    pub fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    /// The current entries of a key, earliest first: none, one, or several if machines disagree.
    pub fn heads(&self, key: &Key) -> Vec<&Entry> {
        let mut heads: Vec<&Entry> =
            self.heads.get(key).into_iter().flatten().filter_map(|id| self.entries.get(id)).collect();
        heads.sort_by(|a, b| (a.at, &a.id).cmp(&(b.at, &b.id)));
        heads
    }

    /// The current view of a key; `None` if there is no entry, or two machines disagree.
    pub fn view(&self, key: &Key) -> Option<&View> {
        let heads = self.heads(key);
        let first = &heads.first()?.view;
        heads.iter().all(|head| head.view == *first).then_some(first)
    }

    /// Every key with a current entry.
    pub fn keys(&self) -> impl Iterator<Item = &Key> {
        self.heads.keys()
    }

    /// The keys on which two machines of one annotator disagree; [`History::heads`] has both views. Only that annotator can decide which
    /// one is right.
    pub fn conflicts(&self) -> Vec<&Key> {
        self.keys().filter(|key| self.view(key).is_none()).collect()
    }

    /// The ids of the entries that an action of `by` replaces.
    pub(super) fn heads_of(&self, act: &Act, by: &str) -> Vec<String> {
        let key = Key { by: by.into(), question: act.question.clone(), passage: act.passage.clone() };
        self.heads(&key).into_iter().map(|head| head.id.clone()).collect()
    }

    /// The decisions on one key, for the statements on which all current entries agree.
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
            seen: first.seen.clone(),
        };
        agreed.map(decision).collect()
    }

    /// How often each annotator gave the same label when a passage came a second time: by annotator, the equal labels and all that were repeated.
    pub fn repeated(&self) -> BTreeMap<&str, (usize, usize)> {
        let again = |entry: &&Entry| entry.seen.as_ref().is_some_and(|seen| seen.again);
        let mut counts: BTreeMap<&str, (usize, usize)> = BTreeMap::new();
        for second in self.keys().flat_map(|key| self.heads(key)).filter(again) {
            // Back to the last decision before the passage came again.
            let mut first = Some(second);
            while let Some(entry) = first.filter(again) {
                let was = entry.was.iter().filter_map(|id| self.entries.get(id));
                first = was.filter(|was| was.key() == second.key()).max_by_key(|was| (was.at, &was.id));
            }
            let Some(first) = first else { continue };
            let (same, all) = counts.entry(&second.by).or_default();
            for (statement, supports) in &second.view.answers {
                if let Some(before) = first.view.answers.get(statement) {
                    *same += usize::from(before == supports);
                    *all += 1;
                }
            }
        }
        counts
    }

    /// All current decisions.
    pub fn decisions(&self) -> Vec<Decision> {
        self.keys().flat_map(|key| self.decisions_on(key)).collect()
    }
}

/// A view with the circumstances under which it was decided.
pub(super) type Decided = (View, Option<Seen>);

/// One action, and the view before it.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Step {
    /// `None` if two views were in conflict, because undo does not restore conflicts.
    before: Option<Decided>,
    after: Act,
}

/// The actions of one annotator that can be undone and redone.
#[derive(Clone, Debug, Default)]
pub struct Steps {
    past: Vec<Step>,
    future: Vec<Step>,
}

impl Steps {
    /// All actions of an annotator so far, including those of earlier runs.
    pub fn of(history: &History, by: &str) -> Self {
        let mut steps = Steps::default();
        for entry in history.entries().filter(|entry| entry.by == by) {
            let before = entry.was.iter().filter_map(|id| history.entry(id));
            let mut before = before.filter(|was| was.key() == entry.key());
            let first = before.next().map(|was| (was.view.clone(), was.seen.clone())).unwrap_or_default();
            let was_conflict = before.any(|other| other.view != first.0);
            // Entries written by undo and redo have no time taken.
            let restores = |act: &Act| {
                act.view == entry.view && act.passage == entry.passage && act.question == entry.question
            };
            if entry.took.is_none() && steps.to_undo().is_some_and(|act| restores(&act)) {
                steps.undone();
            } else if entry.took.is_none() && steps.to_redo().is_some_and(|act| restores(&act)) {
                steps.redone();
            } else {
                steps.did((!was_conflict).then_some(first), entry);
            }
        }
        steps
    }

    /// Records a new action. Undone actions can no longer be redone.
    pub(super) fn did(&mut self, before: Option<Decided>, entry: &Entry) {
        self.future.clear();
        self.push(before, entry);
    }

    fn push(&mut self, before: Option<Decided>, entry: &Entry) {
        let after = Act {
            question: entry.question.clone(),
            passage: entry.passage.clone(),
            text: entry.text.clone(),
            view: entry.view.clone(),
            took: None,
            seen: entry.seen.clone(),
        };
        self.past.push(Step { before, after });
    }

    /// The action that undoes the last one.
    pub(super) fn to_undo(&self) -> Option<Act> {
        let step = self.past.last()?;
        let (view, seen) = step.before.clone()?;
        Some(Act { view, seen, ..step.after.clone() })
    }

    /// The action that redoes the last undone one.
    pub(super) fn to_redo(&self) -> Option<Act> {
        self.future.last().map(|step| step.after.clone())
    }

    /// Records that the last action was undone.
    pub(super) fn undone(&mut self) {
        self.future.extend(self.past.pop());
    }

    /// Records that the last undone action was redone.
    pub(super) fn redone(&mut self) {
        self.past.extend(self.future.pop());
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::annotate::testing::{QUESTION, YES, act};
    use crate::measure::seeded::SplitMix64;

    /// A machine appends: the entry supersedes the heads that it knows.
    fn write(history: &mut History, by: &str, n: usize, supports: bool, at: u64) {
        let act = act(n, supports);
        let was = history.heads_of(&act, by);
        history.take(Entry::new(act, by, was, at).unwrap());
    }

    /// Machines that write and now and then take over what others have.
    fn drawn(rng: &mut SplitMix64) -> Vec<History> {
        let mut machines = vec![History::default(); 3];
        for _ in 0..40 {
            let one = rng.below(3);
            if rng.below(5) == 0 {
                let other = machines[rng.below(3)].clone();
                machines[one].merge(&other);
            } else {
                let by = ["anna", "ben"][rng.below(2)];
                // Clocks that say anything.
                let (n, supports, at) = (rng.below(4), rng.coin(), rng.below(1000) as u64);
                write(&mut machines[one], by, n, supports, at);
            }
        }
        machines
    }

    /// Everything that can be asked of a history, whatever the order in which it came.
    fn all(history: &History) -> String {
        let mut ids: Vec<&str> = history.entries().map(|entry| entry.id.as_str()).collect();
        ids.sort_unstable();
        let heads: Vec<_> = history
            .keys()
            .map(|key| (key, history.heads(key), history.view(key), history.decisions_on(key)))
            .collect();
        format!("{ids:?} {heads:?}")
    }

    #[test]
    fn the_order_of_a_merge_does_not_matter_nothing_is_lost_and_twice_is_as_good_as_once() {
        let mut rng = SplitMix64::new(11);
        for _ in 0..200 {
            let machines = drawn(&mut rng);
            let mut merged = History::default();
            machines.iter().for_each(|machine| merged.merge(machine));
            // Line by line in any order, some of them twice.
            let mut entries: Vec<Entry> = machines.iter().flat_map(History::entries).cloned().collect();
            for _ in 0..3 {
                rng.shuffle(&mut entries);
                let mut other = History::default();
                for entry in &entries {
                    other.take(entry.clone());
                }
                assert_eq!(all(&other), all(&merged));
            }
            // In two halves, the other way round.
            let mut late = machines[2].clone();
            late.merge(&machines[1]);
            late.merge(&machines[0]);
            late.merge(&merged);
            assert_eq!(all(&late), all(&merged));
            for machine in &machines {
                assert!(machine.entries().all(|entry| merged.entry(&entry.id) == Some(entry)));
            }
            // Current entries are those that nothing replaces, and every key that was ever written has one.
            let standing: usize = merged.keys().map(|key| merged.heads(key).len()).sum();
            let replaced: HashSet<&String> = merged.entries().flat_map(|entry| &entry.was).collect();
            assert_eq!(standing, merged.len() - replaced.len());
            assert!(merged.entries().all(|entry| !merged.heads(&entry.key()).is_empty()));
        }
    }

    #[test]
    fn two_machines_that_disagree_are_a_conflict_that_is_kept_and_an_act_settles_it() {
        let (mut here, mut there) = (History::default(), History::default());
        write(&mut here, "anna", 1, true, 5);
        there.merge(&here);
        write(&mut here, "anna", 1, false, 6);
        write(&mut there, "anna", 1, true, 7);
        write(&mut there, "ben", 1, true, 7);
        here.merge(&there);
        let key = Key { by: "anna".into(), question: QUESTION.into(), passage: "p1".into() };
        assert_eq!((here.conflicts(), here.heads(&key).len(), here.view(&key)), (vec![&key], 2, None));
        // Neither of the two counts; another annotator's does.
        let by: Vec<String> = here.decisions().into_iter().map(|decision| decision.by).collect();
        assert_eq!(by, ["ben"]);
        write(&mut here, "anna", 1, false, 1);
        assert!(here.conflicts().is_empty());
        assert!(!here.decisions_on(&key)[0].supports);
        assert_eq!(here.len(), 5);
    }

    #[test]
    fn a_label_given_again_is_compared_with_the_one_before() {
        let mut history = History::default();
        let mut say = |n: usize, supports: bool, again: bool| {
            let seen = Some(Seen { again, ..Seen::default() });
            let act = Act { seen, ..act(n, supports) };
            let was = history.heads_of(&act, "anna");
            history.take(Entry::new(act, "anna", was, 0).unwrap());
        };
        for (n, first, second) in [(1, true, true), (2, true, false), (3, false, false)] {
            say(n, first, false);
            say(n, second, true);
        }
        // Decided a third time, as after an undo; and one that came once.
        say(3, true, true);
        say(4, true, false);
        assert_eq!(history.repeated(), BTreeMap::from([("anna", (1, 3))]));
    }

    #[test]
    fn two_machines_that_agree_are_no_conflict() {
        let (mut here, mut there) = (History::default(), History::default());
        write(&mut here, "anna", 1, true, 5);
        write(&mut there, "anna", 1, true, 6);
        here.merge(&there);
        assert!(here.conflicts().is_empty() && here.len() == 2);
        let decisions = here.decisions();
        assert_eq!((decisions.len(), decisions[0].at, decisions[0].perspective.as_str()), (1, 5, YES));
    }

    #[test]
    fn an_entry_whose_replacement_was_lost_stands_again() {
        let mut whole = History::default();
        write(&mut whole, "anna", 1, true, 1);
        write(&mut whole, "anna", 1, false, 2);
        write(&mut whole, "anna", 1, true, 3);
        let mut torn = History::default();
        whole.entries().filter(|entry| entry.at != 2).for_each(|entry| assert!(torn.take(entry.clone())));
        // Nothing is known to replace the first entry, because the one that does is lost. So both are current, and they agree.
        assert!(torn.conflicts().is_empty());
        assert!(torn.decisions()[0].supports);
    }
}
