//! `parallax frame`: plays keys into the real interface without a terminal and prints or saves the frame.

use std::io::{self, Write};
use std::process::ExitCode;
use std::time::Duration;

use super::args::{Common, Frame};
use super::explore;
use crate::tui;
use crate::tui::theme::Depth;

/// Runs the command.
///
/// # Errors
/// The keys are not in the notation, something is wrong in the configuration, or the lanes did not settle in time.
pub fn run(common: &Common, args: &Frame) -> anyhow::Result<ExitCode> {
    let script = tui::script::parse(&args.keys)?;
    let start = explore::start(common, &[], Depth::Millions)?;
    let frame = tui::play(start, args.size, &script, Duration::from_secs(args.timeout))?;
    match &args.out {
        Some(path) => frame.save(path)?,
        None => io::stdout().write_all(frame.dump(args.style).as_bytes())?,
    }
    Ok(ExitCode::SUCCESS)
}
