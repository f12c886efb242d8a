//! Agreement between annotators (Cohen's κ, Krippendorff's α), and between a detector and labels (accuracy, F1, AUC).

use std::collections::BTreeMap;

use serde_json::{Value, json};

use super::intervals::Bounds;
use super::seeded::SplitMix64;
use super::significance::quantile;

/// An agreement coefficient with its number of items.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Agreement {
    /// κ or α; `None` if all labels are the same or no item was labelled twice, because agreement by chance would be as great.
    pub value: Option<f64>,
    /// The number of items that at least two annotators labelled.
    pub doubly_labelled: usize,
}

fn beyond_chance(observed: f64, expected: f64) -> Option<f64> {
    (expected < 1.0).then(|| (observed - expected) / (1.0 - expected))
}

/// Cohen's κ (1960) over the items that both annotators labelled.
///
/// ```
/// use parallax::measure::agreement::cohen_kappa;
///
/// let pairs = [("yes", "yes"), ("yes", "no"), ("no", "no"), ("no", "no")];
/// assert_eq!(cohen_kappa(&pairs).value, Some(0.5));
/// ```
pub fn cohen_kappa<L: Ord>(pairs: &[(L, L)]) -> Agreement {
    let total = pairs.len() as f64;
    let mut margins: BTreeMap<&L, (usize, usize)> = BTreeMap::new();
    for (left, right) in pairs {
        margins.entry(left).or_default().0 += 1;
        margins.entry(right).or_default().1 += 1;
    }
    let agreed = pairs.iter().filter(|(left, right)| left == right).count();
    let by_chance: usize = margins.values().map(|(left, right)| left * right).sum();
    Agreement {
        value: (!pairs.is_empty())
            .then(|| beyond_chance(agreed as f64 / total, by_chance as f64 / (total * total)))
            .flatten(),
        doubly_labelled: pairs.len(),
    }
}

/// Krippendorff's α with the nominal metric (Krippendorff 2011, "Computing Krippendorff's
/// Alpha-Reliability").
///
/// Each item is a slice with one entry per annotator, `None` if that annotator did not label it. Items with fewer than two labels are
/// left out, because they say nothing about agreement.
pub fn krippendorff_alpha<L: Ord, I: AsRef<[Option<L>]>>(items: &[I]) -> Agreement {
    let mut totals: BTreeMap<&L, usize> = BTreeMap::new();
    let mut disagreement = 0.0;
    let mut doubly_labelled = 0;
    for item in items {
        let given: Vec<&L> = item.as_ref().iter().flatten().collect();
        if given.len() < 2 {
            continue;
        }
        doubly_labelled += 1;
        let mut counts: BTreeMap<&L, usize> = BTreeMap::new();
        for label in &given {
            *counts.entry(label).or_default() += 1;
            *totals.entry(label).or_default() += 1;
        }
        let same: usize = counts.values().map(|count| count * (count - 1)).sum();
        let all = given.len() * (given.len() - 1);
        disagreement += (all - same) as f64 / (given.len() - 1) as f64;
    }
    let labels: usize = totals.values().sum();
    let same: usize = totals.values().map(|count| count * (count - 1)).sum();
    let chance = labels * labels.saturating_sub(1) - same;
    Agreement {
        value: (chance > 0).then(|| 1.0 - (labels - 1) as f64 * disagreement / chance as f64),
        doubly_labelled,
    }
}

/// Pearson's correlation of pairs; `None` with fewer than two, or if one side is constant.
///
/// ```
/// use parallax::measure::agreement::pearson;
///
/// assert_eq!(pearson(&[(1.0, 1.0), (-1.0, -1.0)]), Some(1.0));
/// assert_eq!(pearson(&[(1.0, 0.0), (-1.0, 0.0)]), None);
/// ```
pub fn pearson(pairs: &[(f64, f64)]) -> Option<f64> {
    let n = pairs.len() as f64;
    let mean = |of: fn(&(f64, f64)) -> f64| pairs.iter().map(of).sum::<f64>() / n;
    let (x, y) = (mean(|pair| pair.0), mean(|pair| pair.1));
    let sum = |of: &dyn Fn(f64, f64) -> f64| pairs.iter().map(|(a, b)| of(a - x, b - y)).sum::<f64>();
    let (together, own, other) = (sum(&|a, b| a * b), sum(&|a, _| a * a), sum(&|_, b| b * b));
    (pairs.len() > 1 && own > 0.0 && other > 0.0).then(|| together / (own * other).sqrt())
}

