//! An extractive reader: a network finds answer spans in each passage, and the passages vote for an answer.
//!
//! This file holds the network with its card, and the probability of each span; `vote` adds them up. The answer is the text with the
//! greatest sum of probabilities over the passages. Each passage is read alone, so its spans do not depend on other passages or their
//! order.
//!
//! May use: corpus, encode, input, work.

use std::collections::HashMap;
use std::ops::Range;
use std::path::Path;

use ring::digest::{SHA256, digest};
use serde::Deserialize;
use tokenizers::Tokenizer;

use super::reader::{ReadError, normalised};
use crate::corpus::Passage;
use crate::encode::graph::Graph;
use crate::encode::tokens::{beginning, from_file, windows};
use crate::encode::{EncodeError, ModelError, graph};
use crate::input::{InputError, SMALL, read_regular};
use crate::work::{Stop, Stopped};

mod vote;

pub use vote::{Extractive, name};

/// The description of a reader model, from its `reader.json`.
#[derive(Clone, Debug, Deserialize)]
pub struct Card {
    /// The name to display.
    pub name: String,
    /// The most tokens in one input, question and passage together.
    pub max_tokens: usize,
    /// The number of tokens of the question that are read.
    pub question_tokens: usize,
    /// The most tokens in an answer.
    pub answer_tokens: usize,
    /// The number that the logits are divided by.
    pub temperature: f64,
    /// SHA-256 of the graph, in hexadecimal digits.
    sha256: String,
}

/// The limit of `max_tokens`: attention grows with its square.
const MOST_TOKENS: usize = 4_096;
/// The limit of `answer_tokens`: the number of spans grows with it.
const LONGEST_ANSWER: usize = 256;

/// The limit of a graph in bytes.
const LONGEST_GRAPH: u64 = 2 << 30;

const CARD_FIELDS: &str = "expected a JSON object with `name`, `max_tokens`, `question_tokens`, `answer_tokens`, `temperature` and \
                        `sha256` (of reader.onnx)";

impl Card {
    /// Reads the card of a folder.
    ///
    /// # Errors
    /// The card is damaged, or its values are not possible.
    pub fn read(folder: &Path) -> Result<Self, InputError> {
        let path = folder.join(CARD);
        let bytes = read_regular(&path, SMALL).map_err(|error| InputError::unreadable(&path, &error))?;
        let wrong = |reason: String| InputError::Unreadable { path: path.clone(), reason };
        let card: Card =
            serde_json::from_slice(&bytes).map_err(|error| wrong(format!("{CARD_FIELDS} ({error})")))?;
        card.validate().map_err(|reason| wrong(reason.into()))?;
        Ok(card)
    }

    fn validate(&self) -> Result<(), &'static str> {
        if self.name.trim().is_empty() {
            return Err("expected a `name` to be shown");
        }
        if self.question_tokens == 0 || self.answer_tokens == 0 {
            return Err("expected `question_tokens` and `answer_tokens` of at least 1");
        }
        if self.max_tokens > MOST_TOKENS || self.answer_tokens > LONGEST_ANSWER {
            return Err("expected `max_tokens` of at most 4096 and `answer_tokens` of at most 256");
        }
        // Windows overlap by half, so with this much room every answer is entirely within one window.
        let room = self.max_tokens.saturating_sub(3).saturating_sub(self.question_tokens);
        if room / 2 < self.answer_tokens {
            return Err("expected `max_tokens` of at least `question_tokens` + 2 × `answer_tokens` + 3");
        }
        if !(self.temperature.is_finite() && self.temperature > 0.0) {
            return Err("expected a `temperature` above 0");
        }
        Ok(())
    }

    /// The first digits of the graph's hash. [`Card::is_of`] checks the hash against the file.
    pub fn key(&self) -> String {
        self.sha256.chars().take(12).collect::<String>().to_ascii_lowercase()
    }

    /// Checks that the card was written for this graph.
    ///
    /// # Errors
    /// It was written for another graph.
    pub fn is_of(&self, graph: &[u8], path: &Path) -> Result<(), InputError> {
        let found: String = digest(&SHA256, graph).as_ref().iter().map(|b| format!("{b:02x}")).collect();
        if self.sha256.eq_ignore_ascii_case(&found) {
            return Ok(());
        }
        let reason = format!(
            "its SHA-256 is {found}, and {CARD} says {}; the files are of two models, or one is damaged: fetch the folder again",
            crate::input::excerpt(&self.sha256)
        );
        Err(InputError::Unreadable { path: path.into(), reason })
    }
}

