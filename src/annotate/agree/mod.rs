//! How far annotators agree, with each other and with the detector.
//!
//! Owns the table of agreement, the queue of disagreements and the re-fitted threshold; pure functions over decisions. The
//! detector is one more annotator, whose verdict is its probability at its threshold. It must not read files.

mod items;
mod queue;
mod refit;
#[cfg(test)]
pub(crate) mod tests;

pub use items::{Item, items};
pub use queue::queue;
pub use refit::{Refit, RefitError, refit};

use std::collections::{BTreeMap, BTreeSet};

use super::Model;
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

    /// Share on which they agree; none over nothing.
    pub fn agreed(&self) -> Option<f64> {
        (self.n() > 0).then(|| (self.yes_yes + self.no_no) as f64 / self.n() as f64)
    }
}

/// What one annotator did.
#[derive(Clone, Debug, PartialEq)]
pub struct Annotator {
    /// The name, or the detector's key.
    pub name: String,
    /// Labels given.
    pub labels: usize,
    /// Those of them that are a yes.
    pub yes: usize,
    /// Labels marked for another look.
    pub flagged: usize,
    /// Passages whose time was measured; one is looked at once for all its statements.
    pub timed: usize,
    /// Median time of those, in milliseconds.
    pub median_ms: Option<f64>,
    /// Mean time of those, in milliseconds.
    pub mean_ms: Option<f64>,
}

/// Two annotators beside each other.
#[derive(Clone, Debug, PartialEq)]
pub struct Pair {
    /// The first.
    pub left: String,
    /// The second.
    pub right: String,
    /// Cohen's κ.
    pub kappa: Agreement,
    /// Over all statements.
    pub total: Confusion,
    /// By question and statement.
    pub by_perspective: Vec<(String, String, Confusion)>,
}

/// The table of agreement.
#[derive(Clone, Debug, PartialEq)]
pub struct Table {
    /// Items with a label.
    pub items: usize,
    /// Everybody, people by name and the detector last.
    pub annotators: Vec<Annotator>,
    /// Every two of them that share an item.
    pub pairs: Vec<Pair>,
    /// Krippendorff's α of the people.
    pub alpha: Agreement,
    /// The same with the detector, where it was asked.
    pub alpha_with_model: Option<Agreement>,
    /// Items on which as many people say yes as no.
    pub ties: usize,
    /// Items that at least two people labelled otherwise than each other.
    pub disputed: usize,
}

/// One annotator's labels by the item's number.
type Labels = BTreeMap<usize, bool>;

/// How far the people, and the detector where there is one, agree.
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
    let votes = || items.iter().map(Item::votes);
    Table {
        items: items.len(),
        pairs,
        alpha: alpha(&columns[..people]),
        alpha_with_model: model.map(|_| alpha(&columns)),
        ties: votes().filter(|(yes, no)| yes == no).count(),
        disputed: votes().filter(|(yes, no)| *yes > 0 && *no > 0).count(),
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
    let labels: Labels =
        items.iter().enumerate().filter_map(|(i, item)| Some((i, item.p? >= model.threshold))).collect();
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
