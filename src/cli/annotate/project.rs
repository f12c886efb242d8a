//! Projects: `annotate new` pools the lists of the lanes, `annotate grow` adds to them.

use std::collections::HashMap;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::{Context, bail};

use crate::annotate::{
    Item, Order, Project, Repeat, Sample, assign, distinct, drop_repeats, is_name, journals, one_name, plant,
};
use crate::cli::job::{Meter, interrupted, open_setup, stop_on_signal};
use crate::cli::options::{Common, SwitchArgs};
use crate::detect::LabelSource;
use crate::engine::sycophancy::{WORDINGS, sycophancy};
use crate::engine::{Lists, Query, Recipe, Setup, rank_lanes};
use crate::question::Question;
use crate::report::marks::count;
use crate::report::safe;
use crate::work::{Job, Progress, Stop};

/// `parallax annotate new`
#[derive(Debug, clap::Args)]
pub struct New {
    /// The folder of the new project.
    pub folder: PathBuf,
    /// How many passages to take from the top of every lane. Default: 10; with --sample, as many as count (-k).
    #[arg(long, value_parser = clap::value_parser!(u16).range(1..=100))]
    pub depth: Option<u16>,
    /// Draw this many questions at random; labelled in the order of the draw, they correct the model's verdicts on all questions
    /// (eval berds --correct). Default: all questions.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..))]
    pub sample: Option<u16>,
    /// With --sample, also take the top of every lane for either statement as the query, which eval sycophancy --correct needs.
    #[arg(long, requires = "sample")]
    pub wordings: bool,
    /// Leave out a passage that has at least this share of its words in common with a better one of the same question, such as .9; what is
    /// left out is printed. Default: all passages stay.
    #[arg(long, value_name = "SHARE")]
    pub no_near_duplicates: Option<f64>,
    /// The annotators, separated by commas. Default: anybody labels everything.
    #[arg(long, value_delimiter = ',', value_name = "NAMES")]
    pub annotators: Vec<String>,
    /// The share of passages that two annotators label.
    #[arg(long, value_name = "SHARE", default_value_t = 0.2)]
    pub overlap: f64,
    /// The share of passages that are checks: known labels (--labels) say who is right, and everybody labels them.
    #[arg(long, value_name = "SHARE", default_value_t = 0.0)]
    pub checks: f64,
    /// The share of an annotator's passages that come a second time, after all others: of two-sided questions.
    #[arg(long, value_name = "SHARE", default_value_t = 0.0)]
    pub repeats: f64,
    /// The order in which passages are labelled.
    #[arg(long, value_enum, default_value_t)]
    pub order: Order,
    /// The seed of the draw, of the random order and of the assignment.
    #[arg(long, default_value_t = 0)]
    pub seed: u64,
    /// Hide the lane, the rank and the verdict of the model from annotators.
    #[arg(long)]
    pub blind: bool,
    /// Switches for the lanes that have none of their own.
    #[command(flatten)]
    pub switches: SwitchArgs,
}

