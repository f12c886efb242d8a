//! From logits to texts: what each span of a passage has as its probability, and the texts that spans share.

use std::collections::HashMap;
use std::ops::Range;

use crate::read::answer::normalised;

/// Texts kept of a passage.
const BEST: usize = 20;
/// A span whose score is this far below the best one is e²⁰ times less likely, and is not spelt out.
const FAR: f64 = 20.0;

/// A token of a passage.
#[derive(Clone, Debug, PartialEq)]
pub struct Piece {
    /// Its bytes in the text.
    pub bytes: Range<usize>,
    /// It begins a word; others go on with one.
    pub begins: bool,
}

/// What the model gave for one window.
pub struct Window<'a> {
    /// The window's pieces, by their place in the passage.
    pub at: Range<usize>,
    /// Of "no answer here": start and end.
    pub none: [f32; 2],
    /// Of every piece of the window: as a start, as an end.
    pub logits: &'a [[f32; 2]],
}

/// A text that a passage may say, and how likely it says it.
#[derive(Clone, Debug, PartialEq)]
pub struct Said {
    /// As answers are compared.
    pub normalised: String,
    /// The sum over all spans that come to this text.
    pub p: f64,
    /// The words of its likeliest span.
    pub wording: String,
    /// The probability of that span.
    pub likeliest: f64,
}

impl Said {
    /// Takes the words of the likelier span; of two alike, those first in the alphabet, so that no order counts.
    fn reword(&mut self, other: (f64, &str)) {
        let by = other.0.total_cmp(&self.likeliest).then_with(|| self.wording.as_str().cmp(other.1));
        if by.is_gt() {
            (self.likeliest, self.wording) = (other.0, other.1.to_owned());
        }
    }
}

/// The texts of one window, by a softmax over all spans of whole words of at most `longest` tokens and "no answer".
pub fn texts(
    text: &str,
    pieces: &[Piece],
    window: &Window<'_>,
    longest: usize,
    temperature: f64,
) -> Vec<Said> {
    let Range { start, end } = window.at;
    let none = f64::from(window.none[0]) + f64::from(window.none[1]);
    let ends = |at: usize| pieces.get(at + 1).is_none_or(|next| next.begins);
    let logit = |at: usize, which: usize| f64::from(window.logits[at - start][which]);
    let mut spans = Vec::new();
    for i in (start..end).filter(|i| pieces[*i].begins) {
        for j in (i..(i + longest).min(end)).filter(|j| ends(*j)) {
            spans.push((i, j, (logit(i, 0) + logit(j, 1) - none) / temperature));
        }
    }
    let best = spans.iter().map(|span| span.2).fold(f64::NEG_INFINITY, f64::max);
    let top = best.max(0.0);
    let whole = top + spans.iter().fold((-top).exp(), |sum, span| sum + (span.2 - top).exp()).ln();
    let mut found: HashMap<String, Said> = HashMap::new();
    for (i, j, score) in spans.into_iter().filter(|span| span.2 >= best - FAR) {
        let wording = text.get(pieces[i].bytes.start..pieces[j].bytes.end).unwrap_or_default().trim();
        let normalised = normalised(wording);
        if normalised.is_empty() {
            continue;
        }
        let p = (score - whole).exp();
        let said = found.entry(normalised).or_insert_with_key(|normalised| Said {
            normalised: normalised.clone(),
            p: 0.0,
            wording: wording.into(),
            likeliest: p,
        });
        said.p += p;
        said.reword((p, wording));
    }
    found.into_values().collect()
}

