//! `parallax annotate`: projects of labels by hand, and the journals that hold them.

mod fsck;
mod merge;
mod new;
mod remap;
mod status;

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use clap::Subcommand;

use super::args::Common;
use crate::annotate::{History, Key, Project};
use crate::report::safe;

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
        What::Remap(args) => remap::run(common, args),
    }
}

/// The journals that are named, one by one or by their folder.
fn files(paths: &[PathBuf]) -> anyhow::Result<Vec<PathBuf>> {
    let mut files = Vec::new();
    for path in paths {
        if path.is_dir() {
            files.extend(Project::journals(path)?);
        } else if path.exists() {
            files.push(path.clone());
        } else {
            anyhow::bail!("{}: no such file or folder", path.display());
        }
    }
    Ok(files)
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
