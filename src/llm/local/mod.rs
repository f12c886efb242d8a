//! A model from a GGUF file, run by candle on its own thread.
//!
//! [`Local::open`] reads the header, so that a wrong file is reported at once; the weights are read at the first request.
//!
//! May use: encode (tokenizers), input, work.

mod gguf;
mod model;
mod network;
mod prompt;
#[cfg(test)]
mod tests;

pub use model::Local;
