//! Projects: `annotate new` pools the lists of the lanes, `annotate status` shows the progress.

use std::collections::{BTreeSet, HashMap, HashSet};
use std::io::Write;
use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::{Context, bail};

use crate::annotate::sample::{Gap, labelled_prefix};
use crate::annotate::{History, Human, Item, Order, Project, Sample, assign, is_name, journals, text_hash};
use crate::cli::annotate::journals::{conflict, count};
use crate::cli::job::{Meter, interrupted, open_setup, stop_on_signal};
use crate::cli::options::{Common, SwitchArgs};
use crate::detect::LabelSource;
use crate::engine::sycophancy::{WORDINGS, sycophancy};
use crate::engine::{Lists, Query, Recipe, Setup, rank_lanes};
use crate::question::Question;
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
    /// The annotators, separated by commas. Default: anybody labels everything.
    #[arg(long, value_delimiter = ',', value_name = "NAMES")]
    pub annotators: Vec<String>,
    /// The share of passages that two annotators label.
    #[arg(long, value_name = "SHARE", default_value_t = 0.2)]
    pub overlap: f64,
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
        None => (questions, None),
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
    let overlap = if args.annotators.len() < 2 { 0.0 } else { args.overlap };
    assign(&mut items, &args.annotators, overlap, args.seed);
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
    for by in &project.annotators {
        let assigned = items.iter().filter(|item| item.is_for(by)).count();
        writeln!(out, "  {by}: {}", count(assigned, "passage", "passages"))?;
    }
    let shared = items.iter().filter(|item| item.annotators.len() > 1).count();
    if project.annotators.len() > 1 {
        writeln!(out, "  assigned to two annotators: {}", count(shared, "passage", "passages"))?;
    }
    if skipped > 0 {
        writeln!(out, "  skipped (no statements): {}", count(skipped, "question", "questions"))?;
    }
    writeln!(out, "  guidelines for annotators: {}", args.folder.join("guidelines.md").display())?;
    Ok(ExitCode::SUCCESS)
}

fn check(args: &New) -> anyhow::Result<()> {
    if Project::is_in(&args.folder) {
        bail!("{} already holds a project; name another folder", args.folder.display());
    }
    if !(0.0..=1.0).contains(&args.overlap) {
        bail!("--overlap: expected a share from 0 to 1, found {}", args.overlap);
    }
    for (i, name) in args.annotators.iter().enumerate() {
        if !is_name(name) {
            return Err(crate::annotate::JournalError::Name(name.clone()).into());
        }
        if args.annotators[..i].contains(name) {
            bail!("--annotators: {name} is listed twice");
        }
    }
    Ok(())
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
                items.push(Item { question, passage, ranks, annotators });
                items.len() - 1
            });
            items[place].ranks.insert(lane.clone(), rank + 1);
        }
    }
    Ok(items)
}

/// `parallax annotate status`
#[derive(Debug, clap::Args)]
pub struct Status {
    /// The folder of the project.
    pub folder: PathBuf,
}