/// The file with the model's description.
pub const CARD: &str = "reader.json";
const GRAPH: &str = "reader.onnx";
const TOKENIZER: &str = "tokenizer.json";
/// The files of an extractive reader.
pub const EXPECTED: &str = "reader.json with reader.onnx (an extractive reader), perhaps tokenizer.json";

/// Finds possible answers in a passage.
trait Extract: Send + Sync {
    /// Returns the likeliest answers of one passage.
    fn read(&self, question: &str, passage: &Passage, stop: &Stop) -> Result<Vec<Candidate>, ReadError>;
}

const INPUTS: [&str; 3] = ["input_ids", "attention_mask", "token_type_ids"];
const OUTPUT: &str = "spans";

/// The number of bytes of a passage that are read; a longer passage counts as cut.
pub const LONGEST: usize = 1 << 20;

/// The graph with its card and tokenizer.
pub struct Model {
    card: Card,
    graph: Graph,
    tokenizer: Tokenizer,
    cls: i32,
    sep: i32,
}

impl Model {
    /// Loads the model of a folder and tests it on a sentence and on a text of `max_tokens`.
    ///
    /// # Errors
    /// A file is missing or damaged, or the graph is of another kind.
    pub fn load(folder: &Path, card: Card) -> Result<Self, InputError> {
        let path = folder.join(GRAPH);
        let bytes =
            read_regular(&path, LONGEST_GRAPH).map_err(|error| InputError::unreadable(&path, &error))?;
        card.is_of(&bytes, &path)?;
        let wrong = |reason: &dyn std::fmt::Display| InputError::Unreadable {
            path: path.clone(),
            reason: format!(
                "{reason}; expected a graph of {} [1, n] to `{OUTPUT}` [1, n, 2], logits of start and end",
                INPUTS.map(|name| format!("`{name}`")).join(", ")
            ),
        };
        let graph = Graph::custom(bytes, &INPUTS, OUTPUT).map_err(|error| wrong(&error.0))?;
        let (tokenizer, [cls, sep]) = tokenizer(folder)?;
        let model = Model { card, graph, tokenizer, cls, sep };
        let sentence = Passage { text: "It is a sentence.".into(), ..Passage::default() };
        model.read("What is it?", &sentence, &Stop::never()).map_err(|error| wrong(&error))?;
        // A graph may have fewer positions than the card says; only a long text shows it.
        let most = model.card.max_tokens;
        model
            .logits(&[model.sep], &vec![model.sep; most - 4])
            .map_err(|error| wrong(&format!("with {most} tokens, the `max_tokens` of {CARD}: {error}")))?;
        Ok(model)
    }

    /// Returns the logits of start and end: for "no answer", and for every token of the passage.
    fn logits(&self, question: &[i32], passage: &[i32]) -> Result<([f32; 2], Vec<[f32; 2]>), EncodeError> {
        let ids = [&[self.cls], question, &[self.sep], passage, &[self.sep]].concat();
        let (length, first) = (ids.len(), question.len() + 2);
        let kinds = (0..length).map(|at| i32::from(at >= first)).collect();
        let (shape, numbers) = self.graph.numbers::<3>(&[ids, vec![1; length], kinds])?;
        if shape != [1, length, 2] {
            let (expected, found) = (format!("[1, {length}, 2]"), format!("shape {shape:?}"));
            return Err(ModelError::Shape { expected, found }.into());
        }
        let at = |token: usize| [numbers[2 * token], numbers[2 * token + 1]];
        let (none, spans) = (at(0), (first..first + passage.len()).map(at).collect::<Vec<_>>());
        // A model may exclude positions outside the passage with an infinite logit.
        if !std::iter::once(&none).chain(&spans).flatten().all(|logit| logit.is_finite()) {
            return Err(ModelError::NotFinite("logits").into());
        }
        Ok((none, spans))
    }
}

