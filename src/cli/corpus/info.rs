//! `parallax corpus info`: what is known of one corpus, and what its passages look like.

use std::collections::BTreeMap;
use std::io::{self, Write};
use std::process::ExitCode;

use super::add::repeats;
use super::{date, megabytes, told};
use crate::corpus::kept::Kept;
use crate::corpus::library::Library;
use crate::report::progress::thousands;
use crate::report::safe;

/// Runs the command.
///
/// # Errors
/// The corpus cannot be read.
pub fn run(library: &Library, kept: &Kept) -> anyhow::Result<ExitCode> {
    let mut out = io::stdout().lock();
    writeln!(out, "name         {}", safe::line(kept.name()))?;
    writeln!(out, "fingerprint  {}", kept.fingerprint.0)?;
    writeln!(out, "on disk      {} MB in {}", megabytes(kept.bytes()), kept.folder.display())?;
    if !kept.whole {
        writeln!(
            out,
            "unfinished   {} passages so far; adding it again goes on",
            thousands(kept.passages())
        )?;
        return Ok(ExitCode::SUCCESS);
    }
    let corpus = library.open_kept(kept)?;
    if let Some(about) = &kept.about {
        writeln!(out, "source       {}", safe::line(&about.source.display().to_string()))?;
        writeln!(out, "recognised   {}", safe::line(&about.recognised))?;
        writeln!(out, "built        {}", date(about.built))?;
        writeln!(out, "duplicates   {}", repeats(&about.repeats, &|ix| corpus.id(ix)))?;
    }
    let vectors: Vec<String> = kept.vectors().into_iter().map(told).collect();
    writeln!(out, "vectors      {}", if vectors.is_empty() { "none".into() } else { vectors.join(", ") })?;
    let (mut words, mut fields) = (Vec::with_capacity(corpus.len()), BTreeMap::<String, u64>::new());
    for ix in corpus.places() {
        let passage = corpus.passage(ix);
        words.push(passage.text.split_whitespace().count());
        for (field, _) in passage.metadata {
            *fields.entry(field).or_default() += 1;
        }
    }
    words.sort_unstable();
    let at =
        |percent: usize| words.get((words.len().saturating_sub(1)) * percent / 100).copied().unwrap_or(0);
    writeln!(out, "passages     {}", thousands(corpus.len() as u64))?;
    writeln!(
        out,
        "words        {} least, {} a tenth below, {} median, {} a tenth above, {} most",
        at(0),
        at(10),
        at(50),
        at(90),
        at(100)
    )?;
    let fields = fields.iter().map(|(field, count)| format!("{} ({})", safe::line(field), thousands(*count)));
    let fields: Vec<String> = fields.collect();
    writeln!(out, "metadata     {}", if fields.is_empty() { "none".into() } else { fields.join(", ") })?;
    Ok(ExitCode::SUCCESS)
}
