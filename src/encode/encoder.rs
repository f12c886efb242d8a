//! The encoder trait, how vectors are compared, and an encoder that caches query vectors.

use std::borrow::Cow;
use std::error::Error;
use std::num::NonZeroUsize;
use std::ops::Range;
use std::sync::Arc;

use lru::LruCache;
use parking_lot::Mutex;
use unicode_segmentation::UnicodeSegmentation;

use crate::corpus::Passage;
use crate::vector::dot;

/// Why a text has no vector.
#[derive(Clone, Debug, thiserror::Error)]
#[error("the model could not be run: {0}")]
pub struct EncodeError(pub ModelError);

/// What went wrong in a model or its tokenizer. Errors of other crates are shared, so that an error can be cloned.
#[derive(Clone, Debug, thiserror::Error)]
pub enum ModelError {
    /// The file is not an ONNX graph.
    #[error("the file is not a valid ONNX graph")]
    NotOnnx,
    /// The crate that runs the graph panicked.
    #[error("the graph has a part that cannot be run here")]
    Panicked,
    /// The tokenizer returned an error.
    #[error("{0}")]
    Tokenizer(Arc<dyn Error + Send + Sync>),
    /// The graph or the network could not be loaded or run.
    #[error("{}", first_line(.0))]
    Network(Arc<dyn Error + Send + Sync>),
    /// The output has another shape.
    #[error("the output has {found}, expected {expected}")]
    Shape {
        /// The expected shape.
        expected: String,
        /// The shape of the output.
        found: String,
    },
    /// An output is NaN or infinite; holds the name of the output, in the plural.
    #[error("the {0} contain NaN or infinity")]
    NotFinite(&'static str),
}

impl ModelError {
    /// An error of the crate that runs the graph or the network.
    pub fn network(error: impl Error + Send + Sync + 'static) -> Self {
        ModelError::Network(Arc::new(error))
    }
}

/// The first line of an error: candle's errors may contain a backtrace.
fn first_line(error: &Arc<dyn Error + Send + Sync>) -> String {
    error.to_string().lines().next().unwrap_or_default().to_owned()
}

impl From<ModelError> for EncodeError {
    fn from(error: ModelError) -> Self {
        EncodeError(error)
    }
}

impl From<tokenizers::Error> for EncodeError {
    fn from(error: tokenizers::Error) -> Self {
        EncodeError(ModelError::Tokenizer(error.into()))
    }
}

/// The role of a text: some models read queries and passages differently.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Role {
    /// A query.
    Query,
    /// A passage.
    Passage,
}

/// A model that turns texts into vectors. Vectors compared by cosine have unit length.
pub trait Encoder: Send + Sync {
    /// The model's name and a hash of its weights; vectors of another key are not comparable.
    fn key(&self) -> &str;
    /// The length of its vectors.
    fn dimensions(&self) -> usize;
    /// The vector of one text. Text beyond the model's window is not read.
    ///
    /// # Errors
    /// The model cannot be run.
    fn encode(&self, text: &str, role: Role) -> Result<Vec<f32>, EncodeError>;

    /// How its vectors are compared.
    fn similarity(&self) -> Similarity {
        Similarity::Cosine
    }

    /// The vector of a query behind an instruction of its own, in place of the model's prefix.
    ///
    /// # Errors
    /// The model cannot be run.
    fn instructed(&self, instruction: &str, text: &str) -> Result<Vec<f32>, EncodeError> {
        self.encode(&format!("{instruction}{text}"), Role::Query)
    }

    /// The vector of a passage with its title.
    ///
    /// # Errors
    /// The model cannot be run.
    fn passage(&self, passage: &Passage) -> Result<Vec<f32>, EncodeError> {
        self.encode(&passage.contents(), Role::Passage)
    }
}

/// Scores a passage for one query.
pub type PassageScore<'a> = Box<dyn Fn(&Passage) -> Result<f32, EncodeError> + Send + Sync + 'a>;

/// A model that scores passages with a query.
pub trait PassageScorer: Send + Sync {
    /// The model's name and a hash of its weights; scores of another key are not comparable.
    fn key(&self) -> &str;

    /// Scores passages for a query; what depends on the query alone is computed once.
    ///
    /// # Errors
    /// The model cannot be run.
    fn with_query<'a>(&'a self, query: &'a str) -> Result<PassageScore<'a>, EncodeError>;

    /// For a model that compares tokens: those of the query, each with its nearest of the passage. Empty for other models.
    ///
    /// # Errors
    /// The model cannot be run.
    fn met(&self, _query: &str, _passage: &Passage) -> Result<Vec<Met>, EncodeError> {
        Ok(Vec::new())
    }
}

