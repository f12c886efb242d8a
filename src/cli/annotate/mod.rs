//! `parallax annotate`: labelling projects with their status, and the journals that hold labels.
//!
//! May use: everything below `cli`.

mod journals;
mod labels;
mod project;

use std::collections::{BTreeSet, HashSet};
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use clap::Subcommand;

use super::options::Common;
use crate::annotate::narrowing::outlook;
use crate::annotate::sample::{Gap, labelled_prefix};
use crate::annotate::{
    History, Human, Item, Project, Sample, guidelines_hash, journals as read_journals, text_hash,
};
use crate::engine::Recipe;
use crate::measure::score::Column;
use crate::report::safe;
use journals::{conflict, count};
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
    Report(project::Report),
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

/// Runs the command.
///
/// # Errors
/// A file is not valid, or a folder cannot be written.
pub fn run(common: &Common, args: &Annotate) -> anyhow::Result<ExitCode> {
    match &args.what {
        What::New(args) => project::new(common, args),
        What::Status(args) => status(args),
        What::Grow(args) => project::grow(common, args),
        What::Report(args) => project::report(common, args),
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
}

pub fn status(args: &Status) -> anyhow::Result<ExitCode> {
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
    out.write_all(contributions(&project, &items).as_bytes())?;
    out.write_all(open_matters(&project, &items, &history, &args.folder).as_bytes())?;
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

/// What waits for somebody: ties to be settled, labels under other guidelines, and what further labels are expected to change.
fn open_matters(project: &Project, items: &[Item], history: &History, folder: &Path) -> String {
    let decisions = history.decisions();
    let human = Human::of_pool(decisions.iter().cloned(), items);
    let mut text = String::new();
    let tied = human.tied();
    if !tied.is_empty() {
        let folder = folder.display();
        text += &format!(
            "\n{} as often labelled yes as no, and unjudged; to have somebody else settle this: parallax annotate grow {folder} --adjudicators \
             NAME, then parallax --journal {folder} --annotator NAME and a\n",
            count(tied.len(), "pair of passage and statement is", "pairs of passage and statement are"),
        );
        for (statement, passage, said) in tied.iter().take(NEXT) {
            let said = said
                .iter()
                .map(|one| format!("{} {}", safe::line(&one.by), if one.supports { "yes" } else { "no" }));
            let said = said.collect::<Vec<_>>().join(", ");
            text += &format!("  [{}] {}: {said}\n", safe::line(passage), safe::line(statement));
        }
        if tied.len() > NEXT {
            text += &format!("  … and {} more\n", tied.len() - NEXT);
        }
    }
    let now = guidelines_hash(&Project::guidelines(folder).unwrap_or_else(|| Project::GUIDELINES.to_owned()));
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
        for key in before.iter().take(NEXT) {
            text += &format!(
                "  {}: {} [{}]\n",
                safe::line(&key.by),
                safe::line(&key.question),
                safe::line(&key.passage)
            );
        }
        if before.len() > NEXT {
            text += &format!("  … and {} more\n", before.len() - NEXT);
        }
    }
    let k = project.depth.min(5);
    let lane = project.lanes.iter().find(|lane| lane.parse::<Recipe>().is_ok());
    let column = Column::mrecall_at(k);
    if let Some(lane) = lane
        && let Some(next) = outlook((&project.questions, items), (lane, column, k), &human)
    {
        text += &format!(
            "\n{column} of {}: the next {} are expected to change it by {:.3}, if they do so as often as the last ones\n",
            safe::line(lane),
            count(next.further, "passage", "passages"),
            next.change
        );
    }
    text
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
