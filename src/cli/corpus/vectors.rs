//! `parallax corpus vectors`: vectors made elsewhere, for lanes of the model that made them.

use std::io::{self, Write};
use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::bail;

use super::super::args::Common;
use super::super::progress::Meter;
use crate::pipeline::{Opening, Recipe, Setup};
use crate::work::Stop;

/// `parallax corpus vectors`
#[derive(Debug, clap::Args)]
pub struct Vectors {
    /// The corpus, as --corpus takes it.
    pub corpus: PathBuf,
    /// The vectors, one row a passage.
    pub file: PathBuf,
    /// The passage id of every row, one a line; without it the rows are in the order of the corpus.
    #[arg(long, value_name = "FILE")]
    pub ids: Option<PathBuf>,
    /// The lane whose model made them: minilm, contriever, path:FOLDER…
    #[arg(long, value_name = "RECIPE")]
    pub model: String,
}

/// Runs the command.
///
/// # Errors
/// The file, its ids or the model do not fit the corpus, or the data folder cannot be written.
pub fn run(common: &Common, args: &Vectors) -> anyhow::Result<ExitCode> {
    let (meter, stop) = (Meter::default(), Stop::never());
    let opening = Opening {
        corpus: Some(args.corpus.clone()),
        data_dir: common.opening().data_dir,
        ..Opening::default()
    };
    let setup = Setup::open(&opening, &|progress| meter.tell(progress), &stop)?;
    let lane: Recipe = args.model.parse()?;
    if !lane.base.is_dense() || lane.base.remote().is_some() {
        bail!(
            "{} compares no vectors; name a lane that does, such as minilm, contriever or path:FOLDER",
            args.model
        );
    }
    let name = lane.to_string();
    let (ids, tell) = (args.ids.as_deref(), |progress| meter.tell(progress));
    let taken = setup.take_vectors(lane.model(), &args.file, ids, &tell, &stop)?;
    let (shortest, longest) = taken.lengths;
    let mut out = io::stdout().lock();
    writeln!(out, "{} vectors of {name} for the corpus {}", taken.rows, setup.corpus.name)?;
    writeln!(
        out,
        "lengths from {shortest:.4} to {longest:.4}; {} were not of unit length and were brought to it",
        taken.brought_to_unit
    )?;
    Ok(ExitCode::SUCCESS)
}
