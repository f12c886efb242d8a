//! The part of a passage that a detector reads, its language, and its sentences.

use std::ops::Range;

use serde::Deserialize;
use tokenizers::Tokenizer;
use unicode_segmentation::UnicodeSegmentation;

use super::decision::DetectError;
use crate::corpus::Passage;

/// The number of tokens of a statement that are read.
pub const STATEMENT: usize = 96;

/// The number of bytes of a passage that are read; more than a chapter. Without a limit, a passage of megabytes would take hours.
const LONGEST: usize = 100_000;

/// The text of a passage, then its title: the input that BERDS gives to its detectors.
///
/// # Errors
/// Both are empty. A title without a text is judged, because published corpora have such passages.
pub fn text(passage: &Passage) -> Result<String, DetectError> {
    let beginning = |text: &'_ str| text[..text.floor_char_boundary(LONGEST)].to_owned();
    let read = format!("{} {}", beginning(&passage.text), beginning(&passage.title));
    if read.trim().is_empty() { Err(DetectError::Empty("passage")) } else { Ok(read.trim_end().to_owned()) }
}

/// Whether a passage is so long that only its beginning is judged.
pub fn cut(passage: &Passage) -> bool {
    passage.text.len() > LONGEST
}

/// The number of tokens reserved for the statement. It takes only two values, so that a passage nearly always has the same windows
/// for both statements of a question.
pub fn reserved(statement: usize, room: usize) -> usize {
    let step = if statement <= SHORT { SHORT } else { STATEMENT };
    // The passage gets at least half of the room.
    step.min(room / 2)
}

/// The most tokens of a usual statement.
const SHORT: usize = 32;

/// How a passage is cut into windows of sentences. `tools/detector/windows.py` cuts them in the same way.
#[derive(Clone, Debug, PartialEq, Deserialize)]
pub struct Sentences {
    /// Sentences per window; 0 means that the passage is read whole.
    pub sentences: usize,
    /// Sentences between the beginnings of two windows.
    #[serde(default = "one")]
    pub stride: usize,
    /// The most windows per passage; from more, this many are chosen at even distances.
    #[serde(default = "six")]
    pub most: usize,
}

fn one() -> usize {
    1
}

fn six() -> usize {
    6
}

impl Sentences {
    /// The windows of a text.
    pub fn cut(&self, text: &str) -> Vec<String> {
        let all = whole_sentences(text);
        let (size, stride) = (self.sentences, self.stride.max(1));
        if size == 0 || all.len() <= size {
            return vec![text.to_owned()];
        }
        let (mut windows, mut at) = (Vec::new(), 0);
        while at < all.len() {
            let short = all.len() - at < size;
            if at > 0 && short && stride < size && at + size - stride >= all.len() {
                // The window before holds all its sentences.
                break;
            }
            windows.push(all[at..(at + size).min(all.len())].join(" "));
            at += stride;
        }
        let (count, most) = (windows.len(), self.most.max(1));
        if count <= most {
            return windows;
        }
        let even =
            |i: usize| (i as f64 * (count - 1) as f64 / (most - 1).max(1) as f64).round_ties_even() as usize;
        let mut kept: Vec<usize> = (0..most).map(even).collect();
        kept.dedup();
        kept.into_iter().map(|i| windows[i].clone()).collect()
    }
}

/// Splits a text at its full stops. A sentence of fewer than five words is joined to the one before it.
fn whole_sentences(text: &str) -> Vec<String> {
    let mut ends = Vec::new();
    let mut chars = text.char_indices().peekable();
    while let Some((_, c)) = chars.next() {
        if !matches!(c, '.' | '!' | '?') {
            continue;
        }
        let mut ahead = chars.clone();
        while ahead.next_if(|(_, c)| matches!(c, '"' | '\'' | '”' | '’' | ')')).is_some() {}
        if ahead.next_if(|(_, c)| c.is_whitespace()).is_some() {
            while ahead.next_if(|(_, c)| c.is_whitespace()).is_some() {}
            ends.push(ahead.peek().map_or(text.len(), |(i, _)| *i));
            chars = ahead;
        }
    }
    ends.push(text.len());
    let (mut all, mut at): (Vec<String>, usize) = (Vec::new(), 0);
    for end in ends {
        let sentence = text[at..end].trim();
        at = end;
        match all.last_mut() {
            _ if sentence.is_empty() => {}
            Some(last) if sentence.split_whitespace().count() < 5 => *last += &format!(" {sentence}"),
            _ => all.push(sentence.to_owned()),
        }
    }
    all
}

