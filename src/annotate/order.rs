//! The order in which passages are judged, and their annotators: pure functions of the pool, a seed and the model's probabilities.

use std::collections::{BTreeMap, HashMap, HashSet};

use super::project::{Item, Order};

/// Sorts `items` and returns their indices. Questions keep their order, except with [`Order::Random`]. `lanes` are the recipes from left
/// to right. `doubt` returns the model's uncertainty about the item at an index; items without one come last.
pub fn queue(
    items: &[Item],
    order: Order,
    seed: u64,
    lanes: &[String],
    doubt: &dyn Fn(usize) -> Option<f64>,
) -> Vec<usize> {
    let mut questions: HashMap<&str, usize> = HashMap::new();
    for item in items {
        let next = questions.len();
        questions.entry(&item.question).or_insert(next);
    }
    let question = |item: &Item| questions.get(item.question.as_str()).copied();
    let rank = |item: &Item| {
        let ranks = lanes.iter().enumerate().filter_map(|(i, lane)| Some((i, *item.ranks.get(lane)?)));
        match order {
            Order::Ranked => ranks.min(),
            _ => ranks.map(|(i, rank)| (rank, i)).min(),
        }
    };
    let mut places: Vec<usize> = (0..items.len()).collect();
    match order {
        Order::Random => places.sort_by_cached_key(|i| (items[*i].round, drawn(&items[*i], seed))),
        Order::Ranked | Order::Pooled => {
            places.sort_by_cached_key(|i| {
                let item = &items[*i];
                (item.round, question(item), rank(item).unwrap_or((usize::MAX, 0)), &item.passage.id)
            });
        }
        Order::Uncertain => {
            let unsure: Vec<f64> = (0..items.len()).map(|at| doubt(at).unwrap_or(-1.0)).collect();
            places.sort_by(|a, b| {
                let (one, other) = (&items[*a], &items[*b]);
                let by_question = (one.round, question(one)).cmp(&(other.round, question(other)));
                let by_id = || items[*a].passage.id.cmp(&items[*b].passage.id);
                by_question.then_with(|| unsure[*b].total_cmp(&unsure[*a])).then_with(by_id)
            });
        }
    }
    places
}

/// A model's uncertainty from 0 to 1, from its probabilities for the statements; 1 if one of them equals the threshold.
pub fn doubt(probabilities: &[f32], threshold: f32) -> Option<f64> {
    let (p, t) = (probabilities.iter().copied(), f64::from(threshold));
    p.map(|p| 1.0 - (f64::from(p) - t).abs()).max_by(f64::total_cmp)
}

/// A passage that nearly repeats another of its question.
#[derive(Clone, Debug, PartialEq)]
pub struct Repeat {
    /// The question.
    pub question: String,
    /// The id of the passage.
    pub id: String,
    /// The id of the passage that it repeats, which stays.
    pub of: String,
    /// The words that both have, as a share of those that either has.
    pub share: f64,
}

/// Takes out of `items`, from index `from` on, each passage that shares at least `least` of its words with one of the same question that
/// stays and stands before it. Words are compared as sets, in lower case.
pub fn drop_repeats(items: &mut Vec<Item>, from: usize, least: f64) -> Vec<Repeat> {
    let words = |item: &Item| -> HashSet<String> {
        let text = format!("{} {}", item.passage.title, item.passage.text).to_lowercase();
        let all = text.split(|c: char| !c.is_alphanumeric()).filter(|word| !word.is_empty());
        all.map(str::to_owned).collect()
    };
    let mut staying: HashMap<String, Vec<(String, HashSet<String>)>> = HashMap::new();
    let (mut repeats, mut place) = (Vec::new(), 0);
    items.retain(|item| {
        let own = words(item);
        let others = staying.entry(item.question.clone()).or_default();
        let share = |other: &HashSet<String>| {
            let both = own.intersection(other).count();
            both as f64 / (own.len() + other.len() - both).max(1) as f64
        };
        let like = others.iter().map(|(id, other)| (id, share(other))).find(|(_, share)| *share >= least);
        place += 1;
        if let Some((of, share)) = like.filter(|_| place > from) {
            let (question, id) = (item.question.clone(), item.passage.id.clone());
            repeats.push(Repeat { question, id, of: of.clone(), share });
            return false;
        }
        others.push((item.passage.id.clone(), own));
        true
    });
    repeats
}