pub fn new(common: &Common, args: &New) -> anyhow::Result<ExitCode> {
    check(args)?;
    let (meter, stop) = (Meter::default(), stop_on_signal()?);
    let setup = open_setup(&common.opening(), &meter, &stop)?;
    let has_statements = |question: &&Question| !question.perspectives.is_empty();
    let questions: Vec<Question> = setup.questions.iter().filter(has_statements).cloned().collect();
    if questions.is_empty() {
        bail!("a project needs questions with statements; name a question set with --questions");
    }
    let (set, depth) =
        (questions.len(), args.depth.unwrap_or(if args.sample.is_some() { common.k } else { 10 }));
    let (questions, sample) = match args.sample {
        Some(count) => {
            let (sample, drawn) = Sample::draw(&questions, usize::from(count), args.seed)?;
            (drawn, Some(sample))
        }
        None => {
            distinct(&questions)?;
            (questions, None)
        }
    };
    let depth = usize::from(depth);
    let recipes = args.switches.apply(common.recipes())?;
    setup.embed_for(&recipes, &|progress| meter.show(progress), &stop)?;
    let mut items = Vec::new();
    for (done, question) in questions.iter().enumerate() {
        let progress =
            |done: usize| Progress { job: Job::Measuring, done: done as u64, total: questions.len() as u64 };
        meter.show(progress(done));
        items.extend(pool(&setup, &recipes, question, (depth, args.wordings), &stop)?);
        if stop.is_set() {
            writeln!(safe::stderr(), "parallax: interrupted; no project was written")?;
            return Ok(interrupted());
        }
        meter.show(progress(done + 1));
    }
    let repeats = args.no_near_duplicates.map(|least| drop_repeats(&mut items, 0, least)).unwrap_or_default();
    let overlap = if args.annotators.len() < 2 { 0.0 } else { args.overlap };
    assign(&mut items, &args.annotators, overlap, args.seed);
    let (checks, wanted) =
        plant_checks(&setup, &mut items, &questions, (args.checks, args.seed), &args.annotators)?;
    let skipped = setup.questions.len() - set;
    let (name, fingerprint) = (setup.corpus.name.clone(), setup.corpus.fingerprint.clone());
    let wordings = |recipe: &Recipe| {
        let more = WORDINGS[1..].iter().filter(|_| args.wordings).map(move |name| format!("{recipe} {name}"));
        std::iter::once(recipe.to_string()).chain(more).collect::<Vec<String>>()
    };
    let lanes = recipes.iter().flat_map(wordings).collect();
    let mut project = Project::new(name, fingerprint, questions, lanes, depth);
    project.sample = sample;
    project.order = args.order;
    project.seed = args.seed;
    project.blind = args.blind;
    project.annotators.clone_from(&args.annotators);
    project.overlap = overlap;
    (project.checks, project.repeats) = (args.checks, args.repeats);
    project.near_duplicates = args.no_near_duplicates;
    let folder = args.folder.display();
    project.write(&items, &args.folder).with_context(|| format!("{folder} was not written"))?;
    let mut out = safe::stdout();
    let (passages, questions) =
        (count(items.len(), "passage", "passages"), count(project.questions.len(), "question", "questions"));
    writeln!(out, "{folder}: {passages} of {questions}, to depth {depth} of {}", project.lanes.join(", "))?;
    if let Some(sample) = &project.sample {
        let seed = sample.seed;
        writeln!(
            out,
            "  drawn at random from {} with seed {seed}; label them in this order, then: parallax eval berds --correct {folder}",
            count(sample.of, "question", "questions")
        )?;
    }
    out.write_all(dropped(&repeats).as_bytes())?;
    if !repeats.is_empty() && project.sample.is_some() {
        writeln!(
            out,
            "  eval --correct needs labels of these too and stops at the first question that lacks one: to correct a model, leave \
             --no-near-duplicates out"
        )?;
    }
    for by in &project.annotators {
        let assigned = items.iter().filter(|item| item.is_for(by)).count();
        writeln!(out, "  {by}: {}", count(assigned, "passage", "passages"))?;
    }
    let shared = items.iter().filter(|item| item.annotators.len() > 1).count();
    if project.annotators.len() > 1 {
        writeln!(out, "  assigned to two annotators: {}", count(shared, "passage", "passages"))?;
    }
    if wanted > 0 {
        writeln!(out, "  checks: {}{}", count(checks, "passage", "passages"), fewer(checks, wanted))?;
    }
    if skipped > 0 {
        writeln!(out, "  skipped (no statements): {}", count(skipped, "question", "questions"))?;
    }
    writeln!(out, "  guidelines for annotators: {}", args.folder.join("guidelines.md").display())?;
    Ok(ExitCode::SUCCESS)
}

/// What a pool leaves out, a line each.
fn dropped(repeats: &[Repeat]) -> String {
    if repeats.is_empty() {
        return String::new();
    }
    let mut text =
        format!("  left out as near duplicates: {}\n", count(repeats.len(), "passage", "passages"));
    for Repeat { question, id, of, share } in repeats {
        let (question, id, of) = (safe::line(question), safe::line(id), safe::line(of));
        text += &format!("    [{id}] has {share:.2} of its words in common with [{of}]: {question}\n");
    }
    text
}