impl Extract for Model {
    fn read(&self, question: &str, passage: &Passage, stop: &Stop) -> Result<Vec<Candidate>, ReadError> {
        if stop.is_set() {
            return Err(Stopped.into());
        }
        let (mut asked, _) = tokens(&self.tokenizer, beginning(question, self.card.question_tokens))?;
        asked.truncate(self.card.question_tokens);
        if asked.is_empty() {
            return Err(ReadError::NoQuestion);
        }
        let text = text(passage);
        let (ids, pieces) = tokens(&self.tokenizer, &text)?;
        let room = self.card.max_tokens - asked.len() - 3;
        let mut found = Vec::new();
        for at in windows(ids.len(), room).filter(|at| !at.is_empty()) {
            if stop.is_set() {
                return Err(Stopped.into());
            }
            let (none, logits) = self.logits(&asked, &ids[at.clone()])?;
            let window = Window { at, none, logits: &logits };
            found.push(texts(&text, &pieces, &window, self.card.answer_tokens, self.card.temperature));
        }
        Ok(merge_windows(found))
    }
}

/// The part of a passage that is read.
fn text(passage: &Passage) -> String {
    let mut text = if passage.title.trim().is_empty() {
        passage.text.clone()
    } else {
        format!("{}. {}", passage.title, passage.text)
    };
    text.truncate(text.floor_char_boundary(LONGEST));
    text
}

/// Whether a passage is longer than the part that is read.
pub fn is_cut(passage: &Passage) -> bool {
    passage.title.len() + ". ".len() + passage.text.len() > LONGEST
}

/// The folder's tokenizer, or the built-in one if it has none, and the ids of `[CLS]` and `[SEP]`.
fn tokenizer(folder: &Path) -> Result<(Tokenizer, [i32; 2]), InputError> {
    let path = folder.join(TOKENIZER);
    let wrong = |reason: String| InputError::Unreadable { path: path.clone(), reason };
    let mut tokenizer = if path.exists() {
        let mut read = from_file(&path)
            .map_err(|error| wrong(format!("not a readable tokenizer ({error}); fetch the folder again")))?;
        read.with_padding(None);
        read.with_truncation(None).map_err(|error| wrong(error.to_string()))?;
        read
    } else {
        graph::tokenizer().map_err(|error| wrong(error.0.to_string()))?.clone()
    };
    // Only this code adds special tokens; `[SEP]` in a passage is plain text.
    tokenizer.set_encode_special_tokens(true);
    let special = |name: &str| {
        let id = tokenizer.token_to_id(name).map(|id| id as i32);
        id.ok_or_else(|| wrong(format!("it has no {name}; expected a tokenizer like BERT's")))
    };
    let specials = [special("[CLS]")?, special("[SEP]")?];
    Ok((tokenizer, specials))
}

/// A text's token ids, and the place of each token in the text.
fn tokens(tokenizer: &Tokenizer, text: &str) -> Result<(Vec<i32>, Vec<Piece>), EncodeError> {
    let encoded = tokenizer.encode(text, false)?;
    let ids = encoded.get_ids().iter().map(|id| *id as i32).collect();
    let words = encoded.get_word_ids();
    let pieces = encoded.get_offsets().iter().enumerate().map(|(at, (from, to))| Piece {
        bytes: *from..*to,
        begins: at == 0 || words[at].is_none() || words[at] != words[at - 1],
    });
    Ok((ids, pieces.collect()))
}

