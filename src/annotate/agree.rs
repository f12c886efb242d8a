//! Agreement between annotators and with the detector, and the queue of disagreements.
//!
//! Pure functions over decisions. The detector counts as one more annotator. Must not read files.

use std::collections::btree_map::Entry;
use std::collections::{BTreeMap, BTreeSet};

use super::entry::Decision;
use super::material::Model;
use crate::measure::agreement::{Agreement, cohen_kappa, krippendorff_alpha};

/// Two annotators' labels of the same items.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Confusion {
    /// Both said yes.
    pub yes_yes: usize,
    /// The first said yes, the second no.
    pub yes_no: usize,
    /// The first said no, the second yes.
    pub no_yes: usize,
    /// Both said no.
    pub no_no: usize,
}

impl Confusion {
    /// Counts pairs of labels.
    pub fn of(pairs: &[(bool, bool)]) -> Self {
        let count = |pair| pairs.iter().filter(|one| **one == pair).count();
        Confusion {
            yes_yes: count((true, true)),
            yes_no: count((true, false)),
            no_yes: count((false, true)),
            no_no: count((false, false)),
        }
    }

    /// Items that both labelled.
    pub fn n(&self) -> usize {
        self.yes_yes + self.yes_no + self.no_yes + self.no_no
    }

    /// The share of items on which they agree; `None` if there are no items.
    pub fn agreed(&self) -> Option<f64> {
        (self.n() > 0).then(|| (self.yes_yes + self.no_no) as f64 / self.n() as f64)
    }
}

/// The labels and times of one annotator.
#[derive(Clone, Debug, PartialEq)]
pub struct Annotator {
    /// The name, or the detector's key.
    pub name: String,
    /// The number of labels.
    pub labels: usize,
    /// The number of labels that are yes.
    pub yes: usize,
    /// Labels marked for another look.
    pub flagged: usize,
    /// Passages whose time was measured. A passage is read once for all its statements.
    pub timed: usize,
    /// The median time of these passages, in milliseconds.
    pub median_ms: Option<f64>,
    /// The mean time of these passages, in milliseconds.
    pub mean_ms: Option<f64>,
}

/// The agreement of two annotators.
#[derive(Clone, Debug, PartialEq)]
pub struct Pair {
    /// The first.
    pub left: String,
    /// The second.
    pub right: String,
    /// Cohen's κ.
    pub kappa: Agreement,
    /// The labels of all statements.
    pub total: Confusion,
    /// By question and statement.
    pub by_perspective: Vec<(String, String, Confusion)>,
}

/// The table of agreement.
#[derive(Clone, Debug, PartialEq)]
pub struct Table {
    /// Items with a label.
    pub items: usize,
    /// The annotators, people by name and the detector last.
    pub annotators: Vec<Annotator>,
    /// Every two annotators that share an item.
    pub pairs: Vec<Pair>,
    /// Krippendorff's α of the people.
    pub alpha: Agreement,
    /// Items that a third decision settled.
    pub settled: usize,
    /// Krippendorff's α of the people with the settling decision in place of their labels; `None` if nothing was settled.
    pub alpha_after: Option<Agreement>,
    /// Krippendorff's α of people and detector; `None` without a detector.
    pub alpha_with_model: Option<Agreement>,
    /// Items on which as many people say yes as no.
    pub ties: usize,
    /// Items on which at least two people disagree.
    pub disputed: usize,
    /// Whether the detector is unclear on the items of which people are unsure, with κ; `None` without a detector. The first of each
    /// pair is the detector's *unclear*; the second is that as many people say yes as no, or that one of them flagged the label.
    pub unclear: Option<(Confusion, Agreement)>,
}

/// One annotator's labels by the item's number.
type Labels = BTreeMap<usize, bool>;