/// The labels of the items that both annotators labelled, as input for [`cohen_kappa`].
pub fn doubly_labelled<L: Copy>(left: &BTreeMap<String, L>, right: &BTreeMap<String, L>) -> Vec<(L, L)> {
    left.iter().filter_map(|(id, &label)| Some((label, *right.get(id)?))).collect()
}

/// The figures of a classification, for one class or as a mean over several.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ClassScores {
    /// The number of items of these classes.
    pub n: usize,
    /// The share of all items whose class was found; `None` without items.
    pub accuracy: Option<f64>,
    /// The mean precision; `None` if a class was never given.
    pub precision: Option<f64>,
    /// The mean recall; `None` if a class has no items.
    pub recall: Option<f64>,
    /// The mean F1 of the classes that have items or were given; a class without a hit has 0.
    pub f1: Option<f64>,
}

/// Which items count.
type Own<'a> = dyn Fn(&(usize, Option<usize>)) -> bool + 'a;

/// Scores `(true class, given class)` items. An item without a given class counts as wrong. Means are over the classes in `of` for which
/// the figure is defined.
pub fn class_scores(items: &[(usize, Option<usize>)], of: &[usize]) -> ClassScores {
    let count = |own: &Own<'_>| items.iter().filter(|item| own(item)).count();
    let share = |part: usize, whole: usize| (whole > 0).then(|| part as f64 / whole as f64);
    let mean = |values: Vec<Option<f64>>| {
        let known: Vec<f64> = values.into_iter().flatten().collect();
        (!known.is_empty()).then(|| known.iter().sum::<f64>() / known.len() as f64)
    };
    let (mut precision, mut recall, mut f1, mut n) = (Vec::new(), Vec::new(), Vec::new(), 0);
    for class in of {
        let hits = count(&|(own, given)| own == class && *given == Some(*class));
        let (items, given) = (count(&|(own, _)| own == class), count(&|(_, given)| *given == Some(*class)));
        precision.push(share(hits, given));
        recall.push(share(hits, items));
        f1.push(share(2 * hits, items + given));
        n += items;
    }
    let right = count(&|(own, given)| *given == Some(*own));
    ClassScores {
        n,
        accuracy: share(right, items.len()),
        precision: mean(precision),
        recall: mean(recall),
        f1: mean(f1),
    }
}

/// How verdicts agree with labels; *yes* means that a passage supports a statement.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Tally {
    /// Verdict and label are yes.
    pub hits: usize,
    /// The verdict alone is yes.
    pub alarms: usize,
    /// The label alone is yes.
    pub misses: usize,
    /// Neither is yes.
    pub rejections: usize,
}

/// The names of [`Tally::figures`].
pub const FIGURES: [&str; 4] = ["yes", "accuracy", "F1", "κ"];

impl Tally {
    /// Counts a pair.
    pub fn count(&mut self, verdict: bool, label: bool) {
        *match (verdict, label) {
            (true, true) => &mut self.hits,
            (true, false) => &mut self.alarms,
            (false, true) => &mut self.misses,
            (false, false) => &mut self.rejections,
        } += 1;
    }

    /// The number of pairs.
    pub fn n(&self) -> usize {
        self.hits + self.alarms + self.misses + self.rejections
    }

    fn plus(self, other: &Tally) -> Tally {
        Tally {
            hits: self.hits + other.hits,
            alarms: self.alarms + other.alarms,
            misses: self.misses + other.misses,
            rejections: self.rejections + other.rejections,
        }
    }

    /// The share of verdicts that are yes, accuracy, F1 of yes (0 if neither verdict nor label ever is) and Cohen's κ; `None` without
    /// pairs, and for κ if agreement by chance is whole.
    pub fn figures(&self) -> [Option<f64>; 4] {
        let n = self.n() as f64;
        if n == 0.0 {
            return [None; 4];
        }
        let (yes, labelled) = ((self.hits + self.alarms) as f64, (self.hits + self.misses) as f64);
        let accuracy = (self.hits + self.rejections) as f64 / n;
        let f1 = if yes + labelled == 0.0 { 0.0 } else { 2.0 * self.hits as f64 / (yes + labelled) };
        let chance = (yes * labelled + (n - yes) * (n - labelled)) / (n * n);
        [Some(yes / n), Some(accuracy), Some(f1), beyond_chance(accuracy, chance)]
    }
}

