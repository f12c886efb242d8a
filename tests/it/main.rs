//! Whole-program tests in one binary.

mod annotate;
mod biasing;
mod campaign;
mod configuring;
mod corpora;
mod demo;
mod detectors;
mod encoders;
mod evaluation;
mod examples;
mod finding;
mod frames;
mod house;
mod labelling;
mod models;
mod one_engine;
mod program;
mod reading;
mod remote;
mod runs;
mod scripts;
mod server;
mod stage;
mod switches;
#[cfg(unix)]
mod terminal;
mod updates;
mod web_doubles;
mod writing;

/// A detector with random weights that judges in no time, for tests in which any verdict will do.
const TINY_DETECTOR: &str = concat!("path:", env!("CARGO_MANIFEST_DIR"), "/tests/fixtures/detectors/bert");
