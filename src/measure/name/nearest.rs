//! The nearest known name to an unknown one.

use super::written::Written;
use super::{Measure, MeasureNameError};

/// One example of every measure, in the order the manual lists them.
pub(super) const EXAMPLES: [&str; 18] = [
    "nDCG@10",
    "P@5",
    "R@100",
    "AP",
    "RR@10",
    "Judged@10",
    "alpha_nDCG@5",
    "ERR_IA@5",
    "StRecall@5",
    "P_IA@5",
    "MRecall@5",
    "Prec@5",
    "pRecall@5",
    "Lean@5",
    "Shift@5",
    "Cover",
    "rKL@20",
    "AWRF",
];

/// The error for a name nobody knows: a suggestion if one is near, all names if none is.
pub(super) fn unknown(written: &Written<'_>) -> MeasureNameError {
    let given = written.whole.to_owned();
    let asked = written.name.to_lowercase();
    let distance = |example: &str| levenshtein(&asked, &bare(example).to_lowercase());
    // `min_by_key` keeps the first of equals, so the order above decides.
    let near = EXAMPLES
        .into_iter()
        .map(|example| (example, distance(example)))
        .min_by_key(|&(_, distance)| distance)
        .filter(|&(example, distance)| distance <= bare(example).len() / 2);
    match near {
        Some((example, _)) => MeasureNameError::Unknown { given, nearest: suggestion(example, written) },
        None => MeasureNameError::Unheard { given, known: EXAMPLES.join(", ") },
    }
}

/// The nearest name with the parameters and cut-off as typed, if that is a measure; else the example.
fn suggestion(example: &str, written: &Written<'_>) -> String {
    let as_typed = format!("{}{}", bare(example), written.tail());
    match as_typed.parse::<Measure>() {
        Ok(measure) => measure.to_string(),
        Err(_) => example.to_owned(),
    }
}

fn bare(example: &str) -> &str {
    example.split('@').next().unwrap_or(example)
}

/// Letters by which no two names that are compared differ in length.
const FARTHEST: usize = 64;

/// Edit distance (Levenshtein 1966) over characters; a lower bound of it where one is far longer.
pub(crate) fn levenshtein(left: &str, right: &str) -> usize {
    let right: Vec<char> = right.chars().collect();
    // What is so much longer is not near anyhow, and may be without end.
    let apart = left.chars().count().abs_diff(right.len());
    if apart > FARTHEST {
        return apart;
    }
    let mut row: Vec<usize> = (0..=right.len()).collect();
    for (i, l) in left.chars().enumerate() {
        let mut diagonal = row[0];
        row[0] = i + 1;
        for (j, &r) in right.iter().enumerate() {
            let replaced = diagonal + usize::from(l != r);
            diagonal = row[j + 1];
            row[j + 1] = replaced.min(diagonal + 1).min(row[j] + 1);
        }
    }
    row[right.len()]
}
