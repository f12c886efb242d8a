//! `parallax annotate agree`: how far annotators agree, with each other and with the detector.

use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::Context;
use clap::ValueEnum;
use serde_json::json;

use super::super::args::Common;
use super::super::interrupt::{INTERRUPTED, stop_on_interrupt};
use super::super::progress::Meter;
use super::{decisions_of, judged};
use crate::annotate::agree::{Refit, items, queue, refit, table};
use crate::annotate::formats::date_of;
use crate::annotate::{Material, Model};
use crate::corpus::library::replace;
use crate::pipeline::Setup;
use crate::report::agreement::Sheet;

/// `parallax annotate agree`
#[derive(Debug, clap::Args)]
pub struct Agree {
    /// Journals, or folders of them.
    #[arg(required = true)]
    pub paths: Vec<PathBuf>,
    /// Let the detector take part, as one more annotator.
    #[arg(long)]
    pub model: bool,
    /// Fit the detector's threshold on these labels, and write it into a file: threshold.json in the data folder if none is named.
    #[arg(long, value_name = "FILE", num_args = 0..=1, require_equals = true)]
    pub refit: Option<Option<PathBuf>>,
    /// How to print it.
    #[arg(long, value_enum, default_value_t)]
    pub format: AgreeFormat,
}

/// How agreement is printed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub enum AgreeFormat {
    /// For people.
    #[default]
    Text,
    /// Markdown.
    Md,
    /// One JSON object.
    Json,
    /// A line a figure.
    Tsv,
}

pub fn run(common: &Common, args: &Agree) -> anyhow::Result<ExitCode> {
    let decisions = decisions_of(&args.paths)?;
    let opening = common.opening();
    let model = if args.model || args.refit.is_some() {
        let (meter, stop) = (Meter::default(), stop_on_interrupt()?);
        let setup = Setup::open(&opening, &|progress| meter.tell(progress), &stop)?;
        let material = Material::new(&setup.questions, &setup.corpus);
        let model = judged(&setup, &material, &decisions, &meter, &stop)?;
        if stop.is_set() {
            writeln!(io::stderr(), "parallax: interrupted; verdicts made so far are kept")?;
            return Ok(ExitCode::from(INTERRUPTED));
        }
        Some(model)
    } else {
        None
    };
    let items = items(&decisions, model.as_ref());
    let shown = model.as_ref().filter(|_| args.model);
    let fitted = match (&args.refit, &model) {
        (Some(place), Some(model)) => {
            let fitted = refit(&items, model)?;
            let place = place.clone().unwrap_or_else(|| opening.data_dir.join("threshold.json"));
            write(&place, &fitted, model)?;
            Some((fitted, place.display().to_string()))
        }
        _ => None,
    };
    let sheet = Sheet {
        table: &table(&items, shown),
        queue: &queue(&items, shown),
        model: model.as_ref(),
        refit: fitted.as_ref().map(|(fitted, place)| (fitted, place.as_str())),
    };
    let text = match args.format {
        AgreeFormat::Text => sheet.text(),
        AgreeFormat::Md => sheet.markdown(),
        AgreeFormat::Tsv => sheet.tsv(),
        AgreeFormat::Json => format!("{:#}\n", sheet.json()),
    };
    io::stdout().write_all(text.as_bytes())?;
    Ok(ExitCode::SUCCESS)
}

/// Writes the threshold with all that says where it is from.
fn write(place: &Path, fitted: &Refit, model: &Model) -> anyhow::Result<()> {
    let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH);
    let mut card = json!({
        "fitted_on": "human labels",
        "date": now.ok().and_then(|now| date_of(now.as_millis() as u64)),
        "detector": model.detector,
        "version": env!("CARGO_PKG_VERSION"),
    });
    if let (Some(card), Some(figures)) = (card.as_object_mut(), fitted.json().as_object()) {
        card.extend(figures.clone());
    }
    let unwritable = || format!("{} cannot be written", place.display());
    if let Some(folder) = place.parent().filter(|folder| !folder.as_os_str().is_empty()) {
        std::fs::create_dir_all(folder).with_context(unwritable)?;
    }
    replace(place, format!("{card:#}\n").as_bytes()).with_context(unwritable)
}
