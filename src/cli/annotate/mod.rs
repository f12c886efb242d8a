//! `parallax annotate`: labelling projects, and the journals that hold labels.
//!
//! May use: everything below `cli`.

mod journals;
mod labels;
mod project;

use std::process::ExitCode;

use clap::Subcommand;

use super::options::Common;

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
    Status(project::Status),
    /// Merge the journals of several machines, in any order. No label is lost.
    Merge(journals::Merge),
    /// Check journals for damage.
    Fsck(journals::Fsck),
    /// Measure how far annotators agree, with each other and with the detector, and list what they should discuss.
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
        What::Status(args) => project::status(args),
        What::Merge(args) => journals::merge(args),
        What::Fsck(args) => journals::fsck(args),
        What::Agree(args) => labels::agree(common, args),
        What::Import(args) => labels::import(common, args),
        What::Export(args) => labels::export(common, args),
        What::Remap(args) => journals::remap(common, args),
    }
}
