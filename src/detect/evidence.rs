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
/// The detector failed or `stop` was set (as `Ok(Err(Stopped))`).
pub fn evidence(
    detector: &dyn Detector,
    passage: &Passage,
    statement: &str,
    stop: &Stop,
) -> Result<Result<Option<Range<usize>>, Stopped>, DetectError> {
    let all = sentences(&passage.text);
    if detector.at_once().is_some() {
        return Ok(Ok(None));
    }
    match all.as_slice() {
        [] => return Ok(Ok(None)),
        [only] => return Ok(Ok(Some(only.clone()))),
        _ if all.len() > MOST => return Ok(Ok(None)),
        _ => {}
    }
    let whole = detector.judge(passage, statement, stop)?;
    let mut least = (whole, None);
    for sentence in all {
        if stop.is_set() {
            return Ok(Err(Stopped));
        }
        let text = format!("{}{}", &passage.text[..sentence.start], &passage.text[sentence.end..]);
        let without = detector.judge(&Passage { text, ..passage.clone() }, statement, stop)?;
        if without < least.0 {
            least = (without, Some(sentence));
        }
    }
    Ok(Ok(least.1))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Supports as far as the word stands in the text.
    struct Word;
    impl Detector for Word {
        fn key(&self) -> &str {
            "word"
        }
        fn threshold(&self) -> f32 {
            0.5
        }
        fn judge(&self, passage: &Passage, statement: &str, _: &Stop) -> Result<f32, DetectError> {
            Ok(if passage.text.contains(statement) { 0.9 } else { 0.1 })
        }
    }

    #[test]
    fn the_sentence_that_matters_is_found_and_silence_has_none() {
        let passage =
            Passage { text: "It rained. The bears paced. Nobody came.".into(), ..Passage::default() };
        let found = |word| evidence(&Word, &passage, word, &Stop::never()).unwrap().unwrap();
        assert_eq!(found("paced").map(|range| &passage.text[range]), Some("The bears paced."));
        assert_eq!(found("lions"), None);
    }
}
