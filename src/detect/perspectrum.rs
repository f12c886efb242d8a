//! Perspectrum's claims as labels: its evidence supports a claim or undermines it.
//!
//! A claim is a question of the set, by its number (`cId`) or its text; the passages are the evidence, by number. Evidence for a
//! perspective that supports the claim supports the question's supporting statement, the rest the other one.

use std::collections::HashMap;
use std::path::Path;

use serde::Deserialize;

use crate::input::{self, BadLine, InputError};
use crate::question::Question;

#[derive(Deserialize)]
struct Claim {
    #[serde(rename = "cId")]
    id: u64,
    text: String,
    perspectives: Vec<Cluster>,
}

#[derive(Deserialize)]
struct Cluster {
    stance_label_3: String,
    #[serde(default)]
    evidence: Vec<u64>,
}

/// Statement and passage of everything that supports a statement of these questions.
///
/// # Errors
/// The file is no list of claims, a claim's question has not two sides, a stance is unknown, or no claim is in the set.
pub(super) fn read(path: &Path, questions: &[Question]) -> Result<Vec<(String, String)>, InputError> {
    let text = input::text(path)?;
    let claims: Vec<Claim> = serde_json::from_str(&text).map_err(|error| {
        let found = text.lines().nth(error.line().saturating_sub(1)).unwrap_or_default();
        let expected = format!("a JSON list of Perspectrum's claims (cId, text, perspectives; {error})");
        let (file, line) = (path.into(), error.line());
        InputError::BadLines(vec![BadLine { file, line, expected, found: found.chars().take(100).collect() }])
    })?;
    let by_name: HashMap<&str, &Question> =
        questions.iter().flat_map(|q| [(q.id.as_str(), q), (q.text.as_str(), q)]).collect();
    let wrong = |reason: String| InputError::Unreadable { path: path.into(), reason };
    let mut pairs = Vec::new();
    for claim in &claims {
        let number = claim.id.to_string();
        let Some(question) = by_name.get(claim.text.as_str()).or_else(|| by_name.get(number.as_str())) else {
            // The file is about all claims, a question set may be about some.
            continue;
        };
        let (Some(yes), [first, second]) = (question.supports, question.perspectives.as_slice()) else {
            return Err(wrong(format!(
                "claim {number} needs a question with two perspectives; expected them in the question set"
            )));
        };
        let sides = if yes == 0 { [first, second] } else { [second, first] };
        for cluster in &claim.perspectives {
            let side = match cluster.stance_label_3.as_str() {
                "SUPPORT" => sides[0],
                "UNDERMINE" => sides[1],
                other => {
                    let found = input::excerpt(other);
                    return Err(wrong(format!(
                        "claim {number}: expected SUPPORT or UNDERMINE, found {found}"
                    )));
                }
            };
            pairs.extend(cluster.evidence.iter().map(|passage| (side.clone(), passage.to_string())));
        }
    }
    if pairs.is_empty() {
        return Err(wrong(
            "expected a claim of the question set, by its cId or its text; there is none".into(),
        ));
    }
    Ok(pairs)
}