/// The special tokens that a tokenizer puts around a pair of texts, each with its segment.
#[derive(Debug, PartialEq)]
pub struct Frame {
    before: Vec<(u32, u32)>,
    between: Vec<(u32, u32)>,
    after: Vec<(u32, u32)>,
    /// The segments of the two texts.
    kinds: [u32; 2],
}

impl Frame {
    /// Finds the special tokens by encoding a pair of short texts.
    pub fn of(tokenizer: &Tokenizer) -> Option<Self> {
        const SHORT: &str = "a";
        let bare = tokenizer.encode_fast(SHORT, false).ok()?;
        let pair = tokenizer.encode_fast((SHORT, SHORT), true).ok()?;
        let (bare, all) = (bare.get_ids(), pair.get_ids());
        if bare.is_empty() {
            return None;
        }
        let found =
            |from: usize| Some(from + all.get(from..)?.windows(bare.len()).position(|run| run == bare)?);
        let first = found(0)?;
        let second = found(first + bare.len())?;
        let part = |range: std::ops::Range<usize>| {
            all[range.clone()].iter().copied().zip(pair.get_type_ids()[range].iter().copied()).collect()
        };
        Some(Frame {
            before: part(0..first),
            between: part(first + bare.len()..second),
            after: part(second + bare.len()..all.len()),
            kinds: [pair.get_type_ids()[first], pair.get_type_ids()[second]],
        })
    }

    /// The number of special tokens.
    pub fn len(&self) -> usize {
        self.before.len() + self.between.len() + self.after.len()
    }

    /// The tokens and segments of a whole sequence.
    pub fn around(&self, passage: &[u32], statement: &[u32]) -> (Vec<u32>, Vec<u32>) {
        let of = |tokens: &[u32], kind: u32| tokens.iter().map(|id| (*id, kind)).collect::<Vec<_>>();
        let [first, second] = self.kinds;
        let parts = [&self.before, &of(passage, first), &self.between, &of(statement, second), &self.after];
        parts.into_iter().flatten().copied().unzip()
    }

    /// A passage and its statements in one row: the tokens, their positions, and to whom they belong (0: the passage, 1: the first statement). Each
    /// statement has an opening token of its own, and all stand at the same positions, behind the passage (`tools/detector/model.py`).
    pub fn row(&self, passage: &[u32], statements: &[&[u32]]) -> [Vec<i32>; 3] {
        let mut row = [(); 3].map(|()| Vec::new());
        let mut add = |tokens: &mut dyn Iterator<Item = u32>, from: usize, owner: usize| {
            for (i, token) in tokens.enumerate() {
                let [ids, positions, owners] = &mut row;
                ids.push(token as i32);
                positions.push((from + i) as i32);
                owners.push(owner as i32);
            }
        };
        let special = |tokens: &[(u32, u32)]| tokens.iter().map(|(id, _)| *id).collect::<Vec<u32>>();
        let [before, between, after] = [&self.before, &self.between, &self.after].map(|part| special(part));
        for owner in 1..=statements.len() {
            add(&mut before.iter().copied(), 0, owner);
        }
        add(&mut passage.iter().chain(&between).copied(), before.len(), 0);
        let behind = before.len() + passage.len() + between.len();
        for (i, statement) in statements.iter().enumerate() {
            add(&mut statement.iter().chain(&after).copied(), behind, i + 1);
        }
        row
    }
}

/// The number of characters examined to detect a language; more do not improve the result.
const LETTERS: usize = 2_000;

/// The name of a text's language, if it is clearly not English.
pub fn foreign(text: &str) -> Option<&'static str> {
    let end = text.char_indices().nth(LETTERS).map_or(text.len(), |(i, _)| i);
    let found = whatlang::detect(&text[..end])?;
    (found.is_reliable() && found.lang() != whatlang::Lang::Eng).then(|| found.lang().eng_name())
}

