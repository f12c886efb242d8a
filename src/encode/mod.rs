//! Texts to vectors, and the vectors of a corpus.
//!
//! | file | holds |
//! | --- | --- |
//! | `encoder` | the [`Encoder`] trait, [`Similarity`], a cache of query vectors |
//! | `graph` | ONNX graphs and the built-in encoder; files are validated first |
//! | `registry` | models by name, and the families they belong to |
//! | `hub`, `manifest` | models fetched from a Hugging Face hub |
//! | `custom` | an encoder from a folder: its settings and tokenizer (`card`), its network (`family`) |
//! | `reranker` | models that score a passage with a query |
//! | `sparse` | learned sparse models: texts to weights of terms |
//! | `vectors` | the vectors of a corpus: computed, stored, compared |
//! | `corpus_vectors`, `array` | vectors computed elsewhere |
//!
//! The vector of a text never depends on other texts.
//! May use: assets, corpus, input, net, storage, vector, work.

mod array;
pub(crate) mod card;
pub mod corpus_vectors;
mod custom;
mod encoder;
pub(crate) mod family;
pub(crate) mod graph;
pub mod hub;
mod manifest;
pub mod registry;
pub mod reranker;
pub mod sparse;
mod vectors;

pub(crate) use array::tokens;

pub use card::Card;
pub use corpus_vectors::{EmbedError, ImportError, embed};
pub use custom::CustomEncoder;
pub use encoder::{
    Directions, EncodeError, Encoder, Instructed, ModelError, PassageScore, PassageScorer, Remembering, Role,
    Similarity,
};
pub use graph::{MiniLm, first_tokens};
pub use manifest::{HubError, Manifest};
pub use registry::{Named, Pooling, Source, Title, Towers};
pub use reranker::{CrossScorer, LateScorer};
pub use sparse::SparseEncoder;
pub use vectors::{Codes, Direction, Vectors};
