//! The built-in detector: a cross-encoder that reads a passage together with one statement or with two opposite ones, and the built-in
//! encoder's cosine of passage and statement, which is better at recognising the topic. Two statements cost little more than one: the passage is most
//! of the tokens.
//!
//! Its properties are in files next to the weights: `detector.json` (name, longest input), `joint.json`
//! (windows, the decision's parameters and test results) and its tokenizer.

use std::num::NonZeroUsize;
use std::sync::{Arc, OnceLock};

use lru::LruCache;
use parking_lot::Mutex;
use serde::Deserialize;
use tokenizers::{Encoding, Tokenizer};

use super::decision::{DetectError, Logits};
use super::detector::{Both, Detector};
use super::rule::{Reading, Rule, Window};
use super::text::{Frame, STATEMENT, reserved, text};
use crate::assets;
use crate::corpus::Passage;
use crate::encode::graph::{self, Graph, MiniLm};
use crate::encode::tokens::windows;
use crate::encode::{EncodeError, Encoder, Role};
use crate::vector::dot;
use crate::work::{Stop, Stopped};

/// Properties of the built-in weights.
#[derive(Clone, Debug, Deserialize)]
pub struct Card {
    /// The name to display.
    pub name: String,
    /// The most tokens in one input, passage and statement together.
    pub max_tokens: usize,
    /// Whether it is no better than plain cosine on a test set of unseen topics, or too often on the wrong side.
    #[serde(default)]
    pub experimental: bool,
}

/// The detector's tokenizer. It is the encoder's if both have the same vocabulary.
fn tokenizer() -> Result<&'static Tokenizer, DetectError> {
    static READ: OnceLock<Result<Tokenizer, String>> = OnceLock::new();
    let read = || graph::vocabulary(assets::DETECTOR_TOKENIZER).map_err(|error| error.to_string());
    READ.get_or_init(read).as_ref().map_err(|error| DetectError::Model(error.clone()))
}

/// The inputs of the graph, as [`Frame::row`] makes them.
const INPUTS: [&str; 3] = ["input_ids", "position_ids", "owners"];

/// The detector's graph, read once.
fn graph() -> Result<&'static Graph, DetectError> {
    static READ: OnceLock<Result<Graph, EncodeError>> = OnceLock::new();
    let read = READ.get_or_init(|| Graph::builtin(assets::DETECTOR, &INPUTS));
    read.as_ref().map_err(|error| error.clone().into())
}

/// The part of the key that says how a passage is read.
const READ: &[u8] = b"logits and a cosine for every window; two statements in one row";

/// The number of cached vectors; a question has a few hundred passages.
const HELD: NonZeroUsize = NonZeroUsize::new(2_048).unwrap();

/// The built-in encoder's cosines. The vectors are cached, because a passage is judged for several statements and a statement for many
/// passages.
pub(super) struct Cosines {
    encoder: Box<dyn Encoder>,
    vectors: Mutex<LruCache<[u8; 32], Made>>,
}

/// `None` stands for a vector that a thread is making.
type Made = Option<Arc<Vec<f32>>>;

impl Cosines {
    /// Loads the encoder.
    pub(super) fn new() -> Result<Self, DetectError> {
        Ok(Self::by(Box::new(MiniLm::builtin()?)))
    }

    fn by(encoder: Box<dyn Encoder>) -> Self {
        Cosines { encoder, vectors: Mutex::new(LruCache::new(HELD)) }
    }

    /// The cosine of two texts.
    pub(super) fn of(&self, one: &str, other: &str) -> Result<f32, DetectError> {
        Ok(dot(&self.vector(one)?, &self.vector(other)?))
    }

    /// Makes the vector of a text unless it is cached or another thread is making it. Threads that judge one passage for two statements
    /// call this before the slower network, so that one of them makes the vector for both. None waits: a thread that waits for another
    /// thread's graph may be the one that this graph needs.
    pub(super) fn prepare(&self, text: &str) -> Result<(), DetectError> {
        let key = *blake3::hash(text.as_bytes()).as_bytes();
        {
            let mut vectors = self.vectors.lock();
            if vectors.contains(&key) {
                return Ok(());
            }
            vectors.put(key, None);
        }
        let made = self.make(key, text).map(drop);
        if made.is_err() {
            self.vectors.lock().pop(&key);
        }
        made
    }

