//! `parallax statements`: questions → the statements of their sides, one JSON object a line.

use std::io::{self, BufRead, Write};
use std::path::Path;
use std::process::ExitCode;

use anyhow::{Context, bail};

use super::args::StatementsArgs;
use crate::question::statements;

/// Runs the command.
///
/// # Errors
/// There is no question, or the file cannot be read.
pub fn run(args: &StatementsArgs) -> anyhow::Result<ExitCode> {
    let mut out = io::BufWriter::new(io::stdout().lock());
    let mut write = |question: &str| -> anyhow::Result<()> {
        serde_json::to_writer(&mut out, &statements(question))?;
        Ok(out.write_all(b"\n")?)
    };
    args.question.iter().try_for_each(|question| write(question))?;
    match &args.file {
        Some(path) if path == Path::new("-") => {
            for line in io::stdin().lock().lines() {
                write(line.context("standard input is not UTF-8 text")?.trim())?;
            }
        }
        Some(path) => {
            let mut failed = None;
            crate::input::lines(path, |_, line| {
                failed = failed.take().or(write(line.trim()).err());
                Ok(())
            })?;
            failed.map_or(Ok(()), Err)?;
        }
        None if args.question.is_empty() => {
            bail!("no question; try: parallax statements \"Should zoos be banned?\"")
        }
        None => {}
    }
    out.flush()?;
    Ok(ExitCode::SUCCESS)
}
