//! Worked by hand, and drawn.

use super::*;
use crate::annotate::Decision;

/// A decision about passage `p<number>` of a question.
pub(crate) fn said(by: &str, question: &str, passage: usize, supports: bool) -> Decision {
    Decision {
        by: by.into(),
        question: question.into(),
        passage: format!("p{passage}"),
        text: format!("hash of p{passage}"),
        perspective: "Yes.".into(),
        supports,
        evidence: None,
        note: None,
        flagged: false,
        at: 1,
        took: None,
    }
}

/// Two annotators with that many items of each kind.
fn two(yes_yes: usize, yes_no: usize, no_yes: usize, no_no: usize) -> Vec<Decision> {
    let kinds = [(yes_yes, true, true), (yes_no, true, false), (no_yes, false, true), (no_no, false, false)];
    let labels = kinds.iter().flat_map(|(n, left, right)| std::iter::repeat_n((*left, *right), *n));
    labels
        .enumerate()
        .flat_map(|(i, (left, right))| [said("anna", "Q?", i, left), said("ben", "Q?", i, right)])
        .collect()
}

fn model(ps: &[f32]) -> Model {
    let p = ps.iter().enumerate().map(|(i, p)| ((format!("hash of p{i}"), "Yes.".to_owned()), *p));
    Model { detector: "parallax-x".into(), threshold: 0.5, p: p.collect() }
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
    let mut renamed = said("ben", "Q?", 1, true);
    renamed.passage = "another-name".into();
    let mut later = said("anna", "Q?", 1, true);
    later.at = 2;
    let decisions = [later, said("anna", "Q?", 1, false), renamed];
    let items = items(&decisions, None);
    assert_eq!(items.len(), 1);
    assert_eq!(items[0].votes(), (2, 0));
}

#[test]
fn times_are_of_those_labels_that_have_one() {
    let timed =
        |passage, took| Decision { took, flagged: passage == 0, ..said("anna", "Q?", passage, passage == 0) };
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
    let decisions: Vec<Decision> = (0..3).map(|i| said("anna", "Q?", i, i == 0)).collect();
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
fn the_most_split_item_comes_first_and_unanimous_ones_never() {
    let mut decisions = Vec::new();
    for (passage, labels) in [(0, "yyyy"), (1, "yyyn"), (2, "yn"), (3, "yynn"), (4, "yyn")] {
        for (who, label) in labels.chars().enumerate() {
            decisions.push(said(&format!("a{who}"), "Q?", passage, label == 'y'));
        }
    }
    let items = items(&decisions, None);
    let order: Vec<&str> = queue(&items, None).iter().map(|item| item.about.passage.as_str()).collect();
    assert_eq!(order, ["p3", "p2", "p4", "p1"]);
}

#[test]
fn the_threshold_lies_half_way_below_the_last_yes_worth_having() {
    let labels = [true, true, false, true, false, false];
    let decisions: Vec<Decision> =
        labels.iter().enumerate().map(|(i, yes)| said("anna", &format!("q{}", i % 2), i, *yes)).collect();
    let model = model(&[0.9, 0.85, 0.7, 0.6, 0.2, 0.1]);
    let fitted = refit(&items(&decisions, Some(&model)), &model).unwrap();
    // Four called, three right: 6/7, against 4/5 for the first two.
    assert!((fitted.threshold - 0.4).abs() < 1e-6 && (fitted.f1 - 6.0 / 7.0).abs() < 1e-9, "{fitted:?}");
    assert_eq!((fitted.n, fitted.positives, fitted.questions, fitted.ties), (6, 3, 2, 0));
    assert!((fitted.accuracy - 5.0 / 6.0).abs() < 1e-9);
    // q0 holds .9 yes, .7 no, .2 no; q1 holds .85 yes, .6 yes, .1 no. q0 gives .8, which calls only .85 of q1; q1 gives .35,
    // which calls .9 and .7 of q0: hits 2, false alarms 1, misses 1.
    assert!((fitted.f1_held_out.unwrap() - 4.0 / 6.0).abs() < 1e-9, "{fitted:?}");
}

#[test]
fn the_fitted_threshold_is_never_beaten_on_drawn_labels() {
    let mut rng = crate::measure::seeded::SplitMix64::new(5);
    for _ in 0..50 {
        let n = 2 + rng.below(30);
        // Few values, so that many are tied.
        let ps: Vec<f32> = (0..n).map(|_| rng.below(8) as f32 / 8.0).collect();
        let decisions: Vec<Decision> =
            (0..n).map(|i| said("anna", &format!("q{}", i % 3), i, rng.coin())).collect();
        let model = model(&ps);
        let items = items(&decisions, Some(&model));
        let Ok(fitted) = refit(&items, &model) else { continue };
        let judged: Vec<(f32, bool)> =
            items.iter().map(|item| (item.p.unwrap(), item.majority().unwrap())).collect();
        for step in 0..=16 {
            let other = crate::measure::detection::report(&judged, step as f32 / 16.0).unwrap();
            assert!(other.f1 <= fitted.f1 + 1e-9, "{fitted:?} is beaten at {step}/16");
            assert!(other.f1 < fitted.f1 - 1e-9 || other.accuracy <= fitted.accuracy + 1e-9);
        }
    }
}

#[test]
fn a_threshold_needs_labels_of_both_kinds() {
    let model = model(&[0.9, 0.1]);
    let alike = [said("anna", "Q?", 0, true), said("anna", "Q?", 1, true)];
    assert_eq!(refit(&items(&alike, Some(&model)), &model), Err(RefitError::Alike(2)));
    let tied = [said("anna", "Q?", 0, true), said("ben", "Q?", 0, false)];
    assert_eq!(refit(&items(&tied, Some(&model)), &model), Err(RefitError::Nothing));
    assert_eq!(refit(&items(&alike, None), &model), Err(RefitError::Nothing));
    let one_question = [said("anna", "Q?", 0, true), said("anna", "Q?", 1, false)];
    assert_eq!(refit(&items(&one_question, Some(&model)), &model).unwrap().f1_held_out, None);
}
