//! Whole-program tests in one binary.

mod frames;
mod house;
mod measure_real_data;
mod models;
mod program;
mod scripts;
mod stage;
mod stopping;
#[cfg(unix)]
mod terminal;
mod updates;
