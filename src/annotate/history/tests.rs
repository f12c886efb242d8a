//! Merging, by property.

use super::super::testing::{QUESTION, YES, act};
use super::*;
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
        // What stands is what nothing replaces, and every key that was ever written has something that stands.
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
    // The first is still replaced by the lost one only as far as anybody knows: both stand, and they agree.
    assert!(torn.conflicts().is_empty());
    assert!(torn.decisions()[0].supports);
}