/// Measures the agreement of the people, and of the detector if there is one.
pub fn table(items: &[Item<'_>], model: Option<&Model>) -> Table {
    let names: BTreeSet<&str> = items.iter().flat_map(|item| item.said.keys().copied()).collect();
    let mut columns: Vec<(Annotator, Labels)> = Vec::new();
    for name in names {
        columns.push(person(items, name));
    }
    let people = columns.len();
    if let Some(model) = model {
        columns.push(detector(items, model));
    }
    let mut pairs = Vec::new();
    for (i, left) in columns.iter().enumerate() {
        for right in &columns[i + 1..] {
            pairs.extend(pair(items, left, right));
        }
    }
    let alpha = |columns: &[(Annotator, Labels)]| {
        let rows =
            (0..items.len()).map(|i| columns.iter().map(|(_, labels)| labels.get(&i).copied()).collect());
        krippendorff_alpha(&rows.collect::<Vec<Vec<Option<bool>>>>())
    };
    let after = || {
        let rows = items.iter().enumerate().map(|(i, item)| {
            let own = |(_, labels): &(Annotator, Labels)| {
                labels.get(&i).map(|said| item.settled().unwrap_or(*said))
            };
            columns[..people].iter().map(own).collect()
        });
        krippendorff_alpha(&rows.collect::<Vec<Vec<Option<bool>>>>())
    };
    let settled = items.iter().filter(|item| item.settled().is_some()).count();
    let votes = || items.iter().map(Item::votes);
    let unclear: Vec<(bool, bool)> =
        items.iter().filter_map(|item| Some((item.model?.0.is_none(), item.is_unsure()))).collect();
    Table {
        items: items.len(),
        pairs,
        alpha: alpha(&columns[..people]),
        settled,
        alpha_after: (settled > 0).then(after),
        alpha_with_model: model.map(|_| alpha(&columns)),
        ties: votes().filter(|(yes, no)| yes == no && yes + no > 0).count(),
        disputed: votes().filter(|(yes, no)| *yes > 0 && *no > 0).count(),
        unclear: model.map(|_| (Confusion::of(&unclear), cohen_kappa(&unclear))),
        annotators: columns.into_iter().map(|(annotator, _)| annotator).collect(),
    }
}

fn person(items: &[Item<'_>], name: &str) -> (Annotator, Labels) {
    let said: Vec<_> =
        items.iter().enumerate().filter_map(|(i, item)| Some((i, *item.said.get(name)?))).collect();
    let looks = said.iter().filter_map(|(_, one)| Some(((&one.question, &one.text, one.at), one.took?)));
    let mut times: Vec<u64> = looks.collect::<BTreeMap<_, u64>>().into_values().collect();
    times.sort_unstable();
    let middle = times.len() / 2;
    let median = match times.len() {
        0 => None,
        odd if odd % 2 == 1 => Some(times[middle] as f64),
        _ => Some((times[middle - 1] as f64 + times[middle] as f64) / 2.0),
    };
    let sum: f64 = times.iter().map(|time| *time as f64).sum();
    let annotator = Annotator {
        name: name.to_owned(),
        labels: said.len(),
        yes: said.iter().filter(|(_, decision)| decision.supports).count(),
        flagged: said.iter().filter(|(_, decision)| decision.flagged).count(),
        timed: times.len(),
        median_ms: median,
        mean_ms: (!times.is_empty()).then(|| sum / times.len() as f64),
    };
    (annotator, said.into_iter().map(|(i, decision)| (i, decision.supports)).collect())
}

fn detector(items: &[Item<'_>], model: &Model) -> (Annotator, Labels) {
    let labels: Labels = items.iter().enumerate().filter_map(|(i, item)| Some((i, item.model?.0?))).collect();
    let annotator = Annotator {
        name: model.detector.clone(),
        labels: labels.len(),
        yes: labels.values().filter(|yes| **yes).count(),
        flagged: 0,
        timed: 0,
        median_ms: None,
        mean_ms: None,
    };
    (annotator, labels)
}

fn pair(items: &[Item<'_>], left: &(Annotator, Labels), right: &(Annotator, Labels)) -> Option<Pair> {
    let both: Vec<(usize, (bool, bool))> =
        left.1.iter().filter_map(|(i, label)| Some((*i, (*label, *right.1.get(i)?)))).collect();
    let labels: Vec<(bool, bool)> = both.iter().map(|(_, pair)| *pair).collect();
    let mut by_perspective: BTreeMap<(&str, &str), Vec<(bool, bool)>> = BTreeMap::new();
    for (i, pair) in &both {
        let about = items[*i].about;
        by_perspective.entry((&about.question, &about.perspective)).or_default().push(*pair);
    }
    let by_perspective = by_perspective.into_iter();
    (!both.is_empty()).then(|| Pair {
        left: left.0.name.clone(),
        right: right.0.name.clone(),
        kappa: cohen_kappa(&labels),
        total: Confusion::of(&labels),
        by_perspective: by_perspective
            .map(|((question, perspective), pairs)| {
                (question.to_owned(), perspective.to_owned(), Confusion::of(&pairs))
            })
            .collect(),
    })
}

/// A passage and a statement, with the labels of all annotators.
#[derive(Clone, Debug, PartialEq)]
pub struct Item<'a> {
    /// The first decision about it.
    pub about: &'a Decision,
    /// The decision of each annotator, by name.
    pub said: BTreeMap<&'a str, &'a Decision>,
    /// The decision of each adjudicator, by name.
    pub settling: BTreeMap<&'a str, &'a Decision>,
    /// The detector's probability for this single statement.
    pub p: Option<f32>,
    /// The detector's verdict and its probability; see [`Model::says`].
    pub model: Option<(Option<bool>, f32)>,
}

impl Item<'_> {
    /// The number of annotators who say yes, and who say no.
    pub fn votes(&self) -> (usize, usize) {
        let yes = self.said.values().filter(|decision| decision.supports).count();
        (yes, self.said.len() - yes)
    }

    /// The label of most adjudicators; `None` without one, or if as many say yes as no.
    pub fn settled(&self) -> Option<bool> {
        let yes = self.settling.values().filter(|decision| decision.supports).count();
        let no = self.settling.len() - yes;
        (yes != no).then_some(yes > no)
    }

    /// Whether people are unsure: as many say yes as no, or one of them flagged the label.
    pub fn is_unsure(&self) -> bool {
        self.majority().is_none() || self.said.values().any(|decision| decision.flagged)
    }

    /// The label that counts: that of the adjudicators if there are any, else that of the majority; `None` for a tie.
    pub fn majority(&self) -> Option<bool> {
        if !self.settling.is_empty() {
            return self.settled();
        }
        let (yes, no) = self.votes();
        (yes != no).then_some(yes > no)
    }
}

/// Groups decisions by question, passage and statement, in this order. Passages with the same text count as one, whatever their ids.
/// The latest of several decisions of one annotator counts.
pub fn items<'a>(decisions: &'a [Decision], model: Option<&Model>) -> Vec<Item<'a>> {
    let mut items: BTreeMap<(&str, &str, &str), Item> = BTreeMap::new();
    for decision in decisions {
        let key = (decision.question.as_str(), decision.text.as_str(), decision.perspective.as_str());
        let item = items.entry(key).or_insert_with(|| Item {
            about: decision,
            said: BTreeMap::new(),
            settling: BTreeMap::new(),
            p: model.and_then(|model| model.p(decision)),
            model: model.and_then(|model| model.says(decision)),
        });
        let said = if decision.settles() { &mut item.settling } else { &mut item.said };
        match said.entry(&decision.by) {
            Entry::Vacant(place) => {
                place.insert(decision);
            }
            Entry::Occupied(mut place) if place.get().at <= decision.at => {
                place.insert(decision);
            }
            Entry::Occupied(_) => {}
        }
    }
    let mut items: Vec<Item> = items.into_values().collect();
    items.sort_by_key(|item| (&item.about.question, &item.about.passage, &item.about.perspective));
    items
}