    /// The encoder's vector of a text. It depends only on the text, so caching it changes no verdict.
    fn vector(&self, text: &str) -> Result<Arc<Vec<f32>>, DetectError> {
        let key = *blake3::hash(text.as_bytes()).as_bytes();
        if let Some(Some(vector)) = self.vectors.lock().get(&key) {
            return Ok(Arc::clone(vector));
        }
        self.make(key, text)
    }

    fn make(&self, key: [u8; 32], text: &str) -> Result<Arc<Vec<f32>>, DetectError> {
        let vector = Arc::new(self.encoder.encode(text, Role::Passage)?);
        self.vectors.lock().put(key, Some(Arc::clone(&vector)));
        Ok(vector)
    }
}

/// The built-in cross-encoder, int8. All share one copy of the weights: an engine that replaces another one reads nothing anew.
pub struct CrossEncoder {
    graph: &'static Graph,
    cosines: Cosines,
    tokenizer: &'static Tokenizer,
    frame: Frame,
    card: Card,
    rule: Rule,
    key: String,
}

impl From<EncodeError> for DetectError {
    fn from(EncodeError(error): EncodeError) -> Self {
        DetectError::Model(error.to_string())
    }
}

impl CrossEncoder {
    /// Loads the built-in model.
    ///
    /// # Errors
    /// The built-in files are damaged.
    pub fn builtin() -> Result<Self, DetectError> {
        let (card, rule) = (Self::card()?, Self::builtin_rule()?);
        let mut hash = blake3::Hasher::new();
        // Readings depend on all of these. The rest of the rule is not part of the key, because its results are never cached.
        let how = format!("{} {:?}", card.max_tokens, rule.windows);
        for part in [assets::DETECTOR, assets::DETECTOR_TOKENIZER, assets::MINILM, READ, how.as_bytes()] {
            hash.update(part);
        }
        let hash = hash.finalize().to_hex();
        let tokenizer = tokenizer()?;
        let frame = Frame::of(tokenizer);
        Ok(CrossEncoder {
            graph: graph()?,
            cosines: Cosines::new()?,
            tokenizer,
            frame: frame
                .ok_or_else(|| DetectError::Model("its tokenizer does not encode pairs of texts".into()))?,
            card,
            rule,
            key: format!("parallax-{}", &hash[..12]),
        })
    }

    /// Reads the card without loading the weights.
    ///
    /// # Errors
    /// The built-in file is damaged.
    pub fn card() -> Result<Card, DetectError> {
        serde_json::from_slice(assets::DETECTOR_DESCRIPTION)
            .map_err(|error| DetectError::Model(error.to_string()))
    }

    /// Reads the rule without loading the weights.
    ///
    /// # Errors
    /// The built-in file is damaged.
    pub fn builtin_rule() -> Result<Rule, DetectError> {
        let rule = Rule::classifier(&Self::card()?.name, true, false);
        rule.fitted(assets::DETECTOR_JOINT).map_err(|error| DetectError::Model(error.to_string()))
    }

    fn tokens(&self, text: &str) -> Result<Encoding, DetectError> {
        Ok(self.tokenizer.encode(text, false).map_err(EncodeError::from)?)
    }

    /// The logits of a passage with each of its statements, of which there are one or two.
    fn logits(&self, passage: &[u32], statements: &[&[u32]]) -> Result<Vec<Logits>, DetectError> {
        let (shape, numbers) = self.graph.numbers::<2>(&self.frame.row(passage, statements))?;
        if shape != [statements.len(), 3] {
            return Err(DetectError::Model("the graph did not return three classes a statement".into()));
        }
        Ok(numbers.chunks_exact(3).map(|z| [z[0], z[1], z[2]]).collect())
    }

    /// Reads a passage with one statement or with two, window by window.
    fn read_with(
        &self,
        passage: &Passage,
        statements: &[&str],
        stop: &Stop,
    ) -> Result<Vec<Reading>, DetectError> {
        let read = text(passage)?;
        let about =
            statements.iter().map(|statement| self.tokens(statement)).collect::<Result<Vec<_>, _>>()?;
        let about: Vec<&[u32]> = about.iter().map(|all| &all.get_ids()[..all.len().min(STATEMENT)]).collect();
        let longest = about.iter().map(|ids| ids.len()).max().unwrap_or_default();
        let room = self.card.max_tokens.saturating_sub(self.frame.len());
        let room = room - reserved(longest, room);
        let mut seen = vec![Vec::new(); statements.len()];
        // Windows of sentences share the cosine of the whole passage; windows of tokens have their own.
        let of_all = self.rule.windows.is_some();
        let parts = self.rule.windows.as_ref().map_or_else(|| vec![read.clone()], |how| how.cut(&read));
        for part in parts {
            let encoded = self.tokens(&part)?;
            if encoded.is_empty() {
                continue;
            }
            for window in windows(encoded.len(), room) {
                if stop.is_set() {
                    return Err(Stopped.into());
                }
                let near = if of_all {
                    &read
                } else if window.len() == encoded.len() {
                    &part
                } else {
                    let offsets = encoded.get_offsets();
                    part.get(offsets[window.start].0..offsets[window.end - 1].1).unwrap_or(&part)
                };
                self.cosines.prepare(near)?;
                let logits = self.logits(&encoded.get_ids()[window.clone()], &about)?;
                for ((seen, logits), statement) in seen.iter_mut().zip(logits).zip(statements) {
                    seen.push(Window { logits, cosine: self.cosines.of(near, statement)? });
                }
            }
        }
        seen.into_iter().map(Reading::new).collect()
    }