/// A token of a query and the nearest token of a passage.
#[derive(Clone, Debug, PartialEq)]
pub struct Met {
    /// The word that the query's token is part of; empty for punctuation, a special token, or one that only fills the query.
    pub query: String,
    /// The word that the passage's token is part of; empty for punctuation and special tokens.
    pub passage: String,
    /// Its part of the score: their dot product, for BGE-M3 over the number of the query's tokens.
    pub similarity: f32,
}

impl Met {
    /// Those of the query's words that are at least as near as their mean.
    pub fn close(all: &[Met]) -> Vec<&Met> {
        let words: Vec<&Met> = all.iter().filter(|met| !met.query.is_empty()).collect();
        let mean = words.iter().map(|met| met.similarity).sum::<f32>() / words.len().max(1) as f32;
        words.into_iter().filter(|met| met.similarity >= mean - 1e-6).collect()
    }
}

/// A token's vector, and its place in the text; a place of no length for special tokens.
pub type Token = (Vec<f32>, Range<usize>);

/// Each token of a query with its nearest of a passage; similarities are divided by `of`.
pub(super) fn meet((query, asked): (&str, &[Token]), (passage, own): (&str, &[Token]), of: f32) -> Vec<Met> {
    let nearest = |(vector, place): &Token| {
        let all = own.iter().map(|(other, place)| (dot(vector, other), place));
        let (similarity, met) = all.max_by(|(a, _), (b, _)| a.total_cmp(b))?;
        Some(Met { query: word(query, place), passage: word(passage, met), similarity: similarity / of })
    };
    asked.iter().filter_map(nearest).collect()
}

/// The word that a place is part of, as Unicode divides words; empty for punctuation and blanks. Some tokens begin with a blank.
fn word(text: &str, place: &Range<usize>) -> String {
    let token = text.get(place.clone()).unwrap_or_default().trim_start();
    if token.is_empty() {
        return String::new();
    }
    let from = place.end - token.len();
    let around =
        text.unicode_word_indices().find(|(start, word)| *start <= from && from < start + word.len());
    around.map_or_else(String::new, |(_, word)| word.to_owned())
}

/// How two vectors are compared.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Similarity {
    /// The dot product of the vectors as the model returns them.
    Dot,
    /// The cosine: vectors are scaled to unit length.
    Cosine,
}

impl Similarity {
    /// Its name.
    pub fn name(self) -> &'static str {
        match self {
            Similarity::Dot => "dot product",
            Similarity::Cosine => "cosine",
        }
    }

    /// A row scaled to unit length. For [`Similarity::Cosine`] rows have unit length already.
    pub fn unit(self, row: &[f32]) -> Cow<'_, [f32]> {
        match self {
            Similarity::Cosine => Cow::Borrowed(row),
            Similarity::Dot => {
                let length = row.iter().map(|x| f64::from(*x).powi(2)).sum::<f64>().sqrt() as f32;
                Cow::Owned(row.iter().map(|x| if length > 0.0 { x / length } else { 0.0 }).collect())
            }
        }
    }
}

/// An encoder whose vectors are scaled to unit length, so that their dot product is the cosine.
pub struct Directions<'a>(pub &'a dyn Encoder);

impl Encoder for Directions<'_> {
    fn key(&self) -> &str {
        self.0.key()
    }

    fn dimensions(&self) -> usize {
        self.0.dimensions()
    }

    fn encode(&self, text: &str, role: Role) -> Result<Vec<f32>, EncodeError> {
        Ok(self.0.similarity().unit(&self.0.encode(text, role)?).into_owned())
    }
}

/// An encoder that reads one query as its root behind an instruction made of its perspective (Zhao et al., Table 10). Other texts stand
/// behind the same instruction.
pub struct Instructed<'a> {
    inner: &'a dyn Encoder,
    instruction: String,
    query: &'a str,
    root: &'a str,
}

impl<'a> Instructed<'a> {
    /// The encoder of a query with this root and perspective.
    pub fn new(inner: &'a dyn Encoder, query: &'a str, root: &'a str, perspective: &str) -> Self {
        let instruction = format!("Represent the text for retrieving {}: ", perspective.trim());
        Instructed { inner, instruction, query, root }
    }
}

impl Encoder for Instructed<'_> {
    fn key(&self) -> &str {
        self.inner.key()
    }

    fn dimensions(&self) -> usize {
        self.inner.dimensions()
    }

    fn similarity(&self) -> Similarity {
        self.inner.similarity()
    }

    fn encode(&self, text: &str, role: Role) -> Result<Vec<f32>, EncodeError> {
        match role {
            Role::Query => {
                self.inner.instructed(&self.instruction, if text == self.query { self.root } else { text })
            }
            Role::Passage => self.inner.encode(text, role),
        }
    }
}

