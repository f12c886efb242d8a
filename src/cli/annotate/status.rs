//! `parallax annotate status`: how far a project is.

use std::collections::{BTreeSet, HashSet};
use std::io::{self, Write};
use std::path::PathBuf;
use std::process::ExitCode;

use super::{conflict, count};
use crate::annotate::{Project, journals, text_hash};
use crate::report::safe;

/// `parallax annotate status`
#[derive(Debug, clap::Args)]
pub struct Status {
    /// The project's folder.
    pub folder: PathBuf,
}

pub fn run(args: &Status) -> anyhow::Result<ExitCode> {
    let (project, items) = Project::open(&args.folder)?;
    let (history, notes) = journals(std::slice::from_ref(&args.folder))?;
    let mut out = io::stdout().lock();
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
            "nobody has labelled yet; next: parallax --journal {folder} --annotator NAME, and press a"
        )?;
    } else {
        writeln!(
            out,
            "{:<width$} {:>8} {:>8} {:>8} {:>8} {:>9}",
            "annotator", "to judge", "done", "skipped", "flagged", "conflicts"
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
    if !conflicts.is_empty() {
        writeln!(
            out,
            "\nTwo machines of one annotator say different things; deciding the passage again settles it:"
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
    let astray: Vec<String> = history
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
    if !astray.is_empty() {
        let labels = count(astray.len(), "label is", "labels are");
        writeln!(
            out,
            "\n{labels} kept and no part of the project (parallax annotate remap ties them again):"
        )?;
        writeln!(out, "{}", astray.join("\n"))?;
    }
    for note in notes {
        writeln!(io::stderr(), "parallax: {note}")?;
    }
    Ok(ExitCode::SUCCESS)
}
