//! `parallax annotate fsck`: what a journal holds, and what is damaged in it.

use std::io::{self, Write};
use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::Context;

use super::{count, files};
use crate::annotate::{History, Read, repair};
use crate::input::TOLD;

/// `parallax annotate fsck`
#[derive(Debug, clap::Args)]
pub struct Fsck {
    /// Journals, or folders of them.
    #[arg(required = true)]
    pub files: Vec<PathBuf>,
    /// Put a journal of the whole lines in the place of a damaged one, which is kept beside it.
    #[arg(long)]
    pub repair: bool,
}

pub fn run(args: &Fsck) -> anyhow::Result<ExitCode> {
    let mut out = io::stdout().lock();
    let mut ended = ExitCode::SUCCESS;
    for file in files(&args.files)? {
        let read = Read::file(&file)?;
        let mut history = History::default();
        for entry in &read.entries {
            history.take(entry.clone());
        }
        let entries = count(read.entries.len(), "entry", "entries");
        let conflicts = count(history.conflicts().len(), "conflict", "conflicts");
        writeln!(out, "{}: {entries}, {} stand, {conflicts}", file.display(), history.keys().count())?;
        for bad in read.bad.iter().take(TOLD) {
            writeln!(out, "  damaged: {bad}")?;
        }
        let told = [
            (read.bad.len().saturating_sub(TOLD), "more damaged lines"),
            (
                read.torn,
                "bytes behind the last whole line; they are moved to a file beside it before the next label",
            ),
            (read.missing, "entries are named as replaced and are not there"),
            (
                read.newer,
                "lines were written by a later version of parallax; this one can read the rest only",
            ),
            (read.repeated, "lines are there twice, which harms nothing"),
            (
                read.backwards.len(),
                "lines have a clock before that of the entry they replace, which harms nothing",
            ),
        ];
        for (number, what) in told.into_iter().filter(|(number, _)| *number > 0) {
            writeln!(out, "  {number} {what}")?;
        }
        if args.repair && read.entries.is_empty() {
            writeln!(out, "  not repaired: no line of it is a journal's")?;
        } else if args.repair && read.newer == 0 {
            let kept = repair(&file).with_context(|| format!("{} was not repaired", file.display()))?;
            if let Some(kept) = kept {
                writeln!(out, "  repaired; the old one is {}", kept.display())?;
                continue;
            }
        }
        if !read.is_whole() || read.newer > 0 {
            ended = ExitCode::from(1);
        }
    }
    Ok(ended)
}
