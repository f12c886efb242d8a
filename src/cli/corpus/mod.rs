//! `parallax corpus`: what is kept in the library.

mod add;
mod from_web;
mod info;
mod push;
mod vectors;

use std::io::{self, BufRead, IsTerminal, Write};
use std::process::ExitCode;

use anyhow::{anyhow, bail};
use clap::Subcommand;

use super::args::Common;
use crate::corpus::kept::Kept;
use crate::corpus::library::Library;
use crate::report::progress::thousands;
use crate::report::safe;

/// `parallax corpus`
#[derive(Debug, Subcommand)]
pub enum CorpusCommand {
    /// Import and index a file or folder, and keep it under a name. Goes on from where it was stopped.
    Add(add::Add),
    /// Make a corpus from the web: search a question, fetch the pages politely, and cut their main text into passages of 100 words.
    /// Goes on from where it was stopped.
    FromWeb(from_web::FromWeb),
    /// List the corpora that are kept.
    List,
    /// Show what is known of a corpus: its source, lengths, metadata, duplicates, vectors.
    Info {
        /// Its name or fingerprint.
        name: String,
    },
    /// Take vectors of its passages that are ready: .npy (f32 or f16, two dimensions) or .safetensors (one tensor).
    Vectors(vectors::Vectors),
    /// Load one into an engine on another machine, for lanes that ask it there. A second push sends what has changed.
    Push(push::Push),
    /// Remove a corpus with its index and vectors. Its source is left alone.
    Rm {
        /// Its name or fingerprint.
        name: String,
        /// Do not ask.
        #[arg(long)]
        yes: bool,
    },
}

/// Runs the command.
///
/// # Errors
/// The corpus is not right or not there, the web gives nothing, or the library cannot be read or written.
pub fn run(common: &Common, command: &CorpusCommand) -> anyhow::Result<ExitCode> {
    let library = Library::at(&common.opening().data_dir);
    match command {
        CorpusCommand::Add(args) => add::run(&library, args),
        CorpusCommand::FromWeb(args) => from_web::run(common, args),
        CorpusCommand::List => list(&library),
        CorpusCommand::Info { name } => info::run(&library, &find(&library, name)?),
        CorpusCommand::Vectors(args) => vectors::run(common, args),
        CorpusCommand::Push(args) => push::run(common, args),
        CorpusCommand::Rm { name, yes } => remove(&library, &find(&library, name)?, *yes),
    }
}

/// The one corpus of that name or fingerprint, finished or not.
fn find(library: &Library, name: &str) -> anyhow::Result<Kept> {
    let mut found = library.kept()?;
    found.retain(|kept| kept.name() == name || kept.fingerprint.0 == name);
    match found.len() {
        1 => found.pop().ok_or_else(|| anyhow!("it is gone")),
        0 => bail!("no corpus is called {}; `parallax corpus list` shows all", safe::line(name)),
        _ => {
            let all: Vec<&str> = found.iter().map(|kept| kept.fingerprint.0.as_str()).collect();
            bail!(
                "{} corpora are called {}; name one by its fingerprint: {}",
                all.len(),
                safe::line(name),
                all.join(", ")
            )
        }
    }
}

fn list(library: &Library) -> anyhow::Result<ExitCode> {
    let mut out = io::stdout().lock();
    writeln!(out, "name\tpassages\tMB\tvectors\tbuilt\tfingerprint\tsource")?;
    for kept in library.kept()? {
        let vectors: Vec<String> = kept.vectors().into_iter().map(told).collect();
        let (built, source) = match &kept.about {
            Some(about) => (date(about.built), about.source.display().to_string()),
            None if kept.whole => Default::default(),
            None => ("unfinished".into(), String::new()),
        };
        let vectors = vectors.join(", ");
        let (name, source) = (safe::line(kept.name()), safe::line(&source));
        let (passages, size, mark) = (kept.passages(), megabytes(kept.bytes()), &kept.fingerprint.0);
        writeln!(out, "{name}\t{passages}\t{size}\t{vectors}\t{built}\t{mark}\t{source}")?;
    }
    Ok(ExitCode::SUCCESS)
}

fn remove(library: &Library, kept: &Kept, yes: bool) -> anyhow::Result<ExitCode> {
    let what = format!(
        "{} ({} passages, {} MB, with its index and vectors)",
        safe::line(kept.name()),
        thousands(kept.passages()),
        megabytes(kept.bytes())
    );
    if !yes {
        if !io::stdin().is_terminal() {
            bail!("this removes {what}; say --yes, for nobody is here to be asked");
        }
        write!(io::stderr(), "remove {what}? [y/N] ")?;
        let mut answer = String::new();
        io::stdin().lock().read_line(&mut answer)?;
        if !matches!(answer.trim(), "y" | "Y" | "yes") {
            writeln!(io::stderr(), "nothing was removed")?;
            return Ok(ExitCode::SUCCESS);
        }
    }
    library.remove(kept)?;
    writeln!(io::stdout(), "removed {what}")?;
    Ok(ExitCode::SUCCESS)
}

fn told((key, whole): (String, bool)) -> String {
    if whole { key } else { format!("{key} (unfinished)") }
}

fn megabytes(bytes: u64) -> String {
    format!("{:.1}", bytes as f64 / 1e6)
}

/// `2026-03-01`, of seconds since 1970 in universal time.
fn date(seconds: u64) -> String {
    // The civil calendar from days, counted in years that begin in March (Hinnant's algorithm).
    let days = seconds / 86_400 + 719_468;
    let (era, day) = (days / 146_097, days % 146_097);
    let year = (day - day / 1_460 + day / 36_524 - day / 146_096) / 365;
    let day = day - (365 * year + year / 4 - year / 100);
    let month = (5 * day + 2) / 153;
    let (day, month) = (day - (153 * month + 2) / 5 + 1, if month < 10 { month + 3 } else { month - 9 });
    format!("{:04}-{month:02}-{day:02}", year + era * 400 + u64::from(month <= 2))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dates_are_those_of_the_calendar() {
        let cases = [(0, "1970-01-01"), (951_782_400, "2000-02-29"), (1_772_323_200, "2026-03-01")];
        for (seconds, expected) in cases {
            assert_eq!(date(seconds), expected);
        }
    }
}
