//! `parallax search`: the explorer's plan, headless.

use std::collections::BTreeMap;
use std::io::{self, Write};
use std::process::ExitCode;

use anyhow::bail;

use super::args::{Common, Format, Search};
use super::progress::Meter;
use crate::measure::score::{Evidence, ScoreError, SupportEvidence, score};
use crate::measure::{Measure, PerspectiveCount, SupportSet};
use crate::pipeline::{Answer, Asked, Depth, Lists, Plan, Ranking, Setup, answer, judged, rank};
use crate::question::{self, Question};
use crate::report::search::{LaneResult, Named, SearchResult};
use crate::work::Stop;

/// Runs the command.
///
/// # Errors
/// Something could not be opened, or the question is empty.
pub fn run(common: &Common, args: &Search) -> anyhow::Result<ExitCode> {
    let asked = args.question.join(" ");
    if asked.trim().is_empty() {
        bail!("the question is empty; try: parallax search \"Should zoos be banned?\"");
    }
    let measures = args
        .measures
        .iter()
        .map(|name| super::eval::by_verdicts(name))
        .collect::<anyhow::Result<Vec<_>>>()?;
    if let Some(shift) = measures.iter().find(|measure| matches!(measure, Measure::Shift { .. })) {
        bail!("{}", ScoreError::NeedsSeveralRankings(*shift));
    }
    let (meter, stop) = (Meter::default(), Stop::never());
    let setup = Setup::open(&common.opening(), &|progress| meter.tell(progress), &stop)?;
    if let Some(reason) = setup.lacks(common.source()) {
        bail!("{reason}");
    }
    let question = question(&asked, &common.perspectives, &setup.questions);
    let lanes = args.switches.applied(common.recipes())?;
    let plan = Plan { question, lanes, k: usize::from(common.k), source: common.source() };
    embed(&setup, &plan, &meter)?;
    let mut lists = Lists::default();
    let answered = answer(&setup, &plan, Depth::Covered, &mut lists, &stop)?;
    let named = named(&setup, &plan, &answered, &measures)?;
    let detector = setup.detector()?;
    let mut lanes = Vec::new();
    for ((recipe, (ranking, took)), named) in plan.lanes.iter().zip(answered.lanes).zip(named) {
        // Where each passage stands in the same lane with nothing switched on.
        let plain = match *recipe == recipe.plain() {
            true => None,
            false => rank(&setup, &recipe.plain(), Asked::plainly(&plan.question), &mut lists, &stop).ok(),
        };
        let ranking = ranking.map_err(|error| error.to_string());
        let took_ms = took.as_secs_f64() * 1e3;
        lanes.push(LaneResult { recipe: recipe.clone(), ranking, plain, named, took_ms });
    }
    let book = answered.book;
    // Where there is no statement nothing was judged.
    let caution = match plan.question.perspectives.is_empty() {
        true => None,
        false => setup.warned(plan.source, std::slice::from_ref(&plan.question))?,
    };

    let corpus = (setup.corpus.name.as_str(), setup.corpus.len(), setup.corpus.fingerprint.0.as_str());
    let result = SearchResult {
        plan: &plan,
        corpus,
        detector: detector.key(),
        fitted_on: detector.fitted_on(),
        caution,
        lanes,
        book,
    };
    let text = match args.format {
        Format::Text => result.text(common.glyphs()),
        Format::Json => format!("{:#}\n", result.json()),
        Format::Tsv => result.tsv(),
    };
    for notice in setup.verdicts.not_kept.iter().chain(&setup.notes).chain(&detector.told()) {
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

/// The measures asked for by name, a lane each, by verdicts as deep as they look.
fn named(setup: &Setup, plan: &Plan, answered: &Answer, measures: &[Measure]) -> anyhow::Result<Vec<Named>> {
    let lists: Vec<Ranking> =
        answered.lanes.iter().filter_map(|(list, _)| list.as_ref().ok().cloned()).collect();
    let deepest = measures.iter().map(|measure| measure.cutoff().unwrap_or(Plan::DEPTH)).max().unwrap_or(0);
    let depth = (plan.k, Depth::To(deepest));
    let m = PerspectiveCount::new(plan.question.perspectives.len());
    let (Ok(m), 1..) = (m, deepest) else {
        let none = measures.iter().map(|measure| (measure.to_string(), None)).collect();
        return Ok(vec![none; plan.lanes.len()]);
    };
    let book = judged(setup, &plan.question, &lists, depth, plan.source, &Stop::never())?;
    let known = lists.iter().flat_map(|list| list.iter());
    let pool: BTreeMap<&str, SupportSet> =
        known.filter_map(|ranked| Some((ranked.passage.id.as_str(), book.support(ranked.at)?))).collect();
    let pool: Vec<(&str, SupportSet)> = pool.into_iter().collect();
    let of = |list: &Ranking| {
        let ranked = book.supports(list);
        let support = SupportEvidence { ranked: &ranked, pool: &pool, m, supports: plan.question.supports };
        let evidence = Evidence { graded: None, support: Some(support) };
        measures
            .iter()
            .map(|one| (one.to_string(), score(*one, &evidence).ok().map(|found| found.value)))
            .collect()
    };
    Ok(answered.lanes.iter().map(|(list, _)| list.as_ref().map(of).unwrap_or_default()).collect())
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
