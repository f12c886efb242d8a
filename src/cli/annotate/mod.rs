//! `parallax annotate`: labelling projects with their status, and the journals that hold labels.
//!
//! May use: everything below `cli`.

mod journals;
mod labels;
mod project;

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::bail;
use clap::Subcommand;

use super::eval::args::TableFormat;
use super::eval::formatted;
use super::options::Common;
use super::provenance;
use crate::annotate::agree::{items, table};
use crate::annotate::narrowing::outlook;
use crate::annotate::sample::{Gap, labelled_prefix};
use crate::annotate::{
    Decision, History, Human, Item, Project, Sample, guidelines_hash, journals as read_journals, text_hash,
};
use crate::detect::Labels;
use crate::engine::Recipe;
use crate::input::InputError;
use crate::measure::score::Column;
use crate::report::decisions::quality;
use crate::report::marks::count;
use crate::report::safe;
use journals::conflict;
use project::contributions;

/// `parallax annotate`
#[derive(Debug, clap::Args)]
pub struct Annotate {
    /// What to do with labels.
    #[command(subcommand)]
    pub what: What,
}

/// What `annotate` does.
#[derive(Debug, Subcommand)]
pub enum What {
    /// Create a project: the first passages of every lane, for every question of a set.
    New(project::New),
    /// Show the progress of every annotator of a project, and which labels conflict.
    Status(Status),
    /// Add questions, lanes, depth or people to a project that has labels. Nobody's queue moves.
    Grow(project::Grow),
    /// Report the quality of the labels, by annotator.
    Report(Report),
    /// Merge the journals of several machines, in any order. No label is lost.
    Merge(journals::Merge),
    /// Check journals for damage.
    Fsck(journals::Fsck),
    /// Measure how far annotators agree, with each other and with the detector, and list what they should discuss.
    /// With --against, the table of one annotator against the others (BERDS, Table 7).
    Agree(labels::Agree),
    /// Import labels from a file of another tool.
    Import(labels::Import),
    /// Export labels for another tool.
    Export(labels::Export),
    /// Move labels to passages whose id changed, or to statements that were reworded.
    Remap(journals::Remap),
}

/// Does what the user asked for with labels.
///
/// # Errors
/// A file is not valid, or a folder cannot be written.
pub fn run(common: &Common, args: &Annotate) -> anyhow::Result<ExitCode> {
    match &args.what {
        What::New(args) => project::new(common, args),
        What::Status(args) => status(args),
        What::Grow(args) => project::grow(common, args),
        What::Report(args) => report(common, args),
        What::Merge(args) => journals::merge(args),
        What::Fsck(args) => journals::fsck(common, args),
        What::Agree(args) => labels::agree(common, args),
        What::Import(args) => labels::import(common, args),
        What::Export(args) => labels::export(common, args),
        What::Remap(args) => journals::remap(common, args),
    }
}

/// `parallax annotate status`
#[derive(Debug, clap::Args)]
pub struct Status {
    /// The folder of the project.
    pub folder: PathBuf,
    /// List all that waits for somebody: ties, and labels made under other guidelines. Default: the first five of each.
    #[arg(long)]
    pub all: bool,
}

