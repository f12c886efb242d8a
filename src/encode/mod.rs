//! From a text to a vector, and the vectors of a corpus.
//!
//! Owns [`Encoder`], the carried model, brought ones, [`Vectors`] with their [`Codes`], and the import of vectors made elsewhere
//! ([`ready`]). A text's vector depends on nothing that is encoded beside it.

mod array;
mod brought;
pub(crate) mod card;
mod codes;
mod embed;
pub(crate) mod family;
pub(crate) mod graph;
pub mod hub;
mod minilm;
mod named;
mod products;
pub mod ready;
pub mod registry;
mod remember;
pub(crate) mod tokens;
mod vectors;
pub(crate) mod windows;
mod wire;

pub use brought::Brought;
pub use card::{Card, Directions, Pooling, Similarity, Title};
pub use codes::{Codes, Direction, rounding};
pub use embed::{EmbedError, embed};
pub use minilm::MiniLm;
pub use named::{Named, Source, Towers};
pub use ready::ReadyError;
pub use remember::Remembering;
pub use vectors::Vectors;

use crate::corpus::Passage;

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

/// A model that turns texts into vectors; of unit length where they are compared by cosine.
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

    /// How its vectors are compared.
    fn similarity(&self) -> Similarity {
        Similarity::Cosine
    }

    /// The vector of a passage with its title.
    ///
    /// # Errors
    /// The model cannot be run.
    fn passage(&self, passage: &Passage) -> Result<Vec<f32>, EncodeError> {
        self.encode(&passage.contents(), Role::Passage)
    }
}