/// Assigns every item to one annotator, and a share of `overlap` to two. The annotators' numbers of items differ by at most two. If there
/// are no annotators, everybody judges everything.
pub fn assign(items: &mut [Item], annotators: &[String], overlap: f64, seed: u64) {
    // Shuffled, so that the assignment does not depend on lanes and ranks.
    let mut places: Vec<usize> = (0..items.len()).collect();
    places.sort_by_key(|i| drawn(&items[*i], seed));
    let doubled = (items.len() as f64 * overlap.clamp(0.0, 1.0)).round() as usize;
    let mut load = vec![0usize; annotators.len()];
    let mut pairs = vec![vec![0usize; annotators.len()]; annotators.len()];
    for (n, place) in places.into_iter().enumerate() {
        items[place].annotators.clear();
        let Some(first) = (0..load.len()).min_by_key(|who| load[*who]) else { continue };
        let mut who = vec![first];
        if n < doubled {
            // The partner with the fewest shared items, so that every pair can be compared.
            let others = (0..load.len()).filter(|other| *other != first);
            who.extend(others.min_by_key(|other| (pairs[first][*other], load[*other])));
        }
        if let [a, b] = who[..] {
            pairs[a][b] += 1;
            pairs[b][a] += 1;
        }
        who.sort_unstable();
        for who in who {
            load[who] += 1;
            items[place].annotators.push(annotators[who].clone());
        }
    }
}

/// Makes a share of `items` checks: those whose labels `known` has for every statement, chosen at random, and labelled by everybody.
/// Returns how many there should be.
pub fn plant(
    items: &mut [Item],
    (share, seed): (f64, u64),
    annotators: &[String],
    known: &dyn Fn(&Item) -> Option<BTreeMap<String, bool>>,
) -> usize {
    let wanted = (items.len() as f64 * share.clamp(0.0, 1.0)).round() as usize;
    let mut found: Vec<(usize, BTreeMap<String, bool>)> = Vec::new();
    if wanted > 0 {
        found.extend(items.iter().enumerate().filter_map(|(at, item)| Some((at, known(item)?))));
    }
    found.sort_by_cached_key(|(at, _)| drawn(&items[*at], seed));
    for (at, labels) in found.into_iter().take(wanted) {
        items[at].labels = labels;
        items[at].annotators = annotators.to_vec();
    }
    wanted
}

/// The passages that come to an annotator a second time, as indices, shuffled: about this share of them. Whether a passage is among them
/// depends on it alone, so that a project can grow.
pub fn repeats(items: &[Item], share: f64, by: &str, seed: u64) -> Vec<usize> {
    let number = |item: &Item| {
        let mut hasher = blake3::Hasher::new();
        hasher.update(b"again").update(by.as_bytes()).update(&drawn(item, seed));
        let mut first = [0; 8];
        first.copy_from_slice(&hasher.finalize().as_bytes()[..8]);
        u64::from_le_bytes(first)
    };
    let mut chosen: Vec<(u64, usize)> =
        items.iter().enumerate().map(|(at, item)| (number(item), at)).collect();
    chosen.retain(|(number, _)| (*number as f64) < share * u64::MAX as f64);
    chosen.sort_unstable();
    chosen.into_iter().map(|(_, at)| at).collect()
}

/// A random number that depends only on the item and the seed.
fn drawn(item: &Item, seed: u64) -> [u8; 32] {
    let mut hasher = blake3::Hasher::new();
    hasher.update(&seed.to_le_bytes()).update(&(item.question.len() as u64).to_le_bytes());
    *hasher.update(item.question.as_bytes()).update(item.passage.id.as_bytes()).finalize().as_bytes()
}

#[cfg(test)]
mod tests {
    use std::collections::{BTreeMap, HashMap};

    use super::*;
    use crate::annotate::testing::passage;

    fn item(question: &str, n: usize, ranks: &[(&str, usize)]) -> Item {
        let ranks: BTreeMap<String, usize> =
            ranks.iter().map(|(lane, rank)| ((*lane).to_owned(), *rank)).collect();
        let (later, annotators) = (BTreeMap::new(), Vec::new());
        Item {
            question: question.into(),
            passage: passage(n),
            ranks,
            later,
            round: 0,
            annotators,
            ..Item::default()
        }
    }

    fn pool(count: usize) -> Vec<Item> {
        (0..count).map(|n| item(["a?", "b?"][n % 2], n, &[("bm25", n + 1)])).collect()
    }

