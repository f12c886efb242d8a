//! `parallax corpus add`: imports and indexes a source, or only says what it is.

use std::io::{self, Write};
use std::path::PathBuf;
use std::process::ExitCode;

use super::super::interrupt::{INTERRUPTED, stop_on_interrupt};
use super::super::progress::Meter;
use crate::corpus::census::{Census, Repeats};
use crate::corpus::columns::Columns;
use crate::corpus::import::{Format, Refused, Source, Wanted};
use crate::corpus::library::{BuildError, Library};
use crate::corpus::{Passage, PassageIx};
use crate::input::excerpt;
use crate::pipeline::{SetupError, index_terms};
use crate::report::progress::thousands;
use crate::report::safe;
use crate::retrieve::RetrieveError;
use crate::work::Stop;

/// Passages between two reports of a dry run.
const BATCH: u64 = 2_000;

/// `parallax corpus add`
#[derive(Debug, clap::Args)]
pub struct Add {
    /// A file (.jsonl, .csv, .tsv, perhaps with .gz or .zst), or a folder of .txt, .md and .html files.
    pub path: PathBuf,
    /// What to call it; made from the file's name if not given.
    #[arg(long)]
    pub name: Option<String>,
    /// Cut the texts into passages of 100 words, as BERDS does.
    #[arg(long)]
    pub segment: bool,
    /// Read it to its end and say what was recognised, but keep nothing.
    #[arg(long)]
    pub dry_run: bool,
    /// The format, where the ending does not tell it.
    #[arg(long, value_enum)]
    pub format: Option<Format>,
    /// The column or field of the passage's id.
    #[arg(long, value_name = "COLUMN")]
    pub id: Option<String>,
    /// The column or field of its title.
    #[arg(long, value_name = "COLUMN")]
    pub title: Option<String>,
    /// The column or field of its text.
    #[arg(long, value_name = "COLUMN")]
    pub text: Option<String>,
}

/// Runs the command.
///
/// # Errors
/// The source is not right, or the library cannot be written.
pub fn run(library: &Library, args: &Add) -> anyhow::Result<ExitCode> {
    let columns = Columns { id: args.id.clone(), title: args.title.clone(), text: args.text.clone() };
    let source = Source::wanted(&args.path, Wanted { format: args.format, columns, segment: args.segment })?;
    let (meter, stop) = (Meter::default(), stop_on_interrupt()?);
    if args.dry_run {
        return dry(&source, &meter, &stop);
    }
    let name = args.name.clone().unwrap_or_else(|| source.name());
    match add(library, &source, &name, &meter, &stop) {
        Err(SetupError::Corpus(BuildError::Stopped(_)) | SetupError::Terms(RetrieveError::Stopped(_))) => {
            writeln!(io::stderr(), "parallax: stopped; the same command goes on from here")?;
            Ok(ExitCode::from(INTERRUPTED))
        }
        added => {
            added?;
            Ok(ExitCode::SUCCESS)
        }
    }
}

fn add(library: &Library, source: &Source, name: &str, meter: &Meter, stop: &Stop) -> Result<(), SetupError> {
    let tell = |progress| meter.tell(progress);
    let corpus = library.add(source, name, &tell, stop)?;
    index_terms(library, &corpus, &tell, stop)?;
    let about = library.kept()?.into_iter().find(|kept| kept.whole && kept.fingerprint == corpus.fingerprint);
    let about = about.and_then(|kept| kept.about).unwrap_or_default();
    let mut out = io::stdout().lock();
    let told = writeln!(out, "recognised  {}", safe::line(&about.recognised)).and_then(|()| {
        writeln!(out, "passages    {}", thousands(corpus.len() as u64))?;
        writeln!(out, "duplicates  {}", repeats(&about.repeats, &|ix| corpus.id(ix)))?;
        writeln!(out, "open it     parallax --corpus {}", safe::line(name))
    });
    told.map_err(|error| SetupError::Cache(error.to_string()))
}

/// Reads the source as an import does.
fn dry(source: &Source, meter: &Meter, stop: &Stop) -> anyhow::Result<ExitCode> {
    let recognised = source.recognised()?;
    let (mut census, mut first) = (Census::default(), None::<Passage>);
    source.read(0, &mut |at, passage| {
        if stop.is_set() {
            return Err(Refused::Enough);
        }
        census.add(&passage).map_err(Refused::Bad)?;
        first.get_or_insert(passage);
        if census.len().is_multiple_of(BATCH) {
            meter.tell(at.progress(census.len()));
        }
        Ok(())
    })?;
    if stop.is_set() {
        return Ok(ExitCode::from(INTERRUPTED));
    }
    let mut out = io::stdout().lock();
    writeln!(out, "recognised  {}", safe::line(&recognised))?;
    if let Some(Passage { id, title, text, .. }) = first {
        let [id, title, text] = [id, title, text].map(|field| excerpt(&safe::line(&field)));
        writeln!(out, "first       id {id}, title {title}, text {text}")?;
    }
    writeln!(out, "passages    {}", thousands(census.len()))?;
    // The earlier passages are kept nowhere, so that only their places are known.
    writeln!(
        out,
        "duplicates  {}",
        repeats(&census.repeats, &|PassageIx(ix)| format!("passage {}", ix + 1))
    )?;
    writeln!(out, "nothing was kept: this was a dry run")?;
    Ok(ExitCode::SUCCESS)
}

/// `2 (b repeats a, d repeats c)`
pub fn repeats(repeats: &Repeats, id: &dyn Fn(PassageIx) -> String) -> String {
    if repeats.count == 0 {
        return "none".into();
    }
    let first =
        repeats.first.iter().map(|repeat| format!("{} repeats {}", repeat.id, id(PassageIx(repeat.of))));
    let first = safe::line(&first.collect::<Vec<_>>().join(", "));
    let more = if repeats.count > repeats.first.len() as u64 { ", …" } else { "" };
    format!("{} ({first}{more}); all are kept", thousands(repeats.count))
}