/// The disputed items, the most evenly split first; ties go to the item with more labels. The detector counts as one more annotator if
/// there is one.
pub fn queue<'i, 'a>(items: &'i [Item<'a>], model: Option<&Model>) -> Vec<&'i Item<'a>> {
    let votes = |item: &Item| {
        let (mut yes, mut no) = item.votes();
        if let (Some(_), Some((Some(says), _))) = (model, item.model) {
            if says { yes += 1 } else { no += 1 }
        }
        (yes, no)
    };
    let mut disputed: Vec<(usize, usize, &Item)> = items
        .iter()
        .filter(|item| item.settled().is_none())
        .map(|item| {
            let (yes, no) = votes(item);
            (yes.min(no), yes + no, item)
        })
        .filter(|(fewer, ..)| *fewer > 0)
        .collect();
    // fewer/all, greatest first, without dividing.
    disputed.sort_by(|a, b| (b.0 * a.1).cmp(&(a.0 * b.1)).then(b.1.cmp(&a.1)));
    disputed.into_iter().map(|(.., item)| item).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::annotate::testing::{decision, model};

    /// Two annotators with that many items of each kind.
    fn two(yes_yes: usize, yes_no: usize, no_yes: usize, no_no: usize) -> Vec<Decision> {
        let kinds =
            [(yes_yes, true, true), (yes_no, true, false), (no_yes, false, true), (no_no, false, false)];
        let labels = kinds.iter().flat_map(|(n, left, right)| std::iter::repeat_n((*left, *right), *n));
        labels
            .enumerate()
            .flat_map(|(i, (left, right))| [decision("anna", "Q?", i, left), decision("ben", "Q?", i, right)])
            .collect()
    }

    #[test]
    fn kappa_of_the_grant_proposals_comes_out_of_decisions() {
        let decisions = two(20, 5, 10, 15);
        let table = table(&items(&decisions, None), None);
        let pair = &table.pairs[0];
        assert_eq!((pair.left.as_str(), pair.right.as_str()), ("anna", "ben"));
        assert!((pair.kappa.value.unwrap() - 0.4).abs() < 1e-12);
        assert_eq!(pair.total, Confusion { yes_yes: 20, yes_no: 5, no_yes: 10, no_no: 15 });
        assert_eq!(pair.by_perspective, [("Q?".into(), "Yes.".into(), pair.total)]);
        assert_eq!((table.items, table.disputed, table.ties), (50, 15, 15));
        assert_eq!(pair.total.agreed(), Some(0.7));
        // Two annotators, nothing missing: observed disagreement .3, expected 2·55·45/(100·99).
        assert!((table.alpha.value.unwrap() - (1.0 - 0.3 / 0.5)).abs() < 1e-12, "{:?}", table.alpha);
    }

    #[test]
    fn a_renamed_passage_is_the_same_item_and_the_latest_decision_counts() {
        let mut renamed = decision("ben", "Q?", 1, true);
        renamed.passage = "another-name".into();
        let mut later = decision("anna", "Q?", 1, true);
        later.at = 2;
        let decisions = [later, decision("anna", "Q?", 1, false), renamed];
        let items = items(&decisions, None);
        assert_eq!(items.len(), 1);
        assert_eq!(items[0].votes(), (2, 0));
    }

    #[test]
    fn times_are_of_those_labels_that_have_one() {
        let timed = |passage, took| Decision {
            took,
            flagged: passage == 0,
            ..decision("anna", "Q?", passage, passage == 0)
        };
        let decisions = [timed(0, Some(1_000)), timed(1, Some(2_000)), timed(2, Some(9_000)), timed(3, None)];
        let table = table(&items(&decisions, None), None);
        let anna = &table.annotators[0];
        assert_eq!((anna.labels, anna.yes, anna.flagged, anna.timed), (4, 1, 1, 3));
        assert_eq!((anna.median_ms, anna.mean_ms), (Some(2_000.0), Some(4_000.0)));
        assert!(table.pairs.is_empty() && table.alpha.value.is_none() && table.ties == 0);
        let nobody = super::table(&[], None);
        assert_eq!((nobody.items, nobody.annotators.len()), (0, 0));
    }

    #[test]
    fn the_detector_is_one_more_annotator_and_a_pair_it_did_not_judge_is_not_counted() {
        let decisions: Vec<Decision> = (0..3).map(|i| decision("anna", "Q?", i, i == 0)).collect();
        let model = model(&[0.9, 0.5]);
        let items = items(&decisions, Some(&model));
        let table = table(&items, Some(&model));
        assert_eq!(table.annotators[1].name, "parallax-x");
        assert_eq!(table.pairs[0].total, Confusion { yes_yes: 1, yes_no: 0, no_yes: 1, no_no: 0 });
        assert_eq!(table.alpha.doubly_labelled, 0);
        assert_eq!(table.alpha_with_model.unwrap().doubly_labelled, 2);
        assert_eq!(queue(&items, None).len(), 0);
        assert_eq!(queue(&items, Some(&model))[0].about.passage, "p1");
    }

    #[test]
    fn unclear_is_compared_with_ties_and_flags() {
        let mut decisions: Vec<Decision> = (0..4).map(|i| decision("anna", "Q?", i, i == 0)).collect();
        decisions.push(decision("ben", "Q?", 1, true));
        decisions[2].flagged = true;
        let mut model = model(&[0.9, 0.5, 0.4, 0.3]);
        for i in [1, 2, 3] {
            let about = &decisions[i];
            model.joint.insert((about.text.clone(), about.perspective.clone()), (None, 0.5));
        }
        let items = items(&decisions, Some(&model));
        let table = table(&items, Some(&model));
        // Passage 1 is a tie, 2 is flagged, 3 is neither, and the detector is sure of 0 alone.
        let (confusion, kappa) = table.unclear.unwrap();
        assert_eq!(confusion, Confusion { yes_yes: 2, yes_no: 1, no_yes: 0, no_no: 1 });
        assert_eq!(kappa.value, Some(0.5));
        assert_eq!(
            table.annotators.last().unwrap().labels,
            1,
            "an unclear item has no label of the detector"
        );
        assert_eq!(super::table(&items, None).unclear, None);
    }

    #[test]
    fn a_settled_item_has_its_third_label_and_agreement_before_stays_what_it_was() {
        let mut decisions = two(4, 2, 1, 3);
        let before = table(&items(&decisions, None), None);
        let split = decisions.iter().find(|one| one.by == "ben" && one.passage == "p4").cloned().unwrap();
        let seen = crate::annotate::Seen {
            blind: false,
            guidelines: "g".into(),
            settles: Some("it quotes".into()),
            again: false,
        };
        decisions.push(Decision { by: "cleo".into(), supports: true, seen: Some(seen), ..split });
        let items = items(&decisions, None);
        let after = table(&items, None);
        assert_eq!((after.alpha, after.annotators.len(), after.settled), (before.alpha, 2, 1));
        assert!(after.alpha_after.unwrap().value > before.alpha.value && before.alpha_after.is_none());
        let settled = items.iter().find(|item| item.settled().is_some()).unwrap();
        assert_eq!((settled.majority(), settled.votes()), (Some(true), (1, 1)));
        assert_eq!(queue(&items, None).len(), 2, "what is settled is not discussed again");
        // As in the measures, two adjudicators who disagree settle nothing.
        let mut both = decisions.clone();
        both.push(Decision { by: "dora".into(), supports: false, ..decisions.last().unwrap().clone() });
        let items = super::items(&both, None);
        assert_eq!((table(&items, None).settled, queue(&items, None).len()), (0, 3));
        assert!(items.iter().all(|item| item.settling.is_empty() || item.majority().is_none()));
    }

    #[test]
    fn the_most_split_item_comes_first_and_unanimous_ones_never() {
        let mut decisions = Vec::new();
        for (passage, labels) in [(0, "yyyy"), (1, "yyyn"), (2, "yn"), (3, "yynn"), (4, "yyn")] {
            for (who, label) in labels.chars().enumerate() {
                decisions.push(decision(&format!("a{who}"), "Q?", passage, label == 'y'));
            }
        }
        let items = items(&decisions, None);
        let order: Vec<&str> = queue(&items, None).iter().map(|item| item.about.passage.as_str()).collect();
        assert_eq!(order, ["p3", "p2", "p4", "p1"]);
    }
}