fn check(args: &New) -> anyhow::Result<()> {
    if let Some(share) = args.no_near_duplicates.filter(|share| !(*share > 0.0 && *share <= 1.0)) {
        bail!("--no-near-duplicates: expected a share above 0, at most 1, found {share}");
    }
    if Project::is_in(&args.folder) {
        bail!("{} already holds a project; name another folder", args.folder.display());
    }
    for (name, share) in [("overlap", args.overlap), ("checks", args.checks), ("repeats", args.repeats)] {
        check_share(name, share)?;
    }
    check_names(args.annotators.iter())
}

fn check_share(name: &str, share: f64) -> anyhow::Result<()> {
    if (0.0..=1.0).contains(&share) {
        Ok(())
    } else {
        bail!("--{name}: expected a share from 0 to 1, found {share}")
    }
}

/// An adjudicator must not settle a disagreement between others and an own earlier label.
fn refuse_annotator(folder: &Path, name: &str) -> anyhow::Result<()> {
    let (history, _) = journals(&[folder.to_owned()])?;
    if history.decisions().iter().any(|one| one.by == name && !one.settles()) {
        bail!("{name} has labelled passages of this project; somebody else must settle disagreements");
    }
    Ok(())
}

/// Makes a share of new passages checks. Returns how many there are, and how many there should be.
fn plant_checks(
    setup: &Setup,
    items: &mut [Item],
    questions: &[Question],
    (share, seed): (f64, u64),
    annotators: &[String],
) -> anyhow::Result<(usize, usize)> {
    let Some(labels) = setup.labels.as_ref().filter(|_| share > 0.0) else {
        if share > 0.0 {
            bail!("checks are passages whose labels are known; name a file of labels with --labels");
        }
        return Ok((0, 0));
    };
    let known = |item: &Item| {
        let question = questions.iter().find(|question| question.text == item.question)?;
        let label =
            |statement: &String| Some((statement.clone(), labels.supports(statement, &item.passage.id)?));
        question.perspectives.iter().map(label).collect()
    };
    let wanted = plant(items, (share, seed), annotators, &known);
    Ok((items.iter().filter(|item| !item.labels.is_empty()).count(), wanted))
}

fn fewer(checks: usize, wanted: usize) -> String {
    if checks == wanted {
        String::new()
    } else {
        format!(" of {wanted}: no more have a known label for every statement")
    }
}

/// Whether these people can have journals beside each other.
fn check_names<'a>(names: impl Iterator<Item = &'a String>) -> anyhow::Result<()> {
    let names: Vec<&str> = names.map(String::as_str).collect();
    if let Some(name) = names.iter().find(|name| !is_name(name)) {
        return Err(crate::annotate::JournalError::Name((*name).to_owned()).into());
    }
    match one_name(&names) {
        Some((first, second)) if first == second => {
            bail!("{first} is named twice; give each person another name")
        }
        Some((first, second)) => bail!(
            "{first} and {second} differ only in case, and some systems keep both labels in one file; give each person another name"
        ),
        None => Ok(()),
    }
}

/// The first passages of every lane, each once with its ranks, ordered by rank and then by lane. With `wordings`, the lists for either
/// statement as the query are pooled too.
fn pool(
    setup: &Setup,
    recipes: &[Recipe],
    question: &Question,
    (depth, wordings): (usize, bool),
    stop: &Stop,
) -> anyhow::Result<Vec<Item>> {
    // Lists have their usual depth, because switches reorder the first 100.
    let (lists, source) = (Lists::default(), LabelSource::default());
    let query = Query { question: question.clone(), lanes: recipes.to_vec(), k: depth, source };
    let mut rankings = Vec::new();
    for (recipe, lane) in recipes.iter().zip(rank_lanes(setup, query, lists, stop)) {
        match lane.ranking {
            Ok(list) => rankings.push((recipe.to_string(), list)),
            Err(error) if error.is_stop() => return Ok(Vec::new()),
            Err(error) => {
                bail!("the lane {recipe} on \"{}\": {error}; no project was written", question.text)
            }
        }
    }
    for recipe in recipes.iter().filter(|_| wordings && question.sides().is_some()) {
        // With labels as the source, no model runs.
        match sycophancy(setup, recipe, question, (depth, LabelSource::Human), &[], stop) {
            Ok(asked) => {
                let lists = asked.lists.into_iter().zip(WORDINGS).skip(1);
                rankings.extend(lists.map(|(list, wording)| (format!("{recipe} {wording}"), list)));
            }
            Err(error) if error.is_stop() => return Ok(Vec::new()),
            Err(error) => bail!(
                "the lane {recipe} on the statements of \"{}\": {error}; no project was written",
                question.text
            ),
        }
    }
    let (mut items, mut places): (Vec<Item>, HashMap<_, usize>) = (Vec::new(), HashMap::new());
    for rank in 0..depth {
        for (lane, list) in &rankings {
            let Some(ranked) = list.get(rank) else { continue };
            let place = *places.entry(ranked.at).or_insert_with(|| {
                let passage = (*ranked.passage).clone();
                let (question, ranks, annotators) = (question.text.clone(), Default::default(), Vec::new());
                let (later, round) = (Default::default(), 0);
                items.push(Item { question, passage, ranks, later, round, annotators, ..Item::default() });
                items.len() - 1
            });
            items[place].ranks.insert(lane.clone(), rank + 1);
        }
    }
    Ok(items)
}

