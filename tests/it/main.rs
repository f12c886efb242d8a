//! Whole-program tests in one binary.

mod agreement;
mod annotate;
mod biasing;
mod campaign;
mod configuring;
mod corpora;
mod detectors;
mod encoders;
mod evaluation;
mod finding;
mod frames;
mod house;
mod kills;
mod labelling;
mod measure_real_data;
mod models;
mod pir;
mod program;
mod reading;
mod ready;
mod remote;
mod runs;
mod scripts;
mod server;
mod stage;
mod stopping;
mod switches;
mod switching;
#[cfg(unix)]
mod terminal;
mod updates;
mod web;
mod writing;
