//! PIR's measures: pRecall, the sides of the gold passages at the top, and the values of an attribute at the top compared with the corpus.
//!
//! Attribute values are numbered from 0; the caller has their names.

use std::collections::{BTreeMap, BTreeSet};

use super::seeded::SplitMix64;
use super::significance::{Interval, SignificanceError, quantile};
use super::support::top;

/// One query row of a PIR task: a root, a ranking and its gold passages, all by passage id.
#[derive(Clone, Copy, Debug)]
pub struct QueryRow<'a> {
    /// The root's text; rows with the same text belong together.
    pub root: &'a str,
    /// Passage ids in rank order.
    pub ranking: &'a [&'a str],
    /// The gold passages: one of them in the top k is a success. Rows may repeat a query with other gold passages.
    pub gold: &'a [&'a str],
}

/// The definition of pRecall.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Reading {
    /// PIR eq. 1.
    #[default]
    Paper,
    /// The authors' notebook, for `--pir-notebook`: a root with a single row scores 0, and the first row
    /// of a root counts any gold passage of the root (an aliasing error in the notebook).
    Notebook,
}

/// The mean success of each root's query rows, in order of the roots' texts. The mean over the roots is pRecall@k (PIR eq. 1).
pub fn by_root(rows: &[QueryRow<'_>], k: usize, reading: Reading) -> Vec<f64> {
    let mut roots: BTreeMap<&str, Vec<&QueryRow<'_>>> = BTreeMap::new();
    for row in rows {
        roots.entry(row.root).or_default().push(row);
    }
    let score = |rows: &Vec<&QueryRow<'_>>| match reading {
        Reading::Paper => mean_success(rows, k),
        Reading::Notebook => notebook_success(rows, k),
    };
    roots.values().map(score).collect()
}

fn finds(ranking: &[&str], gold: &[&str], k: usize) -> bool {
    top(ranking, k).iter().any(|id| gold.contains(id))
}