/// The number of query vectors in the cache: about 6 MB at 384 dimensions.
const HELD: NonZeroUsize = NonZeroUsize::new(4_096).unwrap();

/// An encoder that caches the vectors of recent queries, because every toggle asks the same question again. Passages are not cached:
/// they are embedded once and stored on disk.
pub struct Remembering<E> {
    inner: E,
    vectors: Mutex<LruCache<String, Arc<[f32]>>>,
}

impl<E: Encoder> Remembering<E> {
    /// Wraps `inner` with an empty cache.
    pub fn new(inner: E) -> Self {
        Remembering { inner, vectors: Mutex::new(LruCache::new(HELD)) }
    }
}

impl<E: Encoder> Encoder for Remembering<E> {
    fn key(&self) -> &str {
        self.inner.key()
    }

    fn dimensions(&self) -> usize {
        self.inner.dimensions()
    }

    fn similarity(&self) -> Similarity {
        self.inner.similarity()
    }

    fn passage(&self, passage: &Passage) -> Result<Vec<f32>, EncodeError> {
        self.inner.passage(passage)
    }

    fn instructed(&self, instruction: &str, text: &str) -> Result<Vec<f32>, EncodeError> {
        self.inner.instructed(instruction, text)
    }

    fn encode(&self, text: &str, role: Role) -> Result<Vec<f32>, EncodeError> {
        if role == Role::Passage {
            return self.inner.encode(text, role);
        }
        if let Some(vector) = self.vectors.lock().get(text) {
            return Ok(vector.to_vec());
        }
        // The cache is not locked during this call. A second thread may compute the same vector, with the same result.
        let vector = self.inner.encode(text, role)?;
        self.vectors.lock().put(text.to_owned(), vector.as_slice().into());
        Ok(vector)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::{AtomicUsize, Ordering};

    #[derive(Default)]
    struct Counting(AtomicUsize);

    impl Encoder for Counting {
        fn key(&self) -> &str {
            "counting"
        }
        fn dimensions(&self) -> usize {
            1
        }
        fn encode(&self, text: &str, _: Role) -> Result<Vec<f32>, EncodeError> {
            self.0.fetch_add(1, Ordering::Relaxed);
            Ok(vec![text.len() as f32])
        }
    }

    #[test]
    fn a_query_is_encoded_once_and_a_passage_every_time() {
        let encoder = Remembering::new(Counting::default());
        for role in [Role::Query, Role::Query, Role::Passage, Role::Passage] {
            assert_eq!(encoder.encode("abc", role).unwrap(), [3.0]);
        }
        assert_eq!(encoder.inner.0.load(Ordering::Relaxed), 3);
    }

    #[test]
    fn the_cache_is_bounded_and_drops_the_oldest_query() {
        let encoder = Remembering::new(Counting::default());
        for i in 0..=HELD.get() {
            encoder.encode(&i.to_string(), Role::Query).unwrap();
        }
        let vectors = encoder.vectors.lock();
        assert_eq!(vectors.len(), HELD.get());
        assert!(!vectors.contains("0") && vectors.contains("1"));
    }

    #[test]
    fn a_token_shows_the_word_that_it_is_part_of_and_its_nearest() {
        let query = "Ban the zoo?";
        // "Ban", a special token, and " zo", with its blank, of "zoo".
        let asked = [(vec![1.0, 0.0], 0..3), (vec![0.0, 1.0], 0..0), (vec![0.6, 0.8], 7..10)];
        let own = [(vec![0.8, 0.6], 0..5), (vec![0.0, 1.0], 6..10)];
        let met = meet((query, &asked), ("close menageries", &own), 1.0);
        let hundredths = |met: &Met| (met.similarity * 100.0).round() as i32;
        let shown: Vec<_> = met.iter().map(|met| (&*met.query, &*met.passage, hundredths(met))).collect();
        assert_eq!(shown, [("Ban", "close", 80), ("", "menageries", 100), ("zoo", "close", 96)]);
        assert_eq!(Met::close(&met), [&met[2]], "the mean of the words is .88");
        assert!(meet((query, &asked), ("", &[]), 1.0).is_empty(), "no passage, nothing met");
        let words = [("it’s", 2..5), ("zoo?", 3..4), ("naïve", 0..3), ("a b", 1..2)];
        assert_eq!(words.map(|(text, place)| word(text, &place)), ["it’s", "", "", ""].map(str::to_owned));
    }
}
