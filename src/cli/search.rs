//! `parallax search`: one query, without the explorer.

use std::io::Write;
use std::process::ExitCode;

use anyhow::bail;

use crate::cli::job::{Meter, open_setup, prompts_in_use};
use crate::cli::options::{Common, Format, SwitchArgs};
use crate::detect::LabelSource;
use crate::engine::{Depth, Lists, Query, Run, Setup};
use crate::measure::Measure;
use crate::measure::score::ScoreError;
use crate::measure::score::by_verdicts;
use crate::question::resolve;
use crate::report::safe;
use crate::report::search::SearchResult;
use crate::work::Stop;

/// `parallax search`
#[derive(Debug, clap::Args)]
pub struct Search {
    /// The question.
    #[arg(required = true)]
    pub question: Vec<String>,
    /// Switches for the lanes that have none of their own.
    #[command(flatten)]
    pub switches: SwitchArgs,
    /// More measures by name, such as alpha_nDCG@10,rKL@10,AWRF@10.
    #[arg(long, value_delimiter = ',', value_name = "NAMES")]
    pub measures: Vec<String>,
    /// The output format.
    #[arg(long, value_enum, default_value_t)]
    pub format: Format,
}

/// Runs the command.
///
/// # Errors
/// A file could not be opened, or the question is empty.
pub fn run(common: &Common, args: &Search) -> anyhow::Result<ExitCode> {
    let asked = args.question.join(" ");
    if asked.trim().is_empty() {
        bail!("the question is empty; try: parallax search \"Should zoos be banned?\"");
    }
    let measures = args.measures.iter().map(|name| by_verdicts(name)).collect::<Result<Vec<_>, _>>()?;
    if let Some(shift) = measures.iter().find(|measure| matches!(measure, Measure::Shift { .. })) {
        bail!("{}", ScoreError::NeedsSeveralRankings(*shift));
    }
    let (meter, stop) = (Meter::default(), Stop::never());
    let setup = open_setup(&common.opening(), &meter, &stop)?;
    if let Some(reason) = setup.lacks(common.source()) {
        bail!("{reason}");
    }
    let (question, _) = resolve(&asked, &common.perspectives, &setup.questions);
    let lanes = args.switches.apply(common.recipes())?;
    let query = Query { question, lanes, k: usize::from(common.k), source: common.source() };
    embed(&setup, &query, &meter)?;
    let mut run = Run::new(query.clone(), Depth::Covered, Lists::default());
    run.rank(&setup, &|_| true, &stop, &|_| ());
    run.judge(&setup, &stop, &|_| ())?;
    let measured = run.named(&setup, &measures, &stop)?;
    let unswitched = run.plain(&setup, &measures, &stop)?;
    let detector = setup.detector()?;
    let outcome = run.outcome();
    let caution =
        setup.model_warning(query.source, outcome.shares(), std::slice::from_ref(&query.question))?;

    let corpus = (setup.corpus.name.as_str(), setup.corpus.len(), setup.corpus.fingerprint.0.as_str());
    let result = SearchResult {
        outcome,
        plain: unswitched,
        named: measured,
        corpus,
        labels: setup.source_name(LabelSource::Gold),
        detector: detector.key(),
        fitted_on: detector.fitted_on(),
        caution,
    };
    let text = match args.format {
        Format::Text => result.text(common.glyphs()),
        Format::Json => {
            let mut json = result.json();
            if let Some(prompts) = prompts_in_use(common, &setup, &query.lanes) {
                json["provenance"]["prompts"] = prompts;
            }
            safe::json(&json)?
        }
        Format::Tsv => result.tsv(),
    };
    let damage = setup.verdicts.damage();
    for notice in setup.verdicts.unsaved.iter().chain(&damage).chain(&setup.notes).chain(&detector.usage()) {
        writeln!(safe::stderr(), "parallax: {notice}")?;
    }
    safe::stdout().write_all(text.as_bytes())?;
    let failed: Vec<_> = result.failed().collect();
    for (recipe, error) in &failed {
        writeln!(safe::stderr(), "parallax: the lane {recipe}: {error}")?;
    }
    Ok(ExitCode::from(if failed.is_empty() { 0 } else { 2 }))
}

/// Embeds the corpus if a lane needs vectors.
pub fn embed(setup: &Setup, query: &Query, meter: &Meter) -> anyhow::Result<()> {
    Ok(setup.embed_for(&query.lanes, &|progress| meter.show(progress), &Stop::never())?)
}
