//! Decisions put side by side: who said what of one passage and one statement.

use std::collections::{BTreeMap, btree_map::Entry};

use super::super::{Decision, Model};

/// A passage and a statement, with what everybody said.
#[derive(Clone, Debug, PartialEq)]
pub struct Item<'a> {
    /// The first decision that was met about it.
    pub about: &'a Decision,
    /// What each annotator decided, by name.
    pub said: BTreeMap<&'a str, &'a Decision>,
    /// What the detector said.
    pub p: Option<f32>,
}

impl Item<'_> {
    /// How many people said yes, and how many no.
    pub fn votes(&self) -> (usize, usize) {
        let yes = self.said.values().filter(|decision| decision.supports).count();
        (yes, self.said.len() - yes)
    }

    /// What most people said; none where as many said yes as no.
    pub fn majority(&self) -> Option<bool> {
        let (yes, no) = self.votes();
        (yes != no).then_some(yes > no)
    }
}

/// Everything that was decided, in order of question, passage and statement. Passages are the same where their texts are,
/// whatever their ids; of several decisions of one annotator the latest counts.
pub fn items<'a>(decisions: &'a [Decision], model: Option<&Model>) -> Vec<Item<'a>> {
    let mut items: BTreeMap<(&str, &str, &str), Item> = BTreeMap::new();
    for decision in decisions {
        let key = (decision.question.as_str(), decision.text.as_str(), decision.perspective.as_str());
        let item = items.entry(key).or_insert_with(|| Item {
            about: decision,
            said: BTreeMap::new(),
            p: model.and_then(|model| model.p(decision)),
        });
        match item.said.entry(&decision.by) {
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
