//! `parallax annotate remap`: labels whose passage or statement is no longer there, tied again.

use std::io::{self, Write};
use std::path::PathBuf;
use std::process::ExitCode;

use super::super::args::Common;
use super::super::progress::Meter;
use super::{count, files, named};
use crate::annotate::{Act, History, Journal, Key, Lost, Read, remap, restate};
use crate::pipeline::Setup;
use crate::report::safe;
use crate::work::Stop;

/// `parallax annotate remap`
#[derive(Debug, clap::Args)]
pub struct Remap {
    /// Journals, or folders of them; those made on the corpus if not given.
    pub files: Vec<PathBuf>,
    /// A statement as it was, whose labels go to the one of --to.
    #[arg(long, value_name = "STATEMENT", requires = "to")]
    pub from: Option<String>,
    /// The statement as it is now: you vouch that it means the same.
    #[arg(long, value_name = "STATEMENT", requires = "from")]
    pub to: Option<String>,
}

pub fn run(common: &Common, args: &Remap) -> anyhow::Result<ExitCode> {
    let meter = Meter::default();
    let setup = Setup::open(&common.opening(), &|progress| meter.tell(progress), &Stop::never())?;
    let paths = match args.files.as_slice() {
        [] => vec![setup.journals.clone()],
        named => named.to_vec(),
    };
    let mut out = io::stdout().lock();
    let mut ended = ExitCode::SUCCESS;
    for file in files(&paths)? {
        let mut history = History::default();
        for entry in Read::file(&file)?.entries {
            history.take(entry);
        }
        let found = match (&args.from, &args.to) {
            (Some(from), Some(to)) => restate(&history, from, to),
            _ => remap(&history, &setup.corpus),
        };
        let tied = tie(&file, found.moves)?;
        writeln!(out, "{}: {} tied again", named(&file), count(tied, "passage", "passages"))?;
        for (key, why) in &found.lost {
            let why = match why {
                Lost::NoSuchText => "no passage has its text",
                Lost::Otherwise => "another label is there already",
                Lost::Conflict => "in conflict; decide it first",
            };
            let (by, question, passage) =
                (safe::line(&key.by), safe::line(&key.question), safe::line(&key.passage));
            writeln!(out, "  {by}: {question} [{passage}]: {why}")?;
            ended = ExitCode::from(1);
        }
    }
    Ok(ended)
}

/// Writes the acts down, each under its annotator's name.
fn tie(file: &std::path::Path, moves: Vec<(Key, Act)>) -> anyhow::Result<usize> {
    let count = moves.len();
    let mut open: Option<Journal> = None;
    for (key, act) in moves {
        if open.as_ref().is_none_or(|journal| journal.by() != key.by) {
            // One at a time, since it holds the file's lock.
            drop(open.take());
            open = Some(Journal::open(file, &key.by)?.journal);
        }
        if let Some(journal) = &mut open {
            journal.retie(&key, act)?;
        }
    }
    Ok(count)
}