/// `parallax annotate grow`
#[derive(Debug, clap::Args)]
pub struct Grow {
    /// The folder of the project. Questions of --questions and lanes of --lanes or --lane that it does not have are added.
    pub folder: PathBuf,
    /// How many passages to take from the top of every lane; no less than before.
    #[arg(long, value_parser = clap::value_parser!(u16).range(1..=100))]
    pub depth: Option<u16>,
    /// Annotators to add, separated by commas. They get passages of what is added, not those of others.
    #[arg(long, value_delimiter = ',', value_name = "NAMES")]
    pub annotators: Vec<String>,
    /// The share of what is added that two annotators label. Default: as before.
    #[arg(long, value_name = "SHARE")]
    pub overlap: Option<f64>,
    /// Those who settle disagreements, separated by commas: each labels the passages on which annotators disagree, and says why.
    #[arg(long, value_delimiter = ',', value_name = "NAMES")]
    pub adjudicators: Vec<String>,
}

pub fn grow(common: &Common, args: &Grow) -> anyhow::Result<ExitCode> {
    let (mut project, mut items) = Project::open(&args.folder)?;
    let folder = args.folder.display();
    if project.annotators.is_empty() && !args.annotators.is_empty() {
        bail!("{folder}: anybody labels everything here, so that there is nobody to add");
    }
    if let Some(both) = args
        .adjudicators
        .iter()
        .find(|name| project.annotators.contains(name) || args.annotators.contains(name))
    {
        bail!("{both} labels passages of this project; somebody else must settle disagreements");
    }
    for name in &args.adjudicators {
        refuse_annotator(&args.folder, name)?;
    }
    if let Some(share) = args.overlap {
        check_share("overlap", share)?;
        project.overlap = share;
    }
    let add = |to: &mut Vec<String>, names: &[String]| {
        let new: Vec<String> = names.iter().filter(|name| !to.contains(name)).cloned().collect();
        to.extend(new);
    };
    add(&mut project.annotators, &args.annotators);
    add(&mut project.adjudicators, &args.adjudicators);
    check_names(project.annotators.iter().chain(&project.adjudicators))?;
    let depth = args.depth.map_or(project.depth, |depth| project.depth.max(usize::from(depth)));
    let named: Vec<Recipe> = common.lane.iter().chain(&common.lanes).cloned().collect();
    let lanes: Vec<String> =
        named.iter().map(ToString::to_string).filter(|lane| !project.lanes.contains(lane)).collect();
    let mut out = safe::stdout();
    // Depth, lanes and questions that the project has already are pooled again: an earlier growth may have been cut short.
    if args.depth.is_none() && named.is_empty() && common.questions.is_empty() {
        project.rewrite(&items, &args.folder).with_context(|| format!("{folder} was not changed"))?;
        writeln!(
            out,
            "{folder}: {}, {}",
            count(project.annotators.len(), "annotator", "annotators"),
            count(project.adjudicators.len(), "adjudicator", "adjudicators")
        )?;
        return Ok(ExitCode::SUCCESS);
    }
    let wordings = project.lanes.iter().any(|lane| lane.parse::<Recipe>().is_err());
    let (meter, stop) = (Meter::default(), stop_on_signal()?);
    let setup = Setup::open(&common.opening(), &|progress| meter.show(progress), &stop)?;
    if setup.corpus.fingerprint != project.fingerprint {
        bail!(
            "{folder} was pooled from {} (fingerprint {}), and this corpus is {} ({}): a pool is of one corpus; name the first with --corpus, \
             or make another project",
            safe::line(&project.corpus),
            project.fingerprint.0,
            safe::line(&setup.corpus.name),
            setup.corpus.fingerprint.0
        );
    }
    let new = |question: &&Question| {
        !question.perspectives.is_empty() && project.question(&question.text).is_none()
    };
    let questions: Vec<Question> = match common.questions.is_empty() {
        true => Vec::new(),
        false => setup.questions.iter().filter(new).cloned().collect(),
    };
    if project.sample.is_some() && !questions.is_empty() {
        bail!(
            "{folder}: its questions were drawn at random, so none can be added by hand; draw more with annotate new --sample"
        );
    }
    distinct(&questions)?;
    let added = questions.len();
    project.questions.extend(questions);
    project.lanes.extend(lanes);
    project.depth = depth;
    let recipes: Vec<Recipe> = project.lanes.iter().filter_map(|lane| lane.parse().ok()).collect();
    setup.embed_for(&recipes, &|progress| meter.show(progress), &stop)?;
    let round = items.iter().map(|item| item.round).max().unwrap_or(0) + 1;
    let mut places: HashMap<(String, String), usize> = items
        .iter()
        .enumerate()
        .map(|(at, item)| ((item.question.clone(), item.passage.id.clone()), at))
        .collect();
    let had = items.len();
    for (done, question) in project.questions.iter().enumerate() {
        let (done, total) = (done as u64, project.questions.len() as u64);
        meter.show(Progress { job: Job::Measuring, done, total });
        for item in pool(&setup, &recipes, question, (depth, wordings), &stop)? {
            let key = (item.question.clone(), item.passage.id.clone());
            match places.get(&key) {
                Some(at) => {
                    // Its first ranks, which order the queue, stay.
                    let known = &mut items[*at];
                    let more = item.ranks.into_iter().filter(|(lane, _)| !known.ranks.contains_key(lane));
                    known.later.extend(more);
                }
                None => {
                    places.insert(key, items.len());
                    items.push(Item { round, ..item });
                }
            }
        }
        if stop.is_set() {
            writeln!(safe::stderr(), "parallax: interrupted; the project is as it was")?;
            return Ok(interrupted());
        }
    }
    let repeats =
        project.near_duplicates.map(|least| drop_repeats(&mut items, had, least)).unwrap_or_default();
    let seed = project.seed.wrapping_add(round as u64);
    assign(&mut items[had..], &project.annotators, project.overlap, seed);
    let share = (project.checks, seed);
    let (checks, wanted) =
        plant_checks(&setup, &mut items[had..], &project.questions, share, &project.annotators)?;
    project.rewrite(&items, &args.folder).with_context(|| format!("{folder} was not changed"))?;
    writeln!(
        out,
        "{folder}: {} and {} added; {} of {} in all, to depth {depth}",
        count(items.len() - had, "passage", "passages"),
        count(added, "question", "questions"),
        count(items.len(), "passage", "passages"),
        count(project.questions.len(), "question", "questions")
    )?;
    if wanted > 0 {
        writeln!(out, "  checks: {}{}", count(checks, "passage", "passages"), fewer(checks, wanted))?;
    }
    out.write_all(dropped(&repeats).as_bytes())?;
    out.write_all(contributions(&project, &items).as_bytes())?;
    Ok(ExitCode::SUCCESS)
}

/// What each lane brought to the pool: the passages it found, and those that no other lane found.
pub fn contributions(project: &Project, items: &[Item]) -> String {
    let of = |lane: &String| {
        let found: Vec<&Item> = items.iter().filter(|item| item.rank(lane).is_some()).collect();
        let alone = found.iter().filter(|item| item.ranks.len() + item.later.len() == 1).count();
        format!("  {}: {} found, {alone} by no other lane\n", safe::line(lane), found.len())
    };
    project.lanes.iter().map(of).collect()
}