fn mean_success(rows: &[&QueryRow<'_>], k: usize) -> f64 {
    let successes = rows.iter().filter(|row| finds(row.ranking, row.gold, k)).count();
    successes as f64 / rows.len() as f64
}

fn notebook_success(rows: &[&QueryRow<'_>], k: usize) -> f64 {
    let [first, others @ ..] = rows else {
        return 0.0;
    };
    if others.is_empty() {
        return 0.0;
    }
    let first_finds_any = rows.iter().any(|row| finds(first.ranking, row.gold, k));
    let successes =
        usize::from(first_finds_any) + others.iter().filter(|row| finds(row.ranking, row.gold, k)).count();
    successes as f64 / rows.len() as f64
}

/// QA-F1 of an extracted perspective as PIR's appendix A.8 defines it: the words that it shares with a gold one over the words of both,
/// the greatest over the gold ones. A word counts once, without case and punctuation.
///
/// ```
/// use parallax::measure::pir::qa_f1;
///
/// // 3 of 5 words are shared.
/// assert_eq!(qa_f1("a claim that opposes", &["A claim that supports."]), 0.6);
/// ```
pub fn qa_f1(found: &str, golds: &[&str]) -> f64 {
    let words = |text: &str| -> BTreeSet<String> {
        let plain = |word: &str| word.trim_matches(|c: char| c.is_ascii_punctuation()).to_lowercase();
        text.split_whitespace().map(plain).filter(|word| !word.is_empty()).collect()
    };
    let own = words(found);
    let score = |gold: &&str| {
        let gold = words(gold);
        let all = own.union(&gold).count();
        if all == 0 { 0.0 } else { own.intersection(&gold).count() as f64 / all as f64 }
    };
    golds.iter().map(score).fold(0.0, f64::max)
}

/// A part and its whole.
pub type Item = (f64, f64);

/// How many gold passages of each side a list holds.
#[derive(Clone, Debug, PartialEq)]
pub struct SideCounts {
    /// The gold passages of each side, from 0. A passage of several sides counts in equal parts.
    pub sides: Vec<f64>,
    /// The gold passages that have a side.
    pub passages: usize,
}

/// Counts the passages of `top` that are gold for a side. `gold` has pairs of a passage and a side; sides are less than `sides`.
pub fn side_counts(top: &[usize], gold: &[(usize, usize)], sides: usize) -> SideCounts {
    let mut counts = SideCounts { sides: vec![0.0; sides], passages: 0 };
    for passage in top {
        let is_gold = |side: &usize| gold.contains(&(*passage, *side));
        let own_sides: Vec<usize> = (0..sides).filter(is_gold).collect();
        counts.passages += usize::from(!own_sides.is_empty());
        for side in &own_sides {
            counts.sides[*side] += 1.0 / own_sides.len() as f64;
        }
    }
    counts
}

/// The percentile bootstrap interval of a mean over groups. A group's value is the sum of its parts over the sum of its wholes; each
/// draw takes every group's items `(part, whole)` with replacement from that group. With wholes of 1 a group's value is a mean, with one
/// group the result is a share.
///
/// # Errors
/// A group is empty, a number is not finite, a whole is not above 0, there are no draws, or the level is outside 0 to 1.
pub fn grouped_interval(
    groups: &[Vec<Item>],
    level: f64,
    draws: usize,
    seed: u64,
) -> Result<Interval, SignificanceError> {
    if groups.is_empty() || groups.iter().any(Vec::is_empty) {
        return Err(SignificanceError::Empty);
    }
    if draws == 0 {
        return Err(SignificanceError::NoDraws);
    }
    if !(level > 0.0 && level < 1.0) {
        return Err(SignificanceError::BadLevel);
    }
    let good = |(part, whole): &Item| part.is_finite() && whole.is_finite() && *whole > 0.0;
    if let Some(item) = groups.iter().flatten().position(|item| !good(item)) {
        return Err(SignificanceError::NotFinite(item));
    }
    let mut rng = SplitMix64::new(seed);
    let mut means: Vec<f64> =
        (0..draws).map(|_| mean(groups, |group, _| group[rng.below(group.len())])).collect();
    means.sort_unstable_by(f64::total_cmp);
    let tail = (1.0 - level) / 2.0;
    Ok(Interval {
        low: quantile(&means, tail),
        mean: mean(groups, |group, i| group[i]),
        high: quantile(&means, 1.0 - tail),
    })
}

/// The mean over the groups of the sum of the parts over the sum of the wholes. `pick` chooses the items of each group.
fn mean(groups: &[Vec<Item>], mut pick: impl FnMut(&[Item], usize) -> Item) -> f64 {
    let mut total = 0.0;
    for group in groups {
        let (mut parts, mut wholes) = (0.0, 0.0);
        for i in 0..group.len() {
            let (part, whole) = pick(group, i);
            parts += part;
            wholes += whole;
        }
        total += parts / wholes;
    }
    total / groups.len() as f64
}

/// How often a value occurs in the first k and in the corpus.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Standing {
    /// The passages of the first k that have the value.
    pub top: usize,
    /// All passages of the first k.
    pub of: usize,
    /// The passages of the corpus that have the value.
    pub corpus: usize,
    /// All passages of the corpus.
    pub passages: usize,
}

impl Standing {
    /// The value's share of the first k; `None` if there are no passages.
    pub fn top_share(self) -> Option<f64> {
        share(self.top, self.of)
    }

    /// The value's share of the corpus; `None` if that is empty.
    pub fn corpus_share(self) -> Option<f64> {
        share(self.corpus, self.passages)
    }

    /// log2 of the top share over the corpus share: 1 is twice as often as in the corpus, −1 half as often, 0 the same. `None` if one of
    /// them is 0 or missing.
    pub fn over(self) -> Option<f64> {
        let (top, corpus) = (self.top_share()?, self.corpus_share()?);
        (top > 0.0 && corpus > 0.0).then(|| (top / corpus).log2())
    }
}

fn share(part: usize, whole: usize) -> Option<f64> {
    (whole > 0).then(|| part as f64 / whole as f64)
}

/// Compares the counts of passages with each value at the top and in the corpus.
pub fn standings(top: &[usize], corpus: &[usize]) -> Vec<Standing> {
    let (of, passages) = (top.iter().sum(), corpus.iter().sum());
    top.iter()
        .zip(corpus)
        .map(|(top, corpus)| Standing { top: *top, of, corpus: *corpus, passages })
        .collect()
}

/// The total variation distance: half the sum of the differences between the shares. 0 means the same shares as in the corpus, 1 no
/// value in common.
pub fn distance(standings: &[Standing]) -> Option<f64> {
    let differences: Option<Vec<f64>> =
        standings.iter().map(|one| Some((one.top_share()? - one.corpus_share()?).abs())).collect();
    differences.filter(|all| !all.is_empty()).map(|all| all.iter().sum::<f64>() / 2.0)
}

/// Adds up the counts of each value over several questions.
pub fn pooled<'a>(counts: impl IntoIterator<Item = &'a [usize]>, values: usize) -> Vec<usize> {
    let mut sum = vec![0; values];
    for counts in counts {
        for (sum, count) in sum.iter_mut().zip(counts) {
            *sum += count;
        }
    }
    sum
}

