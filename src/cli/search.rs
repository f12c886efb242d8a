//! `parallax search`: the explorer's plan, headless.

use std::io::{self, Write};
use std::process::ExitCode;
use std::sync::Mutex;
use std::time::Instant;

use anyhow::{Context, bail};

use super::args::{Common, Format, Search};
use super::progress::Meter;
use crate::detect::LabelSource;
use crate::pipeline::{Book, LaneError, Lists, Plan, Ranking, Recipe, Setup, deeper, judge, rank, top_pairs};
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
    if common.source() == LabelSource::Gold && setup.labels.is_none() {
        bail!("no labels came with this corpus; give some with --labels FILE");
    }
    let question = question(&args.question, &common.perspectives, &setup.questions);
    let plan = Plan { question, lanes: common.recipes(), k: usize::from(common.k) };
    let lanes = lanes(&setup, &plan, &meter);

    let detector = setup.detector()?;
    let mut book = Book::new(plan.question.perspectives.len(), common.source(), detector.threshold());
    let rankings: Vec<Ranking> =
        lanes.iter().filter_map(|lane| lane.ranking.as_ref().ok().cloned()).collect();
    // As deep as the explorer goes, which stops where the most trusted labels say that all is covered.
    book.source = LabelSource::Auto;
    let mut pairs = top_pairs(&rankings, plan.k, &book);
    while !pairs.is_empty() {
        let found = Mutex::new(Vec::new());
        judge(&setup, &plan.question, &pairs, &stop, &|judged| {
            if let Ok(mut found) = found.lock() {
                found.push(judged);
            }
        })?;
        for judged in found.into_inner().context("a verdict thread died")? {
            book.write(judged.at, judged.perspective, judged.known);
        }
        pairs = deeper(&rankings, plan.k, &book);
    }
    book.source = common.source();

    let corpus = (setup.corpus.name.as_str(), setup.corpus.len(), setup.corpus.fingerprint.0.as_str());
    let result = SearchResult { plan: &plan, corpus, detector: detector.key(), lanes, book };
    let text = match args.format {
        Format::Text => result.text(common.glyphs()),
        Format::Json => format!("{:#}\n", result.json()),
        Format::Tsv => result.tsv(),
    };
    if let Some(notice) = &setup.verdicts.not_kept {
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
        return Question { id: String::new(), text: text.into(), perspectives: given.to_vec(), supports };
    }
    set.iter().find(|known| known.text.eq_ignore_ascii_case(text)).cloned().unwrap_or_else(|| {
        let ruled = question::statements(text);
        Question {
            id: String::new(),
            text: text.into(),
            perspectives: ruled.perspectives,
            supports: ruled.supports,
        }
    })
}

/// Ranks every lane, embedding the corpus first where a lane needs it.
fn lanes(setup: &Setup, plan: &Plan, meter: &Meter) -> Vec<LaneResult> {
    let mut lists = Lists::default();
    let mut made = |recipe: Recipe| -> Result<(Ranking, f64), LaneError> {
        if recipe.needs_vectors() && setup.vectors()?.is_none() {
            setup.embed(&|progress| meter.tell(progress), &Stop::never())?;
        }
        let began = Instant::now();
        let ranking = rank(setup, recipe, &plan.question.text, &mut lists, &Stop::never())?;
        Ok((ranking, began.elapsed().as_secs_f64() * 1e3))
    };
    let result = |recipe: &Recipe| match made(*recipe) {
        Ok((ranking, took_ms)) => LaneResult { recipe: *recipe, ranking: Ok(ranking), took_ms },
        Err(error) => LaneResult { recipe: *recipe, ranking: Err(error.to_string()), took_ms: 0.0 },
    };
    plan.lanes.iter().map(result).collect()
}
