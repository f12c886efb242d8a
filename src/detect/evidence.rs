//! The sentence that carries a verdict, found by leaving each one out.

use std::ops::Range;

use unicode_segmentation::UnicodeSegmentation;

use super::{DetectError, Detector};
use crate::corpus::Passage;
use crate::work::{Stop, Stopped};

/// Passages of more sentences are not searched: the cost is one verdict a sentence.
const MOST: usize = 24;

/// Where the sentences of a text stand.
pub fn sentences(text: &str) -> Vec<Range<usize>> {
    text.split_sentence_bound_indices()
        .map(|(start, sentence)| start..start + sentence.trim_end().len())
        .filter(|range| !range.is_empty())
        .collect()
}

/// The sentence without which the probability of support falls most; none if no sentence lowers it, or each verdict has to be asked of
/// a server.
///
/// # Errors
/// The detector failed, or `stop` was set.
pub fn evidence(
    detector: &dyn Detector,
    passage: &Passage,
    statement: &str,
    stop: &Stop,
) -> Result<Option<Range<usize>>, DetectError> {
    let all = sentences(&passage.text);
    if detector.at_once().is_some() {
        return Ok(None);
    }
    match all.as_slice() {
        [] => return Ok(None),
        [only] => return Ok(Some(only.clone())),
        _ if all.len() > MOST => return Ok(None),
        _ => {}
    }
    let whole = detector.judge(passage, statement, stop)?;
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
    Ok(least.1)
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::sync::atomic::AtomicU64;

    use super::*;

    /// Supports as far as the word stands in the text. Stops as the detectors do.
    struct Word;
    impl Detector for Word {
        fn key(&self) -> &str {
            "word"
        }
        fn threshold(&self) -> f32 {
            0.5
        }
        fn judge(&self, passage: &Passage, statement: &str, stop: &Stop) -> Result<f32, DetectError> {
            if stop.is_set() {
                return Err(Stopped.into());
            }
            Ok(if passage.text.contains(statement) { 0.9 } else { 0.1 })
        }
    }

    #[test]
    fn the_sentence_that_matters_is_found_and_silence_has_none() {
        let passage =
            Passage { text: "It rained. The bears paced. Nobody came.".into(), ..Passage::default() };
        let found = |word| evidence(&Word, &passage, word, &Stop::never()).unwrap();
        assert_eq!(found("paced").map(|range| &passage.text[range]), Some("The bears paced."));
        assert_eq!(found("lions"), None);
    }

    #[test]
    fn a_search_that_was_stopped_has_not_found_that_there_is_none() {
        let passage = Passage { text: "It rained. The bears paced.".into(), ..Passage::default() };
        let stop = Stop::when_past(&Arc::new(AtomicU64::new(1)), 0);
        assert_eq!(evidence(&Word, &passage, "paced", &stop), Err(DetectError::Stopped(Stopped)));
    }
}