/// The likeliest texts over all windows, each with the greatest probability that it has in one.
pub fn joined(windows: impl IntoIterator<Item = Vec<Said>>) -> Vec<Said> {
    let mut found: HashMap<String, Said> = HashMap::new();
    for said in windows.into_iter().flatten() {
        match found.get_mut(&said.normalised) {
            Some(known) => {
                known.p = known.p.max(said.p);
                known.reword((said.likeliest, &said.wording));
            }
            None => drop(found.insert(said.normalised.clone(), said)),
        }
    }
    let mut all: Vec<Said> = found.into_values().collect();
    all.sort_by(|a, b| b.p.total_cmp(&a.p).then_with(|| a.normalised.cmp(&b.normalised)));
    all.truncate(BEST);
    all
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Words of a text as pieces; what follows a `-` goes on with the word before it.
    fn pieces(text: &str) -> Vec<Piece> {
        let mut found = Vec::new();
        let mut from = 0;
        for part in text.split_inclusive([' ', '-']) {
            let begins = from == 0 || text.as_bytes()[from - 1] == b' ';
            found.push(Piece { bytes: from..from + part.trim_end().len(), begins });
            from += part.len();
        }
        found
    }

    fn read(text: &str, logits: &[[f32; 2]], longest: usize, temperature: f64) -> Vec<Said> {
        let window = Window { at: 0..logits.len(), none: [0.0; 2], logits };
        joined([texts(text, &pieces(text), &window, longest, temperature)])
    }

    fn p(said: &[Said], text: &str) -> f64 {
        said.iter().find(|one| one.normalised == text).map_or(0.0, |one| one.p)
    }

    #[test]
    fn all_spans_and_no_answer_share_one_softmax() {
        // Two words without any logit: three spans and "no answer" are alike.
        let said = read("red cat", &[[0.0; 2]; 2], 8, 1.0);
        assert_eq!(said.len(), 3);
        assert!(said.iter().all(|one| (one.p - 0.25).abs() < 1e-12), "{said:?}");
        let said = read("red", &[[1.0, 1.0]], 8, 2.0);
        assert!((said[0].p - 1f64.exp() / (1.0 + 1f64.exp())).abs() < 1e-12, "{said:?}");
    }

    #[test]
    fn spans_that_come_to_the_same_text_add_up_and_the_likeliest_gives_the_words() {
        // "The cat", "cat" twice: three of ten spans; two of "the" or articles alone say nothing.
        let said = read("The cat a cat", &[[0.0, 0.0], [0.5, 0.5], [0.0; 2], [0.0; 2]], 1, 1.0);
        let whole = 1.0 + 3.0 + 1f64.exp();
        assert!((p(&said, "cat") - (1.0 + 1f64.exp()) / whole).abs() < 1e-12, "{said:?}");
        assert_eq!(said.len(), 1);
        let said = read("The Cat", &[[1.0, 0.0], [0.0, 1.0]], 2, 1.0);
        assert_eq!((said[0].wording.as_str(), said[0].normalised.as_str()), ("The Cat", "cat"));
    }

    #[test]
    fn no_span_begins_or_ends_within_a_word_or_is_too_long() {
        let said = read("well-known cat", &[[0.0, 9.0], [9.0, 0.0], [0.0; 2]], 2, 1.0);
        let texts: Vec<&str> = said.iter().map(|one| one.wording.as_str()).collect();
        assert_eq!(texts.len(), 2);
        assert!(texts.contains(&"well-known") && texts.contains(&"cat"), "{texts:?}");
        assert_eq!(read("well-known", &[[0.0; 2]; 2], 1, 1.0), [], "a word longer than an answer may be");
    }

    #[test]
    fn a_word_that_a_window_cuts_is_no_answer_there() {
        let text = "big well-known";
        let window = Window { at: 0..2, none: [0.0; 2], logits: &[[0.0; 2], [5.0, 5.0]] };
        let said = texts(text, &pieces(text), &window, 4, 1.0);
        assert_eq!(said.iter().map(|one| one.wording.as_str()).collect::<Vec<_>>(), ["big"]);
    }

    #[test]
    fn of_several_windows_the_greatest_probability_counts() {
        let said = |p, likeliest, wording: &str| Said {
            normalised: "cat".into(),
            p,
            wording: wording.into(),
            likeliest,
        };
        let joined = joined([vec![said(0.3, 0.3, "cat")], vec![said(0.5, 0.2, "Cat")]]);
        assert_eq!(joined, [said(0.5, 0.3, "cat")]);
    }

    #[test]
    fn the_likeliest_texts_are_kept_and_far_scores_overflow_nothing() {
        let text = (0..60).map(|i| format!("w{i}")).collect::<Vec<_>>().join(" ");
        let mut logits = vec![[0.0; 2]; 60];
        logits[7] = [1e30, 1e30];
        let said = read(&text, &logits, 4, 1e-3);
        assert_eq!((said[0].wording.as_str(), said[0].p), ("w7", 1.0));
        let said = read(&text, &[[-1e30; 2]; 60], 4, 1.0);
        assert!(said.len() == BEST && said.iter().all(|one| one.p == 0.0));
    }
}
