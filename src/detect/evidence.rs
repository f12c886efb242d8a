//! The sentence that decides a verdict.

use std::ops::Range;

use super::decision::DetectError;
use super::detector::Detector;
use super::text::sentences;
use crate::corpus::Passage;
use crate::work::{Stop, Stopped};

/// The most sentences of a passage that is searched, because each sentence costs one verdict.
const MOST: usize = 24;

/// The sentence that a verdict rests on.
#[derive(Clone, Debug, PartialEq)]
pub struct EvidenceSentence {
    /// Its byte range in the passage's text.
    pub at: Range<usize>,
    /// How far the probability of support falls without it; `None` if it is the only sentence.
    pub fall: Option<f32>,
}

/// Finds the sentence whose removal lowers the probability of support most. `None` if no removal lowers it, or if verdicts come
/// from a server.
///
/// # Errors
/// The detector failed, or `stop` was set.
pub fn evidence(
    detector: &dyn Detector,
    passage: &Passage,
    statement: &str,
    stop: &Stop,
) -> Result<Option<EvidenceSentence>, DetectError> {
    let all = sentences(&passage.text);
    if !detector.rereads() {
        return Ok(None);
    }
    match all.as_slice() {
        [] => return Ok(None),
        [only] => return Ok(Some(EvidenceSentence { at: only.clone(), fall: None })),
        _ if all.len() > MOST => return Ok(None),
        _ => {}
    }
    let whole = match detector.judge(passage, statement, stop) {
        Err(DetectError::Foreign { .. }) => return Ok(None),
        whole => whole?,
    };
    let mut least = (whole, None);
    for sentence in all {
        if stop.is_set() {
            return Err(Stopped.into());
        }
        let text = format!("{}{}", &passage.text[..sentence.start], &passage.text[sentence.end..]);
        let without = detector.judge(&Passage { text, ..passage.clone() }, statement, stop)?;
        if without < least.0 {
            least = (without, Some(sentence));
        }
    }
    Ok(least.1.map(|at| EvidenceSentence { at, fall: Some(whole - least.0) }))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::detect::rule::{Reading, Rule};
    use std::sync::Arc;
    use std::sync::atomic::AtomicU64;

    /// Supports a statement contained in the text. Stops as detectors do.
    #[derive(Default)]
    struct Word(Rule);
    impl Detector for Word {
        fn key(&self) -> &str {
            "word"
        }
        fn rule(&self) -> &Rule {
            &self.0
        }
        fn read(&self, passage: &Passage, statement: &str, stop: &Stop) -> Result<Reading, DetectError> {
            if stop.is_set() {
                return Err(Stopped.into());
            }
            Ok(Reading::of(if passage.text.contains(statement) { 0.9 } else { 0.1 }))
        }
    }

    #[test]
    fn the_decisive_sentence_is_found_and_an_unsupported_statement_has_none() {
        let passage =
            Passage { text: "It rained. The bears paced. Nobody came.".into(), ..Passage::default() };
        let found = |word| evidence(&Word::default(), &passage, word, &Stop::never()).unwrap();
        let sentence = found("paced").unwrap();
        assert_eq!(&passage.text[sentence.at], "The bears paced.");
        assert!(sentence.fall.is_some_and(|fall| (fall - 0.8).abs() < 1e-6), "{:?}", sentence.fall);
        assert_eq!(found("lions"), None);
        let one = Passage { text: "The bears paced.".into(), ..Passage::default() };
        let only = evidence(&Word::default(), &one, "paced", &Stop::never()).unwrap();
        assert_eq!(only, Some(EvidenceSentence { at: 0..16, fall: None }));
    }

    #[test]
    fn a_stopped_search_is_an_error_and_not_no_sentence() {
        let passage = Passage { text: "It rained. The bears paced.".into(), ..Passage::default() };
        let stop = Stop::when_past(&Arc::new(AtomicU64::new(1)), 0);
        assert_eq!(evidence(&Word::default(), &passage, "paced", &stop), Err(DetectError::Stopped(Stopped)));
    }
}