pub fn status(args: &Status) -> anyhow::Result<ExitCode> {
    let (project, items) = Project::open(&args.folder)?;
    let (history, notes) = journals(std::slice::from_ref(&args.folder))?;
    let mut out = safe::stdout();
    writeln!(
        out,
        "{}: {} of {}, on {}",
        args.folder.display(),
        count(items.len(), "passage", "passages"),
        count(project.questions.len(), "question", "questions"),
        safe::line(&project.corpus)
    )?;
    let conflicts = history.conflicts();
    let named: BTreeSet<&str> = project
        .annotators
        .iter()
        .map(String::as_str)
        .chain(history.keys().map(|key| key.by.as_str()))
        .collect();
    let width = named.iter().map(|name| name.chars().count()).max().unwrap_or(0).max(9);
    if named.is_empty() {
        let folder = args.folder.display();
        writeln!(
            out,
            "there are no labels yet; to begin, run parallax --journal {folder} --annotator NAME and press a"
        )?;
    } else {
        writeln!(
            out,
            "{:<width$} {:>8} {:>8} {:>8} {:>8} {:>9}",
            "annotator", "assigned", "done", "skipped", "flagged", "conflicts"
        )?;
    }
    for by in named {
        let progress = project.progress(&items, &history, by);
        let own = conflicts.iter().filter(|key| key.by == by).count();
        writeln!(
            out,
            "{:<width$} {:>8} {:>8} {:>8} {:>8} {own:>9}",
            safe::line(by),
            progress.assigned,
            progress.done,
            progress.skipped,
            progress.flagged
        )?;
    }
    if let Some(sample) = &project.sample {
        out.write_all(draw_progress(&project, sample, &items, &history).as_bytes())?;
    }
    if !conflicts.is_empty() {
        writeln!(
            out,
            "\nThe same annotator gave different labels on two machines; label the passage again to resolve it:"
        )?;
        for key in &conflicts {
            write!(out, "{}", conflict(&history, key))?;
        }
    }
    let statements: HashSet<(&str, &str)> = project
        .questions
        .iter()
        .flat_map(|question| question.perspectives.iter().map(|text| (question.text.as_str(), text.as_str())))
        .collect();
    let pool: HashSet<(&str, &str, String)> = items
        .iter()
        .map(|item| (item.question.as_str(), item.passage.id.as_str(), text_hash(&item.passage)))
        .collect();
    let orphaned: Vec<String> = history
        .decisions()
        .iter()
        .filter_map(|label| {
            let why = if !pool.contains(&(&label.question, &label.passage, label.text.clone())) {
                "no such passage in the pool"
            } else if !statements.contains(&(&label.question, &label.perspective)) {
                "no such statement"
            } else {
                return None;
            };
            let (passage, statement) = (safe::line(&label.passage), safe::line(&label.perspective));
            Some(format!("  {}: [{passage}] {statement} ({why})", safe::line(&label.by)))
        })
        .collect();
    if !orphaned.is_empty() {
        let labels = count(orphaned.len(), "label is", "labels are");
        writeln!(
            out,
            "\n{labels} stored but not part of the project (parallax annotate remap can move them):"
        )?;
        writeln!(out, "{}", orphaned.join("\n"))?;
    }
    for note in notes {
        writeln!(safe::stderr(), "parallax: {note}")?;
    }
    Ok(ExitCode::SUCCESS)
}

/// The number of next questions that are listed.
const NEXT: usize = 5;

/// Describes the progress of the draw: the labelled beginning, the next questions, and any question that breaks the order.
fn draw_progress(project: &Project, sample: &Sample, items: &[Item], history: &History) -> String {
    let human = Human::of_pool(history.decisions(), items);
    let shares = project.shares(items, &human);
    let (whole, gap) = labelled_prefix(&shares);
    let mut text = format!(
        "\ndraw: {whole} of {} labelled from the beginning, drawn from {} with seed {}\n",
        count(shares.len(), "question", "questions"),
        sample.of,
        sample.seed
    );
    let row = |place: usize| {
        let (question, share) = (&project.questions[place], shares[place]);
        let words = safe::line(&question.text);
        format!("  {:>3}  {:>3} of {:<3} {words}\n", place + 1, share.labelled, share.of)
    };
    let next: Vec<usize> = (whole..shares.len()).filter(|place| !shares[*place].is_whole()).collect();
    text.extend(next.iter().take(NEXT).map(|place| row(*place)));
    if next.len() > NEXT {
        text += &format!("  … and {} more\n", next.len() - NEXT);
    }
    if let Some(Gap::Skipped(skipped, later)) = gap {
        text += &format!(
            "question {} of the draw has no label, and question {} has: eval --correct stops there, because only the beginning of a \
             draw is random\n",
            skipped + 1,
            later + 1
        );
    }
    text
}