/// The 95 % intervals of [`Tally::figures`] over all groups together, by resampling whole groups: pairs of one question are alike. `None`
/// with fewer than two groups. Samples in which a figure is not defined are left out of its interval.
pub fn grouped_intervals(groups: &[Tally], draws: usize, seed: u64) -> [Option<Bounds>; 4] {
    let mut values: [Vec<f64>; 4] = Default::default();
    let mut rng = SplitMix64::new(seed);
    for _ in 0..if groups.len() < 2 { 0 } else { draws } {
        let sum =
            (0..groups.len()).fold(Tally::default(), |sum, _| sum.plus(&groups[rng.below(groups.len())]));
        for (values, figure) in values.iter_mut().zip(sum.figures()) {
            values.extend(figure);
        }
    }
    values.map(|mut values| {
        values.sort_unstable_by(f64::total_cmp);
        (!values.is_empty()).then(|| Bounds { low: quantile(&values, 0.025), high: quantile(&values, 0.975) })
    })
}

/// The mean and the middle 95 % of each of [`Tally::figures`] for verdicts drawn at random, yes as often as the labels are.
pub fn at_random(labels: &[bool], draws: usize, seed: u64) -> [Option<(f64, Bounds)>; 4] {
    let positives = labels.iter().filter(|label| **label).count();
    let mut rng = SplitMix64::new(seed);
    let mut values: [Vec<f64>; 4] = Default::default();
    for _ in 0..draws {
        let mut tally = Tally::default();
        labels.iter().for_each(|label| tally.count(rng.below(labels.len()) < positives, *label));
        for (values, figure) in values.iter_mut().zip(tally.figures()) {
            values.extend(figure);
        }
    }
    values.map(|mut values| {
        values.sort_unstable_by(f64::total_cmp);
        let mean = values.iter().sum::<f64>() / values.len().max(1) as f64;
        let middle = || Bounds { low: quantile(&values, 0.025), high: quantile(&values, 0.975) };
        (!values.is_empty()).then(|| (mean, middle()))
    })
}

/// The figures of a detector over labelled pairs.
#[derive(Clone, Debug, PartialEq)]
pub struct Report {
    /// The number of labelled pairs with a verdict.
    pub n: usize,
    /// The number of those whose label is *supports*.
    pub positives: usize,
    /// The share of right verdicts.
    pub accuracy: f64,
    /// The harmonic mean of precision and recall of *supports*; 0 if neither is defined.
    pub f1: f64,
    /// The probability that a positive pair scores above a negative one; `None` if there are no positive or no negative pairs.
    pub auc: Option<f64>,
}

/// Measures `(probability, label)` pairs at a threshold; `None` if there are none.
pub fn report(judged: &[(f32, bool)], threshold: f32) -> Option<Report> {
    let n = judged.len();
    let count = |yes: bool, label: bool| {
        judged.iter().filter(|(p, l)| (*p >= threshold) == yes && *l == label).count()
    };
    let (hits, alarms, misses) = (count(true, true), count(true, false), count(false, true));
    let right = hits + count(false, false);
    let wrong_or_found = 2 * hits + alarms + misses;
    (n > 0).then(|| Report {
        n,
        positives: hits + misses,
        accuracy: right as f64 / n as f64,
        f1: if wrong_or_found == 0 { 0.0 } else { 2.0 * hits as f64 / wrong_or_found as f64 },
        auc: auc(judged),
    })
}

/// The AUC by the rank sum; pairs with equal probabilities count half.
fn auc(judged: &[(f32, bool)]) -> Option<f64> {
    let mut sorted = judged.to_vec();
    sorted.sort_by(|a, b| a.0.total_cmp(&b.0));
    let positives = sorted.iter().filter(|(_, label)| *label).count() as f64;
    let negatives = sorted.len() as f64 - positives;
    let (mut below, mut sum) = (0.0, 0.0);
    for tied in sorted.chunk_by(|a, b| a.0 == b.0) {
        let here = tied.iter().filter(|(_, label)| *label).count() as f64;
        let others = tied.len() as f64 - here;
        sum += here * (below + others / 2.0);
        below += others;
    }
    (positives > 0.0 && negatives > 0.0).then(|| sum / (positives * negatives))
}

