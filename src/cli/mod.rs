//! The command line: parses the arguments and runs the commands.
//!
//! Results go to standard output, everything else to standard error. Exit codes: 0 done; 1 a check failed; 2 error; 128 + the
//! number of the signal that interrupted the command, such as 130 for SIGINT.
//!
//! May use everything below: `report`, `engine` and what they use, and `tui` to open the explorer.

mod annotate;
mod commands;
mod corpus;
mod detect;
mod doctor;
mod eval;
mod explore;
mod job;
mod manual;
mod models;
mod options;
mod provenance;
mod search;

pub use commands::{main, parser};