/// The passages retrieved by the questions that ask for one value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Crossed {
    /// The value that is asked for.
    pub desired: usize,
    /// The questions that ask for it, by their place.
    pub questions: Vec<usize>,
    /// The number of passages of their first k with each value.
    pub retrieved: Vec<usize>,
}

/// Tabulates desired values against retrieved values, with one row for every value that some question asks for. A question that asks for
/// several values counts in each row. `desired` and `retrieved` have one entry per question.
pub fn crossed(desired: &[Vec<usize>], retrieved: &[Vec<usize>], values: usize) -> Vec<Crossed> {
    let row = |value: usize| {
        let questions: Vec<usize> = (0..desired.len()).filter(|i| desired[*i].contains(&value)).collect();
        let counts = questions.iter().filter_map(|i| retrieved.get(*i)).map(Vec::as_slice);
        let retrieved = pooled(counts, values);
        (!questions.is_empty()).then_some(Crossed { desired: value, questions, retrieved })
    };
    (0..values).filter_map(row).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::measure::significance::{DRAWS, bootstrap_interval};

    const RANKING: &[&str] = &["a", "b", "c"];

    fn row(root: &'static str, gold: &'static [&'static str]) -> QueryRow<'static> {
        QueryRow { root, ranking: RANKING, gold }
    }

    fn mean(rows: &[QueryRow<'_>], k: usize, reading: Reading) -> f64 {
        let values = by_root(rows, k, reading);
        values.iter().sum::<f64>() / values.len() as f64
    }

    #[test]
    fn rows_are_averaged_within_a_root() {
        let rows = [row("r", &["a"]), row("r", &["z"]), row("r", &["z"]), row("s", &["b", "z"])];
        assert_eq!(by_root(&rows, 2, Reading::Paper), [1.0 / 3.0, 1.0]);
    }

    #[test]
    fn a_gold_below_the_cut_off_is_no_success() {
        assert_eq!(mean(&[row("r", &["c"])], 2, Reading::Paper), 0.0);
        assert_eq!(mean(&[row("r", &["c"])], 3, Reading::Paper), 1.0);
    }

    #[test]
    fn the_notebook_gives_a_lone_row_nothing() {
        assert_eq!(mean(&[row("r", &["a"])], 2, Reading::Notebook), 0.0);
    }

    #[test]
    fn the_notebook_lets_the_first_row_count_any_gold_of_its_root() {
        let rows = [row("r", &["z"]), row("r", &["a"])];
        assert_eq!(mean(&rows, 2, Reading::Paper), 0.5);
        assert_eq!(mean(&rows, 2, Reading::Notebook), 1.0);
        let swapped = [row("r", &["a"]), row("r", &["z"])];
        assert_eq!(mean(&swapped, 2, Reading::Notebook), 0.5);
    }

    #[test]
    fn a_passage_that_is_gold_of_two_sides_counts_half_for_each_and_others_not_at_all() {
        let gold = [(3, 0), (3, 1), (5, 1), (5, 1), (9, 0)];
        let counts = side_counts(&[3, 4, 5], &gold, 2);
        assert_eq!(counts, SideCounts { sides: vec![0.5, 1.5], passages: 2 });
        assert_eq!(side_counts(&[], &gold, 2).passages, 0);
    }

    #[test]
    fn one_group_with_wholes_of_one_is_the_plain_bootstrap() {
        let values = [0.0, 1.0, 0.25, 0.5, 1.0];
        let items = values.map(|value| (value, 1.0)).to_vec();
        let grouped = grouped_interval(&[items], 0.95, DRAWS, 0).unwrap();
        assert_eq!(grouped, bootstrap_interval(&values, 0.95, DRAWS, 0).unwrap());
    }

    #[test]
    fn groups_weigh_the_same_however_large_and_shares_are_of_the_whole() {
        let groups = [vec![(1.0, 1.0)], vec![(0.0, 1.0); 9]];
        let interval = grouped_interval(&groups, 0.95, 100, 0).unwrap();
        assert_eq!((interval.low, interval.mean, interval.high), (0.5, 0.5, 0.5));
        let share = grouped_interval(&[vec![(1.0, 1.0), (1.0, 3.0)]], 0.95, 1000, 0).unwrap();
        assert_eq!((share.low, share.mean, share.high), (1.0 / 3.0, 0.5, 1.0));
    }

    #[test]
    fn what_has_no_share_is_refused() {
        for groups in [vec![], vec![vec![]], vec![vec![(1.0, 0.0)]], vec![vec![(f64::NAN, 1.0)]]] {
            assert!(grouped_interval(&groups, 0.95, 10, 0).is_err());
        }
        assert!(grouped_interval(&[vec![(1.0, 1.0)]], 0.95, 0, 0).is_err());
        assert!(grouped_interval(&[vec![(1.0, 1.0)]], 1.0, 10, 0).is_err());
    }

    #[test]
    fn a_value_twice_as_frequent_as_in_the_corpus_is_over_by_one() {
        // 2 of 4 against 25 of 100; 2 of 4 against 50; none of 4 against 25.
        let all = standings(&[2, 2, 0], &[25, 50, 25]);
        assert_eq!((all[0].top_share(), all[0].corpus_share()), (Some(0.5), Some(0.25)));
        assert_eq!((all[0].over(), all[1].over()), (Some(1.0), Some(0.0)));
        assert_eq!((all[2].top_share(), all[2].over()), (Some(0.0), None), "never is not a number of times");
        assert_eq!(distance(&all), Some(0.25));
    }

    #[test]
    fn where_there_is_nothing_there_is_no_share() {
        let all = standings(&[0, 0], &[3, 1]);
        assert_eq!((all[0].top_share(), all[0].over(), distance(&all)), (None, None, None));
        assert_eq!(distance(&[]), None);
        assert_eq!(standings(&[1], &[0])[0].corpus_share(), None);
    }

    #[test]
    fn a_top_made_up_as_the_corpus_is_at_no_distance_and_one_of_a_rare_value_near_one() {
        assert_eq!(distance(&standings(&[1, 3], &[10, 30])), Some(0.0));
        assert_eq!(distance(&standings(&[4, 0], &[1, 99])), Some(0.99));
    }

    #[test]
    fn questions_count_in_the_row_of_every_value_they_ask_for_and_in_none_otherwise() {
        let rows = crossed(&[vec![0], vec![], vec![0, 2]], &[vec![3, 1, 0], vec![9, 9, 9], vec![0, 0, 4]], 3);
        let row = |desired, questions, retrieved| Crossed { desired, questions, retrieved };
        assert_eq!(rows, [row(0, vec![0, 2], vec![3, 1, 4]), row(2, vec![2], vec![0, 0, 4])]);
    }
}
