use std::collections::HashSet;

use super::nearest::{EXAMPLES, levenshtein};
use super::*;

fn parsed(text: &str) -> Measure {
    text.parse().unwrap()
}

fn message(text: &str) -> String {
    text.parse::<Measure>().unwrap_err().to_string()
}

#[test]
fn every_name_of_the_manual_survives_reading_and_printing() {
    let more = [
        "nDCG",
        "R(rel=2)@1000",
        "AP(rel=2)",
        "AP@100",
        "RR",
        "P(rel=2)@5",
        "alpha_nDCG(alpha=0.3)@5",
        "alpha_nDCG(alpha=1.0)@5",
        "RR(rel=2)@10",
        "rKL@5",
        "AWRF@10",
    ];
    for text in EXAMPLES.into_iter().chain(more) {
        assert_eq!(parsed(text).to_string(), text);
        assert_eq!(parsed(&parsed(text).to_string()), parsed(text));
    }
}

#[test]
fn a_default_parameter_makes_no_other_measure() {
    let written = parsed("alpha_nDCG(alpha=0.5)@5");
    assert_eq!(written, parsed("alpha_nDCG@5"));
    assert_eq!(written.to_string(), "alpha_nDCG@5");
    assert_eq!(parsed("R( rel = 1 )@5").to_string(), "R@5");
    assert_eq!(parsed("alpha_nDCG(alpha=0)@5"), parsed("alpha_nDCG(alpha=-0.0)@5"));
    assert_eq!(HashSet::from([written, parsed("alpha_nDCG@5")]).len(), 1);
}

#[test]
fn lower_case_mrecall_is_read_as_berds_writes_it() {
    assert_eq!(parsed("mrecall@5").to_string(), "MRecall@5");
}

#[test]
fn an_unknown_name_suggests_the_nearest_with_its_own_cut_off() {
    let nearest = |text: &str| match text.parse::<Measure>() {
        Err(MeasureNameError::Unknown { nearest, .. }) => nearest,
        other => panic!("{text}: {other:?}"),
    };
    assert_eq!(nearest("ndcg@7"), "nDCG@7");
    assert_eq!(nearest("nDGC@10"), "nDCG@10");
    assert_eq!(nearest("MRecal@5"), "MRecall@5");
    assert_eq!(nearest("st_recall@5"), "StRecall@5");
    assert_eq!(nearest("alpha-nDCG(alpha=0.3)@5"), "alpha_nDCG(alpha=0.3)@5");
    assert_eq!(nearest("rkl@10"), "rKL@10");
    assert_eq!(nearest("awrf@5"), "AWRF@5");
    assert_eq!(nearest("ap"), "AP");
    assert_eq!(nearest("Covers@5"), "Cover");
    assert_eq!(nearest("p@0005"), "P@5");
    assert_eq!(message("ndcg@7"), "unknown measure `ndcg@7`: did you mean `nDCG@7`?");
}

#[test]
fn a_name_like_none_lists_them_all() {
    let message = message("perplexity@5");
    assert!(message.contains("nDCG@10") && message.contains("Cover"));
}

#[test]
fn a_missing_superfluous_or_impossible_cut_off_says_so() {
    assert_eq!(message("P"), "`P` needs a cut-off, as in `P@5`");
    assert_eq!(message("Cover@5"), "`Cover` takes no cut-off, found `@5`");
    assert_eq!(parsed("rKL"), parsed("rKL@20"));
    assert_eq!(message("rKL@7"), "`rKL` has the cut-offs 5, 10, 20, found `@7`");
    for text in ["P@0", "P@", "P@-1", "P@+5", "P@five", "P@1.5"] {
        assert!(matches!(text.parse::<Measure>(), Err(MeasureNameError::BadCutoff { .. })), "{text}");
    }
}

#[test]
fn parameters_are_checked_for_name_and_range() {
    assert_eq!(message("nDCG(rel=2)@10"), "`nDCG` takes no parameter `rel`");
    assert_eq!(message("R(rel=0)@10"), "expected a grade from 1 for `rel`, found `0`");
    assert_eq!(message("alpha_nDCG(alpha=1.5)@5"), "expected a number from 0 to 1 for `alpha`, found `1.5`");
    assert!(message("alpha_nDCG(alpha=NaN)@5").contains("found `NaN`"));
}

#[test]
fn broken_writing_is_refused() {
    for text in
        ["", "@5", "P(rel=2", "P)@5", "P(rel)@5", "(rel=2)@5", "P((rel=2))@5", "P(rel=2,rel=3)@5", "P@5@5"]
    {
        assert!(matches!(text.parse::<Measure>(), Err(MeasureNameError::Malformed { .. })), "{text}");
    }
}

#[test]
fn a_measure_travels_through_json_as_its_name() {
    let json = serde_json::to_string(&parsed("R(rel=2)@1000")).unwrap();
    assert_eq!(json, "\"R(rel=2)@1000\"");
    let back: Measure = serde_json::from_str(&json).unwrap();
    assert_eq!(back, parsed("R(rel=2)@1000"));
    assert!(serde_json::from_str::<Measure>("\"ndcg\"").is_err());
}

#[test]
fn edit_distance_is_levenshteins() {
    assert_eq!(levenshtein("kitten", "sitting"), 3);
    assert_eq!(levenshtein("", "abc"), 3);
    assert_eq!(levenshtein("abc", "abc"), 0);
}