fn status(args: &Status) -> anyhow::Result<ExitCode> {
    let (project, items) = Project::open(&args.folder)?;
    let (history, notes) = read_journals(std::slice::from_ref(&args.folder))?;
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
        .chain(&project.adjudicators)
        .map(String::as_str)
        .chain(history.keys().map(|key| key.by.as_str()))
        .collect();
    let width = named.iter().map(|name| name.chars().count()).max().unwrap_or(0).max(9);
    if named.is_empty() {
        let folder = args.folder.display();
        writeln!(
            out,
            "there are no labels yet; to begin, run parallax --journal {folder} --annotator NAME and press <Esc> and a"
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
    out.write_all(contributions(&project, &items).as_bytes())?;
    let listed = if args.all { usize::MAX } else { NEXT };
    out.write_all(open_matters(&project, &items, &history, (args.folder.as_path(), listed))?.as_bytes())?;
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

/// How many are not listed.
fn more(all: usize, listed: usize) -> String {
    if all > listed { format!("  … and {} more; --all lists them\n", all - listed) } else { String::new() }
}

/// What waits for somebody: ties to be settled, labels under other guidelines, and what further labels are expected to change.
fn open_matters(
    project: &Project,
    items: &[Item],
    history: &History,
    (folder, listed): (&Path, usize),
) -> Result<String, InputError> {
    let decisions = history.decisions();
    let human = Human::of_pool(decisions.iter().cloned(), items);
    let mut text = String::new();
    let tied = human.tied();
    if !tied.is_empty() {
        let folder = folder.display();
        let (first, name) = match project.adjudicators.first() {
            Some(name) => (String::new(), safe::line(name)),
            None => (format!("parallax annotate grow {folder} --adjudicators NAME, then "), "NAME".into()),
        };
        text += &format!(
            "\n{} tied, labelled yes as often as no, and {} as unjudged. To settle them: {first}parallax --journal {folder} --annotator \
             {name}, <Esc> and a\n",
            count(tied.len(), "pair of passage and statement is", "pairs of passage and statement are"),
            if tied.len() == 1 { "counts" } else { "count" },
        );
        for (statement, passage, said) in tied.iter().take(listed) {
            let said = said
                .iter()
                .map(|one| format!("{} {}", safe::line(&one.by), if one.supports { "yes" } else { "no" }));
            let said = said.collect::<Vec<_>>().join(", ");
            text += &format!("  [{}] {}: {said}\n", safe::line(passage), safe::line(statement));
        }
        text += &more(tied.len(), listed);
    }
    let now =
        guidelines_hash(&Project::guidelines(folder)?.unwrap_or_else(|| Project::GUIDELINES.to_owned()));
    let under = |key: &crate::annotate::Key| {
        history.heads(key).iter().any(|head| head.seen.as_ref().is_some_and(|seen| seen.guidelines != now))
    };
    let before: Vec<_> = history.keys().filter(|key| under(key)).collect();
    if !before.is_empty() {
        text += &format!(
            "\n{} labelled under other guidelines than the present ones; every version is in {}:\n",
            count(before.len(), "passage was", "passages were"),
            folder.join("guidelines").display()
        );
        for key in before.iter().take(listed) {
            text += &format!(
                "  {}: {} [{}]\n",
                safe::line(&key.by),
                safe::line(&key.question),
                safe::line(&key.passage)
            );
        }
        text += &more(before.len(), listed);
    }
    let next = stopping(project, items, &human);
    if !next.is_empty() {
        text += "\nstop labelling? expected change by the next passages, if they change a figure as often as the last ones:\n";
        text.extend(next.iter().map(|line| format!("  {line}\n")));
    }
    Ok(text)
}

/// A change of a mean below this is not worth more labels.
const ENOUGH: f64 = 0.01;

/// How much the next passages are expected to change the figures of every lane, a line each.
fn stopping(project: &Project, items: &[Item], human: &Human) -> Vec<String> {
    let k = project.depth.min(5);
    let line = |lane: &String| {
        let of = |column| outlook((&project.questions, items), (lane.as_str(), column, k), human);
        let columns = [Column::mrecall_at(k), Column::prec_at(k)];
        let all: Option<Vec<_>> = columns.into_iter().map(|column| Some((column, of(column)?))).collect();
        let all = all?;
        let said: Vec<String> =
            all.iter().map(|(column, next)| format!("{column} {:.3}", next.change)).collect();
        let enough = all.iter().all(|(_, next)| next.change < ENOUGH);
        let further = all.first()?.1.further;
        Some(format!(
            "{}: {} with the next {}{}",
            safe::line(lane),
            said.join(", "),
            count(further, "passage", "passages"),
            if further == 0 {
                ": all are labelled"
            } else if enough {
                ": less than .01, you may stop"
            } else {
                ""
            }
        ))
    };
    let own = |lane: &String| match lane.parse::<Recipe>() {
        Ok(_) => line(lane),
        Err(error) => Some(format!("{}: left out, it is no lane of this version: {error}", safe::line(lane))),
    };
    project.lanes.iter().filter_map(own).collect()
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
    let broken = gap.map(|gap| match gap {
        Gap::Skipped(skipped, later) => {
            format!("question {} of the draw has no label, and question {} has", skipped + 1, later + 1)
        }
        Gap::HalfDone(at) => format!(
            "question {} of the draw is half done: {} of {} passages have labels",
            at + 1,
            shares[at].labelled,
            shares[at].of
        ),
    });
    if let Some(broken) = broken {
        text += &format!(
            "{broken}: eval --correct stops there, because only the beginning of a draw is random\n"
        );
    }
    text
}

/// `parallax annotate report`
#[derive(Debug, clap::Args)]
pub struct Report {
    /// The folder of the project.
    pub folder: PathBuf,
    /// The output format.
    #[arg(long, value_enum, default_value_t)]
    pub format: TableFormat,
    /// Write the table to this file instead, and beside it FILE.json: what it was made of, for `parallax reproduce`.
    #[arg(long, value_name = "FILE")]
    pub out: Option<PathBuf>,
}

fn report(common: &Common, args: &Report) -> anyhow::Result<ExitCode> {
    if let Some(place) = &args.out {
        provenance::check(place)?;
    }
    let (project, pool) = Project::open(&args.folder)?;
    let (history, notes) = read_journals(std::slice::from_ref(&args.folder))?;
    let decisions = history.decisions();
    if decisions.is_empty() {
        bail!("{}: there are no labels yet", args.folder.display());
    }
    let labels = match common.labels.as_slice() {
        [] => None,
        [name] => Some(Labels::read(name, &project.questions)?),
        several => bail!(
            "annotate report compares with one file of labels, and {} are given with --labels",
            several.len()
        ),
    };
    let checks: HashMap<(&str, String), &BTreeMap<String, bool>> = pool
        .iter()
        .filter(|item| !item.labels.is_empty())
        .map(|item| ((item.question.as_str(), text_hash(&item.passage)), &item.labels))
        .collect();
    let known = |one: &Decision| {
        let check = checks.get(&(one.question.as_str(), one.text.clone()));
        let planted = check.and_then(|known| known.get(&one.perspective)).copied();
        planted.or_else(|| labels.as_ref()?.supports(&one.perspective, &one.passage))
    };
    let all = items(&decisions, None);
    let agreed = table(&all, None);
    let mut page = quality(&all, &known, &history.repeated());
    page.notes.push(format!(
        "Krippendorff's α: {} over {} labelled at least twice{}",
        agreed.alpha.value.map_or_else(|| "–".into(), |alpha| format!("{alpha:.4}")),
        agreed.alpha.doubly_labelled,
        agreed.alpha_after.map_or_else(String::new, |after| format!(
            "; after adjudication of {}: {}",
            agreed.settled,
            after.value.map_or_else(|| "–".into(), |alpha| format!("{alpha:.4}"))
        ))
    ));
    let human = Human::of_pool(decisions.iter().cloned(), &pool);
    page.notes.extend(
        stopping(&project, &pool, &human).into_iter().map(|line| format!("expected change of {line}")),
    );
    page.notes.extend(notes);
    let text = formatted(&page, args.format)?;
    provenance::print(args.out.as_deref(), &text, &page.json())?;
    Ok(ExitCode::SUCCESS)
}
