//! A cross-encoder that was brought along: any folder with a network for sequence classification, trained for inference or stance.
//!
//! The passage is the premise and the statement the hypothesis. A passage longer than the window is read as by the carried
//! detector: in windows that overlap by half, of which the one that supports most counts.

use std::path::Path;

use tokenizers::Tokenizer;

use super::classes::Classes;
use super::pair::{STATEMENT, text};
use super::{DetectError, Detector, EVEN};
use crate::corpus::Passage;
use crate::encode::family::{Classifier, Config, Weights, weight_files};
use crate::encode::windows::windows;
use crate::encode::{EncodeError, Named, Source, card, tokens};
use crate::input::InputError;
use crate::work::{Stop, Stopped};

/// A brought cross-encoder.
pub struct BroughtCrossEncoder {
    key: String,
    classifier: Classifier,
    classes: Classes,
    tokenizer: Tokenizer,
    frame: Frame,
    window: usize,
}

/// What a tokenizer puts around a pair of texts: tokens, and the kind of each.
#[derive(Debug, PartialEq)]
struct Frame {
    before: Vec<(u32, u32)>,
    between: Vec<(u32, u32)>,
    after: Vec<(u32, u32)>,
    /// The kinds of the two texts' tokens.
    kinds: [u32; 2],
}

impl Frame {
    /// Asked of the tokenizer by a pair of short texts.
    fn of(tokenizer: &Tokenizer) -> Option<Self> {
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

    fn len(&self) -> usize {
        self.before.len() + self.between.len() + self.after.len()
    }

    /// Tokens and kinds of a whole sequence.
    fn around(&self, passage: &[u32], statement: &[u32]) -> (Vec<u32>, Vec<u32>) {
        let of = |tokens: &[u32], kind: u32| tokens.iter().map(|id| (*id, kind)).collect::<Vec<_>>();
        let [first, second] = self.kinds;
        let parts = [&self.before, &of(passage, first), &self.between, &of(statement, second), &self.after];
        parts.into_iter().flatten().copied().unzip()
    }
}

impl BroughtCrossEncoder {
    /// Loads a model; one from the hub lies below `models`. `supports` names the class that means support, where the model's own
    /// names do not tell.
    ///
    /// # Errors
    /// It is not there, a file is missing or damaged, or it cannot be told which class means support.
    pub fn load(source: &Source, supports: Option<&str>, models: &Path) -> Result<Self, InputError> {
        let named = Named::from(source.clone());
        let folder = named.towers(models)?.passages;
        let config = Config::read(&folder)?;
        let classifier = Classifier::load(&config, &mut Weights::read(&folder)?)?;
        let labels = config.labels(classifier.classes)?;
        let classes =
            Classes::find(&labels, supports, config.many_labels()).map_err(|why| config.wrong(&why))?;
        let window = card::window(&folder, &config)?;
        let mut tokenizer = tokens::read(&folder, window, config.vocabulary()?)?;
        let wrong = |why: &str| config.wrong(why);
        // Passages are cut into windows here.
        tokenizer.with_truncation(None).map_err(|error| wrong(&error.to_string()))?;
        let frame = Frame::of(&tokenizer).ok_or_else(|| wrong("its tokenizer reads no pair of texts"))?;
        if window < frame.len() + 2 {
            return Err(wrong(&format!("a window of {window} tokens has no room for a pair of texts")));
        }
        let mut hasher = blake3::Hasher::new();
        let mut files = weight_files(&folder)?;
        files.extend(tokens::files(&folder)?);
        files.push(folder.join("config.json"));
        for file in files {
            hasher.update_mmap(&file).map_err(|error| InputError::unreadable(&file, &error))?;
        }
        hasher.update(format!("{classes:?} {window}").as_bytes());
        let key = format!("{}-{}", named.slug(), &hasher.finalize().to_hex()[..12]);
        Ok(BroughtCrossEncoder { key, classifier, classes, tokenizer, frame, window })
    }

    /// A number for every class, of the first window.
    ///
    /// # Errors
    /// The pair is empty or the model failed.
    pub fn logits(&self, passage: &Passage, statement: &str) -> Result<Vec<f32>, DetectError> {
        let mut first = None;
        self.each_window(passage, statement, &mut |logits| {
            first.get_or_insert(logits);
            false
        })?;
        first.ok_or(DetectError::Empty("passage"))
    }

    fn tokens(&self, text: &str) -> Result<Vec<u32>, DetectError> {
        Ok(self.tokenizer.encode_fast(text, false).map_err(EncodeError::from)?.get_ids().to_vec())
    }

    /// Runs window after window, until `go_on` says no.
    fn each_window(
        &self,
        passage: &Passage,
        statement: &str,
        go_on: &mut dyn FnMut(Vec<f32>) -> bool,
    ) -> Result<(), DetectError> {
        let (tokens, mut asked) = (self.tokens(&text(passage)?)?, self.tokens(statement)?);
        let room = self.window - self.frame.len();
        // However small the window, the passage has half of it.
        asked.truncate(STATEMENT.min(room / 2));
        for (tokens, what) in [(&asked, "statement"), (&tokens, "passage")] {
            if tokens.is_empty() {
                return Err(DetectError::Empty(what));
            }
        }
        for window in windows(tokens.len(), room - asked.len()) {
            let (ids, kinds) = self.frame.around(&tokens[window], &asked);
            if !go_on(self.classifier.logits(&ids, &kinds)?) {
                break;
            }
        }
        Ok(())
    }
}

impl Detector for BroughtCrossEncoder {
    fn key(&self) -> &str {
        &self.key
    }

    fn threshold(&self) -> f32 {
        EVEN
    }

    fn judge(&self, passage: &Passage, statement: &str, stop: &Stop) -> Result<f32, DetectError> {
        let mut most = 0.0f32;
        self.each_window(passage, statement, &mut |logits| {
            most = most.max(self.classes.probability(&logits).unwrap_or_default());
            !stop.is_set()
        })?;
        // What was not read to its end has no verdict.
        if stop.is_set() { Err(Stopped.into()) } else { Ok(most) }
    }
}
