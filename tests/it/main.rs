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
