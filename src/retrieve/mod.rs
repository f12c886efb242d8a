//! From a query to a ranked list of passages.
//!
//! Owns [`Hit`], [`Retriever`] and one file an engine. It must not know about perspectives, verdicts or screens.

pub mod analysis;
pub mod bm25;
pub mod dense;
pub mod fuse;
mod index;
mod top;

pub use index::TermIndex;

use crate::corpus::PassageIx;
use crate::work::{Stop, Stopped};

/// A passage that a retriever brought up.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Hit {
    /// The passage.
    pub passage: PassageIx,
    /// The retriever's own score; comparable within one list only.
    pub score: f32,
}

/// Why a list could not be made.
#[derive(Debug, thiserror::Error)]
pub enum RetrieveError {
    /// The index could not be read.
    #[error("the term index cannot be read ({0}); remove the corpus from the cache and add it again")]
    Index(String),
    /// The vectors could not be read.
    #[error("the vectors cannot be read ({0}); remove the corpus from the cache and add it again")]
    Vectors(std::io::Error),
    /// The query could not be encoded.
    #[error(transparent)]
    Encode(#[from] crate::encode::EncodeError),
    /// Stopped on request.
    #[error(transparent)]
    Stopped(#[from] Stopped),
}

/// Anything that ranks the passages of one corpus for a query.
pub trait Retriever: Send + Sync {
    /// The best `depth` passages, best first; equal scores in order of passage id.
    ///
    /// # Errors
    /// The engine failed, or `stop` was set.
    fn search(&self, query: &str, depth: usize, stop: &Stop) -> Result<Vec<Hit>, RetrieveError>;
}
