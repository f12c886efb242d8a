//! Orders and assignment.

use std::collections::{BTreeMap, HashMap};

use super::super::testing::passage;
use super::*;

fn item(question: &str, n: usize, ranks: &[(&str, usize)]) -> Item {
    let ranks: BTreeMap<String, usize> =
        ranks.iter().map(|(lane, rank)| ((*lane).to_owned(), *rank)).collect();
    Item { question: question.into(), passage: passage(n), ranks, to: Vec::new() }
}

fn pool(count: usize) -> Vec<Item> {
    (0..count).map(|n| item(["a?", "b?"][n % 2], n, &[("bm25", n + 1)])).collect()
}

fn order(items: &[Item], order: Order, seed: u64) -> Vec<String> {
    let lanes = ["bm25".to_owned(), "minilm".to_owned()];
    // Passage 2 lies nearest to the threshold; nothing is known of 1.
    let unsure = |item: &Item| match item.passage.id.as_str() {
        "p0" => doubt(&[0.9, 0.1], 0.5),
        "p2" => doubt(&[0.99, 0.45], 0.5),
        "p3" => doubt(&[0.7], 0.5),
        _ => None,
    };
    queue(items, order, seed, &lanes, &unsure).into_iter().map(|i| items[i].passage.id.clone()).collect()
}

#[test]
fn every_order_puts_first_what_it_says() {
    let items = [
        item("a?", 0, &[("bm25", 2)]),
        item("a?", 1, &[("bm25", 1), ("minilm", 3)]),
        item("a?", 2, &[("minilm", 1)]),
        item("a?", 3, &[("minilm", 2)]),
        item("b?", 4, &[("bm25", 1)]),
    ];
    assert_eq!(order(&items, Order::Ranked, 0), ["p1", "p0", "p2", "p3", "p4"]);
    assert_eq!(order(&items, Order::Pooled, 0), ["p1", "p2", "p0", "p3", "p4"]);
    assert_eq!(order(&items, Order::Uncertain, 0), ["p2", "p3", "p0", "p1", "p4"]);
}

#[test]
fn a_random_order_is_fixed_by_its_seed_alone_and_not_by_the_order_of_the_pool() {
    let mut items = pool(40);
    let drawn = order(&items, Order::Random, 3);
    items.reverse();
    assert_eq!(order(&items, Order::Random, 3), drawn);
    assert_ne!(order(&items, Order::Random, 4), drawn);
    let mut sorted = drawn.clone();
    sorted.sort();
    sorted.dedup();
    assert_eq!(sorted.len(), 40);
}

#[test]
fn everybody_gets_as_much_and_the_share_that_overlaps_is_exact_and_every_pair_can_be_compared() {
    for (people, overlap, seed) in [(2, 0.2, 0), (3, 0.5, 1), (4, 1.0, 2), (5, 0.0, 3), (3, 0.31, 4)] {
        let names: Vec<String> = (0..people).map(|n| format!("a{n}")).collect();
        let mut items = pool(200);
        assign(&mut items, &names, overlap, seed);
        let twice = items.iter().filter(|item| item.to.len() == 2).count();
        assert_eq!(twice, (200.0 * overlap).round() as usize);
        assert!(items.iter().all(|item| (1..=2).contains(&item.to.len())));
        let loads: Vec<usize> =
            names.iter().map(|name| items.iter().filter(|item| item.is_for(name)).count()).collect();
        let (low, high) = (loads.iter().min().unwrap(), loads.iter().max().unwrap());
        assert!(high - low <= 2, "{people} {overlap}: {loads:?}");
        let mut pairs: HashMap<&[String], usize> = HashMap::new();
        for item in items.iter().filter(|item| item.to.len() == 2) {
            *pairs.entry(&item.to).or_default() += 1;
        }
        let (low, high) = (pairs.values().min(), pairs.values().max());
        assert!(twice == 0 || pairs.len() == people * (people - 1) / 2, "{pairs:?}");
        assert!(twice == 0 || high.unwrap() - low.unwrap() <= 3, "{pairs:?}");
        let mut again = pool(200);
        again.reverse();
        assign(&mut again, &names, overlap, seed);
        again.reverse();
        assert_eq!(items, again);
    }
}

#[test]
fn without_annotators_everybody_judges_everything_and_one_alone_never_overlaps() {
    let mut items = pool(4);
    assign(&mut items, &[], 0.5, 0);
    assert!(items.iter().all(|item| item.to.is_empty() && item.is_for("anybody")));
    assign(&mut items, &["anna".into()], 0.5, 0);
    assert!(items.iter().all(|item| item.to == ["anna"] && !item.is_for("anybody")));
}
