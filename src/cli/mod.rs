//! The command line: as typed → resolved → run. Results go to standard output, everything else to standard error.
//!
//! Exit codes: 0 done; 1 a check failed; 2 error; 130 interrupted.

mod against;
mod annotate;
mod args;
mod config;
mod corpus;
mod demo;
mod detect;
mod eval;
mod explore;
mod frame;
mod interrupt;
mod man;
mod models;
mod progress;
mod search;
mod statements;
mod switches;

use std::io::{self, Write};
use std::process::ExitCode;

use clap::error::{ContextKind, ContextValue};
use clap::parser::ValueSource;
use clap::{ArgMatches, CommandFactory, FromArgMatches};

pub use args::Args;
use args::Command;

use crate::remote::Place;
use crate::report::safe::line;

/// Parses the command line and runs it.
pub fn main() -> ExitCode {
    let args = match parsed() {
        Ok(args) => args,
        Err(mut error) => {
            hide(&mut error);
            // Help and version are answers, not errors.
            let code = if error.use_stderr() { 2 } else { 0 };
            let _ = error.print();
            return ExitCode::from(code);
        }
    };
    match run(args) {
        Ok(code) => code,
        Err(error) if is_broken_pipe(&error) => ExitCode::SUCCESS,
        Err(error) => {
            // What is wrong in somebody's file is told in its words.
            let told: Vec<String> = format!("parallax: {error:#}").lines().map(line).collect();
            let _ = writeln!(io::stderr(), "{}", told.join("\n"));
            ExitCode::from(2)
        }
    }
}

/// The command line, with what of it was typed.
fn parsed() -> Result<Args, clap::Error> {
    let matches = Args::command().try_get_matches()?;
    let mut args = Args::from_arg_matches(&matches).map_err(|error| error.format(&mut Args::command()))?;
    args.common.typed = typed(&matches);
    Ok(args)
}

/// The names of the options that were typed, before the command or after it.
fn typed(matches: &ArgMatches) -> Vec<String> {
    let below = std::iter::successors(Some(matches), |above| above.subcommand().map(|(_, below)| below));
    let named = |all: &ArgMatches| {
        let ids = all.ids().map(|id| id.as_str());
        let typed = ids.filter(|id| all.value_source(id) == Some(ValueSource::CommandLine));
        typed.map(str::to_owned).collect::<Vec<_>>()
    };
    below.flat_map(named).collect()
}

/// The command line is repeated where it is wrong, and the address of an engine may hold a password.
fn hide(error: &mut clap::Error) {
    let Some(ContextValue::String(value)) = error.get(ContextKind::InvalidValue) else { return };
    if let Some(kind) = Place::meant(value.trim()) {
        let shown = format!("{}…", kind.prefix());
        error.insert(ContextKind::InvalidValue, ContextValue::String(shown));
    }
}

fn run(args: Args) -> anyhow::Result<ExitCode> {
    let Args { common, question, command } = args;
    if (common.questions.len() > 1 || common.labels.len() > 1) && !matches!(command, Some(Command::Eval(_))) {
        anyhow::bail!("several --questions or --labels are for `parallax eval`; name one file each");
    }
    match command {
        None => explore::run_unnamed(&common, &question),
        Some(Command::Explore { question }) => explore::run(&common, &question),
        Some(Command::Search(search)) => search::run(&common, &search),
        Some(Command::Statements(statements)) => statements::run(&statements),
        Some(Command::Detect(detect)) => detect::run(&common, &detect),
        Some(Command::Eval(eval)) => eval::run(&common, &eval),
        Some(Command::Annotate(annotate)) => annotate::run(&common, &annotate),
        Some(Command::Corpus(command)) => corpus::run(&common, &command),
        Some(Command::Models(args)) => models::run(&common, &args),
        Some(Command::Demo(demo)) => demo::run(&common, &demo),
        Some(Command::Frame(frame)) => frame::run(&common, &frame),
        Some(Command::Config { action }) => config::run(&common, &action),
        Some(Command::Man { command }) => man::run(&command),
        Some(Command::Completions { shell }) => {
            // It panics where it cannot write, so it writes to memory.
            let mut script = Vec::new();
            clap_complete::generate(shell, &mut Args::command(), "parallax", &mut script);
            io::stdout().write_all(&script)?;
            Ok(ExitCode::SUCCESS)
        }
    }
}

fn is_broken_pipe(error: &anyhow::Error) -> bool {
    let written = error.downcast_ref::<io::Error>().map(io::Error::kind);
    let serialised = error.downcast_ref::<serde_json::Error>().and_then(serde_json::Error::io_error_kind);
    written.or(serialised) == Some(io::ErrorKind::BrokenPipe)
}