impl Report {
    /// The JSON that `detect --format json` prints.
    pub fn json(&self) -> Value {
        json!({
            "n": self.n, "positives": self.positives, "accuracy": self.accuracy, "f1": self.f1, "auc": self.auc,
        })
    }

    /// The figures in one line of text. `fitted_on` is the number of labels by hand that the threshold was fitted on, if it was.
    pub fn text(&self, threshold: f32, fitted_on: Option<usize>) -> String {
        let origin = match fitted_on {
            Some(labels) => format!("fitted on {labels} labels by hand"),
            None => "fixed before, not tuned on this file".to_owned(),
        };
        let auc = self.auc.map_or_else(|| "–".to_owned(), |auc| format!("{auc:.4}"));
        format!(
            "{} labelled pairs, {} positive: accuracy {:.4}, F1 {:.4}, AUC {auc}, threshold {threshold:.3} ({origin})",
            self.n, self.positives, self.accuracy, self.f1
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn table(yes_yes: usize, yes_no: usize, no_yes: usize, no_no: usize) -> Vec<(bool, bool)> {
        let mut pairs = vec![(true, true); yes_yes];
        pairs.extend(vec![(true, false); yes_no]);
        pairs.extend(vec![(false, true); no_yes]);
        pairs.extend(vec![(false, false); no_no]);
        pairs
    }

    fn close(agreement: Agreement, expected: f64, tolerance: f64) -> bool {
        agreement.value.is_some_and(|value| (value - expected).abs() < tolerance)
    }

    #[test]
    fn figures_against_labels_are_those_worked_by_hand_and_never_yes_has_no_f1_and_no_kappa() {
        // Five pairs: two hits, an alarm, a miss and a rejection. By chance (3·3 + 2·2) of 25 agree.
        let tally = Tally { hits: 2, alarms: 1, misses: 1, rejections: 1 };
        let [yes, accuracy, f1, kappa] = tally.figures().map(Option::unwrap);
        assert_eq!((yes, accuracy), (0.6, 0.6));
        assert!((f1 - 2.0 / 3.0).abs() < 1e-12 && (kappa - (0.6 - 0.52) / 0.48).abs() < 1e-12);
        let never = Tally { misses: 1, rejections: 4, ..Tally::default() };
        assert_eq!(never.figures(), [Some(0.0), Some(0.8), Some(0.0), Some(0.0)]);
        assert_eq!(Tally::default().figures(), [None; 4]);
        assert_eq!(Tally { rejections: 3, ..Tally::default() }.figures()[3], None);
    }

    #[test]
    fn the_random_row_of_the_paper_is_what_as_many_yes_as_labels_make_by_chance() {
        // 91 of 542 labels are yes: BERDS has accuracy 72.1 and F1 16.9 for random verdicts, and 83.2 for always no.
        let labels: Vec<bool> = (0..542).map(|i| i < 91).collect();
        let [yes, accuracy, f1, kappa] = at_random(&labels, 2_000, 1).map(Option::unwrap);
        assert!((yes.0 - 0.168).abs() < 0.005 && (accuracy.0 - 0.721).abs() < 0.005, "{yes:?} {accuracy:?}");
        assert!((f1.0 - 0.169).abs() < 0.01 && kappa.0.abs() < 0.005, "{f1:?} {kappa:?}");
        assert!(accuracy.1.low < 0.721 && accuracy.1.high > 0.721);
        assert_eq!(at_random(&labels, 20, 1), at_random(&labels, 20, 1));
        assert_eq!(at_random(&[], 20, 1), [None; 4]);
    }

    #[test]
    fn intervals_resample_questions_and_one_question_has_none() {
        let right = Tally { hits: 1, rejections: 1, ..Tally::default() };
        let wrong = Tally { alarms: 1, misses: 1, ..Tally::default() };
        assert_eq!(grouped_intervals(&[right], 100, 0), [None; 4]);
        let [yes, accuracy, ..] = grouped_intervals(&[right, wrong], 1_000, 0).map(Option::unwrap);
        assert_eq!((yes.low, yes.high), (0.5, 0.5), "every question has as many yes");
        assert_eq!((accuracy.low, accuracy.high), (0.0, 1.0));
    }

    #[test]
    fn kappa_of_the_grant_proposals_is_two_fifths() {
        // The worked example of the encyclopedic articles on kappa: 20, 5, 10, 15.
        let kappa = cohen_kappa(&table(20, 5, 10, 15));
        assert!(close(kappa, 0.4, 1e-12));
        assert_eq!(kappa.doubly_labelled, 50);
    }

    #[test]
    fn kappa_differs_where_raw_agreement_does_not() {
        // Sixty of a hundred agree in both (Sim & Wright's point on prevalence).
        assert!(close(cohen_kappa(&table(45, 15, 25, 15)), 0.1304, 5e-5));
        assert!(close(cohen_kappa(&table(25, 35, 5, 35)), 0.2593, 5e-5));
    }

    #[test]
    fn kappa_is_undefined_when_only_one_label_was_ever_used() {
        assert_eq!(cohen_kappa(&table(10, 0, 0, 0)).value, None);
        assert_eq!(cohen_kappa::<bool>(&[]).value, None);
    }

    /// One row per annotator, `.` for no label, as Krippendorff prints his data.
    fn items(rows: &[&str]) -> Vec<Vec<Option<char>>> {
        (0..rows[0].len())
            .map(|item| rows.iter().map(|row| row.chars().nth(item).filter(|&label| label != '.')).collect())
            .collect()
    }

    #[test]
    fn alpha_of_krippendorffs_binary_example_is_095() {
        let alpha = krippendorff_alpha(&items(&["0100000010", "1110010000"]));
        assert!(close(alpha, 0.095, 5e-4), "{alpha:?}");
    }

    #[test]
    fn alpha_of_krippendorffs_nominal_example_is_692() {
        let alpha = krippendorff_alpha(&items(&["aabbdcccedda", "babbbccceddd"]));
        assert!(close(alpha, 0.692, 5e-4), "{alpha:?}");
        assert_eq!(alpha.doubly_labelled, 12);
    }

    #[test]
    fn alpha_of_krippendorffs_four_observers_with_gaps_is_743() {
        let alpha =
            krippendorff_alpha(&items(&["123321412...", "1233224125.3", ".3332342251.", "12332441251."]));
        assert!(close(alpha, 0.743, 5e-4), "{alpha:?}");
        assert_eq!(alpha.doubly_labelled, 11);
    }

    #[test]
    fn alpha_without_overlap_or_variation_is_undefined() {
        assert_eq!(krippendorff_alpha(&items(&["a.", ".b"])).value, None);
        assert_eq!(krippendorff_alpha(&items(&["aaa", "aaa"])).value, None);
        let nothing: [Vec<Option<char>>; 0] = [];
        assert_eq!(krippendorff_alpha(&nothing).doubly_labelled, 0);
    }

    #[test]
    fn only_items_both_labelled_are_paired() {
        let left = BTreeMap::from([("x".to_owned(), 1), ("y".to_owned(), 0)]);
        let right = BTreeMap::from([("y".to_owned(), 1), ("z".to_owned(), 0)]);
        assert_eq!(doubly_labelled(&left, &right), [(0, 1)]);
    }

    #[test]
    fn worked_by_hand() {
        let judged = [(0.9, true), (0.8, false), (0.7, true), (0.2, false), (0.1, true)];
        let report = report(&judged, 0.5).unwrap();
        assert_eq!((report.n, report.positives), (5, 3));
        assert!((report.accuracy - 0.6).abs() < 1e-9);
        assert!((report.f1 - 2.0 / 3.0).abs() < 1e-9);
        // Of six (positive, negative) pairs, .9 beats both, .7 beats one, .1 none.
        assert!((report.auc.unwrap() - 0.5).abs() < 1e-9);
    }

    #[test]
    fn ties_count_half_and_one_kind_alone_has_no_curve() {
        assert_eq!(report(&[(0.5, true), (0.5, false)], 0.5).unwrap().auc, Some(0.5));
        assert_eq!(report(&[(0.5, true)], 0.5).unwrap().auc, None);
        assert_eq!(report(&[], 0.5), None);
        assert_eq!(report(&[(0.1, false)], 0.5).unwrap().f1, 0.0);
    }
}