/// The number of texts kept per passage.
const BEST: usize = 20;
/// A span whose score is this far below the best one is e²⁰ times less likely, and is ignored.
const FAR: f64 = 20.0;

/// A token of a passage.
#[derive(Clone, Debug, PartialEq)]
pub struct Piece {
    /// Its bytes in the text.
    pub bytes: Range<usize>,
    /// Whether it begins a word.
    pub begins: bool,
}

/// The model's output for one window.
pub struct Window<'a> {
    /// The window's pieces, by their indices in the passage.
    pub at: Range<usize>,
    /// The logits of "no answer here": start and end.
    pub none: [f32; 2],
    /// The logits of every piece of the window: as a start, as an end.
    pub logits: &'a [[f32; 2]],
}

/// A possible answer in a passage, with its probability.
#[derive(Clone, Debug, PartialEq)]
pub struct Candidate {
    /// The text in the normalised form in which answers are compared.
    pub normalised: String,
    /// The sum of the probabilities of all spans with this text.
    pub p: f64,
    /// The text of its likeliest span, as in the passage.
    pub wording: String,
    /// The probability of that span.
    pub likeliest: f64,
}

impl Candidate {
    /// Takes the wording of the likelier span. Ties go to the alphabetically first, so that the order of spans has no effect.
    fn reword(&mut self, (likeliest, wording): (f64, &str)) {
        let order = likeliest.total_cmp(&self.likeliest).then_with(|| self.wording.as_str().cmp(wording));
        if order.is_gt() {
            (self.likeliest, self.wording) = (likeliest, wording.to_owned());
        }
    }
}

/// The possible answers in one window. One softmax covers all spans of whole words of at most `longest` tokens, and "no answer".
pub fn texts(
    text: &str,
    pieces: &[Piece],
    window: &Window<'_>,
    longest: usize,
    temperature: f64,
) -> Vec<Candidate> {
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
    let mut found: HashMap<String, Candidate> = HashMap::new();
    for (i, j, score) in spans.into_iter().filter(|span| span.2 >= best - FAR) {
        let wording = text.get(pieces[i].bytes.start..pieces[j].bytes.end).unwrap_or_default().trim();
        let normalised = normalised(wording);
        if normalised.is_empty() {
            continue;
        }
        let p = (score - whole).exp();
        let candidate = found.entry(normalised).or_insert_with_key(|normalised| Candidate {
            normalised: normalised.clone(),
            p: 0.0,
            wording: wording.into(),
            likeliest: p,
        });
        candidate.p += p;
        candidate.reword((p, wording));
    }
    found.into_values().collect()
}

