//! What has to be talked over: the items that not everybody labelled alike.

use super::super::Model;
use super::Item;

/// The disputed items, the most split first; of equally split ones those that more have labelled, then in their own order. The
/// detector counts as one more annotator where it is given.
pub fn queue<'i, 'a>(items: &'i [Item<'a>], model: Option<&Model>) -> Vec<&'i Item<'a>> {
    let votes = |item: &Item| {
        let (mut yes, mut no) = item.votes();
        if let (Some(model), Some(p)) = (model, item.p) {
            if p >= model.threshold { yes += 1 } else { no += 1 }
        }
        (yes, no)
    };
    let mut disputed: Vec<(usize, usize, &Item)> = items
        .iter()
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