    fn order(items: &[Item], order: Order, seed: u64) -> Vec<String> {
        let lanes = ["bm25".to_owned(), "minilm".to_owned()];
        // Passage 2 lies nearest to the threshold; nothing is known of 1.
        let unsure = |at: usize| match items[at].passage.id.as_str() {
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
    fn a_passage_that_nearly_repeats_an_earlier_one_of_its_question_is_dropped_and_named() {
        let said = |question: &str, n: usize, text: &str| {
            let mut item = item(question, n, &[("bm25", n + 1)]);
            (item.passage.title, item.passage.text) = (String::new(), text.into());
            item
        };
        let ten = "one two three four five six seven eight nine ten";
        let mut items = vec![
            said("a?", 0, ten),
            said("a?", 1, "One, two; three four five six seven eight nine TEN."),
            said("a?", 2, "one two three four five six seven eight nine eleven"),
            said("b?", 3, ten),
            said("a?", 4, "another text"),
        ];
        let all = items.clone();
        let repeats = drop_repeats(&mut items, 0, 0.9);
        let found: Vec<_> = repeats.iter().map(|one| (one.id.as_str(), one.of.as_str(), one.share)).collect();
        assert_eq!(
            found,
            [("p1", "p0", 1.0)],
            "nine of eleven words are too few, and another question has its own"
        );
        assert_eq!(
            items.iter().map(|item| item.passage.id.as_str()).collect::<Vec<_>>(),
            ["p0", "p2", "p3", "p4"]
        );
        assert_eq!(drop_repeats(&mut items, 0, 0.8).len(), 1);
        // What a project had before it grew stays.
        let mut grown = all;
        assert!(drop_repeats(&mut grown, 2, 0.9).is_empty());
        assert_eq!(grown.len(), 5);
    }

    #[test]
    fn what_a_project_grew_by_comes_after_what_it_had_in_every_order() {
        let before =
            [item("a?", 0, &[("bm25", 2)]), item("a?", 1, &[("bm25", 1)]), item("b?", 4, &[("bm25", 1)])];
        for by in [Order::Ranked, Order::Pooled, Order::Uncertain, Order::Random] {
            let had = order(&before, by, 3);
            let mut grown = before.to_vec();
            grown[0].later.insert("minilm".into(), 1);
            for (question, n) in [("a?", 2), ("a?", 3), ("c?", 5)] {
                grown.push(Item { round: 1, ..item(question, n, &[("minilm", 1), ("bm25", 1)]) });
            }
            let now = order(&grown, by, 3);
            assert_eq!((&now[..3], now.len()), (&had[..], 6), "{by:?}");
        }
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
            let twice = items.iter().filter(|item| item.annotators.len() == 2).count();
            assert_eq!(twice, (200.0 * overlap).round() as usize);
            assert!(items.iter().all(|item| (1..=2).contains(&item.annotators.len())));
            let loads: Vec<usize> =
                names.iter().map(|name| items.iter().filter(|item| item.is_for(name)).count()).collect();
            let (low, high) = (loads.iter().min().unwrap(), loads.iter().max().unwrap());
            assert!(high - low <= 2, "{people} {overlap}: {loads:?}");
            let mut pairs: HashMap<&[String], usize> = HashMap::new();
            for item in items.iter().filter(|item| item.annotators.len() == 2) {
                *pairs.entry(&item.annotators).or_default() += 1;
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
    fn checks_are_passages_whose_labels_are_known_and_go_to_everybody() {
        let mut items = pool(40);
        let names = ["anna", "ben", "cleo"].map(String::from);
        assign(&mut items, &names, 0.0, 3);
        let known = |item: &Item| {
            let number: usize = item.passage.id[1..].parse().unwrap();
            (number.is_multiple_of(2))
                .then(|| BTreeMap::from([("Yes.".to_owned(), number.is_multiple_of(4))]))
        };
        assert_eq!(plant(&mut items, (0.1, 3), &names, &known), 4);
        let checks: Vec<&Item> = items.iter().filter(|item| !item.labels.is_empty()).collect();
        assert_eq!(checks.len(), 4);
        assert!(
            checks.iter().all(|item| item.annotators == names && known(item).as_ref() == Some(&item.labels))
        );
        // Fewer are known than there should be.
        assert_eq!(plant(&mut pool(4), (1.0, 0), &names, &known), 4);
    }

    #[test]
    fn about_the_share_that_was_asked_for_comes_again_and_a_longer_pool_does_not_change_which() {
        let items = pool(2_000);
        let chosen = repeats(&items, 0.1, "anna", 7);
        assert!((150..250).contains(&chosen.len()), "{}", chosen.len());
        let of_half: Vec<usize> = repeats(&items[..1_000], 0.1, "anna", 7);
        assert_eq!(of_half, chosen.iter().copied().filter(|at| *at < 1_000).collect::<Vec<_>>());
        assert_ne!(chosen, repeats(&items, 0.1, "ben", 7));
        assert!(repeats(&items, 0.0, "anna", 7).is_empty());
    }

    #[test]
    fn without_annotators_everybody_judges_everything_and_one_alone_never_overlaps() {
        let mut items = pool(4);
        assign(&mut items, &[], 0.5, 0);
        assert!(items.iter().all(|item| item.annotators.is_empty() && item.is_for("anybody")));
        assign(&mut items, &["anna".into()], 0.5, 0);
        assert!(items.iter().all(|item| item.annotators == ["anna"] && !item.is_for("anybody")));
    }
}
