//! `parallax config`: what is set for the interface, where that is, and what is wrong with it.

use std::io::{self, Write};
use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::Context;
use clap::Subcommand;

use super::args::Common;
use crate::tui::config::Source;

/// What to do with the configuration.
#[derive(Debug, Subcommand)]
pub enum ConfigAction {
    /// Tell everything that is wrong with it, a line each; exit code 1 if there is anything.
    Check {
        /// A file instead of the one that would be used.
        file: Option<PathBuf>,
    },
    /// Print the file's place.
    Path,
    /// Print what is in effect as a whole file, and which of it is not a default.
    Show,
}

/// Runs the command.
///
/// # Errors
/// The system has no place for a configuration, or what is to be shown is wrong.
pub fn run(common: &Common, action: &ConfigAction) -> anyhow::Result<ExitCode> {
    let mut source = common.configuration();
    if let ConfigAction::Check { file: Some(file) } = action {
        (source.path, source.named) = (Some(file.clone()), true);
    }
    let path = source.path.clone().context(
        "this system names no folder for configurations; name a file with --config or PARALLAX_CONFIG",
    )?;
    let mut out = io::stdout().lock();
    match action {
        ConfigAction::Path => writeln!(out, "{}", path.display())?,
        // An absent file is what it prints one for.
        ConfigAction::Show => {
            source.named &= path.exists();
            write!(out, "{}", source.load()?)?;
        }
        ConfigAction::Check { .. } => return check(&source, &mut out),
    }
    Ok(ExitCode::SUCCESS)
}

fn check(source: &Source, out: &mut impl Write) -> anyhow::Result<ExitCode> {
    match source.load() {
        Ok(_) => {
            let path = source.path.clone().unwrap_or_default();
            let found = if path.exists() { "nothing is wrong" } else { "not there; the defaults hold" };
            writeln!(out, "{}: {found}", path.display())?;
            Ok(ExitCode::SUCCESS)
        }
        Err(problems) => {
            for line in problems.lines() {
                writeln!(out, "{line}")?;
            }
            Ok(ExitCode::from(1))
        }
    }
}
