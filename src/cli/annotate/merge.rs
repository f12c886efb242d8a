//! `parallax annotate merge`: the union of journals.

use std::collections::BTreeMap;
use std::io::{self, Write};
use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::bail;

use super::{conflict, count, files, named};
use crate::annotate::{Entry, Journal, Project, Read};

/// `parallax annotate merge`
#[derive(Debug, clap::Args)]
pub struct Merge {
    /// Where it goes: a project's folder, or a file that ends in .jsonl. What it holds stays in it.
    pub out: PathBuf,
    /// Journals, or folders of them.
    #[arg(required = true)]
    pub from: Vec<PathBuf>,
}

pub fn run(args: &Merge) -> anyhow::Result<ExitCode> {
    let mut entries: Vec<Entry> = Vec::new();
    let mut ended = ExitCode::SUCCESS;
    for file in files(&args.from)? {
        let read = Read::file(&file)?;
        if read.newer > 0 {
            bail!(
                "{}: written by a later version of parallax; update this one, and nothing is lost",
                file.display()
            );
        }
        if let Some(told) = read.told(&file) {
            writeln!(io::stderr(), "parallax: {told}")?;
            ended = ExitCode::from(1);
        }
        entries.extend(read.entries);
    }
    // One file takes them all; a folder has one for every annotator.
    let mut parts: BTreeMap<(PathBuf, String), Vec<Entry>> = BTreeMap::new();
    let one = args.out.extension().is_some_and(|end| end == "jsonl") && !args.out.is_dir();
    for entry in entries {
        let part = match one {
            true => (args.out.clone(), "merge".to_owned()),
            false => (Project::journal(&args.out, &entry.by), entry.by.clone()),
        };
        parts.entry(part).or_default().push(entry);
    }
    let mut out = io::stdout().lock();
    for ((path, by), entries) in parts {
        let opened = Journal::open(&path, &by)?;
        if let Some(told) = opened.read.told(&path) {
            writeln!(io::stderr(), "parallax: {told}")?;
            ended = ExitCode::from(1);
        }
        let mut journal = opened.journal;
        let new = journal.take(entries)?;
        let history = journal.history();
        let (new, all) = (count(new, "new entry", "new entries"), history.len());
        let conflicts = history.conflicts();
        writeln!(
            out,
            "{}: {new}, {all} in all, {}",
            named(&path),
            count(conflicts.len(), "conflict", "conflicts")
        )?;
        for key in conflicts {
            write!(out, "{}", conflict(history, key))?;
        }
    }
    Ok(ended)
}
