//! p-Recall: is a retriever as good on every perspective of a root as on one? (PIR eq. 1)

use std::collections::BTreeMap;

use super::support::top;

/// One query row of a PIR task: a root, a ranking and its gold passages, all by passage id.
#[derive(Clone, Copy, Debug)]
pub struct QueryRow<'a> {
    /// The root's text; rows with the same text belong together.
    pub root: &'a str,
    /// Passage ids in rank order.
    pub ranking: &'a [&'a str],
    /// Any of these in the top k is a success. Rows may repeat a query with other golds.
    pub gold: &'a [&'a str],
}

/// Whose arithmetic.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Reading {
    /// PIR eq. 1.
    #[default]
    Paper,
    /// The authors' notebook, for `--pir-notebook`: a root with a single row scores 0, and the first row
    /// of a root counts any gold of the root (an aliasing slip of theirs).
    Notebook,
}

/// pRecall over a set of rows.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct PRecall {
    /// Mean over the roots of the mean success over their rows.
    pub mean: f64,
    /// How many roots.
    pub roots: usize,
    /// How many rows.
    pub rows: usize,
}

/// pRecall@k (PIR eq. 1): the mean over the query rows of a root, then over roots; `None` without rows.
pub fn p_recall(rows: &[QueryRow<'_>], k: usize, reading: Reading) -> Option<PRecall> {
    let values = by_root(rows, k, reading);
    (!values.is_empty()).then(|| PRecall {
        mean: values.iter().sum::<f64>() / values.len() as f64,
        roots: values.len(),
        rows: rows.len(),
    })
}

/// What every root scores, in order of the roots' texts; its mean is pRecall@k.
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

#[cfg(test)]
mod tests {
    use super::*;

    const RANKING: &[&str] = &["a", "b", "c"];

    fn row(root: &'static str, gold: &'static [&'static str]) -> QueryRow<'static> {
        QueryRow { root, ranking: RANKING, gold }
    }

    fn mean(rows: &[QueryRow<'_>], k: usize, reading: Reading) -> f64 {
        p_recall(rows, k, reading).unwrap().mean
    }

    #[test]
    fn rows_are_averaged_within_a_root_before_roots_are_averaged() {
        let rows = [row("r", &["a"]), row("r", &["z"]), row("r", &["z"]), row("s", &["b", "z"])];
        let found = p_recall(&rows, 2, Reading::Paper).unwrap();
        assert!((found.mean - (1.0 / 3.0 + 1.0) / 2.0).abs() < 1e-12);
        assert_eq!((found.roots, found.rows), (2, 4));
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
    fn without_rows_there_is_no_value() {
        assert_eq!(p_recall(&[], 5, Reading::Paper), None);
    }
}