    /// Whether a statement has anything to read.
    fn says_something(&self, statement: &str) -> Result<(), DetectError> {
        if self.tokens(statement)?.is_empty() { Err(DetectError::Empty("statement")) } else { Ok(()) }
    }
}

impl Detector for CrossEncoder {
    fn key(&self) -> &str {
        &self.key
    }

    fn rule(&self) -> &Rule {
        &self.rule
    }

    fn experimental(&self) -> bool {
        self.card.experimental
    }

    fn read(&self, passage: &Passage, statement: &str, stop: &Stop) -> Result<Reading, DetectError> {
        text(passage)?;
        self.says_something(statement)?;
        Ok(self.read_with(passage, &[statement], stop)?.swap_remove(0))
    }

    fn reads_both(&self, statements: [&str; 2]) -> bool {
        statements.iter().all(|statement| self.says_something(statement).is_ok())
    }

    fn read_both(&self, passage: &Passage, statements: [&str; 2], stop: &Stop) -> Both {
        if !self.reads_both(statements) {
            return statements.map(|statement| self.read(passage, statement, stop));
        }
        // In one order whichever way round they come, so that sums have the same last bit.
        let [mut first, mut second] = statements;
        let turned = first > second;
        if turned {
            std::mem::swap(&mut first, &mut second);
        }
        match self.read_with(passage, &[first, second], stop) {
            Ok(mut all) => {
                let (last, one) = (all.swap_remove(1), all.swap_remove(0));
                if turned { [Ok(last), Ok(one)] } else { [Ok(one), Ok(last)] }
            }
            Err(error) => [Err(error.clone()), Err(error)],
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};

    use super::*;
    use crate::encode::ModelError;

    #[test]
    fn detectors_of_several_engines_share_their_weights() {
        let [one, other] = [(); 2].map(|()| CrossEncoder::builtin().unwrap());
        assert!(std::ptr::eq(one.graph, other.graph));
    }

    #[test]
    fn the_built_in_files_are_read_and_name_what_was_measured() {
        let (card, rule) = (CrossEncoder::card().unwrap(), CrossEncoder::builtin_rule().unwrap());
        assert_eq!(rule.about.name, card.name);
        assert!(rule.about.test.is_some_and(|test| test.right_side > 0.5 && test.f1 > 0.3), "{rule:?}");
        assert!(!rule.about.unfitted && (0.0..1.0).contains(&rule.heads.rho));
    }

    /// Counts the texts it is asked for, and fails on empty ones.
    struct Counting(Arc<AtomicUsize>);

    impl Encoder for Counting {
        fn key(&self) -> &str {
            "counting"
        }
        fn dimensions(&self) -> usize {
            1
        }
        fn encode(&self, text: &str, _: Role) -> Result<Vec<f32>, EncodeError> {
            self.0.fetch_add(1, Ordering::Relaxed);
            if text.is_empty() { Err(ModelError::NotOnnx.into()) } else { Ok(vec![1.0]) }
        }
    }

    #[test]
    fn a_text_is_made_into_a_vector_once_unless_that_failed() {
        let asked = Arc::new(AtomicUsize::new(0));
        let cosines = Cosines::by(Box::new(Counting(Arc::clone(&asked))));
        for _ in 0..2 {
            cosines.prepare("a passage").unwrap();
            assert_eq!(cosines.of("a passage", "a statement").unwrap(), 1.0);
        }
        assert_eq!(asked.load(Ordering::Relaxed), 2);
        assert!(cosines.prepare("").is_err() && cosines.prepare("").is_err());
        assert_eq!(asked.load(Ordering::Relaxed), 4);
    }
}