/// The likeliest texts over all windows, each with its greatest probability in any window.
pub fn merge_windows(windows: impl IntoIterator<Item = Vec<Candidate>>) -> Vec<Candidate> {
    let mut found: HashMap<String, Candidate> = HashMap::new();
    for candidate in windows.into_iter().flatten() {
        match found.get_mut(&candidate.normalised) {
            Some(earlier) => {
                earlier.p = earlier.p.max(candidate.p);
                earlier.reword((candidate.likeliest, &candidate.wording));
            }
            None => drop(found.insert(candidate.normalised.clone(), candidate)),
        }
    }
    let mut all: Vec<Candidate> = found.into_values().collect();
    all.sort_by(|a, b| b.p.total_cmp(&a.p).then_with(|| a.normalised.cmp(&b.normalised)));
    all.truncate(BEST);
    all
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_mark_that_a_text_spells_is_text() {
        let (tokenizer, marks) = tokenizer(Path::new("none")).unwrap();
        let (ids, pieces) = tokens(&tokenizer, "a [SEP] b [CLS]").unwrap();
        assert!(!ids.iter().any(|id| marks.contains(id)), "{ids:?}");
        assert_eq!((ids.len(), pieces[2].bytes.clone()), (9, 3..6));
    }

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

    fn read(text: &str, logits: &[[f32; 2]], longest: usize, temperature: f64) -> Vec<Candidate> {
        let window = Window { at: 0..logits.len(), none: [0.0; 2], logits };
        merge_windows([texts(text, &pieces(text), &window, longest, temperature)])
    }

    fn p(candidate: &[Candidate], text: &str) -> f64 {
        candidate.iter().find(|one| one.normalised == text).map_or(0.0, |one| one.p)
    }

    #[test]
    fn all_spans_and_no_answer_share_one_softmax() {
        // Two words without any logit: three spans and "no answer" are alike.
        let candidate = read("red cat", &[[0.0; 2]; 2], 8, 1.0);
        assert_eq!(candidate.len(), 3);
        assert!(candidate.iter().all(|one| (one.p - 0.25).abs() < 1e-12), "{candidate:?}");
        let candidate = read("red", &[[1.0, 1.0]], 8, 2.0);
        assert!((candidate[0].p - 1f64.exp() / (1.0 + 1f64.exp())).abs() < 1e-12, "{candidate:?}");
    }

    #[test]
    fn spans_that_come_to_the_same_text_add_up_and_the_likeliest_gives_the_words() {
        // "The cat", "cat" twice: three of ten spans; two of "the" or articles alone say nothing.
        let candidate = read("The cat a cat", &[[0.0, 0.0], [0.5, 0.5], [0.0; 2], [0.0; 2]], 1, 1.0);
        let whole = 1.0 + 3.0 + 1f64.exp();
        assert!((p(&candidate, "cat") - (1.0 + 1f64.exp()) / whole).abs() < 1e-12, "{candidate:?}");
        assert_eq!(candidate.len(), 1);
        let candidate = read("The Cat", &[[1.0, 0.0], [0.0, 1.0]], 2, 1.0);
        assert_eq!((candidate[0].wording.as_str(), candidate[0].normalised.as_str()), ("The Cat", "cat"));
    }

    #[test]
    fn no_span_begins_or_ends_within_a_word_or_is_too_long() {
        let candidate = read("well-known cat", &[[0.0, 9.0], [9.0, 0.0], [0.0; 2]], 2, 1.0);
        let texts: Vec<&str> = candidate.iter().map(|one| one.wording.as_str()).collect();
        assert_eq!(texts.len(), 2);
        assert!(texts.contains(&"well-known") && texts.contains(&"cat"), "{texts:?}");
        assert_eq!(read("well-known", &[[0.0; 2]; 2], 1, 1.0), [], "a word longer than an answer may be");
    }

    #[test]
    fn a_word_that_a_window_cuts_is_no_answer_there() {
        let text = "big well-known";
        let window = Window { at: 0..2, none: [0.0; 2], logits: &[[0.0; 2], [5.0, 5.0]] };
        let candidate = texts(text, &pieces(text), &window, 4, 1.0);
        assert_eq!(candidate.iter().map(|one| one.wording.as_str()).collect::<Vec<_>>(), ["big"]);
    }

    #[test]
    fn of_several_windows_the_greatest_probability_counts() {
        let candidate = |p, likeliest, wording: &str| Candidate {
            normalised: "cat".into(),
            p,
            wording: wording.into(),
            likeliest,
        };
        let joined = merge_windows([vec![candidate(0.3, 0.3, "cat")], vec![candidate(0.5, 0.2, "Cat")]]);
        assert_eq!(joined, [candidate(0.5, 0.3, "cat")]);
    }

    #[test]
    fn the_likeliest_texts_are_kept_and_far_scores_overflow_nothing() {
        let text = (0..60).map(|i| format!("w{i}")).collect::<Vec<_>>().join(" ");
        let mut logits = vec![[0.0; 2]; 60];
        logits[7] = [1e30, 1e30];
        let candidate = read(&text, &logits, 4, 1e-3);
        assert_eq!((candidate[0].wording.as_str(), candidate[0].p), ("w7", 1.0));
        let candidate = read(&text, &[[-1e30; 2]; 60], 4, 1.0);
        assert!(candidate.len() == BEST && candidate.iter().all(|one| one.p == 0.0));
    }
}
