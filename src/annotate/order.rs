//! In which order passages are judged, and by whom. Pure functions of the pool, a seed and what the models think.

use serde::{Deserialize, Serialize};

use super::Item;

/// What comes next.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, clap::ValueEnum)]
#[serde(rename_all = "lowercase")]
pub enum Order {
    /// The first lane's list from the top, then the second's.
    Ranked,
    /// All lanes at once: the best rank in any of them first.
    #[default]
    Pooled,
    /// Where the model is least sure first.
    Uncertain,
    /// Drawn with the seed.
    Random,
}

impl Order {
    /// The next one, round and round.
    pub fn next(self) -> Self {
        match self {
            Order::Ranked => Order::Pooled,
            Order::Pooled => Order::Uncertain,
            Order::Uncertain => Order::Random,
            Order::Random => Order::Ranked,
        }
    }

    /// The word for it.
    pub fn name(self) -> &'static str {
        match self {
            Order::Ranked => "ranked",
            Order::Pooled => "pooled",
            Order::Uncertain => "most uncertain first",
            Order::Random => "random",
        }
    }
}

/// The places of `items` in the order asked for. Questions keep their order, but for [`Order::Random`]; `lanes` are the recipes from
/// left to right; `doubt` says how unsure the model is of an item, and items of which it said nothing come last.
pub fn queue(
    items: &[Item],
    order: Order,
    seed: u64,
    lanes: &[String],
    doubt: &dyn Fn(&Item) -> Option<f64>,
) -> Vec<usize> {
    let mut questions: Vec<&str> = Vec::new();
    for item in items {
        if !questions.contains(&item.question.as_str()) {
            questions.push(&item.question);
        }
    }
    let question = |item: &Item| questions.iter().position(|known| *known == item.question);
    let rank = |item: &Item| {
        let ranks = lanes.iter().enumerate().filter_map(|(i, lane)| Some((i, *item.ranks.get(lane)?)));
        match order {
            Order::Ranked => ranks.min(),
            _ => ranks.map(|(i, rank)| (rank, i)).min(),
        }
    };
    let mut places: Vec<usize> = (0..items.len()).collect();
    match order {
        Order::Random => places.sort_by_key(|i| drawn(&items[*i], seed)),
        Order::Ranked | Order::Pooled => {
            places.sort_by_key(|i| {
                let item = &items[*i];
                (question(item), rank(item).unwrap_or((usize::MAX, 0)), &item.passage.id)
            });
        }
        Order::Uncertain => {
            let unsure: Vec<f64> = items.iter().map(|item| doubt(item).unwrap_or(-1.0)).collect();
            places.sort_by(|a, b| {
                let by_question = question(&items[*a]).cmp(&question(&items[*b]));
                let by_id = || items[*a].passage.id.cmp(&items[*b].passage.id);
                by_question.then_with(|| unsure[*b].total_cmp(&unsure[*a])).then_with(by_id)
            });
        }
    }
    places
}

/// How unsure a model is, from 0 to 1, given its probabilities for the statements: 1 where one of them lies on its threshold.
pub fn doubt(probabilities: &[f32], threshold: f32) -> Option<f64> {
    let (p, t) = (probabilities.iter().copied(), f64::from(threshold));
    p.map(|p| 1.0 - (f64::from(p) - t).abs()).max_by(f64::total_cmp)
}

/// Says for every item who is to judge it: one annotator each, and for the share `overlap` two. Everybody gets the same number, give
/// or take one or two, of every kind. With no annotators, everybody judges everything.
pub fn assign(items: &mut [Item], annotators: &[String], overlap: f64, seed: u64) {
    // Drawn once for all, so that neither lanes nor ranks decide who gets what.
    let mut places: Vec<usize> = (0..items.len()).collect();
    places.sort_by_key(|i| drawn(&items[*i], seed));
    let doubled = (items.len() as f64 * overlap.clamp(0.0, 1.0)).round() as usize;
    let mut load = vec![0usize; annotators.len()];
    let mut pairs = vec![vec![0usize; annotators.len()]; annotators.len()];
    for (n, place) in places.into_iter().enumerate() {
        items[place].to.clear();
        let Some(first) = (0..load.len()).min_by_key(|who| load[*who]) else { continue };
        let mut who = vec![first];
        if n < doubled {
            // The partner with whom the fewest are shared, so that every two can be compared.
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
            items[place].to.push(annotators[who].clone());
        }
    }
}

/// A number for an item that depends on nothing but itself and the seed.
fn drawn(item: &Item, seed: u64) -> [u8; 32] {
    let mut hasher = blake3::Hasher::new();
    hasher.update(&seed.to_le_bytes()).update(&(item.question.len() as u64).to_le_bytes());
    *hasher.update(item.question.as_bytes()).update(item.passage.id.as_bytes()).finalize().as_bytes()
}

#[cfg(test)]
mod tests;
