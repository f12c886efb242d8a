//! `parallax annotate export`: labels out of journals, for other tools.

use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::{Context, bail};

use super::super::args::Common;
use super::super::interrupt::{INTERRUPTED, stop_on_interrupt};
use super::super::progress::Meter;
use super::{count, decisions_of, judged};
use crate::annotate::Material;
use crate::annotate::formats::Format;
use crate::corpus::library::replace;
use crate::pipeline::Setup;

/// `parallax annotate export`
#[derive(Debug, clap::Args)]
pub struct Export {
    /// Journals, or folders of them.
    #[arg(required = true)]
    pub paths: Vec<PathBuf>,
    /// What to write.
    #[arg(long, value_enum)]
    pub format: Format,
    /// The file; for qrels the NAME of NAME.qrels and NAME.div.qrels. Label Studio's interface and Argilla's settings go beside it.
    #[arg(long, value_name = "FILE")]
    pub out: PathBuf,
    /// Add the detector's verdicts, as Label Studio's predictions or Argilla's suggestions.
    #[arg(long)]
    pub model: bool,
}

pub fn run(common: &Common, args: &Export) -> anyhow::Result<ExitCode> {
    if args.model && !matches!(args.format, Format::LabelStudio | Format::Argilla) {
        bail!("--model is for label-studio and argilla; the other formats have no place for a verdict");
    }
    let decisions = decisions_of(&args.paths)?;
    let (meter, stop) = (Meter::default(), stop_on_interrupt()?);
    let setup = Setup::open(&common.opening(), &|progress| meter.tell(progress), &stop)?;
    let material = Material::new(&setup.questions, &setup.corpus);
    let model = if args.model { Some(judged(&setup, &material, &decisions, &meter, &stop)?) } else { None };
    if stop.is_set() {
        writeln!(io::stderr(), "parallax: interrupted; no file was written")?;
        return Ok(ExitCode::from(INTERRUPTED));
    }
    let exported = args.format.write(&decisions, &material, model.as_ref())?;
    let base = match args.format {
        Format::Qrels => without_ending(&args.out),
        _ => args.out.clone(),
    };
    for (ending, bytes) in &exported.files {
        let mut path = base.clone().into_os_string();
        path.push(ending);
        let path = PathBuf::from(path);
        replace(&path, bytes).with_context(|| format!("{} cannot be written", path.display()))?;
        writeln!(io::stdout(), "{}", path.display())?;
    }
    let labels = count(decisions.len(), "label", "labels");
    writeln!(io::stderr(), "parallax: {labels} written")?;
    for told in &exported.left_out {
        writeln!(io::stderr(), "parallax: {told}")?;
    }
    Ok(ExitCode::SUCCESS)
}

/// `NAME` of `NAME`, `NAME.qrels` and `NAME.div.qrels`.
fn without_ending(path: &Path) -> PathBuf {
    let name = path.to_string_lossy();
    let name = name.strip_suffix(".qrels").unwrap_or(&name);
    name.strip_suffix(".div").unwrap_or(name).into()
}
