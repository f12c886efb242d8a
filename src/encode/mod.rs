//! From a text to a vector, and the vectors of a corpus.
//!
//! Owns [`Encoder`], the carried model, [`Vectors`] with their [`Codes`], and the import of vectors made elsewhere ([`ready`]). A text's vector depends on nothing that is encoded beside it.

mod array;
mod codes;
mod embed;
pub(crate) mod graph;
mod minilm;
mod products;
pub mod ready;
mod remember;
mod vectors;

pub use codes::{Codes, Direction, rounding};
pub use embed::{EmbedError, embed};
pub use minilm::MiniLm;
pub use ready::ReadyError;
pub use remember::Remembering;
pub use vectors::Vectors;

/// Why a text has no vector.
#[derive(Debug, thiserror::Error)]
#[error("the model could not be run: {0}")]
pub struct EncodeError(pub String);

/// What a text is to the search: some models read queries and passages differently.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Role {
    /// Something asked.
    Query,
    /// Something that may be found.
    Passage,
}

/// A model that turns texts into vectors of unit length.
pub trait Encoder: Send + Sync {
    /// The model's name and a hash of its weights; vectors of another key are not comparable.
    fn key(&self) -> &str;
    /// Length of its vectors.
    fn dimensions(&self) -> usize;
    /// The vector of one text; what lies past the model's window is not read.
    ///
    /// # Errors
    /// The model cannot be run.
    fn encode(&self, text: &str, role: Role) -> Result<Vec<f32>, EncodeError>;
}