/// The byte ranges of a text's sentences.
pub fn sentences(text: &str) -> Vec<Range<usize>> {
    text.split_sentence_bound_indices()
        .map(|(start, sentence)| start..start + sentence.trim_end().len())
        .filter(|range| !range.is_empty())
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::corpus::sample;

    #[test]
    fn only_the_beginning_of_a_huge_passage_is_read_and_its_title() {
        let passage = |text: String| Passage { title: "T".into(), text, ..Passage::default() };
        assert_eq!(text(&passage("x".into())), Ok("x T".into()));
        let long = passage("é".repeat(5_000_000));
        let read = text(&long).unwrap();
        assert_eq!((read.len(), read.ends_with("é T"), cut(&long)), (LONGEST + 2, true, true));
    }

    #[test]
    fn a_title_alone_is_read_and_without_one_the_passage_is_empty() {
        let titled = |title: &str| Passage { title: title.into(), text: " ".into(), ..Passage::default() };
        assert_eq!(text(&titled("Zoos")).as_deref(), Ok("  Zoos"));
        assert_eq!((text(&titled("")), cut(&titled(""))), (Err(DetectError::Empty("passage")), false));
    }

    #[test]
    fn other_languages_are_recognised_and_the_sample_is_english() {
        let german = "Zoos sollten verboten werden, weil wilde Tiere in Käfigen leiden und dort nicht so leben können, wie es \
                      ihrer Art entspricht. Viele von ihnen gehen den ganzen Tag im Kreis.";
        assert_eq!(foreign(german), Some("German"));
        assert_eq!(foreign("動物園は禁止されるべきです。動物は檻の中で苦しみます。"), Some("Japanese"));
        let corpus = sample::corpus();
        let taken: Vec<String> = corpus
            .places()
            .map(|at| corpus.passage(at))
            .filter_map(|passage| Some(format!("{}: {}", foreign(&passage.text)?, passage.text)))
            .collect();
        assert_eq!(taken, Vec::<String>::new());
        assert_eq!(foreign(""), None);
        assert_eq!(foreign("42"), None);
    }

    #[test]
    fn windows_of_sentences_are_those_of_the_training() {
        let text = "One two three four five. “Six seven eight nine ten?” Yes. Eleven twelve thirteen fourteen fifteen! A b c d e";
        let two = Sentences { sentences: 2, stride: 1, most: 6 };
        assert_eq!(
            two.cut(text),
            [
                "One two three four five. “Six seven eight nine ten?” Yes.",
                "“Six seven eight nine ten?” Yes. Eleven twelve thirteen fourteen fifteen!",
                "Eleven twelve thirteen fourteen fifteen! A b c d e",
            ]
        );
        assert_eq!(two.cut("Short. And whole."), ["Short. And whole."]);
        assert_eq!(Sentences { sentences: 0, ..two.clone() }.cut(text), [text]);
        let long: String = (0..20).map(|i| format!("Sentence number {i} stands here. ")).collect();
        let cut = two.cut(&long);
        // There are 19 windows; the indices 0, 3.6, 7.2, 10.8, 14.4 and 18 are rounded.
        let first = |window: &String| window.split(' ').nth(2).unwrap().to_owned();
        assert_eq!(cut.iter().map(first).collect::<Vec<_>>(), ["0", "4", "7", "11", "14", "18"]);
    }

    #[test]
    fn opposite_statements_leave_the_same_room() {
        assert_eq!(
            (reserved(9, 253), reserved(12, 253), reserved(40, 253), reserved(96, 60)),
            (32, 32, 96, 30)
        );
    }

    #[test]
    fn statements_stand_side_by_side_behind_the_passage_each_with_its_own_opening_token() {
        let frame =
            Frame { before: vec![(1, 0)], between: vec![(2, 0), (2, 0)], after: vec![(2, 1)], kinds: [0, 1] };
        let [ids, positions, owners] = frame.row(&[10, 11], &[&[20, 21], &[30]]);
        assert_eq!(ids, [1, 1, 10, 11, 2, 2, 20, 21, 2, 30, 2]);
        assert_eq!(positions, [0, 0, 1, 2, 3, 4, 5, 6, 7, 5, 6]);
        assert_eq!(owners, [1, 2, 0, 0, 0, 0, 1, 1, 1, 2, 2]);
        let [ids, positions, owners] = frame.row(&[10], &[&[20]]);
        assert_eq!((ids, positions), (vec![1, 10, 2, 2, 20, 2], vec![0, 1, 2, 3, 4, 5]));
        assert_eq!(owners, [1, 0, 0, 0, 1, 1]);
    }
}
