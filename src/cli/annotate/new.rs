//! `parallax annotate new`: pools the lanes' lists into a project.

use std::collections::HashMap;
use std::io::{self, Write};
use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::{Context, bail};

use super::super::args::{Common, SwitchArgs};
use super::super::interrupt::{INTERRUPTED, stop_on_interrupt};
use super::super::progress::Meter;
use super::count;
use crate::annotate::{Item, Order, Project, assign, is_name};
use crate::pipeline::{Asked, Lists, Plan, Recipe, Setup, rank};
use crate::question::Question;
use crate::work::{Job, Progress, Stop};

/// `parallax annotate new`
#[derive(Debug, clap::Args)]
pub struct New {
    /// The project's folder.
    pub folder: PathBuf,
    /// How many passages of every lane.
    #[arg(long, value_parser = clap::value_parser!(u16).range(1..=100), default_value_t = 10)]
    pub depth: u16,
    /// Who judges; anybody judges everything if not given.
    #[arg(long, value_delimiter = ',', value_name = "NAMES")]
    pub annotators: Vec<String>,
    /// The share of passages that two annotators judge.
    #[arg(long, value_name = "SHARE", default_value_t = 0.2)]
    pub overlap: f64,
    /// In which order they are judged.
    #[arg(long, value_enum, default_value_t)]
    pub order: Order,
    /// Of the random order and of who judges what.
    #[arg(long, default_value_t = 0)]
    pub seed: u64,
    /// Hide lane, rank and the model's verdict.
    #[arg(long)]
    pub blind: bool,
    /// Switches for the lanes that have none of their own.
    #[command(flatten)]
    pub switches: SwitchArgs,
}

pub fn run(common: &Common, args: &New) -> anyhow::Result<ExitCode> {
    check(args)?;
    let (meter, stop) = (Meter::default(), stop_on_interrupt()?);
    let setup = Setup::open(&common.opening(), &|progress| meter.tell(progress), &stop)?;
    let asked = |question: &&Question| !question.perspectives.is_empty();
    let questions: Vec<Question> = setup.questions.iter().filter(asked).cloned().collect();
    if questions.is_empty() {
        bail!("a project needs questions with perspectives: name a question set with --questions");
    }
    let recipes = args.switches.applied(common.recipes())?;
    setup.embed_for(&recipes, &|progress| meter.tell(progress), &stop)?;
    let mut items = Vec::new();
    for (done, question) in questions.iter().enumerate() {
        let told =
            |done: usize| Progress { job: Job::Measuring, done: done as u64, total: questions.len() as u64 };
        meter.tell(told(done));
        items.extend(pool(&setup, &recipes, question, usize::from(args.depth), &stop)?);
        if stop.is_set() {
            writeln!(io::stderr(), "parallax: interrupted; no project was written")?;
            return Ok(ExitCode::from(INTERRUPTED));
        }
        meter.tell(told(done + 1));
    }
    let overlap = if args.annotators.len() < 2 { 0.0 } else { args.overlap };
    assign(&mut items, &args.annotators, overlap, args.seed);
    let left_out = setup.questions.len() - questions.len();
    let (name, fingerprint) = (setup.corpus.name.clone(), setup.corpus.fingerprint.clone());
    let lanes = recipes.iter().map(ToString::to_string).collect();
    let mut project = Project::new(name, fingerprint, questions, lanes, usize::from(args.depth));
    project.order = args.order;
    project.seed = args.seed;
    project.blind = args.blind;
    project.annotators.clone_from(&args.annotators);
    project.overlap = overlap;
    let folder = args.folder.display();
    project.write(&items, &args.folder).with_context(|| format!("{folder} was not written"))?;
    let mut out = io::stdout().lock();
    let (passages, questions) =
        (count(items.len(), "passage", "passages"), count(project.questions.len(), "question", "questions"));
    writeln!(
        out,
        "{folder}: {passages} of {questions}, to depth {} of {}",
        args.depth,
        project.lanes.join(", ")
    )?;
    for by in &project.annotators {
        let mine = items.iter().filter(|item| item.is_for(by)).count();
        writeln!(out, "  {by}: {}", count(mine, "passage", "passages"))?;
    }
    let shared = items.iter().filter(|item| item.to.len() > 1).count();
    if project.annotators.len() > 1 {
        writeln!(out, "  judged twice: {}", count(shared, "passage", "passages"))?;
    }
    if left_out > 0 {
        writeln!(out, "  left out, for want of perspectives: {}", count(left_out, "question", "questions"))?;
    }
    writeln!(out, "  what counts as support is written in {}", args.folder.join("guidelines.md").display())?;
    Ok(ExitCode::SUCCESS)
}

fn check(args: &New) -> anyhow::Result<()> {
    if Project::is_in(&args.folder) {
        bail!("{} holds a project already; name another folder", args.folder.display());
    }
    if !(0.0..=1.0).contains(&args.overlap) {
        bail!("--overlap: expected a share from 0 to 1, found {}", args.overlap);
    }
    for (i, name) in args.annotators.iter().enumerate() {
        if !is_name(name) {
            return Err(crate::annotate::JournalError::Name(name.clone()).into());
        }
        if args.annotators[..i].contains(name) {
            bail!("--annotators: {name} stands there twice");
        }
    }
    Ok(())
}

/// The first passages of every lane, each once, with its ranks: rank by rank, lanes from left to right.
fn pool(
    setup: &Setup,
    recipes: &[Recipe],
    question: &Question,
    depth: usize,
    stop: &Stop,
) -> anyhow::Result<Vec<Item>> {
    // As deep as everywhere, since a switch puts the first 100 in order.
    let mut lists = Lists::to_depth(Plan::DEPTH);
    let mut rankings = Vec::new();
    for recipe in recipes {
        match rank(setup, recipe, Asked::plainly(question), &mut lists, stop) {
            Ok(list) => rankings.push((recipe.to_string(), list)),
            Err(error) if error.is_stop() => return Ok(Vec::new()),
            Err(error) => {
                bail!("the lane {recipe} on \"{}\": {error}; no project was written", question.text)
            }
        }
    }
    let (mut items, mut places): (Vec<Item>, HashMap<_, usize>) = (Vec::new(), HashMap::new());
    for rank in 0..depth {
        for (lane, list) in &rankings {
            let Some(ranked) = list.get(rank) else { continue };
            let place = *places.entry(ranked.at).or_insert_with(|| {
                let passage = (*ranked.passage).clone();
                let (question, ranks, to) = (question.text.clone(), Default::default(), Vec::new());
                items.push(Item { question, passage, ranks, to });
                items.len() - 1
            });
            items[place].ranks.insert(lane.clone(), rank + 1);
        }
    }
    Ok(items)
}
