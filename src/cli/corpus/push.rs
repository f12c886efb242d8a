//! `parallax corpus push`: loads a corpus into an engine on another machine.

use std::io::{self, Write};
use std::process::ExitCode;

use super::super::args::Common;
use super::super::interrupt::{INTERRUPTED, stop_on_interrupt};
use super::super::progress::Meter;
use crate::pipeline::{Opening, Setup};
use crate::remote::{Place, PushError, Pushed, RemoteError, open, push};

/// `parallax corpus push`
#[derive(Debug, clap::Args)]
pub struct Push {
    /// Where: milvus:URL/COLLECTION or os:URL/INDEX, made if it is not there. Secrets are read from PARALLAX_MILVUS_TOKEN,
    /// PARALLAX_OPENSEARCH_USER and PARALLAX_OPENSEARCH_PASSWORD, or PARALLAX_OPENSEARCH_KEY.
    pub place: String,
}

/// Runs the command.
///
/// # Errors
/// The place is none, its server does not do its part, or the corpus cannot be opened or embedded.
pub fn run(common: &Common, args: &Push) -> anyhow::Result<ExitCode> {
    let place = Place::parse(&args.place).map_err(|expected| anyhow::anyhow!("expected {expected}"))?;
    let engine = open(&place)?;
    let (meter, stop) = (Meter::default(), stop_on_interrupt()?);
    let tell = |progress| meter.tell(progress);
    let Opening { corpus, data_dir, .. } = common.opening();
    let opened = Setup::open(&Opening { corpus, data_dir, ..Opening::default() }, &tell, &stop);
    // Whatever a stopped step says, it was stopped, and what it had finished is kept.
    let interrupted = || stop.is_set().then_some(ExitCode::from(INTERRUPTED));
    let setup = match (opened, interrupted()) {
        (_, Some(code)) => return Ok(code),
        (opened, None) => opened?,
    };
    let encoder = setup.encoder(None)?;
    // A server that is down or holds something else is told before the corpus is embedded.
    let made = match (engine.prepare(encoder.dimensions(), &stop), interrupted()) {
        (_, Some(code)) => return Ok(code),
        (made, None) => made?,
    };
    match (setup.embed(None, &tell, &stop), interrupted()) {
        (_, Some(code)) => return Ok(code),
        (embedded, None) => embedded?,
    }
    let vectors = setup.vectors(None)?.ok_or_else(|| anyhow::anyhow!("the corpus has no vectors"))?;
    let pushed = push(engine.as_ref(), made, &setup.corpus, (encoder.key(), &vectors), &tell, &stop);
    let Pushed { new, changed, left, there } = match pushed {
        Err(PushError::Remote(RemoteError::Stopped(_))) => {
            writeln!(
                io::stderr(),
                "stopped; what was sent stays there, and the same command goes on from there"
            )?;
            return Ok(ExitCode::from(INTERRUPTED));
        }
        pushed => pushed?,
    };
    let mut out = io::stdout().lock();
    if made {
        writeln!(out, "made {place}")?;
    }
    match new + changed {
        0 => writeln!(out, "nothing to do: all {left} passages are there as they are")?,
        _ => writeln!(out, "{new} passages new, {changed} changed, {left} there as they are")?,
    }
    let others = there.saturating_sub((new + changed + left) as u64);
    if others > 0 {
        writeln!(out, "{others} more are there that this corpus does not hold; they were left")?;
    }
    writeln!(out, "lanes: {place}@by=vectors and {place}@by=bm25")?;
    Ok(ExitCode::SUCCESS)
}
