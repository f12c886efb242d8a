//! `parallax search`: the explorer's plan, headless.

use std::io::{self, Write};
use std::process::ExitCode;

use anyhow::bail;

use super::args::{Common, Format, Search};
use super::progress::Meter;
use crate::pipeline::{Asked, Depth, Lists, Plan, Setup, answer, rank};
use crate::question::{self, Question};
use crate::report::search::{LaneResult, SearchResult};
use crate::work::Stop;

/// Runs the command.
///
/// # Errors
/// Something could not be opened, or the question is empty.
pub fn run(common: &Common, args: &Search) -> anyhow::Result<ExitCode> {
    if args.question.trim().is_empty() {
        bail!("the question is empty; try: parallax search \"Should zoos be banned?\"");
    }
    let (meter, stop) = (Meter::default(), Stop::never());
    let setup = Setup::open(&common.opening(), &|progress| meter.tell(progress), &stop)?;
    if let Some(reason) = setup.lacks(common.source()) {
        bail!("{reason}");
    }
    let question = question(&args.question, &common.perspectives, &setup.questions);
    let lanes = args.switches.applied(common.recipes())?;
    let plan = Plan { question, lanes, k: usize::from(common.k), source: common.source() };
    embed(&setup, &plan, &meter)?;
    let mut lists = Lists::default();
    let answered = answer(&setup, &plan, Depth::Covered, &mut lists, &stop)?;
    let detector = setup.detector()?;
    let mut lanes = Vec::new();
    for (recipe, (ranking, took)) in plan.lanes.iter().zip(answered.lanes) {
        // Where each passage stands in the same lane with nothing switched on.
        let plain = match *recipe == recipe.plain() {
            true => None,
            false => rank(&setup, &recipe.plain(), Asked::plainly(&plan.question), &mut lists, &stop).ok(),
        };
        let ranking = ranking.map_err(|error| error.to_string());
        lanes.push(LaneResult { recipe: recipe.clone(), ranking, plain, took_ms: took.as_secs_f64() * 1e3 });
    }
    let book = answered.book;

    let corpus = (setup.corpus.name.as_str(), setup.corpus.len(), setup.corpus.fingerprint.0.as_str());
    let result = SearchResult {
        plan: &plan,
        corpus,
        detector: detector.key(),
        fitted_on: detector.fitted_on(),
        lanes,
        book,
    };
    let text = match args.format {
        Format::Text => result.text(common.glyphs()),
        Format::Json => format!("{:#}\n", result.json()),
        Format::Tsv => result.tsv(),
    };
    for notice in setup.verdicts.not_kept.iter().chain(&setup.notes) {
        writeln!(io::stderr(), "parallax: {notice}")?;
    }
    io::stdout().write_all(text.as_bytes())?;
    let failed = result.lanes.iter().filter_map(|lane| Some((lane, lane.ranking.as_ref().err()?)));
    let failed: Vec<_> = failed.collect();
    for (lane, reason) in &failed {
        writeln!(io::stderr(), "parallax: the lane {}: {reason}", lane.recipe)?;
    }
    Ok(ExitCode::from(if failed.is_empty() { 0 } else { 2 }))
}

/// The question as asked: with the perspectives given, else those of the question set, else those by rule.
pub fn question(text: &str, given: &[String], set: &[Question]) -> Question {
    let text = text.trim();
    if !given.is_empty() {
        let supports = (given.len() == 2).then_some(0);
        return Question { text: text.into(), perspectives: given.to_vec(), supports, ..Question::default() };
    }
    set.iter().find(|known| known.text.eq_ignore_ascii_case(text)).cloned().unwrap_or_else(|| {
        let ruled = question::statements(text);
        let (perspectives, supports) = (ruled.perspectives, ruled.supports);
        Question { text: text.into(), perspectives, supports, ..Question::default() }
    })
}

/// Embeds the corpus first where lanes need its vectors.
pub fn embed(setup: &Setup, plan: &Plan, meter: &Meter) -> anyhow::Result<()> {
    Ok(setup.embed_for(&plan.lanes, &|progress| meter.tell(progress), &Stop::never())?)
}
