//! `parallax corpus`: what is kept of a corpus.

mod vectors;

use std::process::ExitCode;

use super::args::{Common, CorpusCommand};

/// Runs the command.
///
/// # Errors
/// The corpus or what it is given is not right, or the library cannot be read or written.
pub fn run(common: &Common, command: &CorpusCommand) -> anyhow::Result<ExitCode> {
    match command {
        CorpusCommand::Vectors(args) => vectors::run(common, args),
    }
}
