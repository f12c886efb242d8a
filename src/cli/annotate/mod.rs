//! `parallax annotate`: projects of labels by hand, and the journals that hold them.

mod agree;
mod export;
mod fsck;
mod import;
mod merge;
mod new;
mod remap;
mod status;

use std::collections::HashMap;
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::atomic::{AtomicU64, Ordering};

use clap::Subcommand;

use super::args::Common;
use super::progress::Meter;
use crate::annotate::{Decision, History, Key, Material, Model, Project, Read};
use crate::corpus::Passage;
use crate::detect::DetectError;
use crate::pipeline::Setup;
use crate::report::safe;
use crate::work::{Job, Progress, Stop, on_all};

/// `parallax annotate`
#[derive(Debug, clap::Args)]
pub struct Annotate {
    /// What to do.
    #[command(subcommand)]
    pub what: What,
}

/// What `annotate` does.
#[derive(Debug, Subcommand)]
pub enum What {
    /// Begin a project: the first passages of every lane, for every question of a set.
    New(new::New),
    /// Tell how far every annotator of a project is, and what is in conflict.
    Status(status::Status),
    /// Bring the journals of several machines together; nothing is lost, whatever the order.
    Merge(merge::Merge),
    /// Check journals for damage.
    Fsck(fsck::Fsck),
    /// How far annotators agree, with each other and with the detector, and what they have to talk over.
    Agree(agree::Agree),
    /// Take labels in from a file of another tool.
    Import(import::Import),
    /// Write labels for another tool.
    Export(export::Export),
    /// Tie labels again whose passage has another id now, or whose statement was reworded.
    Remap(remap::Remap),
}

/// Runs the command.
///
/// # Errors
/// A file is not right, or a folder cannot be written.
pub fn run(common: &Common, args: &Annotate) -> anyhow::Result<ExitCode> {
    match &args.what {
        What::New(args) => new::run(common, args),
        What::Status(args) => status::run(args),
        What::Merge(args) => merge::run(args),
        What::Fsck(args) => fsck::run(args),
        What::Agree(args) => agree::run(common, args),
        What::Import(args) => import::run(common, args),
        What::Export(args) => export::run(common, args),
        What::Remap(args) => remap::run(common, args),
    }
}

/// The journals that are named, one by one or by their folder.
fn files(paths: &[PathBuf]) -> anyhow::Result<Vec<PathBuf>> {
    let mut files = Vec::new();
    for path in paths {
        if path.is_dir() {
            files.extend(Project::journals(path)?);
        } else if path.file_name().is_some_and(|name| name == "pool.jsonl") {
            // A project's passages, as `PROJECT/*.jsonl` names them too.
        } else if path.exists() {
            files.push(path.clone());
        } else {
            anyhow::bail!("{}: no such file or folder", path.display());
        }
    }
    Ok(files)
}

/// What stands in all the journals that are named, together.
fn decisions_of(paths: &[PathBuf]) -> anyhow::Result<Vec<Decision>> {
    let mut history = History::default();
    for file in files(paths)? {
        let read = Read::file(&file)?;
        if let Some(told) = read.told(&file) {
            writeln!(io::stderr(), "parallax: {told}")?;
        }
        for entry in read.entries {
            history.take(entry);
        }
    }
    let decisions = history.decisions();
    if decisions.is_empty() {
        anyhow::bail!("no labels in {}; label some with `a` in the explorer, or import them", told(paths));
    }
    Ok(decisions)
}

/// What the detector says of all the pairs that were decided. Passages that the corpus does not hold as they were labelled are
/// passed over and counted; so are pairs that it fails on.
fn judged(
    setup: &Setup,
    material: &Material<'_>,
    decisions: &[Decision],
    meter: &Meter,
    stop: &Stop,
) -> anyhow::Result<Model> {
    let detector = setup.detector()?;
    let mut pairs: HashMap<(String, String), Option<Passage>> = HashMap::new();
    for one in decisions {
        pairs.entry((one.text.clone(), one.perspective.clone())).or_insert_with(|| material.passage(one));
    }
    let asked = pairs.len();
    let known: Vec<((String, String), Passage)> =
        pairs.into_iter().filter_map(|(pair, passage)| Some((pair, passage?))).collect();
    let gone = asked - known.len();
    if gone > 0 {
        let what = count(gone, "pair has", "pairs have");
        writeln!(
            io::stderr(),
            "parallax: {what} no verdict, as this corpus does not hold the passage as it was labelled"
        )?;
    }
    let (done, total) = (AtomicU64::new(0), known.len() as u64);
    let verdicts = on_all(setup.judging(), known.len(), stop, |i| {
        let ((_, statement), passage) = &known[i];
        let verdict = setup.verdicts.judge(detector.as_ref(), passage, statement, stop);
        let done = done.fetch_add(1, Ordering::Relaxed) + 1;
        meter.tell(Progress { job: Job::Judging, done, total });
        verdict
    });
    let mut model =
        Model { detector: detector.key().to_owned(), threshold: detector.threshold(), p: HashMap::new() };
    let mut failed: Vec<DetectError> = Vec::new();
    for ((pair, _), verdict) in known.into_iter().zip(verdicts) {
        match verdict {
            Ok(p) => {
                model.p.insert(pair, p);
            }
            Err(error) => failed.push(error),
        }
    }
    if let Some(first) = failed.first() {
        let what = count(failed.len(), "pair has", "pairs have");
        writeln!(io::stderr(), "parallax: {what} no verdict; the first: {first}")?;
    }
    if let Some(told) = detector.told() {
        writeln!(io::stderr(), "parallax: {told}")?;
    }
    Ok(model)
}

/// Paths as a message names them.
fn told(paths: &[PathBuf]) -> String {
    paths.iter().map(|path| path.display().to_string()).collect::<Vec<_>>().join(", ")
}

/// What stands of a key that is in conflict, a line a machine.
fn conflict(history: &History, key: &Key) -> String {
    let mut text = format!("  {}: {} [{}]\n", key.by, safe::line(&key.question), safe::line(&key.passage));
    for head in history.heads(key) {
        let said = head.view.answers.iter().map(|(statement, supports)| {
            format!("{} {}", if *supports { "yes" } else { "no" }, safe::line(statement))
        });
        let said: Vec<String> = said.collect();
        let said = if said.is_empty() { "undecided".to_owned() } else { said.join(" · ") };
        text += &format!("    {said}\n");
    }
    text
}

/// A path as it is named in a table.
fn named(path: &Path) -> String {
    path.file_name().map_or_else(|| path.display().to_string(), |name| name.to_string_lossy().into_owned())
}

/// `1 entry`, `2 entries`.
fn count(count: usize, one: &str, many: &str) -> String {
    format!("{count} {}", if count == 1 { one } else { many })
}
